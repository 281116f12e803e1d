"""A request as it is asked for, and the key under which its answer is kept for ever."""

import hashlib
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deep.exceptions import InputError, printable
from deep.judges import Choice
from deep.llm._errors import CallError, says_too_long, unquoted_words

if TYPE_CHECKING:
    from deep.llm._gate import Failed, Terms

# A chat completion request as JSON.
Body = Mapping[str, object]

Announce = Callable[[float | None], Awaitable[None]]
"""Writes down that an attempt is about to be made, and the most dollars that it may cost."""


def json_text(value: object, *, sort_keys: bool = False) -> str:
    r"""Return compact JSON that any database and any HTTP client can carry.

    Text outside ASCII stays as it is, so that a token estimate by length is fair; lone surrogates, which have no
    UTF-8, are escaped.

    Raises
    ------
    InputError
        `value` holds something that JSON cannot say, such as NaN.

    Examples
    --------
    >>> from deep.llm import json_text
    >>> json_text({"b": "é", "a": 1}, sort_keys=True)
    '{"a":1,"b":"é"}'
    >>> json_text("\ud800")
    '"\\ud800"'
    """
    try:
        text = json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"`body` must hold only what JSON can say. Got {error}.") from None
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False)
    return text


def storable(text: str | None) -> str | None:
    """Return text from a server as any database can hold it: without NUL, lone surrogates replaced."""
    # Nearly every text is plain, and needs no copy.
    if text is None or (text.isprintable() and text.isascii()):
        return text
    return text.replace("\0", "").encode(errors="replace").decode()


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One question to one model about one item.

    Parameters
    ----------
    body : mapping
        The chat completion request as asked for, before any field is dropped for a model that lacks it.
    endpoint : str
        The name of the endpoint; the base URL, or a name that stays when the address changes.
    prompt : str
        The prompt's id, for reports.
    prompt_hash : str
        The hash of the prompt's content.
    voter : str
        The column of the vote matrix that the answer belongs to.
    dataset, item : str
        The row of the vote matrix.
    sample : int
        0 for the first sample of the same question.
    group : str, optional
        Requests in a row that share their group share a prefix: the first goes alone, the others after it.
    context : object, optional
        Whatever the parser needs to read the answer; no part of the request's identity.
    choice : Choice, optional
        The constraint whose fields `body` holds; no part of the request's identity either.
    call : callable, optional
        Answers in place of the endpoint, within the limits and once the attempt is announced with its cost.

    Examples
    --------
    >>> from deep.llm import Request
    >>> body = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
    >>> row = {"voter": "p@0a/m", "dataset": "d", "item": "1"}
    >>> asked = Request(body=body, endpoint="local", prompt="p", prompt_hash="0a", **row)
    >>> asked.key[:8], asked.model
    ('75ab5d1f', 'm')
    """

    body: Body
    endpoint: str
    prompt: str
    prompt_hash: str
    voter: str
    dataset: str
    item: str
    sample: int = 0
    group: str | None = None
    context: Any = None
    choice: Choice | None = None
    call: "Callable[[Terms, Announce], Awaitable[Reply | Failed]] | None" = None

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.body["model"])

    @property
    def key(self) -> str:
        """SHA-256 (64 hex digits) of body, endpoint name, prompt hash and sample index, in canonical JSON."""
        # How a reply is held to its answers is no part of the question: an answer counts with and without.
        constraint = () if self.choice is None else self.choice.fields
        body = {name: value for name, value in self.body.items() if name not in constraint}
        identity = {"body": body, "endpoint": self.endpoint, "prompt": self.prompt_hash, "sample": self.sample}
        return hashlib.sha256(json_text(identity, sort_keys=True).encode()).hexdigest()


_USAGE = {
    "input": ("prompt_tokens",),
    "cached": ("prompt_tokens_details", "cached_tokens"),
    "output": ("completion_tokens",),
    "reasoning": ("completion_tokens_details", "reasoning_tokens"),
    "total": ("total_tokens",),
}

# No larger count of tokens can stand in a ledger: the integers of PostgreSQL end here.
MAX_TOKENS = 2**31 - 1

MOST_VALUES = 1_000_000
"""Values that a reply may hold: parsed, each takes many times its bytes."""

# Levels of JSON in a reply; far below where Python's own limit, which depends on the caller, ends the reading.
MAX_NESTING = 64

# Finish reasons of an answer that its server, not its model, has ended.
BROKEN_OFF_REASONS = frozenset({"abort", "aborted", "cancelled", "error"})


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer.

    Parameters
    ----------
    text : str
        What the model said; empty where it said nothing.
    finish_reason : str, optional
        Why it stopped, in the endpoint's words: ``stop``, ``length``, ``content_filter``.
    refusal : str, optional
        The refusal, where the endpoint keeps it apart from the text.
    model : str, optional
        The model that answered, which need not be the one asked.
    tokens : mapping of str to int
        Usage by kind: input, cached, output, reasoning; only those the endpoint reported.
    logprobs : sequence of mappings, optional
        Per token of the text: ``token``, ``logprob``, ``top_logprobs``. None where the endpoint sent none.
    raw : str
        The whole JSON reply.
    cost, seconds : float, optional
        US dollars and wall time of the attempt, where they are known.
    """

    text: str
    finish_reason: str | None = None
    refusal: str | None = None
    model: str | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    logprobs: Sequence[Mapping[str, object]] | None = None
    raw: str = ""
    cost: float | None = None
    seconds: float | None = None


