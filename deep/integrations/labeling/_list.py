"""Propose items to label elsewhere, for `deep check` and `deep adapt`, and say what to expect once they are labeled.

For instance:

  deep label list model.json --votes mine.parquet --n 20
      twenty items at random: no other choice that was tried was reliably better (docs/results.md)
  deep label list model.json --votes mine.parquet --n 50 --out to-label.csv
      fifty, into a file with an empty column for the labels
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deep import console, evaluate, model
from deep._util.columns import write_rows
from deep._util.files import atomic_file, check_out
from deep._util.options import option
from deep.exceptions import ExitStatus
from deep.integrations import labeling


@dataclass(frozen=True)
class _Proposal:
    """Options of the command.

    Parameters
    ----------
    n : int, default=20
        Items to propose.
    out : Path, optional
        Write them to a .csv with an empty column `label`.
    """

    n: int = option(20, "N")
    out: Path | None = option(None, "FILE")


add_arguments = console.adder(
    *(console.MODEL_ARG, "votes", "dataset", "scores", _Proposal, "seed", "json"),
    votes={"required": True, "help": "votes of one dataset"},
    dataset={"help": "name of the dataset, if the tables have no column dataset"},
)


def run(args: argparse.Namespace) -> int:
    """Propose items, write and report."""
    console.check_minimum(args, seed=0)
    out = None if args.out is None else check_out(args.out, [".csv"])
    fitted = model.load(args.model)
    votes = evaluate.read_votes_for_model(fitted, args.votes, one_dataset=True)
    target = evaluate.Target(model.join_score_tables(fitted, votes, args.scores))
    results = console.SCHEMA | labeling.label_proposal(fitted, target, args.n, random_state=args.seed)
    if out is not None:
        _write(results, out)
    console.print_result(results, _lines(results, out), as_json=args.json)
    return ExitStatus.DONE


def _write(results: console.Results, out: Path) -> None:
    """Write the items with an empty column for their labels."""
    with atomic_file(out) as scratch, scratch.open("w", encoding="utf-8", newline="") as file:
        # Without P: labels would follow it.
        rows = ([results["dataset"], item["item_id"], ""] for item in results["items"])
        write_rows(file, ["dataset", "item_id", "label"], rows)


def _lines(results: console.Results, out: Path | None) -> Iterator[str]:
    yield f"{results['dataset']}: {len(results['items'])} items to label, drawn at random"
    if out is None:
        yield from (f"  {item['item_id']}" for item in results["items"])
    now, then = (evaluate.in_percent(results[f"expected_error_{when}"]) for when in ("before", "after"))
    yield f"expected mean error of P: {now} points now, {then} with these labels"
    sizes = results["labels_needed"].items()
    needed = [f"{size or 'more than all'} for {console.level(float(power))}" for power, size in sizes]
    yield "labels that `deep check` needs to detect an error as large as on the worst training dataset,"
    yield f"by chance of detection: {', '.join(needed)}"
    if out is not None:
        yield f"items: {out}"
