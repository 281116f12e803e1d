"""The ledger: what was asked, what came back, what it cost; written before the request and after the answer."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from sqlalchemy import Connection, func, select, update
from sqlalchemy import text as sql

from deep.llm import _schema
from deep.llm import _statements as statements
from deep.llm._batch_table import Batch, open_batches
from deep.llm._claims import Claim, Claims, Job, live_runs
from deep.llm._database import LOCK_CLASS, FileLock, connect, describe_ledger, engine_for, is_shared
from deep.llm._errors import AMBIGUOUS, CallError
from deep.llm._quirks import Quirk
from deep.llm._reply import Reply
from deep.llm._request import Request, json_text, storable
from deep.llm._writer import Writer
from deep.records import Judgment

__all__ = ["Claim", "Job", "Ledger"]

T = TypeVar("T")


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

    def _recover(self, connection: Connection) -> int:
        """Mark what dead runs had in flight as unknown, and return how many requests that leaves."""
        _mark_unknown(connection, _schema.requests.c.owner.not_in(live_runs(connection, self.run)) & _in_flight())
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
        claims = Claims(self.run, shared=self.shared, at_most_once=self.at_most_once, retry=self._retry)
        return await self.call(lambda connection: claims.claim(connection, items, again=again))

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
        judgment: Judgment | None,
        *,
        seconds: float | None = None,
        cost: float | None = None,
        message: str | None = None,
        quirks: Sequence[Quirk] = (),
    ) -> "asyncio.Future[None]":
        """Write down the answer to the attempt in flight, and what it says; None where it has no vote of its own."""
        attempt = _attempt_row(job, "answered", seconds)
        attempt |= {"status": 200, "reply": storable(reply.raw), "answered_by": storable(reply.model), "cost": cost}
        attempt |= {"finish_reason": storable(reply.finish_reason), **reply.tokens}
        request = _request_row(job, "done")
        request["message"] = storable(message)
        if judgment is not None:
            request |= {"vote": judgment.vote, "reason": judgment.reason, "score": judgment.score}
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
