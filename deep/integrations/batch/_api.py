"""The Batch API: half the price where it is offered, hours of waiting, and the same ledger."""

import asyncio
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, TypeVar

from deep.asking import chunks
from deep.exceptions import printable
from deep.integrations.batch import _results as table
from deep.integrations.batch._results import CONTRADICTS, Batch, BatchLine, BatchSession, FileResults, reply_in
from deep.llm import (
    AMBIGUOUS,
    NO_ROOM,
    CallError,
    EndpointError,
    Job,
    Request,
    StopReason,
    WriteFuture,
    call_error,
    is_dead,
    json_text,
    release_batch,
    worst_case,
)

if TYPE_CHECKING:
    from openai.types import Batch as RemoteBatch
    from openai.types import FileObject

T = TypeVar("T")

# The most requests that OpenAI takes in one file.
MAX_REQUESTS = 50_000
# Below the 200 MB that a file may have.
MAX_BYTES = 190 * 1024**2

# How often a request may go into a batch in one run.
MAX_ROUNDS = 3

# The longest that moving one file may take.
FILE_SECONDS = 1800

# Entries of an endpoint's list of batches, the newest first, that are looked at.
MOST_LISTED = 10_000

# How often to look for a batch that the endpoint does not list, or for the results of one that has ended.
MAX_LOOKS = 3

TWICE_NOTE = (
    "{n} requests of batch {name} (metadata deep_batch={mark}) were asked again before the endpoint listed it, so each "
    "may be paid twice."
)

# Requests that are looked up in the ledger together; a file that another so many may overfill is full.
CHUNK = 500
# The endpoint's words for a batch that has ended.
ENDED_STATES = frozenset({"cancelled", "completed", "expired", "failed"})


@dataclass(slots=True)
class _Spool:
    """A batch file in the making."""

    batch_id: str
    file: IO[bytes]
    size: int = 0

    @property
    def full(self) -> bool:
        return self.size >= MAX_REQUESTS - CHUNK or self.file.tell() >= MAX_BYTES


