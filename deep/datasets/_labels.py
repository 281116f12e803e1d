"""Labels of some items, from tables of their own, arrays or a Series, joined to votes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from deep._util.checks import Labels, Texts, Votes, quote
from deep._util.columns import VOTE_OF_TEXT, label_cells, person_cells, score_cells, text_cells, vote_cells
from deep._util.frames import DATASET, Frame, Source, table_defaults
from deep._util.join import join_parts, number_items, read_part
from deep._util.names import intended_column, listed, visible_form
from deep.datasets._tables import (
    VOTE_COLUMNS,
    Paths,
    Tables,
    is_frame,
    is_paths,
    likely_reason,
    matched_rows,
    open_all,
)
from deep.exceptions import InputError, warn
from deep.records import ABSTAIN, VoteMatrix


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Labels of some items.

    Parameters
    ----------
    item_ids, datasets : ndarray of str, shape (n_examples,)
        One a label; an id is unique within its dataset.
    labels : ndarray of int8, shape (n_examples,)
        1 or 0.
    document_ids : ndarray of str, shape (n_examples,), optional
        Which document each item is about; None where no table has the column.
    """

    item_ids: Texts
    datasets: Texts
    labels: Labels
    document_ids: Texts | None = None


def read_labels(paths: Tables, votes: VoteMatrix | None = None) -> LabelTable:
    r"""Read the labels of one or more tables; rows without one are passed over.

    Parameters
    ----------
    paths : path or sequence of paths, or data frame
        CSV or Parquet, with the columns ``dataset``, ``item_id`` and ``label``; ``document_id`` is optional, and
        other columns are not read.
    votes : VoteMatrix, optional
        What the labels are of: where that is one dataset, tables without a column ``dataset`` are of it. With it,
        several labels of an item, by the column ``annotator`` or in crowd-kit's layout, count as that of most people.

    Raises
    ------
    InputError
        As for :func:`read_votes`, or there is no label.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deep.datasets import read_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.csv")
    ...     _ = path.write_text("dataset,item_id,label\nnews,007,1\nnews,008,\n")
    ...     read_labels(path).labels.tolist()
    [1]
    """
    names = () if votes is None else votes.dataset_names
    sources = _open_tables(paths, names)
    if votes is not None and any("annotator" in s.columns or s.is_crowd for s in sources):
        people = read_people(paths, votes)  # the labels of most of them; a tie is none
        if people.n_unmatched:
            warn(UNMATCHED_NOTE.format(n=people.n_unmatched))
        is_labeled, documents = people.labels >= 0, people.document_ids
        documents = None if documents is None else documents[is_labeled]
        return LabelTable(votes.item_ids[is_labeled], votes.datasets[is_labeled], people.labels[is_labeled], documents)
    for source in sources:
        if "label" not in source.columns:
            columns = ", ".join(map(quote, source.columns))
            alike = [name for name in source.columns if intended_column(name, ("label",))]
            remedy = f" Rename {quote(alike[0])} if it holds them." if alike else ""
            raise InputError(f"`labels` must have a column label. Got {columns} in {source.path}.{remedy}")
    result = join_parts([read_part(source, (), frozenset({"family"}), vote_cells) for source in sources], np.int8(-1))
    is_labeled = result["labels"] >= 0
    if not is_labeled.any():
        raise InputError("`labels` must have rows with a label of 0 or 1. Got none.")
    documents = None if result["document_ids"] is None else result["document_ids"][is_labeled]
    # A dataset may be written with other blanks or composed letters in the labels; the votes' spelling is taken.
    ours = {visible_form(name): name for name in names}
    spelled = {name: ours.get(visible_form(name), name) for name in set(result["datasets"])}
    datasets = np.array([spelled[name] for name in result["datasets"][is_labeled]], dtype=object)
    return LabelTable(result["item_ids"][is_labeled], datasets, result["labels"][is_labeled], documents)


def _open_tables(paths: Tables, names: Sequence[str]) -> list[Source]:
    """Open tables; those without a column dataset are of the only one that there is."""
    with table_defaults(DATASET.get() or (names[0] if len(names) == 1 else None)):
        return open_all(paths)


