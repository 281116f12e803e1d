"""What a model cannot do, learned once from its own words and then remembered."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deep.llm._errors import CallError

__all__ = ["Quirk", "Quirks"]

_DROPPABLE = (
    "response_format",
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
        What is done about it; an ignored field is sent all the same, and its answer not expected.
    message : str, optional
        The endpoint's own words.
    """

    endpoint: str
    model: str
    parameter: str
    action: str
    message: str | None = None


class Quirks:
    """The quirks known so far, by endpoint and model.

    Parameters
    ----------
    known : iterable of Quirk
        Those an earlier run has written down.

    Examples
    --------
    >>> from deep.llm import Quirk, Quirks
    >>> quirks = Quirks([Quirk("e", "o1", "temperature", "dropped"), Quirk("e", "o1", "max_tokens", "renamed")])
    >>> quirks.apply("e", {"model": "o1", "temperature": 0, "max_tokens": 9})
    {'model': 'o1', 'max_completion_tokens': 9}
    """

    def __init__(self, known: Iterable[Quirk] = ()) -> None:
        self._known = {(quirk.endpoint, quirk.model, quirk.parameter): quirk for quirk in known}

    def apply(self, endpoint: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the body that this model accepts; `body` itself where nothing is to be changed."""
        actions = {
            parameter: quirk.action
            for (where, model, parameter), quirk in self._known.items()
            if where == endpoint and model == body["model"] and parameter in body and quirk.action != "ignored"
        }
        if not actions:
            return body
        kept = {name: value for name, value in body.items() if actions.get(name) != "dropped"}
        return {(_RENAMED[name] if name in actions else name): value for name, value in kept.items()}

    def learn(self, endpoint: str, body: Mapping[str, Any], error: CallError) -> list[Quirk]:
        """Return the new quirks that explain why `body` was refused; none where it was for another reason."""
        parameter = _blamed(body, error)
        if parameter is None:
            return []
        action = "renamed" if parameter in _RENAMED else "dropped"
        names = [name for name in _ASKED_OF.get(parameter, (parameter,)) if name in body]
        return self._add(Quirk(endpoint, str(body["model"]), name, action, error.message) for name in names)

    def drop(self, endpoint: str, body: Mapping[str, Any], parameter: str, message: str) -> list[Quirk]:
        """Write down that `parameter` has to go, for a reason the endpoint did not give."""
        return self._add([Quirk(endpoint, str(body["model"]), parameter, "dropped", message)])

    def ignored(self, endpoint: str, model: str, parameter: str) -> list[Quirk]:
        """Write down that the model took `parameter` and did nothing about it; none where that is known."""
        return self._add([Quirk(endpoint, model, parameter, "ignored", "accepted, but the reply shows no effect")])

    def _add(self, quirks: Iterable[Quirk]) -> list[Quirk]:
        new = [q for q in quirks if (q.endpoint, q.model, q.parameter) not in self._known]
        self._known.update({(q.endpoint, q.model, q.parameter): q for q in new})
        return new


def _blamed(body: Mapping[str, Any], error: CallError) -> str | None:
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
