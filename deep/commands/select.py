"""Keep the decisions that are right as often as wanted, by the rule of the model, and abstain elsewhere.

For instance:

  deep select model.json --votes mine.parquet --accuracy 0.9 --out decisions.csv
      without labels: a confidence that kept 90 % on the training datasets, which guarantees nothing here
  deep select model.json --votes mine.parquet --labels mine.csv --accuracy 0.9 --out decisions.csv
      with labels of a random sample, by which the model was not adapted: a guarantee at 90 %
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deep import console, evaluate
from deep._util.columns import write_rows
from deep._util.files import atomic_file, check_out
from deep._util.options import option
from deep.console import level, percent


@dataclass(frozen=True)
class _SelectArgs:
    """Options of the command.

    Parameters
    ----------
    accuracy : float, default=0.9
        Share of right decisions to reach.
    delta : float, default=0.1
        Allowed chance that the guarantee fails.
    out : Path, optional
        Decisions: a .csv with 1, 0 or nothing.
    """

    accuracy: float = option(0.9, "SHARE")
    delta: float = option(0.1, "P")
    out: Path | None = option(None, "FILE")


add_arguments = console.adder(console.MODEL_ARG, console.add_target_options, _SelectArgs, "decide", "json")


def run(args: argparse.Namespace) -> None:
    """Find the confidence, decide, write and report."""
    # Before the votes are read, so that no work is lost to a folder that cannot be written to.
    out = None if args.out is None else check_out(args.out, [".csv"])
    fitted = console.load_model(args.model, args.decide)
    console.note_run(args, [voter.name for voter in fitted.voters])
    target = evaluate.read_target(fitted, args.votes, args.labels, args.scores)
    selection = evaluate.select_decisions(fitted, target, accuracy=args.accuracy, delta=args.delta)
    if out is not None:
        with atomic_file(out) as scratch, scratch.open("w", encoding="utf-8", newline="") as file:
            write_rows(file, ["dataset", "item_id", "decision", "p_consistent"], selection.rows())
    results = console.SCHEMA | selection.report
    console.print_result(results, _lines(results, args), as_json=args.json)


def _lines(result: console.Results, args: argparse.Namespace) -> Iterator[str]:
    if result["confidence"] is None:
        evidence = "labels" if args.labels else "training datasets"
        yield f"nothing is decided: no confidence reaches {level(args.accuracy)} right decisions on the {evidence}"
        return
    yield result["rule"]
    share = percent(result["decided"], result["n"])
    yield f"{result['decided']} of {result['n']} items decided ({share}), at a confidence of {result['confidence']:.3f}"
    if result["guaranteed"]:
        yield (
            f"guaranteed: at least {level(args.accuracy)} of decisions are right on items like the {result['labels']} "
            f"labeled ones (with probability 1 - {level(args.delta)})"
        )
    else:
        yield (
            f"NOT guaranteed under shift: on {result['datasets_held']} of {result['datasets']} training datasets, "
            f"each left out, {level(args.accuracy)} was reached; the lowest was {percent(result['lowest_accuracy'])}"
        )
