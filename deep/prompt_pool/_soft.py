"""A soft vote: how the judge's probability was shared out between the labels when it began to write one."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from deep.prompt_pool._values import normalise_label

Logprobs = Sequence[Mapping[str, Any]]
"""One entry a token of the reply, as chat completions give them: `token`, `logprob`, `top_logprobs`."""

_WORDS = re.compile(r"\w(?:.*\w)?", re.DOTALL)


def soft_vote(value: str, logprobs: Logprobs, labels: Mapping[str, int]) -> float | None:
    """Return P(consistent) against P(inconsistent) at the first token of the answer `value`.

    Alternatives that begin labels of both kinds, of neither, or an abstention count for neither side.

    Parameters
    ----------
    value : str
        The answer as the judge wrote it; its last occurrence in the tokens is looked at.
    logprobs : sequence of mapping
        The tokens of the reply with their log-probabilities (natural logarithm) and most likely alternatives.
    labels : mapping of str to {1, 0, -1}

    Returns
    -------
    float or None
        In [0, 1]; None where the tokens do not hold the answer or no alternative begins a label.

    Examples
    --------
    >>> from deep.prompt_pool._soft import soft_vote
    >>> top = [{"token": " YES", "logprob": -0.105}, {"token": " NO", "logprob": -2.303}]
    >>> round(soft_vote("YES", [{"token": "VERDICT:"}, {"token": " YES", "top_logprobs": top}], {"YES": 1, "NO": 0}), 2)
    0.9
    """
    mass = {1: 0.0, 0: 0.0}
    for token, logprob in _alternatives(value, logprobs):
        sides = _sides(token, labels)
        if len(sides) == 1 and sides <= mass.keys():
            mass[sides.pop()] += math.exp(min(logprob, 0.0))
    total = mass[1] + mass[0]
    return mass[1] / total if total > 0 else None


def _alternatives(value: str, logprobs: Logprobs) -> Iterator[tuple[str, float]]:
    """Yield the tokens that could have stood where the answer begins, without what precedes it in its own token."""
    words = _WORDS.search(value)
    entries = _entries(logprobs)
    position = "".join(entry["token"] for entry in entries).rfind(words[0]) if words else -1
    if position < 0:
        return
    ends = accumulate(len(entry["token"]) for entry in entries)
    entry = next(entry for entry, end in zip(entries, ends, strict=True) if end > position)
    for alternative in _entries(entry.get("top_logprobs")) or [entry]:
        logprob = alternative.get("logprob")
        if isinstance(logprob, int | float) and not math.isnan(logprob):
            yield alternative["token"], float(logprob)


def _entries(listed: Any) -> list[Mapping[str, Any]]:
    """Return the entries of what an endpoint sent that name a token; servers differ in what they send."""
    if not isinstance(listed, Sequence):
        return []
    return [entry for entry in listed if isinstance(entry, Mapping) and isinstance(entry.get("token"), str)]


def _sides(token: str, labels: Mapping[str, int]) -> set[int]:
    """Return the polarities of the labels that `token` begins or, where it runs on, holds at its beginning."""
    said = normalise_label(token.lstrip(" :>{\"'"))
    if not said:
        return set()
    spelled = ((normalise_label(label), polarity) for label, polarity in labels.items())
    return {polarity for label, polarity in spelled if label.startswith(said) or said.startswith(label)}
