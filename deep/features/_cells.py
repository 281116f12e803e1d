"""Cells: the distinct (pattern, group, label) of a vote matrix, with how often each occurs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from deep._util.checks import (
    AnyVotes,
    Positions,
    Votes,
    check_consistent_length,
    check_labels,
    check_votes,
    is_votes,
    numbered,
)
from deep.exceptions import InputError

# Columns coded as one number: 3**20 codes of patterns times 10**7 rows still fit an int64.
CHUNK = 20

# The most possible patterns that are counted by position, without a sort.
DENSE = 3**13

# The most possible patterns a row for which going through all of them is quicker than sorting the rows.
CODES_A_ROW = 32


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows of votes collapsed to weighted cells; everything fitted on them equals the fit on the rows.

    Parameters
    ----------
    patterns : ndarray of int8, shape (n_patterns, n_voters)
        The distinct rows of votes, in lexicographic order.
    counts : ndarray of int64, shape (n_patterns, n_groups, 2)
        How many rows have the pattern, lie in the group and carry label 0 or 1.
    groups : tuple of str, length n_groups
        Names of the groups: datasets, or folds of one.
    voter_names : tuple of str, length n_voters
        In the order of the columns.

    Examples
    --------
    >>> cells = Cells.from_rows([[1, 0], [1, 0], [1, -1]], labels=[1, 0, 1], groups=["a", "a", "b"])
    >>> cells.patterns.tolist()
    [[1, -1], [1, 0]]
    >>> cells.counts.tolist()
    [[[0, 0], [0, 1]], [[1, 1], [0, 0]]]
    """

    patterns: Votes
    counts: npt.NDArray[np.int64]
    groups: tuple[str, ...]
    voter_names: tuple[str, ...]

    @classmethod
    def from_rows(
        cls,
        votes: npt.ArrayLike,
        *,
        labels: npt.ArrayLike,
        groups: npt.ArrayLike,
        voter_names: Sequence[str] | None = None,
    ) -> Self:
        """Count the cells of rows, in one pass over them.

        Parameters
        ----------
        votes : array-like of shape (n_examples, n_voters)
            1 consistent, 0 inconsistent, -1 no vote.
        labels : array-like of shape (n_examples,)
            0 or 1.
        groups : sequence of length n_examples
            The dataset, or the fold, of each row.
        voter_names : sequence of str, optional
            Default: "0", "1", ...

        Raises
        ------
        InputError
            A vote or label is out of range, or lengths differ.
        """
        matrix = check_votes(votes, name="votes")
        y = check_labels(labels, len(matrix), name="labels")
        raw = np.asarray(groups)
        names, codes = numbered(raw) if raw.dtype == object else np.unique(raw, return_inverse=True)
        check_consistent_length(codes, len(matrix), "groups")
        patterns, row_pattern = distinct_patterns(matrix)
        shape = (len(patterns), len(names), 2)
        cell = (row_pattern * shape[1] + codes) * 2 + y
        counts = np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)
        voters = tuple(voter_names or map(str, range(matrix.shape[1])))
        return cls(patterns, counts, tuple(str(name) for name in names), voters)

    def select(self, columns: Sequence[int]) -> Self:
        """Return the cells of these columns alone, in the order given."""
        if any(not 0 <= column < len(self.voter_names) for column in columns):
            raise InputError(f"`columns` must be positions below {len(self.voter_names)}. Got {list(columns)!r}.")
        patterns, old_pattern = distinct_patterns(np.ascontiguousarray(self.patterns[:, list(columns)]))
        counts = np.zeros((len(patterns), *self.counts.shape[1:]), dtype=np.int64)
        np.add.at(counts, old_pattern, self.counts)
        return type(self)(patterns, counts, self.groups, tuple(self.voter_names[column] for column in columns))


def distinct_patterns(votes: Votes) -> tuple[Votes, Positions]:
    """Return the distinct rows of a vote matrix, in lexicographic order, and the position of each row among them.

    Parameters
    ----------
    votes : ndarray of int8, shape (n_examples, n_voters)
        1 consistent, 0 inconsistent, -1 no vote.

    Returns
    -------
    patterns : ndarray of int8, shape (n_patterns, n_voters)
    inverse : ndarray of int, shape (n_examples,)
        ``patterns[inverse]`` is `votes`.

    Examples
    --------
    >>> patterns, inverse = distinct_patterns(np.array([[1, 0], [0, 0], [1, 0]], dtype=np.int8))
    >>> patterns.tolist(), inverse.tolist()
    ([[0, 0], [1, 0]], [1, 0, 1])
    """
    codes = _codes(votes)
    # Sorted and without repeats, as the patterns of `Cells` are: nothing to merge.
    if (codes[1:] > codes[:-1]).all():
        return votes, np.arange(len(votes))
    if 3 ** votes.shape[1] <= min(DENSE, CODES_A_ROW * len(votes)):
        present = np.zeros(3 ** votes.shape[1], dtype=bool)
        present[codes] = True
        inverse = (np.cumsum(present) - 1)[codes]
        first = np.empty(int(present.sum()), dtype=np.intp)
        first[inverse] = np.arange(len(votes))
    else:
        order = np.argsort(codes)  # rows of one pattern are alike: which of them stands first matters not
        codes = codes[order]
        new = np.append(True, codes[1:] != codes[:-1])
        first, number = order[new], np.cumsum(new)
        del codes
        number -= 1
        inverse = np.empty(len(votes), dtype=np.intp)
        inverse[order] = number
    return votes[first], inverse


def distinct_rows(answers: AnyVotes) -> tuple[AnyVotes, Positions]:
    """Return the distinct rows of votes or of answers, and the position of each row among them.

    Rows of judges that give grades repeat, and are merged exactly; where the answers of a row could be of more than
    2**62 kinds, as scores are, hardly two rows are the same, and all are returned.

    Examples
    --------
    >>> rows, inverse = distinct_rows(np.array([[0.25, np.nan], [0.0, 1.0], [0.25, np.nan]]))
    >>> rows.tolist(), inverse.tolist()
    ([[0.0, 1.0], [0.25, nan]], [1, 0, 1])
    """
    if is_votes(answers):
        return distinct_patterns(answers)
    codes, kinds = np.zeros(len(answers), dtype=np.int64), 1
    for column in answers.T:
        values, code = np.unique(column, return_inverse=True)  # of NaN there is one
        kinds *= len(values)
        if kinds > 1 << 62:
            return answers, np.arange(len(answers))
        codes *= len(values)
        codes += code
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return answers[first], inverse


def _codes(votes: Votes) -> npt.NDArray[np.int64]:
    """Return one integer per row that orders and separates the patterns."""
    codes = np.zeros(len(votes), dtype=np.int64)
    for start in range(0, votes.shape[1], CHUNK):
        # What was coded so far becomes a small number, so that the next columns fit beside it.
        if start:
            codes = np.unique(codes, return_inverse=True)[1]
        for column in votes[:, start : start + CHUNK].T:
            codes *= 3
            codes += column
            codes += 1
    return codes
