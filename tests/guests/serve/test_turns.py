"""Pairs of many requests take turns: short ones in the event loop, heavier ones in a thread, long ones in another."""

import asyncio
from threading import Event

import pytest

import deep
from deep.integrations.serve import Checker, CheckOptions
from deep.integrations.serve._checker import (
    AT_ONCE,
    ENTRY_OVERHEAD,
    WEIGHT_OF_LONG,
    WEIGHT_OF_TURN,
    _portions,
    served_pair,
    weight_of,
)

SHORT = served_pair("It rained.", "It rained.")
HEAVY = served_pair("It rained. " * (WEIGHT_OF_TURN // 10), "It rained.")
LONG = served_pair("It rained. " * (WEIGHT_OF_LONG // 10), "It rained.")


@pytest.fixture
def checker(lexical_file):
    """Return a checker, closed at the end."""
    made = Checker(deep.load(lexical_file), CheckOptions(cache_bytes=0))
    yield made
    made.close()


def test_a_long_pair_holds_up_nobody(checker, monkeypatch):
    """While it is read, heavy and short ones of other requests are answered; another long one waits for it."""
    begun, go, read = Event(), Event(), checker.scorer.read

    def slow(examples, *args, **given):
        if len(examples[0].source) >= WEIGHT_OF_LONG:
            begun.set()
            assert go.wait(300)
        return read(examples, *args, **given)

    monkeypatch.setattr(checker.scorer, "read", slow)

    async def ask():
        long = asyncio.create_task(checker.check([LONG]))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        other = asyncio.create_task(checker.check([served_pair(LONG.source, "It did.")]))
        result = [(await asyncio.wait_for(checker.check([pair]), 300))[0].body for pair in (HEAVY, SHORT)]
        assert not long.done()
        assert not other.done()
        go.set()
        await long
        await other
        return result

    try:
        assert all(body.startswith(b'{"p_consistent":') for body in asyncio.run(ask()))
    finally:
        go.set()


def test_pairs_of_one_request_are_done_some_at_a_time():
    """In their order, no more of them together than one turn of the event loop should take."""
    pairs = [served_pair("x" * 1000 * (number % 7), "y" * 10) for number in range(200)]
    parts = list(_portions([*pairs, HEAVY, *pairs]))
    assert [pair for part in parts for pair in part] == [*pairs, HEAVY, *pairs]
    assert all(
        len(part) <= AT_ONCE and sum(weight_of(p) for p in part) <= WEIGHT_OF_TURN
        for part in parts
        if HEAVY not in part
    )
    assert [HEAVY] in parts
    assert list(_portions([])) == []


def test_an_error_is_that_of_its_request(checker, monkeypatch):
    """Others are answered, at the same time and later."""
    read = checker.scorer.read

    def broken(examples, *args, **given):
        if any("broken" in example.claim for example in examples):
            raise ValueError("one of them is broken")
        return read(examples, *args, **given)

    monkeypatch.setattr(checker.scorer, "read", broken)

    async def ask():
        pairs = [[SHORT, served_pair("a", "broken")], [SHORT], [HEAVY], [served_pair(HEAVY.source, "broken")]]
        return await asyncio.gather(*map(checker.check, pairs), return_exceptions=True)

    result = asyncio.run(ask())
    assert [isinstance(each, ValueError) for each in result] == [True, False, False, True]


def test_memory_holds_the_latest_answers(lexical_file, monkeypatch):
    """No more bytes of them than are allowed; those that are there longest make room."""
    told = []
    pairs = [served_pair("It rained.", f"It rained {number} times.") for number in range(4)]
    checker = Checker(deep.load(lexical_file), CheckOptions(on_scored=told.append))
    sizes = [len(answer.body) + ENTRY_OVERHEAD for answer in asyncio.run(checker.check(pairs))]
    checker.close()
    told.clear()
    checker = Checker(deep.load(lexical_file), CheckOptions(on_scored=told.append, cache_bytes=sum(sizes[1:])))
    for pair in [*pairs, *pairs[1:], pairs[0]]:
        asyncio.run(checker.check([pair]))
    checker.close()
    assert [one.example.claim for one in told] == [pair.claim for pair in [*pairs, pairs[0]]]
