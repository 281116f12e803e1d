"""Many ways to aggregate, weighted by how well each transfers to datasets it was not fitted on.

A member is fitted on labeled datasets and turns the judges' votes and scores into one log-odds a row. None looks at how
the votes of a new dataset are distributed: docs/decisions/0011-one-model.md says what those that did were worth.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from deep._util import checks
from deep._util.checks import Floats, Weights
from deep.ensembles import RandomForest
from deep.exceptions import InputError
from deep.features import Linear, Rows, distinct_patterns
from deep.model import _average, _misfit
from deep.model._average import AnswerMap, LabeledRows
from deep.model._blend import Blend, Part, Scorer, Trees, VoteForest, VoteSum, most_discriminating_judges
from deep.model._misfit import Alignment, HeldOutData, HeldOutRows
from deep.model._prior import context_weight, learn_line, profile_of
from deep.model._scores import Scores
from deep.model._training import MapLike, assign_folds

# A member makes a scorer of labeled datasets and a seed.
FitMember = Callable[[LabeledRows, int], Scorer]

# How many judges the member of few scores looks at. Four were chosen with the first stack; no measurement is kept.
N_TOP_JUDGES = 4

# Most rows of a dataset and class that the forest on scores is grown on: more rows take longer, and no larger number
# was measured. One large dataset must not grow all the trees.
MAX_FOREST_ROWS = 300


def _fit_vote_forest(train: LabeledRows, seed: int) -> Scorer:
    # Shallow, so that a leaf is no single pattern of one dataset. Number and depth were chosen; no measurement is
    # known.
    model = RandomForest(100, max_depth=5, random_state=seed)
    model.fit(train.votes, train.labels, sample_weight=train.balanced())
    return VoteForest(Trees.from_sklearn([one.tree_ for one in model.trees_], lambda tree: tree.value[:, 0, 0]))


def _fit_logistic(train: LabeledRows, columns: list[int]) -> Scorer:
    """Fit a ridge logistic regression on the evidence of some judges."""
    from sklearn.linear_model import LogisticRegression

    weights, k = train.balanced(), train.evidence.shape[1]
    # A mean loss beside a penalty of 1 / 200: how hard it pulls depends neither on rows nor on their weights. The size
    # of the penalty was chosen; no measurement is known: a larger one trusts the training datasets less.
    model = LogisticRegression(C=100.0 / weights.sum(), max_iter=500)
    model.fit(np.nan_to_num(train.evidence[:, columns]), train.labels, sample_weight=weights)
    coef = np.zeros(k)
    coef[columns] = model.coef_[0]
    return VoteSum(Linear.signed(float(model.intercept_[0]), coef))


def _fit_score_forest(train: LabeledRows, seed: int) -> Scorer:
    """Fit a forest on evidence, of large datasets on a sample of each class."""
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(seed)
    code = 2 * train.groups + train.labels
    samples = [rng.permutation(np.flatnonzero(code == one))[:MAX_FOREST_ROWS] for one in np.unique(code)]
    rows = train.rows(np.sort(np.concatenate(samples)))
    # Few shallow trees on a third of the judges each, with leaves of half a percent of the weight at least: all to keep
    # them from learning one dataset by heart. These numbers were chosen; no measurement is known.
    model = RandomForestClassifier(40, max_depth=6, max_features=0.3, min_weight_fraction_leaf=0.005, random_state=seed)
    model.fit(np.nan_to_num(rows.evidence), rows.labels, sample_weight=rows.balanced())
    return VoteForest(Trees.from_sklearn([one.tree_ for one in model.estimators_], _share_of_ones))


def _share_of_ones(tree: object) -> Floats:
    values = np.asarray(getattr(tree, "value"))[:, 0, :]  # noqa: B009 - scikit-learn ships no types
    return np.asarray(values[:, 1] / values.sum(axis=1))


# The function that fits each member, by its name. Only forests draw, and so only they heed the seed.
MEMBER_FITS: dict[str, FitMember] = {
    "best-judge": lambda train, _: VoteSum(_average.fit_best_judge(train)),
    "best-score": lambda train, _: _fit_logistic(train, most_discriminating_judges(train, 1)),
    "forest-scores": _fit_score_forest,
    "forest-votes": _fit_vote_forest,
    "logistic-scores": lambda train, _: _fit_logistic(train, list(range(train.evidence.shape[1]))),
    "logistic-top-scores": lambda train, _: _fit_logistic(train, most_discriminating_judges(train, N_TOP_JUDGES)),
    "majority": lambda train, _: VoteSum(_average.fit_majority(train)),
    "ridge-votes": lambda train, _: VoteSum(_average.fit_ridge(train)),
}

# Members of a panel whose judges all vote.
VOTE_MEMBERS = ("best-judge", "forest-votes", "majority", "ridge-votes")

# Members of one in which some give grades or scores.
ANSWER_MEMBERS = ("best-score", "forest-scores", "logistic-scores", "logistic-top-scores", "majority", "ridge-votes")

# Members that choose least: one judge, or weights that cannot be negative. Where datasets are few, weights are drawn to
# them.
SIMPLE_MEMBERS = ("best-judge", "best-score", "majority", "ridge-votes")


def members_for(n_judges: int) -> tuple[str, ...]:
    """Return the members of a panel in which so many judges stand of whom some give grades or scores; 0: all vote.

    Examples
    --------
    >>> members_for(0)
    ('best-judge', 'forest-votes', 'majority', 'ridge-votes')
    """
    if not n_judges:
        return VOTE_MEMBERS
    # Of one judge the strongest few are that judge.
    return tuple(name for name in ANSWER_MEMBERS if n_judges > 1 or name != "logistic-top-scores")


def simple_members(names: Sequence[str]) -> tuple[str, ...]:
    """Return the members towards which weights are drawn: all where none of them is simple."""
    return tuple(name for name in names if name in SIMPLE_MEMBERS) or tuple(names)


# A form of a member: its name, and whether the mean P of the dataset, its context, is used. Each member has both forms.
FormKey = tuple[str, bool]

# Members whose losses differ by so many standard errors weigh apart by a factor e. With three, and weights that do not
# fade, FaithBench had 62.3 balanced accuracy and not 63.5. With neither, llmbar had 76.8 and not 84.4 (decision 26).
LOSS_NOISE_FACTOR = 2.0

# Weights of so many datasets are half what these say and half equal weights of the simple members. Four are decision
# 13's; decision 26 let the equal half fade with more datasets.
TRUSTED_DATASETS = 4.0

Fits = Mapping[str | None, Mapping[str, Scorer]]
"""Fitted members by the training dataset that they never saw; None: by all."""


class Stack(BaseEstimator):
    """Averages the log-odds of many aggregators, weighted by their loss on training datasets left out.

    Each member is fitted on all training datasets but one and scores that one; an intercept, a slope and the
    effect of the dataset's mean score are fitted on those scores; members weigh exp(-loss / temperature). What
    remains to be known of a new dataset is the intercept of P, which :class:`LearnedPrior` estimates.

    Parameters
    ----------
    members : sequence of str, optional
        Keys of `MEMBER_FITS`; default all that the number of voters allows.
    temperature : float, default=0.01
        Above 0: the difference in mean log loss at which a member's weight falls by a factor e; more where losses
        are noisier than that.
    random_state : int, default=0
        Seed of the members that draw, which are forests.

    Attributes
    ----------
    members_ : tuple of str
        Names of the fitted members, in the order of the parts of `blend_`.
    blend_ : Blend
        The fitted members and what each adds.
    losses_ : dict of (str, bool) to float
        By member and whether its context is used: log loss on datasets left out, classes balanced.
    weights_ : dict of str to float
        By member, summing to 1.
    prior_ : LearnedPrior
        Estimates the intercept of P, and the share of consistent items, on a new dataset.
    contexts_ : ndarray
        Contexts and profile of the mean training dataset: for rows that come without a dataset of their own.
    thresholds_ : list of float
        By training dataset: log-odds of P from which on fits without it call an item consistent.
    misfit_ : Misfit
        How far P at the learned prior was off on datasets left out.
    left_out_ : dict of str to HeldOutData
        By training dataset: log-odds at the estimated prior by fits without it, merged to few points.
    inner_log_loss_, inner_balanced_accuracy_ : float
        Of the weighted members on datasets left out, every dataset x class weighing the same.

    References
    ----------
    .. [1] D. H. Wolpert, "Stacked generalization", Neural Networks 5, 1992.
       https://doi.org/10.1016/S0893-6080(05)80023-1

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> votes = simulate_votes(0)
    >>> train = votes.rows(votes.datasets != "aggrefact-xsum")
    >>> stack = Stack(["majority", "ridge-votes"]).fit(train.votes, train.labels, groups=train.datasets)
    >>> new = stack.score(votes.votes[votes.datasets == "aggrefact-xsum"])
    >>> sorted(stack.weights_), new.p_consistent.shape
    (['majority', 'ridge-votes'], (558,))
    """

    def __init__(
        self, members: Sequence[str] | None = None, *, temperature: float = 0.01, random_state: int = 0
    ) -> None:
        self.members = members
        self.temperature = temperature
        self.random_state = random_state

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        groups: npt.ArrayLike,
        sample_weight: Weights = None,
        answer_map: AnswerMap | None = None,
        fits: Fits | None = None,
    ) -> Self:
        """Learn from labeled datasets.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_voters)
            Votes: 1, 0, or -1 for none; with `answer_map` places of answers on their scales, NaN for none.
        y : array-like of shape (n_examples,)
            Labels 0/1, both in every dataset.
        groups : array-like of shape (n_examples,)
            The dataset of each row; at least three. Above 50 they are left out in 20 groups.
        sample_weight : array-like of shape (n_examples,), optional
            How often each row counts.
        answer_map : AnswerMap, optional
            Given where some judges give grades or scores.
        fits : mapping, optional
            The members by the dataset left out, where :func:`fit_shared` has fitted them already: several stacks
            that leave the same two datasets out need the same fits.

        Raises
        ------
        InputError
            There are fewer than three datasets, one lacks a class, a member is unknown or cannot be fitted on
            these votes, or a value is out of range.
        """
        self.answer_map_ = answer_map
        return self.fit_rows(*labeled_rows(X, y, groups, sample_weight, answer_map), fits)

    def fit_rows(self, train: LabeledRows, names: Mapping[int, str], fits: Fits | None = None) -> Self:
        """Learn from rows that :func:`labeled_rows` has checked, with the names of their datasets; `fits` as above."""
        members = self._names(train)
        if fits is None:
            fits = fit_shared(train, names, members=members, random_state=self.random_state).without()
        tests = [_score_dataset(train.only(code), {m: fits[name][m] for m in members}) for code, name in names.items()]
        # Each member stands in twice, with the mean of its dataset and without: which of them transfers is a question
        # to the losses.
        forms = {(m, use): _fit_form(m, tests, use_context=use) for m in members for use in (False, True)}
        self._weigh(forms, members)
        self.members_ = members
        blend = Blend(tuple(self._part(m, fits[None][m], forms) for m in members))
        datasets = [train.only(code) for code in names]
        points = [HeldOutData.from_rows(blend.weighted(blend.raw(one)), *one.of_classes()) for one in datasets]
        # Learned on log-odds without the context terms: with them the log loss at three datasets is .475 and not .470
        # (decision 26).
        slope, self.prior_ = learn_line(points)
        self.blend_ = blend.steeper(slope)
        # The members' contexts are the means over datasets left out: there the parts were aligned.
        parts = [np.mean([one.points[member].context for one in tests]) for member in members]
        self.contexts_ = np.concatenate([parts, self.prior_.profiles_.mean(axis=0)])
        self._learn_left_out(tests, forms, tuple(names.values()), slope)
        return self

    def score(self, X: npt.ArrayLike, *, sample_weight: Weights = None) -> Scores:
        """Score all rows of one new dataset, whose mean P is looked at as well.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_voters)
            As in `fit`.
        sample_weight : array-like of shape (n_examples,), optional
            How often each row counts in the means over the dataset. Default: once each.

        Returns
        -------
        Scores
        """
        check_is_fitted(self, "blend_")
        target = Rows.from_arrays(X, getattr(self, "answer_map_", None), sample_weight)
        raw = self.blend_.raw(target)
        contexts = self.blend_.contexts(raw, target.weights)
        prior = self.prior_.predict(self.blend_.profile(contexts), self.blend_.offset(contexts))
        return Scores(self.blend_.log_odds(raw, contexts), prior, self.misfit_)

    def _names(self, train: LabeledRows) -> tuple[str, ...]:
        possible = members_for(train.evidence.shape[1])
        for name in self.members or ():
            checks.check_choice(name, possible, "members")
        if not self.temperature > 0:
            raise InputError(f"`temperature` must be above 0. Got {self.temperature!r}.")
        return possible if self.members is None else tuple(self.members)

    def _weigh(self, forms: "Mapping[FormKey, _Form]", members: Sequence[str]) -> None:
        """Weigh each form by exp(-loss / temperature), and draw the weights towards those of simple members."""
        by_dataset = np.array([form.losses for form in forms.values()])
        losses, n = by_dataset.mean(axis=1), by_dataset.shape[1]
        self.losses_ = dict(zip(forms, losses.tolist(), strict=True))
        # Losses that differ by no more than chance weigh about the same: to choose among few datasets is to guess.
        apart = by_dataset - by_dataset.mean(axis=0)
        # The spread of losses about their dataset's mean: that a whole dataset is hard says nothing about members.
        noise = float(np.sqrt(apart.var(axis=1, ddof=1).mean() / n))
        self.temperature_ = max(self.temperature, LOSS_NOISE_FACTOR * noise)
        # The least loss is taken away first, so that no exponential vanishes for all members at once.
        raw = np.exp(-(losses - losses.min()) / self.temperature_)
        simple = np.array([name in simple_members(members) for name, _ in forms], dtype=np.float64)
        # The pull fades with the datasets. Where it stayed at four datasets' worth, and the temperature at three
        # standard errors, faithbench had a balanced accuracy of 62.3 in place of 63.5. Weights by n and n^2 were tried
        # and left (decision 26).
        trust = n**3 / (n**3 + TRUSTED_DATASETS**3)
        shares = trust * raw / raw.sum() + (1 - trust) * simple / simple.sum()
        self.form_weights_: dict[FormKey, float] = dict(zip(forms, shares.tolist(), strict=True))
        self.weights_ = {name: self.form_weights_[name, False] + self.form_weights_[name, True] for name in members}

    def _part(self, name: str, scorer: Scorer, forms: "Mapping[FormKey, _Form]") -> Part:
        """Return a member and its term: both of its forms are linear in its score and its context."""
        pairs = [(self.form_weights_[name, use], forms[name, use].alignment) for use in (False, True)]
        intercept, slope, context = (
            sum(weight * getattr(align, term) for weight, align in pairs) for term in ("intercept", "slope", "context")
        )
        return Part(name, scorer, intercept, slope, context)

    def _learn_left_out(
        self, tests: "Sequence[_HeldOutDataset]", forms: "Mapping[FormKey, _Form]", names: Sequence[str], slope: float
    ) -> None:
        """Learn from datasets left out how far P was off there."""
        # Log-odds by all forms, none of which saw the dataset, what its contexts add to them, and how good both are.
        sums, profiles, inner = [], [], []
        for i, one in enumerate(tests):
            z, offset = np.zeros(len(one.ones)), 0.0
            for (name, use), weight in self.form_weights_.items():
                align = forms[name, use].without[i]
                z += weight * align.slope * one.raw[name]
                offset += weight * (align.intercept + align.context * one.points[name].context)
            # Kept apart: the prior's line takes log-odds without the context terms, which only move the threshold below
            # (decision 26).
            sums.append((z, offset))
            profiles.append(profile_of(slope * z, one.ones + one.zeros))
            rows = HeldOutData(z + offset, one.ones, one.zeros)
            share_1, share_0 = rows.classes()
            accuracy = float(share_1 @ (rows.score >= 0) + share_0 @ (rows.score < 0)) / 2
            inner.append((_misfit.balanced_log_loss(rows.score, rows), accuracy))
        priors = self.prior_.left_out(profiles)
        at_prior = [
            HeldOutRows(prior.line(slope * z), one.ones, one.zeros, one.cell)
            for (z, _), prior, one in zip(sums, priors, tests, strict=True)
        ]
        # Thresholds are those that the model will have: at even odds, or with few datasets nearer to the mean P.
        in_context = context_weight(len(tests))
        self.thresholds_ = [
            prior.threshold_in_context(in_context, slope * offset)
            for (_, offset), prior in zip(sums, priors, strict=True)
        ]
        self.misfit_ = _misfit.learn_misfit(at_prior)
        self.left_out_ = dict(zip(names, (one.merged() for one in at_prior), strict=True))
        self.inner_log_loss_, self.inner_balanced_accuracy_ = (float(value) for value in np.mean(inner, axis=0))


@dataclass(frozen=True, eq=False)
class _HeldOutDataset:
    """One training dataset, scored by members that were fitted on the others.

    Parameters
    ----------
    ones, zeros : ndarray of float, shape (n_rows,)
        Weight of label 1 and of label 0.
    cell : ndarray of int, shape (n_rows,)
        Which vote pattern each row has.
    raw : dict of str to ndarray
        By member: log-odds of the rows.
    points : dict of str to HeldOutData
        The same, merged to fewer points.
    """

    ones: Floats
    zeros: Floats
    cell: npt.NDArray[np.intp]
    raw: dict[str, Floats]
    points: dict[str, HeldOutData]


@dataclass(frozen=True, eq=False)
class _Form:
    """A member's alignment, those without each dataset, and the mean loss of these on the dataset left out."""

    alignment: Alignment
    without: list[Alignment]
    losses: list[float]


