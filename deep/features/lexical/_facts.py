"""Dates, names and quotations of the claim that the source lacks."""

import re
from itertools import groupby
from typing import ClassVar

from deep.features.lexical._base import LexicalCheck, Pair, TokenizedText, cut_off, found_or_missing
from deep.features.lexical._numbers import NAMES, ORDINALS, marked
from deep.features.lexical._words import FUNCTION_WORDS, WORD, WORD_LISTS, stem
from deep.records import Judgment

WORDS_TOO = frozenset(("march", "may"))
"""Months that are words too: sought only where a capital inside a sentence says that they are meant."""

SHORT_DAYS: dict[str, str] = WORD_LISTS["short_days"]
"""Words that are no dates in a claim, and may be meant as weekdays in a source."""

YEAR = re.compile(r"(?:1[6-9]|20)\d\d")
CLOCK = re.compile(r"(\d{1,2})(?:[:.](\d\d))?")
AFTER_HOURS = frozenset(("am", "pm", "a", "p", "o'clock"))


class Dates(LexicalCheck):
    """Votes 0 where a year, month, weekday, season, quarter or time of day of the claim is not in the source."""

    name: ClassVar[str] = "dates"
    look: ClassVar[str] = "years, quarters, months, weekdays, seasons and times of day that the source lacks"
    silent: ClassVar[str] = "the claim names none"

    def _judge(self, pair: Pair) -> Judgment:
        sought = [
            date for date in _dates(pair.claim) if date not in WORDS_TOO or date.capitalize() in _inside(pair.claim)
        ]
        known = pair.source.derived("dates", lambda text: _dates(text).keys() | _looser(text)) if sought else set()
        return found_or_missing("dates", [(date, date in known) for date in sought])


def _dates(text: TokenizedText) -> dict[str, None]:
    """Return the dates of a text in a common form, in order."""
    found: dict[str, None] = {}
    lower = text.lower
    for i in text.derived("marked", marked):
        word = lower[i]
        if word in NAMES:
            found[NAMES[word]] = None
        elif word[0].isdigit():
            found.update(dict.fromkeys(_in_digits(lower, i)))
        elif word == "quarter" and i and lower[i - 1] in ORDINALS.keys() | {"first"}:
            found[f"Q{ORDINALS.get(lower[i - 1], 1)}"] = None
    return found


def _inside(text: TokenizedText) -> set[str]:
    """Return the words as written that do not start a sentence."""
    return {word for i, word in enumerate(text.words) if i not in text.starts}


def _looser(text: TokenizedText) -> set[str]:
    """Return the words of a source that may be meant as dates or times: "at 7", "Sat"."""
    numbers = (text.lower[i] for i in text.derived("marked", marked))
    hours = {f"{int(word) % 12 or 12}:00" for word in numbers if word.isdecimal() and len(word) < 3}
    return hours | {SHORT_DAYS[word] for word in SHORT_DAYS.keys() & text.lower}


def _in_digits(lower: list[str], i: int) -> list[str]:
    word = lower[i]
    before, after = lower[i - 1] if i else "", lower[i + 1] if i + 1 < len(lower) else ""
    if word in "1234" and "q" in (before, after):
        return [f"Q{word}"]
    clock = CLOCK.fullmatch(word)
    if clock and (":" in word or after in AFTER_HOURS):
        return [f"{int(clock[1]) % 12 or 12}:{clock[2] or '00'}"]
    return [word] if YEAR.fullmatch(word) else []


HEADLINE = 0.75
"""Where more of the content words behind a sentence's first word are capitalised, capitals tell nothing."""


class Entities(LexicalCheck):
    """Votes 0 where a capitalised word or an acronym inside a sentence of the claim is not in the source."""

    name: ClassVar[str] = "entities"
    look: ClassVar[str] = "capitalised words and acronyms that the source lacks"
    silent: ClassVar[str] = "the claim has no capitals inside a sentence, or is a headline"

    def _judge(self, pair: Pair) -> Judgment:
        names = _names(pair.claim).items()
        return found_or_missing("names", [(name, _is_known(name, acronyms, pair.source)) for name, acronyms in names])


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


QUOTED = re.compile("[\"“„«]([^\"“”„«»]{3,1000})[\"”“»]|``([^`']{3,1000})''")
SHORTEST = 2
"""Words; one word in quotation marks is as often a title or irony as something said."""

MOST_QUOTED = 200
"""Quoted spans that are looked for, each in the whole source."""


class Quotes(LexicalCheck):
    """Votes 0 where words in quotation marks do not stand in the source in that order."""

    name: ClassVar[str] = "quotes"
    look: ClassVar[str] = "quoted spans of two words or more that the source does not hold word for word"
    silent: ClassVar[str] = "the claim quotes nothing"

    def _judge(self, pair: Pair) -> Judgment:
        spans = list(QUOTED.finditer(pair.claim.text))
        if len(spans) > MOST_QUOTED:
            return cut_off(f"The claim has {len(spans):,} quoted spans; at most {MOST_QUOTED} are looked for.")
        quoted = []
        for match in spans:
            words = [stem(word) for word in WORD.findall((match[1] or match[2]).lower())]
            if len(words) >= SHORTEST:
                source = pair.source.derived("apart", lambda text: _apart(text.line))
                quoted.append((match[0].strip(), _apart(f" {' '.join(words)} ") in source))
        return found_or_missing("quotations", quoted)


def _apart(line: str) -> str:
    """Return a line of stems with "didn't" as two words."""
    return line.replace("n't ", " not ")
