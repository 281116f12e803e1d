"""A hard limit on spending: work is let in only where even its worst case fits."""

import asyncio

from deep.exceptions import InputError
from deep.llm._price import PriceBook
from deep.llm._request import Body

NOTHING = 1e-12
"""Dollars; sums of floats that should be zero are below it."""


class BudgetReachedError(Exception):
    """Nothing more can be asked within the budget."""


class Budget:
    """Dollars that may be spent, those in flight included at their worst case.

    Parameters
    ----------
    limit : float, optional
        None for no limit.
    spent_before : float
        Dollars that earlier runs, and runs elsewhere, may have cost.

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

    def __init__(self, limit: float | None = None, spent_before: float = 0.0) -> None:
        if limit is not None and not 0 <= limit < float("inf"):
            raise InputError(f"`budget` must be 0 or more dollars. Got {limit!r}.")
        self.limit = limit
        self.spent_before = spent_before
        self._spent = 0.0
        self._reserved = 0.0
        self._changed = asyncio.Event()

    @property
    def left(self) -> float:
        """Dollars that new work may still reserve."""
        limit = float("inf") if self.limit is None else self.limit
        return limit - self.spent_before - self._spent - self._reserved

    async def admit(self, worst: float | None) -> None:
        """Reserve `worst` dollars, once enough of what is in flight has turned out cheaper.

        Raises
        ------
        BudgetReachedError
            It does not fit, and nothing is in flight that could free any.
        InputError
            There is a budget and the worst case is not known.
        """
        while not self.fits(worst):
            if self._reserved <= NOTHING:
                raise BudgetReachedError
            self._changed.clear()
            await self._changed.wait()
        self._reserved += worst or 0.0

    def fits(self, worst: float | None) -> bool:
        """Return whether `worst` dollars could be reserved now."""
        if self.limit is None:
            return True
        if worst is None:
            raise InputError(
                "`budget` needs a known price and an output limit for every model. Got a request without. "
                "Add the model to a file for `prices`, and give `max_tokens`."
            )
        return worst <= self.left

    def settle(self, worst: float | None, cost: float | None) -> None:
        """Give back a reservation, of which `cost` dollars are spent."""
        if self.limit is None or worst is None:
            return
        self._reserved -= worst
        self._spent += cost or 0.0
        self._changed.set()


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
    limits = [body.get("max_completion_tokens"), body.get("max_tokens")]
    return next((n for n in limits if isinstance(n, int) and not isinstance(n, bool)), None)
