"""Many ways to aggregate, weighted by how well each transfers to datasets it was not fitted on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from deep._checks import Floats, check_both_classes, check_choice, check_consistent_length, check_labels
from deep._odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.features import distinct_patterns, weigh
from deep.model.pool._members import ADAPTIVE, MEMBERS, Scorer, members_for
from deep.model.pool._pool_data import LabeledPanel, Panel
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

__all__ = ["Pool", "PoolScores"]

Form = tuple[str, bool]
"""A member, and whether its dataset context is used."""


@dataclass(frozen=True, eq=False)
class PoolScores:
    """What the pool says of a dataset without labels.

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

    def interval(self, counts: Any = None) -> tuple[Floats, Floats]:
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

    def fit(self, X: Any, y: Any, *, groups: Any, sample_weight: Any = None, scores: Any = None) -> Self:
        """Learn from labeled datasets.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_voters)
            Votes: 1, 0, or -1 for none.
        y : array-like of shape (n_examples,)
            Labels 0/1, both in every dataset.
        groups : array-like of shape (n_examples,)
            The dataset of each row; at least three.
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
        self.members_ = self._chosen(train)
        self._fit_members(train)
        self._align()
        self._learn_prior()
        self._weigh()
        self._learn_misfit()
        self.n_scorers_ = train.scores.shape[1]
        return self

    def score(self, X: Any, *, sample_weight: Any = None, scores: Any = None) -> PoolScores:
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
        target = Panel.from_arrays(X, scores, sample_weight)
        if target.scores.shape[1] != self.n_scorers_:
            raise InputError(
                f"`scores` must have {self.n_scorers_} columns, as in `fit`. Got {target.scores.shape[1]}."
            )
        if not self.n_scorers_:
            return self._score_patterns(target)
        return self._score(target)

    def _score_patterns(self, target: Panel) -> PoolScores:
        """Score each distinct pattern once."""
        patterns, where = distinct_patterns(target.votes)
        weights = weigh(where, target.weights, len(patterns))
        found = self._score(Panel(patterns, np.empty((len(patterns), 0)), weights))
        return replace(found, log_odds=found.log_odds[where])

    def _score(self, target: Panel) -> PoolScores:
        raw = {name: scorer(target) for name, scorer in self.scorers_.items()}
        context = {name: context_of(values, target.weights) for name, values in raw.items()}
        log_odds = sum(
            weight * self.alignments_[form](raw[form[0]], context[form[0]])
            for form, weight in self.form_weights_.items()
        )
        statistics = [context[name] for name in self.prior_members_]
        return PoolScores(np.asarray(log_odds), self.prior_.predict(statistics), self.misfit_)

    def _chosen(self, train: LabeledPanel) -> tuple[str, ...]:
        possible = members_for(train.votes.shape[1], train.scores.shape[1])
        for name in self.members or ():
            check_choice(name, possible, "members")
        if not self.temperature > 0:
            raise InputError(f"`temperature` must be above 0. Got {self.temperature!r}.")
        return possible if self.members is None else tuple(self.members)

    def _fit_members(self, train: LabeledPanel) -> None:
        """Fit every member on all datasets, and score each dataset by fits on the others."""
        self.scorers_: dict[str, Scorer] = {name: MEMBERS[name](train, self.random_state) for name in self.members_}
        self._left_out: dict[str, list[LeftOut]] = {name: [] for name in self.members_}
        self._rows: dict[str, list[Floats]] = {name: [] for name in self.members_}
        self._labels: list[tuple[Floats, Floats, Any]] = []
        for group in train.present():
            others, held = train.without(group), train.only(group)
            ones, zeros = held.weights * (held.labels == 1), held.weights * (held.labels == 0)
            self._labels.append((ones, zeros, distinct_patterns(held.votes)[1]))
            for name in self.members_:
                score = MEMBERS[name](others, self.random_state)(held)
                self._rows[name].append(score)
                self._left_out[name].append(LeftOut.from_rows(score, ones, zeros))

    def _align(self) -> None:
        """Fit each form's alignment, and its loss on each dataset by alignments without it."""
        self.alignments_: dict[Form, Alignment] = {}
        self._inner: dict[Form, list[Alignment]] = {}
        self.losses_: dict[Form, float] = {}
        for name in self.members_:
            held = self._left_out[name]
            for use_context in (False, True):
                form = name, use_context
                self.alignments_[form] = fit_alignment(held, use_context=use_context)
                self._inner[form] = [
                    fit_alignment(held[:i] + held[i + 1 :], use_context=use_context) for i in range(len(held))
                ]
                losses = [
                    balanced_log_loss(align(one.score, one.context), one)
                    for align, one in zip(self._inner[form], held, strict=True)
                ]
                self.losses_[form] = float(np.mean(losses))

    def _weigh(self) -> None:
        losses = np.array(list(self.losses_.values()))
        raw = np.exp(-(losses - losses.min()) / self.temperature)
        self.form_weights_ = dict(zip(self.losses_, (raw / raw.sum()).tolist(), strict=True))
        self.weights_ = {
            name: self.form_weights_[name, False] + self.form_weights_[name, True] for name in self.members_
        }

    def _learn_prior(self) -> None:
        """Learn the prior from the mean P of every member.

        To pick the one member that tells most would be a choice among near equals, which turns with a seed.
        """
        self.prior_members_ = tuple(name for name in self.members_ if name not in ADAPTIVE) or self.members_
        contexts = [[one.context for one in self._left_out[name]] for name in self.prior_members_]
        priors = [one.prior for one in self._left_out[self.members_[0]]]
        self.prior_ = LearnedPrior().fit(np.transpose(contexts), priors)

    def _learn_misfit(self) -> None:
        left_out: list[LeftOutRows] = []
        inner = []
        for i, (ones, zeros, cell) in enumerate(self._labels):
            log_odds = sum(
                weight * self._inner[name, use][i](self._rows[name][i], self._left_out[name][i].context)
                for (name, use), weight in self.form_weights_.items()
            )
            left_out.append(LeftOutRows(np.asarray(log_odds + self.prior_.left_out_[i]), ones, zeros, cell))
            inner.append(_balanced_scores(np.asarray(log_odds), ones, zeros))
        self.inner_log_loss_, self.inner_balanced_accuracy_ = (float(value) for value in np.mean(inner, axis=0))
        self.misfit_ = learn_misfit(left_out)
        del self._rows, self._labels, self._inner, self._left_out


