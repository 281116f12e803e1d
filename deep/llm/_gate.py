"""The gate in front of an attempt: limits on requests at once and a minute, room for its cost, and how it ended."""

import asyncio
import itertools
import math
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from deep.exceptions import InputError, note
from deep.llm._errors import AMBIGUOUS, LONGEST_WAIT, MIN_TOLD_WAIT, CallError, EndpointError, RetryPolicy, span
from deep.llm._messages import Body, Reply, received_reply
from deep.llm._spending import ROUNDING_DOLLARS, Budget, PriceBook, output_limit, worst_case

# Rounds of replies at one level before twice as many are tried again: at first, and where that never brought more.
FIRST_TRIAL, LAST_TRIAL = 4, 64

# A level is judged by this many replies at least: those of an LLM differ much in length.
REPLIES_A_ROUND = 8

# A rise of the answers a second by less than this factor may be an accident. A tenth was chosen; no measurement is
# known.
LEAST_GAIN = 1.1

# A server that has become this many times as fast or as slow has its level looked for anew. Chosen; no measurement is
# known. A smaller factor starts a search at every longer reply.
STEADY_FACTOR = 1.5


@dataclass(eq=False, slots=True)
class Flight:
    """One request on its way, and the clock by which it is given up.

    Parameters
    ----------
    order : int
        How many were let in before it.
    model : str
        The name of the model that it asks.
    limit : asyncio.Timeout
        Ends the request when its clock has run out.
    allowed : float
        Seconds by the clock.
    sent : float
        When it was sent.
    since : float
        When the clock began: a queueing server turns to a request once it has dealt with those sent before it.
    passed : bool
        Whether one that was sent after it was answered, so that the server is not at work on this one alone.
    """

    order: int
    model: str
    limit: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    allowed: float = 0.0
    sent: float = 0.0
    since: float = 0.0
    passed: bool = False
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class _Pause:
    """The time for which a model is asked nothing, since it has refused one for the rate.

    `usual` is how long it was until an answer came after such a refusal, `refusals` their number since the last answer,
    `refused` the order of the one refused last, and `last` that of the last one which went out before the pause.
    """

    usual: float | None = None
    refusals: int = 0
    began: float = 0.0
    until: float = 0.0
    refused: int = 0
    last: int = 0


