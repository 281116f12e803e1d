"""Every fault of a table gives one line that names the file and the place."""

import gzip
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


@pytest.mark.parametrize("cell", ["maybe", "2", "-1"])
@pytest.mark.parametrize("read", [read_votes, read_scores])
def test_no_label(tmp_path, cell, read):
    """A label is 1, 0 or empty, in votes and in scores."""
    path = one_row(tmp_path, cell, "label")
    message = fault(read, path)
    assert message.startswith(f"`label` must be 0, 1 or empty. Got {cell!r} at {path}, column 'label', row 2 (line 3).")


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999", "high", "1,5", "0x1"])
def test_no_score(tmp_path, cell):
    """A score is a finite number, or nothing."""
    path = one_row(tmp_path, cell, "b")
    assert fault(read_scores, path).startswith(
        f"`scores` must be finite numbers or empty. Got {cell!r} at {path}, column 'b', row 2 (line 3)."
    )


@pytest.mark.parametrize(("read", "what"), [(read_votes, "voter"), (read_scores, "score")])
def test_more_columns_than_judges(tmp_path, read, what):
    """A table on its side is refused before its cells take all memory."""
    path = tmp_path / "wide.csv"
    names = ["dataset", "item_id", *(f"v{n}" for n in range(10_001))]
    path.write_text(",".join(names) + "\n" + ",".join(["d", "a", *["1"] * 10_001]) + "\n")
    message = fault(read, path)
    assert message.startswith(f"`paths` must have at most 10,000 {what} columns each. Got 10,001 in '{path}'.")


@pytest.mark.parametrize("cell", ["1e308", "-1e308", "9223372036854775808", "1e15"])
def test_no_unit_of_a_score(tmp_path, cell):
    """Sums of such scores overflow, and no figure shows them."""
    path = one_row(tmp_path, cell, "b")
    assert fault(read_scores, path).startswith(
        f"`scores` must lie between -1e15 and 1e15. Got {cell!r} at {path}, column 'b', row 2 (line 3)."
    )


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pa.array([1, 2]), "2"),
        (pa.array([1.0, 0.5]), "0.5"),
        (pa.array([1.0, float("-inf")]), "-inf"),
        (pa.array([0, 2**63], pa.uint64()), str(2**63)),
        (pa.array(["1", "none"]), "'none'"),
        (pa.array(["1", "none"]).dictionary_encode(), "'none'"),
    ],
    ids=str,
)
def test_no_vote_in_parquet(tmp_path, column, shown):
    """In Parquet the row is counted from 1, and there is no line."""
    path = tmp_path / "v.parquet"
    parquet.write_table(pa.table({"dataset": ["d", "d"], "item_id": [1, 2], "a": column}), path)
    assert f"Got {shown} at {path}, column 'a', row 2. " in fault(read_votes, path)


@pytest.mark.parametrize(
    "column", [pa.array([[1], [0]]), pa.array([b"1", b"0"]), pa.array([1, 0], pa.date32())], ids=str
)
@pytest.mark.parametrize("read", [read_votes, read_scores])
def test_types_that_hold_neither_votes_nor_scores(tmp_path, column, read):
    """Lists, bytes and dates are refused at their first row; how many others there are is told."""
    path = tmp_path / "v.parquet"
    parquet.write_table(pa.table({"dataset": ["d", "d"], "item_id": [1, 2], "a": column}), path)
    assert f"at {path}, column 'a', row 1, and in 1 more row (2). " in fault(read, path)


@pytest.mark.parametrize("column", [pa.array([1.5, 2.0]), pa.array([True, False])], ids=str)
def test_ids_of_a_type_without_one_spelling(tmp_path, column):
    """A truth value and a fraction are no ids; a float that is whole is, for so a merge leaves whole numbers."""
    path = tmp_path / "v.parquet"
    parquet.write_table(pa.table({"dataset": ["d", "d"], "item_id": column, "a": [1, 0]}), path)
    expected = f"`item_id` must be text or whole numbers. Got type {column.type} in {path}, column 'item_id'."
    assert fault(read_votes, path) == f"{expected} Write it as text."


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("column", ["dataset", "item_id"])
def test_an_empty_key(tmp_path, suffix, column):
    """Every row has a dataset and an item."""
    path = one_row(tmp_path, "", column, suffix)
    expected = f"`{column}` must not be empty. Got '' at {path}, column '{column}', row 2"
    assert fault(read_votes, path).startswith(expected)