def _labeled(X: Any, y: Any, groups: Any, sample_weight: Any, scores: Any) -> LabeledPanel:
    """Check labeled rows, leave out those of weight 0, and return them."""
    panel = Panel.from_arrays(X, scores, sample_weight)
    labels = check_labels(y, len(panel.votes))
    names, codes = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    check_consistent_length(codes, len(labels), "groups")
    train = _in_order(LabeledPanel(panel.votes, panel.scores, panel.weights, labels, codes).rows(panel.weights > 0))
    if len(train.present()) < MIN_DATASETS:
        raise InputError(f"`groups` must name at least {MIN_DATASETS} datasets. Got {len(train.present())}.")
    check_both_classes(train.labels, names[train.groups], name="y")
    return train


def _in_order(train: LabeledPanel) -> LabeledPanel:
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
    return LabeledPanel(votes, np.empty((len(kept), 0)), counts[kept], labels, code // 2)


def _balanced_scores(log_odds: Floats, ones: Floats, zeros: Floats) -> tuple[float, float]:
    """Return log loss and balanced accuracy of log-odds on one dataset, both classes weighing the same."""
    one = LeftOut(log_odds, ones, zeros)
    share_1, share_0 = one.classes()
    return balanced_log_loss(log_odds, one), float(share_1 @ (log_odds >= 0) + share_0 @ (log_odds < 0)) / 2
