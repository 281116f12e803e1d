"""Tables of any content: what is written is read back, and what is spoilt is found."""

import csv
import io
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from deep._util.columns import escape_formula
from deep._util.names import intended_column
from deep.datasets import read_scores, read_votes
from deep.records import VoteMatrix
from tests.datasets.tables import fault

TEXT = st.sampled_from(["=1", "'=1", "''=1", "'"]) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=5
)
NAME = st.sampled_from(["=", "'="]) | st.text(
    st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]), min_size=1, max_size=5
).filter(str.strip)
RESERVED = {"dataset", "item_id", "label", "document_id", "family"}
VOTER = NAME.filter(
    lambda name: (
        name not in RESERVED and not name.startswith("__index_level_") and intended_column(name, RESERVED) is None
    )
)
VOTE = st.sampled_from([1, 0, -1])
SUFFIX = st.sampled_from(["csv", "parquet"])


@st.composite
def vote_tables(draw: st.DrawFn) -> VoteMatrix:
    """Return votes with odd names, some of them missing."""
    items = draw(st.lists(st.tuples(NAME, TEXT), min_size=1, max_size=8, unique=True))
    voters = draw(st.lists(VOTER, min_size=1, max_size=4, unique=True))
    votes = draw(
        st.lists(st.lists(VOTE, min_size=len(voters), max_size=len(voters)), min_size=len(items), max_size=len(items))
    )
    labels = draw(st.lists(VOTE, min_size=len(items), max_size=len(items)))
    documents = draw(st.none() | st.lists(TEXT, min_size=len(items), max_size=len(items)))
    return VoteMatrix(votes, [i for _, i in items], voters, [d for d, _ in items], labels, documents)


def columns_of(table: VoteMatrix) -> dict[str, list[str | int]]:
    """Return the columns of a file that holds the votes; an empty string where there is none."""
    columns = {"dataset": table.datasets.tolist(), "item_id": table.item_ids.tolist()}
    if table.document_ids is not None:
        columns["document_id"] = table.document_ids.tolist()
    values = {"label": table.labels, **dict(zip(table.voter_names, table.votes.T, strict=True))}
    return columns | {name: ["" if v == -1 else int(v) for v in column] for name, column in values.items()}


def save(folder: str, columns: dict[str, list], suffix: str) -> Path:
    """Write columns as CSV, the texts below their names as plain cells, or as Parquet, empty cells as nulls."""
    path = Path(folder, f"votes.{suffix}")
    if suffix == "parquet":
        plain = {name: [None if cell == "" else cell for cell in column] for name, column in columns.items()}
        parquet.write_table(pa.table(plain), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            plain = ([escape_formula(c) if isinstance(c, str) else c for c in column] for column in columns.values())
            csv.writer(file).writerows([list(columns), *zip(*plain, strict=True)])
    return path


@settings(deadline=None, max_examples=100)
@given(table=vote_tables(), suffix=SUFFIX)
def test_what_is_written_is_read_back(table, suffix):
    """Votes, labels, documents and names of any characters survive CSV and Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        read = read_votes(save(folder, columns_of(table), suffix))
    np.testing.assert_array_equal(read.votes, table.votes)
    np.testing.assert_array_equal(read.labels, table.labels)
    assert read.voter_names == table.voter_names
    assert read.item_ids.tolist() == table.item_ids.tolist()
    assert read.datasets.tolist() == table.datasets.tolist()
    documents = None if read.document_ids is None else read.document_ids.tolist()
    assert documents == (None if table.document_ids is None else table.document_ids.tolist())


@settings(deadline=None, max_examples=50)
@given(table=vote_tables(), suffix=SUFFIX, data=st.data())
def test_order_of_files_and_rows_does_not_matter(table, suffix, data):
    """A table cut into two files of rows, given in either order, holds the same vote for each item."""
    order = data.draw(st.permutations(range(len(table.votes))))
    cut = data.draw(st.integers(1, len(order)))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        halves = [half for half in (order[cut:], order[:cut]) if half]
        paths = [
            save(folder, columns_of(table.rows(np.array(half))), suffix)
            for folder, half in zip((one, two), halves, strict=False)
        ]
        read = read_votes(paths)
    result = {
        key: vote
        for *key, vote in zip(read.datasets, read.item_ids, read.votes.tolist(), strict=True)
        for key in [tuple(key)]
    }
    expected = zip(table.datasets, table.item_ids, table.votes.tolist(), strict=True)
    assert result == {(dataset, item): vote for dataset, item, vote in expected}


@settings(deadline=None, max_examples=100)
@given(table=vote_tables(), data=st.data(), bad=st.sampled_from(["2", "-1", "x", " 1", "1\n", '"', "Truth", "0,1"]))
def test_a_spoilt_cell_is_found(table, data, bad):
    """One bad vote or label gives an error that names its column, row and line."""
    columns = columns_of(table)
    name = data.draw(st.sampled_from(["label", *table.voter_names]))
    row = data.draw(st.integers(0, len(table.votes) - 1))
    columns[name][row] = bad
    before = io.StringIO(newline="")
    csv.writer(before).writerows([list(columns), *list(zip(*columns.values(), strict=True))[:row]])
    line = before.getvalue().replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    with tempfile.TemporaryDirectory() as folder:
        path = save(folder, columns, "csv")
        message = fault(read_votes, path)
    assert f"Got {bad!r} at {path}, column {name!r}, row {row + 1} (line {line})." in message


@settings(deadline=None, max_examples=100)
@given(
    values=st.lists(
        st.floats(-1e15, 1e15, exclude_min=True, exclude_max=True) | st.sampled_from([None, np.nan]),
        min_size=1,
        max_size=8,
    ),
    suffix=SUFFIX,
)
def test_scores_are_read_to_the_last_bit(values, suffix):
    """Any float below 1e15, written in full, is read as itself."""
    ids = [str(i) for i in range(len(values))]
    columns = {"dataset": ["d"] * len(ids), "item_id": ids, "s": ["" if v is None else v for v in values]}
    with tempfile.TemporaryDirectory() as folder:
        read = read_scores(save(folder, columns, suffix))
    np.testing.assert_array_equal(read.scores[:, 0], np.array(values, dtype=float))


@settings(deadline=None, max_examples=100)
@example(raw=b"Y", suffix="csv")  # a column that may be the labels
@given(raw=st.binary(max_size=200) | st.text('dataset,item_id\n\r"a01; ', max_size=60).map(str.encode), suffix=SUFFIX)
def test_garbage_is_refused_in_one_line(raw, suffix):
    """Bytes that are no table never get through, and never raise anything but an InputError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"votes.{suffix}")
        path.write_bytes(raw)
        assert str(path) in fault(read_votes, path)
