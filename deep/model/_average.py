"""Answers on one axis, labeled rows, and sums over votes: with few datasets nothing is chosen, three are averaged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from deep._util import checks
from deep._util.checks import Floats, Labels, Mask, Positions, Votes
from deep._util.columns import Hashes, splitmix64_mix
from deep._util.odds import expit, fit_logistic, logit
from deep._util.scales import Scale
from deep.features import Linear, Rows, distinct_patterns
from deep.records import VoteMatrix

# A score or its rank is held within [SHARE_CLIP, 1 - SHARE_CLIP]: an extreme score is no more than extreme. The
# log-odds of an answer are within 4.6 then. Chosen; no measurement is known.
SHARE_CLIP = 0.01

MIN_ANSWER_DEVIATION = 1e-9
"""A judge whose answers vary less does not vary: what is left is rounding, and an answer divided by it blows up."""

# A judge that is mapped by ranks has at most so many places.
# A rank between two places is interpolated, and off by at most 1 in 500.
MAX_KNOTS = 500

MAX_LEVELS_BY_VALUE = 40
"""A judge of more distinct answers, on a scale of no shares, is mapped by ranks: its levels have no names."""

# Reciprocal averaging takes so many rounds: the second changes values by a few hundredths, a third hardly any.
N_AVERAGING_ROUNDS = 2

# Rows by which the value of a level is drawn to a straight line: so a level that hardly occurs borrows from others.
PSEUDO_ROWS = 5.0

# Places on a scale, ascending, and the shares that they stand for.
Knots = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class AnswerMap:
    """Maps the answers of each judge to evidence; no answer stays NaN.

    A place on a judge's scale stands for a share of a vote: 0 a vote of 0, 1 a vote of 1. Shares that are probabilities
    or ranks become log-odds. All are centred and scaled, votes to -1 and 1.

    Parameters
    ----------
    scales : tuple of Scale
        One a judge, in the order of the columns.
    knots : list of (places, shares)
        One a judge.
    log_odds : tuple of bool
        Of whose shares log-odds are taken.
    centre, scale : ndarray of float, shape (n_voters,)
        Taken from a share, or its log-odds, and then divided by: mean and standard deviation, or 0.5 and 0.5.

    Examples
    --------
    >>> answers = np.array([[0.0, 0.2], [0.5, 0.4], [1.0, 0.9], [1.0, np.nan]])
    >>> votes = VoteMatrix(answers, "abcd", ["grader", "scorer"], ["news"] * 4, [-1] * 4, scales=["0-1", "unit"])
    >>> AnswerMap.fit(votes)(votes.answers).round(1).tolist()
    [[-1.5, -1.0], [-0.3, -0.4], [0.9, 1.4], [0.9, nan]]
    """

    scales: tuple[Scale, ...]
    knots: list[Knots]
    log_odds: tuple[bool, ...]
    centre: Floats
    scale: Floats

    def __call__(self, answers: Floats) -> Floats:
        """Return the evidence of answers, given as places on the scales, shape (n_examples, n_voters)."""
        result = np.empty(answers.shape, order="F")
        for j, (pair, log_odds) in enumerate(zip(self.knots, self.log_odds, strict=True)):
            share = answers[:, j] if len(pair[0]) == 2 else np.interp(answers[:, j], *pair)
            share = logit(share, clip=SHARE_CLIP) if log_odds else share
            np.divide(share - self.centre[j], self.scale[j], out=result[:, j])
        return result

    @classmethod
    def fit(cls, votes: VoteMatrix, *, labeled: bool = True) -> Self:
        """Learn the maps from answers alone: no label is looked at.

        Shares of levels are their values by reciprocal averaging [1]_: the value of a level is the mean value that the
        other judges have where it is given, drawn to a straight line, and never falling.

        Parameters
        ----------
        votes : VoteMatrix
            Each dataset weighs the same.
        labeled : bool, default=True
            Whether labels weigh the judges: log-odds of shares are then taken, and all evidence has a standard
            deviation of 1. Else a share stands for itself.

        References
        ----------
        .. [1] M. O. Hill, "Reciprocal averaging: an eigenvector method of ordination", J. Ecology 61, 1973.
           https://doi.org/10.2307/2258931
        """
        assert votes.answers is not None  # where all judges vote there is nothing to map
        assert votes.scales is not None
        answers, k = votes.answers, votes.answers.shape[1]
        position = np.unique(votes.datasets.astype(str), return_inverse=True)[1]
        # Each dataset weighs the same, or the levels of a judge would be those of the largest dataset.
        weights = 1.0 / checks.bincount(position, np.ones(len(answers)))[position]
        plain = [(np.array([0.0, 1.0]), np.array([0.0, 1.0]))] * k
        binary = np.array([scale.binary for scale in votes.scales])
        shares = np.array([scale.is_share for scale in votes.scales])
        levels = [
            None if binary[j] or shares[j] else _levels(answers[:, j], scale) for j, scale in enumerate(votes.scales)
        ]
        ranked = [level is None and not (binary[j] or shares[j]) for j, level in enumerate(levels)]
        knots = [_rank_knots(answers[:, j], weights) if is_ranked else plain[j] for j, is_ranked in enumerate(ranked)]
        log_odds = np.array([bool(share or rank) for share, rank in zip(shares, ranked, strict=True)])
        for _ in range(N_AVERAGING_ROUNDS):
            evidence = cls(votes.scales, knots, tuple(log_odds), *_moments(answers, weights, knots, log_odds))(answers)
            has_answer = ~np.isnan(evidence)
            sums, counts = np.where(has_answer, evidence, 0.0).sum(axis=1), has_answer.sum(axis=1)
            for j, level in enumerate(levels):
                if level is None:
                    continue
                others = counts - has_answer[:, j]
                both = has_answer[:, j] & (others > 0)
                mean = (sums[both] - evidence[both, j]) / others[both]
                knots[j] = _level_knots(level, answers[both, j], mean, weights[both] / weights.mean())
        if not labeled:
            half = np.full(k, 0.5)
            return cls(votes.scales, knots, (False,) * k, half, half)
        centre, scale = _moments(answers, weights, knots, log_odds)
        centre[binary], scale[binary] = 0.5, 0.5
        return cls(votes.scales, knots, tuple(log_odds.tolist()), centre, scale)


def _moments(answers: Floats, weights: Floats, knots: Sequence[Knots], log_odds: Mask) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the mapped answers of each judge."""
    k = answers.shape[1]
    values = AnswerMap((), list(knots), tuple(log_odds), np.zeros(k), np.ones(k))(answers)
    has_answer = ~np.isnan(values)
    total = np.maximum((has_answer * weights[:, None]).sum(axis=0), 1e-12)
    centre = (np.where(has_answer, values, 0.0) * weights[:, None]).sum(axis=0) / total
    apart = np.where(has_answer, values - centre, 0.0)
    scale = np.sqrt((apart**2 * weights[:, None]).sum(axis=0) / total)
    return centre, np.where(scale > MIN_ANSWER_DEVIATION, scale, 1.0)


