"""`deep fit`, `deep score`, `deep score explain` and `deep export` from their command lines."""

import json
import os
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deep import VoteMatrix
from deep.model import SCORE_COLUMNS, exported_columns, load, pattern_grid
from tests.commands.model_case import IDS, QUICK, fit_here, frame_of, refused, scored
from tests.deep_commands import adapt, explain, export, fit
from tests.model.fitted import small_votes, table_of

LONG = bool(os.environ.get("DEEP_LONG"))

# Columns of a table of patterns. tests/model/score/test_columns.py names all columns; here they come where they should.
SCORED = [name for name in exported_columns() if name != "n_votes"]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return a folder with votes and a model."""
    return fit_here(tmp_path_factory.mktemp("model"))


def test_fit_says_what_it_chose(here, capsys, tmp_path):
    """For people, and as JSON; the model is the same from CSV and from Parquet."""
    out = tmp_path / "model.json"
    assert fit([str(here / "votes.csv"), "--out", str(out), *QUICK]) == 0
    message = capsys.readouterr().out
    assert message.startswith("LogisticRegression: the best chain of voters")
    assert "  C=" in message
    assert "mean over held-out data: balanced accuracy" in message
    assert "expected share of consistent items in a new dataset: " in message
    assert fit([str(here / "votes.csv"), "--out", str(out), "--json", *QUICK]) == 0
    summary = json.loads(capsys.readouterr().out)
    chosen = summary["chosen"]
    assert (chosen["ensembler"], chosen["calibrator"], len(summary["voters"])) == ("LogisticRegression", "platt", 3)
    assert (summary["method"], summary["target"], summary["correction"]) == ("chain", None, None)
    assert np.array_equal(table_of(load(out)), table_of(load(here / "model.json")))


@pytest.mark.slow
def test_fit_in_two_processes_is_the_same(here, tmp_path):
    """And so is fitting some datasets by name or by leaving out the others."""
    for i, words in enumerate((["--only", "a,b,c"], ["--exclude", "d", "--jobs", "2"])):
        assert fit([str(here / "votes.parquet"), "--out", str(tmp_path / f"{i}.json"), *QUICK, *words]) == 0
    one, two = (load(tmp_path / f"{i}.json") for i in range(2))
    assert one.cells.groups == ("a", "b", "c")
    assert np.array_equal(table_of(one), table_of(two))


def test_fit_on_simulated_votes_says_so(tmp_path, capsys):
    """In capitals, and in the file."""
    assert fit(["--simulated", "--out", str(tmp_path / "model.json"), *QUICK]) == 0
    assert "SIMULATED" in capsys.readouterr().out
    assert load(tmp_path / "model.json").fit_report["provenance"]["votes"] == "simulated"


def test_scores_have_the_columns_of_loo_and_the_interval(here):
    """The same from Parquet in pieces, from CSV at once, and by the API."""
    result = scored(here, "--votes", here / "votes.parquet")
    assert list(result) == [*IDS, *SCORE_COLUMNS]
    votes, model = small_votes(n_voters=5), load(here / "model.json")
    np.testing.assert_allclose(result["p_consistent"], model.score(votes), rtol=0, atol=1e-12)
    np.testing.assert_allclose(result[["p_low", "p_high"]], model.intervals(votes), rtol=0, atol=1e-12)
    assert np.array_equal(result["n_votes"], (model.select(votes) >= 0).sum(axis=1))
    assert result["label"].tolist() == votes.labels.tolist()
    pd.testing.assert_frame_equal(scored(here, "--votes", here / "votes.csv", out="s2.parquet"), result)
    as_csv = scored(here, "--votes", here / "votes.csv", out="s.csv")
    np.testing.assert_allclose(as_csv["p_consistent"], result["p_consistent"], rtol=0, atol=1e-12)


def test_columns_that_are_no_voters_of_the_model_need_not_hold_votes(here, tmp_path):
    """Text beside the votes is not read."""
    table = pd.read_parquet(here / "votes.parquet").assign(claim="a claim", score=0.3)
    table.to_parquet(tmp_path / "more.parquet")
    table.to_csv(tmp_path / "more.csv", index=False)
    expected = scored(here, "--votes", here / "votes.parquet")["p_consistent"]
    for name in ("more.parquet", "more.csv"):
        assert np.array_equal(scored(here, "--votes", tmp_path / name)["p_consistent"], expected)


def domains(data_home, monkeypatch):
    """Return votes of lexical checks on sixty pairs of each domain of SummEdits."""
    from deep.datasets import read_examples
    from deep.features.lexical import LEXICAL

    monkeypatch.setenv("DEEP_DATA_HOME", str(data_home))
    seen, some = {}, []
    for example in read_examples("summedits"):
        seen[example.dataset] = seen.get(example.dataset, 0) + 1
        if seen[example.dataset] <= 60:
            some.append(example)
    table = {
        "dataset": [example.dataset for example in some],
        "item_id": [example.example_id for example in some],
        "label": [example.label for example in some],
    }
    for name in ("numbers", "entities", "negation", "coverage", "novel-run"):
        check = LEXICAL[name]()
        message = [judgment.vote for judgment in map(check.label, some)]
        table[check.voter()] = pd.array(message, dtype="Int8")
        table[check.voter()][np.array(message) == -1] = pd.NA
    return pd.DataFrame(table)


def streamed(model):
    """Return P of every pattern as of a dataset like the mean of the training datasets."""
    return model.score(pattern_grid(len(model.voters)), streamed=True)


def joined(sql_file, votes, voters, engine):
    """Return P of each row of votes, by the join that an exported model is made for."""
    same = " AND ".join(f'v."{name}" IS NOT DISTINCT FROM m."{name}"' for name in voters)
    query = f"SELECT m.p_consistent FROM votes AS v JOIN deep_model AS m ON {same} ORDER BY v.position"
    rows = votes[list(voters)].assign(position=range(len(votes)))
    if engine == "sqlite":
        connection = sqlite3.connect(":memory:")
        connection.executescript(sql_file.read_text(encoding="utf-8"))
        rows.astype(object).where(rows.notna(), None).to_sql("votes", connection, index=False)
    else:
        connection = pytest.importorskip("duckdb").connect()
        connection.execute(sql_file.read_text(encoding="utf-8"))
        connection.register("votes", pa.Table.from_pandas(rows, preserve_index=False))
    result = np.array(connection.execute(query).fetchall())[:, 0]
    connection.close()
    return result


def test_seven_domains_score_the_eighth_alike_by_every_way(data_home, monkeypatch, tmp_path):
    """Command line, Python and SQL in two databases give one probability."""
    table = domains(data_home, monkeypatch)
    assert table["dataset"].nunique() == 8
    table.to_parquet(tmp_path / "votes.parquet")
    words = [*QUICK[2:], "--sizes", "5", "--exclude", "summedits-news"]
    assert fit([str(tmp_path / "votes.parquet"), "--out", str(tmp_path / "model.json"), *words]) == 0
    model = load(tmp_path / "model.json")
    assert len(model.fit_report["training_datasets"]) == 7
    # A name alone is no origin: these rows do not say that they are the benchmark's.
    assert {row["licence"] for row in model.fit_report["training_datasets"].values()} == {None}
    made = {"examples": {"benchmark": "summedits", "sha256": {}, "main_only": False}}
    rows = pa.Table.from_pandas(table).replace_schema_metadata({"deep": json.dumps(made)})
    pq.write_table(rows, tmp_path / "made.parquet")
    assert fit([str(tmp_path / "made.parquet"), "--out", str(tmp_path / "made.json"), *words]) == 0
    licences = {row["licence"] for row in load(tmp_path / "made.json").fit_report["training_datasets"].values()}
    assert licences == {"Apache-2.0 (commercial use allowed)"}
    eighth = table[table["dataset"] == "summedits-news"].reset_index(drop=True)
    eighth.to_parquet(tmp_path / "eighth.parquet")
    p = scored(tmp_path, "--votes", tmp_path / "eighth.parquet")["p_consistent"].to_numpy()
    assert len(p) == 60
    assert len(np.unique(p)) > 3
    by_api = model.score(eighth[list(model.voter_names)].fillna(-1))
    np.testing.assert_allclose(by_api, p, rtol=0, atol=1e-12)
    words = ["--votes", str(tmp_path / "eighth.parquet"), "--out", str(tmp_path / "mine.json")]
    assert adapt([str(tmp_path / "model.json"), *words]) == 0
    assert export([str(tmp_path / "mine.json"), "--to", "sql", "--out", str(tmp_path / "model.sql")]) == 0
    for engine in ("sqlite", "duckdb"):
        by_sql = joined(tmp_path / "model.sql", eighth, model.voter_names, engine)
        np.testing.assert_allclose(by_sql, p, rtol=0, atol=1e-12)


def test_the_join_that_the_file_tells_is_one_that_works(here, tmp_path):
    """It begins with a query; run as it stands, it finds P of every pattern, of those with no votes too."""
    out = tmp_path / "model.sql"
    assert export([str(here / "model.json"), "--to", "sql", "--out", str(out)]) == 0
    told = [line[2:] for line in out.read_text(encoding="utf-8").splitlines() if line.startswith("--   ")]
    model = load(here / "model.json")
    rows = pd.DataFrame(pattern_grid(3), columns=list(model.voter_names)).astype(object)
    connection = sqlite3.connect(":memory:")
    connection.executescript(out.read_text(encoding="utf-8"))
    rows.mask(rows == -1, None).to_sql("votes", connection, index=False)
    result = sorted(row[-2] for row in connection.execute("\n".join(told)))
    connection.close()
    np.testing.assert_allclose(result, np.sort(streamed(model)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_table_as_a_file(here, tmp_path, kind):
    """Voters, then P; an empty cell is no vote; a row a pattern."""
    out = tmp_path / f"model.{kind}"
    assert export([str(here / "model.json"), "--to", kind, "--out", str(out)]) == 0
    table = pd.read_csv(out) if kind == "csv" else pd.read_parquet(out)
    model = load(here / "model.json")
    assert list(table) == [*model.voter_names, *SCORED]
    assert np.array_equal(table.iloc[:, :3].isna(), pattern_grid(3) == -1)
    assert np.array_equal(table.iloc[:, :3].fillna(-1), pattern_grid(3))
    np.testing.assert_allclose(table["p_consistent"], streamed(model), rtol=0, atol=1e-12)


def test_names_are_quoted_in_sql(tmp_path):
    """Whatever stands in them."""
    votes = frame_of(small_votes()).rename(columns={"judge-0": 'the "strict"; DROP', "judge-1": "it's"})
    votes.to_parquet(tmp_path / "votes.parquet")
    assert fit([str(tmp_path / "votes.parquet"), "--out", str(tmp_path / "model.json"), *QUICK]) == 0
    out = tmp_path / "model.sql"
    assert export([str(tmp_path / "model.json"), "--to", "sql", "--out", str(out), "--table", 'my "table"']) == 0
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(out.read_text())
        assert connection.execute('SELECT count(*), count("it\'s") FROM "my ""table"""').fetchone() == (27, 18)
    connection.close()


