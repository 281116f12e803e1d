"""Text of a PDF, cleaned, and folded to what every extraction of the same PDF has in common: letters and digits."""

import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

WINDOW = 40
"""Folded characters, some eight words, that have a hash of their own."""

BLANK = "\0"
"""Stands in a folded text for a blank to be filled in, which papers print as dots in brackets."""

_BLANK = re.compile(r"[\[{]\s*(?:\.\s*){3}[\]}]")
_CONTINUED = re.compile(r"[ \t]*\n[ \t]*(?:- )?(?:[\u21aa\u21b3]\u2192?|,\u2192)[ \t]*|[\u21aa\u21b3][ \t]*")
_FENCE = re.compile(r"`{3,}(?:[a-z]+$)?", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")
_LINE_END = re.compile(r"\r\n|[\r\f]")
_BOLD = re.compile(r"\*\*")
_ESCAPE = re.compile(r"\\([_{}#*$&%\[\]])")
_SIGNS = str.maketrans(
    {**dict.fromkeys("\u2018\u2019\u201a\u2032", "'"), **dict.fromkeys("\u201c\u201d\u201e\u2033", '"'), "\u00ad": ""}
    | dict.fromkeys("\u2010\u2011\u2012\u2212", "-")
    | dict.fromkeys("\u200b\u200c\u200d\ufeff\u2060", "")
)


def clean(text: str) -> str:
    """Return a text with ligatures taken apart, quotes straight, and without the marks that extraction leaves.

    Signs for a continued line, code fences, bold type, escapes and soft hyphens are no part of what a paper prints.
    """
    plain = unicodedata.normalize("NFKC", _CONTROL.sub("", _LINE_END.sub("\n", text)))
    unsigned = _CONTINUED.sub(_join, plain.translate(_SIGNS))
    return _BLANK.sub("{...}", _ESCAPE.sub(r"\1", _BOLD.sub("", _FENCE.sub("", unsigned))))


def _join(mark: re.Match[str]) -> str:
    return " " if "\n" in mark[0] else ""


def digest(folded: str, length: int = 10) -> str:
    """Return the first hexadecimal digits of the SHA-256 of a folded text."""
    return sha256(folded.encode()).hexdigest()[:length]


@dataclass(frozen=True)
class FoldedText:
    r"""A cleaned text and its letters and digits, each with its place.

    White space, hyphens, punctuation, accents, case and the form of blanks differ between two extractions of one PDF;
    letters and digits do not.

    Parameters
    ----------
    text : str
        As :func:`clean` returns it.

    Examples
    --------
    >>> from deep.experiments.printed._fold import FoldedText, clean
    >>> FoldedText(clean("Con-\nsistent \ufb01gures: {...}")).folded
    'consistentfigures\x00'
    """

    text: str

    @cached_property
    def _pairs(self) -> list[tuple[str, int]]:
        blanks = {blank.start(): blank.end() for blank in _BLANK.finditer(self.text)}
        pairs: list[tuple[str, int]] = []
        place = 0
        while place < len(self.text):
            if place in blanks:
                pairs.append((BLANK, place))
                place = blanks[place]
                continue
            parts = unicodedata.normalize("NFKD", self.text[place].casefold())
            pairs += [(letter, place) for letter in parts if letter.isalnum()]
            place += 1
        return pairs

    @cached_property
    def folded(self) -> str:
        """The letters and digits."""
        return "".join(letter for letter, _ in self._pairs)

    @cached_property
    def places(self) -> list[int]:
        """The place in `text` of each folded character."""
        return [place for _, place in self._pairs]

    @cached_property
    def line_starts(self) -> list[int]:
        """The number of the first folded character of every line that has one, and the length of all."""
        starts = {bisect_left(self.places, line.start()) for line in re.finditer(r"(?m)^", self.text)}
        return sorted({*starts, len(self.folded)})

    @cached_property
    def _windows(self) -> dict[int, dict[str, list[int]]]:
        return {}

    def places_of(self, window: str, size: int = WINDOW) -> list[int]:
        """Return the folded characters at which a window of a hash begins."""
        if size not in self._windows:
            known = self._windows.setdefault(size, {})
            for start in range(len(self.folded) - size + 1):
                known.setdefault(digest(self.folded[start : start + size]), []).append(start)
        return self._windows[size].get(window, [])

    def first_line(self, number: int) -> int:
        """Return which of `line_starts` is the first one from a folded character on."""
        return bisect_left(self.line_starts, number)

    def at(self, place: int) -> int:
        """Return the number of the first folded character from a place of the text on."""
        return bisect_left(self.places, place)

    def words(self, start: int, end: int) -> str:
        """Return the words that some folded characters belong to."""
        if start >= len(self.places):
            return ""
        first = self.places[start]
        last = self.places[min(end, len(self.places)) - 1] + 1
        left = max(self.text.rfind(space, 0, first) for space in " \n\t") + 1
        right = min((r for r in (self.text.find(space, last) for space in " \n\t") if r >= 0), default=len(self.text))
        return " ".join(self.text[left:right].split())
