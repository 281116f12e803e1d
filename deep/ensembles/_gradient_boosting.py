"""Gradient boosting of small trees."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from deep._checks import Floats, Labels, Positions, Votes
from deep.base import StagedEnsembler
from deep.ensembles._encoding import Grid, check_above, check_count, distinct_cells, neutral, signed, splits_of

TIE = 1e-12
"""Gains this close, as a share of the best, are equal."""

FLAT = 1e-150
"""A leaf of less curvature than this adds nothing."""

BLOCK = 2**21
"""Most pairs of a tree and a row that are looked at together."""


@dataclass(eq=False, repr=False)
class GradientBoosting(StagedEnsembler):
    """Gradient boosting of small regression trees on the log loss.

    Friedman's [1]_ with every round fitted to all rows: each tree splits where the squared error of what is left to
    explain falls most, and each leaf takes one Newton step. Exact on weighted rows.

    The trees are those of scikit-learn's ``GradientBoostingClassifier(subsample=1)``, which takes longer to check and
    copy them than to find them: votes have so few splits that all nodes of a level weigh all of theirs at once. Of
    splits that are equally good the first voter's wins.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of rounds.
    learning_rate : float, default=0.1
        Above 0: the share of each tree that is added.
    max_depth : int, default=2
        Splits from root to leaf: how many voters may interact.

    Attributes
    ----------
    prior_ : float
        Log-odds of the weighted share of label 1, where boosting starts.
    voter_, left_ : ndarray of int, shape (n_estimators, n_nodes)
        By tree and node: the voter that is asked, -1 in a leaf, and the node below the threshold, which the one
        above it follows; a leaf is followed by itself.
    threshold_, value_ : ndarray of float, shape (n_estimators, n_nodes)
        Of signed votes; and what a leaf adds to the log-odds.

    References
    ----------
    .. [1] Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29 (2001).
       https://doi.org/10.1214/aos/1013203451

    Examples
    --------
    The first round moves the log-odds, 0 at the start, by a tenth of a Newton step of 2: 1 / (1 + exp(-0.2)).

    >>> model = GradientBoosting(n_estimators=10).fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0])
    >>> model.staged_predict_proba([[1, 0]], [1, 10]).round(2).tolist()
    [[0.55], [0.82]]
    """

    n_estimators: int = 50
    _: KW_ONLY
    learning_rate: float = 0.1
    max_depth: int = 2

    stage_param: ClassVar[str] = "n_estimators"
    param_grid: ClassVar[Grid] = {"max_depth": (1, 3), "n_estimators": (25, 50, 100)}

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_count(self.n_estimators, "n_estimators")
        check_count(self.max_depth, "max_depth")
        check_above(self.learning_rate, 0, "learning_rate")
        patterns, counts = distinct_cells(X, y, w)
        total, ones = counts.sum(axis=1), counts[:, 1]
        self.prior_ = float(logit(ones.sum() / total.sum()))
        grower = _Grower(signed(patterns), total, self.max_depth)
        shape = self.n_estimators, min(2 ** (self.max_depth + 1), 2 * len(patterns)) - 1
        self.voter_, self.left_ = np.full(shape, -1), np.tile(np.arange(shape[1]), (shape[0], 1))
        self.threshold_, self.value_ = np.zeros(shape), np.zeros(shape)
        log_odds = np.full(len(patterns), self.prior_)
        with np.errstate(invalid="ignore"):  # 0 / 0 on a side without rows
            for voter, threshold, left, value in zip(
                self.voter_, self.threshold_, self.left_, self.value_, strict=True
            ):
                p = expit(log_odds)
                residual = ones - total * p
                leaf = grower.grow(residual, _GrowingTree(voter, threshold, left))
                value[:] = self.learning_rate * _newton_step(leaf, residual, total * p * (1 - p), shape[1])
                log_odds += value[leaf]

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(self._staged_proba(X, [self.n_estimators])[0])

    def _staged_proba(self, X: Votes, stages: Sequence[int]) -> Floats:
        return neutral(X, lambda votes: self._after(votes, stages))

    def _after(self, votes: Floats, stages: Sequence[int]) -> Floats:
        """Return P after each number of rounds, by row of signed votes."""
        n_trees = max(stages)
        step = max(1, BLOCK // n_trees)
        parts = [self._sums(votes[i : i + step], n_trees)[np.array(stages) - 1] for i in range(0, len(votes), step)]
        return np.asarray(expit(np.concatenate(parts, axis=1)))

    def _sums(self, votes: Floats, n_trees: int) -> Floats:
        """Return the log-odds after each round, shape (n_trees, n_rows)."""
        tree, row = np.arange(n_trees)[:, None], np.arange(len(votes))
        node = np.zeros((n_trees, len(votes)), dtype=np.intp)
        for _ in range(self.max_depth):
            voter = self.voter_[tree, node]
            node = self.left_[tree, node] + ((voter >= 0) & (votes[row, voter] > self.threshold_[tree, node]))
        values = self.value_[tree, node]
        values[0] += self.prior_
        return np.asarray(np.cumsum(values, axis=0))


@dataclass
class _GrowingTree:
    """One tree as arrays, an entry a node, that it fills from the root on."""

    voter: Positions
    threshold: Floats
    left: Positions
    size: int = 1

    def split(self, nodes: Positions, voter: Positions, threshold: Floats) -> Positions:
        """Give leaves two nodes each, and return the ones below the thresholds."""
        left = self.size + 2 * np.arange(len(nodes))
        self.voter[nodes], self.threshold[nodes], self.left[nodes] = voter, threshold, left
        self.size += 2 * len(nodes)
        return left


def _newton_step(leaf: Positions, residual: Floats, curvature: Floats, size: int) -> Floats:
    """Return the Newton step of each leaf; 0 for a node that is none."""
    slope, bend = (np.bincount(leaf, values, size) for values in (residual, curvature))
    return np.divide(slope, bend, out=np.zeros(size), where=bend > FLAT)


class _Grower:
    """Grows trees on the same patterns, of which all splits of all nodes of a level are weighed at once."""

    def __init__(self, votes: Floats, total: Floats, max_depth: int) -> None:
        self.votes, self.total, self.max_depth = votes, total, max_depth
        splits = splits_of(votes)
        self.voter = np.array([voter for voter, _ in splits], dtype=np.intp)
        self.threshold = np.array([threshold for _, threshold in splits])
        self.above = votes[:, self.voter] > self.threshold
        self.sides = np.hstack([~self.above, self.above]).astype(np.float64)
        self.apart = len(np.unique(self.voter)) < len(splits)  # a voter with two thresholds, hence three votes

    def grow(self, residual: Floats, tree: _GrowingTree) -> Positions:
        """Fill in the tree, and return the leaf of each pattern."""
        node = np.zeros(len(self.total), dtype=np.intp)
        nodes = np.zeros(1, dtype=np.intp)
        summed = np.array([self.total, residual])
        for _ in range(self.max_depth if len(self.voter) else 0):
            inside = node == nodes[:, None]
            best, gain = self._best(inside[:, None] * summed)
            if (gain < 0).any():  # nodes of one pattern
                nodes, inside, best = nodes[gain >= 0], inside[gain >= 0], best[gain >= 0]
            if not len(nodes):
                break
            left = tree.split(nodes, self.voter[best], self._thresholds(inside, best))
            which, pattern = inside.nonzero()
            node[pattern] = left[which] + self.above[pattern, best[which]]
            nodes = np.concatenate([left, left + 1])
        return node

    def _best(self, summed: Floats) -> tuple[Positions, Floats]:
        """Return the best split of each node, and its gain; below 0 where there is none."""
        weight, slope = (summed @ self.sides).reshape(len(summed), 2, 2, -1).swapaxes(0, 1)
        gains = (slope * slope / weight).sum(axis=1)
        gains[~(gains >= 0)] = -1.0
        best = gains.max(axis=1)
        return (gains >= (best - TIE * np.abs(best))[:, None]).argmax(axis=1), best

    def _thresholds(self, inside: npt.NDArray[np.bool_], best: Positions) -> Floats:
        """Return thresholds halfway between the votes that a node holds on either side."""
        if not self.apart:
            return self.threshold[best]
        votes, above = self.votes.T[self.voter[best]], self.above.T[best]
        low = np.where(inside & ~above, votes, -1.0).max(axis=1)
        high = np.where(inside & above, votes, 1.0).min(axis=1)
        return np.asarray((low + high) / 2)
