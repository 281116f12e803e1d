"""The tables of the ledger, the same in SQLite and PostgreSQL, each made of the typed rows that are written to it."""

import math
from collections.abc import Mapping
from types import MappingProxyType, NoneType
from typing import Literal, TypedDict, get_args, get_type_hints

from sqlalchemy import DDL, Boolean, Column, Dialect, Float, Index, Integer, MetaData, Table, Text, event, text
from sqlalchemy.types import TypeDecorator

from deep.llm._errors import AttemptOutcome, RequestState
from deep.records import Reason

VERSION = 1

metadata = MetaData()


class HeldNumber(TypeDecorator[float]):
    """A finite number: SQLite holds anything in any column, so a damaged file may."""

    impl = Float
    cache_ok = True

    def process_result_value(self, value: float | None, _: Dialect) -> float | None:
        """Return it, or raise a ValueError."""
        if value is None or (isinstance(value, float | int) and math.isfinite(value)):
            return value
        raise ValueError(f"{value!r} stands where a number should")


class HeldText(TypeDecorator[str]):
    """A text, in a file that may be damaged."""

    impl = Text
    cache_ok = True

    def process_result_value(self, value: str | None, _: Dialect) -> str | None:
        """Return it, or raise a ValueError."""
        if value is None or isinstance(value, str):
            return value
        raise ValueError(f"{value!r} stands where a text should")


_TYPES = {bool: Boolean, float: HeldNumber, int: Integer}
"""Anything else, literals included, is text."""


def _table(name: str, row: type, *primary: str, defaults: Mapping[str, str] = MappingProxyType({})) -> Table:
    """Return the table that has a column for each field of a row, in their order."""
    return Table(
        name,
        metadata,
        *(
            Column(
                field,
                next((_TYPES[kind] for kind in (hint, *get_args(hint)) if kind in _TYPES), HeldText),
                primary_key=field in primary,
                nullable=NoneType in get_args(hint),
                server_default=text(defaults[field]) if field in defaults else None,
            )
            for field, hint in get_type_hints(row).items()
        ),
        sqlite_with_rowid=row is not ItemRow,
    )


class RunRow(TypedDict):
    """One command that asked."""

    id: int
    started: float
    ended: float | None
    options: str


class RequestRow(TypedDict, total=False):
    """One question, and what has become of it."""

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


meta = Table("deep_meta", metadata, Column("version", Integer, primary_key=True))
runs = _table("runs", RunRow, "id")
requests = _table("requests", RequestRow, "key", defaults={"attempts": "0"})
attempts = _table("attempts", AttemptRow, "key", "number", defaults={"reached": "true"})
items = _table("items", ItemRow, "endpoint", "dataset", "item", "voter", "sample")
quirks = _table("quirks", QuirkRow, "endpoint", "model", "parameter")
batches = _table("batches", BatchRow, "id")

OPEN = text("requests.state <> 'done'")
"""The rows of the partial index; a query that is to use it has to say so in these words."""

Index("requests_open", requests.c.state, sqlite_where=text("state <> 'done'"), postgresql_where=text("state <> 'done'"))

for _dialect, _kept in (("sqlite", "VIRTUAL"), ("postgresql", "STORED")):
    _effective = DDL(  # type: ignore[no-untyped-call]
        "ALTER TABLE requests ADD COLUMN effective_body TEXT "
        f"GENERATED ALWAYS AS (coalesce(changed_body, requested_body)) {_kept}"
    )
    event.listen(requests, "after_create", _effective.execute_if(dialect=_dialect))
