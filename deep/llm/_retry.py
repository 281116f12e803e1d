"""When to try again, and after how long."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deep.llm._errors import AMBIGUOUS, RETRIED, CallError

__all__ = ["RetryPolicy"]

_RANDOM = random.SystemRandom()  # leaves the global generator alone


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often one request is tried.

    Parameters
    ----------
    attempts : int
        Attempts in one run.
    wait_initial, wait_max : float
        Seconds before the second attempt, doubled with each, and the most of it.
    jitter : float
        Seconds; up to so much is added to every wait, at random, so that waiting requests do not return as one.
    retry_after_cap : float
        Seconds; the longest Retry-After that is honoured in full.
    at_most_once : bool
        Never repeat an attempt whose answer may have been lost.

    Examples
    --------
    >>> from deep.llm import RetryPolicy
    >>> RetryPolicy(jitter=0).wait(retry_after=30)
    30.0
    """

    attempts: int = 10
    wait_initial: float = 0.5
    wait_max: float = 60.0
    jitter: float = 1.0
    retry_after_cap: float = 600.0
    at_most_once: bool = False

    def retries(self, error: BaseException) -> bool:
        """Return whether another attempt may be made after `error`."""
        if not isinstance(error, CallError) or error.kind not in RETRIED:
            return False
        return not (self.at_most_once and error.kind in AMBIGUOUS)

    def wait(self, retry_after: float) -> float:
        """Return the seconds to wait where the endpoint asked for `retry_after`; never less, up to the cap."""
        return min(float(retry_after), self.retry_after_cap) + _RANDOM.uniform(0.0, self.jitter)

    def backoff(self, error: Exception) -> bool | float:
        """Tell stamina whether to try again, and when, where the endpoint said so."""
        if not self.retries(error):
            return False
        asked = getattr(error, "retry_after", None)
        return True if asked is None else self.wait(asked)

    def context(self, on: Callable[[Exception], bool | float]) -> Any:
        """Return stamina's iterator over attempts."""
        import stamina

        return stamina.retry_context(
            on=on,
            attempts=self.attempts,
            timeout=None,
            wait_initial=self.wait_initial,
            wait_max=self.wait_max,
            wait_jitter=self.jitter,
        )
