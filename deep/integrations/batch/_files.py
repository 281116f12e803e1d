"""Batch files without sending: shards that any engine of batches runs, and a ledger that knows what is in them."""

import asyncio
import json
import os
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count, islice
from pathlib import Path
from typing import BinaryIO

from deep.asking import chunks
from deep.exceptions import InputError
from deep.integrations.batch import _results as table
from deep.integrations.batch._results import (
    Batch,
    BatchLine,
    BatchSession,
    FileResult,
    FileResults,
    Standing,
    custom_id,
    reply_in,
)
from deep.llm import CallError, Job, Reply, Request, RequestState, Session, WriteFuture, json_text, worst_case

SHARD_REQUESTS = 50_000
SHARD_BYTES = 190 * 1024**2
"""The limits of one file where engines have some: those of OpenAI's Batch API, in bytes a little below its 200 MB."""

# Requests that are looked up in the ledger together: more are fewer queries, and more bodies in memory at once.
CHUNK = 500
# The ending of a shard that is not complete.
PART_ENDING = ".part"


@dataclass(slots=True)
class _Shard:
    """A file of requests to one LLM, in the making.

    Parameters
    ----------
    batch_id : str
        Its name in the ledger.
    path : Path
        The name that it has once it is complete.
    file : binary file
        The part of it that is written, under :attr:`part`.
    size, n_bytes : int
        Requests in it, and bytes.
    """

    batch_id: str
    path: Path
    file: BinaryIO
    size: int = 0
    n_bytes: int = 0

    @property
    def part(self) -> Path:
        return self.path.with_name(self.path.name + PART_ENDING)


