"""From rows to log-odds of P: scorers as arrays, their weighted sum, its word on distinct rows, each vote's part."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import factorial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from deep._util.checks import AnyVotes, Floats, Mask, Positions, bincount, is_votes
from deep._util.odds import logit
from deep._util.scales import Scale
from deep.features import Linear, Rows, average_over_abstains, distinct_patterns, distinct_rows
from deep.model._average import LabeledRows
from deep.model._prior import context_probabilities, contexts_of_means
from deep.records import ABSTAIN


def most_discriminating_judges(train: LabeledRows, n: int) -> list[int]:
    """Return the `n` judges whose mean area under the ROC curve over training datasets is furthest from a half."""
    if train not in _AUC_CACHE:
        _AUC_CACHE[train] = _summed_auc_by_judge(train)
    apart = np.abs(_AUC_CACHE[train] - len(train.present()) / 2)
    return [int(j) for j in np.argsort(-apart, kind="stable")[:n]]


# Areas are remembered while their rows are in use: two members ask for the same.
_AUC_CACHE: WeakKeyDictionary[LabeledRows, Floats] = WeakKeyDictionary()


def _summed_auc_by_judge(train: LabeledRows) -> Floats:
    """Return the sum over training datasets of each judge's area under the ROC curve, shape (n_voters,)."""
    areas = np.zeros(train.evidence.shape[1])
    for group in train.present():
        rows = train.only(group)
        ones, zeros = rows.of_classes()
        areas += [_auc(column, ones / ones.sum(), zeros / zeros.sum()) for column in rows.evidence.T]
    return areas


def _auc(column: Floats, ones: Floats, zeros: Floats) -> float:
    """Return P(evidence of a consistent row > that of an inconsistent one), ties and no answer counting half."""
    has_answer = ~np.isnan(column)
    # No answer stands in the middle of a judge's answers, where it speaks for neither class.
    value = np.where(has_answer, column, np.nanmedian(column) if has_answer.any() else 0.0)
    _, where = np.unique(value, return_inverse=True)
    ones, zeros = bincount(where, ones), bincount(where, zeros)
    return float(ones @ (np.cumsum(zeros) - zeros / 2))


# Rows up to which all trees are walked side by side.
MAX_ROWS_FOR_JOINT_WALK = 256

# Rows of one call from which scikit-learn is loaded: numpy takes as long for a few of them as loading does.
MIN_ROWS_FOR_SKLEARN = 1 << 13

# Many rows are walked so many at a time: their features and leaves stay in the processor's cache.
ROWS_PER_BATCH = 1 << 14

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Trees:
    """Decision trees as arrays, one entry a node; the trees follow one another.

    Parameters
    ----------
    feature : ndarray of int, shape (n_nodes,)
        Which column is compared; -1 in a leaf.
    threshold : ndarray of float, shape (n_nodes,)
        A row goes left where its feature, in single precision, is at most this.
    left, right : ndarray of int, shape (n_nodes,)
        Nodes that follow; a leaf follows itself.
    p : ndarray of float, shape (n_nodes,)
        P(consistent) in a leaf.
    roots : ndarray of int, shape (n_trees,)
        First node of each tree.
    """

    feature: Positions
    threshold: Floats
    left: Positions
    right: Positions
    p: Floats
    roots: Positions

    @classmethod
    def from_sklearn(cls, trees: Sequence[Any], leaf: Callable[[Any], Floats]) -> "Trees":
        """Return fitted scikit-learn trees; `leaf` gives P(consistent) of every node of one."""
        parts: dict[str, list[Any]] = {field.name: [] for field in fields(cls)}
        start = 0
        for tree in trees:
            nodes = np.arange(tree.node_count)
            inner = tree.children_left >= 0
            parts["feature"].append(np.where(inner, tree.feature, -1))
            parts["threshold"].append(np.where(inner, tree.threshold, 0.0))
            parts["left"].append(start + np.where(inner, tree.children_left, nodes))
            parts["right"].append(start + np.where(inner, tree.children_right, nodes))
            parts["p"].append(np.where(inner, 0.0, leaf(tree)))
            parts["roots"].append([start])
            start += tree.node_count
        return cls(**{name: np.concatenate(values) for name, values in parts.items()})

    def mean(self, features: npt.NDArray[np.floating[Any]]) -> Floats:
        """Return the mean P of all trees for each row of features."""
        single = features.astype(np.float32, order="C", copy=False)
        if len(single) >= MIN_ROWS_FOR_SKLEARN:
            parts = [single[start : start + ROWS_PER_BATCH] for start in range(0, len(single), ROWS_PER_BATCH)]
            return np.concatenate([self._sum_compiled(part) for part in parts]) / len(self.roots)
        total = np.zeros(len(single))
        # Of many rows two trees at a time, to spare memory; the sum is taken in the same order everywhere.
        step = len(self.roots) if len(single) <= MAX_ROWS_FOR_JOINT_WALK else 2
        for start in range(0, len(self.roots), step):
            p = self.p[self._leaves(single, self.roots[start : start + step])]
            for pair in range(0, len(p), 2):
                total += p[pair : pair + 2].sum(axis=0)
        return total / len(self.roots)

    def _sum_compiled(self, features: Float32Array) -> Floats:
        """Return the sum of P over all trees, in the order in which numpy adds it up."""
        total = np.zeros(len(features))
        for start in range(0, len(self.roots), 2):
            total += sum(tree.predict(features)[:, 0] for tree in self._compiled[start : start + 2])
        return total

    @cached_property
    def _compiled(self) -> list[Any]:
        """Return the trees as scikit-learn's own, by the state that it pickles; a leaf holds its P as the value."""
        from sklearn.tree._tree import NODE_DTYPE, Tree

        nodes = np.zeros(len(self.feature), dtype=NODE_DTYPE)
        inner, start = self.feature >= 0, np.repeat(self.roots, np.diff(self.roots, append=len(self.feature)))
        nodes["left_child"] = np.where(inner, self.left - start, -1)
        nodes["right_child"] = np.where(inner, self.right - start, -1)
        nodes["feature"], nodes["threshold"] = self.feature, self.threshold
        result = [Tree(1, np.ones(1, dtype=np.intp), 1) for _ in self.roots]
        for tree, own, p in zip(result, *(np.split(values, self.roots[1:]) for values in (nodes, self.p)), strict=True):
            state = {"max_depth": 0, "node_count": len(own), "nodes": own, "values": p.reshape(-1, 1, 1)}
            # scikit-learn has no public way to make a tree of arrays; this state is what it pickles itself.
            tree.__setstate__(state)
        return result

    def _leaves(self, features: Float32Array, roots: Positions) -> Positions:
        """Return the leaf of each row in each tree, shape (n_trees, n_examples)."""
        rows = np.arange(len(features))
        node = np.repeat(roots[:, np.newaxis], len(features), axis=1)
        while (self.feature[node] >= 0).any():
            low = features[rows, self.feature[node]] <= self.threshold[node]
            node = np.where(low, self.left[node], self.right[node])
        return node