class ConcurrencyLimit:
    """The number of requests in flight, found by trial or held fixed, and the clock of each.

    It is doubled for as long as that brings more answers a second, so that a server which works on a few at a time and
    lets the others wait is sent few. A rate limit and a time-out halve it, once for all that were in flight.

    Parameters
    ----------
    start, minimum, maximum : int
        All equal for a fixed number.

    Examples
    --------
    >>> from deep.llm import ConcurrencyLimit
    >>> limit = ConcurrencyLimit.parse("auto")
    >>> limit.current, limit.maximum
    (2, 100)
    """

    def __init__(self, start: int = 2, minimum: int = 1, maximum: int = 100) -> None:
        self.current = start
        self.maximum = maximum
        self._minimum = minimum
        self._orders = itertools.count(1)
        self._flights: dict[int, Flight] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._pauses: defaultdict[str, _Pause] = defaultdict(_Pause)
        self._patience = 1.0
        self._order_of_cut = 0
        # Below 0: answers to requests that went out before a level was set are not counted for it.
        self._replies, self._began = -start, 0.0
        self._rate: float | None = None
        self._before: int | None = None
        self._rest = self._next_rest = 0

    @classmethod
    def parse(cls, text: str) -> "ConcurrencyLimit":
        """Read ``auto`` or a whole number from 1 to 10,000."""
        if text == "auto":
            return cls()
        if text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000:
            return cls(int(text), int(text), int(text))
        raise InputError(f"`concurrency` must be auto or a whole number from 1 to 10000. Got {text!r}.")

    @asynccontextmanager
    async def place(self, model: str) -> AsyncIterator[Flight]:
        """Wait until one more request to `model` may be in flight, and hold its place."""
        pause = self._pauses[model]
        while True:
            # In short sleeps: an answer may end the pause before its time.
            while (seconds := pause.until - time.monotonic()) > 0:
                await asyncio.sleep(min(seconds, LOOK_SECONDS))
            await self._turn()
            if pause.until <= time.monotonic():
                break
            self._wake(1)  # another request may go to another model meanwhile
        flight = Flight(next(self._orders), model)
        self._flights[flight.order] = flight
        try:
            yield flight
        finally:
            if flight.timer is None:  # else the server may be at work on it still
                self._leave(flight)

    async def _turn(self) -> None:
        """Wait until fewer requests are in flight than may be."""
        while len(self._flights) >= self.current:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake(1)  # its turn had come, and is the next one's now
                elif waiter in self._waiters:
                    self._waiters.remove(waiter)
                raise

    def _leave(self, flight: Flight) -> None:
        if self._flights.pop(flight.order, None) is not None:
            self._wake(self.current - len(self._flights))

    def _wake(self, n: int) -> None:
        while n > 0 and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                n -= 1

    @contextmanager
    def clock(self, flight: Flight, seconds: float) -> Iterator[asyncio.Timeout]:
        """Yield the end of a request: once the server has had so many seconds for it, or more if it is slow."""
        flight.sent = flight.since = time.monotonic()
        flight.allowed = seconds
        self._watch(flight)
        try:
            yield flight.limit
        finally:
            if flight.timer is not None:
                flight.timer.cancel()
            flight.timer = None

    def _watch(self, flight: Flight, due: float = math.inf) -> None:
        """End a request whose time is over; look again later where its clock has begun anew meanwhile."""
        loop, now = asyncio.get_running_loop(), time.monotonic()
        # This process was too busy to look when it was due: the answer may be there, and takes as long to be read.
        if now - due > STALL_SHARE * flight.allowed:
            flight.since += 2 * (now - due)
        seconds = flight.since + flight.allowed * self._patience - now
        if seconds > 0:
            # In steps, so that a busy time is seen wherever in the clock's time it falls.
            seconds = min(seconds, LOOK_SHARE * flight.allowed)
            flight.timer = loop.call_later(seconds, self._watch, flight, now + seconds)
        else:
            flight.limit.reschedule(loop.time())

    def answered(self, flight: Flight) -> None:
        """Count an answer: towards the level, the patience that the server needs, and the end of a pause."""
        now, pause = time.monotonic(), self._pauses[flight.model]
        # Twice the share of its time that this answer took; patience falls by a tenth an answer, and no faster.
        needed = 2 * (now - flight.since) / max(flight.allowed, 1e-9)
        self._patience = max(1.0, 0.9 * self._patience, min(needed, MAX_PATIENCE))
        self._move_on(flight, now)
        # Only a request that was sent after the refused one shows that the limit is over.
        if pause.refusals and flight.order > pause.refused:
            pause.usual, pause.refusals, pause.until = now - pause.began, 0, 0.0
        self._replies += 1
        if self._replies == 0:
            self._began = now
        elif self._replies >= max(self.current, REPLIES_A_ROUND):
            self._judge(self._replies / max(now - self._began, 1e-9))

    def _move_on(self, flight: Flight, now: float) -> None:
        """Begin the clocks of those sent with this one or later anew; end the wait for those given up before it."""
        for other in list(self._flights.values()):
            if other.sent > flight.sent - BURST_SHARE * flight.allowed:
                other.since = max(other.since, now)
            else:
                other.passed = True
                if other.limit.expired():
                    self._leave(other)

    def _judge(self, rate: float) -> None:
        """Choose the level after a round of replies; a round for which there were too few requests says nothing."""
        if not self._waiters or self._minimum == self.maximum:
            self._level(self.current)
        elif self._before is None:
            has_changed = self._rate is not None and not 1 / STEADY_FACTOR < rate / self._rate < STEADY_FACTOR
            self._rest, self._next_rest = (0, FIRST_TRIAL) if has_changed else (self._rest - 1, self._next_rest)
            self._rate = rate
            self._before = self.current if self._rest <= 0 and self.current < self.maximum else None
            self._level(self.current if self._before is None else min(2 * self.current, self.maximum))
        else:
            gain, step = rate / (self._rate or rate), self.current / self._before
            # A quarter of what the step can bring at best is enough (decision 38).
            if gain >= 1 + (step - 1) / 4:
                self._rate, self._next_rest = rate, FIRST_TRIAL
                self._before = self.current if self.current < self.maximum else None
                self._level(min(2 * self.current, self.maximum))
            else:  # a quarter more than the server works on keeps it at work while a reply is written down
                level = self._before if gain < LEAST_GAIN else math.ceil(1.25 * self._before * gain)
                self._rest = self._next_rest = min(max(2 * self._next_rest, FIRST_TRIAL), LAST_TRIAL)
                self._before = None
                self._level(min(level, self.current))

    def _level(self, n: int) -> None:
        """Set the number in flight; the replies to those that went out before say nothing of it."""
        if n != self.current:
            self._replies = -2 * n
        else:
            self._replies, self._began = 0, time.monotonic()
        self.current = n
        self._wake(self.current - len(self._flights))

    def failed(self, flight: Flight, error: CallError, wait: float) -> None:
        """Count an attempt without an answer, after which this request would wait so many seconds."""
        now = time.monotonic()
        if error.kind == "unsent":
            # This machine holds no more connections than are open now, and will not during this run.
            self.current = self.maximum = self._minimum = max(len(self._flights) - 1, 1)
        # Where a later one was answered first, the server works on several at once: this one says nothing of its pace.
        elif error.kind == "timeout" and not flight.passed:
            self._wait_for(flight, now)
            self._halve(flight)
        else:
            self._move_on(flight, now)
            if error.kind == "rate_limited":
                self._pause(flight, now, wait, by_endpoint=error.retry_after is not None)
                self._halve(flight)

    def _wait_for(self, flight: Flight, now: float) -> None:
        """Hold the place of a request given up, as long again or until a later one is answered: it may be worked on."""
        seconds = now - flight.since
        self._patience = min(2 * self._patience, MAX_PATIENCE)
        for other in self._flights.values():
            if other.order > flight.order:
                other.since = max(other.since, now + seconds)
        flight.timer = asyncio.get_running_loop().call_later(seconds, self._leave, flight)

    def _pause(self, flight: Flight, now: float, wait: float, *, by_endpoint: bool) -> None:
        """Ask the model nothing for as long as it asks, or as its limit has lasted before, then a little longer."""
        pause = self._pauses[flight.model]
        if flight.order <= pause.last:
            return  # it went out before the pause that holds already
        if not pause.refusals:
            pause.began = now
        if not by_endpoint:
            wait = min(wait, LONGEST_GUESS)
            if pause.usual is not None:
                # First just before the usual end of a limit, then in steps that double: it may end a little later.
                again = pause.usual / 20 * 2.0 ** min(pause.refusals, 9)
                wait = min(wait, again) if pause.refusals else 0.95 * pause.usual
        pause.refusals += 1
        pause.until, pause.refused, pause.last = now + wait, flight.order, max(self._flights)

    def _halve(self, flight: Flight) -> None:
        """Halve the number, unless this request went out before the last cut."""
        if flight.order > self._order_of_cut:
            self._order_of_cut = max(self._flights)
            self._rate = self._before = None
            self._rest = self._next_rest = FIRST_TRIAL
            self._level(max(self.current // 2, self._minimum))


# A slow server is given at most this many times the seconds of a request. Without a bound a dead server would be waited
# for ever longer. Chosen; no measurement is known.
MAX_PATIENCE = 8.0

# A clock that is looked at later than it was due, by more than this share of its time, runs on for as long as that.
# It is not 0: in a process that is a little busy all the time no clock would run out.
STALL_SHARE = 0.05

# Requests that are sent within this share of their time arrive in any order, each having a connection of its own.
BURST_SHARE = 0.1

# A clock is looked at each time this share of its time is over. Looks cost little, and a clock is at most that late.
# Chosen; no measurement is known.
LOOK_SHARE = 0.1

# Where nobody says how long a limit lasts, all wait these seconds at most; then one request asks how it is.
LONGEST_GUESS = 2.0

# Those who wait look once in these seconds whether an answer has ended a pause before its time.
LOOK_SECONDS = 0.1


class Throttle:
    """At most so many a minute, evenly spaced.

    A single amount above the minute's allowance is let through after its own share of time, not refused for ever.

    Parameters
    ----------
    per_minute : float, optional
        None for no limit.

    Examples
    --------
    >>> import asyncio, time
    >>> from deep.llm import Throttle
    >>> async def three_calls():
    ...     throttle, start = Throttle(6000), time.monotonic()
    ...     for _ in range(3):
    ...         await throttle.wait()
    ...     return time.monotonic() - start
    >>> asyncio.run(three_calls()) >= 0.02
    True
    """

    def __init__(self, per_minute: float | None = None) -> None:
        if per_minute is not None and not 0 < per_minute < float("inf"):
            raise InputError(f"`per_minute` must be above 0. Got {per_minute!r}.")
        self._interval = 0.0 if per_minute is None else 60.0 / per_minute
        self._free_at = 0.0

    async def wait(self, amount: float = 1.0) -> None:
        """Wait until `amount` more may go out."""
        if not self._interval:
            return
        now = time.monotonic()
        # The turn is taken before the sleep, so that those who come meanwhile stand behind it.
        turn = max(self._free_at, now)
        self._free_at = turn + amount * self._interval
        await asyncio.sleep(turn - now)


@dataclass(slots=True)
class Terms:
    """The limits that all calls of a run share.

    Parameters
    ----------
    concurrency, requests_per_minute, tokens_per_minute : ConcurrencyLimit, Throttle
        How many requests are in flight; the waits by which requests and tokens keep to their number a minute.
    retry : RetryPolicy
        Which failures are asked again, how often, and after how many seconds.
    budget, prices : Budget, PriceBook
        The dollars that may be spent, and what tokens of each model cost.
    tell : callable
        Called with a line for people, as the run goes on.
    """

    prices: PriceBook
    concurrency: ConcurrencyLimit = field(default_factory=ConcurrencyLimit)
    requests_per_minute: Throttle = field(default_factory=Throttle)
    tokens_per_minute: Throttle = field(default_factory=Throttle)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget = field(default_factory=Budget)
    tell: Callable[[str], object] = note
    _longest_told: float = MIN_TOLD_WAIT / 2

    def asks_too_long(self, error: CallError) -> bool:
        """Return whether the endpoint asks to wait longer than any request of the run can."""
        return self.retry.retries(error) and (error.retry_after or 0.0) > LONGEST_WAIT

    def heed(self, error: CallError) -> None:
        """Tell of a long wait that the endpoint asks for, and again where it is twice as long.

        Raises
        ------
        EndpointError
            It is longer than any request of the run can wait.
        """
        seconds = error.retry_after or 0.0
        asks = f"The endpoint asks to wait {span(seconds)}: {error.message}"
        if self.asks_too_long(error):
            raise EndpointError(f"{asks.rstrip('.')}. Run the same command again then: the answers so far are kept.")
        if seconds >= 2 * self._longest_told:
            self._longest_told = seconds
            self.tell(asks)


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no reply, and the seconds until that was known."""

    error: CallError
    seconds: float


class Sender(Protocol):
    """Sends a body, and returns the reply to it or raises a CallError."""

    @property
    def timeout(self) -> float:
        """Seconds that a request may take, from when the server turns to it."""

    async def send(self, content: bytes, limit: asyncio.Timeout) -> str:
        """Return the reply, unless the limit ends before it is there."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a request.

    Parameters
    ----------
    model : str
        The model asked, whose price counts where the one that answered has none.
    body : mapping
        The request as this model accepts it.
    text : str
        `body` as JSON.
    number : int, default=1
        Which attempt at it this is; each has longer than the one before.
    """

    model: str
    body: Body
    text: str
    number: int = 1

    async def make(
        self,
        terms: Terms,
        announce: Callable[[float | None], Awaitable[None]],
        client: Sender,
    ) -> Reply | Failed:
        """Send the request once, as soon as `terms` have room for it.

        Parameters
        ----------
        terms, client : Terms, Client
            The limits that it waits for, with budget and prices, and what sends it.
        announce : callable
            Awaited with the most that it may cost, in dollars, before anything is sent.

        Raises
        ------
        BudgetReachedError
            The budget has no room for it.
        """
        worst, budget = worst_case(terms.prices, self.body, self.text), terms.budget
        while True:
            # Money before a place: it may come free only by the answers of others, which need their places.
            await budget.admit(worst, self.model)
            dollars: float | None = 0.0
            beyond = 0.0
            try:
                async with terms.concurrency.place(self.model) as flight:
                    await terms.requests_per_minute.wait()
                    # About four characters are a token; of the output the whole limit counts, as providers reserve it.
                    await terms.tokens_per_minute.wait(len(self.text) / 4 + (output_limit(self.body) or 0))
                    if budget.left < -ROUNDING_DOLLARS:
                        continue  # an answer has cost more than was thought since this request was let in
                    bound = dollars = None if worst is None else budget.estimate(worst, self.model)
                    await announce(bound)  # whoever is cancelled from here on may be sent a bill
                    outcome = await self._exchange(terms, client, flight)
                    dollars, beyond = self._bill(outcome, bound, terms.prices)
                    return outcome
            finally:
                # Of a cancelled attempt too: what is reserved and not given back could never be spent.
                budget.settle(worst, dollars, self.model, beyond)

    def _bill(self, outcome: Reply | Failed, worst: float | None, prices: PriceBook) -> tuple[float | None, float]:
        """Return the dollars of an attempt, and those for tokens beyond the limits that its worst case was made of."""
        if isinstance(outcome, Failed):
            return (worst if outcome.error.kind in AMBIGUOUS else 0.0), 0.0
        limits = {"input": len(self.text.encode()), "output": output_limit(self.body) or 0}
        over = {kind: max(outcome.tokens.get(kind, 0) - limit, 0) for kind, limit in limits.items()}
        beyond = prices.cost([outcome.model, self.model], over) or 0.0
        return (worst if outcome.cost is None else outcome.cost), beyond

    async def _exchange(self, terms: Terms, client: Sender, flight: Flight) -> Reply | Failed:
        started, concurrency = time.monotonic(), terms.concurrency
        try:
            # Twice as long at the second attempt, four times from the third on: the server may only be slow.
            with concurrency.clock(flight, client.timeout * 2 ** min(self.number - 1, 2)) as limit:
                reply = received_reply(await client.send(self.text.encode(), limit))
        except CallError as error:
            concurrency.failed(flight, error, terms.retry.wait(self.number, error.retry_after))
            return Failed(error, time.monotonic() - started)
        seconds = time.monotonic() - started
        concurrency.answered(flight)
        return replace(reply, seconds=seconds, cost=terms.prices.cost([reply.model, self.model], reply.tokens))
