"""Fitted members of a stack: each gives one log-odds a row, and is written down as a few arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol, Self
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Positions, weigh
from deep._util.odds import logit
from deep.ensembles import neutral
from deep.model.linear import LabeledRows, Linear, Rows

SHARE_CLIP = 0.01
"""A score or its rank is held within [SHARE_CLIP, 1 - SHARE_CLIP]: an extreme score is no more than extreme."""

LEAST_SCALE = 1e-9
"""A scorer whose log-odds vary less does not vary: what is left is rounding, and a score divided by it blows up."""

MAX_KNOTS = 500

Knots = tuple[Floats, Floats]
"""Scores, ascending, and the shares that they stand for."""


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Maps each column of scores to log-odds, centred and scaled; no score gives 0.

    Scores that all lie in [0, 1] are taken for probabilities. Others, in whatever unit, become their rank among
    the training rows.

    Parameters
    ----------
    knots : list of (scores, ranks)
        One a column, both ascending.
    centre, scale : ndarray of shape (n_scorers,)
    """

    knots: list[Knots]
    centre: Floats
    scale: Floats

    def __call__(self, scores: Floats) -> Floats:
        """Return standardised scores, shape (n_examples, n_scorers)."""
        return self.of_log_odds(log_odds_of(scores, range(len(self.knots)), self.knots))

    def of_log_odds(self, values: Floats) -> Floats:
        """Return standardised scores from the log-odds of :func:`log_odds_of`."""
        found = values - self.centre
        found /= self.scale
        missing = np.isnan(found)
        if missing.any():
            found[missing] = 0.0
        return np.asarray(found)


def fit_standardizer(scores: Floats, weights: Floats) -> Standardizer:
    """Learn the scale of each column of scores.

    Parameters
    ----------
    scores : ndarray of float, shape (n_examples, n_scorers)
        In any unit; NaN where there is none.
    weights : ndarray of float, shape (n_examples,)

    Examples
    --------
    >>> ranks = fit_standardizer(np.array([[1.0], [2.0], [9.0]]), np.ones(3))
    >>> ranks(np.array([[2.0], [9.5], [np.nan]])).round(2).ravel().tolist()
    [-0.0, 1.22, 0.0]
    """
    knots = [_knots(column, weights) for column in scores.T]
    values = log_odds_of(scores, range(len(knots)), knots)
    known = ~np.isnan(values)
    total = np.maximum((known * weights[:, None]).sum(axis=0), 1e-12)
    centre = (np.where(known, values, 0.0) * weights[:, None]).sum(axis=0) / total
    apart = np.where(known, values - centre, 0.0)
    scale = np.sqrt((apart**2 * weights[:, None]).sum(axis=0) / total)
    return Standardizer(knots, centre, np.where(scale > LEAST_SCALE, scale, 1.0))


def log_odds_of(scores: Floats, columns: Sequence[int], knots: Sequence[Knots]) -> Floats:
    """Return the log-odds of the shares that scores of some columns stand for; NaN where there is no score."""
    shares = [
        scores[:, j] if _are_shares(pair) else np.interp(scores[:, j], *pair)
        for j, pair in zip(columns, knots, strict=True)
    ]
    return logit(np.array(shares).T, clip=SHARE_CLIP)


def _are_shares(knots: Knots) -> bool:
    """Say whether scores stand for themselves: beyond [0, 1] they are held all the same."""
    return all(len(values) == 2 and values[0] == 0 and values[1] == 1 for values in knots)


def _knots(column: Floats, weights: Floats) -> Knots:
    """Return scores and the shares they stand for: themselves where they are shares, else their ranks."""
    known = ~np.isnan(column)
    if not known.any() or (column[known].min() >= 0 and column[known].max() <= 1):
        return np.array([0.0, 1.0]), np.array([0.0, 1.0])
    values, where = np.unique(column[known], return_inverse=True)
    weight = weigh(where, weights[known])
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    if len(values) > MAX_KNOTS:
        kept = np.unique(np.searchsorted(middle, np.linspace(middle[0], middle[-1], MAX_KNOTS)))
        values, middle = values[kept], middle[kept]
    return values, middle


