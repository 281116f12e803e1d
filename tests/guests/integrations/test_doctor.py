"""What `deep doctor` says of files, good, broken and odd; its advice runs, and the data allow it."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from deep.cli import main
from tests.guests.integrations.foreign_files import write


def table(n=60, k=3, **columns):
    """Return a table of votes of judges who are right in four of five, with labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    votes = np.where(rng.random((n, k)) < 0.8, y[:, None], 1 - y[:, None])
    frame = pd.DataFrame(votes, columns=[f"j{i}" for i in range(k)])
    return frame.assign(dataset="d", item_id=[f"i{i:03}" for i in range(n)], label=y).assign(**columns)


@pytest.fixture
def doctor(tmp_path, monkeypatch, capsys):
    """Return a function that writes tables, and returns what `deep doctor` says of them."""
    monkeypatch.chdir(tmp_path)

    def look(status=0, **files):
        for name, content in files.items():
            if isinstance(content, pd.DataFrame):
                content.to_csv(f"{name}.csv", index=False)
            else:
                (tmp_path / f"{name}.csv").write_text(content)
        assert main(["doctor", *(f"{name}.csv" for name in files), "--json"]) == status
        return json.loads(capsys.readouterr().out)

    return look


def said(found, part):
    """Return the sentences of one part on all files, in one text."""
    return " | ".join(text for file in found["files"] for text in file[part])


def test_votes_with_labels(doctor):
    """Counts, what is missing, and three commands."""
    result = doctor(ok=table())
    assert [file["kind"] for file in result["files"]] == ["votes"]
    assert "60 items, 3 judges: j0, j1, j2" in said(result, "facts")
    assert "a second labeled dataset" in said(result, "missing")
    assert said(result, "careful") == ""
    assert [command.split()[1] for command in result["next"]] == ["panel", "report", "fit"]


def test_no_label_and_labels_of_one_class(doctor):
    """No judge is measured by them, and no model is learned from one class."""
    result = doctor(nolab=table().drop(columns="label"))
    assert "labels: without them P comes from agreement alone" in said(result, "missing")
    assert [command.split()[1] for command in result["next"]] == ["report", "fit"]
    result = doctor(one=table(label=1))
    assert "labels of only one class in d" in said(result, "careful")
    assert [command.split()[1] for command in result["next"]] == ["report"]
    two = pd.concat([table(), table(label=1, dataset="e")])
    assert doctor(two=two)["next"][-1] == "deep fit two.csv --exclude e --out two.model.json"


def test_judges_that_tell_nothing_or_tell_it_twice(doctor):
    """Constants, copies, the label under another name; the last is left out of what is fitted."""
    frame = table()
    result = doctor(odd=frame.assign(copy=frame.j0, always=1, right=frame["label"], expert_1=frame.j1))
    careful = said(result, "careful")
    assert "always always says 1: it tells nothing about which claims are consistent." in careful
    assert "identical columns, which count as one judge: j0, copy" in careful
    assert "right equals the label on every item" in careful
    assert "named like people, not judges: expert_1" in careful
    assert result["next"][0] == "deep panel odd.csv --ignore right"


def test_a_panel_that_tells_nothing_needs_other_judges(doctor):
    """No label and no fit helps where every judge says the same of all claims."""
    result = doctor(same=table().drop(columns="label").assign(j0=1, j1=1, j2=0))
    assert said(result, "missing").startswith("No judge can tell these claims apart")
    assert "label" not in said(result, "missing").partition("Labels show only their share")[2]
    assert [command.split()[1] for command in result["next"]] == ["report"]


def test_small_and_narrow_tables(doctor):
    """One judge, one document, few items, few labels, no dataset."""
    frame = table(n=12, k=1, document_id="x").drop(columns="dataset")
    result = doctor(small=frame)
    careful = said(result, "careful")
    assert "all items share one document" in careful
    assert "12 items: intervals will be wide" in careful
    assert "fewer than 20 labels in small" in careful
    assert "no column dataset: all rows are of one, 'small' (--dataset small)" in careful
    assert "a second judge" in said(result, "missing")
    assert all("--dataset small" in command for command in result["next"])


def test_ids_that_a_spreadsheet_changed(doctor):
    """Rounded, dated, or without their zeros: labels then match nothing, and are no advice's."""
    ids = ["1.23E+11", "3-Mar", *(f"{i:03}" for i in range(2, 60))]
    labels = pd.DataFrame({"dataset": "d", "item_id": range(60), "label": [0, 1] * 30})
    result = doctor(votes=table(item_id=ids).drop(columns="label"))
    assert "2 ids may have been changed by a spreadsheet (1.23E+11, 3-Mar)" in said(result, "careful")
    votes = table(item_id=[f"{i:03}" for i in range(60)]).drop(columns="label")
    result = doctor(votes=votes, labels=labels, status=1)
    assert "60 labels are of items without votes; '0' may be '000'" in said(result, "careful")
    assert [command.split()[1] for command in result["next"]] == ["report", "fit"]
    assert not any("labels.csv" in command for command in result["next"])
    some = labels.assign(item_id=[f"{i:03}" if i > 20 else str(i) for i in range(60)])
    result = doctor(votes=votes, some=some)
    assert "39 of them match items with votes" in said(result, "facts")
    assert result["next"][0] == "deep panel votes.csv --labels some.csv"


