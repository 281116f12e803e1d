"""`deep panel`: does the panel earn its cost? What each judge adds, and whether one would do."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from deep._files import to_json
from deep.console import HelpFormatter, Values, guarded, progress_bars
from deep.datasets import check_failures, read_reasons, read_votes, simulate_votes
from deep.evaluate import PanelReport, panel_worth
from deep.exceptions import InputError
from deep.experiments.loo import NOTICE
from deep.features import effective_votes, error_correlation
from deep.model import RECIPES, training_set

__all__ = ["main"]

EXAMPLES = """\
examples:
  deep panel --votes labeled.parquet
      which judges to keep, which to drop, and whether the best one alone would do
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="deep panel",
        description="Measure what each judge adds, leaving out one labeled dataset at a time.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    several: dict[str, Any] = {"action": Values, "nargs": "+", "default": []}
    p.add_argument("--votes", metavar="FILE", **several, help="labeled tables of votes; default: simulated")
    p.add_argument("--ignore", metavar="COLUMN", **several, help="columns that are no voters")
    p.add_argument("--max-failure-rate", type=float, default=0.05, metavar="SHARE", help="refuse voters above it")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of everything that draws")
    p.add_argument("--json", action="store_true", help="print JSON and nothing else")
    return p


def report(args: argparse.Namespace) -> dict[str, Any]:
    """Return everything that is measured of a panel."""
    votes = read_votes(args.votes, ignore=args.ignore) if args.votes else simulate_votes(args.seed)
    check_failures(read_reasons(args.votes, votes), args.max_failure_rate)
    labeled = votes.rows(votes.labels >= 0)
    if not len(labeled.labels) or labeled.shape[1] < 2:
        raise InputError("`votes` must have labeled rows and at least two voters. Got too few.")
    training = training_set(labeled, RECIPES["deep"], random_state=args.seed)
    k = labeled.shape[1]
    with progress_bars() as progress:
        found = panel_worth(training, step=progress("panels", k * (k + 1) // 2))
    X, y, w = training.table()
    correlation = error_correlation(X, y, w)
    names = training.cells.voter_names
    return {
        "schema_version": 1,
        "votes": args.votes or "simulated",
        "datasets": list(labeled.dataset_names),
        "judges": list(names),
        "effective_votes": effective_votes(X, y, w),
        "error_correlation": [[None if value != value else float(value) for value in row] for row in correlation],
        **_found(found),
    }


def _found(found: PanelReport) -> dict[str, Any]:
    steps = [
        {
            "dropped": panel.dropped,
            "n_judges": len(panel.judges),
            "log_loss": panel.log_loss,
            "balanced_accuracy": panel.balanced_accuracy,
            "loss_increase": panel.loss_increase,
            "increase_ci": list(panel.increase_ci),
        }
        for panel in found.steps
    ]
    return {
        "best_judge": found.best_judge,
        "gain": found.gain,
        "gain_ci": list(found.gain_ci),
        "one_judge": found.one_judge,
        "keep": list(found.keep),
        "drop": list(found.drop),
        "value": {name: list(triple) for name, triple in found.value.items()},
        "steps": steps,
    }


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield what a person should be told."""
    n = len(found["judges"])
    yield f"{n} judges are worth {found['effective_votes']:.1f} independent ones ({len(found['datasets'])} datasets)."
    yield ""
    yield "Dropped one after the other, the least useful first; log loss and balanced accuracy on datasets left out:"
    yield f"  {'judges':>6}  log loss  increase (90 % interval)     accuracy  dropped"
    for panel in found["steps"]:
        yield _step_line(panel)
    yield ""
    gain, (low, high) = 100 * found["gain"], found["gain_ci"]
    yield (
        f"Panel minus best judge ({found['best_judge']}): {gain:+.1f} points of balanced accuracy "
        f"(90 % interval {100 * low:+.1f} to {100 * high:+.1f})."
    )
    yield f"Keep: {', '.join(found['keep'])}."
    yield f"Drop: {', '.join(found['drop']) or 'none'}."
    yield "Those kept are within one standard error of the log loss of all."
    if found["one_judge"]:
        last = found["steps"][-1]
        yield (
            f"For decisions alone one judge, {found['best_judge']}, would do. As a probability the best single judge "
            f"costs {last['loss_increase']:+.4f} of log loss."
        )


def _step_line(panel: dict[str, Any]) -> str:
    low, high = panel["increase_ci"]
    increase = f"{panel['loss_increase']:+.4f} ({low:+.4f} to {high:+.4f})"
    accuracy = f"{100 * panel['balanced_accuracy']:>8.1f}"
    return f"  {panel['n_judges']:>6}  {panel['log_loss']:>8.4f}  {increase}  {accuracy}  {panel['dropped'] or ''}"


def run(argv: Sequence[str] | None) -> int:
    """Read the options, measure and report."""
    args = parser().parse_args(argv)
    found = report(args)
    if args.json:
        sys.stdout.write(to_json(found))
    else:
        notice = [] if args.votes else [NOTICE]
        sys.stdout.write("\n".join([*lines(found), *notice, ""]))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)


if __name__ == "__main__":
    sys.exit(main())
