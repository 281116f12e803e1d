"""The rows that a run writes, and the statements that are made of their fields and of the tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import ClassVar, Literal

from sqlalchemy import Connection, Dialect, Table, bindparam, or_, update
from sqlalchemy.dialects import postgresql, sqlite

from deep.llm import _schema
from deep.llm._errors import AttemptOutcome, RequestState
from deep.records import Reason

__all__ = [
    "WRITE_ORDER",
    "AttemptEnd",
    "AttemptStart",
    "ItemRow",
    "LedgerRow",
    "NewRequest",
    "QuirkRow",
    "RequestEnd",
    "RequestStart",
    "TakenRequest",
    "write_rows",
]


@dataclass(eq=False)
class LedgerRow:
    """Values to write; the fields of a subclass are columns of its table.

    Without `on_conflict` they update the row that has the same primary key, and whose column NAME still holds what
    a field ``old_NAME`` says. Otherwise they are inserted, and `on_conflict` says what happens to a row that is
    there already.
    """

    table: ClassVar[Table]
    on_conflict: ClassVar[Literal["fail", "keep", "replace"] | None] = None


@dataclass(eq=False)
class ItemRow(LedgerRow):
    """The request that asks about one item, in the order of the primary key."""

    table = _schema.items
    on_conflict = "replace"
    endpoint: str
    dataset: str
    item: str
    voter: str
    sample: int
    key: str


@dataclass(eq=False)
class NewRequest(LedgerRow):
    """A request that enters the queue."""

    table = _schema.requests
    on_conflict = "keep"
    key: str
    owner: int
    endpoint: str
    prompt: str
    prompt_hash: str
    model: str
    sample: int
    requested_body: str
    queued: float
    state: RequestState = "queued"


@dataclass(eq=False)
class TakenRequest(LedgerRow):
    """A request that a run takes over, unless another one was quicker."""

    table = _schema.requests
    key: str
    owner: int
    old_owner: int
    old_state: RequestState
    state: RequestState = "queued"


@dataclass(eq=False)
class AttemptStart(LedgerRow):
    """An attempt that is about to be sent."""

    table = _schema.attempts
    on_conflict = "fail"
    key: str
    number: int
    run: int
    started: float
    worst_case: float | None


@dataclass(eq=False)
class RequestStart(LedgerRow):
    """The request of an attempt that is about to be sent."""

    table = _schema.requests
    key: str
    attempts: int
    changed_body: str | None
    batch: str | None
    state: RequestState = "sent"


@dataclass(eq=False)
class AttemptEnd(LedgerRow):
    """How an attempt ended."""

    table = _schema.attempts
    key: str
    number: int
    outcome: AttemptOutcome
    seconds: float | None
    reached: bool = True
    status: int | None = None
    retry_after: float | None = None
    message: str | None = None
    reply: str | None = None
    answered_by: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None


@dataclass(eq=False)
class RequestEnd(LedgerRow):
    """What has become of a request."""

    table = _schema.requests
    key: str
    state: RequestState
    finished: float
    message: str | None = None
    failure: str | None = None
    vote: int | None = None
    reason: Reason | None = None
    score: float | None = None


@dataclass(eq=False)
class QuirkRow(LedgerRow):
    """A field that a model refuses or ignores."""

    table = _schema.quirks
    on_conflict = "keep"
    endpoint: str
    model: str
    parameter: str
    action: str
    message: str | None
    noticed: float


WRITE_ORDER = (AttemptStart, RequestStart, AttemptEnd, RequestEnd, QuirkRow)
"""The order within a group commit."""

_DIALECTS: dict[str, tuple[Dialect, Callable[[Table], sqlite.Insert | postgresql.Insert]]] = {
    "sqlite": (sqlite.dialect(paramstyle="named"), sqlite.insert),
    "postgresql": (postgresql.dialect(paramstyle="pyformat"), postgresql.insert),  # type: ignore[no-untyped-call]
}


def write_rows(connection: Connection, rows: Sequence[LedgerRow]) -> None:
    """Write rows of one class, straight through the driver: SQLAlchemy's own way takes longer than SQLite."""
    if rows:
        statement = _statement(type(rows[0]), connection.dialect.name)  # type: ignore[arg-type]  # classes are hashable
        connection.exec_driver_sql(statement, [vars(row) for row in rows])


@cache
def _statement(row: type[LedgerRow], dialect_name: str) -> str:
    """Return the statement that writes one class of rows in one dialect."""
    dialect, insert = _DIALECTS[dialect_name]
    columns = [field.name for field in fields(row)]
    primary = list(row.table.primary_key)
    values = [name for name in columns if name not in row.table.primary_key and not name.startswith("old_")]
    if row.on_conflict is None:
        same = [column == bindparam(column.name) for column in primary]
        same += [
            row.table.c[name.removeprefix("old_")] == bindparam(name) for name in columns if name.startswith("old_")
        ]
        return str(update(row.table).where(*same).compile(dialect=dialect, column_keys=values))
    inserted = insert(row.table)
    if row.on_conflict == "keep":
        inserted = inserted.on_conflict_do_nothing(index_elements=primary)
    if row.on_conflict == "replace":
        new = {name: inserted.excluded[name] for name in values}
        # A row that says the same already is left alone: to write it would cost a flush.
        differs = or_(*(row.table.c[name] != value for name, value in new.items()))
        inserted = inserted.on_conflict_do_update(index_elements=primary, set_=new, where=differs)
    return str(inserted.compile(dialect=dialect, column_keys=columns))
