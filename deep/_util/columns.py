"""The cells of a table: ids as text, votes as 1, 0 or none, scores as numbers; and cells that are no formula."""

import csv
import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar, Self, TextIO

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Labels, Mask, Positions, Texts, Votes, quote
from deep._util.names import LONGEST_NAME, check_name
from deep._util.scales import Scale, numbers_of_votes
from deep.exceptions import InputError, warn

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


LONG_LAYOUTS = {"long": {"item_id": "item_id", "voter": "voter", "vote": "vote"}}
# The columns of the long layouts by what they hold.
LONG_LAYOUTS["crowd-kit"] = {"item_id": "task", "voter": "worker", "vote": "label"}

# The names that columns of a long table may have, by what they hold.
LONG_COLUMN_ALIASES = {"item_id": ("item_id", "item"), "voter": ("judge", "voter"), "vote": ("vote",)}


def long_names(columns: Collection[str]) -> dict[str, str]:
    """Return the columns of a long table, a row an item and judge, by what they hold; none where it is not one."""
    if {*LONG_LAYOUTS["crowd-kit"].values()} <= {*columns} and "item_id" not in columns:
        return LONG_LAYOUTS["crowd-kit"]
    names = {role: next((name for name in words if name in columns), "") for role, words in LONG_COLUMN_ALIASES.items()}
    return names if all(names.values()) else {}


class TablePlace:
    """A table that has columns, a file, a frame or a batch, and says where a cell of it stands.

    Attributes
    ----------
    path : object
        The name of the table for an error message.
    first : int
        The number of its first row, for people.
    """

    path: object = "the batch"
    first: ClassVar[int] = 1

    def where(self, row: int, column: str) -> str:
        """Return the place of a cell for an error message; `row` counts data rows from 0."""
        return f"{self.path}, column {quote(column)}, {self._row(row)}"

    def _row(self, row: int) -> str:
        return f"row {row + 1}"


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table, or a piece of it.

    Parameters
    ----------
    source : TablePlace
        The table that it is of, which says in errors where a cell stands.
    name : str
        As the head of the table has it.
    values : pyarrow.ChunkedArray
        Its cells, one a row.
    start : int
        The data row of the first cell, from 0.
    """

    source: TablePlace
    name: str
    values: "pa.ChunkedArray"
    start: int = 0

    def where(self, row: int) -> str:
        """Return the place of a cell, counted from 0 in `values`, for an error message."""
        return self.source.where(self.start + row, self.name)


VOTE_WORDS = {"fail": 0, "false": 0, "inconsistent": 0, "no": 0, "consistent": 1, "pass": 1, "true": 1, "yes": 1}
VOTE_OF_TEXT = {"": -1, "0": 0, "0.0": 0, "1": 1, "1.0": 1} | {
    written: vote for word, vote in VOTE_WORDS.items() for written in (word, word.capitalize(), word.upper())
}


def texts(column: Column, *, required: bool = False) -> "pa.ChunkedArray":
    """Return a column as Arrow strings, empty where a cell is."""
    import pyarrow as pa
    from pyarrow import compute

    values = _integers_of_floats(_without_dictionary(column.values))
    if not (_is_text(values) or pa.types.is_integer(values.type) or pa.types.is_null(values.type)):
        raise InputError(
            f"`{column.name}` must be text or whole numbers. Got type {values.type} in {column.source.path}, column "
            f"{quote(column.name)}. Write it as text."
        )
    cells = values.cast(pa.string()).fill_null("")
    # `index` stops at the first empty cell, and most columns have none; the mask is made only for the error.
    if required and compute.index(cells, "").as_py() >= 0:
        empty = compute.equal(cells, "").to_numpy(zero_copy_only=False)
        raise _error(column, empty, f"`{column.name}` must not be empty.", "", cells)
    return cells


def _integers_of_floats(values: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return whole numbers that are floats, as an empty cell or a merge makes them, as whole numbers."""
    import pyarrow as pa
    from pyarrow import compute

    if not pa.types.is_floating(values.type):
        return values
    numbers = values.cast(pa.float64())
    try:
        # pandas makes floats of whole numbers with a gap: an id 7 must not become "7.0".
        return compute.if_else(compute.is_nan(numbers), None, numbers).cast(pa.int64())
    except pa.ArrowInvalid:
        return values