# The warning on labels that no vote belongs to.
UNMATCHED_NOTE = "{n:,} labels are of items without votes, and are left out."


def join_labels(votes: VoteMatrix, labels: LabelTable) -> VoteMatrix:
    """Return votes with these labels, and no others on the datasets that they are of.

    Parameters
    ----------
    votes : VoteMatrix
        A label that stands beside them must be the same as that of its item in `labels`.
    labels : LabelTable
        Items that have no votes are passed over, with a warning. Ids that look alike are the same: composed (NFC) or
        not, with blanks around them or not.

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
    matched, at = matched_rows(votes, "labels", labels)
    new = labels.labels[matched]
    if not matched.all():
        ids = labels.item_ids[~matched]
        warn(UNMATCHED_NOTE.format(n=len(ids)) + likely_reason(ids, votes.item_ids))
    clash = np.flatnonzero((votes.labels[at] >= 0) & (votes.labels[at] != new))
    if len(clash):
        row = at[clash[0]]
        raise InputError(
            f"`labels` must agree with the labels beside the votes. Got {new[clash[0]]} and {votes.labels[row]} for "
            f"item {quote(votes.item_ids[row])} of dataset {quote(votes.datasets[row])}."
        )
    labeled = set(votes.datasets[at])
    # A file of labels replaces all labels of its dataset: a row that it leaves out is not labeled by an older one.
    all_labels = np.where([name in labeled for name in votes.datasets], -1, votes.labels)
    all_labels[at] = new
    documents = votes.document_ids
    if documents is None and labels.document_ids is not None:
        # An item without a document is a document of its own, so that no two of them are clustered.
        documents = votes.datasets + "/" + votes.item_ids
        documents[at] = labels.document_ids[matched]
    return replace(votes, labels=all_labels, document_ids=documents)


# The name of the person where a table has one label an item and names nobody.
ONLY_PERSON = "label"


@dataclass(frozen=True, eq=False)
class PeopleLabels:
    """Labels that people gave to the items of a matrix of votes.

    Parameters
    ----------
    names : tuple of str
        Names of the people, in the order of the columns of `ratings`; ``label`` where nobody is named.
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
        # A tie of people is no label: either way would invent one.
        return np.where(balance == 0, ABSTAIN, balance > 0).astype(np.int8)

    @property
    def n_tied(self) -> int:
        """Return the number of items on which as many people say 1 as say 0."""
        return int(((self.labels == ABSTAIN) & (self.ratings >= 0).any(axis=1)).sum())