def _score_dataset(rows: LabeledRows, fitted: Mapping[str, Scorer]) -> _HeldOutDataset:
    """Score one dataset by fits on the others."""
    ones, zeros = rows.of_classes()
    patterns, where = distinct_patterns(rows.votes)
    distinct = None if rows.evidence.shape[1] else Rows.from_arrays(patterns)
    raw = {
        # Of trees on votes the distinct rows are enough; all others are quick.
        name: scorer(distinct)[where] if distinct is not None and isinstance(scorer, VoteForest) else scorer(rows)
        for name, scorer in fitted.items()
    }
    points = {name: HeldOutData.from_rows(z, ones, zeros) for name, z in raw.items()}
    return _HeldOutDataset(ones, zeros, where, raw, points)


def _fit_form(name: str, tests: Sequence[_HeldOutDataset], *, use_context: bool) -> _Form:
    """Align a member's scores on all datasets, and judge it on each by alignments that never saw it."""
    points = [one.points[name] for one in tests]
    without = [_misfit.fit_alignment(points[:i] + points[i + 1 :], use_context=use_context) for i in range(len(points))]
    losses = [_misfit.balanced_log_loss(align(p.score, p.context), p) for align, p in zip(without, points, strict=True)]
    return _Form(_misfit.fit_alignment(points, use_context=use_context), without, losses)