def strongest(train: LabeledRows, n: int) -> list[int]:
    """Return the `n` scorers whose mean area under the ROC curve over training datasets is furthest from a half."""
    if train not in _AREAS:
        _AREAS[train] = _areas(train)
    apart = np.abs(_AREAS[train] - len(train.present()) / 2)
    return [int(j) for j in np.argsort(-apart, kind="stable")[:n]]


_AREAS: WeakKeyDictionary[LabeledRows, Floats] = WeakKeyDictionary()
"""Of rows that are still in use: two members ask for the same."""


def _areas(train: LabeledRows) -> Floats:
    """Return the sum over training datasets of each scorer's area under the ROC curve, shape (n_scorers,)."""
    areas = np.zeros(train.scores.shape[1])
    for group in train.present():
        rows, ones, zeros = train.by_class(group)
        areas += [_area(column, ones, zeros) for column in rows.scores.T]
    return areas


def _area(column: Floats, ones: Floats, zeros: Floats) -> float:
    """Return P(score of a consistent row > that of an inconsistent one), ties and no score counting half."""
    known = ~np.isnan(column)
    value = np.where(known, column, np.nanmedian(column) if known.any() else 0.0)
    _, where = np.unique(value, return_inverse=True)
    ones, zeros = weigh(where, ones), weigh(where, zeros)
    return float(ones @ (np.cumsum(zeros) - zeros / 2))


FEW_ROWS = 256
"""Rows up to which all trees are walked side by side."""

MANY_ROWS = 1 << 13
"""Rows of one call from which scikit-learn is loaded: numpy takes as long for a few of them as loading does."""

ROWS_AT_ONCE = 1 << 14
"""Of many rows: their features and leaves stay in the processor's cache."""

Singles = npt.NDArray[np.float32]


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

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name, as a file and another process take them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def mean(self, features: npt.NDArray[np.floating[Any]]) -> Floats:
        """Return the mean P of all trees for each row of features."""
        single = features.astype(np.float32, order="C", copy=False)
        if len(single) >= MANY_ROWS:
            parts = [single[start : start + ROWS_AT_ONCE] for start in range(0, len(single), ROWS_AT_ONCE)]
            return np.concatenate([self._sum_compiled(part) for part in parts]) / len(self.roots)
        total = np.zeros(len(single))
        # Of many rows two trees at a time, to spare memory; the sum is taken in the same order everywhere.
        step = len(self.roots) if len(single) <= FEW_ROWS else 2
        for start in range(0, len(self.roots), step):
            p = self.p[self._leaves(single, self.roots[start : start + step])]
            for pair in range(0, len(p), 2):
                total += p[pair : pair + 2].sum(axis=0)
        return total / len(self.roots)

    def _sum_compiled(self, features: Singles) -> Floats:
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
        found = [Tree(1, np.ones(1, dtype=np.intp), 1) for _ in self.roots]
        for tree, own, p in zip(found, *(np.split(values, self.roots[1:]) for values in (nodes, self.p)), strict=True):
            state = {"max_depth": 0, "node_count": len(own), "nodes": own, "values": p.reshape(-1, 1, 1)}
            tree.__setstate__(state)
        return found

    def _leaves(self, features: Singles, roots: Positions) -> Positions:
        """Return the leaf of each row in each tree, shape (n_trees, n_examples)."""
        rows = np.arange(len(features))
        node = np.repeat(roots[:, np.newaxis], len(features), axis=1)
        while (self.feature[node] >= 0).any():
            low = features[rows, self.feature[node]] <= self.threshold[node]
            node = np.where(low, self.left[node], self.right[node])
        return node


P_CLIP = 1e-3
"""A member's P is held within [P_CLIP, 1 - P_CLIP] before it becomes log-odds: a pure leaf is no proof."""

LIMIT = float(logit(1 - P_CLIP))


class Scorer(Protocol):
    """From the rows of one dataset to one log-odds each."""

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,)."""


@dataclass(frozen=True, eq=False)
class VoteSum:
    """A sum over votes.

    Parameters
    ----------
    linear : Linear
    """

    linear: Linear

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,)."""
        return np.clip(self.linear.log_odds(rows.votes), -LIMIT, LIMIT)