def test_a_null_key(tmp_path):
    """A missing id in Parquet is an empty one."""
    path = tmp_path / "v.parquet"
    parquet.write_table(pa.table({"dataset": ["d", "d"], "item_id": [7, None], "a": [1, 0]}), path)
    assert fault(read_votes, path) == f"`item_id` must not be empty. Got '' at {path}, column 'item_id', row 2."


def test_an_item_twice(tmp_path):
    """A repeated item names both rows; the same id in another dataset is no repetition."""
    rows = [["d", "x", 1, 1, 1], ["e", "x", 1, 1, 1], ["d", "y", 1, 1, 1], ["d", "x", 1, 1, 1]]
    path = write_rows(tmp_path / "v.csv", HEADER, rows)
    assert fault(read_votes, path) == (
        "`item_id` must be unique within a dataset. Got 'x' of dataset 'd' at "
        f"{path}, column 'item_id', row 4 (line 5), and before at row 1."
    )


def test_the_line_is_the_one_an_editor_shows(tmp_path):
    """Cells over several lines, blank lines and other line ends are counted as an editor counts them."""
    text = 'dataset,item_id,a\r\n\r\nd,"x\ny\rz",1\nd,v,0\n\nd,w,7\n'
    path = write_text(tmp_path / "v.csv", text)
    assert "row 3 (line 8)" in fault(read_votes, path)


def test_the_line_is_found_behind_a_long_cell(tmp_path):
    """A cell longer than Python's own limit for CSV does not hide the line."""
    path = write_text(tmp_path / "v.csv", f"dataset,item_id,text,a\nd,x,{'long ' * 40_000},1\nd,y,short,7\n")
    assert "row 2 (line 3)" in fault(read_votes, path, ignore=["text"])


@pytest.mark.parametrize(("line", "cells"), [("d,y,0,0", 4), ("d,y,0,0,,", 6), ("d", 1), ("   ", 1)])
def test_a_ragged_line(tmp_path, line, cells):
    """A row with more or fewer cells than the header is refused."""
    path = write_text(tmp_path / "v.csv", f"dataset,item_id,label,a,b\nd,x,1,1,1\n{line}\nd,z,1,1,1\n")
    assert fault(read_votes, path) == (
        f"`paths` must have as many cells as columns. Got row 2 (line 3) of '{path}', with {cells} cells under 5 "
        "columns. Quote cells that hold a comma."
    )


def test_a_quote_left_open(tmp_path):
    """An open quote would swallow the rest of the file; it is refused where its record begins."""
    path = write_text(tmp_path / "v.csv", 'dataset,item_id,a,note\nd,x,1,""\nd,y,1,"oh\nd,z,1,"\n')
    path.write_bytes(path.read_bytes()[:-2] + b"\n")
    message = fault(read_votes, path, ignore=["note"])
    assert f"Got one left open in {path}, in the record that begins on line 3." in message


def test_a_quote_within_a_cell_is_no_fault(tmp_path):
    """A single quote character inside an unquoted cell stands for itself."""
    path = write_text(tmp_path / "v.csv", 'dataset,item_id,a,note\nd,x,1,a 5" pipe\nd,y,0,\n')
    assert read_votes(path, ignore=["note"]).votes.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("dataset,item_id,a,a", "`paths` must have unique column names. Got 'a' twice in {path}."),
        (",dataset,item_id,a", "`paths` must have a name above every column. Got none above column 1 of {path}."),
        ("item_id,label,a,b", "`paths` must have a column dataset. Got 'item_id', 'label', 'a', 'b' in {path}."),
        (
            "dataset;item_id,x,a,b",
            "`paths` must have a column dataset. Got 'dataset;item_id', 'x', 'a', 'b' in {path}.",
        ),
        ("dataset,label,a,b", "`paths` must have a column item_id. Got 'dataset', 'label', 'a', 'b' in {path}."),
        ("dataset,item_id,label,family", "`paths` must have at least one voter column beside"),
    ],
)
def test_a_header_that_will_not_do(tmp_path, header, expected):
    """Columns must be named once, the keys must be there, and so must a voter."""
    path = write_text(tmp_path / "v.csv", f"{header}\n1,1,1,1\n")
    assert fault(read_votes, path).startswith(expected.format(path=path))


