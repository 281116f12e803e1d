"""Results of exported requests, entered in the ledger: in part, in any order, twice, or contradicting itself."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count, islice

from deep.llm import _batch_table as table
from deep.llm._batch_lines import BatchLine, reply_in
from deep.llm._batch_table import Standing
from deep.llm._caller import Session
from deep.llm._errors import CallError, RequestState
from deep.llm._file_results import FileResult, FileResults
from deep.llm._lease import Job
from deep.llm._reply import Reply
from deep.llm._request import Request
from deep.llm._writer import Written

CHUNK = 500

CONTRADICTS = "the files have two answers to this request, which contradict each other"


@dataclass(frozen=True, slots=True)
class _Change:
    """A change by the results of one request: the attempt that ends, how, and answers to be kept beside it."""

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
class BatchImporter(Session):
    """Enters the results in files.

    An answer is entered wherever its request has none yet, also where that was not exported or was given up since;
    an error only for the attempt that it is of. Where the ledger has another answer, its own stays, and the other is
    kept beside it.

    Parameters
    ----------
    ledger, client, parse, terms, gate, tally
        As of a session; nothing is sent.
    results : FileResults

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
        stream = iter(requests)
        while chunk := list(islice(stream, CHUNK)):
            asked = {request.key: request for request in chunk}
            found = self.results.of(list(asked))
            now = await self.ledger.call(table.standing_of, keys=list(asked))
            decided = (self._decide(asked[key], found.get(key, ()), now.get(key)) for key in asked)
            await self._carry_out([change for change in decided if change is not None], now)

    async def _carry_out(self, changes: Sequence[_Change], now: Mapping[str, Standing]) -> None:
        """Write what changes; a request that was never exported gets its row and its attempt first."""
        unknown = [change.request for change in changes if change.request.key not in now]
        if unknown:
            await self.ledger.lease(unknown)
        await asyncio.gather(*(self.ledger.start(change.job) for change in changes if change.is_new))
        written: list[Written] = []
        for change in changes:
            numbers = count(min(change.least, 0) - 1, -1)
            kept = zip(change.beside, numbers, strict=False)
            written += [self.ledger.keep_beside(change.request.key, reply, number) for reply, number in kept]
            if isinstance(change.end, CallError):
                written.append(self._fail(change.job, change.end))
            elif change.end is not None:
                written.append(self._answer(change.job, change.end))
        await asyncio.gather(*written)

    def _decide(self, request: Request, found: Sequence[FileResult], now: Standing | None) -> _Change | None:
        """Return the change that the results of a request make, and count where it stands."""
        replies, errors, last = self._read(request, found)
        known = set() if now is None else {_digest(json.loads(text)) for text in now.replies}
        fresh = [reply for digest, reply in replies.items() if digest not in known]
        state: RequestState = "queued" if now is None else now.state
        least = 0 if now is None else now.least
        if now is not None and (state == "done" or (state == "failed" and (known or not fresh))):
            self.before += bool(found)
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
        self, request: Request, found: Sequence[FileResult]
    ) -> tuple[dict[bytes, Reply], list[tuple[int, CallError]], dict[int, Reply]]:
        """Return the answers that differ, each error with the attempt that it is of, and an answer of each attempt.

        An answer that was cut off contradicts no other.
        """
        replies: dict[bytes, Reply] = {}
        errors, by_number = [], dict[int, Reply]()
        for result in found:
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

    def _answer(self, job: Job, reply: Reply) -> Written:
        judgment, message = self.read(job.request, reply)
        again = self.is_cut(job, judgment)
        self.open += again
        self.count_answer(job, judgment, reply.cost, again=again)
        self.tally.name(job.request.model, reply.model)
        quirks = self.ignored(job.request, self.body_of(job.request), reply)
        return self.ledger.answer(job, reply, judgment, message=message, quirks=quirks, again=again)

    def _fail(self, job: Job, error: CallError) -> Written:
        quirks, helps = self.learn_from(job, error)
        again = (self.terms.retry.retries(error) or helps) and error.message != CONTRADICTS
        state: RequestState = "queued" if again else "done" if error.kind == "refused" else "failed"
        self.open += again
        self.count_end(job, state, error)
        return self.ledger.fail(job, error, state=state, quirks=quirks)


def _digest(body: object) -> bytes:
    """Return a digest of the answer in a reply, without what differs when it is sent twice."""
    answer = body.get("choices") if isinstance(body, dict) else body
    return sha256(json.dumps(answer, sort_keys=True).encode()).digest()