def text_cells(column: Column, *, required: bool = False) -> Texts:
    """Return a column as strings, empty where a cell is; equal strings share their memory."""
    # Names repeat: each distinct one becomes a Python string once, not once a row.
    encoded = texts(column, required=required).combine_chunks().dictionary_encode()
    distinct = np.array(encoded.dictionary.to_pylist(), dtype=object)
    cells: Texts = distinct[encoded.indices.to_numpy()]
    return cells


def id_cells(column: Column) -> Texts:
    """Return a column of ids, hardly two of which are the same and none empty."""
    cells: Texts = texts(column, required=True).to_numpy()
    return cells


def name_cells(column: Column, *, required: bool = False) -> Texts:
    """Return a column of names as strings, empty where a cell is."""
    cells = text_cells(column, required=required)
    for name in set(cells) - {""}:
        if not name.isprintable() or len(name) > LONGEST_NAME:
            # Not by `==`: NumPy compares with a text without its NULs at the end.
            check_name(name, column.name, where=f" at {column.where(cells.tolist().index(name))}")
    return cells


NO_VOTES_REMEDY = "Leave a cell empty for no vote; leave a column that holds no votes out with `--ignore` (`ignore`)."


class GradeError(InputError):
    """A column that was to hold votes holds a number that is none."""


def vote_cells(column: Column, rows: Mask | None = None) -> Votes:
    """Return a voter's column as 1, 0, or -1 where a cell is empty; with `rows` those alone are checked.

    Raises
    ------
    GradeError
        The first cell that is no vote is a number.
    InputError
        A cell is neither.
    """
    return _ternary_votes(column, "votes", NO_VOTES_REMEDY, GradeError, rows)


def answer_cells(column: Column, scales: Mapping[str, Scale], codes: Positions | None = None) -> Floats:
    """Return a judge's column as places on its scale, or as its numbers where `scales` has none; nan where empty.

    A cell outside the scale is no answer, of which a warning tells. `codes` say whose each cell is where there are
    several judges: yes and no are votes of one who gives no grade, whatever the others say.
    """
    import pyarrow as pa
    from pyarrow import compute

    scale, plain = scales.get(column.name), _without_dictionary(column.values)
    if scale is not None and scale.binary:
        return numbers_of_votes(vote_cells(column))
    if scale is not None and scale.words:
        cells = compute.utf8_trim_whitespace(plain.cast(pa.string()).fill_null(""))
        numbers = compute.index_in(cells, value_set=pa.array(scale.words, pa.string())).cast(pa.float64())
        values: Floats = numbers.to_numpy().astype(np.float64)
        wrong = np.isnan(values) & ~compute.equal(cells, "").to_numpy(zero_copy_only=False)
    else:
        plain = plain.cast("string") if plain.type == "bool" else plain
        values, wrong = _numbers(plain)
        if wrong.any() and _is_text(plain):
            votes, other = _votes_of_text(plain)
            codes = np.zeros(len(votes), dtype=np.intp) if codes is None else codes
            is_vote = ~other & np.isin(codes, codes[wrong]) & ~np.isin(codes, codes[other & ~wrong])
            # `true` is the number 1, but not the worst grade of a scale from 1 to 5.
            is_vote &= scale is None or (scale.low, scale.high) == (0.0, 1.0)
            values, wrong = _numbers(compute.if_else(pa.array(is_vote), None, plain))
            values = np.where(is_vote, numbers_of_votes(votes), values)
        if wrong.any():
            raise _error(column, wrong, "`votes` must be numbers or empty.", _word_scale_remedy(column.name))
    if scale is None:
        wrong = np.isinf(values) | (np.abs(values) >= MAX_SCORE_SIZE)
        if wrong.any():
            raise _error(column, wrong, "`votes` must lie between -1e15 and 1e15.", NO_VOTES_REMEDY)
        return values
    places = scale.places(values)
    outside = np.isnan(places) & ((~np.isnan(values)) | wrong)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        n, first = int(outside.sum()), quote(_cell(plain, row))
        warn(
            f"{n:,} answer{'s' * (n > 1)} outside the scale {scale}: none each. The first is {first} at "
            f"{column.where(row)}."
        )
    return places