# A member's P is held within [P_CLIP, 1 - P_CLIP] before it becomes log-odds: a pure leaf is no proof. The log-odds of
# a member are within 7 then. Chosen; no measurement is known.
P_CLIP = 1e-3

# The log-odds of `1 - P_CLIP`, beyond which no member's log-odds go.
MAX_MEMBER_LOG_ODDS = float(logit(1 - P_CLIP))


class Scorer(Protocol):
    """From the rows of one dataset to one log-odds each."""

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,)."""


@dataclass(frozen=True, eq=False)
class VoteSum:
    """A sum over votes, or over evidence where judges give grades or scores.

    Parameters
    ----------
    linear : Linear
        What each vote adds to the log-odds.
    """

    linear: Linear

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,)."""
        return np.clip(self.linear.log_odds(rows.features), -MAX_MEMBER_LOG_ODDS, MAX_MEMBER_LOG_ODDS)


@dataclass(frozen=True, eq=False)
class VoteForest:
    """A forest on votes or evidence; no vote is the mean of the values on either side, no evidence is none.

    Parameters
    ----------
    trees : Trees
        Their mean P is taken, whose log-odds are the score.
    """

    trees: Trees

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,); it is slow, and so called with distinct rows of votes."""
        if rows.evidence.shape[1]:
            return logit(self.trees.mean(np.nan_to_num(rows.evidence)), clip=P_CLIP)
        return logit(average_over_abstains(rows.votes, self.trees.mean), clip=P_CLIP)


def leading_column(scorer: VoteSum) -> int:
    """Return the column that counts most in a sum: the judge, where the sum is of one.

    Examples
    --------
    >>> leading_column(VoteSum(Linear.signed(0.0, np.array([0.1, 2.0, 0.1]))))
    1
    """
    return int(np.argmax(np.abs(scorer.linear.ones - scorer.linear.zeros)))


# From rows of answers, as a model selects them, to P.
PredictRows = Callable[[Any], Floats]


@dataclass(frozen=True, eq=False)
class Part:
    """One scorer and its term of the log-odds: intercept + slope * score + context * (its context).

    Parameters
    ----------
    name : str
        The name of the scorer in the model file, such as 'average'.
    scorer : Scorer
        Gives the score of each row, in log-odds.
    intercept, slope, context : float
        Its context is the log-odds of its mean P over the dataset. `context` is mostly below 0: where a scorer finds
        a whole dataset consistent, part of that is leniency.
    """

    name: str
    scorer: Scorer
    intercept: float = 0.0
    slope: float = 1.0
    context: float = 0.0


@dataclass(frozen=True, eq=False)
class Blend:
    """The sum of the terms of several scorers, at equal class weights.

    Parameters
    ----------
    parts : tuple of Part
        One for each scorer; their terms are added up.
    """

    parts: tuple[Part, ...]

    def raw(self, rows: Rows) -> Floats:
        """Return each part's own log-odds, shape (n_parts, n_examples); votes are scored once a pattern."""
        if rows.evidence.shape[1]:
            return self.of_rows(rows)
        patterns, where = distinct_patterns(rows.votes)
        distinct = Rows(patterns, np.empty((len(patterns), 0)), bincount(where, rows.weights, len(patterns)))
        result = np.empty((len(self.parts), len(where)))
        for row, values in zip(result, self.of_rows(distinct), strict=True):
            values.take(where, out=row, mode="clip")
        return result

    def of_rows(self, rows: Rows) -> Floats:
        """Return each part's own log-odds, shape (n_parts, n_examples), all rows scored."""
        return np.array([part.scorer(rows) for part in self.parts])

    def contexts(self, raw: Floats, weights: Floats) -> Floats:
        """Return the context of each part on a dataset and its profile, shape (n_parts + n_shifts,)."""
        return contexts_of_means(self.views(raw) @ weights / weights.sum())

    def views(self, raw: Floats) -> Floats:
        """Return all P whose means over a dataset are its contexts, shape (n_parts + n_shifts, n_examples)."""
        return context_probabilities(raw, self.weighted(raw))

    def profile(self, contexts: Floats) -> Floats:
        """Return the profile of a dataset."""
        return contexts[len(self.parts) :]

    def with_judges(self, intercept: float, coef: Floats, slope: float) -> "Blend":
        """Return the blend with what labels add for each judge, times `slope`."""
        added = VoteSum(Linear.signed(intercept, coef))
        return Blend((*self.parts, Part("labels", added, slope=slope)))

    def steeper(self, slope: float) -> "Blend":
        """Return the blend whose log-odds are those of this one times `slope`."""
        terms = ("intercept", "slope", "context")
        return Blend(tuple(replace(one, **{t: slope * getattr(one, t) for t in terms}) for one in self.parts))

    def log_odds(self, raw: Floats, contexts: Floats) -> Floats:
        """Return log-odds at equal class weights, shape (n_examples,)."""
        return self.weighted(raw) + self.offset(contexts)

    def weighted(self, raw: Floats) -> Floats:
        """Return the sum of the parts' log-odds times their slopes, shape (n_examples,)."""
        result = np.zeros(raw.shape[1])
        for part, row in zip(self.parts, raw, strict=True):  # a matrix product rounds a row by those beside it
            result += part.slope * row
        return result

    def offset(self, contexts: Floats) -> float:
        """Return the log-odds that the contexts of a dataset add to all of its rows."""
        return float(sum(part.intercept + part.context * c for part, c in zip(self.parts, contexts, strict=False)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """The judges' word on distinct rows, before anything is known of their dataset.

    Parameters
    ----------
    log_odds : ndarray of float, shape (n_distinct,)
        The weighted sum of the parts of a blend.
    n_votes : ndarray of int, shape (n_distinct,)
        Votes that each row has.
    own : ndarray of float, shape (n_distinct,), optional
        P of a chain before calibration; None where the model is no chain.
    raw : ndarray of float, shape (n_parts, n_distinct), optional
        The log-odds that each part gives; None where the contexts of the dataset are known already.
    """

    log_odds: Floats
    n_votes: npt.NDArray[np.integer]
    own: Floats | None = None
    raw: Floats | None = None

    def __len__(self) -> int:
        return len(self.log_odds)

    @cached_property
    def _views(self) -> Floats:
        assert self.raw is not None  # or the contexts are known, and nobody asks for sums
        return context_probabilities(self.raw, self.log_odds)

    def sums(self, where: Positions) -> Floats:
        """Return the sums of all P whose means over a dataset are its contexts; `where`: which of these each row is."""
        if len(where) < len(self):
            return np.asarray(self._views[:, where].sum(axis=1))
        return np.asarray(self._views @ np.bincount(where, minlength=len(self)).astype(np.float64))

    def of_rows(self, where: Positions | slice) -> "Evidence":
        """Return the evidence on each row, without that of the parts."""
        return Evidence(self.log_odds[where], self.n_votes[where], None if self.own is None else self.own[where])


NO_EVIDENCE = Evidence(np.empty(0), np.empty(0, dtype=np.intp))
"""The evidence on no rows: what is left are the prior and the threshold."""

# All 2**n sets of votes are tried up to this many cast votes, 4,096 rows.
MAX_EXACT_VOTES = 12


@dataclass(frozen=True)
class Contribution:
    """The contribution of one voter to the log-odds of P(consistent).

    Parameters
    ----------
    voter : str
        The voter's name, that of its column in a table of votes.
    vote : {1, 0, -1} or float
        Of a judge that gives grades or scores its answer, in its own unit; NaN where there is none.
    without : float
        Log-odds of P minus log-odds of P with this vote taken back; 0 where there is no vote.
    shapley : float or None
        The Shapley value: what the vote adds on average over all orders in which the votes could come in. They sum
        to the log-odds of P minus those of a row without votes. None where too many votes were cast.
    """

    voter: str
    vote: float
    without: float
    shapley: float | None


def contributions(
    predict: PredictRows, names: tuple[str, ...], votes: AnyVotes, scales: Sequence[Scale] = ()
) -> list[Contribution]:
    """Return the contribution of each vote of one row.

    Parameters
    ----------
    predict : callable
        From rows of answers (n, n_voters) to P(consistent).
    names : tuple of str
        Of the voters, in the order of the row.
    votes : ndarray, shape (n_voters,)
        One row: 1, 0 and -1 for none.
    scales : sequence of Scale
        Of the voters, where some give grades or scores: `votes` are then places on them.

    Notes
    -----
    A row's Shapley values [1]_ are exact: P is known for every set of votes.

    References
    ----------
    .. [1] L. S. Shapley, "A value for n-person games", 1953. https://doi.org/10.1515/9781400881970-018
    """
    cast = np.flatnonzero(_cast_vote_mask(votes))
    without = _log_odds_added_by_each_vote(predict, votes[np.newaxis])[0].tolist()
    shapley = _shapley_values(predict, votes, cast) if len(cast) <= MAX_EXACT_VOTES else None
    return [
        Contribution(
            voter=name,
            vote=scales[column].number(votes[column]) if scales else int(votes[column]),
            without=without[column],
            shapley=None if shapley is None else shapley.get(column, 0.0),
        )
        for column, name in enumerate(names)
    ]


def _cast_vote_mask(votes: AnyVotes) -> Mask:
    return votes != ABSTAIN if is_votes(votes) else ~np.isnan(votes)


def _missing_vote_value(votes: AnyVotes) -> float:
    return ABSTAIN if is_votes(votes) else np.nan


def _shapley_values(predict: PredictRows, votes: AnyVotes, cast: Positions) -> dict[int, float]:
    """Return the Shapley value of each cast vote: its mean step in log-odds over all orders of the votes."""
    n = len(cast)
    sets = np.arange(2**n)
    inside = (sets[:, None] >> np.arange(n) & 1).astype(bool)
    patterns = np.full((len(sets), len(votes)), _missing_vote_value(votes), dtype=votes.dtype)
    patterns[:, cast] = np.where(inside, votes[cast], patterns[:, cast])
    scores = logit(predict(patterns))
    # The share of all orders in which a given set of `size` votes comes before this one, and the rest behind it.
    weight = np.array([factorial(size) * factorial(n - size - 1) / factorial(n) for size in range(n)])
    sizes = inside.sum(axis=1)
    result = {}
    for position, column in enumerate(cast.tolist()):
        before = sets[~inside[:, position]]
        gain = scores[before | 1 << position] - scores[before]
        result[column] = float(weight[sizes[before]] @ gain)
    return result


def strongest_votes(
    predict: PredictRows, ids: Sequence[str], votes: AnyVotes, scales: Sequence[Scale] = ()
) -> list[str]:
    """Return for each row the two votes that move P most, with the log-odds that each adds; `scales` as above."""
    distinct, where = distinct_rows(votes)
    gains, is_cast = _log_odds_added_by_each_vote(predict, distinct), _cast_vote_mask(distinct)
    texts = []
    for row, gain, mask in zip(distinct, gains, is_cast, strict=True):
        order = [j for j in np.argsort(-np.abs(gain), kind="stable").tolist() if mask[j]][:2]
        answers = {j: scales[j].answer(row[j]) if scales else row[j] for j in order}
        texts.append(", ".join(f"{ids[j]} {answer} ({gain[j]:+.1f})" for j, answer in answers.items()) or "no vote")
    return [texts[at] for at in where]


def _log_odds_added_by_each_vote(predict: PredictRows, votes: AnyVotes) -> Floats:
    """Return the log-odds of P minus those of P with each vote taken back, 0 where there is none; shape of `votes`."""
    whole = logit(predict(votes))
    gains = np.zeros(votes.shape)
    for column in range(votes.shape[1]):
        without = votes.copy()
        without[:, column] = _missing_vote_value(votes)
        gains[:, column] = whole - logit(predict(without))
    return gains
