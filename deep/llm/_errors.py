"""Errors between a request and its answer, the words for them that the ledger keeps, and those that end a run."""

import html
import random
import re
import time
from collections import Counter
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal, get_args

from deep.exceptions import DeepError

if TYPE_CHECKING:
    from deep.judges import Choice
    from deep.llm._messages import Body, Reply

# Failures by whether a later attempt may bring an answer: not by itself, and perhaps.
_Lasting = Literal["expired", "no_model", "raised", "redirected", "rejected", "too_long"]
_Passing = Literal["broken", "dropped", "rate_limited", "server_error", "timeout", "unreachable"]
# Why a request has no answer. A reply that holds no verdict is an answer, and no failure.
Failure = _Passing | _Lasting

RAISED: Failure = "raised"
"""The class of failure of a function that raised an error; every run calls it again."""

FAILURES = frozenset(get_args(_Passing) + get_args(_Lasting))

# Also that no other request would fare better (``fatal``), that a content filter refused this one, or that this machine
# had no room for a connection, so that the request is given back (``unsent``).
ErrorKind = Failure | Literal["fatal", "refused", "unsent"]

# The end of an attempt; also that it was lost with its run (``unknown``).
AttemptOutcome = ErrorKind | Literal["answered", "unknown"]

RequestState = Literal["done", "failed", "queued", "sent", "unknown"]

# Failures that another attempt may mend.
RETRIED = frozenset(get_args(_Passing))

AMBIGUOUS = frozenset({"broken", "dropped", "timeout", "unknown"})
"""Outcomes after which the endpoint may have answered, and may send a bill."""


class LedgerError(DeepError):
    """The ledger cannot be read or written. Nothing is asked without it, so the run stops."""


class LedgerFullError(LedgerError):
    """The ledger takes what is in flight, since room was kept for that, and no new requests."""


class LedgerMovedError(LedgerFullError):
    """Another program moved, removed or wrote to the ledger; a file beside it takes what is in flight."""


class EndpointError(DeepError):
    """The endpoint would refuse every request: a wrong key, an unknown model, no credit left."""


@dataclass(eq=False, repr=False)
class CallError(Exception):
    """One attempt that brought no usable answer.

    Parameters
    ----------
    kind : ErrorKind
        One of `FAILURES`, or ``refused`` where the endpoint's content filter refused the request, ``fatal`` where
        no other request would fare better.
    message : str
        One line without secrets.
    status : int, optional
        HTTP status, where there was a reply.
    retry_after : float, optional
        Seconds that the endpoint asked to wait.
    reached : bool
        False where no request can have left this machine.
    body : str, optional
        The reply as it came, without secrets.
    parameter : str, optional
        The field of the request that the endpoint complained of.
    """

    kind: ErrorKind
    message: str
    _: KW_ONLY
    status: int | None = None
    retry_after: float | None = None
    reached: bool = True
    body: str | None = None
    parameter: str | None = None

    def __post_init__(self) -> None:
        super().__init__(f"{self.kind}: {self.message}")


# Waits of fewer seconds are not told: any busy endpoint asks for them.
MIN_TOLD_WAIT = 10.0

# Seconds. Limits start anew within a minute or an hour; what asks for more is a quota of a day or a month, or a service
# that is down. It holds for all requests, and nobody waits so long before a screen.
LONGEST_WAIT = 3600.0

NO_ROOM = "This machine has no room for more connections ({}): {}. `ulimit -n` may allow more open files."


def span(seconds: float) -> str:
    """Return a time in the largest unit of which it holds two."""
    units = (("day", 86400), ("hour", 3600), ("minute", 60))
    unit, size = next((row for row in units if seconds >= 2 * row[1]), ("second", 1))
    return f"{seconds / size:,.0f} {unit}s"


_ESCAPES = re.compile(r"\\+u([0-9a-fA-F]{4})|\\+[bfnrt]?")
# Words in a row that make a quotation: names of two words stand in many texts.
_MIN_QUOTED = 3


def unquoted_words(message: str, request: str) -> str:
    """Return the words of an endpoint's message that are not quoted from the request.

    Parameters
    ----------
    message : str
        What the endpoint said of a failure.
    request : str
        The request, as JSON or as text.

    Examples
    --------
    >>> from deep.llm._errors import unquoted_words
    >>> unquoted_words("Blocked by policy: its seed is unknown", "The gauge and its seed is unknown.")
    'blocked by policy'
    """
    words, request_words = _words(message), _words(request)
    runs = {tuple(request_words[i : i + _MIN_QUOTED]) for i in range(len(request_words) - _MIN_QUOTED + 1)}
    quoted = {i + j for i in range(len(words)) if tuple(words[i : i + _MIN_QUOTED]) in runs for j in range(_MIN_QUOTED)}
    return " ".join(word for i, word in enumerate(words) if i not in quoted)


def _words(text: str) -> list[str]:
    """Return the words of a text, whichever way JSON or HTML spell it."""
    plain = _ESCAPES.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", html.unescape(text))
    return re.findall(r"\w+", plain.casefold())


_OF_CONTEXT = re.compile(
    r"exceed_context|context_length|context (?:length|size|window)|\bn_ctx\b"
    r"|max(?:imum)?[ _](?:model|seq|sequence|input)[ _]len"
)
_OF_INPUT = re.compile(
    r"too long|too many tokens|(?=.*\btokens?\b).*\b(?:inputs?|prompt|messages)\b.{0,80}\b(?:exceeds?|than|must be)\b"
)


