"""Tables and figures of the papers on PROBE and CogniBench, as printed there; the data file is in each study."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from deep._util.checks import check_choice
from deep._util.files import packaged
from deep.evaluate import markdown, write_table


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
