"""Examples from files and from datasets: what is read, what is refused, and how little is held."""

import csv
import gzip
import json
import tracemalloc
from dataclasses import asdict

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep._util.columns import write_rows
from deep.datasets import (
    ExampleFile,
    benchmark_licences,
    describe_examples,
    examples_from_dataset,
    examples_from_text,
    read_examples,
)
from deep.datasets import _rows as rows_module
from deep.exceptions import InputError
from deep.records import Example

GOOD = b"source,claim,label\nIt rained.,Wet.,1\nIt snowed.,Green.,0\n"
COLUMNS = ["source", "claim", "label", "dataset", "document_id", "example_id"]


def write(path, examples):
    """Write examples in the format that the path's name says."""
    table = [{column: getattr(example, column) for column in COLUMNS} for example in examples]
    opened = gzip.open if path.name.endswith(".gz") else open
    if ".parquet" in path.name:
        pq.write_table(
            pa.Table.from_pylist(
                table, pa.schema([(c, pa.string()) for c in COLUMNS]).set(2, pa.field("label", pa.int8()))
            ),
            path,
        )
    elif ".csv" in path.name:
        with opened(path, "wt", encoding="utf-8", newline="") as file:
            write_rows(file, COLUMNS, (row.values() for row in table))
    elif ".json" in path.suffixes:
        with opened(path, "wt", encoding="utf-8") as file:
            json.dump(table, file, ensure_ascii=False, indent=len(table) % 3 or None)
    else:
        with opened(path, "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in table)
    return path


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)
ids = texts.map(str.strip)
names = (
    st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]), min_size=1).map(str.strip).filter(bool)
)
some_examples = st.lists(
    st.builds(
        Example,
        source=texts,
        claim=texts,
        example_id=ids,
        label=st.sampled_from([0, 1, None]),
        dataset=names,
        document_id=st.none() | ids,
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda example: (example.dataset, example.example_id),
)


@pytest.mark.parametrize(
    "name", ["x.csv", "x.csv.gz", "x.json", "x.json.gz", "x.jsonl", "x.jsonl.gz", "x.ndjson", "x.parquet"]
)
@settings(max_examples=25, deadline=None)
@given(examples=some_examples)
def test_what_is_written_is_read_back(tmp_path_factory, name, examples):
    """Any text that is not blank comes back as it was, in every format, as often as it is asked for; in memory too."""
    path = write(tmp_path_factory.mktemp("round") / name, examples)
    file = read_examples(path)
    assert list(file) == list(file) == examples
    assert file.check() == len(examples)
    if path.suffix in (".csv", ".json", ".jsonl", ".ndjson"):
        result = examples_from_text(path.read_bytes(), name)
        assert list(result) == list(result) == examples


@pytest.mark.parametrize("name", ["x.csv.gz", "x.parquet", "x", "../x.exe"])
def test_a_text_in_memory_must_be_text(name):
    """By its name; nothing is looked for on the disk."""
    with pytest.raises(
        InputError, match=r"ends in one of .csv, .json, .jsonl, .ndjson. Got '.*x.*'. Save it as one of these"
    ):
        examples_from_text(GOOD, name)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_an_id_may_be_named_as_in_tables_of_votes(tmp_path, name):
    """The column item_id, where there is no example_id and none is mapped to it."""
    frame = pd.DataFrame({"source": ["One.", "Two."], "claim": ["1.", "2."], "item_id": ["x", "y"], "n": ["7", "8"]})
    path = tmp_path / name
    writers = {"a.csv": frame.to_csv, "a.parquet": frame.to_parquet}
    if name in writers:
        writers[name](path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    assert [example.example_id for example in ExampleFile(path)] == ["x", "y"]
    assert [example.claim for example in ExampleFile(path).of({("a", "y")})] == ["2."]
    assert [example.example_id for example in ExampleFile(path, columns={"example_id": "n"})] == ["7", "8"]
    both = frame.assign(example_id=["p", "q"]).to_dict("records")
    assert [example.example_id for example in examples_from_dataset(both)] == ["p", "q"]


def test_columns_and_dataset_may_have_other_names(tmp_path):
    """A mapping says which column holds what; ids default to row numbers."""
    path = tmp_path / "mine.csv.gz"
    path.write_bytes(gzip.compress(b"article,summary,ok,doc\nIt rained.,Wet.,TRUE,7\nIt snowed.,Dry.,,8.0\n", mtime=0))
    columns = {"source": "article", "claim": "summary", "label": "ok", "document_id": "doc"}
    file = ExampleFile(path, columns=columns)
    assert file.name == "mine"
    assert list(file) == [
        Example("It rained.", "Wet.", "1", 1, "mine", "7"),
        Example("It snowed.", "Dry.", "2", None, "mine", "8.0"),
    ]
    assert {example.dataset for example in ExampleFile(path, columns=columns, dataset="other")} == {"other"}
    with pytest.raises(InputError, match=r"`columns` must map claim, dataset, .*Got 'text'"):
        ExampleFile(path, columns={"text": "article"})


BAD = [
    ("x.csv", b"", r"at least one row. Got none in '.*x.csv'"),
    ("x.csv", b"source,claim\n", r"at least one row"),
    ("x.csv", b"\xff\xfes\0o\0u\0", r"must be UTF-8. Got byte 0xff in line 1 of '.*x.csv'. Save the file as UTF-8"),
    ("x.csv", GOOD + b"caf\xe9,b,1\n", r"must be UTF-8. Got byte 0xe9 in line 4"),
    ("x.csv", GOOD + b"a\0b,c,1\n", r"must be text. Got a NUL byte in line 4"),
    ("x.csv", GOOD + b'"a,b,1\n', r"must be CSV. .*in the record that begins on line 4. Close its quotes"),
    ("x.csv", b'source,claim\n"a\nb",c\nd\n', r"as many cells as columns. Got row 2 \(line 4\).* 1 cells under 2"),
    ("x.csv", b"source,source\na,b\n", r"unique column names. Got 'source' twice"),
    ("x.csv", b"source\na\n", r"Got none named 'claim' in row 1 \(line 2\).*which has source. .*--claim-column"),
    ("x.csv", b"source,claim\n ,b\n", r"must have a source and a claim in every row. Got none in row 1 of"),
    (
        "x.csv",
        GOOD + b"a,b,maybe\n",
        r"`label` must be 0, 1 or empty. Got 'maybe' in row 3 \(line 4\).*'label'. Write 1",
    ),
    ("x.csv", b"source,claim,example_id\na,b,x\n\na,b,x\n", r"Got 'x' twice in 'x', the second time in row 2 of"),
    ("x.jsonl", b'{"source": "a", "claim": "b"}\n{"source": \n', r"object a line. Got line 2 .*: Expecting value"),
    ("x.jsonl", b'{"source": "a", "claim": "b"}\n\n[1]\n', r"object a line. Got line 3 of .*: a list"),
    ("x.jsonl", b"[" * 200_000, r"object a line. Got line 1 of .*: nested too deeply"),
    (
        "x.jsonl",
        b'{"source": "a", "claim": "b"} {}\n',
        r"object a line. Got line 1 of .*: more text behind its first 29",
    ),
    (
        "x.jsonl",
        b'{"source": "a", "claim": "b", "claim": "c"}\n',
        r"Got line 1 .*: the key 'claim' twice",
    ),
    ("x.json", b'[{"source": "a", "claim": "b"},\n[1]]', r"object a line. Got line 2 of .*: a list"),
    ("x.json", b'[{"source": "a", "claim": "b"}\n{}]', r"object a line. Got line 2 of .*: neither a comma nor a brack"),
    ("x.json", b'[{"source": "a", "claim": "b"},\n{"source": ', r"object a line. Got line 2 of .*: Expecting value"),
    ("x.json", b'[{"source": "a", "claim": "b"}]\n{}', r"object a line. Got line 1 of .*: more text behind the array"),
    ("x.json", b'[\n {"source": "a",\n  "claim": 3}\n]', r"`claim` must be text. Got 3 in row 1 \(line 2\)"),
    ("x.jsonl", b'{"source": "a", "claim": 3}\n', r"`claim` must be text. Got 3 in row 1 \(line 1\)"),
    (
        "x.jsonl",
        b'{"source": "a\\u0000", "claim": "b"}\n',
        r"`source` must be text without NUL. .*Take the NUL out",
    ),
    ("x.jsonl", b'{"source": "a", "claim": "b", "document_id": "\\ud800"}', r"`document_id` must be text without"),
    ("x.jsonl.gz", GOOD, r"must be a whole gzip file. Got .*x.jsonl.gz'.*Compress or download it again"),
    ("x.csv.gz", gzip.compress(GOOD * 50, mtime=0)[:-30], r"must be a whole gzip file"),
    ("x.parquet", GOOD, r"must name readable Parquet files. Got .*x.parquet: "),
    ("x.xlsx", b"PK", r"must be a file that ends in one of .csv, .csv.gz, .json.*Got '.*x.xlsx'"),
]
"""A name, a content, and what is said of it."""


@pytest.mark.parametrize(("name", "content", "complaint"), BAD)
def test_a_bad_file_is_one_clear_line(tmp_path, name, content, complaint):
    """File, row or line, column and remedy; never a traceback from inside; the same of a text in memory."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_examples(path).check()
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    if name in ("x.csv", "x.json", "x.jsonl"):
        with pytest.raises(InputError, match=complaint) as caught:
            examples_from_text(content, name).check()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.jsonl", "x.jsonl.gz", "x.parquet"])
@pytest.mark.filterwarnings("ignore:.* rows have no source or no claim")
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_the_bytes_there_is_no_other_error(tmp_path_factory, name, data):
    """Random bytes, and a good file with some of its bytes changed, are read or refused with one line."""
    path = tmp_path_factory.mktemp("bytes") / name
    good = write(path, [Example("It rained.", "Wet.", "1", 1, "d"), Example("é", "b", "2", None, "d")]).read_bytes()
    start = data.draw(st.integers(0, len(good) - 1))
    patch = data.draw(st.binary(max_size=12))
    path.write_bytes(
        data.draw(st.sampled_from([patch, good[:start] + patch, good[:start] + patch + good[start + 3 :]]))
    )
    try:
        outcome = read_examples(path).check()
    except InputError as error:
        outcome = str(error)
    assert "\n" not in outcome if isinstance(outcome, str) else outcome > 0


def test_what_is_no_file_of_examples_is_refused(tmp_path):
    """Not there, a folder, a table of votes, and one that lacks a column, of Parquet too; the reason is told."""
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "votes.csv").write_text("item_id,strict\na,1\n", encoding="utf-8")
    (tmp_path / "some.csv").write_text("item_id,claim\na,It rained.\n", encoding="utf-8")
    pq.write_table(pa.table({"source": ["a"], "text": ["b"]}), tmp_path / "x.parquet")
    pq.write_table(pa.table({"text": ["b"]}), tmp_path / "y.parquet")
    for name, columns, message in (
        ("absent.csv", None, "which is not there"),
        ("folder.csv", None, "`examples` must be a file. Got the folder"),
        ("votes.csv", None, r"A table of votes is described by `deep panel`\.$"),
        ("some.csv", None, r"`columns` of `read_examples`\)\.$"),
        ("x.parquet", None, r"must have the columns source and claim. Got none named 'claim' in row 1 .*source, text"),
        ("x.parquet", {"claim": "text", "label": "ok"}, r"columns source and text and ok. Got none named 'ok'"),
        ("y.parquet", None, "Got none named 'source' in row 1"),
    ):
        with pytest.raises(InputError, match=message):
            read_examples(tmp_path / name, columns=columns).check()


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("x.jsonl", b'{"source": "' + b"a" * 2000 + b'", "claim": "b"}', "lines of at most 1,000 characters"),
        ("x.csv", b"source,claim\n" + b"a" * 2000 + b",b\n", "lines of at most 1,000 characters"),
        ("x.csv", b'source,claim\n"' + b"a\n" * 1000 + b'",b\n', r"field larger than field limit \(1000\)"),
        ("x.json", b"\n" * 1000 + b'[{"source": "a", "claim": "b"}]', "must hold rows. Got 1,000 blank lines in a row"),
        ("x.json", b'[{"a": [\n' + b"[],\n" * 600 + b"1" + b",1\n" * 600 + b"]}]", "line 1 .*: more than 1,000 values"),
    ],
)
def test_what_would_fill_the_memory_is_refused_before_it_does(tmp_path, monkeypatch, name, content, complaint):
    """Of a line no more than the limit is ever read; a cell over many lines, blank lines and values are limited too."""
    for limit in ("MAX_LINE", "MOST_BLANK", "MOST_VALUES"):
        monkeypatch.setattr(rows_module, limit, 1000)
    (tmp_path / name).write_bytes(content)
    limit = csv.field_size_limit()
    with pytest.raises(InputError, match=complaint):
        read_examples(tmp_path / name).check()
    assert csv.field_size_limit() == limit


def test_the_same_id_in_two_datasets_is_no_repetition(tmp_path):
    """Ids are unique within a dataset; and the check finds one repetition among many rows."""
    lines = [{"source": "a", "claim": "b", "example_id": str(i), "dataset": name} for i in range(500) for name in "xy"]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_examples(path).check() == 1000
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, lines[301]]))
    with pytest.raises(InputError, match=r"Got '150' twice in 'y', the second time in row 1001"):
        read_examples(path).check()


def test_two_ids_that_share_a_hash_are_not_taken_for_one(tmp_path):
    """-1 and -2 have the same hash in Python; so may two texts, once in a long while."""

    class Colliding(str):
        __slots__ = ()

        def __hash__(self):
            return 7

    rows = [{"source": "a", "claim": "b", "example_id": Colliding(name)} for name in ("x", "y")]
    examples = examples_from_dataset(rows)
    result = [Example(e.source, e.claim, Colliding(e.example_id), dataset="d") for e in examples]

    class Listed(type(examples)):
        def __iter__(self):
            return iter(result)

    assert Listed(rows, "d", None).check() == 2


def test_a_long_file_never_sits_in_memory(tmp_path):
    """Five thousand lines, 10 MB, are checked with less than one megabyte."""
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        for i in range(5_000):
            file.write(f'{{"source": "{"It rained all day. " * 100}", "claim": "Wet {i}.", "label": {i % 2}}}\n')
    tracemalloc.start()
    try:
        assert read_examples(path).check() == 5_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 10 * peak


def test_a_parquet_is_read_in_small_batches(tmp_path):
    """A row group of many rows is not decoded at once."""
    n = 40_000
    table = pa.table({"source": [f"{i} " * 200 for i in range(n)], "claim": ["b"] * n})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=n)
    held = pa.total_allocated_bytes()
    examples = iter(read_examples(tmp_path / "x.parquet"))
    assert next(examples).example_id == "1"
    assert pa.total_allocated_bytes() - held < table.nbytes / 4


@pytest.mark.parametrize("streamed", [False, True])
def test_a_hugging_face_dataset_is_examples(streamed):
    """The real library's datasets, in memory and streamed; integers and booleans serve as labels."""
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict(
        {"document": ["It rained.", "It snowed."], "claim": ["Wet.", "Green."], "label": [True, False], "n": [1, 2]}
    )
    data = data.to_iterable_dataset() if streamed else data
    examples = examples_from_dataset(data, {"source": "document", "example_id": "n"}, "weather")
    expected = [Example("It rained.", "Wet.", "1", 1, "weather"), Example("It snowed.", "Green.", "2", 0, "weather")]
    assert list(examples) == list(examples) == expected
    assert examples.check() == 2


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (iter([]), "must be an iterable that begins anew each time. Got a list_iterator"),
        (3, "must be an iterable that begins anew each time. Got a int"),
        ({"test": [], "train": []}, "must be one split. Got a mapping of test, train"),
        ([{"source": "a", "claim": "b"}, "c"], "must hold mappings. Got a str in row 2 of dataset 'none'"),
        ([], "at least one row. Got none in dataset 'none'"),
    ],
)
def test_what_is_no_dataset_is_refused(data, complaint):
    """A generator would be empty the second time; a row that is none is named."""
    with pytest.raises(InputError, match=complaint):
        examples_from_dataset(data, name="none").check()


