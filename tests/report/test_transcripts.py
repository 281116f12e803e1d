"""The prompts and replies of judges in a report: read in the ledger, the texts of an item named, repairs at the end."""

import json
import re

import pytest

from deep.llm import History
from deep.report import write_report
from tests.deep_commands import report
from tests.deep_commands import votes as ask
from tests.fault_server import FaultServer
from tests.llm.calls import KEY
from tests.llm.crash import PROMPTS, write_examples


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Return a table of votes of two prompts; some replies hold no verdict, and are repaired."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    examples, out = write_examples(tmp_path / "news.csv", 12), tmp_path / "votes.parquet"
    with FaultServer(faults={"no_verdict": 0.4}) as server:
        words = ["--prompt", *PROMPTS[:2], "--llm", "tiny", "--base-url", server.url, "--backoff", "0.02"]
        assert ask([str(examples), *words, "--out", str(out)]) in (0, 1)
    return out


def items_of(page):
    """Return the items that a page holds."""
    return json.loads(re.search(r'id="items-data">(.*?)</script>', page, re.DOTALL)[1])


def test_an_item_shows_what_its_judges_were_asked_and_replied(asked, tmp_path):
    """Each judge's prompt with the texts by name, then its reply and its repair; none without texts or a ledger."""
    ledger = asked.with_suffix(".ledger.sqlite")
    assert report([str(asked), "--ledger", str(ledger), "--out", str(tmp_path / "with.html")]) == 0
    data = items_of((tmp_path / "with.html").read_text(encoding="utf-8"))
    keys = [(data["datasets"][at], item) for at, item in zip(data["dataset"], data["id"], strict=True)]
    with History(str(ledger)) as history:
        held = history.transcripts(keys)
    assert len(keys) == len(held) == 12
    message = set()
    for i, key in enumerate(keys):
        source, claim = data["sources"][data["source"][i]], data["claim"][i]
        for judge, voter in enumerate(data["voters"]):
            turns = data["said"][str(i)][str(judge)]["transcript"]
            assert [role for role, _ in turns] == [turn.role for turn in held[key][voter]]
            assert [text.replace("[the source]", source) for _, text in turns] == [
                turn.text for turn in held[key][voter]
            ]
            assert "[the source]" in turns[1][1]
            assert claim in turns[1][1]  # too short to stand there by name: its words may be the prompt's own
            assert not any(source in text for role, text in turns if role != "assistant")
            message.add(tuple(role for role, _ in turns))
    once = ("system", "user", "assistant")
    assert message == {once, once + once}  # without a repair, and with one
    for more in ({}, {"ledger": str(ledger), "texts": False}):
        write_report([str(asked)], tmp_path / "without.html", **more)
        assert '"transcript"' not in (tmp_path / "without.html").read_text(encoding="utf-8")


def test_a_function_has_no_transcript(asked, tmp_path, monkeypatch):
    """It is asked nothing in words; its calls stand in the same ledger as those of prompts."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "always_yes.py").write_text("def yes(source, claim):\n    return 1\n", encoding="utf-8")
    out = tmp_path / "function.parquet"
    assert ask([str(tmp_path / "news.csv"), "--judge", "always_yes:yes", "--out", str(out)]) == 0
    assert (
        report([str(out), "--ledger", str(out.with_suffix(".ledger.sqlite")), "--out", str(tmp_path / "r.html")]) == 0
    )
    assert '"transcript"' not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_ledger_that_is_none_is_one_line(asked, tmp_path, capsys):
    """A file that is missing, or of another kind."""
    for name in (tmp_path / "none.sqlite", asked):
        assert report([str(asked), "--ledger", str(name), "--out", str(tmp_path / "r.html")]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: `ledger` ")
