"""Tables that are read in pieces and held: the same as read at once, the same faults, and ids as Arrow has them."""

import numpy as np
import pyarrow as pa
import pytest

from deep._util.columns import hash_texts
from deep.datasets import join_scores, read_scores, read_votes
from deep.records import VoteMatrix
from tests.datasets.tables import fault, write_rows

HEADER = ["dataset", "item_id", "label", "document_id", "a", "b"]
ROWS = [[f"d{n % 2}", f"i{n}", n % 2, "" if n == 4 else f"text {n // 3}", n % 2, (n + 1) % 2] for n in range(7)]
NAMES = ("votes", "item_ids", "datasets", "labels", "document_ids")


def columns(table, names=NAMES):
    """Return the content of a table."""
    return [getattr(table, name).tolist() for name in names]


@pytest.fixture
def two_at_once(monkeypatch):
    """Let tables be read two rows at a time."""
    monkeypatch.setattr("deep._util.join.ROWS_AT_ONCE", 2)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_pieces_make_the_same_table(tmp_path, monkeypatch, suffix):
    """Votes, scores, labels, documents and ids, of one file and of two."""
    path = write_rows(tmp_path / f"v.{suffix}", HEADER, ROWS)
    more = write_rows(tmp_path / f"w.{suffix}", ["dataset", "item_id", "c"], [["d1", "i5", 1], ["d9", "i9", 0]])
    read = [lambda: read_votes(path), lambda: read_votes([path, more])]
    whole = [columns(one()) for one in read]
    scores = read_scores(path).scores
    monkeypatch.setattr("deep._util.join.ROWS_AT_ONCE", 2)
    assert [columns(one()) for one in read] == whole
    assert np.array_equal(read_scores(path).scores, scores)
    assert whole[0][4][4] == "d0/i4"


@pytest.mark.usefixtures("two_at_once")
@pytest.mark.parametrize(("suffix", "row"), [("csv", "row 6 (line 7)"), ("parquet", "row 6")])
def test_faults_of_later_pieces_are_found_at_their_rows(tmp_path, suffix, row):
    """A cell that is no vote, no id, and an item that comes twice."""
    wrong = [list(one) for one in ROWS]
    wrong[5][5] = 7
    path = write_rows(tmp_path / f"v.{suffix}", HEADER, wrong)
    assert f" at {path}, column 'b', {row}. " in fault(read_votes, path)
    wrong[5][5], wrong[5][1] = 1, ""
    path = write_rows(tmp_path / f"v.{suffix}", HEADER, wrong)
    assert fault(read_votes, path) == f"`item_id` must not be empty. Got '' at {path}, column 'item_id', {row}."
    wrong[5][:2] = wrong[0][:2]
    path = write_rows(tmp_path / f"v.{suffix}", HEADER, wrong)
    assert fault(read_votes, path) == (
        f"`item_id` must be unique within a dataset. Got 'i0' of dataset 'd0' at {path}, column 'item_id', {row}, and "
        "before at row 1."
    )


def test_items_of_one_hash_are_two_items(tmp_path, monkeypatch):
    """What is the same is looked up, not taken from a hash."""
    path = write_rows(tmp_path / "v.parquet", HEADER, ROWS)
    whole = columns(read_votes(path))
    monkeypatch.setattr("deep.datasets._tables.hash_items", lambda _, ids: np.zeros(len(ids), dtype=np.uint64))
    assert columns(read_votes(path)) == whole


def test_ids_are_of_one_type(tmp_path):
    """Read from a file or given, of rows chosen by mask or position too, and after anybody has looked at them."""
    votes = read_votes(write_rows(tmp_path / "v.parquet", HEADER, ROWS))
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
    votes = read_votes(write_rows(tmp_path / "v.parquet", HEADER, ROWS), ignore=["label"])
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
