"""Labeled rows, and sums over votes fitted to them: of few datasets, where nothing is chosen, three are averaged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from deep._util import checks
from deep._util.checks import AnyVotes, Floats, Labels, Positions, Votes, Weights, is_votes
from deep._util.columns import Hashes, mixed
from deep._util.odds import expit, fit_logistic
from deep._util.scales import votes_of
from deep.features import distinct_patterns
from deep.model._answers import AnswerMap
from deep.records import VoteMatrix


@dataclass(frozen=True, eq=False)
class Linear:
    """Log-odds of P(consistent) as a sum over votes, at equal class weights; no vote adds nothing.

    Logistic regression, naive Bayes, Dawid-Skene, the label model and majority votes are all of this form.

    Parameters
    ----------
    intercept : float
        The log-odds of a row without votes.
    ones, zeros : ndarray of float, shape (n_voters,)
        What a vote of 1 and a vote of 0 add.

    Examples
    --------
    >>> linear = Linear(0.5, np.array([1.0, 2.0]), np.array([-1.0, -3.0]))
    >>> linear.log_odds(np.array([[1, 0], [-1, -1]], dtype=np.int8)).tolist()
    [-1.5, 0.5]
    """

    intercept: float
    ones: Floats
    zeros: Floats

    @classmethod
    def signed(cls, intercept: float, coef: Floats) -> "Linear":
        """Return the sum in which a vote of 0 takes away as much as a vote of 1 adds."""
        return cls(intercept, coef, -coef)

    @classmethod
    def mean(cls, members: Sequence["Linear"]) -> "Linear":
        """Return the mean of several sums."""
        parts = ([one.intercept for one in members], [one.ones for one in members], [one.zeros for one in members])
        intercept, ones, zeros = (np.mean(part, axis=0) for part in parts)
        return cls(float(intercept), ones, zeros)

    def log_odds(self, answers: AnyVotes) -> Floats:
        """Return the log-odds of each row of votes or of evidence, shape (n_examples,).

        Evidence is a vote of 1 in part and a vote of 0 for the rest: 0.5 is three quarters of a 1.
        """
        if is_votes(answers):
            difference = (answers == 1) @ self.ones + (answers == 0) @ self.zeros
            return np.asarray(self.intercept + difference, dtype=np.float64)
        result = np.zeros(len(answers))
        slopes, bases = (self.ones - self.zeros) / 2, (self.ones + self.zeros) / 2
        for column, slope, base in zip(answers.T, slopes, bases, strict=True):  # a product rounds a row by those beside
            part = column * slope + base
            part[np.isnan(column)] = 0.0
            result += part
        return result + self.intercept


@dataclass(frozen=True, eq=False)
class Rows:
    """Judges' answers on the rows of one dataset, labels unknown.

    Parameters
    ----------
    votes : ndarray of int8, shape (n_examples, n_voters)
        1, 0, or -1 for none; of judges that give grades or scores, the votes that their answers are.
    evidence : ndarray of float64, shape (n_examples, n_voters)
        By :class:`AnswerMap`, NaN where there is none; no columns where all judges vote.
    weights : ndarray of float64, shape (n_examples,)
        How often each row counts.
    """

    votes: Votes
    evidence: Floats
    weights: Floats

    @classmethod
    def from_arrays(
        cls,
        X: npt.ArrayLike,
        answer_map: AnswerMap | None = None,
        sample_weight: Weights = None,
        *,
        name: str = "X",
    ) -> "Rows":
        """Check rows of votes, the caller's `name`, or of answers where there is a map of them, and return them."""
        if answer_map is None:
            votes = checks.check_votes(X, name=name)
            evidence = np.empty((len(votes), 0))
        else:
            answers = np.asarray(X, dtype=np.float64)
            votes, evidence = votes_of(answers), answer_map(answers)
        return Rows(votes, evidence, checks.check_sample_weight(sample_weight, len(votes)))

    @property
    def features(self) -> AnyVotes:
        """Return the evidence, or the votes where all judges vote."""
        return self.evidence if self.evidence.shape[1] else self.votes

    def rows(self, index: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Self:
        """Return these rows (a mask or positions)."""
        arrays = {name: value[index] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays)


@dataclass(frozen=True, eq=False)
class LabeledRows(Rows):
    """Rows of several labeled datasets.

    Parameters
    ----------
    labels : ndarray of int8, shape (n_examples,)
        0 or 1.
    groups : ndarray of int, shape (n_examples,)
        The dataset of each row, as a number.
    """

    labels: Labels
    groups: npt.NDArray[np.intp]

    @classmethod
    def of(
        cls, votes: VoteMatrix, groups: npt.ArrayLike | None = None, answer_map: AnswerMap | None = None
    ) -> "LabeledRows":
        """Return labeled rows, each once; groups are their datasets unless others are given."""
        codes = (
            checks.numbered(votes.datasets)[1]
            if groups is None
            else np.unique(np.asarray(groups), return_inverse=True)[1]
        )
        n = len(codes)
        evidence = np.empty((n, 0)) if answer_map is None or votes.answers is None else answer_map(votes.answers)
        return cls(votes.votes, evidence, np.ones(n), votes.labels, codes)

    def without(self, group: int) -> Self:
        """Return the rows of all other datasets."""
        return self.rows(self.groups != group)

    def only(self, group: int) -> Self:
        """Return one dataset's rows."""
        return self.rows(self.groups == group)

    def present(self) -> list[int]:
        """Return the numbers of the datasets that are there, ascending."""
        return [int(group) for group in np.unique(self.groups)]

    def balanced(self) -> Floats:
        """Return row weights under which every dataset x class weighs the same, summing to the sum of weights."""
        code = 2 * self.groups + self.labels
        size = checks.weigh(code, self.weights)
        return np.asarray(self.weights / size[code] * self.weights.sum() / (size > 0).sum())

    def of_classes(self) -> tuple[Floats, Floats]:
        """Return the weight of each row for label 1, and for label 0: none for the other label."""
        return self.weights * (self.labels == 1), self.weights * (self.labels == 0)


MOST_ROWS = 400_000
"""Rows with evidence that a stack is fitted on as they are; of more it takes a weighted sample of about so many.

A logistic regression of d coefficients on a sample of m rows loses about d / 2m of log loss more than on all rows: 3e-5
at 23 scorers. `benchmarks/scores_at_scale.py --proof` measures it on real scores."""


def sample_rows(train: LabeledRows, most: int = MOST_ROWS) -> LabeledRows:
    """Return rows whose cost is bounded: all of them, or of each dataset and class a weighted sample.

    Equal rows are merged first. Every dataset x class then keeps an equal share of `most` by priority sampling [1]_:
    the rows of largest weight / u, where u in (0, 1] is a hash of what a row holds; a row kept weighs what it did, or
    the first priority left out if that is more. The sample depends neither on the order of rows nor on a seed, a row of
    weight w is w rows, and each dataset x class weighs in sum what it did.

    Parameters
    ----------
    train : LabeledRows
        Rows of votes are returned as they are: those are merged to cells.
    most : int
        Rows above which they are sampled.

    References
    ----------
    .. [1] Duffield, Lund and Thorup, "Priority sampling for estimation of arbitrary subset sums", J. ACM 54 (2007).
       https://doi.org/10.1145/1314690.1314696

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, groups = rng.integers(0, 2, 9_000).astype(np.int8), rng.integers(0, 3, 9_000)
    >>> rows = LabeledRows(y[:, None], rng.random((9_000, 1)), np.ones(9_000), y, groups)
    >>> few = sample_rows(rows, 600)
    >>> len(few.votes), round(float(few.weights.sum()), 6)
    (600, 9000.0)
    """
    if not train.evidence.shape[1] or train.weights.sum() <= most:
        return train
    hashes = row_hashes(train)
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    first = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
    distinct, hashes, weights = order[first], hashes[first], np.add.reduceat(train.weights[order], first)
    del order, first  # each as large as a column of the rows
    stratum = 2 * train.groups[distinct] + train.labels[distinct]
    # The same number for each dataset and class, as each weighs the same in the fit.
    share = int(most // len(np.unique(stratum)))
    priority = (hashes >> np.uint64(11)).astype(np.float64)
    priority += 1
    np.divide(weights, priority, out=priority)
    priority *= 2.0**53
    sizes, samples = checks.weigh(stratum, weights), list[Positions]()
    for code in np.unique(stratum):
        rows = np.flatnonzero(stratum == code)
        if len(rows) > share:
            ranked = rows[np.argsort(-priority[rows], kind="stable")]
            rows = ranked[:share]
            weights[rows] = np.maximum(weights[rows], priority[ranked[share]])
        samples.append(rows)
    at = np.concatenate(samples)
    scale = sizes / np.maximum(checks.weigh(stratum[at], weights[at], len(sizes)), np.finfo(float).tiny)
    return replace(train.rows(distinct[at]), weights=weights[at] * scale[stratum[at]])


def row_hashes(rows: LabeledRows) -> Hashes:
    """Return a 64-bit hash of each row, its weight aside; NaN is NaN, and -0 is 0."""
    parts = []
    for start in range(0, len(rows.votes), checks.ROWS_AT_ONCE):
        block = rows.rows(np.arange(start, min(start + checks.ROWS_AT_ONCE, len(rows.votes))))
        result = mixed((2 * block.groups.astype(np.int64) + block.labels).view(np.uint64))
        for column in block.votes.T:
            result = mixed(result ^ (column.astype(np.int64) + 2).view(np.uint64))
        for column in block.evidence.T:
            plain = np.where(np.isnan(column), np.nan, column) + 0.0
            result = mixed(result ^ plain.view(np.uint64))
        parts.append(result)
    return np.concatenate(parts)


def sample_note(n: int) -> str:
    """Return the sentence that says that a stack was fitted on a sample.

    Examples
    --------
    >>> sample_note(10_000_000)[:56]
    'The stack was fitted on a sample of about 400,000 of the'
    """
    return (
        f"The stack was fitted on a sample of about {MOST_ROWS:,} of the {n:,} rows, drawn from each dataset and "
        "class. That costs about 3e-5 of log loss at 23 scorers."
    )


def in_order(train: LabeledRows) -> LabeledRows:
    """Return rows in an order that depends on their content alone, equal ones of votes merged."""
    if train.evidence.shape[1]:
        keys = [*train.evidence.T[::-1], *train.votes.T[::-1], train.labels, train.groups]
        return train.rows(np.lexsort(keys))
    patterns, where = distinct_patterns(train.votes)
    n_groups = int(train.groups.max()) + 1
    cell = (train.groups * 2 + train.labels) * len(patterns) + where
    counts = checks.weigh(cell, train.weights, 2 * n_groups * len(patterns))
    cells = np.flatnonzero(counts)
    code, pattern = cells // len(patterns), cells % len(patterns)
    votes, labels = patterns[pattern], (code % 2).astype(np.int8)
    return LabeledRows(votes, np.empty((len(cells), 0)), counts[cells], labels, code // 2)


TIE = 0.001
"""Weight of the mean vote beside the best judge's: it decides where that judge gave no vote."""

# Penalty of the ridge regression, against a mean log loss and features of about unit scale.
RIDGE = 0.03


@dataclass(frozen=True, eq=False)
class Weighed:
    """Signed votes of labeled rows, and balanced weights.

    Parameters
    ----------
    signed : ndarray of float, shape (n_examples, n_voters)
        +1, -1, or 0 for no vote; evidence where judges give grades or scores.
    labels : ndarray of int8, shape (n_examples,)
        1 for consistent, 0 for not.
    weights : ndarray of float, shape (n_examples,)
        Every dataset x class weighs the same; they sum to 1.
    sizes : ndarray of float, shape (2,)
        Rows of label 0 and of label 1.
    """

    signed: Floats
    labels: Votes
    weights: Floats
    sizes: Floats

    @classmethod
    def of(cls, train: LabeledRows) -> "Weighed":
        """Return the votes of training rows with their balanced weights."""
        weights = train.balanced()
        sizes = np.array([train.weights[train.labels == label].sum() for label in (0, 1)])
        if train.evidence.shape[1]:
            signed = np.nan_to_num(train.evidence)
        else:
            signed = np.asarray((train.votes == 1).astype(np.float64) - (train.votes == 0))
        return cls(signed, train.labels, weights / weights.sum(), sizes)


def fit_best_judge(train: LabeledRows) -> Linear:
    """Return the vote of the judge with the largest difference of its rates in the two classes, calibrated."""
    rows = Weighed.of(train)
    ones, zeros = _rates(rows, smoothing=0.0)
    coef = np.full(rows.signed.shape[1], TIE / rows.signed.shape[1])
    coef[int(np.argmax(ones - zeros))] += 1.0
    return _calibrated(coef, rows)


def fit_majority(train: LabeledRows) -> Linear:
    """Return the mean vote of all judges, calibrated: a majority with a learned threshold."""
    rows = Weighed.of(train)
    return _calibrated(np.full(rows.signed.shape[1], 1.0 / rows.signed.shape[1]), rows)


def fit_ridge(train: LabeledRows) -> Linear:
    """Return a ridge regression on all judges, none of which counts against its vote, calibrated.

    A judge is penalised the less the more its rates in the two classes differ (Youden's index), as in the adaptive
    lasso [1]_.

    References
    ----------
    .. [1] H. Zou, "The adaptive lasso and its oracle properties", JASA 101, 2006.
       https://doi.org/10.1198/016214506000000735
    """
    from scipy.optimize import minimize

    rows = Weighed.of(train)
    ones, zeros = _rates(rows, smoothing=1.0)
    youden = np.maximum(ones - zeros, 0.0)
    # Scaled to a root mean square of 1 over all judges, so that the penalty means the same for any number of them.
    scale = youden / (np.sqrt((youden**2).mean()) or 1.0) / np.sqrt(len(youden))
    features, y, w = rows.signed * scale, rows.labels, rows.weights

    def objective(theta: Floats) -> tuple[float, Floats]:
        z = theta[0] + features @ theta[1:]
        residual = w * (expit(z) - y)
        loss = w @ (np.logaddexp(0.0, z) - y * z) + RIDGE / 2 * theta[1:] @ theta[1:]
        return float(loss), np.concatenate([[residual.sum()], features.T @ residual + RIDGE * theta[1:]])

    # A judge never counts against its own vote: what it is wrong about on one dataset it may be right about on the
    # next.
    bounds = [(None, None)] + [(0.0, None)] * len(scale)
    options = {"maxiter": 500, "ftol": 1e-13, "gtol": 1e-8}
    result = minimize(objective, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return _calibrated(result.x[1:] * scale, rows)


def fit_average(train: LabeledRows) -> Linear:
    """Return the mean log-odds of the best judge, the majority and a ridge regression on all judges.

    With one or two labeled datasets no choice among aggregators, and no subset of judges, can be told from chance.
    Averaging what is simple loses least: docs/which-fit.md has the figures.

    Parameters
    ----------
    train : LabeledRows
        Of one dataset or more.

    Returns
    -------
    Linear
    """
    members = [fit(train) for fit in (fit_best_judge, fit_majority, fit_ridge)]
    return Linear.mean(members)


def _rates(rows: Weighed, *, smoothing: float) -> tuple[Floats, Floats]:
    """Return each judge's share of 1 among its votes in class 1 and in class 0; 0.5 where it never votes."""
    n = rows.sizes.sum()
    result = []
    for label in (1, 0):
        of_class = rows.labels == label
        votes = rows.signed[of_class]
        # Evidence of x is a vote of 1 by (1 + x) / 2, and a vote of 0 for the rest.
        ones, cast = (n * (rows.weights[of_class] @ part) for part in ((votes != 0) * (1 + votes) / 2, votes != 0))
        total = cast + 2 * smoothing
        result.append(np.where(total > 0, (ones + smoothing) / np.where(total > 0, total, 1.0), 0.5))
    return result[0], result[1]


def _calibrated(coef: Floats, rows: Weighed) -> Linear:
    """Return the sum of votes with a slope and an intercept; nothing at all where the slope would be negative.

    Labels are drawn towards 0.5 by one row a class, as Platt did [1]_: where few rows are separable the slope stays
    finite and honest.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines", 1999.
    """
    score = rows.signed @ coef
    values, where = np.unique(score, return_inverse=True)
    # Platt's targets: 1 / (n + 2) in place of 0. Without them the log loss on llmbar with one training dataset is
    # 1.15, with them .64 (decision 13).
    doubt = 1.0 / (rows.sizes + 2.0)
    ones, zeros = (checks.weigh(where, rows.weights * (rows.labels == c), len(values)) for c in (1, 0))
    success = ones * (1 - doubt[1]) + zeros * doubt[0]
    design = np.column_stack([np.ones(len(values)), values])
    penalty = np.diag([1e-9, 1e-6])
    intercept, slope = fit_logistic(design, ones + zeros, success, centre=np.zeros(2), penalty=penalty).tolist()
    return Linear.signed(intercept, slope * coef) if slope > 0 else Linear.signed(0.0, 0.0 * coef)
