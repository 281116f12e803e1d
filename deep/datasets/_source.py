"""One file of a table: its columns, the cells of a column, and where a row stands in it."""

import csv
import gzip
import io
import re
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from deep.exceptions import InputError

__all__ = ["Source", "open_source", "shown"]

BLOCK_SIZE = 1 << 26
"""Bytes that the CSV parser takes at once; a single row may not be longer."""

LINE_END = re.compile(rb"\r\n|\r|\n")

PANDAS_INDEX = re.compile(r"__index_level_\d+__")
"""Columns that pandas adds to a Parquet file for an index without a name."""


def shown(value: Any) -> str:
    """Return a value for an error message: on one line, and not longer than 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]}...{text[-1]}"


def open_source(path: str | Path) -> "Source":
    """Open a CSV or Parquet file by its suffix, and read its header."""
    path = Path(path)
    suffix = path.name.lower()
    if not path.exists():
        raise InputError(f"`paths` must name existing files. Got {path}.")
    if path.is_dir():
        raise InputError(f"`paths` must name files. Got the folder {path}.")
    if suffix.endswith((".csv", ".csv.gz")):
        return CsvSource(path)
    if suffix.endswith(".parquet"):
        return ParquetSource(path)
    raise InputError(f"`paths` must end in .csv, .csv.gz or .parquet. Got {path}.")


class Source(ABC):
    """A file with named columns.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    columns : tuple of str
        Unique, not empty, in the order of the file.
    """

    kind: str
    columns: tuple[str, ...]

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns = self._header()
        self._check_header()

    @abstractmethod
    def _header(self) -> tuple[str, ...]:
        """Return the names of the columns, as they stand there."""

    @abstractmethod
    def read(self, names: Sequence[str]) -> dict[str, Any]:
        """Return columns by name, as Arrow's chunked arrays of one length, at least 1."""

    def where(self, row: int, column: str) -> str:
        """Return the place of a cell for an error message; `row` counts data rows from 0."""
        return f"{self.path}, column {shown(column)}, {self._row(row)}"

    def _row(self, row: int) -> str:
        return f"row {row + 1}"

    def unreadable(self, error: Exception) -> InputError:
        """Return an error for a file that cannot be read as what its suffix says."""
        reason = str(error).strip().split("\n", 1)[0].rstrip(".") or type(error).__name__
        return InputError(f"`paths` must name readable {self.kind} files. Got {self.path}: {reason}.")

    def without_rows(self) -> InputError:
        """Return an error for a file that has a header and nothing below it."""
        return InputError(f"`paths` must name files with at least one row. Got none in {self.path}.")

    def _raw_bytes(self) -> bytes:
        try:
            raw = self.path.read_bytes()
            if self.path.name.lower().endswith(".gz"):
                raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise self.unreadable(error) from None
        if not raw:
            raise InputError(f"`paths` must name files that are not empty. Got {self.path}.")
        return raw

    def _check_header(self) -> None:
        seen: set[str] = set()
        for position, name in enumerate(self.columns, start=1):
            if not name:
                raise InputError(
                    f"`paths` must have a name above every column. Got none above column {position} of {self.path}. "
                    "Save the table without its row index."
                )
            if name in seen:
                raise InputError(f"`paths` must have unique column names. Got {shown(name)} twice in {self.path}.")
            seen.add(name)


def _walk(raw: bytes) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8-sig", newline=""))
    line = 1
    for fields in reader:
        if fields:
            yield line, fields
        line = reader.line_num + 1


class CsvSource(Source):
    """A comma-separated file in UTF-8, plain or compressed by gzip."""

    kind = "CSV"

    def _header(self) -> tuple[str, ...]:
        self._raw = self._raw_bytes()
        self._check_text()
        with self._records() as records:
            first = next(records, None)
        if first is None:
            raise InputError(f"`paths` must name files with a header. Got only blank lines in {self.path}.")
        return tuple(first[1])

    def _check_text(self) -> None:
        try:
            self._raw.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong, at = f"byte 0x{self._raw[error.start]:02x}", error.start
        else:
            wrong, at = "a NUL byte", self._raw.find(b"\0")
        if at >= 0:
            line = len(LINE_END.findall(self._raw, 0, at)) + 1
            raise InputError(f"`paths` must name text files in UTF-8. Got {wrong} at {self.path}, line {line}.")

    @contextmanager
    def _records(self, tail: bytes = b"") -> Iterator[Iterator[tuple[int, list[str]]]]:
        """Give the records, header first, each with the line that it begins on; blank lines are skipped."""
        limit = csv.field_size_limit(len(self._raw) + 1)
        try:
            yield _walk(self._raw + tail)
        finally:
            csv.field_size_limit(limit)

    def _row(self, row: int) -> str:
        with self._records() as records:
            line, _ = next(islice(records, row + 1, None))
        return f"row {row + 1} (line {line})"

    def read(self, names: Sequence[str]) -> dict[str, Any]:
        """Return columns by name as text; an empty cell is an empty string."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        self._check_quotes()
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(self._raw),
                read_options=arrow_csv.ReadOptions(use_threads=False, block_size=BLOCK_SIZE),
                parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=list(names), column_types=dict.fromkeys(names, pa.string())
                ),
            )
        except pa.ArrowException as error:
            raise self._diagnose(error) from None
        if not table.num_rows:
            raise self.without_rows()
        return {name: table.column(name) for name in names}

    def _check_quotes(self) -> None:
        """Raise where a quote is never closed: the parser would take the rest of the file for one cell."""
        if self._raw.count(b'"') % 2 == 0:
            return
        sentinel = "end"
        with self._records(f"\n{sentinel}".encode()) as records:
            ((line, last),) = deque(records, maxlen=1)
        if last != [sentinel]:
            raise InputError(
                f"`paths` must name CSV files whose quotes are closed. Got one left open in {self.path}, in the "
                f"record that begins on line {line}."
            )

    def _diagnose(self, error: Exception) -> InputError:
        """Return the reason why the parser refused the file."""
        width, row = len(self.columns), -1
        with self._records() as records:
            for row, (line, fields) in enumerate(records, start=-1):
                if len(fields) != width:
                    return InputError(
                        f"`paths` must have {width} cells in every row, like the header. "
                        f"Got {len(fields)} at {self.path}, row {row + 1} (line {line})."
                    )
        return self.unreadable(error) if row >= 0 else self.without_rows()


class ParquetSource(Source):
    """A Parquet file."""

    kind = "Parquet"

    def _header(self) -> tuple[str, ...]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            self._file = parquet.ParquetFile(pa.BufferReader(self._raw_bytes()))
            names = self._file.schema_arrow.names
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self.unreadable(error) from None
        return tuple(name for name in names if not PANDAS_INDEX.fullmatch(name))

    def read(self, names: Sequence[str]) -> dict[str, Any]:
        """Return columns by name, in their own types."""
        import pyarrow as pa

        try:
            table = self._file.read(columns=list(names), use_threads=False)
            table.validate(full=True)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self.unreadable(error) from None
        if not table.num_rows:
            raise self.without_rows()
        return {name: table.column(name) for name in names}
