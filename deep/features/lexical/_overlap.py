"""How much of the claim's wording the source has."""

from collections.abc import Collection
from itertools import pairwise
from typing import ClassVar

from deep.features.lexical._analysis import Pair
from deep.features.lexical._base import LexicalCheck, abstained, graded, undecided
from deep.records import Judgment


class Coverage(LexicalCheck):
    """Votes 1 where every content word of the claim is in the source, 0 where most are not."""

    name: ClassVar[str] = "coverage"
    look: ClassVar[str] = "content words that the source lacks in every form"
    silent: ClassVar[str] = "half or more of them are there, but not all; the claim has none"

    def _judge(self, pair: Pair) -> Judgment:
        words = dict.fromkeys(pair.claim.content)
        if not words:
            return abstained("The claim has no content words.")
        missing = [word for word in words if not (pair.places[word] or pair.source.has(word))]
        share = 1.0 - len(missing) / len(words)
        said = f"The source has {len(words) - len(missing)} of {len(words)} content words of the claim."
        return graded(share, said, below=0.5, from_=1.0, evidence=missing)


class SentenceOverlap(LexicalCheck):
    """Votes on how much of a claim's sentences the best sentence of the source for each holds, on average."""

    name: ClassVar[str] = "sentence-overlap"
    look: ClassVar[str] = "the share of each sentence's content, rare words weighing more, in its best source sentence"
    silent: ClassVar[str] = "the mean share is from a fifth to four fifths; the claim has no sentence"

    def _judge(self, pair: Pair) -> Judgment:
        shares = [share for share, _ in pair.aligned]
        if not shares or not pair.claim.content:
            return abstained("The claim has no content words.")
        mean = sum(shares) / len(shares)
        said = f"The best sentences of the source hold {mean:.0%} of what the claim's sentences say."
        return graded(mean, said, below=0.2, from_=0.8)


class NovelRun(LexicalCheck):
    """Votes on the longest run of the claim's words of which no two neighbours are neighbours in the source."""

    name: ClassVar[str] = "novel-run"
    look: ClassVar[str] = "the longest n-gram of the claim without a pair of neighbours that the source has"
    silent: ClassVar[str] = "it is 4 to 9 words long; the claim has fewer than 4 words"

    def _judge(self, pair: Pair) -> Judgment:
        if len(pair.claim.stems) < 4:
            return abstained("The claim has fewer than four words.")
        start, n = _longest_novel(pair.claim.stems, pair.neighbours)
        evidence = (" ".join(pair.claim.words[start : start + n]),) if n else ()
        said = f"The longest run of words that is new has {n} of the claim's {len(pair.claim.stems)} words."
        score = 1.0 - n / len(pair.claim.stems)
        if n >= 10:
            return Judgment(0, score=score, rationale=said, evidence=evidence)
        return Judgment(1, score=score, rationale=said, evidence=evidence) if n <= 3 else undecided(said, score)


def _longest_novel(stems: list[str], known: Collection[tuple[str, str]]) -> tuple[int, int]:
    """Return where the longest run without a known pair starts, and its length in words; 0 where all is known."""
    best = (0, 0)
    start = None
    for i, pair in enumerate(pairwise(stems)):
        if pair in known:
            start = None
            continue
        start = i if start is None else start
        if i + 2 - start > best[1]:
            best = (start, i + 2 - start)
    return best
