"""Reading the published files: rows of CSV, JSON lines and Parquet, and whole JSON documents."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from deep._files import read_bytes
from deep.datasets._rows import FileRow, read_rows
from deep.exceptions import InputError

LARGEST = 1 << 30
"""Bytes of a document."""


def rows_of(path: Path, columns: Collection[str], ending: str | None = None) -> Iterator[FileRow]:
    """Yield the rows of a file with the given columns; `ending` says how to read it where its name does not.

    Raises
    ------
    InputError
        A column is not there, or the file cannot be read.
    """
    for number, (_, row) in enumerate(read_rows(path, columns, ending), start=1):
        absent = [name for name in columns if name not in row]
        if absent:
            raise InputError(
                f"`{absent[0]}` must be a column of {str(path)!r}, as its authors publish it. Got none in row "
                f"{number}. Download the file again."
            )
        yield row


def read_document(path: Path) -> Any:
    """Return the contents of a JSON file.

    Raises
    ------
    InputError
        It is not UTF-8, not JSON, or cannot be read.
    """
    try:
        return json.loads(read_bytes(path, "examples", LARGEST).decode("utf-8-sig"))
    except InputError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:
        reason = str(error)
    raise InputError(f"`examples` must be JSON. Got {str(path)!r}: {reason}. Download the file again.")
