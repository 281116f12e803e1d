"""From labeled rows to training cells: weights, groups left out together, and the cells that a model keeps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Labels, Votes, check_choice, factorize
from deep.exceptions import InputError
from deep.features import Cells, distinct_patterns
from deep.model.options import Weighting
from deep.records import VoteMatrix

Criterion = Literal["accuracy", "balanced_accuracy", "log_loss"]

Task = TypeVar("Task")
Result = TypeVar("Result")


class MapLike(Protocol):
    """Like the built-in `map`: results in the order of the tasks, wherever they are run."""

    def __call__(self, function: Callable[[Task], Result], tasks: Sequence[Task], /) -> Iterable[Result]:
        """Return the results."""


@dataclass(frozen=True)
class Recipe:
    """The choices in which two ways of fitting a chain differ; docs/recipes.md compares them.

    Parameters
    ----------
    name : str
        A key of `RECIPES`, as ``--recipe`` takes it.
    weighting : {'dataset', 'dataset-class', 'uniform'}
        What weighs the same in every fit and every inner score.
    criterion : {'accuracy', 'balanced_accuracy', 'log_loss'}
        What the grid search and the choice of the recommended chain maximise.
    subset_criterion : {'accuracy', 'balanced_accuracy', 'log_loss'}
        What decides between two prompt selectors.
    inner_folds : {'dataset', 'rows'}
        Training datasets, or five folds of the pooled rows.
    calibrate_on : {'out-of-fold', 'training'}
        Scores of rows left out of the fit, or of the rows the ensembler was fitted on.
    grids : mapping of str to mapping
        Values of parameters that ensemblers have under this recipe, beside those that each tries by itself.
    """

    name: str
    weighting: Weighting
    criterion: Criterion
    subset_criterion: Criterion
    inner_folds: Literal["dataset", "rows"]
    calibrate_on: Literal["out-of-fold", "training"]
    grids: Mapping[str, Mapping[str, Sequence[object]]]


# The recipes by name: deep's own, and that of the paper.
RECIPES = {
    "deep": Recipe("deep", "dataset-class", "log_loss", "balanced_accuracy", "dataset", "out-of-fold", {}),
    # The authors count the ones of the matrix of votes: a vote for 0 is no token to them.
    "paper": Recipe(
        *("paper", "uniform", "accuracy", "accuracy", "rows", "training"), {"MultinomialNB": {"zeros": (False,)}}
    ),
}


@dataclass(frozen=True)
class ChainSpec:
    """All that decides a chain, given the training cells of its voters.

    Parameters
    ----------
    recipe : str
        A key of `RECIPES`; it says what the calibrator is fitted on.
    ensembler : str
        A key of `ENSEMBLERS`.
    params : mapping
        Values of the ensembler's parameters, by name.
    calibrator : str or None
        A key of `CALIBRATORS`; None: the ensembler's own probabilities.
    random_state : int
        Seed of the ensembler's fits, where it draws.
    """

    recipe: str
    ensembler: str
    params: Mapping[str, object]
    calibrator: str | None
    random_state: int


# Votes, labels and weights that an estimator is fitted on.
LabeledVotes = tuple[Votes, Labels, Floats]

N_FOLDS = 5
"""Inner folds where the training datasets cannot be the folds."""


class FoldLimit(NamedTuple):
    """Above how many folds several datasets share one, and how many folds there are then."""

    above: int
    folds: int


STACK_FOLDS = FoldLimit(50, 20)
"""The stack leaves datasets out so: its fits grow with the datasets, and its prior is learned from them one by one."""

# The search for a chain leaves them out so: its fits grow with the square of the folds.
CHAIN_FOLDS = FoldLimit(12, N_FOLDS)

# The search leaves them out so where `has_many_patterns`, since each fit takes long.
COSTLY_CHAIN_FOLDS = FoldLimit(N_FOLDS, N_FOLDS)

# Patterns of nine voters' votes above which a fit takes long: more than votes without abstentions can give.
MANY_PATTERNS = 1000


def assign_folds(codes: npt.NDArray[np.intp], limit: FoldLimit = STACK_FOLDS) -> npt.NDArray[np.intp]:
    """Return the folds of datasets numbered from 0: their own, or shared ones where they are too many."""
    return codes % limit.folds if codes.max() >= limit.above else codes


def has_many_patterns(votes: VoteMatrix) -> bool:
    """Return whether nine voters, spread over the columns, give so many patterns that a fit on them takes long."""
    n_voters = votes.shape[1]
    columns = np.linspace(0, n_voters - 1, min(n_voters, 9)).astype(int)
    return len(distinct_patterns(votes.votes[:, columns])[0]) > MANY_PATTERNS


def chain_limit(votes: VoteMatrix) -> FoldLimit:
    """Return when training datasets share the inner folds of the search for a chain."""
    return COSTLY_CHAIN_FOLDS if has_many_patterns(votes) else CHAIN_FOLDS


def shared_folds_note(n_datasets: int, limit: FoldLimit = STACK_FOLDS, *, start: str = "The") -> str | None:
    """Return the sentence that says that training datasets shared a fold, or None where none did."""
    if n_datasets <= limit.above:
        return None
    return f"{start} {n_datasets:,} training datasets were left out in {limit.folds} groups, not one by one."


def group_weights(sizes: npt.NDArray[np.int64], weighting: Weighting) -> Floats:
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
    # A group or class without rows weighs 0 in each of the three, so that the others keep their shares.
    if weighting == "uniform":
        return (sizes > 0).astype(float)
    if weighting == "dataset":
        by_group = sizes.sum(axis=1, keepdims=True)
        share = np.where(sizes > 0, 1.0 / np.maximum(by_group, 1), 0.0) / max((by_group > 0).sum(), 1)
        return np.asarray(total * share)
    # Each class is shared out among the groups that have it: a group of one class weighs in that class alone.
    with_class = (sizes > 0).sum(axis=0)
    share = np.where(sizes > 0, 1.0 / np.maximum(sizes, 1), 0.0) / np.maximum(with_class, 1)
    return np.asarray(total * share / max((with_class > 0).sum(), 1))


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Labeled cells, the weight of each row, and which groups are left out together.

    Parameters
    ----------
    cells : Cells
        Grouped by training dataset, or by inner fold where there is only one.
    fold_of : ndarray of int, shape (n_groups,)
        The inner fold of each group; folds are 0 .. n_folds - 1.
    weighting : {'dataset', 'dataset-class', 'uniform'}
        What weighs the same: each group, each group x class, or each row, as in :func:`group_weights`.
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

    def weights(self, groups: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Return the weight of every cell, as `counts` shaped; 0 outside `groups`."""
        counts = self.cells.counts
        if groups is not None:
            counts = np.where(groups[None, :, None], counts, 0)
        return np.asarray(counts * group_weights(counts.sum(axis=0), self.weighting))

    def table(self, groups: npt.NDArray[np.bool_] | None = None) -> LabeledVotes:
        """Return votes, labels and weights with equal (pattern, label) of all `groups` merged into one row."""
        cell_weights = self.weights(groups).sum(axis=1)
        pattern, label = np.nonzero(cell_weights)
        return self.cells.patterns[pattern], label.astype(np.int8), cell_weights[pattern, label]

    def without_fold(self, fold: int) -> LabeledVotes:
        """Return the table of all groups outside one inner fold."""
        return self.table(self.fold_of != fold)

    def select(self, columns: Sequence[int]) -> Self:
        """Return the training set of these voters alone."""
        return replace(self, cells=self.cells.select(columns))


