"""The rows of a CSV, JSONL or Parquet file, one at a time and within bounds, each with the line that it begins on."""

import csv
import gzip
import io
import json
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from deep._util.checks import quote
from deep._util.files import MAX_INFLATED_BYTES, GzipReader, check_regular
from deep.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet


# Bytes that any file may take in memory, how many times its own size a larger one may, and bytes of the largest.
MOST_EXPANDED, MOST_TIMES, MAX_BATCH_BYTES = 1 << 29, 64, 1 << 34

# The most bytes of a column's texts in rows that are read together.
MOST_AT_ONCE = 1 << 26

# Bytes of the part that lists the columns, and entries of any list there.
LARGEST_FOOTER, MOST_LISTED = 1 << 24, 1 << 17

# The bytes that are kept of each row to find one that comes twice, and those of a cell of a list in Python.
BYTES_OF_A_HASH, BYTES_OF_A_NESTED_CELL = 8, 64

# The most that Arrow may take of a footer.
THRIFT_LIMITS = {"thrift_string_size_limit": LARGEST_FOOTER, "thrift_container_size_limit": MOST_LISTED}

# A column of fewer bytes is not looked into: any of its texts may be that long.
SHORT_COLUMN_BYTES = 1 << 9

# The encoding of texts that begin like the one before: any may be as long as the column.
PREFIX_ENCODING = "DELTA_BYTE_ARRAY"

