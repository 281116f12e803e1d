"""The ledger's statements that are the same text in SQLite and PostgreSQL."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

__all__ = [
    "END_ATTEMPT",
    "END_REQUEST",
    "INSERT_ITEM",
    "INSERT_QUIRK",
    "INSERT_REQUEST",
    "ORDER",
    "START_ATTEMPT",
    "START_REQUEST",
    "TAKE_REQUEST",
    "run",
]

INSERT_ITEM = (
    "INSERT INTO items (endpoint, dataset, item, voter, sample, key) "
    "VALUES (:endpoint, :dataset, :item, :voter, :sample, :key) "
    "ON CONFLICT (endpoint, dataset, item, voter, sample) DO UPDATE SET key = excluded.key "
    "WHERE items.key <> excluded.key"
)

INSERT_REQUEST = (
    "INSERT INTO requests (key, state, owner, endpoint, prompt, prompt_hash, model, sample, requested_body, queued) "
    "VALUES (:key, 'queued', :owner, :endpoint, :prompt, :prompt_hash, :model, :sample, :requested_body, :queued) "
    "ON CONFLICT (key) DO NOTHING"
)

TAKE_REQUEST = (
    "UPDATE requests SET owner = :owner, state = 'queued' "
    "WHERE key = :key AND owner = :old_owner AND state = :old_state"
)

START_ATTEMPT = (
    "INSERT INTO attempts (key, number, run, started, worst_case) VALUES (:key, :number, :run, :started, :worst_case)"
)

START_REQUEST = (
    "UPDATE requests SET state = 'sent', attempts = :number, changed_body = :changed_body, batch = :batch "
    "WHERE key = :key"
)

END_ATTEMPT = (
    "UPDATE attempts SET outcome = :outcome, reached = :reached, status = :status, retry_after = :retry_after, "
    "seconds = :seconds, message = :message, reply = :reply, answered_by = :answered_by, "
    "finish_reason = :finish_reason, input_tokens = :input, cached_tokens = :cached, output_tokens = :output, "
    "reasoning_tokens = :reasoning, cost = :cost WHERE key = :key AND number = :number"
)

END_REQUEST = (
    "UPDATE requests SET state = :state, failure = :failure, message = :message, vote = :vote, reason = :reason, "
    "score = :score, finished = :finished WHERE key = :key"
)

INSERT_QUIRK = (
    "INSERT INTO quirks (endpoint, model, parameter, action, message, noticed) "
    "VALUES (:endpoint, :model, :parameter, :action, :message, :noticed) "
    "ON CONFLICT (endpoint, model, parameter) DO NOTHING"
)

ORDER = (START_ATTEMPT, START_REQUEST, END_ATTEMPT, END_REQUEST, INSERT_QUIRK)
"""The order within a group commit."""


def run(connection: Connection, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run a statement once a row, straight through the driver: SQLAlchemy's own way takes longer than SQLite."""
    if rows:
        named = statement if connection.dialect.name == "sqlite" else re.sub(r":(\w+)", r"%(\1)s", statement)
        connection.exec_driver_sql(named, list(rows))
