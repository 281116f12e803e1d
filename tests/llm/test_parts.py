"""The small parts: limits, prices, budgets, quirks, retries, the tally."""

import asyncio
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep.exceptions import InputError
from deep.llm import (
    Budget,
    CallError,
    ConcurrencyLimit,
    ModelGate,
    PriceBook,
    Quirk,
    RetryPolicy,
    Tally,
    Throttle,
    json_text,
    output_limit,
    worst_case,
)
from deep.llm._spending import BudgetReachedError
from deep.llm.schema import RequestRow
from deep.records import Judgment
from tests.llm.calls import question

OPENAI = "https://api.openai.com/v1"


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", "", "10001", "²"])
def test_a_limit_is_auto_or_a_number(text):
    """Anything else is refused with its name."""
    with pytest.raises(InputError, match=r"`concurrency` must be auto or a whole number from 1 to 10000. Got"):
        ConcurrencyLimit.parse(text)


def test_a_cancelled_waiter_passes_its_turn_on():
    """A turn that was given to a task that is gone is not lost."""

    async def scenario():
        limit = ConcurrencyLimit(1, 1, 1)
        order = []

        async def work(name):
            async with limit.place("m"):
                order.append(name)
                await asyncio.sleep(0.01)

        first, second, third = (asyncio.create_task(work(name)) for name in "abc")
        await asyncio.sleep(0.005)
        second.cancel()
        await asyncio.gather(first, second, third, return_exceptions=True)
        async with limit.place("m"):
            order.append("d")
        return order

    assert asyncio.run(asyncio.wait_for(scenario(), 300)) == ["a", "c", "d"]


def test_a_turn_given_and_cancelled_at_once_is_passed_on():
    """The worst moment: the waiter is woken and cancelled in the same turn of the loop."""

    async def scenario():
        limit = ConcurrencyLimit(1, 1, 1)
        done = []

        async def work(name):
            async with limit.place("m"):
                done.append(name)

        held = limit.place("m")
        await held.__aenter__()
        waiting = [asyncio.create_task(work(name)) for name in "ab"]
        await asyncio.sleep(0)
        await held.__aexit__(None, None, None)
        waiting[0].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return done

    assert asyncio.run(asyncio.wait_for(scenario(), 300)) == ["b"]


def test_a_throttle_has_no_burst():
    """Ten a second are ten a second from the first."""

    async def scenario():
        throttle, start = Throttle(600), time.monotonic()
        for _ in range(5):
            await throttle.wait()
        return time.monotonic() - start

    assert asyncio.run(scenario()) >= 0.4


def test_an_amount_above_the_allowance_is_let_through():
    """A prompt larger than the tokens of a minute waits for its share, and is not refused for ever."""

    async def scenario():
        throttle = Throttle(60_000)
        start = time.monotonic()
        await throttle.wait(400)
        await throttle.wait(1)
        return time.monotonic() - start

    assert asyncio.run(asyncio.wait_for(scenario(), 300)) >= 0.4


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_a_throttle_needs_a_number(value):
    """Zero a minute would never end."""
    with pytest.raises(InputError, match="`per_minute` must be above 0"):
        Throttle(value)


def test_prices_come_from_the_published_list():
    """gpt-4o-mini at OpenAI: 0.15 a million in, half of that from the cache, 0.60 out."""
    dollars = PriceBook(OPENAI).cost(["gpt-4o-mini"], {"input": 10_000, "cached": 4_000, "output": 1_000})
    assert dollars == pytest.approx(6_000 * 0.15e-6 + 4_000 * 0.075e-6 + 1_000 * 0.6e-6)


