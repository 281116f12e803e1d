"""The ledger: what was asked, what came back, what it cost; written before the request and after the answer."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from deep.llm import _database, _lease, schema
from deep.llm._errors import AMBIGUOUS, CallError, LedgerMovedError, RequestState
from deep.llm._history import read_quirks
from deep.llm._lease import Job, Lease, Leases
from deep.llm._messages import Reply, Request, json_text, storable
from deep.llm._providers import Quirk
from deep.llm._writer import Writer, Written
from deep.llm.schema import AttemptRow, QuirkRow, RequestRow, Write
from deep.records import Judgment

T = TypeVar("T")
P = ParamSpec("P")

# A request is left alone after this many attempts that were lost with their runs: each of them may be on the bill.
DOUBTS = 2


@dataclass(eq=False, repr=False)
class Ledger:
    """The open ledger of one run.

    Parameters
    ----------
    target : str
        A SQLite file, made where there is none, or a ``postgresql+psycopg://`` URL.
    options : mapping
        What this run was asked to do, kept for the record; no secrets.
    at_most_once : bool
        Leave requests alone whose answer may have been lost.
    retry : collection of str
        Classes of failure to ask again: those of `FAILURES`, and ``refused``, ``truncated``, ``unknown``,
        ``unparsable``.

    Attributes
    ----------
    unknown : int
        Requests that were in flight when a run ended, and are asked again save where `at_most_once`.
    in_doubt_twice : int
        Those left alone since that has happened to them `DOUBTS` times; `retry` with ``unknown`` asks them again.
    entered : list of str
        A sentence on each file beside the ledger whose answers were entered as it was opened.
    """

    target: str
    options: Mapping[str, object] = field(default_factory=dict, kw_only=True)
    at_most_once: bool = field(default=False, kw_only=True)
    retry: Collection[str] = field(default=(), kw_only=True)
    run: int = field(default=0, init=False)
    unknown: int = field(default=0, init=False)
    in_doubt_twice: int = field(default=0, init=False)
    entered: list[str] = field(default_factory=list, init=False)
    _kept_in: _database.Database = field(init=False)
    _writer: Writer = field(init=False)
    _leases: Leases = field(init=False)
    _resources: AsyncExitStack = field(init=False)

    def __post_init__(self) -> None:
        self.name = _database.describe_ledger(self.target)
        self.shared = _database.is_shared(self.target)

    async def __aenter__(self) -> "Ledger":
        self._kept_in = _database.database_of(self.target)
        # Closed in the opposite order: the lock is the last to go, once nothing is written any more.
        async with AsyncExitStack() as stack:
            if not self.shared:
                stack.callback(_database.FileLock(self.target).release)
            engine = _database.engine_for(self.target, create=True, database=self._kept_in)
            reserve = files = None
            if not self.shared:
                reserve = _database.Reserve(self.target)
                stack.callback(reserve.release)
            connection = _database.connect(engine, self.name)
            if not self.shared:
                # Before the files are remembered as they are: what enters changes the ledger.
                self.entered = _database.enter_kept(connection, self.target)
                files = _database.LedgerFiles(self.target)
            shared = self._kept_in.writer(connection, self.name)
            self._writer = shared or Writer(connection, self.name, reserve, files)
            stack.push_async_callback(self._writer.close)
            self.run = await self.call(self._begin_run)
            self._leases = Leases(self.run, self._kept_in, self.at_most_once, self.retry)
            await self.recover()
            self._resources = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        async with self._resources:
            await self.call(self._end_run)
        if isinstance(self._writer.full, LedgerMovedError):
            raise self._writer.full  # its votes are not to be read by its name

    async def call(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function` in a transaction of its own."""
        return await self._writer.call(lambda connection: function(connection, *args, **kwargs))

    def _check_room(self) -> None:
        """Raise where the ledger's last room is for requests in flight."""
        if self._writer.full is not None:
            raise self._writer.full

    def _begin_run(self, connection: Connection) -> int:
        row = {"started": time.time(), "options": json_text(dict(self.options))}
        # The number comes from the database: on a shared ledger two runs may begin at one moment.
        run = connection.execute(schema.runs.insert().returning(schema.runs.c.id), row).scalar_one()
        self._kept_in.lock_run(connection, int(run))
        return int(run)

    def live_runs(self, connection: Connection) -> set[int]:
        """Return the runs that are alive, this one among them."""
        return self._kept_in.live_runs(connection, self.run)

    def _end_run(self, connection: Connection) -> None:
        _mark_unknown(connection, schema.requests.c.owner == self.run)
        runs = schema.runs
        connection.execute(update(runs).where(runs.c.id == self.run).values(ended=time.time()))

    def _recover(self, connection: Connection) -> tuple[int, int]:
        """Mark requests that dead runs had in flight as unknown, or failed at last; return how many of each."""
        table = schema.requests
        self._leases.live = self.live_runs(connection)
        # In this order: what has just become unknown counts among the doubts.
        _mark_unknown(connection, table.c.owner.not_in(self._leases.live))
        _lease.release_unmade(connection, self._leases.live)
        _give_up_doubts(connection)
        is_lost = (schema.OPEN, (table.c.state == "unknown") | (table.c.failure == "unknown"))
        result = connection.execute(select(table.c.state, func.count()).where(*is_lost).group_by(table.c.state))
        n = {state: int(count) for state, count in result}
        unknown, twice = n.get("unknown", 0), n.get("failed", 0)
        return (unknown + twice, 0) if self.at_most_once or "unknown" in self.retry else (unknown, twice)

    async def recover(self) -> None:
        """Look for requests that another run died over."""
        self.unknown, self.in_doubt_twice = await self.call(self._recover)

    async def lease(self, requests: Sequence[Request], *, again: bool = False, most: int | None = None) -> Lease:
        """Make this run the one that asks `requests`, save those that are settled or being asked already.

        With `again`, what this run has put back into the queue is handed out once more; with `most`, about so many are
        taken, and the rest is left.
        """
        self._check_room()
        lease = partial(self._leases.lease, requests=requests, again=again, most=most)
        return await self._writer.call(lease, on_disk=False)  # no lease is anything before a start, which is flushed

    def start(
        self, job: Job, *, changed_body: str | None = None, worst_case: float | None = None, batch: str | None = None
    ) -> Written:
        """Write down that the job's attempt is about to be sent; done once that is on disk.

        For the call of a function it is done once that outlives the process, which such a call may end. A power cut
        ends the call too, so that it is made again by the next run in any case but `at_most_once`.
        """
        self._check_room()
        attempt = AttemptRow(key=job.key, number=job.number, run=self.run, started=time.time(), worst_case=worst_case)
        request = RequestRow(key=job.key, state="sent", attempts=job.number, batch=batch)
        if changed_body is None and job.longer:
            changed_body = job.text
        if changed_body is not None or job.number > 1:  # PostgreSQL would write the whole body once more
            request["changed_body"] = changed_body
        writes = Write(schema.attempts, "insert", attempt), Write(schema.requests, "update", request)
        return self._writer.write(writes, on_disk=job.request.call is None or self.at_most_once)

    def answer(
        self,
        job: Job,
        reply: Reply,
        judgment: Judgment | None,
        message: str | None = None,
        quirks: Iterable[Quirk] = (),
        again: bool = False,
    ) -> Written:
        """Write down the reply to the job's attempt, and its judgment; None where it has no vote of its own.

        With `again` the reply was cut off, and the request goes back into the queue, to be asked with a longer limit.
        """
        attempt = _answered_row(job.key, job.number, reply)
        request = _request_row(job, "queued" if again else "done") | {"message": storable(message)}
        if judgment is not None:
            request |= {"vote": judgment.vote, "reason": judgment.reason, "score": judgment.score}
        return self._end(job, attempt, request, quirks)

    def fail(
        self,
        job: Job,
        error: CallError,
        state: RequestState,
        seconds: float | None = None,
        quirks: Iterable[Quirk] = (),
    ) -> Written:
        """Write down why the job's attempt brought no answer; `state` is queued, failed, unknown or done.

        Where an earlier reply was cut off, that one stands.
        """
        attempt = AttemptRow(key=job.key, number=job.number, outcome=error.kind, seconds=seconds)
        attempt |= {"reached": error.reached, "status": error.status, "retry_after": error.retry_after}
        attempt |= {"message": storable(error.message), "reply": storable(error.body)}
        request = _request_row(job, "done" if job.longer and state != "queued" else state)
        if job.longer:
            return self._end(job, attempt, request | {"vote": -1, "reason": "truncated"}, quirks)
        if state != "queued":
            request |= {"failure": error.kind, "message": storable(error.message)}
        if error.kind == "refused":
            request |= {"failure": None, "vote": -1, "reason": "refused"}
        return self._end(job, attempt, request, quirks)

    def keep_beside(self, key: str, reply: Reply, number: int) -> Written:
        """Write down a paid answer beside the one that counts; its number is below 0."""
        row = _answered_row(key, number, reply) | {"run": self.run, "started": time.time()}
        return self._writer.write([Write(schema.attempts, "insert", row)])

    def _end(self, job: Job, attempt: AttemptRow, request: RequestRow, quirks: Iterable[Quirk]) -> Written:
        # A run whose ledger was moved away goes on in a copy that may lack these rows.
        def whole_attempt() -> AttemptRow:
            return AttemptRow(key=job.key, number=job.number, run=self.run, started=time.time())

        def whole_request() -> RequestRow:
            original = job.cut or job.request
            row = self._leases.new_row(job.key, original, json_text(original.body))
            return row | {"attempts": job.number, "changed_body": job.text if job.longer else None}

        writes = [
            Write(schema.attempts, "update", attempt, whole_attempt),
            Write(schema.requests, "update", request, whole_request),
            *(Write(schema.quirks, "insert_or_keep", _quirk_row(quirk)) for quirk in quirks),
        ]
        return self._writer.write(writes, on_disk=job.request.call is None or attempt["outcome"] == "answered")

    async def known_quirks(self) -> list[Quirk]:
        """Return the quirks that this and earlier runs have written down."""
        return await self.call(read_quirks)

    async def spent_by_others(self) -> float:
        """Return the dollars that all runs but this one may have cost.

        Answers count at their price, or at their worst case where the price is not known; so do attempts whose
        answer may have been lost.
        """
        table = schema.attempts
        is_billed = table.c.outcome.is_(None) | table.c.outcome.in_(["answered", *AMBIGUOUS])
        dollars = func.sum(func.coalesce(table.c.cost, table.c.worst_case))
        # This run's own spending is the budget's own count, which also knows what is in flight.
        total = select(dollars).where(is_billed & (table.c.run != self.run))
        return await self.call(lambda connection: float(connection.execute(total).scalar() or 0.0))


