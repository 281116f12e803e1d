"""Odd replies: none makes a false vote, none costs the run its other answers, and memory stays bounded."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deep.llm import RetryPolicy
from deep.prompt_pool import why_unusable
from deep.records import Judgment
from tests.attack.odd_replies import ODD, READABLE
from tests.fault_server import FaultServer
from tests.llm.calls import questions, read, rows, run

KINDS = {**ODD, **READABLE}
SLOW = {"slow drip", "headers that never end", "nothing at all", "the answer, then silence", "thousands of 1xx"}
"""They end by the timeout."""


def parse(request, reply):
    """Read the verdict of a reply that is whole."""
    reason = why_unusable(reply)
    return read(request, reply) if reason is None else Judgment(-1, reason=reason)


EVERY = 3
"""The second of three requests gets an odd reply."""


def served(kinds):
    """Return a server's odd replies: of the items 1, 4, 7 and so on one kind each, and none of the others."""
    names = list(kinds)

    def raw(body):
        item = int(re.search(r"<source>(\d+)", body["messages"][-1]["content"])[1])
        return kinds[names[item // EVERY]]() if item % EVERY == 1 and item < EVERY * len(names) else None

    return raw


def check(votes, kinds):
    """Hold votes by item: a readable reply says 1, an odd one nothing, and every honest one 0."""
    odd = {name: votes.pop(EVERY * i + 1) for i, name in enumerate(kinds)}
    assert {name: vote for name, vote in odd.items() if vote not in ((1,) if name in READABLE else (-1, None))} == {}
    assert set(votes.values()) == {0}
    assert len(votes) >= (EVERY - 1) * len(kinds)


QUICK = [name for name in KINDS if name not in SLOW]
GROUPS = [sorted(SLOW), *(QUICK[start : start + 8] for start in range(0, len(QUICK), 8))]


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_an_odd_reply_costs_only_itself(names, tmp_path):
    """It is no vote, or the vote that it says; the next request is answered, and a later run asks nothing."""
    kinds = {name: KINDS[name] for name in names}
    # Each timeout makes the client more patient, so five that wait in turn would take a minute.
    workers, timeout = (len(SLOW), 2.0) if SLOW.issuperset(names) else (1, 300.0)
    limits = {"retry": RetryPolicy(attempts=1), "parse": parse, "workers": workers, "timeout": timeout}
    with FaultServer(raw=served(kinds), reply=lambda _: "VERDICT: NOT SUPPORTED") as server:
        run(server.url, tmp_path / "l", questions(EVERY * len(kinds)), **limits)
        n = len(rows(tmp_path / "l", "SELECT 1 FROM attempts"))
        run(server.url, tmp_path / "l", questions(EVERY * len(kinds)), **limits)
        assert len(rows(tmp_path / "l", "SELECT 1 FROM attempts")) == n
        assert server.count == n
    votes = rows(tmp_path / "l", "SELECT item, vote FROM items JOIN requests USING (key)")
    check({int(item): vote for item, vote in votes}, kinds)


WHOLE = """
import json, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.attack.test_odd_replies import whole_run
votes = whole_run({url!r}, Path({folder!r}))
print(json.dumps(votes), Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""
"""Its own peak: Linux counts that of the process which started it, this one, in its ``ru_maxrss``."""


def whole_run(url, folder):
    """Ask for all kinds with two honest requests behind each, and return votes by item."""
    limits = {"retry": RetryPolicy(attempts=1), "parse": parse, "timeout": 60.0, "workers": 16}
    run(url, folder / "l", questions(EVERY * len(KINDS)), **limits)
    return dict(rows(folder / "l", "SELECT item, vote FROM items JOIN requests USING (key)"))


def test_all_of_them_in_one_run(tmp_path):
    """Sixteen at a time, in less than 300 MB: not one false vote, and every honest answer is there."""
    kinds = {name: KINDS[name] for name in QUICK}
    with FaultServer(raw=served(kinds), reply=lambda _: "VERDICT: NOT SUPPORTED") as server:
        code = WHOLE.format(root=str(Path(__file__).parents[2]), url=server.url, folder=str(tmp_path))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    message, _, peak = done.stdout.rpartition(" ")
    check({int(item): vote for item, vote in json.loads(message).items()}, kinds)
    assert int(peak) * 1024 < 300e6


def test_there_are_more_than_sixty_kinds():
    """Most of them hold no answer that can be trusted."""
    assert len(ODD) > 60
    assert len(READABLE) > 30
