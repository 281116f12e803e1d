"""The print of a text that a paper prints: hashes and the places of its line breaks, and nothing that could be read."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import NamedTuple

from deep.experiments.printed._fold import WINDOW, FoldedText, clean, digest

MOST_FURNITURE = 80
"""Lines that may stand between two lines of a prompt: the rest of a page, a figure, the head of the next page."""


@dataclass(frozen=True, slots=True)
class Print:
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
        whole = max(self.length // WINDOW, 1)
        yield from [WINDOW] * (whole - 1)
        yield self.length - WINDOW * (whole - 1)


class Match(NamedTuple):
    """How far a passage of a text agrees with a print.

    `kept` are the runs of folded characters that agree; between two of them stands page furniture. `end` is where the
    first window begins that does not agree.
    """

    kept: tuple[tuple[int, int], ...]
    n_windows: int
    end: int


def take_print(text: str) -> Print:
    r"""Return the print of a passage that has its final line breaks and hyphens.

    Examples
    --------
    >>> from deep.experiments.printed._print import take_print
    >>> taken = take_print("Weigh the claim.\n\nClaim: {...}")
    >>> taken.length, taken.breaks
    (19, {13: 2})
    """
    passage = FoldedText(clean(text))
    breaks = {passage.at(lines.end()): min(len(lines[0]), 2) for lines in re.finditer(r"\n+", passage.text)}
    hyphens = frozenset(passage.at(hyphen.end()) for hyphen in re.finditer(r"(?<=\w)-(?=\w)", passage.text))
    empty = Print(len(passage.folded), digest(passage.folded, 64), (), breaks, hyphens)
    ends = list(accumulate(empty.sizes()))
    windows = tuple(digest(passage.folded[a:b]) for a, b in zip([0, *ends], ends, strict=False))
    return replace(empty, windows=windows)


@cache
def prints_of(paper: str) -> Mapping[str, Print]:
    """Return the prints of a paper's passages by name."""
    stored = json.loads(files(__package__).joinpath("prints.json").read_bytes())[paper]
    return {
        name: Print(
            length=of["length"],
            whole=of["whole"],
            windows=tuple(of["windows"]),
            breaks={int(number): lines for number, lines in of["breaks"].items()},
            hyphens=frozenset(of["hyphens"]),
        )
        for name, of in stored.items()
    }


def match(text: FoldedText, start: int, wanted: Print) -> Match:
    """Compare a text from one of its folded characters on with a print, passing over lines of page furniture."""
    kept: list[tuple[int, int]] = []
    cursor, n = start, 0
    for size, expected in zip(wanted.sizes(), wanted.windows, strict=True):
        if digest(text.folded[cursor : cursor + size]) == expected:
            runs = [(cursor, cursor + size)]
        else:
            runs = _around_furniture(text, cursor, size, expected)
        if not runs:
            break
        kept += runs
        cursor, n = runs[-1][1], n + 1
    return Match(tuple(_merged(kept)), n, cursor)


def _around_furniture(text: FoldedText, cursor: int, size: int, expected: str) -> list[tuple[int, int]]:
    """Return the two runs of a window in the midst of which whole lines stand that are no part of it; else nothing.

    Where several cuts fit, as between two prompts that share their words, the shortest one is taken.
    """
    starts = text.line_starts
    first = text.first_line(cursor)
    found: list[tuple[int, int, int]] = []
    for i in range(first, len(starts)):
        if starts[i] > cursor + size:
            break
        for again in starts[i + 1 : i + 1 + MOST_FURNITURE]:
            rest = again + size - (starts[i] - cursor)
            if digest(text.folded[cursor : starts[i]] + text.folded[again:rest]) == expected:
                found.append((again - starts[i], starts[i], again))
                break
    if not found:
        return []
    _, stop, again = min(found)
    return [run for run in ((cursor, stop), (again, again + size - (stop - cursor))) if run[0] < run[1]]


def _merged(runs: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield runs, those that touch as one."""
    start, end = runs[0] if runs else (0, 0)
    for run in runs[1:]:
        if run[0] != end:
            yield start, end
            start = run[0]
        end = run[1]
    if runs:
        yield start, end
