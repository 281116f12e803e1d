"""Reading a ledger without writing to it: the votes it holds, what is left to ask, and the report."""

import statistics
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, case, func, select

from deep.llm import _schema
from deep.llm._database import connect, describe_ledger, engine_for
from deep.llm._reply import Reply, read_reply
from deep.records import Judgment

__all__ = ["Answer", "History", "ReportRow"]

WITHOUT_ANSWER = ("failed", "refused", "truncated", "unparsable")
"""What counts towards a prompt's failure rate; an abstention is an answer."""

AT_ONCE = 500


@dataclass(slots=True)
class ReportRow:
    """What one voter did on one dataset.

    Parameters
    ----------
    endpoint, voter, prompt, dataset, model : str
    asked : int
        Requests in the ledger, all samples counted.
    votes, supported : int
        Requests that gave a vote, and those of them that were 1.
    answers : int
        Requests that gave an answer of which a judgment is made, and no vote of their own.
    reasons : dict of str to int
        Requests without a vote, by reason.
    failures : dict of str to int
        Those that failed, by class.
    waiting, unknown : int
        Requests not settled yet, and those whose answer may have been lost.
    attempts : int
    cost : float
        Dollars of the answers with a known price.
    unpriced : int
        Answers without one.
    seconds_median, seconds_p95 : float or None
        Time to the answer.
    """

    endpoint: str
    voter: str
    prompt: str
    dataset: str
    model: str
    asked: int = 0
    votes: int = 0
    supported: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    waiting: int = 0
    unknown: int = 0
    attempts: int = 0
    cost: float = 0.0
    unpriced: int = 0
    seconds_median: float | None = None
    seconds_p95: float | None = None
    answers: int = 0

    @property
    def settled(self) -> int:
        """Requests that are not waiting."""
        return self.asked - self.waiting

    @property
    def without_answer(self) -> int:
        """Requests without a usable answer."""
        return sum(self.reasons.get(reason, 0) for reason in WITHOUT_ANSWER)

    @property
    def failure_rate(self) -> float:
        """Share of the settled requests without a usable answer; 0 where none is settled."""
        return self.without_answer / self.settled if self.settled else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return all fields and the failure rate."""
        return {**asdict(self), "failure_rate": self.failure_rate}


@dataclass(frozen=True, slots=True)
class Answer:
    """What has become of one request.

    Parameters
    ----------
    state : str
        ``queued``, ``sent``, ``done``, ``failed`` or ``unknown``.
    owner : int
        The run that asked it last.
    failure : str or None
        The class of the failure, or why a reply has no vote.
    reply : Reply or None
        Of a request that is done.
    """

    state: str
    owner: int
    failure: str | None
    reply: Reply | None


class History:
    """An existing ledger, opened to read.

    Parameters
    ----------
    target : str
        A SQLite file or a ``postgresql+psycopg://`` URL.
    """

    def __init__(self, target: str) -> None:
        self.name = describe_ledger(target)
        self._connection: Connection = connect(engine_for(target, create=False), self.name)

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def states(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the state of those of `keys` that are in the ledger."""
        table = _schema.requests
        found: dict[str, str] = {}
        for at in range(0, len(keys), AT_ONCE):
            chosen = select(table.c.key, table.c.state).where(table.c.key.in_(keys[at : at + AT_ONCE]))
            found |= {row.key: row.state for row in self._connection.execute(chosen)}
        return found

    def answers(self, keys: Sequence[str]) -> dict[str, Answer]:
        """Return what has become of those of `keys` that are in the ledger, with their replies as they are now."""
        request, attempt = _schema.requests, _schema.attempts
        last = (attempt.c.key == request.c.key) & (attempt.c.number == request.c.attempts)
        columns = (*_STATE_COLUMNS, attempt.c.reply, attempt.c.outcome, attempt.c.message, attempt.c.cost)
        found: dict[str, Answer] = {}
        for at in range(0, len(keys), AT_ONCE):
            some = request.c.key.in_(keys[at : at + AT_ONCE])
            chosen = select(*columns, attempt.c.seconds).join(attempt, last, isouter=True).where(some)
            for row in self._connection.execute(chosen):
                reply = _reply(row) if row.state == "done" else None
                found[row.key] = Answer(row.state, row.owner, row.failure or row.reason, reply)
        self._connection.rollback()  # a transaction left open would show later calls the ledger of today
        return found

    def judgments(
        self, endpoint: str, dataset: str, items: Sequence[str], voters: Collection[str], samples: int
    ) -> dict[tuple[str, str], list[Judgment]]:
        """Return what was said, by item and voter, in the order of the samples.

        A request without an answer, for whatever cause, counts as failed.
        """
        item, request = _schema.items, _schema.requests
        found: dict[tuple[str, str], list[Judgment]] = {}
        for at in range(0, len(items), AT_ONCE):
            chosen = (
                select(item.c.item, item.c.voter, request.c.state, request.c.vote, request.c.reason, request.c.score)
                .join(request, request.c.key == item.c.key)
                .where(item.c.endpoint == endpoint, item.c.dataset == dataset, item.c.sample < samples)
                .where(item.c.item.in_(items[at : at + AT_ONCE]))
                .order_by(item.c.sample)
            )
            for name, voter, state, vote, reason, score in self._connection.execute(chosen):
                if voter in voters:
                    found.setdefault((name, voter), []).append(_judgment(state, vote, reason, score))
        return found

    def cost(self) -> tuple[float, int]:
        """Return the dollars of all priced answers, and the number of answers without a price."""
        table = _schema.attempts
        unpriced = func.sum(case((table.c.cost.is_(None), 1), else_=0))
        chosen = select(func.sum(table.c.cost), unpriced).where(table.c.outcome == "answered")
        dollars, without = self._connection.execute(chosen).one()
        return float(dollars or 0.0), int(without or 0)

    def lost(self) -> int:
        """Return the number of attempts that were in flight when their run died: answers that may be paid twice."""
        table = _schema.attempts
        return self._connection.execute(select(func.count()).where(table.c.outcome == "unknown")).scalar_one()

    def quirks(self) -> list[dict[str, Any]]:
        """Return what models were found unable to do."""
        table = _schema.quirks
        chosen = select(table.c.endpoint, table.c.model, table.c.parameter, table.c.action, table.c.message)
        rows = self._connection.execute(chosen.order_by(table.c.endpoint, table.c.model, table.c.parameter)).mappings()
        return [dict(row) for row in rows]

    def report(self) -> list[ReportRow]:
        """Return one row per endpoint, voter and dataset, sorted."""
        rows: dict[tuple[str, str, str], ReportRow] = {}
        for counted in self._counts():
            row = rows.setdefault((counted["endpoint"], counted["voter"], counted["dataset"]), _empty_row(counted))
            _add(row, counted)
        for key, seconds in self._seconds().items():
            rows[key].seconds_median = statistics.median(seconds)
            rows[key].seconds_p95 = sorted(seconds)[min(int(0.95 * len(seconds)), len(seconds) - 1)]
        return [rows[key] for key in sorted(rows)]

    def _counts(self) -> Iterable[Mapping[str, Any]]:
        item, request, attempt = _schema.items, _schema.requests, _schema.attempts
        unpriced = case((attempt.c.outcome.is_distinct_from("answered"), 0), (attempt.c.cost.is_(None), 1), else_=0)
        spent = (
            select(attempt.c.key, func.sum(attempt.c.cost).label("cost"), func.sum(unpriced).label("unpriced"))
            .group_by(attempt.c.key)
            .subquery()
        )
        groups = (
            *(item.c.endpoint, item.c.voter, item.c.dataset, request.c.prompt, request.c.model),
            *(request.c.state, request.c.vote, request.c.reason, request.c.failure),
        )
        chosen = (
            select(
                *groups,
                func.count().label("n"),
                func.sum(request.c.attempts).label("attempts"),
                func.sum(spent.c.cost).label("cost"),
                func.sum(spent.c.unpriced).label("unpriced"),
            )
            .join(request, request.c.key == item.c.key)
            .join(spent, spent.c.key == item.c.key, isouter=True)
            .group_by(*groups)
        )
        return [dict(row) for row in self._connection.execute(chosen).mappings()]

    def _seconds(self) -> dict[tuple[str, str, str], "array[float]"]:
        item, attempt = _schema.items, _schema.attempts
        chosen = (
            select(item.c.endpoint, item.c.voter, item.c.dataset, attempt.c.seconds)
            .join(attempt, attempt.c.key == item.c.key)
            .where(attempt.c.outcome == "answered", attempt.c.seconds.is_not(None))
        )
        found: dict[tuple[str, str, str], array[float]] = {}
        with closing(self._connection.execution_options(yield_per=10_000).execute(chosen)) as rows:
            for endpoint, voter, dataset, seconds in rows:
                found.setdefault((endpoint, voter, dataset), array("f")).append(seconds)
        return found


