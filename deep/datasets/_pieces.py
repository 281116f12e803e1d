"""Votes, and soft scores beside them, a piece at a time: a file of any length needs no more memory than a short one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Labels, Texts, Votes, shown
from deep._util.columns import Column, label_cells, name_cells, score_cells, text_cells, texts, vote_cells
from deep.datasets import _tables
from deep.datasets._join import check_repeated, hash_items, number_items, twice
from deep.datasets._source import ParquetSource, Source
from deep.exceptions import InputError
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pyarrow as pa


Piece = dict[str, Column]


@dataclass(frozen=True, eq=False)
class VoteRows:
    """Rows of tables of votes, in their order.

    Parameters
    ----------
    datasets, example_ids : pyarrow.ChunkedArray of str, length n_examples
    labels : ndarray of int8, shape (n_examples,)
        1, 0, or -1 where unknown.
    votes : ndarray of int8, shape (n_examples, n_voters)
    scores : ndarray of float, shape (n_examples, n_scorers)
        NaN where there is none.
    """

    datasets: "pa.ChunkedArray"
    example_ids: "pa.ChunkedArray"
    labels: Labels
    votes: Votes
    scores: Floats


def iter_votes(
    paths: _tables.Paths,
    voters: Sequence[str],
    *,
    scores: _tables.Paths = (),
    score_names: Sequence[str] = (),
    size: int = _tables.ROWS_AT_ONCE,
) -> Iterator[VoteRows]:
    """Read the votes of some voters as `read_votes` does, and scores as `join_scores`, at most `size` rows at a time.

    One Parquet file of any length needs the memory of one group of its rows, and 8 bytes a row to find an item that
    comes twice. So do Parquet files of scores with the same items in the same order, which may be that very file. Other
    files are joined in memory.

    Parameters
    ----------
    paths : path or sequence of paths
    voters : sequence of str
        The columns to read, in this order; at least one. `document_id`, `family` and all other columns are not read.
    scores : path or sequence of paths, optional
        Tables of scores.
    score_names : sequence of str, optional
        Their columns to read, in this order.
    size : int

    Raises
    ------
    InputError
        As in `read_votes`, but at the first piece with a fault; an item that comes twice is found after the last.
    """
    import pyarrow as pa

    sources = _tables.open_all(paths)
    beside = _tables.open_all(scores) if score_names else []
    if len(sources) == 1 and all(_same_rows(sources[0], one, size) for one in beside) and _once(beside, score_names):
        yield from _iter_source(sources[0], voters, beside, score_names, size)
        return
    votes = _tables.read_votes(paths, ignore={*_tables.all_columns(sources)} - {*_tables.KEYS, "label", *voters})
    matrix = votes.votes[:, [votes.voter_names.index(name) for name in voters]]
    soft = np.empty((len(matrix), 0))
    if score_names:
        table = _tables.join_scores(
            votes,
            _tables.read_scores(scores, ignore={*_tables.all_columns(beside)} - {*_tables.KEYS, "label", *score_names}),
        )
        soft = table.scores[:, [table.score_names.index(name) for name in score_names]]
    for start in range(0, len(matrix), size):
        at = slice(start, start + size)
        datasets, ids = (
            pa.chunked_array([pa.array(column[at], pa.string())]) for column in (votes.datasets, votes.example_ids)
        )
        yield VoteRows(datasets, ids, votes.labels[at], matrix[at], soft[at])


def _once(sources: Sequence[Source], names: Sequence[str]) -> bool:
    """Say whether each score is a column of one file."""
    return all(sum(name in source.columns for source in sources) == 1 for name in names)


def _same_rows(one: Source, other: Source, size: int) -> bool:
    """Say whether two Parquet files have the same items in the same order, in pieces of the same lengths."""
    if not (isinstance(one, ParquetSource) and isinstance(other, ParquetSource)):
        return False
    if one.path.samefile(other.path):
        return True
    for source in (one, other):
        _tables.check_keys(source)
    both = zip_longest(one.pieces(_tables.KEYS, size), other.pieces(_tables.KEYS, size))
    return all(
        mine and its and all(_texts(mine, key).equals(_texts(its, key)) for key in _tables.KEYS) for mine, its in both
    )


def _texts(piece: Piece, key: str) -> "pa.ChunkedArray":
    return texts(piece[key], required=True)


def _iter_source(
    source: Source, voters: Sequence[str], beside: Sequence[Source], score_names: Sequence[str], size: int
) -> Iterator[VoteRows]:
    _tables.check_keys(source)
    pieces = source.pieces([*_tables.KEYS, *_label(source), *voters], size)
    soft = [one.pieces([*_label(one), *(name for name in score_names if name in one.columns)], size) for one in beside]
    seen = []
    for piece, *others in zip(pieces, *soft, strict=True):
        datasets, example_ids = (_texts(piece, key) for key in _tables.KEYS)
        votes = np.column_stack([vote_cells(piece[name]) for name in voters])
        labels = label_cells(piece["label"]) if "label" in piece else np.full(len(votes), ABSTAIN, dtype=np.int8)
        scores = np.empty((len(votes), len(score_names)), order="F")
        for other in others:
            for column, name in enumerate(score_names):
                if name in other:
                    scores[:, column] = score_cells(other[name])
            if "label" in other:
                _tables.check_same_labels(labels, label_cells(other["label"]), datasets, example_ids)
        seen.append(hash_items(datasets, example_ids))
        yield VoteRows(datasets, example_ids, labels, votes, scores)
    if twice(seen):  # two items may share a hash, though hardly ever do: whether they are one is looked up
        part = _tables.read_part(source, (), frozenset(_tables.VOTE_COLUMNS[2:]), vote_cells)
        check_repeated(part, number_items([part.dataset], [part.item_id])[0][0])


def _label(source: Source) -> list[str]:
    return [name for name in source.columns if name == "label"]


COUNT = "n"
"""The column of a table of counted votes that says how many rows a pattern has."""

LARGEST_COUNT = 1 << 53


@dataclass(frozen=True)
class BatchPlace:
    """Where a cell of a batch stands."""

    first: ClassVar[int] = 1
    path: str = "the batch"

    def where(self, row: int, column: str) -> str:
        """Return the place of a cell for an error message; `row` counts from 0, the message from 1."""
        return f"{self.path}, column {shown(column)}, row {row + 1}"


@dataclass(frozen=True, eq=False)
class BatchColumns:
    """Columns of an Arrow batch, read and checked as those of a file are.

    Parameters
    ----------
    batch : RecordBatch or Table

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"a": pa.array([1, None, 0], pa.int8()), "s": [0.5, 0.25, None]})
    >>> BatchColumns(batch).votes(["a"]).tolist()
    [[1], [-1], [0]]
    """

    batch: "pa.RecordBatch | pa.Table"

    def votes(self, names: Sequence[str | None]) -> Votes:
        """Return columns of votes as 1, 0, or -1 where a cell is empty, shape (n_rows, n_names); None: all empty.

        Raises
        ------
        InputError
            A column is missing, or a cell is none of these.
        """
        empty = np.full(self.batch.num_rows, -1, dtype=np.int8)
        columns = [empty if name is None else vote_cells(self._column(name, "votes")) for name in names]
        return np.column_stack(columns) if columns else np.empty((self.batch.num_rows, 0), dtype=np.int8)

    def scores(self, names: Sequence[str]) -> Floats:
        """Return columns of scores, nan where a cell is empty, shape (n_rows, n_names)."""
        columns = [score_cells(self._column(name, "scores")) for name in names]
        return np.column_stack(columns) if columns else np.empty((self.batch.num_rows, 0))

    def names(self, column: str) -> Texts:
        """Return a column of text, none of it empty."""
        return text_cells(self._column(column, "batch"), required=True)

    def _column(self, name: str, role: str) -> Column:
        import pyarrow as pa

        if self.batch.schema.names.count(name) != 1:
            raise InputError(
                f"`{role}` must have one column named {shown(name)}. Got {self.batch.schema.names.count(name)} of "
                f"{len(self.batch.schema.names)} in the batch."
            )
        values = self.batch.column(name)
        whole = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
        return Column(BatchPlace(), name, whole)


@dataclass(frozen=True, eq=False)
class CountedVotes:
    """Patterns of votes, and how many rows have each.

    Parameters
    ----------
    datasets : ndarray of str, shape (n_patterns,)
    votes : ndarray of int8, shape (n_patterns, n_voters)
    counts : ndarray of int64, shape (n_patterns,)
        At least 1.
    """

    datasets: Texts
    votes: Votes
    counts: npt.NDArray[np.int64]


def iter_counted_votes(paths: Sequence[str], voters: Sequence[str]) -> Iterator[CountedVotes]:
    """Read tables of patterns with the columns `dataset`, those of voters, and the count `n`, a piece at a time.

    Raises
    ------
    InputError
        A column is missing, or a cell is no vote or no count.
    """
    for source in _tables.open_all(paths):
        wanted = ["dataset", COUNT, *dict.fromkeys(voters)]
        missing = [name for name in wanted if name not in source.columns]
        if missing:
            raise InputError(f"`cells` must have a column named {shown(missing[0])}. Got none in {source.path}.")
        for piece in source.pieces(wanted, _tables.ROWS_AT_ONCE):
            votes = np.column_stack([vote_cells(piece[name]) for name in voters])
            yield CountedVotes(name_cells(piece["dataset"], required=True), votes, _counts(piece[COUNT]))


def _counts(column: Column) -> npt.NDArray[np.int64]:
    values = score_cells(column)
    wrong = ~((values >= 1) & (values <= LARGEST_COUNT) & (values == np.floor(values)))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"`cells` must have counts that are whole and above 0. Got {shown(column.values[row].as_py())} at "
            f"{column.where(row)}. Write count(*) there."
        )
    return values.astype(np.int64)
