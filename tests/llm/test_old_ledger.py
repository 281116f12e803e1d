"""A ledger that earlier code has made, by the statements it made it with: it opens, and nothing is bought again."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from deep.llm import History
from tests.fault_server import FaultServer
from tests.llm.calls import answers, question, questions, rows, run, states

MADE = (Path(__file__).parents[1] / "attack" / "fbc87a9" / "ledger.sql").read_text(encoding="utf-8")
OLD_TABLES = "".join(re.findall(r"^CREATE .*?;\n", MADE, re.MULTILINE | re.DOTALL))
OLD_RUNS = """
INSERT INTO deep_meta VALUES (1);
INSERT INTO runs VALUES (1, 1.0, 2.0, '{}'), (2, 3.0, NULL, '{}');
INSERT INTO quirks VALUES ('server', 'tiny', 'temperature', 'dropped', 'Unsupported value', 1.0);
"""

OLD_ROWS = """
INSERT INTO items VALUES ('server', 'd', :item, 'p@0a/tiny', 0, :key);
INSERT INTO requests (key, state, owner, endpoint, prompt, prompt_hash, model, sample, requested_body, attempts,
    failure, message, vote, reason, queued, finished)
    VALUES (:key, :state, :owner, 'server', 'p', '0a', 'tiny', 0, '{}', 1, :failure, :message, :vote, :reason, 1, 2);
INSERT INTO attempts (key, number, run, started, outcome, seconds, reply, input_tokens, output_tokens, cost, worst_case)
    VALUES (:key, 1, :owner, 1.0, :outcome, 0.5, :reply, 9, 3, 0.25, 0.5);
"""

REPLY = '{"choices": [{"message": {"content": "VERDICT: SUPPORTED"}, "finish_reason": "stop"}], "model": "tiny-2025"}'


def old_ledger(path, *, temperature):
    """Make a ledger of five requests: a vote, a refusal, a failure, and a dead run's one in flight and one queued."""
    result = [
        {"state": "done", "vote": 1, "outcome": "answered", "reply": REPLY},
        {"state": "done", "vote": -1, "reason": "refused", "outcome": "refused", "message": "filtered"},
        {"state": "failed", "failure": "too_long", "outcome": "too_long"},
        {"state": "sent", "owner": 2},
        {"state": "queued", "owner": 2, "outcome": "rate_limited"},
    ]
    empty = dict.fromkeys(("failure", "message", "vote", "reason", "outcome", "reply")) | {"owner": 1}
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD_TABLES + OLD_RUNS)
        for item, row in enumerate(result):
            key = question(item, temperature=temperature).key
            values = {**empty, "item": str(item), "key": key, **row}
            for statement in OLD_ROWS.strip().split(";\n"):
                connection.execute(statement.rstrip(";"), values)
        connection.commit()
    return path


def test_an_old_ledger_is_reused_and_nothing_is_bought_again(tmp_path):
    """Only what a dead run left open is asked, what was learned is applied, and all dollars count."""
    path = old_ledger(tmp_path / "l", temperature=0.0)
    with FaultServer(unsupported={"temperature": "unsupported_value"}) as server:
        ran = run(server.url, path, questions(5, temperature=0.0))
        assert server.count == 2
        assert (ran.tally.found, ran.tally.answered, ran.unknown) == (3, 2, 1)
        run(server.url, path, questions(6, temperature=0.0))
        assert server.count == 3
    assert states(path) == {"done": 5, "failed": 1}
    assert answers(path)[question(0, temperature=0.0).key] == (1, None)
    numbers = [question(item, temperature=0.0).key for item in (3, 4)]
    for key in numbers:
        assert rows(path, "SELECT number FROM attempts WHERE key = ? ORDER BY number", key) == [(1,), (2,)]
    assert rows(path, "SELECT count(*) FROM attempts WHERE outcome = 'unknown'") == [(1,)]


def test_an_old_ledger_is_read(tmp_path):
    """States, replies, dollars and quirks come out as they were written."""
    path = old_ledger(tmp_path / "l", temperature=0.0)
    keys = [question(item, temperature=0.0).key for item in range(5)]
    with History(str(path)) as history:
        result = history.answers(keys)
        assert [quirk.parameter for quirk in history.quirks()] == ["temperature"]
        assert history.cost() == (0.25, 0)
    assert [result[key].state for key in keys] == ["done", "done", "failed", "sent", "queued"]
    first = result[keys[0]].reply
    assert (first.text, first.model, first.cost, first.seconds) == ("VERDICT: SUPPORTED", "tiny-2025", 0.25, 0.5)
    assert [result[key].failure for key in keys] == [None, "refused", "too_long", None, None]
    assert result[keys[1]].reply.finish_reason == "content_filter"


def test_a_new_ledger_has_the_old_tables(tmp_path):
    """Column by column, in the same order: an older deep could go on with it."""
    with closing(sqlite3.connect(tmp_path / "old")) as connection:
        connection.executescript(OLD_TABLES)
    with FaultServer() as server:
        run(server.url, tmp_path / "new", questions(1))
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
    old, new = ({name: sql.split() for name, sql in rows(tmp_path / path, query)} for path in ("old", "new"))
    assert {name: " ".join(words) for name, words in new.items()} == {n: " ".join(words) for n, words in old.items()}
