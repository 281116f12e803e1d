"""Sentences of the claim beside those of the source: denied, turned into their opposite, or merely reworded."""

from collections.abc import Collection, Iterable
from functools import partial
from itertools import islice, pairwise
from typing import ClassVar

from deep.features.lexical import _base
from deep.features.lexical._base import FUNCTION_STEMS, WORD_LISTS, LexicalCheck, Pair, TokenizedText, bag, stem
from deep.records import Judgment


class _CueCheck(LexicalCheck):
    """Votes on whether a sentence with a cue has a cue of the same kind among its best matches in the source.

    It abstains where no sentence of the claim has such a word, and where the sentence shares no word with the
    source.
    """

    cues: ClassVar[frozenset[str]]
    says: ClassVar[str]

    def _judge(self, pair: Pair) -> Judgment:
        matched: list[str] = []
        alone: list[str] = []
        for number, (_, best) in enumerate([] if self.cues.isdisjoint(pair.claim.lower) else pair.aligned):
            cues = self.cues.intersection(pair.claim.sentence(number))
            if cues and best:
                result = any(not self.cues.isdisjoint(pair.source.sentence(other)) for other in best)
                (matched if result else alone).extend(sorted(cues))
        both = f"The claim {self.says} ({', '.join(matched)}), and so does the source."
        claim_alone = f"The claim {self.says} ({', '.join(alone)}); the source's matching sentences do not."
        return _base.weighed(matched, alone, both, claim_alone, f"No sentence of the claim {self.says}.")


class Negation(_CueCheck):
    """Votes 0 where the claim negates and the matching sentences of the source do not, 1 where both do.

    A negation that the claim has dropped is not looked for: on real text it told nothing.

    It looks at not, never, without, instead, fail, lack and the like, missing from the 3 best source sentences.
    """

    name: ClassVar[str] = "negation"
    says: ClassVar[str] = "negates"
    cues: ClassVar[frozenset[str]] = bag(WORD_LISTS["negations"])


class Restriction(_CueCheck):
    """Votes 0 where the claim restricts and the matching sentences of the source do not, 1 where both do.

    It looks at only, merely, solely and the like, missing from the 3 best source sentences.
    """

    name: ClassVar[str] = "restriction"
    says: ClassVar[str] = "restricts"
    cues: ClassVar[frozenset[str]] = bag(WORD_LISTS["restrictions"])


# The modal words of each kind: of what is possible, and of what is certain.
MODALS = {name: bag(words) for name, words in WORD_LISTS["modals"].items()}
# A modal belongs to the first content word among so many words behind it. Adverbs stand between, as in "may not always
# be". Chosen; no measurement is known.
MAX_WORDS_BEHIND_MODAL = 3


class Modality(LexicalCheck):
    """Votes 0 where the claim says of a word that it may (or will) be, and the source has the word but never so.

    It looks at the word behind may, might, could (or will, must) that the source has, but never behind such a word.
    It abstains where the claim has no such words, and where the source lacks the word behind.
    """

    name: ClassVar[str] = "modality"

    def _judge(self, pair: Pair) -> Judgment:
        matched: list[str] = []
        alone: list[str] = []
        for name, cues in MODALS.items():
            in_claim = _stems_behind_cues(pair.claim, cues)
            in_source = pair.source.derived(name, partial(_stems_behind_cues, cues=cues)) if in_claim else {}
            for word, cue in in_claim.items():
                if pair.places[word]:
                    (matched if word in in_source else alone).append(f"{cue} {word}")
        as_sure = f"The source is as sure of this as the claim: {', '.join(matched)}."
        otherwise = f"The source speaks of this, but not as the claim does: {', '.join(alone)}."
        return _base.weighed(
            matched, alone, as_sure, otherwise, "The claim says of nothing in the source that it may or will be."
        )


def _stems_behind_cues(text: TokenizedText, cues: frozenset[str]) -> dict[str, str]:
    """Return the stem of the first content word behind each cue, with the cue."""
    result = {}
    for i in [i for i, word in enumerate(text.lower) if word in cues]:
        behind = (s for s in text.stems[i + 1 : i + 1 + MAX_WORDS_BEHIND_MODAL] if s not in FUNCTION_STEMS)
        result.update(dict.fromkeys(islice(behind, 1), text.lower[i]))
    return result


# Two poles each. A word of one denies those of the other; words with a second, unrelated sense are left out.
ANTONYM_AXES = tuple((tuple(one.split()), tuple(other.split())) for one, other in WORD_LISTS["axes"])


def _find_poles() -> dict[str, tuple[int, ...]]:
    """Return the poles of every stem: an axis and, by its sign, a side of it."""
    poles: dict[str, tuple[int, ...]] = {}
    for axis, sides in enumerate(ANTONYM_AXES, 1):
        for sign, words in zip((1, -1), sides, strict=True):
            for s in sorted({stem(word) for word in words}):
                poles[s] = (*poles.get(s, ()), sign * axis)
    return poles


