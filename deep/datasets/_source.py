"""One file of a table: its columns, whole or in pieces, where a cell stands, its metadata, and files beside it."""

import io
import json
import math
import re
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from deep._util.checks import check_kind, quote
from deep._util.columns import long_names, unescape_table
from deep._util.files import STAGE, GzipReader, JsonObject, check_regular
from deep._util.frames import DATASET, DEFAULT_DATASET, Frame, FrameSource, Source, frame_table
from deep._util.join import LongSource
from deep._util.names import is_storable
from deep.datasets._rows import (
    ENDINGS,
    EXCEL_SEPARATOR,
    MOST_BLANK,
    MOST_EXPANDED,
    MOST_TIMES,
    N_PROBED_ROWS,
    Located,
    csv_records,
    ending_of,
    open_parquet,
    read_rows,
    separator_of,
)
from deep.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa

# The bytes that the CSV parser takes at once; a single row may not be longer.
BLOCK_SIZE = 1 << 26

# The most bytes of a CSV file, uncompressed: what memory is meant to hold.
MOST_BYTES = 1 << 31

# The most bytes that a CSV file compressed by gzip may hold: rows of a few characters take 30 times that in memory.
MOST_GZIPPED = 3 << 23


# The most cells, and characters of them, that are in memory as Python's texts at once.
CELLS_AT_ONCE = 1 << 22

# The bytes of a cell in memory, empty or not: those of a score.
BYTES_OF_A_CELL = 8

# Columns that pandas adds to a Parquet file for an index without a name.
PANDAS_INDEX = re.compile(r"__index_level_\d+__")


PACK_TABLE = "pack.parquet"
"""The table of votes in the folder that `deep data pack` writes."""


def table_in(path: str | Path) -> Path:
    """Return the table of votes where a path is the folder of a pack, else the path."""
    packed = Path(path) / PACK_TABLE
    return packed if packed.is_file() else Path(path)


def file_metadata(path: str | Path) -> JsonObject:
    """Return the metadata that deep wrote into a Parquet file; nothing where there are none, or it cannot be read."""
    path = table_in(path)
    if not (str(path).lower().endswith(".parquet") and path.is_file()):
        return {}
    try:
        with open_parquet(path, "paths") as table:
            metadata = json.loads((table.file.schema_arrow.metadata or {}).get(b"deep", b"{}"))
    except (RecursionError, ValueError):  # an InputError is one
        return {}
    return metadata if isinstance(metadata, dict) else {}


# The files that `deep ask` writes beside a table of votes.
KINDS_BESIDE = ("judgments", "reasons", "soft")


def file_beside(votes_path: str | Path, kind: str) -> Path:
    """Return where a file lies beside a table of votes: its judgments, reasons or soft votes.

    Examples
    --------
    >>> from deep.datasets import file_beside
    >>> file_beside("runs/votes.parquet", "judgments").name
    'votes.judgments.parquet'
    """
    path = table_in(votes_path)
    stem = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    return path.parent / f"{stem}.{kind}.parquet"  # also of a folder without a name, which no reader takes


def read_beside(votes_path: str | Path, kind: str) -> Path | None:
    """Return the file of a kind beside a table of votes; None where there is none.

    Raises
    ------
    InputError
        It is of another run than the votes. A file that names no run (CSV, of an older deep, rewritten by another
        tool) may be of any.
    """
    path = file_beside(votes_path, kind)
    if not path.exists():
        return None
    runs = [file_metadata(file).get("run") for file in (votes_path, path)]
    # A kill between two files of a run leaves one old and one new: votes must not be read with the reasons of others.
    if None not in runs and runs[0] != runs[1]:
        rest = [str(place.parent) for place in sorted(path.parent.glob(f".deep-*.part/{STAGE}/*")) if place.is_file()]
        remedy = f"move the files of {rest[0]!r} here, or " if rest else ""
        raise InputError(
            f"`paths` must lie beside files of the same run. Got {str(votes_path)!r} and {str(path)!r}, of two runs. "
            f"To mend it, {remedy}run `deep ask` again: nothing is asked twice."
        )
    return path


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
    if suffix.endswith((".csv", ".csv.gz")):
        return CsvSource(path)
    if suffix.endswith(".parquet"):
        return ParquetSource(path)
    if ending_of(path) is not None:
        return JsonSource(path)
    raise InputError(f"`paths` must end in one of {', '.join(ENDINGS)}. Got {path}.")


