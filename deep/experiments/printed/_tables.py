"""Tables and figures of the papers on PROBE and CogniBench, as printed there; the data file is in each study."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from deep._checks import check_choice
from deep._files import JsonObject


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
    >>> from deep.experiments.printed._tables import printed_tables
    >>> [table.name for table in printed_tables("probe")]
    ['table1-statistics', 'table2-evidence', 'figures']
    >>> printed_tables("cognibench")[2].rows[-1]
    ("the paper's", 'CogniDet 8B', 70.3, 64.4, 73.8)
    """
    study = check_choice(paper, ("cognibench", "probe"), "paper")
    known: JsonObject = json.loads(files(f"deep.experiments.{study}").joinpath("printed_tables.json").read_bytes())
    return tuple(
        PrintedTable(
            name,
            f"Printed: {known['source']}, {table['place']}",
            tuple(table["columns"]),
            tuple(map(tuple, table["rows"])),
        )
        for name, table in known["tables"].items()
    )
