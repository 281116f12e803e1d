"""Opposites: the claim says up where the matching sentence of the source says down."""

from collections.abc import Iterable
from typing import ClassVar

from deep.features.lexical._analysis import Pair, TokenizedText
from deep.features.lexical._base import LexicalCheck, abstained
from deep.features.lexical._words import WORD_LISTS, stem
from deep.records import Judgment

AXES = tuple((tuple(one.split()), tuple(other.split())) for one, other in WORD_LISTS["axes"])
"""Two poles each. A word of one denies those of the other; words with a second, unrelated sense are left out."""


def _poles() -> dict[str, tuple[int, ...]]:
    """Return the poles of every stem: an axis and, by its sign, a side of it."""
    poles: dict[str, tuple[int, ...]] = {}
    for axis, sides in enumerate(AXES, 1):
        for sign, words in zip((1, -1), sides, strict=True):
            for s in sorted({stem(word) for word in words}):
                poles[s] = (*poles.get(s, ()), sign * axis)
    return poles


POLES = _poles()


class Opposites(LexicalCheck):
    """Votes 0 where a word of the claim has its opposite, and not itself, in the best matching sentences, 1 where not.

    Only words of :data:`AXES` count, and a sentence of the claim with both sides of an axis says nothing of it.
    """

    name: ClassVar[str] = "opposites"
    look: ClassVar[str] = "words of which the 3 best source sentences have only the opposite: rise, fall; more, less"
    silent: ClassVar[str] = "the claim has no such word; the source's sentences have neither it nor its opposite"

    def _judge(self, pair: Pair) -> Judgment:
        same, opposite = [], []
        for number, (_, best) in enumerate(pair.aligned):
            claimed = _poles_in(pair.claim, [number])
            said = _poles_in(pair.source, best) if claimed else {}
            for pole, word in claimed.items():
                if -pole in claimed:
                    continue
                if pole in said:
                    same.append(word)
                elif -pole in said:
                    opposite.append(f"{word}: {said[-pole]}")
        if opposite:
            rationale = f"Where the source says otherwise (claim: source): {', '.join(opposite)}."
            score = len(same) / len(same + opposite)
            return Judgment(0, score=score, rationale=rationale, evidence=tuple(opposite))
        if same:
            said_too = ", ".join(same)
            return Judgment(1, score=1.0, rationale=f"The source says so too: {said_too}.", evidence=tuple(same))
        return abstained("The claim has no word whose opposite is known and that the source touches.")


def _poles_in(text: TokenizedText, sentences: Iterable[int]) -> dict[int, str]:
    """Return the poles that some sentences name, each with the first word that does."""
    found: dict[int, str] = {}
    for number in sentences:
        for word, s in zip(text.sentence(number), text.sentence_stems(number), strict=True):
            for pole in POLES.get(s, ()):
                found.setdefault(pole, word)
    return found