def open_table(path: "str | Path | Frame") -> Source:
    """Open a table of votes, scores or labels: a long one as the wide one that it is, with the dataset given."""
    source = open_source(path)
    names = long_names(source.columns)
    dataset = DATASET.get() or (DEFAULT_DATASET if names.get("item_id") == "task" else None)
    if dataset is not None and "dataset" not in source.columns:
        source.name_dataset(dataset)
    return LongSource(source, names) if names else source


class CsvSource(Source):
    """A comma-separated file in UTF-8, plain or compressed by gzip."""

    def _header(self) -> tuple[str, ...]:
        self._raw = self._raw_bytes()
        try:
            self._raw.decode("utf-8")
        except UnicodeDecodeError:
            self._raise_fault()
        # Arrow would read on. The reader of rows is slow but names the line, so it is called where something is wrong.
        if b"\0" in self._raw or any(end * MOST_BLANK in self._raw for end in (b"\n", b"\r", b"\r\n")):
            self._raise_fault()
        first = self._raw.lstrip(b"\r\n").partition(b"\n")[0].decode("utf-8")
        self._separator, self._skipped = separator_of(first), EXCEL_SEPARATOR.fullmatch(first) is not None
        header = next(self._records(), None)
        if header is None:
            raise InputError(f"`paths` must name files with a header. Got only blank lines in {self.path}.")
        return tuple(header[1])

    def _raw_bytes(self) -> bytearray:
        raw = bytearray()
        try:
            compressed = self.path.name.lower().endswith(".gz")
            with GzipReader(self.path, "paths", MOST_GZIPPED) if compressed else self.path.open("rb") as file:
                while block := file.read(BLOCK_SIZE // 16):
                    raw += block
                    self._check_size(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise self._unreadable(error) from None
        return raw

    def _unreadable(self, error: Exception) -> InputError:
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        return InputError(f"`paths` must name readable CSV files. Got {self.path}: {reason}.")

    def _check_size(self, raw: bytearray) -> None:
        if len(raw) > MOST_BYTES:
            raise InputError(
                f"`paths` must name CSV files of at most {MOST_BYTES:,} bytes, uncompressed. Got more in {self.path}. "
                "Split it, or write it as Parquet."
            )
        if len(raw) > BLOCK_SIZE and all(raw.rfind(end, len(raw) - BLOCK_SIZE) < 0 for end in (b"\n", b"\r")):
            raise InputError(
                f"`paths` must name CSV files with lines of at most {BLOCK_SIZE:,} bytes. Got a longer one in "
                f"{self.path}. End each row with a line end."
            )

    def _raise_fault(self) -> None:
        """Raise for the first row that is none, which the reader of one row at a time finds with its line."""
        deque(read_rows(self.path, (), ".csv", param="paths", content=self._raw), maxlen=0)

    def _records(self, tail: bytes = b"") -> Iterator[tuple[int, list[str]]]:
        """Yield the records, header first, each with the line that it begins on."""
        text = io.TextIOWrapper(io.BytesIO(self._raw + tail), encoding="utf-8-sig", newline="")
        return csv_records(text, len(self._raw) + 1, strict=False, param="paths", path=self.path)

    def _row(self, row: int) -> str:
        line, _ = next(islice(self._records(), row + 1, None))
        return f"row {row + 1} (line {line})"

    def _tables(self, names: Sequence[str], size: int | None, *, whole: bool) -> "Iterator[pa.Table]":  # noqa: ARG002
        """Yield the columns as text, all rows parsed at once; an empty cell is an empty string."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        self._check_quotes()
        try:
            # All as text: a guessed type reads 007 as 7, and an error could not show a cell as it stands in the file.
            table = arrow_csv.read_csv(
                pa.BufferReader(self._raw),
                read_options=arrow_csv.ReadOptions(
                    use_threads=False, block_size=BLOCK_SIZE, skip_rows=int(self._skipped)
                ),
                parse_options=arrow_csv.ParseOptions(newlines_in_values=True, delimiter=self._separator),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=list(names), column_types=dict.fromkeys(names, pa.string())
                ),
            )
        except pa.ArrowException as error:
            if next(islice(self._records(), 1, None), None) is None:
                return  # a header alone
            self._raise_fault()
            raise self._unreadable(error) from None
        yield unescape_table(table)

    def _check_quotes(self) -> None:
        """Raise where a quote is never closed: the parser would take the rest of the file for one cell."""
        # Arrow reads on in a quote that is never closed, to the end of the file and without an error. An odd number of
        # quotes is where that may be.
        if self._raw.count(b'"') % 2 == 0:
            return
        # A further line of its own: if it comes back as part of the record before, that record's quote is open.
        sentinel = "end"
        ((line, last),) = deque(self._records(f"\n{sentinel}".encode()), maxlen=1)
        if last != [sentinel]:
            raise InputError(
                f"`paths` must name CSV files whose quotes are closed. Got one left open in {self.path}, in the "
                f"record that begins on line {line}."
            )


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


class JsonSource(Source):
    """A file of JSON objects, one a line or all in one array, whose cells are read as those of a CSV file are.

    Its columns are those of the first rows; a row may leave out what is empty.
    """

    def _header(self) -> tuple[str, ...]:
        # Rows of JSON may leave empty cells out, so that the first row need not have every column.
        columns = dict.fromkeys(name for _, row in islice(self._rows(), N_PROBED_ROWS) for name in row)
        if not columns:
            raise self.no_rows_error()
        return tuple(columns)

    def _rows(self) -> Iterator[Located]:
        return read_rows(self.path, (), param="paths")

    def _tables(self, names: Sequence[str], size: int | None, *, whole: bool) -> "Iterator[pa.Table]":  # noqa: ARG002
        import pyarrow as pa

        columns: dict[str, list[str]] = {name: [] for name in names}
        names_of_columns, size_in_memory = frozenset(self.columns), 0
        most = max(MOST_EXPANDED, MOST_TIMES * self.path.stat().st_size) // BYTES_OF_A_CELL
        for number, located in enumerate(chain(self._rows(), [None]), start=1):
            if located is None or size_in_memory >= CELLS_AT_ONCE or len(columns[names[0]]) == size:
                yield pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
                columns, size_in_memory = {name: [] for name in names}, 0
            if located is None:
                break
            line, row = located
            if not names_of_columns.issuperset(row):
                name = next(name for name in row if name not in names_of_columns)
                raise InputError(
                    f"`paths` must have its columns in the first {N_PROBED_ROWS} rows. Got another one at {self.path}, "
                    f"column {quote(name)}, row {number} (line {line}). Write it in the first row, with null where it "
                    "is empty."
                )
            for name, cells in columns.items():
                cells.append(self._text(row.get(name), name, number, line))
                size_in_memory += 1 + len(cells[-1])
            # A row of JSON may leave all columns out, and still takes a cell of each in memory.
            if number * len(names) > most:
                raise InputError(
                    f"`paths` must name JSON files of at most {most:,} cells, the empty ones counted in. Got more in "
                    f"{self.path}: its first {number:,} rows. Write it as Parquet."
                )

    def _text(self, cell: object, name: str, number: int, line: int | None) -> str:
        """Return a cell as it would stand in a CSV file."""
        is_wrong = cell in (math.inf, -math.inf) or (isinstance(cell, str) and not is_storable(cell))
        if not isinstance(cell, str | int | float | None) or is_wrong:
            raise InputError(
                f"`paths` must have text, numbers, true, false or null in its cells. Got {quote(cell)} at {self.path}, "
                f"column {quote(name)}, row {number} (line {line})."
            )
        is_whole = isinstance(cell, float) and cell.is_integer()
        # NaN, which json writes for a missing value, is no name of an item.
        return "" if cell is None or cell != cell else str(int(cell) if is_whole else cell)

    def _row(self, row: int) -> str:
        line, _ = next(islice(self._rows(), row, None))
        return f"row {row + 1} (line {line})"
