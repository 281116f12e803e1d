"""An endpoint that is not there: told after a few attempts, whoever asks, and nothing of it counts."""

import asyncio
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import deep
from deep.asking import AskOptions, ask
from deep.asking import _run as asking_run
from deep.asking._ask import InMemoryExamples
from deep.asking._plan import Plan, planned_voters
from deep.asking._registry import find_judges
from deep.integrations.serve import LiveAsker
from deep.llm import CallError, CircuitBreaker, EndpointError, _client, _errors
from tests.fault_server import FaultServer
from tests.scripted_llm import ScriptedLLM

EXAMPLES = [deep.Example("It rained.", f"It rained {n} times.", str(n), dataset="d") for n in range(30)]
UNREACHABLE = CallError("unreachable", "no", reached=False)


PATIENCE = 300.0
"""Seconds that a test waits, on however busy a machine, for what takes a moment."""


def wait_for(is_so):
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def options(tmp_path, monkeypatch):
    """Return how to ask a port at which nobody listens."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    return AskOptions(ledger=str(tmp_path / "l.sqlite"), base_url=url, backoff=0.01)


def attempts(options):
    """Return the attempts in a ledger by their outcome."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(options.ledger)) as ledger:
        return ledger.execute("SELECT outcome, count(*) FROM attempts GROUP BY 1").fetchall()


def test_three_attempts_are_all(options):
    """The other requests are never begun, and the next run asks them all."""
    with pytest.raises(EndpointError, match=r"`base_url` must answer. Got no connection to http://127.0.0.1:\d+/v1: "):
        ask(EXAMPLES, "deep-numbers", llm="tiny", options=options)
    assert attempts(options) == [("unreachable", 3)]


def test_a_batch_is_given_up_as_soon(options):
    """Where no call about a batch has found a connection."""
    batch = AskOptions(ledger=options.ledger, base_url=options.base_url, backoff=0.01, batch=True)
    with pytest.raises(EndpointError, match=r"`base_url` must answer. Got no connection to http://"):
        ask(EXAMPLES, "deep-numbers", llm="tiny", options=batch)


def test_a_server_asks_again_with_the_next_pair(options):
    """Each pair is told of it; once the endpoint is there, the same asker goes on."""
    plan = Plan(
        examples=InMemoryExamples(()),
        columns=planned_voters(find_judges(["deep-numbers"]), ["tiny"]),
        endpoint=options.public_url,
    )

    async def asked():
        asker = LiveAsker(plan, options)
        for example in EXAMPLES[:2]:
            with pytest.raises(EndpointError, match="`base_url` must answer"):
                await asker.ask(example)
        port = int(options.base_url.split(":")[2].partition("/")[0])
        with ScriptedLLM(lambda asked: "VERDICT: SUPPORTED", port=port) as server:
            assert await asker.ask(EXAMPLES[0])
            assert server.count == 1
        await asker.close()

    asyncio.run(asked())


def test_after_an_answer_a_lost_connection_may_come_back():
    """An endpoint that has answered is there; what has not is given up after some seconds, however few attempts."""
    breaker = CircuitBreaker()
    assert [breaker.is_hopeless("m", UNREACHABLE) for _ in range(3)] == [False, False, True]
    breaker = CircuitBreaker()
    breaker.answered("m")
    assert not any(breaker.is_hopeless(model, UNREACHABLE) for model in "mmmn")
    breaker = CircuitBreaker()
    breaker._began -= 6
    assert breaker.is_hopeless("m", UNREACHABLE)


def test_an_address_that_swallows_all_ends_the_run(options, monkeypatch):
    """Such as a firewall's. One wait for a connection is enough to know: eight seconds, and ten at the most in all."""
    assert _errors.UNREACHED_SECONDS < _client.CONNECT_SECONDS < 10
    monkeypatch.setattr(_client, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(_errors, "UNREACHED_SECONDS", 0.4)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        waiting = [socket.socket() for _ in range(3)]  # nobody accepts them, and the next one is not answered
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        there = AskOptions(ledger=options.ledger, base_url=url, backoff=0.01)
        started = time.monotonic()
        with pytest.raises(EndpointError, match=r"`base_url` must answer. Got no connection to http://127.0.0.1:"):
            ask(EXAMPLES, "deep-numbers", llm="tiny", options=there)
        assert time.monotonic() - started < there.timeout  # of answers, which is 240 times as long
        for one in waiting:
            one.close()
    assert attempts(options) == [("unreachable", 1)]


def test_a_wrong_path_ends_the_run_at_once_and_is_named(options):
    """As where /v1 was forgotten."""
    with FaultServer() as server:
        wrong = AskOptions(ledger=options.ledger, base_url=server.url.removesuffix("/v1"), backoff=0.01)
        with pytest.raises(EndpointError, match=rf"refuses every request: .* \({wrong.base_url}\)"):
            ask(EXAMPLES, "deep-numbers", llm="tiny", options=wrong)
    assert attempts(options) == [("no_model", 1)]


@pytest.fixture
def asking(options, capsys):
    """Return a function that begins to ask in another thread, and one that waits until that has said something."""
    told = []

    def has_said(text):
        told.append(capsys.readouterr().err)
        return text in "".join(told)

    with ThreadPoolExecutor(1) as pool:

        def begin(url):
            there = AskOptions(ledger=options.ledger, base_url=url, backoff=0.1, concurrency="2")
            return pool.submit(ask, EXAMPLES, "deep-numbers", llm="tiny", options=there)

        yield begin, lambda text: wait_for(lambda: has_said(text))


def test_a_server_that_dies_in_mid_run_is_told_and_waited_for(asking):
    """After four attempts, while it is away; once it is back, the run goes on by itself."""
    begin, wait_until_said = asking
    with FaultServer(latency=0.02) as first:
        asked = begin(first.url)
        wait_for(lambda: first.count >= 5)
    wait_until_said("attempts got no answer. The last error: unreachable")
    with FaultServer(port=first.port) as second:
        assert len(asked.result(PATIENCE).item_ids) == len(EXAMPLES)
        assert second.count


def test_a_server_that_falls_silent_in_mid_run_is_told(asking, monkeypatch):
    """While the requests still wait, long before their time is over; by default after 20 seconds, within 30."""
    assert asking_run.FIRST_SILENCE + asking_run.SECONDS_BETWEEN_LOOKS < 30
    monkeypatch.setattr(asking_run, "FIRST_SILENCE", 1.0)
    monkeypatch.setattr(asking_run, "QUICK_SECONDS", 0.1)
    begin, wait_until_said = asking
    with FaultServer(latency=0.02) as server:
        asked = begin(server.url)
        wait_for(lambda: server.count >= 5)
        server.held = True
        wait_until_said("No answer for ")
        assert not asked.done()
        server.held = False
        assert len(asked.result(PATIENCE).item_ids) == len(EXAMPLES)
