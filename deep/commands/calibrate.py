"""Correct the probabilities of a model with labels of the dataset that it is used on.

For instance:

  deep label-next model.json --votes mine.parquet --n 50
      which items to label first
  deep calibrate model.json --labels mine-labeled.csv --votes mine.parquet --out mine.json
      a model for this dataset: slope and intercept by its labels, shrunk towards what the training datasets show
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from deep import evaluate, model
from deep._files import check_out
from deep.console import SCHEMA, SEVERAL, CommandParser, Results, add_model, add_options, percent, print_result
from deep.exceptions import ExitStatus


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    add_model(parser)
    labels = {**SEVERAL, "metavar": "FILE", "required": True, "help": "votes of the items that have labels"}
    parser.add_argument("--labels", **labels)
    add_options(parser, "votes", votes={"help": "votes of the whole dataset, labeled or not"})
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the corrected model, .json")
    add_options(parser, "json")


def run(args: argparse.Namespace) -> int:
    """Correct the model, write and report."""
    out = check_out(args.out, [".json"])
    fitted = model.load(args.model)
    labeled = evaluate.votes_for(fitted, args.labels)
    everything = evaluate.votes_for(fitted, args.votes) if args.votes else None
    corrected, report = evaluate.calibrate_on_labels(fitted, labeled, everything)
    corrected.save(out)
    results = SCHEMA | report | {"out": str(out)}
    print_result(results, _lines(results), as_json=args.json)
    return ExitStatus.DONE


def _lines(found: Results) -> Iterator[str]:
    correction = found["correction"]
    yield f"{found['dataset']}: {found['labels']} labels, {found['consistent']} of them consistent"
    yield (
        f"log-odds are shifted by {correction['intercept']:+.2f} and multiplied by {correction['slope']:.2f}, "
        f"from an estimated share of {percent(correction['prior'])} consistent"
    )
    yield (
        f"ECE on these labels: {percent(found['ece_before'])} before (noise floor "
        f"{percent(found['ece_floor_before'])}), {percent(found['ece_after'])} after (noise floor "
        f"{percent(found['ece_floor_after'])}); the latter is flattered: the correction was learned from these labels"
    )
    yield f"model: {found['out']}"