@dataclass(eq=False)
class BatchRunner(BatchSession):
    """Runs requests through the Batch API; concurrency and limits a minute do not apply.

    Parameters
    ----------
    ledger, client, parse, terms, gate, tally
        As of a session.
    endpoint : str
        The endpoint's name.
    poll : float
        Seconds between two looks at a batch.
    tell : callable
        Called with each sentence about what may be paid twice.

    Attributes
    ----------
    stopped : {'budget', 'interrupted'}, optional
        Why the run ended before its end.
    """

    endpoint: str
    poll: float = 30.0
    tell: Callable[[str], object] = lambda line: sys.stderr.write(f"{line}\n")
    stopped: StopReason | None = field(default=None, init=False)
    _elsewhere: int = field(default=0, init=False)
    _is_reached: bool = field(default=False, init=False)
    _stop_event: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def stop(self, why: StopReason) -> None:
        """Leave at the next moment; batches go on by themselves, and the next run finds them."""
        self.stopped = self.stopped or why
        self._stop_event.set()

    async def run(self, requests: Callable[[], Iterable[Request]]) -> None:
        """Collect the batches of earlier runs, then submit and collect the requests that are missing.

        Parameters
        ----------
        requests : callable
            Returns all requests, lazily; called once to submit and once for every batch, and again while other
            machines wait for some of them.

        Raises
        ------
        EndpointError
            A batch was refused as a whole, or the endpoint does not know it any more.
        """
        first = True
        while True:
            await self._attach()
            await self._rounds(requests, first=first)
            if not self._elsewhere or self.stopped is not None:
                return
            await self._pause()
            await self.ledger.recover()
            first = False

    async def _rounds(self, requests: Callable[[], Iterable[Request]], *, first: bool) -> None:
        for round_number in range(MAX_ROUNDS):
            await self._collect_all(requests, last=False)
            submitted = await self._submit_missing(requests(), first=first and round_number == 0)
            await self._collect_all(requests, last=round_number == MAX_ROUNDS - 1)
            if not submitted or self.stopped is not None:
                return

    async def _api(self, call: Callable[[], Awaitable[T]], *, once: Collection[str] = ()) -> T:
        """Make a call about files or batches, again after faults that pass; those of the kinds `once` are final."""
        retry, attempt = self.terms.retry, 1
        began = time.monotonic()
        while True:
            try:
                async with asyncio.timeout(FILE_SECONDS):
                    result = await call()
                    self._is_reached = True
                    return result
            except TimeoutError:
                error = CallError("timeout", f"no answer within {FILE_SECONDS} s")
            except Exception as failure:
                error = call_error(failure, self.client.redact)
            self.terms.heed(error)
            seconds = time.monotonic() - began
            if error.kind == "unreachable" and not self._is_reached and is_dead(attempt, seconds):
                raise EndpointError(f"`base_url` must answer. Got no connection to {self.endpoint}: {error.message}.")
            if attempt >= retry.attempts and error.kind == "unsent":
                raise EndpointError(NO_ROOM.format(error.message, "none for one either"))
            if attempt >= retry.attempts or not retry.retries(error) or error.kind in once:
                raise EndpointError(f"`batch` must be supported by the endpoint. Got {error}.") from error
            await asyncio.sleep(retry.wait(attempt, error.retry_after))
            attempt += 1

    async def _pause(self) -> None:
        """Wait until it is time for the next look, or the run is stopped."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop_event.wait(), self.poll)

    async def _batches(self) -> list[Batch]:
        return await self.ledger.call(table.take_batches, self.endpoint, self.ledger.run, self.ledger.live_runs)

    async def _attach(self) -> None:
        """Find the endpoint's names of batches whose making was never confirmed; give up on those that it never got."""
        orphans = [batch for batch in await self._batches() if batch.unconfirmed]
        if not orphans:
            return
        names = await self._find(orphans)
        for batch in orphans:
            if batch.id in names:
                waiting = await self.ledger.call(table.adopt_batch, batch, names[batch.id])
                if waiting < batch.size:
                    self.tell(TWICE_NOTE.format(n=batch.size - waiting, mark=batch.id, name=printable(names[batch.id])))
            elif batch.state != "doubtful":
                await self._give_up_in_doubt(batch, "the endpoint never confirmed and does not list")

    async def _give_up_in_doubt(self, batch: Batch, why: str) -> None:
        """Give up on a batch that may be carried out, and paid, all the same; tell how to find out."""
        n = await self.ledger.call(table.mark_doubtful, batch.id)
        await self.ledger.recover()
        again = not self.ledger.at_most_once or "unknown" in self.ledger.retry
        fate = "are asked again, so each may be paid twice" if again else "are left without a vote"
        self.tell(
            f"{n} requests are in a batch that {why}; they {fate}. It would have the metadata deep_batch={batch.id} "
            "in the endpoint's list of batches."
        )

    async def _find(self, batches: Collection[Batch]) -> dict[str, str]:
        """Return the endpoint's names of batches by ours; a new one may be missing from its list for a while."""
        names: dict[str, str] = {}
        for look in range(MAX_LOOKS):
            if look:
                await self._pause()
            names = await self._listed(batches)
            if all(batch.id in names or batch.state == "doubtful" for batch in batches) or self._stop_event.is_set():
                break
        return names

    async def _listed(self, batches: Collection[Batch]) -> dict[str, str]:
        """Look once for batches in the endpoint's list, by the mark in their metadata or by their file."""
        ours = {batch.remote: batch.id for batch in batches if batch.remote is not None}

        async def search() -> dict[str, str]:
            names: dict[str, str] = {}
            ids, remote_ids = {batch.id for batch in batches}, set[str]()
            async for remote in self.client.openai.batches.list(limit=100):
                values = {key: getattr(remote, key, None) for key in ("id", "input_file_id", "metadata")}
                listed = str(values["id"] or f"none-{len(remote_ids)}")
                if listed in remote_ids or len(remote_ids) >= MOST_LISTED:
                    break  # a list without an end
                remote_ids.add(listed)
                metadata = values["metadata"] if isinstance(values["metadata"], dict) else {}
                name = metadata.get("deep_batch") or ours.get(str(values["input_file_id"]))
                if isinstance(values["id"], str) and isinstance(name, str) and name in ids:
                    names.setdefault(name, listed)
                if len(names) == len(ids):
                    break
            return names

        try:
            return await self._api(search)
        except EndpointError as error:
            if _kind_of(error) in ("no_model", "rejected"):  # an endpoint that makes batches and lists none
                return {}
            raise EndpointError(str(error)) from None  # says nothing of what `_create` asked for

    async def _submit_missing(self, requests: Iterable[Request], *, first: bool) -> int:
        """Put all that is to be asked into batches, and return how many requests that were."""
        stream = iter(requests)
        total = self._elsewhere = 0
        while not self._stop_event.is_set():
            with tempfile.TemporaryFile() as file:  # without a name: no kill leaves documents behind
                spool = _Spool(uuid.uuid4().hex, file)
                batch = Batch(spool.batch_id, None, 0, "filling")
                await self.ledger.call(table.add_batch, batch, self.endpoint, self.ledger.run)
                exhausted = await self._fill(spool, stream, first=first)
                if spool.size:
                    await self._submit(spool)
                else:
                    await self.ledger.call(table.set_batch, batch_id=spool.batch_id, state="released")
            total += spool.size
            if exhausted:
                break
        return total

    async def _fill(self, spool: _Spool, stream: Iterator[Request], *, first: bool) -> bool:
        """Write requests to a batch file until it is full; return whether that was all of them."""
        for chunk in chunks(stream, CHUNK):
            lease = await self.ledger.lease(chunk, again=True)
            for request, row in lease.settled if first else ():
                self.tally.find(request.voter, row)
            self._elsewhere += len(lease.elsewhere)
            started = [future for job in lease.jobs if (future := await self._spool(spool, job)) is not None]
            await asyncio.gather(*started)
            if len(started) < len(lease.jobs):
                self.stopped = "budget"
                return True
            if spool.full:
                return False
        return True

    async def _spool(self, spool: _Spool, job: Job) -> WriteFuture | None:
        """Add one line to a batch file; None where the budget has no room for it."""
        body = self.body_of(job.request)
        worst = worst_case(self.terms.prices, body, job.text, batch=True)
        if not self.terms.budget.fits(worst, job.request.model):
            return None
        await self.terms.budget.admit(worst, job.request.model)
        changed = None if body is job.request.body else json_text(body)
        line = {"custom_id": job.key, "method": "POST", "url": "/v1/chat/completions", "body": body}
        spool.file.write(json_text(line).encode() + b"\n")
        spool.size += 1
        self.tally.attempts += 1
        return self.ledger.start(job, changed_body=changed, worst_case=worst, batch=spool.batch_id)

    async def _submit(self, spool: _Spool) -> None:
        """Upload a batch file and make the batch, which may have been made though the answer was lost."""

        async def upload() -> "FileObject":
            spool.file.seek(0)
            content = (f"{spool.batch_id}.jsonl", spool.file)
            return await _check_has_id(self.client.openai.files.create(file=content, purpose="batch"))

        file = await self._api(upload)
        batch = Batch(spool.batch_id, file.id, spool.size, "creating")
        values = {"state": batch.state, "remote": batch.remote, "size": batch.size}
        await self.ledger.call(table.set_batch, batch_id=batch.id, **values)
        remote = await self._create(batch)
        if remote is None:
            await self._give_up_in_doubt(batch, "the endpoint did not confirm and does not list")
        else:
            await self.ledger.call(table.set_batch, batch_id=batch.id, state="open", remote=remote)

    async def _create(self, batch: Batch) -> str | None:
        """Return the endpoint's name of a batch that it is asked to make; None where it may have made it unseen."""

        async def create() -> str:
            try:
                remote = await _check_has_id(
                    self.client.openai.batches.create(
                        input_file_id=str(batch.remote),
                        endpoint="/v1/chat/completions",
                        completion_window="24h",
                        metadata={"deep_batch": batch.id},
                    )
                )
            except Exception:
                names = await self._listed([batch])
                if batch.id not in names:
                    raise
                return names[batch.id]
            return remote.id

        try:
            return await self._api(create, once=AMBIGUOUS)
        except EndpointError as error:
            if _kind_of(error) not in AMBIGUOUS:
                if _kind_of(error) is not None:
                    await self.ledger.call(release_batch, batch_id=batch.id, run=self.ledger.run)
                raise
        return (await self._find([batch])).get(batch.id)

    async def _collect_all(self, requests: Callable[[], Iterable[Request]], *, last: bool) -> None:
        """Wait for every batch of this run and enter its results."""
        for batch in await self._batches():
            if batch.unconfirmed:
                continue
            try:
                state = await self._wait_for(batch)
                if state is None:
                    return
                await self._collect(batch, state, requests(), last=last)
            except EndpointError as error:
                await self._give_up(batch, error)

    async def _give_up(self, batch: Batch, error: EndpointError) -> None:
        """Give up on a batch that the endpoint no longer knows, where that is asked for; else raise."""
        if _kind_of(error) != "no_model":  # 404
            raise error
        if "expired" not in self.ledger.retry:
            raise EndpointError(
                f"`batch` must be known to the endpoint, with its files. Got {error.__cause__} for "
                f"{printable(str(batch.remote))}. Check the key and the base URL. Or give up its {batch.size} "
                "requests by --retry-failed expired, which may pay each twice."
            ) from None
        await self._give_up_in_doubt(batch, "the endpoint no longer knows")

    async def _wait_for(self, batch: Batch) -> "RemoteBatch | None":
        """Return a batch that has ended; None where the run is stopped first."""
        remote, looks = str(batch.remote), 0
        while not self._stop_event.is_set():
            state = await self._api(lambda: _check_has_id(self.client.openai.batches.retrieve(remote)))
            if state.status in ENDED_STATES:
                looks += 1
                # One that counts answers may name no file of them for a moment after its end.
                if state.request_counts is None or not _n_answers(state) or state.output_file_id:
                    return state
                if looks >= MAX_LOOKS:
                    raise EndpointError(
                        f"`batch` must come with its results. Got {printable(remote)}, which is {state.status} and "
                        "names no file of them. Run the same command again later: nothing is asked twice."
                    )
            await self._pause()
        return None

    async def _collect(self, batch: Batch, state: "RemoteBatch", requests: Iterable[Request], *, last: bool) -> None:
        """Enter the results of a batch that has ended; raise where the endpoint refused it."""
        if state.status == "failed" and not state.output_file_id:
            await self.ledger.call(release_batch, batch_id=batch.id, run=self.ledger.run)
            errors = getattr(state.errors, "data", None)
            first = errors[0] if isinstance(errors, list) and errors else None
            why = str(getattr(first, "message", None) or getattr(first, "code", None) or "no reason given")
            raise EndpointError(f"`batch` was refused: {self.client.redact.line(why)}.")
        with ExitStack() as stack:
            lines = await self._results(batch, state, stack)
            strange = lines.keys()
            for chunk in chunks(requests, CHUNK):
                by_key = {request.key: request for request in chunk}
                await self._enter(batch, lines, by_key, last=last)
                strange -= by_key.keys()
        self.tally.lines_passed_over += lines.broken + len(strange)
        if not await self.ledger.call(table.n_waiting, batch_id=batch.id):
            await self.ledger.call(table.set_batch, batch_id=batch.id, state="collected")

    async def _results(self, batch: Batch, state: "RemoteBatch", stack: ExitStack) -> FileResults:
        """Return the lines of a batch's own files, one an answer or more, lest what is paid be taken for lost."""
        names = (state.output_file_id, state.error_file_id)  # answers and errors come apart; either may be missing
        for look in range(MAX_LOOKS):
            if look:
                await self._pause()
            files = [stack.enter_context(await self._download(name)) for name in names if name]
            lines = stack.enter_context(FileResults(files, self.client.redact))
            keys = lines.keys()
            own = await self.ledger.call(table.may_be_of, batch_id=batch.id, keys=keys)
            result = len(keys) + lines.broken if keys and own else 0
            if result >= _n_answers(state) or "expired" in self.ledger.retry:
                return lines
        others = "" if own or not keys else f", and {len(keys)} of other requests"
        raise EndpointError(
            f"`batch` must come with its results. Got {result} results for {_n_answers(state)} or more of "
            f"{printable(str(batch.remote))}{others}. Run the same command again later: nothing is asked twice. "
            "--retry-failed expired asks the missing ones again, and may pay twice."
        )

    async def _download(self, name: str) -> IO[bytes]:
        """Return the content of a file of the endpoint in one without a name."""

        async def fetch() -> IO[bytes]:
            async with self.client.openai.files.with_streaming_response.content(name) as response:
                with ExitStack() as failing:
                    file = failing.enter_context(tempfile.TemporaryFile())
                    async for part in response.iter_bytes():
                        file.write(part)
                    failing.pop_all()
            return file

        return await self._api(fetch)

    async def _enter(self, batch: Batch, lines: FileResults, requests: Mapping[str, Request], *, last: bool) -> None:
        """Enter the results of those of `requests` that were in the batch."""
        numbers = await self.ledger.call(table.numbers_in, batch_id=batch.id, keys=list(requests))
        writes, failed = [], []
        for key, (number, longer) in numbers.items():
            job = Job(requests[key], key, "", number)
            job = job.with_longer_limit() if longer else job
            try:
                writes.append(self._answer(job, lines.get(key), last=last))
            except CallError as error:
                failed.append((job, error))
        for job, failure in failed:  # after the answers, which show what the model takes
            contradicts = failure.message == CONTRADICTS
            self.tally.contradictions += contradicts
            writes.append(self._fail(job, failure, last=last or contradicts))
        await asyncio.gather(*writes)

    def _answer(self, job: Job, entry: "BatchLine", *, last: bool) -> WriteFuture:
        reply, _ = reply_in(entry)
        cost = self.terms.prices.cost([reply.model, job.request.model], reply.tokens, batch=True)
        reply = replace(reply, cost=cost)
        judgment, message = self.read(job.request, reply)
        self._settle(job, cost)
        return self.enter_answer(job, reply, judgment, message, again=not last and self.is_cut(job, judgment, reply))

    def _settle(self, job: Job, cost: float | None) -> None:
        """Give back what a request has reserved; a cost that is not known is taken to be its worst case."""
        body = self.body_of(job.request)
        worst = worst_case(self.terms.prices, body, json_text(body), batch=True)
        self.terms.budget.settle(worst, worst if cost is None else cost, job.request.model)

    def _fail(self, job: Job, error: CallError, *, last: bool) -> WriteFuture:
        self._settle(job, None if error.kind in AMBIGUOUS else 0.0)
        quirks, helps = self.learn_from(job, error)
        again = not last and (self.terms.retry.retries(error) or helps)
        return self.enter_failure(job, error, quirks, again=again)


def _kind_of(error: EndpointError) -> str | None:
    """Return the kind of failure that made a call about batches fail for good, if it was one."""
    cause = error.__cause__
    return cause.kind if isinstance(cause, CallError) else None


def _n_answers(state: "RemoteBatch") -> int:
    """Return how many answers a batch counts; where it counts none that can be read, one if it says it is complete."""
    n = getattr(state.request_counts, "completed", None)
    return n if isinstance(n, int) else int(state.status == "completed")


async def _check_has_id(answer: Awaitable[T]) -> T:
    """Return an answer about a file or a batch, which the openai client takes as it comes; it must at least have an id.

    Raises
    ------
    CallError
        It has none, or a state that is no word.
    """
    response = await answer
    if not isinstance(getattr(response, "id", None), str):
        raise CallError("broken", "the answer names neither a file nor a batch")
    if not isinstance(getattr(response, "status", None), str | None):
        raise CallError("broken", "the answer has a status that is not text")
    return response
