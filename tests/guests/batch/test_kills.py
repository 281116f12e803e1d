"""Kill -9 at every step of a batch: nothing that the endpoint acknowledged is submitted twice, or it is told."""

import asyncio
import os
import random
import re
import signal
import sys
import time

import pytest
from aiohttp import web

from tests.fault_server import FaultServer
from tests.llm.calls import KEY, rows, states
from tests.llm.crash import Restarts, write_examples

N = 20
FAULTS = {"server_error": 0.2}  # so that there is a second batch, and more
MOMENTS = ("upload", "uploaded", "create", "created", "poll", "download", "downloaded", "list", "lost", "late")
"""Steps at the endpoint; before `lost` the batch is never made, after `late` it is made behind the next run's back."""


class Killer:
    """Kills the process at a step of its batch, some seconds after the endpoint has come to it."""

    def __init__(self, moment, number, delay):
        self.moment, self.number, self.delay = moment, number, delay
        self.steps = {"late": ["create"], "lost": ["create"], "list": ["create", "list"]}.get(moment, [moment])
        self.pid, self.kills, self.over = 0, 0, asyncio.Event()

    async def __call__(self, step):
        """Kill where it is time."""
        if self.steps[self.kills :][:1] != [step]:
            return
        self.number -= 1
        if self.number > 0:
            return
        self.kills += 1
        await asyncio.sleep(self.delay)
        os.kill(self.pid, signal.SIGKILL)
        if self.moment in ("list", "lost"):
            raise web.HTTPServiceUnavailable
        if self.moment == "late":
            await self.over.wait()


def told(folder):
    """Return how many requests the runs said may be paid twice."""
    return sum(int(n) for n in re.findall(r"(\d+) requests are in a batch that", (folder / "errors").read_text()))


def live_through(command, folder, moment, number, delay):
    """Kill a run at a moment, resume it to its end; return kills, requests submitted twice untold, and told ones."""
    folder.mkdir()
    before, ledger, killer = told(folder.parent), folder / "l", Killer(moment, number, delay)
    with FaultServer(faults=FAULTS, at_step=killer) as server:
        words = ["--base-url", server.url, "--ledger", str(ledger), "--out", str(folder / "votes.parquet")]
        status = -signal.SIGKILL
        while status == -signal.SIGKILL:
            killer.pid = command.start(*words)
            status = command.status()
        assert status == 0, (folder.parent / "errors").read_text()
        if moment == "late":
            n = sum(server.copies().values())
            server._loop.call_soon_threadsafe(killer.over.set)
            while sum(server.copies().values()) == n:
                time.sleep(0.01)
            command.start(*words)
            assert command.status() == 0
        copies = server.copies()
    known = dict(rows(ledger, "SELECT key, count(*) FROM attempts WHERE outcome <> 'unsent' GROUP BY key"))
    assert states(ledger) == {"done": N}
    assert rows(ledger, "SELECT count(*) FROM attempts WHERE outcome IS NULL") == [(0,)]
    message = told(folder.parent) - before
    assert rows(ledger, "SELECT count(*) FROM attempts WHERE outcome = 'unknown'") == [(message,)]
    return killer.kills, sum(max(n - known[key], 0) for key, n in copies.items()), message


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Return what starts the command; the endpoint, the ledger and the table are to be named."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    more = ["--prompt", "yes-no", "--llm", "tiny", "--batch", "--poll", "0.05", "--backoff", "0.05", "--no-repair"]
    restarts = Restarts([str(write_examples(tmp_path / "news.csv", N)), *more], tmp_path / "errors")
    yield restarts
    restarts.close()


@pytest.mark.parametrize("moment", ["upload", "created", "download", "list", "lost", "late"])
def test_killed_at_a_step_of_each_kind(tmp_path, command, moment):
    """Before the batch is made, while it is known, and while it is not; all ten steps below.

    Only a batch that the endpoint makes, or might make, behind its list may be paid twice.
    """
    kills, untold, message = live_through(command, tmp_path / moment, moment, 1, 0.0)
    assert (kills, untold) == (1 + (moment == "list"), 0)
    assert message == (N if moment in ("late", "list", "lost") else 0)
    assert moment != "late" or f"{N} requests of batch batch-" in (tmp_path / "errors").read_text()


@pytest.mark.slow
def test_killed_at_fifty_moments(tmp_path, command):
    """Of the first batch and of the second, at once and up to 60 ms later."""
    draw = random.Random(28)
    kills = untold = message = 0
    for n in range(50):
        moment, number = MOMENTS[n % len(MOMENTS)], 1 + n // len(MOMENTS) % 2
        delay = draw.choice([0, 0, 0.003, 0.01, 0.03, 0.06])
        result = live_through(command, tmp_path / str(n), moment, number, delay)
        kills, untold, message = kills + result[0], untold + result[1], message + result[2]
    sys.stderr.write(f"{kills} kills, {untold} requests submitted twice untold, {message} told\n")
    assert kills >= 50
    assert untold == 0
