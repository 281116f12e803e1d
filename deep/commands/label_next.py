"""`deep label-next`: which items of a dataset to label first, and what error to expect once they are."""

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deep._files import check_out, to_json, whole_file
from deep.console import HelpFormatter, Values, guarded
from deep.datasets import read_votes
from deep.exceptions import InputError
from deep.model import STRATEGIES, Model, load, other_columns, propose_labels

__all__ = ["main"]

EXAMPLES = """\
examples:
  deep label-next model.json --votes mine.parquet --n 20
      twenty items at random: the choice that nothing tried here was reliably better than (docs/results.md)
  deep label-next model.json --votes mine.parquet --n 50 --strategy spread --out to-label.csv
      one item from each of fifty strata by P, into a file with an empty column for the labels
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="deep label-next",
        description="Propose items to label for `deep calibrate`, and say what error to expect after labeling them.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    p.add_argument("model", metavar="MODEL", help="a model file")
    p.add_argument("--votes", metavar="FILE", action=Values, nargs="+", required=True, help="votes of one dataset")
    p.add_argument("--n", type=int, default=20, metavar="N", help="items to propose")
    p.add_argument("--strategy", default="random", choices=STRATEGIES, help="how they are chosen")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw")
    p.add_argument("--out", type=Path, metavar="FILE", help="write them to a .csv with an empty column `label`")
    p.add_argument("--json", action="store_true", help="print JSON and nothing else")
    return p


def propose(model: Model, args: argparse.Namespace) -> dict[str, Any]:
    """Return the proposal for one dataset; items that have a label are passed over."""
    votes = read_votes(args.votes, ignore=other_columns(model, args.votes))
    if len(votes.dataset_names) > 1:
        raise InputError(f"`votes` must be of one dataset. Got {', '.join(votes.dataset_names)}.")
    if model.correction is not None or model.adaptation is None:
        raise InputError("`model` must be one of `deep fit` on three datasets or more. Got another.")
    prior = model.estimate_prior(votes)
    p = model.score(votes, prior=prior.estimate)
    found = propose_labels(
        p,
        model.adaptation.misfit,
        args.n,
        strategy=args.strategy,
        labeled=np.flatnonzero(votes.labels >= 0),
        random_state=args.seed,
    )
    return {
        "schema_version": 1,
        "dataset": votes.dataset_names[0],
        "strategy": args.strategy,
        "prior": vars(prior),
        "expected_error_before": found.error_before,
        "expected_error_after": found.error_after,
        "items": [{"item_id": str(votes.example_ids[row]), "p_consistent": float(p[row])} for row in found.rows],
    }


def write(found: dict[str, Any], out: Path) -> None:
    """Write the items with an empty column for their labels."""
    with whole_file(out) as scratch, scratch.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["dataset", "item_id", "label", "p_consistent"])
        rows.writerows([found["dataset"], item["item_id"], "", repr(item["p_consistent"])] for item in found["items"])


def run(argv: Sequence[str] | None) -> int:
    """Read the options, propose and report."""
    args = parser().parse_args(argv)
    if args.out is not None:
        check_out(args.out, [".csv"])
    found = propose(load(args.model), args)
    if args.out is not None:
        write(found, args.out)
    if args.json:
        sys.stdout.write(to_json(found))
        return 0
    items = [] if args.out else [f"  {item['item_id']}  {item['p_consistent']:.3f}" for item in found["items"]]
    lines = [
        f"{found['dataset']}: {len(found['items'])} items to label ({found['strategy']})",
        *items,
        f"expected distance of P to the truth: {100 * found['expected_error_before']:.1f} points now, "
        f"{100 * found['expected_error_after']:.1f} with these labels",
        *([f"items: {args.out}"] if args.out else []),
    ]
    sys.stdout.write("\n".join([*lines, ""]))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)


if __name__ == "__main__":
    sys.exit(main())
