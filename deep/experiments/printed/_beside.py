"""The tables that a paper prints, beside those of a run."""

from collections.abc import Collection, Iterator
from pathlib import Path

import pandas as pd

from deep.evaluate import markdown, write_table
from deep.experiments.printed._tables import printed_tables

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