def test_grades_and_words_that_need_a_meaning(doctor, tmp_path, capsys):
    """Grades are told with their scale; what words mean is asked for, and not guessed."""
    rows = pd.DataFrame({"id": [f"a{i}" for i in range(40)], "strict": [5, 1] * 20, "loose": [4, 2] * 20})
    result = doctor(grades=rows)
    assert "Scales of answers: 1-5 (by their values): loose, strict" in said(result, "facts")
    assert result["next"][0] == "deep data from grades.csv --out grades.votes.parquet"
    result = doctor(1, grades=rows.assign(strict=[500, 1] * 20, loose=[400, 2] * 20))
    assert "for instance: --source COLUMN --claim COLUMN --judges COLUMN" in said(result, "facts")
    path = write(tmp_path, "project.json")
    assert main(["doctor", str(path), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert "Name words that mean consistent with --yes, and the others with --no" in said(result, "facts")
    assert result["next"] == []


def test_a_file_of_no_use_says_why(doctor):
    """In the words of the command that would refuse it; nothing is advised that would fail."""
    for content, message in (
        ("", "must be files that are not empty"),
        ("a,b\n1,2,3\n", "must have as many cells as columns"),
        ("alpha,beta\nwords,others\n", "Say which column is which, for instance: --source"),
        ("dataset,item_id,Label,j0\nd,a,1,1\n", "which may be the column 'label'"),
        ("source,claim\n,a\n,b\n", "must have a source and a claim in every row"),
    ):
        result = doctor(broken=content, status=1)
        assert [file["kind"] for file in result["files"]] == ["unusable"]
        assert message in said(result, "facts")
        assert result["next"] == []


def test_answers_of_another_tool_that_failed_are_counted(tmp_path, capsys):
    """By judge, as those of a table of votes are."""
    main(["doctor", str(write(tmp_path, "results.json")), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert "no usable answer from llm-rubric (25.0 % of results), contains" in said(result, "careful")


def test_what_is_no_table_is_told(tmp_path, capsys, monkeypatch):
    """A file that is not there, prose, a folder, a ledger, a model beside votes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prose.txt").write_text("words")
    (tmp_path / "ledger.sqlite").write_bytes(b"SQLite format 3\0" + bytes(100))
    (tmp_path / "folder").mkdir()
    assert main(["doctor", "gone.csv", "prose.txt", "folder", "ledger.sqlite"]) == 1
    out = capsys.readouterr().out
    assert "gone.csv: unusable" in out
    assert "which is not there" in out
    assert "folder: folder\n  a folder: give the files in it" in out
    assert "  deep ask report ledger.sqlite" in out
    table().to_csv("votes.csv", index=False)
    assert main(["fit", "votes.csv", "--out", "m.json"]) == 0
    capsys.readouterr()
    assert main(["doctor", "m.json", "votes.csv", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["files"][0]["kind"] == "model"
    assert [command.split()[1] for command in result["next"]] == ["check", "report"]


def test_texts_under_other_names_are_found_by_their_length(doctor, capsys):
    """The command that reads them runs, and says that it is a guess."""
    rows = pd.DataFrame(
        {"passages": ["It rained all day in Ghent and in Bruges."] * 3, "bot": ["It rained in Ghent all day."] * 3}
    )
    result = doctor(rag=rows)
    assert "source is 'passages' and claim 'bot': check that" in said(result, "careful")
    assert result["next"][0] == "deep data from rag.csv --source 'passages' --claim 'bot' --out rag.votes.parquet"
    assert main(shlex.split(result["next"][0])[1:]) == 0
    assert "no answers, 0 items labeled" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claims", "nolab", "few", "single", "mine.csv", "results.json"])
def test_the_advice_runs(name, doctor, tmp_path, capsys):
    """Every command, one after the other."""
    tables = {
        "nolab": table().drop(columns="label"),
        "few": table(label=[1, 0, 1, 0, 1, 0] + [np.nan] * 54),
        "single": table(n=1),
        "claims": pd.DataFrame({"source": ["It rained."] * 2, "claim": ["Rain fell.", "It snowed."], "label": [1, 0]}),
    }
    if name in tables:
        commands = doctor(**{name: tables[name]})["next"]
    else:
        assert main(["doctor", str(write(tmp_path, name)), "--json"]) == 0
        commands = json.loads(capsys.readouterr().out)["next"]
    assert commands
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command


def test_no_advice_writes_over_a_table_of_votes(doctor, tmp_path):
    """Votes may have been paid for: what is proposed beside them has a name of its own."""
    claims = pd.DataFrame({"source": ["It rained."] * 3, "claim": ["It was wet."] * 3})
    table().drop(columns="label").to_parquet(tmp_path / "mine.votes.parquet")
    result = doctor(mine=claims)
    ask = next(command for command in result["next"] if command.startswith("deep ask"))
    assert ask.endswith(" --out mine-2.votes.parquet")
    assert all("mine.votes.parquet" not in command for command in result["next"])


def test_tables_with_p_are_told_apart(doctor):
    """`deep label list` writes P beside labels to fill in; `deep score --with-texts` writes texts beside P."""
    proposed = pd.DataFrame({"dataset": "d", "item_id": [f"i{i:03}" for i in range(20)], "label": [0, 1] * 10})
    scored = proposed.assign(p_consistent=0.5, p_low=0.1, p_high=0.9, threshold=0.5, source="It rained.", claim="Wet.")
    result = doctor(votes=table().drop(columns="label"), labels=proposed.assign(p_consistent=0.5), scores=scored)
    assert [file["kind"] for file in result["files"]] == ["votes", "labels", "scores"]
    assert not any("scores.csv" in command for command in result["next"])
