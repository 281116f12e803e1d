"""Replies that are cut off at their length limit: asked again once with four times the limit, and never paid twice."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from deep.llm import History, RetryPolicy, with_longer_limit
from tests.fault_server import FaultServer
from tests.llm.calls import FAST, PRICES, answers, question, questions, rows, run, states

LIMIT = 50


def limit_of(body):
    """Return the output limit of a request as it was sent."""
    return body.get("max_tokens") or body.get("max_completion_tokens")


def cutting(below=LIMIT + 1, items=range(1000)):
    """Return pieces of a reply that is cut off where its limit is below another."""
    from tests.attack.odd_replies import completion, http

    def raw(body):
        item = int(body["messages"][-1]["content"].split(">")[1].split()[0])
        if item in items and limit_of(body) < below:
            return [http(completion("First, the source says that", "length"))]
        return None

    return raw


def test_a_cut_reply_is_asked_again_with_four_times_the_limit(tmp_path):
    """Both are paid and in the ledger; the vote is that of the second; a later run asks nothing."""
    with FaultServer(raw=cutting(items={0, 2})) as server:
        server.keep_bodies = True
        ran = run(server.url, tmp_path / "l", questions(4))
        assert sorted(map(limit_of, server.bodies)) == [LIMIT, LIMIT, LIMIT, LIMIT, 4 * LIMIT, 4 * LIMIT]
        run(server.url, tmp_path / "l", questions(4))
        assert server.count == 6
    with FaultServer() as server:
        run(server.url, tmp_path / "whole", questions(4))
    assert answers(tmp_path / "l") == answers(tmp_path / "whole")
    assert (ran.tally.longer, ran.tally.saved, ran.tally.answered, ran.tally.attempts) == (2, 2, 4, 6)
    paid = rows(tmp_path / "l", "SELECT sum(cost), count(*) FROM attempts")[0]
    assert paid == (pytest.approx(ran.tally.cost), 6)
    with History(str(tmp_path / "l")) as history:
        result = history.answers([question(0).key])[question(0).key]
        assert result.reply.finish_reason == "stop"
        mine = rows(tmp_path / "l", "SELECT sum(cost) FROM attempts WHERE key = ?", question(0).key)[0][0]
        assert result.reply.cost == pytest.approx(mine)
    sent = rows(tmp_path / "l", "SELECT effective_body FROM requests WHERE key = ?", question(0).key)
    assert '"max_tokens":200' in sent[0][0]


def test_where_the_second_is_cut_too_it_is_truncated(tmp_path):
    """It is asked no third time; named by its class, once more with the longer limit."""
    with FaultServer(raw=cutting(below=10**6, items={1})) as server:
        server.keep_bodies = True
        ran = run(server.url, tmp_path / "l", questions(2))
        assert answers(tmp_path / "l")[question(1).key] == (-1, "truncated")
        assert (ran.tally.longer, ran.tally.saved, ran.tally.by_voter["p@0a/tiny"]["truncated"]) == (1, 0, 1)
        run(server.url, tmp_path / "l", questions(2), retry_failed=["truncated"])
        assert [limit_of(body) for body in server.bodies if "1 cats" in str(body)] == [50, 200, 200]
    assert answers(tmp_path / "l")[question(1).key] == (-1, "truncated")


def test_a_request_without_a_limit_is_asked_once(tmp_path):
    """There is nothing to raise."""
    from tests.attack.odd_replies import completion, http

    with FaultServer(raw=lambda _: [http(completion("First", "length"))]) as server:
        run(server.url, tmp_path / "l", questions(1, max_tokens=None))
        assert server.count == 1
    assert list(answers(tmp_path / "l").values()) == [(-1, "truncated")]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "max_tokens is too large: 200", "param": "max_tokens", "code": "invalid_value"}),
        (400, {"message": "maximum context length is 100 tokens", "code": "context_length_exceeded"}),
        (400, {"message": "blocked", "code": "content_filter"}),
        (503, {"message": "too much"}),
    ],
)
def test_where_the_second_fails_the_first_stands(status, error, tmp_path):
    """It is truncated, not failed; no field is taken to be refused; what was paid is kept and not bought again."""
    with FaultServer(raw=cutting(), accept=lambda body: (status, error) if limit_of(body) > LIMIT else None) as server:
        ran = run(server.url, tmp_path / "l", questions(3), retry=RetryPolicy(2, 0.01, 0.02, 0.01))
        n = server.count
        again = run(server.url, tmp_path / "l", questions(3), retry=FAST)
        assert server.count == n
    assert set(answers(tmp_path / "l").values()) == {(-1, "truncated")}
    assert (ran.tally.longer, ran.tally.saved, ran.tally.failed, again.tally.found) == (3, 0, 0, 3)
    assert rows(tmp_path / "l", "SELECT * FROM quirks") == []
    with History(str(tmp_path / "l")) as history:
        replies = [answer.reply for answer in history.answers([question(i).key for i in range(3)]).values()]
        assert [reply.finish_reason for reply in replies] == ["length"] * 3


def test_the_budget_holds_and_more_of_it_goes_on(tmp_path):
    """The second is asked only where its worst case fits; then the first stands, and a larger budget asks it."""
    first = len(str(question(0).body)) * 2e-6 + LIMIT * 10e-6
    with FaultServer(raw=cutting()) as server:
        stopped = run(server.url, tmp_path / "l", questions(1), budget=first)
        assert (stopped.stopped, server.count, states(tmp_path / "l")) == ("budget", 1, {"queued": 1})
        with History(str(tmp_path / "l")) as history:
            assert history.answers([question(0).key])[question(0).key].reply.finish_reason == "length"
        run(server.url, tmp_path / "l", questions(1), budget=10.0)
        assert server.count == 2
    assert states(tmp_path / "l") == {"done": 1}
    assert PRICES["tiny"]["output"] == 10.0


def test_where_the_second_is_lost_with_its_runs_the_first_stands(tmp_path):
    """Twice lost it is asked no more, and is truncated as the reply that came; without that reply it has failed."""
    path = str(tmp_path / "l")
    with FaultServer(raw=cutting(items={0})) as server:
        first = len(str(question(0).body)) * 2e-6 + LIMIT * 10e-6
        run(server.url, path, questions(1), budget=first)
        assert rows(path, "SELECT state, vote, reason FROM requests") == [("queued", -1, "truncated")]
        with closing(sqlite3.connect(path)) as ledger, ledger:
            ledger.execute("UPDATE requests SET state = 'unknown', failure = 'unknown', attempts = 3")
            names = (
                "state, owner, endpoint, prompt, prompt_hash, model, sample, requested_body, attempts, failure, queued"
            )
            ledger.execute(f"INSERT INTO requests (key, {names}) SELECT 'other', {names} FROM requests")
            lost = (
                "INSERT INTO attempts (key, number, run, started, outcome) SELECT key, ?, 1, 0, 'unknown' FROM requests"
            )
            ledger.executemany(lost, [(2,), (3,)])
        ran = run(server.url, path, questions(1), budget=10.0)
        assert server.count == 1
    assert ran.tally.by_voter["p@0a/tiny"]["truncated"] == 1
    assert sorted(rows(path, "SELECT key = 'other', state, reason, failure FROM requests")) == [
        (0, "done", "truncated", None),
        (1, "failed", None, "unknown"),
    ]


def test_in_a_batch_the_next_round_asks_it(tmp_path):
    """With four times the limit; in the last round it stays as it is."""
    with FaultServer(faults={"truncated": 0.3}) as server:
        ran = run(server.url, tmp_path / "l", questions(30), batch=True)
        assert len(server.batches) == 2
    cut = rows(tmp_path / "l", "SELECT count(*) FROM attempts WHERE finish_reason = 'length' AND number = 1")[0][0]
    assert 0 < cut == ran.tally.longer
    assert states(tmp_path / "l") == {"done": 30}
    assert rows(tmp_path / "l", "SELECT max(number) FROM attempts") == [(2,)]


def test_where_a_batch_refuses_the_longer_limit_the_first_stands(tmp_path):
    """Nothing is learned from that of the name of the limit, and nothing is asked a third time."""
    refused = 400, {"message": "max_tokens is too large: 200", "param": "max_tokens", "code": "invalid_value"}
    with FaultServer(
        faults={"truncated": 0.3}, accept=lambda body: refused if limit_of(body) > LIMIT else None
    ) as server:
        ran = run(server.url, tmp_path / "l", questions(30), batch=True)
        assert server.count == 30 + ran.tally.longer
    assert rows(tmp_path / "l", "SELECT * FROM quirks") == []
    assert states(tmp_path / "l") == {"done": 30}
    assert list(answers(tmp_path / "l").values()).count((-1, "truncated")) == ran.tally.longer > 0


KILLED = """
import sys
sys.path.insert(0, {root!r})
from tests.llm.calls import questions, run
run({url!r}, {ledger!r}, questions(6), workers=2, timeout=300)
"""


@pytest.mark.parametrize("held", ["between", "in flight"])
def test_killed_between_the_two_nothing_is_paid_twice(held, tmp_path):
    """What was answered is not asked again, and the rest goes on with the longer limit."""
    from tests.attack.odd_replies import completion, http

    stuck = {"on": True}

    def raw(body):
        if limit_of(body) == LIMIT:
            return [http(completion("First", "length"))]
        return [60.0] if stuck["on"] else None

    with FaultServer(raw=raw) as server:
        server.keep_bodies = True
        root = str(Path(__file__).parents[2])
        code = KILLED.format(root=root, url=server.url, ledger=str(tmp_path / "l"))
        process = subprocess.Popen([sys.executable, "-c", code])
        wanted = 4 if held == "in flight" else 2
        deadline = time.monotonic() + 300
        while server.count < wanted and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(300)
        stuck["on"] = False
        before = rows(tmp_path / "l", "SELECT key FROM attempts WHERE outcome = 'answered'")
        n = server.count
        run(server.url, tmp_path / "l", questions(6))
        later = server.bodies[n:]
    assert states(tmp_path / "l") == {"done": 6}
    assert {vote for vote, _ in answers(tmp_path / "l").values()} <= {0, 1}
    asked_short = {body["messages"][0]["content"] for body in later if limit_of(body) == LIMIT}
    answered = {question(i).key: question(i).body["messages"][0]["content"] for i in range(6)}
    assert asked_short.isdisjoint({answered[key] for (key,) in before})


def test_the_longer_request():
    """Whichever name the limit has, and none where there is none."""
    assert with_longer_limit({"model": "m", "max_completion_tokens": 3}) == {"model": "m", "max_completion_tokens": 12}
    assert with_longer_limit({"model": "m"}) == {"model": "m"}