# Physical types whose cells may be longer than the bytes that stand for them.
TEXTS = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file that is open.

    Parameters
    ----------
    path : Path
        Of the file, as errors name it.
    param : str
        The parameter that the file was given as.
    file : pyarrow.parquet.ParquetFile
        Open for reading; whoever opened it closes it.
    """

    path: Path
    param: str
    file: "parquet.ParquetFile"

    @cached_property
    def schema(self) -> "pa.Schema":
        """The columns with their types; Arrow makes it anew each time that its file is asked."""
        return self.file.schema_arrow

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.schema.names)

    @cached_property
    def most(self) -> int:
        """Bytes that may be in memory at once."""
        return min(max(MOST_EXPANDED, MOST_TIMES * self.path.stat().st_size), MAX_BATCH_BYTES)

    def tables(self, columns: Sequence[str], size: int | None, *, whole: bool = False) -> "Iterator[pa.Table]":
        """Yield some columns, at most `size` rows at a time; None: all rows at once. `whole`: as of `batches`."""
        import pyarrow as pa

        batches: list[pa.RecordBatch] = []
        n = n_bytes = read = 0
        # Arrow's batches end where groups of rows do; callers want pieces of one size.
        for batch in self.batches(columns, size, whole=whole or size is None):
            while True:
                batches.append(batch if size is None else batch.slice(0, size - n))
                n, n_bytes, read = n + batches[-1].num_rows, n_bytes + batches[-1].nbytes, read + batches[-1].num_rows
                self._check(n_bytes, f"its first {read:,} rows")
                if n != size:
                    break
                yield pa.Table.from_batches(batches)
                batch = batch.slice(batches[-1].num_rows)
                batches, n, n_bytes = [], 0, n_bytes if whole else 0
        if n:
            yield pa.Table.from_batches(batches)

    def batches(self, columns: Sequence[str], size: int | None, *, whole: bool = False) -> "Iterator[pa.RecordBatch]":
        """Yield some columns, at most `size` rows at a time; raise before any is read where they take too much memory.

        With `whole`, all that is yielded is meant to be held.
        """
        import pyarrow as pa

        rows = self._rows_at_once(columns, whole)
        for batch in self.file.iter_batches(min(rows, size or rows), columns=list(columns), use_threads=False):
            # Cells that are numbers of a dictionary are written out while they are few.
            plain = [
                column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
                for column in batch.columns
            ]
            yield pa.RecordBatch.from_arrays(plain, names=batch.schema.names)

    def _rows_at_once(self, columns: Sequence[str], whole: bool) -> int:
        """Return how many rows may be read together, as the footer says, and one row of each dictionary of texts."""
        from pyarrow import parquet

        metadata, schema, names = self.file.metadata, self.file.schema, frozenset(columns)
        self._check(metadata.num_rows * BYTES_OF_A_HASH, f"{metadata.num_rows:,} rows")
        leaves = []
        for index in range(len(schema)):
            leaf = schema.column(index)
            # A part of a column has its name before a dot; a dot may also stand in a name.
            name = next((name for name in accumulate(leaf.path.split("."), "{}.{}".format) if name in names), None)
            if name is not None:
                leaves.append((index, leaf, name))
        paths = [leaf.path for _, leaf, _ in leaves if leaf.physical_type in TEXTS]
        n_bytes, longest = 0, 1
        # As dictionaries, so that one cell read shows the longest distinct text of a group without unfolding all of
        # them.
        with parquet.ParquetFile(self.path, read_dictionary=paths, pre_buffer=False, **THRIFT_LIMITS) as texts:
            for number in range(metadata.num_row_groups):
                group, expanded = metadata.row_group(number), 0
                for index, leaf, name in leaves:
                    chunk = group.column(index)
                    expanded += chunk.total_uncompressed_size
                    self._check(expanded, f"a group of rows, {quote(name)}", "Write smaller groups of rows")
                    # Other cells than those of lists are held no longer than the rows that are read together.
                    if leaf.max_repetition_level:
                        n_bytes += chunk.num_values * BYTES_OF_A_NESTED_CELL
                    elif whole:
                        n_bytes += chunk.num_values * self._width(name)
                    self._check(n_bytes, f"column {quote(name)} with {chunk.num_values:,} cells")
                    if leaf.physical_type in TEXTS:
                        longest = max(longest, leaf.length or _longest_text(texts, number, leaf.path, chunk))
        # As if every text were as long as the longest: one cell of a file may be nearly all of it.
        return max(MOST_AT_ONCE // longest, 1)

    def _width(self, name: str) -> int:
        """Return the bytes of a cell; of a text, of its place."""
        try:
            kind = self.schema.field(name).type
            bits: int = getattr(kind, "value_type", kind).bit_width
        except ValueError:
            return 8
        return max(bits // 8, 1)

    def _check(self, n_bytes: int, where: str, remedy: str = "Look at it, and split its rows") -> None:
        if n_bytes > self.most:
            raise InputError(
                f"`{self.param}` must name Parquet files that take at most {self.most:,} bytes in memory. Got more in "
                f"{str(self.path)!r}: {where}. {remedy}."
            )


@contextmanager
def open_parquet(path: Path, param: str) -> Iterator[ParquetTable]:
    """Open a Parquet file, whose columns are listed in a part that is not too large.

    Raises
    ------
    InputError
        It is no regular or no Parquet file, a damaged one, or takes too much memory; also as columns are read.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        check_regular(path, param)
        _check_footer(path, param)
        with parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False, **THRIFT_LIMITS) as file:
            yield ParquetTable(path, param, file)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise InputError(
            f"`{param}` must name readable Parquet files. Got {path}: {reason}. Write the file again."
        ) from None


def _check_footer(path: Path, param: str) -> None:
    with path.open("rb") as raw:
        size = raw.seek(0, 2)
        raw.seek(max(size - 8, 0))
        # A Parquet file ends in the length of its footer and "PAR1": looked at before Arrow reads that many bytes.
        footer = struct.unpack("<I", raw.read(8).ljust(8, b"\0")[:4])[0]
    if LARGEST_FOOTER < footer <= size:
        raise InputError(
            f"`{param}` must name Parquet files whose columns are described in at most {LARGEST_FOOTER:,} bytes. Got "
            f"{footer:,} in {str(path)!r}. Split its columns, or write larger groups of rows."
        )