def test_a_card_counts_classes_documents_and_words():
    """Documents are told apart by id, and without one by their text."""
    examples = [
        Example("one two three", "a b", "1", 1, "x", "d"),
        Example("one two three four", "a b c", "2", 0, "x", "d"),
        Example("one", "a", "3", None, "x", "e"),
        Example("One  two", "a", "1", 1, "y"),
        Example("one two", "a", "2", 1, "y"),
        Example("", "a", "3", 1, "y", "f"),
    ]
    x, y = describe_examples(examples)
    assert asdict(x) == {
        "dataset": "x",
        "n": 3,
        "consistent": 1,
        "inconsistent": 1,
        "unlabeled": 1,
        "documents": 2,
        "without_source": 0,
        "source_words": {"median": 3.0, "p90": pytest.approx(3.8)},
        "claim_words": {"median": 2.0, "p90": pytest.approx(2.8)},
    }
    assert (y.documents, y.without_source, y.share_consistent, x.share_consistent) == (2, 1, 1.0, 0.5)
    assert describe_examples(examples[2:3])[0].share_consistent is None
    assert describe_examples(examples[5:])[0].source_words is None


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz"])
def test_what_a_guard_put_before_a_formula_is_no_part_of_the_text(tmp_path, name):
    """As in tables of votes and labels: ids meet, and a text that deep wrote is the question that was paid for."""
    cells = ["=1+1", "- One.\n- Two.", "@Ann said so.", "'=1+1", "it's"]
    opened = gzip.open if name.endswith(".gz") else open
    with opened(tmp_path / name, "wt", encoding="utf-8", newline="") as file:
        write_rows(file, ["example_id", "source", "claim"], [[cell, cell, cell] for cell in cells])
    content = b"source,claim\n\"'- One.\",'@Ann said so.\n"
    result = read_examples(tmp_path / name)
    assert [(e.example_id, e.source, e.claim) for e in result] == [(cell, cell, cell) for cell in cells]
    assert [(e.source, e.claim) for e in examples_from_text(content, "e.csv")] == [("- One.", "@Ann said so.")]


