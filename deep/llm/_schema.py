"""The tables of the ledger, the same in SQLite and PostgreSQL."""

from sqlalchemy import DDL, Boolean, Column, Float, Index, Integer, MetaData, Table, Text, event, text

__all__ = ["OPEN", "VERSION", "attempts", "batches", "items", "meta", "metadata", "quirks", "requests", "runs"]

VERSION = 1

metadata = MetaData()

meta = Table("deep_meta", metadata, Column("version", Integer, primary_key=True))

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("started", Float, nullable=False),
    Column("ended", Float),
    Column("options", Text, nullable=False),
)

requests = Table(
    "requests",
    metadata,
    Column("key", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("owner", Integer, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("prompt_hash", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("sample", Integer, nullable=False),
    Column("requested_body", Text, nullable=False),
    Column("changed_body", Text),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("failure", Text),
    Column("message", Text),
    Column("vote", Integer),
    Column("reason", Text),
    Column("score", Float),
    Column("batch", Text),
    Column("queued", Float, nullable=False),
    Column("finished", Float),
)
OPEN = text("requests.state <> 'done'")
"""The rows of the partial index; a query that is to use it has to say so in these words."""

Index("requests_open", requests.c.state, sqlite_where=text("state <> 'done'"), postgresql_where=text("state <> 'done'"))

for _dialect, _kept in (("sqlite", "VIRTUAL"), ("postgresql", "STORED")):
    _effective = DDL(  # type: ignore[no-untyped-call]
        "ALTER TABLE requests ADD COLUMN effective_body TEXT "
        f"GENERATED ALWAYS AS (coalesce(changed_body, requested_body)) {_kept}"
    )
    event.listen(requests, "after_create", _effective.execute_if(dialect=_dialect))

attempts = Table(
    "attempts",
    metadata,
    Column("key", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("run", Integer, nullable=False),
    Column("started", Float, nullable=False),
    Column("outcome", Text),
    Column("reached", Boolean, nullable=False, server_default=text("true")),
    Column("status", Integer),
    Column("retry_after", Float),
    Column("seconds", Float),
    Column("message", Text),
    Column("reply", Text),
    Column("answered_by", Text),
    Column("finish_reason", Text),
    Column("input_tokens", Integer),
    Column("cached_tokens", Integer),
    Column("output_tokens", Integer),
    Column("reasoning_tokens", Integer),
    Column("cost", Float),
    Column("worst_case", Float),
)

items = Table(
    "items",
    metadata,
    Column("endpoint", Text, primary_key=True),
    Column("dataset", Text, primary_key=True),
    Column("item", Text, primary_key=True),
    Column("voter", Text, primary_key=True),
    Column("sample", Integer, primary_key=True),
    Column("key", Text, nullable=False),
    sqlite_with_rowid=False,
)

quirks = Table(
    "quirks",
    metadata,
    Column("endpoint", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("parameter", Text, primary_key=True),
    Column("action", Text, nullable=False),
    Column("message", Text),
    Column("noticed", Float, nullable=False),
)

batches = Table(
    "batches",
    metadata,
    Column("id", Text, primary_key=True),
    Column("endpoint", Text, nullable=False),
    Column("owner", Integer, nullable=False),
    Column("remote", Text),
    Column("state", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("created", Float, nullable=False),
)