POLES_BY_STEM = _find_poles()


class Opposites(LexicalCheck):
    """Votes 0 where a word of the claim has its opposite, and not itself, in the best matching sentences, 1 where not.

    Only words of :data:`ANTONYM_AXES` count, and a sentence of the claim with both sides of an axis says nothing of it.

    It looks at words of which the 3 best source sentences have only the opposite: rise, fall; more, less. It
    abstains where the claim has no such word, and where the source's sentences have neither it nor its opposite.
    """

    name: ClassVar[str] = "opposites"

    def _judge(self, pair: Pair) -> Judgment:
        same, opposite = [], []
        for number, (_, best) in enumerate(pair.aligned):
            in_claim = _poles_in(pair.claim, [number])
            in_source = _poles_in(pair.source, best) if in_claim else {}
            for pole, word in in_claim.items():
                # A sentence that says both, as "rose after it fell", denies neither.
                if -pole in in_claim:
                    continue
                if pole in in_source:
                    same.append(word)
                elif -pole in in_source:
                    opposite.append(f"{word}: {in_source[-pole]}")
        so_too = f"The source says so too: {', '.join(same)}."
        otherwise = f"Where the source says otherwise (claim: source): {', '.join(opposite)}."
        silent = "The claim has no word whose opposite is known and that the source touches."
        return _base.weighed(same, opposite, so_too, otherwise, silent)


def _poles_in(text: TokenizedText, sentences: Iterable[int]) -> dict[int, str]:
    """Return the poles that some sentences name, each with the first word that does."""
    result: dict[int, str] = {}
    for number in sentences:
        for word, s in zip(text.sentence(number), text.sentence_stems(number), strict=True):
            for pole in POLES_BY_STEM.get(s, ()):
                result.setdefault(pole, word)
    return result


class Coverage(LexicalCheck):
    """Votes 1 where every content word of the claim is in the source, 0 where most are not.

    It looks at content words that the source and the question lack in every form. It abstains where half or more of
    them are there, but not all, and where the claim has none.
    """

    name: ClassVar[str] = "coverage"

    def _judge(self, pair: Pair) -> Judgment:
        words = dict.fromkeys(pair.claim.content)
        if not words:
            return _base.abstained("The claim has no content words.")
        of_question = () if pair.question is None else pair.question.stem_set
        missing = [word for word in words if not (pair.places[word] or word in of_question or pair.source.has(word))]
        share = 1.0 - len(missing) / len(words)
        who = "The source has" if pair.question is None else "The source and the question have"
        text = f"{who} {len(words) - len(missing)} of {len(words)} content words of the claim."
        return _base.graded(share, text, below=0.5, from_=1.0, evidence=missing)


class SentenceOverlap(LexicalCheck):
    """Votes on how much of a claim's sentences the best sentence of the source for each holds, on average.

    It looks at the share of each sentence's content, rare words weighing more, in its best source sentence. It
    abstains where the mean share is from a fifth to four fifths, and where the claim has no sentence.
    """

    name: ClassVar[str] = "sentence-overlap"

    def _judge(self, pair: Pair) -> Judgment:
        shares = [share for share, _ in pair.aligned]
        if not shares or not pair.claim.content:
            return _base.abstained("The claim has no content words.")
        mean = sum(shares) / len(shares)
        text = f"The best sentences of the source hold {mean:.0%} of what the claim's sentences say."
        return _base.graded(mean, text, below=0.2, from_=0.8)


class NovelRun(LexicalCheck):
    """Votes on the longest run of the claim's words of which no two neighbours are neighbours in the source.

    It looks at the longest n-gram of the claim without a pair of neighbours that the source has. It abstains where
    it is 4 to 9 words long, and where the claim has fewer than 4 words.
    """

    name: ClassVar[str] = "novel-run"

    def _judge(self, pair: Pair) -> Judgment:
        if len(pair.claim.stems) < 4:
            return _base.abstained("The claim has fewer than four words.")
        start, n = _longest_novel_run(pair.claim.stems, pair.neighbours)
        evidence = (" ".join(pair.claim.words[start : start + n]),) if n else ()
        text = f"The longest run of words that is new has {n} of the claim's {len(pair.claim.stems)} words."
        score = 1.0 - n / len(pair.claim.stems)
        if n >= 10:
            return Judgment(0, score=score, rationale=text, evidence=evidence)
        return Judgment(1, score=score, rationale=text, evidence=evidence) if n <= 3 else _base.undecided(text, score)


def _longest_novel_run(stems: list[str], pairs: Collection[tuple[str, str]]) -> tuple[int, int]:
    """Return where the longest run without a known pair starts, and its length in words; 0 where all is known."""
    best = (0, 0)
    start = None
    for i, pair in enumerate(pairwise(stems)):
        if pair in pairs:
            start = None
            continue
        start = i if start is None else start
        if i + 2 - start > best[1]:
            best = (start, i + 2 - start)
    return best
