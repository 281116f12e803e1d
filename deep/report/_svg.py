"""A figure of matplotlib as a small SVG that stands in a page and takes the page's colors and font."""

import re
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from deep._figures import AMBER, BLUE, GRAY, GRID, LIGHT, RED, draw_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = {
    "#000000": "currentColor",
    "#ffffff": "var(--paper)",
    GRID: "var(--grid)",
    "#b0b0b0": "var(--grid)",
    BLUE: "var(--blue)",
    RED: "var(--red)",
    AMBER: "var(--amber)",
    GRAY: "var(--gray)",
    **{LIGHT[name]: f"var(--light-{word})" for name, word in ((BLUE, "blue"), (RED, "red"), (GRAY, "gray"))},
}
"""The project's palette, in words that the style sheet defines for light and dark."""

TAG = re.compile(r"<[^>]*>")
LONG = re.compile(r"(\d\.\d\d)\d+")
ID = re.compile(r' id="([^"]*)"')
FONT = re.compile(r"font-family: [^;\"]*;? ?")


def inline_svg(figure: "Figure", name: str, label: str) -> str:
    """Return a figure as markup.

    Parameters
    ----------
    figure : matplotlib Figure
    name : str
        Stands before every id in it, so that the figures of a page do not meet.
    label : str
        Said of it to those who do not see it.
    """
    text = StringIO()
    draw_svg(figure, text, salt=name)
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    svg = TAG.sub(lambda tag: _tidy(tag[0], used, name), svg)
    svg = re.sub(r">\s+<", "><", svg)
    head = f'<svg role="img" aria-label="{escape(label)}"'
    return svg.replace("<svg", head, 1)


def _tidy(tag: str, used: set[str], name: str) -> str:
    """Return a tag with short numbers, the page's colors, and only the ids that something refers to."""
    tag = ID.sub(lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", tag)
    tag = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", tag)
    tag = FONT.sub("", LONG.sub(r"\1", tag))
    return re.sub(r"(?<=: )#[0-9a-f]{6}", lambda color: COLORS.get(color[0], color[0]), tag)