@dataclass(frozen=True, eq=False)
class ScoreSum:
    """A sum over standardised scores.

    Parameters
    ----------
    columns : tuple of int
        Which scorers.
    standardizer : Standardizer
        Of these columns.
    intercept : float
    coef : ndarray of float, shape (n_columns,)
    """

    columns: tuple[int, ...]
    standardizer: Standardizer
    intercept: float
    coef: Floats

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,)."""
        return self.of_standardised(self.standardizer(rows.scores[:, self.columns]))

    def of_standardised(self, values: Floats) -> Floats:
        """Return log-odds of standardised scores of the columns."""
        found = np.zeros(len(values))
        for column, weight in zip(values.T, self.coef, strict=True):  # a matrix product rounds a row by those beside it
            found += column * weight
        return found + self.intercept


@dataclass(frozen=True, eq=False)
class VoteForest:
    """A forest on votes; no vote is the mean of the values on either side.

    Parameters
    ----------
    trees : Trees
    """

    trees: Trees

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,); it is slow, and so called with distinct rows."""
        return logit(neutral(rows.votes, self.trees.mean), clip=P_CLIP)


@dataclass(frozen=True, eq=False)
class ScoreForest:
    """A forest on standardised scores.

    Parameters
    ----------
    standardizer : Standardizer
    trees : Trees
    """

    standardizer: Standardizer
    trees: Trees

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,)."""
        return self.of_standardised(self.standardizer(rows.scores))

    def of_standardised(self, values: Floats) -> Floats:
        """Return log-odds of standardised scores."""
        return logit(self.trees.mean(values), clip=P_CLIP)


def leading_column(scorer: VoteSum | ScoreSum) -> int:
    """Return the column that counts most in a sum: the judge, where the sum is of one.

    Examples
    --------
    >>> leading_column(VoteSum(Linear.signed(0.0, np.array([0.1, 2.0, 0.1]))))
    1
    """
    if isinstance(scorer, VoteSum):
        return int(np.argmax(np.abs(scorer.linear.ones - scorer.linear.zeros)))
    return scorer.columns[int(np.argmax(np.abs(scorer.coef)))]


SoftScorer = ScoreForest | ScoreSum


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """Scorers, and the columns that any of them looks at.

    Parameters
    ----------
    scorers : tuple of ScoreSum or ScoreForest
    columns : ndarray of int, shape (n_views,)
        The column of scores of each view; one that is read by two scales has two.
    knots : list of (scores, ranks), length n_views
        What the scores of a view stand for.
    views : tuple of ndarray of int
        By scorer: the views that it looks at, in its order.
    """

    scorers: tuple[SoftScorer, ...]
    columns: Positions
    knots: list[Knots]
    views: tuple[Positions, ...]

    @classmethod
    def of(cls, scorers: Sequence[SoftScorer]) -> Self:
        """Return the views that scorers share."""
        place: dict[tuple[int, bytes, bytes], int] = {}
        knots: list[Knots] = []
        views = []
        for scorer in scorers:
            looked_at = scorer.standardizer.knots
            columns = scorer.columns if isinstance(scorer, ScoreSum) else range(len(looked_at))
            keys = [(j, at.tobytes(), to.tobytes()) for j, (at, to) in zip(columns, looked_at, strict=True)]
            for key, pair in zip(keys, looked_at, strict=True):
                if key not in place:
                    place[key] = len(place)
                    knots.append(pair)
            views.append(np.array([place[key] for key in keys], dtype=np.intp))
        return cls(tuple(scorers), np.array([key[0] for key in place], dtype=np.intp), knots, tuple(views))

    def __call__(self, scores: Floats) -> Floats:
        """Return the log-odds of each scorer, shape (n_scorers, n_examples)."""
        found = np.empty((len(self.scorers), len(scores)))
        for start in range(0, len(scores), ROWS_AT_ONCE):
            at = slice(start, start + ROWS_AT_ONCE)
            seen = log_odds_of(scores[at], self.columns.tolist(), self.knots)
            for row, scorer, views in zip(found, self.scorers, self.views, strict=True):
                row[at] = scorer.of_standardised(scorer.standardizer.of_log_odds(seen[:, views]))
        return found
