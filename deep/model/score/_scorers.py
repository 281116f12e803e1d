"""Fitted members of a stack: each gives one log-odds a row, and is written down as a few arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Positions, weigh
from deep._util.odds import logit
from deep.ensembles import neutral
from deep.model.linear import LabeledRows, Linear, Rows


def strongest(train: LabeledRows, n: int) -> list[int]:
    """Return the `n` judges whose mean area under the ROC curve over training datasets is furthest from a half."""
    if train not in _AREAS:
        _AREAS[train] = _areas(train)
    apart = np.abs(_AREAS[train] - len(train.present()) / 2)
    return [int(j) for j in np.argsort(-apart, kind="stable")[:n]]


# Areas are remembered while their rows are in use: two members ask for the same.
_AREAS: WeakKeyDictionary[LabeledRows, Floats] = WeakKeyDictionary()


def _areas(train: LabeledRows) -> Floats:
    """Return the sum over training datasets of each judge's area under the ROC curve, shape (n_voters,)."""
    areas = np.zeros(train.evidence.shape[1])
    for group in train.present():
        rows = train.only(group)
        ones, zeros = rows.of_classes()
        areas += [_area(column, ones / ones.sum(), zeros / zeros.sum()) for column in rows.evidence.T]
    return areas


def _area(column: Floats, ones: Floats, zeros: Floats) -> float:
    """Return P(evidence of a consistent row > that of an inconsistent one), ties and no answer counting half."""
    answered = ~np.isnan(column)
    # No answer stands in the middle of a judge's answers, where it speaks for neither class.
    value = np.where(answered, column, np.nanmedian(column) if answered.any() else 0.0)
    _, where = np.unique(value, return_inverse=True)
    ones, zeros = weigh(where, ones), weigh(where, zeros)
    return float(ones @ (np.cumsum(zeros) - zeros / 2))


# Rows up to which all trees are walked side by side.
FEW_ROWS = 256

# Rows of one call from which scikit-learn is loaded: numpy takes as long for a few of them as loading does.
MANY_ROWS = 1 << 13

# Many rows are walked so many at a time: their features and leaves stay in the processor's cache.
ROWS_AT_ONCE = 1 << 14

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
        result = [Tree(1, np.ones(1, dtype=np.intp), 1) for _ in self.roots]
        for tree, own, p in zip(result, *(np.split(values, self.roots[1:]) for values in (nodes, self.p)), strict=True):
            state = {"max_depth": 0, "node_count": len(own), "nodes": own, "values": p.reshape(-1, 1, 1)}
            # scikit-learn has no public way to make a tree of arrays; this state is what it pickles itself.
            tree.__setstate__(state)
        return result

    def _leaves(self, features: Singles, roots: Positions) -> Positions:
        """Return the leaf of each row in each tree, shape (n_trees, n_examples)."""
        rows = np.arange(len(features))
        node = np.repeat(roots[:, np.newaxis], len(features), axis=1)
        while (self.feature[node] >= 0).any():
            low = features[rows, self.feature[node]] <= self.threshold[node]
            node = np.where(low, self.left[node], self.right[node])
        return node


# A member's P is held within [P_CLIP, 1 - P_CLIP] before it becomes log-odds: a pure leaf is no proof.
P_CLIP = 1e-3

LIMIT = float(logit(1 - P_CLIP))


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
    """

    linear: Linear

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,)."""
        return np.clip(self.linear.log_odds(rows.features), -LIMIT, LIMIT)


@dataclass(frozen=True, eq=False)
class VoteForest:
    """A forest on votes or evidence; no vote is the mean of the values on either side, no evidence is none.

    Parameters
    ----------
    trees : Trees
    """

    trees: Trees

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,); it is slow, and so called with distinct rows of votes."""
        if rows.evidence.shape[1]:
            return logit(self.trees.mean(np.nan_to_num(rows.evidence)), clip=P_CLIP)
        return logit(neutral(rows.votes, self.trees.mean), clip=P_CLIP)


def leading_column(scorer: VoteSum) -> int:
    """Return the column that counts most in a sum: the judge, where the sum is of one.

    Examples
    --------
    >>> leading_column(VoteSum(Linear.signed(0.0, np.array([0.1, 2.0, 0.1]))))
    1
    """
    return int(np.argmax(np.abs(scorer.linear.ones - scorer.linear.zeros)))
