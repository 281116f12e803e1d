"""Judges of one's own on the whole way: asked, fitted, saved, and given again where texts are scored and served."""

import importlib
import json
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pandas as pd
import pytest

import deep
from deep._util import entry_points
from deep.asking import AskOptions, FunctionJudge, TextScorer, load_judge
from deep.asking._registry import Finder
from deep.cli import main
from deep.exceptions import InputError
from deep.integrations.serve import CheckOptions, create_app, serving
from tests.guests.serve.serving_case import ask as post
from tests.guests.serve.serving_case import command
from tests.scripted_llm import ScriptedLLM

ROOT = Path(__file__).resolve().parents[2]

JUDGES = """
import asyncio

import deep

CALLED = []


@deep.judge(version="1", cost=0.001)
async def overlap(source, claim):
    CALLED.append(claim)
    await asyncio.sleep(0.001)
    words = set(claim.lower().split())
    return len(words & set(source.lower().split())) / len(words)


def same_number(source, claim):
    if claim.startswith("Item 7 "):
        raise ValueError("cannot read sevens")
    return claim.split()[3] in source, "by its number"
"""

WHOLE_WAY = """
import sys

import deep
import pandas as pd
from my_judges import overlap, same_number

claims = pd.read_csv("claims.csv")
claims["dataset"] = "mine"
claims["label"] = claims["label"].where(claims.index < 30)
judges = [overlap, same_number, "deep-numbers"]
votes = deep.ask(claims, judges, llm="tiny", base_url=sys.argv[1], ledger="own.sqlite", endpoint="any")
model = deep.fit(votes)
model.save("model.json")
scores = model.score_frame(votes)
scores.to_csv("scores.csv", index=False)
"""


def claims(n=70):
    """Return items that differ in a number, a tenth of which one judge cannot read."""
    rows = []
    for item in range(n):
        message = item % 13 + (item % 3 == 0)
        rows.append(
            (f"Item {item % 10} has {item % 13} parts.", f"Item {item % 10} has {message} parts.", int(item % 3 != 0))
        )
    return pd.DataFrame(rows, columns=["source", "claim", "label"])


def answer(asked):
    """Answer every prompt alike."""
    return "The figures agree.\nVERDICT: SUPPORTED"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return a folder with judges of one's own and a model that was fitted on them, in a process of its own."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "my_judges.py").write_text(JUDGES)
    (folder / "whole_way.py").write_text(WHOLE_WAY)
    claims().to_csv(folder / "claims.csv", index=False)
    with ScriptedLLM(answer) as server:
        words = [sys.executable, "whole_way.py", server.url]
        done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("cannot read sevens") == 1
    return folder


def test_a_frame_in_and_a_calibrated_frame_out(fitted):
    """Thirty labels, two functions and an LLM: P, its interval and a decision of each claim; a failure is no vote."""
    assert len(WHOLE_WAY.strip().splitlines()) <= 20
    scores, rows = pd.read_csv(fitted / "scores.csv"), claims()
    assert len(scores) == 70
    assert scores.p_consistent.between(scores.p_low, scores.p_high).all()
    assert (scores.decision == rows.label).mean() > 0.9


def environment():
    """Return that of a process that finds deep."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def own(fitted, monkeypatch):
    """Return the module of judges as a new process has it, with the folder as the current one."""
    monkeypatch.chdir(fitted)
    monkeypatch.syspath_prepend(str(fitted))
    monkeypatch.delitem(sys.modules, "my_judges", raising=False)
    return importlib.import_module("my_judges")


def finder(own):
    """Return the places of one's own judges."""
    return Finder(judges=[own.overlap, own.same_number])


def test_what_was_fitted_on_functions_scores_texts_when_they_are_given_again(fitted, own):
    """Nothing that was answered is asked again; what a function cannot read is judged by the others."""
    with ScriptedLLM(answer) as server:
        options = AskOptions(ledger="own.sqlite", base_url=server.url)
        scorer = TextScorer("model.json", options, finder=finder(own), endpoint="any")
        rows = claims()
        known = scorer.score_all(zip(rows.source[10:17], rows.claim[10:17], strict=True))
        assert (own.CALLED, server.count) == ([], 0)
        assert [one.columns["p_uniform"] > 0.5 for one in known] == [bool(label) for label in rows.label[10:17]]
        assert known[0].judgments[OVERLAP].cost == 0.001
        unread = scorer.score("Item 7 has 2 parts.", "Item 7 has 99 parts.")
    assert own.CALLED == ["Item 7 has 99 parts."]
    assert [judgment.reason for judgment in unread.judgments.values()] == [None, None, "failed"]


OVERLAP = "overlap@" + FunctionJudge(lambda source, claim: 1, name="overlap", version="1").version[:8]


def test_a_model_file_imports_no_code(fitted, monkeypatch):
    """The error says how to give the function."""
    monkeypatch.delitem(sys.modules, "my_judges", raising=False)
    monkeypatch.syspath_prepend(str(fitted))
    with pytest.raises(InputError, match=rf"Got the voter '{OVERLAP}'.* its function with --judge MODULE:FUNCTION"):
        TextScorer(fitted / "model.json")
    assert "my_judges" not in sys.modules


