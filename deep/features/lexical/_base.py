"""Words and sentences of a text, and the base of lexical checks: judges that abstain where words tell nothing."""

import re
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import chain, pairwise
from math import log
from threading import Lock
from typing import Any, ClassVar, TypeVar

from deep._util.files import read_asset
from deep.judges import OfflineJudge, voter_name
from deep.records import ABSTAIN, Example, Judgment


def bag(words: str) -> frozenset[str]:
    """Return the words of a list that is easier to read without quotation marks.

    Examples
    --------
    >>> from deep.features.lexical._base import bag
    >>> sorted(bag("shall will"))
    ['shall', 'will']
    """
    return frozenset(words.split())


# The word lists of all checks, by name; `words.toml` says what each is for.
WORD_LISTS = read_asset("deep.features.lexical", "words.toml")

# Blocks of letters and the marks among them; to ask each character whether it is one takes half as long again.
LETTER = (
    r"A-Za-z\xaa\xb5\xba\xc0-\xd6\xd8-\xf6\xf8-\u1fff\u2c00-\u2dff\u3040-\ud7ff\uf900-\ufdff\ufe70-\uffdc"
    r"\U00010000-\U0001efff\U00020000-\U0003ffff"
)

# A word of a text in lower case: a run of letters, or a number with its currency sign and what is glued to its end.
WORD = re.compile(rf"[{LETTER}]+(?:['\u2019][{LETTER}]+)*|[$€£¥]?\d+(?:[.,:]\d+)*(?:\s?%|(?:[kmb]|[bmt]n)\b)?")

# Words that any text may use; what it speaks of is in the others.
FUNCTION_WORDS = bag(WORD_LISTS["function_words"])

# An ending is cut off only where a vowel is left: every stem has one.
VOWEL_PATTERN = re.compile("[aeiouy]")
# How many pieces of text are remembered cut up, and how many characters each may have.
MAX_CACHED_PIECES, MAX_CACHED_PIECE_LENGTH = 65_536, 32

T = TypeVar("T")


def stem(word: str) -> str:
    """Return the stem of a word in lower case: no plural, -ing, -ed, -ly, 's; no signs of a number.

    Examples
    --------
    >>> from deep.features.lexical._base import stem
    >>> [stem(word) for word in ("companies", "included", "including", "smith's", "$1,000", "planned")]
    ['company', 'includ', 'includ', 'smith', '1000', 'plan']
    """
    word = word.replace("\u2019", "'").removesuffix("'s")
    if not word[:1].isalpha():
        return word.strip("$€£¥% ").replace(",", "")
    # Endings of three letters are mostly no endings, and the rules are those of English.
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    return _without_e(_without_tense(_without_plural(word)))


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and word[-2] not in "siu" else word


