"""Write the tables of columns into the pages: `python docs/_site/columns.py`; a test compares them."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    # The pages are written beside this file, so their columns are those of the deep beside it, whichever is installed.
    sys.path.insert(0, str(DOCS.parent))

from deep.integrations import sequential  # noqa: E402
from deep.model import ITEM_COLUMNS, SCORE_COLUMNS, TEXT_COLUMNS, ItemColumn  # noqa: E402

TABLES = {
    "columns.md": {"items": ITEM_COLUMNS, "scores": SCORE_COLUMNS, "texts": TEXT_COLUMNS},
    "sequential.md": {"sequential": sequential.COLUMNS},
}
"""By page and mark, the columns of each table."""

TYPES = {"double": "number", "int8": "0 or 1", "int64": "whole number", "string": "text"}
HEAD = [
    "| column | type | range | meaning | may be null | exported | since |",
    "| --- | --- | --- | --- | --- | --- | --- |",
]


def table(columns: Iterable[ItemColumn]) -> str:
    """Return a table of Markdown, a row a column."""
    return "\n".join([*HEAD, *map(_row, columns)])


def _row(column: ItemColumn) -> str:
    span = {"double": f"0 to {column.high}", "int64": "from 0 on"}.get(column.type, "")
    marks = ["yes" if yes else "" for yes in (column.nullable, column.exported)]
    cells = [f"`{column.name}`", TYPES[column.type], span, column.meaning, *marks, column.since]
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def filled(page: str) -> str:
    """Return a page with its tables as they are now."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for mark, columns in TABLES[page].items():
        begin, end = f"<!-- columns:{mark} -->", "<!-- /columns -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        rows = f"{begin}\n{table(columns.values())}\n{end}"
        text, n = pattern.subn(lambda _, rows=rows: rows, text)
        assert n == 1, f"{page} must have one table marked {mark}"
    return text


if __name__ == "__main__":
    for page in TABLES:
        (DOCS / page).write_text(filled(page), encoding="utf-8")
