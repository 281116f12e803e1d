"""`deep check --gate`: exit status, JUnit as a CI reads it, the summary, and the history with its chart."""

import json
import os
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deep.model import fit
from tests.deep_commands import check
from tests.model.fitted import QUICK

junitparser = pytest.importorskip("junitparser", reason="junitparser is not installed: pip install '.[test]'")

ROOT = Path(__file__).resolve().parents[3]
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")

OLD, NEW = "strict@0a1b2c3d/small", "strict@9f8e7d6c/small"


def votes_of(seed, dataset, n=80, names=(OLD, "numbers@11112222", "dates@33334444"), wrong=0.2):
    """Return a table of votes of three judges, and its labels."""
    draw = np.random.default_rng(seed)
    label = draw.integers(0, 2, n)
    own = {name: np.where(draw.random(n) < wrong, 1 - label, label) for name in names}
    return pd.DataFrame({"dataset": dataset, "item_id": [f"i{k}" for k in range(n)], "label": label, **own})


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """Return a model that was fitted on three datasets of three judges."""
    from deep import VoteMatrix

    folder = tmp_path_factory.mktemp("gate")
    table = pd.concat([votes_of(seed, f"set{seed}") for seed in range(3)])
    fit(VoteMatrix.from_frame(table), **(QUICK | {"sizes": [3]})).save(folder / "model.json")
    return folder / "model.json"


@pytest.fixture
def gated(model_file, tmp_path, monkeypatch):
    """Return a function that runs the gate on a table of votes, with or without labels."""
    monkeypatch.chdir(tmp_path)

    def run(table, *more, labels=None):
        table.drop(columns="label").to_csv("votes.csv", index=False)
        words = [str(model_file), "--votes", "votes.csv", "--gate", "gate", *more]
        if labels is not None:
            labels.to_csv("labels.csv", index=False)
            words += ["--labels", "labels.csv"]
        return check(words)

    return run


def suite(tmp_path):
    """Return the one suite of the gate's JUnit, by a CI's parser."""
    (result,) = junitparser.JUnitXml.fromfile(str(tmp_path / "gate" / "junit.xml"))
    return result


def outcomes(found):
    """Return the tests that have not passed: name, kind and message."""
    return [(case.name, type(one).__name__, one.message) for case in found for one in case.result]


def ten(table):
    """Return labels of ten items."""
    return table.groupby("label").head(5)[["dataset", "item_id", "label"]]


def test_a_gate_that_passes(gated, tmp_path, capsys):
    """Exit status 0; a test for each judge's version, answers and votes; labels are tested where there are some."""
    table = votes_of(7, "new")
    assert gated(table, labels=ten(table)) == 0
    assert capsys.readouterr().out.startswith("gate: passed, 11 tests on 80 items\n")
    result = suite(tmp_path)
    assert (result.tests, result.failures, result.errors, result.skipped) == (11, 0, 0, 0)
    names = {(case.classname, case.name) for case in result}
    assert ("deep.check.versions", OLD) in names
    assert ("deep.check.labels", "labels agree with P") in names
    judges = [one.value for one in result.properties() if one.name == "judge"]
    assert sorted(judges) == sorted([OLD, "numbers@11112222", "dates@33334444"])
    assert "# deep check: passed" in (tmp_path / "gate" / "summary.md").read_text()


def test_a_judge_whose_prompt_changed_fails_with_the_reason(gated, tmp_path, capsys):
    """Exit status 1, and the reason in the terminal, JUnit and the summary; labels then say nothing of the model."""
    table = votes_of(7, "new", names=(NEW, "numbers@11112222", "dates@33334444"))
    assert gated(table, labels=ten(table)) == 1
    reason = f"{OLD} was fitted and {NEW} has voted: its prompt, settings or LLM changed"
    result = suite(tmp_path)
    assert (result.failures, result.errors, result.skipped) == (1, 0, 1)
    failed = [one for one in outcomes(result) if one[1] == "Failure"]
    assert ("labels agree with P", "Skipped", "Other judges have voted.") in outcomes(result)
    assert len(failed) == 1
    assert failed[0][0] == OLD
    assert reason in failed[0][2]
    assert reason in capsys.readouterr().out
    assert reason in (tmp_path / "gate" / "summary.md").read_text()


