"""The gate before each model: canary requests, without a ledger, a client or the network."""

import asyncio

import pytest

from deep.llm import CallError, ModelGate


def in_turn(scenario):
    """Run a scenario with a gate, and return what it has noted."""
    noted = []
    asyncio.run(asyncio.wait_for(scenario(ModelGate(), noted), 5))
    return noted


async def passing(gate, model, noted, name, *, seconds=0.01, answered=True, error=None):
    """Pass the gate, note when, and open it where the request was answered."""
    async with gate.turn(model):
        noted.append(f"{name} in")
        await asyncio.sleep(seconds)
        noted.append(f"{name} out")
        if error is not None:
            raise error
        if answered:
            gate.open(model)


def test_a_canary_request_goes_alone_and_its_answer_opens_the_gate():
    """All others wait for it, and then go together."""

    async def scenario(gate, noted):
        await asyncio.gather(*(passing(gate, "m", noted, name) for name in "abc"))

    assert in_turn(scenario) == ["a in", "a out", "b in", "c in", "b out", "c out"]


def test_after_a_refused_canary_request_the_next_goes_alone():
    """What the model cannot do is learned by one worker after the other, never by all."""

    async def scenario(gate, noted):
        refused = [passing(gate, "m", noted, name, answered=False) for name in "ab"]
        await asyncio.gather(*refused, passing(gate, "m", noted, "c"), passing(gate, "m", noted, "d"))

    assert in_turn(scenario) == ["a in", "a out", "b in", "b out", "c in", "c out", "d in", "d out"]


def test_a_canary_request_that_breaks_lets_the_next_go():
    """An error, or a worker that is cancelled, leaves nobody waiting for ever."""

    async def scenario(gate, noted):
        with pytest.raises(KeyError):
            await passing(gate, "m", noted, "a", error=KeyError("x"))
        cancelled = asyncio.create_task(passing(gate, "m", noted, "b", seconds=60))
        waiting = asyncio.create_task(passing(gate, "m", noted, "c"))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        await waiting

    assert in_turn(scenario) == ["a in", "a out", "b in", "c in", "c out"]


def test_models_do_not_wait_for_each_other():
    """Each has a canary request of its own."""

    async def scenario(gate, noted):
        await asyncio.gather(passing(gate, "m", noted, "a"), passing(gate, "n", noted, "b"))

    assert in_turn(scenario) == ["a in", "b in", "a out", "b out"]


def test_an_early_opening_does_not_wait_for_the_canary_request_to_end():
    """A rate limit shows that the model is there, though the canary request has yet to be answered."""

    async def scenario(gate, noted):
        canary = asyncio.create_task(passing(gate, "m", noted, "a", seconds=0.05))
        other = asyncio.create_task(passing(gate, "m", noted, "b"))
        await asyncio.sleep(0.01)
        gate.open("m")
        await asyncio.gather(canary, other)

    assert in_turn(scenario) == ["a in", "b in", "b out", "a out"]


def test_a_closed_gate_holds_nobody():
    """Whoever waited passes, to see that nothing more is to be asked."""

    async def scenario(gate, noted):
        canary = asyncio.create_task(passing(gate, "m", noted, "a", answered=False))
        others = [asyncio.create_task(passing(gate, "m", noted, name, answered=False)) for name in "bc"]
        await asyncio.sleep(0)
        gate.closed = True
        await asyncio.gather(canary, *others)

    assert in_turn(scenario) == ["a in", "a out", "b in", "c in", "b out", "c out"]


def test_a_field_may_be_dropped_for_a_reason_of_our_own():
    """A schema that breaks the server goes, and is not dropped twice."""
    gate, body = ModelGate(), {"model": "m", "response_format": {}, "seed": 1}
    boom = CallError("server_error", "boom", status=500)
    tried = gate.explain("e", body, boom, "response_format")
    assert gate.apply("e", body) is body
    answered = gate.apply("e", body, tried=tried)
    assert [quirk.action for quirk in gate.take("e", answered, tried)] == ["dropped"]
    assert gate.apply("e", body) == answered == {"model": "m", "seed": 1}
    assert gate.take("e", answered, tried) == []
    assert gate.learn("e", body, boom) == []
