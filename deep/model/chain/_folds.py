"""From labeled rows to a training set: which rows are left out together."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from deep.exceptions import InputError
from deep.features import Cells
from deep.model.chain._recipe import Recipe
from deep.model.chain._training import TrainingSet, Weighting
from deep.records import VoteMatrix

__all__ = ["N_FOLDS", "row_folds", "training_set"]

N_FOLDS = 5
"""Inner folds where the training datasets cannot be the folds."""


def training_set(
    votes: VoteMatrix,
    recipe: Recipe,
    *,
    weighting: Weighting | None = None,
    by_family: bool = False,
    random_state: int = 0,
) -> TrainingSet:
    """Collapse labeled rows and decide the inner folds.

    Parameters
    ----------
    votes : VoteMatrix
        Training rows, all labeled.
    recipe : Recipe
        Its `inner_folds` are the training datasets or five folds of the pooled rows; one training dataset
        is always cut into five. Rows of one document share a fold: datasets with common documents are left
        out together, unless that would leave a single fold.
    weighting : {'dataset', 'dataset-class', 'uniform'}, optional
        Default: the recipe's.
    by_family : bool, default=False
        Leave out sibling datasets together.
    random_state : int, default=0
        Of the five folds.

    Raises
    ------
    InputError
        Five folds are needed and a class has fewer than five rows.
    """
    weighting = weighting or recipe.weighting
    datasets = votes.dataset_names
    if recipe.inner_folds == "rows" or len(datasets) == 1:
        fold_of_row = row_folds(votes, random_state)
        return TrainingSet(_cells(votes, fold_of_row), np.arange(fold_of_row.max() + 1), weighting)
    keys = {name: votes.family_of(name) if by_family else name for name in datasets}
    fold_of = _joined(keys, votes)
    if fold_of.max() == 0:
        fold_of = np.arange(len(datasets))
    return TrainingSet(_cells(votes, votes.datasets), fold_of, weighting)


def _cells(votes: VoteMatrix, groups: npt.NDArray[Any]) -> Cells:
    return Cells.from_rows(votes.votes, labels=votes.labels, groups=groups, voter_names=votes.voter_names)


def row_folds(votes: VoteMatrix, random_state: int) -> npt.NDArray[np.intp]:
    """Return a fold for every row, stratified by label; rows of one document share it."""
    smallest = int(np.bincount(votes.labels, minlength=2).min())
    if smallest < N_FOLDS:
        raise InputError(
            f"`labels` must hold each class at least {N_FOLDS} times for {N_FOLDS} inner folds. Got {smallest} "
            f"in {', '.join(votes.dataset_names)}."
        )
    splitter = (StratifiedKFold if votes.document_ids is None else StratifiedGroupKFold)(
        N_FOLDS, shuffle=True, random_state=random_state
    )
    # Folds are drawn over rows in a fixed order, so that a shuffled file gives the same ones.
    order = np.lexsort((votes.example_ids.astype(str), votes.datasets.astype(str)))
    documents = None if votes.document_ids is None else votes.document_ids[order].astype(str)
    folds = np.empty(len(order), dtype=np.intp)
    for fold, (_, held) in enumerate(splitter.split(order, votes.labels[order], documents)):
        folds[order[held]] = fold
    return folds


def _joined(keys: dict[str, str], votes: VoteMatrix) -> npt.NDArray[np.intp]:
    """Return a fold for every dataset: one key, or a common document, means one fold."""
    names = sorted(keys)
    fold = {name: keys[name] for name in names}
    if votes.document_ids is not None:
        owner: dict[str, str] = {}
        for document, dataset in sorted(set(zip(votes.document_ids, votes.datasets, strict=True))):
            first = owner.setdefault(document, dataset)
            old, new = fold[dataset], fold[first]
            fold = {name: new if value == old else value for name, value in fold.items()} if old != new else fold
    return np.unique([fold[name] for name in names], return_inverse=True)[1]
