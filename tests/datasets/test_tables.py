"""Tables of votes and scores: what is read and joined, and tables as people have them."""

import gzip
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import deep
from deep.datasets import ScoreTable, join_scores, read_scores, read_votes, table_columns
from deep.exceptions import InputError
from deep.records import VoteMatrix
from tests.commands.model_case import frame_of
from tests.datasets.tables import fault, write_rows, write_text
from tests.deep_commands import data, estimate, fit, panel, score
from tests.model.fitted import small_votes

HEADER = ["dataset", "item_id", "label", "a", "b"]
ROWS = [["news", "007", 1, 1, 0], ["news", "1", 0, 0, 1], ["talk", "007", 1, 1, 1]]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_every_part_of_a_table_is_read(tmp_path, suffix):
    """Names, ids with leading zeros, labels and votes come out as they stand in the file."""
    votes = read_votes(write_rows(tmp_path / f"v.{suffix}", HEADER, ROWS))
    assert votes.votes.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert votes.votes.dtype == np.int8
    assert votes.voter_names == ("a", "b")
    assert votes.item_ids.tolist() == ["007", "1", "007"]
    assert votes.datasets.tolist() == ["news", "news", "talk"]
    assert votes.labels.tolist() == [1, 0, 1]
    assert votes.document_ids is None


def test_what_pandas_and_gzip_add_is_no_part_of_it(tmp_path):
    """A compressed CSV gives the same votes as the plain one; the unnamed index of a filtered frame is skipped."""
    plain = write_rows(tmp_path / "v.csv", HEADER, ROWS)
    packed = tmp_path / "V.CSV.GZ"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_votes(packed).votes.tolist() == read_votes(str(plain)).votes.tolist()
    frame = pd.DataFrame(ROWS, columns=HEADER).iloc[[0, 2, 1]]
    frame.to_parquet(tmp_path / "v.parquet")
    assert "__index_level_0__" in parquet.read_schema(tmp_path / "v.parquet").names
    assert read_votes(tmp_path / "v.parquet").voter_names == ("a", "b")


def test_all_spellings_of_a_cell_in_csv(tmp_path):
    """1, 0, 1.0 and 0.0 are votes and an empty cell is none, quoted or not; NA, null and nan are names of items."""
    text = 'dataset,item_id,label,a\nNA,null,1.0,1\nNA,nan,0.0,0.0\nnan,1e5,,\nd,4,"1","1.0"\nd,5,"",""\n'
    votes = read_votes(write_text(tmp_path / "v.csv", text))
    assert votes.votes[:, 0].tolist() == [1, 0, -1, 1, -1]
    assert votes.labels.tolist() == [1, 0, -1, 1, -1]
    assert votes.datasets.tolist() == ["NA", "NA", "nan", "d", "d"]
    assert votes.item_ids.tolist() == ["null", "nan", "1e5", "4", "5"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True, False, None]),
        pa.array([1, 0, None], pa.int8()),
        pa.array([1, 0, None], pa.uint64()),
        pa.array([1.0, 0.0, None], pa.float32()),
        pa.array([1.0, 0.0, float("nan")], pa.float64()),
        pa.array([Decimal(1), Decimal(0), None], pa.decimal128(3, 1)),
        pa.array(["1", "0.0", ""], pa.string()),
        pa.array(["1", "0", None], pa.large_string()),
        pa.array(["1", "0", None]).dictionary_encode(),
    ],
    ids=str,
)
def test_all_types_of_a_vote_in_parquet(tmp_path, column):
    """Votes may be of any type that holds them; null and nan are no vote."""
    table = pa.table({"dataset": ["d"] * 3, "item_id": [1, 2, 3], "label": column, "a": column})
    parquet.write_table(table, tmp_path / "v.parquet")
    votes = read_votes(tmp_path / "v.parquet")
    assert votes.votes[:, 0].tolist() == [1, 0, -1]
    assert votes.labels.tolist() == [1, 0, -1]
    assert votes.item_ids.tolist() == ["1", "2", "3"]