def read_reply(raw: str) -> Reply:
    """Return the first choice of a chat completion.

    Parameters
    ----------
    raw : str
        The body of an HTTP reply.

    Raises
    ------
    CallError
        Of kind ``broken``: the body is not JSON, or not a chat completion.

    Examples
    --------
    >>> from deep.llm import read_reply
    >>> reply = read_reply('{"model": "m-1", "choices": [{"finish_reason": "stop", "message": {"content": "yes"}}]}')
    >>> reply.text, reply.model
    ('yes', 'm-1')
    """
    try:
        answer = json.loads(raw)
    # JSON that is nested too deep ends Python's parser by a RecursionError.
    except (ValueError, RecursionError):
        raise CallError("broken", "the reply is not JSON", body=raw) from None
    return _reply_of(answer, raw)


def received_reply(raw: str) -> Reply:
    """Return the first choice of a chat completion that has just come; what is in the ledger is read as it is.

    Parameters
    ----------
    raw : str
        The body of an HTTP reply.

    Raises
    ------
    CallError
        Of kind ``broken``: it is no chat completion, or one that could be read in two ways, or not again.

    Examples
    --------
    >>> from deep.llm import received_reply
    >>> received_reply('{"choices": [{"message": {"content": "yes"}}], "error": {"message": "cut off"}}')
    Traceback (most recent call last):
    deep.llm._errors.CallError: broken: the reply has an answer and an error: cut off
    """
    # Counted in the text, before parsing fills the memory.
    if sum(map(raw.count, ",[{")) > MOST_VALUES:
        raise CallError("broken", f"the reply holds more than {MOST_VALUES:,} values")
    try:
        answer = json.loads(raw, object_pairs_hook=_unique_object, parse_int=_whole)
    except _UnusableError as error:
        raise CallError("broken", str(error), body=raw) from None
    except (ValueError, RecursionError):
        raise CallError("broken", "the reply is not JSON", body=raw) from None
    return checked_reply(answer, raw)


def checked_reply(answer: object, raw: str) -> Reply:
    """Return the first choice of a chat completion that has just come and is parsed already; raise where it is none."""
    fault = next(_faults(answer), None)
    if fault is not None:
        # LM Studio refuses a text that is too long with status 200.
        too_long = not _choices(answer) and says_too_long(unquoted_words(error_in(answer) or "", ""), refused=False)
        raise CallError("too_long" if too_long else "broken", fault, body=raw)
    return _reply_of(answer, raw)


