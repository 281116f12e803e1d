"""The ledger: what was asked, what came back, what it cost; written before the request and after the answer."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, func, select, update
from sqlalchemy import text as sql

from deep._records import Judgment
from deep.llm import _schema
from deep.llm import _statements as statements
from deep.llm._batch_table import Batch, open_batches
from deep.llm._database import LOCK_CLASS, FileLock, connect, describe_ledger, engine_for, is_shared
from deep.llm._errors import AMBIGUOUS, CallError
from deep.llm._quirks import Quirk
from deep.llm._reply import Reply
from deep.llm._request import Request, json_text, storable
from deep.llm._writer import Writer

__all__ = ["Claim", "Job", "Ledger"]

T = TypeVar("T")


@dataclass(slots=True)
class Job:
    """A request that this run has to ask.

    Parameters
    ----------
    request : Request
    key : str
    text : str
        The requested body as JSON.
    number : int
        Attempts so far.
    """

    request: Request
    key: str
    text: str
    number: int


@dataclass(slots=True)
class Claim:
    """What the ledger says of a handful of requests.

    Parameters
    ----------
    jobs : list of Job
        To be asked by this run.
    settled : list of (Request, mapping)
        Answered, failed or left unknown already; the mapping holds `state`, `vote`, `reason` and `failure`.
    elsewhere : int
        Requests that another live run is asking.
    repeated : int
        Requests with the key of one that this run is asking: the same question about two items.
    """

    jobs: list[Job] = field(default_factory=list)
    settled: list[tuple[Request, Mapping[str, Any]]] = field(default_factory=list)
    elsewhere: int = 0
    repeated: int = 0


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
        Classes of failure to ask again: those of `FAILURES`, and ``refused``, ``truncated``, ``unparsable``.
    """

    def __init__(
        self,
        target: str,
        *,
        options: Mapping[str, Any] | None = None,
        at_most_once: bool = False,
        retry: Collection[str] = (),
    ) -> None:
        self.name = describe_ledger(target)
        self.at_most_once = at_most_once
        self.shared = is_shared(target)
        self._target = target
        self._options = dict(options or {})
        self._retry = frozenset(retry)
        self.run = 0
        self.unknown = 0
        self._lock: FileLock | None = None
        self._writer: Writer | None = None

    async def __aenter__(self) -> "Ledger":
        self._lock = None if self.shared else FileLock(self._target)
        try:
            engine = engine_for(self._target, create=True)
            self._writer = Writer(connect(engine, self.name), self.name, statements.ORDER)
            self.run = await self.call(self._begin_run)
            self.unknown = await self.call(self._recover)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.call(self._end_run)
        finally:
            await self._close()

    async def _close(self) -> None:
        if self._writer is not None:
            await self._writer.close()
        if self._lock is not None:
            self._lock.release()

    async def call(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in a transaction of its own."""
        assert self._writer is not None, "the ledger is not open"
        return await self._writer.call(function)

    def _write(self, *rows: tuple[Any, Mapping[str, Any]]) -> "asyncio.Future[None]":
        assert self._writer is not None, "the ledger is not open"
        return self._writer.write(rows)

    def _begin_run(self, connection: Connection) -> int:
        row = {"started": time.time(), "options": json_text(self._options)}
        run = connection.execute(_schema.runs.insert().returning(_schema.runs.c.id), row).scalar_one()
        if connection.dialect.name == "postgresql":
            connection.execute(sql("SELECT pg_advisory_lock(:lock, :run)"), {"lock": LOCK_CLASS, "run": run})
        return int(run)

    def _end_run(self, connection: Connection) -> None:
        mine = (_schema.requests.c.owner == self.run) & _in_flight()
        _mark_unknown(connection, mine)
        runs = _schema.runs
        connection.execute(update(runs).where(runs.c.id == self.run).values(ended=time.time()))

    def _live_runs(self, connection: Connection) -> set[int]:
        """Return the runs whose process holds its advisory lock; a dead process holds none."""
        if connection.dialect.name != "postgresql":
            return {self.run}
        held = sql(
            "SELECT objid FROM pg_locks JOIN pg_database ON pg_database.oid = database "
            "WHERE locktype = 'advisory' AND granted AND classid = :lock AND datname = current_database()"
        )
        return {self.run, *connection.execute(held, {"lock": LOCK_CLASS}).scalars()}

    def _recover(self, connection: Connection) -> int:
        """Mark what dead runs had in flight as unknown, and return how many requests that leaves."""
        _mark_unknown(connection, _schema.requests.c.owner.not_in(self._live_runs(connection)) & _in_flight())
        unknown = select(func.count()).where(_schema.OPEN, _schema.requests.c.state == "unknown")
        return int(connection.execute(unknown).scalar_one())

    async def recover(self) -> None:
        """Look again for requests that another run died over."""
        self.unknown = await self.call(self._recover)

    async def claim(self, requests: Sequence[Request], *, again: bool = False) -> Claim:
        """Make this run the one that asks `requests`, save those that are settled or being asked already.

        With `again`, what this run has put back into the queue is handed out once more.
        """
        items = [(request.key, request) for request in requests]
        return await self.call(lambda connection: self._claim(connection, items, again))

    def _claim(self, connection: Connection, items: Sequence[tuple[str, Request]], again: bool) -> Claim:
        keyed = dict(items)
        statements.run(connection, statements.INSERT_ITEM, sorted(_item_rows(items), key=_item_order))
        before = _rows_of(connection, keyed)
        mine = {key for key, row in before.items() if row["owner"] == self.run}
        mine_before = {key for key in mine if before[key]["state"] != "queued" or not again}
        texts = {key: json_text(keyed[key].body) for key in sorted(keyed.keys() - before.keys())}
        self._insert(connection, keyed, texts)
        taken = self._take(connection, before)
        after = self._after(connection, keyed, before, taken)
        return self._sort(keyed, items, after, mine_before, texts)

    def _after(
        self, connection: Connection, keyed: Mapping[str, Request], before: Mapping[str, Any], taken: Collection[str]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Return the rows as they are now; where nobody else can have changed them, without looking."""
        if self.shared:
            return _rows_of(connection, keyed)
        ours = {"state": "queued", "owner": self.run}
        fresh = {key: {**ours, "attempts": 0} for key in keyed if key not in before}
        return {**before, **fresh, **{key: {**before[key], **ours} for key in taken}}

    def _insert(self, connection: Connection, keyed: Mapping[str, Request], texts: Mapping[str, str]) -> None:
        now = time.time()
        rows = [
            {
                "key": key,
                "owner": self.run,
                "endpoint": keyed[key].endpoint,
                "prompt": keyed[key].prompt,
                "prompt_hash": keyed[key].prompt_hash,
                "model": keyed[key].model,
                "sample": keyed[key].sample,
                "requested_body": text,
                "queued": now,
            }
            for key, text in texts.items()
        ]
        statements.run(connection, statements.INSERT_REQUEST, rows)

    def _take(self, connection: Connection, before: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Take over what dead runs left open, and the failures that are to be asked again."""
        open_keys = {key: row for key, row in before.items() if row["owner"] != self.run and self._is_open(row)}
        if not open_keys:
            return []
        live = self._live_runs(connection)
        rows = [
            {"key": key, "owner": self.run, "old_owner": row["owner"], "old_state": row["state"]}
            for key, row in sorted(open_keys.items())
            if row["owner"] not in live or row["state"] in ("done", "failed")
        ]
        statements.run(connection, statements.TAKE_REQUEST, rows)
        return [row["key"] for row in rows]

    def _is_open(self, row: Mapping[str, Any]) -> bool:
        if row["state"] == "unknown":
            return not self.at_most_once
        if row["state"] in ("done", "failed"):
            return (row["failure"] or row["reason"]) in self._retry
        return row["batch"] is None

    def _sort(
        self,
        keyed: Mapping[str, Request],
        items: Sequence[tuple[str, Request]],
        rows: Mapping[str, Mapping[str, Any]],
        mine_before: Collection[str],
        texts: Mapping[str, str],
    ) -> Claim:
        claim = Claim()
        for key, request in items:
            row = rows[key]
            if row["state"] in ("done", "failed", "unknown"):
                claim.settled.append((request, row))
            elif row["owner"] != self.run:
                claim.elsewhere += 1
            elif key in mine_before or keyed[key] is not request:
                claim.repeated += 1
            else:
                text = texts[key] if key in texts else json_text(request.body)
                claim.jobs.append(Job(request, key, text, row["attempts"]))
        return claim

    def start(
        self, job: Job, *, changed_body: str | None = None, worst_case: float | None = None, batch: str | None = None
    ) -> "asyncio.Future[None]":
        """Write down that the next attempt at `job` is about to be sent; done once that is on disk."""
        job.number += 1
        common = {"key": job.key, "number": job.number}
        return self._write(
            (statements.START_ATTEMPT, {**common, "run": self.run, "started": time.time(), "worst_case": worst_case}),
            (statements.START_REQUEST, {**common, "changed_body": changed_body, "batch": batch}),
        )

    def answer(
        self,
        job: Job,
        reply: Reply,
        judgment: Judgment,
        *,
        seconds: float | None = None,
        cost: float | None = None,
        message: str | None = None,
        quirks: Sequence[Quirk] = (),
    ) -> "asyncio.Future[None]":
        """Write down the answer to the attempt in flight, and what it says."""
        attempt = _attempt_row(job, "answered", seconds)
        attempt |= {"status": 200, "reply": storable(reply.raw), "answered_by": storable(reply.model), "cost": cost}
        attempt |= {"finish_reason": storable(reply.finish_reason), **reply.tokens}
        request = _request_row(job, "done")
        request |= {
            "vote": judgment.vote,
            "reason": judgment.reason,
            "score": judgment.score,
            "message": storable(message),
        }
        return self._end(attempt, request, quirks)

    def fail(
        self, job: Job, error: CallError, *, state: str, seconds: float | None = None, quirks: Sequence[Quirk] = ()
    ) -> "asyncio.Future[None]":
        """Write down why the attempt in flight brought no answer; `state` is queued, failed, unknown or done."""
        attempt = _attempt_row(job, error.kind, seconds)
        attempt |= {"reached": error.reached, "status": error.status, "retry_after": error.retry_after}
        attempt |= {"message": storable(error.message), "reply": storable(error.body)}
        request = _request_row(job, state)
        if state != "queued":
            request |= {"failure": error.kind, "message": storable(error.message)}
        if error.kind == "refused":
            request |= {"failure": None, "vote": -1, "reason": "refused"}
        return self._end(attempt, request, quirks)

    def _end(
        self, attempt: Mapping[str, Any], request: Mapping[str, Any], quirks: Sequence[Quirk]
    ) -> "asyncio.Future[None]":
        ends = ((statements.END_ATTEMPT, attempt), (statements.END_REQUEST, request))
        return self._write(*ends, *((statements.INSERT_QUIRK, _quirk_row(quirk)) for quirk in quirks))

    async def known_quirks(self) -> list[Quirk]:
        """Return the quirks that this and earlier runs have written down."""
        table = _schema.quirks
        columns = select(table.c.endpoint, table.c.model, table.c.parameter, table.c.action, table.c.message)
        rows = await self.call(lambda connection: connection.execute(columns).all())
        return [Quirk(*row) for row in rows]

    async def open_batches(self, endpoint: str) -> list[Batch]:
        """Return the batches of an endpoint that have not been collected to the end, oldest first."""
        return await self.call(lambda connection: open_batches(connection, endpoint))

    async def spent_by_others(self) -> float:
        """Return the dollars that all runs but this one may have cost.

        Answers count at their price, or at their worst case where the price is not known; so do attempts whose
        answer may have been lost.
        """
        table = _schema.attempts
        billed = table.c.outcome.is_(None) | table.c.outcome.in_(["answered", *AMBIGUOUS])
        dollars = func.sum(func.coalesce(table.c.cost, table.c.worst_case))
        total = select(dollars).where(billed & (table.c.run != self.run))
        return await self.call(lambda connection: float(connection.execute(total).scalar() or 0.0))


def _in_flight() -> Any:
    return _schema.OPEN & (_schema.requests.c.state == "sent") & _schema.requests.c.batch.is_(None)


def _mark_unknown(connection: Connection, condition: Any) -> None:
    """Turn requests in flight into unknown ones, and their open attempts too."""
    requests, attempts = _schema.requests, _schema.attempts
    keys = connection.execute(select(requests.c.key).where(condition)).scalars().all()
    for at in range(0, len(keys), 500):
        some = keys[at : at + 500]
        open_attempts = attempts.c.key.in_(some) & attempts.c.outcome.is_(None)
        connection.execute(update(attempts).where(open_attempts).values(outcome="unknown"))
        connection.execute(update(requests).where(requests.c.key.in_(some)).values(state="unknown", failure="unknown"))


def _rows_of(connection: Connection, keys: Collection[str]) -> dict[str, Mapping[str, Any]]:
    table = _schema.requests
    chosen = select(
        table.c.key,
        table.c.state,
        table.c.owner,
        table.c.attempts,
        table.c.failure,
        table.c.vote,
        table.c.reason,
        table.c.batch,
    ).where(table.c.key.in_(list(keys)))
    return {row["key"]: dict(row) for row in connection.execute(chosen).mappings()}


def _item_rows(items: Sequence[tuple[str, Request]]) -> Iterator[dict[str, Any]]:
    for key, request in items:
        yield {
            "endpoint": request.endpoint,
            "dataset": request.dataset,
            "item": request.item,
            "voter": request.voter,
            "sample": request.sample,
            "key": key,
        }


def _item_order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what to sort by: machines that lock the same rows in the same order never wait for each other's."""
    return row["endpoint"], row["dataset"], row["item"], row["voter"], row["sample"]


def _quirk_row(quirk: Quirk) -> dict[str, Any]:
    return {**asdict(quirk), "message": storable(quirk.message), "noticed": time.time()}


_NO_ATTEMPT: dict[str, Any] = dict.fromkeys(
    (
        *("status", "retry_after", "message", "reply", "answered_by", "finish_reason"),
        *("input", "cached", "output", "reasoning", "cost"),
    )
)


def _attempt_row(job: Job, outcome: str, seconds: float | None) -> dict[str, Any]:
    end = {"key": job.key, "number": job.number, "outcome": outcome, "reached": True, "seconds": seconds}
    return {**_NO_ATTEMPT, **end}


def _request_row(job: Job, state: str) -> dict[str, Any]:
    empty = dict.fromkeys(("failure", "message", "vote", "reason", "score"))
    return {**empty, "key": job.key, "state": state, "finished": time.time()}
