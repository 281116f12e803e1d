"""Words that deny, restrict or qualify a sentence of the claim, but not the source's sentences that match it."""

from functools import partial
from itertools import islice
from typing import ClassVar

from deep.features.lexical._analysis import Pair, TokenizedText
from deep.features.lexical._base import LexicalCheck, abstained
from deep.features.lexical._words import FUNCTION_STEMS, bag
from deep.records import Judgment


class _Cue(LexicalCheck):
    """Votes on whether a sentence with a cue has a cue of the same kind among its best matches in the source."""

    cues: ClassVar[frozenset[str]]
    says: ClassVar[str]
    silent: ClassVar[str] = "no sentence of the claim has such a word; the sentence shares no word with the source"

    def _judge(self, pair: Pair) -> Judgment:
        matched: list[str] = []
        alone: list[str] = []
        for number, (_, best) in enumerate([] if self.cues.isdisjoint(pair.claim.lower) else pair.aligned):
            cues = self.cues.intersection(pair.claim.sentence(number))
            if cues and best:
                found = any(not self.cues.isdisjoint(pair.source.sentence(other)) for other in best)
                (matched if found else alone).extend(sorted(cues))
        if alone:
            said = f"The claim {self.says} ({', '.join(alone)}); the source's matching sentences do not."
            return Judgment(0, score=len(matched) / len(matched + alone), rationale=said, evidence=tuple(alone))
        if matched:
            said = f"The claim {self.says} ({', '.join(matched)}), and so does the source."
            return Judgment(1, score=1.0, rationale=said, evidence=tuple(matched))
        return abstained(f"No sentence of the claim {self.says}.")


class Negation(_Cue):
    """Votes 0 where the claim negates and the matching sentences of the source do not, 1 where both do.

    A negation that the claim has dropped is not looked for: on real text it told nothing.
    """

    name: ClassVar[str] = "negation"
    says: ClassVar[str] = "negates"
    look: ClassVar[str] = (
        "not, never, without, instead, fail, lack and the like, missing from the 3 best source sentences"
    )
    cues: ClassVar[frozenset[str]] = bag(
        """
        no none nobody nor neither never not nothing nowhere without ain't aren't can't cannot couldn't didn't
        doesn't don't hadn't hasn't haven't isn't mustn't needn't shouldn't wasn't weren't won't wouldn't except
        excluded excludes excluding exclude instead rather unlike barely hardly rarely scarcely seldom denied denies
        deny failed failing fails fail lacked lacking lacks lack refused refuses refuse unable
        """
    )


class Restriction(_Cue):
    """Votes 0 where the claim restricts and the matching sentences of the source do not, 1 where both do."""

    name: ClassVar[str] = "restriction"
    says: ClassVar[str] = "restricts"
    look: ClassVar[str] = "only, merely, solely and the like, missing from the 3 best source sentences"
    cues: ClassVar[frozenset[str]] = bag("exclusively just merely only purely simply solely")


MODALS = {
    "possible": bag("could likely may maybe might perhaps possibly potentially probably"),
    "certain": bag("certainly definitely must shall will"),
}
REACH = 3
"""Words behind a modal among which the one is that it belongs to."""


class Modality(LexicalCheck):
    """Votes 0 where the claim says of a word that it may (or will) be, and the source has the word but never so."""

    name: ClassVar[str] = "modality"
    look: ClassVar[str] = (
        "the word behind may, might, could (or will, must) that the source has, but never behind such a word"
    )
    silent: ClassVar[str] = "the claim has no such words; the source lacks the word behind"

    def _judge(self, pair: Pair) -> Judgment:
        matched: list[str] = []
        alone: list[str] = []
        for name, cues in MODALS.items():
            claimed = _governed(pair.claim, cues)
            in_source = pair.source.derived(name, partial(_governed, cues=cues)) if claimed else {}
            for word, cue in claimed.items():
                if pair.places[word]:
                    (matched if word in in_source else alone).append(f"{cue} {word}")
        if alone:
            said = f"The source speaks of this, but not as the claim does: {', '.join(alone)}."
            return Judgment(0, score=len(matched) / len(matched + alone), rationale=said, evidence=tuple(alone))
        if matched:
            said = f"The source is as sure of this as the claim: {', '.join(matched)}."
            return Judgment(1, score=1.0, rationale=said, evidence=tuple(matched))
        return abstained("The claim says of nothing in the source that it may or will be.")


def _governed(text: TokenizedText, cues: frozenset[str]) -> dict[str, str]:
    """Return the stem of the first content word behind each cue, with the cue."""
    found = {}
    for i in [i for i, word in enumerate(text.lower) if word in cues]:
        behind = (s for s in text.stems[i + 1 : i + 1 + REACH] if s not in FUNCTION_STEMS)
        found.update(dict.fromkeys(islice(behind, 1), text.lower[i]))
    return found
