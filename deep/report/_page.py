"""A report as data, chapters of sentences, tables and pictures, and as one HTML file that loads nothing."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep._util.columns import unescape_row
from deep._util.figures import AMBER, BLUE, GRAY, GRID_COLOR, RED, TINTS, cells_for_phones, draw_svg, fit_to_phone
from deep._util.files import read_bytes
from deep.evaluate import HISTOGRAM_AREA_ID, MAX_ROWS_SHOWN, DatasetVerdict, DataTable, chance, in_percent, shown
from deep.exceptions import needs_extra, printable

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A picture with its numbers.

    Parameters
    ----------
    svg : str
        Safe markup, as :func:`deep.report._page.inline_svg` gives it.
    caption : str
        The line below the picture.
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
        Put into the page as it is, without escapes.
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
        Its heading.
    says : sequence of str
        Sentences, a paragraph each.
    parts : sequence of DataTable, Picture or Prose
        In the order of the page.
    figures : sequence of (str, str)
        Figures in large type, each with the words below it.
    elsewhere : bool, default=False
        Its figures are of other data than the items.
    """

    key: str
    title: str
    says: Sequence[str] = ()
    parts: Sequence[DataTable | Picture | Prose] = ()
    figures: Sequence[tuple[str, str]] = ()
    elsewhere: bool = False


@dataclass(frozen=True)
class Page:
    """A whole report.

    Parameters
    ----------
    title : str
        Of the browser's tab, and the first heading.
    about : sequence of str
        What it is made of, and which texts it holds.
    chapters : sequence of Chapter
        In the order of the page.
    items : mapping, optional
        The items of the browser, JSON values; see :mod:`deep.report._items`.
    verdict : DatasetVerdict, optional
        Where there are items.
    spread : Picture, optional
        How their P lie.
    """

    title: str
    about: Sequence[str]
    chapters: Sequence[Chapter]
    items: Mapping[str, object] = field(default_factory=dict)
    verdict: DatasetVerdict | None = None
    spread: Picture | None = None


