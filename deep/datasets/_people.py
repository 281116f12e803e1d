"""Labels of one person or of several, from tables in the layouts that labeling tools write."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deep._cells import Column, label_cells, person_cells, score_cells, shown, text_cells
from deep._checks import Labels, Texts, Votes
from deep.datasets._join import number_items
from deep.datasets._source import Source
from deep.datasets._tables import VOTE_COLUMNS, open_all
from deep.exceptions import InputError
from deep.records import ABSTAIN, VoteMatrix

ONE = "label"
"""The name of the person where a table has one label an item and names nobody."""


@dataclass(frozen=True, eq=False)
class PeopleLabels:
    """Labels that people gave to the items of a matrix of votes.

    Parameters
    ----------
    names : tuple of str
    ratings : ndarray of int8, shape (n_examples, n_people)
        1, 0, or -1 where a person gave no label; rows are those of the votes.
    n_unmatched : int, default=0
        Rows about items that have no votes; they are left out.
    document_ids : ndarray of str, shape (n_examples,), optional
        Where a table has them; an item without one is a document of its own.
    """

    names: tuple[str, ...]
    ratings: Votes
    n_unmatched: int = 0
    document_ids: Texts | None = None

    @property
    def labels(self) -> Labels:
        """Return the label of most people, shape (n_examples,); -1 on a tie, or where nobody gave one."""
        balance = (self.ratings == 1).sum(axis=1) - (self.ratings == 0).sum(axis=1)
        return np.where(balance == 0, ABSTAIN, balance > 0).astype(np.int8)

    @property
    def n_tied(self) -> int:
        """Return the number of items on which as many people say 1 as say 0."""
        return int(((self.labels == ABSTAIN) & (self.ratings >= 0).any(axis=1)).sum())


def read_people(
    paths: str | Path | Sequence[str | Path],
    votes: VoteMatrix,
    *,
    people: Sequence[str] = (),
    consistent_from: float | None = None,
) -> PeopleLabels:
    r"""Read the labels that people gave to the items of a matrix of votes.

    Parameters
    ----------
    paths : path or sequence of paths
        CSV or Parquet tables with ``item_id`` and ``dataset``; the latter may be missing where no two items of the
        votes share an id. ``document_id`` is read where it is. Labels are 1, 0 or empty, in one of three layouts:
        ``label`` alone; ``annotator`` and ``label``, a row an item and person; or a column a person, where there is
        no column ``label``.
    votes : VoteMatrix
    people : sequence of str, optional
        The columns that are people; whatever else a table holds is not read.
    consistent_from : float, optional
        The grade from which on a person says "consistent", where the columns of people hold grades.

    Raises
    ------
    InputError
        A column is missing, a person labels an item twice, a label is neither 0 nor 1, or no item has votes.

    Examples
    --------
    >>> import tempfile
    >>> from deep import VoteMatrix
    >>> from deep.datasets import read_people
    >>> votes = VoteMatrix([[1], [0]], ["a", "b"], ["strict"], ["news", "news"], [-1, -1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.csv")
    ...     _ = path.write_text("item_id,annotator,label\na,Ann,1\na,Bob,1\nb,Ann,0\nb,Bob,1\n")
    ...     found = read_people(path, votes)
    >>> found.names, found.labels.tolist(), found.n_tied
    (('Ann', 'Bob'), [1, -1], 1)
    """
    names: dict[str, int] = {}
    given: list[tuple[np.ndarray, np.ndarray, Labels]] = []
    documents: Texts | None = None
    unmatched = 0
    for source in open_all(paths):
        rows = _rows_of(source, votes)
        unmatched += int((rows < 0).sum())
        if "document_id" in source.columns:
            named = text_cells(source.read(["document_id"])["document_id"])
            documents = votes.datasets + "/" + votes.example_ids if documents is None else documents
            documents[rows[(rows >= 0) & (named != "")]] = named[(rows >= 0) & (named != "")]
        for person, labels in _labels_of(source, people, consistent_from):
            codes = np.array([names.setdefault(name, len(names)) for name in person])
            kept = (rows >= 0) & (labels != ABSTAIN)
            _check_once(source, rows[kept], codes[kept], given, list(names))
            given.append((rows, codes, labels))
    ratings = np.full((len(votes.votes), len(names)), ABSTAIN, dtype=np.int8)
    for rows, codes, labels in given:
        kept = (rows >= 0) & (labels != ABSTAIN)
        ratings[rows[kept], codes[kept]] = labels[kept]
    if not (ratings >= 0).any():
        raise InputError("`labels` must hold a label of 0 or 1 for an item that has votes. Got none.")
    return PeopleLabels(tuple(names), ratings, unmatched, documents)


def _rows_of(source: Source, votes: VoteMatrix) -> np.ndarray:
    """Return the row of the votes that each row of a table is about; -1 where there is none."""
    if "item_id" not in source.columns:
        raise InputError(f"`labels` must have a column item_id. Got none in {source.path}.")
    items = text_cells(source.read(["item_id"])["item_id"], required=True)
    if "dataset" in source.columns:
        own, theirs = votes.datasets, text_cells(source.read(["dataset"])["dataset"], required=True)
    else:
        if len(set(votes.example_ids)) < len(votes.example_ids):
            raise InputError(
                f"`labels` must have a column dataset, since items of several datasets share an id. Got none in "
                f"{source.path}."
            )
        own, theirs = np.full(len(votes.example_ids), "", object), np.full(len(items), "", object)
    numbers, _ = number_items([own, theirs], [votes.example_ids, items])
    return np.where(numbers[1] < len(votes.votes), numbers[1], -1)


def _labels_of(
    source: Source, people: Sequence[str], consistent_from: float | None
) -> list[tuple[Texts | list[str], Labels]]:
    """Return who labeled each row of a table, and with what."""
    columns = source.columns
    missing = [name for name in people if name not in columns]
    if missing:
        raise InputError(f"`people` must name columns of the labels. Got {missing[0]!r} for {source.path}.")
    if not people and "label" in columns:
        n, label = len(source.read(["label"])["label"].values), label_cells(source.read(["label"])["label"])
        named = "annotator" in columns
        return [(text_cells(source.read(["annotator"])["annotator"], required=True) if named else [ONE] * n, label)]
    wide = list(people) or [name for name in columns if name not in VOTE_COLUMNS]
    if not wide:
        raise InputError(
            f"`labels` must have a column label, or a column a person. Got {', '.join(map(shown, columns))} in "
            f"{source.path}."
        )
    data = source.read(wide)
    return [([name] * len(column.values), _labels(column, consistent_from)) for name, column in data.items()]


def _labels(column: Column, consistent_from: float | None) -> Labels:
    if consistent_from is None:
        return person_cells(column)
    grades = score_cells(column)
    return np.where(np.isnan(grades), ABSTAIN, grades >= consistent_from).astype(np.int8)


def _check_once(
    source: Source,
    rows: np.ndarray,
    codes: np.ndarray,
    given: Sequence[tuple[np.ndarray, np.ndarray, Labels]],
    names: Sequence[str],
) -> None:
    before = [np.column_stack([r, c])[(r >= 0) & (labels != ABSTAIN)] for r, c, labels in given]
    pairs = np.concatenate([*before, np.column_stack([rows, codes])])
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    if (counts > 1).any():
        person = names[distinct[counts > 1][0][1]]
        raise InputError(
            f"`labels` must have one label for each item and person. Got two by {shown(person)} for one item, the "
            f"second in {source.path}."
        )
