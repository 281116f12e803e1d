"""One request from the queue to its settled row: the gate, attempts, and the ledger before and after each."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from deep.llm._attempt import Attempt, Failed, Terms
from deep.llm._breaker import CONSTRAINTS, CircuitBreaker
from deep.llm._client import Client
from deep.llm._errors import AMBIGUOUS, CallError, EndpointError, RequestState
from deep.llm._gate import ModelGate, Quirk
from deep.llm._lease import Job
from deep.llm._ledger import Ledger
from deep.llm._reply import Reply
from deep.llm._request import Body, Request, json_text
from deep.llm._tally import Tally
from deep.llm._writer import Written
from deep.records import ABSTAIN, Judgment

REFRESH_SECONDS = 2.0
"""How old the knowledge of what other machines have spent may be."""

Parser = Callable[[Request, Reply], Judgment | None]
"""Returns None where a reply is one of several that make up a judgment, and has no vote of its own."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The state of a request after one attempt.

    Parameters
    ----------
    state : RequestState
        Where it is queued it may be tried again.
    error : CallError, optional
        Why it has no answer.
    learned : bool
        It was refused for a field that the model lacks, and may be sent without it at once.
    cut : bool
        Its reply was cut off, and it may be sent with a longer limit at once.
    """

    state: RequestState
    error: CallError | None = None
    learned: bool = False
    cut: bool = False


@dataclass(eq=False)
class Session:
    """The parts of a run that whoever asks works with.

    Parameters
    ----------
    ledger : Ledger
    client : Client
    parse : callable
        Turns a request and its reply into a Judgment; None where it has no vote of its own.
    terms : Terms
    gate : ModelGate
    tally : Tally
    """

    ledger: Ledger
    client: Client
    parse: Parser
    terms: Terms
    gate: ModelGate
    tally: Tally
    _breaker: CircuitBreaker = field(default_factory=CircuitBreaker, init=False)

    def read(self, request: Request, reply: Reply) -> tuple[Judgment | None, str | None]:
        """Return the judgment in a reply, or what is wrong with it.

        The reply is paid for, so a parser that breaks on it must not lose it.
        """
        try:
            return self.parse(request, reply), None
        except Exception as error:
            return Judgment(vote=ABSTAIN, reason="unparsable"), f"the parser raised {type(error).__name__}: {error}"

    def body_of(self, request: Request) -> Body:
        """Return the body of a request as its model accepts it."""
        return self.gate.apply(request.endpoint, request.body, request.choice)

    def ignored(self, request: Request, body: Body, reply: Reply) -> list[Quirk]:
        """Return new quirks for what was asked for and not given."""
        fields = ["logprobs"] if body.get("logprobs") and reply.logprobs is None else []
        choice = request.choice
        if choice is not None:
            sent = [name for name in choice.fields if name in body]
            fields += sent if sent and self._breaker.ignores_choice(request.model, choice, reply) else []
        elif "response_format" in body and self._breaker.ignores_schema(request.model, reply):
            fields.append("response_format")
        return [quirk for name in fields for quirk in self.gate.ignored(request.endpoint, request.model, name)]

    def learn_from(self, job: Job, error: CallError) -> tuple[list[Quirk], bool]:
        """Return the quirks that a refusal in a batch tells of, and whether the request may be sent as they say.

        A longer limit may be refused, and tells of none; all else was answered before.
        """
        if job.longer:
            return [], False
        quirks = self.gate.learn(job.request.endpoint, job.request.body, error)
        return quirks, error.kind == "rejected" and self.body_of(job.request) is not job.request.body

    def is_cut(self, job: Job, judgment: Judgment | None) -> bool:
        """Return whether a reply was cut off at its length limit, and is to be asked for with a longer one."""
        return judgment is not None and judgment.reason == "truncated" and job.can_be_longer

    def count_answer(self, job: Job, judgment: Judgment | None, cost: float | None, *, again: bool = False) -> None:
        """Count a reply that is written down; with `again` it was cut off, and is asked for with a longer limit."""
        if again:
            self.tally.cut(cost)
            return
        self.tally.answer(job.request.voter, judgment, cost)
        if job.longer:
            self.tally.end_longer(judgment)

    def count_end(self, job: Job, state: RequestState, error: CallError | None) -> None:
        """Count a request without an answer; a content filter has refused one that is done all the same.

        Where an earlier reply was cut off, that one stands.
        """
        if job.longer and state != "queued":
            cut = Judgment(vote=ABSTAIN, reason="truncated")
            self.count_answer(job, cut, 0.0)
        elif state == "done":
            self.tally.answer(job.request.voter, Judgment(vote=ABSTAIN, reason="refused"), 0.0)
        elif state != "queued":
            self.tally.fail(job.request.voter, None if error is None else error.kind)


@dataclass(eq=False)
class Caller(Session):
    """Asks one request after another on behalf of all workers of a run.

    Attributes
    ----------
    in_flight : set of asyncio.Task
        The tasks whose request has been sent and is not written down yet.
    """

    in_flight: set[asyncio.Task[object] | None] = field(default_factory=set, init=False)
    _refreshed: float = field(default_factory=time.monotonic, init=False)
    _unwritten: set[Written] = field(default_factory=set, init=False)

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
        async with self.gate.turn(job.request.model):
            if not self.gate.closed:
                settled = await self._ask(job)
                if settled.error is not None and settled.state not in ("done", "queued"):
                    may_pass = self.terms.retry.retries(settled.error)
                    self._breaker.give_up(settled.error, may_pass=may_pass, at_once=self.terms.concurrency.current)

    async def _ask(self, job: Job) -> Settled:
        attempt = 1
        while True:
            settled = await self._attempt(job, attempt)
            if settled.error is not None:
                self.count_end(job, settled.state, settled.error)
            if settled.state != "queued" or self.gate.closed:
                return settled
            if settled.cut:
                job, attempt = job.with_longer_limit(), 1
            elif not settled.learned and settled.error is not None:
                await asyncio.sleep(self.terms.retry.wait(attempt, settled.error.retry_after))
                attempt += 1
            job = job.again()

    def stop(self) -> None:
        """Ask nothing more; what is in flight goes on to its end."""
        self.gate.closed = True

    async def refresh_budget(self) -> None:
        """Learn now and then what other machines have spent, where they share the ledger and there is a budget."""
        now = time.monotonic()
        if self.terms.budget.limit is not None and self.ledger.shared and now - self._refreshed > REFRESH_SECONDS:
            self._refreshed = now
            self.terms.budget.spent_before = await self.ledger.spent_by_others()

    async def _attempt(self, job: Job, number: int) -> Settled:
        """Write down, send and write down once; `number` counts the attempts of this run that were not for learning."""
        request, task = job.request, asyncio.current_task()
        body = self.body_of(request)
        text = job.text if body is request.body else json_text(body)
        as_kept = body is request.body and (request.choice is None or job.number == 1)

        async def announce(worst: float | None) -> None:
            self.in_flight.add(task)
            changed = None if as_kept else text
            await self.ledger.start(job, changed_body=changed, worst_case=worst)
            self.tally.attempts += 1

        try:
            ended = await Attempt(request.model, body, text).make(self.terms, announce, self.client.send)
            if isinstance(ended, Reply):
                return await self._answer(job, body, ended)
            return await self._learn(job, body, ended) or await self._fail(job, ended, number)
        finally:
            self.in_flight.discard(task)

    async def _answer(self, job: Job, body: Body, reply: Reply) -> Settled:
        """Hand an answer to the ledger.

        The worker does not wait until it is on disk: it goes on to the next request, whose own entry, which it does
        wait for, is committed with this answer or after it. So no more requests are in doubt than there are workers.
        """
        request = job.request
        judgment, message = self.read(request, reply)
        quirks, cut = self.ignored(request, body, reply), self.is_cut(job, judgment)
        written = self.ledger.answer(job, reply, judgment, message=message, quirks=quirks, again=cut)
        self.tally.name(request.model, reply.model)
        self._breaker.answered(request.model)
        self.gate.open(request.model)
        if cut:  # the next attempt concerns the same row
            await written
            self.count_answer(job, judgment, reply.cost, again=True)
            return Settled("queued", cut=True)
        self._unwritten.add(written)
        written.add_done_callback(partial(self._acknowledge, job, judgment, reply.cost))
        return Settled("done")

    def _acknowledge(self, job: Job, judgment: Judgment | None, cost: float | None, written: Written) -> None:
        """Count an answer once it is on disk."""
        self._unwritten.discard(written)
        if written.exception() is None:
            self.count_answer(job, judgment, cost)

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

    async def _learn(self, job: Job, body: Body, ended: Failed) -> Settled | None:
        """Write down what a refusal of `body` says of the model; None where it says nothing that helps.

        A longer limit may be refused; all else in `body` was answered before.
        """
        request, error = job.request, ended.error
        if job.longer:
            return None
        is_schema = self._may_be_schema(request, error) and self._breaker.blames_schema(request.model)
        constraint = next((name for name in CONSTRAINTS if name in body), None)
        quirks = self.gate.learn(request.endpoint, body, error, constraint if is_schema else None)
        if not quirks and request.choice is not None and self._breaker.may_be_choice(request.model, error):
            quirks = self.gate.learn(request.endpoint, body, error, constraint)
        accepted = self.gate.apply(request.endpoint, body, request.choice)
        helps = (quirks or error.kind == "rejected") and accepted is not body
        if self.gate.closed or not helps:
            return None
        await self.ledger.fail(job, error, state="queued", seconds=ended.seconds, quirks=quirks)
        return Settled("queued", error, learned=True)

    async def _fail(self, job: Job, ended: Failed, number: int) -> Settled:
        """Write down a failed attempt, and what becomes of the request."""
        request, error = job.request, ended.error
        self.tally.in_doubt += error.kind in AMBIGUOUS
        hopeless = self._breaker.is_hopeless(request.model, error)
        state = "queued" if hopeless else self.terms.retry.state_after(error, number)
        await self.ledger.fail(job, error, state=state, seconds=ended.seconds)
        if hopeless:
            self.stop()
            raise EndpointError(f"The endpoint refuses every request: {error.message}")
        if error.kind != "rejected" and not self._may_be_schema(request, error):
            self.gate.open(request.model)
        return Settled(state, error)

    def _may_be_schema(self, request: Request, error: CallError) -> bool:
        return self._breaker.may_be_schema(request.model, error, self.body_of(request))