def page_html(page: Page) -> bytes:
    """Return a report as HTML; a policy in it forbids to load anything, or to run anything but its own script."""
    script = page_asset("parts.js") + page_asset("report.js")
    # The page's Content-Security-Policy runs the script of this hash and no other: texts of items may hold HTML.
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    template, style = _template_environment().get_template("report.html.jinja"), page_asset("report.css")
    data = json.dumps(page.items, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    data = data.replace("<", "\\u003c")  # nothing in it can end a script element
    text = template.render(page=page, style=style, script=script, digest=digest, data=data, claims=_claims(page.items))
    return text.encode("utf-8", "replace")  # a lone surrogate of a text cannot be written


def _claims(items: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the claims of the items of a page, by dataset and id."""
    names = (items["datasets"][at] for at in items.get("dataset", ()))
    return dict(zip(zip(names, items.get("id", ()), strict=True), items.get("claim", ()), strict=False))


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
def _template_environment() -> "Environment":
    """Return Jinja's environment with the filters of the template; undefined names raise."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("deep.report")
    environment = Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters |= {"coded": _code_markup, "counted": _count_markup, "chance": chance}
    environment.filters |= {"printable": printable, "percent": in_percent}
    environment.tests["table"] = lambda part: isinstance(part, DataTable)
    environment.tests["picture"] = lambda part: isinstance(part, Picture)
    return environment


def _code_markup(text: str) -> str:
    """Return a sentence as markup, the text between backticks as code; no line ends between a number and its %."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", re.sub(r"(?<=\d) %", "\u00a0%", escape(printable(text))))


def _count_markup(text: str) -> str:
    """Return lines as markup, a number that begins one large and what the numbers mean small."""
    lines = [re.sub(r"^( *)(\d[\d,]*)", r"\1<strong>\2</strong>", _code_markup(line)) for line in text.split("\n")]
    return "\n".join(re.sub(r"^((?:An item is decided|Nothing is sure).*)", r"<span>\1</span>", line) for line in lines)


def between(bounds: Iterable[float] | None) -> str:
    """Return an interval of shares in percent; nothing for None, nor for one of no width, which says nothing.

    Examples
    --------
    >>> between([0.667, 0.743]), between([0.5, 0.5])
    ('66.7 to 74.3', '')
    """
    ends = [] if bounds is None else list(bounds)
    return in_percent(ends) if len(set(ends)) > 1 else ""


def measured_cells(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of a row of tables of metrics, of a dataset or a mean."""
    return {
        "balanced accuracy, %": in_percent(row.get("balanced_accuracy")),
        "95 % interval": between(row.get("balanced_accuracy_ci")),
        "ECE, %": in_percent(row.get("ece")),
        "noise floor, %": in_percent(row.get("ece_floor")),
        "log loss": shown(row.get("log_loss"), ".3f"),
    }


CSS_COLORS = {
    "#000000": "currentColor",
    "#ffffff": "var(--paper)",
    GRID_COLOR: "var(--grid)",
    "#b0b0b0": "var(--grid)",
    BLUE: "var(--blue)",
    RED: "var(--red)",
    AMBER: "var(--amber)",
    GRAY: "var(--gray)",
    **{TINTS[name]: f"var(--light-{word})" for name, word in ((BLUE, "blue"), (RED, "red"), (GRAY, "gray"))},
}
"""The project's palette, in words that the style sheet defines for light and dark."""

# Pieces of an SVG that `_tidy_svg_tag` shortens: tags, long decimals, ids and font families.
SVG_TAG = re.compile(r"<[^>]*>")
LONG_DECIMAL = re.compile(r"(\d\.\d\d)\d+")
SVG_ID = re.compile(r' id="([^"]*)"')
SVG_FONT = re.compile(r"font-family: [^;\"]*;? ?")


def inline_svg(figure: "Figure", name: str, label: str) -> str:
    """Return a figure as markup that fits a phone: panels that wrap, or drawn once more for phones where it can be.

    Parameters
    ----------
    figure : matplotlib Figure
        Of any size: it is cut into panels or drawn once more, narrow, where that can be.
    name : str
        Stands before every id in it, so that the figures of a page do not meet.
    label : str
        Said of it to those who do not see it.
    """
    if cells := cells_for_phones(figure):
        return f'<div class="panels">{"".join(_markup_by_panel(figure, cells, name, label))}</div>'
    wide = _svg_markup(figure, name, label)
    if not fit_to_phone(figure):
        return wide
    return f'<div class="desk">{wide}</div><div class="phone">{_svg_markup(figure, f"{name}-phone", label)}</div>'


def _markup_by_panel(figure: "Figure", cells: "Sequence[Sequence[Axes]]", name: str, label: str) -> Iterator[str]:
    """Yield the markup of each cell of a figure."""
    for number, cell in enumerate(cells):
        for axes in figure.axes:
            axes.set_visible(axes in cell)
        yield _svg_markup(figure, f"{name}-{number}", f"{label}: {cell[0].get_title()}")


def _svg_markup(figure: "Figure", name: str, label: str) -> str:
    """Return the SVG of a figure as markup that can stand in a page."""
    text = StringIO()
    draw_svg(figure, text, salt=name)
    svg = text.getvalue()
    # What a reader does not see goes: a page may hold dozens of pictures.
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    used = {HISTOGRAM_AREA_ID, *re.findall(r'(?:href="#|url\(#)([^")]+)', svg)}
    svg = SVG_TAG.sub(lambda tag: _tidy_svg_tag(tag[0], used, name), svg)
    svg = re.sub(r">\s+<", "><", svg)
    head = f'<svg role="img" aria-label="{escape(label)}"'
    return svg.replace("<svg", head, 1)


def _tidy_svg_tag(tag: str, used: set[str], name: str) -> str:
    """Return a tag with short numbers, the page's colors, and only the ids that something refers to."""
    tag = SVG_ID.sub(lambda match: f' id="{name}-{match[1]}"' if match[1] in used else "", tag)
    tag = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", tag)
    tag = SVG_FONT.sub("", LONG_DECIMAL.sub(r"\1", tag))
    return re.sub(r"(?<=: )#[0-9a-f]{6}", lambda color: CSS_COLORS.get(color[0], color[0]), tag)


# The start of a file name that gives the figure's number in a paper.
NUMBERED_FIGURE_NAME = re.compile(r"^figure-?(\d+[a-z]?)-")
# A number with more digits than a person reads.
LONG_NUMBER = re.compile(r"-?\d+\.\d{5,}(?:e-?\d+)?")

# The most pictures, and the most tables, of a study that a page holds. More make the page slow to open. Chosen; no
# measurement is known.
MAX_STUDY_FILES = 60
# The most columns of a table whose heads stand upright on paper; of more they would be broken letter by letter.
MAX_UPRIGHT_HEADS = 8
# The most rows of a picture's table that a page holds.
MAX_PICTURE_TABLE_ROWS = 200
# The ending of a picture's narrow form.
PHONE_PICTURE_SUFFIX = ".phone.svg"

# The most bytes of a picture that is embedded.
MAX_PICTURE_BYTES = 400_000


def study_parts(folder: Path, first: str) -> tuple[Picture | None, list[Chapter]]:
    """Return the picture of that name, and chapters of the other files of a folder: pictures, and Markdown."""
    every = [path for path in _files_of_study(folder, "*.svg") if not path.name.endswith(PHONE_PICTURE_SUFFIX)]
    paths = [path for path in every if path.stat().st_size <= MAX_PICTURE_BYTES]
    pictures = {path.stem: _read_picture(path) for path in paths}
    answer, chapters = pictures.pop(first, None), []
    if pictures:
        says = ["The numbers of a picture without a table are in the tables below."]
        chapters.append(Chapter("pictures", "Pictures", says, list(pictures.values())))
    texts = [Prose(_markup_of_markdown(path)) for path in _files_of_study(folder, "*.md")]
    if texts:
        chapters.append(Chapter("results", "Tables", parts=texts))
    return answer, chapters


def _files_of_study(folder: Path, pattern: str) -> Iterator[Path]:
    yield from sorted(path for path in folder.glob(pattern) if path.is_file())[:MAX_STUDY_FILES]


def _markup_of_markdown(path: Path) -> str:
    """Return the Markdown of a file as markup: no HTML of its own, no link, no image."""
    with needs_extra("studies", what="Report of a study without a model"):
        from markdown_it import MarkdownIt

    # The folder may be of another person: no HTML, and nothing that leads or loads from elsewhere.
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])
    html: str = reader.render(read_bytes(path, "RUN").decode("utf-8", "replace"))
    for level in (3, 2, 1):  # below the chapter's own heading
        html = html.replace(f"<h{level}>", f"<h{level + 2}>").replace(f"</h{level}>", f"</h{level + 2}>")
    return re.sub(r"<table>.*?</table>", _wide_table, html, flags=re.DOTALL)


