"""The pace of a run is its server's: how many at once, how long each may take, and how soon again after a refusal.

All times are ratios to what the server itself needs; no test knows how fast this machine is.
``python -m tests.llm.test_pace`` prints the figures of docs/decisions/0038-the-pace-of-the-server.md.
"""

import asyncio
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from deep.llm import Client, ConcurrencyLimit, RetryPolicy
from tests.fault_server import FaultServer
from tests.llm.calls import outcomes, question, questions, run
from tests.llm.test_runner import _stop


def measured(folder, server, n, timeout=300.0, limit=None, **options):
    """Ask so many questions; return the limit in the end, and the seconds from the first request to the last."""
    limit = limit or ConcurrencyLimit.parse("auto")
    options |= {"workers": limit.maximum, "concurrency": limit, "timeout": timeout}
    ran = run(server.url, folder / "l", questions(n), **options)
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
    """Fifty in flight at a server that works on one at a time: the last waits ten time-outs, and is answered.

    That is longer than the most patience that slow answers alone bring (eight). An answer itself takes a fifth of it.
    """
    with FaultServer(latency=0.2, slots=1) as server:
        measured(tmp_path, server, 50, timeout=1.0, limit=ConcurrencyLimit(50, 50, 50))
        assert server.count <= 52


def test_a_clock_stands_still_while_this_process_is_busy():
    """It reads nothing for twice the time-out: what the server has answered meanwhile is not taken for its silence."""

    async def ask(client, limit):
        async with limit.place("tiny") as flight:
            with limit.clock(flight, client.timeout) as end:
                await client.send(b'{"model": "tiny", "messages": [{"role": "user", "content": "?"}]}', end)
            limit.answered(flight)

    async def ask_all(url):
        client, limit = Client(url, timeout=1.0), ConcurrencyLimit.parse("12")
        asyncio.get_running_loop().call_later(0.5, time.sleep, 2.0)
        await asyncio.gather(*(ask(client, limit) for _ in range(12)))
        await client.close()

    with FaultServer(latency=0.3, slots=1) as server:
        asyncio.run(ask_all(server.url))
    assert server.count == 12


async def answered(limit, allowed, seconds):
    """Hold a place until an answer is there after so many seconds, which is read in several turns of the loop."""
    async with limit.place("tiny") as flight:
        with limit.clock(flight, allowed) as end:
            async with end:
                await asyncio.sleep(seconds)
                for _ in range(9):
                    await asyncio.sleep(0)
        limit.answered(flight)


def test_a_process_that_is_busy_until_a_clock_runs_out_is_not_late():
    """The clock is looked at before and after, and not only at its end."""

    async def ask():
        asyncio.get_running_loop().call_later(0.05, time.sleep, 0.97)
        await answered(ConcurrencyLimit(), 1.0, 0.5)

    asyncio.run(ask())


def test_requests_sent_at_once_are_answered_in_any_order():
    """Each has a connection of its own, so that the last may be the first to arrive; none is given up meanwhile."""

    async def ask_all():
        limit = ConcurrencyLimit.parse("4")
        await asyncio.gather(*(answered(limit, 0.5, seconds) for seconds in (1.2, 0.9, 0.6, 0.3)))

    asyncio.run(ask_all())


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


def test_attempts_without_an_answer_are_told(tmp_path, capsys):
    """A server that breaks off in mid-run: a line after four of them."""
    with FaultServer(script=["ok", *["dropped"] * 8]) as server:
        measured(tmp_path, server, 12)
    assert "The last 4 attempts got no answer. The last error: dropped: " in capsys.readouterr().err


def test_an_interruption_says_what_it_waits_for(tmp_path, capsys):
    """At once, not when the last answer is there."""
    with FaultServer(latency=0.3) as server:
        run(server.url, tmp_path / "l", questions(9), started=lambda r: _stop(r, lambda: server.in_flight))
    assert "Waiting for 1 answer, up to 5 s each. Press Ctrl-C again to stop at once.\n" in capsys.readouterr().err


def show(line):
    """Print a figure as soon as it is there."""
    sys.stdout.write(line)
    sys.stdout.flush()


