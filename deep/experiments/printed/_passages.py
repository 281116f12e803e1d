"""A passage of a paper, found in the user's copy by its print, or where the copy differs, by its heading."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from typing import NamedTuple

from deep._util.files import read_asset
from deep.prompt_pool import merge_spans

# Folded characters, some eight words, that have a hash of their own.
WINDOW_LETTERS = 40

# Stands in a folded text for a blank to be filled in, which papers print as dots in brackets.
BLANK = "\0"

# A gap that a paper leaves to be filled in: three dots in brackets.
_BLANK = re.compile(r"[\[{]\s*(?:\.\s*){3}[\]}]")
# An arrow that printed listings put where a long line goes on, with the break that belongs to it.
_CONTINUED = re.compile(r"[ \t]*\n[ \t]*(?:- )?(?:[\u21aa\u21b3]\u2192?|,\u2192)[ \t]*|[\u21aa\u21b3][ \t]*")
# The fences of code, and the language behind one.
_FENCE = re.compile(r"`{3,}(?:[a-z]+$)?", re.MULTILINE)
# Control characters but tab and newline.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")
# Ends of lines and pages that are no newline.
_LINE_END = re.compile(r"\r\n|[\r\f]")
_BOLD = re.compile(r"\*\*")
# Signs that Markdown and LaTeX escape.
_ESCAPE = re.compile(r"\\([_{}#*$&%\[\]])")
# Quotes and hyphens in their plain form; soft hyphens and signs without width are left out.
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
    unsigned = _CONTINUED.sub(lambda mark: " " if "\n" in mark[0] else "", plain.translate(_SIGNS))
    return _BLANK.sub("{...}", _ESCAPE.sub(r"\1", _BOLD.sub("", _FENCE.sub("", unsigned))))


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
    >>> from deep.experiments.printed._passages import FoldedText, clean
    >>> FoldedText(clean("Con-\nsistent \ufb01gures: {...}")).folded
    'consistentfigures\x00'
    """

    text: str

    @cached_property
    def _pairs(self) -> list[tuple[str, int]]:
        """Return each letter and digit, folded, with its place in the text; a blank to be filled in is one sign."""
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

    def places_of(self, window: str, size: int = WINDOW_LETTERS) -> list[int]:
        """Return the folded characters at which a window of a hash begins."""
        if size not in self._windows:
            windows = self._windows.setdefault(size, {})
            for start in range(len(self.folded) - size + 1):
                windows.setdefault(digest(self.folded[start : start + size]), []).append(start)
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


# Lines that may stand between two lines of a prompt: the rest of a page, a figure, the head of the next page.
MOST_FURNITURE = 80


