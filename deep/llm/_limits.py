"""Limits on requests at once and on requests a minute."""

import asyncio
import time
from collections import Counter, deque

from deep.exceptions import InputError
from deep.judge import Choice
from deep.llm._errors import CallError, EndpointError
from deep.llm._messages import Body, Reply


class ConcurrencyLimit:
    """The number of requests in flight, found by trial or held fixed.

    It doubles with every full round of answers until the first HTTP 429, is halved by each 429, at most once a
    round, and then grows by one a round.

    Parameters
    ----------
    start, minimum, maximum : int
        All equal for a fixed number.

    Examples
    --------
    >>> from deep.llm import ConcurrencyLimit
    >>> limit = ConcurrencyLimit(20, 4, 100)
    >>> for _ in range(20):
    ...     limit.answered()
    >>> limit.current
    40
    >>> limit.rate_limited()
    >>> limit.current
    20
    """

    def __init__(self, start: int = 20, minimum: int = 4, maximum: int = 100) -> None:
        self.current = start
        self.maximum = maximum
        self._minimum = minimum
        self._active = 0
        self._round = 0
        self._since_cut = start
        self._searching = True
        self._waiting: deque[asyncio.Future[None]] = deque()

    @classmethod
    def parse(cls, text: str) -> "ConcurrencyLimit":
        """Read ``auto`` or a whole number from 1 to 10,000."""
        if text == "auto":
            return cls()
        if text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000:
            return cls(int(text), int(text), int(text))
        raise InputError(f"`concurrency` must be auto or a whole number from 1 to 10000. Got {text!r}.")

    async def __aenter__(self) -> None:
        while self._active >= self.current:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                self._pass_on(waiter)
                raise
        self._active += 1

    async def __aexit__(self, *_: object) -> None:
        self._active -= 1
        self._wake(self.current - self._active)

    def _pass_on(self, waiter: "asyncio.Future[None]") -> None:
        """Give the turn of a cancelled waiter to the next."""
        if waiter.done() and not waiter.cancelled():
            self._wake(1)
        elif waiter in self._waiting:
            self._waiting.remove(waiter)

    def _wake(self, n: int) -> None:
        while n > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                n -= 1

    def answered(self) -> None:
        """Count an answer towards growth."""
        self._since_cut += 1
        self._round += 1
        if self._round >= self.current:
            self._round = 0
            grown = self.current * 2 if self._searching else self.current + 1
            self.current = min(grown, self.maximum)
            self._wake(self.current - self._active)

    def rate_limited(self) -> None:
        """Halve the number, unless replies to requests sent before the last cut are still coming in."""
        self._searching = False
        self._round = 0
        self._since_cut += 1
        if self._since_cut >= self.current:
            self._since_cut = 0
            self.current = max(self.current // 2, self._minimum)


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
        turn = max(self._free_at, now)
        self._free_at = turn + amount * self._interval
        await asyncio.sleep(turn - now)


REFUSALS_BEFORE_FIRST_ANSWER = 3
"""Requests refused before a model's first answer, after which it is taken to refuse all."""

SERVER_ERRORS_BEFORE_FIRST_ANSWER = 3
"""Server errors before a model's first answer, after which a JSON schema is taken to be what breaks its server."""

REPLIES_WITHOUT_JSON = 3
"""Replies without JSON, and none with it, after which a model is taken to ignore a JSON schema."""

CONSTRAINTS = ("response_format", "structured_outputs")
"""Fields of a request that say what its reply may be."""

GIVEN_UP_IN_A_ROW = 20
"""Requests given up with no answer between them, after which the endpoint is taken to be down."""


class CircuitBreaker:
    """Counts refusals, failures and replies, by model and for the endpoint.

    Examples
    --------
    >>> from deep.llm import CallError, CircuitBreaker
    >>> breaker, refusal = CircuitBreaker(), CallError("rejected", "no")
    >>> [breaker.is_hopeless("m", refusal) for _ in range(3)]
    [False, False, True]
    >>> breaker.answered("m")
    >>> breaker.is_hopeless("m", refusal)
    False
    """

    def __init__(self) -> None:
        self._answered: set[str] = set()
        self._refusals: Counter[str] = Counter()
        self._server_errors: Counter[str] = Counter()
        self._with_json: set[str] = set()
        self._without_json: Counter[str] = Counter()
        self._chose: set[str] = set()
        self._given_up = 0

    def answered(self, model: str) -> None:
        """Count an answer, which closes the circuit: what was given up before it counts no more."""
        self._given_up = 0
        self._answered.add(model)

    def is_hopeless(self, model: str, error: CallError) -> bool:
        """Count a failure; return whether it is not about the request, but about the key, the account or the model."""
        if error.kind == "fatal" or model in self._answered:
            return error.kind == "fatal"
        self._refusals[model] += error.kind == "rejected"
        too_many = self._refusals[model] >= REFUSALS_BEFORE_FIRST_ANSWER
        return error.kind in ("no_model", "redirected") or error.status == 403 or too_many

    def may_be_schema(self, model: str, error: CallError, body: Body) -> bool:
        """Return whether a server error may come from a schema or a choice that the model's server cannot digest."""
        constrained = any(name in body for name in CONSTRAINTS)
        return error.kind == "server_error" and model not in self._answered and constrained

    def blames_schema(self, model: str) -> bool:
        """Count a server error that may come from a JSON schema; return whether it is the one that proves it."""
        self._server_errors[model] += 1
        return self._server_errors[model] == SERVER_ERRORS_BEFORE_FIRST_ANSWER

    def ignores_schema(self, model: str, reply: Reply) -> bool:
        """Count a reply to a request for JSON; return whether it is the one that shows that the schema is ignored."""
        if reply.text.lstrip().startswith("{"):
            self._with_json.add(model)
        if model in self._with_json or reply.refusal or not reply.text.strip():
            return False
        self._without_json[model] += 1
        return self._without_json[model] == REPLIES_WITHOUT_JSON

    def ignores_choice(self, model: str, choice: Choice, reply: Reply) -> bool:
        """Return whether a complete reply is none of the answers that its model was to choose from."""
        if reply.refusal or not reply.text.strip() or reply.finish_reason not in (None, "stop"):
            return False
        if choice.allows(reply.text):
            self._chose.add(model)
            return False
        return True

    def may_be_choice(self, model: str, error: CallError) -> bool:
        """Return whether a refusal may be of a choice: the model has not kept to one yet."""
        return error.kind == "rejected" and model not in self._chose

    def give_up(self, error: CallError, *, may_pass: bool, at_once: int) -> None:
        """Count a request that was given up, where its failure is one that `may_pass`.

        Raises
        ------
        EndpointError
            So many were given up in a row, and at least as many as are sent `at_once`, that the circuit opens.
        """
        self._given_up += may_pass
        if self._given_up >= max(GIVEN_UP_IN_A_ROW, at_once):
            raise EndpointError(
                f"`base_url` must answer. The last {self._given_up} requests were given up, the last one for: {error}. "
                f"Run the same command again with `retry_failed` {error.kind} once it does."
            )