def _without_tense(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    for ending, shortest in (("ing", 6), ("ed", 5)):
        rest = word.removesuffix(ending)
        if rest != word and len(word) >= shortest and VOWEL_PATTERN.search(rest):
            return rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
    return word


def _without_e(word: str) -> str:
    word = word[:-1] if word[-1] == "e" and len(word) > 3 else word
    return f"{word[:-1]}y" if word[-1] == "i" and len(word) > 3 else word


class _PieceCache(dict[str, T]):
    """A cache by short text; `lru_cache` takes twice as long, for it keeps the order of use.

    Parameters
    ----------
    work_out : callable
        Returns the value of a text; called once for each text that the cache lacks.
    """

    def __init__(self, work_out: Callable[[str], T]) -> None:
        self._work_out = work_out

    def __missing__(self, text: str) -> T:
        result = self._work_out(text)
        if len(text) <= MAX_CACHED_PIECE_LENGTH:
            if len(self) >= MAX_CACHED_PIECES:
                self.clear()
            self[text] = result
        return result


_WITH_STEM = _PieceCache(lambda word: (word, stem(word)))


def _cut_into_words(piece: str) -> tuple[str, ...]:
    # Most pieces are one word and a comma or so; they share what is known of the word, which takes less room.
    words = WORD.findall(piece)
    return _WITH_STEM[words[0]] if len(words) == 1 else tuple(chain.from_iterable(map(_WITH_STEM.__getitem__, words)))


_look_up_piece, _chain_words = _PieceCache(_cut_into_words).__getitem__, chain.from_iterable


def words_with_stems(text: str) -> Iterable[str]:
    """Return the words of a text in lower case, behind each its stem.

    Examples
    --------
    >>> from deep.features.lexical._base import words_with_stems
    >>> list(words_with_stems("pays 3.5 % (or more)."))
    ['pays', 'pay', '3.5 %', '3.5', 'or', 'or', 'more', 'mor']
    """
    # Texts repeat each other, so what stands between two blanks is cut up once. Only before a per cent sign may a word
    # hold a blank.
    return _cut_into_words(text) if " %" in text else _chain_words(map(_look_up_piece, text.split(" ")))


# The stems of the function words, which texts are compared by.
FUNCTION_STEMS = frozenset(stem(word) for word in FUNCTION_WORDS)


STOP = re.compile(
    r"[.!?\u2026]+(?:[\"'\u201d\u2019\u00bb)\]]*\s+)?"  # with quotation marks and white space behind it, or glued
    r"|[\u3002\uff01\uff1f\u0964\u0965]+"  # scripts that need no blank
    r"|\n\s*\n\s*"  # a blank line
)
"""Where a sentence may end. No run of characters is gone through twice, however long it is."""

# A full stop without the blank that belongs behind it.
GLUED_SENTENCES_PATTERN = re.compile(r"[a-z]{2}\.[A-Z][a-z]")

# Abbreviations behind which a sentence goes on.
NEVER_LAST = bag(WORD_LISTS["never_last"])

# Abbreviations behind which a sentence ends only where a function word follows: "Acme Inc. The ...".
SELDOM_LAST = bag(WORD_LISTS["seldom_last"])

# Abbreviations only before a number: "No. 5", and "He said no. Others came".
ABBREVIATIONS_BEFORE_NUMBERS = bag(WORD_LISTS["before_numbers"])

# The most characters of an abbreviation: more than any of the lists has.
MAX_ABBREVIATION = 12

NEXT_WORD_PATTERN = re.compile(r"[^\W\d_]{1,12}(?:['\u2019][^\W\d_]{1,12})?")


def sentence_ends(text: str) -> list[int]:
    """Return the position behind every sentence of a text and the white space that follows it.

    Examples
    --------
    >>> from deep.features.lexical._base import sentence_ends
    >>> sentence_ends("Dr. Wu paid 3.5 million to Acme Inc. in May. Really?  Yes.")
    [45, 54, 58]
    """
    ends = [end for stop in STOP.finditer(text) if (end := stop.end()) < len(text) and _is_end(text, stop[0], end)]
    return [*ends, len(text)]


def _is_end(text: str, stop: str, end: int) -> bool:
    """Return whether a sentence ends where `stop` does."""
    if stop[0] not in ".!?\u2026":
        return True
    if not stop[-1].isspace():
        return stop == "." and GLUED_SENTENCES_PATTERN.match(text, max(0, end - 3)) is not None
    if text[end].islower():
        return stop.count("\n") > 1
    return stop.rstrip() != "." or not _is_abbreviated(text, end - len(stop), end)


def _is_abbreviated(text: str, stop: int, behind: int) -> bool:
    """Return whether the full stop at `stop` belongs to an abbreviation within a sentence."""
    before = text[max(0, stop - MAX_ABBREVIATION) : stop].split()
    word = before[-1].lstrip("([\"'\u201c\u2018") if before else ""
    lower = word.lower()
    if lower in ABBREVIATIONS_BEFORE_NUMBERS:
        return text[behind].isdecimal()
    if lower in SELDOM_LAST or (len(word) == 1 and word.isupper()) or (word[1:2] == "." and lower not in NEVER_LAST):
        following = NEXT_WORD_PATTERN.match(text, behind)
        return following is None or following[0].lower() not in FUNCTION_WORDS
    return lower in NEVER_LAST


# The sentences of a source that a sentence of the claim is held against. A statement may be spread over a few
# sentences; more of them find words by chance. Chosen; no measurement is known.
N_BEST_SENTENCES = 3

# A word in more sentences tells little of where to look, and in a very long source would take long.
MAX_SENTENCES_OF_WORD = 500

# Letters at the start from which on two stems may be one word: develop, development.
MIN_STEM_PREFIX = 5

# Fewer pairs of neighbours are searched for one by one, more of them among all pairs of the source.
MAX_PAIRS_ONE_BY_ONE = 24

# Characters that checks read; whatever stands in them, all twelve together take a few seconds at most.
LONGEST_SOURCE, LONGEST_CLAIM = 1_000_000, 50_000

# Words from which on a search in the line of all takes longer than a set of them.
MIN_WORDS_FOR_SET = 5_000

# Two hundred documents of 400 words, some 2 MB when cut up; more would not stay in the processor's cache.
MAX_CACHED_CHARACTERS = 500_000


def too_long(source: str, claim: str) -> str | None:
    """Return a sentence on the text that is longer than checks read; None where neither is."""
    for name, text, most in (("source", source, LONGEST_SOURCE), ("claim", claim, LONGEST_CLAIM)):
        if len(text) > most:
            return f"The {name} has {len(text):,} characters; a check reads at most {most:,}."
    return None


def _lower_case(text: str) -> str:
    """Return a text in lower case and of the same length; one capital letter has two in its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


class TokenizedText:
    """One text as sentences, words and stems; the rest is worked out when a check asks for it.

    Parameters
    ----------
    text : str
        A source, a claim or a question; a lone surrogate in it becomes "?".

    Attributes
    ----------
    lower, stems : list of str
        The words in lower case, and without their endings; of one length.
    starts : list of int
        The position of every sentence's first word, and the number of words at the end.
    """

    def __init__(self, text: str) -> None:
        # A lone surrogate, which no file can hold, becomes "?".
        self.text = text = text if text.isascii() else text.encode(errors="replace").decode()
        self.starts = [0]
        in_lower_case = _lower_case(text)
        in_turn: list[str] = []
        for start, end in pairwise([0, *sentence_ends(text)]):
            in_turn += words_with_stems(in_lower_case[start:end])
            if len(in_turn) // 2 > self.starts[-1]:
                self.starts.append(len(in_turn) // 2)
        self.lower, self.stems = in_turn[::2], in_turn[1::2]
        self._derived: dict[str, Any] = {}

    @cached_property
    def ends(self) -> list[int]:
        """Where each word ends in the text."""
        in_lower_case, end = _lower_case(self.text), 0
        # What lies between two words holds no letter and no digit, so that the next place is the right one.
        return [end := in_lower_case.index(word, end) + len(word) for word in self.lower]

    @cached_property
    def words(self) -> list[str]:
        """The words as written."""
        return [self.text[end - len(word) : end] for word, end in zip(self.lower, self.ends, strict=True)]

    @property
    def n_sentences(self) -> int:
        """The number of sentences that hold a word."""
        return len(self.starts) - 1

    def sentence(self, number: int) -> list[str]:
        """Return the words of a sentence in lower case."""
        return self.lower[self.starts[number] : self.starts[number + 1]]

    def sentence_stems(self, number: int) -> list[str]:
        """Return the stems of a sentence."""
        return self.stems[self.starts[number] : self.starts[number + 1]]

    @cached_property
    def line(self) -> str:
        """All stems on one line, a blank on either side of each."""
        return f" {' '.join(self.stems)} "

    @cached_property
    def initials(self) -> str:
        """The first letters of all words in order, and once more without those of function words."""
        content = (word[0] for word in self.lower if word not in FUNCTION_WORDS)
        return f"{''.join(word[0] for word in self.lower)} {''.join(content)}"

    @cached_property
    def content(self) -> list[str]:
        """The stems of all words but function words, in order."""
        return [s for s in self.stems if s not in FUNCTION_STEMS]

    @cached_property
    def stem_set(self) -> frozenset[str]:
        """All stems."""
        return frozenset(self.stems)

    @cached_property
    def stem_starts(self) -> frozenset[str]:
        """The first letters of all stems, as many as make two of them alike; shorter ones are whole."""
        return frozenset([s[:MIN_STEM_PREFIX] for s in self.stem_set])

    def has(self, s: str) -> bool:
        """Return whether a stem occurs, or one that starts alike."""
        if len(self.stems) > MIN_WORDS_FOR_SET:
            return s[:MIN_STEM_PREFIX] in self.stem_starts if len(s) >= MIN_STEM_PREFIX else s in self.stem_set
        return (f" {s[:MIN_STEM_PREFIX]}" if len(s) >= MIN_STEM_PREFIX else f" {s} ") in self.line

    def derived(self, name: str, work_out: Callable[["TokenizedText"], T]) -> T:
        """Return `work_out(self)`, kept under `name`: computed once for all claims that are held against this text."""
        if name not in self._derived:
            self._derived[name] = work_out(self)
        return self._derived[name]  # type: ignore[no-any-return]


@dataclass(eq=False)
class Pair:
    """A claim beside its source.

    Parameters
    ----------
    source, claim : TokenizedText
        Both as sentences, words and stems.
    question : TokenizedText, optional
        What the claim answers: its words are new in the claim no more.
    """

    source: TokenizedText
    claim: TokenizedText
    question: TokenizedText | None = None

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The content words of the claim, stemmed, and in which sentences of the source each is."""
        words = frozenset(self.claim.content)
        places: dict[str, list[int]] = {s: [] for s in words}
        stems = self.source.stems
        for number, (start, end) in enumerate(pairwise(self.source.starts)):
            for s in words.intersection(stems[start:end]):
                if len(places[s]) < MAX_SENTENCES_OF_WORD:
                    places[s].append(number)
        return places

    @cached_property
    def aligned(self) -> list[tuple[float, list[int]]]:
        """For every sentence of the claim, how much of it is in one sentence of the source, and in which ones.

        The share of its content words, rare ones weighing more, that the best sentence of the source holds, in [0, 1];
        and the best sentences, the best first. None is best where nothing is shared.
        """
        sentences = (set(self.claim.sentence_stems(n)) - FUNCTION_STEMS for n in range(self.claim.n_sentences))
        return [_most_similar_sentences(sorted(stems), self.places, self.source.n_sentences) for stems in sentences]

    @cached_property
    def neighbours(self) -> set[tuple[str, str]]:
        """The stems that are neighbours in the claim and in the source, or in the question, as pairs."""
        in_claim = set(pairwise(self.claim.stems))
        of_question = set() if self.question is None else in_claim.intersection(pairwise(self.question.stems))
        if len(in_claim) >= MAX_PAIRS_ONE_BY_ONE:
            return of_question | in_claim.intersection(pairwise(self.source.stems))
        lacking = {s for s, numbers in self.places.items() if not numbers}
        candidates = (pair for pair in in_claim if lacking.isdisjoint(pair))
        return of_question | {(a, b) for a, b in candidates if f" {a} {b} " in self.source.line}


def _most_similar_sentences(stems: list[str], index: dict[str, list[int]], n_sentences: int) -> tuple[float, list[int]]:
    """Return how much of a sentence the most similar sentences of the source hold, and which these are."""
    shared: dict[int, float] = {}
    whole = 0.0
    for s in stems:
        # Inverse document frequency over sentences: a word that stands in few says more about where the claim is from.
        weight = log(1.0 + n_sentences / (1.0 + len(index[s])))
        whole += weight
        for number in index[s]:
            shared[number] = shared.get(number, 0.0) + weight
    # Of equally good sentences the first, so that a vote does not depend on the order of a set.
    best = sorted(shared, key=lambda number: (-shared[number], number))[:N_BEST_SENTENCES]
    return (shared[best[0]] / whole, best) if best else (0.0, [])


class _TextCache:
    """A least-recently-used cache of tokenized texts, bounded by their characters, which `lru_cache` cannot count.

    Parameters
    ----------
    most : int
        Characters of all texts together; the latest stays, whatever its length.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._texts: OrderedDict[str, TokenizedText] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def text(self, text: str) -> TokenizedText:
        """Return a text cut up; one on the shelf is not cut up again."""
        with self._lock:
            entry = self._texts.get(text)
            if entry is not None:
                self._texts.move_to_end(text)
                return entry
        # Outside the lock, or threads would wait for each other's texts.
        fresh = TokenizedText(text)
        with self._lock:
            if text not in self._texts:
                self._size += len(text)
            self._texts[text] = fresh
            while self._size > self._most and len(self._texts) > 1:
                # The text that was not asked for longest goes first: claims of one document follow each other.
                self._size -= len(self._texts.popitem(last=False)[0])
        return fresh


# Sources that were tokenized lately: many claims are held against one source.
_TEXT_CACHE = _TextCache(MAX_CACHED_CHARACTERS)


def pair_texts(source: TokenizedText, claim: str, question: str | None) -> Pair:
    """Return a claim beside its source; of a question no more is read than of a claim."""
    return Pair(source, TokenizedText(claim), TokenizedText(question[:LONGEST_CLAIM]) if question else None)


@lru_cache(1)
def pair_with_cached_source(source: str, claim: str, question: str | None = None) -> Pair:
    """Return a claim beside its source; a source seen lately is not cut up again."""
    return pair_texts(_TEXT_CACHE.text(source), claim, question)


# The version of what all checks share: how texts are cut into sentences, words and stems, and aligned.
ANALYSIS_VERSION = 2

# The most pieces of evidence that a rationale names.
MAX_EVIDENCE_SHOWN = 10


class LexicalCheck(OfflineJudge):
    """A judge that compares words of the claim with those of the source.

    A subclass implements ``_judge(pair)``, and says in its docstring what it looks at and when it abstains.

    Attributes
    ----------
    name : str
        The short name of the check, as commands and columns of votes have it.
    version : str
        A hash of the name and the revision, in hex; it changes when a vote may.
    """

    name: ClassVar[str]
    revision: ClassVar[int] = 1

    @property
    def version(self) -> str:
        """See the class."""
        # Names all that may change a vote, so that a change makes another column (decision 15).
        return sha256(f"lexical {self.name} {self.revision} {ANALYSIS_VERSION}".encode()).hexdigest()

    @property
    def details(self) -> Mapping[str, object]:
        """See :class:`deep.judges.Judge`."""
        return {"kind": "lexical", "judge": self.name, "version": self.version, "model": None}

    def voter(self, llm: str = "") -> str:  # noqa: ARG002  no LLM is asked
        """Return the column of a vote matrix, ``lexical-<name>@<first 8 of version>``."""
        return voter_name(f"lexical-{self.name}", self.version)

    def label(self, example: Example, /) -> Judgment:
        """Judge one example; never fails, whatever the text. One that is too long gets the reason ``truncated``."""
        source, claim = example.source, example.claim
        if len(source) > LONGEST_SOURCE or len(claim) > LONGEST_CLAIM:
            return cut_off(str(too_long(source, claim)))
        return self._judge(pair_with_cached_source(source, claim, example.question))

    @abstractmethod
    def _judge(self, pair: Pair) -> Judgment:
        """Judge a claim beside its source."""


@lru_cache(maxsize=64)
def abstained(rationale: str) -> Judgment:
    """Return a judgment without a vote, the same for all claims that a check has nothing to say of."""
    return undecided(rationale, None)


def cut_off(rationale: str) -> Judgment:
    """Return a judgment without a vote on a text of which a check would read no more than a part."""
    return Judgment(ABSTAIN, reason="truncated", rationale=rationale)


def undecided(rationale: str, score: float | None) -> Judgment:
    """Return a judgment without a vote."""
    return Judgment(ABSTAIN, reason="abstained", score=score, rationale=rationale)


def graded(share: float, rationale: str, *, below: float, from_: float, evidence: Sequence[str] = ()) -> Judgment:
    """Return 0 where a share is below one limit, 1 from another one on, and no vote between."""
    if below <= share < from_:
        return undecided(rationale, share)
    return Judgment(int(share >= from_), score=share, rationale=rationale, evidence=tuple(evidence))


def weighed(
    for_it: Sequence[str], against_it: Sequence[str], said_for: str, said_against: str, silent: str
) -> Judgment:
    """Return 0 where something speaks against the claim, 1 where all speaks for it, no vote where nothing speaks."""
    if against_it:
        share = len(for_it) / (len(for_it) + len(against_it))
        return Judgment(0, score=share, rationale=said_against, evidence=tuple(against_it))
    if for_it:
        return Judgment(1, score=1.0, rationale=said_for, evidence=tuple(for_it))
    return abstained(silent)


def found_or_missing(what: str, sought: Iterable[tuple[str, bool]]) -> Judgment:
    """Weigh what a check sought, each with whether the source has it."""
    result: list[str] = []
    missing: list[str] = []
    for name, is_there in sought:
        (result if is_there else missing).append(name)
    lacks = f"The source lacks {what} of the claim: {', '.join(missing[:MAX_EVIDENCE_SHOWN])}."
    return weighed(result, missing, f"The source has all {what} of the claim.", lacks, f"The claim has no {what}.")
