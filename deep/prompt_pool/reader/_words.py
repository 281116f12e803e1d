"""The words of answers: labels, numbers, the names of an answer, and the lists of `words.toml`."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files

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
    >>> from deep.prompt_pool.reader._words import normalise_label
    >>> normalise_label("NOT\n**SUPPORTED**."), normalise_label("not-supported"), normalise_label("supported?")
    ('not supported', 'not supported', 'supported?')
    """
    return _DECORATION.sub(" ", _visible(text)).strip(_STOP)


def read_label(value: str, labels: Mapping[str, float]) -> float | None:
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
    >>> from deep.prompt_pool.reader._words import read_score
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


_TONGUES = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
_AROUND = _TONGUES["around"]

VERDICT = (
    "verdict|outcome|finding|answer|conclusion|judge?ment|decision|label|classification|determination|assessment|ruling"
    "|result|output|response|prediction"
)
SCORE = "score|rating|grade|stars?|points?|answer|result|output|response|assessment|punktzahl|note|puntuaci\u00f3n"


def _longest_first(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word))))


NAMES = {
    "score": SCORE,
    "verdict": f"{VERDICT}|{_longest_first(word for words in _TONGUES['names'].values() for word in words.split('|'))}",
}
"""The name of an answer, by its kind."""

BEFORE = (
    rf"(?:(?:my|the|our|{_AROUND['articles']})[ \t]+|l'|{_AROUND['articles_unspaced']})?"
    rf"(?:(?:overall|correct|right|{_AROUND['first']})[ \t_-]+|(?:{_AROUND['first_unspaced']})[ \t]?)?"
)
"""An article or a pronoun before the name, and that this is the last answer."""

THEREFORE = (
    rf"(?:(?:so|therefore|thus|hence|overall|in conclusion|{_AROUND['therefore']}"
    r"|(?:based on|given|considering|in light of) [^,.\n]{1,80})[,:]?[ \t]+"
    rf"|(?:{_AROUND['therefore_unspaced']})[,:\uff0c\u3001\uff1a]?[ \t]?)?"
)
"""What may lead up to the answer at the beginning of its line."""

BEHIND = rf"(?:[ \t]+(?:{_AROUND['last']}))?(?:[ \t]*\(final\))?"
"""That this is the last answer, behind the name."""

COPULA = rf"(?:\b(?:is|{_AROUND['copulas']})\b|[{_AROUND['copulas_unspaced'].replace('|', '')}])"
"""What may stand for a sign between the name and the answer."""


def one_of(name: str) -> str:
    """Return the alternatives of a list of `words.toml` as a pattern, with the lists that it refers to."""
    known = {**{key: value.split("|") for key, value in _AROUND.items()}, **_TONGUES["alternatives"]}
    known["names"] = [word for words in _TONGUES["names"].values() for word in words.split("|")]
    parts = (
        one_of(part[1:-1]) if part.startswith("{") else part.replace("'", "['\u2019]") for part in known.get(name, ())
    )
    return "|".join(parts)


def compiled(before: str, name: str, behind: str = "") -> re.Pattern[str]:
    """Return the pattern of a list of words, and what stands around them, whatever the case."""
    return re.compile(f"{before}(?:{one_of(name)}){behind}", re.IGNORECASE)
