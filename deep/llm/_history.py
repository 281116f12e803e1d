"""Reading a ledger without writing to it: the replies it holds, the requests left to ask, and the report."""

import json
import statistics
from array import array
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import Connection, RowMapping, Select, case, func, select
from sqlalchemy.exc import SQLAlchemyError

from deep.llm import schema
from deep.llm._database import connect, describe_ledger, engine_for, in_parts, one_line
from deep.llm._errors import AMBIGUOUS, CallError, LedgerError, RequestState
from deep.llm._ledger import known_requests, read_quirks
from deep.llm._messages import Reply, read_reply
from deep.llm._providers import Quirk
from deep.llm.schema import RequestRow
from deep.records import FAILURE_REASONS

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class ReportRow:
    """The requests of one voter on one dataset, counted.

    Parameters
    ----------
    endpoint, voter, prompt, dataset, model : str
        Names, as the ledger keeps them; the model is the one asked.
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
        Attempts at all of these requests together.
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
        return sum(self.reasons.get(reason, 0) for reason in FAILURE_REASONS)

    @property
    def failure_rate(self) -> float:
        """Share of the settled requests without a usable answer; 0 where none is settled."""
        return self.without_answer / self.settled if self.settled else 0.0

    def as_dict(self) -> dict[str, object]:
        """Return all fields and the failure rate."""
        return {**asdict(self), "failure_rate": self.failure_rate}


@dataclass(frozen=True, slots=True)
class Answer:
    """The state of one request, and its reply.

    Parameters
    ----------
    state : {'done', 'failed', 'queued', 'sent', 'unknown'}
        Of the request; of a 'sent' one the answer is not in yet, of an 'unknown' one it may be lost.
    owner : int
        The run that asked it last.
    failure : str or None
        The class of the failure, or why a reply has no vote.
    reply : Reply or None
        Of a request that is done.
    """

    state: RequestState
    owner: int
    failure: str | None
    reply: Reply | None


# An item is named by its dataset and its id.
ItemName = tuple[str, str]


class TranscriptMessage(NamedTuple):
    """A message of a conversation with a judge: who says it, and its text."""

    role: str
    text: str


def _errors_in_one_line(method: Callable[Concatenate["History", P], T]) -> Callable[Concatenate["History", P], T]:
    """Return a method that says in one line where the ledger cannot be read, or holds what no run has written."""

    @wraps(method)
    def read(history: "History", /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(history, *args, **kwargs)
        # A damaged file shows itself by any of these: in SQLite, in a typed column, or in a reply that is read again.
        except (CallError, LookupError, SQLAlchemyError, TypeError, ValueError) as error:
            message = (
                f"`ledger` {history.name} cannot be read: {one_line(error)}. Take a copy from before it was damaged."
            )
            raise LedgerError(message) from None

    return read


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
        with suppress(SQLAlchemyError):  # of a connection that is lost, from which nothing is read any more
            self._connection.close()

    @_errors_in_one_line
    def select(self, chosen: Select[Any]) -> Sequence[RowMapping]:
        """Return the rows of a query on the tables of `deep.llm.schema`."""
        return self._connection.execute(chosen).mappings().all()

    @_errors_in_one_line
    def rows(self, keys: Sequence[str]) -> dict[str, RequestRow]:
        """Return the rows of those of `keys` that are in the ledger."""
        return {key: row for part in in_parts(keys) for key, row in known_requests(self._connection, part).items()}

    @_errors_in_one_line
    def answers(self, keys: Sequence[str]) -> dict[str, Answer]:
        """Return states and replies, as they are now, by key; without those of `keys` that are not in the ledger."""
        request, attempt = schema.requests.c, schema.attempts.c
        request_columns = (request.key, request.state, request.owner, request.failure, request.reason, request.attempts)
        answer = (attempt.reply, attempt.outcome, attempt.message, attempt.cost, attempt.seconds)
        last = (attempt.key == request.key) & (attempt.number == request.attempts)
        query = select(*request_columns, *answer).join(schema.attempts, last, isouter=True)
        answers: dict[str, Answer] = {}
        for part in in_parts(keys):
            rows = self._connection.execute(query.where(request.key.in_(part))).mappings().all()
            series = self._series([row["key"] for row in rows if row["attempts"] > 1 or row["reason"] == "truncated"])
            for row in rows:
                reply = _standing_reply(row, series.get(row["key"], []))
                answers[row["key"]] = Answer(row["state"], row["owner"], row["failure"] or row["reason"], reply)
        self._connection.rollback()  # a transaction left open would show later calls the ledger of today
        return answers

    def _series(self, keys: Sequence[str]) -> dict[str, list[RowMapping]]:
        """Return the answers to requests that were asked more than once, in order."""
        attempt = schema.attempts.c
        columns = (attempt.key, attempt.outcome, attempt.reply, attempt.cost, attempt.seconds)
        query = select(*columns).where(attempt.key.in_(keys), attempt.outcome == "answered", attempt.number > 0)
        result: dict[str, list[RowMapping]] = {}
        for row in self._connection.execute(query.order_by(attempt.number)).mappings() if keys else ():
            result.setdefault(row["key"], []).append(row)
        return result

    @_errors_in_one_line
    def transcripts(self, items: Collection[ItemName]) -> dict[ItemName, dict[str, list[TranscriptMessage]]]:
        """Return the messages to LLMs about items and their replies, by (dataset, item) and voter.

        Parameters
        ----------
        items : collection of (dataset, item)
            Windows of a long source are of their item.
        """
        item, request, attempt = schema.items.c, schema.requests.c, schema.attempts.c
        item_set, items_by_key = {*items}, dict[str, list[tuple[ItemName, str]]]()
        for row in self._connection.execute(select(item.dataset, item.item, item.voter, item.key)).mappings():
            names = [(row["dataset"], name) for name in (row["item"], row["item"].rpartition("#")[0])]
            # One request serves all items of the same texts.
            pairs = [(name, row["voter"].partition("#")[0]) for name in names if name in item_set]
            items_by_key.setdefault(row["key"], []).extend(pairs)
        body = func.coalesce(request.changed_body, request.requested_body).label("body")
        query = select(request.key, request.queued, body, attempt.reply).where(attempt.outcome == "answered")
        query = query.join(schema.attempts, attempt.key == request.key).order_by(attempt.number)
        keys = [key for key, pairs in items_by_key.items() if pairs]
        rows = [row for part in in_parts(keys) for row in self.select(query.where(request.key.in_(part)))]
        conversations = dict[ItemName, dict[str, list[TranscriptMessage]]]()
        # A repair turn is asked last of all, as a conversation of its own that quotes the reply.
        for row in sorted(rows, key=lambda row: float(row["queued"])):
            messages = json.loads(row["body"]).get("messages", ())
            if not messages:  # a function is asked nothing in words
                continue
            turns = [TranscriptMessage(str(one["role"]), str(one["content"])) for one in messages]
            turns.append(TranscriptMessage("assistant", read_reply(row["reply"]).text))
            for name, voter in items_by_key[row["key"]]:
                conversations.setdefault(name, {}).setdefault(voter, []).extend(turns)
        return conversations

    @_errors_in_one_line
    def cost(self) -> tuple[float, int]:
        """Return the dollars of all priced answers, and the number of answers without a price."""
        table = schema.attempts
        unpriced = func.sum(case((table.c.cost.is_(None), 1), else_=0))
        query = select(func.sum(table.c.cost), unpriced).where(table.c.outcome == "answered")
        dollars, without = self._connection.execute(query).one()
        return float(dollars or 0.0), int(without or 0)

    @_errors_in_one_line
    def lost(self) -> int:
        """Return the number of attempts whose answer may be on the bill and is not here.

        They were in flight when their run died, took too long, were cut off, or brought what was no answer.
        """
        is_lost = schema.attempts.c.outcome.in_(AMBIGUOUS)
        return self._connection.execute(select(func.count()).where(is_lost)).scalar_one()

    @_errors_in_one_line
    def runs_with(self, option: str) -> set[int]:
        """Return the runs whose `option` was on."""
        table = schema.runs.c
        rows = self._connection.execute(select(table.id, table.options))
        # Runs of earlier versions do not know the option: they count as runs without it.
        return {run for run, options in rows if json.loads(options).get(option) is True}

    @_errors_in_one_line
    def other_models(self) -> dict[tuple[str, str], int]:
        """Return the number of answers by a model of another name: by the one asked and the one that answered."""
        request, attempt = schema.requests.c, schema.attempts.c
        names = request.model, attempt.answered_by
        query = select(*names, func.count()).join(schema.attempts, attempt.key == request.key)
        query = query.where(request.model != attempt.answered_by).group_by(*names).order_by(*names)
        return {(row[0], row[1]): row[2] for row in self._connection.execute(query)}

    @_errors_in_one_line
    def quirks(self) -> list[Quirk]:
        """Return the fields that models refuse or ignore."""
        return read_quirks(self._connection)

    @_errors_in_one_line
    def report(self) -> list[ReportRow]:
        """Return one row per endpoint, voter and dataset, sorted."""
        rows: dict[tuple[str, str, str], ReportRow] = {}
        for counts in self._counts():
            names = {name: counts[name] for name in ("endpoint", "voter", "prompt", "dataset", "model")}
            key = names["endpoint"], names["voter"], names["dataset"]
            _add(rows.setdefault(key, ReportRow(**names)), counts)
        for key, seconds in self._seconds().items():
            rows[key].seconds_median = statistics.median(seconds)
            rows[key].seconds_p95 = sorted(seconds)[min(int(0.95 * len(seconds)), len(seconds) - 1)]
        return [rows[key] for key in sorted(rows)]

    def _counts(self) -> Sequence[RowMapping]:
        """Return the requests and dollars by endpoint, voter, dataset and outcome."""
        item, request, attempt = schema.items.c, schema.requests.c, schema.attempts.c
        # An attempt in flight has no outcome, and NULL is neither equal nor unequal to anything.
        unpriced = case((attempt.outcome.is_distinct_from("answered"), 0), (attempt.cost.is_(None), 1), else_=0)
        costs = (
            select(attempt.key, func.sum(attempt.cost).label("cost"), func.sum(unpriced).label("unpriced"))
            .group_by(attempt.key)
            .subquery()
        )
        groups = (
            *(item.endpoint, item.voter, item.dataset, request.prompt, request.model),
            *(request.state, request.vote, request.reason, request.failure),
        )
        sums = (request.attempts, costs.c.cost, costs.c.unpriced)
        query = (
            select(*groups, func.count().label("n"), *(func.sum(values).label(values.name) for values in sums))
            .join(schema.requests, request.key == item.key)
            .join(costs, costs.c.key == item.key, isouter=True)
            .group_by(*groups)
        )
        return self.select(query)

    def _seconds(self) -> dict[tuple[str, str, str], "array[float]"]:
        """Return the seconds of all answers by endpoint, voter and dataset."""
        item, attempt = schema.items.c, schema.attempts.c
        query = (
            select(item.endpoint, item.voter, item.dataset, attempt.seconds)
            .join(schema.attempts, attempt.key == item.key)
            .where(attempt.outcome == "answered", attempt.seconds.is_not(None))
        )
        # Four bytes a time, and rows in parts: a ledger may hold millions of attempts.
        times: dict[tuple[str, str, str], array[float]] = {}
        with closing(self._connection.execution_options(yield_per=10_000).execute(query)) as rows:
            for endpoint, voter, dataset, seconds in rows:
                times.setdefault((endpoint, voter, dataset), array("f")).append(seconds)
        return times


def _standing_reply(row: RowMapping, answers: Sequence[RowMapping]) -> Reply | None:
    """Return the reply of a request at the cost of all answers to it.

    One that was cut off stands until a longer one has come, whatever became of that.
    """
    # The longer request may have failed: the answer that was cut off is paid for, and is all there is.
    is_cut = row["reason"] == "truncated" and bool(answers)
    if row["state"] != "done" and not is_cut:
        return None
    reply = _reply(answers[-1] if is_cut else row)
    costs = [answer["cost"] for answer in answers]
    # All answers to it were paid for, whichever of them counts.
    if len(costs) < 2:
        return reply
    return replace(reply, cost=None if None in costs else sum(costs))


def _reply(row: RowMapping) -> Reply:
    """Return the reply of a request that is done; a refusal that came as an error has no text."""
    if row["outcome"] != "answered":
        return Reply("", finish_reason="content_filter", refusal=row["message"] or "refused", seconds=row["seconds"])
    return replace(read_reply(row["reply"]), cost=row["cost"], seconds=row["seconds"])


def _add(row: ReportRow, counts: RowMapping) -> None:
    """Add the requests of one state, vote, reason and failure to a row."""
    n, state, vote, reason = (counts[name] for name in ("n", "state", "vote", "reason"))
    row.asked += n
    row.attempts += counts["attempts"] or 0
    row.cost += counts["cost"] or 0.0
    row.unpriced += counts["unpriced"] or 0
    if state in ("queued", "sent"):
        row.waiting += n
    elif state == "done" and vote is None:
        row.answers += n
    elif state == "done" and reason is None:
        row.votes += n
        row.supported += n * vote
    else:
        reason = reason if state == "done" else "failed"
        row.reasons[reason] = row.reasons.get(reason, 0) + n
        row.unknown += n * (state == "unknown")
        if state != "done":
            row.failures[counts["failure"]] = row.failures.get(counts["failure"], 0) + n
