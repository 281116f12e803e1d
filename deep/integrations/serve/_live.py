"""The engine of a server: LLMs and functions are asked about pairs as they come."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from deep.asking import AskOptions, Engine, Plan, chunks, run_in_loop
from deep.exceptions import InputError
from deep.llm import (
    BudgetReachedError,
    Caller,
    EndpointError,
    Job,
    LedgerError,
    ModelGate,
    Request,
    StopReason,
    Tally,
    is_read_only,
)
from deep.records import Example

# How often to look whether another machine has finished what it is asking.
LOOK_SECONDS = 1.0

# Requests that are looked up together.
CHUNK = 64


@dataclass(eq=False)
class LiveAsker:
    """The engine of a server, open from the first question to :meth:`close`, in the event loop of functions.

    So neither that loop nor the server's waits for the other. Many examples are asked about at once: how many requests
    are in flight, a minute and for how much is held to the limits of `options`, whoever waits. A question that two
    examples share is asked once.

    Parameters
    ----------
    plan : Plan
        Its judges, LLMs and endpoint; its examples are not looked at.
    options : AskOptions
        Ledger, endpoint and limits; without `batch`.

    Raises
    ------
    InputError
        The ledger cannot be written, or a batch was asked for.
    """

    plan: Plan
    options: AskOptions
    broken: bool = field(default=False, init=False)
    futures: dict[str, asyncio.Future[None]] = field(default_factory=dict, init=False)
    _engine: Engine | None = field(default=None, init=False)
    _closing: AsyncExitStack = field(default_factory=AsyncExitStack, init=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _turns: set[asyncio.Task[bool] | None] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.plan.check_costs(self.options.budget)
        if self.options.batch:
            raise InputError("`batch` must not be given for a live server. Got it. Leave it out.")
        if is_read_only(self.options.ledger):
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
        return await asyncio.wrap_future(run_in_loop(self._ask(example)))

    async def _ask(self, example: Example) -> bool:
        task, plan = asyncio.current_task(), self.plan
        self._turns.add(task)
        try:
            turn = _Turn(self, await self._opened())
            calls = [partial(plan.calls, function, [example]) for function in plan.functions.values()]
            await turn.engine.ask(
                turn,
                plan.endpoint,
                lambda: chain(plan.requests([example]), *(call() for call in calls)),
                lambda: plan.programs([example]),
            )
            return turn.stopped is None
        finally:
            self._turns.discard(task)

    async def open(self) -> None:
        """Open the ledger, unless it is open.

        Raises
        ------
        InputError
            Another process writes to it.
        LedgerError
            It cannot be opened.
        """
        await asyncio.wrap_future(run_in_loop(self._opened()))

    async def _opened(self) -> Engine:
        """Return the engine; one whose ledger has broken is opened anew once nobody else asks by it."""
        async with self._opening:
            if self.broken and not self._turns - {asyncio.current_task()}:
                await self._close()
            if self._engine is None:
                options = self.plan.with_providers(self.options)
                asks, default = self.plan.asks, self.plan.asks_default
                opened = Engine.opened(options, Tally(None), asks=asks, default=default)
                self._engine = await self._closing.enter_async_context(opened)
            return self._engine

    async def close(self) -> None:
        """End the requests in flight, which the ledger then keeps as in doubt, and close it."""
        await asyncio.wrap_future(run_in_loop(self.end()))

    async def end(self) -> None:
        """Do so from within the loop of functions."""
        turns = [turn for turn in self._turns if turn is not None]
        for turn in turns:
            turn.cancel()
        await asyncio.gather(*turns, return_exceptions=True)
        await self._close()

    async def _close(self) -> None:
        self._engine, self.broken = None, False
        with suppress(LedgerError):  # one that is broken is closed all the same
            await self._closing.aclose()


@dataclass(eq=False)
class _Turn:
    """The questions about one example, asked side by side."""

    asker: LiveAsker
    engine: Engine
    stopped: StopReason | None = None

    async def run(self, requests: Callable[[], Iterable[Request]]) -> None:
        """Ask the questions that are missing; wait for those that others are asking."""
        for chunk in chunks(requests(), CHUNK):
            await self._ask(chunk)

    async def _ask(self, requests: Sequence[Request]) -> None:
        futures = self.asker.futures
        theirs = [futures[request.key] for request in requests if request.key in futures]
        own = {key: request for request in requests if (key := request.key) not in futures}
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        futures.update(dict.fromkeys(own, mine))
        try:
            if own:
                await self._settle(list(own.values()))
        finally:
            for key in own:
                del futures[key]
            mine.set_result(None)
        if theirs:
            await asyncio.wait(theirs)

    async def _settle(self, requests: Sequence[Request]) -> None:
        """Ask some requests until each has its answer, here or on another machine."""
        caller, ledger = self.engine.caller, self.engine.caller.ledger
        try:
            while requests:
                lease = await ledger.lease(requests, again=True)
                await caller.refresh_budget()
                ended = await asyncio.gather(*(self._one(caller, job) for job in lease.jobs), return_exceptions=True)
                await caller.flush()
                _raise_first(caller, ended)
                requests = lease.elsewhere
                if requests:
                    await asyncio.sleep(LOOK_SECONDS)
                    await ledger.recover()
        except EndpointError:
            if self.engine.caller is caller:  # the endpoint has refused everything; the next question tries it again
                gate = ModelGate(caller.gate.quirks(self.asker.plan.endpoint))
                self.engine.caller = Caller(ledger, caller.client, caller.parse, caller.terms, gate, Tally(None))
            raise
        except LedgerError:
            self.asker.broken = True
            raise

    async def _one(self, caller: Caller, job: Job) -> None:
        try:
            await caller.ask(job)
        except BudgetReachedError:
            self.stopped = "budget"


def _raise_first(caller: Caller, ended: Iterable[BaseException | None]) -> None:
    """Raise the first error; where another turn has met it, say so too."""
    for error in ended:
        if error is not None:
            raise error
    if caller.gate.closed:
        raise EndpointError("The endpoint has just refused a request, and would refuse every other.")
