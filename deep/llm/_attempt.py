"""One attempt at a request: wait for room, send, say how it ended, and settle the money."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from deep.llm._budget import NOTHING, Budget, output_limit, worst_case
from deep.llm._errors import AMBIGUOUS, CallError
from deep.llm._limits import ConcurrencyLimit, Throttle
from deep.llm._price import PriceBook
from deep.llm._reply import Reply, received_reply
from deep.llm._request import Body
from deep.llm._retry import RetryPolicy


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