def test_a_voter_that_never_votes(tmp_path):
    """A column of nulls without a type is a voter without votes; labels may stand in a file of their own."""
    table = pa.table({"dataset": ["d"], "item_id": ["x"], "a": pa.nulls(1), "b": [1]})
    parquet.write_table(table, tmp_path / "v.parquet")
    labels = write_rows(tmp_path / "l.csv", ["dataset", "item_id", "label"], [["d", "x", 1]])
    votes = read_votes([labels, tmp_path / "v.parquet"])
    assert (votes.votes.tolist(), votes.labels.tolist()) == ([[-1, 1]], [1])


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffdataset,item_id,a\nd,x,1\nd,y,0\n",
        "dataset,item_id,a\r\nd,x,1\r\nd,y,0",
        "dataset,item_id,a\rd,x,1\rd,y,0\r",
        "\n\ndataset,item_id,a\n\nd,x,1\n\n\nd,y,0\n\n",
        'a,"item_id",dataset\n1,"x",d\n0,y,"d"\n',
    ],
    ids=["byte order mark", "crlf", "cr", "blank lines", "quotes and order"],
)
def test_forms_of_csv(tmp_path, text):
    """Line ends, blank lines, a byte order mark, quotes and the order of columns change nothing."""
    votes = read_votes(write_text(tmp_path / "v.csv", text))
    assert votes.votes[:, 0].tolist() == [1, 0]
    assert votes.item_ids.tolist() == ["x", "y"]
    assert votes.labels.tolist() == [-1, -1]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_ignored_columns_are_no_voters(tmp_path, suffix):
    """A column of text, and the label; by the whole name, dots included; one file that has it is enough."""
    path = write_rows(tmp_path / f"v.{suffix}", [*HEADER, "b.text"], [[*row, "some, text\n"] for row in ROWS])
    votes = read_votes(path, ignore=("b.text", "label", "a"))
    assert votes.voter_names == ("b",)
    assert votes.labels.tolist() == [-1, -1, -1]
    second = write_rows(tmp_path / "2.csv", ["dataset", "item_id", "note"], [["news", "1", "hm"]])
    assert read_votes([path, second], ignore=["note", "b.text"]).voter_names == ("a", "b")


def test_documents_are_read_and_filled(tmp_path):
    """An item without a document, in a table that has some, is its own document."""
    path = write_text(tmp_path / "v.csv", "dataset,item_id,document_id,a\nd,x,09,1\nd,y,,1\nd,z,09,1\n")
    assert read_votes(path).document_ids.tolist() == ["09", "d/y", "09"]


def test_families_of_the_file_stand_before_the_registry(tmp_path):
    """A family column names siblings; a dataset without an entry keeps its registered family."""
    header = ["dataset", "item_id", "family", "a"]
    rows = [["m1", "x", "models", 1], ["m1", "y", "", 1], ["aggrefact-cnn", "x", "", 0], ["wice", "x", "wice", 0]]
    votes = read_votes(write_rows(tmp_path / "v.csv", header, rows))
    assert votes.families == {"aggrefact-cnn": "aggrefact", "m1": "models"}
    assert votes.family_of("wice") == "wice"


def test_files_side_by_side(tmp_path):
    """Voters of two files meet at their items; a file that lacks an item gives no vote and no label."""
    first = write_rows(tmp_path / "1.csv", HEADER, ROWS)
    rows = [["talk", "8", "", 1, "k"], ["news", "1", 0, 0, "k"], ["talk", "007", "", 1, ""]]
    second = write_rows(tmp_path / "2.csv", ["dataset", "item_id", "label", "c", "document_id"], rows)
    votes = read_votes([first, second])
    assert votes.voter_names == ("a", "b", "c")
    assert list(zip(votes.datasets, votes.item_ids, strict=True))[-1] == ("talk", "8")
    assert votes.votes.tolist() == [[1, 0, -1], [0, 1, 0], [1, 1, 1], [-1, -1, 1]]
    assert votes.labels.tolist() == [1, 0, 1, -1]
    assert votes.document_ids.tolist() == ["news/007", "k", "talk/007", "k"]


