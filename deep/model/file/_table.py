"""A chain over few voters as a table: a probability for every pattern of votes, found by its code."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Votes, check_votes
from deep.exceptions import InputError

MAX_TABLE_VOTERS = 10
"""Up to here the whole table is kept: 3**10 is 59,049 probabilities."""

ROWS_AT_ONCE = 1 << 14
"""Rows coded together: their codes stay in the processor's cache between two columns."""

_SYMBOLS = "-01"


@dataclass(frozen=True, eq=False)
class Table:
    """P(consistent) for every pattern of k votes.

    Parameters
    ----------
    p : ndarray of float, shape (3**k,)
        The entry of votes v_1 .. v_k stands at sum over j of (v_j + 1) * 3**(k - j): no vote counts 0, a vote of
        0 counts 1, a vote of 1 counts 2, and the first voter weighs most.
    uncalibrated : ndarray of float, shape (3**k,)
        The ensembler's own probabilities.
    """

    p: Floats
    uncalibrated: Floats


def pattern_grid(n_voters: int) -> Votes:
    """Return all patterns of `n_voters` votes in the order of a table, shape (3**n_voters, n_voters).

    Examples
    --------
    >>> pattern_grid(2)[:4].tolist()
    [[-1, -1], [-1, 0], [-1, 1], [0, -1]]
    """
    if not 1 <= n_voters <= MAX_TABLE_VOTERS:
        raise InputError(f"`n_voters` must be between 1 and {MAX_TABLE_VOTERS}. Got {n_voters!r}.")
    codes = np.arange(3**n_voters)[:, None]
    return (codes // 3 ** np.arange(n_voters - 1, -1, -1) % 3 - 1).astype(np.int8)


def look_up(values: Floats, votes: npt.ArrayLike) -> Floats:
    """Return the entry of a table for each row of votes.

    Parameters
    ----------
    values : ndarray of float, shape (3**n_voters,)
        In the order of `pattern_grid`.
    votes : array-like of shape (n_examples, n_voters)
        1 consistent, 0 inconsistent, -1 no vote. Fastest as int8.

    Returns
    -------
    ndarray of float, shape (n_examples,)

    Raises
    ------
    InputError
        A vote is out of range.
    """
    return np.asarray(values.take(pattern_codes(votes), mode="clip"))


def pattern_codes(votes: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """Return the position of each row of votes in `pattern_grid`; parameters as in `look_up`."""
    matrix = votes if isinstance(votes, np.ndarray) and votes.dtype == np.int8 and votes.ndim == 2 else None
    if matrix is None or not matrix.size:
        matrix = check_votes(votes, name="votes")
    offset = (3 ** matrix.shape[1] - 1) // 2
    codes = np.zeros(len(matrix), dtype=np.int32)
    for start in range(0, len(matrix), ROWS_AT_ONCE):
        block = matrix[start : start + ROWS_AT_ONCE]
        # One comparison tells: -1, 0, 1 are 0, 1, 2 after adding 1, and all else wraps round to more.
        if ((block.view(np.uint8) + np.uint8(1)) > 2).any():
            check_votes(matrix, name="votes")
        code = codes[start : start + ROWS_AT_ONCE]
        for column in block.T:
            code *= 3
            code += column
        code += offset
    return codes


def pattern_text(patterns: Votes) -> list[str]:
    """Return each pattern as text, one character a voter: 1, 0, or - for no vote.

    Examples
    --------
    >>> pattern_text(np.array([[1, 0, -1]], dtype=np.int8))
    ['10-']
    """
    return ["".join(_SYMBOLS[vote + 1] for vote in row) for row in patterns.tolist()]


def patterns_from_text(texts: list[str], n_voters: int) -> Votes:
    """Return patterns from their texts, shape (n_patterns, n_voters)."""
    wrong = next((text for text in texts if len(text) != n_voters or set(text) - set(_SYMBOLS)), None)
    if wrong is not None:
        raise InputError(f"`patterns` must have {n_voters} characters of - 0 1 each. Got {wrong!r}.")
    rows = [[_SYMBOLS.index(symbol) - 1 for symbol in text] for text in texts]
    return np.array(rows, dtype=np.int8).reshape(len(texts), n_voters)
