"""The circuit breaker: what it counts, and when it opens; without a ledger, a client or the network."""

import pytest

from deep.llm import CallError, CircuitBreaker, EndpointError, Reply

REJECTED = CallError("rejected", "bad text", status=400)
BROKEN_SERVER = CallError("server_error", "boom", status=500)


def given_up(breaker, times, *, may_pass=True, at_once=1):
    """Give up so many requests."""
    for _ in range(times):
        breaker.give_up(BROKEN_SERVER, may_pass=may_pass, at_once=at_once)


def test_the_third_refusal_before_an_answer_is_hopeless():
    """Each model has its own count."""
    breaker = CircuitBreaker()
    assert [breaker.is_hopeless("m", REJECTED) for _ in range(2)] == [False, False]
    assert not breaker.is_hopeless("n", REJECTED)
    assert breaker.is_hopeless("m", REJECTED)


def test_refusals_after_an_answer_are_about_the_request():
    """A model that has answered once is there, and its key is right."""
    breaker = CircuitBreaker()
    breaker.answered("m")
    assert not any(breaker.is_hopeless("m", REJECTED) for _ in range(10))
    assert not breaker.is_hopeless("m", CallError("no_model", "gone", status=404))
    assert breaker.is_hopeless("m", CallError("fatal", "no credit left", status=429))


@pytest.mark.parametrize(
    ("error", "hopeless"),
    [
        (CallError("fatal", "wrong key", status=401), True),
        (CallError("no_model", "unknown", status=404), True),
        (CallError("rejected", "not for you", status=403), True),
        (CallError("too_long", "context length", status=400), False),
        (CallError("rate_limited", "slow down", status=429), False),
        (BROKEN_SERVER, False),
    ],
)
def test_some_first_errors_are_hopeless_at_once(error, hopeless):
    """The key, the account or the model is wrong; a long text or a busy server says nothing of the others."""
    assert CircuitBreaker().is_hopeless("m", error) is hopeless


def test_other_failures_do_not_count_as_refusals():
    """Only a refused request may mean that all are refused."""
    breaker = CircuitBreaker()
    assert not any(breaker.is_hopeless("m", BROKEN_SERVER) for _ in range(10))
    assert not breaker.is_hopeless("m", REJECTED)


@pytest.mark.parametrize(
    ("error", "body", "answered", "expected"),
    [
        (BROKEN_SERVER, {"response_format": {}}, False, True),
        (BROKEN_SERVER, {}, False, False),
        (BROKEN_SERVER, {"response_format": {}}, True, False),
        (REJECTED, {"response_format": {}}, False, False),
    ],
)
def test_when_a_schema_is_suspected(error, body, answered, expected):
    """A server error, a schema in the request, and no answer of this model yet."""
    breaker = CircuitBreaker()
    if answered:
        breaker.answered("m")
    assert breaker.may_be_schema("m", error, body) is expected


def test_the_third_server_error_blames_the_schema_once():
    """Then it is dropped, and later errors have another cause."""
    breaker = CircuitBreaker()
    assert [breaker.blames_schema("m") for _ in range(5)] == [False, False, True, False, False]
    assert not breaker.blames_schema("n")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["yes", "no", "yes", "no"], [False, False, True, False]),
        (['{"vote": 1}', "yes", "yes", "yes"], [False] * 4),
        (["yes", "yes", ' {"vote": 1}', "yes"], [False] * 4),
        (["yes", "  ", "yes", "yes"], [False, False, False, True]),
    ],
)
def test_a_schema_is_ignored_where_three_replies_hold_no_json(texts, expected):
    """Silence does not count, and one JSON object shows that the model can."""
    breaker = CircuitBreaker()
    assert [breaker.ignores_schema("m", Reply(text)) for text in texts] == expected


def test_a_refusal_in_words_says_nothing_of_the_schema():
    """Endpoints keep refusals apart, and those are no JSON."""
    breaker = CircuitBreaker()
    assert not any(breaker.ignores_schema("m", Reply("I cannot", refusal="I cannot")) for _ in range(5))


def test_the_circuit_opens_after_twenty_requests_given_up():
    """And not one before."""
    breaker = CircuitBreaker()
    given_up(breaker, 19)
    with pytest.raises(
        EndpointError, match=r"`base_url` must answer\. The last 20 .*: server_error: boom\. Run .* again"
    ):
        given_up(breaker, 1)


def test_an_answer_closes_the_circuit():
    """Only failures in a row count."""
    breaker = CircuitBreaker()
    given_up(breaker, 19)
    breaker.answered("m")
    given_up(breaker, 19)


def test_failures_that_do_not_pass_are_not_counted():
    """A refused request is given up for its own sake."""
    given_up(CircuitBreaker(), 50, may_pass=False)


def test_with_many_requests_at_once_more_must_fail():
    """A hiccup takes all that is in flight with it."""
    breaker = CircuitBreaker()
    given_up(breaker, 63, at_once=64)
    with pytest.raises(EndpointError, match="The last 64 requests"):
        given_up(breaker, 1, at_once=64)