def _word_scale_remedy(name: str) -> str:
    """Return the remedy for answers in words, which a long table cannot declare."""
    if name in ("vote", "label"):
        return "Of judges that answer in words write a column each: `--scale JUDGE='bad<good'` (`scales`)."
    scale = shlex.quote(f"{name}=bad<good")  # a shell takes < for a redirection
    return f"Say its answers from the worst to the best, as `--scale {scale}` (`scales`). {NO_VOTES_REMEDY}"


def person_cells(column: Column) -> Labels:
    """Return the column of one person's labels as 1, 0, or -1 where a cell is empty."""
    remedy = "For grades, give the lowest that means consistent. Name the columns of people if there are others."
    return _ternary_votes(column, "labels", remedy)


def label_cells(column: Column) -> Labels:
    """Return the column of labels as 1, 0, or -1 where a cell is empty."""
    return _ternary_votes(
        column, "label", f"Leave the cell empty where the label is unknown; {', '.join(VOTE_WORDS)} are read too."
    )


# The bound of scores, above any scorer's unit; squares and sums of larger ones leave the numbers of a float.
MAX_SCORE_SIZE = 1e15


def score_cells(column: Column) -> Floats:
    """Return a scorer's column as finite numbers, nan where a cell is empty or nan."""
    remedy = "Leave a cell empty for no score; leave a column that holds no scores out with `--ignore` (`ignore`)."
    values, wrong = _numbers(_without_dictionary(column.values))
    wrong |= np.isinf(values)
    if wrong.any():
        raise _error(column, wrong, "`scores` must be finite numbers or empty.", remedy)
    wrong = np.abs(values) >= MAX_SCORE_SIZE
    if wrong.any():
        raise _error(column, wrong, "`scores` must lie between -1e15 and 1e15.", remedy)
    return values


def _ternary_votes(
    column: Column, role: str, remedy: str, of_grades: type[InputError] = InputError, rows: Mask | None = None
) -> Votes:
    """Return a column of 1, 0 and empty cells; raise `of_grades` where the first other cell is a number."""
    plain = _without_dictionary(column.values)
    votes, wrong = _votes_of_text(plain) if _is_text(plain) else _votes_of_numbers(plain)
    wrong = wrong if rows is None else wrong & rows
    if wrong.any():
        first = str(_cell(plain, int(np.flatnonzero(wrong)[0])))
        are_words = role == "votes" and _is_text(plain) and not NUMBER.fullmatch(first) and (wrong | (votes < 0)).all()
        error = _error(
            column, wrong, f"`{role}` must be 0, 1 or empty.", _word_scale_remedy(column.name) if are_words else remedy
        )
        raise of_grades(str(error)) if NUMBER.fullmatch(first) else error
    return votes


def _votes_of_text(column: "pa.ChunkedArray") -> tuple[Votes, Mask]:
    """Return a column of words as votes, -1 where empty, and a mask with True at the cells that are none."""
    import pyarrow as pa
    from pyarrow import compute

    result = compute.index_in(column.fill_null(""), value_set=pa.array(list(VOTE_OF_TEXT), pa.string()))
    positions = result.fill_null(-1).to_numpy()
    return np.array(list(VOTE_OF_TEXT.values()), dtype=np.int8)[positions], positions == -1


def _votes_of_numbers(column: "pa.ChunkedArray") -> tuple[Votes, Mask]:
    """Return a column of numbers as votes, -1 where empty, and a mask with True at the cells that are none."""
    from pyarrow import types

    if types.is_signed_integer(column.type):  # the usual type, and many times faster than by way of floats
        whole = column.fill_null(-1).to_numpy()
        wrong = (whole != 0) & (whole != 1)
        if wrong.sum() == column.null_count:
            return whole.astype(np.int8), np.zeros(len(whole), dtype=bool)
    values, wrong = _numbers(column)
    missing = np.isnan(values)
    wrong |= ~(missing | (values == 0) | (values == 1))
    return np.where(missing | wrong, -1, values).astype(np.int8), wrong


