"""The rows that the stack learns from and scores: hard votes, soft scores beside them, weights."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from deep._checks import (
    ROWS_AT_ONCE,
    Floats,
    Labels,
    Votes,
    Weights,
    check_consistent_length,
    check_sample_weight,
    check_votes,
    numbered,
    weigh,
)
from deep.exceptions import InputError
from deep.records import VoteMatrix


@dataclass(frozen=True, eq=False)
class Rows:
    """Judges' votes and scores on the rows of one dataset, labels unknown.

    Parameters
    ----------
    votes : ndarray of int8, shape (n_examples, n_voters)
    scores : ndarray of float64, shape (n_examples, n_scorers)
        Soft votes in any unit; NaN where there is none; n_scorers may be 0.
    weights : ndarray of float64, shape (n_examples,)
        How often each row counts.
    """

    votes: Votes
    scores: Floats
    weights: Floats

    @classmethod
    def from_arrays(
        cls, X: npt.ArrayLike, scores: npt.ArrayLike | None = None, sample_weight: Weights = None
    ) -> "Rows":
        """Check rows of votes, scores and weights, and return them."""
        votes = check_votes(X)
        return Rows(votes, check_scores(scores, len(votes)), check_sample_weight(sample_weight, len(votes)))

    def rows(self, kept: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Self:
        """Return these rows (a mask or positions)."""
        arrays = {name: value[kept] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays)


@dataclass(frozen=True, eq=False)
class LabeledRows(Rows):
    """Rows of several labeled datasets.

    Parameters
    ----------
    labels : ndarray of int8, shape (n_examples,)
        0 or 1.
    groups : ndarray of int, shape (n_examples,)
        The dataset of each row, as a number.
    """

    labels: Labels
    groups: npt.NDArray[np.intp]

    @classmethod
    def of(cls, votes: VoteMatrix, groups: npt.ArrayLike | None = None) -> "LabeledRows":
        """Return labeled votes without scores, each row once; groups are their datasets unless others are given."""
        codes = numbered(votes.datasets)[1] if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        n = len(codes)
        return cls(votes.votes, np.empty((n, 0)), np.ones(n), votes.labels, codes)

    def without(self, group: int) -> Self:
        """Return the rows of all other datasets."""
        return self.rows(self.groups != group)

    def only(self, group: int) -> Self:
        """Return one dataset's rows."""
        return self.rows(self.groups == group)

    def present(self) -> list[int]:
        """Return the numbers of the datasets that are there, ascending."""
        return [int(group) for group in np.unique(self.groups)]

    def balanced(self) -> Floats:
        """Return row weights under which every dataset x class weighs the same, summing to the sum of weights."""
        code = 2 * self.groups + self.labels
        size = weigh(code, self.weights)
        return np.asarray(self.weights / size[code] * self.weights.sum() / (size > 0).sum())

    def by_class(self, group: int) -> tuple["LabeledRows", Floats, Floats]:
        """Return one dataset's rows, and their weights within label 1 and within label 0, each summing to 1."""
        rows = self.only(group)
        ones, zeros = rows.weights * (rows.labels == 1), rows.weights * (rows.labels == 0)
        return rows, ones / ones.sum(), zeros / zeros.sum()


def check_scores(scores: npt.ArrayLike | None, n: int) -> Floats:
    """Return soft votes as a float matrix of `n` rows: finite or NaN; no columns where None."""
    if scores is None:
        return np.empty((n, 0))
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2:
        raise InputError(f"`scores` must be two-dimensional (examples x scorers). Got {values.ndim} dimension(s).")
    check_consistent_length(values, n, "scores")
    blocks = (values[start : start + ROWS_AT_ONCE] for start in range(0, n, ROWS_AT_ONCE))
    if any(np.isinf(block).any() for block in blocks):
        row, column = (int(i) for i in np.argwhere(np.isinf(values))[0])
        raise InputError(f"`scores` must be finite or NaN. Got {values[row, column].item()!r} at row {row}.")
    return values
