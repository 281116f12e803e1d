"""Votes read a piece at a time: the same cells as read whole, and the same faults at the same places."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from deep.datasets import iter_votes, locate_row, read_votes, vote_details
from tests.datasets.tables import fault, write_rows

HEADER = ["dataset", "item_id", "label", "family", "a", "b", "note"]
ROWS = [["d", f"i{n}", n % 2, f"family {n}", n % 2, (n + 1) % 2, "text"] for n in range(7)]


def drain(path, **options):
    """Go through all pieces of voter a."""
    return list(iter_votes(path, ["a"], **options))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_pieces_below_each_other_are_the_table(tmp_path, suffix, size):
    """In the order of the file and of the voters asked for; other columns are not looked at."""
    path = write_rows(tmp_path / f"v.{suffix}", HEADER, ROWS)
    pieces = list(iter_votes(path, ["b", "a"], size=size))
    assert [len(piece.votes) for piece in pieces[:-1]] == [size] * (len(pieces) - 1)
    whole = read_votes(path, ignore=["note", "family"])
    assert np.array_equal(np.concatenate([piece.votes for piece in pieces]), whole.votes[:, ::-1])
    assert np.concatenate([piece.labels for piece in pieces]).tolist() == whole.labels.tolist()
    assert [str(item) for piece in pieces for item in piece.item_ids] == whole.item_ids.tolist()


def test_several_files_are_joined_first(tmp_path):
    """As `read_votes` joins them, with no vote where a file lacks an item."""
    one = write_rows(tmp_path / "1.csv", ["dataset", "item_id", "a"], [["d", "x", 1], ["d", "y", 0]])
    two = write_rows(tmp_path / "2.csv", ["dataset", "item_id", "b"], [["d", "y", 1]])
    first, second = iter_votes([one, two], ["b", "a"], size=1)
    assert (first.votes.tolist(), second.votes.tolist()) == ([[-1, 1]], [[1, 0]])
    assert (first.labels.tolist(), second.item_ids.to_pylist()) == ([-1], ["y"])


@pytest.mark.parametrize(("suffix", "row"), [("csv", "row 6 (line 7)"), ("parquet", "row 6")])
def test_a_fault_in_a_later_piece_is_found_at_its_row(tmp_path, suffix, row):
    """Rows count from the top of the file, not of the piece."""
    rows = [list(row) for row in ROWS]
    rows[5][4] = 7
    path = write_rows(tmp_path / f"v.{suffix}", HEADER, rows)
    shown = "'7'" if suffix == "csv" else "7"
    assert f"Got {shown} at {path}, column 'a', {row}. " in fault(drain, path, size=2)
    rows[5][4], rows[5][1] = 1, ""
    path = write_rows(tmp_path / f"v.{suffix}", HEADER, rows)
    assert fault(drain, path, size=4) == f"`item_id` must not be empty. Got '' at {path}, column 'item_id', {row}."


@pytest.mark.parametrize("size", [1, 100])
def test_an_item_twice_is_found_across_pieces(tmp_path, size):
    """With both of its rows, as when the table is read whole."""
    path = write_rows(tmp_path / "v.parquet", HEADER, [*ROWS, ROWS[2]])
    assert fault(drain, path, size=size) == fault(read_votes, path, ignore=["note", "family"])
    assert "row 8, and before at row 3" in fault(drain, path, size=size)


def test_a_table_without_rows_or_keys(tmp_path):
    """The faults of `read_votes`."""
    empty = write_rows(tmp_path / "v.parquet", HEADER, [])
    assert fault(drain, empty) == f"`paths` must name files with at least one row. Got none in {empty}."
    keyless = write_rows(tmp_path / "k.csv", ["dataset", "a"], [["d", 1]])
    assert fault(drain, keyless).startswith("`paths` must have a column item_id.")


def test_an_item_is_located_in_the_first_file_that_has_it(tmp_path):
    """For an error message; None where no file has it."""
    one = write_rows(tmp_path / "1.csv", ["dataset", "item_id", "a"], [["d", "x", 1]])
    two = write_rows(tmp_path / "2.csv", ["dataset", "item_id", "b"], [["d", "x", 1], ["d", "y", 1]])
    assert locate_row([one, two], "d", "y", "label") == f"{two}, column 'label', row 2 (line 3)"
    assert locate_row([one, two], "e", "y", "label") is None


def test_details_of_voters_come_from_the_files_that_have_some(tmp_path):
    """With the number of samples, where there were several; a file without them, or of no use, adds nothing."""
    table = pa.table({"dataset": ["d"], "item_id": ["x"], "a": [1]})
    for name, message in (
        ("1", {"voters": {"a": {"kind": "prompt"}}, "samples": 5}),
        ("2", {"voters": {"b": {"kind": "lexical"}, "c": "no object"}}),
        ("3", ["no object"]),
    ):
        metadata = {"deep": json.dumps(message)}
        parquet.write_table(table.replace_schema_metadata(metadata), tmp_path / f"{name}.parquet")
    (tmp_path / "4.parquet").write_bytes(b"no Parquet")
    paths = [str(tmp_path / f"{name}.parquet") for name in "1234"]
    assert vote_details([*paths, str(tmp_path / "votes.csv")]) == {
        "a": {"kind": "prompt", "samples": 5},
        "b": {"kind": "lexical"},
    }
