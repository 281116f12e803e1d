"""What a judge's last word may say: a declared label, or a number on a declared scale."""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

LONGEST_VALUE = 200

_DECORATION = re.compile(r"[\s*_`#\"'\u2018\u2019\u201c\u201d\xab\xbb\u3008-\u3011()\[\]{}\u2010-\u2015-]+")
_STOP = " .,;:!"

_SCORE = re.compile(
    r"(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?)"
    r"(?: ?(?:/|(?:out )?of) ?(?P<top>[0-9]+(?:\.[0-9]+)?))?"
    r" ?(?P<unit>stars?|points?|%|percent)?"
)
_UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_UNITS += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {
    **{word: i for i, word in enumerate(_UNITS)},
    **{word: 10 * (i + 2) for i, word in enumerate(_TENS)},
    **{f"{ten} {_UNITS[j]}": 10 * (i + 2) + j for i, ten in enumerate(_TENS) for j in range(1, 10)},
    "hundred": 100,
    "a hundred": 100,
    "one hundred": 100,
}


def _visible(text: str) -> str:
    """Return compatibility-normalised, case-folded text without invisible format characters."""
    if text.isascii():
        return text.casefold()
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if unicodedata.category(character) != "Cf")


@lru_cache(maxsize=1024)
def normalise_label(text: str) -> str:
    r"""Return a label without case, markdown, quotes, hyphens, repeated white space and closing punctuation.

    A strikethrough, a question mark and any sign that could turn the meaning stay, so that they match no label.

    Examples
    --------
    >>> from deep.prompt_pool._values import normalise_label
    >>> normalise_label("NOT\n**SUPPORTED**."), normalise_label("not-supported"), normalise_label("supported?")
    ('not supported', 'not supported', 'supported?')
    """
    return _DECORATION.sub(" ", _visible(text)).strip(_STOP)


def read_label(value: str, labels: Mapping[str, int]) -> int | None:
    """Return the polarity of the label that `value` is, or None.

    The whole value must be one label, so none is found inside a longer one or inside a sentence.
    """
    if len(value.strip()) > LONGEST_VALUE:
        return None
    wanted = normalise_label(value)
    return next((polarity for label, polarity in labels.items() if normalise_label(label) == wanted), None)


def read_score(value: str, low: float, high: float) -> float | None:
    """Return the number that `value` is, scaled to [0, 1]; None where it is none or lies outside the scale.

    Examples
    --------
    >>> from deep.prompt_pool._values import read_score
    >>> read_score("**85/100**", 0, 100), read_score("four stars", 1, 5), read_score("6", 1, 5)
    (0.85, 0.75, None)
    """
    if len(value.strip()) > LONGEST_VALUE:
        return None
    number = _number(" ".join(re.sub(r"[*_`\"']+", " ", _visible(value)).split()).rstrip(_STOP), high)
    return None if number is None or not low <= number <= high else (number - low) / (high - low)


def number_of(text: str) -> float | None:
    """Return the number that a word or its figures are."""
    word = text.casefold().replace("-", " ")
    if word in _WORDS:
        return float(_WORDS[word])
    return float(text) if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text, re.ASCII) else None


def _number(text: str, high: float) -> float | None:
    in_words = re.sub(r" (?:stars?|points?|percent)$", "", text.replace("-", " "))
    if in_words in _WORDS:
        return float(_WORDS[in_words])
    match = _SCORE.fullmatch(text)
    if match is None or (match["top"] is not None and float(match["top"]) != high):
        return None
    if match["unit"] in ("%", "percent") and high != 100:
        return None
    return float(match["number"])