def test_a_famous_name_at_a_gateway_has_no_price():
    """The price belongs to the endpoint, not to the name."""
    assert PriceBook("https://gateway.example/v1").cost(["gpt-4o-mini"], {"input": 1, "output": 1}) is None


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "127.8.9.1", "[::1]:80", "LOCALHOST:11434", "a.localhost"])
def test_a_server_on_this_machine_costs_nothing_unless_a_price_is_given(host):
    """Whatever it says of tokens, and without any limit of its answers; a price is a price there too."""
    free = PriceBook(f"http://{host}/v1", {"other": {"input": 1, "output": 1}})
    assert free.cost(["gpt-4o", "m"], {}) == free.cost(["m"], {"input": 5, "output": 5}, batch=True) == 0.0
    assert worst_case(free, {"model": "m"}, "text") == 0.0
    priced = PriceBook(f"http://{host}/v1", {"m": {"input": 10**6, "output": 0}})
    assert priced.cost(["m-2026", "m"], {"input": 5, "output": 5}) == 5.0
    assert priced.cost(["m-2026", "m"], {}) is None
    assert worst_case(priced, {"model": "m"}, "text") is None


@pytest.mark.parametrize("host", ["10.0.0.1", "0.0.0.0", "localhost.example", "127.0.0.1.example", "192.168.1.7"])
def test_a_server_elsewhere_has_an_unknown_price(host):
    """Though it may be one's own: nobody here knows who pays for it."""
    assert PriceBook(f"http://{host}/v1").cost(["m"], {"input": 1, "output": 1}) is None


def test_a_provider_on_this_machine_is_free_beside_one_that_is_not():
    """Each LLM at its own address."""
    prices = PriceBook(OPENAI, urls={"llama": "http://localhost:11434/v1"})
    assert prices.cost(["llama:8b", "llama"], {"input": 1, "output": 1}) == 0.0
    assert prices.cost(["strange"], {"input": 1, "output": 1}) is None


def test_the_model_that_answered_is_priced_first():
    """Then the one that was asked."""
    prices = PriceBook("http://h/v1", {"a": {"input": 1, "output": 1}, "b": {"input": 2, "output": 2}})
    usage = {"input": 10**6, "output": 0}
    assert prices.cost(["b", "a"], usage) == 2
    assert prices.cost(["unheard-of", "a"], usage) == 1


@pytest.mark.parametrize("tokens", [{}, {"input": 5}, {"output": 5}])
def test_no_usage_no_price(tokens):
    """What was not reported is not guessed."""
    assert PriceBook("http://h/v1", {"a": {"input": 1, "output": 1}}).cost(["a"], tokens) is None


def test_a_batch_costs_what_is_published_or_the_full_price():
    """Half, where the list has a batch price."""
    usage = {"input": 10**6, "output": 0}
    book = PriceBook("https://api.anthropic.com/v1")
    models = [m for m in ("claude-sonnet-4-5", "claude-sonnet-4-0") if book.cost([m], usage) is not None]
    assert models
    assert book.cost(models, usage, batch=True) <= book.cost(models, usage)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a = 1", "must hold, for each model, a table"),
        ("[a]\ninput = 1", "must hold, for each model, a table"),
        ("[a]\ninput = 1\noutput = 1\nextra = 1", "must hold, for each model, a table"),
        ("[a]\ninput = -1\noutput = 1", "must be numbers >= 0. Got -1 for 'a'.input"),
        ("[a]\ninput = true\noutput = 1", "must be numbers >= 0"),
        ("[a]\ninput = nan\noutput = 1", "must be numbers >= 0"),
        ("not toml", "must be a readable TOML file"),
    ],
)
def test_a_price_file_is_checked(tmp_path, text, complaint):
    """A typing error in a price must not become a wrong bill."""
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint.replace(".", r"\.")):
        PriceBook.from_file("http://h/v1", path)


def test_a_price_file_is_read(tmp_path):
    """One table a model, dollars per million."""
    path = tmp_path / "prices.toml"
    path.write_text('["org/model-7b"]\ninput = 0.2\noutput = 0.4\n')
    assert PriceBook.from_file("http://h/v1", path).cost(["org/model-7b"], {"input": 10**6, "output": 10**6}) == 0.6


@given(st.text(max_size=200))
def test_the_worst_case_bounds_any_text(text):
    """A token is at least a byte, so bytes bound tokens whatever the language."""
    prices = PriceBook("http://h/v1", {"m": {"input": 1.0, "output": 1.0}})
    worst = worst_case(prices, {"model": "m", "max_tokens": 10}, json_text(text))
    assert worst * 1e6 >= len(text) + 10 - 1e-6


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        ({}, None),
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 7, "max_tokens": 5}, 7),
        ({"max_tokens": True}, None),
    ],
)
def test_the_output_limit_is_found(body, limit):
    """Both names count; a request without a limit has none."""
    assert output_limit(body) == limit


