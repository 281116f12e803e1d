"""Tables with named columns as pieces of Arrow; data frames, read and written through the interface that they share."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast, get_args, runtime_checkable

import numpy as np

from deep._util.checks import Labels, Positions, Texts, Votes, check_choice, quote
from deep._util.columns import Column, TablePlace, vote_cells
from deep._util.names import check_name
from deep._util.scales import Scale
from deep.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa


# One row an item; one row an item and voter; the same by the names that crowd-kit has for them.
Layout = Literal["crowd-kit", "long", "wide"]

# The columns of a table of votes that are no judges.
ROLES = ("dataset", "item_id", "label", "document_id", "family", "generator")
# The code of no vote in votes, and of no label in labels.
NO_VOTE = -1


@runtime_checkable
class Frame(Protocol):
    """A data frame of pandas, Polars, pyarrow, or whatever else has the Arrow stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the frame as an Arrow stream."""


def frame_table(frame: Frame) -> "pa.Table":
    """Return a frame as a table of Arrow, without the index of pandas where it has no name."""
    import pyarrow as pa

    if not hasattr(frame, "__arrow_c_stream__"):
        raise InputError(
            f"`frame` must be a data frame of pandas, Polars or pyarrow. Got {type(frame).__name__}. "
            "Give an array of votes with `voter_names`."
        )
    frame = _with_text_names(frame)
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _mixed_kinds_error(frame, error) from None
    if not table.num_rows:
        raise InputError("`frame` must have at least one row. Got none.")
    # pandas adds an index without a name as such a column.
    index = [name for name in table.column_names if name.startswith("__index_level_")]
    _check_unique(table.column_names)
    binary = next((field.name for field in table.schema if pa.types.is_fixed_size_binary(field.type)), None)
    if binary is not None:  # what Polars makes of Python objects: their addresses
        raise InputError(f"`frame` must have columns of text, numbers or booleans. Got objects in {quote(binary)}.")
    return table.drop_columns(index)


def _with_text_names(frame: Any) -> Frame:
    """Return a frame of pandas with text above every column, also where a pivot has put numbers there."""
    if not hasattr(frame, "iloc"):
        return cast("Frame", frame)
    for name in frame.columns:
        if not isinstance(name, str | int | np.integer) or isinstance(name, bool):
            raise InputError(f"`frame` must have text above every column. Got {name!r}. Rename the column.")
    _check_unique(map(str, frame.columns))
    return cast("Frame", frame.rename(columns=str))


def _check_unique(names: Iterable[str]) -> None:
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise InputError(f"`frame` must have unique column names. Got {quote(twice)} twice.")


def _mixed_kinds_error(frame: Any, error: Exception) -> InputError:
    """Return the error for a frame with a column of several kinds, which Arrow has no type for."""
    if hasattr(frame, "iloc"):
        for name in getattr(frame, "columns", ()):
            cells = [(row, cell) for row, cell in enumerate(frame[name].tolist()) if cell is not None and cell == cell]
            other = next(((row, cell) for row, cell in cells if _cell_kind(cell) is not _cell_kind(cells[0][1])), None)
            if other is not None:
                return InputError(
                    f"`frame` must have one kind of cell in a column. Got {quote(other[1])} at "
                    f"{frame_place(other[0], name)}, below {quote(cells[0][1])}. Votes are 1, 0 or empty."
                )
    reason = str(error).partition("\n")[0].rstrip(".")
    return InputError(f"`frame` must have columns of text, numbers or booleans. Got: {reason}.")


def _cell_kind(cell: object) -> type:
    """Return the kind of a cell; whole numbers and others are one."""
    return float if isinstance(cell, int | float) and not isinstance(cell, bool) else type(cell)


def frame_place(row: int, column: str) -> str:
    """Return the place of a cell of a frame, whose rows count from 0, for an error message."""
    return f"row {row} (from 0), column {quote(column)}"


def null_for_no_vote(table: "pa.Table") -> "pa.Table":
    """Return a table in which the number -1, which stands for no vote in arrays, is an empty cell."""
    import pyarrow as pa
    from pyarrow import compute

    for at, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_integer(column.type) and name not in ROLES:
            cells = compute.if_else(compute.equal(column, NO_VOTE), pa.scalar(None, column.type), column)
            table = table.set_column(at, name, cells)
    return table


# The dataset of the rows of tables that have no column dataset.
DATASET: ContextVar[str | None] = ContextVar("DATASET", default=None)


# The scales of judges, by name or pattern, where a reader of tables is told none.
SCALES: ContextVar[Mapping[str, Scale]] = ContextVar("SCALES", default=MappingProxyType({}))


@contextmanager
def table_defaults(dataset: str | None, scales: Sequence[str] = ()) -> Iterator[None]:
    """Read rows of tables without a column dataset as rows of this one, and answers on scales, as ``"NAME=1-5"``."""
    # A context variable: threads of a server read tables side by side.
    token = DATASET.set(dataset if dataset is None else check_name(dataset, "dataset"))
    declared = SCALES.set(dict(map(_parse_declaration, scales)) if scales else SCALES.get())
    try:
        yield
    finally:
        DATASET.reset(token)
        SCALES.reset(declared)


def _parse_declaration(text: str) -> tuple[str, Scale]:
    name, mark, scale = text.rpartition("=")
    if not (name and mark):
        raise InputError(f"`scale` must be NAME=SCALE, as 'gpt-*=1-5'. Got {quote(text)}.")
    return name, Scale.parse(scale, f" for {quote(name)}")


# The dataset of the rows of a frame, or of a table in crowd-kit's layout, that names none.
DEFAULT_DATASET = "data"


# The most columns of voters in a table. What compares each judge with each other has their square in memory: 800 MB of
# floats at this number.
MAX_VOTERS = 10_000


class Source(TablePlace, ABC):
    """A file or frame with named columns.

    Parameters
    ----------
    path : Path
        Of the file; of a frame, the name that errors give it.

    Attributes
    ----------
    columns : tuple of str
        Unique, not empty, in the order of the file.
    param : str
        The parameter that tables of its kind are given as.
    is_crowd : bool
        Whether it is in crowd-kit's layout: what a worker says may be a vote or a label.
    """

    path: Path
    param: ClassVar[str] = "paths"
    is_crowd = False
    columns: tuple[str, ...]
    _dataset: str | None = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns = self._header()
        self._check_header()

    def name_dataset(self, dataset: str) -> None:
        """Take all rows, which have no column dataset, for rows of this one."""
        self._dataset, self.columns = dataset, ("dataset", *self.columns)

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The columns that stand in the table itself."""
        return self.columns if self._dataset is None else self.columns[1:]

    @abstractmethod
    def _header(self) -> tuple[str, ...]:
        """Return the names of the columns, as they stand there."""

    def check_width(self, names: Collection[str], param: str, what: str) -> None:
        """Raise where the table has more columns of judges or people than can be compared."""
        if len(names) > MAX_VOTERS:
            raise InputError(
                f"`{param}` must have at most {MAX_VOTERS:,} {what} columns each. Got {len(names):,} in "
                f"{str(self.path)!r}. Write a row for each item and a column for each {what}."
            )

    def read(self, names: Sequence[str]) -> "dict[str, Column]":
        """Return columns by name, of one length, at least 1."""
        (columns,) = self.pieces(names, None)
        return columns

    def pieces(self, names: Sequence[str], size: int | None, *, whole: bool = False) -> "Iterator[dict[str, Column]]":
        """Yield columns by name, at most `size` rows at a time; None: all rows at once.

        `whole` says that the caller will hold all of them in memory.
        """
        import pyarrow as pa

        # A table read without a column has no rows: where only the named dataset is wanted, any column gives their
        # number.
        own = [name for name in names if name in self.own_columns] or self.own_columns[-1:]
        tables = self._tables(own, size, whole=whole)
        if size is None and (parts := [*tables]):
            tables = iter([pa.concat_tables(parts)])
        start = 0
        for table in tables:
            if self._dataset is not None:
                table = table.append_column("dataset", pa.array([self._dataset] * table.num_rows, pa.string()))
            for at in range(0, table.num_rows, size or max(table.num_rows, 1)):
                piece = table.slice(at, size)
                yield {name: Column(self, name, piece.column(name), start + at) for name in names}
            start += table.num_rows
        if not start:
            raise self.no_rows_error()

    @abstractmethod
    def _tables(self, names: Sequence[str], size: int | None, *, whole: bool) -> "Iterator[pa.Table]":
        """Yield the rows of some columns as Arrow tables, of at most `size` rows where more would fill the memory."""

    def check_votes(self, name: str) -> None:
        """Raise where a cell of a judge that votes is no vote."""
        vote_cells(self.read([name])[name])

    def no_rows_error(self) -> InputError:
        """Return an error for a header alone."""
        return InputError(f"`paths` must name files with at least one row. Got none in {self.path}.")

    def _check_header(self) -> None:
        """Raise where a column has no name, a name that cannot be printed, or that of another column."""
        names: set[str] = set()
        for position, name in enumerate(self.columns, start=1):
            if not name:
                raise InputError(
                    f"`paths` must have a name above every column. Got none above column {position} of {self.path}. "
                    "Save the table without its row index."
                )
            check_name(name, "paths", where=f" above column {position} of {self.path}")
            if name in names:
                raise InputError(f"`paths` must have unique column names. Got {quote(name)} twice in {self.path}.")
            names.add(name)


