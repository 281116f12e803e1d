"""How many items of a dataset are consistent: its share with a 90 % interval, from votes alone or with some labels.

Labels are those of `--labels`, of items or documents drawn at random; labels beside the votes are not used.

For instance:

  deep estimate model.json --votes mine.parquet
      the share of consistent items of each dataset, from votes alone
  deep estimate model.json --votes mine.parquet --labels fifty.csv
      by every method: the corrected model, prediction-powered inference, the labels alone, Rogan-Gladen
"""

import argparse
from collections.abc import Iterator

from deep import evaluate, model
from deep.console import (
    SCHEMA,
    CommandParser,
    Results,
    add_model,
    add_options,
    add_target_options,
    percent,
    print_result,
)
from deep.exceptions import ExitStatus


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    add_model(parser)
    add_target_options(parser)
    add_options(parser, "json")


def run(args: argparse.Namespace) -> int:
    """Estimate and report."""
    fitted = model.load(args.model)
    targets = evaluate.read_targets(fitted, args.votes, args.labels, args.scores)
    found = [evaluate.share_report(fitted, target) for target in targets]
    print_result(SCHEMA | {"datasets": found}, [line for row in found for line in _lines(row)], as_json=args.json)
    return ExitStatus.DONE


def _lines(found: Results) -> Iterator[str]:
    labels = f", {found['labels']} of them labeled" if found["labels"] else ""
    yield f"{found['dataset']}: {found['n']} items{labels}; share of consistent ones, 90 % interval:"
    for share in found["shares"]:
        bounds = f"{percent(share['low'])} to {percent(share['high'])}"
        yield f"  {share['method']:<18}  {percent(share['estimate']):>7}  ({bounds})  {share['how']}"
    warning = found["prior"]["warning"]
    if warning:
        yield f"  {warning}"
