"""`deep explain`: what each vote contributes to a probability."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from deep.console import HelpFormatter, Values, guarded
from deep.datasets import read_votes, resolve_dataset
from deep.exceptions import InputError
from deep.model import Model, load, other_columns
from deep.records import ABSTAIN

__all__ = ["explanation", "explanation_lines", "main"]

WORDS = {1: "1", 0: "0", ABSTAIN: "none"}

EXAMPLES = """\
examples:
  deep explain model.json --votes votes.parquet --item a17
      what each vote on one item adds to its log-odds, and takes from them
  deep explain model.json --vote lexical-numbers=0 --vote lexical-entities=1
      the same for votes given by hand; voters that are not named have no vote
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="deep explain",
        description="Show what each vote adds to the log-odds of P(consistent).",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    p.add_argument("model", metavar="MODEL", help="a model file")
    p.add_argument("--votes", metavar="FILE", action=Values, nargs="+", default=[], help="tables of votes")
    p.add_argument("--item", metavar="ID", help="the item_id of a row of them")
    p.add_argument("--dataset", metavar="NAME", help="its dataset, where two have an item of that id")
    p.add_argument(
        "--vote", metavar="NAME=VOTE", action="append", default=[], help="a vote: 1, 0 or none; NAME in full, or its id"
    )
    p.add_argument("--allow-mismatch", action="store_true", help="take votes of another prompt version or model")
    p.add_argument("--allow-missing", action="store_true", help="a voter without a column has no vote")
    p.add_argument("--json", action="store_true", help="print JSON and nothing else")
    return p


def given_votes(model: Model, words: Sequence[str]) -> dict[str, int]:
    """Return the votes that were given by hand, by voter."""
    found: dict[str, int] = {}
    values = {"1": 1, "0": 0, "none": ABSTAIN}
    for word in words:
        name, _, value = word.rpartition("=")
        voters = [v.name for v in model.voters if v.name == name] or [v.name for v in model.voters if v.id == name]
        if len(voters) != 1 or value not in values:
            raise InputError(
                f"`vote` must be a voter of the model, {', '.join(sorted(model.voter_names))}, with =0, =1 or =none "
                f"behind it. Got {word!r}."
            )
        if voters[0] in found:
            raise InputError(f"`vote` must name each voter once. Got {voters[0]!r} twice.")
        found[voters[0]] = values[value]
    return found


def item_votes(model: Model, args: argparse.Namespace) -> dict[str, int]:
    """Return the votes on one item of a table, by voter."""
    names = model.voter_names
    votes = read_votes(args.votes, ignore=other_columns(model, args.votes))
    chosen = votes.example_ids == args.item
    if args.dataset is not None:
        chosen &= votes.datasets == resolve_dataset(args.dataset, votes.dataset_names, param="dataset")
    rows = np.flatnonzero(chosen)
    if len(rows) != 1:
        where = ", ".join(sorted(set(votes.datasets[rows]))) or "none"
        raise InputError(f"`item` must be the id of one item. Got {args.item!r}, of {len(rows)} (datasets: {where}).")
    found = model.select(votes.rows(rows), allow_mismatch=args.allow_mismatch, allow_missing=args.allow_missing)
    return dict(zip(names, found[0].tolist(), strict=True))


def explanation(model: Model, votes: Mapping[str, int]) -> dict[str, Any]:
    """Return P, its interval, P without any vote, and what each vote contributes."""
    row = np.array([[votes.get(name, ABSTAIN) for name in model.voter_names]], dtype=np.int8)
    low, high = model.intervals(row)[0].tolist()
    nothing = np.full_like(row, ABSTAIN)
    return {
        "p_consistent": float(model.score(row)[0]),
        "p_low": None if np.isnan(low) else low,
        "p_high": None if np.isnan(high) else high,
        "p_without_votes": float(model.score(nothing)[0]),
        "contributions": [asdict(contribution) for contribution in model.explain(row[0].tolist())],
    }


def explanation_lines(found: Mapping[str, Any]) -> list[str]:
    """Return an explanation for people."""
    bounds = "no interval" if found["p_low"] is None else f"90 % interval {found['p_low']:.3f} to {found['p_high']:.3f}"
    width = max(len(row["voter"]) for row in found["contributions"])
    rows = [
        f"  {row['voter']:<{width}}  {WORDS[row['vote']]:>4}  {_number(row['shapley'])}  {_number(row['without'])}"
        for row in found["contributions"]
    ]
    return [
        f"P(consistent) = {found['p_consistent']:.4f} ({bounds}); {found['p_without_votes']:.4f} without any vote",
        f"  {'voter':<{width}}  vote   shapley  removed",
        *rows,
        "in log-odds; shapley: on average over all orders of the votes, summing to the difference from no votes;",
        "removed: what is lost if this vote alone is taken back",
    ]


def _number(value: float | None) -> str:
    return f"{'':>8}" if value is None else f"{value:+8.3f}"


def run(argv: Sequence[str] | None) -> int:
    """Read the options, explain and report."""
    args = parser().parse_args(argv)
    if bool(args.votes) == bool(args.vote) or bool(args.votes) != (args.item is not None):
        raise InputError("`votes` with `item`, or `vote`, must be given. Got neither, both or half.")
    model = load(args.model)
    votes = item_votes(model, args) if args.votes else given_votes(model, args.vote)
    found = explanation(model, votes)
    text = json.dumps({"schema_version": 1, **found}, indent=2) if args.json else "\n".join(explanation_lines(found))
    sys.stdout.write(text + "\n")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)


if __name__ == "__main__":
    sys.exit(main())
