"""The rows that the pool learns from and scores: hard votes, soft scores beside them, weights."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Labels, Votes, check_consistent_length, check_sample_weight, check_votes
from deep.exceptions import InputError
from deep.features import weigh

__all__ = ["LabeledPanel", "Panel", "check_scores"]


@dataclass(frozen=True, eq=False)
class Panel:
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
    def from_arrays(cls, X: Any, scores: Any = None, sample_weight: Any = None) -> "Panel":
        """Check rows of votes, scores and weights, and return them as a panel."""
        votes = check_votes(X)
        return Panel(votes, check_scores(scores, len(votes)), check_sample_weight(sample_weight, len(votes)))

    def rows(self, kept: npt.NDArray[Any]) -> Self:
        """Return the panel of these rows (a mask or positions)."""
        arrays = {name: value[kept] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays)


@dataclass(frozen=True, eq=False)
class LabeledPanel(Panel):
    """Rows of several labeled datasets.

    Parameters
    ----------
    labels : ndarray of int8, shape (n_examples,)
        0 or 1.
    groups : ndarray of int, shape (n_examples,)
        The dataset of each row, as a number.
    memo : dict
        What a member has worked out from one dataset's rows alone, by (member, dataset): the same whichever
        other datasets are left out.
    """

    labels: Labels
    groups: npt.NDArray[np.intp]
    memo: dict[tuple[str, int], Any] = field(default_factory=dict)

    def rows(self, kept: npt.NDArray[Any]) -> Self:
        """Return the panel of these rows (a mask or positions), with nothing remembered."""
        return replace(super().rows(kept), memo={})

    def without(self, group: int) -> Self:
        """Return the panel of all other datasets, whole, so that what was worked out for them stays true."""
        return replace(self.rows(self.groups != group), memo=self.memo)

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

    def by_class(self, group: int) -> tuple["LabeledPanel", Floats, Floats]:
        """Return one dataset's rows, and their weights within label 1 and within label 0, each summing to 1."""
        rows = self.only(group)
        ones, zeros = rows.weights * (rows.labels == 1), rows.weights * (rows.labels == 0)
        return rows, ones / ones.sum(), zeros / zeros.sum()


def check_scores(scores: Any, n: int) -> Floats:
    """Return soft votes as a float matrix of `n` rows: finite or NaN; no columns where None."""
    if scores is None:
        return np.empty((n, 0))
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2:
        raise InputError(f"`scores` must be two-dimensional (examples x scorers). Got {values.ndim} dimension(s).")
    check_consistent_length(values, n, "scores")
    if np.isinf(values).any():
        row, column = (int(i) for i in np.argwhere(np.isinf(values))[0])
        raise InputError(f"`scores` must be finite or NaN. Got {values[row, column].item()!r} at row {row}.")
    return values