def test_a_budget_waits_for_what_is_in_flight():
    """A request that does not fit now may fit once another has cost less than its worst."""

    async def scenario():
        budget = Budget(1.0)
        await budget.admit(0.7)
        waiting = asyncio.create_task(budget.admit(0.7))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(0.7, 0.1)
        await waiting
        budget.settle(0.7, 0.7)
        with pytest.raises(BudgetReachedError):
            await budget.admit(0.7)

    asyncio.run(asyncio.wait_for(scenario(), 300))


@pytest.mark.parametrize("limit", [-0.01, float("nan"), float("inf")])
def test_a_budget_is_an_amount(limit):
    """Negative and endless budgets are typing errors."""
    with pytest.raises(InputError, match="`budget` must be 0 or more dollars"):
        Budget(limit)


def refusal(message, *, status=400, parameter=None):
    """Return how an endpoint says that it cannot do something."""
    return CallError("rejected", message, status=status, parameter=parameter)


BODY = {
    "model": "m",
    "messages": [],
    "temperature": 0.0,
    "max_tokens": 5,
    "logprobs": True,
    "top_logprobs": 5,
    "response_format": {"type": "json_schema"},
}


@pytest.mark.parametrize(
    ("error", "parameters"),
    [
        (refusal("Unsupported value", parameter="temperature"), {"temperature"}),
        (refusal("'temperature' does not support 0.0 with this model."), {"temperature"}),
        (refusal("You are not allowed to request logprobs from this model", status=403), {"logprobs", "top_logprobs"}),
        (refusal("Unknown name: top_logprobs", status=422), {"logprobs", "top_logprobs"}),
        (refusal("bad", parameter="response_format.json_schema"), {"response_format"}),
        (refusal("Unsupported parameter: use max_completion_tokens", parameter="max_tokens"), {"max_tokens"}),
        (refusal("maximum context length is 10, temperature is high here"), set()),
        (refusal("This is not supported"), set()),
        (refusal("invalid", parameter="messages"), set()),
        (refusal("temperature is not supported", status=500), set()),
        (refusal("seed is not supported"), set()),
    ],
)
def test_only_what_the_endpoint_names_is_dropped(error, parameters):
    """A refusal for another reason teaches nothing."""
    quirks = ModelGate()
    assert {quirk.parameter for quirk in quirks.learn("e", BODY, error)} == parameters
    assert quirks.learn("e", BODY, error) == []
    assert not parameters & quirks.apply("e", BODY).keys()


def test_quirks_belong_to_an_endpoint_and_a_model():
    """Another model, or the same name elsewhere, is sent everything."""
    quirks = ModelGate([Quirk("e", "m", "temperature", "dropped")])
    assert "temperature" not in quirks.apply("e", BODY)
    assert quirks.apply("f", BODY) is BODY
    other = {**BODY, "model": "n"}
    assert quirks.apply("e", other) is other


def test_an_ignored_field_is_still_sent():
    """It may take effect one day, and the key stays the same."""
    quirks = ModelGate()
    assert quirks.ignored("e", "m", "logprobs")[0].action == "ignored"
    assert quirks.ignored("e", "m", "logprobs") == []
    assert quirks.apply("e", BODY) is BODY


@pytest.mark.parametrize(
    ("kind", "once", "retried"),
    [
        ("rate_limited", False, True),
        ("rate_limited", True, True),
        ("server_error", True, True),
        ("unreachable", True, True),
        ("timeout", False, True),
        ("timeout", True, False),
        ("dropped", True, False),
        ("broken", True, False),
        ("rejected", False, False),
        ("refused", False, False),
        ("fatal", False, False),
    ],
)
def test_what_is_tried_again(kind, once, retried):
    """With `at_most_once` nothing is that may have been answered."""
    assert RetryPolicy(at_most_once=once).retries(CallError(kind, "x")) is retried


