"""A CSV file in which people label items: one row an item and annotator, read and checked the same way everywhere."""

from collections.abc import Sequence
from pathlib import Path

from deep.datasets._rows import read_rows
from deep.exceptions import InputError


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
    rows = [dict(row) for _, row in read_rows(path, (), ".csv", param="file", pad=True)]
    columns = list(rows[0]) if rows else []
    required = (*key, "label")
    missing = [name for name in required if name not in columns]
    if missing or not rows:
        got = f"no column {missing[0]!r}" if rows else "no row"
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