def read_people(
    paths: Tables,
    votes: VoteMatrix,
    *,
    people: Sequence[str] = (),
    consistent_from: float | None = None,
) -> PeopleLabels:
    r"""Read the labels that people gave to the items of a matrix of votes.

    Parameters
    ----------
    paths : path or sequence of paths, or data frame
        CSV or Parquet tables with ``item_id`` and ``dataset``; the latter may be missing where no two items of the
        votes share an id. ``document_id`` is read where it is. Labels are 1, 0 or empty, in one of three layouts:
        ``label`` alone; ``annotator`` and ``label``, a row an item and person; or a column a person, where there is
        no column ``label``.
    votes : VoteMatrix
        Whose items the labels are of.
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
    >>> from pathlib import Path
    >>> from deep import VoteMatrix
    >>> from deep.datasets import read_people
    >>> votes = VoteMatrix([[1], [0]], ["a", "b"], ["strict"], ["news", "news"], [-1, -1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.csv")
    ...     _ = path.write_text("item_id,annotator,label\na,Ann,1\na,Bob,1\nb,Ann,0\nb,Bob,1\n")
    ...     result = read_people(path, votes)
    >>> result.names, result.labels.tolist(), result.n_tied
    (('Ann', 'Bob'), [1, -1], 1)
    """
    names: dict[str, int] = {}
    ratings_of: list[tuple[np.ndarray, np.ndarray, Labels]] = []
    documents: Texts | None = None
    unmatched = 0
    for source in _open_tables(paths, votes.dataset_names):
        rows = _rows_of(source, votes)
        unmatched += int((rows < 0).sum())
        if "document_id" in source.columns:
            document_names = text_cells(source.read(["document_id"])["document_id"])
            documents = votes.datasets + "/" + votes.item_ids if documents is None else documents
            documents[rows[(rows >= 0) & (document_names != "")]] = document_names[(rows >= 0) & (document_names != "")]
        for person, labels in _labels_of(source, people, consistent_from):
            codes = np.array([names.setdefault(name, len(names)) for name in person])
            usable = (rows >= 0) & (labels != ABSTAIN)
            ratings_of.append((rows[usable], codes[usable], labels[usable]))
            # With all files so far: one person may be in two of them.
            pairs = np.concatenate([np.column_stack(one[:2]) for one in ratings_of])
            distinct, counts = np.unique(pairs, axis=0, return_counts=True)
            if (counts > 1).any():
                raise InputError(
                    "`labels` must have one label for each item and person. Got two by "
                    f"{quote([*names][distinct[counts > 1][0][1]])} for one item, the second in {source.path}."
                )
    ratings = np.full((len(votes.votes), len(names)), ABSTAIN, dtype=np.int8)
    for rows, codes, labels in ratings_of:
        ratings[rows, codes] = labels
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
        if len(set(votes.item_ids)) < len(votes.item_ids):
            raise InputError(
                f"`labels` must have a column dataset, since items of several datasets share an id. Got none in "
                f"{source.path}."
            )
        own, theirs = np.full(len(votes.item_ids), "", object), np.full(len(items), "", object)
    numbers, _ = number_items([own, theirs], [votes.item_ids, items])
    return np.where(numbers[1] < len(votes.votes), numbers[1], -1)


def _labels_of(
    source: Source, people: Sequence[str], consistent_from: float | None
) -> list[tuple[Texts | list[str], Labels]]:
    """Return the annotator and the label of each row of a table."""
    columns = source.columns
    missing = [name for name in people if name not in columns]
    if missing:
        raise InputError(f"`people` must name columns of the labels. Got {missing[0]!r} for {source.path}.")
    if not people and "label" in columns and not source.is_crowd:
        label = label_cells(source.read(["label"])["label"])
        if "annotator" not in columns:
            return [([ONLY_PERSON] * len(label), label)]
        return [([*map(visible_form, text_cells(source.read(["annotator"])["annotator"], required=True))], label)]
    wide = list(people) or [name for name in columns if name not in VOTE_COLUMNS]
    if not wide:
        raise InputError(
            f"`labels` must have a column label, or a column a person. Got {', '.join(map(quote, columns))} in "
            f"{source.path}."
        )
    source.check_width(wide, "labels", "person")
    result: list[tuple[Texts | list[str], Labels]] = []
    for name, column in source.read(wide).items():
        if consistent_from is None:
            labels = person_cells(column)
        else:
            grades = score_cells(column)
            labels = np.where(np.isnan(grades), ABSTAIN, grades >= consistent_from).astype(np.int8)
        result.append(([visible_form(name)] * len(labels), labels))
    return result


LabelsGiven = npt.ArrayLike | Frame | Paths
"""1, 0 or nothing for each row of votes, a frame with item_id and label, or paths of tables of labels."""


