"""The places of passages in the texts of an example."""

from functools import lru_cache
from typing import Literal

from deep.datasets import Passage, Place, passages_of
from deep.prompt_pool.stepwise import SearchableText
from deep.records import Example, Judgment

Part = Literal["claim", "source"]


class Places:
    """Finds passages in an example's source and claim; what does not count is that of :class:`SearchableText`.

    Parameters
    ----------
    example : Example
    """

    def __init__(self, example: Example) -> None:
        self._texts: dict[Part, str] = {"claim": example.claim, "source": example.source}

    def in_source(self, text: str) -> Place | None:
        """Return the place of a passage, first of all in the source."""
        return self._find(text, "source") or self._find(text, "claim")

    def in_claim(self, text: str) -> Place | None:
        """Return the place of a passage, first of all in the claim."""
        return self._find(text, "claim") or self._find(text, "source")

    def _find(self, text: str, part: Part) -> Place | None:
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
