"""A model at work on pairs that come one by one: its judges found once, repeated pairs answered from memory."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import blake2b
from itertools import chain
from typing import Any

from deep.asking import AskOptions, Engine, Plan, TextScorer, chunks, run_in_loop
from deep.exceptions import InputError
from deep.integrations.serve._answers import Answers, CheckOptions
from deep.integrations.serve._exchange import WebError
from deep.llm import (
    BudgetReachedError,
    Caller,
    EndpointError,
    History,
    Job,
    LedgerError,
    ModelGate,
    Request,
    StopReason,
    Tally,
    is_read_only,
)
from deep.model import Model
from deep.records import Example

AT_ONCE = 32
"""Pairs that are scored together; what all have in common is then done once."""

WEIGHT_OF_TURN = 20_000
"""Characters of one turn of the event loop: some 5 ms of lexical checks. Heavier pairs go to a thread."""

WEIGHT_OF_LONG = 200_000
"""Characters from which on a pair waits for other long ones, and no other for it."""

LONGEST_QUICK_CLAIM = 2_000
"""Characters of a claim from which on checks may take long whatever the source."""

OVERHEAD = 256
"""Bytes that an answer takes in memory besides itself."""


_Bodies = dict[bytes, tuple[bytes, bool]]
"""By the key of a pair, its answer as JSON, and whether the same pair would be answered the same."""


@dataclass(frozen=True)
class PairText:
    """A source and a claim to hold against it, perhaps with the question that the claim answers."""

    source: str
    claim: str
    question: str | None = None

    @property
    def weight(self) -> int:
        """The number of its characters."""
        return len(self.source) + len(self.claim) + len(self.question or "")

    @cached_property
    def key(self) -> bytes:
        """The digest that stands for it where no text is kept."""
        digest = blake2b(digest_size=16)
        for text in (self.source, self.claim, *([] if self.question is None else [self.question])):
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d " % len(raw))
            digest.update(raw)
        return digest.digest()


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """The answer to a pair as JSON, and whether the budget had room for all that it takes."""

    body: bytes
    within_budget: bool = True


class Checker:
    """Answers pairs by a model.

    Parameters
    ----------
    model : Model
    options : CheckOptions, optional

    Raises
    ------
    InputError
        A judge of the model cannot be run here, or asks an LLM where that is not allowed.
    """

    def __init__(self, model: Model, options: CheckOptions | None = None) -> None:
        self.options = given = options or CheckOptions()
        self.scorer = TextScorer(
            model, given.ask, finder=given.finder, options=given.score, endpoint=given.endpoint, dataset=given.dataset
        )
        self.model, self.plan = model, self.scorer.plan
        kept = next((column.name for column in self.plan.columns if column.judge.needs_llm or column.caller), None)
        if kept is not None and given.no_text:
            raise InputError(
                "`no_text` must be given with judges that ask no LLM and are no functions, for a ledger keeps what was "
                f"asked and answered, or an answer that was paid would be lost. Got {kept!r}. Leave it out."
            )
        self._told = Answers(self.plan, *([0] if given.no_text else []))
        self._recent: dict[bytes, bytes] = {}
        self._recent_bytes = 0
        self._is_quick = all(column.judge.details.get("kind") == "lexical" for column in self.plan.columns)
        self._waiting: deque[tuple[Sequence[PairText], int, asyncio.Future[_Bodies]]] = deque()
        self._closing = ExitStack()
        self._threads = [self._closing.enter_context(ThreadPoolExecutor(1, f"deep-{name}")) for name in ("one", "long")]
        self._ask_options = self.scorer.ask if self.plan.keeps_answers else None
        self._asking = None if self._ask_options is None else LiveAsker(self.plan, self._ask_options)

    async def open(self) -> None:
        """Open the ledger now, and not with the first question.

        Raises
        ------
        InputError
            Another process writes to it.
        LedgerError
            It cannot be opened.
        """
        if self._asking is not None:
            try:
                await self._asking.open()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """End the threads, and close the ledger."""
        if self._asking is not None:
            run_in_loop(self._asking.end()).result()
        self._closing.close()

    async def check(self, pairs: Sequence[PairText]) -> list[PairAnswer]:
        """Return the answers to pairs; one that was answered lately is not worked on again.

        Raises
        ------
        WebError
            The endpoint refuses every request, or the ledger cannot be written.
        """
        found = {pair.key: PairAnswer(self._recent[pair.key]) for pair in pairs if pair.key in self._recent}
        new = list({pair.key: pair for pair in pairs if pair.key not in found}.values())
        lacking = set[bytes]() if self._asking is None else await self._ask(self._asking, new)
        for some in _portions(new):
            answers = await self._answers(some)
            for key, (body, lasts) in ((pair.key, answers[pair.key]) for pair in some):
                found[key] = PairAnswer(body, key not in lacking)
                if lasts and key not in lacking:
                    self._keep(key, body)
        return [found[pair.key] for pair in pairs]

    async def _ask(self, asking: "LiveAsker", pairs: Sequence[PairText]) -> set[bytes]:
        """Ask LLMs and functions about pairs, and return those for which the budget had no room."""
        try:
            within = await asyncio.gather(*(asking.ask(self._example(pair)) for pair in pairs))
        except EndpointError as error:
            raise WebError(502, "endpoint", str(error)) from None
        except LedgerError as error:
            raise WebError(503, "ledger", str(error)) from None
        return {pair.key for pair, fits in zip(pairs, within, strict=True) if not fits}

    async def _answers(self, pairs: Sequence[PairText]) -> _Bodies:
        """Return answers, worked out in the event loop where that is quick: threads hand the interpreter to and fro."""
        loop, weight = asyncio.get_running_loop(), sum(pair.weight for pair in pairs)
        longest = max(len(pair.claim) for pair in pairs)
        if self._is_quick and weight <= WEIGHT_OF_TURN and longest <= LONGEST_QUICK_CLAIM:
            if not self._waiting:
                loop.call_soon(self._turn, loop)
            future: asyncio.Future[_Bodies] = loop.create_future()
            self._waiting.append((pairs, weight, future))
            return await future
        is_long = self._asking is None and weight > WEIGHT_OF_LONG  # the ledger is read by one thread
        return await loop.run_in_executor(self._threads[is_long], self._worked_out, pairs)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Score some of the waiting pairs, and let others have the loop before the rest."""
        batch = [self._waiting.popleft()]
        n, weight = len(batch[0][0]), batch[0][1]
        while self._waiting and n < AT_ONCE and weight + self._waiting[0][1] <= WEIGHT_OF_TURN:
            batch.append(self._waiting.popleft())
            n, weight = n + len(batch[-1][0]), weight + batch[-1][1]
        if self._waiting:
            loop.call_soon(self._turn, loop)
        self._finish([(pairs, future) for pairs, _, future in batch if not future.cancelled()])

    def _finish(self, batch: "Sequence[tuple[Sequence[PairText], asyncio.Future[_Bodies]]]") -> None:
        """Answer several requests together, or one by one where that breaks, so that none suffers for another."""
        try:
            found = self._worked_out([pair for pairs, _ in batch for pair in pairs])
        except Exception as error:
            for entry in batch if len(batch) > 1 else ():
                self._finish([entry])
            if len(batch) == 1:
                batch[0][1].set_exception(error)
            return
        for _, future in batch:
            future.set_result(found)

    def _worked_out(self, pairs: Sequence[PairText]) -> _Bodies:
        scored = self.scorer.read(list({p.key: self._example(p) for p in pairs}.values()), self._history, tell=False)
        if self.options.on_scored is not None:
            for one in scored:
                self.options.on_scored(one)
        # The same pair would be answered the same only where no judge has failed.
        lasts = [all(judgment.reason != "failed" for judgment in one.judgments.values()) for one in scored]
        told = zip(scored, self._told.tell(scored), lasts, strict=True)
        return {bytes.fromhex(one.example.example_id): (body, lasting) for one, body, lasting in told}

    def _example(self, pair: PairText) -> Example:
        named = pair.key.hex()
        return Example(pair.source, pair.claim, named, dataset=self.options.dataset, question=pair.question)

    @cached_property
    def _history(self) -> History | None:
        """The ledger, opened by the thread that reads it."""
        if self._ask_options is None:
            return None
        history = History(self._ask_options.ledger)
        self._closing.callback(history.__exit__, None, None, None)
        return history.__enter__()

    def _keep(self, key: bytes, body: bytes) -> None:
        """Keep an answer in memory, in place of those that are there longest."""
        most = 0 if self.options.no_text else self.options.cache_bytes
        if key in self._recent or len(body) + OVERHEAD > most:
            return
        self._recent[key] = body
        self._recent_bytes += len(body) + OVERHEAD
        while self._recent_bytes > most:
            self._recent_bytes -= len(self._recent.pop(next(iter(self._recent)))) + OVERHEAD


