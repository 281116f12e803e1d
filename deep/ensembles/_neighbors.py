"""Nearest neighbours among the cells."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Labels, Votes
from deep.base import BaseEnsembler
from deep.ensembles._encoding import Grid, check_above, merge_repeats, signed

BLOCK = 2**22
"""Distances held at once, so that memory does not grow with the rows asked for."""


class KNeighbors(BaseEnsembler):
    """The share of label 1 among the nearest training rows, ties shared.

    The distance between two rows adds up over voters: 0 where they agree or neither voted, 1 where only one
    voted, 2 where they disagree. Votes leave most rows at equal distances, and scikit-learn's neighbours then
    are those that happen to stand first: shuffling the training rows flips up to a fifth of its answers at 5
    neighbours. It takes no weights either. Hence this one is written out: neighbours are counted by weight,
    and all rows at the distance of the last one share what is left of `n_neighbors`, which is the mean of
    scikit-learn's answer over all orders of the rows. Exact on weighted rows.

    Parameters
    ----------
    n_neighbors : float, default=100
        Above 0: weight, that is number of rows, to average over. Where the training rows weigh less, all are
        averaged.

    Attributes
    ----------
    patterns_ : ndarray of int8, shape (n_patterns, n_voters)
        The distinct training rows.
    counts_ : ndarray of shape (n_patterns, 2)
        Their weights by label.

    References
    ----------
    .. [1] Cover and Hart, "Nearest neighbor pattern classification", IEEE Transactions on Information Theory 13
       (1967). https://doi.org/10.1109/TIT.1967.1053964

    Examples
    --------
    The one row equal to [1, 1] has label 1; the two at distance 2 have labels 1 and 0 and share the other two
    places.

    >>> model = KNeighbors(n_neighbors=2).fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0])
    >>> model.predict_proba([[1, 1]])[:, 1].tolist()
    [0.75]
    """

    param_grid: ClassVar[Grid] = {"n_neighbors": (25, 100, 400, 1600)}

    def __init__(self, n_neighbors: float = 100) -> None:
        self.n_neighbors = n_neighbors

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_above(self.n_neighbors, 0, "n_neighbors")
        patterns, labels, weights = merge_repeats(X, y, w)
        new = np.r_[True, (patterns[1:] != patterns[:-1]).any(axis=1)]
        self.patterns_ = patterns[new]
        self.counts_ = np.zeros((len(self.patterns_), 2))
        self.counts_[np.cumsum(new) - 1, labels] = weights

    def _proba(self, X: Votes) -> Floats:
        step = max(1, BLOCK // len(self.patterns_))
        return np.concatenate([self._share_of_ones(X[i : i + step]) for i in range(0, len(X), step)])

    def _share_of_ones(self, X: Votes) -> Floats:
        """Return the share of label 1 in the nearest `n_neighbors` of each row, outward by distance."""
        distance = _distances(X, self.patterns_)
        taken, ones = np.zeros(len(X)), np.zeros(len(X))
        for radius in range(2 * X.shape[1] + 1):
            found = (distance == radius) @ self.counts_
            share = _fraction_taken(found.sum(axis=1), self.n_neighbors - taken)
            taken += share * found.sum(axis=1)
            ones += share * found[:, 1]
            if (taken >= self.n_neighbors).all():
                break
        return ones / taken


def _fraction_taken(weight: Floats, places: Floats) -> Floats:
    """Return the fraction of `weight` that fits into `places`."""
    return np.clip(np.divide(places, weight, out=np.zeros_like(places), where=weight > 0), 0.0, 1.0)


def _distances(A: Votes, B: Votes) -> npt.NDArray[np.int16]:
    """Return the city-block distances between signed votes, shape (len(A), len(B))."""
    a, b = signed(A), signed(B)
    # |a - b| = |a| + |b| - ab - |ab| for each of the nine pairs of -1, 0 and 1, so two products give all.
    cast_a, cast_b = np.abs(a), np.abs(b)
    apart = cast_a.sum(axis=1)[:, None] + cast_b.sum(axis=1) - a @ b.T - cast_a @ cast_b.T
    return np.asarray(apart, dtype=np.int16)