def test_explain_an_item_and_votes_by_hand(here, capsys):
    """An item as `deep score` scores it in its table, votes by hand as a text by itself; the votes add the same."""
    table = pd.read_parquet(here / "votes.parquet")
    model = load(here / "model.json")
    row = table.iloc[5]
    words = ["--votes", str(here / "votes.parquet"), "--item", row["item_id"], "--dataset", row["dataset"]]
    assert explain([str(here / "model.json"), *words, "--json"]) == 0
    by_item = json.loads(capsys.readouterr().out)
    result = scored(here, "--votes", here / "votes.parquet").iloc[5]
    assert [by_item[name] for name in ("p_consistent", "p_low", "p_high")] == pytest.approx(
        result[["p_consistent", "p_low", "p_high"]].tolist(), abs=1e-12
    )
    votes = {name: row[name] for name in model.voter_names}
    given = [f"{name}={'none' if pd.isna(vote) else vote}" for name, vote in votes.items()]
    capsys.readouterr()
    assert explain([str(here / "model.json"), "--json", *(w for g in given for w in ("--vote", g))]) == 0
    by_hand = json.loads(capsys.readouterr().out)
    pattern = [[-1 if pd.isna(vote) else vote for vote in votes.values()]]
    assert by_hand["p_consistent"] == pytest.approx(model.score(pattern, streamed=True)[0], abs=1e-12)
    parts = [[part["shapley"] for part in one["contributions"]] for one in (by_item, by_hand)]
    scale = np.divide(*parts)  # of a dataset whose P stays nearer to a half
    np.testing.assert_allclose(scale, scale[0])
    odds = np.log([by_item[name] / (1 - by_item[name]) for name in ("p_consistent", "p_without_votes")])
    assert sum(parts[0]) == pytest.approx(odds[0] - odds[1])
    assert by_item["p_low"] < by_item["p_consistent"] < by_item["p_high"]
    assert explain([str(here / "model.json"), "--vote", f"{model.voter_names[0]}=1"]) == 0
    message = capsys.readouterr().out
    assert message.startswith("P(consistent) = ")
    assert f"{model.voter_names[1]}  none" in message