@dataclass(frozen=True, slots=True)
class PassagePrint:
    """The print of one passage of a paper.

    Parameters
    ----------
    length : int
        Folded characters: letters, digits and blanks.
    whole : str
        SHA-256 of all of them.
    windows : tuple of str
        The hash of every window of them; the last one holds the rest too.
    breaks : mapping of int to int
        The new lines, 1 or 2 for an empty one between, before the folded character of a number.
    hyphens : frozenset of int
        The folded characters before which a hyphen stands that is part of the word.
    """

    length: int
    whole: str
    windows: tuple[str, ...]
    breaks: Mapping[int, int]
    hyphens: frozenset[int]

    def sizes(self) -> Iterator[int]:
        """Yield the size of each window."""
        whole = max(self.length // WINDOW_LETTERS, 1)
        yield from [WINDOW_LETTERS] * (whole - 1)
        yield self.length - WINDOW_LETTERS * (whole - 1)


class Match(NamedTuple):
    """How far a passage of a text agrees with a print.

    `spans` are the runs of folded characters that agree; between two of them stands page furniture. `end` is where the
    first window begins that does not agree.
    """

    spans: tuple[tuple[int, int], ...]
    n_windows: int
    end: int


@cache
def prints_of(paper: str) -> Mapping[str, PassagePrint]:
    """Return the prints of a paper's passages by name."""
    document = read_asset(__package__, "prints.json")[paper]
    return {
        name: PassagePrint(
            length=of["length"],
            whole=of["whole"],
            windows=tuple(of["windows"]),
            breaks={int(number): lines for number, lines in of["breaks"].items()},
            hyphens=frozenset(of["hyphens"]),
        )
        for name, of in document.items()
    }


def match(text: FoldedText, start: int, wanted: PassagePrint) -> Match:
    """Compare a text from one of its folded characters on with a print, passing over lines of page furniture."""
    spans: list[tuple[int, int]] = []
    cursor, n = start, 0
    for size, expected in zip(wanted.sizes(), wanted.windows, strict=True):
        if digest(text.folded[cursor : cursor + size]) == expected:
            runs = [(cursor, cursor + size)]
        else:
            runs = _around_furniture(text, cursor, size, expected)
        if not runs:
            break
        spans += runs
        cursor, n = runs[-1][1], n + 1
    return Match(tuple(merge_spans(spans)), n, cursor)


def _around_furniture(text: FoldedText, cursor: int, size: int, expected: str) -> list[tuple[int, int]]:
    """Return the two runs of a window in the midst of which whole lines stand that are no part of it; else nothing.

    Where several cuts fit, as between two prompts that share their words, the shortest one is taken.
    """
    starts = text.line_starts
    first = text.first_line(cursor)
    result: list[tuple[int, int, int]] = []
    for i in range(first, len(starts)):
        if starts[i] > cursor + size:
            break
        for again in starts[i + 1 : i + 1 + MOST_FURNITURE]:
            rest = again + size - (starts[i] - cursor)
            if digest(text.folded[cursor : starts[i]] + text.folded[again:rest]) == expected:
                result.append((again - starts[i], starts[i], again))
                break
    if not result:
        return []
    _, stop, again = min(result)
    return [run for run in ((cursor, stop), (again, again + size - (stop - cursor))) if run[0] < run[1]]


# A passage without a print that fits ends by then, in multiples of the printed length.
MAX_LENGTH_RATIO = 2.0

# Share of a print's windows that a section must hold to be that passage with changes, unless it is short.
MIN_SHARED_WINDOWS = 0.25

# Windows below which a change may touch them all.
FEW = 8

# Lines among which a passage begins behind its heading.
HEADING_LINES = 6

# Marks around a passage that are those of the page.
WRAPPERS = " \t\n\"`'"

# Punctuation right behind the last letter of a passage, which belongs to it.
_MARKS = re.compile(r"[^\s\w]*")
# A hyphen at the end of a line within a word, white space, or any other character.
_PIECE = re.compile(r"(?P<wrap>(?<=\w)-[ \t]*\n\s*(?=\w))|(?P<space>\s+)|\S")


@dataclass(frozen=True, slots=True)
class CutPassage:
    """A passage as it was found.

    Parameters
    ----------
    text : str
        Its words, with the line breaks of the printed page where the print fits.
    verified : bool
        Whether the print fits.
    differs : str
        The first words that differ from what was printed; empty where the print fits.
    n_verified : int
        Windows of the print that fit.
    """

    text: str
    verified: bool
    differs: str = ""
    n_verified: int = 0


def cut_passage(text: FoldedText, wanted: PassagePrint, heading: str, following: Sequence[str]) -> CutPassage | None:
    """Return a passage of a text; None where neither its print nor its heading is found.

    Parameters
    ----------
    text : FoldedText
        The text of the paper, folded to letters, digits and blanks.
    wanted : Print
        Hashes of the passage as it is printed, and where its lines break.
    heading : str
        A regular expression; the passage begins behind it.
    following : sequence of str
        Regular expressions of what may come after the passage.
    """
    section = _section(text, heading, following)
    starts = text.places_of(wanted.windows[0], next(wanted.sizes()))
    if section is not None:  # it may begin with each of the first lines
        begin, end = section
        line = text.first_line(begin)
        lines = text.line_starts[line : line + HEADING_LINES]
        starts = [*starts, begin, *(start for start in lines if begin < start < end)]
    matches = [(match(text, start, wanted), start) for start in starts]
    for result, _ in matches:
        if result.n_windows == len(wanted.windows):
            return CutPassage(_lay_out(text, result.spans, wanted), verified=True, n_verified=result.n_windows)
    begin, end = section or (0, len(text.folded))
    inside = [(result, start) for result, start in matches if begin <= start < end]
    if not inside or not _is_alike(text, begin, end, wanted):
        return None
    result, start = max(inside, key=lambda pair: pair[0].n_windows)
    return _unverified(text, start, end, result, wanted)


def _is_alike(text: FoldedText, begin: int, end: int, fingerprint: PassagePrint) -> bool:
    """Tell whether a section holds a part of a passage, or is short enough to be one that differs."""
    sizes = zip(fingerprint.sizes(), fingerprint.windows, strict=True)
    n_inside = sum(any(begin <= place < end for place in text.places_of(window, size)) for size, window in sizes)
    short = len(fingerprint.windows) < FEW and end - begin < MAX_LENGTH_RATIO * fingerprint.length
    return short or n_inside >= MIN_SHARED_WINDOWS * len(fingerprint.windows)


def _section(text: FoldedText, heading: str, following: Sequence[str]) -> tuple[int, int] | None:
    """Return the folded characters where the passage behind the last heading of its kind begins and ends."""
    headings = list(re.finditer(heading, text.text, re.MULTILINE))
    if not headings:
        return None
    place = headings[-1].end()
    after = (result for pattern in following for result in re.finditer(pattern, text.text[place:], re.MULTILINE))
    end = min((place + result.start() for result in after), default=len(text.text))
    return text.at(place), text.at(end)


def _unverified(text: FoldedText, start: int, end: int, match: Match, fingerprint: PassagePrint) -> CutPassage:
    """Return a passage as the copy has it, up to the printed end where that is found."""
    sizes = [*fingerprint.sizes()]
    size = sizes[-1]
    ends = [place + size for place in text.places_of(fingerprint.windows[-1], size) if start < place < end]
    end = min(ends[0] if ends else end, start + int(MAX_LENGTH_RATIO * fingerprint.length))
    differs = text.words(match.end, match.end + sizes[match.n_windows]) or "its end is missing"
    lines = _slice(text, start, end).split("\n")
    passage = re.sub(r"\n{3,}", "\n\n", "\n".join(" ".join(line.split()) for line in lines))
    return CutPassage(passage.rstrip(WRAPPERS), verified=False, differs=differs, n_verified=match.n_windows)


def _slice(text: FoldedText, start: int, end: int) -> str:
    """Return the text of a run of folded characters, with the marks before the line and behind the last word."""
    if start >= end:
        return ""
    stop = text.places[end - 1] + 1
    marks = _MARKS.match(text.text, stop)
    return text.text[text.places[start] : marks.end() if marks else stop]


def _lay_out(text: FoldedText, runs: Sequence[tuple[int, int]], fingerprint: PassagePrint) -> str:
    """Return the words of runs of a text, with the line breaks and hyphens of the print in place of the copy's."""
    passage = FoldedText("\n".join(_whole_lines(text, runs)).rstrip(WRAPPERS))
    pieces = [(piece, passage.at(piece.end())) for piece in _PIECE.finditer(passage.text)]
    breaks = _places_of_breaks(pieces, fingerprint)
    parts: list[str] = []
    for piece, number in pieces:
        if piece["wrap"]:
            parts.append("-" if number in fingerprint.hyphens else "")
        elif piece["space"]:
            parts.append("\n" * breaks.get(piece.start(), 0) or " ")
        else:
            parts.append(piece[0])
    return "".join(parts).strip()


def _places_of_breaks(pieces: Sequence[tuple[re.Match[str], int]], fingerprint: PassagePrint) -> dict[int, int]:
    """Return where in a text the new lines of a print go; a mark between spaces stays on the line that it is on."""
    places: dict[int, tuple[int, bool]] = {}
    for piece, number in pieces:
        if not piece["space"] or number not in fingerprint.breaks:
            continue
        here = piece.start(), "\n" in piece[0]
        if number not in places or here[1]:
            places[number] = here
    return {place: fingerprint.breaks[number] for number, (place, _) in places.items()}


def _whole_lines(text: FoldedText, runs: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield the text of each run; those behind page furniture from the marks on that begin their line."""
    for i, (start, end) in enumerate(runs):
        run = _slice(text, start, end)
        line = text.text.rfind("\n", 0, text.places[start]) + 1
        yield text.text[line : text.places[start]].lstrip() + run if i else run


# Numbers of lines and pages: alone on a line, or of three or four digits at one of its ends.
_NUMBERS = re.compile(
    r"^[ \t]*\d{1,4}(?:[ \t]+\d{1,4})?[ \t]*$\n?|^[ \t]*\d{3,4}[ \t]+(?=\S)|[ \t]+\d{3,4}$", re.MULTILINE
)


def readings(text: str) -> Iterator[str]:
    """Yield a text as it is, and without the numbers of lines and pages where there are some."""
    yield text
    numberless = _NUMBERS.sub("", text)
    if numberless != text:
        yield numberless