def _mark_unknown(connection: Connection, owner: ColumnElement[bool]) -> None:
    """Turn the requests in flight of some runs into unknown ones, and their open attempts too.

    What was unknown, and was not sent by the run that was to ask it again, is as unknown as it was.
    """
    requests, attempts = schema.requests, schema.attempts
    is_unsent = and_(schema.OPEN, requests.c.state == "queued", requests.c.failure == "unknown")
    connection.execute(update(requests).where(owner & is_unsent).values(state="unknown"))
    in_flight = select(requests.c.key).where(owner, schema.OPEN, requests.c.state == "sent", requests.c.batch.is_(None))
    for keys in _database.in_parts(connection.execute(in_flight).scalars().all()):
        open_attempts = attempts.c.key.in_(keys) & attempts.c.outcome.is_(None)
        connection.execute(update(attempts).where(open_attempts).values(outcome="unknown"))
        connection.execute(update(requests).where(requests.c.key.in_(keys)).values(state="unknown", failure="unknown"))


def _give_up_doubts(connection: Connection) -> None:
    """Turn unknown requests into failed ones where as many attempts as may be paid unasked were lost.

    Where an earlier reply was cut off, that one stands.
    """
    requests, attempts = schema.requests, schema.attempts
    is_lost = (attempts.c.key == requests.c.key) & (attempts.c.outcome == "unknown")
    doubts = select(func.count()).select_from(attempts).where(is_lost).scalar_subquery()
    given_up = update(requests).where(schema.OPEN, requests.c.state == "unknown", doubts >= DOUBTS)
    connection.execute(given_up.where(requests.c.reason == "truncated").values(state="done", failure=None))
    connection.execute(given_up.values(state="failed", failure="unknown"))


def _answered_row(key: str, number: int, reply: Reply) -> AttemptRow:
    row = AttemptRow(key=key, number=number, outcome="answered", seconds=reply.seconds)
    row |= {"status": 200, "reply": storable(reply.raw), "answered_by": storable(reply.model)}
    row |= {"finish_reason": storable(reply.finish_reason), "cost": reply.cost}
    row |= {"input_tokens": reply.tokens.get("input"), "cached_tokens": reply.tokens.get("cached")}
    return row | {"output_tokens": reply.tokens.get("output"), "reasoning_tokens": reply.tokens.get("reasoning")}


def _request_row(job: Job, state: RequestState) -> RequestRow:
    """Return the end of a request, without what an earlier attempt has left."""
    row = RequestRow(key=job.key, state=state, finished=time.time(), failure=None, message=None)
    return row | {"vote": None, "reason": None, "score": None}


def _quirk_row(quirk: Quirk) -> QuirkRow:
    row = QuirkRow(endpoint=quirk.endpoint, model=quirk.model, parameter=quirk.parameter, action=quirk.action)
    return row | {"message": storable(quirk.message), "noticed": time.time()}
