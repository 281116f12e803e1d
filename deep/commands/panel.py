"""Measure what each judge of a panel adds, leaving out one labeled dataset at a time, and whether one would do.

For instance:

  deep panel --votes labeled.parquet
      which judges to keep, which to drop, and whether the best one alone would do
"""

import argparse
from collections.abc import Iterator

from deep import evaluate
from deep.console import (
    NOTICE,
    SCHEMA,
    CommandParser,
    Results,
    add_options,
    origin_of,
    points,
    print_result,
    progress_bars,
    read_training_votes,
)
from deep.exceptions import ExitStatus


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    votes = {"help": "labeled tables of votes; default: simulated"}
    add_options(parser, "votes", "ignore", "max-failure-rate", "seed", "json", votes=votes)


def run(args: argparse.Namespace) -> int:
    """Measure and report."""
    votes = read_training_votes(args)
    with progress_bars() as progress:
        report = evaluate.panel_report(votes, random_state=args.seed, progress=progress)
    results = SCHEMA | {"votes": origin_of(args)} | report
    print_result(results, [*_lines(results), *([] if args.votes else [NOTICE])], as_json=args.json)
    return ExitStatus.DONE


def _lines(found: Results) -> Iterator[str]:
    n = len(found["judges"])
    yield f"{n} judges are worth {found['effective_votes']:.1f} independent ones ({len(found['datasets'])} datasets)."
    yield ""
    yield "Dropped one after the other, the least useful first; log loss and balanced accuracy on datasets left out:"
    yield f"  {'judges':>6}  log loss  increase (90 % interval)     accuracy  dropped"
    for panel in found["steps"]:
        low, high = panel["increase_ci"]
        increase = f"{panel['loss_increase']:+.4f} ({low:+.4f} to {high:+.4f})"
        accuracy, dropped = points(panel["balanced_accuracy"]), panel["dropped"] or ""
        yield f"  {panel['n_judges']:>6}  {panel['log_loss']:>8.4f}  {increase}  {accuracy:>8}  {dropped}"
    yield ""
    low, high = found["gain_ci"]
    yield (
        f"Panel minus best judge ({found['best_judge']}): {points(found['gain'], '+')} points of balanced accuracy "
        f"(90 % interval {points(low, '+')} to {points(high, '+')})."
    )
    yield f"Keep: {', '.join(found['keep'])}."
    yield f"Drop: {', '.join(found['drop']) or 'none'}."
    yield "Those kept are within one standard error of the log loss of all."
    if found["one_judge"]:
        yield (
            f"For decisions alone one judge, {found['best_judge']}, would do. As a probability the best single judge "
            f"costs {found['steps'][-1]['loss_increase']:+.4f} of log loss."
        )