def _portions(pairs: Sequence[PairText]) -> Iterator[list[PairText]]:
    """Yield pairs some at a time, so that other requests have their turn between."""
    some: list[PairText] = []
    weight = 0
    for pair in pairs:
        if some and (len(some) == AT_ONCE or weight + pair.weight > WEIGHT_OF_TURN):
            yield some
            some, weight = [], 0
        some.append(pair)
        weight += pair.weight
    if some:
        yield some


LOOK_SECONDS = 1.0
"""How often to look whether another machine has finished what it is asking."""

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

    Raises
    ------
    InputError
        The ledger cannot be written, or a batch was asked for.
    """

    plan: Plan
    options: AskOptions
    broken: bool = field(default=False, init=False)
    asked: dict[str, asyncio.Future[None]] = field(default_factory=dict, init=False)
    _engine: Engine | None = field(default=None, init=False)
    _closing: AsyncExitStack = field(default_factory=AsyncExitStack, init=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _turns: set[asyncio.Task[bool] | None] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.plan.check_costs(self.options.budget)
        if self.options.batch:
            raise InputError("`batch` must not be given where answers are waited for. Got it. Leave it out.")
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
        known = self.asker.asked
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
        raise EndpointError("The endpoint has just refused a request for a reason that holds for all.")


LONGEST_ID = 200
FIELDS = frozenset({"claim", "id", "question", "source"})


def read_pairs(value: object, most: int) -> tuple[list[tuple[str | None, PairText]], bool]:
    """Return the pairs of a body with their ids, and whether it was a list.

    Parameters
    ----------
    value : object
        A JSON value.
    most : int
        Pairs that one request may have.

    Raises
    ------
    WebError
        With status 422: it is something else, or a pair of it lacks a text.

    Examples
    --------
    >>> from deep.integrations.serve._checker import read_pairs
    >>> read_pairs({"source": "It rained.", "claim": "It was wet."}, 10)
    ([(None, PairText(source='It rained.', claim='It was wet.', question=None))], False)
    """
    if isinstance(value, dict):
        return [_pair(value, "")], False
    if not isinstance(value, list):
        raise refused(f"The body must be an object with source and claim, or a list of them. Got {_kind(value)}.")
    if not 1 <= len(value) <= most:
        raise refused(f"The list must have 1 to {most:,} pairs. Got {len(value):,}.")
    return [_pair(each, f" in pair {number}") for number, each in enumerate(value)], True


def _pair(value: object, where: str) -> tuple[str | None, PairText]:
    if not isinstance(value, dict):
        raise refused(f"A pair must be an object with source and claim. Got {_kind(value)}{where}.")
    if not value.keys() <= FIELDS:
        raise refused(f"A pair must have the keys source, claim and, if wanted, id and question. Got another{where}.")
    name, asked = value.get("id"), value.get("question")
    left = isinstance(asked, str) and not asked.strip()  # a field of a form that was left empty
    question = None if asked is None or left else _text(value, "question", where)
    if name is not None and (not isinstance(name, str) or len(name) > LONGEST_ID):
        got = "a longer one" if isinstance(name, str) else _kind(name)
        raise refused(f"`id` must be text of at most {LONGEST_ID} characters. Got {got}{where}.")
    return name, PairText(_text(value, "source", where), _text(value, "claim", where), question)


def _text(pair: dict[str, Any], name: str, where: str) -> str:
    text = pair.get(name)
    if not isinstance(text, str):
        raise refused(f"`{name}` must be text. Got {_kind(text) if name in pair else 'nothing'}{where}.")
    if not text.strip() or "\0" in text:
        raise refused(f"`{name}` must be text. Got {'a NUL character' if text.strip() else 'a blank one'}{where}.")
    return text


def is_vote(value: object) -> bool:
    """Return whether a JSON value is 1, 0 or null, as votes and labels are; true and 1.0 are none of them."""
    return value is None or (type(value) is int and value in (0, 1))


def refused(message: str) -> WebError:
    """Return the error of a body that is no pair or list of what is asked for."""
    return WebError(422, "invalid", message)


def _kind(value: object) -> str:
    kinds = {bool: "a boolean", dict: "an object", float: "a number", int: "a number", list: "a list", str: "text"}
    return kinds.get(type(value), "null")
