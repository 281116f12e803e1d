"""The ledger: what was asked, what came back, what it cost; written before the request and after the answer."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar, cast

from sqlalchemy import ColumnElement, Connection, and_, func, select, update
from sqlalchemy.exc import SQLAlchemyError

from deep._util.sqlite_log import SECONDS_OUTSIDE, end_run
from deep.exceptions import DeepError
from deep.llm import _database, _lease, schema
from deep.llm._errors import AMBIGUOUS, CallError, LedgerError, LedgerFullError, LedgerMovedError, RequestState
from deep.llm._history import read_quirks
from deep.llm._lease import Job, Lease, Leases
from deep.llm._messages import Reply, Request, json_text, storable
from deep.llm._providers import Quirk
from deep.llm.schema import AttemptRow, QuirkRow, RequestRow, Write, missing_rows, write_all
from deep.records import Judgment

T = TypeVar("T")
Written = asyncio.Future[object]
"""Done once something is on disk."""

_Work = Sequence[Write] | Callable[[Connection], object]
_Entry = tuple[_Work, Written]

MAX_GROUP = 500
"""Rows that share a commit at most; a group holds what came in while the last one was being committed."""


UNDONE = 50
"""How often a transaction that the database has undone is tried again."""


class Writer:
    """Group commit: every write waits for one flush to disk, and many share it.

    Parameters
    ----------
    connection : Connection
        From now on used by the writer's thread alone.
    name : str
        The ledger's, for error messages.
    database : Database
        Says whether what has failed is tried again, by another connection where this one is lost: what is in flight
        is then written down.
    reserve : Reserve, optional
        Released where something cannot be written, which is then tried once more.
    files : LedgerFiles, optional
        Looked at before and after every commit; where other programs have moved, removed or written to the ledger, a
        copy beside it takes what is written from then on.

    Attributes
    ----------
    full : LedgerFullError or None
        Why nothing new should be begun, once the reserve is released, the ledger is not where it was, or its connection
        was lost.

    Notes
    -----
    Within a group the like is written together: no two writes of a group concern the same row, since whoever writes
    waits for the first before the second.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        database: _database.Database,
        reserve: _database.Reserve | None = None,
        files: _database.LedgerFiles | None = None,
    ) -> None:
        self._connection = self._opened = connection
        self._repeating = self._replaced = False
        self._name = name
        self._database = database
        self._reserve = reserve
        self._files = files
        self._overwritten = False
        self._together = True
        self.full: LedgerFullError | None = None
        self._queue: queue.SimpleQueue[list[_Entry] | None] = queue.SimpleQueue()
        self._gathering: list[_Entry] = []
        self._error: LedgerError | None = None
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="deep-ledger", daemon=True)
        self._thread.start()

    def write(self, writes: Sequence[Write]) -> Written:
        """Return a future that is done once `writes` are on disk."""
        return self._submit(writes)

    async def call(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in a transaction of its own, after all earlier writes, and return its result."""
        return cast(T, await self._submit(function))

    def _submit(self, work: _Work) -> Written:
        if self._error is not None:
            raise self._error
        done = self._loop.create_future()
        self._gathering.append((work, done))
        if len(self._gathering) == 1:
            self._loop.call_soon(self._hand_over)
        return done

    def _hand_over(self) -> None:
        """Give the thread the writes of one turn of the event loop: each hand-over costs a thread switch."""
        if self._gathering:
            self._queue.put(self._gathering)
            self._gathering = []

    async def close(self) -> None:
        """Commit the pending writes and close the connection."""
        self._hand_over()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        stop, due, wait = False, None, 0.0  # what the first commit wrote is moved into the file at once
        while not stop:
            group, stop = self._gather(due)
            for part in _parts(group):
                self._commit(part)
            if group and due is None:
                due, wait = time.monotonic() + wait, SECONDS_OUTSIDE
            if due is not None and time.monotonic() >= due:
                files = self._files if self._connection is self._opened else None
                due = None if files is None or files.move_log(self._connection) else time.monotonic() + wait
        with suppress(SQLAlchemyError):  # of a connection that is lost; what was to be written has its error
            if self._files is not None:
                end_run(_database.driver_of(self._connection))
            self._connection.close()
        if self._files is not None and self._connection is not self._opened:
            with self._files.closing(overwritten=self._overwritten):
                self._opened.close()

    def _gather(self, due: float | None) -> tuple[list[_Entry], bool]:
        """Return all that waits, at least one piece of work before the time `due`, and whether to stop after it."""
        group: list[_Entry] = []
        try:
            entries = self._queue.get(timeout=None if due is None else max(0.0, due - time.monotonic()))
        except queue.Empty:
            return group, False
        while entries is not None:
            group += entries
            if len(group) >= MAX_GROUP or self._queue.empty():
                return group, False
            entries = self._queue.get()
        return group, True

    def _commit(self, part: list[_Entry]) -> None:
        result: object = None
        error: Exception | None = self._error
        try:
            if error is None:
                self._together, self._repeating = True, False
                result = self._execute_again([work for work, _ in part])
                if self._replaced:
                    self._report([entry for entry in part if _begins(entry[0])], None, self.full)
                    part = [entry for entry in part if not _begins(entry[0])]
        except SQLAlchemyError as failure:
            error = self._error = LedgerError(
                f"`ledger` {self._name} cannot be written: {_database.one_line(failure)}. The run stops; nothing more "
                "is asked."
            )
        except Exception as failure:
            error = failure
        self._report(part, result, error)

    def _execute_again(self, works: list[_Work]) -> object:
        """Run work in a transaction, and again where a shared database has undone it, or was lost."""
        for _ in range(UNDONE):
            try:
                return self._execute_or_release(self._still_due(works))
            except Exception as failure:
                connection = self._database.connection_after(self._connection, failure)
                if connection is None:
                    raise
                if connection is not self._connection:
                    self._connection = self._opened = connection
                    # Whether it was committed before the connection was lost is not known.
                    self._replaced = self._repeating = True
                    self.full = self._full(failure)
                self._together = False
        return self._execute_or_release(self._still_due(works))

    def _still_due(self, works: list[_Work]) -> list[_Work]:
        """Leave out attempts that are about to be sent, once the connection was lost, and with it the lease of the run.

        Another run may have taken over their requests and asked them: to send them now would be to pay twice.
        """
        return [work for work in works if not (self._replaced and _begins(work))]

    def _execute_or_release(self, works: list[_Work]) -> object:
        """Run work in a transaction, and again where it fails and there is a reserve to release."""
        try:
            return self._execute(works)
        except SQLAlchemyError as failure:
            if self._reserve is None or not self._reserve.release():
                raise
            self.full = self._full(failure, "Make room, and run it again.")
            return self._execute(works)

    def _full(self, failure: Exception, remedy: str = "Run it again.") -> LedgerFullError:
        return LedgerFullError(
            f"`ledger` {self._name} cannot be written: {_database.one_line(failure)}. The run stops; what was in "
            f"flight is written down. {remedy}"
        )

    def _execute(self, works: list[_Work]) -> object:
        """Run work in a transaction, and see to it that it is found under the ledger's name, or beside it."""
        files = self._files if self._connection is self._opened else None
        if files is None:
            return self._transact(works)
        change = files.change()
        if change is not None and self._move(files.path, change):
            return self._transact(works)
        result = self._transact(works)
        moved = files.moved()
        if moved is not None:
            self._move(files.path, moved)
        elif files.unlocked and self.full is None:
            self.full = LedgerFullError(
                f"`ledger` {self._name} must keep its lock. Another program removed {files.path}.lock, so that other "
                "processes may write too. The run stops; what was in flight is written down. Run it again."
            )
        files.left()
        return result

    def _move(self, path: str, change: str) -> bool:
        """Go on in a copy beside the ledger, so that nothing new is begun; return whether it can be made."""
        why = f"`ledger` {self._name} must stay as it is while it is in use. It {change} by another program."
        if change.startswith("lost"):
            why = why.replace(" by another program", "")
        try:
            kept, self._connection = _database.keep(self._connection, path)
        except (DeepError, OSError) as error:
            self.full = LedgerMovedError(
                f"{why} The run stops; what was in flight is in the file that was opened, and cannot be kept beside: "
                f"{_database.one_line(error)}."
            )
            return False
        self._overwritten = change == "was written to"
        self.full = LedgerMovedError(f"{why} The run stops; all answers are in {kept}, and the next run enters them.")
        return True

    def _transact(self, works: list[_Work]) -> object:
        if works and callable(work := works[0]):
            with self._connection.begin():
                return work(self._connection)
        writes = [write for work in works if not callable(work) for write in work]
        if self._repeating:
            writes = [write._replace(how="insert_or_keep") if write.how == "insert" else write for write in writes]
        if self._replaced:  # what another run has answered meanwhile stays answered
            writes = [w._replace(how="update_open") if w.table is schema.requests else w for w in writes]
        together = self._database.round_trip(self._connection) if self._together else nullcontext()
        with together, self._connection.begin():
            if self._connection is not self._opened:
                write_all(self._connection, missing_rows(writes))
            write_all(self._connection, writes)
        return None

    def _report(self, part: list[_Entry], result: object, error: Exception | None) -> None:
        """Wake the waiting tasks; once for the whole group, since each wake-up of the loop costs a system call."""
        futures = [done for _, done in part]
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_settle, futures, result, error)


