"""Hold one dataset out: what may be trained on, what is dropped, and what cannot be used."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from deep._checks import check_both_classes, check_choice, check_some_votes
from deep.exceptions import InputError
from deep.records import VoteMatrix

HoldOutUnit = Literal["dataset", "family"]


@dataclass(frozen=True, eq=False)
class HoldOut:
    """One dataset held out, and the labeled rows that may be learned from.

    Parameters
    ----------
    name : str
        The dataset held out.
    test, train : VoteMatrix
    train_rows, test_rows : ndarray of int
        Their positions in the whole vote matrix.
    dropped : int
        Training rows left out because their document is in the held-out dataset.
    warnings : list of str
    """

    name: str
    test: VoteMatrix
    train: VoteMatrix
    test_rows: npt.NDArray[np.intp]
    train_rows: npt.NDArray[np.intp]
    dropped: int = 0
    warnings: list[str] = field(default_factory=list)


def hold_out(votes: VoteMatrix, name: str, *, unit: HoldOutUnit = "dataset") -> HoldOut:
    """Split off one dataset.

    Parameters
    ----------
    votes : VoteMatrix
    name : str
        One of ``votes.dataset_names``.
    unit : {'dataset', 'family'}, default='dataset'
        'family' keeps the siblings of the held-out dataset out of the training too.

    Returns
    -------
    HoldOut
        Training rows that share a document with the held-out dataset are dropped, unless no training
        dataset with both classes would be left.

    Raises
    ------
    InputError
        `name` is no dataset of the votes, no other is there, a training row has no label, or a training dataset
        has one class only.
    """
    check_choice(name, votes.dataset_names, "test")
    is_test = votes.datasets == name
    kin = [
        other for other in votes.dataset_names if unit == "family" and votes.family_of(other) == votes.family_of(name)
    ]
    is_train = ~is_test & ~np.isin(votes.datasets.astype(str), kin)
    if not is_train.any():
        raise InputError(
            f"`votes` must hold at least two {unit} names, one to test and one to train on. Got only {name!r}."
        )
    _check_labels(votes, is_train)
    is_train, dropped, warnings = _without_shared_documents(votes, is_test, is_train)
    if (votes.votes[is_test] < 0).all():
        warnings.append("No voter voted in the held-out dataset: every item of it gets the same P.")
    test_rows, train_rows = np.flatnonzero(is_test), np.flatnonzero(is_train)
    return HoldOut(name, votes.rows(test_rows), votes.rows(train_rows), test_rows, train_rows, dropped, warnings)


def _check_labels(votes: VoteMatrix, is_train: npt.NDArray[np.bool_]) -> None:
    unlabeled = np.flatnonzero(is_train & (votes.labels == -1))
    if unlabeled.size:
        row = unlabeled[0]
        raise UnlabeledTrainingError(votes.datasets[row], votes.example_ids[row])
    check_both_classes(votes.labels[is_train], votes.datasets[is_train])
    check_some_votes(votes.votes[is_train])


class UnlabeledTrainingError(InputError):
    """A row that would be trained on has no label."""

    def __init__(self, dataset: str, example_id: str) -> None:
        self.dataset, self.example_id = dataset, example_id
        super().__init__(
            f"`label` must be 0 or 1 in every training dataset. Got none for item {example_id!r} of dataset "
            f"{dataset!r}. Label it, leave it out, or hold its dataset out with --test."
        )


def _without_shared_documents(
    votes: VoteMatrix, is_test: npt.NDArray[np.bool_], is_train: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], int, list[str]]:
    """Return the training mask without rows whose document is held out, how many went, and warnings."""
    if votes.document_ids is None:
        return is_train, 0, []
    held_out = set(votes.document_ids[is_test])
    shared = is_train & np.array([document in held_out for document in votes.document_ids])
    if not shared.any():
        return is_train, 0, []
    kept = is_train & ~shared
    whole = [name for name in sorted(set(votes.datasets[kept])) if _has_both(votes, kept & (votes.datasets == name))]
    if not whole:
        return (
            is_train,
            0,
            [
                f"{int(shared.sum())} training rows share a document with the held-out dataset and were kept: without "
                "them no training dataset would be left. Expect optimistic figures."
            ],
        )
    kept &= np.isin(votes.datasets.astype(str), whole)
    dropped = int(is_train.sum() - kept.sum())
    return kept, dropped, [f"{dropped} training rows were dropped: their documents are in the held-out dataset."]


def _has_both(votes: VoteMatrix, rows: npt.NDArray[np.bool_]) -> bool:
    return len(np.unique(votes.labels[rows])) == 2