def test_files_below_each_other(tmp_path):
    """Files of different datasets with the same voters are concatenated, whatever the order of columns."""
    first = write_rows(tmp_path / "1.csv", HEADER, ROWS)
    second = write_rows(tmp_path / "2.parquet", ["b", "a", "item_id", "dataset"], [[0, 1, "007", "post"]])
    votes = read_votes([first, second])
    assert votes.votes.tolist() == [[1, 0], [0, 1], [1, 1], [1, 0]]
    assert votes.labels.tolist() == [1, 0, 1, -1]


def test_columns_without_reading_cells(tmp_path):
    """The columns of several files are listed once each, even where the cells are no votes."""
    first = write_rows(tmp_path / "1.csv", ["dataset", "item_id", "text"], [["d", "x", "no vote"]])
    second = write_rows(tmp_path / "2.parquet", ["dataset", "item_id", "a"], [["d", "x", 7]])
    assert table_columns([first, second]) == ("dataset", "item_id", "text", "a")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_scores_are_any_finite_number(tmp_path, suffix):
    """Scores keep their unit; empty and nan are no score."""
    rows = [["d", "x", "0.25", "-3"], ["d", "y", "", "1e-3"], ["d", "z", "nan", "+5."]]
    table = read_scores(write_rows(tmp_path / f"s.{suffix}", ["dataset", "item_id", "align", "grade"], rows))
    assert table.shape == (3, 2)
    assert table.score_names == ("align", "grade")
    np.testing.assert_array_equal(table.scores, [[0.25, -3], [np.nan, 0.001], [np.nan, 5]])
    assert table.labels.tolist() == [-1, -1, -1]


def scores_of(ids: list[str], labels: list[int]) -> ScoreTable:
    """Return one score, 0, 1, 2 and so on, for items of dataset d."""
    names = np.array(ids, dtype=object)
    values = np.arange(len(ids), dtype=float)[:, None]
    return ScoreTable(values, names, ("s",), np.full(len(ids), "d", dtype=object), np.array(labels, np.int8))


VOTES = VoteMatrix([[1], [0], [1]], ["x", "y", "z"], ["a"], ["d", "d", "e"], [1, -1, 0], ["k", "k", "l"])


def test_scores_follow_the_rows_of_the_votes():
    """Scores are aligned by dataset and item; what is missing is nan, what is left over is counted."""
    joined = join_scores(VOTES, scores_of(["y", "z", "w", "x"], [0, 1, 1, -1]))
    np.testing.assert_array_equal(joined.scores, [[3.0], [0.0], [np.nan]])
    assert joined.n_unmatched == 2
    assert joined.labels.tolist() == [1, 0, 0]
    assert joined.item_ids.tolist() == ["x", "y", "z"]
    assert joined.document_ids.tolist() == ["k", "k", "l"]
    assert VOTES.labels.tolist() == [1, -1, 0]


def test_labels_of_votes_and_scores_must_agree():
    """A label that differs between votes and scores names dataset and item."""
    message = fault(join_scores, VOTES, scores_of(["y", "x"], [0, 0]))
    assert message == (
        "`label` must be the same in votes and scores. Got 1 in votes and 0 in scores for item 'x' of dataset 'd'."
    )


def test_scores_of_other_items_are_refused():
    """Scores that have no item in common with the votes are a mistake, not a table of nan."""
    message = fault(join_scores, VOTES, scores_of(["z"], [-1]))
    assert "Got none in common: 'z' of 'd' in `scores`, and 'x', 'y' of 'd' in `votes`." in message


def test_real_votes_are_thresholded_real_scores(data_home):
    """On the 29,320 real items the votes are the scores at 0.5, and the labels agree."""
    votes = read_votes(data_home / "llm_aggrefact" / "votes.parquet")
    scores = join_scores(votes, read_scores(data_home / "llm_aggrefact" / "scores.parquet"))
    assert votes.shape == (29320, 23)
    assert scores.n_unmatched == 0
    np.testing.assert_array_equal(scores.scores >= 0.5, votes.votes == 1)
    assert votes.families["tofueval-mediasum"] == votes.families["tofueval-meetingbank"] == "tofueval"