def test_grades_are_explained_as_grades(tmp_path, capsys):
    """Of an item as of grades by hand, a word for no answer among them; what is off the scale is refused."""
    votes = small_votes()
    rng = np.random.default_rng(0)
    grades = np.clip(np.round(2 + 2 * votes.labels + rng.normal(0, 1, len(votes.labels))), 1, 5)
    frame = frame_of(votes).assign(grader=grades)
    frame.to_parquet(tmp_path / "votes.parquet")
    file = str(tmp_path / "model.json")
    assert fit([str(tmp_path / "votes.parquet"), "--out", file]) == 0
    row = scored(tmp_path, "--votes", tmp_path / "votes.parquet").iloc[3]
    words = ["--votes", str(tmp_path / "votes.parquet"), "--item", row["item_id"], "--dataset", row["dataset"]]
    capsys.readouterr()
    assert explain([file, *words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["p_consistent"] == pytest.approx(row["p_consistent"], abs=1e-12)
    votes_of_row = {part["voter"]: part["vote"] for part in result["contributions"]}
    assert votes_of_row["grader"] == grades[3]
    assert explain([file, "--vote", "grader=4", "--vote", "judge-0=none", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {part["voter"]: part["vote"] for part in result["contributions"]}["judge-0"] is None
    model = load(file)
    expected = model.p_streamed(np.array([[0.75 if name == "grader" else np.nan for name in model.voter_names]]))
    assert result["p_consistent"] == pytest.approx(expected[0], abs=1e-12)
    assert "a grade of its scale. Got 'grader=6'." in refused(capsys, explain, file, "--vote", "grader=6")


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_grades_have_their_probability_in_sql(tmp_path, engine):
    """Words and numbers of graders as their tables have them; none of a judge that gives shares."""
    votes, words = small_votes(), np.array(["bad", "fair", "good"])
    rng = np.random.default_rng(0)
    frame = frame_of(votes).drop(columns="judge-2")
    frame["grader"] = np.clip(np.round(2 + 2 * votes.labels + rng.normal(0, 1, len(frame))), 1, 5).astype(int)
    frame["tone"] = words[np.clip(votes.labels + rng.integers(0, 2, len(frame)), 0, 2)]
    frame.to_csv(tmp_path / "votes.csv", index=False)
    file, out = str(tmp_path / "model.json"), str(tmp_path / "model.sql")
    assert fit([str(tmp_path / "votes.csv"), "--scale", "tone=bad<fair<good", "--out", file]) == 0
    assert export([file, "--to", "sql", "--out", out]) == 0
    model = load(file)
    rows = frame[list(model.voter_names)].sample(40, random_state=0).astype(object)
    result = joined(tmp_path / "model.sql", rows.mask(rows.isna(), None), model.voter_names, engine)
    matrix = VoteMatrix.from_frame(frame.loc[rows.index], scales={"tone": "bad<fair<good", "grader": "1-5"})
    np.testing.assert_allclose(result, model.score(matrix, streamed=True), rtol=0, atol=1e-12)


def test_shares_are_no_table(tmp_path, capsys):
    """Any number between 0 and 1 may come; the judge is named."""
    frame = frame_of(small_votes())
    frame.assign(share=np.random.default_rng(0).uniform(size=len(frame))).to_parquet(tmp_path / "votes.parquet")
    assert fit([str(tmp_path / "votes.parquet"), "--out", str(tmp_path / "model.json")]) == 0
    capsys.readouterr()
    err = refused(capsys, export, tmp_path / "model.json", "--to", "csv", "--out", tmp_path / "m.csv")
    assert "Got 'share', whose scale is unit." in err


def test_a_wide_model_is_no_table(tmp_path, capsys):
    """Its size is said."""
    frame_of(small_votes(n_voters=11)).to_parquet(tmp_path / "votes.parquet")
    words = [*QUICK[2:], "--sizes", "all"]
    assert fit([str(tmp_path / "votes.parquet"), "--out", str(tmp_path / "model.json"), *words]) == 0
    assert len(scored(tmp_path, "--votes", tmp_path / "votes.parquet")) == 480
    capsys.readouterr()
    err = refused(capsys, export, tmp_path / "model.json", "--to", "csv", "--out", tmp_path / "m.csv")
    assert "at most 10 voters" in err


@pytest.mark.parametrize(
    ("word", "remedy"),
    [
        ("python", ", which deep no longer writes. Join the table of `--to sql` to votes, or score in Python with"),
        ("langfuse", ", which deep no longer writes. Send scores to Langfuse with"),
        ("json", "."),
    ],
)
def test_a_format_that_is_not_written_has_its_remedy(word, remedy, here, tmp_path, capsys):
    """Dropped formats are not offered, and name what serves in their place."""
    err = refused(capsys, export, here / "model.json", "--to", word, "--out", tmp_path / "m")
    assert f"`to` must be csv, parquet or sql. Got {word!r}{remedy}" in err
    assert not (tmp_path / "m").exists()


@pytest.mark.skipif(not LONG, reason="takes a minute; set DEEP_LONG=1")
def test_ten_million_rows_go_through_in_pieces(here, tmp_path):
    """A process that scores them holds eight bytes a row, not the rows."""
    model = load(here / "model.json")
    n = 10_000_000
    rng = np.random.default_rng(0)
    columns = {name: pa.array(rng.integers(0, 2, n, dtype=np.int8)) for name in model.voter_names}
    ids = pa.array(np.arange(n)).cast(pa.string())
    pq.write_table(pa.table({"dataset": pa.array(["new"] * n), "item_id": ids, **columns}), tmp_path / "votes.parquet")
    code = (
        "import sys; from deep.cli import main; status = main(command='score'); "
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]); sys.exit(status)"
    )
    words = [str(here / "model.json"), "--votes", str(tmp_path / "votes.parquet"), "--out", str(tmp_path / "s.parquet")]
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True, text=True)
    sys.stderr.write(f"{n} rows in {time.perf_counter() - start:.0f} s\n")
    assert int(done.stdout.split()[-1]) < 1_500_000
    assert pq.read_metadata(tmp_path / "s.parquet").num_rows == n