def says_too_long(words: str, *, refused: bool = True) -> bool:
    """Return whether a server says that a request does not fit into the context, each in words of its own.

    Parameters
    ----------
    words : str
        As `unquoted_words` returns them.
    refused : bool, default=True
        Whether the server blames the request. Where it blames itself, "too long" may be a wait.

    Examples
    --------
    >>> from deep.llm._errors import says_too_long
    >>> says_too_long("the request exceeds the available context size", refused=False)
    True
    >>> says_too_long("inputs must have less than 2048 tokens given 2222")
    True
    >>> says_too_long("max_tokens is too large this model supports at most 4096 completion tokens")
    False
    """
    return bool(_OF_CONTEXT.search(words) or (refused and _OF_INPUT.search(words)))


# Attempts without a connection, and seconds of them, before the first answer, after which nothing is there.
UNREACHED, UNREACHED_SECONDS = 3, 5.0


def is_dead(attempts: int, seconds: float) -> bool:
    """Return whether nothing is there, after attempts that found no connection before the first answer."""
    return attempts >= UNREACHED or seconds > UNREACHED_SECONDS


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
        # What was not sent cost nothing: the request never left this machine.
        return error.kind in (*RETRIED, "unsent") and not (self.at_most_once and error.kind in AMBIGUOUS)

    def state_after(self, error: CallError, attempt: int) -> RequestState:
        """Return the state of a request whose attempt of this number, from 1, ended with `error`."""
        if error.kind == "refused":
            return "done"
        # Nobody knows whether these two were answered, and what is unknown is left alone by runs that ask at most once.
        if self.at_most_once and error.kind in ("dropped", "timeout"):
            return "unknown"
        return "queued" if self.retries(error) and attempt < self.attempts else "failed"

    def wait(self, attempt: int, retry_after: float | None = None) -> float:
        """Return the seconds between an attempt and the next; at least `retry_after`, up to the cap."""
        jitter = _RANDOM.uniform(0.0, self.jitter)
        # What the endpoint asks for takes the place of the doubling; the jitter stays, so that not all return at once.
        if retry_after is not None:
            return min(float(retry_after), self.retry_after_cap) + jitter
        doublings = min(attempt - 1, 1000)  # the next powers of two are no floats
        return min(self.wait_initial * 2.0**doublings + jitter, self.wait_max)


# A refusal in such words may be about the length of one request.
_OF_LENGTH = re.compile(r"token|length|\blong|\blarge|\bsize\b|exceed", re.IGNORECASE)

# A model that refuses this many requests before its first answer is taken to refuse all.
REFUSALS_BEFORE_FIRST_ANSWER = 3

# After this many server errors before a model's first answer a JSON schema is taken to be what breaks its server.
SERVER_ERRORS_BEFORE_FIRST_ANSWER = 3

# A model with this many replies without JSON, and none with it, is taken to ignore a JSON schema. One may be an
# accident; each more is bought for nothing. Chosen; no measurement is known.
REPLIES_WITHOUT_JSON = 3

CONSTRAINTS = ("response_format", "structured_outputs")
"""These fields of a request say what its reply may be."""

# After this many requests that were given up with no answer between them the endpoint is taken to be down. More would
# cost time and perhaps money; fewer would end a run for a short outage. Chosen; no measurement is known.
GIVEN_UP_IN_A_ROW = 20


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
        self._live_models: set[str] = set()
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
        self._live_models.add(model)

    def is_hopeless(self, model: str, error: CallError) -> bool:
        """Count a failure; return whether it is not about the request, but about the key, the account or the model."""
        # A model that has answered once is there: its later refusals are about single requests.
        if error.kind == "fatal" or model in self._live_models:
            return error.kind == "fatal"
        if error.kind == "unreachable" and not self._live_models:
            self._unreached += 1
            return is_dead(self._unreached, time.monotonic() - self._began)
        self._refusals[model] += error.kind == "rejected"
        # Servers have many words for a text that is too long, and the texts that come first may be the longest.
        most = GIVEN_UP_IN_A_ROW if _OF_LENGTH.search(error.message) else REFUSALS_BEFORE_FIRST_ANSWER
        # Before the first answer a 403 is about the key or the account, not about the text.
        return error.kind in ("no_model", "redirected") or error.status == 403 or self._refusals[model] >= most

    def may_be_schema(self, model: str, error: CallError, body: "Body") -> bool:
        """Return whether a server error may come from a schema or a choice that the model's server cannot digest."""
        constrained = any(name in body for name in CONSTRAINTS)
        return error.kind == "server_error" and model not in self._live_models and constrained

    def blames_schema(self, model: str) -> bool:
        """Count a server error that may come from a JSON schema; return whether it is the one that proves it."""
        self._server_errors[model] += 1
        return self._server_errors[model] == SERVER_ERRORS_BEFORE_FIRST_ANSWER

    def ignores_schema(self, model: str, reply: "Reply") -> bool:
        """Count a reply to a request for JSON; return whether it is the one that shows that the schema is ignored."""
        if reply.text.lstrip().startswith("{"):
            self._with_json.add(model)
        if model in self._with_json or reply.refusal or not reply.text.strip():
            return False
        self._without_json[model] += 1
        return self._without_json[model] == REPLIES_WITHOUT_JSON

    def ignores_choice(self, model: str, choice: "Choice", reply: "Reply") -> bool:
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
