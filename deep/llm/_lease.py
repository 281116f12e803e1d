"""Leases: a run owns the requests that it asks, so that no other run asks them too."""

import itertools
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from sqlalchemy import ColumnElement, Connection, bindparam, func, select, update

from deep.llm import schema
from deep.llm._database import Database, among
from deep.llm._errors import RAISED
from deep.llm._messages import Request, json_text
from deep.llm._spending import output_limit, with_longer_limit
from deep.llm.schema import ItemRow, RequestRow, Write, write_all

# The columns that say where a request stands.
_COLUMNS = ("key", "state", "owner", "attempts", "failure", "message", "vote", "reason", "batch")

# Its multiples, cut to their fractions, lie far from each other: where the runs begin to choose.
GOLDEN = 0.6180339887498949

_Known = Mapping[str, RequestRow]


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

    def again(self) -> "Job":
        """Return the job with its next attempt."""
        return replace(self, number=self.number + 1)

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


@dataclass(slots=True)
class Leases:
    """Hands out requests to one run.

    Parameters
    ----------
    run : int
        This run's number in the ledger.
    database : Database
        Where the ledger is kept; it says which other runs are alive.
    at_most_once : bool
        Leave requests alone whose answer may have been lost.
    retry : collection of str
        Classes of failure to hand out again.

    Attributes
    ----------
    live : set of int
        The runs that were alive when last looked; who has died since is noticed at the next look.
    """

    run: int
    database: Database
    at_most_once: bool
    retry: Collection[str]
    live: set[int] = field(default_factory=set, init=False)

    def lease(self, connection: Connection, requests: Sequence[Request], *, again: bool, most: int | None) -> Lease:
        """Hand out those of `requests` that this run is to ask, `most` of them and the rest of their group.

        On a shared ledger, what others have entered already is looked at and neither written nor locked.
        """
        items = [(request.key, request) for request in requests]
        before = known_requests(connection, dict(items))
        free_keys = {key for key, _ in items if key not in before} | self._to_take(connection, before, again=again)
        chosen_keys = free_keys if most is None else set(self._choose(items, free_keys, most))
        requests_by_key = {key: request for key, request in items if key in chosen_keys or key not in free_keys}
        own_keys = {key for key, row in before.items() if row["owner"] == self.run} - chosen_keys
        own_before = {key for key in own_keys if before[key]["state"] != "queued" or not again}
        # Sorted, here and below: machines that insert the same keys in one order never wait for each other in a circle.
        texts = {key: json_text(requests_by_key[key].body) for key in sorted(chosen_keys - before.keys())}
        new = (self.new_row(key, requests_by_key[key], text) for key, text in texts.items())
        # Another machine may enter the same request at this moment: whoever is first keeps it.
        write_all(connection, (Write(schema.requests, "insert_or_keep", row) for row in new))
        self._take(connection, [before[key] for key in sorted(chosen_keys & before.keys())])
        rows = [(key, request) for key, request in items if key in requests_by_key]
        self._name_items(connection, rows)
        lease = self._sort(rows, self._after(connection, before, chosen_keys), own_before, texts)
        lease.left.extend(request for key, request in items if key not in requests_by_key)
        return lease

    def _choose(self, items: Sequence[tuple[str, Request]], free_keys: Collection[str], most: int) -> Iterator[str]:
        """Yield free keys by whole groups; each run begins at another place, so that few want the same ones."""
        groups = itertools.groupby(items, key=lambda item: item[1].group or id(item))
        parts = [part for part in ([key for key, _ in group if key in free_keys] for _, group in groups) if part]
        start, n = int(len(parts) * (self.run * GOLDEN % 1.0)), 0
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
        if self.database.shared and rows:
            table = schema.items
            names = [column.name for column in table.primary_key]
            conditions = (
                among(connection, table.c[name], {row[name] for row in rows})  # type: ignore[literal-required]
                for name in names
            )
            result = connection.execute(select(*(table.c[name] for name in (*names, "key"))).where(*conditions))
            known_rows = {tuple(row) for row in result}
            rows = [row for row in rows if (*_item_order(row), row["key"]) not in known_rows]
        write_all(connection, (Write(schema.items, "insert_or_replace", row) for row in rows))

    def new_row(self, key: str, request: Request, text: str) -> RequestRow:
        """Return the row of a request that waits to be asked."""
        row = RequestRow(key=key, state="queued", owner=self.run, requested_body=text, queued=time.time())
        row |= {"endpoint": request.endpoint, "model": request.model, "sample": request.sample}
        return row | {"prompt": request.prompt, "prompt_hash": request.prompt_hash}

    def _after(self, connection: Connection, before: _Known, chosen_keys: Collection[str]) -> _Known:
        """Return the rows as they are now; where nobody else can have changed them, without looking."""
        if self.database.shared:
            return {**before, **known_requests(connection, chosen_keys)} if chosen_keys else before
        ours = RequestRow(state="queued", owner=self.run)
        return {**before, **{key: before.get(key, RequestRow(attempts=0)) | ours for key in chosen_keys}}

    def _to_take(self, connection: Connection, before: _Known, *, again: bool) -> set[str]:
        """Return the keys that dead runs left open, and those of failures that are to be asked again.

        With `again`, a function that raised an error in this run is called once more as well.
        """
        others = [row for row in before.values() if row["owner"] != self.run or (again and row["failure"] == RAISED)]
        open_rows = [row for row in others if self._is_open(row)]
        # Who is alive is asked for only where an owner is not known to be: it is a query of its own.
        if not {row["owner"] for row in open_rows} <= self.live:
            self.live = self.database.live_runs(connection, self.run)
        return {row["key"] for row in open_rows if row["owner"] not in self.live or row["state"] in ("done", "failed")}

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
        self, items: Sequence[tuple[str, Request]], rows: _Known, own_before: Collection[str], texts: Mapping[str, str]
    ) -> Lease:
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


def known_requests(connection: Connection, keys: Collection[str]) -> dict[str, RequestRow]:
    """Return where those of `keys` that are in the ledger stand."""
    table = schema.requests
    rows = connection.execute(select(*(table.c[name] for name in _COLUMNS)).where(among(connection, table.c.key, keys)))
    return {row["key"]: cast(RequestRow, dict(row)) for row in rows.mappings()}


def _item_order(row: ItemRow) -> tuple[str, str, str, str, int]:
    """Return the key to sort by: machines that lock the same rows in the same order never wait for each other's."""
    return row["endpoint"], row["dataset"], row["item"], row["voter"], row["sample"]


EXPORTS = ("exported", "exporting")
"""The states of batches that are files; nobody polls them."""

MAKING = ("creating", "filling", "open")
"""The states of batches of the Batch API that are not over; what they mean stands at `schema.BatchRow`."""

NOBODY = 0
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
    n = waiting_in(connection, endpoint, EXPORTS)
    table = schema.batches.c
    _release(connection, (table.endpoint == endpoint) & (table.state == "exported"))
    return n


def release_unmade(connection: Connection, live: Collection[int]) -> None:
    """Put back the requests of batches that dead runs were still writing: the endpoint was not asked to make them."""
    table = schema.batches.c
    _release(connection, (table.state == "filling") & table.owner.not_in(live))


def _release(connection: Connection, condition: ColumnElement[bool]) -> None:
    for batch_id in connection.execute(select(schema.batches.c.id).where(condition)).scalars().all():
        release_batch(connection, batch_id, NOBODY)


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
