"""Cells of CSV files: none begins a formula, and every text is read as it was, through every file that deep writes."""

import csv
import io

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep._util.columns import (
    PlainCsvWriter,
    escape_formula,
    escape_frame,
    unescape_formula,
    unescape_table,
    write_rows,
)
from deep.datasets import read_labels
from deep.integrations.labeling import AnswerBook, LabelEvent, read_annotations, write_annotations, write_labels

PREFIXES = ["", " ", "\t", "\r\n", "\u200b", "\ufeff", "\u00a0", "\u2060", "\u3164", "\u034f", "\x01", "'", "''"]
FORMULAS = [f"{before}{sign}{after}" for before in PREFIXES for sign in "=+-@\uff1d" for after in ("SUM(1)", "1+cmd|x")]
SAMPLES = st.sampled_from([*FORMULAS, "-1", "+1.5e3", "'-1", "-", "it's", "''", ""])
TEXTS = SAMPLES | st.text() | st.from_regex(r"'*\s*[=@+-].?")


def cells_of(path):
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@given(TEXTS)
def test_every_text_is_read_as_it_was(text):
    """And no two texts share a cell."""
    assert unescape_formula(escape_formula(text)) == text


def test_no_cell_begins_a_formula():
    """Whatever does not show before the sign; a spreadsheet takes what is behind an apostrophe for text."""
    for text in FORMULAS:
        assert escape_formula(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-1", "+1.5e3", "-.5", "-", "a=1", "news", "1-2", "é=1"])
def test_what_is_no_formula_stays(text):
    """Numbers and a dash alone among them."""
    assert escape_formula(text) == text


def test_tables_of_pandas_and_arrow(tmp_path):
    """Texts, also in names of rows and columns; numbers and nothing stay."""
    frame = pd.DataFrame({"=a": ["@x", None, "-1"], "n": [-1.5, 2.0, float("nan")]}, index=["=r", "s", "t"])
    assert escape_frame(frame).to_csv() == ",'=a,n\n'=r,'@x,-1.5\ns,,2.0\nt,-1,\n"
    table = pa.table({"p": [-0.5, 0.25, None, 1.0], "item_id": ["=1+1", "a", None, "'@b"]})
    with PlainCsvWriter(tmp_path / "t.csv", table.schema) as file:
        file.write_table(table)
    rows = cells_of(tmp_path / "t.csv")
    assert [row[1] for row in rows] == ["item_id", "'=1+1", "a", "", "''@b"]
    again = unescape_table(pa.table({"item_id": [row[1] for row in rows[1:]]}))
    assert again["item_id"].to_pylist() == ["=1+1", "a", "", "'@b"]


def test_rows():
    """The header too."""
    file = io.StringIO()
    write_rows(file, ["=h", "n"], [["+a()", -1], ["b", 2.5]])
    assert file.getvalue() == "'=h,n\n'+a(),-1\nb,2.5\n"


@pytest.mark.parametrize("text", ["one\rtwo", "end\r\n", "\r", "a\r\nb\nc"])
def test_line_ends_inside_a_cell_end_no_row(tmp_path, text):
    """A bare carriage return, as old files of a Macintosh have it, among them."""
    with (tmp_path / "t.csv").open("w", encoding="utf-8", newline="") as file:
        write_rows(file, ["item_id", "source"], [["a", text], [text, "b"]])
    assert [[unescape_formula(cell) for cell in row] for row in cells_of(tmp_path / "t.csv")][1:] == [
        ["a", text],
        [text, "b"],
    ]


@given(*[TEXTS.filter(lambda text: text.strip() == text and text)] * 2)
def test_labels_and_annotations(tmp_path_factory, item, note):
    """What people write, and the names of items, come back from the tables of labels."""
    item, note = (text.translate({0: "x", 13: "x"}).encode(errors="replace").decode() for text in (item, note))
    folder, book = tmp_path_factory.mktemp("tables"), AnswerBook()
    book.add(LabelEvent("label", "=news", item, "@Ann", 1, note=note))
    write_labels(book, folder / "l.csv")
    write_annotations(book, folder / "a.csv")
    for name in ("l.csv", "a.csv"):
        cells = [cell for row in cells_of(folder / name) for cell in row]
        assert [cell for cell in cells if escape_formula(cell) != cell and not cell.startswith("'")] == []
    (row,) = read_annotations(folder / "a.csv").rows
    assert (row["dataset"], row["item_id"], row["annotator"], row["note"]) == ("=news", item, "@Ann", note)
    if item.isprintable():
        assert read_labels(folder / "l.csv").item_ids.tolist() == [item]