def _numbers(column: "pa.ChunkedArray") -> tuple[Floats, Mask]:
    """Return a column as floats, nan where empty, and a mask with True at the cells that are none."""
    import pyarrow as pa
    from pyarrow import compute, types

    wrong = np.zeros(len(column), dtype=bool)
    if _is_text(column):
        column = compute.if_else(compute.equal(column, ""), pa.scalar(None, pa.string()), column)
        wrong[list(_uncastable(column))] = True
        if wrong.any():
            return np.full(len(column), np.nan), wrong
    elif not any(
        is_of_kind(column.type)
        for is_of_kind in (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    ):
        return np.full(len(column), np.nan), ~wrong
    # A safe cast refuses whole numbers above 2^53. These are out of any range here, and are refused with their row.
    return column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64), wrong


def _uncastable(column: "pa.ChunkedArray", start: int = 0) -> Iterator[int]:
    """Yield the rows of a text column that are no numbers: halve each part that fails until it is one row."""
    import pyarrow as pa

    try:
        column.cast(pa.float64())
    except pa.ArrowInvalid:
        # Arrow does not say which cell it cannot cast: halving finds a few wrong ones among n in about log n casts
        # each.
        middle = len(column) // 2
        if not middle:
            yield start
        else:
            yield from _uncastable(column.slice(0, middle), start)
            yield from _uncastable(column.slice(middle), start + middle)


# The most further rows that an error names.
MAX_ROWS_NAMED = 10

DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan", re.IGNORECASE)


def _error(column: Column, wrong: Mask, rule: str, remedy: str, cells: "pa.ChunkedArray | None" = None) -> InputError:
    """Return the error for the wrong cells of a column: the first, and the rows of others."""
    rows = np.flatnonzero(wrong).tolist()
    cell = _cell(column.values if cells is None else cells, rows[0])
    if isinstance(cell, str) and DECIMAL_COMMA.fullmatch(cell):
        remedy = f"Its decimal comma is the cause: write a point, as in {cell.strip().replace(',', '.')}."
    more = [column.start + row + column.source.first for row in rows[1:]]
    place = f"{column.where(rows[0])}{f', and in {more_rows(more)}' if more else ''}"
    return InputError(f"{rule} Got {quote(cell)} at {place}. {remedy}".strip())


def more_rows(rows: Sequence[int]) -> str:
    """Return how many further rows have a fault, and the first of their numbers.

    Examples
    --------
    >>> more_rows([3, 9])
    '2 more rows (3, 9)'
    """
    numbers = ", ".join(map(str, rows[:MAX_ROWS_NAMED])) + (", ..." if len(rows) > MAX_ROWS_NAMED else "")
    return f"{len(rows):,} more row{'s' if len(rows) > 1 else ''} ({numbers})"


def _cell(values: "pa.ChunkedArray", row: int) -> object:
    """Return a cell, or its type where Python has no value for it: a time of an unknown time zone, or out of range."""
    try:
        return values[row].as_py()
    except (ArithmeticError, LookupError, ValueError):  # Arrow's own errors are ValueErrors
        return str(values.type)


def _without_dictionary(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return a column without dictionary encoding, and text in Arrow's usual type."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        kind = pa.string() if _holds_text(column.type.value_type) else column.type.value_type
        column = pa.chunked_array([part.dictionary.cast(kind).take(part.indices) for part in column.chunks], kind)
    return column.cast(pa.string()) if _is_text(column) else column


def _is_text(column: "pa.ChunkedArray") -> bool:
    return _holds_text(column.type)


def _holds_text(kind: "pa.DataType") -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


# The shifts and factors of splitmix64's finalizer, which spreads every bit over all of a 64-bit number.
SPLITMIX64_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))

# A text of more bytes is hashed by its digest. Word by word takes a round for each eight bytes of the longest text.
LONG_TEXT_BYTES = 1 << 12

