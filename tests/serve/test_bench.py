"""Workbenches: one result for each piece, whatever becomes of the pieces beside it."""

import asyncio
from contextlib import contextmanager
from threading import Event

import pytest

from deep.serve.check._bench import QuickBench, Workbench

BENCHES = [QuickBench, Workbench]


@contextmanager
def opened(kind, work):
    """Yield a bench, and end its thread."""
    bench = kind(work, len)
    yield bench
    if kind is Workbench:
        bench.close()


def reversed_texts(pieces):
    """Turn texts around, but for one that breaks."""
    if "broken" in pieces:
        raise ValueError("one of them is broken")
    return [piece[::-1] for piece in pieces]


@pytest.mark.parametrize("kind", BENCHES)
def test_one_that_breaks_breaks_no_other(kind):
    """They are then done one by one; the broken one raises its own error."""
    pieces = ["ab", "cd", "broken", "ef", "x" * 300_000, "yz"]

    async def ask(bench):
        waiting = asyncio.gather(*[bench.do(piece) for piece in pieces], return_exceptions=True)
        return await asyncio.wait_for(waiting, 60)

    with opened(kind, reversed_texts) as bench:
        found = asyncio.run(ask(bench))
    assert isinstance(found[2], ValueError)
    assert found[:2] + found[3:] == ["ba", "dc", "fe", "x" * 300_000, "zy"]


@pytest.mark.parametrize("kind", BENCHES)
def test_what_nobody_waits_for_is_not_done(kind):
    """A piece whose asker has gone; those beside it are done."""
    done, begun, go = [], Event(), Event()

    def work(pieces):
        begun.set()
        go.wait()
        done.extend(pieces)
        return reversed_texts(pieces)

    async def ask(bench):
        first = bench.do("ab")
        while kind is Workbench and not begun.is_set():
            await asyncio.sleep(0.001)
        gone, kept = bench.do("gone"), bench.do("cd")
        gone.cancel()
        await asyncio.sleep(0)  # the loop tells the thread's future
        go.set()
        return await asyncio.wait_for(asyncio.gather(first, kept), 60)

    with opened(kind, work) as bench:
        if kind is QuickBench:
            go.set()
        assert asyncio.run(ask(bench)) == ["ba", "dc"]
    assert done == ["ab", "cd"]
