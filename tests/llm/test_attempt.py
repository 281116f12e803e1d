"""One attempt: what is announced, sent, counted and paid; without a ledger, a client or the network."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest

from deep.llm import Attempt, Budget, CallError, ConcurrencyLimit, Failed, PriceBook, Terms, Throttle
from deep.llm._spending import BudgetReachedError

BODY = {"model": "m", "max_tokens": 10}
TEXT = json.dumps(BODY)
PRICES = PriceBook("http://h/v1", {"m": {"input": 1000.0, "output": 1000.0}})
WORST = (len(TEXT) + 10) / 1000
ANSWER = json.dumps(
    {
        "model": "m-2026",
        "choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 8, "completion_tokens": 2},
    }
)


class Endpoint:
    """Stands in for a client: replies with `reply`, which may be an error, and notes what happens in which order."""

    def __init__(self, reply=ANSWER):
        self.reply = reply
        self.noted = []
        self.timeout = 300.0

    async def announce(self, worst):
        """Note the worst case."""
        self.noted.append(("announced", worst))

    async def send(self, content, limit):
        """Note the body and reply."""
        self.noted.append(("sent", content.decode()))
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def make(endpoint, terms):
    """Make one attempt."""
    return asyncio.run(Attempt("m", BODY, TEXT).make(terms, endpoint.announce, endpoint))


def test_an_attempt_is_announced_before_it_is_sent():
    """With the most that it can cost; the answer comes with its price, by the model asked where the other has none."""
    endpoint, terms = Endpoint(), Terms(PRICES, budget=Budget(1.0))
    reply = make(endpoint, terms)
    assert endpoint.noted == [("announced", pytest.approx(WORST)), ("sent", TEXT)]
    assert (reply.text, reply.model, reply.cost) == ("yes", "m-2026", pytest.approx(0.01))
    assert reply.seconds >= 0
    assert terms.budget.left == pytest.approx(1.0 - 0.01)


@pytest.mark.parametrize(
    ("reply", "kind", "may_be_billed"),
    [
        (CallError("timeout", "x"), "timeout", True),
        (CallError("dropped", "x"), "dropped", True),
        ("{", "broken", True),
        (CallError("rate_limited", "x"), "rate_limited", False),
        (CallError("server_error", "x"), "server_error", False),
        (CallError("unreachable", "x"), "unreachable", False),
        (CallError("rejected", "x"), "rejected", False),
    ],
)
def test_a_failure_is_returned_and_paid_at_its_worst_where_it_may_be_billed(reply, kind, may_be_billed):
    """An answer that was lost may have been made, and a refusal costs nothing."""
    terms = Terms(PRICES, budget=Budget(1.0))
    ended = make(Endpoint(reply), terms)
    assert isinstance(ended, Failed)
    assert ended.error.kind == kind
    assert terms.budget.left == pytest.approx(1.0 - WORST * may_be_billed)


def test_an_answer_without_usage_costs_its_worst():
    """What is not known is not taken to be free."""
    terms = Terms(PRICES, budget=Budget(1.0))
    reply = make(Endpoint('{"choices": [{"message": {"content": "yes"}}]}'), terms)
    assert reply.cost is None
    assert terms.budget.left == pytest.approx(1.0 - WORST)


def test_what_does_not_fit_the_budget_is_not_sent():
    """And nothing is announced."""
    endpoint = Endpoint()
    with pytest.raises(BudgetReachedError):
        make(endpoint, Terms(PRICES, budget=Budget(WORST / 2)))
    assert endpoint.noted == []


def test_a_bug_in_between_gives_the_reservation_back_as_spent():
    """Whatever happens after the announcement may have been sent; the concurrency limit is free again."""
    terms = Terms(PRICES, ConcurrencyLimit(1, 1, 1), budget=Budget(1.0))
    with pytest.raises(KeyError):
        make(Endpoint(KeyError("x")), terms)
    assert terms.budget.left == pytest.approx(1.0 - WORST)
    assert make(Endpoint(), terms).text == "yes"


@pytest.mark.parametrize("held_at", ["limit", "network"])
def test_a_cancelled_attempt_is_paid_for_only_where_it_was_sent(held_at):
    """One that waits for its turn costs nothing; one in flight may cost its worst."""
    terms = Terms(PRICES, ConcurrencyLimit(1, 1, 1), budget=Budget(1.0))

    class Silent(Endpoint):
        async def send(self, content, limit):
            await asyncio.sleep(60)

    async def scenario():
        async with AsyncExitStack() as stack:
            if held_at == "limit":
                await stack.enter_async_context(terms.concurrency.place("m"))
            endpoint = Silent()
            task = asyncio.create_task(Attempt("m", BODY, TEXT).make(terms, endpoint.announce, endpoint))
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(scenario())
    assert terms.budget.left == pytest.approx(1.0 - WORST * (held_at == "network"))


@pytest.mark.parametrize(("kind", "level"), [("server_error", 8), ("rate_limited", 4), ("timeout", 4)])
def test_a_rate_limit_and_a_time_out_halve_the_concurrency(kind, level):
    """Other failures leave it alone."""
    terms = Terms(PRICES, ConcurrencyLimit(8, 1, 100))
    make(Endpoint(CallError(kind, "x")), terms)
    assert terms.concurrency.current == level


def test_both_throttles_are_waited_for():
    """Tokens are estimated by the text and the output limit."""
    requests, tokens = Throttle(1000), Throttle(1_000_000)
    make(Endpoint(), Terms(PRICES, requests_per_minute=requests, tokens_per_minute=tokens))
    assert requests._free_at > 0
    assert tokens._free_at > 0
