"""Tables as people have them: words for votes, a row a vote, no dataset, ids that do not meet, prices of their own."""

import json

import pandas as pd
import pytest

import deep
from deep.exceptions import InputError
from tests.commands.model_case import frame_of
from tests.deep_commands import data, estimate, fit, panel, score
from tests.model.fitted import small_votes

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
    monkeypatch.setattr("deep._util.join.MOST_CELLS", 3)
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
