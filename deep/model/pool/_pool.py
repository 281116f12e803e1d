"""Many ways to aggregate, weighted by how well each transfers to datasets it was not fitted on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from deep._checks import Floats, Weights, check_both_classes, check_choice, check_consistent_length, check_labels
from deep._odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.features import distinct_patterns, weigh
from deep.model.chain import grouped
from deep.model.pool._members import ADAPTIVE, Member, Scorer, members_for, members_of
from deep.model.pool._rows import LabeledRows, Rows
from deep.model.target import (
    MIN_DATASETS,
    Alignment,
    LearnedPrior,
    LeftOut,
    LeftOutRows,
    Misfit,
    PriorEstimate,
    balanced_log_loss,
    context_of,
    fit_alignment,
    learn_misfit,
)

FormKey = tuple[str, bool]
"""A member, and whether its dataset context is used."""


@dataclass(frozen=True, eq=False)
class PoolScores:
    """The pool's scores of a dataset without labels.

    Parameters
    ----------
    log_odds : ndarray of float, shape (n_examples,)
        Of P(consistent) as if both classes were equally frequent: decide at 0 for balanced accuracy.
    prior : PriorEstimate
        The dataset's share of consistent items.
    misfit : Misfit
        How far P may be off, as the training datasets tell.
    """

    log_odds: Floats
    prior: PriorEstimate
    misfit: Misfit

    @property
    def p_uniform(self) -> Floats:
        """Return P(consistent) if both classes were equally frequent."""
        return np.clip(expit(self.log_odds), P_MIN, 1 - P_MIN)

    @property
    def p_consistent(self) -> Floats:
        """Return P(consistent) at the estimated prior."""
        return np.clip(expit(self._at_prior()), P_MIN, 1 - P_MIN)

    def interval(self, counts: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return the bounds of `p_consistent` at level 0.9.

        Parameters
        ----------
        counts : array-like of shape (n_examples,), optional
            The bounds are those of the rate observed in so many rows; default: of the true rate.
        """
        return self.misfit.interval(self._at_prior(), counts)

    def _at_prior(self) -> Floats:
        return self.log_odds + logit(self.prior.estimate, clip=0.0)


