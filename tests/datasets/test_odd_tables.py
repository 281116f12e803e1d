"""Tables of odd kinds: each is read right, or refused in one printable line."""

import datetime as dt
import decimal
import itertools

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import deep
from deep.datasets import iter_votes, read_labels, read_people, read_scores
from deep.evaluate import read_panel_card
from deep.exceptions import InputError

N = 4
DAY = dt.datetime(2026, 1, 1)
KINDS = {
    "bits": pa.array([1, 0, None, 1]),
    "empty": pa.nulls(N),
    "words": pa.array(["yes", "NO", "", "True"]),
    "truth": pa.array([True, False, None, True]),
    "whole floats": pa.array([1.0, 0.0, None, 1.0]),
    "halves": pa.array([1.5, 0.5, 0.0, 1.0], pa.float16()),
    "not numbers": pa.array([float("nan"), float("inf"), 0.0, 1.0]),
    "decimals": pa.array([decimal.Decimal(1), decimal.Decimal(0), None, decimal.Decimal(1)]),
    "large": pa.array([2**64 - 1, 0, 1, 1], pa.uint64()),
    "NUL": pa.array(["\0", "a\0", "b", "c"]),
    "lines": pa.array(["a\nb", "a\r", "\u2028", "\x1b[31m"]),
    "unseen": pa.array(["\u200b", "\ufeffa", "a ", " a"]),
    "long": pa.array(["x" * 5000 + str(k) for k in range(N)]),
    "twins": pa.array(["é", "e\u0301", "b", "c"]),
    "large text": pa.array(["1", "0", "1", "0"], pa.large_string()),
    "text view": pa.array(["1", "0", "1", "0"], pa.string_view()),
    "dictionary": pa.array(["1", "0", None, "1"]).dictionary_encode(),
    "dictionary of numbers": pa.array([1, 0, None, 1]).dictionary_encode(),
    "bytes": pa.array([b"1", b"0", b"\xff", b""]),
    "fixed bytes": pa.array([b"11", b"00", None, b"11"], pa.binary(2)),
    "days": pa.array([DAY.date()] * N),
    "times of a zone": pa.array([DAY] * N, pa.timestamp("us", "Pacific/Chatham")),
    "times of no known zone": pa.array([DAY] * N, pa.timestamp("us", "Mars/Olympus")),
    "times out of range": pa.array([2**62, 1, 2, 3], pa.int64()).cast(pa.timestamp("s")),
    "spans": pa.array([2**62, 1, 2, 3], pa.int64()).cast(pa.duration("ns")),
    "lists": pa.array([[1], [0], None, []]),
    "structs": pa.array([{"a": 1}] * N),
    "decimal commas": pa.array(["0,85", "1", "0", ""]),
}
PLAIN = {
    "dataset": pa.array(["d"] * N),
    "item_id": pa.array(["a", "b", "c", "e"]),
    "label": pa.array([1, 0, None, 1]),
    "j": pa.array([1, 1, 0, None]),
    "k": pa.array([0, 1, 0, 1]),
}
ROLES = (*PLAIN, "document_id", "family")
CROWD = {"dataset": "dataset", "item_id": "task", "j": "label", "k": "worker", "label": "note"}


def written(table, ending, folder):
    """Return a table as a frame, or the path of a file of it."""
    if ending == "frame":
        return table
    path = folder / f"t.{ending}"
    if ending == "csv":
        csv.write_csv(table, path)
    else:
        parquet.write_table(table, path)
    return path


def told_in_one_line(read):
    """Return what a reader reads; None where it refuses, which must be one printable line."""
    try:
        return read()
    except InputError as error:
        message = str(error)
    assert message.isprintable(), repr(message)
    assert len(message) < 1500
    return None