def as_labels(labels: LabelsGiven, votes: VoteMatrix, frame: object = None) -> VoteMatrix:
    """Return votes with labels, and no others on their datasets.

    Parameters
    ----------
    labels : array-like of shape (n_examples,), Series, data frame, or path or sequence of paths
        A list, an array, or a Series by position: 1, 0, or -1, None or NaN where there is none. A Series of pandas
        with another index than 0, 1, ... is aligned, by the index of the frame of votes or by item_id (dataset and
        item_id). Others have the columns dataset, item_id and label.
    votes : VoteMatrix
        Its rows are what the labels are of: by position, by the index of `frame`, or by dataset and item_id.
    frame : object, optional
        What the votes were read from: where that is a frame of pandas, its index tells which row a label is of.

    Raises
    ------
    InputError
        A label is none of these, or it is not known which item a label is of.

    Examples
    --------
    >>> import pandas as pd
    >>> from deep.datasets import as_labels
    >>> votes = VoteMatrix([[1], [0], [1]], ["a", "b", "c"], ["strict"], ["news"] * 3, [-1, -1, -1])
    >>> as_labels([1, None, 0], votes).labels.tolist()
    [1, -1, 0]
    >>> as_labels(pd.Series({"c": 0, "a": 1}), votes).labels.tolist()
    [1, -1, 0]
    """
    if hasattr(labels, "iloc") and not hasattr(labels, "columns"):  # a Series of pandas
        labels = _align_labels(labels, votes, frame)
    if is_paths(labels) or is_frame(labels):
        return join_labels(votes, read_labels(labels, votes))
    if isinstance(labels, np.ma.MaskedArray):  # `asarray` would show what the mask hides
        labels = np.ma.filled(labels.astype(object), -1)
    try:
        values = np.asarray(labels)
    except ValueError:  # lists of several lengths
        raise InputError("`labels` must have one entry for each row. Got lists of several lengths.") from None
    return VoteMatrix(**{**vars(votes), "labels": _label_codes(values)})


def _label_codes(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return labels with -1 where one is missing, and 1 and 0 for words; what else is none is told later."""
    import pandas as pd

    if values.dtype.kind not in "OUf" or values.ndim != 1:
        return values
    # `isna` knows None, NaN, NaT and pandas' NA, and each of them stands for no label somewhere.
    cells = np.where(pd.isna(values), -1, values.astype(object)).tolist()
    return np.array([VOTE_OF_TEXT.get(cell, cell) if isinstance(cell, str) else cell for cell in cells])


def _align_labels(labels: Any, votes: VoteMatrix, frame: object) -> Any:
    """Return labels by position, or with the ids of their items, as their index says."""
    import pandas as pd

    index, n = labels.index, len(votes.votes)
    rows = frame.index if isinstance(frame, pd.DataFrame) else pd.RangeIndex(n)
    # Rows of a long frame are not those of the votes, so a position is all that 0, 1, ... can mean there.
    of_votes = rows if len(rows) == n else pd.RangeIndex(n)
    if index.equals(of_votes) and index.names == of_votes.names:
        return labels
    names = [*index.names] if any(index.names) else ["dataset", "item_id"][-index.nlevels :]
    if {*names} <= {"dataset", "item_id"} and len(names) == index.nlevels and (any(index.names) or index.nlevels > 1):
        return labels.rename("label").rename_axis(names).reset_index()
    is_numbered = index.name is None and index.equals(pd.RangeIndex(len(labels)))
    if is_numbered and len(labels) != n:
        return labels  # which is refused with both lengths
    # An index may read as rows of the frame, as ids or as positions. It is taken only if all that are possible agree.
    by_row = _places(index, rows, n)
    by_meaning = _places(index.map(str), pd.Index(votes.item_ids), n), tuple(range(n)) if is_numbered else None
    is_of_frame = isinstance(frame, pd.DataFrame) and index.names == rows.names
    readings = {places for places in (by_row, *by_meaning) if places is not None}
    if len(readings) == 1 and -1 not in (places := readings.pop()) and (is_of_frame or places in by_meaning):
        return labels.reset_index(drop=True).set_axis(places).reindex(range(n))
    shown_index = listed([*map(repr, index.tolist())], rest="more")
    raise InputError(
        "`labels` must have the index of the votes, or one of item ids that is named item_id. Got an index that is "
        f"not clear: {shown_index}. Give `labels.to_numpy()` for labels in the order of rows."
    )


def _places(index: Any, reference: Any, n: int) -> "tuple[int, ...] | None":
    """Return the row of each entry of an index, -1 where it is one of several; None unless all are known."""
    if index.nlevels > 1 or reference.nlevels > 1 or not index.isin(reference).all():
        return None
    is_clear = reference.is_unique and index.is_unique and len(reference) == n
    return tuple(reference.get_indexer(index).tolist()) if is_clear else (-1,)