class Pool(BaseEstimator):
    """Averages the log-odds of many aggregators, weighted by their loss on training datasets left out.

    Each member is fitted on all training datasets but one and scores that one; an intercept, a slope and the
    effect of the dataset's mean score are fitted on those scores; members weigh exp(-loss / temperature). What
    remains to be known of a new dataset is its prior, which :class:`LearnedPrior` estimates from the members'
    mean P.

    Parameters
    ----------
    members : sequence of str, optional
        Keys of `MEMBERS`; default all that the number of voters and scorers allows.
    temperature : float, default=0.01
        Above 0: the difference in mean log loss at which a member's weight falls by a factor e.
    random_state : int, default=0

    Attributes
    ----------
    members_ : tuple of str
    losses_ : dict of (str, bool) to float
        By member and whether its context is used: log loss on datasets left out, classes balanced.
    weights_ : dict of str to float
        By member, summing to 1.
    prior_ : LearnedPrior
    prior_members_ : tuple of str
        The members whose mean P the prior is learned from: all but those that adapt to a dataset's votes, which are
        another function on every dataset.
    misfit_ : Misfit
        How far P at the learned prior was off on datasets left out.
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
    >>> pool = Pool(["logistic-votes", "tilt"]).fit(train.votes, train.labels, groups=train.datasets)
    >>> new = pool.score(votes.votes[votes.datasets == "aggrefact-xsum"])
    >>> sorted(pool.weights_), new.prior.refused, new.p_consistent.shape
    (['logistic-votes', 'tilt'], True, (558,))
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
        scores: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from labeled datasets.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_voters)
            Votes: 1, 0, or -1 for none.
        y : array-like of shape (n_examples,)
            Labels 0/1, both in every dataset.
        groups : array-like of shape (n_examples,)
            The dataset of each row; at least three. Above 50 they are left out in 20 groups.
        sample_weight : array-like of shape (n_examples,), optional
            How often each row counts.
        scores : array-like of shape (n_examples, n_scorers), optional
            Soft votes beside the hard ones, in any unit; NaN where there is none.

        Raises
        ------
        InputError
            There are fewer than three datasets, one lacks a class, a member is unknown or cannot be fitted on
            these votes, or a value is out of range.
        """
        train = _labeled(X, y, groups, sample_weight, scores)
        members = members_of(self._chosen(train), train)
        self.members_ = tuple(members)
        self.n_scorers_ = train.scores.shape[1]
        self.scorers_: dict[str, Scorer] = {name: fit(train, self.random_state) for name, fit in members.items()}
        held = [_held(train, group, members, self.random_state) for group in train.present()]
        forms = {(name, use): _fit_form(name, held, use_context=use) for name in members for use in (False, True)}
        self.alignments_ = {key: form.alignment for key, form in forms.items()}
        self.losses_ = {key: form.loss for key, form in forms.items()}
        self.form_weights_ = _softmin(self.losses_, self.temperature)
        self.weights_ = {name: self.form_weights_[name, False] + self.form_weights_[name, True] for name in members}
        # To pick the one member that tells most of the prior would be a choice among near equals, which turns with a
        # seed: all are averaged, but for those that adapt to a dataset and so are another function on each.
        self.prior_members_ = tuple(name for name in members if name not in ADAPTIVE) or self.members_
        contexts = [[one.points[name].context for name in self.prior_members_] for one in held]
        self.prior_ = LearnedPrior().fit(contexts, [one.points[self.members_[0]].prior for one in held])
        left_out = [_combined(i, one, forms, self.form_weights_) for i, one in enumerate(held)]
        self.misfit_ = learn_misfit(
            [
                LeftOutRows(log_odds + shift, one.ones, one.zeros, one.cell)
                for log_odds, shift, one in zip(left_out, self.prior_.left_out_, held, strict=True)
            ]
        )
        inner = [_balanced_scores(z, one.ones, one.zeros) for z, one in zip(left_out, held, strict=True)]
        self.inner_log_loss_, self.inner_balanced_accuracy_ = (float(value) for value in np.mean(inner, axis=0))
        return self

    def score(
        self, X: npt.ArrayLike, *, sample_weight: Weights = None, scores: npt.ArrayLike | None = None
    ) -> PoolScores:
        """Score all rows of one new dataset, whose distribution of votes is looked at as well.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_voters)
        sample_weight : array-like of shape (n_examples,), optional
        scores : array-like of shape (n_examples, n_scorers), optional
            Given where `fit` was given them.

        Returns
        -------
        PoolScores
        """
        check_is_fitted(self, "weights_")
        target = Rows.from_arrays(X, scores, sample_weight)
        if target.scores.shape[1] != self.n_scorers_:
            raise InputError(
                f"`scores` must have {self.n_scorers_} columns, as in `fit`. Got {target.scores.shape[1]}."
            )
        if not self.n_scorers_:
            return self._score_patterns(target)
        return self._score(target)

    def _score_patterns(self, target: Rows) -> PoolScores:
        """Score each distinct pattern once."""
        patterns, where = distinct_patterns(target.votes)
        weights = weigh(where, target.weights, len(patterns))
        found = self._score(Rows(patterns, np.empty((len(patterns), 0)), weights))
        return replace(found, log_odds=found.log_odds[where])

    def _score(self, target: Rows) -> PoolScores:
        raw = {name: scorer(target) for name, scorer in self.scorers_.items()}
        context = {name: context_of(values, target.weights) for name, values in raw.items()}
        log_odds = sum(
            weight * self.alignments_[form](raw[form[0]], context[form[0]])
            for form, weight in self.form_weights_.items()
        )
        statistics = [context[name] for name in self.prior_members_]
        return PoolScores(np.asarray(log_odds), self.prior_.predict(statistics), self.misfit_)

    def _chosen(self, train: LabeledRows) -> tuple[str, ...]:
        possible = members_for(train.votes.shape[1], train.scores.shape[1])
        for name in self.members or ():
            check_choice(name, possible, "members")
        if not self.temperature > 0:
            raise InputError(f"`temperature` must be above 0. Got {self.temperature!r}.")
        return possible if self.members is None else tuple(self.members)


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """One training dataset, scored by members that were fitted on the others.

    Parameters
    ----------
    ones, zeros : ndarray of float, shape (n_rows,)
        Weight of label 1 and of label 0.
    cell : ndarray of int, shape (n_rows,)
        Which vote pattern each row has.
    raw : dict of str to ndarray
        By member: log-odds of the rows.
    points : dict of str to LeftOut
        The same, merged to fewer points.
    """

    ones: Floats
    zeros: Floats
    cell: npt.NDArray[np.intp]
    raw: dict[str, Floats]
    points: dict[str, LeftOut]