def _faults(answer: object) -> Iterator[str]:
    """Yield the faults that keep parsed JSON from being an answer."""
    if not is_shallow(answer):
        yield f"the reply has more than {MAX_NESTING} levels"
        return
    choices = _choices(answer)
    error, ends = error_in(answer), _part_at(next(iter(choices), None), "finish_reason")
    if error is not None:
        yield f"the reply has an answer and an error: {error}" if choices else f"the reply is an error: {error}"
    if isinstance(ends, str) and ends.casefold() in BROKEN_OFF_REASONS:
        yield f"the server has broken off the answer: {ends}"


class _UnusableError(ValueError):
    """An object has two values under one name, or a number is beyond what a float holds."""


def _whole(digits: str) -> int:
    # A number of more digits is beyond what a float holds, and could not be written down and read again.
    if len(digits) > sys.float_info.max_10_exp:
        raise _UnusableError(f"the reply holds a number of {len(digits)} digits")
    return int(digits)


def _unique_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object, in which a name may stand twice only with the same value: readers differ in which they take."""
    result = dict(pairs)
    if len(result) < len(pairs) and any(result[name] != value for name, value in pairs):
        raise _UnusableError("the reply has two values under one name")
    return result


def is_shallow(value: object, deepest: int = MAX_NESTING) -> bool:
    """Return whether parsed JSON can be written and read again, however deep the stack is by then."""
    level = [value]
    for _ in range(deepest):
        level = [part for node in level for part in _parts(node)]
        if not level:
            return True
    return False


def _parts(node: object) -> Sequence[object]:
    return list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else ()


def error_in(answer: object) -> str | None:
    """Return the message of an error that stands in an answer or its first choice; None where there is none."""
    for place in (answer, *_choices(answer)[:1]):
        error = _part_at(place, "error")
        if error:
            return printable(" ".join(str(_part_at(error, "message") or error).split())[:200])
    return None


def _choices(answer: object) -> list[object]:
    choices = _part_at(answer, "choices")
    return choices if isinstance(choices, list) else []


def _reply_of(answer: object, raw: str) -> Reply:
    """Return the first choice of a chat completion that is parsed already."""
    choice = next(iter(_choices(answer)), None)
    message = _part_at(choice, "message")
    if not isinstance(message, dict):
        raise CallError("broken", "the reply is not a chat completion", body=raw)
    logprobs = _part_at(choice, "logprobs", "content")
    return Reply(
        text=_text(message.get("content")),
        finish_reason=_optional_text(_part_at(choice, "finish_reason")),
        refusal=_optional_text(message.get("refusal")),
        model=_optional_text(_part_at(answer, "model")),
        tokens=_tokens(_part_at(answer, "usage")),
        logprobs=logprobs if isinstance(logprobs, list) and logprobs else None,
        raw=raw,
    )


def _part_at(value: object, *path: str) -> object:
    """Return a part of parsed JSON; None where there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _text(content: object) -> str:
    """Return the content as text; some servers send a list of parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(_part_at(part, "text"), str))
    return content if isinstance(content, str) else ""


def _optional_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _tokens(usage: object) -> dict[str, int]:
    """Return the tokens to pay for: a part larger than its whole stands beside it, as does what the total has more."""
    counts = {kind: _part_at(usage, *path) for kind, path in _USAGE.items()} if usage else {}
    tokens = {
        kind: n for kind, n in counts.items() if isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= MAX_TOKENS
    }
    total = tokens.pop("total", 0)
    if "input" in tokens and "output" in tokens:
        cached = tokens.get("cached", 0)
        # Some servers count cached or reasoning tokens beside the whole, and bill them.
        for whole, part in (("input", cached), ("output", tokens.get("reasoning", 0))):
            tokens[whole] += part if part > tokens[whole] else 0
        beside = max(total - tokens["input"] - tokens["output"], 0)
        tokens["input" if beside == cached else "output"] += beside
    return {kind: min(n, MAX_TOKENS) for kind, n in tokens.items()}
