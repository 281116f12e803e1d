"""Ids of rows as Arrow holds them, until they are asked for: as Python strings they take five times the memory."""

from copy import copy
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from deep._checks import Texts

if TYPE_CHECKING:
    import pyarrow as pa

    Held: TypeAlias = Texts | pa.ChunkedArray

MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""Of splitmix64's finalizer, which spreads every bit over all of a 64-bit number."""

WORD = 8
"""Bytes of a text that are hashed at once."""

IDS = "example_ids"

Hashes = npt.NDArray[np.uint64]

Record = TypeVar("Record")


def hold_texts(kind: type[Record]) -> type[Record]:
    """Let the records of a class take Arrow's texts as `example_ids`; who asks for these gets an array of strings.

    Examples
    --------
    >>> import pyarrow as pa
    >>> @hold_texts
    ... class Table: ...
    >>> table = Table()
    >>> table.example_ids = pa.chunked_array([["a", "b"]])
    >>> type(held_texts(table)).__name__, table.example_ids.tolist(), type(held_texts(table)).__name__
    ('ChunkedArray', ['a', 'b'], 'ndarray')
    """
    setattr(kind, IDS, _TextColumn(f"_{IDS}"))
    return kind


class _TextColumn:
    """An attribute that makes an array of texts once it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, record: object, owner: type | None = None) -> Texts:
        """Return the texts as strings."""
        found = as_texts(vars(record)[self._name])
        vars(record)[self._name] = found
        return found

    def __set__(self, record: object, value: "Held") -> None:
        """Keep texts as they are."""
        vars(record)[self._name] = value


def held_texts(record: object) -> "Held":
    """Return the ids of a record as it holds them."""
    found: Held = vars(record)[f"_{IDS}"]
    return found


def as_texts(held: "Held") -> Texts:
    """Return texts as an array of strings."""
    if isinstance(held, np.ndarray):
        return held
    found = np.empty(len(held), dtype=object)
    found[:] = held.to_pylist()
    return found


def altered(record: Record, **changes: object) -> Record:
    """Return a record with some attributes changed, which nothing checks again, and its texts held as they are."""
    found = copy(record)
    for name, value in changes.items():
        object.__setattr__(found, name, value)
    return found


def take_texts(held: "Held", at: npt.NDArray[np.bool_ | np.integer]) -> "Held":
    """Return the texts of some rows (a mask or positions), held as they were."""
    if isinstance(held, np.ndarray):
        return held[at]
    return held.take(np.arange(len(held))[at])


def same_texts(one: "Held", other: "Held") -> bool:
    """Say whether two columns are held alike and have the same texts in the same order."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
    return bool(one.equals(other))


def mixed(values: Hashes) -> Hashes:
    """Return numbers whose bits are spread by splitmix64."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, multiplier in MIXERS:
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(multiplier)
    return np.asarray(values ^ (values >> np.uint64(31)))


def hash_texts(column: "pa.ChunkedArray") -> Hashes:
    r"""Return a 64-bit hash of each text, none of which is missing.

    pandas' ``hash_array`` makes a Python string of each first; Arrow has no hash that Python can call.

    Examples
    --------
    >>> import pyarrow as pa
    >>> found = hash_texts(pa.chunked_array([["a", "b"], ["a", "ab", "a\0"]]))
    >>> (found == found[0]).tolist()
    [True, False, True, False, False]
    """
    import pyarrow as pa

    parts = [_hash_chunk(chunk.cast(pa.large_string())) for chunk in column.chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def _hash_chunk(texts: "pa.LargeStringArray") -> Hashes:
    _, places, data = texts.buffers()
    ends = np.frombuffer(places, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    start, stop = int(ends[0]), int(ends[-1])
    raw = np.zeros(stop - start + WORD, dtype=np.uint8)
    raw[: stop - start] = np.frombuffer(data, dtype=np.uint8)[start:stop] if stop > start else 0
    words = np.ndarray((len(raw) - WORD + 1,), np.dtype("<u8"), raw, strides=(1,))  # one begins at every byte
    lengths, at = np.diff(ends), ends[:-1] - start
    found = mixed(lengths.view(np.uint64))
    rows: npt.NDArray[np.intp] | slice = slice(None)
    while len(at):
        beyond = np.uint64(8) * np.maximum(WORD - lengths, 0).astype(np.uint64)
        shift = np.minimum(beyond, np.uint64(63))
        word = np.where(lengths > 0, (words[at] << shift) >> shift, np.uint64(0))
        found[rows] = mixed(found[rows] ^ word)
        longer = np.flatnonzero(lengths > WORD)
        rows = longer if isinstance(rows, slice) else rows[longer]
        at, lengths = at[longer] + WORD, lengths[longer] - WORD
    return found
