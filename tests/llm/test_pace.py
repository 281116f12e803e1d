"""The pace of a run is its server's: how many at once, how long each may take, and how soon again after a refusal.

All times are ratios to what the server itself needs; no test knows how fast this machine is.
"""

import threading
import time

import pytest

from deep.llm import ConcurrencyLimit
from tests.fault_server import FaultServer
from tests.llm.calls import outcomes, questions, run


def measured(folder, server, n, timeout=300.0, limit=None):
    """Ask so many questions; return the limit in the end, and the seconds from the first request to the last."""
    limit = limit or ConcurrencyLimit.parse("auto")
    ran = run(server.url, folder / "l", questions(n), workers=limit.maximum, concurrency=limit, timeout=timeout)
    assert ran.tally.answered == n
    return limit, server.log[-1][0] - server.log[0][0]


@pytest.mark.parametrize("slots", [1, 2])
def test_a_server_that_queues_is_asked_no_faster_than_it_answers(tmp_path, slots):
    """It is kept at work, and of a time-out shorter than its queue nothing is asked twice."""
    with FaultServer(latency=0.1, slots=slots) as server:
        limit, seconds = measured(tmp_path, server, 60, timeout=0.5)
    assert limit.current <= 4 * slots
    assert server.count <= 66
    assert seconds >= 0.1 * 50 / slots


def test_a_clock_stands_still_behind_ones_own_requests(tmp_path):
    """Twenty in flight at a server that works on one at a time: the last waits twice its time-out, and is answered."""
    with FaultServer(latency=0.1, slots=1) as server:
        measured(tmp_path, server, 21, timeout=1.0, limit=ConcurrencyLimit(20, 20, 20))
        assert server.count == 21


def test_a_time_out_shorter_than_any_answer_is_lengthened(tmp_path):
    """The next attempt has longer; once that is known, no other request is given up."""
    with FaultServer(latency=0.3, slots=1) as server:
        measured(tmp_path, server, 12, timeout=0.2)
    assert outcomes(tmp_path / "l")["timeout"] <= 2


def test_many_at_once_are_found_where_that_is_faster(tmp_path):
    """The level rises for as long as more are answered a second."""
    with FaultServer(latency=0.3) as server:
        limit, _ = measured(tmp_path, server, 200)
    assert limit.current >= 16
    assert server.most_in_flight >= 16


def test_a_server_that_slows_down_and_recovers_is_asked_little_twice(tmp_path):
    """Tenfold, in mid-run: all is answered, and few attempts are lost."""
    with FaultServer(latency=0.05, slots=1) as server:

        def slow_down():
            while server.count < 30:
                time.sleep(0.01)
            server.latency = 0.5
            while server.count < 36:
                time.sleep(0.01)
            server.latency = 0.05

        thread = threading.Thread(target=slow_down)
        thread.start()
        measured(tmp_path, server, 100, timeout=0.3)
        thread.join(300)
    assert server.count <= 110


def test_a_limit_of_the_rate_is_kept_to(tmp_path):
    """A refusal for the rate holds back what else is for that model, so that few are refused."""
    with FaultServer() as server:
        allowed = {"from": 0.0, "n": 0}

        def accept(_):
            now = time.monotonic()
            if now - allowed["from"] >= 1.0:
                allowed.update({"from": now, "n": 0})
            allowed["n"] += 1
            return (429, {"message": "slow down", "code": "rate_limit_exceeded"}) if allowed["n"] > 20 else None

        server.accept = accept
        _, seconds = measured(tmp_path, server, 100)
    assert seconds >= 3.0
    assert server.count <= 200
