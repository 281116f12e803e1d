"""Retries with exponential backoff and jitter."""

import random
from dataclasses import dataclass

from deep.llm._errors import AMBIGUOUS, RETRIED, CallError, RequestState

_RANDOM = random.SystemRandom()  # leaves the global generator alone


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter, and the number of attempts at one request.

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
    >>> policy = RetryPolicy(jitter=0)
    >>> [policy.wait(attempt) for attempt in (1, 2, 3, 10)]
    [0.5, 1.0, 2.0, 60.0]
    >>> policy.wait(1, retry_after=30)
    30.0
    """

    attempts: int = 10
    wait_initial: float = 0.5
    wait_max: float = 60.0
    jitter: float = 1.0
    retry_after_cap: float = 600.0
    at_most_once: bool = False

    def retries(self, error: CallError) -> bool:
        """Return whether another attempt may be made after `error`."""
        return error.kind in RETRIED and not (self.at_most_once and error.kind in AMBIGUOUS)

    def state_after(self, error: CallError, attempt: int) -> RequestState:
        """Return the state of a request whose attempt of this number, from 1, ended with `error`."""
        if error.kind == "refused":
            return "done"
        if self.at_most_once and error.kind in ("dropped", "timeout"):
            return "unknown"
        return "queued" if self.retries(error) and attempt < self.attempts else "failed"

    def wait(self, attempt: int, retry_after: float | None = None) -> float:
        """Return the seconds between an attempt and the next; at least `retry_after`, up to the cap."""
        jitter = _RANDOM.uniform(0.0, self.jitter)
        if retry_after is not None:
            return min(float(retry_after), self.retry_after_cap) + jitter
        doublings = min(attempt - 1, 1000)  # the next powers of two are no floats
        return min(self.wait_initial * 2.0**doublings + jitter, self.wait_max)
