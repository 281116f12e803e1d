"""Compare new votes with those that a model was fitted on, without labels.

Exit status: 0 alike, 1 a judge or the panel has moved, 2 an error.

For instance:

  deep drift model.json --votes this-week.parquet
      which judge has moved, by votes alone: abstentions, agreement, share of 1, implied error rates
"""

import argparse
from collections.abc import Iterator

from deep import datasets, evaluate, model
from deep.console import SCHEMA, CommandParser, add_model, add_options, print_result
from deep.exceptions import ExitStatus


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    add_model(parser)
    add_options(parser, "votes", votes={"required": True, "help": "tables of new votes"})
    parser.add_argument("--alpha", type=float, default=0.05, metavar="P", help="chance of a false alarm")
    add_options(parser, "max-failure-rate", "json", max_failure_rate={"help": "of a judge, by its reasons"})


def run(args: argparse.Namespace) -> int:
    """Compare and report."""
    fitted = model.load(args.model)
    votes = evaluate.votes_for(fitted, args.votes)
    failures = datasets.read_reasons(args.votes, votes)
    options = {"alpha": args.alpha, "max_failure_rate": args.max_failure_rate}
    report = evaluate.drift_report(fitted, votes, failures, **options)
    print_result(SCHEMA | report.as_dict(), _lines(report), as_json=args.json)
    return ExitStatus.FOUND if report.stale else ExitStatus.DONE


def _lines(report: "evaluate.DriftReport") -> Iterator[str]:
    yield f"{'STALE' if report.stale else 'not stale'}: {report.n} new rows"
    for name, now in report.other_version_or_model.items():
        yield f"  {name}: the votes are of another version or model, {now}"
    for name, rate in report.failing.items():
        yield f"  {name}: gave no usable answer to {rate:.1%}"
    for row in report.statistics:
        if row.moved:
            yield (
                f"  {row.judge}: {model.STATISTICS[row.statistic]}: {row.now:.3f}, "
                f"expected {row.low:.3f} to {row.high:.3f} (p = {row.p:.1g})"
            )
    alarms, training = report.false_alarms_on_training, report.training_datasets
    if len(training) < 3:
        yield "Fitted on fewer than three datasets: how much they differ without any drift is not known."
    else:
        names = f" ({', '.join(alarms)})" if alarms else ""
        yield f"Of the {len(training)} training datasets, {len(alarms)} would be called stale beside the others{names}."
    yield "Votes that look the same can still be wrong in a new way: only labels tell."