def _longest_text(file: "parquet.ParquetFile", group: int, path: str, chunk: "parquet.ColumnChunkMetaData") -> int:
    """Return the bytes of the longest text that a few bytes of a column can stand for: an entry of its dictionary."""
    import pyarrow as pa
    from pyarrow import compute

    size: int = chunk.total_uncompressed_size
    if size <= SHORT_COLUMN_BYTES or PREFIX_ENCODING in chunk.encodings:
        return size
    batch = next(file.iter_batches(1, row_groups=[group], columns=[path], use_threads=False), None)
    cells = None if batch is None else batch.column(0)
    while cells is not None and not pa.types.is_dictionary(cells.type):
        if not pa.types.is_list(cells.type):
            return size
        cells = cells.values
    longest: int = 0 if cells is None else compute.max(compute.binary_length(cells.dictionary)).as_py() or 0
    return longest


# A first line of CSV that is no header, and tells Excel the separator: a mark of ASCII, but no quote.
EXCEL_SEPARATOR = re.compile('\ufeff?"?sep=([\\t !#-/:-@[-`{-~])"?\\s*', re.IGNORECASE)


def separator_of(header: str) -> str:
    """Return the separator of the cells of a CSV file: a comma, or the mark that its header has in place of any."""
    if line := EXCEL_SEPARATOR.fullmatch(header):
        return line[1]
    return next((mark for mark in ";\t" if mark in header and "," not in header), ",")