def test_labels_against_p_and_votes_that_moved_fail(gated, tmp_path):
    """Each with its figures."""
    table = votes_of(7, "new")
    assert gated(table, labels=ten(table).assign(label=lambda rows: 1 - rows["label"])) == 1
    assert [one[0] for one in outcomes(suite(tmp_path))] == ["labels agree with P"]
    assert "10 labels of new DISAGREE" in outcomes(suite(tmp_path))[0][2]
    moved = table.assign(**{OLD: 1, "numbers@11112222": 1, "dates@33334444": 0})
    assert gated(moved) == 1
    message = [one for one in outcomes(suite(tmp_path)) if one[1] == "Failure"]
    assert message
    assert all(re.search(r"\d\.\d{3}, before \d\.\d{3}; since 1 earlier run", one[2]) for one in message)


def test_a_change_over_the_runs_fails_and_says_since_when(gated, tmp_path):
    """All judges say 1 more often in the fifth week: beside the training datasets alone that would not show."""
    assert [gated(votes_of(week, "new", n=200)) for week in range(20, 24)] == [0, 0, 0, 0]
    table = votes_of(30, "new", n=200)
    lenient = table.columns[3:]
    table[lenient] = table[lenient].where(np.random.default_rng(0).random((200, 3)) > 0.35, 1)
    assert gated(table) == 1
    failed = {one[0]: one[2] for one in outcomes(suite(tmp_path)) if one[1] == "Failure"}
    assert failed["(panel)"].endswith("; since 4 earlier runs")
    assert "share of its votes that say consistent" in failed["(panel)"]
    assert gated(votes_of(31, "new", n=200)) == 1  # what has been found stays found


def test_a_reference_goes_before_the_first_run(gated, tmp_path):
    """Then the first run is compared with it, and not with the training datasets."""
    table = votes_of(7, "new")
    votes_of(8, "new", n=400).drop(columns="label").to_csv("before.csv", index=False)
    assert gated(table, "--reference", "before.csv") == 0
    assert gated(table.assign(**{OLD: 1}), "--reference", "before.csv") == 1
    message = {one[0]: one[2] for one in outcomes(suite(tmp_path)) if one[1] == "Failure"}
    assert message[OLD].endswith("since the reference")


def test_votes_unlike_the_training_datasets_at_first_stay_so(gated, tmp_path):
    """A second run that votes like the first one is no better."""
    unlike = {OLD: 1, "numbers@11112222": 1, "dates@33334444": 0}
    assert [gated(votes_of(seed, "new").assign(**unlike), "--alpha", "0.2") for seed in (7, 8)] == [1, 1]
    message = [one for one in outcomes(suite(tmp_path)) if one[1] == "Failure"]
    assert message
    assert all(re.search(r"\d\.\d{3}, expected \d\.\d{3} to \d\.\d{3}", one[2]) for one in message)


def test_without_labels_that_test_is_skipped(gated, tmp_path):
    """And says so: a gate that never saw a label is no proof."""
    assert gated(votes_of(7, "new")) == 0
    assert outcomes(suite(tmp_path)) == [
        ("labels agree with P", "Skipped", "No labels, so it is unknown whether P holds here.")
    ]


