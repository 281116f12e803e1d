"""A fixed pool of workers over a lazy stream of requests, which can be stopped at any moment and resumed."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from deep.llm._budget import BudgetReachedError
from deep.llm._caller import Caller
from deep.llm._errors import LedgerError, LedgerFullError
from deep.llm._lease import Job, Lease
from deep.llm._ledger import Ledger
from deep.llm._request import Request
from deep.llm._tally import Tally

StopReason = Literal["budget", "error", "interrupted"]

CHUNK = 64
"""Requests that are looked up in the ledger, and entered, in one transaction."""

LOOK_AHEAD = 128
"""Jobs that may wait for a worker."""

KEPT = 4096
"""Requests of other machines that are kept in memory, to look at them alone later; where there are more, at all."""

POLL_SECONDS = 1.0
"""How often to look whether another machine has finished what it is asking."""

FOLLOWER, LEADER = 0, 1


@dataclass(frozen=True, slots=True)
class _Leader:
    """A job, and the jobs of its group that go after it."""

    job: Job
    followers: list[Job]


class Runner:
    """Runs requests through a caller.

    Parameters
    ----------
    ledger : Ledger
    caller : Caller
    tally : Tally
    workers : int
        The most requests in flight.

    Attributes
    ----------
    stopped : {'budget', 'error', 'interrupted'}, optional
        Why the run ended before its end.
    """

    def __init__(self, ledger: Ledger, caller: Caller, tally: Tally, *, workers: int) -> None:
        self._ledger = ledger
        self._caller = caller
        self._tally = tally
        self._n_workers = workers
        self.stopped: StopReason | None = None
        self._error: BaseException | None = None
        self._halt = asyncio.Event()
        self._tasks: list[asyncio.Task[list[Request]] | asyncio.Task[None]] = []
        self._order = itertools.count()
        self._queue: asyncio.PriorityQueue[tuple[int, int, _Leader]] = asyncio.PriorityQueue()
        # On a shared ledger, a machine that holds many requests it cannot ask yet keeps the others idle at the end.
        self._most = min(workers, LOOK_AHEAD) if ledger.shared else None
        self._room = asyncio.Semaphore(max(self._most // 4, 1) if self._most else LOOK_AHEAD)

    async def run(self, requests: Callable[[], Iterable[Request]]) -> None:
        """Ask whatever is missing.

        Parameters
        ----------
        requests : callable
            Returns all requests, lazily; called again only where other machines were asking many of them.

        Raises
        ------
        EndpointError, InputError, LedgerError
            After what was in flight has been written down.
        """
        elsewhere = await self._pass(requests(), first=True)
        while elsewhere and not self._halt.is_set():
            await asyncio.sleep(POLL_SECONDS)
            await self._ledger.recover()
            elsewhere = await self._pass(elsewhere if len(elsewhere) < KEPT else requests(), first=False)
        if self._error is not None:
            raise self._error

    async def _pass(self, requests: Iterable[Request], *, first: bool) -> list[Request]:
        """Go through requests once, and return those that another machine is asking, up to `KEPT`."""
        feeder = asyncio.create_task(self._feed(requests, first=first))
        workers = [asyncio.create_task(self._work()) for _ in range(self._n_workers)]
        self._tasks = [feeder, *workers]
        ends = [asyncio.create_task(self._drain(feeder)), asyncio.create_task(self._halt.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in self._idle() if self._halt.is_set() else self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
        finally:
            self._cancel_all()
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, *self._tasks, return_exceptions=True)
        try:
            await self._caller.flush()
        except LedgerError as error:
            self._end(error)
        return [] if feeder.cancelled() or feeder.exception() else feeder.result()

    async def _drain(self, feeder: "asyncio.Task[list[Request]]") -> None:
        """Wait until every job has been worked on."""
        try:
            await feeder
        except Exception as error:
            self._end(error)
        await self._queue.join()

    def _idle(self) -> "list[asyncio.Task[list[Request]] | asyncio.Task[None]]":
        return [task for task in self._tasks if task not in self._caller.in_flight]

    def stop(self, why: StopReason) -> None:
        """Ask nothing more, but wait for what is in flight; called again, do not even wait."""
        if self._halt.is_set():
            self._cancel_all()
            return
        self.stopped = why
        self._caller.stop()
        self._halt.set()

    def _cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _end(self, error: BaseException) -> None:
        """Stop for an error; where it is a ledger's without any room, no answer in flight could be kept."""
        self._error = self._error or error
        self._stop_once("error")
        if isinstance(error, LedgerError) and not isinstance(error, LedgerFullError):
            self._cancel_all()

    async def _feed(self, requests: Iterable[Request], *, first: bool) -> list[Request]:
        """Hand out jobs; those in doubt come last, so that the next crash, over a canary request say, meets others."""
        elsewhere, in_doubt = list[Request](), list[Job]()
        async for lease in self._leases(requests):
            await self._caller.refresh_budget()
            elsewhere += lease.elsewhere[: KEPT - len(elsewhere)]
            for request, row in lease.settled if first else ():
                self._tally.find(request.voter, row)
            self._tally.found += len(lease.repeated)
            in_doubt += [job for job in lease.jobs if job.in_doubt]
            await self._hand_out(job for job in lease.jobs if not job.in_doubt)
        await self._hand_out(in_doubt)
        return elsewhere

    async def _leases(self, requests: Iterable[Request]) -> AsyncIterator[Lease]:
        """Yield leases of all requests; on a shared ledger of no more at once than can be asked within a second."""
        most = self._most
        for chunk in _chunks(requests):
            left = chunk
            while left:
                lease, taken = await self._ledger.lease(left, most=most), time.monotonic()
                yield lease
                left = lease.left
                if self._most is not None and lease.jobs:
                    pace = len(lease.jobs) / max(time.monotonic() - taken, 1e-3)
                    most = min(max(int(pace), 1), self._most)

    async def _hand_out(self, jobs: Iterable[Job]) -> None:
        for leader in _leaders(jobs):
            await self._room.acquire()
            self._queue.put_nowait((LEADER, next(self._order), leader))

    async def _work(self) -> None:
        while not self._halt.is_set():
            rank, _, leader = await self._queue.get()
            if rank == LEADER:
                self._room.release()
            try:
                await self._caller.ask(leader.job)
            except BudgetReachedError:
                self._stop_once("budget")
            except Exception as error:
                self._end(error)
            for job in leader.followers:
                self._queue.put_nowait((FOLLOWER, next(self._order), _Leader(job, [])))
            self._queue.task_done()

    def _stop_once(self, why: StopReason) -> None:
        if not self._halt.is_set():
            self.stop(why)


def _chunks(requests: Iterable[Request]) -> Iterator[list[Request]]:
    """Yield lists of about `CHUNK` requests, which do not cut a group in two."""
    chunk: list[Request] = []
    for request in requests:
        same_group = chunk and request.group is not None and request.group == chunk[-1].group
        if len(chunk) >= CHUNK and not same_group:
            yield chunk
            chunk = []
        chunk.append(request)
    if chunk:
        yield chunk


def _leaders(jobs: Iterable[Job]) -> Iterator[_Leader]:
    """Yield the first job of each group with the others behind it, and jobs without a group on their own."""
    for _, group in itertools.groupby(jobs, key=_group_of):
        first, *others = group
        yield _Leader(first, others)


def _group_of(job: Job) -> str | int:
    return id(job) if job.request.group is None else job.request.group
