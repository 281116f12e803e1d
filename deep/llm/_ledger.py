"""The ledger: what was asked, what came back, what it cost; written before the request and after the answer.

A run leases the requests that it asks: it owns them, so that no other run asks them too.
"""

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar, cast

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, select, update

from deep.llm import _database, schema
from deep.llm._database import is_among
from deep.llm._errors import AMBIGUOUS, RAISED, CallError, LedgerMovedError, RequestState
from deep.llm._messages import Reply, Request, json_text, storable
from deep.llm._providers import Quirk
from deep.llm._spending import output_limit, with_longer_limit
from deep.llm._writer import WriteFuture, Writer
from deep.llm.schema import AttemptRow, ItemRow, QuirkRow, RequestRow, Write, write_all
from deep.records import Judgment

T = TypeVar("T")
P = ParamSpec("P")

# The columns that say where a request stands.
_COLUMNS = ("key", "state", "owner", "attempts", "failure", "message", "vote", "reason", "batch")

# Its multiples, cut to their fractions, lie far from each other: where the runs begin to choose.
GOLDEN_RATIO = 0.6180339887498949

# Rows of requests by their keys.
_ByKey = Mapping[str, RequestRow]


@dataclass(frozen=True, slots=True)
class Job:
    """A request that this run has to ask.

    Parameters
    ----------
    request : Request
        What is asked; once a reply was cut off, with a longer limit.
    key : str
        The key of the request in the ledger, which a longer limit does not change.
    text : str
        The requested body as JSON.
    number : int
        Of the attempt that comes next, from 1.
    in_doubt : bool, default=False
        Whether it was in flight when an earlier run ended, so that it may have been paid.
    cut : Request, optional
        The request as it was, where its reply was cut off at its length limit; `request` and `text` have a longer one.
    """

    request: Request
    key: str
    text: str
    number: int
    in_doubt: bool = False
    cut: Request | None = None

    @property
    def longer(self) -> bool:
        """Whether an earlier reply was cut off, so that this one may be longer."""
        return self.cut is not None

    @property
    def can_be_longer(self) -> bool:
        """Whether it may be asked once more where its reply is cut off."""
        return not self.longer and output_limit(self.request.body) is not None

    def with_longer_limit(self) -> "Job":
        """Return the job that lets the answer be longer; its key stays that of the request."""
        request = replace(self.request, body=with_longer_limit(self.request.body))
        return replace(self, request=request, text=json_text(request.body), cut=self.request)


@dataclass(frozen=True, slots=True)
class Lease:
    """A handful of requests, parted by who may ask them.

    Parameters
    ----------
    jobs : list of Job
        To be asked by this run.
    settled : list of (Request, RequestRow)
        Answered, failed or left unknown already.
    elsewhere : list of Request
        Another live run is asking them.
    repeated : list of Request
        They have the key of one that this run is asking: the same question about two items.
    left : list of Request
        Free, but more than were wanted at once.
    """

    jobs: list[Job] = field(default_factory=list)
    settled: list[tuple[Request, RequestRow]] = field(default_factory=list)
    elsewhere: list[Request] = field(default_factory=list)
    repeated: list[Request] = field(default_factory=list)
    left: list[Request] = field(default_factory=list)


def known_requests(connection: Connection, keys: Collection[str]) -> dict[str, RequestRow]:
    """Return where those of `keys` that are in the ledger stand."""
    table = schema.requests
    query = select(*(table.c[name] for name in _COLUMNS)).where(is_among(connection, table.c.key, keys))
    return {row["key"]: cast(RequestRow, dict(row)) for row in connection.execute(query).mappings()}


def _item_order(row: ItemRow) -> tuple[str, str, str, str, int]:
    """Return the key to sort by: machines that lock the same rows in the same order never wait for each other's."""
    return row["endpoint"], row["dataset"], row["item"], row["voter"], row["sample"]


EXPORT_STATES = ("exported", "exporting")
"""The states of batches that are files; nobody polls them."""

UNFINISHED_STATES = ("creating", "filling", "open")
"""The states of batches of the Batch API that are not over; what they mean stands at `schema.BatchRow`."""

NO_OWNER = 0
"""The owner of requests that the next run takes over."""


def waiting_in(connection: Connection, endpoint: str, states: Collection[str]) -> int:
    """Return how many requests are in batches of some states, exported files among them, and have not come back."""
    requests, batches = schema.requests, schema.batches
    query = select(func.count()).select_from(requests.join(batches, batches.c.id == requests.c.batch))
    of_endpoint = (batches.c.endpoint == endpoint) & batches.c.state.in_(states)
    conditions = (schema.OPEN, requests.c.state == "sent", of_endpoint)
    return int(connection.execute(query.where(*conditions)).scalar_one())


def release_exports(connection: Connection, endpoint: str) -> int:
    """Put the requests of all exported files back into the queue, and return how many there were."""
    n = waiting_in(connection, endpoint, EXPORT_STATES)
    table = schema.batches.c
    _release(connection, (table.endpoint == endpoint) & (table.state == "exported"))
    return n


