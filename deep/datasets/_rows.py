"""The rows of a CSV, JSONL or Parquet file, one at a time, each with the line that it begins on."""

import csv
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from deep._util.files import MOST_INFLATED, GzipReader, check_regular
from deep.datasets._parquet import open_parquet
from deep.exceptions import InputError


def csv_records(lines: Iterable[str], longest: int, *, strict: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the records that are not blank, header first, each with the line that it begins on, from 1.

    Parameters
    ----------
    lines : iterable of str
        With their ends.
    longest : int
        Characters that a cell may have.
    strict : bool
        Whether a misplaced quote is an error.

    Raises
    ------
    csv.Error
        A record is no CSV or a cell is too long; the message says on which line the record begins.
    """
    reader = csv.reader(lines, strict=strict)
    while True:
        line = reader.line_num + 1
        # The limit of a cell is the whole process's, so it is put back after every record.
        before = csv.field_size_limit(longest)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise csv.Error(f"{error} in the record that begins on line {line}") from None
        finally:
            csv.field_size_limit(before)
        if cells is None:
            return
        if cells:
            yield line, cells


LONGEST = 1 << 26
"""Characters that a line or a cell may have; nothing longer is ever held in memory."""

ROWS_AT_ONCE = 1000
NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""Lone surrogates: `surrogateescape` decodes bytes that are not UTF-8 to them."""

FileRow = Mapping[str, Any]
"""Cells by column; what type they have depends on the file."""

Located = tuple[int | None, FileRow]
"""The line that a row begins on, None where the format has no lines; and its cells by column."""


def ending_of(path: Path) -> str | None:
    """Return the ending of a file's name that says how to read it; None where none does."""
    name = path.name.lower()
    return next((ending for ending in ENDINGS if name.endswith(ending)), None)


@dataclass(frozen=True)
class _File:
    """A file, by the name of the parameter that it was given as; short rows of CSV are filled up where `pad`.

    Where there is `content`, nothing is read from the disk.
    """

    path: Path
    param: str
    pad: bool
    content: bytes | None = None

    def __str__(self) -> str:
        return repr(str(self.path))

    def text(self) -> TextIO:
        compressed = self.path.name.lower().endswith(".gz")
        if self.content is not None:
            raw: BinaryIO | GzipReader = io.BytesIO(self.content)
        else:
            raw = GzipReader(self.path, self.param, MOST_INFLATED) if compressed else self.path.open("rb")
        return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape", newline="")


def read_rows(
    path: Path,
    columns: Collection[str],
    ending: str | None = None,
    *,
    param: str = "examples",
    pad: bool = False,
) -> Iterator[Located]:
    """Yield the rows of a file, read as its ending or the given one says.

    In a Parquet file only the given columns have values. With `pad`, the cells that a row of CSV lacks are empty.

    Raises
    ------
    InputError
        The file cannot be read as what its ending says: not there, cut off, not UTF-8, binary, not CSV, JSON or
        Parquet, a line or cell of more than 64 Mi characters. One line that names `param`, file and place.
    """
    file = _File(path, param, pad)
    try:
        check_regular(path, param)
        yield from _READERS[ending or ending_of(path) or ""](file, columns)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = str(error).rstrip(".")
        raise InputError(
            f"`{param}` must be a whole gzip file. Got {file}: {reason}. Compress or download it again."
        ) from None
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"`{param}` must be readable. Got {file}: {reason}. Check its name and rights.") from None


def rows_of_text(content: bytes, name: str) -> Iterator[Located]:
    """Yield the rows of a text that stands for a file of some name, which ends in one of `TEXT_ENDINGS`.

    Raises
    ------
    InputError
        As :func:`read_rows`.
    """
    return _READERS[ending_of(Path(name)) or ""](_File(Path(name), "examples", pad=False, content=content), ())


def _lines(text: TextIO, file: _File) -> Iterator[str]:
    """Yield the lines of a text file; none is longer than what memory is meant to hold."""
    number = 0
    while line := text.readline(LONGEST + 1):
        number += 1
        at = f"in line {number} of {file}"
        if len(line) > LONGEST:
            raise InputError(
                f"`{file.param}` must have lines of at most {LONGEST:,} characters. Got a longer one {at}. Split "
                "the file at the ends of its rows."
            )
        wrong = None if line.isascii() else NOT_UTF8.search(line)
        if wrong is not None:
            byte = ord(wrong[0]) - 0xDC00
            raise InputError(f"`{file.param}` must be UTF-8. Got byte 0x{byte:02x} {at}. Save the file as UTF-8 text.")
        if "\0" in line:
            raise InputError(f"`{file.param}` must be text. Got a NUL byte {at}. Save the file as UTF-8 text.")
        yield line


def _read_csv(file: _File, _columns: Collection[str]) -> Iterator[Located]:
    try:
        with file.text() as text:
            records = csv_records(_lines(text, file), LONGEST, strict=True)
            _, header = next(records, (0, []))
            _check_header(header, file)
            for number, (line, cells) in enumerate(records, start=1):
                if len(cells) > len(header) or (len(cells) < len(header) and not file.pad):
                    raise InputError(
                        f"`{file.param}` must have as many cells as columns. Got row {number} (line {line}) of "
                        f"{file}, with {len(cells)} cells under {len(header)} columns. Quote cells that hold a comma."
                    )
                yield line, dict(zip_longest(header, cells, fillvalue=""))
    except csv.Error as error:
        raise InputError(
            f"`{file.param}` must be CSV. Got {file}: {error}. Close its quotes, and double those inside a cell."
        ) from None


def _check_header(cells: list[str], file: _File) -> None:
    repeated = next((name for name, times in Counter(cells).items() if times > 1), None)
    if repeated is not None:
        raise InputError(f"`{file.param}` must have unique column names. Got {repeated!r} twice in {file}.")


def _read_jsonl(file: _File, _columns: Collection[str]) -> Iterator[Located]:
    with file.text() as text:
        for number, line in enumerate(_lines(text, file), start=1):
            if line.strip():
                yield number, _json_object(line, number, file)


def _json_object(line: str, number: int, file: _File) -> FileRow:
    try:
        row = json.loads(line)
        reason = f"a {type(row).__name__}"
    except RecursionError:
        row, reason = None, "nested too deeply"
    except ValueError as error:
        row, reason = None, str(error).splitlines()[0]
    if not isinstance(row, dict):
        raise InputError(
            f"`{file.param}` must hold a JSON object a line. Got line {number} of {file}: {reason}. "
            "Write one object, complete, on each line."
        )
    return row


def _read_parquet(file: _File, columns: Collection[str]) -> Iterator[Located]:
    import pyarrow as pa

    try:
        with open_parquet(file.path, file.param) as table:
            names = table.names
            present = [name for name in names if name in columns]
            unread = dict.fromkeys(name for name in names if name not in columns)
            for batch in table.batches(present, ROWS_AT_ONCE):
                rows = batch.to_pylist() if present else [{}]
                yield from ((None, {**unread, **row}) for row in rows)
    except InputError:
        raise
    except (pa.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"`{file.param}` must be Parquet. Got {file}: {reason}. Write the file again.") from None


_READERS: dict[str, Callable[[_File, Collection[str]], Iterator[Located]]] = {
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".jsonl": _read_jsonl,
    ".jsonl.gz": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".ndjson.gz": _read_jsonl,
    ".parquet": _read_parquet,
}

ENDINGS = tuple(sorted(_READERS))

TEXT_ENDINGS = (".csv", ".jsonl", ".ndjson")
"""Of files that a text can stand for."""
