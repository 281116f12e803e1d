"""Asking for examples as they come, side by side, by one open ledger: what a server needs."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import cast

from deep import llm
from deep.asking import AskOptions, Plan, Replay, chunks, enter_earlier, may_repair, read_answer, repair_requests
from deep.exceptions import InputError
from deep.records import Example

LOOK_SECONDS = 1.0
"""How often to look whether another machine has finished what it is asking."""

CHUNK = 64


@dataclass(eq=False)
class LiveAsker:
    """The ledger of a server, open from the first question to :meth:`close`; all of it in one event loop.

    Many examples are asked about at once: how many requests are in flight, a minute and for how much is held to the
    limits of `options`, whoever waits. A question that two examples share is asked once.

    Parameters
    ----------
    plan : Plan
        Its judges, LLMs and endpoint; its examples are not looked at.
    options : AskOptions

    Raises
    ------
    InputError
        The ledger cannot be written, or a batch was asked for.
    """

    plan: Plan
    options: AskOptions
    _work: "_Work | None" = field(default=None, init=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _n_asking: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.plan.check_costs(self.options.budget)
        if self.options.batch:
            raise InputError("`batch` must not be given where answers are waited for. Got it. Leave it out.")
        if llm.is_read_only(self.options.ledger):
            raise InputError(f"`ledger` must be writable. Got {self.options.ledger!r}, which is read-only.")

    async def ask(self, example: Example) -> bool:
        """Ask the missing questions about an example; return False where the budget had no room for all of them.

        Raises
        ------
        EndpointError
            The endpoint refuses every request; the next example tries it again.
        LedgerError
            The ledger cannot be written.
        """
        work = await self.open()
        self._n_asking += 1
        try:
            return await work.ask(example)
        finally:
            self._n_asking -= 1

    async def open(self) -> "_Work":
        """Open the ledger, unless it is open; one that has broken is opened anew once nobody asks by it.

        Raises
        ------
        InputError
            Another process writes to it.
        LedgerError
            It cannot be opened.
        """
        async with self._opening:
            if self._work is not None and self._work.broken and not self._n_asking:
                await self.close()
            if self._work is None:
                self._work = await _Work.begin(self.plan, self.options)
            return self._work

    async def close(self) -> None:
        """Close the ledger."""
        if self._work is not None:
            work, self._work = self._work, None
            with suppress(llm.LedgerError):  # one that is broken is closed all the same
                await work.closing.aclose()


@dataclass(eq=False)
class _Work:
    """An open ledger with all that asks and reads."""

    plan: Plan
    options: AskOptions
    client: llm.Client
    ledger: llm.Ledger
    history: llm.History
    terms: llm.Terms
    caller: llm.Caller
    closing: AsyncExitStack
    open: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    broken: bool = False

    @classmethod
    async def begin(cls, plan: Plan, options: AskOptions) -> "_Work":
        """Open the ledger."""
        options = plan.with_providers(options)
        record = {**options.record, "repairs": options.repairs}
        once, retry = options.at_most_once, options.retry_failed
        async with AsyncExitStack() as stack:
            client = None
            if plan.asks:
                client = options.client(default=plan.asks_default)
                stack.push_async_callback(client.close)
            ledger = llm.Ledger(options.ledger, options=record, at_most_once=once, retry=retry)
            await stack.enter_async_context(ledger)
            await enter_earlier(ledger)
            history = stack.enter_context(llm.History(options.ledger))
            terms = options.terms(0.0 if options.budget is None else await ledger.spent_by_others())
            gate = llm.ModelGate([*await ledger.known_quirks(), *options.quirks])
            client = cast("llm.Client", client)  # no request reaches it where no LLM is asked
            caller = llm.Caller(ledger, client, read_answer, terms, gate, llm.Tally(None))
            return cls(plan, options, client, ledger, history, terms, caller, stack.pop_all())

    async def ask(self, example: Example) -> bool:
        """Ask everything that can be asked at once, and again the questions to which the answers lead programs."""
        options, plan = self.options, self.plan
        may = may_repair(options, self.history, self.ledger.run)
        replay = Replay(
            lambda: plan.programs([example]),
            plan.endpoint,
            self.history,
            run=self.ledger.run,
            at_most_once=options.at_most_once,
            retry=options.retry_failed,
            repairs=may,
        )
        turn = _Turn(self)
        calls = chain.from_iterable(plan.calls(function, [example]) for function in plan.functions.values())
        await turn.run(lambda: chain(plan.requests([example]), replay.requests(), calls))
        await turn.run(lambda: repair_requests(plan.requests([example]), self.history, may))
        while replay.n_open and turn.within_budget:
            replay.n_open = 0
            await turn.run(replay.requests)
        return turn.within_budget


@dataclass(eq=False)
class _Turn:
    """The questions about one example, asked side by side."""

    work: _Work
    within_budget: bool = True

    async def run(self, requests: Callable[[], Iterable[llm.Request]]) -> None:
        """Ask the questions that are missing; wait for those that others are asking."""
        for chunk in chunks(requests(), CHUNK):
            await self._ask(chunk)

    async def _ask(self, requests: Sequence[llm.Request]) -> None:
        known = self.work.open
        theirs = [known[request.key] for request in requests if request.key in known]
        own = {key: request for request in requests if (key := request.key) not in known}
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        known.update(dict.fromkeys(own, mine))
        try:
            if own:
                await self._settle(list(own.values()))
        finally:
            for key in own:
                del known[key]
            mine.set_result(None)
        if theirs:
            await asyncio.wait(theirs)

    async def _settle(self, requests: Sequence[llm.Request]) -> None:
        """Ask some requests until each has its answer, here or on another machine."""
        work, caller = self.work, self.work.caller
        try:
            while requests:
                lease = await work.ledger.lease(requests, again=True)
                await caller.refresh_budget()
                ended = await asyncio.gather(*(self._one(caller, job) for job in lease.jobs), return_exceptions=True)
                await caller.flush()
                self._raise_first(caller, ended)
                requests = lease.elsewhere
                if requests:
                    await asyncio.sleep(LOOK_SECONDS)
                    await work.ledger.recover()
        except llm.EndpointError:
            if work.caller is caller:  # the endpoint has refused everything; the next question tries it again
                gate = llm.ModelGate(caller.gate.quirks(work.plan.endpoint))
                work.caller = llm.Caller(work.ledger, work.client, read_answer, work.terms, gate, llm.Tally(None))
            raise
        except llm.LedgerError:
            work.broken = True
            raise

    async def _one(self, caller: llm.Caller, job: llm.Job) -> None:
        try:
            await caller.ask(job)
        except llm.BudgetReachedError:
            self.within_budget = False

    def _raise_first(self, caller: llm.Caller, ended: Sequence[BaseException | None]) -> None:
        """Raise the first error; where another turn has met it, say so too."""
        for error in ended:
            if error is not None:
                raise error
        if caller.gate.closed:
            raise llm.EndpointError("The endpoint has just refused a request for a reason that holds for all.")