def test_input_that_cannot_be_used_is_an_error_in_junit_too(gated, tmp_path, capsys):
    """Exit status 2 with one line; a CI that reads JUnit alone sees it."""
    assert gated(votes_of(7, "new").drop(columns=OLD)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    ((name, kind, message),) = outcomes(suite(tmp_path))
    assert (name, kind) == ("input can be used", "Error")
    assert line == f"error: {message}"


def test_the_history_is_one_file_with_a_chart(gated, tmp_path, capsys):
    """A line a run, kept; the chart and the summary show all of them, failed ones too."""
    good, bad = votes_of(7, "new"), votes_of(7, "new", names=(NEW, "numbers@11112222", "dates@33334444"))
    assert [gated(good), gated(bad), gated(good, "--json")] == [0, 1, 0]
    rows = [json.loads(line) for line in (tmp_path / "gate" / "history.jsonl").read_text().splitlines()]
    assert [row["passed"] for row in rows] == [True, False, True]
    assert len({row["model"] for row in rows}) == 1
    assert all(row["share"][1] < row["share"][0] < row["share"][2] for row in rows)
    assert json.loads(capsys.readouterr().out[-20_000:].partition("\n{")[2].join(["{", ""]))["passed"]
    text = (tmp_path / "gate" / "summary.md").read_text()
    assert text.count(" passed | ") + text.count("| FAILED |") >= 3
    assert "![Share of consistent items, run by run](history.svg)" in text
    svg = ET.parse(tmp_path / "gate" / "history.svg").getroot()
    assert svg.tag.endswith("svg")


def test_a_last_line_whose_end_an_editor_took_away_stays_a_line(gated, tmp_path):
    """The next run is a line of its own."""
    path = tmp_path / "gate" / "history.jsonl"
    good = votes_of(7, "new")
    assert gated(good) == 0
    path.write_text(path.read_text().rstrip("\n"))
    assert [gated(good), gated(good)] == [0, 0]
    assert [json.loads(line)["passed"] for line in path.read_text().splitlines()] == [True] * 3


def test_a_history_of_another_shape_is_an_error_and_no_failed_gate(gated, tmp_path, capsys):
    """A traceback ends with status 1, which a CI takes for a failed test."""
    path = tmp_path / "gate" / "history.jsonl"
    assert gated(votes_of(7, "new")) == 0
    row = json.loads(path.read_text())
    for changed in ({"judges": 5}, {"judges": [5]}, {"n": None}, {"n": "x"}, {"share": 5}, {"share": ["x"] * 3}):
        path.write_text(json.dumps(row | changed) + "\n")
        assert gated(votes_of(7, "new")) == 2
        assert "Got something else at line 1" in capsys.readouterr().err


def test_a_gate_is_bound_to_its_judges(gated, tmp_path, model_file, monkeypatch):
    """A model that was fitted again, on another version of a prompt, fails there with the reason."""
    from deep import VoteMatrix

    assert gated(votes_of(7, "new")) == 0
    names = (NEW, "numbers@11112222", "dates@33334444")
    table = pd.concat([votes_of(seed, f"set{seed}", names=names) for seed in range(3)])
    fit(VoteMatrix.from_frame(table), **(QUICK | {"sizes": [3]})).save(tmp_path / "again.json")
    votes_of(7, "new", names=names).drop(columns="label").to_csv("votes.csv", index=False)
    assert check([str(tmp_path / "again.json"), "--votes", "votes.csv", "--gate", "gate"]) == 1
    failed = [one for one in outcomes(suite(tmp_path)) if one[1] == "Failure"]
    assert [one[0] for one in failed] == [NEW]
    assert "is not a judge of this gate" in failed[0][2]
    assert check([str(tmp_path / "again.json"), "--votes", "votes.csv", "--gate", "other"]) == 0


def test_another_folder_stays_as_it_is(gated, tmp_path, capsys):
    """As does a history that cannot be read."""
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "mine.txt").write_text("mine")
    assert gated(votes_of(7, "new")) == 2
    assert "`gate` must be a new folder or an earlier gate's." in capsys.readouterr().err
    (tmp_path / "gate" / "history.jsonl").write_text("{}\n")
    assert gated(votes_of(7, "new")) == 2
    assert "Got something else at line 1" in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "gate").iterdir()) == ["history.jsonl", "mine.txt"]


def test_hostile_names_break_no_file(gated, tmp_path):
    """Neither JUnit nor Markdown."""
    odd = 'a"<b>|&]]>@11112222'
    table = votes_of(7, "n<e>w|", names=(OLD, odd, "dates@33334444"))
    assert gated(table) == 2
    assert suite(tmp_path).errors == 1
    rows = [line for line in (tmp_path / "gate" / "summary.md").read_text().splitlines() if line.startswith("| input")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)


def test_the_action_runs_the_gate(tmp_path):
    """The script of action.yml, with the variables that GitHub sets: it installs, tests, and keeps the exit status."""
    (script,) = re.findall(
        r"shell: bash\n(?: .*\n)*?        MODEL(?: .*\n|.*\n)*?      run: \|\n((?:        .*\n)+)", ACTION
    )
    folder = tmp_path / "temp" / "deep-gate" / "bin"
    folder.mkdir(parents=True)
    (folder / "deep").symlink_to(Path(sys.executable).parent / "deep")
    claims = str(ROOT / "examples" / "claims.csv")
    for words in (
        ["votes", claims, "--lexical", "numbers", "negation", "novel-run", "--out", "votes.parquet"],
        ["fit", "votes.parquet", "--out", "model.json"],
    ):
        subprocess.run([sys.executable, "-m", "deep", *words], cwd=tmp_path, check=True, capture_output=True)
    variables = {
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "MODEL": "model.json",
        "VOTES": "votes.parquet",
        "LABELS": "",
        "FOLDER": "gate",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    run = ["bash", "-e", "-o", "pipefail", "-c", textwrap.dedent(script)]
    done = subprocess.run(run, cwd=tmp_path, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output").read_text(encoding="utf-8") == "junit=gate/junit.xml\n"
    assert "passed" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    done = subprocess.run(run, cwd=tmp_path, env={**os.environ, **variables, "MODEL": "none.json"}, capture_output=True)
    assert done.returncode == 2
