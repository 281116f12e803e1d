"""The tables of the ledger, the same in SQLite and PostgreSQL, each made of the typed rows that are written to it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType, NoneType
from typing import Literal, NamedTuple, TypedDict, get_args, get_type_hints

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeDecorator

from deep.llm._errors import AttemptOutcome, RequestState
from deep.records import Reason

# The version of the ledger's tables, raised when they change.
VERSION = 1

metadata = sa.MetaData()


class HeldNumber(TypeDecorator[float]):
    """A finite number: SQLite holds anything in any column, so a damaged file may."""

    impl = sa.Float
    cache_ok = True

    def process_result_value(self, value: float | None, _: sa.Dialect) -> float | None:
        """Return it, or raise a ValueError."""
        if value is None or (isinstance(value, float | int) and math.isfinite(value)):
            return value
        raise ValueError(f"{value!r} stands where a number should")


class HeldText(TypeDecorator[str]):
    """A text, in a file that may be damaged."""

    impl = sa.Text
    cache_ok = True

    def process_result_value(self, value: str | None, _: sa.Dialect) -> str | None:
        """Return it, or raise a ValueError."""
        if value is None or isinstance(value, str):
            return value
        raise ValueError(f"{value!r} stands where a text should")


# Anything else, literals included, is text.
_TYPES = {bool: sa.Boolean, float: HeldNumber, int: sa.Integer}


def _table(name: str, row: type, *primary: str, defaults: Mapping[str, str] = MappingProxyType({})) -> sa.Table:
    """Return the table that has a column for each field of a row, in their order."""
    return sa.Table(
        name,
        metadata,
        *(
            sa.Column(
                field,
                next((_TYPES[kind] for kind in (hint, *get_args(hint)) if kind in _TYPES), HeldText),
                primary_key=field in primary,
                nullable=NoneType in get_args(hint),
                server_default=sa.text(defaults[field]) if field in defaults else None,
            )
            for field, hint in get_type_hints(row).items()
        ),
        # The key is nearly all of an item's row: without rowids it is stored once.
        sqlite_with_rowid=row is not ItemRow,
    )


class RunRow(TypedDict):
    """One command that asked."""

    id: int
    started: float
    ended: float | None
    options: str


class RequestRow(TypedDict, total=False):
    """One question, and its state."""

    key: str
    state: RequestState
    owner: int
    endpoint: str
    prompt: str
    prompt_hash: str
    model: str
    sample: int
    requested_body: str
    changed_body: str | None
    attempts: int
    failure: str | None
    message: str | None
    vote: int | None
    reason: Reason | None
    score: float | None
    batch: str | None
    queued: float
    finished: float | None


class AttemptRow(TypedDict, total=False):
    """One attempt at a request."""

    key: str
    number: int
    run: int
    started: float
    outcome: AttemptOutcome | None
    reached: bool
    status: int | None
    retry_after: float | None
    seconds: float | None
    message: str | None
    reply: str | None
    answered_by: str | None
    finish_reason: str | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cost: float | None
    worst_case: float | None


class ItemRow(TypedDict):
    """The request that asks about an item."""

    endpoint: str
    dataset: str
    item: str
    voter: str
    sample: int
    key: str


class QuirkRow(TypedDict, total=False):
    """A field that a model refuses or ignores."""

    endpoint: str
    model: str
    parameter: str
    action: str
    message: str | None
    noticed: float


class BatchRow(TypedDict):
    """Requests that went out in one file.

    A batch of the Batch API is ``filling`` while nobody was asked to make it; then ``creating``, with the endpoint's
    name of its file, until its own name is known (``open``). It is ``doubtful`` where that never came back and the
    endpoint does not list it.
    """

    id: str
    endpoint: str
    owner: int
    remote: str | None
    state: Literal["collected", "creating", "doubtful", "exported", "exporting", "filling", "open", "released"]
    size: int
    created: float


meta = sa.Table("deep_meta", metadata, sa.Column("version", sa.Integer, primary_key=True))
runs = _table("runs", RunRow, "id")
requests = _table("requests", RequestRow, "key", defaults={"attempts": "0"})
attempts = _table("attempts", AttemptRow, "key", "number", defaults={"reached": "true"})
items = _table("items", ItemRow, "endpoint", "dataset", "item", "voter", "sample")
quirks = _table("quirks", QuirkRow, "endpoint", "model", "parameter")
batches = _table("batches", BatchRow, "id")

# The rows of the partial index; a query that is to use it has to say so in these words.
OPEN = sa.text("requests.state <> 'done'")

sa.Index(
    "requests_open",
    requests.c.state,
    sqlite_where=sa.text("state <> 'done'"),
    postgresql_where=sa.text("state <> 'done'"),
)

# SQLite adds only virtual columns to a table that is there; PostgreSQL before 18 knows stored ones alone.
for _dialect, _storage in (("sqlite", "VIRTUAL"), ("postgresql", "STORED")):
    _effective = sa.DDL(  # type: ignore[no-untyped-call]
        "ALTER TABLE requests ADD COLUMN effective_body TEXT "
        f"GENERATED ALWAYS AS (coalesce(changed_body, requested_body)) {_storage}"
    )
    sa.event.listen(requests, "after_create", _effective.execute_if(dialect=_dialect))


How = Literal["insert", "insert_or_keep", "insert_or_replace", "update", "update_open"]

# Each with the placeholders that its driver takes.
_DIALECTS: dict[str, tuple[sa.Dialect, Callable[[sa.Table], sqlite.Insert | postgresql.Insert]]] = {
    "sqlite": (sqlite.dialect(paramstyle="named"), sqlite.insert),
    "postgresql": (postgresql.dialect(paramstyle="pyformat"), postgresql.insert),  # type: ignore[no-untyped-call]
}


class Write(NamedTuple):
    """A row to write.

    Parameters
    ----------
    table : Table
        One of the tables of :mod:`deep.llm.schema`.
    how : {'insert', 'insert_or_keep', 'insert_or_replace', 'update', 'update_open'}
        What to do about a row with the same primary key: fail, keep it, or give it all new values; or change those
        of its columns that `row` has; of a request only where it is not done.
    row : mapping
        Values by column.
    whole : callable, optional
        Returns all that is known of the row, for a ledger that may lack it.
    """

    table: sa.Table
    how: How
    row: Mapping[str, object]
    whole: Callable[[], Mapping[str, object]] | None = None


def statements(writes: Iterable[Write], dialect_name: str) -> Iterator[tuple[str, list[Mapping[str, object]]]]:
    """Yield the statements that write rows for the driver, the like together: SQLAlchemy would take longer than SQLite.

    No two writes concern the same row, or else they must be alike.
    """
    groups: dict[tuple[sa.Table, How, tuple[str, ...]], list[Mapping[str, object]]] = {}
    for table, how, row, _ in writes:
        groups.setdefault((table, how, tuple(row)), []).append(row)
    return ((_statement(*group, dialect_name), rows) for group, rows in groups.items())


def write_all(connection: sa.Connection, writes: Iterable[Write]) -> None:
    """Write rows in a transaction that SQLAlchemy has begun."""
    for statement, rows in statements(writes, connection.dialect.name):
        connection.exec_driver_sql(statement, rows)


@cache
def _statement(table: sa.Table, how: How, columns: tuple[str, ...], dialect_name: str) -> str:
    """Return the SQL of one way to write rows of a table."""
    dialect, insert = _DIALECTS[dialect_name]
    primary = list(table.primary_key)
    others = [name for name in columns if not table.c[name].primary_key]
    if how in ("update", "update_open"):
        same_row: list[sa.ColumnElement[bool]] = [column == sa.bindparam(column.name) for column in primary]
        same_row += [sa.literal_column("state") != sa.literal_column("'done'")] if how == "update_open" else []
        return str(sa.update(table).where(*same_row).compile(dialect=dialect, column_keys=others))
    inserted = insert(table)
    if how == "insert_or_keep":
        inserted = inserted.on_conflict_do_nothing(index_elements=primary)
    if how == "insert_or_replace":
        new = {name: inserted.excluded[name] for name in others}
        # A row that says the same already is left alone: to write it would cost a flush.
        differs = sa.or_(*(table.c[name] != value for name, value in new.items()))
        inserted = inserted.on_conflict_do_update(index_elements=primary, set_=new, where=differs)
    return str(inserted.compile(dialect=dialect, column_keys=list(columns)))
