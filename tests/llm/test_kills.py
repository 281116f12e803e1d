"""Kill -9 at many moments of one run with both staged judges, clocks that jump, and a machine that is stopped."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest
import sqlalchemy

from tests.fault_server import FaultServer, digest_of, honest_reply
from tests.guests.postgresql.test_shared import _terminate, database, ledger, query, server_url  # noqa: F401  fixtures
from tests.llm.calls import KEY, rows
from tests.llm.crash import kill_and_resume, write_examples
from tests.prompt_pool.tiered_script import REPLY
from tests.prompt_pool.tiered_script import answer as tiered_answer

pytestmark = pytest.mark.slow

KILLS = 25
WORKERS = 16
PANEL = ["--prompt", "yes-no", "deep-key-points", "deep-strict-steps", "--judge", "stepwise", "tiered"]
DAY = 86_400


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request, tmp_path):
    """Return a ledger of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "votes.ledger.sqlite")
    return request.getfixturevalue("ledger")


def fetch_from(target):
    """Return a function that queries a ledger, which may not have its tables yet."""

    def fetch(text):
        try:
            if "://" in target:
                return [tuple(row) for row in query(target, text)]
            return rows(target, text) if Path(target).exists() else []
        except (sqlalchemy.exc.ProgrammingError, sqlite3.OperationalError):
            return []  # killed before it had made its tables

    return fetch


def staged_reply(body):
    """Answer as `honest_reply` does, and the steps of both staged judges so that each goes on to its last."""
    text = body["messages"][-1]["content"]
    between = {name: re.search(rf"<{name}-\w+>\n(.*?)\n</{name}", text, re.DOTALL) for name in ("response", "source")}
    if '{"claims"' in text:
        claim = between["response"][1]
        return json.dumps({"claims": [{"segment": claim, "claim": claim}]})
    if '"evidence": [' in text:
        return json.dumps({"reasoning": "", "evidence": [between["source"][1]]})
    if '"verdict": "PASS"' in text:
        return json.dumps({"reasoning": "", "verdict": "PASS" if digest_of(body) > "8" else "FAIL"})
    if REPLY.search(text):
        return tiered_answer(text, defaultdict(lambda: "reliable"))
    return honest_reply(body)


def command(examples, target, url, *more):
    """Return the words of a run."""
    where = ["--llm", "tiny", "--base-url", url, "--ledger", target, "--concurrency", str(WORKERS)]
    return [str(examples), *PANEL, *where, "--out", str(examples.with_name("votes.parquet")), *more]


def paid_twice(server, fetch):
    """Return how many requests the server has had beyond one for each that the ledger holds, and of those untold.

    Several samples of one question have the same body, so that they can only be counted together.
    """
    bodies = {key: digest_of(json.loads(body)) for key, body in fetch("SELECT key, effective_body FROM requests")}
    lost = dict(fetch("SELECT key, count(*) FROM attempts WHERE outcome = 'unknown' GROUP BY key"))
    asked, doubted = Counter(bodies.values()), Counter()
    for key, n in lost.items():
        doubted[bodies[key]] += n
    again = {body: server.requests_of(body) - n for body, n in asked.items()}
    untold = {body: n - doubted[body] for body, n in again.items()}
    return sum(n for n in again.values() if n > 0), sum(n for n in untold.values() if n > 0)