def labeled_rows(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    groups: npt.ArrayLike,
    sample_weight: Weights = None,
    answer_map: AnswerMap | None = None,
) -> tuple[LabeledRows, dict[int, str]]:
    """Check labeled rows, leave out those of weight 0, and sample evidence of too many; name datasets by code."""
    panel = Rows.from_arrays(X, answer_map, sample_weight)
    labels = checks.check_labels(y, len(panel.votes))
    names, codes = checks.factorize(groups)
    checks.check_consistent_length(codes, len(labels), "groups")
    # Above 50 datasets fits would grow with their number, so that several leave together (decision 23).
    folds = assign_folds(codes)
    rows, weighty = LabeledRows(panel.votes, panel.evidence, panel.weights, labels, folds), panel.weights > 0
    if not weighty.all():
        rows, codes = rows.rows(weighty), codes[weighty]
    n_present = len(np.unique(codes))
    if n_present < _misfit.MIN_DATASETS_FOR_SPREAD:
        raise InputError(f"`groups` must name at least {_misfit.MIN_DATASETS_FOR_SPREAD} datasets. Got {n_present}.")
    checks.check_both_classes(rows.labels, np.array(names, dtype=object)[codes], name="y")
    last = np.full(int(rows.groups.max()) + 1, -1)
    last[rows.groups] = codes  # of datasets that share a fold, the last row's names it
    return _average.in_order(_average.sample_rows(rows)), {
        code: names[at] for code, at in enumerate(last.tolist()) if at >= 0
    }


