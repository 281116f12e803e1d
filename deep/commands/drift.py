"""`deep drift`: are new votes like those that a model was fitted on? No label is needed.

Exit status: 0 like them, 1 a judge or the panel has moved, 2 an error.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from deep._files import to_json
from deep.console import HelpFormatter, Values, guarded
from deep.datasets import read_reasons, read_votes
from deep.exceptions import InputError
from deep.model import (
    STATISTICS,
    DriftRow,
    Model,
    compare_votes,
    false_alarms,
    load,
    match_columns,
    other_columns,
)

__all__ = ["main"]

LIKE, STALE = 0, 1

EXAMPLES = """\
examples:
  deep drift model.json --votes this-week.parquet
      which judge has moved, by votes alone: abstentions, agreement, share of 1, implied error rates
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="deep drift",
        description="Compare new votes with those a model was fitted on, without labels. Status 1 where they moved.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    p.add_argument("model", metavar="MODEL", help="a model file")
    p.add_argument("--votes", metavar="FILE", action=Values, nargs="+", required=True, help="tables of new votes")
    p.add_argument("--alpha", type=float, default=0.05, metavar="P", help="chance of a false alarm")
    p.add_argument("--max-failure-rate", type=float, default=0.05, metavar="SHARE", help="of a judge, by its reasons")
    p.add_argument("--json", action="store_true", help="print JSON and nothing else")
    return p


def drift(model: Model, paths: Sequence[str], alpha: float, max_failure_rate: float) -> dict[str, Any]:
    """Return everything that is known of how new votes differ from the fitted ones."""
    votes = read_votes(paths, ignore=other_columns(model, paths))
    columns = match_columns(model.voters, votes.voter_names, allow_mismatch=True)
    stands = [None if column is None else votes.voter_names[column] for column in columns]
    renamed = {
        voter.name: now
        for voter, now in zip(model.voters, stands, strict=True)
        if now is not None and now != voter.name
    }
    rows = compare_votes(model.cells, model.select(votes, allow_mismatch=True), model.predict, alpha=alpha)
    failing = {
        failures.voter: failures.rate
        for failures in read_reasons(paths, votes)
        if failures.voter in stands and failures.rate > max_failure_rate
    }
    moved = list(dict.fromkeys([*renamed, *failing, *(row.judge for row in rows if row.moved)]))
    return {
        "schema_version": 1,
        "stale": bool(moved),
        "moved": moved,
        "other_version_or_model": renamed,
        "failing": failing,
        "n": len(votes.votes),
        "statistics": [vars_of(row) for row in rows],
        "training_datasets": list(model.cells.groups),
        "false_alarms_on_training": false_alarms(model.cells, model.predict, alpha=alpha),
    }


def vars_of(row: DriftRow) -> dict[str, Any]:
    """Return a row as JSON can hold it."""
    now = None if row.now != row.now else row.now
    return {"judge": row.judge, "statistic": row.statistic, "low": row.low, "high": row.high, "now": now} | {
        "p": row.p,
        "moved": row.moved,
    }


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield what a person should be told."""
    yield f"{'STALE' if found['stale'] else 'not stale'}: {found['n']} new rows"
    for name, now in found["other_version_or_model"].items():
        yield f"  {name}: the votes are of another version or model, {now}"
    for name, rate in found["failing"].items():
        yield f"  {name}: gave no usable answer to {rate:.1%}"
    for row in found["statistics"]:
        if row["moved"]:
            yield (
                f"  {row['judge']}: {STATISTICS[row['statistic']]}: {row['now']:.3f}, "
                f"expected {row['low']:.3f} to {row['high']:.3f} (p = {row['p']:.1g})"
            )
    alarms, datasets = found["false_alarms_on_training"], found["training_datasets"]
    if len(datasets) < 3:
        yield "Fitted on fewer than three datasets: how much they differ without any drift is not known."
    else:
        named = f" ({', '.join(alarms)})" if alarms else ""
        yield f"Of the {len(datasets)} training datasets, {len(alarms)} would be called stale beside the others{named}."
    yield "Votes that look the same can still be wrong in a new way: only labels tell."


def run(argv: Sequence[str] | None) -> int:
    """Read the options, compare and report."""
    args = parser().parse_args(argv)
    if not 0 <= args.max_failure_rate <= 1:
        raise InputError(f"`max_failure_rate` must lie in [0, 1]. Got {args.max_failure_rate!r}.")
    found = drift(load(args.model), args.votes, args.alpha, args.max_failure_rate)
    sys.stdout.write(to_json(found) if args.json else "\n".join([*lines(found), ""]))
    return STALE if found["stale"] else LIKE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)


if __name__ == "__main__":
    sys.exit(main())