def _levels(column: Floats, scale: Scale) -> Floats | None:
    """Return the levels of a judge, ascending: its answers and the whole steps of its scale; None where too many."""
    result = np.unique(column[~np.isnan(column)])
    if len(result) > MAX_LEVELS_BY_VALUE:
        return None
    return np.unique(np.concatenate([result, np.linspace(0.0, 1.0, scale.n_levels or 2)]))


def _level_knots(levels: Floats, column: Floats, mean: Floats, weights: Floats) -> Knots:
    """Return the shares of levels by the mean evidence of the others where they are given."""
    from sklearn.isotonic import isotonic_regression  # which a model that is read does without

    where = np.searchsorted(levels, column)
    size = checks.bincount(where, weights, len(levels))
    total = size.sum()
    if total <= 0:
        return levels, levels
    at = [float(weights @ values) / total for values in (column, mean)]
    apart = column - at[0]
    slope = max(float((weights * apart) @ (mean - at[1])) / max(float((weights * apart) @ apart), 1e-12), 0.0)
    line = at[1] + slope * (levels - at[0])
    value = (checks.bincount(where, weights * mean, len(levels)) + PSEUDO_ROWS * line) / (size + PSEUDO_ROWS)
    value = isotonic_regression(value, sample_weight=size + PSEUDO_ROWS)
    span = value[-1] - value[0]
    return (levels, (value - value[0]) / span) if span > MIN_ANSWER_DEVIATION else (levels, levels)


def _rank_knots(column: Floats, weights: Floats) -> Knots:
    """Return places and the shares they stand for: their ranks among all rows."""
    has_answer = ~np.isnan(column)
    values, where = np.unique(column[has_answer], return_inverse=True)
    weight = checks.bincount(where, weights[has_answer])
    # Ties get the middle of the ranks that they share.
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    if len(values) > MAX_KNOTS:
        knots = np.unique(np.searchsorted(middle, np.linspace(middle[0], middle[-1], MAX_KNOTS)))
        values, middle = values[knots], middle[knots]
    return values, middle


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
            checks.factorize(votes.datasets)[1]
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
        size = checks.bincount(code, self.weights)
        return np.asarray(self.weights / size[code] * self.weights.sum() / (size > 0).sum())

    def of_classes(self) -> tuple[Floats, Floats]:
        """Return the weight of each row for label 1, and for label 0: none for the other label."""
        return self.weights * (self.labels == 1), self.weights * (self.labels == 0)


MAX_STACK_ROWS = 400_000
"""Rows with evidence that a stack is fitted on as they are; of more it takes a weighted sample of about so many.

A logistic regression of d coefficients on a sample of m rows loses about d / 2m of log loss more than on all rows: 3e-5
at 23 scorers. `benchmarks/scores_at_scale.py --proof` measures it on real scores."""


