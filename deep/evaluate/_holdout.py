"""Hold one dataset out: the rows to train on, those that are dropped, and metrics of decisions on it."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from deep import calibration
from deep._util.checks import Floats, Mask, Texts, check_both_classes, check_choice, check_some_votes, factorize
from deep._util.names import listed
from deep.evaluate._measured import Row, json_value
from deep.exceptions import InputError
from deep.model import Weighting, group_weights
from deep.records import VoteMatrix

HoldOutUnit = Literal["dataset", "family"]

# What to do where nothing is left to train on, by what is held out.
REMEDY_BY_UNIT: dict[HoldOutUnit, str] = {
    "dataset": "Add labels of other datasets, name parts of this one in column `dataset`, or use `deep fit`.",
    "family": "Hold out by dataset, or give a labeled table of another family too.",
}

# The most datasets that a warning names.
MAX_DATASETS_NAMED = 5


@dataclass(frozen=True, eq=False)
class HoldOut:
    """One dataset held out, and the labeled rows that may be learned from.

    Parameters
    ----------
    name : str
        The dataset held out.
    test, train : VoteMatrix
        The rows of the dataset held out; those of other datasets that may be learned from, all labeled.
    train_rows, test_rows : ndarray of int
        Their positions in the whole vote matrix.
    dropped : int
        Training rows left out because their document is in the held-out dataset.
    warnings : list of str
        Sentences on training rows left out, documents on both sides, and a held-out dataset without votes.
    """

    name: str
    test: VoteMatrix
    train: VoteMatrix
    test_rows: npt.NDArray[np.intp]
    train_rows: npt.NDArray[np.intp]
    dropped: int = 0
    warnings: list[str] = field(default_factory=list)


def hold_out(votes: VoteMatrix, name: str, *, unit: HoldOutUnit = "dataset", besides: Collection[str] = ()) -> HoldOut:
    """Split off one dataset.

    Parameters
    ----------
    votes : VoteMatrix
        Of two datasets (or families) at least; the rows to train on all have labels.
    name : str
        One of ``votes.dataset_names``.
    unit : {'dataset', 'family'}, default='dataset'
        'family' keeps the siblings of the held-out dataset out of the training too.
    besides : collection of str, optional
        Other datasets that are held out with it, so that one fit serves them all.

    Returns
    -------
    HoldOut
        Training rows that share a document with a held-out dataset are dropped, unless no training
        dataset with both classes would be left. Training datasets of one class are left out too, with a warning.

    Raises
    ------
    InputError
        `name` is no dataset of the votes, no other is there, a training row has no label, or no training dataset
        has both classes.
    """
    check_choice(name, votes.dataset_names, "test")
    is_test = votes.datasets == name
    families = {votes.family_of(other) for other in (name, *besides)}
    kin = [other for other in votes.dataset_names if unit == "family" and votes.family_of(other) in families]
    is_held = np.isin(votes.datasets.astype(str), [name, *besides])
    is_train = ~is_held & ~np.isin(votes.datasets.astype(str), kin)
    if not is_train.any():
        raise InputError(
            f"`votes` must hold at least two {unit} names, one to test and one to train on. Got only {name!r}. "
            f"{REMEDY_BY_UNIT[unit]}"
        )
    # An unlabeled row is an oversight here, since `loo` measures on labels: it is named, and not left out in silence.
    unlabeled = np.flatnonzero(is_train & (votes.labels == -1))
    if unlabeled.size:
        raise UnlabeledTrainingError(votes.datasets[unlabeled[0]], votes.item_ids[unlabeled[0]])
    mask, one_class = rows_of_both_classes(votes, is_train)
    if not mask.any():
        check_both_classes(votes.labels[is_train], votes.datasets[is_train])
    check_some_votes(votes.votes[mask])
    is_train, dropped, warnings = _without_shared_documents(votes, is_held, mask)
    if one_class:
        names = listed(one_class, MAX_DATASETS_NAMED)
        warnings.insert(0, f"Not used for training because their labels are all 0 or all 1: {names}.")
    if (votes.votes[is_test] < 0).all():
        warnings.append("No voter voted in the held-out dataset, so every item of it gets the same P.")
    test_rows, train_rows = np.flatnonzero(is_test), np.flatnonzero(is_train)
    return HoldOut(name, votes.rows(test_rows), votes.rows(train_rows), test_rows, train_rows, dropped, warnings)


def rows_of_both_classes(votes: VoteMatrix, rows: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], list[str]]:
    """Return which of some labeled rows are of datasets with both classes, and the names of the other datasets.

    Parameters
    ----------
    votes : VoteMatrix
        Its labels tell which datasets have both classes.
    rows : ndarray of bool, shape (n_examples,)
        True of the labeled rows that are looked at.

    Returns
    -------
    mask : ndarray of bool, shape (n_examples,)
    left_out : list of str
        Sorted.
    """
    codes = factorize(votes.datasets)[1]
    ones, zeros = (np.bincount(codes[rows & (votes.labels == label)], minlength=codes.max() + 1) for label in (1, 0))
    mask = rows & ((ones > 0) & (zeros > 0))[codes]
    return mask, sorted(set(votes.datasets[rows & ~mask].astype(str)))


def dataset_rows(votes: VoteMatrix) -> list[tuple[str, npt.NDArray[np.intp]]]:
    """Return the rows of every dataset, in the order of names; the time does not grow with their square."""
    names, codes = np.unique(votes.datasets.astype(str), return_inverse=True)
    parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return list(zip(names.tolist(), parts, strict=True))


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
    # A model that has seen the document of a held-out item may know the item.
    shared = is_train & np.array([document in held_out for document in votes.document_ids])
    if not shared.any():
        return is_train, 0, []
    mask, _ = rows_of_both_classes(votes, is_train & ~shared)
    if not mask.any():
        return (
            is_train,
            0,
            [
                f"{int(shared.sum())} training rows share a document with the held-out dataset and were kept: without "
                "them no training dataset would be left. Expect optimistic figures."
            ],
        )
    dropped = int(is_train.sum() - mask.sum())
    return mask, dropped, [f"{dropped} training rows were dropped: their documents are in the held-out dataset."]


# The metrics that decisions have without a P.
DECISION_METRICS = ("balanced_accuracy", "balanced_accuracy_ci", "precision", "recall")

METRICS = (
    *DECISION_METRICS,
    "auroc",
    "log_loss",
    "brier",
    "brier_reliability",
    "brier_resolution",
    "ece",
    "ece_debiased",
    "ece_floor",
    "ece_floor_95",
)


def decision_metrics(
    labels: npt.NDArray[np.integer],
    p: Floats | None,
    decisions: Mask,
    *,
    n_bins: int = calibration.DEFAULT_BINS,
    n_boot: int,
    random_state: int,
    counts: npt.NDArray[np.int64] | None = None,
    documents: Texts | None = None,
) -> Row:
    """Return every metric of P(consistent), and of decisions that need not be P >= 0.5; null where none is defined.

    Parameters
    ----------
    labels : ndarray of int, shape (n_examples,)
        -1 where unknown; such rows are left out.
    p : ndarray of float, shape (n_examples,), optional
        Without it there are the metrics of decisions alone.
    decisions : ndarray of bool, shape (n_examples,)
        Balanced accuracy, precision and recall are theirs.
    n_bins, n_boot, random_state : int
        Bins of the ECE (default 8), resamples of the interval of balanced accuracy, and the seed of all draws.
    counts : ndarray of int, shape (n_examples,), optional
        How often each row counts; default 1 each.
    documents : ndarray of str, shape (n_examples,), optional
        Drawn whole, for the interval of balanced accuracy.
    """
    names, labeled = DECISION_METRICS if p is None else METRICS, labels >= 0
    if not labeled.any():
        return dict.fromkeys(names)
    y, decided, weight = labels[labeled], decisions[labeled], None if counts is None else counts[labeled]
    prob = np.full(len(y), 0.5) if p is None else p[labeled]  # whose own metrics are left out where there is none
    draws = {"n_draws": 0} if p is None else {}
    values: Row = calibration.evaluate(
        y, prob, y_decision=decided, sample_weight=weight, n_bins=n_bins, random_state=random_state, **draws
    )
    values["balanced_accuracy_ci"] = calibration.bootstrap_balanced_accuracy(
        y,
        decided,
        sample_weight=weight,
        documents=None if documents is None else documents[labeled],
        n_boot=n_boot,
        random_state=random_state,
    )
    return {name: json_value(values[name]) for name in names}


def row_weights(train: VoteMatrix, weighting: Weighting = "dataset-class") -> Floats:
    """Return row weights under which every training dataset x class weighs the same, or every dataset, or every row."""
    _, code = np.unique(train.datasets.astype(str), return_inverse=True)
    sizes = np.bincount(code * 2 + train.labels, minlength=2 * (code.max() + 1)).reshape(-1, 2)
    return group_weights(sizes, weighting)[code, train.labels]