def bare_loop(server, n, workers):
    """Return the seconds of a loop that keeps nothing."""
    from openai import AsyncOpenAI

    async def loop():
        numbers = iter(range(n))
        async with AsyncOpenAI(api_key="none", base_url=server.url, max_retries=0, timeout=300) as client:

            async def work():
                for number in numbers:
                    await client.chat.completions.create(**question(number).body)

            await asyncio.gather(*(work() for _ in range(workers)))

    start = time.monotonic()
    asyncio.run(loop())
    return time.monotonic() - start


def print_pace(name, n, own, timeout=300.0, **options):
    """Print the seconds of so many requests beside those that the server itself needs."""
    with tempfile.TemporaryDirectory() as folder, FaultServer(**options) as server:
        start = time.monotonic()
        limit, _ = measured(Path(folder), server, n, timeout)
        ratio = (time.monotonic() - start) / own
        show(f"{name}: {ratio:.2f} of its time, {server.count / n:.3f} attempts, {limit.current} at once\n")


def print_limit(n, per_minute):
    """Print the seconds of requests to a server with a limit a minute, beside those that the limit itself takes."""
    with tempfile.TemporaryDirectory() as folder, FaultServer(latency=0.05) as server:
        window = {"from": 0.0, "n": 0}

        def accept(_):
            now = time.monotonic()
            if now - window["from"] >= 60.0:
                window.update({"from": now, "n": 0})
            window["n"] += 1
            is_over = window["n"] > per_minute
            return (429, {"message": "slow down", "code": "rate_limit_exceeded"}) if is_over else None

        server.accept = accept
        _, seconds = measured(Path(folder), server, n, retry=RetryPolicy())  # by default, as users have it
        ratio = seconds / (60.0 * ((n - 1) // per_minute))
        show(f"{per_minute} a minute, {n}: {ratio:.2f} of its time, {server.count / n:.3f} attempts\n")


def print_slow_down(n=300):
    """Print the seconds of a server that becomes ten times as slow for a third of its replies, beside its own."""
    with tempfile.TemporaryDirectory() as folder, FaultServer(latency=0.1, slots=2) as server:

        def slow_down():
            for latency, count in ((1.0, n // 3), (0.1, 2 * n // 3)):
                while server.count < count:
                    time.sleep(0.01)
                server.latency = latency

        thread = threading.Thread(target=slow_down)
        thread.start()
        _, seconds = measured(Path(folder), server, n, timeout=2.0)
        thread.join(300)
        own = (2 * 0.1 + 1.0) * n / 3 / 2
        show(f"ten times as slow for a third: {seconds / own:.2f}, {server.count / n:.3f} attempts\n")


def print_rate(n, skipped=10.0):
    """Print the answers a second of a server of 50 a second without the first seconds, beside those of a bare loop."""
    rates = []
    for ask_all in (lambda one, _: bare_loop(one, n, 10), lambda one, folder: measured(Path(folder), one, n)):
        with tempfile.TemporaryDirectory() as folder, FaultServer(latency=0.2, slots=10) as server:
            ask_all(server, folder)
            later = [at for at, *_ in server.log if at - server.log[0][0] > skipped]
            rates.append(len(later) / (later[-1] - later[0]))
    bare, own = rates
    show(f"50 a second, {n}: {own:.1f} beside {bare:.1f} of a bare loop, {own / bare:.2f}\n")


if __name__ == "__main__":
    print_limit(180, 60)
    print_slow_down()
    print_rate(5000)
    print_pace("one slot", 180, 180 * 0.1, latency=0.1, slots=1)
    print_pace("two slots", 180, 90 * 0.1, latency=0.1, slots=2)
    print_pace("one slot, time-out below an answer", 180, 180 * 0.1, timeout=0.08, latency=0.1, slots=1)
    print_pace("four slots, F2 of the report", 400, 100 * 0.2, timeout=2.5, latency=0.2, slots=4)
    with FaultServer(latency=0.2, slots=10) as one:
        seconds = bare_loop(one, 1000, 10)
    print_pace("50 a second, beside a bare loop of 10", 1000, seconds, latency=0.2, slots=10)
