"""The cells of one column: ids as text, votes and labels as 1, 0 or none, scores as numbers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from deep.datasets._source import Source, shown
from deep.exceptions import InputError

__all__ = ["label_cells", "score_cells", "text_cells", "vote_cells"]

VOTE_OF_TEXT = {"": -1, "0": 0, "0.0": 0, "1": 1, "1.0": 1}


def text_cells(source: Source, name: str, column: Any, *, required: bool = False) -> npt.NDArray[np.object_]:
    """Return a column as strings, empty where a cell is; equal strings share their memory."""
    import pyarrow as pa

    column = _plain(column)
    if not (_is_text(column) or pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise InputError(
            f"`{name}` must be text or whole numbers. Got type {column.type} in {source.path}, column {shown(name)}."
        )
    encoded = column.cast(pa.string()).fill_null("").combine_chunks().dictionary_encode()
    texts = np.array(encoded.dictionary.to_pylist(), dtype=object)
    cells: npt.NDArray[np.object_] = texts[encoded.indices.to_numpy()]
    if required and (texts == "").any():
        row = int(np.flatnonzero(cells == "")[0])
        raise InputError(f"`{name}` must not be empty. Got '' at {source.where(row, name)}.")
    return cells


def vote_cells(source: Source, name: str, column: Any) -> npt.NDArray[np.int8]:
    """Return a voter's column as 1, 0, or -1 where a cell is empty."""
    remedy = "Leave a cell empty for no vote; a column that holds no votes must be ignored."
    return _ternary(source, name, column, "votes", remedy)


def label_cells(source: Source, name: str, column: Any) -> npt.NDArray[np.int8]:
    """Return the column of labels as 1, 0, or -1 where a cell is empty."""
    return _ternary(source, name, column, "label", "Leave the cell empty where the label is unknown.")


def score_cells(source: Source, name: str, column: Any) -> npt.NDArray[np.float64]:
    """Return a scorer's column as finite numbers, nan where a cell is empty or nan."""
    remedy = "Leave a cell empty for no score; a column that holds no scores must be ignored."
    values, wrong = _numbers(_plain(column))
    wrong |= np.isinf(values)
    if wrong.any():
        raise _error(source, name, column, wrong, "`scores` must be finite numbers or empty.", remedy)
    return values


def _ternary(source: Source, name: str, column: Any, role: str, remedy: str) -> npt.NDArray[np.int8]:
    plain = _plain(column)
    votes, wrong = _votes_of_text(plain) if _is_text(plain) else _votes_of_numbers(plain)
    if wrong.any():
        raise _error(source, name, column, wrong, f"`{role}` must be 0, 1 or empty.", remedy)
    return votes


def _votes_of_text(column: Any) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
    import pyarrow as pa
    from pyarrow import compute

    found = compute.index_in(column.fill_null(""), value_set=pa.array(list(VOTE_OF_TEXT), pa.string()))
    positions = found.fill_null(-1).to_numpy()
    return np.array(list(VOTE_OF_TEXT.values()), dtype=np.int8)[positions], positions == -1


def _votes_of_numbers(column: Any) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
    values, wrong = _numbers(column)
    missing = np.isnan(values)
    wrong |= ~(missing | (values == 0) | (values == 1))
    return np.where(missing | wrong, -1, values).astype(np.int8), wrong


def _numbers(column: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return a column as floats, nan where empty, and a mask with True at (one of) the cells that are none."""
    import pyarrow as pa
    from pyarrow import compute

    wrong = np.zeros(len(column), dtype=bool)
    if _is_text(column):
        column = compute.if_else(compute.equal(column, ""), pa.scalar(None, pa.string()), column)
        first = _first_uncastable(column)
        if first is not None:
            wrong[first] = True
            return np.full(len(column), np.nan), wrong
    elif not _is_numeric(column.type):
        return np.full(len(column), np.nan), ~wrong
    return column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64), wrong


def _first_uncastable(column: Any) -> int | None:
    """Return the first row of a text column that is no number: halve the part that fails until it is one row."""
    if _castable(column):
        return None
    start, stop = 0, len(column)
    while stop - start > 1:
        middle = (start + stop) // 2
        if _castable(column.slice(start, middle - start)):
            start = middle
        else:
            stop = middle
    return start


def _castable(column: Any) -> bool:
    import pyarrow as pa

    try:
        column.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _error(source: Source, name: str, column: Any, wrong: npt.NDArray[np.bool_], rule: str, remedy: str) -> InputError:
    """Return the error for the first wrong cell of a column."""
    row = int(np.flatnonzero(wrong)[0])
    value = column[row].as_py()
    return InputError(f"{rule} Got {shown(value)} at {source.where(row, name)}. {remedy}")


def _plain(column: Any) -> Any:
    """Return a column without dictionary encoding, and text in Arrow's usual type."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()) if _is_text(column) else column


def _is_text(column: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(column.type) or types.is_large_string(column.type) or types.is_string_view(column.type))


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    checks = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    return any(check(kind) for check in checks)
