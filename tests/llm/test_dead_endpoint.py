"""An endpoint that is not there: told after a few attempts, whoever asks, and nothing of it counts."""

import asyncio
import socket

import pytest

import deep
from deep.asking import AskOptions, ask
from deep.asking._ask import GivenExamples
from deep.asking._plan import Plan, planned_voters
from deep.asking._registry import find_judges
from deep.integrations.serve import LiveAsker
from deep.llm import CallError, CircuitBreaker, EndpointError
from tests.scripted_llm import ScriptedLLM

EXAMPLES = [deep.Example("It rained.", f"It rained {n} times.", str(n), dataset="d") for n in range(30)]
UNREACHABLE = CallError("unreachable", "no", reached=False)


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
        examples=GivenExamples(()),
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
