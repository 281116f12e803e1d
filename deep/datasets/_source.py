"""One file of a table: its columns, whole or a piece at a time, and where a cell stands in it."""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from deep._util.checks import check_kind, shown
from deep._util.columns import long_names, read_table
from deep._util.files import check_regular
from deep._util.frames import DATASET, UNNAMED, Frame, FrameSource, Source, frame_table
from deep._util.join import LongSource
from deep._util.names import is_storable
from deep.datasets._rows import (
    ENDINGS,
    MOST_EXPANDED,
    MOST_TIMES,
    PROBED,
    FileRow,
    Located,
    ending_of,
    open_parquet,
    read_rows,
)
from deep.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa

# The most cells, and characters of them, that are in memory as Python's texts at once.
CELLS_AT_ONCE = 1 << 22

# The bytes of a cell in memory, empty or not: those of a score.
BYTES_OF_A_CELL = 8

# Columns that pandas adds to a Parquet file for an index without a name.
PANDAS_INDEX = re.compile(r"__index_level_\d+__")


PACKED = "pack.parquet"
"""The table of votes in the folder that `deep data pack` writes."""


def table_in(path: str | Path) -> Path:
    """Return the table of votes where a path is the folder of a pack, else the path."""
    packed = Path(path) / PACKED
    return packed if packed.is_file() else Path(path)


def open_source(path: "str | Path | Frame") -> Source:
    """Open a CSV, JSON or Parquet file by its suffix, and read its header; or a data frame."""
    if isinstance(path, Frame):
        return FrameSource(frame_table(path))
    check_kind(path, (str, PathLike), "paths", "the path of a file, or several in a list")
    path = table_in(path)
    suffix = path.name.lower()
    if not path.exists():
        raise InputError(f"`paths` must name existing files. Got {path}.")
    check_regular(path, "paths")
    if not path.stat().st_size:
        raise InputError(f"`paths` must name files that are not empty. Got {path}.")
    if suffix.endswith(".parquet"):
        return ParquetSource(path)
    if ending_of(path) is not None:
        return RowSource(path)
    raise InputError(f"`paths` must end in one of {', '.join(ENDINGS)}. Got {path}.")


def open_table(path: "str | Path | Frame") -> Source:
    """Open a table of votes, scores or labels: a long one as the wide one that it is, with the dataset given."""
    source = open_source(path)
    names = long_names(source.columns)
    dataset = DATASET.get() or (UNNAMED if names.get("item_id") == "task" else None)
    if dataset is not None and "dataset" not in source.columns:
        source.name_dataset(dataset)
    return LongSource(source, names) if names else source


class ParquetSource(Source):
    """A Parquet file."""

    def _header(self) -> tuple[str, ...]:
        with open_parquet(self.path, "paths") as table:
            return tuple(name for name in table.names if not PANDAS_INDEX.fullmatch(name))

    def _tables(self, names: Sequence[str], size: int | None, *, whole: bool) -> "Iterator[pa.Table]":
        """Yield columns in their own types; with a `size`, no more of the file is in memory than a group of rows."""
        with open_parquet(self.path, "paths") as table:
            for rows in table.tables(names, size, whole=whole):
                rows.validate(full=True)
                yield rows


class RowSource(Source):
    """A file of CSV, or of JSON objects, one a line or all in one array; its cells are text, as they stand in CSV.

    The columns of JSON are those of the first rows; a row may leave out what is empty.
    """

    def __init__(self, path: Path) -> None:
        self._is_csv = path.name.lower().endswith((".csv", ".csv.gz"))
        super().__init__(path)

    def _header(self) -> tuple[str, ...]:
        # Rows of JSON may leave empty cells out, so that the first row need not have every column.
        first = islice(self._rows(), 1 if self._is_csv else PROBED)
        columns = tuple(dict.fromkeys(name for _, row in first for name in row))
        if not columns:
            raise self.without_rows()
        return columns

    def _rows(self) -> Iterator[Located]:
        return read_rows(self.path, (), param="paths")

    def _tables(self, names: Sequence[str], size: int | None, *, whole: bool) -> "Iterator[pa.Table]":  # noqa: ARG002
        import pyarrow as pa

        tables: list[pa.Table] = []
        rows: list[list[str]] = []
        known, n_characters = frozenset(self.columns), 0
        most = max(MOST_EXPANDED, MOST_TIMES * self.path.stat().st_size) // BYTES_OF_A_CELL
        for number, located in enumerate(chain(self._rows(), [None]), start=1):
            if located is None or n_characters >= CELLS_AT_ONCE or len(rows) == size:
                columns = dict(zip(names, zip(*rows, strict=True), strict=False)) if rows else dict.fromkeys(names, ())
                table = pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
                tables.append(read_table(table) if self._is_csv else table)
                rows, n_characters = [], 0
                if size is not None:
                    yield tables.pop()
            if located is None:
                break
            line, row = located
            if self._is_csv:
                rows.append([row[name] for name in names])
            else:
                self._check_names(row, known, number, line)
                rows.append([self._text(row.get(name), name, number, line) for name in names])
            n_characters += len(names) + sum(map(len, rows[-1]))
            # A row of JSON may leave all columns out, and still takes a cell of each in memory.
            if number * len(names) > most:
                raise InputError(
                    f"`paths` must name files of at most {most:,} cells, the empty ones counted in. Got more in "
                    f"{self.path}: its first {number:,} rows. Write it as Parquet."
                )
        if tables:
            yield pa.concat_tables(tables)

    def _check_names(self, row: FileRow, known: Collection[str], number: int, line: int | None) -> None:
        name = next((name for name in row if name not in known), None)
        if name is not None:
            raise InputError(
                f"`paths` must have its columns in the first {PROBED} rows. Got another one at {self.path}, column "
                f"{shown(name)}, row {number} (line {line}). Write it in the first row, with null where it is empty."
            )

    def _text(self, cell: object, name: str, number: int, line: int | None) -> str:
        """Return a cell as it would stand in a CSV file."""
        is_wrong = cell in (math.inf, -math.inf) or (isinstance(cell, str) and not is_storable(cell))
        if not isinstance(cell, str | int | float | None) or is_wrong:
            raise InputError(
                f"`paths` must have text, numbers, true, false or null in its cells. Got {shown(cell)} at {self.path}, "
                f"column {shown(name)}, row {number} (line {line})."
            )
        is_whole = isinstance(cell, float) and cell.is_integer()
        # NaN, which json writes for a missing value, is no name of an item.
        return "" if cell is None or cell != cell else str(int(cell) if is_whole else cell)

    def _row(self, row: int) -> str:
        line, _ = next(islice(self._rows(), row, None))
        return f"row {row + 1} (line {line})"
