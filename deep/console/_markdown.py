"""Markdown as a terminal shows it: tables in columns, without marks."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from shutil import get_terminal_size
from textwrap import wrap

from deep.evaluate import DatasetVerdict

CELL = re.compile(r"(?<!\\)\|")
"""What ends a cell of a Markdown table."""


def study_lines(verdict: DatasetVerdict, text: str) -> Iterator[str]:
    """Yield the answer of a study, and then its Markdown as `plain_tables` shows it."""
    yield from plain_tables("\n".join([*verdict.lines(), "", text]))


def plain_tables(text: str) -> Iterator[str]:
    r"""Yield the lines of Markdown as a terminal of any width has them: tables in columns, without marks.

    A table that is too wide is cut between columns, and what names its rows stands in each part.

    Examples
    --------
    >>> from deep.console import plain_tables
    >>> print("\n".join(plain_tables("| judge | F1 |\n| --- | --- |\n| strict | **0.81** |")))
    judge     F1
    strict  0.81
    """
    width = get_terminal_size().columns
    for is_table, lines in groupby(text.splitlines(), lambda line: line.startswith("|")):
        if is_table:
            rows = [[_plain(cell) for cell in CELL.split(line)[1:-1]] for line in lines if set(line) - set("|- ")]
            yield from _columns(rows, width)
        else:
            for line in lines:
                yield from [line] if line.startswith("  ") else wrap(_plain(line), width) or [""]


def _plain(text: str) -> str:
    return re.sub(r"\\([\\|<])", r"\1", text.replace("**", "").lstrip("# ")).strip()


def _columns(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield rows as columns, the names to the left, in as many parts as the width takes."""
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    named = 1 + (len(sizes) > 2 and all(row[1][:1].isalpha() for row in rows))
    start, first = named, sum(sizes[:named]) + 2 * named - 2
    while start < len(sizes):
        end = start + 1
        while end < len(sizes) and first + sum(size + 2 for size in sizes[start : end + 1]) <= width:
            end += 1
        for row in rows:
            names = [row[i].ljust(sizes[i]) for i in range(named)]
            yield "  ".join([*names, *(row[i].rjust(sizes[i]) for i in range(start, end))]).rstrip()
        yield from [""] if end < len(sizes) else []
        start = end
