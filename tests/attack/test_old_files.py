"""A ledger and a log of labels that deep wrote at commit fbc87a9: everything in them is there, and nothing is asked."""

import json
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from deep.integrations.labeling import LabelEvent, open_label_log, read_label_log
from deep.llm import History
from tests import deep_commands
from tests.fault_server import FaultServer
from tests.llm.calls import KEY, outcomes, rows, states

OLD = Path(__file__).parent / "fbc87a9"
MORE = {"plain": ["--concurrency", "1"], "samples": ["--samples", "2", "--temperature", "0.7"]}
STATES = {"done": 19, "queued": 5, "sent": 1}


@pytest.fixture
def old(tmp_path, monkeypatch):
    """Return a folder with the ledger, the examples and the prompt that it is of."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("news.csv", "asked.toml"):
        shutil.copy(OLD / name, tmp_path)
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
        connection.executescript((OLD / "ledger.sql").read_text(encoding="utf-8"))
    return tmp_path


def votes(folder, server, *more):
    """Run `deep ask` as it was run then."""
    where = [
        "--llm",
        "tiny",
        "--base-url",
        server.url,
        "--endpoint-name",
        "server",
        "--max-failure-rate",
        "1",
        "--json",
    ]
    files = ["--ledger", str(folder / "ledger.sqlite"), "--out", str(folder / "v.parquet")]
    words = [str(folder / "news.csv"), "--prompt", str(folder / "asked.toml"), *where, *files, *more]
    assert deep_commands.votes(words) == 0


@pytest.mark.parametrize("kind", MORE)
def test_no_answer_is_asked_for_again(old, kind):
    """Of single calls with a repair turn, and of a batch with several samples."""
    before = rows(old / "ledger.sqlite", "SELECT key, vote, reason FROM requests WHERE state = 'done' ORDER BY key")
    with FaultServer() as server:
        votes(old, server, *MORE[kind])
        assert server.count == 0
    after = rows(old / "ledger.sqlite", "SELECT key, vote, reason FROM requests WHERE state = 'done' ORDER BY key")
    assert before == after
    assert len(before) == STATES["done"]


def test_what_was_in_flight_is_asked_again_and_told(old):
    """The run that was killed goes on: one request in doubt, and what it had not asked."""
    assert states(old / "ledger.sqlite") == STATES
    with FaultServer() as server:
        votes(old, server, "--max-tokens", "77", "--temperature", "0.1", "--no-repair")
        assert server.count == 6
    assert states(old / "ledger.sqlite") == {"done": 25}
    assert outcomes(old / "ledger.sqlite")["unknown"] == 1


def test_every_answer_is_read(old):
    """With its text, its cost and who answered."""
    keys = [key for (key,) in rows(old / "ledger.sqlite", "SELECT key FROM requests")]
    with History(str(old / "ledger.sqlite")) as history:
        result = history.answers(keys)
        report = history.report()
    assert Counter(answer.state for answer in result.values()) == STATES
    replies = [answer.reply for answer in result.values() if answer.state == "done"]
    assert all(reply.text or reply.refusal for reply in replies)
    assert {reply.model for reply in replies if reply.text} == {"tiny-2026"}
    assert sum(row.asked for row in report) == rows(old / "ledger.sqlite", "SELECT count(*) FROM items")[0][0]


def test_the_log_of_labels_is_read_and_goes_on(tmp_path):
    """Labels, an undo, a skip, notes and times; and more can be written to it."""
    shutil.copy(OLD / "labels.jsonl", tmp_path)
    book, torn = read_label_log(tmp_path / "labels.jsonl")
    assert torn == ""
    assert book.majority() == {("news", "e1"): 0}  # Ann and Bob differ on e0
    kept = [json.loads(line) for line in (OLD / "labels.jsonl").read_text().splitlines()]
    assert [event["do"] for event in kept] == ["queue", "label", "label", "undo", "label", "skip", "label"]
    with open_label_log(tmp_path / "labels.jsonl") as log:
        log.add(LabelEvent("label", "news", "e0", "Cleo", 1))
    again, torn = read_label_log(tmp_path / "labels.jsonl")
    assert (again.majority(), torn) == ({("news", "e0"): 1, ("news", "e1"): 0}, "")
