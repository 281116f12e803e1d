"""Limits on requests at once and on requests a minute."""

import asyncio
import time
from collections import deque

from deep.exceptions import InputError


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
