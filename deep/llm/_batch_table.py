"""The ledger's rows about batches: functions to be run by `Ledger.call`."""

import time
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, func, select, update

from deep.llm import _schema


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: our name for it, the endpoint's (None where that never came back), and its requests."""

    id: str
    remote: str | None
    size: int


def add_batch(connection: Connection, batch: Batch, endpoint: str, run: int) -> None:
    """Enter a batch that is about to be made."""
    row = {"id": batch.id, "endpoint": endpoint, "owner": run, "state": "open", "size": batch.size}
    connection.execute(_schema.batches.insert(), {**row, "created": time.time()})


def set_batch(connection: Connection, /, batch_id: str, **values: object) -> None:
    """Change what is known of a batch."""
    connection.execute(update(_schema.batches).where(_schema.batches.c.id == batch_id).values(**values))


def open_batches(connection: Connection, endpoint: str) -> list[Batch]:
    """Return the batches of an endpoint that have not been collected to the end, oldest first."""
    table = _schema.batches
    chosen = select(table.c.id, table.c.remote, table.c.size).where(table.c.endpoint == endpoint)
    rows = connection.execute(chosen.where(table.c.state == "open").order_by(table.c.created))
    return [Batch(*row) for row in rows]


def numbers_in(connection: Connection, batch_id: str, keys: Collection[str]) -> dict[str, int]:
    """Return the number of the attempt in flight of those of `keys` that wait in a batch."""
    table = _schema.requests
    waiting = (table.c.batch == batch_id) & (table.c.state == "sent") & table.c.key.in_(list(keys))
    return {row.key: row.attempts for row in connection.execute(select(table.c.key, table.c.attempts).where(waiting))}


def still_in(connection: Connection, batch_id: str) -> int:
    """Return how many requests wait in a batch."""
    table = _schema.requests
    waiting = select(func.count()).where(table.c.batch == batch_id, table.c.state == "sent")
    return int(connection.execute(waiting).scalar_one())


def release(connection: Connection, batch_id: str, run: int) -> None:
    """Put the requests of a batch that was never carried out back into the queue."""
    requests, attempts = _schema.requests, _schema.attempts
    waiting = (requests.c.batch == batch_id) & (requests.c.state == "sent")
    keys = select(requests.c.key).where(waiting)
    unsent = attempts.c.key.in_(keys) & attempts.c.outcome.is_(None)
    connection.execute(update(attempts).where(unsent).values(outcome="unsent", reached=False))
    connection.execute(update(requests).where(waiting).values(state="queued", batch=None, owner=run))
    set_batch(connection, batch_id, state="released")
