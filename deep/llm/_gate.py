"""One attempt at a request: wait for room, send, say how it ended, and settle the money."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from deep.judge import Choice
from deep.llm._errors import AMBIGUOUS, CallError, RetryPolicy
from deep.llm._limits import ConcurrencyLimit, Throttle
from deep.llm._messages import Body, Reply, received_reply
from deep.llm._spending import NOTHING, Budget, PriceBook, output_limit, worst_case


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
        self._known = {(quirk.endpoint, quirk.model, quirk.parameter): quirk for quirk in known}
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

    def apply(self, endpoint: str, body: Body, choice: Choice | None = None) -> Body:
        """Return the body that this model accepts; `body` itself where nothing is to be changed."""
        optional = () if choice is None else choice.fields
        actions = {
            parameter: "dropped" if quirk.action == "ignored" else quirk.action
            for (where, model, parameter), quirk in self._known.items()
            if where == endpoint and model == body["model"] and parameter in body
            if quirk.action != "ignored" or parameter in optional
        }
        if not actions:
            return body
        kept = {name: value for name, value in body.items() if actions.get(name) != "dropped"}
        return {(_RENAMED[name] if name in actions else name): value for name, value in kept.items()}

    def learn(self, endpoint: str, body: Body, error: CallError, parameter: str | None = None) -> list[Quirk]:
        """Return the new quirks that explain why `body` was refused; none where it was for another reason.

        Without a `parameter` that is known to be the cause, it is the one that the endpoint names.
        """
        blamed = parameter or _blamed(body, error) or ""
        return self._add(
            Quirk(endpoint, str(body["model"]), name, "renamed" if name in _RENAMED else "dropped", error.message)
            for name in _ASKED_OF.get(blamed, (blamed,))
            if name in body
        )

    def quirks(self, endpoint: str) -> list[Quirk]:
        """Return the quirks of the models of an endpoint, in the order in which they were learned."""
        return [quirk for quirk in self._known.values() if quirk.endpoint == endpoint]

    def ignored(self, endpoint: str, model: str, parameter: str) -> list[Quirk]:
        """Write down that the model took `parameter` and did nothing about it; none where that is known."""
        return self._add([Quirk(endpoint, model, parameter, "ignored", "accepted, but the reply shows no effect")])

    def _add(self, quirks: Iterable[Quirk]) -> list[Quirk]:
        new = [q for q in quirks if (q.endpoint, q.model, q.parameter) not in self._known]
        self._known.update({(q.endpoint, q.model, q.parameter): q for q in new})
        return new


def _blamed(body: Body, error: CallError) -> str | None:
    """Return the field that a refusal is about, if it is one we can do without."""
    if error.status not in (400, 403, 422) or error.kind != "rejected":
        return None
    named = (error.parameter or "").split(".")[0]
    if named in body and (named in _DROPPABLE or named in _RENAMED):
        return named
    if not _WORDS_OF_REFUSAL.search(error.message):
        return None
    candidates = [name for name in (*_DROPPABLE, *_RENAMED) if name in body]
    return next((name for name in candidates if re.search(rf"\b{name}\b", error.message)), None)