class FrameSource(Source):
    """A data frame, as a table of Arrow; its rows count from 0."""

    first = 0
    param = "frame"

    def __init__(self, table: "pa.Table") -> None:
        self._table = table
        super().__init__(Path("the frame"))

    def where(self, row: int, column: str) -> str:
        """Return the place of a cell for an error message."""
        return frame_place(row, column)

    def _header(self) -> tuple[str, ...]:
        return tuple(self._table.column_names)

    def _tables(self, names: Sequence[str], size: int | None, *, whole: bool) -> "Iterator[pa.Table]":  # noqa: ARG002
        yield self._table.select(list(names))


class FrameVotes(Protocol):
    """The columns of a :class:`deep.VoteMatrix`."""

    votes: Votes
    item_ids: Texts
    voter_names: tuple[str, ...]
    datasets: Texts
    labels: Labels
    document_ids: Texts | None
    families: Mapping[str, str]


def votes_to_frame(votes: FrameVotes, layout: Layout, library: str) -> object:
    """Return votes as a data frame; parameters and errors as in :meth:`deep.VoteMatrix.to_frame`."""
    check_choice(layout, get_args(Layout), "layout")
    check_choice(library, ("pandas", "polars"), "library")
    table = {"crowd-kit": _crowd_table, "long": _long_table, "wide": wide_table}[layout](votes)
    return table_to_frame(table, library)


