"""The names by which judges announce an answer, in English and in other languages, as parts of a pattern."""

import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files

_TONGUES = tomllib.loads(files(__package__).joinpath("tongues.toml").read_text(encoding="utf-8"))
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