def sample_rows(train: LabeledRows, most: int = MAX_STACK_ROWS) -> LabeledRows:
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
    sizes, samples = checks.bincount(stratum, weights), list[Positions]()
    for code in np.unique(stratum):
        rows = np.flatnonzero(stratum == code)
        if len(rows) > share:
            ranked = rows[np.argsort(-priority[rows], kind="stable")]
            rows = ranked[:share]
            weights[rows] = np.maximum(weights[rows], priority[ranked[share]])
        samples.append(rows)
    at = np.concatenate(samples)
    scale = sizes / np.maximum(checks.bincount(stratum[at], weights[at], len(sizes)), np.finfo(float).tiny)
    return replace(train.rows(distinct[at]), weights=weights[at] * scale[stratum[at]])


def row_hashes(rows: LabeledRows) -> Hashes:
    """Return a 64-bit hash of each row, its weight aside; NaN is NaN, and -0 is 0."""
    parts = []
    for start in range(0, len(rows.votes), checks.ROWS_AT_ONCE):
        block = rows.rows(np.arange(start, min(start + checks.ROWS_AT_ONCE, len(rows.votes))))
        result = splitmix64_mix((2 * block.groups.astype(np.int64) + block.labels).view(np.uint64))
        for column in block.votes.T:
            result = splitmix64_mix(result ^ (column.astype(np.int64) + 2).view(np.uint64))
        for column in block.evidence.T:
            plain = np.where(np.isnan(column), np.nan, column) + 0.0
            result = splitmix64_mix(result ^ plain.view(np.uint64))
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
        f"The stack was fitted on a sample of about {MAX_STACK_ROWS:,} of the {n:,} rows, drawn from each dataset and "
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
    counts = checks.bincount(cell, train.weights, 2 * n_groups * len(patterns))
    cells = np.flatnonzero(counts)
    code, pattern = cells // len(patterns), cells % len(patterns)
    votes, labels = patterns[pattern], (code % 2).astype(np.int8)
    return LabeledRows(votes, np.empty((len(cells), 0)), counts[cells], labels, code // 2)


MEAN_VOTE_TIE_WEIGHT = 0.001
"""Weight of the mean vote beside the best judge's: it decides where that judge gave no vote."""

# Penalty of the ridge regression, against a mean log loss and features of about unit scale. A larger one trusts the
# training datasets less. Chosen; no measurement is known.
RIDGE_PENALTY = 0.03


@dataclass(frozen=True, eq=False)
class BalancedVotes:
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
    def of(cls, train: LabeledRows) -> "BalancedVotes":
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
    rows = BalancedVotes.of(train)
    ones, zeros = _rates_by_class(rows, smoothing=0.0)
    coef = np.full(rows.signed.shape[1], MEAN_VOTE_TIE_WEIGHT / rows.signed.shape[1])
    coef[int(np.argmax(ones - zeros))] += 1.0
    return _fit_slope_and_intercept(coef, rows)


def fit_majority(train: LabeledRows) -> Linear:
    """Return the mean vote of all judges, calibrated: a majority with a learned threshold."""
    rows = BalancedVotes.of(train)
    return _fit_slope_and_intercept(np.full(rows.signed.shape[1], 1.0 / rows.signed.shape[1]), rows)


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

    rows = BalancedVotes.of(train)
    ones, zeros = _rates_by_class(rows, smoothing=1.0)
    youden = np.maximum(ones - zeros, 0.0)
    # Scaled to a root mean square of 1 over all judges, so that the penalty means the same for any number of them.
    scale = youden / (np.sqrt((youden**2).mean()) or 1.0) / np.sqrt(len(youden))
    features, y, w = rows.signed * scale, rows.labels, rows.weights

    def objective(theta: Floats) -> tuple[float, Floats]:
        z = theta[0] + features @ theta[1:]
        residual = w * (expit(z) - y)
        loss = w @ (np.logaddexp(0.0, z) - y * z) + RIDGE_PENALTY / 2 * theta[1:] @ theta[1:]
        return float(loss), np.concatenate([[residual.sum()], features.T @ residual + RIDGE_PENALTY * theta[1:]])

    # A judge never counts against its own vote: what it is wrong about on one dataset it may be right about on the
    # next.
    bounds = [(None, None)] + [(0.0, None)] * len(scale)
    options = {"maxiter": 500, "ftol": 1e-13, "gtol": 1e-8}
    result = minimize(objective, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return _fit_slope_and_intercept(result.x[1:] * scale, rows)


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


def _rates_by_class(rows: BalancedVotes, *, smoothing: float) -> tuple[Floats, Floats]:
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


def _fit_slope_and_intercept(coef: Floats, rows: BalancedVotes) -> Linear:
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
    ones, zeros = (checks.bincount(where, rows.weights * (rows.labels == c), len(values)) for c in (1, 0))
    success = ones * (1 - doubt[1]) + zeros * doubt[0]
    design = np.column_stack([np.ones(len(values)), values])
    penalty = np.diag([1e-9, 1e-6])
    intercept, slope = fit_logistic(design, ones + zeros, success, centre=np.zeros(2), penalty=penalty).tolist()
    return Linear.signed(intercept, slope * coef) if slope > 0 else Linear.signed(0.0, 0.0 * coef)
