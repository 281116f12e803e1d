"""Who asks what: which requests are settled, which are being asked, and which this run takes upon itself."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy import text as sql

from deep.llm import _schema
from deep.llm import _statements as statements
from deep.llm._database import LOCK_CLASS
from deep.llm._request import Request, json_text

__all__ = ["Claim", "Claims", "Job", "live_runs"]


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


class Claims:
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

    def __init__(self, run: int, *, shared: bool, at_most_once: bool, retry: Collection[str]) -> None:
        self._run = run
        self._shared = shared
        self._at_most_once = at_most_once
        self._retry = retry

    def claim(self, connection: Connection, items: Sequence[tuple[str, Request]], *, again: bool) -> Claim:
        """Hand out those of `items` (key and request) that this run is to ask."""
        keyed = dict(items)
        statements.run(connection, statements.INSERT_ITEM, sorted(_item_rows(items), key=_item_order))
        before = _rows_of(connection, keyed)
        mine = {key for key, row in before.items() if row["owner"] == self._run}
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
        if self._shared:
            return _rows_of(connection, keyed)
        ours = {"state": "queued", "owner": self._run}
        fresh = {key: {**ours, "attempts": 0} for key in keyed if key not in before}
        return {**before, **fresh, **{key: {**before[key], **ours} for key in taken}}

    def _insert(self, connection: Connection, keyed: Mapping[str, Request], texts: Mapping[str, str]) -> None:
        now = time.time()
        rows = [
            {
                "key": key,
                "owner": self._run,
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
        open_keys = {key: row for key, row in before.items() if row["owner"] != self._run and self._is_open(row)}
        if not open_keys:
            return []
        live = live_runs(connection, self._run)
        rows = [
            {"key": key, "owner": self._run, "old_owner": row["owner"], "old_state": row["state"]}
            for key, row in sorted(open_keys.items())
            if row["owner"] not in live or row["state"] in ("done", "failed")
        ]
        statements.run(connection, statements.TAKE_REQUEST, rows)
        return [row["key"] for row in rows]

    def _is_open(self, row: Mapping[str, Any]) -> bool:
        if row["state"] == "unknown":
            return not self._at_most_once
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
            elif row["owner"] != self._run:
                claim.elsewhere += 1
            elif key in mine_before or keyed[key] is not request:
                claim.repeated += 1
            else:
                text = texts[key] if key in texts else json_text(request.body)
                claim.jobs.append(Job(request, key, text, row["attempts"]))
        return claim


def live_runs(connection: Connection, run: int) -> set[int]:
    """Return the runs whose process holds its advisory lock; a dead process holds none."""
    if connection.dialect.name != "postgresql":
        return {run}
    held = sql(
        "SELECT objid FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        "WHERE locktype = 'advisory' AND granted AND classid = :lock AND datname = current_database()"
    )
    return {run, *connection.execute(held, {"lock": LOCK_CLASS}).scalars()}


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
