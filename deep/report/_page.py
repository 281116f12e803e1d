"""A report as data, chapters of sentences, tables and pictures, and as one HTML file that loads nothing."""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from deep.exceptions import printable

if TYPE_CHECKING:
    from jinja2 import Environment

NUMBER = re.compile(r"[+-]?[\d,]+(?:\.\d+)?(?: %| to [+-]?[\d.]+)?|")
"""A cell that is flush right."""


@dataclass(frozen=True)
class DataTable:
    """A table under its caption.

    Parameters
    ----------
    caption : str
    rows : sequence of mapping of str to str
        Cells by column; one that a row lacks is empty. The first cell of a row names it.
    folded : bool, default=False
        Shown on demand.
    """

    caption: str
    rows: Sequence[Mapping[str, str]]
    folded: bool = False

    @cached_property
    def columns(self) -> list[str]:
        """Return the names of the columns in which any row has something."""
        return list(dict.fromkeys(name for row in self.rows for name, cell in row.items() if cell))

    @cached_property
    def numeric(self) -> frozenset[str]:
        """Return the columns of which every cell is a number, an interval or empty."""
        return frozenset(name for name in self.columns if all(NUMBER.fullmatch(row.get(name, "")) for row in self.rows))


@dataclass(frozen=True)
class Picture:
    """A picture with its numbers.

    Parameters
    ----------
    svg : str
        Safe markup, as :func:`deep.report._svg.inline_svg` gives it.
    caption : str
    tables : sequence of DataTable
        Its numbers, shown on demand.
    """

    svg: str
    caption: str
    tables: Sequence[DataTable] = ()


@dataclass(frozen=True)
class Prose:
    """Safe markup made of Markdown.

    Parameters
    ----------
    html : str
    """

    html: str


@dataclass(frozen=True)
class Chapter:
    """One part of a report.

    Parameters
    ----------
    key : str
        Its anchor.
    title : str
    says : sequence of str
        Sentences, a paragraph each.
    parts : sequence of DataTable, Picture or Prose
    figures : sequence of (str, str)
        Figures in large type, each with the words below it.
    """

    key: str
    title: str
    says: Sequence[str] = ()
    parts: Sequence[DataTable | Picture | Prose] = ()
    figures: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Page:
    """A whole report.

    Parameters
    ----------
    title : str
    about : sequence of str
        What it is made of, and which texts it holds.
    chapters : sequence of Chapter
    items : mapping, optional
        The items of the browser, JSON values; see :mod:`deep.report._items`.
    """

    title: str
    about: Sequence[str]
    chapters: Sequence[Chapter]
    items: Mapping[str, object] = field(default_factory=dict)


def page_html(page: Page) -> bytes:
    """Return a report as HTML; a policy in it forbids to load anything, or to run anything but its own script."""
    script = page_asset("parts.js") + page_asset("report.js")
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    template, style = _environment().get_template("report.html.jinja"), page_asset("report.css")
    text = template.render(page=page, style=style, script=script, digest=digest, data=_data(page.items))
    return text.encode("utf-8", "replace")


def _data(items: Mapping[str, object]) -> str:
    """Return JSON in which nothing can end a script element."""
    text = json.dumps(items, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def page_asset(name: str) -> str:
    """Return the style or the script of every page.

    Parameters
    ----------
    name : {'parts.js', 'report.css', 'report.js'}
        `parts.js` builds elements, marks passages in a text and draws the gauge of P; no other script is needed by it.

    Examples
    --------
    >>> from deep.report import page_asset
    >>> "function gauge(p, low" in page_asset("parts.js")
    True
    """
    return (files("deep.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("deep.report")
    environment = Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters["printable"] = printable
    environment.tests["table"] = lambda part: isinstance(part, DataTable)
    environment.tests["picture"] = lambda part: isinstance(part, Picture)
    return environment


def percent(value: float | None) -> str:
    """Return a share in percent with one decimal and no sign of percent; nothing for None.

    Examples
    --------
    >>> percent(0.7049), percent(None)
    ('70.5', '')
    """
    return "" if value is None else f"{100 * value:.1f}"


def decimal(value: float | None, digits: int = 3) -> str:
    """Return a number with so many decimals; nothing for None."""
    return "" if value is None else f"{value:.{digits}f}"


def between(bounds: Iterable[float] | None) -> str:
    """Return an interval of shares in percent; nothing for None.

    Examples
    --------
    >>> between([0.667, 0.743])
    '66.7 to 74.3'
    """
    return "" if bounds is None else " to ".join(percent(bound) for bound in bounds)