def test_real_votes_with_abstains(data_home):
    """The crowd's sparse tables, with item ids that are numbers, read as text and concatenate."""
    crowd = data_home / "crowd"
    votes = read_votes([crowd / "votes_RTE.csv", crowd / "votes_bluebirds_duck.csv"])
    assert votes.shape == (908, 203)
    assert (votes.votes != -1).sum() == 8000 + 108 * 39
    assert votes.item_ids[0] == "25"


def test_real_scores_without_human_columns(data_home):
    """SummEval's scores read once the human annotations are ignored."""
    path = data_home / "summeval_llm" / "scores.csv"
    human = [name for name in table_columns(path) if name.startswith(("expert_", "turker_"))]
    assert read_scores(path, ignore=human).shape == (1200, 9)


@pytest.mark.parametrize("name", ["v.json", "v.json.gz", "v.jsonl", "v.ndjson.gz"])
def test_rows_of_json_are_read_as_those_of_csv(tmp_path, monkeypatch, name):
    """Ids stay text, a number beside them too; true and 1.0 are votes; what a row leaves out is empty."""
    rows = [
        {"dataset": "n", "item_id": "007", "label": 1, "strict": True, "lenient": 0},
        {"dataset": "n", "item_id": 7, "strict": "no"},
        {"dataset": "n", "item_id": 7.5, "strict": None, "lenient": 1.0, "label": ""},
    ]
    text = json.dumps(rows, indent=1) if ".json" in Path(name).suffixes else "\n".join(map(json.dumps, rows))
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    for most in (1, 1 << 20):  # a row at a time, and all at once
        monkeypatch.setattr("deep.datasets._source.CELLS_AT_ONCE", most)
        votes = read_votes(tmp_path / name)
        assert votes.item_ids.tolist() == ["007", "7", "7.5"]
        assert votes.votes.tolist() == [[1, 0], [0, -1], [-1, 1]]
        assert votes.labels.tolist() == [1, -1, -1]
        assert read_scores(tmp_path / name, ignore=["strict"]).scores[:, 0].tolist()[::2] == [0, 1]


def test_what_is_ignored_in_json_may_hold_anything(tmp_path):
    """Only the columns that are read need cells of text and numbers; rows without a dataset are of the one given."""
    path = write_text(tmp_path / "v.json", '[{"item_id": 1, "a": 1, "b": {"c": [2]}}]')
    votes = read_votes(path, ignore=["b"], dataset="n")
    assert (votes.votes.tolist(), votes.dataset_names) == ([[1]], ("n",))
    assert "Got {'c': [2]} at" in fault(read_votes, path, dataset="n")


def test_a_long_table_may_be_json(tmp_path):
    """A row an item and judge, as an export of another tool has it."""
    rows = [{"item": item, "judge": judge, "vote": vote} for item, judge, vote in [("a", "x", 1), ("a", "y", 0)]]
    (tmp_path / "long.json").write_text(json.dumps(rows))
    votes = read_votes(tmp_path / "long.json", dataset="n")
    assert (votes.voter_names, votes.votes.tolist()) == (("x", "y"), [[1, 0]])


WIDE = pd.DataFrame(
    {"dataset": "news", "item_id": ["a", "b", "c"], "label": [1, 0, None], "x": [1, 0, None], "v": [0, None, 1]}
)
LONG = pd.DataFrame(
    {
        "dataset": "news",
        "item": ["a", "a", "b", "c"],
        "judge": ["x", "v", "x", "v"],
        "vote": ["yes", "no", False, True],
        "label": [1, 1, 0, None],
        "cost": [0.002, None, 0.004, 0.001],
    }
)


def written(folder, frame, name="votes.csv"):
    """Write a table, and return its path."""
    path = folder / name
    frame.astype(str).replace({"nan": "", "<NA>": "", "None": ""}).to_csv(path, index=False)
    return str(path)


