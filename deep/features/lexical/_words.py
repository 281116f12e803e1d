"""Words: how a text is cut into them, which of them say nothing of a topic, and which of them are one word."""

import re
import tomllib
from collections.abc import Callable, Iterable
from importlib.resources import files
from itertools import chain
from typing import TypeVar


def bag(words: str) -> frozenset[str]:
    """Return the words of a list that is easier to read without quotation marks.

    Examples
    --------
    >>> from deep.features.lexical._words import bag
    >>> sorted(bag("shall will"))
    ['shall', 'will']
    """
    return frozenset(words.split())


WORD_LISTS = tomllib.loads(files("deep.features.lexical").joinpath("words.toml").read_text(encoding="utf-8"))
"""The contents of `words.toml`."""

LETTER = (
    r"A-Za-z\xaa\xb5\xba\xc0-\xd6\xd8-\xf6\xf8-\u1fff\u2c00-\u2dff\u3040-\ud7ff\uf900-\ufdff\ufe70-\uffdc"
    r"\U00010000-\U0001efff\U00020000-\U0003ffff"
)
"""Blocks of letters and the marks among them; to ask each character whether it is one takes half as long again."""

WORD = re.compile(rf"[{LETTER}]+(?:['\u2019][{LETTER}]+)*|[$€£¥]?\d+(?:[.,:]\d+)*(?:\s?%|(?:[kmb]|[bmt]n)\b)?")
"""In a text in lower case: a run of letters, or a number with its currency sign and what is glued to its end."""

FUNCTION_WORDS = bag(WORD_LISTS["function_words"])
"""Words that any text may use; what it speaks of is in the others."""

VOWEL = re.compile("[aeiouy]")
MOST_KNOWN, LONGEST_KNOWN = 65_536, 32
"""How many pieces of text are remembered cut up, and how many characters each may have."""

T = TypeVar("T")


def stem(word: str) -> str:
    """Return the stem of a word in lower case: no plural, -ing, -ed, -ly, 's; no signs of a number.

    Examples
    --------
    >>> from deep.features.lexical._words import stem
    >>> [stem(word) for word in ("companies", "included", "including", "smith's", "$1,000", "planned")]
    ['company', 'includ', 'includ', 'smith', '1000', 'plan']
    """
    word = word.replace("\u2019", "'").removesuffix("'s")
    if not word[:1].isalpha():
        return word.strip("$€£¥% ").replace(",", "")
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
        if rest != word and len(word) >= shortest and VOWEL.search(rest):
            return rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
    return word


def _without_e(word: str) -> str:
    word = word[:-1] if word[-1] == "e" and len(word) > 3 else word
    return f"{word[:-1]}y" if word[-1] == "i" and len(word) > 3 else word


class _Known(dict[str, T]):
    """A cache by short text; `lru_cache` takes twice as long, for it keeps the order of use.

    Parameters
    ----------
    work_out : callable
    """

    def __init__(self, work_out: Callable[[str], T]) -> None:
        self._work_out = work_out

    def __missing__(self, text: str) -> T:
        found = self._work_out(text)
        if len(text) <= LONGEST_KNOWN:
            if len(self) >= MOST_KNOWN:
                self.clear()
            self[text] = found
        return found


_WITH_STEM = _Known(lambda word: (word, stem(word)))


def _cut(piece: str) -> tuple[str, ...]:
    # Most pieces are one word and a comma or so; they share what is known of the word, which takes less room.
    words = WORD.findall(piece)
    return _WITH_STEM[words[0]] if len(words) == 1 else tuple(chain.from_iterable(map(_WITH_STEM.__getitem__, words)))


_look_up, _in_turn = _Known(_cut).__getitem__, chain.from_iterable


def words_with_stems(text: str) -> Iterable[str]:
    """Return the words of a text in lower case, behind each its stem.

    Examples
    --------
    >>> from deep.features.lexical._words import words_with_stems
    >>> list(words_with_stems("pays 3.5 % (or more)."))
    ['pays', 'pay', '3.5 %', '3.5', 'or', 'or', 'more', 'mor']
    """
    # Texts repeat each other, so what stands between two blanks is cut up once. Only before a per cent sign may a word
    # hold a blank.
    return _cut(text) if " %" in text else _in_turn(map(_look_up, text.split(" ")))


FUNCTION_STEMS = frozenset(stem(word) for word in FUNCTION_WORDS)


STOP = re.compile(
    r"[.!?\u2026]+(?:[\"'\u201d\u2019\u00bb)\]]*\s+)?"  # with quotation marks and white space behind it, or glued
    r"|[\u3002\uff01\uff1f\u0964\u0965]+"  # scripts that need no blank
    r"|\n\s*\n\s*"  # a blank line
)
"""Where a sentence may end. No run of characters is gone through twice, however long it is."""

GLUED = re.compile(r"[a-z]{2}\.[A-Z][a-z]")
"""A full stop that lacks its blank."""

NEVER_LAST = bag(WORD_LISTS["never_last"])
"""Abbreviations behind which a sentence goes on."""

SELDOM_LAST = bag(WORD_LISTS["seldom_last"])
"""Abbreviations behind which a sentence ends only where a function word follows: "Acme Inc. The ..."."""

BEFORE_NUMBERS = bag(WORD_LISTS["before_numbers"])
"""Abbreviations only before a number: "No. 5", and "He said no. Others came"."""

LONGEST_ABBREVIATION = 12
"""Characters, more than enough."""

WORD_BEHIND = re.compile(r"[^\W\d_]{1,12}(?:['\u2019][^\W\d_]{1,12})?")


def sentence_ends(text: str) -> list[int]:
    """Return the position behind every sentence of a text and the white space that follows it.

    Examples
    --------
    >>> from deep.features.lexical._words import sentence_ends
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
        return stop == "." and GLUED.match(text, max(0, end - 3)) is not None
    if text[end].islower():
        return stop.count("\n") > 1
    return stop.rstrip() != "." or not _is_abbreviated(text, end - len(stop), end)


def _is_abbreviated(text: str, stop: int, behind: int) -> bool:
    """Return whether the full stop at `stop` belongs to an abbreviation within a sentence."""
    before = text[max(0, stop - LONGEST_ABBREVIATION) : stop].split()
    word = before[-1].lstrip("([\"'\u201c\u2018") if before else ""
    lower = word.lower()
    if lower in BEFORE_NUMBERS:
        return text[behind].isdecimal()
    if lower in SELDOM_LAST or (len(word) == 1 and word.isupper()) or (word[1:2] == "." and lower not in NEVER_LAST):
        following = WORD_BEHIND.match(text, behind)
        return following is None or following[0].lower() not in FUNCTION_WORDS
    return lower in NEVER_LAST