@dataclass(frozen=True, eq=False)
class _Form:
    """A member's alignment, those without each dataset, and the mean loss of these on the dataset left out."""

    alignment: Alignment
    without: list[Alignment]
    loss: float


def _held(train: LabeledRows, group: int, members: Mapping[str, Member], seed: int) -> _HeldOut:
    """Score one dataset by fits on the others."""
    others, rows = train.without(group), train.only(group)
    ones, zeros = rows.weights * (rows.labels == 1), rows.weights * (rows.labels == 0)
    raw = {name: fit(others, seed)(rows) for name, fit in members.items()}
    points = {name: LeftOut.from_rows(score, ones, zeros) for name, score in raw.items()}
    return _HeldOut(ones, zeros, distinct_patterns(rows.votes)[1], raw, points)


def _fit_form(name: str, held: Sequence[_HeldOut], *, use_context: bool) -> _Form:
    """Align a member's scores on all datasets, and judge it on each by alignments that never saw it."""
    points = [one.points[name] for one in held]
    without = [fit_alignment(points[:i] + points[i + 1 :], use_context=use_context) for i in range(len(points))]
    losses = [balanced_log_loss(align(p.score, p.context), p) for align, p in zip(without, points, strict=True)]
    return _Form(fit_alignment(points, use_context=use_context), without, float(np.mean(losses)))


def _softmin(losses: Mapping[FormKey, float], temperature: float) -> dict[FormKey, float]:
    """Return weights exp(-loss / temperature) that sum to 1."""
    values = np.array(list(losses.values()))
    raw = np.exp(-(values - values.min()) / temperature)
    return dict(zip(losses, (raw / raw.sum()).tolist(), strict=True))


def _combined(i: int, one: _HeldOut, forms: Mapping[FormKey, _Form], weights: Mapping[FormKey, float]) -> Floats:
    """Return the log-odds of the i-th dataset's rows by all forms, none of which saw it."""
    return np.asarray(
        sum(
            weight * forms[name, use].without[i](one.raw[name], one.points[name].context)
            for (name, use), weight in weights.items()
        )
    )


def _labeled(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    groups: npt.ArrayLike,
    sample_weight: Weights,
    scores: npt.ArrayLike | None,
) -> LabeledRows:
    """Check labeled rows, leave out those of weight 0, and return them."""
    panel = Rows.from_arrays(X, scores, sample_weight)
    labels = check_labels(y, len(panel.votes))
    names, codes = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    check_consistent_length(codes, len(labels), "groups")
    kept = panel.weights > 0
    present = len(np.unique(codes[kept]))
    if present < MIN_DATASETS:
        raise InputError(f"`groups` must name at least {MIN_DATASETS} datasets. Got {present}.")
    check_both_classes(labels[kept], names[codes[kept]], name="y")
    return _in_order(LabeledRows(panel.votes, panel.scores, panel.weights, labels, grouped(codes)).rows(kept))


def _in_order(train: LabeledRows) -> LabeledRows:
    """Return rows in an order that depends on what they hold alone, equal ones without scores merged."""
    if train.scores.shape[1]:
        keys = [*train.scores.T[::-1], *train.votes.T[::-1], train.labels, train.groups]
        return train.rows(np.lexsort(keys))
    patterns, where = distinct_patterns(train.votes)
    n_groups = int(train.groups.max()) + 1
    cell = (train.groups * 2 + train.labels) * len(patterns) + where
    counts = weigh(cell, train.weights, 2 * n_groups * len(patterns))
    kept = np.flatnonzero(counts)
    code, pattern = kept // len(patterns), kept % len(patterns)
    votes, labels = patterns[pattern], (code % 2).astype(np.int8)
    return LabeledRows(votes, np.empty((len(kept), 0)), counts[kept], labels, code // 2)


def _balanced_scores(log_odds: Floats, ones: Floats, zeros: Floats) -> tuple[float, float]:
    """Return log loss and balanced accuracy of log-odds on one dataset, both classes weighing the same."""
    one = LeftOut(log_odds, ones, zeros)
    share_1, share_0 = one.classes()
    return balanced_log_loss(log_odds, one), float(share_1 @ (log_odds >= 0) + share_0 @ (log_odds < 0)) / 2
