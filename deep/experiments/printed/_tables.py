"""Tables and figures of the papers on PROBE and CogniBench, as printed there; the data file is in each study."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap

import pandas as pd

from deep._util.checks import check_choice
from deep._util.files import packaged
from deep.evaluate import DatasetVerdict, markdown, write_table


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table of a paper, as printed.

    Parameters
    ----------
    name : str
        The table of a run that it stands beside, or ``figures``.
    title : str
        Its place in the paper, and the paper.
    columns : tuple of str
    rows : tuple of tuple of (str, int or float)
        Shares are in percent where the title says so, else fractions.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]


@cache
def printed_tables(paper: str) -> tuple[PrintedTable, ...]:
    """Return the tables of a paper, by the names of the tables of a run that they stand beside.

    Parameters
    ----------
    paper : {'cognibench', 'probe'}

    Raises
    ------
    InputError
        There is no such paper.

    Examples
    --------
    >>> from deep.experiments.printed import printed_tables
    >>> [table.name for table in printed_tables("probe")]
    ['table1-statistics', 'table2-evidence', 'figures']
    >>> printed_tables("cognibench")[2].rows[-1]
    ("the paper's", 'CogniDet 8B', 70.3, 64.4, 73.8)
    """
    study = check_choice(paper, ("cognibench", "probe"), "paper")
    known = packaged(f"deep.experiments.{study}", "printed_tables.json")
    return tuple(
        PrintedTable(
            name,
            f"Printed: {known['source']}, {table['place']}",
            tuple(table["columns"]),
            tuple(map(tuple, table["rows"])),
        )
        for name, table in known["tables"].items()
    )


Printed = tuple[str, str, pd.DataFrame]
"""Name, title and table."""

FIGURES = "figures"


def printed_beside(paper: str, names: Collection[str]) -> Iterator[Printed]:
    """Yield the printed tables that stand beside tables of a run, with the text's own figures.

    Parameters
    ----------
    paper : {'cognibench', 'probe'}
    names : collection of str
        Of the run's tables.

    Examples
    --------
    >>> from deep.experiments.printed import printed_beside
    >>> [name for name, _, _ in printed_beside("probe", ["table2-evidence", "figure3-decomposition"])]
    ['table2-evidence-printed', 'figures-printed']
    """
    drawn = {name[:7] for name in names if name.startswith("figure")}
    for table in printed_tables(paper):
        frame = pd.DataFrame(table.rows, columns=table.columns)
        if table.name == FIGURES:
            frame = frame[[f"figure{str(figure)[:1]}" in drawn for figure in frame["figure"]]]
        elif table.name not in names:
            continue
        if not frame.empty:
            yield f"{table.name}-printed", table.title, frame


def write_printed(folder: Path, paper: str, names: Collection[str]) -> None:
    """Write the printed tables that stand beside tables of a run, as CSV and as Markdown."""
    for name, title, frame in printed_beside(paper, names):
        write_table(folder, name, frame, title, shown=frame.astype(str))


def printed_text(paper: str, names: Collection[str]) -> list[str]:
    """Return the lines of those tables, each under its title."""
    lines: list[str] = []
    for _, title, frame in printed_beside(paper, names):
        lines += [title, "", *markdown(frame.astype(str)), ""]
    return lines


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
    >>> from deep.experiments.printed import plain_tables
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