def _release(connection: Connection, condition: ColumnElement[bool]) -> None:
    for batch_id in connection.execute(select(schema.batches.c.id).where(condition)).scalars().all():
        release_batch(connection, batch_id, NO_OWNER)


def release_batch(connection: Connection, batch_id: str, run: int) -> None:
    """Put the requests of a batch that was never carried out back into the queue."""
    requests, attempts = schema.requests, schema.attempts
    is_waiting = (requests.c.batch == batch_id) & (requests.c.state == "sent")
    keys = select(requests.c.key).where(is_waiting)
    # They never went out: nothing of them can be on the bill.
    open_attempts = attempts.c.key.in_(keys) & attempts.c.outcome.is_(None)
    connection.execute(update(attempts).where(open_attempts).values(outcome="unsent", reached=False))
    connection.execute(update(requests).where(is_waiting).values(state="queued", batch=None, owner=run))
    connection.execute(update(schema.batches).where(schema.batches.c.id == batch_id).values(state="released"))


def read_quirks(connection: Connection) -> list[Quirk]:
    """Return the fields that models refuse or ignore, by endpoint, model and field."""
    table = schema.quirks.c
    order = (table.endpoint, table.model, table.parameter)
    rows = connection.execute(select(*order, table.action, table.message).order_by(*order))
    return [Quirk(*row) for row in rows]


