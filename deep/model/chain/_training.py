"""The training cells with their weights and inner folds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from deep._checks import check_choice
from deep.exceptions import InputError
from deep.features import Cells

__all__ = ["Table", "TrainingSet", "Weighting", "group_weights"]

Weighting = Literal["dataset", "dataset-class", "uniform"]

Table = tuple[npt.NDArray[np.int8], npt.NDArray[np.int8], npt.NDArray[np.float64]]
"""Votes, labels and weights that an estimator is fitted on."""


def group_weights(sizes: npt.NDArray[np.int64], weighting: Weighting) -> npt.NDArray[np.float64]:
    """Return the weight of one row by its group and class, so that all weights sum to the number of rows.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_groups, 2)
        Rows by group and label.
    weighting : {'dataset', 'dataset-class', 'uniform'}
        What weighs the same: every group with its labels as they come; every group x class; every row.

    Returns
    -------
    ndarray of float, shape (n_groups, 2)
        0 where a group has no rows of a class.

    Examples
    --------
    >>> group_weights(np.array([[30, 10], [2, 2]]), "dataset-class").round(3).tolist()
    [[0.367, 1.1], [5.5, 5.5]]
    """
    check_choice(weighting, ("dataset", "dataset-class", "uniform"), "weighting")
    total = sizes.sum()
    if weighting == "uniform":
        return (sizes > 0).astype(float)
    if weighting == "dataset":
        by_group = sizes.sum(axis=1, keepdims=True)
        share = np.where(sizes > 0, 1.0 / np.maximum(by_group, 1), 0.0) / max((by_group > 0).sum(), 1)
        return np.asarray(total * share)
    with_class = (sizes > 0).sum(axis=0)
    share = np.where(sizes > 0, 1.0 / np.maximum(sizes, 1), 0.0) / np.maximum(with_class, 1)
    return np.asarray(total * share / max((with_class > 0).sum(), 1))


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Labeled cells, what each row of them weighs, and which groups are left out together.

    Parameters
    ----------
    cells : Cells
        Grouped by training dataset, or by inner fold where there is only one.
    fold_of : ndarray of int, shape (n_groups,)
        The inner fold of each group; folds are 0 .. n_folds - 1.
    weighting : {'dataset', 'dataset-class', 'uniform'}
    """

    cells: Cells
    fold_of: npt.NDArray[np.intp]
    weighting: Weighting = "dataset-class"

    def __post_init__(self) -> None:
        if len(self.fold_of) != len(self.cells.groups):
            raise InputError(f"`fold_of` must have {len(self.cells.groups)} entries. Got {len(self.fold_of)}.")

    @property
    def n_folds(self) -> int:
        """Return the number of inner folds."""
        return int(self.fold_of.max()) + 1

    def weights(self, groups: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.float64]:
        """Return the weight of every cell, as `counts` shaped; 0 outside `groups`."""
        counts = self.cells.counts
        if groups is not None:
            counts = np.where(groups[None, :, None], counts, 0)
        return np.asarray(counts * group_weights(counts.sum(axis=0), self.weighting))

    def table(self, groups: npt.NDArray[np.bool_] | None = None) -> Table:
        """Return votes, labels and weights with equal (pattern, label) of all `groups` merged into one row."""
        merged = self.weights(groups).sum(axis=1)
        pattern, label = np.nonzero(merged)
        return self.cells.patterns[pattern], label.astype(np.int8), merged[pattern, label]

    def without_fold(self, fold: int) -> Table:
        """Return the table of all groups outside one inner fold."""
        return self.table(self.fold_of != fold)

    def select(self, columns: Sequence[int]) -> Self:
        """Return the training set of these voters alone."""
        return replace(self, cells=self.cells.select(columns))