def test_a_table_of_claims_is_told_from_one_of_votes(tmp_path):
    """Its remedy is a command, not another name for a column."""
    path = write_text(tmp_path / "v.csv", "dataset,example_id,source,claim\n1,1,1,1\n")
    assert fault(read_votes, path).endswith(f" in {path}. It holds claims: `deep ask` makes votes of it.")


def test_a_parquet_header_with_a_name_twice(tmp_path):
    """Parquet, too, may not have two columns of one name."""
    path = tmp_path / "v.parquet"
    parquet.write_table(pa.table([["d"], ["x"], [1], [0]], names=["dataset", "item_id", "a", "a"]), path)
    assert fault(read_votes, path) == f"`paths` must have unique column names. Got 'a' twice in {path}."


def test_no_voter_left(tmp_path):
    """Ignoring all voters leaves nothing to read."""
    path = one_row(tmp_path)
    message = fault(read_scores, path, ignore=["a", "b"])
    assert message.startswith("`paths` must have at least one score column beside dataset, item_id, label,")


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


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_header_without_rows(tmp_path, end):
    """A table has at least one row."""
    path = write_text(tmp_path / "v.csv", f"dataset,item_id,a{end}")
    assert fault(read_votes, path) == f"`paths` must name files with at least one row. Got none in {path}."


def test_a_parquet_file_without_rows(tmp_path):
    """The same holds for Parquet."""
    path = write_rows(tmp_path / "v.parquet", HEADER, [])
    assert fault(read_votes, path) == f"`paths` must name files with at least one row. Got none in {path}."


@pytest.mark.parametrize("name", ["v.csv", "v.parquet"])
def test_an_empty_file(tmp_path, name):
    """A file of no bytes is called empty, whatever its suffix."""
    path = write_text(tmp_path / name, "")
    assert fault(read_votes, path) == f"`paths` must name files that are not empty. Got {path}."


def test_blank_lines_alone(tmp_path):
    """A file of blank lines has no header."""
    path = write_text(tmp_path / "v.csv", "\n\n\n")
    assert fault(read_votes, path) == f"`paths` must name files with a header. Got only blank lines in {path}."


def test_paths_that_are_no_tables(tmp_path):
    """A missing file, a folder, another suffix and an empty list are told apart."""
    (tmp_path / "folder.csv").mkdir()
    other = write_text(tmp_path / "v.tsv", "dataset\titem_id\ta\n")
    assert fault(read_votes, "no/such.csv") == f"`paths` must name existing files. Got {Path('no/such.csv')}."
    assert (
        fault(read_votes, tmp_path / "folder.csv") == f"`paths` must be a file. Got the folder '{tmp_path}/folder.csv'."
    )
    endings = ".csv, .csv.gz, .json, .json.gz, .jsonl, .jsonl.gz, .ndjson, .ndjson.gz, .parquet"
    assert fault(read_votes, other) == f"`paths` must end in one of {endings}. Got {other}."
    assert fault(read_votes, []) == "`paths` must name at least one file. Got none."


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    """What the system refuses to read gives the system's reason."""
    path = one_row(tmp_path)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    expected = f"`paths` must name readable CSV files. Got {path}: [Errno 13] Permission denied."
    assert fault(read_votes, path) == expected


@pytest.mark.parametrize(
    ("raw", "wrong"),
    [
        ("dataset,item_id,a\nd,é,1\n".encode("latin-1"), "byte 0xe9 in line 2"),
        ("dataset,item_id,a\nd,x,1\n".encode("utf-16"), "byte 0xff in line 1"),
        ("dataset,item_id,a\nd,x,1\n".encode("utf-16-le"), "a NUL byte in line 1"),
        (b"dataset,item_id,a\r\rd,x\0,1\r", "a NUL byte in line 3"),
        (gzip.compress(b"dataset,item_id,a\nd,x,1\n", mtime=0), "byte 0x8b in line 1"),
    ],
    ids=["latin-1", "utf-16", "utf-16 without mark", "nul", "binary"],
)
def test_what_is_no_text(tmp_path, raw, wrong):
    """Only UTF-8 is read; the first byte that is none is named with its line."""
    path = tmp_path / "v.csv"
    path.write_bytes(raw)
    allowed = "text" if "NUL" in wrong else "UTF-8"
    message = f"`paths` must be {allowed}. Got {wrong} of '{path}'. Save the file as UTF-8 text."
    assert fault(read_votes, path) == message


