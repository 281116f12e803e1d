"""Reading a chat completion: the text, who wrote it, what it used."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deep.llm._errors import CallError

_USAGE = {
    "input": ("prompt_tokens",),
    "cached": ("prompt_tokens_details", "cached_tokens"),
    "output": ("completion_tokens",),
    "reasoning": ("completion_tokens_details", "reasoning_tokens"),
}


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
    except (ValueError, RecursionError):
        raise CallError("broken", "the reply is not JSON", body=raw) from None
    return reply_of(answer, raw)


def reply_of(answer: object, raw: str) -> Reply:
    """Return the first choice of a chat completion that is parsed already."""
    choices = _at(answer, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = _at(choice, "message")
    if not isinstance(message, dict):
        raise CallError("broken", "the reply is no chat completion", body=raw)
    logprobs = _at(choice, "logprobs", "content")
    return Reply(
        text=_text(message.get("content")),
        finish_reason=_optional_text(_at(choice, "finish_reason")),
        refusal=_optional_text(message.get("refusal")),
        model=_optional_text(_at(answer, "model")),
        tokens=_tokens(_at(answer, "usage")),
        logprobs=logprobs if isinstance(logprobs, list) and logprobs else None,
        raw=raw,
    )


def _at(value: object, *path: str) -> object:
    """Return a part of parsed JSON; None where there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _text(content: object) -> str:
    """Return the content as text; some servers send a list of parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(_at(part, "text"), str))
    return content if isinstance(content, str) else ""


def _optional_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _tokens(usage: object) -> dict[str, int]:
    counts = {kind: _at(usage, *path) for kind, path in _USAGE.items()}
    return {kind: n for kind, n in counts.items() if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**31}
