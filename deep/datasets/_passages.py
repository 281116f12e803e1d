"""Passages that a judge points at, each with its place in the source or in the claim."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

TextPlace = tuple[Literal["claim", "source"], int, int]
"""The text that a passage stands in, where it begins there, and the position behind its last character."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that a judge gives as evidence.

    Parameters
    ----------
    text : str
    where : {'claim', 'source', None}
        The text that it was found in; None where it stands in neither, word for word, or is one of very many pieces.
    start, end : int, optional
        Its characters there: ``source[start:end]``; None where `where` is.
    verdict : str, optional
        What the judge says of it, in the judge's own word: PASS, hallucinated, unsupported.
    about : str, optional
        The part of the claim that it is evidence for, where the judge takes the claim apart.
    """

    text: str
    where: Literal["claim", "source"] | None = None
    start: int | None = None
    end: int | None = None
    verdict: str | None = None
    about: str | None = None


def passages_of(
    evidence: Iterable[str], find: Callable[[str], TextPlace | None] = lambda _: None
) -> tuple[Passage, ...]:
    """Return the evidence of a judgment of whichever kind of judge as passages.

    Parameters
    ----------
    evidence : iterable of str
        Excerpts or words; ``<verdict>: <text>``; or a claim that was checked with its excerpts, as JSON.
    find : callable, optional
        Returns the place of a text.

    Examples
    --------
    >>> from deep.datasets import passages_of
    >>> passages_of(["unsupported: It snowed."], lambda text: ("claim", 3, 13) if text == "It snowed." else None)
    (Passage(text='It snowed.', where='claim', start=3, end=13, verdict='unsupported', about=None),)
    """
    return tuple(passage for entry in evidence for passage in _passages(entry, find))


def _passages(entry: str, find: Callable[[str], TextPlace | None]) -> Iterator[Passage]:
    checked = _checked_claim(entry)
    if checked is not None:
        yield _at_span(checked["claim"], "claim", checked.get("span"), checked.get("state"))
        for found in checked.get("evidence", ()):
            yield _at_span(found["excerpt"], "source", found.get("span"), found.get("verdict"), checked["claim"])
        return
    verdict, colon, rest = entry.partition(": ")
    if (place := find(entry)) is not None:
        yield Passage(entry, *place)
    elif colon and (place := find(rest)) is not None:
        yield Passage(rest, *place, verdict=verdict)
    else:
        yield Passage(entry)


def _checked_claim(entry: str) -> dict[str, Any] | None:
    try:
        record = json.loads(entry) if entry.startswith("{") else None
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("claim"), str) else None


def _at_span(
    text: str,
    where: Literal["claim", "source"],
    span: list[int] | None,
    verdict: str | None,
    about: str | None = None,
) -> Passage:
    if span is None:
        return Passage(text, verdict=verdict, about=about)
    return Passage(text, where, span[0], span[1], verdict, about)