def _begins(work: _Work) -> bool:
    """Return whether work announces an attempt that is sent once it is written."""
    return not callable(work) and any(write.row.get("state") == "sent" for write in work)


def _settle(futures: list[Written], result: object, error: Exception | None) -> None:
    for future in futures:
        if future.cancelled():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _parts(group: list[_Entry]) -> list[list[_Entry]]:
    """Return runs of row writes, and each function on its own, in order."""
    parts: list[list[_Entry]] = []
    for entry in group:
        if not parts or callable(entry[0]) or callable(parts[-1][0][0]):
            parts.append([])
        parts[-1].append(entry)
    return parts


P = ParamSpec("P")

DOUBTS = 2
"""Attempts at a request that may be lost with their runs before it is left alone: it may have been paid so often."""


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
    _lock: _database.FileLock | None = field(default=None, init=False)
    _reserve: _database.Reserve | None = field(default=None, init=False)
    _writer: Writer | None = field(default=None, init=False)
    _leases: Leases = field(init=False)

    def __post_init__(self) -> None:
        self.name = _database.describe_ledger(self.target)
        self.shared = _database.is_shared(self.target)

    async def __aenter__(self) -> "Ledger":
        self._kept_in = _database.database_of(self.target)
        self._lock = None if self.shared else _database.FileLock(self.target)
        try:
            engine = _database.engine_for(self.target, create=True, database=self._kept_in)
            self._reserve = None if self.shared else _database.Reserve(self.target)
            connection = _database.connect(engine, self.name)
            files = None
            if not self.shared:
                self.entered = _database.enter_kept(connection, self.target)
                files = _database.LedgerFiles(self.target)
            self._writer = Writer(connection, self.name, self._kept_in, self._reserve, files)
            self.run = await self.call(self._begin_run)
            self._leases = Leases(self.run, self._kept_in, self.at_most_once, self.retry)
            await self.recover()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.call(self._end_run)
        finally:
            await self._close()
        if self._writer is not None and isinstance(self._writer.full, LedgerMovedError):
            raise self._writer.full  # its votes are not to be read by its name

    async def _close(self) -> None:
        if self._writer is not None:
            await self._writer.close()
        if self._reserve is not None:
            self._reserve.release()
        if self._lock is not None:
            self._lock.release()

    async def call(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function` in a transaction of its own."""
        assert self._writer is not None, "the ledger is not open"
        return await self._writer.call(lambda connection: function(connection, *args, **kwargs))

    def _write(self, *writes: Write) -> Written:
        assert self._writer is not None, "the ledger is not open"
        return self._writer.write(writes)

    def _check_room(self) -> None:
        """Raise where the ledger's last room is for requests in flight."""
        if self._writer is not None and self._writer.full is not None:
            raise self._writer.full

    def _begin_run(self, connection: Connection) -> int:
        row = {"started": time.time(), "options": json_text(dict(self.options))}
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
        _mark_unknown(connection, table.c.owner.not_in(self._leases.live))
        _lease.release_unmade(connection, self._leases.live)
        _give_up_doubts(connection)
        lost = (schema.OPEN, (table.c.state == "unknown") | (table.c.failure == "unknown"))
        found = connection.execute(select(table.c.state, func.count()).where(*lost).group_by(table.c.state))
        n = {state: int(count) for state, count in found}
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
        return await self.call(self._leases.lease, requests, again=again, most=most)

    def start(
        self, job: Job, *, changed_body: str | None = None, worst_case: float | None = None, batch: str | None = None
    ) -> Written:
        """Write down that the job's attempt is about to be sent; done once that is on disk."""
        self._check_room()
        attempt = AttemptRow(key=job.key, number=job.number, run=self.run, started=time.time(), worst_case=worst_case)
        request = RequestRow(key=job.key, state="sent", attempts=job.number, batch=batch)
        if changed_body is None and job.longer:
            changed_body = job.text
        if changed_body is not None or job.number > 1:  # PostgreSQL would write the whole body once more
            request["changed_body"] = changed_body
        return self._write(Write(schema.attempts, "insert", attempt), Write(schema.requests, "update", request))

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
        return self._write(Write(schema.attempts, "insert", row))

    async def exported(self, endpoint: str) -> int:
        """Return how many requests of an endpoint are in exported files and have not come back."""
        return await self.call(_lease.waiting_in, endpoint, _lease.EXPORTS)

    async def in_batches(self, endpoint: str) -> int:
        """Return how many requests of an endpoint wait in batches of the Batch API."""
        return await self.call(_lease.waiting_in, endpoint, _lease.MAKING)

    async def release_exports(self, endpoint: str) -> int:
        """Put the requests of all exported files back into the queue, and return how many there were."""
        return await self.call(_lease.release_exports, endpoint)

    def _end(self, job: Job, attempt: AttemptRow, request: RequestRow, quirks: Iterable[Quirk]) -> Written:
        def whole_attempt() -> AttemptRow:
            return AttemptRow(key=job.key, number=job.number, run=self.run, started=time.time())

        def whole_request() -> RequestRow:
            asked = job.cut or job.request
            changed_body = job.text if job.longer else None
            row = self._leases.new_row(job.key, asked, json_text(asked.body))
            return row | {"attempts": job.number, "changed_body": changed_body}

        return self._write(
            Write(schema.attempts, "update", attempt, whole_attempt),
            Write(schema.requests, "update", request, whole_request),
            *(Write(schema.quirks, "insert_or_keep", _quirk_row(quirk)) for quirk in quirks),
        )

    async def known_quirks(self) -> list[Quirk]:
        """Return the quirks that this and earlier runs have written down."""
        return await self.call(read_quirks)

    async def spent_by_others(self) -> float:
        """Return the dollars that all runs but this one may have cost.

        Answers count at their price, or at their worst case where the price is not known; so do attempts whose
        answer may have been lost.
        """
        table = schema.attempts
        billed = table.c.outcome.is_(None) | table.c.outcome.in_(["answered", *AMBIGUOUS])
        dollars = func.sum(func.coalesce(table.c.cost, table.c.worst_case))
        total = select(dollars).where(billed & (table.c.run != self.run))
        return await self.call(lambda connection: float(connection.execute(total).scalar() or 0.0))


def _in_flight() -> ColumnElement[bool]:
    return and_(schema.OPEN, schema.requests.c.state == "sent", schema.requests.c.batch.is_(None))


def _mark_unknown(connection: Connection, owned: ColumnElement[bool]) -> None:
    """Turn the requests in flight of some runs into unknown ones, and their open attempts too.

    What was unknown, and was not sent by the run that was to ask it again, is as unknown as it was.
    """
    requests, attempts = schema.requests, schema.attempts
    unsent = and_(schema.OPEN, requests.c.state == "queued", requests.c.failure == "unknown")
    connection.execute(update(requests).where(owned & unsent).values(state="unknown"))
    for keys in _database.in_parts(
        connection.execute(select(requests.c.key).where(owned & _in_flight())).scalars().all()
    ):
        open_attempts = attempts.c.key.in_(keys) & attempts.c.outcome.is_(None)
        connection.execute(update(attempts).where(open_attempts).values(outcome="unknown"))
        connection.execute(update(requests).where(requests.c.key.in_(keys)).values(state="unknown", failure="unknown"))


def _give_up_doubts(connection: Connection) -> None:
    """Turn unknown requests into failed ones where as many attempts as may be paid unasked were lost.

    Where an earlier reply was cut off, that one stands.
    """
    requests, attempts = schema.requests, schema.attempts
    lost = (attempts.c.key == requests.c.key) & (attempts.c.outcome == "unknown")
    doubts = select(func.count()).select_from(attempts).where(lost).scalar_subquery()
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
