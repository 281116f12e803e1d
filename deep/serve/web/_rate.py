"""Requests a second, by client."""

from collections.abc import Callable
from time import monotonic

MOST_CLIENTS = 10_000
"""Addresses that are remembered; those that have been quiet go first."""


class RateLimit:
    """A token bucket for each client.

    Parameters
    ----------
    rate : float or None
        Requests a second that each may send for long; twice as many at once. None: no limit.
    clock : callable, default=time.monotonic

    Examples
    --------
    >>> from deep.serve.web._rate import RateLimit
    >>> limit = RateLimit(1.0, clock=lambda: 0.0)
    >>> [limit.wait("127.0.0.1") for _ in range(3)]
    [0.0, 0.0, 1.0]
    """

    def __init__(self, rate: float | None, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, client: str) -> float:
        """Count a request, and return 0; or the seconds after which the client may send the next one."""
        if self._rate is None:
            return 0.0
        most, now = max(2 * self._rate, 1.0), self._clock()
        left, before = self._buckets.pop(client, (most, now))
        left = min(most, left + (now - before) * self._rate)
        allowed = left >= 1
        self._buckets[client] = (left - 1 if allowed else left, now)
        if len(self._buckets) > MOST_CLIENTS:
            del self._buckets[next(iter(self._buckets))]
        return 0.0 if allowed else (1 - left) / self._rate
