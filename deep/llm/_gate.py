"""The gate in front of an attempt: limits on requests at once and a minute, room for its cost, and how it ended."""

import asyncio
import re
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from deep.exceptions import InputError, printable
from deep.judges import Choice
from deep.llm._errors import AMBIGUOUS, LONGEST_WAIT, TOLD_WAIT, CallError, EndpointError, RetryPolicy, own_words, span
from deep.llm._messages import Body, Reply, json_text, received_reply
from deep.llm._spending import NOTHING, Budget, PriceBook, output_limit, worst_case


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

    def lacks_room(self) -> None:
        """Let no more be in flight from now on than are besides a request that found no room on this machine."""
        self.current = self.maximum = self._minimum = max(self._active - 1, 1)

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


UNREACHED, UNREACHED_SECONDS = 3, 5.0
"""Attempts without a connection, and seconds of them, before the first answer, after which nothing is there."""


def is_dead(attempts: int, seconds: float) -> bool:
    """Return whether nothing is there, after attempts that found no connection before the first answer."""
    return attempts >= UNREACHED or seconds > UNREACHED_SECONDS


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
        self._given_up = self._unreached = 0
        self._began = time.monotonic()

    def answered(self, model: str) -> None:
        """Count an answer, which closes the circuit: what was given up before it counts no more."""
        self._given_up = 0
        self._answered.add(model)

    def is_hopeless(self, model: str, error: CallError) -> bool:
        """Count a failure; return whether it is not about the request, but about the key, the account or the model."""
        if error.kind == "fatal" or model in self._answered:
            return error.kind == "fatal"
        if error.kind == "unreachable" and not self._answered:
            self._unreached += 1
            return is_dead(self._unreached, time.monotonic() - self._began)
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
                f"Run the same command again with --retry-failed {error.kind} (`retry_failed`) once it does."
            )


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
    tell : callable
        Called with a line for people, as the run goes on.
    """

    prices: PriceBook
    concurrency: ConcurrencyLimit = field(default_factory=ConcurrencyLimit)
    requests_per_minute: Throttle = field(default_factory=Throttle)
    tokens_per_minute: Throttle = field(default_factory=Throttle)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget = field(default_factory=Budget)
    tell: Callable[[str], object] = lambda line: sys.stderr.write(f"{printable(line)}\n")
    _longest_told: float = TOLD_WAIT / 2

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
            raise EndpointError(f"{asks.rstrip('.')}. Run the same command again then: what was answered is kept.")
        if seconds >= 2 * self._longest_told:
            self._longest_told = seconds
            self.tell(asks)


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no reply, and the seconds until that was known."""

    error: CallError
    seconds: float


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
    """

    model: str
    body: Body
    text: str

    async def make(
        self,
        terms: Terms,
        announce: Callable[[float | None], Awaitable[None]],
        send: Callable[[bytes], Awaitable[str]],
    ) -> Reply | Failed:
        """Send the request once, as soon as `terms` have room for it.

        Parameters
        ----------
        terms : Terms
        announce : callable
            Awaited with the most that it may cost, in dollars, before anything is sent.
        send : callable
            Returns the reply to a body, or raises a CallError.

        Raises
        ------
        BudgetReachedError
            The budget has no room for it.
        """
        worst, budget = worst_case(terms.prices, self.body, self.text), terms.budget
        while True:
            await budget.admit(worst, self.model)
            spent: float | None = 0.0
            beyond = 0.0
            try:
                async with terms.concurrency:
                    await terms.requests_per_minute.wait()
                    await terms.tokens_per_minute.wait(len(self.text) / 4 + (output_limit(self.body) or 0))
                    if budget.left < -NOTHING:
                        continue  # an answer has cost more than was thought since this request was let in
                    bound = spent = None if worst is None else budget.estimate(worst, self.model)
                    await announce(bound)  # whoever is cancelled from here on may be sent a bill
                    ended = await self._exchange(terms, send)
                    spent, beyond = _spent(ended, bound), self._beyond(terms.prices, ended)
                    return ended
            finally:
                budget.settle(worst, spent, self.model, beyond)

    def _beyond(self, prices: PriceBook, ended: Reply | Failed) -> float:
        """Return the dollars of the tokens by which a reply passes the limits that its worst case was made of."""
        if isinstance(ended, Failed):
            return 0.0
        limits = {"input": len(self.text.encode()), "output": output_limit(self.body) or 0}
        over = {kind: max(ended.tokens.get(kind, 0) - limit, 0) for kind, limit in limits.items()}
        return prices.cost([ended.model, self.model], over) or 0.0

    async def _exchange(self, terms: Terms, send: Callable[[bytes], Awaitable[str]]) -> Reply | Failed:
        started = time.monotonic()
        try:
            reply = received_reply(await send(self.text.encode()))
        except CallError as error:
            if error.kind == "rate_limited":
                terms.concurrency.rate_limited()
            elif error.kind == "unsent":
                terms.concurrency.lacks_room()
            return Failed(error, time.monotonic() - started)
        seconds = time.monotonic() - started
        terms.concurrency.answered()
        return replace(reply, seconds=seconds, cost=terms.prices.cost([reply.model, self.model], reply.tokens))


def _spent(ended: Reply | Failed, worst: float | None) -> float | None:
    if isinstance(ended, Failed):
        return worst if ended.error.kind in AMBIGUOUS else 0.0
    return worst if ended.cost is None else ended.cost


_DROPPABLE = (
    "response_format",
    "structured_outputs",
    "top_logprobs",
    "logprobs",
    "temperature",
    "top_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "stop",
)
_RENAMED = {"max_tokens": "max_completion_tokens"}
_WORDS_OF_REFUSAL = re.compile(
    r"unsupported|support|unknown|unrecogni[sz]ed|unexpected|invalid|not (?:allowed|permitted|available)|extra inputs",
    re.IGNORECASE,
)
_ASKED_OF = {"logprobs": ("logprobs", "top_logprobs"), "top_logprobs": ("logprobs", "top_logprobs")}


@dataclass(frozen=True, slots=True)
class Quirk:
    """One field that one model refuses or ignores.

    Parameters
    ----------
    endpoint, model : str
    parameter : str
        The field of the request.
    action : {'dropped', 'ignored', 'renamed'}
        What is done about it; an ignored field is sent all the same, and its answer not expected, unless it only
        constrains the reply to a choice.
    message : str, optional
        The endpoint's own words.
    """

    endpoint: str
    model: str
    parameter: str
    action: Literal["dropped", "ignored", "renamed"]
    message: str | None = None

    @property
    def field(self) -> "_Field":
        """The field, of this model there."""
        return self.endpoint, self.model, self.parameter


_Field = tuple[str, str, str]
"""An endpoint, a model of it, and a field of requests."""


class ModelGate:
    """Lets requests pass to the models of a run, in a form that each model accepts.

    The first request to a model is its canary request: it goes alone, and so does the next one where that was
    refused. What the model cannot do, and that it is not there at all, is then learned once and not by all workers.

    Parameters
    ----------
    known : iterable of Quirk
        Those an earlier run has written down.

    Attributes
    ----------
    closed : bool
        Whether nothing more is to be asked; who waits at the gate is let through, to find that out.

    Examples
    --------
    >>> from deep.llm import ModelGate, Quirk
    >>> gate = ModelGate([Quirk("e", "o1", "temperature", "dropped"), Quirk("e", "o1", "max_tokens", "renamed")])
    >>> gate.apply("e", {"model": "o1", "temperature": 0, "max_tokens": 9})
    {'model': 'o1', 'max_completion_tokens': 9}
    """

    def __init__(self, known: Iterable[Quirk] = ()) -> None:
        self._known = {quirk.field: quirk for quirk in known}
        self._taken: set[_Field] = set()
        self._named: set[_Field] = set()
        self._helped: Counter[_Field] = Counter()
        self._canaries: dict[str, asyncio.Event] = {}
        self._open: set[str] = set()
        self.closed = False

    @asynccontextmanager
    async def turn(self, model: str) -> AsyncIterator[None]:
        """Wait until `model` is open, or until it is this caller's turn to send the canary request."""
        while self._is_shut(model) and model in self._canaries:
            await self._canaries[model].wait()
        if not self._is_shut(model):
            yield
            return
        self._canaries[model] = ended = asyncio.Event()
        try:
            yield
        finally:
            del self._canaries[model]
            ended.set()

    def _is_shut(self, model: str) -> bool:
        return model not in self._open and not self.closed

    def open(self, model: str) -> None:
        """Let everybody pass to `model`."""
        self._open.add(model)
        if model in self._canaries:
            self._canaries[model].set()

    def apply(self, endpoint: str, body: Body, choice: Choice | None = None, tried: Iterable[Quirk] = ()) -> Body:
        """Return the body that this model accepts, if `tried` are quirks of it; `body` itself where it accepts that."""
        optional = () if choice is None else choice.fields
        actions = {
            parameter: "dropped" if quirk.action == "ignored" else quirk.action
            for (where, model, parameter), quirk in (self._known | {quirk.field: quirk for quirk in tried}).items()
            if where == endpoint and model == body["model"] and parameter in body
            if quirk.action != "ignored" or parameter in optional
        }
        if not actions:
            return body
        kept = {name: value for name, value in body.items() if actions.get(name) != "dropped"}
        return {(_RENAMED[name] if name in actions else name): value for name, value in kept.items()}

    def explain(self, endpoint: str, body: Body, error: CallError, parameter: str | None = None) -> list[Quirk]:
        """Return the quirks that may explain why `body` was refused; none where it was for another reason.

        Without a `parameter` that is taken to be the cause, it is the one that the endpoint names.
        """
        named = parameter or _parameter(body, error)
        blamed = named or _named_in_words(body, error) or ""
        found = [
            Quirk(endpoint, str(body["model"]), name, "renamed" if name in _RENAMED else "dropped", error.message)
            for name in _ASKED_OF.get(blamed, (blamed,))
            if name in body
        ]
        self._named.update(quirk.field for quirk in found if named)
        return found

    def learn(self, endpoint: str, body: Body, error: CallError) -> list[Quirk]:
        """Write down why `body` was refused in a batch, where nothing can be tried at once; return what is new.

        A field that `param` names is believed; one in the words only where no request with it was answered.
        """
        found = self.explain(endpoint, body, error)
        return self._add(quirk for quirk in found if quirk.field in self._named or quirk.field not in self._taken)

    def take(self, endpoint: str, body: Body, tried: Sequence[Quirk] = ()) -> list[Quirk]:
        """Note the fields of a request that was answered; return new quirks out of those that were `tried` for it.

        Words alone may be about the one request: they are believed once two requests were answered without the field,
        and none with it.
        """
        model = str(body["model"])
        self._taken.update((endpoint, model, name) for name in body)
        self._helped.update(quirk.field for quirk in tried)
        return self._add(
            quirk
            for quirk in tried
            if quirk.field not in self._taken and (quirk.field in self._named or self._helped[quirk.field] > 1)
        )

    def quirks(self, endpoint: str) -> list[Quirk]:
        """Return the quirks of the models of an endpoint, in the order in which they were learned."""
        return [quirk for quirk in self._known.values() if quirk.endpoint == endpoint]

    def ignored(self, endpoint: str, model: str, parameter: str) -> list[Quirk]:
        """Write down that the model took `parameter` and did nothing about it; none where that is known."""
        return self._add([Quirk(endpoint, model, parameter, "ignored", "accepted, but the reply shows no effect")])

    def _add(self, quirks: Iterable[Quirk]) -> list[Quirk]:
        new = [quirk for quirk in quirks if quirk.field not in self._known]
        self._known.update({quirk.field: quirk for quirk in new})
        return new


def _candidates(body: Body, error: CallError) -> list[str]:
    """Return the fields that a refusal may be about, and we can do without."""
    is_refusal = error.status in (400, 403, 422) and error.kind == "rejected"
    return [name for name in (*_DROPPABLE, *_RENAMED) if name in body and is_refusal]


def _parameter(body: Body, error: CallError) -> str | None:
    """Return the field that the endpoint itself gives as the one a refusal is about."""
    named = (error.parameter or "").split(".")[0]
    return named if named in _candidates(body, error) else None


def _named_in_words(body: Body, error: CallError) -> str | None:
    """Return the field that the endpoint's own words name, not those that it quotes from the request."""
    said = own_words(error.message, json_text(body))
    names = _candidates(body, error) if _WORDS_OF_REFUSAL.search(said) else ()
    return next((name for name in names if re.search(rf"\b{name}\b", said)), None)
