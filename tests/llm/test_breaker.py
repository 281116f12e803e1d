"""The circuit breaker: what it counts, and when it opens; without a ledger, a client or the network."""

import pytest

from deep.llm import CallError, CircuitBreaker, EndpointError, Reply

REJECTED = CallError("rejected", "bad text", status=400)
BROKEN_SERVER = CallError("server_error", "boom", status=500)


def test_refusals_before_the_first_answer_are_counted():
    """Each model has its own count, of refusals alone; a model that has answered is there, and its key is right."""
    breaker = CircuitBreaker()
    assert not any(breaker.is_hopeless("m", BROKEN_SERVER) for _ in range(10))
    assert [breaker.is_hopeless("m", REJECTED) for _ in range(2)] == [False, False]
    assert not breaker.is_hopeless("n", REJECTED)
    assert breaker.is_hopeless("m", REJECTED)
    breaker.answered("n")
    assert not any(breaker.is_hopeless("n", REJECTED) for _ in range(10))
    assert not breaker.is_hopeless("n", CallError("no_model", "gone", status=404))
    assert breaker.is_hopeless("n", CallError("fatal", "no credit left", status=429))


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


def test_a_schema_is_suspected_of_a_server_error_before_the_first_answer():
    """The third of them blames it, once: then it is dropped, and later errors have another cause."""
    breaker, constrained = CircuitBreaker(), {"response_format": {}}
    assert breaker.may_be_schema("m", BROKEN_SERVER, constrained)
    assert not breaker.may_be_schema("m", BROKEN_SERVER, {})
    assert not breaker.may_be_schema("m", REJECTED, constrained)
    assert [breaker.blames_schema("m") for _ in range(5)] == [False, False, True, False, False]
    assert not breaker.blames_schema("n")
    breaker.answered("m")
    assert not breaker.may_be_schema("m", BROKEN_SERVER, constrained)


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        (["yes", "no", "yes", "no"], [False, False, True, False]),
        (['{"vote": 1}', "yes", "yes", "yes"], [False] * 4),
        (["yes", "yes", ' {"vote": 1}', "yes"], [False] * 4),
        (["yes", "  ", "yes", "yes"], [False, False, False, True]),
        ([Reply("I cannot", refusal="I cannot")] * 4, [False] * 4),
    ],
)
def test_a_schema_is_ignored_where_three_replies_hold_no_json(replies, expected):
    """Silence and refusals do not count, and one JSON object shows that the model can."""
    breaker = CircuitBreaker()
    given = [Reply(one) if isinstance(one, str) else one for one in replies]
    assert [breaker.ignores_schema("m", reply) for reply in given] == expected


@pytest.mark.parametrize(("at_once", "most"), [(1, 20), (64, 64)])
def test_the_circuit_opens_after_so_many_given_up_in_a_row(at_once, most):
    """And not one before; with many requests at once more must fail: a hiccup takes all in flight with it."""
    breaker = CircuitBreaker()
    for is_last in (False, True):
        for _ in range(most - 1):
            breaker.give_up(BROKEN_SERVER, may_pass=True, at_once=at_once)
            breaker.give_up(REJECTED, may_pass=False, at_once=at_once)  # for its own sake, so that it does not count
        if not is_last:
            breaker.answered("m")  # closes it
    with pytest.raises(EndpointError, match=rf"must answer\. The last {most} .*: server_error: boom\. Run .* again"):
        breaker.give_up(BROKEN_SERVER, may_pass=True, at_once=at_once)