@pytest.mark.parametrize(
    ("benchmark", "expected"),
    [
        ("summedits-news", {"summedits-news": "Apache-2.0 (commercial use allowed)"}),
        ("fect", {"fect": "CC-BY-NC-4.0 (NON-COMMERCIAL use only)"}),
        ("of-tomorrow", {}),
        (None, {}),
    ],
)
def test_votes_remember_the_licences_of_what_they_are_of(benchmark, expected, tmp_path):
    """Of a part of a benchmark its own; a benchmark that this version does not have has none."""
    made = {} if benchmark is None else {"examples": {"benchmark": benchmark, "sha256": {}, "main_only": False}}
    table = pa.table({"dataset": ["d"], "item_id": ["a"], "x": [1]}).replace_schema_metadata({"deep": json.dumps(made)})
    pq.write_table(table, tmp_path / "votes.parquet")
    assert benchmark_licences([tmp_path / "votes.parquet"]) == expected


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_list_of_contexts_names_who_joins_it(tmp_path, ending):
    """To fill in, or to drop the row, would be no help: every row has a list."""
    path = tmp_path / f"rag.{ending}"
    rows = pd.DataFrame({"source": [["It rained.", "It poured."]], "claim": ["It was wet."]})
    rows.to_parquet(path) if ending == "parquet" else rows.to_json(path, orient="records", lines=True)
    with pytest.raises(InputError, match=r"or join the texts of a list, as `deep data from` does\.$"):
        read_examples(path).check()
