"""The workbench: a thread that does small pieces of work, several at once where several wait."""

import asyncio
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


class Workbench(Generic[T, R]):
    """A thread that works off a queue, so that the event loop is free.

    Parameters
    ----------
    work : callable
        Returns a result for each of several pieces, in order.
    weigh : callable
        Returns the size of a piece.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]], weigh: Callable[[T], int]) -> None:
        self._work, self._weigh = work, weigh
        self._queue: SimpleQueue[tuple[T, Future[R]] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="deep-workbench", daemon=True)
        self._thread.start()

    async def do(self, piece: T) -> R:
        """Return the result of one piece."""
        future: Future[R] = Future()
        self._queue.put((piece, future))
        return await asyncio.wrap_future(future)

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
            self._finish(batch)

    def _finish(self, batch: Sequence[tuple[T, Future[R]]]) -> None:
        """Do some pieces together, or one by one where they break, so that none suffers for another."""
        wanted = [(piece, future) for piece, future in batch if future.set_running_or_notify_cancel()]
        try:
            results = self._work([piece for piece, _ in wanted]) if wanted else ()
        except Exception as error:
            if len(wanted) == 1:
                wanted[0][1].set_exception(error)
                return
            for piece, future in wanted:
                self._alone(piece, future)
            return
        for (_, future), result in zip(wanted, results, strict=True):
            future.set_result(result)

    def _alone(self, piece: T, future: "Future[R]") -> None:
        try:
            future.set_result(self._work([piece])[0])
        except Exception as error:
            future.set_exception(error)
