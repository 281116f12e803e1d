"""The ways in which the text of a PDF may have to be read: as it is, without line numbers, a column at a time."""

import re
from collections.abc import Iterator, Sequence

_NUMBERS = re.compile(
    r"^[ \t]*\d{1,4}(?:[ \t]+\d{1,4})?[ \t]*$\n?|^[ \t]*\d{3,4}[ \t]+(?=\S)|[ \t]+\d{3,4}$", re.MULTILINE
)
_PAGE_END = re.compile(r"\f|\n[ \t]*\d{1,4}[ \t]*(?=\n)")
_GAP = re.compile(r"\S {2,}(?=\S)")


def readings(text: str) -> Iterator[str]:
    """Yield a text as it is, without the numbers of lines and pages, and with two columns taken apart."""
    yield text
    numberless = _NUMBERS.sub("", text)
    if numberless != text:
        yield numberless
    if len(_GAP.findall(text)) > 20:
        yield "\f".join(_apart(page) for page in _pages(text))


def _pages(text: str) -> Iterator[list[str]]:
    for page in _PAGE_END.split(text):
        yield page.expandtabs().split("\n")


def _apart(lines: Sequence[str]) -> str:
    """Return the lines of a page, the left column before the right one; a line across both stands between them."""
    gutter = _gutter(lines)
    if gutter is None:
        return "\n".join(lines)
    done: list[str] = []
    left: list[str] = []
    right: list[str] = []
    for line in lines:
        if len(line) > gutter and line[gutter - 2 : gutter].strip():
            done += [*left, *right, line]
            left, right = [], []
        else:
            left.append(line[:gutter])
            right.append(line[gutter:])
    return "\n".join([*done, *left, *right])


def _gutter(lines: Sequence[str]) -> int | None:
    """Return the column before which a gap stands in most of the lines that go beyond it; None where there is none."""
    starts = [gap.end() for line in lines for gap in _GAP.finditer(line)]
    wide = max((len(line) for line in lines), default=0)
    middle = [start for start in starts if 0.3 * wide < start < 0.7 * wide]
    if not middle:
        return None
    best = max(sorted(set(middle)), key=middle.count)
    beyond = [line for line in lines if len(line) > best]
    clear = [line for line in beyond if not line[best - 2 : best].strip()]
    return best if middle.count(best) >= 5 and len(clear) > 0.6 * len(beyond) else None