def test_another_version_is_refused_by_name(fitted, own):
    """It votes otherwise; allowed by name, it takes the other's place."""
    other = FunctionJudge(own.overlap, name="overlap", version="2")
    with pytest.raises(InputError, match=rf"Got '{OVERLAP}', and here it is 'overlap@\w+', of another version"):
        TextScorer("model.json", finder=Finder(judges=[other]))


def test_serve_gives_what_the_scorer_gives(fitted, own):
    """In a process of its own, by the command, and in this one; pairs of a request are asked side by side."""
    rows = claims()[3:9]
    pairs = [{"source": source, "claim": claim} for source, claim in zip(rows.source, rows.claim, strict=True)]
    words = ["--judge", "my_judges:overlap,my_judges:same_number", "--ledger", fitted / "own.sqlite"]
    words += ["--endpoint-name", "any", "--base-url"]
    with ScriptedLLM(answer) as server:
        options = AskOptions(ledger="own.sqlite", base_url=server.url)
        scored = TextScorer("model.json", options, finder=finder(own), endpoint="any").score_all(
            p.values() for p in pairs
        )
        app = create_app(deep.load("model.json"), CheckOptions(ask=options, finder=finder(own), endpoint="any"))
        with serving(app) as address:
            here = post(address, body=pairs)[1]["results"]
        with command(fitted / "model.json", *words, server.url, PYTHONPATH=f"{ROOT}:{fitted}") as (_, address):
            there = post(address, body=pairs)[1]["results"]
    p = [one.columns["p_consistent"] for one in scored]
    assert [each["p_consistent"] for each in here] == [each["p_consistent"] for each in there] == p
    assert [each["judges"][2]["reason"] for each in here] == [None] * 4 + ["failed", None]


def test_the_command_writes_votes_and_asks_nothing_twice(tmp_path, own, monkeypatch, capsys):
    """Failures are counted by voter; the second run asks them alone."""
    out = tmp_path / "votes.parquet"
    words = [
        "votes",
        "claims.csv",
        "--judge",
        "my_judges:overlap",
        "my_judges:same_number",
        "--out",
        str(out),
        "--json",
    ]
    assert main([*words, "--dry-run"]) == 0
    likely = json.loads(capsys.readouterr().out)
    assert [likely[name] for name in ("calls", "settled", "unpriced_calls")] == [140, 0, 70]
    assert likely["dollars"] == pytest.approx(0.07)
    assert not list(tmp_path.glob("votes*"))
    assert main(words) == 1
    message = json.loads(capsys.readouterr().out)
    assert (message["answered"], message["failed"], message["found"]) == (133, 7, 0)
    assert [voter["failed"] for voter in message["voters"]] == [0, 7]
    reasons = pd.read_parquet(message["outputs"]["reasons"])
    assert reasons.groupby(["voter", "reason"]).size().tolist() == [7]
    assert deep.read_votes([out]).votes.shape == (70, 2)
    assert main(words) == 1
    again = json.loads(capsys.readouterr().out)
    assert (again["answered"], again["failed"], again["found"], len(own.CALLED)) == (0, 7, 133, 70)
    assert main([*words, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["calls"] == 7


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("my_judges:nothing", "has no attribute 'nothing'"),
        ("no_such_module:f", "No module named 'no_such_module'"),
        ("my_judges:CALLED", r"must hold names, judges and functions. Got \[\]. It is 'my_judges:CALLED'"),
    ],
)
def test_what_cannot_be_imported_is_one_line(own, place, why):
    """With the place as it was given."""
    with pytest.raises(InputError, match=why):
        load_judge(place)


@pytest.mark.parametrize("name", ["overlap", "same_number"])
def test_a_package_brings_functions_by_entry_points(own, monkeypatch, name):
    """A decorated one as it is, and a plain one under the name of the entry point."""
    entry = EntryPoint(name, f"my_judges:{name}", entry_points.JUDGE_GROUP)
    monkeypatch.setattr(
        entry_points, "_installed_entries", lambda group: (entry,) if group == entry_points.JUDGE_GROUP else ()
    )
    monkeypatch.setattr(entry_points, "package_of", lambda entry: "own 1.0")
    assert load_judge(name).name == name
    assert deep.ask([deep.Example("Item 1 has 2 parts.", "Item 1 has 2 parts.", "a")], name).votes.tolist() == [[1]]


PAGE = (ROOT / "docs" / "integrations" / "own-judges.md").read_text(encoding="utf-8")


def test_the_first_example_of_the_page(tmp_path):
    """As it stands, and by the command that the page names."""
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    (tmp_path / "my_judges.py").write_text(code, encoding="utf-8")
    words = [sys.executable, "my_judges.py"]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "[1, 0, -1]\n"


@pytest.mark.slow
def test_the_pipeline_of_the_page(tmp_path):
    """A local model of transformers votes by its probability of entailment."""
    from tests.features.tiny_encoders import save_classifier, save_tokenizer

    save_classifier(tmp_path / "model")
    save_tokenizer(tmp_path / "model")
    (code,) = re.findall(r"```python\n((?:(?!```).)*def by_pipeline\(.*?)```", PAGE, re.DOTALL)
    asked = 'print(deep.ask([deep.Example("It rained.", "It rained.", "a")], by_pipeline).votes[0, 0] in (0, 1))\n'
    (tmp_path / "block.py").write_text(code + asked, encoding="utf-8")
    words, where = [sys.executable, "block.py"], environment() | {"MODEL": "model", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(words, cwd=tmp_path, env=where, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["True"], done.stderr