@dataclass(frozen=True, eq=False)
class SharedFits:
    """Fitted members by the datasets that they never saw.

    Parameters
    ----------
    names : tuple of str
        All datasets.
    fitted : mapping of frozenset of str to mapping of str to Scorer
        By the datasets left out, and by member.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> votes = simulate_votes(0)
    >>> rows, names = labeled_rows(votes.votes, votes.labels, votes.datasets)
    >>> shared = fit_shared(rows, names, targets=votes.dataset_names)
    >>> len(shared.fitted)
    10
    >>> sorted(shared.without("aggrefact-xsum"), key=str)
    [None, 'halueval-summarization', 'tofueval-mediasum', 'tofueval-meetingbank']
    """

    names: tuple[str, ...]
    fitted: Mapping[frozenset[str], Mapping[str, Scorer]]

    def without(self, *target: str) -> Fits:
        """Return the members of the stack of all datasets but `target`, as :meth:`deep.model.Stack.fit` takes them."""
        absent = frozenset(target)
        rest = [name for name in self.names if name not in absent]
        return {None: self.fitted[absent], **{name: self.fitted[absent | {name}] for name in rest}}


def fit_shared(
    rows: LabeledRows,
    names: Mapping[int, str],
    *,
    targets: Sequence[str] = (),
    members: Sequence[str] | None = None,
    random_state: int = 0,
    run: MapLike = map,
) -> SharedFits:
    """Fit the members of the stack that leaves out each target, or of the stack of all datasets.

    A member depends on nothing but the rows that it is fitted on, so that what two stacks share is the same for both.

    Parameters
    ----------
    rows, names : LabeledRows, mapping of int to str
        As :func:`labeled_rows` checks and names them.
    targets : sequence of str
        Each is left out of a stack of its own; none: one stack of all datasets.
    members : sequence of str, optional
        Keys of `MEMBER_FITS`; default all that the number of voters allows.
    random_state : int, default=0
        Seed of the members that draw, which are forests.
    run : callable, optional
        Like `map`; another one may spread the fits over processes.

    Raises
    ------
    InputError
        The datasets are too few, or so many that they are not left out one by one and cannot be shared.
    """
    code = {name: position for position, name in names.items()}
    unknown = sorted(set(targets) - set(code))
    if unknown:
        raise InputError(f"`targets` must be datasets that are left out one by one. Got {unknown[0]!r}.")
    bases = [frozenset([target]) for target in targets] or [frozenset[str]()]
    # Stacks without a and without b both need the fit without a and b: each set is fitted once.
    left_out = list(dict.fromkeys([*bases, *(base | {name} for base, name in product(bases, code))]))
    members = members_for(rows.evidence.shape[1]) if members is None else tuple(members)
    step = partial(_fit_without, rows=rows, members=members, random_state=random_state)
    fitted = run(step, [[code[name] for name in group] for group in left_out])
    return SharedFits(tuple(code), dict(zip(left_out, fitted, strict=True)))


def _fit_without(
    codes: Sequence[int], *, rows: LabeledRows, members: Sequence[str], random_state: int
) -> dict[str, Scorer]:
    for code in codes:
        rows = rows.without(code)
    return {name: MEMBER_FITS[name](rows, random_state) for name in members}