@pytest.mark.parametrize("raw", [b"dataset,item_id,a\n", gzip.compress(b"dataset,item_id,a\nd,x,1\n", mtime=0)[:-9]])
def test_no_gzip(tmp_path, raw):
    """Plain text under .gz, and a truncated archive, are refused."""
    path = tmp_path / "v.csv.gz"
    path.write_bytes(raw)
    assert fault(read_votes, path).startswith(f"`paths` must name readable CSV files. Got {path}: ")


@pytest.mark.parametrize("keep", [1, 4, 100, -1, -4, -100])
def test_a_truncated_parquet_file(tmp_path, keep):
    """A Parquet file cut anywhere is refused."""
    path = one_row(tmp_path, suffix="parquet")
    path.write_bytes(path.read_bytes()[:keep])
    assert fault(read_votes, path).startswith(f"`paths` must name readable Parquet files. Got {path}: ")


def test_a_parquet_file_with_damaged_pages(tmp_path):
    """Damage that shows only when cells are read is refused as well."""
    path = one_row(tmp_path, suffix="parquet")
    raw = bytearray(path.read_bytes())
    raw[4:60] = b"\xff" * 56
    path.write_bytes(bytes(raw))
    assert fault(read_votes, path).startswith(f"`paths` must name readable Parquet files. Got {path}: ")


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
    rows = [["d", "x", 1, 1, 1]]
    first = write_rows(tmp_path / "1.csv", HEADER, [["e", "x", 1, 1, 1], *rows])
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
@pytest.mark.parametrize("read", [read_votes, read_scores])
def test_a_voter_whose_name_is_not_printable(tmp_path, name, read, suffix):
    """The place is told, in a line that is itself printable."""
    path = write_rows(tmp_path / f"v.{suffix}", ["dataset", "item_id", "b", name], [["d", "x", "1", "1"]])
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


ROW = '{"dataset": "n", "item_id": "1", "a": 1}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "`paths` must name files that are not empty. Got {path}."),
        ("[]", "`paths` must name files with at least one row. Got none in {path}."),
        (
            f"[{ROW},\n{ROW.replace('1}', '[2]}')}]",
            "`paths` must have text, numbers, true, false or null in its cells. Got [2] at {path}, column 'a', "
            "row 2 (line 2).",
        ),
        (
            ROW.replace('"1"', "1e999"),
            "`paths` must have text, numbers, true, false or null in its cells. Got inf at {path}, column 'item_id', "
            "row 1 (line 1).",
        ),
        (
            ROW.replace('"1"', "NaN"),
            "`item_id` must not be empty. Got '' at {path}, column 'item_id', row 1 (line 1).",
        ),
        (
            ROW.replace('"1"', '"\\ud800"'),
            "`paths` must have text, numbers, true, false or null in its cells. Got '\\ud800' at {path}, column "
            "'item_id', row 1 (line 1).",
        ),
        (
            f"{ROW}\n" * 100 + ROW.replace('"a"', '"b"'),
            "`paths` must have its columns in the first 100 rows. Got another one at {path}, column 'b', row 101 "
            "(line 101). Write it in the first row, with null where it is empty.",
        ),
        (
            f"{ROW}\n\n{ROW}",
            "`item_id` must be unique within a dataset. Got '1' of dataset 'n' at {path}, column 'item_id', row 2 "
            "(line 3), and before at row 1.",
        ),
        (
            f"{ROW}\n1",
            "`paths` must hold a JSON object a line. Got line 2 of '{path}': a int. Write one object, complete, on "
            "each line, or one array of objects.",
        ),
    ],
)
def test_rows_of_json_that_are_no_table(tmp_path, text, said):
    """The fault has its file, column, row and line, as one of CSV has."""
    path = write_text(tmp_path / "v.json", text)
    assert fault(read_votes, path) == said.format(path=path)


def test_rows_of_json_that_leave_out_nearly_all(tmp_path, monkeypatch):
    """A few bytes a row stand for the cells of all columns, which are counted before they are in memory."""
    monkeypatch.setattr("deep.datasets._source.MOST_EXPANDED", 1 << 20)
    first = ", ".join(f'"c{k}": 1' for k in range(9_000))
    rows = "".join(f'{{"dataset": "n", "item_id": "{row}"}}\n' for row in range(300))
    path = write_text(tmp_path / "v.jsonl", f'{{"dataset": "n", "item_id": "x", {first}}}\n{rows}')
    assert fault(read_votes, path).startswith("`paths` must name JSON files of at most ")