def _wide_table(match: re.Match[str]) -> str:
    """Return a table in a region of its own, folded where it is long."""
    region = f'<div class="wide" tabindex="0" role="group" aria-label="table">{match[0]}</div>'
    n = match[0].count("<tr>") - 1
    if match[0].count("<th") > MAX_UPRIGHT_HEADS:
        region = region.replace('class="wide"', 'class="wide many"')
    summary = f'<summary data-paper="A table of {n} rows is in the file."><span>Show all {n} rows</span></summary>'
    return region if n <= MAX_ROWS_SHOWN else f"<details>{summary}{region}</details>"


def _read_picture(path: Path) -> Picture:
    """Return a picture as an image, in which nothing can run, with the table of its name where there is one."""
    phone = path.with_name(f"{path.stem}{PHONE_PICTURE_SUFFIX}")
    narrow = f'<source media="(max-width: 40rem)" srcset="{_embed_picture(phone)}">' if phone.is_file() else ""
    caption = NUMBERED_FIGURE_NAME.sub(r"Figure \1: ", path.stem).replace("-", " ").replace(" f1", " F1")
    caption = caption[:1].upper() + caption[1:]
    image = f'<picture>{narrow}<img src="{_embed_picture(path)}" alt="{escape(caption)}"></picture>'
    table = path.with_suffix(".csv")
    if not table.is_file():
        return Picture(image, caption)
    import pandas as pd

    frame = pd.read_csv(table, dtype=str, keep_default_na=False, nrows=MAX_PICTURE_TABLE_ROWS)
    cells = [{str(name): _round_cell(str(value)) for name, value in row.items()} for row in frame.to_dict("records")]
    return Picture(image, caption, [DataTable(table.stem, [unescape_row(row) for row in cells])])


def _embed_picture(path: Path) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(read_bytes(path, 'RUN')).decode()}"


def _round_cell(cell: str) -> str:
    """Return a cell with numbers that a person reads; two in brackets are an interval."""
    short = LONG_NUMBER.sub(lambda match: f"{float(match[0]):.4g}", cell)
    return re.sub(r"^\[([^,\]]+), ([^,\]]+)\]$", r"\1 to \2", short)
