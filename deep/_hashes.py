"""Hashes of many texts at once, in numpy: one that comes twice is found by eight bytes a row."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""Of splitmix64's finalizer, which spreads every bit over all of a 64-bit number."""

WORD = 8
"""Bytes of a text that are hashed at once."""

Hashes = npt.NDArray[np.uint64]


def mixed(values: Hashes) -> Hashes:
    """Return numbers whose bits are spread by splitmix64."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, multiplier in MIXERS:
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(multiplier)
    return np.asarray(values ^ (values >> np.uint64(31)))


def hash_texts(column: "pa.ChunkedArray") -> Hashes:
    r"""Return a 64-bit hash of each text, none of which is missing.

    pandas' ``hash_array`` makes a Python string of each first, which takes as long as all else that scoring does with a
    row; Arrow has no hash that Python can call.

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
