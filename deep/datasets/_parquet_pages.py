"""The pages of a column of a Parquet file, by their headers alone: how many cells and bytes each would take."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Protocol

UNCOMPRESSED_SIZE, COMPRESSED_SIZE = 2, 3
DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 5, 7, 8
"""Fields of a page header, by their numbers in parquet.thrift; in each of the last three, 1 is the number of cells."""

DELTA_BYTE_ARRAY = 7
"""The encoding of texts that begin like the one before."""

HEADER_SIZES = (1 << 10, 1 << 24)
"""Bytes that are read for a header: of nearly all, and of one with long statistics; Arrow takes none above 16 MiB."""

DEEPEST = 8
"""Structures within one another that a header has: three, and some for fields to come."""

Fields = Mapping[int, "int | Fields"]
"""Whole numbers and structures of a Thrift structure, by field; what else it has is passed over."""


class ColumnChunk(Protocol):
    """A column in one row group, as the footer has it: pyarrow's ColumnChunkMetaData."""

    data_page_offset: int
    dictionary_page_offset: int | None
    total_compressed_size: int
    num_values: int


@dataclass(frozen=True)
class PageSizes:
    """The size of a column within one row group.

    Parameters
    ----------
    dictionary : int
        Bytes of the page of distinct cells; 0 where there is none.
    largest : int
        Bytes of the largest page of cells.
    cells : int
        Cells of all pages.
    longest : int
        Bytes of the largest page of cells that begin like the one before, for any of them may be as long; else 0.
    entries : int
        Distinct cells of the dictionary.
    """

    dictionary: int
    largest: int
    cells: int
    longest: int
    entries: int


def page_sizes(file: BinaryIO, chunk: ColumnChunk) -> PageSizes:
    """Return the sizes of the pages of a column, as its own pages say; a footer may say less.

    Raises
    ------
    ValueError
        There is no page header where one should be.
    """
    dictionary = largest = cells = longest = entries = 0
    for header in _headers(file, chunk) if chunk.num_values else ():
        size = _number(header, UNCOMPRESSED_SIZE)
        if DICTIONARY_PAGE in header:
            listed = header[DICTIONARY_PAGE]
            dictionary = max(dictionary, size)
            entries += _number(listed, 1) if isinstance(listed, Mapping) else 0
            continue
        largest = max(largest, size)
        for kind, encoding in ((DATA_PAGE, 2), (DATA_PAGE_V2, 4)):
            page = header.get(kind)
            if isinstance(page, Mapping):
                cells += _number(page, 1)
                longest = max(longest, size if _number(page, encoding) == DELTA_BYTE_ARRAY else 0)
        if cells >= chunk.num_values:
            break
    return PageSizes(dictionary, largest, cells, longest, entries)


def _headers(file: BinaryIO, chunk: ColumnChunk) -> Iterator[Fields]:
    at = chunk.data_page_offset
    if chunk.dictionary_page_offset:
        at = min(at, chunk.dictionary_page_offset)
    end = at + chunk.total_compressed_size
    while at < end:
        header, length = _header(file, at)
        yield header
        at += length + _number(header, COMPRESSED_SIZE)


def _header(file: BinaryIO, at: int) -> tuple[Fields, int]:
    """Return a header and its length."""
    for size in HEADER_SIZES:
        file.seek(at)
        try:
            return _structure(file.read(size), 0, DEEPEST)
        except IndexError:
            continue
    raise ValueError(f"the page header at byte {at} has no end")


def _number(fields: Fields, field: int) -> int:
    """Return a field that must be there, and no less than 0."""
    value = fields.get(field)
    if not isinstance(value, int) or value < 0:
        raise ValueError("a page header lacks a size, or has one below 0")
    return value


def _structure(data: bytes, at: int, depth: int) -> tuple[Fields, int]:
    """Return a structure in Thrift's compact protocol, and where it ends."""
    fields: dict[int, int | Fields] = {}
    field = 0
    while kind := data[at] & 15:
        field, at = (field + (data[at] >> 4), at + 1) if data[at] >> 4 else _whole(data, at + 1)
        value, at = _value(data, at, kind, depth)
        if value is not None:
            fields[field] = value
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> "tuple[int | Fields | None, int]":
    if kind in (1, 2):  # true and false have no bytes of their own
        return None, at
    if kind == 3:
        return None, at + 1
    if kind in (4, 5, 6):
        return _whole(data, at)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        length, at = _unsigned(data, at)
        return None, at + length
    if kind == 12 and depth:
        return _structure(data, at, depth - 1)
    raise ValueError("a page header has lists, or too many structures within one another")


def _whole(data: bytes, at: int) -> tuple[int, int]:
    value, at = _unsigned(data, at)
    return (value >> 1) ^ -(value & 1), at


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 128:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if shift > 63:
            raise ValueError("a page header has a number of more than 64 bits")
    return value | data[at] << shift, at + 1
