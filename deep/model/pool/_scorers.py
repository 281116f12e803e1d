"""Fitted members of a pool: each gives one log-odds a row, and is written down as a few arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep._checks import Rows as Positions
from deep._odds import logit
from deep.ensembles import neutral
from deep.features import distinct_patterns
from deep.model.linear import Linear, Rows
from deep.model.pool._standardizer import Standardizer

FEW_ROWS = 256
"""Rows up to which all trees are gone through side by side."""

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
        return np.asarray(self.standardizer(rows.scores[:, self.columns]) @ self.coef + self.intercept)


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
        parts: dict[str, list[Any]] = {name: [] for name in ("feature", "threshold", "left", "right", "p", "roots")}
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

    def mean(self, features: Floats) -> Floats:
        """Return the mean P of all trees for each row of features."""
        single = features.astype(np.float32)
        total = np.zeros(len(single))
        # Of many rows tree by tree, to spare memory; the sum is taken in the same order.
        for roots in [self.roots] if len(single) <= FEW_ROWS else self.roots.reshape(-1, 1):
            for p in self.p[self._leaves(single, roots)]:
                total += p
        return total / len(self.roots)

    def _leaves(self, features: npt.NDArray[np.float32], roots: Positions) -> Positions:
        """Return the leaf of each row in each tree, shape (n_trees, n_examples)."""
        rows = np.arange(len(features))
        node = np.repeat(roots[:, np.newaxis], len(features), axis=1)
        while (self.feature[node] >= 0).any():
            low = features[rows, self.feature[node]] <= self.threshold[node]
            node = np.where(low, self.left[node], self.right[node])
        return node


@dataclass(frozen=True, eq=False)
class VoteForest:
    """A forest on votes; no vote is the mean of what lies on either side.

    Parameters
    ----------
    trees : Trees
    """

    trees: Trees

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,), computed once a distinct pattern."""
        patterns, where = distinct_patterns(rows.votes)
        return logit(neutral(patterns, self.trees.mean), clip=P_CLIP)[where]


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
        return logit(self.trees.mean(self.standardizer(rows.scores)), clip=P_CLIP)


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