@given(st.floats(0, 1e6), st.floats(0, 100))
def test_a_retry_after_is_a_lower_bound_up_to_the_cap(asked, jitter):
    """Jitter is only ever added."""
    wait = RetryPolicy(jitter=jitter, retry_after_cap=600).wait(1, asked)
    assert min(asked, 600) <= wait <= min(asked, 600) + jitter


@given(st.integers(1, 10**6), st.floats(0, 1e3), st.floats(0, 100))
def test_a_wait_doubles_up_to_the_most(attempt, initial, jitter):
    """However many attempts there are, and however long the first wait, the most of it holds."""
    wait = RetryPolicy(wait_initial=initial, wait_max=60, jitter=jitter).wait(attempt)
    assert min(initial * 2.0 ** min(attempt - 1, 30), 60) <= wait <= 60


@pytest.mark.parametrize(
    ("kind", "attempt", "state"),
    [
        ("dropped", 1, "queued"),
        ("dropped", 3, "queued"),
        ("dropped", 4, "failed"),
        ("rejected", 1, "failed"),
        ("refused", 1, "done"),
    ],
)
def test_what_becomes_of_a_request(kind, attempt, state):
    """It waits for another attempt as long as one is left that may mend it; a content filter has answered it."""
    assert RetryPolicy(attempts=4).state_after(CallError(kind, "x"), attempt) == state


def test_at_most_once_leaves_a_lost_answer_unknown():
    """It may have been paid for, so that it is neither asked again nor called a failure."""
    policy = RetryPolicy(at_most_once=True)
    assert policy.state_after(CallError("timeout", "x"), 1) == "unknown"
    assert policy.state_after(CallError("broken", "x"), 1) == "failed"
    assert policy.state_after(CallError("server_error", "x"), 1) == "queued"


def test_the_tally_counts_by_voter():
    """Done, votes, reasons, failures, cost, and how long it will take."""
    tally = Tally(10)
    assert tally.seconds_left is None
    tally.answer("v", Judgment(1), 0.5)
    tally.answer("v", Judgment(-1, reason="abstained"), None)
    tally.answer("v", Judgment(-1, reason="truncated"), 0.25)
    tally.fail("v")
    tally.find("v", RequestRow(state="unknown"))
    assert dict(tally.by_voter["v"]) == {"done": 5, "votes": 1, "abstained": 1, "truncated": 1, "failed": 2}
    assert (tally.cost, tally.unpriced, tally.answered, tally.failed, tally.found) == (0.75, 1, 3, 1, 1)
    assert tally.failure_rate("v") == 3 / 5
    assert tally.seconds_left == pytest.approx(5 / tally.rate, rel=0.2)
    tally.answer("j#step", None, 0.0)
    tally.find("j#step", RequestRow(state="done", vote=None))
    tally.find("j#step", RequestRow(state="done", vote=-1, reason="refused"))
    tally.judge("j", Judgment(1))
    assert dict(tally.by_voter["j#step"]) == {"done": 3, "answers": 2, "refused": 1}
    assert dict(tally.by_voter["j"]) == {"done": 1, "votes": 1}


def test_the_key_is_of_everything_that_was_asked():
    """Model, parameters, endpoint, prompt and sample make another request; the order of fields does not."""
    base = question(1)
    others = [
        question(2),
        question(1, model="other"),
        question(1, temperature=0.0),
        question(1, endpoint="elsewhere"),
        question(1, sample=1),
        question(1, max_tokens=51),
    ]
    assert len({base.key, *(other.key for other in others)}) == 7
    turned = question(1)
    object.__setattr__(turned, "body", dict(reversed(list(base.body.items()))))
    assert turned.key == base.key
    assert question(1, dataset="other", group="g", voter="v").key == base.key


def test_plain_names_load_neither_the_client_nor_the_database():
    """Requests, limits, prices and counts are looked up without openai, SQLAlchemy and an HTTP client."""
    light = (
        "Attempt Budget CallError CircuitBreaker ConcurrencyLimit ModelGate PriceBook Reply Request RetryPolicy Tally"
    )
    code = f"import sys, deep.llm; [getattr(deep.llm, name) for name in '{light}'.split()]; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"openai", "sqlalchemy", "httpx2", "pandas"} & set(loaded)