@pytest.mark.parametrize("more", [[], ["--at-most-once", "--max-failure-rate", "1"]], ids=["again", "at-most-once"])
def test_killed_at_many_moments(target, tmp_path, monkeypatch, more):
    """Nothing acknowledged is lost or bought again; what was in flight is told, and bought twice at the most."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    # Without an answer a staged judge asks nothing further, so that a run with --at-most-once is over sooner.
    examples, fetch = write_examples(tmp_path / "news.csv", 140 if more else 70), fetch_from(target)
    with FaultServer(reply=staged_reply, latency=0.05) as server:
        toll = kill_and_resume(command(examples, target, server.url, *more), tmp_path, server, fetch, kills=KILLS)
        again, untold = paid_twice(server, fetch)
    done, unknown = (fetch(f"SELECT count(*) FROM requests WHERE state = '{s}'")[0][0] for s in ("done", "unknown"))
    most = fetch("SELECT max(attempts) FROM requests")[0][0]
    twice = fetch("SELECT count(*) FROM requests WHERE state = 'failed' AND failure = 'unknown'")[0][0]
    counts = f"{done} done, {again} again, {untold} untold, at most {most}, {twice} twice"
    sys.stderr.write(f"{toll}, {server.count} requests, {counts}\n")
    assert fetch("SELECT count(*) FROM attempts WHERE outcome = 'answered'") == [(done,)]
    assert (toll.lost, untold) == (0, 0)
    assert 0 < toll.unknown <= min(toll.told, KILLS * WORKERS)
    assert (unknown, again, most, twice) == (toll.unknown, 0, 1, 0) if more else (unknown, most) == (0, 2)


def preload(tmp_path):
    """Return the environment in which a clock can be set by a file; skip where there is no faketime."""
    result = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not result:
        pytest.skip("faketime is not installed (Debian's package faketime)")
    clock = tmp_path / "clock"
    clock.write_text("+0")
    fake = {"LD_PRELOAD": str(result[-1]), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_CACHE_DURATION": "1"}
    quiet = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    return clock, {**os.environ, **fake, **quiet, "OPENAI_API_KEY": KEY}


def start(words, environment, folder):
    """Start `deep ask`, its output in a file."""
    code = "from deep.cli import main; raise SystemExit(main(command='votes'))"
    with (folder / "said").open("a") as message:
        return subprocess.Popen([sys.executable, "-c", code, *words], env=environment, stdout=message, stderr=message)


def wait_for(server, n):
    """Wait until the server has had `n` requests."""
    deadline = time.monotonic() + 600
    while server.count < n:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("days", [1, 400])
def test_the_clock_jumps(target, tmp_path, days):
    """Days forth and twice as many back in mid-run: every request is asked once, and every vote is there."""
    clock, environment = preload(tmp_path)
    examples, fetch = write_examples(tmp_path / "news.csv", 20), fetch_from(target)
    with FaultServer(reply=staged_reply, latency=0.2, faults={"slow_down": 0.02, "server_error": 0.02}) as server:
        process = start(command(examples, target, server.url, "--backoff", "0.1"), environment, tmp_path)
        for n, jump in ((80, days * DAY), (250, -days * DAY), (420, 0)):
            wait_for(server, n)
            clock.write_text(f"{jump:+d}")  # read once a second
        assert process.wait(1200) == 0, (tmp_path / "said").read_text()
        answered = fetch("SELECT count(*) FROM requests WHERE state = 'done'")[0][0]
        faults = sum(fault != "ok" for _, _, fault in server.log)
        assert server.count == answered + faults
    times = [row[0] for row in fetch("SELECT started FROM attempts")]
    assert max(times) - min(times) > 1.5 * days * DAY, "the clock did not jump"
    assert fetch("SELECT count(*) FROM attempts WHERE outcome = 'unknown'") == [(0,)]


@pytest.mark.parametrize("cut", [False, True], ids=["lease kept", "lease lost"])
def test_a_machine_is_stopped_and_goes_on(ledger, tmp_path, cut):  # noqa: F811
    """A stopped machine keeps its lease while its connection lives; where that is cut, its doubts are told."""
    environment = {**os.environ, "OPENAI_API_KEY": KEY}
    examples, fetch = write_examples(tmp_path / "news.csv", 12), fetch_from(ledger)
    words = {name: tmp_path / name for name in ("one", "two")}
    with FaultServer(reply=staged_reply, latency=0.1) as server:
        for folder in words.values():
            folder.mkdir()
            shutil.copy(examples, folder)
        commands = [command(folder / "news.csv", ledger, server.url) for folder in words.values()]
        stopped = start(commands[0], environment, words["one"])
        wait_for(server, 40)
        stopped.send_signal(signal.SIGSTOP)
        in_flight = fetch("SELECT count(*) FROM requests WHERE state = 'sent'")[0][0]
        if cut:
            _terminate(ledger)
        other = start(commands[1], environment, words["two"])
        if cut:
            assert other.wait(1200) == 0, (words["two"] / "said").read_text()
        else:
            while fetch("SELECT count(*) FROM runs") != [(2,)]:
                time.sleep(0.05)
            time.sleep(3)  # several looks of the other machine at what the stopped one holds
            assert other.poll() is None
        told, count = fetch("SELECT count(*) FROM attempts WHERE outcome = 'unknown'")[0][0], server.count
        assert (told > 0) == cut
        stopped.send_signal(signal.SIGCONT)
        assert stopped.wait(1200) == (2 if cut else 0), (words["one"] / "said").read_text()
        assert other.wait(1200) == 0, (words["two"] / "said").read_text()
        told = max(told, fetch("SELECT count(*) FROM attempts WHERE outcome = 'unknown'")[0][0])
        assert told <= in_flight
        if cut:  # it sends what it had announced, and nothing more; what the other has done stays done
            assert count <= server.count <= fetch("SELECT count(*) FROM attempts")[0][0]
            assert fetch("SELECT DISTINCT state FROM requests") == [("done",)]
        else:
            assert paid_twice(server, fetch)[1] == 0
    assert ("were in flight when an earlier run ended" in (words["two"] / "said").read_text()) == cut
