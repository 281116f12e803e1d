"""Write a model as a table of all patterns of votes, which a database or any reader of tables joins to votes.

A table has the voters (1, 0, empty), then P, its 90 % interval and the decision.
It has one row per pattern of votes: 59,049 for 10 voters, more of which are refused.

For instance:

  deep export model.json --to sql --out model.sql
      CREATE TABLE and INSERT statements that SQLite and DuckDB read, with an example of the join
  deep export model.json --to parquet --out model.parquet
      the same table as a file
"""

import argparse
from dataclasses import MISSING, dataclass
from pathlib import Path

from deep._util.entry_points import load_part
from deep._util.files import check_out
from deep._util.options import option
from deep.console import MODEL_ARG, SCHEMA, adder, load_model, print_result
from deep.exceptions import InputError

TABLE_FORMATS = ("csv", "parquet", "sql")

# Formats of earlier versions, and what serves in place of them.
REMOVED_FORMATS = {
    "langfuse": "Send scores to Langfuse with `deep.integrations.langfuse.send_verdict`",
    "python": "Join the table of `--to sql` to votes, or score in Python with `deep.load`",
}


@dataclass(frozen=True)
class _ExportArgs:
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

    to: str = option(MISSING, f"{{{','.join(TABLE_FORMATS)}}}")
    out: Path = option(MISSING, "FILE")
    table: str | None = option(None, "NAME")


add_arguments = adder(MODEL_ARG, _ExportArgs, "decide", "json")


def run(args: argparse.Namespace) -> None:
    """Write the table, and report."""
    # Not by the choices of argparse: a format of an earlier version is refused with its remedy.
    if args.to not in TABLE_FORMATS:
        remedy = f", which deep no longer writes. {REMOVED_FORMATS[args.to]}" if args.to in REMOVED_FORMATS else ""
        raise InputError(f"`to` must be csv, parquet or sql. Got {args.to!r}{remedy}.")
    out = check_out(args.out, [f".{args.to}"])
    if args.table is not None and args.to != "sql":
        raise InputError(f"`table` must be given with `to` sql. Got it with {args.to}. Leave it out.")
    fitted = load_model(args.model, args.decide)
    # None until here, to tell whether it was given.
    name = "deep_model" if args.table is None else args.table
    n = load_part("tables")(fitted, out, args.to, name=name)
    result = SCHEMA | {"patterns": n, "voters": len(fitted.voters), "out": str(out)}
    print_result(result, [f"{n} patterns of {len(fitted.voters)} voters: {out}"], as_json=args.json)
