"""Parquet files that others made, read within bounds: a few kilobytes of one can stand for terabytes."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from deep._util.columns import shown
from deep._util.files import check_regular
from deep.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

MOST_EXPANDED, MOST_TIMES, MOST_BYTES = 1 << 29, 64, 1 << 34
"""Bytes that any file may take in memory, how many times its own size a larger one may, and bytes of the largest."""

MOST_AT_ONCE = 1 << 27
"""Bytes that the texts of a column may have in rows that are read together."""

LARGEST_FOOTER, MOST_LISTED = 1 << 24, 1 << 17
"""Bytes of the part that lists the columns, and entries of any list there."""

BYTES_OF_A_HASH, BYTES_OF_A_NESTED_CELL = 8, 64
"""What is kept of each row to find one that comes twice, and what a cell of a list takes in Python."""

LIMITS = {"thrift_string_size_limit": LARGEST_FOOTER, "thrift_container_size_limit": MOST_LISTED}
"""What Arrow may take of the footer."""

SHORT = 1 << 10
"""Bytes of a column whose texts are not looked at: any may be that long."""

PREFIXED = "DELTA_BYTE_ARRAY"
"""The encoding of texts that begin like the one before: any may be as long as the column."""

TEXTS = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})
"""Physical types whose cells may be longer than the bytes that stand for them."""


@dataclass(frozen=True)
class _Leaf:
    """A column of cells: one of the table, or a part of one that has parts."""

    index: int
    path: str
    name: str
    is_text: bool
    is_list: bool
    length: int
    bytes_of_a_cell: int
    """0 where they are held no longer than the rows that are read together."""


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file that is open.

    Parameters
    ----------
    path : Path
    param : str
        The parameter that the file was given as.
    file : pyarrow.parquet.ParquetFile
    """

    path: Path
    param: str
    file: "parquet.ParquetFile"

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.file.schema_arrow.names)

    @cached_property
    def most(self) -> int:
        """Bytes that may be in memory at once."""
        return min(max(MOST_EXPANDED, MOST_TIMES * self.path.stat().st_size), MOST_BYTES)

    def tables(self, columns: Sequence[str], size: int | None, *, whole: bool = False) -> "Iterator[pa.Table]":
        """Yield some columns, at most `size` rows at a time; None: all rows at once. `whole`: as of `batches`."""
        import pyarrow as pa

        held: list[pa.RecordBatch] = []
        n = taken = read = 0
        for batch in self.batches(columns, size, whole=whole or size is None):
            while True:
                held.append(batch if size is None else batch.slice(0, size - n))
                n, taken, read = n + held[-1].num_rows, taken + held[-1].nbytes, read + held[-1].num_rows
                self._check(taken, f"its first {read:,} rows")
                if n != size:
                    break
                yield pa.Table.from_batches(held)
                batch = batch.slice(held[-1].num_rows)
                held, n, taken = [], 0, taken if whole else 0
        if n:
            yield pa.Table.from_batches(held)

    def batches(self, columns: Sequence[str], size: int | None, *, whole: bool = False) -> "Iterator[pa.RecordBatch]":
        """Yield some columns, at most `size` rows at a time; raise before any is read where they take too much memory.

        With `whole`, all that is yielded is meant to be held.
        """
        rows = self._rows_at_once(columns, whole)
        for batch in self.file.iter_batches(min(rows, size or rows), columns=list(columns), use_threads=False):
            yield _plain(batch)

    def _rows_at_once(self, columns: Sequence[str], whole: bool) -> int:
        """Return how many rows may be read together, as the footer says, and one row of each dictionary of texts."""
        metadata = self.file.metadata
        self._check(metadata.num_rows * BYTES_OF_A_HASH, f"{metadata.num_rows:,} rows")
        leaves = list(self._leaves(columns, whole))
        taken, longest = 0, 1
        with self._opened([leaf.path for leaf in leaves if leaf.is_text]) as texts:
            for number in range(metadata.num_row_groups):
                group, expanded = metadata.row_group(number), 0
                for leaf in leaves:
                    chunk = group.column(leaf.index)
                    expanded += chunk.total_uncompressed_size
                    self._check(expanded, f"a group of rows, {shown(leaf.name)}", "Write smaller groups of rows")
                    taken += chunk.num_values * leaf.bytes_of_a_cell
                    self._check(taken, f"column {shown(leaf.name)} with {chunk.num_values:,} cells")
                    if leaf.is_text:
                        longest = max(longest, leaf.length or _longest_text(texts, number, leaf, chunk))
        return max(MOST_AT_ONCE // longest, 1)

    def _opened(self, as_dictionaries: Sequence[str]) -> "parquet.ParquetFile":
        from pyarrow import parquet

        return parquet.ParquetFile(self.path, read_dictionary=list(as_dictionaries), pre_buffer=False, **LIMITS)

    def _leaves(self, columns: Sequence[str], whole: bool) -> Iterator[_Leaf]:
        schema = self.file.schema
        for index in range(len(schema)):
            leaf = schema.column(index)
            name = next((name for name in columns if f"{leaf.path}.".startswith(f"{name}.")), None)
            if name is not None:
                held = whole or leaf.max_repetition_level
                width = BYTES_OF_A_NESTED_CELL if leaf.max_repetition_level else self._width(name)
                is_text, is_list = leaf.physical_type in TEXTS, leaf.max_repetition_level > 0
                yield _Leaf(index, leaf.path, name, is_text, is_list, leaf.length or 0, width if held else 0)

    def _width(self, name: str) -> int:
        """Return the bytes of a cell; of a text, of its place."""
        try:
            kind = self.file.schema_arrow.field(name).type
            bits: int = getattr(kind, "value_type", kind).bit_width
        except ValueError:
            return 8
        return max(bits // 8, 1)

    def _check(self, taken: int, where: str, remedy: str = "Look at it, and split its rows") -> None:
        if taken > self.most:
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
        It is no regular file, or takes too much memory; also as columns are read.
    pyarrow.ArrowException, OSError, ValueError
        It is no Parquet file, or a damaged one; also as columns are read.
    """
    from pyarrow import parquet

    check_regular(path, param)
    with path.open("rb") as raw:
        size = raw.seek(0, 2)
        raw.seek(max(size - 8, 0))
        footer = struct.unpack("<I", raw.read(8).ljust(8, b"\0")[:4])[0]
    if LARGEST_FOOTER < footer <= size:
        raise InputError(
            f"`{param}` must name Parquet files whose columns are described in at most {LARGEST_FOOTER:,} bytes. Got "
            f"{footer:,} in {str(path)!r}. Split its columns, or write larger groups of rows."
        )
    with parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False, **LIMITS) as file:
        yield ParquetTable(path, param, file)


def _longest_text(file: "parquet.ParquetFile", group: int, leaf: _Leaf, chunk: "parquet.ColumnChunkMetaData") -> int:
    """Return the bytes of the longest text that a few bytes of a column can stand for: an entry of its dictionary."""
    import pyarrow as pa
    from pyarrow import compute

    size: int = chunk.total_uncompressed_size
    if size <= SHORT or PREFIXED in chunk.encodings:
        return size
    batch = next(file.iter_batches(1, row_groups=[group], columns=[leaf.path], use_threads=False), None)
    cells = None if batch is None else batch.column(0)
    while cells is not None and not pa.types.is_dictionary(cells.type):
        if not pa.types.is_list(cells.type):
            return size
        cells = cells.values
    longest: int = 0 if cells is None else compute.max(compute.binary_length(cells.dictionary)).as_py() or 0
    return longest


def _plain(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Return rows whose cells are written out where they were numbers of a dictionary, while they are few."""
    import pyarrow as pa

    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
