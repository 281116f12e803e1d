"""Votes as what is counted and summed: cells with how often each occurs, votes as signed numbers, sums over them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from deep._util.checks import (
    AnyVotes,
    Floats,
    Labels,
    Positions,
    Votes,
    Weights,
    check_consistent_length,
    check_labels,
    check_sample_weight,
    check_votes,
    factorize,
    is_votes,
)
from deep._util.scales import binary_votes
from deep.exceptions import InputError
from deep.records import ABSTAIN

# Columns coded as one number: 3**20 codes of patterns times 10**7 rows still fit an int64.
COLUMNS_PER_CODE = 20

# The most possible patterns that are counted by position, without a sort.
MAX_PATTERNS_BY_POSITION = 3**13

# The most possible patterns a row for which going through all of them is quicker than sorting the rows.
MAX_PATTERNS_PER_ROW = 32


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
        names, codes = factorize(raw) if raw.dtype == object else np.unique(raw, return_inverse=True)
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
    codes = _pattern_codes(votes)
    # Sorted and without repeats, as the patterns of `Cells` are: nothing to merge.
    if (codes[1:] > codes[:-1]).all():
        return votes, np.arange(len(votes))
    if 3 ** votes.shape[1] <= min(MAX_PATTERNS_BY_POSITION, MAX_PATTERNS_PER_ROW * len(votes)):
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


def _pattern_codes(votes: Votes) -> npt.NDArray[np.int64]:
    """Return one integer per row that orders and separates the patterns."""
    codes = np.zeros(len(votes), dtype=np.int64)
    for start in range(0, votes.shape[1], COLUMNS_PER_CODE):
        # What was coded so far becomes a small number, so that the next columns fit beside it.
        if start:
            codes = np.unique(codes, return_inverse=True)[1]
        for column in votes[:, start : start + COLUMNS_PER_CODE].T:
            codes *= 3
            codes += column
            codes += 1
    return codes


NO_VOTE_PLACE = 0.25
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


def vote_tokens(X: Votes) -> Floats:
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
    >>> vote_tokens(np.array([[1, 0, -1]], dtype=np.int8)).tolist()
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


def vote_splits(votes: Floats) -> list[tuple[int, float]]:
    """Return every voter with every threshold between two of its signed votes.

    Examples
    --------
    >>> vote_splits(np.array([[1.0, 1.0], [0.0, 1.0], [-1.0, -1.0]]))
    [(0, -0.5), (0, 0.5), (1, 0.0)]
    """
    # Half way between values, where scikit-learn's trees split.
    values = [np.unique(column) for column in votes.T]
    return [(voter, float(middle)) for voter, levels in enumerate(values) for middle in (levels[1:] + levels[:-1]) / 2]


def average_over_abstains(X: Votes, proba: Callable[[Floats], Floats]) -> Floats:
    """Return `proba` of the signed votes, averaged over abstains taken up and taken down.

    A tree must send "no vote" to one side of a split that it learned from votes of 0 and 1 only, and either side
    would read something into silence. Splits that were learned with abstains present treat both alike.
    """
    # A tree puts "no vote" on one side of each split. The mean over both sides is the same with all votes turned round.
    result, open_rows = proba(signed(X, NO_VOTE_PLACE)), np.flatnonzero((X == ABSTAIN).any(axis=1))
    if len(open_rows):
        result[..., open_rows] = (result[..., open_rows] + proba(signed(X[open_rows], -NO_VOTE_PLACE))) / 2
    return result


@dataclass(frozen=True, eq=False)
class Linear:
    """Log-odds of P(consistent) as a sum over votes, at equal class weights; no vote adds nothing.

    Logistic regression, naive Bayes, Dawid-Skene, the label model and majority votes are all of this form.

    Parameters
    ----------
    intercept : float
        The log-odds of a row without votes.
    ones, zeros : ndarray of float, shape (n_voters,)
        What a vote of 1 and a vote of 0 add.

    Examples
    --------
    >>> linear = Linear(0.5, np.array([1.0, 2.0]), np.array([-1.0, -3.0]))
    >>> linear.log_odds(np.array([[1, 0], [-1, -1]], dtype=np.int8)).tolist()
    [-1.5, 0.5]
    """

    intercept: float
    ones: Floats
    zeros: Floats

    @classmethod
    def signed(cls, intercept: float, coef: Floats) -> "Linear":
        """Return the sum in which a vote of 0 takes away as much as a vote of 1 adds."""
        return cls(intercept, coef, -coef)

    @classmethod
    def mean(cls, members: Sequence["Linear"]) -> "Linear":
        """Return the mean of several sums."""
        parts = ([one.intercept for one in members], [one.ones for one in members], [one.zeros for one in members])
        intercept, ones, zeros = (np.mean(part, axis=0) for part in parts)
        return cls(float(intercept), ones, zeros)

    def log_odds(self, answers: AnyVotes) -> Floats:
        """Return the log-odds of each row of votes or of evidence, shape (n_examples,).

        Evidence is a vote of 1 in part and a vote of 0 for the rest: 0.5 is three quarters of a 1.
        """
        if is_votes(answers):
            difference = (answers == 1) @ self.ones + (answers == 0) @ self.zeros
            return np.asarray(self.intercept + difference, dtype=np.float64)
        result = np.zeros(len(answers))
        slopes, bases = (self.ones - self.zeros) / 2, (self.ones + self.zeros) / 2
        for column, slope, base in zip(answers.T, slopes, bases, strict=True):  # a product rounds a row by those beside
            part = column * slope + base
            part[np.isnan(column)] = 0.0
            result += part
        return result + self.intercept


@dataclass(frozen=True, eq=False)
class Rows:
    """Judges' answers on the rows of one dataset, labels unknown.

    Parameters
    ----------
    votes : ndarray of int8, shape (n_examples, n_voters)
        1, 0, or -1 for none; of judges that give grades or scores, the votes that their answers are.
    evidence : ndarray of float64, shape (n_examples, n_voters)
        By an :class:`deep.model.AnswerMap`, NaN where there is none; no columns where all judges vote.
    weights : ndarray of float64, shape (n_examples,)
        How often each row counts.
    """

    votes: Votes
    evidence: Floats
    weights: Floats

    @classmethod
    def from_arrays(
        cls,
        X: npt.ArrayLike,
        answer_map: Callable[[Floats], Floats] | None = None,
        sample_weight: Weights = None,
        *,
        name: str = "X",
    ) -> "Rows":
        """Check rows of votes, the caller's `name`, or of answers where there is a map of them, and return them."""
        if answer_map is None:
            votes = check_votes(X, name=name)
            evidence = np.empty((len(votes), 0))
        else:
            answers = np.asarray(X, dtype=np.float64)
            votes, evidence = binary_votes(answers), answer_map(answers)
        return Rows(votes, evidence, check_sample_weight(sample_weight, len(votes)))

    @property
    def features(self) -> AnyVotes:
        """Return the evidence, or the votes where all judges vote."""
        return self.evidence if self.evidence.shape[1] else self.votes

    def rows(self, index: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Self:
        """Return these rows (a mask or positions)."""
        arrays = {name: value[index] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays)
