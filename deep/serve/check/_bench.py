"""Workbenches: pieces of work that wait are done several at once, in a thread or in turns of the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 32
"""Pieces that are done together; what all have in common is then done once."""

WEIGHT_AT_ONCE = 200_000
"""Characters that are done together, so that a piece behind long ones is not kept waiting."""

WEIGHT_OF_TURN = 20_000
"""Characters that are done in one turn of the event loop: some 5 ms of lexical checks."""


class _Bench(Generic[T, R]):
    """Does pieces of work several at once.

    Parameters
    ----------
    work : callable
        Returns a result for each of several pieces, in order.
    weigh : callable
        Returns the size of a piece.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]], weigh: Callable[[T], int]) -> None:
        self._work, self._weigh = work, weigh


class QuickBench(_Bench[T, R]):
    """Does pieces that take a fraction of a millisecond in the event loop itself, a few milliseconds of them in a row.

    Threads that share an interpreter would hand it over at every read and write, which takes longer than the work.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]], weigh: Callable[[T], int]) -> None:
        super().__init__(work, weigh)
        self._waiting: deque[tuple[T, asyncio.Future[R]]] = deque()

    def do(self, piece: T) -> "asyncio.Future[R]":
        """Return the result of one piece, once it is there."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._turn, loop)
        self._waiting.append((piece, future))
        return future

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Do some of the pieces that wait, and let others have the loop before the next ones."""
        batch: list[tuple[T, asyncio.Future[R]]] = []
        weight = 0
        while self._waiting and len(batch) < AT_ONCE and weight < WEIGHT_OF_TURN:
            batch.append(self._waiting.popleft())
            weight += self._weigh(batch[-1][0])
        if self._waiting:
            loop.call_soon(self._turn, loop)
        _finish(self._work, batch)


def _finish(
    work: Callable[[Sequence[T]], Sequence[R]], batch: "Sequence[tuple[T, asyncio.Future[R] | Future[R]]]"
) -> None:
    """Do some pieces together, or one by one where they break, so that none suffers for another."""
    wanted = [(piece, future) for piece, future in batch if not future.cancelled()]
    try:
        results = work([piece for piece, _ in wanted])
    except Exception as error:
        if len(wanted) == 1:
            wanted[0][1].set_exception(error)
        else:
            for entry in wanted:
                _finish(work, [entry])
        return
    for (_, future), result in zip(wanted, results, strict=True):
        future.set_result(result)


class Workbench(_Bench[T, R]):
    """Does pieces in a thread that works off a queue, so that the event loop is free."""

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]], weigh: Callable[[T], int]) -> None:
        super().__init__(work, weigh)
        self._queue: SimpleQueue[tuple[T, Future[R]] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="deep-workbench", daemon=True)
        self._thread.start()

    def do(self, piece: T) -> "asyncio.Future[R]":
        """Return the result of one piece, once it is there."""
        future: Future[R] = Future()
        self._queue.put((piece, future))
        return asyncio.wrap_future(future)

    def close(self) -> None:
        """End the thread once the queue is empty."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, weight = [first], self._weigh(first[0])
            while len(batch) < AT_ONCE and weight < WEIGHT_AT_ONCE:
                try:
                    entry = self._queue.get_nowait()
                except Empty:
                    break
                if entry is None:
                    self._queue.put(None)
                    break
                batch.append(entry)
                weight += self._weigh(entry[0])
            _finish(self._work, [entry for entry in batch if entry[1].set_running_or_notify_cancel()])