_STATE_COLUMNS = tuple(_schema.requests.c[name] for name in ("key", "state", "owner", "failure", "reason"))


def _reply(row: Any) -> Reply:
    """Return the reply of a request that is done; a refusal that came as an error has no text."""
    if row.outcome != "answered":
        return Reply("", finish_reason="content_filter", refusal=row.message or "refused", seconds=row.seconds)
    return replace(read_reply(row.reply), cost=row.cost, seconds=row.seconds)


def _judgment(state: str, vote: int | None, reason: Any, score: float | None) -> Judgment:
    if state != "done" or vote is None:
        return Judgment(vote=-1, reason="failed")
    return Judgment(vote=vote, reason=reason, score=score)


def _empty_row(counted: Mapping[str, Any]) -> ReportRow:
    return ReportRow(*(counted[name] for name in ("endpoint", "voter", "prompt", "dataset", "model")))


def _add(row: ReportRow, counted: Mapping[str, Any]) -> None:
    """Add the requests of one state, vote, reason and failure to a row."""
    n, state = counted["n"], counted["state"]
    row.asked += n
    row.attempts += counted["attempts"] or 0
    row.cost += counted["cost"] or 0.0
    row.unpriced += counted["unpriced"] or 0
    if state in ("queued", "sent"):
        row.waiting += n
    elif state == "done" and counted["vote"] is None:
        row.answers += n
    elif state == "done" and counted["reason"] is None:
        row.votes += n
        row.supported += n * counted["vote"]
    elif state == "done":
        row.reasons[counted["reason"]] = row.reasons.get(counted["reason"], 0) + n
    else:
        row.unknown += n * (state == "unknown")
        row.reasons["failed"] = row.reasons.get("failed", 0) + n
        row.failures[counted["failure"]] = row.failures.get(counted["failure"], 0) + n
