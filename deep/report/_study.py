"""The chapters of a study's own texts and pictures, as they lie in its folder."""

import base64
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pandas as pd

from deep._files import read_bytes
from deep._plain_cells import read_row
from deep.exceptions import needs_extra
from deep.report._page import Chapter, DataTable, Picture, Prose

MOST_FILES = 60
MOST_ROWS = 200
LARGEST_PICTURE = 400_000
"""Bytes of a picture that is embedded."""


def study_chapters(folder: Path) -> list[Chapter]:
    """Return the chapters of what lies in a folder: Markdown, and pictures with the tables of their names."""
    chapters = []
    texts = [Prose(_markdown(path)) for path in _files(folder, "*.md")]
    if texts:
        chapters.append(Chapter("results", "Results", parts=texts))
    pictures = [_picture(path) for path in _files(folder, "*.svg") if path.stat().st_size <= LARGEST_PICTURE]
    if pictures:
        says = ["A picture without a table of its own shows numbers of the tables above."]
        chapters.append(Chapter("pictures", "Pictures", says, pictures))
    return chapters


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    yield from sorted(path for path in folder.glob(pattern) if path.is_file())[:MOST_FILES]


def _markdown(path: Path) -> str:
    """Return the Markdown of a file as markup: no HTML of its own, no link, no image."""
    with needs_extra("studies", what="The report of a study's own texts"):
        from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])
    html: str = reader.render(read_bytes(path, "RUN").decode("utf-8", "replace"))
    for level in (3, 2, 1):  # below the chapter's own heading
        html = html.replace(f"<h{level}>", f"<h{level + 2}>").replace(f"</h{level}>", f"</h{level + 2}>")
    html = html.replace("<table>", '<div class="wide" tabindex="0" role="region" aria-label="table"><table>')
    return html.replace("</table>", "</table></div>")


def _picture(path: Path) -> Picture:
    """Return a picture as an image, in which nothing can run, with the table of its name where there is one."""
    data = base64.b64encode(read_bytes(path, "RUN")).decode()
    image = f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(path.stem)}">'
    table = path.with_suffix(".csv")
    tables = [_table(table)] if table.is_file() else []
    return Picture(image, path.stem, tables)


def _table(path: Path) -> DataTable:
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, nrows=MOST_ROWS)
    rows = [read_row({str(name): str(value) for name, value in row.items()}) for row in frame.to_dict("records")]
    return DataTable(path.stem, rows)
