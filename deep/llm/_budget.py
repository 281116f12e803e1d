"""A hard limit on spending: work is let in only where even its worst case fits."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from deep.exceptions import InputError
from deep.llm._price import PriceBook
from deep.llm._request import Body

LONGER = 4
"""How many times its output limit a request has whose reply was cut off there."""

NOTHING = 1e-12
"""Dollars; sums of floats that should be zero are below it."""


class BudgetReachedError(Exception):
    """Nothing more can be asked within the budget."""


@dataclass(slots=True)
class _Account:
    """The requests to one LLM in flight, and what answers have cost beyond their worst case.

    An endpoint that bills hidden tokens adds them to the limit, or bills a fixed sum whatever the limit is: `excess`
    is the most that was added, `most` the largest bill of an answer that cost too much.
    """

    n: int = 0
    worst: float = 0.0
    excess: float = 0.0
    most: float = 0.0

    def bound(self, n: int, worst: float) -> float:
        """Return the most that `n` requests can cost, as far as answers have shown."""
        return max(worst + n * self.excess, n * self.most)


class Budget:
    """Dollars that may be spent, those in flight included at their worst case.

    Where an answer costs more than its worst case, all requests to that LLM, those in flight too, count that much more.

    Parameters
    ----------
    limit : float, optional
        None for no limit.
    spent_before : float
        Dollars that earlier runs, and runs elsewhere, may have cost.
    surprised : callable, optional
        Called with an LLM, the dollars of its answer and its worst case when one first costs more than that.

    Examples
    --------
    >>> import asyncio
    >>> from deep.llm import Budget
    >>> async def two_calls():
    ...     budget = Budget(1.0)
    ...     await budget.admit(0.6)
    ...     budget.settle(0.6, 0.1)
    ...     await budget.admit(0.6)
    ...     return round(budget.left, 2)
    >>> asyncio.run(two_calls())
    0.3
    """

    def __init__(
        self,
        limit: float | None = None,
        spent_before: float = 0.0,
        surprised: Callable[[str, float, float], object] | None = None,
    ) -> None:
        if limit is not None and not 0 <= limit < float("inf"):
            raise InputError(f"`budget` must be 0 or more dollars. Got {limit!r}.")
        self.limit = limit
        self.spent_before = spent_before
        self._surprised = surprised
        self._spent = 0.0
        self._accounts: dict[str, _Account] = {}
        self._changed = asyncio.Event()

    @property
    def left(self) -> float:
        """Dollars that new work may still reserve; below 0 where answers cost more than their worst case."""
        limit = float("inf") if self.limit is None else self.limit
        reserved = sum(account.bound(account.n, account.worst) for account in self._accounts.values())
        return limit - self.spent_before - self._spent - reserved

    async def admit(self, worst: float | None, model: str = "") -> None:
        """Reserve `worst` dollars for a request to `model`, once enough of what is in flight has turned out cheaper.

        Raises
        ------
        BudgetReachedError
            It does not fit, and nothing is in flight that could free any.
        InputError
            There is a budget and the worst case is not known.
        """
        while not self.fits(worst, model):
            if not any(account.n for account in self._accounts.values()):
                raise BudgetReachedError
            self._changed.clear()
            await self._changed.wait()
        account = self._accounts.setdefault(model, _Account())
        account.n += 1
        account.worst += worst or 0.0

    def fits(self, worst: float | None, model: str = "") -> bool:
        """Return whether `worst` dollars for a request to `model` could be reserved now."""
        if self.limit is None:
            return True
        if worst is None:
            raise InputError(
                "`budget` needs a known price and an output limit for every LLM. "
                f"Got {model!r} without one of them at this endpoint. Name a file of prices "
                "(`prices`, --prices; docs/votes.md#money shows one), and an output limit (`max_tokens`, --max-tokens)."
            )
        return self.estimate(worst, model) <= self.left

    def estimate(self, worst: float, model: str = "") -> float:
        """Return the most that a request to `model` can cost, as far as its answers have shown."""
        return self._accounts.get(model, _Account()).bound(1, worst)

    def settle(self, worst: float | None, cost: float | None, model: str = "", beyond: float = 0.0) -> None:
        """Give back a reservation, of which `cost` dollars are spent, `beyond` of them for tokens over the limits."""
        account = self._accounts.setdefault(model, _Account())
        if account.n:
            account.n -= 1
            account.worst = account.worst - (worst or 0.0) if account.n else 0.0
            self._spent += cost or 0.0
        else:  # an earlier run's, in a batch: `spent_before` has its worst case
            self._spent += (cost or 0.0) - (worst or 0.0)
        self.learn(worst, cost, model, beyond)
        self._changed.set()

    def learn(self, worst: float | None, cost: float | None, model: str = "", beyond: float = 0.0) -> None:
        """Raise the estimate for `model` where an answer has cost more than that."""
        if worst is None or cost is None or cost <= self.estimate(worst, model) + NOTHING:
            return
        account = self._accounts.setdefault(model, _Account())
        if self._surprised is not None and not account.most:
            self._surprised(model, cost, worst)
        account.excess = max(account.excess, cost - worst, beyond)
        account.most = max(account.most, cost)


def worst_case(prices: PriceBook, body: Body, text: str, *, batch: bool = False) -> float | None:
    """Return the most dollars that one attempt can cost; None where no price or no output limit is known.

    A token is at least one byte of UTF-8, so the body's length bounds the input.

    Examples
    --------
    >>> from deep.llm import PriceBook, worst_case
    >>> prices = PriceBook("http://localhost/v1", {"m": {"input": 1.0, "output": 2.0}})
    >>> worst_case(prices, {"model": "m", "max_tokens": 500_000}, "x" * 1_000_000)
    2.0
    """
    limit = output_limit(body)
    if limit is None:
        return None
    tokens = {"input": len(text.encode()), "output": limit}
    return prices.cost([str(body["model"])], tokens, batch=batch)


def output_limit(body: Body) -> int | None:
    """Return the most tokens that the answer may have, where the request says so."""
    return next(iter(_limits(body).values()), None)


def with_longer_limit(body: Body) -> Body:
    """Return a request that lets the answer be four times as long; the same where it sets no limit.

    Examples
    --------
    >>> from deep.llm import with_longer_limit
    >>> with_longer_limit({"model": "m", "max_tokens": 500})
    {'model': 'm', 'max_tokens': 2000}
    """
    return {**body, **{name: LONGER * limit for name, limit in _limits(body).items()}}


def _limits(body: Body) -> dict[str, int]:
    limits = {name: body.get(name) for name in ("max_completion_tokens", "max_tokens")}
    return {name: n for name, n in limits.items() if isinstance(n, int) and not isinstance(n, bool)}