@pytest.mark.parametrize("ending", ["csv", "frame", "parquet"])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("layout", [{}, CROWD], ids=["wide", "crowd"])
@pytest.mark.filterwarnings("ignore::deep.exceptions.DeepWarning")
def test_odd_kinds_are_read_or_refused_in_a_line(tmp_path, ending, role, layout):
    """Whatever kind of cells stands in whatever role, each way to read a table says so alike, and never breaks."""
    for kind, cells in KINDS.items():
        columns = {layout.get(name, name): column for name, column in {**PLAIN, role: cells}.items()}
        try:
            given = written(pa.table(columns), ending, tmp_path)
        except pa.ArrowInvalid:
            continue  # CSV has no lists
        result = told_in_one_line(lambda given=given: deep.VoteMatrix.from_frame(given) if ending == "frame" else None)
        votes = told_in_one_line(lambda given=given: deep.read_votes(given))
        assert result is None or (result.votes == votes.votes).all(), kind
        if votes is not None and not layout:
            assert len(votes.votes) == N, kind
        for read in READERS:
            told_in_one_line(lambda given=given, read=read: read(given))
        if ending != "frame" and votes is not None:
            pieces = list(iter_votes(given, votes.voter_names))
            assert sum(len(piece.votes) for piece in pieces) == len(votes.votes), kind


KNOWN = deep.VoteMatrix([[1]] * N, PLAIN["item_id"].to_pylist(), ["j"], ["d"] * N, [-1] * N)


READERS = (read_scores, read_labels, lambda given: read_people(given, KNOWN), lambda given: read_labels(given, KNOWN))


HEADERS = [
    "",
    "\n\n",
    "sep=;\n",
    "sep=\U0001f600\ndataset\U0001f600item_id\U0001f600a\nd\U0001f600x\U0001f6001\n",
    "\n" * 2000 + "dataset,item_id,a\nd,x,1\n",
    "dataset,item_id,a\r\n" + "\r\n" * 2000 + "d,x,1\n",
    "dataset,item_id,a",
    "dataset,item_id,a\n",
    "task,worker,label\n",
    "dataset;item_id;a\n",
]


def test_files_without_rows(tmp_path, monkeypatch):
    """They are refused in a line, in every layout; so are more blank lines in a row than anybody writes."""
    for module in ("_rows", "_source"):
        monkeypatch.setattr(f"deep.datasets.{module}.MOST_BLANK", 1000)
    path = tmp_path / "t.csv"
    for header in HEADERS:
        path.write_text(header)
        for read in (deep.read_votes, read_scores, read_labels):
            with pytest.raises(InputError, match=r"^`\w+` must .*$"):
                read(path)


@pytest.mark.parametrize("read", [deep.read_votes, lambda path: list(deep.read_examples(path))])
def test_a_header_of_very_many_columns(tmp_path, read):
    """It is refused before its names are made; a quoted comma is none of them."""
    path = tmp_path / "t.csv"
    for head in ("{}", '"a\n",{}', "sep=|\n{}"):
        path.write_text(head.format(("|" if "|" in head else ",") * (1 << 17)))
        with pytest.raises(InputError, match=r"must have at most 131,072 columns\. Got more in the header of .*t\.csv"):
            read(path)
    path.write_text(f'dataset,item_id,"a{"," * (1 << 17)}"\nnews,x,1\n')
    with pytest.raises(InputError) as caught:
        read(path)
    assert "131,072" not in str(caught.value)


@pytest.mark.parametrize("dataset", ["\0", "a\0", "\0\0"])
def test_a_dataset_named_nul(dataset):
    """NumPy compares texts without the NULs at their end, so that the place of such a name was not found."""
    frame = pd.DataFrame({"dataset": ["a", dataset], "item_id": ["x", "y"], "j": [1, 0]})
    with pytest.raises(InputError, match=r"Got the control character U\+0000 in .* at row 1 \(from 0\)"):
        deep.VoteMatrix.from_frame(frame)


def test_ids_as_long_as_texts_take_no_step_a_letter(tmp_path, monkeypatch):
    """An id of a million letters is hashed by its digest: the number of steps does not grow with its letters."""
    from deep._util import columns

    steps = itertools.count()
    monkeypatch.setattr(
        columns, "splitmix64_mix", lambda values, mixed=columns.splitmix64_mix: (next(steps), mixed(values))[1]
    )
    parquet.write_table(
        pa.table({**PLAIN, "item_id": [f"{k}é{'x' * 10**6}" for k in range(N)]}), tmp_path / "t.parquet"
    )
    assert len(deep.read_votes(tmp_path / "t.parquet").votes) == N
    assert next(steps) < 100


