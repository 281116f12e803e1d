"""A soft vote: how the judge's probability was shared out between the labels when it began to write one."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from deep.prompt_pool.reader import normalise_label

Logprobs = Sequence[Mapping[str, Any]]
"""One entry a token of the reply, as chat completions give them: `token`, `logprob`, `top_logprobs`."""

_WORDS = re.compile(r"\w(?:.*\w)?", re.DOTALL)


def soft_vote(value: str, logprobs: Logprobs, labels: Mapping[str, int]) -> float | None:
    """Return P(consistent) against P(inconsistent) at the first token of the answer `value` that tells them apart.

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
    before, weight = "", 1.0
    for chosen, alternatives in _steps(value, logprobs):
        for token, probability in alternatives:
            sides = _sides(before + token, labels)
            if len(sides) == 1 and sides <= mass.keys():
                mass[sides.pop()] += weight * probability
        if len(_sides(before + chosen, labels)) < 2:
            break
        before, weight = before + chosen, weight * dict(alternatives).get(chosen, 0.0)
    total = mass[1] + mass[0]
    return mass[1] / total if total > 0 else None


def _steps(value: str, logprobs: Logprobs) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """Yield the tokens of the answer, each with the probabilities of those that could have stood in its place.

    What precedes the answer in its first token is left out.
    """
    words = _WORDS.search(value)
    entries = _entries(logprobs)
    position = "".join(entry["token"] for entry in entries).rfind(words[0]) if words else -1
    ends = list(accumulate(len(entry["token"]) for entry in entries))
    first = next((i for i, end in enumerate(ends) if end > position), 0)
    lead = entries[first]["token"][: position - ends[first]] if position >= 0 else ""
    for entry in entries[first:] if position >= 0 else ():
        listed = _entries(entry.get("top_logprobs")) or [entry]
        yield (
            entry["token"].removeprefix(lead),
            [(one["token"].removeprefix(lead), _probability(one)) for one in listed],
        )
        lead = ""


def _probability(entry: Mapping[str, Any]) -> float:
    """Return the probability of a token; 0 where none is told."""
    logprob = entry.get("logprob")
    if not isinstance(logprob, int | float) or math.isnan(logprob):
        return 0.0
    return math.exp(min(logprob, 0.0))


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