@dataclass(frozen=True, eq=False)
class InnerFolds:
    """Which rows are left out together while a chain is searched for.

    Parameters
    ----------
    of_row : ndarray of int, shape (n_examples,)
        Folds are 0 .. n_folds - 1.
    group_by : {'dataset', 'fold'}
        What a row's weight is decided by; 'fold' where the folds cut through datasets.
    """

    of_row: npt.NDArray[np.intp]
    group_by: Literal["dataset", "fold"]


def inner_folds(
    votes: VoteMatrix,
    recipe: Recipe,
    *,
    by_family: bool = False,
    random_state: int = 0,
    limit: FoldLimit | None = None,
) -> InnerFolds:
    """Decide the inner folds of labeled rows, `limit` by default :func:`chain_limit`; else as :func:`training_set`."""
    datasets = votes.dataset_names
    if recipe.inner_folds == "rows" or len(datasets) == 1:
        return InnerFolds(row_folds(votes, random_state), "fold")
    keys = {name: votes.family_of(name) if by_family else name for name in datasets}
    # A document in two folds would be in training and in test at once.
    fold_of = _document_folds(keys, votes)
    # Documents that tie all datasets together leave one fold, and nothing to test on: then each is its own.
    if fold_of.max() == 0:
        fold_of = np.arange(len(datasets))
    return InnerFolds(assign_folds(fold_of, limit or chain_limit(votes))[factorize(votes.datasets)[1]], "dataset")


def collapse_folds(votes: VoteMatrix, folds: InnerFolds, weighting: Weighting) -> TrainingSet:
    """Count the cells of labeled rows, by training dataset or, where the folds cut through them, by fold."""
    groups = folds.of_row if folds.group_by == "fold" else votes.datasets
    cells = Cells.from_rows(votes.votes, labels=votes.labels, groups=groups, voter_names=votes.voter_names)
    # `Cells` sorts its groups, as `unique` does, so the fold of the first row of each is that of the group.
    _, first = np.unique(groups, return_index=True)
    return TrainingSet(cells, folds.of_row[first], weighting)


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
        out together, unless that would leave a single fold. More than 12 folds are merged to five, and more than
        five where :func:`has_many_patterns`.
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
    folds = inner_folds(votes, recipe, by_family=by_family, random_state=random_state)
    return collapse_folds(votes, folds, weighting or recipe.weighting)


