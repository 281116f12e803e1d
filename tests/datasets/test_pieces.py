"""Tables that are read a piece at a time: the same cells as read whole, the same faults at the same places; ids."""

import json
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from deep._util.columns import hash_texts
from deep.datasets import iter_votes, join_scores, locate_row, read_scores, read_votes, vote_details
from deep.records import VoteMatrix
from tests.datasets.tables import fault, write_rows

HEADER = ["dataset", "item_id", "label", "document_id", "a", "b", "family", "note"]
ROWS = [
    ["d", f"i{n}", n % 2, "" if n == 4 else f"text {n // 3}", n % 2, (n + 1) % 2, f"family {n}", "text"]
    for n in range(7)
]


def drain(path, **options):
    """Go through all pieces of voter a."""
    return list(iter_votes(path, ["a"], **options))


def read_plainly(path):
    """Read a table whole."""
    return read_votes(path, ignore=["note", "family"])


def columns(table):
    """Return the content of a table."""
    return [getattr(table, name).tolist() for name in ("votes", "item_ids", "datasets", "labels", "document_ids")]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_pieces_below_each_other_are_the_table(tmp_path, monkeypatch, suffix):
    """In the order of the file and of the voters asked for; other columns are not looked at."""
    path = write_rows(tmp_path / f"v.{suffix}", HEADER, ROWS)
    more = write_rows(tmp_path / f"w.{suffix}", ["dataset", "item_id", "c"], [["d", "i5", 1], ["d9", "i9", 0]])
    read = [lambda: read_plainly(path), lambda: read_plainly([path, more])]
    (whole, _) = tables = [one() for one in read]
    scores = read_scores(path, ignore=["note", "family"]).scores
    for size in (1, 3, 7, 100):
        pieces = list(iter_votes(path, ["b", "a"], size=size))
        assert [len(piece.votes) for piece in pieces[:-1]] == [size] * (len(pieces) - 1)
        assert np.array_equal(np.concatenate([piece.votes for piece in pieces]), whole.votes[:, ::-1])
        assert np.concatenate([piece.labels for piece in pieces]).tolist() == whole.labels.tolist()
        assert [str(item) for piece in pieces for item in piece.item_ids] == whole.item_ids.tolist()
    monkeypatch.setattr("deep._util.join.ROWS_AT_ONCE", 2)
    assert [columns(one()) for one in read] == list(map(columns, tables))
    assert np.array_equal(read_scores(path, ignore=["note", "family"]).scores, scores)
    assert whole.document_ids[4] == "d/i4"


def test_several_files_are_joined_first(tmp_path):
    """As `read_votes` joins them, with no vote where a file lacks an item."""
    one = write_rows(tmp_path / "1.csv", ["dataset", "item_id", "a"], [["d", "x", 1], ["d", "y", 0]])
    two = write_rows(tmp_path / "2.csv", ["dataset", "item_id", "b"], [["d", "y", 1]])
    first, second = iter_votes([one, two], ["b", "a"], size=1)
    assert (first.votes.tolist(), second.votes.tolist()) == ([[-1, 1]], [[1, 0]])
    assert (first.labels.tolist(), second.item_ids.to_pylist()) == ([-1], ["y"])


@pytest.mark.parametrize("read", [partial(drain, size=2), read_plainly])
@pytest.mark.parametrize(("suffix", "row"), [("csv", "row 6 (line 7)"), ("parquet", "row 6")])
def test_a_fault_in_a_later_piece_is_found_at_its_row(tmp_path, monkeypatch, suffix, row, read):
    """Rows count from the top of the file, not of the piece: no vote, no id, an item that comes twice."""
    monkeypatch.setattr("deep._util.join.ROWS_AT_ONCE", 2)
    rows = [list(row) for row in ROWS]
    path = tmp_path / f"v.{suffix}"
    rows[5][4] = 7
    shown = "'7'" if suffix == "csv" else "7"
    assert f"Got {shown} at {path}, column 'a', {row}. " in fault(read, write_rows(path, HEADER, rows))
    rows[5][4], rows[5][1] = 1, ""
    expected = f"`item_id` must not be empty. Got '' at {path}, column 'item_id', {row}."
    assert fault(read, write_rows(path, HEADER, rows)) == expected
    rows[5][1] = "i2"
    assert fault(read, write_rows(path, HEADER, rows)) == (
        f"`item_id` must be unique within a dataset. Got 'i2' of dataset 'd' at {path}, column 'item_id', {row}, and "
        "before at row 3."
    )


