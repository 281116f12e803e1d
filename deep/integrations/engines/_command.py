"""Count what a model needs of a whole dataset before it can score one row: parts of it here and there, then merged.

For instance:

  deep data moments model.json --to sql --table votes
      a SELECT that counts in your database; save its result as cells.csv or cells.parquet
  deep data moments model.json --cells cells.parquet --out moments.json
      that result as moments
  deep data moments model.json --votes part-1.parquet --out part-1.json
      the moments of one part of the rows, held a piece at a time
  deep data moments model.json --moments part-1.json part-2.json --out moments.json
      parts merged, in any order; then `deep adapt model.json --moments moments.json --out mine.json`
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deep import model
from deep._util.files import check_out, whole_file
from deep._util.options import option
from deep.console import MODEL, SCHEMA, adder, print_result
from deep.exceptions import ExitStatus, InputError
from deep.integrations import engines


@dataclass(frozen=True)
class _Moments:
    """Options of the command.

    Parameters
    ----------
    cells : tuple of str
        Tables of patterns with their counts, as by SQL.
    moments : tuple of str
        Moments counted before.
    to : str, optional
        Print the SQL for counting, and count nothing.
    table : str, default='votes'
        The table of votes in SQL (default votes).
    out : Path, optional
        All together, .json; with --to the SQL, .sql.
    """

    cells: tuple[str, ...] = option((), "FILE")
    moments: tuple[str, ...] = option((), "FILE")
    to: str | None = option(None, choices=("sql",))
    table: str = option("votes", "NAME")
    out: Path | None = option(None, "FILE")


add_arguments = adder(
    *(MODEL, "votes", "scores", _Moments, "allow-mismatch", "allow-missing"),
    votes={"help": "tables of votes, of whole datasets or parts"},
)


def run(args: argparse.Namespace) -> int:
    """Count, merge, write and report."""
    inputs = args.votes or args.cells or args.moments
    if bool(args.to) == bool(inputs):
        got = "both" if inputs else "none"
        raise InputError(f"`to`, or `votes`, `cells` or `moments`, must be given. Got {got}.")
    if args.to:
        return _write_sql(args)
    if args.out is None:
        raise InputError("`out` must be given with `votes`, `cells` or `moments`. Got none.")
    out, fitted = check_out(args.out, [".json"]), model.load(args.model)
    options = model.ScoreOptions(args.allow_mismatch, args.allow_missing)
    by_path = _read_once(args.moments)
    result = engines.Moments.empty(fitted).merge(*by_path.values())
    if args.cells:
        result = result.merge(engines.moments_of_cells(fitted, args.cells))
    if args.votes:
        result = result.merge(engines.moments_of_files(fitted, args.votes, options, args.scores))
    engines.save_moments(result, out)
    rows = {name: one.n for name, one in result.datasets.items()}
    lines = [*_alike(by_path), *(f"{name}: {n} rows" for name, n in rows.items()), f"moments: {out}"]
    print_result(SCHEMA | {"rows": rows, "out": str(out)}, lines, as_json=args.json)
    return ExitStatus.DONE


def _read_once(paths: Sequence[str]) -> dict[str, engines.Moments]:
    """Return the moments in files, none of which may be given twice."""
    places = [Path(path).resolve() for path in paths]
    twice = next((path for at, path in enumerate(paths) if places[at] in places[:at]), None)
    if twice is not None:
        raise InputError(f"`moments` must be different files. Got {twice!r} twice, whose rows would count twice.")
    return {path: engines.read_moments(path) for path in paths}


def _alike(by_path: Mapping[str, engines.Moments]) -> Iterator[str]:
    """Yield a line on each file that holds what another one does, as a copy would."""
    paths = list(by_path)
    for at, path in enumerate(paths):
        same = next((other for other in paths[:at] if by_path[other] == by_path[path]), None)
        if same is not None:
            yield f"{path} holds the same counts as {same}: if the rows are the same, they count twice"


def _write_sql(args: argparse.Namespace) -> int:
    text = engines.moments_sql(model.load(args.model), table=args.table)
    if args.out is None:
        sys.stdout.write(text)
    else:
        with whole_file(check_out(args.out, [".sql"])) as scratch:
            scratch.write_text(text, encoding="utf-8")
    return ExitStatus.DONE