def test_all_wrong_cells_of_a_column_are_told(tmp_path):
    """Their number, and the rows of the first ten."""
    path = tmp_path / "t.csv"
    cells = "".join(f"d,{k},{'maybe' if k % 2 else 1}\n" for k in range(30))
    path.write_text(f"dataset,item_id,j\n{cells}")
    with pytest.raises(InputError, match=r"row 2 \(line 3\), and in 14 more rows \(4, 6, 8, .* 22, \.\.\.\)\."):
        deep.read_votes(path)
    with pytest.raises(InputError, match=r"Got 'maybe' at .*, and in 14 more rows \(4, 6"):
        read_scores(path)


@pytest.mark.parametrize("read", [deep.read_votes, read_scores])
def test_a_decimal_comma_is_named(tmp_path, read):
    """With the number as deep reads it."""
    path = tmp_path / "t.csv"
    path.write_text("dataset;item_id;g\nd;1;0,85\nd;2;1\n")
    with pytest.raises(InputError, match=r"Its decimal comma is the cause: write a point, as in 0\.85\.$"):
        read(path)


def test_the_first_line_of_excel(tmp_path):
    """`sep=;` is no header; errors count it as a line."""
    path = tmp_path / "t.csv"
    path.write_bytes("\ufeffsep=;\r\ndataset;item_id;j\r\nd;1;1\r\nd;2;0\r\n".encode())
    assert deep.read_votes(path).votes.tolist() == [[1], [0]]
    path.write_bytes(b"sep=|\ndataset|item_id|j\nd|1|1\nd|2|7\n")
    with pytest.raises(InputError, match=r"Got '7' at .*row 2 \(line 4\)"):
        deep.read_votes(path)


@pytest.mark.parametrize("ending", ["csv", "frame", "parquet"])
def test_a_column_that_seems_to_be_a_known_one(tmp_path, ending):
    """It is refused with both names; `ignore` leaves it out, and then the known one is free."""
    for name in ("Label", "label ", " LABEL", "gold", "Target", "y", "Document_ID", "FAMILY"):
        given = written(pa.table({**PLAIN, name: PLAIN["k"]}), ending, tmp_path)
        meant = name.strip().casefold() if name.strip().casefold() in ("document_id", "family") else "label"
        rule = f"Got {name!r} in {'the frame' if ending == 'frame' else given}, which may be the column {meant!r}."
        for read in (deep.read_votes, read_scores):
            with pytest.raises(InputError, match=f"{rule} Rename it, or leave it out"):
                read(given)
        if ending == "frame":
            with pytest.raises(InputError, match=f"Got {name!r}, which .* {meant!r}. Rename it, or drop it"):
                deep.fit(given)
        assert deep.read_votes(given, ignore=[name]).voter_names == ("j", "k")


def test_numbers_as_names_of_columns_and_items():
    """A pivot names its columns by numbers, and a merge makes floats of whole numbers."""
    frame = pd.DataFrame({"item_id": [1.0, 2.0], 7: [1, 0], 8: [0, 1]})
    votes = deep.VoteMatrix.from_frame(frame, dataset="d")
    assert (votes.voter_names, votes.item_ids.tolist()) == (("7", "8"), ["1", "2"])
    with pytest.raises(InputError, match="unique column names"):
        deep.VoteMatrix.from_frame(frame.rename(columns={8: "7"}), dataset="d")


def test_a_panel_of_frames(tmp_path):
    """Votes and labels as frames, as files and by row give one card."""
    votes = pd.DataFrame({"item_id": [f"i{k}" for k in range(40)], "j": [1, 0] * 20, "k": [1, 1, 0, 0] * 10})
    labels = votes[["item_id"]].assign(label=[1, 0, 0, 0] * 10)
    votes.assign(dataset="data").to_csv(tmp_path / "v.csv", index=False)
    labels.to_csv(tmp_path / "l.csv", index=False)
    options = {"n_boot": 10, "worth": False}
    cards = [
        read_panel_card(votes, labels, **options),
        read_panel_card([str(tmp_path / "v.csv")], [str(tmp_path / "l.csv")], **options),
    ]
    assert cards[0].as_dict() == cards[1].as_dict()
    assert read_panel_card(votes, labels["label"], **options).n_labeled == cards[0].n_labeled == 40
