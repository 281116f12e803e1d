"""A passage of a paper, found in the user's copy by its print, or where the copy differs, by its heading."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deep.experiments.printed._fold import FoldedText
from deep.experiments.printed._print import Match, Print, match

LONGEST = 2.0
"""A passage without a print that fits ends by then, in multiples of the printed length."""

LEAST_ALIKE = 0.25
"""Share of a print's windows that a section must hold to be that passage with changes, unless it is short."""

FEW = 8
"""Windows below which a change may touch them all."""

HEADING_LINES = 6
"""Lines among which a passage begins behind its heading."""

WRAPPERS = " \t\n\"`'"
"""Marks around a passage that are those of the page."""

_MARKS = re.compile(r"[^\s\w]*")
_PIECE = re.compile(r"(?P<wrap>(?<=\w)-[ \t]*\n\s*(?=\w))|(?P<space>\s+)|\S")


@dataclass(frozen=True, slots=True)
class Cut:
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


def cut(text: FoldedText, wanted: Print, heading: str, following: Sequence[str]) -> Cut | None:
    """Return a passage of a text; None where neither its print nor its heading is found.

    Parameters
    ----------
    text : FoldedText
    wanted : Print
    heading : str
        A regular expression; the passage begins behind it.
    following : sequence of str
        Regular expressions of what may come after the passage.
    """
    section = _section(text, heading, following)
    starts = text.places_of(wanted.windows[0], next(wanted.sizes()))
    if section is not None:
        starts = [*starts, *_first_lines(text, *section)]
    matches = [(match(text, start, wanted), start) for start in starts]
    for found, _ in matches:
        if found.n_windows == len(wanted.windows):
            return Cut(_lay_out(text, found.kept, wanted), verified=True, n_verified=found.n_windows)
    begin, end = section or (0, len(text.folded))
    inside = [(found, start) for found, start in matches if begin <= start < end]
    if not inside or not _is_alike(text, begin, end, wanted):
        return None
    found, start = max(inside, key=lambda pair: pair[0].n_windows)
    return _unverified(text, start, end, found, wanted)


def _is_alike(text: FoldedText, begin: int, end: int, wanted: Print) -> bool:
    """Tell whether a section holds a part of a passage, or is short enough to be one that differs."""
    sizes = zip(wanted.sizes(), wanted.windows, strict=True)
    held = sum(any(begin <= place < end for place in text.places_of(window, size)) for size, window in sizes)
    short = len(wanted.windows) < FEW and end - begin < LONGEST * wanted.length
    return short or held >= LEAST_ALIKE * len(wanted.windows)


def _first_lines(text: FoldedText, begin: int, end: int) -> list[int]:
    """Return where the first lines of a section begin."""
    line = text.first_line(begin)
    return [begin, *(start for start in text.line_starts[line : line + HEADING_LINES] if begin < start < end)]


def _section(text: FoldedText, heading: str, following: Sequence[str]) -> tuple[int, int] | None:
    """Return the folded characters where the passage behind the last heading of its kind begins and ends."""
    headings = list(re.finditer(heading, text.text, re.MULTILINE))
    if not headings:
        return None
    place = headings[-1].end()
    after = (found for pattern in following for found in re.finditer(pattern, text.text[place:], re.MULTILINE))
    end = min((place + found.start() for found in after), default=len(text.text))
    return text.at(place), text.at(end)


def _unverified(text: FoldedText, start: int, end: int, found: Match, wanted: Print) -> Cut:
    """Return a passage as the copy has it, up to the printed end where that is found."""
    sizes = [*wanted.sizes()]
    size = sizes[-1]
    ends = [place + size for place in text.places_of(wanted.windows[-1], size) if start < place < end]
    end = min(ends[0] if ends else end, start + int(LONGEST * wanted.length))
    differs = text.words(found.end, found.end + sizes[found.n_windows]) or "its end is missing"
    lines = _slice(text, start, end).split("\n")
    said = re.sub(r"\n{3,}", "\n\n", "\n".join(" ".join(line.split()) for line in lines))
    return Cut(said.rstrip(WRAPPERS), verified=False, differs=differs, n_verified=found.n_windows)


def _slice(text: FoldedText, start: int, end: int) -> str:
    """Return the text of a run of folded characters, with the marks before the line and behind the last word."""
    if start >= end:
        return ""
    stop = text.places[end - 1] + 1
    marks = _MARKS.match(text.text, stop)
    return text.text[text.places[start] : marks.end() if marks else stop]


def _lay_out(text: FoldedText, kept: Sequence[tuple[int, int]], wanted: Print) -> str:
    """Return the words of runs of a text, with the line breaks and hyphens of the print in place of the copy's."""
    passage = FoldedText("\n".join(_whole_lines(text, kept)).rstrip(WRAPPERS))
    pieces = [(piece, passage.at(piece.end())) for piece in _PIECE.finditer(passage.text)]
    breaks = _places_of_breaks(pieces, wanted)
    said: list[str] = []
    for piece, number in pieces:
        if piece["wrap"]:
            said.append("-" if number in wanted.hyphens else "")
        elif piece["space"]:
            said.append("\n" * breaks.get(piece.start(), 0) or " ")
        else:
            said.append(piece[0])
    return "".join(said).strip()


def _places_of_breaks(pieces: Sequence[tuple[re.Match[str], int]], wanted: Print) -> dict[int, int]:
    """Return where in a text the new lines of a print go; a mark between spaces stays on the line that it is on."""
    places: dict[int, tuple[int, bool]] = {}
    for piece, number in pieces:
        if not piece["space"] or number not in wanted.breaks:
            continue
        here = piece.start(), "\n" in piece[0]
        if number not in places or here[1]:
            places[number] = here
    return {place: wanted.breaks[number] for number, (place, _) in places.items()}


def _whole_lines(text: FoldedText, kept: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield the text of each run; those behind page furniture from the marks on that begin their line."""
    for i, (start, end) in enumerate(kept):
        run = _slice(text, start, end)
        line = text.text.rfind("\n", 0, text.places[start]) + 1
        yield text.text[line : text.places[start]].lstrip() + run if i else run
