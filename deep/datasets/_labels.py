"""Labels of some items, from tables of their own, joined to votes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deep._cells import shown, vote_cells
from deep._checks import Labels, Texts
from deep.datasets._join import join_parts, number_items
from deep.datasets._tables import open_all, read_part
from deep.exceptions import InputError
from deep.records import VoteMatrix


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Labels of some items.

    Parameters
    ----------
    example_ids, datasets : ndarray of str, shape (n_examples,)
    labels : ndarray of int8, shape (n_examples,)
        1 or 0.
    document_ids : ndarray of str, shape (n_examples,), optional
    """

    example_ids: Texts
    datasets: Texts
    labels: Labels
    document_ids: Texts | None = None


def read_labels(paths: str | Path | Sequence[str | Path]) -> LabelTable:
    r"""Read the labels of one or more tables; rows without one are passed over.

    Parameters
    ----------
    paths : path or sequence of paths
        CSV or Parquet, with the columns ``dataset``, ``item_id`` and ``label``; ``document_id`` is optional, and
        other columns are not read.

    Raises
    ------
    InputError
        As for :func:`read_votes`, or there is no label.

    Examples
    --------
    >>> import tempfile
    >>> from deep.datasets import read_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.csv")
    ...     _ = path.write_text("dataset,item_id,label\nnews,007,1\nnews,008,\n")
    ...     read_labels(path).labels.tolist()
    [1]
    """
    sources = open_all(paths)
    for source in sources:
        if "label" not in source.columns:
            columns = ", ".join(map(shown, source.columns))
            raise InputError(f"`labels` must have a column label. Got {columns} in {source.path}.")
    found = join_parts([read_part(source, (), frozenset({"family"}), vote_cells) for source in sources], np.int8(-1))
    known = found.labels >= 0
    if not known.any():
        raise InputError("`labels` must have rows with a label of 0 or 1. Got none.")
    documents = None if found.document_ids is None else found.document_ids[known]
    return LabelTable(found.example_ids[known], found.datasets[known], found.labels[known], documents)


def join_labels(votes: VoteMatrix, labels: LabelTable) -> VoteMatrix:
    """Return votes with these labels, and no others on the datasets that they are of.

    Parameters
    ----------
    votes : VoteMatrix
    labels : LabelTable
        Items that have no votes are passed over.

    Raises
    ------
    InputError
        No item has votes, or the votes have another label for one.

    Examples
    --------
    >>> import numpy as np
    >>> from deep import VoteMatrix
    >>> from deep.datasets import LabelTable, join_labels
    >>> votes = VoteMatrix([[1], [0], [1]], ["a", "b", "a"], ["strict"], ["news", "news", "talk"], [-1, 0, 1])
    >>> table = LabelTable(np.array(["a"], object), np.array(["news"], object), np.array([1], np.int8))
    >>> join_labels(votes, table).labels.tolist()
    [1, -1, 1]
    """
    rows, _ = number_items([votes.datasets, labels.datasets], [votes.example_ids, labels.example_ids])
    matched = rows[1] < len(votes.votes)
    if not matched.any():
        item = f"{shown(labels.example_ids[0])} of {shown(labels.datasets[0])}"
        raise InputError(f"`labels` must share items with `votes`. Got none in common; the first label is of {item}.")
    at, given = rows[1][matched], labels.labels[matched]
    _check_same(votes, at, given)
    joined = np.where(np.isin(votes.datasets.astype(str), list(set(labels.datasets[matched]))), -1, votes.labels)
    joined[at] = given
    documents = votes.document_ids
    if documents is None and labels.document_ids is not None:
        documents = votes.datasets + "/" + votes.example_ids
        documents[at] = labels.document_ids[matched]
    return VoteMatrix(
        votes.votes, votes.example_ids, votes.voter_names, votes.datasets, joined, documents, votes.families
    )


def _check_same(votes: VoteMatrix, at: np.ndarray, given: Labels) -> None:
    clash = np.flatnonzero((votes.labels[at] >= 0) & (votes.labels[at] != given))
    if len(clash):
        row = at[clash[0]]
        raise InputError(
            f"`labels` must agree with the labels beside the votes. Got {given[clash[0]]} and {votes.labels[row]} for "
            f"item {shown(votes.example_ids[row])} of dataset {shown(votes.datasets[row])}."
        )
