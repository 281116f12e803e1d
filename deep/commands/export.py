"""`deep export`: the table of a model, to be joined wherever votes are kept."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from deep._files import check_out, whole_file
from deep.console import HelpFormatter, guarded
from deep.exceptions import InputError
from deep.model import MAX_TABLE_VOTERS, Model, load, pattern_grid
from deep.records import ABSTAIN

__all__ = ["main"]

COLUMN = "p_consistent"

ROWS_A_STATEMENT = 500

EXAMPLES = """\
examples:
  deep export model.json --to sql --out model.sql
      CREATE TABLE and INSERT statements that SQLite and DuckDB read, with an example of the join
  deep export model.json --to parquet --out model.parquet
      the same table as a file
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="deep export",
        description="Write a model as a table: its voters (1, 0, empty), then p_consistent; a row a pattern.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    p.add_argument("model", metavar="MODEL", help="a model file")
    p.add_argument("--to", required=True, choices=("csv", "parquet", "sql"), help="the format")
    p.add_argument("--out", type=Path, required=True, metavar="FILE", help="the table")
    p.add_argument("--table", default="deep_model", metavar="NAME", help="its name in SQL")
    return p


def rows(model: Model) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float64]]:
    """Return every pattern, and its probability."""
    if model.table is None:
        raise InputError(
            f"`model` must have at most {MAX_TABLE_VOTERS} voters to be a table. Got {len(model.voters)}. "
            "Fit one with smaller --sizes."
        )
    if COLUMN in (name.lower() for name in model.voter_names):
        raise InputError(f"`model` must not have a voter named {COLUMN!r}, which is a column of the table. Got one.")
    return pattern_grid(len(model.voters)), model.table.p


def arrow_table(model: Model) -> Any:
    """Return the table with nulls for no vote."""
    import pyarrow as pa

    patterns, p = rows(model)
    columns = [pa.array(column, pa.int8(), mask=column == ABSTAIN) for column in patterns.T]
    return pa.table([*columns, pa.array(p)], names=[*model.voter_names, COLUMN])


def write_sql(model: Model, name: str, file: TextIO) -> None:
    """Write statements that any SQL database with doubles reads."""
    _check_names(model)
    patterns, p = rows(model)
    voters = [_quoted(voter) for voter in model.voter_names]
    table = _quoted(name)
    same = "\n--   AND ".join(f"v.{voter} IS NOT DISTINCT FROM m.{voter}" for voter in voters)
    file.write(
        "-- P(consistent) of every pattern of votes: 1 consistent, 0 inconsistent, NULL no vote.\n"
        "-- To score a table of votes with these columns (SQLite before 3.39: IS in place of IS NOT DISTINCT FROM):\n"
        f"--   SELECT v.*, m.{COLUMN} FROM votes AS v JOIN {table} AS m\n--   ON {same};\n"
    )
    columns = ",\n  ".join([*(f"{voter} SMALLINT" for voter in voters), f"{COLUMN} DOUBLE PRECISION NOT NULL"])
    file.write(f"CREATE TABLE {table} (\n  {columns}\n);\n")
    for some in _statements(table, patterns.tolist(), p.tolist()):
        file.write(some)


def _check_names(model: Model) -> None:
    seen: dict[str, str] = {}
    for voter in model.voter_names:
        before = seen.setdefault(voter.lower(), voter)
        if before != voter:
            raise InputError(
                f"`model` must have voters whose names differ in more than case, which SQL ignores. Got {before!r} and "
                f"{voter!r}. Export CSV or Parquet."
            )


def _statements(table: str, patterns: list[list[int]], p: list[float]) -> Iterator[str]:
    words = {ABSTAIN: "NULL", 0: "0", 1: "1"}
    for start in range(0, len(p), ROWS_A_STATEMENT):
        stop = start + ROWS_A_STATEMENT
        # The exponent makes it a double at once; without one DuckDB takes it for a decimal first.
        values = [
            f"({', '.join(words[vote] for vote in pattern)}, {share!r}{'' if 'e' in repr(share) else 'e0'})"
            for pattern, share in zip(patterns[start:stop], p[start:stop], strict=True)
        ]
        rows_text = ",\n".join(values)
        yield f"INSERT INTO {table} VALUES\n{rows_text};\n"


def _quoted(name: str) -> str:
    """Return an identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def write(model: Model, args: argparse.Namespace, path: Path) -> None:
    """Write the table in the wanted format."""
    if args.to == "sql":
        with path.open("w", encoding="utf-8", newline="\n") as file:
            write_sql(model, args.table, file)
        return
    if args.to == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(arrow_table(model), path)
        return
    from pyarrow import csv

    csv.write_csv(arrow_table(model), path)


def run(argv: Sequence[str] | None) -> int:
    """Read the options, write and report."""
    args = parser().parse_args(argv)
    out = check_out(args.out, [f".{args.to}"])
    if not args.table.strip() or "\0" in args.table:
        raise InputError(f"`table` must be a name. Got {args.table!r}.")
    model = load(args.model)
    n = len(rows(model)[1])
    with whole_file(out) as scratch:
        write(model, args, scratch)
    sys.stdout.write(f"{n} patterns of {len(model.voters)} voters: {out}\n")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)


if __name__ == "__main__":
    sys.exit(main())