def table_to_frame(table: "pa.Table", library: str) -> object:
    """Return a table of Arrow as a frame of pandas or Polars."""
    check_choice(library, ("pandas", "polars"), "library")
    if library == "polars":
        import polars as pl

        return pl.from_arrow(table)
    import pandas as pd
    import pyarrow as pa

    return table.to_pandas(types_mapper={pa.int8(): pd.Int8Dtype()}.get)


def wide_table(votes: FrameVotes) -> "pa.Table":
    """Return votes as a table of Arrow, a row an item."""
    import pyarrow as pa

    clash = next((name for name in votes.voter_names if name in ROLES), None)
    if clash is not None:
        raise InputError(f"`voter_names` must not be one of {', '.join(ROLES)}. Got {clash!r}. Use another layout.")
    voters = {name: votes_array(votes.votes[:, k]) for k, name in enumerate(votes.voter_names)}
    return pa.table(_role_columns(votes, np.arange(len(votes.votes))) | voters)


def _long_table(votes: FrameVotes) -> "pa.Table":
    """Return votes as a long table of Arrow, a row a vote."""
    import pyarrow as pa

    n, k = votes.votes.shape
    cells = {"voter": pa.array(list(votes.voter_names) * n, pa.string()), "vote": votes_array(votes.votes.ravel())}
    return pa.table(_role_columns(votes, np.repeat(np.arange(n), k)) | cells)


def _crowd_table(votes: FrameVotes) -> "pa.Table":
    """Return votes in the layout of crowd-kit, a row a vote: task, worker, label."""
    import pyarrow as pa

    if len(set(votes.datasets)) > 1:
        raise InputError("`layout` must be long or wide for several datasets. Got 'crowd-kit'. Take one by `rows`.")
    rows, codes = np.nonzero(votes.votes != NO_VOTE)
    workers = np.array(votes.voter_names, dtype=object)[codes]
    return pa.table(
        {
            "task": pa.array(votes.item_ids[rows], pa.string()),
            "worker": pa.array(workers, pa.string()),
            "label": pa.array(votes.votes[rows, codes].astype(np.int64)),
        }
    )


def _role_columns(votes: FrameVotes, rows: Positions) -> "dict[str, pa.Array]":
    """Return the columns that are no votes."""
    import pyarrow as pa

    texts = {"dataset": votes.datasets, "item_id": votes.item_ids}
    if votes.document_ids is not None:
        texts["document_id"] = votes.document_ids
    if votes.families:
        texts["family"] = np.array([votes.families.get(name, name) for name in votes.datasets], dtype=object)
    columns = {name: pa.array(values[rows], pa.string()) for name, values in texts.items()}
    return columns | {"label": votes_array(votes.labels[rows])}


def votes_array(values: Labels) -> "pa.Array":
    """Return votes with nothing where there is none."""
    import pyarrow as pa

    return pa.array(values, pa.int8(), mask=values == NO_VOTE)