def test_a_table_without_rows_or_keys(tmp_path):
    """The faults of `read_votes`."""
    assert "at least one row" in fault(drain, write_rows(tmp_path / "v.parquet", HEADER, []))
    assert "a column item_id" in fault(drain, write_rows(tmp_path / "k.csv", ["dataset", "a"], [["d", 1]]))


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


def test_items_of_one_hash_are_two_items(tmp_path, monkeypatch):
    """What is the same is looked up, not taken from a hash."""
    path = write_rows(tmp_path / "v.parquet", HEADER, ROWS)
    whole = columns(read_plainly(path))
    for module in ("deep._util.join", "deep.datasets._tables"):
        monkeypatch.setattr(f"{module}.hash_items", lambda _, ids: np.zeros(len(ids), dtype=np.uint64))
    assert columns(read_plainly(path)) == whole
    assert sum(len(piece.votes) for piece in drain(path)) == 7


def test_ids_are_of_one_type(tmp_path):
    """Read from a file or given, of rows chosen by mask or position too, and after anybody has looked at them."""
    votes = read_plainly(write_rows(tmp_path / "v.parquet", HEADER, ROWS))
    some = votes.rows(np.array([5, 0, -1]))
    masked = votes.rows(votes.labels == 1).rows(np.array([True, False, True]))
    given = VoteMatrix([[1], [0]], ["i3", 4], ["a"], ["d", "d"], [1, 0])
    whole = (votes, [row[1] for row in ROWS])
    for one, ids in ((some, ["i5", "i0", "i6"]), (masked, ["i1", "i5"]), (given, ["i3", "4"]), whole):
        assert one.item_ids.dtype == object
        assert one.item_ids.tolist() == ids
    assert all(type(name) is str for name in votes.item_ids)


@pytest.mark.parametrize("order", [range(7), [3, 1, 0, 2, 6, 5, 4]])
def test_scores_are_joined_in_any_order(tmp_path, order):
    """The same scores and labels, whether the rows stand beside each other or are looked for."""
    rows = [[row[0], row[1], None if n == 2 else row[2], n / 8] for n, row in enumerate(ROWS)]
    path = write_rows(tmp_path / "v.parquet", HEADER, ROWS)
    votes = read_votes(path, ignore=["label", "note", "family"])
    path = write_rows(tmp_path / "s.parquet", ["dataset", "item_id", "label", "s"], [rows[n] for n in order])
    joined = join_scores(votes, read_scores(path))
    assert joined.scores[:, 0].tolist() == [n / 8 for n in range(7)]
    assert joined.labels.tolist() == [0, 1, -1, 1, 0, 1, 0]
    assert (joined.n_unmatched, joined.document_ids.tolist()) == (0, votes.document_ids.tolist())
    assert joined.item_ids.tolist() == votes.item_ids.tolist()


def test_a_hash_tells_texts_apart():
    """By every byte and by length, wherever they stand in memory."""
    texts = ["", "a", "a\0", "\0", "x" * 8, "x" * 9, "x" * 16, "x" * 15 + "y", "y" + "x" * 15, "x" * 300, "ä€"]
    result = hash_texts(pa.chunked_array([texts, ["a"]]))
    assert len(set(result.tolist())) == len(texts)
    assert result[-1] == result[1]
    assert hash_texts(pa.chunked_array([["more", *texts]]).slice(1)).tolist() == result[:-1].tolist()
