"""The places of passages in the texts of an example."""

from functools import lru_cache
from typing import Literal

from deep.datasets import Passage, TextPlace, passages_of
from deep.prompt_pool import SearchableText
from deep.records import Example, Judgment

Part = Literal["claim", "source"]

MOST_SOUGHT = 1000
"""Different passages of an example whose places are looked for, each in time by the length of its texts."""


class Places:
    """Finds passages in an example's source and claim; what does not count is that of :class:`SearchableText`.

    After the first `MOST_SOUGHT` different ones no further is looked for, and has no place.

    Parameters
    ----------
    example : Example
    """

    def __init__(self, example: Example) -> None:
        self._texts: dict[Part, str] = {"claim": example.claim, "source": example.source}
        self._known: dict[tuple[str, Part], TextPlace | None] = {}

    def in_source(self, text: str) -> TextPlace | None:
        """Return the place of a passage, first of all in the source."""
        return self._first(text, ("source", "claim"))

    def in_claim(self, text: str) -> TextPlace | None:
        """Return the place of a passage, first of all in the claim."""
        return self._first(text, ("claim", "source"))

    def _first(self, text: str, parts: tuple[Part, Part]) -> TextPlace | None:
        key = text, parts[0]
        if key not in self._known and len(self._known) < MOST_SOUGHT:
            self._known[key] = next(filter(None, (self._find(text, part) for part in parts)), None)
        return self._known.get(key)

    def _find(self, text: str, part: Part) -> TextPlace | None:
        start = self._texts[part].find(text)
        if start >= 0 and " " in text.strip():  # a whole chunk, as encoders give it: nothing needs folding
            return part, start, start + len(text)
        span = _searchable(self._texts[part]).find(text)
        return None if span is None else (part, *span)


@lru_cache(maxsize=16)
def _searchable(text: str) -> SearchableText:
    """Return a text as it is searched; claims on one source follow each other."""
    return SearchableText(text)


def located(judgment: Judgment, places: Places, *, claim_first: bool) -> tuple[Passage, ...]:
    """Return the evidence of a judgment, each piece with its place in the source or the claim.

    Parameters
    ----------
    judgment : Judgment
    places : Places
        Of the example that was judged.
    claim_first : bool
        Where to look first, as :attr:`Plan.claim_first` says.
    """
    return passages_of(judgment.evidence, places.in_claim if claim_first else places.in_source)
