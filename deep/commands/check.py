"""Test whether a model can be trusted on new data: by a few labels (the canary), or without any by how judges vote.

With `--labels`, a score test of intercept and slope: are these labels as P says, up to a quarter of how far it is
usually off on a new dataset? It is valid for ten labels as for a thousand, drawn at random, which the model has not
seen. Without, the votes are compared with those of the training datasets: abstentions, agreement, share of 1, implied
error rates; and the share of failures, where the file of reasons lies beside them, with that at the fit. Beside
earlier votes of the same stream (`--reference`; of themselves those of the fit on the same dataset) a change of all
judges alike is seen too. Votes that the model was fitted on are no news, and not compared.

Exit status: 0 nothing found, 1 the labels disagree or a judge has moved, 2 an error.

For instance:

  deep check model.json --votes mine.parquet --labels ten.csv
      one p-value, what it means, and what to do
  deep check model.json --votes this-week.parquet
      what has moved, by votes alone
  deep check model.json --votes this-week.parquet --reference january.parquet
      the same beside earlier votes of the same stream, where a change of all judges alike shows
  deep check model.json --votes this-week.parquet --labels ten.csv --gate gate
      for a CI: all of it, and whether each judge is of the version that was fitted; JUnit, a summary and the history
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from deep import console, datasets, evaluate, model
from deep._util.entry_points import load_part
from deep._util.options import option
from deep.exceptions import ExitStatus, InputError


@dataclass(frozen=True)
class _CheckArgs:
    """Options of the command.

    Parameters
    ----------
    alpha : float, default=0.05
        Chance of a false alarm.
    gate : Path, optional
        For CI: write junit.xml, summary.md and a history with its chart to this folder.
    reference : tuple of str
        Earlier votes of the same stream, to compare with.
    """

    alpha: float = option(0.05, "P")
    gate: Path | None = option(None, "FOLDER")
    reference: tuple[str, ...] = option((), "VOTES", nargs="+")


# An option of yesterday, which is refused with the reason.
HIDDEN = {"help": argparse.SUPPRESS, "default": None, "rare": False}

add_arguments = console.adder(
    console.MODEL_ARG, console.add_target_options, _CheckArgs, "max-failure-rate", "json", max_failure_rate=HIDDEN
)


def run(args: argparse.Namespace) -> int:
    """Test labels, or compare votes, and report."""
    if args.max_failure_rate is not None:
        raise InputError(
            "`max_failure_rate` must be given to `deep fit`, which leaves voters out by this limit. Got "
            f"{args.max_failure_rate} here. Leave it out: this command compares each voter's failures with those at "
            "the fit."
        )
    fitted = model.load(args.model)
    # The gate makes all tests, and writes files for a CI.
    if args.gate is not None:
        return int(load_part("gate")(fitted, args))
    # Labels say more than votes, whose drift may be harmless.
    if not args.labels:
        return _check_votes(fitted, args)
    target = evaluate.read_target(fitted, args.votes, args.labels, args.scores)
    result = evaluate.canary_report(fitted, target, alpha=args.alpha)
    console.print_result(console.SCHEMA | result, evaluate.canary_lines(result), as_json=args.json)
    return ExitStatus.FOUND if result["flagged"] else ExitStatus.DONE


def _check_votes(fitted: model.Model, args: argparse.Namespace) -> int:
    """Compare the votes with those of the training datasets."""
    if args.scores:
        raise InputError("`scores` must be given with `labels`. Without labels only the votes are compared.")
    votes = evaluate.read_votes_for_model(fitted, args.votes)
    reference = evaluate.read_votes_for_model(fitted, args.reference) if args.reference else None
    failures = datasets.read_reasons(args.votes, votes)
    report = evaluate.drift_report(fitted, votes, failures, alpha=args.alpha, reference=reference)
    console.print_result(console.SCHEMA | report.as_dict(), report.lines(), as_json=args.json)
    return ExitStatus.FOUND if report.stale else ExitStatus.DONE
