"""Names of the claim that the source lacks."""

from itertools import groupby
from typing import ClassVar

from deep.features.lexical._analysis import Pair, TokenizedText
from deep.features.lexical._base import LexicalCheck, found_or_missing
from deep.features.lexical._quantities import NAMES
from deep.features.lexical._words import FUNCTION_WORDS, stem
from deep.records import Judgment

HEADLINE = 0.75
"""Where more of the content words behind a sentence's first word are capitalised, capitals tell nothing."""


class Entities(LexicalCheck):
    """Votes 0 where a capitalised word or an acronym inside a sentence of the claim is not in the source."""

    name: ClassVar[str] = "entities"
    look: ClassVar[str] = "capitalised words and acronyms that the source lacks"
    silent: ClassVar[str] = "the claim has no capitals inside a sentence, or is a headline"

    def _judge(self, pair: Pair) -> Judgment:
        found: list[str] = []
        missing: list[str] = []
        for name, acronyms in _names(pair.claim).items():
            (found if _is_known(name, acronyms, pair.source) else missing).append(name)
        return found_or_missing("names", found, missing)


def _names(text: TokenizedText) -> dict[str, frozenset[str]]:
    """Return the names in a text, a word each, and the acronyms of the run of capitalised words that each is in."""
    names: dict[str, frozenset[str]] = {}
    for start, end in zip(text.starts, text.starts[1:], strict=False):
        words = text.words[start:end]
        capital = [i for i, word in enumerate(words) if _is_name(word)]
        if _is_headline(words, sum(i > 0 for i in capital)):
            continue
        acronyms: dict[int, frozenset[str]] = {}
        for i in capital:
            # The first word of a sentence is capitalised anyway: it is a name where another follows without a comma.
            if i or _stands_out(words[0]) or (capital[1:2] == [1] and f"{words[0]} {words[1]}" in text.text):
                acronyms = acronyms or _acronyms(words)
                names.setdefault(words[i], acronyms[i])
    return names


def _is_headline(words: list[str], n_capital: int) -> bool:
    if not n_capital:
        return False
    content = sum(word.lower() not in FUNCTION_WORDS for word in words[1:])
    return content > 2 and n_capital > HEADLINE * content


def _is_name(word: str) -> bool:
    return word[0].isupper() and len(word) > 1 and word.lower() not in FUNCTION_WORDS and word.lower() not in NAMES


def _stands_out(word: str) -> bool:
    return sum(letter.isupper() for letter in word) > 1


def _acronyms(words: list[str]) -> dict[int, frozenset[str]]:
    """Return the acronyms of each run of capitalised words, with and without the little words, by its places."""
    found: dict[int, frozenset[str]] = {}
    for joins, places in groupby(range(len(words)), lambda place: _may_join(words[place])):
        run = list(places)
        capitals = [place for place in run if words[place][0].isupper()] if joins else []
        if capitals:
            within = words[capitals[0] : capitals[-1] + 1]
            shortened = ("".join(word[0] for word in kept) for kept in (within, [words[place] for place in capitals]))
            acronyms = frozenset([letters.lower() for letters in shortened if len(letters) > 2])
            found.update(dict.fromkeys(run, acronyms))
    return found


def _may_join(word: str) -> bool:
    return word[0].isupper() or word in FUNCTION_WORDS


def _is_known(name: str, acronyms: frozenset[str], source: TokenizedText) -> bool:
    s = stem(name.lower())
    if source.has(s) or (_stands_out(name) and 2 < len(name) < 7 and s in source.initials):
        return True
    return not acronyms.isdisjoint(source.stem_set)