def test_words_for_votes(tmp_path):
    """As pandas and spreadsheets write them; another word is refused, and the error names the option."""
    path = tmp_path / "votes.csv"
    for words in ("True False", "TRUE FALSE", "yes no", "Yes No", "true 0", "PASS FAIL", "consistent Inconsistent"):
        yes, no = words.split()
        path.write_text(f"dataset,item_id,label,x\nnews,a,{yes},{no}\nnews,b,,{yes}\n")
        votes = deep.read_votes(path)
        assert (votes.votes.tolist(), votes.labels.tolist()) == ([[0], [1]], [1, -1])
    path.write_text("dataset,item_id,x\nnews,a,maybe\n")
    with pytest.raises(InputError, match=r"`votes` must be 0, 1 or empty\. Got 'maybe'.* out with `--ignore`"):
        deep.read_votes(path)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_semicolons_and_tabs(mark, tmp_path):
    """As spreadsheets write them where a comma stands in numbers; a header with a comma is of commas."""
    path = tmp_path / "votes.csv"
    WIDE.to_csv(path, sep=mark, index=False)
    assert deep.read_votes(path).votes.tolist() == [[1, 0], [0, -1], [-1, 1]]
    LONG.to_csv(path, sep=mark, index=False)
    assert deep.read_votes(path).votes.tolist() == [[1, 0], [0, -1], [-1, 1]]
    claims = [["It rained, then snowed.", "It rained.", "yes"], ["It snowed.", "It rained; it did.", "no"]]
    pd.DataFrame(claims, columns=["source", "claim", "label"]).to_csv(path, sep=mark, index=False)
    assert [[one.source, one.claim, one.label] for one in deep.read_examples(path)] == [
        [*claims[0][:2], 1],
        [*claims[1][:2], 0],
    ]
    path.write_text("dataset,item_id,a;b\nnews,x,1\n")
    assert deep.read_votes(path).voter_names == ("a;b",)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_row_a_vote(ending, tmp_path):
    """The long layout is the wide one; items and judges in order of first appearance."""
    long = LONG.assign(vote=[1, 0, 0, 1])
    path = written(tmp_path, LONG) if ending == "csv" else str(tmp_path / "votes.parquet")
    if ending == "parquet":
        long.to_parquet(path)
    votes, wide = deep.read_votes(path), deep.read_votes(written(tmp_path, WIDE, "wide.csv"))
    assert votes.votes.tolist() == wide.votes.tolist()
    assert (votes.voter_names, votes.labels.tolist()) == (wide.voter_names, wide.labels.tolist())
    both = deep.read_votes([path, written(tmp_path, WIDE[["dataset", "item_id"]].assign(z=[1, 1, 0]), "z.csv")])
    assert both.voter_names == ("x", "v", "z")


def test_the_place_in_a_long_table(tmp_path):
    """It is that of the file: its column, and the line that an editor shows."""
    path = tmp_path / "votes.csv"
    head = "dataset,item,judge,vote,label\nnews,a,x,1,1\n"
    for row, message in (
        ("news,a,y,7,1", r"`votes` must be 0, 1 or empty\. Got '7' at .*votes\.csv, column 'vote', row 2 \(line 3\)\."),
        ("news,,y,1,1", r"Got '' at .*votes\.csv, column 'item', row 2 \(line 3\)\."),
        ("news,a,x,1,1", r"Got 'a' of dataset 'news' at .*column 'item', row 2 \(line 3\), and before at row 1\."),
        (
            "news,a,y,1,0",
            r"`label` must be the same in all rows of an item\. Got 1 at .*'label', row 1 \(line 2",
        ),
        ("news,a,label,1,1", r"`judge` must not be one of dataset, .* Got 'label' in .*votes\.csv\."),
    ):
        path.write_text(f"{head}{row}\n")
        with pytest.raises(InputError, match=message):
            deep.read_votes(path)


def test_a_long_table_of_too_many_pairs(tmp_path, monkeypatch):
    """Its wide one would not fit: a row for each of its items, a column for each judge."""
    monkeypatch.setattr("deep._util.join.MAX_CELLS", 3)
    path = tmp_path / "votes.csv"
    path.write_text("dataset,item,judge,vote\nnews,a,x,1\nnews,b,y,1\n")
    with pytest.raises(InputError, match=r"at most 3 pairs of an item and a judge\. Got 2 items and 2 judges in"):
        deep.read_votes(path)


