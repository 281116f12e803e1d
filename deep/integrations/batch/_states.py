"""Batches in the ledger: which there are, who waits for them, and what became of their requests."""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import Connection, case, func, select, update

from deep.llm import EXPORTS, MAKING, NOBODY, RequestState, known_requests, release_batch, schema
from deep.llm.schema import RequestRow

LiveRuns = Callable[[Connection], set[int]]
"""Returns the runs that are alive, as `Ledger.live_runs` does."""

AT_ONCE = 2000
"""Requests that are looked up together."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: our name for it, the endpoint's (of its file, while it is being made), its requests and its state."""

    id: str
    remote: str | None
    size: int
    state: str

    @property
    def unconfirmed(self) -> bool:
        """Whether the endpoint was asked to make it, and no answer is on record."""
        return self.state != "open" or self.remote is None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a request stands: its row, whether it is in an exported file, and all answers that were bought.

    Parameters
    ----------
    row : RequestRow
    exported : bool
    replies : list of str
        As JSON; those kept beside the one that counts among them.
    least : int
        The least number of its attempts; below 0 are answers beside the one that counts.
    """

    row: RequestRow
    exported: bool
    replies: list[str]
    least: int

    @property
    def state(self) -> RequestState:
        """The state of the request."""
        return self.row["state"]

    @property
    def attempts(self) -> int:
        """The number of its last attempt."""
        return self.row["attempts"]


def add_batch(connection: Connection, batch: Batch, endpoint: str, run: int) -> None:
    """Enter a batch that is about to be made; one of files that are exported has their name for its remote one."""
    row = {"id": batch.id, "endpoint": endpoint, "owner": run, "state": batch.state, "size": batch.size}
    connection.execute(schema.batches.insert(), {**row, "remote": batch.remote, "created": time.time()})


def mend_exports(connection: Connection, endpoint: str, live_runs: LiveRuns) -> list[tuple[str, str]]:
    """Take back the exports of dead runs; return the names of files that may not have theirs, and the states."""
    table = schema.batches
    live = live_runs(connection)
    chosen = select(table.c.id, table.c.remote, table.c.state, table.c.owner).where(table.c.endpoint == endpoint)
    found = []
    for batch_id, name, state, owner in connection.execute(chosen.where(table.c.state.in_(EXPORTS))).all():
        if state == "exporting" and owner in live:
            continue
        if state == "exporting":
            release_batch(connection, batch_id, NOBODY)
        found.append((str(name), str(state)))
    return found


def standing_of(connection: Connection, keys: Collection[str]) -> dict[str, Standing]:
    """Return where those of `keys` that are in the ledger stand."""
    rows = known_requests(connection, keys)
    attempts, batches = schema.attempts.c, schema.batches.c
    in_files = {row["batch"] for row in rows.values() if row["batch"] is not None}
    chosen = select(batches.id).where(batches.id.in_(list(in_files)), batches.state.in_(EXPORTS))
    exports = set(connection.execute(chosen).scalars())
    tried: dict[str, list[tuple[int, str | None]]] = {key: [] for key in rows}
    answered = case((attempts.outcome == "answered", attempts.reply), else_=None)
    for key, number, reply in connection.execute(
        select(attempts.key, attempts.number, answered).where(attempts.key.in_(list(rows)))
    ):
        tried[key].append((number, reply))
    return {
        key: Standing(
            row,
            row["batch"] in exports,
            [reply for _, reply in tried[key] if reply is not None],
            min((number for number, _ in tried[key]), default=0),
        )
        for key, row in rows.items()
    }


def set_batch(connection: Connection, /, batch_id: str, **values: object) -> None:
    """Update the row of a batch."""
    connection.execute(update(schema.batches).where(schema.batches.c.id == batch_id).values(**values))


def take_batches(connection: Connection, endpoint: str, run: int, live_runs: LiveRuns) -> list[Batch]:
    """Make this run the owner of the batches of dead runs, and return its own that are not over, oldest first.

    So a batch is collected by one run: two would each enter its failures, and ask again what the other is asking.
    """
    table = schema.batches
    left = (table.c.endpoint == endpoint) & table.c.state.in_((*MAKING, "doubtful"))
    dead = table.c.owner.not_in(live_runs(connection))
    connection.execute(update(table).where(left, dead).values(owner=run))
    chosen = select(table.c.id, table.c.remote, table.c.size, table.c.state).where(left, table.c.owner == run)
    return [Batch(*row) for row in connection.execute(chosen.order_by(table.c.created))]


def adopt(connection: Connection, batch: Batch, remote: str) -> int:
    """Enter the endpoint's name of a batch that was made after all; return how many requests still wait for it.

    Those that were given up on, and not asked again, wait for it once more.
    """
    requests, attempts = schema.requests, schema.attempts
    lost = (requests.c.state == "unknown") | ((requests.c.state == "failed") & (requests.c.failure == "unknown"))
    mine = (requests.c.batch == batch.id) & lost
    its_last = (attempts.c.key == requests.c.key) & (attempts.c.number == requests.c.attempts)
    found = select(1).where(its_last, mine).exists()
    connection.execute(update(attempts).where(attempts.c.outcome == "unknown", found).values(outcome=None))
    connection.execute(update(requests).where(mine).values(state="sent", failure=None))
    set_batch(connection, batch.id, state="open", remote=remote)
    return still_in(connection, batch.id)


def doubt(connection: Connection, batch_id: str) -> int:
    """Turn the requests of a batch that the endpoint does not list into unknown ones, and return their number."""
    requests, attempts = schema.requests, schema.attempts
    n = still_in(connection, batch_id)
    waiting = (requests.c.batch == batch_id) & (requests.c.state == "sent")
    unended = attempts.c.key.in_(select(requests.c.key).where(waiting)) & attempts.c.outcome.is_(None)
    connection.execute(update(attempts).where(unended).values(outcome="unknown"))
    connection.execute(update(requests).where(waiting).values(state="unknown", failure="unknown", owner=NOBODY))
    set_batch(connection, batch_id, state="doubtful")
    return n


def numbers_in(connection: Connection, batch_id: str, keys: Collection[str]) -> dict[str, tuple[int, bool]]:
    """Return the number of the attempt in flight of those of `keys` that wait in a batch.

    Beside it stands whether an earlier reply was cut off, so that this attempt has a longer limit.
    """
    table = schema.requests
    waiting = (table.c.batch == batch_id) & (table.c.state == "sent") & table.c.key.in_(list(keys))
    rows = connection.execute(select(table.c.key, table.c.attempts, table.c.reason).where(waiting))
    return {row.key: (row.attempts, row.reason == "truncated") for row in rows}


def may_be_of(connection: Connection, batch_id: str, keys: Iterable[str]) -> bool:
    """Return whether results may be those of a batch: one is of a request that was in it, or none waits there."""
    table, rest = schema.requests, iter(keys)
    while some := list(islice(rest, AT_ONCE)):
        if connection.execute(select(1).where(table.c.batch == batch_id, table.c.key.in_(some)).limit(1)).first():
            return True
    return not still_in(connection, batch_id)


def still_in(connection: Connection, batch_id: str) -> int:
    """Return how many requests wait in a batch."""
    table = schema.requests
    waiting = select(func.count()).where(table.c.batch == batch_id, table.c.state == "sent")
    return int(connection.execute(waiting).scalar_one())
