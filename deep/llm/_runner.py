"""One request from the queue to its settled row: the gate, attempts, and the ledger before and after each."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from deep.llm import _errors
from deep.llm._client import Client
from deep.llm._errors import AMBIGUOUS, NO_ROOM, CallError, EndpointError, LedgerError, LedgerFullError, RequestState
from deep.llm._gate import Attempt, Failed, Terms
from deep.llm._ledger import Job, Lease, Ledger
from deep.llm._messages import Body, Reply, Request, json_text
from deep.llm._providers import ModelGate, Quirk
from deep.llm._spending import BudgetReachedError, Tally, ends_early, may_end_later
from deep.llm._writer import WriteFuture
from deep.records import ABSTAIN, Judgment

# What other machines have spent is read again after these seconds: a query before each request would be slow. Chosen;
# no measurement is known.
REFRESH_SECONDS = 2.0

# After 4, 8, 16, ... attempts without an answer between them a line says so: few lines, however long it lasts.
TOLD_FAILURES = frozenset(4 * 2**n for n in range(20))

# Returns None where a reply is one of several that make up a judgment, and has no vote of its own.
Parser = Callable[[Request, Reply], Judgment | None]


@dataclass(frozen=True, slots=True)
class AttemptState:
    """The state of a request after one attempt.

    Parameters
    ----------
    state : RequestState
        Where it is queued it may be tried again.
    error : CallError, optional
        Why it has no answer.
    tried : sequence of Quirk, optional
        It was refused, it seems for fields that the model lacks, and may be sent without them at once.
    cut : bool
        Its reply was cut off, and it may be sent with a longer limit at once.
    """

    state: RequestState
    error: CallError | None = None
    tried: Sequence[Quirk] | None = None
    cut: bool = False


@dataclass(eq=False)
class Session:
    """The parts of a run that whoever asks works with.

    Parameters
    ----------
    ledger : Ledger
        Open; every attempt is written to it.
    client : Client
        Of the endpoint; None where functions alone are called.
    parse : callable
        Turns a request and its reply into a Judgment; None where it has no vote of its own.
    terms : Terms
        The limits, prices and budget of the run.
    gate : ModelGate
        What is known of each model, and whether all is stopped.
    tally : Tally
        Counts what is asked and answered by voter, and adds up the dollars.
    """

    ledger: Ledger
    client: Client
    parse: Parser
    terms: Terms
    gate: ModelGate
    tally: Tally
    _breaker: _errors.CircuitBreaker = field(default_factory=_errors.CircuitBreaker, init=False)

    def read(self, request: Request, reply: Reply) -> tuple[Judgment | None, str | None]:
        """Return the judgment in a reply, or the fault in it.

        The reply is paid for, so a parser that breaks on it must not lose it.
        """
        try:
            return self.parse(request, reply), None
        # Whatever a parser raises: it may be a judge of another package.
        except Exception as error:
            return Judgment(vote=ABSTAIN, reason="unparsable"), f"the parser raised {type(error).__name__}: {error}"

    def body_of(self, request: Request) -> Body:
        """Return the body of a request as its model accepts it."""
        return self.gate.apply(request.endpoint, request.body, request.choice)

    def ignored(self, request: Request, body: Body, reply: Reply) -> list[Quirk]:
        """Return new quirks, one for each setting that was asked for and not honoured."""
        fields = ["logprobs"] if body.get("logprobs") and reply.logprobs is None else []
        fields += [] if reply.tokens else ["usage"]  # which every reply should have
        choice = request.choice
        if choice is not None:
            sent_fields = [name for name in choice.fields if name in body]
            fields += sent_fields if sent_fields and self._breaker.ignores_choice(request.model, choice, reply) else []
        elif "response_format" in body and self._breaker.ignores_schema(request.model, reply):
            fields.append("response_format")
        return [quirk for name in fields for quirk in self.gate.ignored(request.endpoint, request.model, name)]

    def is_cut(self, job: Job, judgment: Judgment | None, reply: Reply) -> bool:
        """Return whether a reply was cut off at its length limit, and is to be asked for with a longer one."""
        is_truncated = judgment is not None and judgment.reason == "truncated"
        return is_truncated and job.can_be_longer and may_end_later(job.request.body, reply)

    def count_end(self, job: Job, state: RequestState, error: CallError) -> None:
        """Count a request without an answer; a content filter has refused one that is done all the same.

        Where an earlier reply was cut off, that one stands.
        """
        if job.longer and state != "queued":
            cut = Judgment(vote=ABSTAIN, reason="truncated")
            self.tally.answer(job.request.voter, cut, 0.0, longer=True)
        elif state == "done":
            self.tally.answer(job.request.voter, Judgment(vote=ABSTAIN, reason="refused"), 0.0)
        elif state != "queued":
            self.tally.fail(job.request.voter, error)


@dataclass(eq=False)
class Caller(Session):
    """Asks one request after another on behalf of all workers of a run.

    Attributes
    ----------
    in_flight : set of asyncio.Task
        The tasks whose request has been sent and is not written down yet.
    """

    in_flight: set[asyncio.Task[object] | None] = field(default_factory=set, init=False)
    _refreshed: float = field(default_factory=time.monotonic, init=False)
    _unwritten: set[WriteFuture] = field(default_factory=set, init=False)
    _lacks: int = field(default=0, init=False)
    _silent: int = field(default=0, init=False)

    async def ask(self, job: Job) -> None:
        """Bring one job to an end: an answer, a failure, or back to the queue where the run is stopping.

        Raises
        ------
        EndpointError
            No other request would fare better.
        LedgerError
            The ledger cannot be written.
        BudgetReachedError
            The budget has no room for the next attempt.
        """
        async with self.gate.turn(job.request.model):
            if not self.gate.closed:
                result = await self._ask(job)
                if result.error is not None and result.state not in ("done", "queued"):
                    may_pass = self.terms.retry.retries(result.error)
                    self._breaker.give_up(result.error, may_pass=may_pass, at_once=self.terms.concurrency.current)

    async def _ask(self, job: Job) -> AttemptState:
        """Attempt a request until it is settled, or the run stops."""
        attempt = 1
        trial_quirks: Sequence[Quirk] = ()
        while True:
            result = await self._attempt(job, attempt, trial_quirks)
            if result.error is not None:
                self.count_end(job, result.state, result.error)
            if result.state != "queued" or self.gate.closed:
                return result
            if result.cut:
                job, attempt = job.with_longer_limit(), 1
            elif result.tried is not None:
                trial_quirks = result.tried
            elif result.error is not None:
                await asyncio.sleep(self.terms.retry.wait(attempt, result.error.retry_after))
                # What never left this machine has not failed at the endpoint.
                attempt += result.error.kind != "unsent"
            job = replace(job, number=job.number + 1)

    async def refresh_budget(self) -> None:
        """Read now and then the spending of other machines, where they share the ledger and there is a budget."""
        now = time.monotonic()
        if self.terms.budget.limit is not None and self.ledger.shared and now - self._refreshed > REFRESH_SECONDS:
            # Before the query: of many workers that come at once, one asks.
            self._refreshed = now
            self.terms.budget.spent_before = await self.ledger.spent_by_others()

    async def _attempt(self, job: Job, number: int, trial_quirks: Sequence[Quirk]) -> AttemptState:
        """Write down, send and write down once; `number` counts the attempts of this run that were not for learning."""
        request, task = job.request, asyncio.current_task()
        body = self.gate.apply(request.endpoint, request.body, request.choice, trial_quirks)
        text = job.text if body is request.body else json_text(body)
        as_kept = body is request.body and (request.choice is None or job.number == 1)

        async def announce(worst: float | None) -> None:
            # Before it is written down: a run that stops waits for it, so that none is in doubt but was never sent.
            self.in_flight.add(task)
            changed_body = None if as_kept else text
            await self.ledger.start(job, changed_body=changed_body, worst_case=worst)
            self.tally.attempts += 1

        try:
            if request.call is None:
                attempt = Attempt(request.model, body, text, number)
                outcome = await attempt.make(self.terms, announce, self.client.to(request.endpoint))
            else:
                outcome = await request.call(self.terms, announce)
            if isinstance(outcome, Reply):
                return await self._answer(job, body, outcome, trial_quirks)
            return await self._learn(job, body, outcome, trial_quirks) or await self._fail(job, outcome, number)
        finally:
            self.in_flight.discard(task)

    async def _answer(self, job: Job, body: Body, reply: Reply, trial_quirks: Sequence[Quirk]) -> AttemptState:
        """Hand an answer to the ledger.

        The worker does not wait until it is on disk: it goes on to the next request, whose own entry, which it does
        wait for, is committed with this answer or after it. So no more requests are in doubt than there are workers.
        """
        request = job.request
        judgment, message = self.read(request, reply)
        new_quirks, quirks, is_cut = list[Quirk](), list[Quirk](), False
        if request.call is None:  # a function has no limit of length, and no field that it could lack
            new_quirks, is_cut = self.gate.take(request.endpoint, body, trial_quirks), self.is_cut(job, judgment, reply)
            quirks = [*new_quirks, *self.ignored(request, body, reply)]
        future = self.ledger.answer(job, reply, judgment, message=message, quirks=quirks, again=is_cut)
        is_truncated = judgment is not None and judgment.reason == "truncated"
        self.tally.full += is_truncated and ends_early(job.request.body, reply)
        self.tally.name(request.model, reply.model)
        self._breaker.answered(request.model)
        self._silent = 0
        # It stays above 0, so that the lack of connections is told once a run.
        self._lacks = min(self._lacks, 1)
        if new_quirks or not trial_quirks:  # else the next request shows, alone, whether it is about the model
            self.gate.open(request.model)
        if is_cut:  # the next attempt concerns the same row
            await future
            self.tally.answer(request.voter, judgment, reply.cost, again=True)
            return AttemptState("queued", cut=True)
        self._unwritten.add(future)
        future.add_done_callback(partial(self._acknowledge, job, judgment, reply.cost))
        return AttemptState("done")

    def _acknowledge(self, job: Job, judgment: Judgment | None, cost: float | None, future: WriteFuture) -> None:
        """Count an answer once it is on disk."""
        self._unwritten.discard(future)
        if future.exception() is None:
            self.tally.answer(job.request.voter, judgment, cost, longer=job.longer)

    async def flush(self) -> None:
        """Wait until every answer is on disk.

        Raises
        ------
        LedgerError
            One could not be written.
        """
        if self._unwritten:
            futures, _ = await asyncio.wait(set(self._unwritten))
            for future in futures:
                future.result()

    async def _learn(self, job: Job, body: Body, failure: Failed, trial_quirks: Sequence[Quirk]) -> AttemptState | None:
        """Return the quirks to try after a refusal of `body`; None where it says nothing that helps.

        What it says of the model is believed once the request is answered as tried. A longer limit may be refused;
        all else in `body` was answered before.
        """
        request, error = job.request, failure.error
        if job.longer:
            return None
        is_schema = self._may_be_schema(request, error) and self._breaker.blames_schema(request.model)
        constraint = next((name for name in _errors.CONSTRAINTS if name in body), None)
        quirks = self.gate.explain(request.endpoint, body, error, constraint if is_schema else None)
        if not quirks and request.choice is not None and self._breaker.may_be_choice(request.model, error):
            quirks = self.gate.explain(request.endpoint, body, error, constraint)
        accepted = self.gate.apply(request.endpoint, body, request.choice, quirks)
        helps = (quirks or error.kind == "rejected") and accepted is not body
        if self.gate.closed or not helps:
            return None
        await self.ledger.fail(job, error, state="queued", seconds=failure.seconds)
        return AttemptState("queued", error, tried=[*trial_quirks, *quirks])

    async def _fail(self, job: Job, failure: Failed, number: int) -> AttemptState:
        """Record a failed attempt, and the state of the request after it."""
        request, error = job.request, failure.error
        if error.kind == "unsent":
            return await self._give_back(job, error)
        # The endpoint may have answered these and bill them; the summary says how many.
        self.tally.in_doubt += error.kind in AMBIGUOUS
        too_long = self.terms.asks_too_long(error)
        hopeless = self._breaker.is_hopeless(request.model, error) or too_long
        state = "queued" if hopeless else self.terms.retry.state_after(error, number)
        # Written down first, whatever ends the run below: the attempt may be on the bill.
        await self.ledger.fail(job, error, state=state, seconds=failure.seconds)
        if hopeless:
            self.gate.closed = True
            if too_long:
                self.terms.heed(error)
            if error.kind == "unreachable":
                raise EndpointError(
                    f"`base_url` must answer. Got no connection to {request.endpoint}: {error.message}."
                )
            raise EndpointError(f"The endpoint refuses every request: {error.message} ({request.endpoint})")
        # `heed` tells of a limit that holds for long, and a function's caller of the first failure of each kind.
        is_silence = error.kind not in ("rate_limited", "raised")
        self._silent += is_silence
        if is_silence and self._silent in TOLD_FAILURES:
            self.terms.tell(f"The last {self._silent} attempts got no answer. The last error: {error}.")
        if state == "queued":
            self.terms.heed(error)
        # Any other failure shows that the model is there, so that the others need not wait for a canary.
        if error.kind not in ("rejected", "unreachable") and not self._may_be_schema(request, error):
            self.gate.open(request.model)
        return AttemptState(state, error)

    async def _give_back(self, job: Job, error: CallError) -> AttemptState:
        """Put a request back for which this machine had no room: no attempt at it counts.

        Raises
        ------
        EndpointError
            There was no room for one at a time either, as often as an endpoint may fail.
        """
        self.tally.attempts -= 1
        await self.ledger.fail(job, error, state="queued")
        if not self._lacks:
            self.terms.tell(NO_ROOM.format(error.message, "fewer requests go out at once from now on"))
        self._lacks += 1 if self.terms.concurrency.maximum == 1 or not self._lacks else 0
        if self._lacks > self.terms.retry.attempts:
            self.gate.closed = True
            raise EndpointError(NO_ROOM.format(error.message, "none for one at a time either"))
        return AttemptState("queued", error)

    def _may_be_schema(self, request: Request, error: CallError) -> bool:
        return self._breaker.may_be_schema(request.model, error, self.body_of(request))


StopReason = Literal["budget", "error", "interrupted"]

# Requests that are looked up in the ledger, and entered, in one transaction. More would keep the answers and starts
# waiting that come meanwhile; fewer would cost more transactions.
CHUNK = 64

# Jobs that may wait for a worker: two transactions' worth, so that the next one is made while these are worked on.
LOOK_AHEAD = 128

# Requests of other machines that are kept in memory, to look at them alone later; where there are more, at all.
MAX_LOOKED_AT_ALONE = 4096

# After these seconds a run looks again whether another machine has finished what it is asking.
POLL_SECONDS = 1.0

# The queue gives the lower number first: followers, before their prefix leaves the server's cache.
FOLLOWER, LEADER = 0, 1


class Runner:
    """Runs requests through a caller.

    Parameters
    ----------
    caller : Caller
        Asks one request at a time for each worker, and writes down what comes of it; its ledger says which are still
        to be asked.
    workers : int
        The most requests in flight.

    Attributes
    ----------
    stopped : {'budget', 'error', 'interrupted'}, optional
        Why the run ended before its end.
    """

    def __init__(self, caller: Caller, *, workers: int) -> None:
        self._caller = caller
        self._n_workers = workers
        self.stopped: StopReason | None = None
        self._error: BaseException | None = None
        self._halt = asyncio.Event()
        self._tasks: list[asyncio.Task[list[Request]] | asyncio.Task[None]] = []
        self._order = itertools.count()
        self._queue: asyncio.PriorityQueue[tuple[int, int, Job, list[Job]]] = asyncio.PriorityQueue()
        # On a shared ledger, a machine that holds many requests it cannot ask yet keeps the others idle at the end.
        self._most = min(workers, LOOK_AHEAD) if caller.ledger.shared else None
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
            # The other machine may have died over its requests meanwhile.
            await self._caller.ledger.recover()
            elsewhere = await self._pass(elsewhere if len(elsewhere) < MAX_LOOKED_AT_ALONE else requests(), first=False)
        if self._error is not None:
            raise self._error

    async def _pass(self, requests: Iterable[Request], *, first: bool) -> list[Request]:
        """Go through requests once, and return those that another machine is asking, up to `MAX_LOOKED_AT_ALONE`."""
        feeder = asyncio.create_task(self._feed(requests, first=first))
        workers = [asyncio.create_task(self._work()) for _ in range(self._n_workers)]
        self._tasks = [feeder, *workers]
        ends = [asyncio.create_task(self._drain(feeder)), asyncio.create_task(self._halt.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            in_flight = self._caller.in_flight if self._halt.is_set() else ()
            # What is in flight may be paid for already; all else has only waited.
            for task in set(self._tasks).difference(in_flight):
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

    def stop(self, why: StopReason) -> None:
        """Ask nothing more, but wait for requests in flight; called again, do not even wait."""
        if self._halt.is_set():
            self._cancel_all()
            return
        self.stopped = why
        if why == "interrupted" and self._caller.in_flight:
            n = len(self._caller.in_flight)
            client: Client | None = self._caller.client  # none where functions alone are called
            wait = "" if client is None else f", up to {client.timeout:g} s each"
            self._caller.terms.tell(f"Waiting for {n} answer{'s' * (n > 1)}{wait}. Press Ctrl-C again to stop at once.")
        self._caller.gate.closed = True  # nothing more is asked; requests in flight go on to their end
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
            # Up to `MAX_LOOKED_AT_ALONE`: the requests of a million rows would fill the memory.
            elsewhere += lease.elsewhere[: MAX_LOOKED_AT_ALONE - len(elsewhere)]
            for request, row in lease.settled if first else ():
                self._caller.tally.find(request.voter, row)
            self._caller.tally.found += len(lease.repeated)
            in_doubt += [job for job in lease.jobs if job.in_doubt]
            await self._hand_out(job for job in lease.jobs if not job.in_doubt)
        await self._hand_out(in_doubt)
        return elsewhere

    async def _leases(self, requests: Iterable[Request]) -> AsyncIterator[Lease]:
        """Yield leases of all requests; on a shared ledger of no more at once than can be asked within a second."""
        most = self._most
        for chunk in _chunks(requests):
            rest = chunk
            while rest:
                lease, start = await self._caller.ledger.lease(rest, most=most), time.monotonic()
                yield lease
                rest = lease.left
                if self._most is not None and lease.jobs:
                    pace = len(lease.jobs) / max(time.monotonic() - start, 1e-3)
                    most = min(max(int(pace), 1), self._most)

    async def _hand_out(self, jobs: Iterable[Job]) -> None:
        """Queue the first job of each group with the others behind it, and jobs without a group on their own."""
        for _, group in itertools.groupby(jobs, key=lambda job: job.request.group or id(job)):
            leader, *followers = group
            await self._room.acquire()
            self._queue.put_nowait((LEADER, next(self._order), leader, followers))

    async def _work(self) -> None:
        """Ask one job after the other from the queue; those of its group follow the first."""
        while not self._halt.is_set():
            rank, _, job, followers = await self._queue.get()
            if rank == LEADER:
                self._room.release()
            try:
                await self._caller.ask(job)
            except BudgetReachedError:
                self._stop_once("budget")
            except Exception as error:
                self._end(error)
            # Only now: the server has the prefix that they share in its cache.
            for follower in followers:
                self._queue.put_nowait((FOLLOWER, next(self._order), follower, []))
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
