"""The training cells that a model keeps: enough to fit it again, and to fit it without a dataset."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from deep.features import Cells
from deep.model.chain._training import TrainingSet, Weighting
from deep.records import VoteMatrix

__all__ = ["KeptCells"]


@dataclass(frozen=True, eq=False)
class KeptCells:
    """Cells by training dataset and inner fold.

    Parameters
    ----------
    joint : Cells
        Grouped by distinct (dataset, fold); the names of its groups are those of the datasets.
    folds : tuple of int
        The inner fold of each group, from 0.
    group_by : {'dataset', 'fold'}
        What a row's weight is decided by; 'fold' where the inner folds are folds of rows.
    weighting : {'dataset', 'dataset-class', 'uniform'}
    """

    joint: Cells
    folds: tuple[int, ...]
    group_by: Literal["dataset", "fold"]
    weighting: Weighting

    @classmethod
    def from_rows(cls, votes: VoteMatrix, training: TrainingSet, columns: tuple[int, ...], random_state: int) -> Self:
        """Count the cells of labeled rows as `training_set` did for the same rows, and of these voters alone."""
        by_row = training.cells.groups != votes.dataset_names
        if by_row:
            from deep.model.chain._folds import row_folds  # scikit-learn, which reading a model file spares

            fold = row_folds(votes, random_state)
        else:
            fold = training.fold_of[np.searchsorted(np.array(votes.dataset_names), votes.datasets.astype(str))]
        names, dataset = np.unique(votes.datasets.astype(str), return_inverse=True)
        pairs, group = np.unique(np.column_stack([dataset, fold]), axis=0, return_inverse=True)
        cells = Cells.from_rows(
            votes.votes[:, list(columns)],
            labels=votes.labels,
            groups=group.ravel(),
            voter_names=tuple(votes.voter_names[column] for column in columns),
        )
        # Groups come back sorted as numbers, in the order of `pairs`.
        joint = Cells(cells.patterns, cells.counts, tuple(names[pairs[:, 0]].tolist()), cells.voter_names)
        return cls(joint, tuple(pairs[:, 1].tolist()), "fold" if by_row else "dataset", training.weighting)

    @cached_property
    def by_dataset(self) -> Cells:
        """Return the cells by training dataset."""
        names, position = np.unique(np.array(self.joint.groups), return_inverse=True)
        return Cells(self.joint.patterns, self._summed(position), tuple(names.tolist()), self.joint.voter_names)

    @cached_property
    def units(self) -> npt.NDArray[np.intp]:
        """Return, for each dataset of `by_dataset`, what is left out with it: datasets that share a fold, or itself."""
        names = self.by_dataset.groups
        if self.group_by == "fold":
            return np.arange(len(names))
        fold = dict(zip(self.joint.groups, self.folds, strict=True))
        return np.unique([fold[name] for name in names], return_inverse=True)[1]

    @property
    def n_units(self) -> int:
        """Return how many training datasets can be left out independently."""
        return int(self.units.max()) + 1

    def training(self, without: int | None = None) -> TrainingSet:
        """Return the training set that the chain is fitted on, or the one without the datasets of a unit."""
        left = {n for n, unit in zip(self.by_dataset.groups, self.units, strict=True) if unit == without}
        kept = np.array([name not in left for name in self.joint.groups])
        folds = np.unique(np.array(self.folds)[kept], return_inverse=True)[1]
        if self.group_by == "dataset":
            names = [name for name, stays in zip(self.joint.groups, kept, strict=True) if stays]
            cells = Cells(self.joint.patterns, self.joint.counts[:, kept], tuple(names), self.joint.voter_names)
            return TrainingSet(cells, folds, self.weighting)
        counts = self._summed(folds, kept)
        groups = tuple(str(fold) for fold in range(counts.shape[1]))
        cells = Cells(self.joint.patterns, counts, groups, self.joint.voter_names)
        return TrainingSet(cells, np.arange(len(groups)), self.weighting)

    def _summed(
        self, position: npt.NDArray[np.intp], kept: npt.NDArray[np.bool_] | slice = slice(None)
    ) -> npt.NDArray[np.int64]:
        counts = np.zeros((int(position.max()) + 1, len(self.joint.patterns), 2), dtype=np.int64)
        np.add.at(counts, position, self.joint.counts[:, kept].swapaxes(0, 1))
        return counts.swapaxes(0, 1)
