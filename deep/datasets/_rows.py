"""The rows of a CSV, JSONL or Parquet file, one at a time, each with the line that it begins on."""

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from deep.exceptions import InputError

__all__ = ["ENDINGS", "Located", "ending_of", "read_rows"]

LONGEST = 1 << 26
"""Characters that a line or a cell may have; nothing longer is ever held in memory."""

ROWS_AT_ONCE = 1000
NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""What Python makes of bytes that are not UTF-8 where it is told to go on."""

Located = tuple[int | None, Mapping[str, Any]]
"""The line that a row begins on, None where the format has no lines; and its cells by column."""


def ending_of(path: Path) -> str | None:
    """Return the ending of a file's name that says how to read it; None where none does."""
    name = path.name.lower()
    return next((ending for ending in ENDINGS if name.endswith(ending)), None)


def read_rows(path: Path, columns: Collection[str], ending: str | None = None) -> Iterator[Located]:
    """Yield the rows of a file, read as its ending or the given one says.

    In a Parquet file only the given columns have values.

    Raises
    ------
    InputError
        The file cannot be read as what its ending says: not there, cut off, not UTF-8, binary, not CSV, JSON or
        Parquet, a line or cell of more than 64 Mi characters. One line that names file and place.
    """
    try:
        yield from _READERS[ending or ending_of(path) or ""](path, columns)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = str(error).rstrip(".")
        raise InputError(
            f"`examples` must be a whole gzip file. Got {str(path)!r}: {reason}. Compress or download it again."
        ) from None
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"`examples` must be readable. Got {str(path)!r}: {reason}. Check its name and rights.") from (
            None
        )


def _open_text(path: Path) -> TextIO:
    compressed = path.name.lower().endswith(".gz")
    opened: Any = gzip.open if compressed else open
    file: TextIO = opened(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
    return file


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a text file; none is longer than what memory is meant to hold."""
    number = 0
    while line := file.readline(LONGEST + 1):
        number += 1
        at = f"in line {number} of {str(path)!r}"
        if len(line) > LONGEST:
            raise InputError(
                f"`examples` must have lines of at most {LONGEST:,} characters. Got a longer one {at}. Split the file "
                "at the ends of its rows."
            )
        wrong = None if line.isascii() else NOT_UTF8.search(line)
        if wrong is not None:
            byte = ord(wrong[0]) - 0xDC00
            raise InputError(f"`examples` must be UTF-8. Got byte 0x{byte:02x} {at}. Save the file as UTF-8 text.")
        if "\0" in line:
            raise InputError(f"`examples` must be text. Got a NUL byte {at}. Save the file as UTF-8 text.")
        yield line


def _read_csv(path: Path, _columns: Collection[str]) -> Iterator[Located]:
    with _open_text(path) as file:
        records = _records(file, path)
        _, header = next(records, (0, []))
        _check_header(header, path)
        for number, (line, cells) in enumerate(records, start=1):
            if len(cells) != len(header):
                raise InputError(
                    f"`examples` must have as many cells as columns. Got row {number} (line {line}) of {str(path)!r}, "
                    f"with {len(cells)} cells under {len(header)} columns. Quote cells that hold a comma."
                )
            yield line, dict(zip(header, cells, strict=True))


def _records(file: TextIO, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a CSV file that are not blank, each with the line that it begins on."""
    reader = csv.reader(_lines(file, path), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = _next_record(reader)
        except csv.Error as error:
            raise InputError(
                f"`examples` must be CSV. Got {str(path)!r}: {error} in the record that begins on line {line}. "
                "Close its quotes, and double those inside a cell."
            ) from None
        if cells is None:
            return
        if cells:
            yield line, cells


def _next_record(reader: Any) -> list[str] | None:
    """Return the next record; the limit of a cell is the whole process's, so it is put back each time."""
    before = csv.field_size_limit(LONGEST)
    try:
        record: list[str] | None = next(reader, None)
    finally:
        csv.field_size_limit(before)
    return record


def _check_header(cells: list[str], path: Path) -> None:
    repeated = next((name for i, name in enumerate(cells) if name in cells[:i]), None)
    if repeated is not None:
        raise InputError(f"`examples` must have unique column names. Got {repeated!r} twice in {str(path)!r}.")


def _read_jsonl(path: Path, _columns: Collection[str]) -> Iterator[Located]:
    with _open_text(path) as file:
        for number, line in enumerate(_lines(file, path), start=1):
            if line.strip():
                yield number, _json_object(line, number, path)


def _json_object(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        row = json.loads(line)
        reason = f"a {type(row).__name__}"
    except RecursionError:
        row, reason = None, "nested too deeply"
    except ValueError as error:
        row, reason = None, str(error).splitlines()[0]
    if not isinstance(row, dict):
        raise InputError(
            f"`examples` must hold a JSON object a line. Got line {number} of {str(path)!r}: {reason}. "
            "Write one object, complete, on each line."
        )
    return row


def _read_parquet(path: Path, columns: Collection[str]) -> Iterator[Located]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            names = file.schema_arrow.names
            present = [name for name in names if name in columns]
            unread = dict.fromkeys(name for name in names if name not in columns)
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=present, use_threads=False):
                rows = batch.to_pylist() if present else [{}]
                yield from ((None, {**unread, **row}) for row in rows)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"`examples` must be Parquet. Got {str(path)!r}: {reason}. Write the file again.") from None


_READERS: dict[str, Callable[[Path, Collection[str]], Iterator[Located]]] = {
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".jsonl": _read_jsonl,
    ".jsonl.gz": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".ndjson.gz": _read_jsonl,
    ".parquet": _read_parquet,
}

ENDINGS = tuple(sorted(_READERS))
