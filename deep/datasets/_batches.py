"""Arrow batches of votes and scores, as engines hand them over, and tables of counted votes, as GROUP BY makes them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from deep._cells import Column, name_cells, score_cells, shown, text_cells, vote_cells
from deep._checks import Floats, Texts, Votes
from deep.datasets._tables import ROWS_AT_ONCE, open_all
from deep.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa

COUNT = "n"
"""The column of a table of counted votes that says how many rows a pattern has."""

LARGEST_COUNT = 1 << 53


@dataclass(frozen=True)
class BatchPlace:
    """Where a cell of a batch stands."""

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
    for source in open_all(paths):
        wanted = ["dataset", COUNT, *dict.fromkeys(voters)]
        missing = [name for name in wanted if name not in source.columns]
        if missing:
            raise InputError(f"`cells` must have a column named {shown(missing[0])}. Got none in {source.path}.")
        for piece in source.pieces(wanted, ROWS_AT_ONCE):
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
