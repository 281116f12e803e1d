"""Every fault of a table gives one line that names the file and the place."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from deep.datasets import read_scores, read_votes
from tests.datasets.tables import fault, write_rows, write_text

HEADER = ["dataset", "item_id", "label", "a", "b"]


def one_row(tmp_path, cell="1", column="a", suffix="csv"):
    """Write three good rows, but for one cell in the second."""
    rows = [["d", "x", "1", "1", "0"], ["d", "y", "0", "0", ""], ["e", "x", "1", "", "1"]]
    rows[1][HEADER.index(column)] = cell
    return write_rows(tmp_path / f"v.{suffix}", HEADER, rows)


@pytest.mark.parametrize("cell", ["2", "-1", "y", "tRUE", "nan", " 1", "1.5", "1e0", "01"])
def test_no_vote(tmp_path, cell):
    """Only 1, 0, 1.0, 0.0, the words for them and empty cells are votes in CSV."""
    path = one_row(tmp_path, cell)
    of_grades = " Of a judge that gives grades or shares, say the scale: `--scale a=1-5` (`scales`)."
    assert fault(read_votes, path) == (
        f"`votes` must be 0, 1 or empty. Got {cell!r} at {path}, column 'a', row 2 (line 3). "
        "Leave a cell empty for no vote; leave a column that holds no votes out with `--ignore` (`ignore`)."
        f"{of_grades if cell in ('2', '-1', '1.5') else ''}"
    )


@pytest.mark.parametrize(
    ("read", "column", "cells", "rule"),
    [
        (read_votes, "label", ("maybe", "2", "-1"), "`label` must be 0, 1 or empty."),
        (read_scores, "label", ("maybe", "2", "-1"), "`label` must be 0, 1 or empty."),
        (
            read_scores,
            "b",
            ("inf", "-Infinity", "1e999", "high", "1,5", "0x1"),
            "`scores` must be finite numbers or empty.",
        ),
        (read_scores, "b", ("1e308", "-1e308", "9223372036854775808", "1e15"), "`scores` must lie between -1e15 and"),
        (read_votes, "dataset", ("",), "`dataset` must not be empty."),
        (read_votes, "item_id", ("",), "`item_id` must not be empty."),
    ],
)
def test_no_cell_of_its_kind(tmp_path, read, column, cells, rule):
    """Neither a label, a score that a figure can show, nor a key."""
    for cell in cells:
        path = one_row(tmp_path, cell, column)
        message = fault(read, path)
        assert message.startswith(rule)
        assert f" Got {cell!r} at {path}, column {column!r}, row 2 (line 3)." in message


@pytest.mark.parametrize(("read", "what"), [(read_votes, "voter"), (read_scores, "score")])
def test_more_columns_than_judges(tmp_path, read, what):
    """A table on its side is refused before its cells take all memory; one without judges has none to read."""
    names = ["dataset", "item_id", *(f"v{n}" for n in range(10_001))]
    path = write_text(tmp_path / "wide.csv", ",".join(names) + "\n" + ",".join(["d", "a", *["1"] * 10_001]) + "\n")
    message = fault(read, path)
    assert message.startswith(f"`paths` must have at most 10,000 {what} columns each. Got 10,001 in '{path}'.")
    message = fault(read, one_row(tmp_path), ignore=["a", "b"])
    assert message.startswith(f"`paths` must have at least one {what} column beside dataset, item_id, label,")


PARQUET = [
    (read_votes, {"a": pa.array([1, 2])}, "Got 2 at {path}, column 'a', row 2. "),
    (read_votes, {"a": pa.array([1.0, 0.5])}, "Got 0.5 at {path}, column 'a', row 2. "),
    (read_votes, {"a": pa.array([1.0, float("-inf")])}, "Got -inf at {path}, column 'a', row 2. "),
    (read_votes, {"a": pa.array([0, 2**63], pa.uint64())}, f"Got {2**63} at {{path}}, column 'a', row 2. "),
    (read_votes, {"a": pa.array(["1", "none"])}, "Got 'none' at {path}, column 'a', row 2. "),
    (read_votes, {"a": pa.array(["1", "none"]).dictionary_encode()}, "Got 'none' at {path}, column 'a', row 2. "),
    *(
        (read, {"a": column}, "at {path}, column 'a', row 1, and in 1 more row (2). ")
        for read in (read_votes, read_scores)
        for column in (pa.array([[1], [0]]), pa.array([b"1", b"0"]), pa.array([1, 0], pa.date32()))
    ),
    *(
        (
            read_votes,
            {"item_id": column},
            f"`item_id` must be text or whole numbers. Got type {column.type} in {{path}}, column 'item_id'. Write it",
        )
        for column in (pa.array([1.5, 2.0]), pa.array([True, False]))
    ),
    (read_votes, {"item_id": [7, None]}, "`item_id` must not be empty. Got '' at {path}, column 'item_id', row 2."),
    (read_votes, {"item_id": ["7", ""]}, "`item_id` must not be empty. Got '' at {path}, column 'item_id', row 2."),
]


@pytest.mark.parametrize(("read", "columns", "expected"), PARQUET)
def test_no_cell_of_its_kind_in_parquet(tmp_path, read, columns, expected):
    """The row is counted from 1, and there is no line; lists, bytes and dates are neither votes nor scores."""
    path = tmp_path / "v.parquet"
    parquet.write_table(pa.table({"dataset": ["d", "d"], "item_id": [1, 2], "a": [1, 0]} | columns), path)
    assert expected.format(path=path) in fault(read, path)


LONG_CELL = f"dataset,item_id,text,a\nd,x,{'long ' * 40_000},1\nd,y,short,7\n"
CLAIMS = "dataset,example_id,source,claim\n1,1,1,1\n"
WIDTH = "`paths` must have as many cells as columns. Got row 2 (line 3) of '{path}', with %d cells under 5 columns."
COLUMN = "`paths` must have a column {}. Got {} in {{path}}."
TEXTS = [
    # rows: an editor's line is told, behind cells over several lines and long ones, blank lines and other line ends
    ('dataset,item_id,a\r\n\r\nd,"x\ny\rz",1\nd,v,0\n\nd,w,7\n', "row 3 (line 8)"),
    (LONG_CELL, "row 2 (line 3)"),
    *(
        (f"dataset,item_id,label,a,b\nd,x,1,1,1\n{line}\nd,z,1,1,1\n", WIDTH % n)
        for line, n in (("d,y,0,0", 4), ("d,y,0,0,,", 6), ("d", 1), ("   ", 1))
    ),
    (
        "dataset,item_id,a\nd,x,1\ne,x,1\nd,y,1\nd,x,1\n",
        "`item_id` must be unique within a dataset. Got 'x' of dataset 'd' at {path}, column 'item_id', row 4 "
        "(line 5), and before at row 1.",
    ),
    # headers
    ("dataset,item_id,a,a\n1,1,1,1\n", "`paths` must have unique column names. Got 'a' twice in {path}."),
    (",dataset,item_id,a\n1,1,1,1\n", "`paths` must have a name above every column. Got none above column 1 of"),
    ("item_id,label,a,b\n1,1,1,1\n", COLUMN.format("dataset", "'item_id', 'label', 'a', 'b'")),
    ("dataset;item_id,x,a,b\n1,1,1,1\n", COLUMN.format("dataset", "'dataset;item_id', 'x', 'a', 'b'")),
    ("dataset,label,a,b\n1,1,1,1\n", COLUMN.format("item_id", "'dataset', 'label', 'a', 'b'")),
    ("dataset,item_id,label,family\n1,1,1,1\n", "`paths` must have at least one voter column beside"),
    (CLAIMS, " in {path}. It holds claims: `deep ask` makes votes of it."),
    # nothing in them
    *((f"dataset,item_id,a{end}", "`paths` must name files with at least one row. Got none in {path}.")
      for end in ("", "\n", "\n\n")),
    ("", "`paths` must name files that are not empty. Got {path}."),
    ("\n\n\n", "`paths` must name files with a header. Got only blank lines in {path}."),
    # no text
    *(
        (raw, f"`paths` must be {'text' if 'NUL' in wrong else 'UTF-8'}. Got {wrong} of '{{path}}'. Save the file as")
        for raw, wrong in (
            ("dataset,item_id,a\nd,é,1\n".encode("latin-1"), "byte 0xe9 in line 2"),
            ("dataset,item_id,a\nd,x,1\n".encode("utf-16"), "byte 0xff in line 1"),
            ("dataset,item_id,a\nd,x,1\n".encode("utf-16-le"), "a NUL byte in line 1"),
            (b"dataset,item_id,a\r\rd,x\0,1\r", "a NUL byte in line 3"),
            (gzip.compress(b"dataset,item_id,a\nd,x,1\n", mtime=0), "byte 0x8b in line 1"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), TEXTS, ids=lambda value: str(value)[:60])
def test_a_text_that_is_no_table(tmp_path, content, expected):
    """Rows, header, nothing at all, and bytes that are no text."""
    path = tmp_path / "v.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    ignore = ["text"] if content is LONG_CELL else ()
    assert expected.format(path=path) in fault(read_votes, path, ignore=ignore)


def test_a_quote_left_open(tmp_path):
    """It would swallow the rest of the file; one within a cell stands for itself."""
    path = write_text(tmp_path / "v.csv", 'dataset,item_id,a,note\nd,x,1,""\nd,y,1,"oh\nd,z,1,"\n'[:-2] + "\n")
    message = fault(read_votes, path, ignore=["note"])
    assert f"Got one left open in {path}, in the record that begins on line 3." in message
    path = write_text(tmp_path / "v.csv", 'dataset,item_id,a,note\nd,x,1,a 5" pipe\nd,y,0,\n')
    assert read_votes(path, ignore=["note"]).votes.tolist() == [[1], [0]]


def test_files_of_parquet_that_are_no_tables(tmp_path):
    """A name twice, no rows, a file that is cut anywhere, and damage that shows only when cells are read."""
    path = tmp_path / "v.parquet"
    parquet.write_table(pa.table([["d"], ["x"], [1], [0]], names=["dataset", "item_id", "a", "a"]), path)
    assert fault(read_votes, path) == f"`paths` must have unique column names. Got 'a' twice in {path}."
    write_rows(path, HEADER, [])
    assert fault(read_votes, path) == f"`paths` must name files with at least one row. Got none in {path}."
    whole = one_row(tmp_path, suffix="parquet").read_bytes()
    cut = [whole[:keep] for keep in (1, 4, 100, -1, -4, -100)]
    for damaged in (*cut, whole[:4] + b"\xff" * 56 + whole[60:]):
        path.write_bytes(damaged)
        assert fault(read_votes, path).startswith(f"`paths` must name readable Parquet files. Got {path}: ")


@pytest.mark.parametrize(
    ("ignore", "expected"),
    [
        (["a", "c"], "`ignore` must name columns of the files: 'dataset', 'item_id', 'label', 'a', 'b'. Got 'c'."),
        (["item_id"], "`ignore` must not name dataset or item_id, which every table needs. Got 'item_id'."),
    ],
)
def test_what_cannot_be_ignored(tmp_path, ignore, expected):
    """An unknown name lists the columns; the keys cannot be ignored."""
    assert fault(read_votes, one_row(tmp_path), ignore=ignore) == expected


def test_a_judge_is_ignored_by_the_name_that_is_printed(tmp_path):
    """Without the hash of its version, where that is still of one judge; else the whole name is asked for."""
    names = ["yes-no@11111111/gpt-4o", "strict@22222222", "twice@33333333", "twice@44444444"]
    path = write_text(tmp_path / "v.csv", f"dataset,item_id,{','.join(names)}\nd,x,1,0,1,0\n")
    assert read_votes(path, ignore=["yes-no/gpt-4o", "strict"]).voter_names == tuple(names[2:])
    assert read_votes(path, ignore=[names[0], "strict", names[2]]).voter_names == (names[3],)
    assert "Got 'twice'" in fault(read_votes, path, ignore=["twice"])


def test_paths_that_are_no_tables(tmp_path, monkeypatch):
    """A missing file, a folder, another suffix, an empty list, no archive, and what the system refuses to read."""
    (tmp_path / "folder.csv").mkdir()
    other = write_text(tmp_path / "v.tsv", "dataset\titem_id\ta\n")
    assert fault(read_votes, "no/such.csv") == f"`paths` must name existing files. Got {Path('no/such.csv')}."
    assert (
        fault(read_votes, tmp_path / "folder.csv") == f"`paths` must be a file. Got the folder '{tmp_path}/folder.csv'."
    )
    endings = ".csv, .csv.gz, .json, .json.gz, .jsonl, .jsonl.gz, .ndjson, .ndjson.gz, .parquet"
    assert fault(read_votes, other) == f"`paths` must end in one of {endings}. Got {other}."
    assert fault(read_votes, []) == "`paths` must name at least one file. Got none."
    archive = tmp_path / "v.csv.gz"
    for raw in (b"dataset,item_id,a\n", gzip.compress(b"dataset,item_id,a\nd,x,1\n", mtime=0)[:-9]):
        archive.write_bytes(raw)
        assert fault(read_votes, archive).startswith(f"`paths` must name readable CSV files. Got {archive}: ")
    path = one_row(tmp_path)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    expected = f"`paths` must name readable CSV files. Got {path}: [Errno 13] Permission denied."
    assert fault(read_votes, path) == expected


def two_files(tmp_path, header, first, second):
    """Write two tables with one row each, of item x in dataset d."""
    return [
        write_rows(tmp_path / f"{n}.csv", ["dataset", "item_id", *columns], [["d", "x", *row]])
        for n, columns, row in ((1, [*header, "a"], first), (2, [*header, "b"], second))
    ]


@pytest.mark.parametrize(("role", "one", "other"), [("label", 1, 0), ("document_id", "k", "l")])
def test_files_that_disagree(tmp_path, role, one, other):
    """Labels and documents that differ between files name both files and the item."""
    paths = two_files(tmp_path, [role], [one, 1], [other, 1])
    assert fault(read_votes, paths) == (
        f"`{role}` must be the same in all files. Got {other!r} at {paths[1]}, column '{role}', row 1 (line 2), "
        f"but {one!r} in {paths[0]}, for item 'x' of dataset 'd'."
    )


def test_files_that_disagree_on_families(tmp_path):
    """A dataset belongs to one family, within a file and between files."""
    paths = two_files(tmp_path, ["family"], ["f", 1], ["g", 1])
    expected = (
        f"`family` must be the same throughout a dataset. Got 'g' at {paths[1]}, column 'family', row 1 (line 2), "
        f"but 'f' at {paths[0]}, column 'family', row 1 (line 2), for dataset 'd'."
    )
    assert fault(read_votes, paths) == expected
    rows = [["d", "x", "f", 1], ["d", "y", "", 1], ["d", "z", "h", 1]]
    path = write_rows(tmp_path / "v.csv", ["dataset", "item_id", "family", "a"], rows)
    assert "Got 'h' at " + str(path) + ", column 'family', row 3 (line 4), but 'f' at" in fault(read_votes, path)


def test_a_voter_twice_for_an_item(tmp_path):
    """Two files may share a voter only where they share no item."""
    first = write_rows(tmp_path / "1.csv", HEADER, [["e", "x", 1, 1, 1], ["d", "x", 1, 1, 1]])
    second = write_rows(tmp_path / "2.csv", ["dataset", "item_id", "c", "b"], [["d", "x", "", ""]])
    assert fault(read_votes, [first, second]) == (
        f"`paths` must give each voter once for an item. Got column 'b' for item 'x' of dataset 'd' in {first} "
        f"and in {second}."
    )


def test_long_values_are_cut(tmp_path):
    """A cell of text does not make the message long."""
    path = one_row(tmp_path, "a long story\n" * 20)
    message = fault(read_votes, path)
    assert "...'" in message
    assert len(message) < 250 + len(str(path))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["a\n; DROP TABLE votes; --", "\x1b[31mred", "a\u202eb", " "])
def test_a_voter_whose_name_is_not_printable(tmp_path, name, suffix):
    """The place is told, in a line that is itself printable."""
    path = write_rows(tmp_path / f"v.{suffix}", ["dataset", "item_id", "b", name], [["d", "x", "1", "1"]])
    for read in (read_votes, read_scores):
        message = fault(read, path)
        assert message.startswith("`paths` must be printable text on one line. Got ")
        assert message.endswith(f" above column 4 of {path}. Rename it.")
        assert message.isprintable()


@pytest.mark.parametrize("column", ["dataset", "family"])
def test_a_dataset_whose_name_is_not_printable(tmp_path, column):
    """File, column and row are told."""
    rows = [["d", "x", "f", "1"], ["e", "x", "g", "1"]]
    rows[1][0 if column == "dataset" else 2] = "a\u2028b"
    path = write_rows(tmp_path / "v.csv", ["dataset", "item_id", "family", "a"], rows)
    assert fault(read_votes, path) == (
        f"`{column}` must be printable text on one line. Got the line separator U+2028 in 'a\\u2028b' at {path}, "
        f"column '{column}', row 2 (line 3). Rename it."
    )


ROW = {"dataset": "n", "item_id": "1", "a": 1}
CELL = "`paths` must have text, numbers, true, false or null in its cells. Got {} at {{path}}, column {!r}, row {}."
JSON = [
    ("", "`paths` must name files that are not empty. Got {path}."),
    ("[]", "`paths` must name files with at least one row. Got none in {path}."),
    (json.dumps([ROW, ROW | {"a": [2]}]).replace("}, ", "},\n"), CELL.format("[2]", "a", "2 (line 2)")),
    (json.dumps(ROW).replace('"1"', "1e999"), CELL.format("inf", "item_id", "1 (line 1)")),
    (json.dumps(ROW | {"item_id": float("nan")}), "`item_id` must not be empty. Got '' at {path}, column 'item_id', "),
    (json.dumps(ROW | {"item_id": "\ud800"}), CELL.format("'\\ud800'", "item_id", "1 (line 1)")),
    (
        f"{json.dumps(ROW)}\n" * 100 + json.dumps({"b": 1}),
        "`paths` must have its columns in the first 100 rows. Got another one at {path}, column 'b', row 101 "
        "(line 101). Write it in the first row, with null where it is empty.",
    ),
    (
        f"{json.dumps(ROW)}\n\n{json.dumps(ROW)}",
        "`item_id` must be unique within a dataset. Got '1' of dataset 'n' at {path}, column 'item_id', row 2 "
        "(line 3), and before at row 1.",
    ),
    (
        f"{json.dumps(ROW)}\n1",
        "`paths` must hold a JSON object a line. Got line 2 of '{path}': a int. Write one object, complete, on "
        "each line, or one array of objects.",
    ),
]


@pytest.mark.parametrize(("text", "expected"), JSON, ids=lambda value: value[:60])
def test_rows_of_json_that_are_no_table(tmp_path, text, expected):
    """The fault has its file, column, row and line, as one of CSV has."""
    path = write_text(tmp_path / "v.json", text)
    assert fault(read_votes, path).startswith(expected.format(path=path))


def test_rows_of_json_that_leave_out_nearly_all(tmp_path, monkeypatch):
    """A few bytes a row stand for the cells of all columns, which are counted before they are in memory."""
    monkeypatch.setattr("deep.datasets._source.MOST_EXPANDED", 1 << 20)
    first = ", ".join(f'"c{k}": 1' for k in range(9_000))
    rows = "".join(f'{{"dataset": "n", "item_id": "{row}"}}\n' for row in range(300))
    path = write_text(tmp_path / "v.jsonl", f'{{"dataset": "n", "item_id": "x", {first}}}\n{rows}')
    assert fault(read_votes, path).startswith("`paths` must name JSON files of at most ")