@dataclass(eq=False)
class BatchExporter(Session):
    """Writes requests to OpenAI batch files, one LLM a file, and enters them in the ledger as sent.

    A shard has its name once the ledger knows all that is in it; a run that dies before leaves a ``.part`` file whose
    requests the next run takes back.

    Parameters
    ----------
    ledger, client, parse, terms, gate, tally
        As of a session; nothing is sent.
    endpoint : str
        The endpoint's name.
    folder : Path
        Where the files are written; made where there is none.
    most_requests, most_bytes : int
        Of one shard.

    Attributes
    ----------
    shards : list of Path
        Those that were written.
    exported, waiting : int
        Requests that were written now, and those that were in files, or being asked, already.
    stopped : bool
        Whether the budget has no room for more.
    """

    endpoint: str
    folder: Path
    most_requests: int = SHARD_REQUESTS
    most_bytes: int = SHARD_BYTES
    shards: list[Path] = field(default_factory=list, init=False)
    exported: int = field(default=0, init=False)
    waiting: int = field(default=0, init=False)
    stopped: bool = field(default=False, init=False)
    _making: dict[str, _Shard] = field(default_factory=dict, init=False)

    async def run(self, requests: Iterable[Request]) -> None:
        """Write whatever is to be asked.

        Parameters
        ----------
        requests : iterable of Request
            Read lazily; those of one document stay together.

        Raises
        ------
        InputError
            A file cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        await self._mend()
        stream = iter(requests)
        while not self.stopped and (chunk := list(islice(stream, CHUNK))):
            lease = await self.ledger.lease(chunk)
            for request, row in lease.settled:
                self.tally.find(request.voter, row)
            self.tally.found += len(lease.repeated)
            self.waiting += len(lease.elsewhere)
            writes = [done for job in lease.jobs if (done := await self._add(job)) is not None]
            await asyncio.gather(*writes)
        for llm in list(self._making):
            await self._close(llm)

    async def _mend(self) -> None:
        """Name the shards that the ledger knows, and take back the requests of those that it does not."""
        for name, state in await self.ledger.call(table.mend_exports, self.endpoint, self.ledger.live_runs):
            final = self.folder / name
            part = final.with_name(final.name + PART_ENDING)
            if part.exists():
                part.rename(final) if state == "exported" else part.unlink()

    async def _add(self, job: Job) -> WriteFuture | None:
        """Add a request to the shard of its LLM; None where the budget has no room for it."""
        body = self.body_of(job.request)
        text = job.text if body is job.request.body else json_text(body)
        worst = worst_case(self.terms.prices, body, text)
        if self.stopped or not self.terms.budget.fits(worst, job.request.model):
            self.stopped = True
            return None
        await self.terms.budget.admit(worst, job.request.model)
        line = {"custom_id": custom_id(job.key, job.number), "method": "POST", "url": "/v1/chat/completions"}
        raw = json_text({**line, "body": body}).encode() + b"\n"
        shard = await self._shard(job.request.model, len(raw))
        shard.file.write(raw)
        shard.size += 1
        shard.n_bytes += len(raw)
        self.exported += 1
        changed = None if body is job.request.body else text
        return self.ledger.start(job, changed_body=changed, worst_case=worst, batch=shard.batch_id)

    async def _shard(self, llm: str, more: int) -> _Shard:
        """Return the shard of an LLM that has room for so many bytes more."""
        shard = self._making.get(llm)
        if shard is not None and (shard.size >= self.most_requests or shard.n_bytes + more > self.most_bytes):
            await self._close(llm)
            shard = None
        if shard is None:
            batch_id = uuid.uuid4().hex
            name = f"{re.sub(r'[^A-Za-z0-9]+', '-', llm).strip('-')[:60] or 'llm'}-{len(self.shards) + 1:05d}"
            path = self.folder / f"{name}-{batch_id[:12]}.jsonl"
            entry = Batch(batch_id, path.name, 0, "exporting")
            await self.ledger.call(table.add_batch, entry, self.endpoint, self.ledger.run)
            shard = self._making[llm] = _Shard(batch_id, path, _opened(path.with_name(path.name + PART_ENDING)))
        return shard

    async def _close(self, llm: str) -> None:
        """Bring a shard to the disk, then to the ledger, and then to its name."""
        shard = self._making.pop(llm)
        shard.file.flush()
        os.fsync(shard.file.fileno())
        shard.file.close()
        await self.ledger.call(table.set_batch, batch_id=shard.batch_id, size=shard.size, state="exported")
        shard.part.rename(shard.path)
        self.shards.append(shard.path)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise InputError(
            f"`batch_out` must be a writable folder. Got {str(path.parent)!r}: {error.strerror}."
        ) from None


# Why a request with two answers counts as failed; both are kept.
CONTRADICTS = "the files have two answers to this request, which contradict each other"


@dataclass(frozen=True, slots=True)
class _Change:
    """A change by the results of one request: the attempt that ends, how, and answers to be kept beside it.

    Parameters
    ----------
    request : Request
        What was asked.
    number : int
        Of the attempt.
    is_new : bool
        Whether the attempt is entered with its end: it was not the one in the file.
    end : Reply or CallError or None
        How it ends; None: only answers are kept beside what the ledger has.
    beside : sequence of Reply
        Answers that do not count.
    least : int
        The least number of the request's attempts, below which answers beside are entered.
    longer : bool
        Whether it was sent with a longer limit, since its reply was truncated before.
    """

    request: Request
    number: int
    is_new: bool
    end: Reply | CallError | None
    beside: Sequence[Reply] = ()
    least: int = 0
    longer: bool = False

    @property
    def job(self) -> Job:
        job = Job(self.request, self.request.key, "", self.number)
        return job.with_longer_limit() if self.longer else job


@dataclass(eq=False)
class BatchImporter(BatchSession):
    """Enters the results in files.

    An answer is entered wherever its request has none yet, also where that was not exported or was given up since;
    an error only for the attempt that it is of. Where the ledger has another answer, its own stays, and the other is
    kept beside it.

    Parameters
    ----------
    ledger, client, parse, terms, gate, tally
        As of a session; nothing is sent.
    results : FileResults
        The results in the files, to be looked up by request.

    Attributes
    ----------
    entered, before : int
        Requests whose results were entered now, and before.
    waiting, open : int
        Requests that are still in files or being asked elsewhere, and those to be exported or asked.
    """

    results: FileResults
    entered: int = field(default=0, init=False)
    before: int = field(default=0, init=False)
    waiting: int = field(default=0, init=False)
    open: int = field(default=0, init=False)

    async def run(self, requests: Iterable[Request]) -> None:
        """Enter the results of requests, which are read lazily."""
        for chunk in chunks(requests, CHUNK):
            by_key = {request.key: request for request in chunk}
            result = self.results.of(list(by_key))
            now = await self.ledger.call(table.standing_of, keys=list(by_key))
            decided = (self._decide(by_key[key], result.get(key, ()), now.get(key)) for key in by_key)
            await self._carry_out([change for change in decided if change is not None], now)

    async def _carry_out(self, changes: Sequence[_Change], now: Mapping[str, Standing]) -> None:
        """Write what changes; a request that was never exported gets its row and its attempt first."""
        unknown = [change.request for change in changes if change.request.key not in now]
        if unknown:
            await self.ledger.lease(unknown)
        await asyncio.gather(*(self.ledger.start(change.job) for change in changes if change.is_new))
        writes: list[WriteFuture] = []
        for change in changes:
            numbers = count(min(change.least, 0) - 1, -1)
            pairs = zip(change.beside, numbers, strict=False)
            writes += [self.ledger.keep_beside(change.request.key, reply, number) for reply, number in pairs]
            if isinstance(change.end, CallError):
                writes.append(self._fail(change.job, change.end))
            elif change.end is not None:
                writes.append(self._answer(change.job, change.end))
        await asyncio.gather(*writes)

    def _decide(self, request: Request, results: Sequence[FileResult], now: Standing | None) -> _Change | None:
        """Return the change that the results of a request make, and count where it stands."""
        replies, errors, last = self._read(request, results)
        digests = set() if now is None else {_digest(json.loads(text)) for text in now.replies}
        fresh = [reply for digest, reply in replies.items() if digest not in digests]
        state: RequestState = "queued" if now is None else now.state
        least = 0 if now is None else now.least
        if now is not None and (state == "done" or (state == "failed" and (digests or not fresh))):
            self.before += bool(results)
            self.tally.contradictions += bool(fresh)
            self.tally.find(request.voter, now.row)
            return _Change(request, 0, False, None, fresh, least) if fresh else None
        if now is not None and state == "sent" and not now.exported:  # another machine is asking it
            self.waiting += 1
            return None
        in_file = now is not None and state == "sent"
        number = (0 if now is None else now.attempts) + (not in_file)
        longer = now is not None and now.row["reason"] == "truncated"
        if longer and in_file and number in last:  # it may be cut off at the same place again
            fresh = fresh or [last[number]]
        if fresh:
            self.entered += 1
            if len(fresh) == 1:
                return _Change(request, number, not in_file, fresh[0], longer=longer)
            self.tally.contradictions += 1
            return _Change(request, number, not in_file, CallError("broken", CONTRADICTS), fresh, least, longer)
        error = next((error for of, error in errors if of == number), None) if in_file else None
        if error is not None:
            self.entered += 1
            return _Change(request, number, False, error, longer=longer)
        self.waiting += in_file
        self.open += not in_file
        return None

    def _read(
        self, request: Request, results: Sequence[FileResult]
    ) -> tuple[dict[bytes, Reply], list[tuple[int, CallError]], dict[int, Reply]]:
        """Return the answers that differ, each error with the attempt that it is of, and an answer of each attempt.

        An answer that was cut off contradicts no other.
        """
        replies: dict[bytes, Reply] = {}
        errors, by_number = [], dict[int, Reply]()
        for result in results:
            try:
                digest, reply = self._reply(request, result.line)
                replies.setdefault(digest, reply)
                by_number.setdefault(result.number, reply)
            except CallError as error:
                errors.append((result.number, error))
        if len(replies) > 1:
            whole = {digest: reply for digest, reply in replies.items() if not self._is_truncated(request, reply)}
            replies = whole or dict(list(replies.items())[:1])
        return replies, errors, by_number

    def _is_truncated(self, request: Request, reply: Reply) -> bool:
        judgment, _ = self.read(request, reply)
        return judgment is not None and judgment.reason == "truncated"

    def _reply(self, request: Request, line: BatchLine) -> tuple[bytes, Reply]:
        reply, body = reply_in(line)
        cost = self.terms.prices.cost([reply.model, request.model], reply.tokens, batch=True)
        return _digest(body), replace(reply, cost=cost)

    def _answer(self, job: Job, reply: Reply) -> WriteFuture:
        judgment, message = self.read(job.request, reply)
        again = self.is_cut(job, judgment, reply)
        self.open += again
        return self.enter_answer(job, reply, judgment, message, again=again)

    def _fail(self, job: Job, error: CallError) -> WriteFuture:
        quirks, helps = self.learn_from(job, error)
        again = (self.terms.retry.retries(error) or helps) and error.message != CONTRADICTS
        self.open += again
        return self.enter_failure(job, error, quirks, again=again)


def _digest(body: object) -> bytes:
    """Return a digest of the answer in a reply, without what differs when it is sent twice."""
    answer = body.get("choices") if isinstance(body, dict) else body
    return sha256(json.dumps(answer, sort_keys=True).encode()).digest()