@pytest.mark.parametrize("table", [WIDE, LONG], ids=["wide", "long"])
def test_no_dataset(table, tmp_path):
    """It is named, or the error says how."""
    path = written(tmp_path, table.drop(columns="dataset"))
    assert deep.read_votes(path, dataset="mine").dataset_names == ("mine",)
    with pytest.raises(InputError, match=r"dataset.*--dataset"):
        deep.read_votes(path)
    assert deep.read_votes(written(tmp_path, table, "named.csv"), dataset="mine").dataset_names == ("news",)


def test_the_dataset_of_every_command(tmp_path, capsys):
    """Of votes and labels, read whole or in pieces; the scores have it."""
    votes = small_votes(("a", "b", "c"))
    frame_of(votes).to_csv(tmp_path / "labeled.csv", index=False)
    mine = frame_of(votes.rows(votes.datasets == "a")).drop(columns="dataset")
    mine.drop(columns="label").to_parquet(tmp_path / "mine.parquet")
    mine[["item_id", "label"]].head(20).to_csv(tmp_path / "labels.csv", index=False)
    model, own = str(tmp_path / "model.json"), ["--votes", str(tmp_path / "mine.parquet"), "--dataset", "own"]
    assert fit([str(tmp_path / "labeled.csv"), "--out", model]) == 0
    assert score([model, *own, "--out", str(tmp_path / "s.csv")]) == 0
    assert set(pd.read_csv(tmp_path / "s.csv")["dataset"]) == {"own"}
    capsys.readouterr()
    assert estimate([model, *own, "--labels", str(tmp_path / "labels.csv"), "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["datasets"]
    assert (result["dataset"], result["labels"]) == ("own", 20)
    assert estimate([model, "--votes", str(tmp_path / "mine.parquet")]) == 2
    assert "--dataset NAME" in capsys.readouterr().err


def test_files_that_share_no_item(tmp_path):
    """Of other judges on one dataset: three ids of each; rows of one table in two files are none."""
    one = written(tmp_path, WIDE[["dataset", "item_id", "x"]], "one.csv")
    other = WIDE[["dataset", "v"]].assign(item_id=["news/a", "news/b", "news/c"])
    with pytest.raises(
        InputError, match=r"`item_id` must be written alike.*'a', 'b', 'c' in .*one.csv, and 'news/a', "
    ):
        deep.read_votes([one, written(tmp_path, other, "other.csv")])
    parts = [written(tmp_path, WIDE.iloc[at], f"{at.start}.csv") for at in (slice(0, 1), slice(1, 3))]
    assert len(deep.read_votes(parts).votes) == 3
    elsewhere = other.assign(dataset="talk")
    assert len(deep.read_votes([one, written(tmp_path, elsewhere, "talk.csv")]).votes) == 6


def test_data_check_reads_votes(tmp_path, capsys):
    """As `fit` would, or says what is wrong."""
    path = written(tmp_path, WIDE)
    assert data(["check", "--votes", path]) == 0
    assert "VoteMatrix: 3 items x 2 voters, 2 items labeled" in capsys.readouterr().out
    assert data(["check", "--votes", written(tmp_path, WIDE.assign(x=2), "bad.csv")]) == 2
    assert "`votes` must be 0, 1 or empty. Got '2'" in capsys.readouterr().err


def test_prices_of_judges_of_your_own(tmp_path, capsys):
    """From the command line, by the judge's name; from the column cost of a long table, as its mean."""
    path = written(tmp_path, WIDE)
    words = [path, "--n-boot", "10", "--no-worth", "--json"]
    assert panel([*words, "--prices", "x=0.002", "v=0"]) == 0
    assert json.loads(capsys.readouterr().out)["cost_per_1000"] == pytest.approx(2.0)
    assert panel([written(tmp_path, LONG, "long.csv"), *words[1:]]) == 0
    assert json.loads(capsys.readouterr().out)["cost_per_1000"] == pytest.approx(3.0 + 1.0)
    for wrong in ("x", "x=-1", "x=nan", "=1"):
        assert panel([*words, "--prices", wrong]) == 2
        assert "`prices` must be JUDGE=USD" in capsys.readouterr().err
    assert panel([*words, "--prices", "z=1"]) == 2
    assert "`prices` must name judges of the votes: v, x. Got 'z'" in capsys.readouterr().err
