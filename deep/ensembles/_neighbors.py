"""Nearest neighbours among the cells."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Labels, Votes
from deep.base import BaseEnsembler
from deep.ensembles._encoding import Grid, check_above, distinct_cells, signed, weighted_sums

BLOCK = 2**22
"""Distances held at once, so that memory does not grow with the rows asked for."""

TABLE = 2**22
"""Most cells in a table of all patterns of votes by distance: those of 11 voters."""

APART = np.array([[0, 1, 1], [1, 0, 2], [1, 2, 0]])
"""How far two votes of one voter are apart, each in the order no vote, 0, 1."""


class KNeighbors(BaseEnsembler):
    """The share of label 1 among the nearest training rows, ties shared.

    The distance between two rows adds up over voters: 0 where they agree or neither voted, 1 where only one
    voted, 2 where they disagree. Votes leave most rows at equal distances, and scikit-learn's neighbours then
    are those that happen to stand first: shuffling the training rows flips up to a fifth of its answers at 5
    neighbours. It takes no weights either. Hence this one is written out: neighbours are counted by weight,
    and all rows at the distance of the last one share what is left of `n_neighbors`, which is the mean of
    scikit-learn's answer over all orders of the rows. Exact on weighted rows.

    The distance is a sum over voters, so that the weights at every distance of all 3^k patterns of k voters follow from
    those of the training rows one voter at a time: where rows are many and voters few, that takes less than going
    through all pairs of rows, and gives the same.

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
        self.patterns_, counts = distinct_cells(X, y, w)
        # Whole multiples of a power of two, a 2^50th of the sum, add up exactly, and so alike in both ways below.
        unit = 2.0 ** (np.ceil(np.log2(counts.sum())) - 50)
        self.counts_ = np.rint(counts / unit) * unit

    def _proba(self, X: Votes) -> Floats:
        k = X.shape[1]
        if (2 * k + 1) * 3**k <= TABLE and 2 * k * (2 * k + 1) * 3**k < len(X) * len(self.patterns_):
            return self._share_of_ones(_weights_of_all(self.patterns_, self.counts_)[:, _positions(X)])
        step = max(1, BLOCK // len(self.patterns_))
        blocks = (X[i : i + step] for i in range(0, len(X), step))
        return np.concatenate([self._share_of_ones(self._weights(block)) for block in blocks])

    def _weights(self, X: Votes) -> Floats:
        """Return the weight of training rows by distance, row and label."""
        distance, n = _distances(X, self.patterns_), 2 * X.shape[1] + 1
        where = (distance + n * np.arange(len(X))[:, None]).ravel()
        by_label = [np.bincount(where, np.tile(w, len(X)), n * len(X)) for w in self.counts_.T]
        return np.asarray(np.stack(by_label, axis=-1).reshape(len(X), n, 2).swapaxes(0, 1), dtype=np.float64)

    def _share_of_ones(self, weights: Floats) -> Floats:
        """Return the share of label 1 in the nearest `n_neighbors` of each row, outward by distance."""
        total = weights.sum(axis=2)
        before = np.cumsum(total, axis=0) - total
        room = np.clip(self.n_neighbors - before, 0.0, total)
        share = np.divide(room, total, out=np.zeros_like(total), where=total > 0)
        return weighted_sums(weights[:, :, 1].T, share.T) / weighted_sums(room.T, np.ones(len(room)))


def _positions(X: Votes) -> npt.NDArray[np.intp]:
    """Return the position of each row of votes among all patterns, the first voter counting most."""
    return (X.astype(np.intp) + 1) @ 3 ** np.arange(X.shape[1])[::-1]


def _weights_of_all(patterns: Votes, counts: Floats) -> Floats:
    """Return the weight of training rows by distance, pattern and label: of all 3^k patterns of k voters."""
    k = patterns.shape[1]
    weights = np.zeros((2 * k + 1, 3**k, 2))
    weights[0, _positions(patterns)] = counts
    for voter in range(k):
        of_rest = weights.reshape(2 * k + 1, 3**voter, 3, -1)
        found = np.zeros_like(of_rest)
        for (theirs, ours), apart in np.ndenumerate(APART):
            found[apart:, :, ours] += of_rest[: 2 * k + 1 - apart, :, theirs]
        weights = found.reshape(weights.shape)
    return weights


def _distances(A: Votes, B: Votes) -> npt.NDArray[np.int16]:
    """Return the city-block distances between signed votes, shape (len(A), len(B))."""
    a, b = signed(A), signed(B)
    # |a - b| = |a| + |b| - ab - |ab| for each of the nine pairs of -1, 0 and 1, so two products give all.
    cast_a, cast_b = np.abs(a), np.abs(b)
    apart = cast_a.sum(axis=1)[:, None] + cast_b.sum(axis=1) - a @ b.T - cast_a @ cast_b.T
    return np.asarray(apart, dtype=np.int16)