# The bytes of a text that are hashed at once.
WORD_BYTES = 8

Hashes = npt.NDArray[np.uint64]


def splitmix64_mix(values: Hashes) -> Hashes:
    """Return numbers whose bits are spread by splitmix64."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, multiplier in SPLITMIX64_STEPS:
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(multiplier)
    return np.asarray(values ^ (values >> np.uint64(31)))


def hash_texts(column: "pa.ChunkedArray") -> Hashes:
    r"""Return a 64-bit hash of each text, none of which is missing.

    pandas' ``hash_array`` makes a Python string of each first, which takes as long as all else that scoring does with a
    row; Arrow has no hash that Python can call.

    Examples
    --------
    >>> import pyarrow as pa
    >>> result = hash_texts(pa.chunked_array([["a", "b"], ["a", "ab", "a\0"]]))
    >>> (result == result[0]).tolist()
    [True, False, True, False, False]
    """
    import pyarrow as pa

    parts = [_hash_chunk(chunk.cast(pa.large_string())) for chunk in column.chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def _hash_chunk(texts: "pa.LargeStringArray") -> Hashes:
    """Return the hash of each text of one Arrow array, a word of eight bytes of all texts at a time."""
    import pyarrow as pa
    from pyarrow import compute

    long = compute.greater(compute.binary_length(texts), LONG_TEXT_BYTES)
    if compute.any(long).as_py():  # the loop below takes a step for every word of the longest text
        digests = [blake2b(text.as_buffer()).hexdigest() for text in texts.filter(long)]
        texts = compute.replace_with_mask(texts, long, pa.array(digests, pa.large_string()))
    _, places, data = texts.buffers()
    ends = np.frombuffer(places, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    start, stop = int(ends[0]), int(ends[-1])
    raw = np.zeros(stop - start + WORD_BYTES, dtype=np.uint8)
    raw[: stop - start] = np.frombuffer(data, dtype=np.uint8)[start:stop] if stop > start else 0
    words = np.ndarray((len(raw) - WORD_BYTES + 1,), np.dtype("<u8"), raw, strides=(1,))  # one begins at every byte
    lengths, at = np.diff(ends), ends[:-1] - start
    # The length goes in first: else "a" and "a\0" would have the same words, and one hash.
    result = splitmix64_mix(lengths.view(np.uint64))
    rows: npt.NDArray[np.intp] | slice = slice(None)
    while len(at):
        # The last word of a text reaches into the next text: those bytes are shifted out, so that neighbours do not
        # count.
        beyond = np.uint64(8) * np.maximum(WORD_BYTES - lengths, 0).astype(np.uint64)
        shift = np.minimum(beyond, np.uint64(63))
        word = np.where(lengths > 0, (words[at] << shift) >> shift, np.uint64(0))
        result[rows] = splitmix64_mix(result[rows] ^ word)
        longer = np.flatnonzero(lengths > WORD_BYTES)
        rows = longer if isinstance(rows, slice) else rows[longer]
        at, lengths = at[longer] + WORD_BYTES, lengths[longer] - WORD_BYTES
    return result


# Unicode categories of characters that show nothing of their own at the start of a cell.
HIDDEN_CATEGORIES = {"Cc", "Cf", "Cn", "Co", "Cs", "Mc", "Me", "Mn", "Zl", "Zp", "Zs"}


# Letters and symbols that show nothing.
INVISIBLE_FILLERS = "\u115f\u1160\u3164\uffa0\u2800"


# Characters that begin a formula, as keyboards of East Asia write them too.
FORMULA_SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"


# Cells that begin with a sign and are no formula: numbers, and a dash alone.
SIGNED_NUMBER = re.compile(r"-|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def escape_formula(text: str) -> str:
    r"""Return a text with an apostrophe before it where a spreadsheet would run it as a formula; numbers stay.

    A text that has apostrophes before a formula gets one more, so that :func:`unescape_formula` gives every text back.

    Examples
    --------
    >>> from deep._util.columns import escape_formula, unescape_formula
    >>> escape_formula("=1+1"), escape_formula("\u200b@home"), escape_formula("-1"), escape_formula("it's")
    ("'=1+1", "'\u200b@home", '-1', "it's")
    >>> unescape_formula("'=1+1"), unescape_formula(escape_formula("'=1+1"))
    ('=1+1', "'=1+1")
    """
    return f"'{text}" if _is_formula(text) else text


def unescape_formula(text: str) -> str:
    """Return a text as it was before :func:`escape_formula`."""
    return text[1:] if text.startswith("'") and _is_formula(text[1:]) else text


def write_rows(file: TextIO, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table as CSV, its texts as plain cells; one with a bare carriage return is quoted, as csv does not."""
    # The csv module quotes a cell for what its line end holds: with "\n" alone a lone "\r" would stand unquoted, and
    # readers take it for a line end.
    lines = SimpleNamespace(write=lambda line: file.write(line.removesuffix("\r\n") + "\n"))
    table = csv.writer(lines, lineterminator="\r\n")
    table.writerow([escape_formula(name) for name in columns])
    table.writerows([escape_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)


def escape_frame(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table of pandas with its texts, names of rows and columns among them, as plain cells."""

    def plain(value: object) -> object:
        return escape_formula(value) if isinstance(value, str) else value

    result = frame.copy()
    for place, kind in enumerate(frame.dtypes):
        if kind.kind not in "biufcmM":
            result.isetitem(place, frame.iloc[:, place].map(plain).to_numpy())
    return result.rename(columns=plain, index=plain)


class PlainCsvWriter:
    """A writer of tables of Arrow to a CSV file, their texts as plain cells.

    Parameters
    ----------
    path : Path
        Of the file to write; one that is there is replaced.
    schema : Schema
        Of every table; its names are deep's own.
    """

    def __init__(self, path: Path, schema: "pa.Schema") -> None:
        from pyarrow import csv as arrow_csv

        self._file = arrow_csv.CSVWriter(path, schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write_table(self, table: "pa.Table") -> None:
        """Write the rows of a table below those before."""
        self._file.write_table(_map_texts(table, escape_formula))


def unescape_table(table: "pa.Table") -> "pa.Table":
    """Return a table of Arrow with its texts as they were before :func:`escape_formula`."""
    return _map_texts(table, unescape_formula)


def unescape_row(row: Mapping[str, str]) -> dict[str, str]:
    """Return the cells of a row as they were before :func:`escape_formula`."""
    return {unescape_formula(name): unescape_formula(cell) for name, cell in row.items()}


@lru_cache(maxsize=4096)
def _is_invisible(character: str) -> bool:
    return character in INVISIBLE_FILLERS or character.isspace() or unicodedata.category(character) in HIDDEN_CATEGORIES


def _is_formula(text: str) -> bool:
    # A spreadsheet runs a cell that begins with a sign of a formula (CSV injection); numbers begin with one too.
    if (text[:1].isascii() and text[:1].isalnum()) or SIGNED_NUMBER.fullmatch(text):
        return False  # nearly all
    bare = text.lstrip("'")
    if bare[:1] in ("\t", "\r", "\n"):
        return True
    # Spreadsheets may trim what shows nothing before they look for a formula.
    at = next((place for place, character in enumerate(bare) if not _is_invisible(character)), len(bare))
    return bare[at : at + 1] in tuple(FORMULA_SIGNS)


def _map_texts(table: "pa.Table", change: Callable[[str], str]) -> "pa.Table":
    """Return a table whose texts were changed; only those that begin with neither letter nor digit are looked at."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        column = table.column(place)
        if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            continue
        # Nearly all cells begin with a letter or digit; only the others pass through Python.
        odd = pc.fill_null(pc.match_substring_regex(column, "^[^0-9A-Za-z]"), fill_value=False)
        if pc.any(odd).as_py():
            looked = zip(column.to_pylist(), odd.to_pylist(), strict=True)
            texts = [change(text) if look else text for text, look in looked]
            table = table.set_column(place, field, pa.chunked_array([pa.array(texts, field.type)]))
    return table
