"""Write a model as a table of all patterns of votes, or as a Python file that scores votes or texts without deep.

A table has the voters (1, 0, empty), then P, its 90 % interval and the decision; a row a pattern.

For instance:

  deep export model.json --to sql --out model.sql
      CREATE TABLE and INSERT statements that SQLite and DuckDB read, with an example of the join
  deep export model.json --to parquet --out model.parquet
      the same table as a file
  deep export model.json --to python --out judge.py
      code of the standard library: votes as JSON lines in, P, its 90 % interval and the decision out; texts too
      where all judges are lexical checks
  deep export model.json --to langfuse --out evaluator.py
      the same code as a code evaluator, to be pasted into Langfuse
"""

import argparse
import sys
from dataclasses import MISSING, dataclass
from pathlib import Path

from deep._util.entry_points import EXPORTER, find_entry_points, load_part
from deep._util.files import check_out
from deep._util.options import option
from deep.console import CommandParser, add_model, add_options, load_model
from deep.exceptions import ExitStatus, InputError, printable

TABLES = ("csv", "parquet", "sql")


@dataclass(frozen=True)
class _Export:
    """Options of the command.

    Parameters
    ----------
    to : str
        The format.
    out : Path
        The file.
    table : str, optional
        Its name in SQL; default: deep_model.
    """

    to: str = option(
        MISSING, required=True, choices=lambda: sorted([*TABLES, *find_entry_points(EXPORTER, TABLES).usable])
    )
    out: Path = option(MISSING, "FILE", required=True)
    table: str | None = option(None, "NAME")


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    add_model(parser)
    add_options(parser, _Export, "decide")


def run(args: argparse.Namespace) -> int:
    """Write the table or the program, and report."""
    out = check_out(args.out, [f".{args.to}" if args.to in TABLES else ".py"])
    if args.table is not None and args.to != "sql":
        raise InputError(f"`table` must be given with `to` sql. Got it with {args.to}. Leave it out.")
    fitted = load_model(args.model, args.decide)
    if args.to not in TABLES:
        why = load_part(args.to, EXPORTER)(fitted, out)
        reads = f"votes of {len(fitted.voters)} voters{'' if why else ', or texts'}"
        texts = f"; no texts: {printable(why)}" if why else ""
        sys.stdout.write(f"{reads}, the standard library alone: {out}{texts}\n")
        return ExitStatus.DONE
    name = "deep_model" if args.table is None else args.table
    n = load_part("tables")(fitted, out, args.to, name=name)
    sys.stdout.write(f"{n} patterns of {len(fitted.voters)} voters: {out}\n")
    return ExitStatus.DONE