@dataclass(frozen=True, eq=False)
class FoldCells:
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
        What weighs the same: each group, each group x class, or each row, as in :func:`group_weights`.
    """

    joint: Cells
    folds: tuple[int, ...]
    group_by: Literal["dataset", "fold"]
    weighting: Weighting

    @classmethod
    def of_voters(cls, votes: VoteMatrix, folds: InnerFolds, columns: Sequence[int], weighting: Weighting) -> Self:
        """Count the cells of labeled rows as `collapse_folds` does, of some voters alone and by dataset and fold."""
        names, dataset = np.unique(votes.datasets.astype(str), return_inverse=True)
        pairs, group = np.unique(np.column_stack([dataset, folds.of_row]), axis=0, return_inverse=True)
        cells = Cells.from_rows(
            votes.votes[:, list(columns)],
            labels=votes.labels,
            groups=group.ravel(),
            voter_names=[votes.voter_names[column] for column in columns],
        )
        # Groups come back sorted as numbers, in the order of `pairs`.
        joint = replace(cells, groups=tuple(names[pairs[:, 0]].tolist()))
        return cls(joint, tuple(pairs[:, 1].tolist()), folds.group_by, weighting)

    @cached_property
    def by_dataset(self) -> Cells:
        """Return the cells by training dataset."""
        names, position = np.unique(np.array(self.joint.groups), return_inverse=True)
        return Cells(self.joint.patterns, self._summed(position), tuple(names.tolist()), self.joint.voter_names)

    @cached_property
    def units(self) -> npt.NDArray[np.intp]:
        """Return for each dataset of `by_dataset` the group left out with it: datasets that share a fold, or itself."""
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
        # Datasets of one unit share documents or a fold, so all of them leave.
        absent = {n for n, unit in zip(self.by_dataset.groups, self.units, strict=True) if unit == without}
        stay = np.array([name not in absent for name in self.joint.groups])
        # Numbered anew from 0, since a fold may have left with the unit.
        folds = np.unique(np.array(self.folds)[stay], return_inverse=True)[1]
        if self.group_by == "dataset":
            names = [name for name, stays in zip(self.joint.groups, stay, strict=True) if stays]
            cells = Cells(self.joint.patterns, self.joint.counts[:, stay], tuple(names), self.joint.voter_names)
            return TrainingSet(cells, folds, self.weighting)
        counts = self._summed(folds, stay)
        groups = tuple(str(fold) for fold in range(counts.shape[1]))
        cells = Cells(self.joint.patterns, counts, groups, self.joint.voter_names)
        return TrainingSet(cells, np.arange(len(groups)), self.weighting)

    def _summed(
        self, position: npt.NDArray[np.intp], groups: npt.NDArray[np.bool_] | slice = slice(None)
    ) -> npt.NDArray[np.int64]:
        counts = np.zeros((int(position.max()) + 1, len(self.joint.patterns), 2), dtype=np.int64)
        np.add.at(counts, position, self.joint.counts[:, groups].swapaxes(0, 1))
        return counts.swapaxes(0, 1)


def row_folds(votes: VoteMatrix, random_state: int) -> npt.NDArray[np.intp]:
    """Return a fold for every row, stratified by label; rows of one document share it.

    There are five, or as many as the rarer class has rows, or documents.
    """
    n_folds = min(N_FOLDS, _rarer_class_size(votes))
    if n_folds < 2:
        of = "rows" if votes.document_ids is None else "rows of two documents"
        raise InputError(
            f"`labels` must hold two {of} of each class or more, for inner folds. Got fewer "
            f"in {', '.join(votes.dataset_names)}."
        )
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold  # which reading a model file spares

    splitter = (StratifiedKFold if votes.document_ids is None else StratifiedGroupKFold)(
        n_folds, shuffle=True, random_state=random_state
    )
    # Folds are drawn over rows in a fixed order, so that a shuffled file gives the same ones.
    order = np.lexsort((votes.item_ids.astype(str), votes.datasets.astype(str)))
    documents = None if votes.document_ids is None else votes.document_ids[order].astype(str)
    folds = np.empty(len(order), dtype=np.intp)
    for fold, (_, test_rows) in enumerate(splitter.split(order, votes.labels[order], documents)):
        folds[order[test_rows]] = fold
    return folds


def has_rows_for_folds(votes: VoteMatrix) -> bool:
    """Return whether each class has rows, of documents, enough for each of five folds."""
    return _rarer_class_size(votes) >= N_FOLDS


def _rarer_class_size(votes: VoteMatrix) -> int:
    """Return how many rows, or documents, the rarer class has."""
    ids = np.arange(len(votes.labels)) if votes.document_ids is None else votes.document_ids.astype(str)
    return min(len(np.unique(ids[votes.labels == label])) for label in (0, 1))


def _document_folds(keys: dict[str, str], votes: VoteMatrix) -> npt.NDArray[np.intp]:
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
