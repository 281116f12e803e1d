"""One request from the queue to its settled row: limits, attempts, quirks, and the ledger before and after."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from deep.llm._budget import Budget, output_limit, worst_case
from deep.llm._claims import Job
from deep.llm._errors import CallError, EndpointError
from deep.llm._ledger import Ledger
from deep.llm._limits import ConcurrencyLimit, Throttle
from deep.llm._price import PriceBook
from deep.llm._quirks import Quirk, Quirks
from deep.llm._reply import Reply, read_reply
from deep.llm._request import Request, json_text
from deep.llm._retry import RetryPolicy
from deep.llm._tally import Tally
from deep.records import ABSTAIN, Judgment

__all__ = ["Caller", "Parser", "Sender", "Terms"]

MUTE_AFTER = 3
"""Server errors before a model's first answer, after which a JSON schema is taken to be what breaks it."""

HOPELESS_AFTER = 3
"""Requests refused in a row before a model's first answer, after which no other is sent."""

FORMLESS_AFTER = 3
"""Replies that are not JSON, and no other, after which a schema is taken to be ignored."""

REFRESH_SECONDS = 2.0
"""How old the knowledge of what other machines have spent may be."""

BREAK_AFTER = 20
"""Requests given up in a row, with no answer between them, after which the endpoint is taken to be down."""

Parser = Callable[[Request, Reply], Judgment | None]
"""Returns None where a reply is one of several that make up a judgment, and has no vote of its own."""


class Sender(Protocol):
    """What a caller needs of a client."""

    async def send(self, content: bytes) -> str:
        """Return the body of the reply to one request."""
        ...


@dataclass(slots=True)
class Terms:
    """The limits that all calls of a run share.

    Parameters
    ----------
    concurrency : ConcurrencyLimit
    requests_per_minute, tokens_per_minute : Throttle
    retry : RetryPolicy
    budget : Budget
    prices : PriceBook
    """

    prices: PriceBook
    concurrency: ConcurrencyLimit = field(default_factory=ConcurrencyLimit)
    requests_per_minute: Throttle = field(default_factory=Throttle)
    tokens_per_minute: Throttle = field(default_factory=Throttle)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget = field(default_factory=Budget)


