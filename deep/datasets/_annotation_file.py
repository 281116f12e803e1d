"""A CSV file in which people label items: one row an item and annotator, read and checked the same way everywhere."""

import csv
from collections.abc import Sequence
from pathlib import Path

from deep.exceptions import InputError

__all__ = ["read_annotation_rows"]


def read_annotation_rows(path: Path, key: Sequence[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Read a file of annotations.

    Parameters
    ----------
    path : Path
        CSV (UTF-8, with a header).
    key : sequence of str
        The columns that together name a row: each filled in, no two rows alike. `label` is required too.

    Returns
    -------
    columns : list of str
    rows : list of dict
        The file's own cells.

    Raises
    ------
    InputError
        The file is not as described.
    """
    columns, rows = _rows(path)
    required = (*key, "label")
    missing = [name for name in required if name not in columns]
    if missing or not rows:
        got = f"no column {missing[0]!r}" if missing else "no row"
        raise InputError(f"`file` must hold rows with the columns {', '.join(required)}. Got {got} in {str(path)!r}.")
    seen: set[tuple[str, ...]] = set()
    for number, row in enumerate(rows, start=1):
        names = tuple(row[name].strip() for name in key)
        if not all(names):
            raise InputError(f"`{key[names.index('')]}` must not be empty. Got '' in row {number} of {str(path)!r}.")
        if names in seen:
            raise InputError(
                f"`file` must have one row for each {', '.join(key)}. Got {', '.join(names)} again in row {number} of "
                f"{str(path)!r}."
            )
        seen.add(names)
    return columns, rows


def _rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True, restval="")
            columns, rows = list(reader.fieldnames or ()), list(reader)
    except OSError as error:
        raise InputError(f"`file` must be a readable CSV file. Got {str(path)!r}: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"`file` must be CSV in UTF-8. Got {str(path)!r}: {error}.") from None
    if any(None in row for row in rows):
        raise InputError(f"`file` must have no more cells than columns. Got a longer row in {str(path)!r}.")
    return columns, rows
