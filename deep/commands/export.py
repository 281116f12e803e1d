"""Write a model as a table of all patterns of votes, or as a Python file that scores votes without deep.

A table has the voters (1, 0, empty), then p_consistent; a row a pattern.

For instance:

  deep export model.json --to sql --out model.sql
      CREATE TABLE and INSERT statements that SQLite and DuckDB read, with an example of the join
  deep export model.json --to parquet --out model.parquet
      the same table as a file
  deep export model.json --to python --out judge.py
      code of the standard library: votes as JSON lines in, P, its 90 % interval and the decision out
"""

import argparse
import sys
from pathlib import Path

from deep import model
from deep._files import check_out
from deep.console import CommandParser, add_model
from deep.exceptions import ExitStatus


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    add_model(parser)
    parser.add_argument("--to", required=True, choices=("csv", "parquet", "python", "sql"), help="the format")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file")
    parser.add_argument("--table", default="deep_model", metavar="NAME", help="its name in SQL")


def run(args: argparse.Namespace) -> int:
    """Write the table and report."""
    out = check_out(args.out, [".py" if args.to == "python" else f".{args.to}"])
    fitted = model.load(args.model)
    if args.to == "python":
        model.export_python(fitted, out)
        sys.stdout.write(f"votes of {len(fitted.voters)} voters, the standard library alone: {out}\n")
        return ExitStatus.DONE
    n = model.export_table(fitted, out, args.to, name=args.table)
    sys.stdout.write(f"{n} patterns of {len(fitted.voters)} voters: {out}\n")
    return ExitStatus.DONE
