"""The gate before each model: a canary request goes first, and what a model refuses is not sent to it again."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from deep.judge import Choice
from deep.llm._errors import CallError
from deep.llm._request import Body

_DROPPABLE = (
    "response_format",
    "structured_outputs",
    "top_logprobs",
    "logprobs",
    "temperature",
    "top_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "stop",
)
_RENAMED = {"max_tokens": "max_completion_tokens"}
_WORDS_OF_REFUSAL = re.compile(
    r"unsupported|support|unknown|unrecogni[sz]ed|unexpected|invalid|not (?:allowed|permitted|available)|extra inputs",
    re.IGNORECASE,
)
_ASKED_OF = {"logprobs": ("logprobs", "top_logprobs"), "top_logprobs": ("logprobs", "top_logprobs")}


@dataclass(frozen=True, slots=True)
class Quirk:
    """One field that one model refuses or ignores.

    Parameters
    ----------
    endpoint, model : str
    parameter : str
        The field of the request.
    action : {'dropped', 'ignored', 'renamed'}
        What is done about it; an ignored field is sent all the same, and its answer not expected, unless it only
        constrains the reply to a choice.
    message : str, optional
        The endpoint's own words.
    """

    endpoint: str
    model: str
    parameter: str
    action: Literal["dropped", "ignored", "renamed"]
    message: str | None = None


class ModelGate:
    """Lets requests pass to the models of a run, in a form that each model accepts.

    The first request to a model is its canary request: it goes alone, and so does the next one where that was
    refused. What the model cannot do, and that it is not there at all, is then learned once and not by all workers.

    Parameters
    ----------
    known : iterable of Quirk
        Those an earlier run has written down.

    Attributes
    ----------
    closed : bool
        Whether nothing more is to be asked; who waits at the gate is let through, to find that out.

    Examples
    --------
    >>> from deep.llm import ModelGate, Quirk
    >>> gate = ModelGate([Quirk("e", "o1", "temperature", "dropped"), Quirk("e", "o1", "max_tokens", "renamed")])
    >>> gate.apply("e", {"model": "o1", "temperature": 0, "max_tokens": 9})
    {'model': 'o1', 'max_completion_tokens': 9}
    """

    def __init__(self, known: Iterable[Quirk] = ()) -> None:
        self._known = {(quirk.endpoint, quirk.model, quirk.parameter): quirk for quirk in known}
        self._canaries: dict[str, asyncio.Event] = {}
        self._open: set[str] = set()
        self.closed = False

    @asynccontextmanager
    async def turn(self, model: str) -> AsyncIterator[None]:
        """Wait until `model` is open, or until it is this caller's turn to send the canary request."""
        while self._is_shut(model) and model in self._canaries:
            await self._canaries[model].wait()
        if not self._is_shut(model):
            yield
            return
        self._canaries[model] = ended = asyncio.Event()
        try:
            yield
        finally:
            del self._canaries[model]
            ended.set()

    def _is_shut(self, model: str) -> bool:
        return model not in self._open and not self.closed

    def open(self, model: str) -> None:
        """Let everybody pass to `model`."""
        self._open.add(model)
        if model in self._canaries:
            self._canaries[model].set()

    def apply(self, endpoint: str, body: Body, choice: Choice | None = None) -> Body:
        """Return the body that this model accepts; `body` itself where nothing is to be changed."""
        optional = () if choice is None else choice.fields
        actions = {
            parameter: "dropped" if quirk.action == "ignored" else quirk.action
            for (where, model, parameter), quirk in self._known.items()
            if where == endpoint and model == body["model"] and parameter in body
            if quirk.action != "ignored" or parameter in optional
        }
        if not actions:
            return body
        kept = {name: value for name, value in body.items() if actions.get(name) != "dropped"}
        return {(_RENAMED[name] if name in actions else name): value for name, value in kept.items()}

    def learn(self, endpoint: str, body: Body, error: CallError, parameter: str | None = None) -> list[Quirk]:
        """Return the new quirks that explain why `body` was refused; none where it was for another reason.

        Without a `parameter` that is known to be the cause, it is the one that the endpoint names.
        """
        blamed = parameter or _blamed(body, error) or ""
        return self._add(
            Quirk(endpoint, str(body["model"]), name, "renamed" if name in _RENAMED else "dropped", error.message)
            for name in _ASKED_OF.get(blamed, (blamed,))
            if name in body
        )

    def quirks(self, endpoint: str) -> list[Quirk]:
        """Return the quirks of the models of an endpoint, in the order in which they were learned."""
        return [quirk for quirk in self._known.values() if quirk.endpoint == endpoint]

    def ignored(self, endpoint: str, model: str, parameter: str) -> list[Quirk]:
        """Write down that the model took `parameter` and did nothing about it; none where that is known."""
        return self._add([Quirk(endpoint, model, parameter, "ignored", "accepted, but the reply shows no effect")])

    def _add(self, quirks: Iterable[Quirk]) -> list[Quirk]:
        new = [q for q in quirks if (q.endpoint, q.model, q.parameter) not in self._known]
        self._known.update({(q.endpoint, q.model, q.parameter): q for q in new})
        return new


def _blamed(body: Body, error: CallError) -> str | None:
    """Return the field that a refusal is about, if it is one we can do without."""
    if error.status not in (400, 403, 422) or error.kind != "rejected":
        return None
    named = (error.parameter or "").split(".")[0]
    if named in body and (named in _DROPPABLE or named in _RENAMED):
        return named
    if not _WORDS_OF_REFUSAL.search(error.message):
        return None
    candidates = [name for name in (*_DROPPABLE, *_RENAMED) if name in body]
    return next((name for name in candidates if re.search(rf"\b{name}\b", error.message)), None)
