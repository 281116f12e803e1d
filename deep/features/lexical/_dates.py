"""Dates and times of the claim that the source lacks."""

import re
from typing import ClassVar

from deep.features.lexical._analysis import Pair, TokenizedText
from deep.features.lexical._base import LexicalCheck, found_or_missing
from deep.features.lexical._quantities import NAMES, ORDINALS, WEEKDAYS, marked
from deep.records import Judgment

WORDS_TOO = frozenset(("march", "may"))
"""Months that are words too: sought only where a capital inside a sentence says that they are meant."""

SHORT_DAYS = {day[:3]: day for day in WEEKDAYS}
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
        missing = [date for date in sought if date not in known]
        return found_or_missing("dates", [date for date in sought if date in known], missing)


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
