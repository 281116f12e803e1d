"""Encodings of votes as numbers, repeated rows merged into one, and the checks of ensemblers' parameters."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Labels, Votes
from deep.exceptions import InputError
from deep.records import ABSTAIN

Grid = Mapping[str, Sequence[float]]
"""The values that a grid search tries, by parameter."""

BETWEEN = 0.25
"""The place of no vote beside 0: between 0, where votes 0 and 1 are split, and 0.5, where no vote and 1 are."""


def signed(X: Votes, abstain: float = 0.0) -> Floats:
    """Return one column a voter: +1 for vote 1, -1 for vote 0, `abstain` for no vote.

    Zero, the default, makes no vote neutral: it adds nothing to a linear score, and turning all votes round
    turns the sign of the whole matrix.

    Parameters
    ----------
    X : ndarray of int8, shape (n_examples, n_voters)
        Votes: 1, 0 or -1.
    abstain : float
        The number that stands for no vote, in (-1, 1).

    Returns
    -------
    ndarray of float64, shape (n_examples, n_voters)

    Examples
    --------
    >>> signed(np.array([[1, 0, -1]], dtype=np.int8)).tolist()
    [[1.0, -1.0, 0.0]]
    """
    return np.where(X == ABSTAIN, abstain, 2.0 * X - 1.0)


def tokens(X: Votes) -> Floats:
    """Return two columns a voter, as counts: all "voted 1", then all "voted 0"; no vote is no token.

    Parameters
    ----------
    X : ndarray of int8, shape (n_examples, n_voters)
        Votes: 1, 0 or -1.

    Returns
    -------
    ndarray of float64, shape (n_examples, 2 * n_voters)

    Examples
    --------
    >>> tokens(np.array([[1, 0, -1]], dtype=np.int8)).tolist()
    [[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]]
    """
    return np.hstack([X == 1, X == 0]).astype(np.float64)


def weighted_sums(values: npt.NDArray[np.generic], weights: Floats) -> Floats:
    """Return ``values @ weights``, each row's sum rounded alike whatever rows it stands among.

    A matrix product adds up the terms of a row in an order that depends on how many rows there are and on the
    processor, so that a row scored alone would differ in the last digit from the same row in a table.

    Parameters
    ----------
    values : ndarray, shape (n_examples, n_terms)
        Each is multiplied by its weight; each row of products is summed.
    weights : ndarray of float64, shape (n_terms,) or (n_examples, n_terms)
        One weight a term, or one a value.

    Returns
    -------
    ndarray of float64, shape (n_examples,)

    Examples
    --------
    >>> weighted_sums(np.array([[1.0, -1.0], [0.0, 1.0]]), np.array([0.5, 0.25])).tolist()
    [0.25, 0.25]
    """
    return np.asarray(np.multiply(values, weights, order="C").sum(axis=1))


def merge_repeats(X: Votes, y: Labels, w: Floats) -> tuple[Votes, Labels, Floats]:
    """Merge rows of equal votes and label into one that carries their weights' sum, ordered by votes, then label.

    A learner that breaks ties, or draws, by position thereby gives the same for weight 3 as for three rows,
    and for rows in any order, to the last bit; one whose cost grows with the square of the rows sees cells.

    Parameters
    ----------
    X : ndarray of int8, shape (n_examples, n_voters)
        Votes: 1, 0 or -1.
    y : ndarray of int8, shape (n_examples,)
        Labels: 1 or 0.
    w : ndarray of float64, shape (n_examples,)
        How often each row counts.

    Returns
    -------
    tuple of ndarray
        Votes, labels and weights of the distinct rows.

    Examples
    --------
    >>> X, y = np.array([[1], [0], [1], [0]], dtype=np.int8), np.array([0, 0, 0, 1], dtype=np.int8)
    >>> [part.tolist() for part in merge_repeats(X, y, np.array([1.0, 1.0, 0.5, 1.0]))]
    [[[0], [0], [1]], [0, 1, 0], [1.0, 1.0, 1.5]]
    """
    rows = np.column_stack([X, y])
    # The weight is the last key, so that even the rounding of a sum does not depend on the order of rows.
    order = np.lexsort((w, *rows.T[::-1]))
    rows = rows[order]
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)])
    return rows[starts, :-1], rows[starts, -1], np.add.reduceat(w[order], starts)


def distinct_cells(X: Votes, y: Labels, w: Floats) -> tuple[Votes, Floats]:
    """Return the distinct rows of votes, sorted, and their weights by label, shape (n_patterns, 2).

    Examples
    --------
    >>> X, y = np.array([[1], [0], [1]], dtype=np.int8), np.array([0, 1, 1], dtype=np.int8)
    >>> [part.tolist() for part in distinct_cells(X, y, np.array([1.0, 2.0, 3.0]))]
    [[[0], [1]], [[0.0, 2.0], [1.0, 3.0]]]
    """
    cells, labels, weights = merge_repeats(X, y, w)
    # Merged rows are sorted by votes, so that the two labels of a pattern stand side by side.
    new = np.r_[True, (cells[1:] != cells[:-1]).any(axis=1)]
    counts = np.zeros((int(new.sum()), 2))
    counts[np.cumsum(new) - 1, labels] = weights
    return cells[new], counts


def splits_of(votes: Floats) -> list[tuple[int, float]]:
    """Return every voter with every threshold between two of its signed votes.

    Examples
    --------
    >>> splits_of(np.array([[1.0, 1.0], [0.0, 1.0], [-1.0, -1.0]]))
    [(0, -0.5), (0, 0.5), (1, 0.0)]
    """
    # Half way between values, where scikit-learn's trees split.
    values = [np.unique(column) for column in votes.T]
    return [(voter, float(middle)) for voter, levels in enumerate(values) for middle in (levels[1:] + levels[:-1]) / 2]


def neutral(X: Votes, proba: Callable[[Floats], Floats]) -> Floats:
    """Return `proba` of the signed votes, averaged over abstains taken up and taken down.

    A tree must send "no vote" to one side of a split that it learned from votes of 0 and 1 only, and either side
    would read something into silence. Splits that were learned with abstains present treat both alike.
    """
    # A tree puts "no vote" on one side of each split. The mean over both sides is the same with all votes turned round.
    result, open_rows = proba(signed(X, BETWEEN)), np.flatnonzero((X == ABSTAIN).any(axis=1))
    if len(open_rows):
        result[..., open_rows] = (result[..., open_rows] + proba(signed(X[open_rows], -BETWEEN))) / 2
    return result


def check_above(value: float, low: float, name: str) -> float:
    """Return `value` if it is a finite number above `low`, else raise."""
    if not low < value < np.inf:
        raise InputError(f"`{name}` must be a finite number above {low:g}. Got {value!r}.")
    return value


def check_count(value: int, name: str) -> int:
    """Return `value` if it is a whole number of at least 1, else raise."""
    if not isinstance(value, Integral) or value < 1:
        raise InputError(f"`{name}` must be a whole number of at least 1. Got {value!r}.")
    return value