class Caller:
    """Asks one request after another on behalf of all workers of a run.

    Parameters
    ----------
    ledger : Ledger
    client : Sender
    parse : callable
        Turns a request and its reply into a Judgment; None where it has no vote of its own.
    terms : Terms
    quirks : Quirks
    tally : Tally
    """

    def __init__(
        self, ledger: Ledger, client: Sender, parse: Parser, terms: Terms, quirks: Quirks, tally: Tally
    ) -> None:
        self._ledger = ledger
        self._client = client
        self._parse = parse
        self._terms = terms
        self._quirks = quirks
        self._tally = tally
        self._scouts: dict[str, asyncio.Event] = {}
        self._open: set[str] = set()
        self._refusals: Counter[str] = Counter()
        self._answered: set[str] = set()
        self._server_errors: Counter[str] = Counter()
        self._formless: Counter[str] = Counter()
        self._given_up = 0
        self._refreshed = time.monotonic()
        self._unwritten: set[asyncio.Future[None]] = set()
        self.in_flight: set[asyncio.Task[Any]] = set()
        self.stopping = False

    async def ask(self, job: Job) -> None:
        """Bring one job to an end: an answer, a failure, or back to the queue where the run is stopping.

        Raises
        ------
        EndpointError
            No other request would fare better.
        LedgerError
            The ledger cannot be written.
        BudgetReachedError
            The budget has no room for the next attempt.
        """
        scouting = await self._wait_for_turn(job.request.model)
        if self.stopping:
            return
        try:
            await self._try(job)
        except CallError as error:
            self._give_up(job, error)
        finally:
            if scouting is not None:
                self._scouts.pop(job.request.model, None)
                scouting.set()

    async def _try(self, job: Job) -> None:
        most = self._terms.retry.attempts
        try:
            await self._attempt(job, last=most == 1)
        except CallError as error:
            first = error
        else:
            return
        async for attempt in self._terms.retry.context(self._backoff):
            with attempt:
                if attempt.num == 1:
                    raise first  # made already: most requests never get here, and are spared what stamina costs
                await self._attempt(job, last=attempt.num >= most)

    async def refresh_budget(self) -> None:
        """Learn now and then what other machines have spent, where they share the ledger and there is a budget."""
        now = time.monotonic()
        if self._terms.budget.limit is not None and self._ledger.shared and now - self._refreshed > REFRESH_SECONDS:
            self._refreshed = now
            self._terms.budget.spent_before = await self._ledger.spent_by_others()

    async def _wait_for_turn(self, model: str) -> asyncio.Event | None:
        """Wait until a model is open to all; where it is nobody's turn, be the scout, and return the scout's event.

        The first request to a model goes alone, and so does the next where that one was refused: what the model
        cannot do, and that it is not there at all, is then learned by one worker and not by all of them.
        """
        while model not in self._open and not self.stopping:
            if model not in self._scouts:
                self._scouts[model] = asyncio.Event()
                return self._scouts[model]
            await self._scouts[model].wait()
        return None

    def _open_to_all(self, model: str) -> None:
        self._open.add(model)
        if model in self._scouts:
            self._scouts[model].set()

    def _backoff(self, error: Exception) -> bool | float:
        return not self.stopping and self._terms.retry.backoff(error)

    def _give_up(self, job: Job, error: CallError) -> None:
        if error.state == "queued":
            return
        if error.state == "done":
            self._tally.answer(job.request.voter, Judgment(vote=ABSTAIN, reason="refused"), 0.0)
            return
        self._tally.fail(job.request.voter)
        if self._terms.retry.retries(error):
            self._given_up += 1
        if self._given_up >= max(BREAK_AFTER, self._terms.concurrency.current):
            raise EndpointError(
                f"`base_url` must answer. The last {self._given_up} requests were given up, the last one for: {error}. "
                f"Run the same command again with `retry_failed` {error.kind} once it does."
            )

    async def _attempt(self, job: Job, *, last: bool) -> None:
        """Send the job once; more often only where a quirk is learned."""
        again = True
        while again:
            body = self._quirks.apply(job.request.endpoint, job.request.body)
            try:
                await self._send(job, body)
                again = False
            except CallError as error:
                again = await self._learn(job, body, error)
                if not again:
                    await self._fail(job, error, last=last)
                    raise
            finally:
                self.in_flight.discard(_current_task())

    async def _send(self, job: Job, body: Mapping[str, Any]) -> None:
        """Wait for a turn, then send the job's effective body."""
        terms = self._terms
        text = job.text if body is job.request.body else json_text(body)
        worst = worst_case(terms.prices, body, text)
        await terms.budget.admit(worst)
        lost: float | None = 0.0
        try:
            async with terms.concurrency:
                estimate = len(text) / 4 + (output_limit(body) or 0)
                await terms.requests_per_minute.wait()
                await terms.tokens_per_minute.wait(estimate)
                lost = worst
                lost = await self._exchange(job, body, text, worst)
        except CallError as error:
            lost = worst if self._may_be_billed(error) else 0.0
            raise
        finally:
            terms.budget.settle(worst, lost)

    def _may_be_billed(self, error: CallError) -> bool:
        return error.kind in ("broken", "dropped", "timeout")

    async def _exchange(self, job: Job, body: Mapping[str, Any], text: str, worst: float | None) -> float | None:
        """Write, send, write; return what it cost."""
        self.in_flight.add(_current_task())
        changed = None if body is job.request.body else text
        await self._ledger.start(job, changed_body=changed, worst_case=worst)
        self._tally.attempts += 1
        started = time.monotonic()
        try:
            reply = read_reply(await self._client.send(text.encode()))
        except CallError as error:
            error.seconds = time.monotonic() - started
            raise
        return self._settle(job, body, reply, time.monotonic() - started, worst)

    def _settle(
        self, job: Job, body: Mapping[str, Any], reply: Reply, seconds: float, worst: float | None
    ) -> float | None:
        request = job.request
        judgment, message = read_safely(self._parse, request, reply)
        models = [name for name in (reply.model, request.model) if name]
        cost = self._terms.prices.cost(models, reply.tokens)
        quirks = self._ignored(request, body, reply)
        written = self._ledger.answer(job, reply, judgment, seconds=seconds, cost=cost, message=message, quirks=quirks)
        self._unwritten.add(written)
        written.add_done_callback(partial(self._acknowledge, request.voter, judgment, cost))
        self._given_up = 0
        self._answered.add(request.model)
        self._open_to_all(request.model)
        self._terms.concurrency.answered()
        return worst if cost is None else cost

    def _acknowledge(
        self, voter: str, judgment: Judgment | None, cost: float | None, written: "asyncio.Future[None]"
    ) -> None:
        """Count an answer once it is on disk.

        The worker does not wait for that: it goes on to the next request, whose own entry, which it does wait
        for, is committed with this answer or after it. So no more requests are in doubt than there are workers.
        """
        self._unwritten.discard(written)
        if written.exception() is None:
            self._tally.answer(voter, judgment, cost)

    async def flush(self) -> None:
        """Wait until every answer is on disk.

        Raises
        ------
        LedgerError
            One could not be written.
        """
        if self._unwritten:
            written, _ = await asyncio.wait(set(self._unwritten))
            for future in written:
                future.result()

    def _ignored(self, request: Request, body: Mapping[str, Any], reply: Reply) -> list[Quirk]:
        """Notice what was asked for and not given."""
        found: list[Quirk] = []
        if body.get("logprobs") and reply.logprobs is None:
            found += self._quirks.ignored(request.endpoint, request.model, "logprobs")
        if "response_format" in body and self._is_formless(request.model, reply):
            found += self._quirks.ignored(request.endpoint, request.model, "response_format")
        return found

    def _is_formless(self, model: str, reply: Reply) -> bool:
        """Return whether none of a model's first replies was the JSON that was asked for."""
        if reply.text.lstrip().startswith("{"):
            self._formless[model] = -1
        if self._formless[model] >= 0 and reply.text.strip() and not reply.refusal:
            self._formless[model] += 1
        return self._formless[model] == FORMLESS_AFTER

    async def _learn(self, job: Job, body: Mapping[str, Any], error: CallError) -> bool:
        """Return whether the refused body is to be sent again at once, without what the model lacks."""
        endpoint, model = job.request.endpoint, job.request.model
        quirks = self._quirks.learn(endpoint, body, error)
        if self._may_be_schema(job.request, error):
            self._server_errors[model] += 1
            if self._server_errors[model] == MUTE_AFTER:
                quirks = self._quirks.drop(endpoint, body, "response_format", error.message)
        if self.stopping or not (quirks or error.kind == "rejected") or self._quirks.apply(endpoint, body) is body:
            return False
        await self._ledger.fail(job, error, state="queued", seconds=error.seconds, quirks=quirks)
        return True

    async def _fail(self, job: Job, error: CallError, *, last: bool) -> None:
        """Write down a failed attempt, and what becomes of the request."""
        if error.kind == "rate_limited":
            self._terms.concurrency.rate_limited()
        hopeless = self._is_hopeless(job.request.model, error)
        error.state = "queued" if hopeless else self._state_after(error, last=last)
        await self._ledger.fail(job, error, state=error.state, seconds=error.seconds)
        if hopeless:
            self.stopping = True
            raise EndpointError(f"The endpoint refuses every request: {error.message}")
        if error.kind != "rejected" and not self._may_be_schema(job.request, error):
            self._open_to_all(job.request.model)

    def _is_hopeless(self, model: str, error: CallError) -> bool:
        """Return whether a refusal is not about the request, but about the key, the account or the model."""
        if error.kind == "fatal" or model in self._answered:
            return error.kind == "fatal"
        self._refusals[model] += error.kind == "rejected"
        return error.kind == "no_model" or error.status == 403 or self._refusals[model] >= HOPELESS_AFTER

    def _may_be_schema(self, request: Request, error: CallError) -> bool:
        """Return whether a server error may come from a JSON schema that the model's server cannot digest."""
        return (
            error.kind == "server_error"
            and request.model not in self._answered
            and "response_format" in self._quirks.apply(request.endpoint, request.body)
        )

    def _state_after(self, error: CallError, *, last: bool) -> str:
        retry = self._terms.retry
        if error.kind == "refused":
            return "done"
        if retry.at_most_once and error.kind in ("dropped", "timeout"):
            return "unknown"
        return "queued" if retry.retries(error) and not last else "failed"


def read_safely(parse: Parser, request: Request, reply: Reply) -> tuple[Judgment | None, str | None]:
    """Return what a reply says; it is paid for, so a parser that breaks on it must not lose it."""
    try:
        return parse(request, reply), None
    except Exception as error:
        return Judgment(vote=ABSTAIN, reason="unparsable"), f"the parser raised {type(error).__name__}: {error}"


def _current_task() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    assert task is not None, "called outside a task"
    return task
