"""Cells of CSV files that a spreadsheet takes for no formula, and that deep reads again as they were."""

import csv
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


UNSEEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Mc", "Me", "Mn", "Zl", "Zp", "Zs"}
"""Unicode categories of characters that show nothing of their own at the start of a cell."""

FILLERS = "\u115f\u1160\u3164\uffa0\u2800"
"""Letters and symbols that show nothing."""

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
"""Characters that begin a formula, as keyboards of East Asia write them too."""

NUMBER = re.compile(r"-|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
"""Cells that begin with a sign and are no formula: numbers, and a dash alone."""


def plain_cell(text: str) -> str:
    r"""Return a text with an apostrophe before it where a spreadsheet would run it as a formula; numbers stay.

    A text that has apostrophes before a formula gets one more, so that :func:`read_cell` gives every text back.

    Examples
    --------
    >>> from deep._util.plain_cells import plain_cell, read_cell
    >>> plain_cell("=1+1"), plain_cell("\u200b@home"), plain_cell("-1"), plain_cell("it's")
    ("'=1+1", "'\u200b@home", '-1', "it's")
    >>> read_cell("'=1+1"), read_cell(plain_cell("'=1+1"))
    ('=1+1', "'=1+1")
    """
    return f"'{text}" if _is_formula(text) else text


def read_cell(text: str) -> str:
    """Return a text as it was before :func:`plain_cell`."""
    return text[1:] if text.startswith("'") and _is_formula(text[1:]) else text


def write_rows(file: TextIO, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table as CSV, its texts as plain cells; one with a bare carriage return is quoted, as csv does not."""
    lines = SimpleNamespace(write=lambda line: file.write(line.removesuffix("\r\n") + "\n"))
    table = csv.writer(lines, lineterminator="\r\n")
    table.writerow([plain_cell(name) for name in columns])
    table.writerows([plain_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)


def plain_frame(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table of pandas with its texts, names of rows and columns among them, as plain cells."""

    def plain(value: object) -> object:
        return plain_cell(value) if isinstance(value, str) else value

    found = frame.copy()
    for place, kind in enumerate(frame.dtypes):
        if kind.kind not in "biufcmM":
            found.isetitem(place, frame.iloc[:, place].map(plain).to_numpy())
    return found.rename(columns=plain, index=plain)


class PlainCsvWriter:
    """A writer of tables of Arrow to a CSV file, their texts as plain cells.

    Parameters
    ----------
    path : Path
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
        self._file.write_table(_mapped(table, plain_cell))


def read_table(table: "pa.Table") -> "pa.Table":
    """Return a table of Arrow with its texts as they were before :func:`plain_cell`."""
    return _mapped(table, read_cell)


def read_row(row: Mapping[str, str]) -> dict[str, str]:
    """Return the cells of a row as they were before :func:`plain_cell`."""
    return {read_cell(name): read_cell(cell) for name, cell in row.items()}


@lru_cache(maxsize=4096)
def _is_unseen(character: str) -> bool:
    return character in FILLERS or character.isspace() or unicodedata.category(character) in UNSEEN


def _is_formula(text: str) -> bool:
    if (text[:1].isascii() and text[:1].isalnum()) or NUMBER.fullmatch(text):
        return False  # nearly all
    bare = text.lstrip("'")
    if bare[:1] in ("\t", "\r", "\n"):
        return True
    at = next((place for place, character in enumerate(bare) if not _is_unseen(character)), len(bare))
    return bare[at : at + 1] in tuple(SIGNS)


def _mapped(table: "pa.Table", change: Callable[[str], str]) -> "pa.Table":
    """Return a table whose texts were changed; only those that begin with neither letter nor digit are looked at."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        column = table.column(place)
        if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            continue
        odd = pc.fill_null(pc.match_substring_regex(column, "^[^0-9A-Za-z]"), fill_value=False)
        if pc.any(odd).as_py():
            looked = zip(column.to_pylist(), odd.to_pylist(), strict=True)
            texts = [change(text) if look else text for text, look in looked]
            table = table.set_column(place, field, pa.chunked_array([pa.array(texts, field.type)]))
    return table