def csv_records(
    lines: Iterable[str], longest: int, *, strict: bool, param: str, path: object
) -> Iterator[tuple[int, list[str]]]:
    """Yield the records that are not blank, header first, each with the line that it begins on, from 1.

    Parameters
    ----------
    lines : iterable of str
        With their ends.
    longest : int
        Characters that a cell may have.
    strict : bool
        Whether a misplaced quote is an error.
    param, path : str, Path
        The parameter that the file was given as, and its name.

    Raises
    ------
    InputError
        The header has more columns than any table of deep.
    csv.Error
        A record is no CSV or a cell is too long; the message says on which line the record begins.
    """
    lines = iter(lines)
    first = next(lines, "")
    skipped = EXCEL_SEPARATOR.fullmatch(first) is not None
    lines = lines if skipped else chain([first], lines)
    separator = separator_of(first)

    def narrow(lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines; raise before those of the header are taken apart, since each of its cells takes memory."""
        n_columns, is_open, is_header = 1, False, True
        for line in lines:
            if is_header:
                pieces = line.split('"')
                n_columns += sum(piece.count(separator) for piece in pieces[is_open::2])
                is_open ^= len(pieces) % 2 == 0
                is_header = is_open or line.isspace()
                if n_columns > MOST_LISTED:
                    raise InputError(
                        f"`{param}` must have at most {MOST_LISTED:,} columns. Got more in the header of {path}. "
                        "Write a row for each item and a column for each judge."
                    )
            yield line

    reader = csv.reader(narrow(lines), strict=strict, delimiter=separator)
    while True:
        line = reader.line_num + 1 + skipped
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


# The most characters of a line or a cell; nothing longer is ever held in memory.
MAX_LINE = 1 << 26

# The most blank lines in a row: a file of them alone takes minutes to go through, and holds nothing.
MOST_BLANK = 1 << 20

# The rows of a Parquet file that are in memory as Python's objects at once.
ROWS_AT_ONCE = 1000

# The rows in which a column is looked for that one of them lacks. Rows of JSON may leave keys out; a hundred are read
# in no time. Chosen; no measurement is known.
N_PROBED_ROWS = 100

# Lone surrogates: `surrogateescape` decodes bytes that are not UTF-8 to them.
NOT_UTF8 = re.compile("[\udc80-\udcff]")


def _unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, none of whose keys comes twice: the last one would pass for the cell."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError(f"the key {quote(Counter(key for key, _ in pairs).most_common(1)[0][0])} twice")
    return result


JSON_DECODER, BLANKS = json.JSONDecoder(object_pairs_hook=_unique_object), re.compile(r"[ \t\r\n]*")

# Values that an object may have; characters that are read ahead to find the end of one.
MOST_VALUES, TEXT_AT_ONCE = 1 << 21, 1 << 16

FileRow = Mapping[str, Any]
"""Cells by column; what type they have depends on the file."""

# The line that a row begins on, None where the format has no lines; and its cells by column.
Located = tuple[int | None, FileRow]


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
    content: bytes | bytearray | None = None

    def __str__(self) -> str:
        return repr(str(self.path))

    def text(self) -> TextIO:
        compressed = self.path.name.lower().endswith(".gz")
        if self.content is not None:
            raw: BinaryIO | GzipReader = io.BytesIO(self.content)
        else:
            raw = GzipReader(self.path, self.param, MAX_INFLATED_BYTES) if compressed else self.path.open("rb")
        return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape", newline="")


def read_rows(
    path: Path,
    columns: Collection[str],
    ending: str | None = None,
    *,
    param: str = "examples",
    pad: bool = False,
    content: bytes | bytearray | None = None,
) -> Iterator[Located]:
    """Yield the rows of a file, read as its ending or the given one says.

    In a Parquet file only the given columns have values. With `pad`, the cells that a row of CSV lacks are empty. Where
    there is `content`, it is read in place of the file, whose name then ends in one of `TEXT_ENDINGS`.

    Raises
    ------
    InputError
        The file cannot be read as what its ending says: not there, cut off, not UTF-8, binary, not CSV, JSON or
        Parquet, a line or cell of more than 64 Mi characters. One line that names `param`, file and place.
    """
    kind = ending or ending_of(path)
    if kind is None:
        raise InputError(f"`{param}` must be a CSV, JSON, JSONL or Parquet file. Got {str(path)!r}.")
    file = _File(path, param, pad, content)
    try:
        if content is None:
            check_regular(path, param)
        yield from _READERS[kind](file, columns)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = str(error).rstrip(".")
        raise InputError(
            f"`{param}` must be a whole gzip file. Got {file}: {reason}. Compress or download it again."
        ) from None
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"`{param}` must be readable. Got {file}: {reason}. Check its name and rights.") from None


def _lines(text: TextIO, file: _File) -> Iterator[str]:
    """Yield the lines of a text file; none is longer than what memory is meant to hold."""
    number = blank = 0
    while line := text.readline(MAX_LINE + 1):
        number += 1
        at = f"in line {number} of {file}"
        if len(line) > MAX_LINE:
            raise InputError(
                f"`{file.param}` must have lines of at most {MAX_LINE:,} characters. Got a longer one {at}. Split "
                "the file at the ends of its rows."
            )
        blank = blank + 1 if line.isspace() else 0
        if blank == MOST_BLANK:
            fault = f"Got {MOST_BLANK:,} blank lines in a row, the last {at}"
            raise InputError(f"`{file.param}` must hold rows. {fault}. Delete them.")
        wrong = None if line.isascii() else NOT_UTF8.search(line)
        if wrong is not None:
            byte = ord(wrong[0]) - 0xDC00
            raise InputError(f"`{file.param}` must be UTF-8. Got byte 0x{byte:02x} {at}. Save the file as UTF-8 text.")
        if "\0" in line:
            raise InputError(f"`{file.param}` must be text. Got a NUL byte {at}. Save the file as UTF-8 text.")
        yield line


def _read_csv(file: _File, _columns: Collection[str]) -> Iterator[Located]:
    """Yield the rows of a CSV file; raise where a row has more or fewer cells than the header."""
    try:
        with file.text() as text:
            records = csv_records(_lines(text, file), MAX_LINE, strict=True, param=file.param, path=file)
            _, header = next(records, (0, []))
            repeated = next((name for name, times in Counter(header).items() if times > 1), None)
            if repeated is not None:
                raise InputError(f"`{file.param}` must have unique column names. Got {repeated!r} twice in {file}.")
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


def _read_json(file: _File, _columns: Collection[str]) -> Iterator[Located]:
    """Yield the objects of a file that has one a line, or all in one array."""
    with file.text() as text:
        lines = _lines(text, file)
        first = True
        for number, line in enumerate(lines, start=1):
            line = line.strip(" \t\r\n")
            if first and line.startswith("["):
                pieces = _pieces(chain([f"{line[1:]}\n"], lines))
                yield from _array_rows(pieces, number, file)
            elif line:
                value, end = _json_value(line, 0, number, file)
                if end < len(line):
                    raise _no_object(number, file, f"more text behind its first {end} characters")
                yield number, _json_object(value, number, file)
            first = first and not line


def _array_rows(pieces: Iterator[str], number: int, file: _File) -> Iterator[Located]:
    """Yield the objects of an array, one at a time, so that one larger than memory can be read.

    `pieces` are those of the text behind the bracket that opens it, and `number` the line of that.
    """
    text, at, comma = "", 0, ""  # before the first object there is no comma
    while True:
        begin = _behind_blanks(text, at)
        number, at = number + text.count("\n", at, begin), begin
        if text.startswith("]", at):
            break
        try:
            if not text.startswith(comma, at):
                raise _no_object(number, file, "neither a comma nor a bracket behind an object")
            begin = _behind_blanks(text, at + len(comma))
            place = number + text.count("\n", at, begin)
            value, end = _json_value(text, begin, place, file)
        except InputError:
            # The object may go on in what is not read yet. Each try takes twice the text of the one before, so that a
            # long object is not read once for each of its pieces.
            text, at = text[at:], 0
            more = "".join(islice(pieces, 1 + len(text) // TEXT_AT_ONCE))
            if not more or len(text) > MAX_LINE:
                raise
            text += more
        else:
            yield place, _json_object(value, place, file)
            number, at, comma = place + text.count("\n", begin, end), end, ","
    if any(map(str.strip, chain([text[at + 1 :]], pieces))):
        raise _no_object(number, file, "more text behind the array")


def _behind_blanks(text: str, at: int) -> int:
    blanks = BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines as texts of about one length, since a whole array may be one line, and a line a bracket."""
    text = ""
    for line in lines:
        text += line
        if len(text) >= TEXT_AT_ONCE:
            yield from (text[start : start + TEXT_AT_ONCE] for start in range(0, len(text), TEXT_AT_ONCE))
            text = ""
    yield text


def _json_value(text: str, at: int, number: int, file: _File) -> tuple[Any, int]:
    """Return the value that begins at a place of a text, and where it ends."""
    # Each value takes 64 bytes and more, where its text may have two characters.
    if len(text) - at > MOST_VALUES and sum(text.count(mark, at) for mark in "[{,") > MOST_VALUES:
        raise _no_object(number, file, f"more than {MOST_VALUES:,} values")
    try:
        return JSON_DECODER.raw_decode(text, at)
    except RecursionError:
        raise _no_object(number, file, "nested too deeply") from None
    except ValueError as error:
        raise _no_object(number, file, getattr(error, "msg", str(error))) from None


def _json_object(row: Any, number: int, file: _File) -> FileRow:
    if not isinstance(row, dict):
        raise _no_object(number, file, f"a {type(row).__name__}")
    return row


def _no_object(number: int, file: _File, reason: str) -> InputError:
    return InputError(
        f"`{file.param}` must hold a JSON object a line. Got line {number} of {file}: {reason}. Write one object, "
        "complete, on each line, or one array of objects."
    )


def _read_parquet(file: _File, columns: Collection[str]) -> Iterator[Located]:
    with open_parquet(file.path, file.param) as table:
        names = table.names
        present = [name for name in names if name in columns]
        unread = dict.fromkeys(name for name in names if name not in columns)
        # Only the columns that are wanted, since another may hold gigabytes; its name is kept for errors.
        for batch in table.batches(present, ROWS_AT_ONCE):
            rows = batch.to_pylist() if present else [{}]
            yield from ((None, {**unread, **row}) for row in rows)


_READERS: dict[str, Callable[[_File, Collection[str]], Iterator[Located]]] = {
    ".csv": _read_csv,
    ".json": _read_json,
    ".jsonl": _read_json,
    ".ndjson": _read_json,
}

# The endings of files whose content may be given as a text; each may also be compressed.
TEXT_ENDINGS = tuple(_READERS)

_READERS |= {f"{ending}.gz": _READERS[ending] for ending in TEXT_ENDINGS} | {".parquet": _read_parquet}

ENDINGS = tuple(sorted(_READERS))