# A request is left alone after this many attempts that were lost with their runs: each of them may be on the bill.
MAX_DOUBTS = 2


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
        Those left alone since that has happened to them `MAX_DOUBTS` times; `retry` with ``unknown`` asks them again.
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
    _live: set[int] = field(default_factory=set, init=False)
    """The runs that were alive when last looked; who has died since is noticed at the next look."""
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
        self._live = self.live_runs(connection)
        # In this order: what has just become unknown counts among the doubts.
        _mark_unknown(connection, table.c.owner.not_in(self._live))
        # Of batches that dead runs were still writing, which the endpoint was not asked to make.
        batches = schema.batches.c
        _release(connection, (batches.state == "filling") & batches.owner.not_in(self._live))
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
        lease = partial(self._lease, requests=requests, again=again, most=most)
        return await self._writer.call(lease, on_disk=False)  # no lease is anything before a start, which is flushed

    def _lease(self, connection: Connection, requests: Sequence[Request], *, again: bool, most: int | None) -> Lease:
        """Hand out those of `requests` that this run is to ask, `most` of them and the rest of their group.

        On a shared ledger, what others have entered already is looked at and neither written nor locked.
        """
        items = [(request.key, request) for request in requests]
        before = known_requests(connection, dict(items))
        free_keys = {key for key, _ in items if key not in before} | self._keys_to_take(connection, before, again=again)
        chosen_keys = free_keys if most is None else set(self._choose(items, free_keys, most))
        requests_by_key = {key: request for key, request in items if key in chosen_keys or key not in free_keys}
        own_keys = {key for key, row in before.items() if row["owner"] == self.run} - chosen_keys
        own_before = {key for key in own_keys if before[key]["state"] != "queued" or not again}
        # Sorted, here and below: machines that insert the same keys in one order never wait for each other in a circle.
        texts = {key: json_text(requests_by_key[key].body) for key in sorted(chosen_keys - before.keys())}
        new = (self._new_row(key, requests_by_key[key], text) for key, text in texts.items())
        # Another machine may enter the same request at this moment: whoever is first keeps it.
        write_all(connection, (Write(schema.requests, "insert_or_keep", row) for row in new))
        self._take(connection, [before[key] for key in sorted(chosen_keys & before.keys())])
        rows = [(key, request) for key, request in items if key in requests_by_key]
        self._name_items(connection, rows)
        lease = self._sort(rows, self._rows_after(connection, before, chosen_keys), own_before, texts)
        lease.left.extend(request for key, request in items if key not in requests_by_key)
        return lease

    def _choose(self, items: Sequence[tuple[str, Request]], free_keys: Collection[str], most: int) -> Iterator[str]:
        """Yield free keys by whole groups; each run begins at another place, so that few want the same ones."""
        groups = itertools.groupby(items, key=lambda item: item[1].group or id(item))
        parts = [part for part in ([key for key, _ in group if key in free_keys] for _, group in groups) if part]
        start, n = int(len(parts) * (self.run * GOLDEN_RATIO % 1.0)), 0
        for part in parts[start:] + parts[:start]:
            if n >= most:
                return
            n += len(part)
            yield from part

    def _name_items(self, connection: Connection, items: Sequence[tuple[str, Request]]) -> None:
        """Write down which request asks about which item, where the ledger does not say so."""
        rows = [
            ItemRow(endpoint=r.endpoint, dataset=r.dataset, item=r.item, voter=r.voter, sample=r.sample, key=key)
            for key, r in items
        ]
        rows.sort(key=_item_order)
        if self._kept_in.shared and rows:
            table = schema.items
            names = [column.name for column in table.primary_key]
            conditions = (
                is_among(connection, table.c[name], {row[name] for row in rows})  # type: ignore[literal-required]
                for name in names
            )
            result = connection.execute(select(*(table.c[name] for name in (*names, "key"))).where(*conditions))
            known_rows = {tuple(row) for row in result}
            rows = [row for row in rows if (*_item_order(row), row["key"]) not in known_rows]
        write_all(connection, (Write(schema.items, "insert_or_replace", row) for row in rows))

    def _new_row(self, key: str, request: Request, text: str) -> RequestRow:
        """Return the row of a request that waits to be asked."""
        row = RequestRow(key=key, state="queued", owner=self.run, requested_body=text, queued=time.time())
        row |= {"endpoint": request.endpoint, "model": request.model, "sample": request.sample}
        return row | {"prompt": request.prompt, "prompt_hash": request.prompt_hash}

    def _rows_after(self, connection: Connection, before: _ByKey, chosen_keys: Collection[str]) -> _ByKey:
        """Return the rows as they are now; where nobody else can have changed them, without looking."""
        if self._kept_in.shared:
            return {**before, **known_requests(connection, chosen_keys)} if chosen_keys else before
        ours = RequestRow(state="queued", owner=self.run)
        return {**before, **{key: before.get(key, RequestRow(attempts=0)) | ours for key in chosen_keys}}

    def _keys_to_take(self, connection: Connection, before: _ByKey, *, again: bool) -> set[str]:
        """Return the keys that dead runs left open, and those of failures that are to be asked again.

        With `again`, a function that raised an error in this run is called once more as well.
        """
        others = [row for row in before.values() if row["owner"] != self.run or (again and row["failure"] == RAISED)]
        open_rows = [row for row in others if self._is_open(row)]
        # Who is alive is asked for only where an owner is not known to be: it is a query of its own.
        if not {row["owner"] for row in open_rows} <= self._live:
            self._live = self._kept_in.live_runs(connection, self.run)
        return {row["key"] for row in open_rows if row["owner"] not in self._live or row["state"] in ("done", "failed")}

    def _take(self, connection: Connection, rows: Sequence[RequestRow]) -> None:
        """Take requests over, where nobody has done so meanwhile."""
        if not rows:
            return
        table = schema.requests
        unchanged = (table.c[name] == bindparam(f"old_{name}") for name in ("key", "owner", "state"))
        statement = update(table).where(*unchanged).values(owner=self.run, state="queued")
        old = [{"old_key": row["key"], "old_owner": row["owner"], "old_state": row["state"]} for row in rows]
        # Where another machine was quicker no row is as it was, and the request stays with that one.
        connection.execute(statement, old)

    def _is_open(self, row: RequestRow) -> bool:
        if row["state"] == "unknown":
            return not self.at_most_once
        if row["state"] in ("done", "failed"):
            return row["failure"] == RAISED or (row["failure"] or row["reason"]) in self.retry
        return row["batch"] is None or row["state"] == "queued"  # back from a batch, to be asked again

    def _sort(
        self, items: Sequence[tuple[str, Request]], rows: _ByKey, own_before: Collection[str], texts: Mapping[str, str]
    ) -> Lease:
        """Return the requests of a lease by who is to ask them: this run, another one, or nobody."""
        lease, request_of = Lease(), dict(items)
        for key, request in items:
            row = rows[key]
            if row["state"] in ("done", "failed", "unknown"):
                lease.settled.append((request, row))
            elif row["owner"] != self.run:
                lease.elsewhere.append(request)
            # One answer serves all items with the same question; to ask it twice would be to pay twice.
            elif key in own_before or request_of[key] is not request:
                lease.repeated.append(request)
            else:
                text = texts[key] if key in texts else json_text(request.body)
                job = Job(request, key, text, row["attempts"] + 1, row.get("failure") == "unknown")
                is_cut = row.get("reason") == "truncated" and job.can_be_longer
                lease.jobs.append(job.with_longer_limit() if is_cut else job)
        return lease

    def start(
        self, job: Job, *, changed_body: str | None = None, worst_case: float | None = None, batch: str | None = None
    ) -> WriteFuture:
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
    ) -> WriteFuture:
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
    ) -> WriteFuture:
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

    def keep_beside(self, key: str, reply: Reply, number: int) -> WriteFuture:
        """Write down a paid answer beside the one that counts; its number is below 0."""
        row = _answered_row(key, number, reply) | {"run": self.run, "started": time.time()}
        return self._writer.write([Write(schema.attempts, "insert", row)])

    def _end(self, job: Job, attempt: AttemptRow, request: RequestRow, quirks: Iterable[Quirk]) -> WriteFuture:
        """Write down how an attempt and its request ended."""

        # A run whose ledger was moved away goes on in a copy that may lack these rows.
        def whole_attempt() -> AttemptRow:
            return AttemptRow(key=job.key, number=job.number, run=self.run, started=time.time())

        def whole_request() -> RequestRow:
            original = job.cut or job.request
            row = self._new_row(job.key, original, json_text(original.body))
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
    given_up = update(requests).where(schema.OPEN, requests.c.state == "unknown", doubts >= MAX_DOUBTS)
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
