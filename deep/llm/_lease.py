"""Who asks what: which requests are settled, which are being asked, and which this run takes upon itself."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter

from sqlalchemy import Connection, select
from sqlalchemy import text as sql

from deep.llm import _schema
from deep.llm._database import LOCK_CLASS
from deep.llm._errors import RequestState
from deep.llm._request import Request, json_text
from deep.llm._rows import ItemRow, NewRequest, TakenRequest, write_rows
from deep.records import Reason

__all__ = ["Job", "KnownRequest", "Lease", "Leases", "live_runs"]

_ITEM_ORDER = attrgetter("endpoint", "dataset", "item", "voter", "sample")


@dataclass(frozen=True, slots=True)
class Job:
    """A request that this run has to ask.

    Parameters
    ----------
    request : Request
    key : str
    text : str
        The requested body as JSON.
    number : int
        Of the attempt that comes next, from 1.
    """

    request: Request
    key: str
    text: str
    number: int

    def again(self) -> "Job":
        """Return the job with its next attempt."""
        return replace(self, number=self.number + 1)


@dataclass(frozen=True, slots=True)
class KnownRequest:
    """What the ledger holds of a request: the columns of `requests` that say where it stands."""

    key: str
    state: RequestState
    owner: int
    attempts: int = 0
    failure: str | None = None
    vote: int | None = None
    reason: Reason | None = None
    batch: str | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """What a run may ask of a handful of requests, and what has become of the others.

    Parameters
    ----------
    jobs : list of Job
        To be asked by this run.
    settled : list of (Request, KnownRequest)
        Answered, failed or left unknown already.
    elsewhere : list of Request
        Another live run is asking them.
    repeated : list of Request
        They have the key of one that this run is asking: the same question about two items.
    """

    jobs: list[Job] = field(default_factory=list)
    settled: list[tuple[Request, KnownRequest]] = field(default_factory=list)
    elsewhere: list[Request] = field(default_factory=list)
    repeated: list[Request] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Leases:
    """Hands out requests to one run.

    Parameters
    ----------
    run : int
    shared : bool
        Whether other runs may be at work on the same ledger.
    at_most_once : bool
        Leave requests alone whose answer may have been lost.
    retry : collection of str
        Classes of failure to hand out again.
    """

    run: int
    shared: bool
    at_most_once: bool
    retry: Collection[str]

    def lease(self, connection: Connection, requests: Sequence[Request], *, again: bool) -> Lease:
        """Hand out those of `requests` that this run is to ask."""
        items = [(request.key, request) for request in requests]
        keyed = dict(items)
        # Machines that lock the same rows in the same order never wait for each other's.
        write_rows(connection, sorted((_item_row(*item) for item in items), key=_ITEM_ORDER))
        before = _known(connection, keyed)
        mine = {key for key, row in before.items() if row.owner == self.run}
        mine_before = {key for key in mine if before[key].state != "queued" or not again}
        texts = {key: json_text(keyed[key].body) for key in sorted(keyed.keys() - before.keys())}
        self._enter(connection, keyed, texts)
        taken = self._take(connection, before)
        after = self._after(connection, keyed, before, taken)
        return self._sort(keyed, items, after, mine_before, texts)

    def _after(
        self,
        connection: Connection,
        keyed: Mapping[str, Request],
        before: Mapping[str, KnownRequest],
        taken: Collection[str],
    ) -> dict[str, KnownRequest]:
        """Return the rows as they are now; where nobody else can have changed them, without looking."""
        if self.shared:
            return _known(connection, keyed)
        fresh = {key: KnownRequest(key, "queued", self.run) for key in keyed if key not in before}
        return {**before, **fresh, **{key: replace(before[key], state="queued", owner=self.run) for key in taken}}

    def _enter(self, connection: Connection, keyed: Mapping[str, Request], texts: Mapping[str, str]) -> None:
        now, rows = time.time(), []
        for key, text in texts.items():
            asked = keyed[key]
            about = (asked.endpoint, asked.prompt, asked.prompt_hash, asked.model, asked.sample)
            rows.append(NewRequest(key, self.run, *about, requested_body=text, queued=now))
        write_rows(connection, rows)

    def _take(self, connection: Connection, before: Mapping[str, KnownRequest]) -> list[str]:
        """Take over what dead runs left open, and the failures that are to be asked again."""
        open_rows = [row for _, row in sorted(before.items()) if row.owner != self.run and self._is_open(row)]
        if not open_rows:
            return []
        live = live_runs(connection, self.run)
        free = [row for row in open_rows if row.owner not in live or row.state in ("done", "failed")]
        write_rows(connection, [TakenRequest(row.key, self.run, row.owner, row.state) for row in free])
        return [row.key for row in free]

    def _is_open(self, row: KnownRequest) -> bool:
        if row.state == "unknown":
            return not self.at_most_once
        if row.state in ("done", "failed"):
            return (row.failure or row.reason) in self.retry
        return row.batch is None

    def _sort(
        self,
        keyed: Mapping[str, Request],
        items: Sequence[tuple[str, Request]],
        rows: Mapping[str, KnownRequest],
        mine_before: Collection[str],
        texts: Mapping[str, str],
    ) -> Lease:
        lease = Lease()
        for key, request in items:
            row = rows[key]
            if row.state in ("done", "failed", "unknown"):
                lease.settled.append((request, row))
            elif row.owner != self.run:
                lease.elsewhere.append(request)
            elif key in mine_before or keyed[key] is not request:
                lease.repeated.append(request)
            else:
                text = texts[key] if key in texts else json_text(request.body)
                lease.jobs.append(Job(request, key, text, row.attempts + 1))
        return lease


def live_runs(connection: Connection, run: int) -> set[int]:
    """Return the runs whose process holds its advisory lock; a dead process holds none."""
    if connection.dialect.name != "postgresql":
        return {run}
    held = sql(
        "SELECT objid FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        "WHERE locktype = 'advisory' AND granted AND classid = :lock AND datname = current_database()"
    )
    return {run, *connection.execute(held, {"lock": LOCK_CLASS}).scalars()}


def _known(connection: Connection, keys: Collection[str]) -> dict[str, KnownRequest]:
    table = _schema.requests
    columns = [table.c[column.name] for column in fields(KnownRequest)]
    rows = connection.execute(select(*columns).where(table.c.key.in_(list(keys))))
    return {row.key: KnownRequest(*row) for row in rows}


def _item_row(key: str, request: Request) -> ItemRow:
    about = (request.endpoint, request.dataset, request.item, request.voter, request.sample)
    return ItemRow(*about, key)
