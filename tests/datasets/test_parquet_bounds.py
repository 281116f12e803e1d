"""Parquet files of some kilobytes that stand for gigabytes are refused in one line, before memory is taken."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from deep.datasets import _rows, iter_votes, open_parquet, read_examples, read_judgments, read_votes
from deep.datasets._judgments import judgments_schema
from tests.datasets.tables import fault

VOTES = {"dataset": "d", "item_id": "i", "a": "1"}
EXAMPLES = {"source": "It rained.", "claim": "It was wet."}


def write_same(path, cells, rows, groups=1):
    """Write a table whose rows are all the same: each column is one dictionary entry and one run."""
    zeros = pa.array(np.zeros(rows, np.int8))
    columns = [pa.DictionaryArray.from_arrays(zeros, [text]) for text in cells.values()]
    table = pa.Table.from_arrays(columns, list(cells))
    with parquet.ParquetWriter(path, table.schema, compression="zstd", write_statistics=False) as writer:
        for _ in range(groups):
            writer.write_table(table, row_group_size=rows)
    return path


def write_prefixed(path, rows, length):
    """Write texts of which each says only how much of the one before it repeats."""
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), ["x" * length])
    table = pa.table({"dataset": names.cast(pa.string()), "item_id": pa.array(np.arange(rows)), "a": [1] * rows})
    encoding = {"dataset": "DELTA_BYTE_ARRAY"}
    parquet.write_table(table, path, use_dictionary=False, column_encoding=encoding, compression="zstd")
    return path


@pytest.fixture
def little(monkeypatch):
    """Let a file take a mebibyte, and what is read together 64 KiB, so that small files show what large ones do."""
    monkeypatch.setattr(_rows, "MOST_EXPANDED", 1 << 20)
    monkeypatch.setattr(_rows, "MOST_AT_ONCE", 1 << 16)


def pieces(path):
    """Read votes a piece at a time."""
    return list(iter_votes(path, ["a"], size=1 << 17))


def examples(path):
    """Read examples."""
    return read_examples(path).check()


@pytest.mark.parametrize(
    ("read", "cells", "where"),
    [
        (read_votes, VOTES, "column 'a' with 60,000 cells"),
        (read_votes, VOTES | {"item_id": "i" * 300_000}, "its first 4 rows"),
        (pieces, VOTES | {"item_id": "i" * 300_000}, "its first 4 rows"),
        (read_votes, VOTES | {"a": "1" * 1_200_000}, "a group of rows, 'a'. Write smaller groups of rows"),
        (examples, EXAMPLES | {"source": "s" * 1_200_000}, "a group of rows, 'source'"),
    ],
)
def test_a_small_file_that_takes_much(tmp_path, little, read, cells, where):
    """Cells that are many, and a text that is repeated, or too long."""
    path = write_same(tmp_path / "x.parquet", cells, 60_000 if "60,000" in where else 30_000)
    assert path.stat().st_size < 16_000
    message = fault(read, path)
    assert "must name Parquet files that take at most " in message
    assert f"Got more in '{path}': {where}" in message


@pytest.mark.parametrize("read", [pieces, examples])
def test_rows_that_are_read_as_a_stream_are_counted_too(tmp_path, little, read):
    """Of each row eight bytes are kept."""
    path = write_same(tmp_path / "x.parquet", VOTES | EXAMPLES, 100_000, groups=2)
    assert f"Got more in '{path}': 200,000 rows. " in fault(read, path)


def test_a_long_source_may_repeat(tmp_path, little):
    """A source that many examples share is no bomb: fewer are read together."""
    path = write_same(tmp_path / "x.parquet", EXAMPLES | {"source": "s" * 40_000}, 300)
    held = pa.total_allocated_bytes()
    taken = [pa.total_allocated_bytes() - held for _ in read_examples(path)]
    assert len(taken) == 300
    assert max(taken) < 1 << 19


@pytest.mark.parametrize(("longest", "pieces_read"), [("x", 3), ("x" * (1 << 18), 1172)])
def test_it_is_the_longest_text_that_counts_not_all_of_them(tmp_path, longest, pieces_read):
    """Ids of a million items are read as many at a time as was asked for; one long text among them, and fewer are."""
    names = [*(f"item {number}" for number in range(299_999)), longest]
    table = pa.table({"dataset": ["d"] * 300_000, "item_id": names, "a": np.zeros(300_000, np.int8)})
    parquet.write_table(table, tmp_path / "x.parquet", dictionary_pagesize_limit=1 << 24)
    with open_parquet(tmp_path / "x.parquet", "paths") as file:
        assert sum(1 for _ in file.batches(VOTES, 1 << 17)) == pieces_read


def test_a_list_of_texts_is_bounded_by_its_longest_text(tmp_path):
    """Not by all of its dictionary, so that evidence is read many rows at a time."""
    evidence = [[f"{number:04}" * 20, "because"] for number in range(5_000)]
    parquet.write_table(pa.table({"evidence": evidence}), tmp_path / "x.parquet")
    with open_parquet(tmp_path / "x.parquet", "judgments") as file:
        assert file.file.metadata.row_group(0).total_byte_size > 1 << 18
        assert file._rows_at_once(["evidence"], False) == _rows.MOST_AT_ONCE // 80


@pytest.mark.parametrize("read", [read_votes, pieces])
def test_texts_that_repeat_their_beginnings(tmp_path, little, read):
    """The encoding DELTA_BYTE_ARRAY, of which a page repeats what one cell holds."""
    path = write_prefixed(tmp_path / "x.parquet", 5_000, 10_000)
    assert path.stat().st_size < 20_000
    assert "its first " in fault(read, path)


def test_a_page_that_is_larger_than_the_footer_says(tmp_path, little):
    """Its header is not believed, neither by deep nor by Arrow: what a page holds must be as long as it says."""
    path = write_same(tmp_path / "x.parquet", VOTES | {"a": "1" * 200_000}, 100)
    with open_parquet(path, "paths") as table:
        at = table.file.metadata.row_group(0).column(2).dictionary_page_offset
    data = bytearray(path.read_bytes())
    size = data.index(_varint(2 * 200_004), at)
    data[size : size + 3] = _varint(2 * 1_048_575)
    path.write_bytes(bytes(data))
    before = pa.total_allocated_bytes()
    assert "`paths` must name readable Parquet files." in fault(read_votes, path)
    assert pa.total_allocated_bytes() == before


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize("samples", [20_000, 10])
def test_a_list_of_judgments_may_not_be_huge(tmp_path, little, samples):
    """One row may hold a list without an end."""
    row = dict.fromkeys(("dataset", "item_id", "voter"), "x") | {"samples": [1] * samples}
    table = pa.Table.from_pylist([row], judgments_schema())
    parquet.write_table(table, tmp_path / "votes.judgments.parquet")
    (tmp_path / "votes.parquet").write_bytes(b"")
    if samples == 10:
        assert len(next(read_judgments(tmp_path / "votes.parquet")).samples) == 10
    else:
        message = fault(lambda path: list(read_judgments(path)), tmp_path / "votes.parquet")
        assert "`judgments` must name Parquet files that take at most" in message
        assert "column 'samples' with 20,000 cells" in message


@pytest.mark.parametrize("footer", [1 << 25, 1 << 31])
def test_a_footer_that_is_too_large(tmp_path, footer):
    """It is refused by its length, which must also be true."""
    path = tmp_path / "x.parquet"
    with path.open("wb") as file:
        file.truncate((1 << 25) + 100)
        file.seek(0, 2)
        file.write(footer.to_bytes(4, "little") + b"PAR1")
    message = fault(read_votes, path)
    if footer == 1 << 25:
        assert "whose columns are described in at most 16,777,216 bytes. Got 33,554,432 in " in message
    else:
        assert message.startswith(f"`paths` must name readable Parquet files. Got {path}: ")


PROGRAM = """
import sys
from pathlib import Path
from deep.datasets import iter_votes, read_examples, read_votes
from deep.exceptions import InputError
def peak():  # its own: Linux counts that of the process which started it in `ru_maxrss`
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
before = peak()
for path in sys.argv[1:]:
    for read in (read_votes, lambda p: list(iter_votes(p, ["a"])), lambda p: read_examples(p).check()):
        try:
            read(path)
        except InputError as error:
            assert len(str(error).splitlines()) == 1
            continue
        sys.exit("taken")
print(peak() - before)
"""


def test_the_memory_of_a_process(tmp_path):
    """68 million rows, a million ids of a mebibyte, six thousand of which each repeats the last."""
    bombs = [
        write_same(tmp_path / "rows.parquet", VOTES, 4_000_000, groups=17),
        write_same(tmp_path / "text.parquet", VOTES | {"item_id": "i" * (1 << 20)}, 1_000_000),
        write_prefixed(tmp_path / "prefix.parquet", 6_000, 100_000),
    ]
    assert sum(path.stat().st_size for path in bombs) < 1_000_000
    for path in bombs:  # a process each: what the allocator keeps of one file is not counted with the next
        done = subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) < 1 << 20  # kibibytes
