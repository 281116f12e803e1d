"""Write one HTML file that shows a run, a model or votes: figures, judges, and every item to browse.

It loads nothing from outside: open it, send it, print it.

For instance:

  deep report runs/loo-aggrefact-xsum
      the report of a run, again
  deep report votes.parquet --labels labels.csv --out report.html
      the judges, and P(consistent) by their votes alone, beside labels
  deep report model.json votes.parquet --out report.html
      P(consistent) by a model, with what drift and canary say
  deep report model.json votes.parquet --ledger votes.ledger.sqlite
      and the prompt and replies of each judge in every item that is opened
  deep report model.json votes.parquet --compare generator
      beside that the systems that the column `generator` names, every pair with its difference
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import deep.report as report
from deep._util.options import option
from deep.console import SCHEMA, ExampleColumns, adder, column_map, print_result
from deep.exceptions import InputError


@dataclass(frozen=True)
class _ReportArgs:
    """Options of the command.

    Parameters
    ----------
    sources : tuple of str
        The folder of a run, or a model file, and tables of votes.
    examples : str, optional
        A benchmark or a file with the texts; default: the examples that were judged.
    no_text : bool, default=False
        Leave out sources, claims, rationales and evidence.
    ledger : str, optional
        Show each judge's prompt and replies in an opened item; the page holds fewer items.
    out : Path, optional
        The report; default: report.html in the folder of the run, else here.
    """

    sources: tuple[str, ...] = option((), "RUN|MODEL|VOTES", flags=["sources"], nargs="+")
    examples: str | None = option(None, "FILE")
    no_text: bool = option(False)
    ledger: str | None = option(None, "LEDGER")
    out: Path | None = option(None, "FILE")


SHARED = ("labels", "people", "consistent-from", "prior", "compare", "dataset", "scale", "scores", "json")
add_arguments = adder(_ReportArgs, *SHARED, ExampleColumns)


def run(args: argparse.Namespace) -> None:
    """Write and report."""
    # A run has its report in its own folder.
    out = args.out or report.default_report_path(args.sources)
    if (args.people or args.consistent_from is not None) and not args.labels:
        raise InputError("`labels` must be given with `people` and `consistent_from`. Got none.")
    labels = report.LabelFiles(args.labels, args.people, args.consistent_from)
    texts = {"examples": args.examples, "columns": column_map(args), "texts": not args.no_text, "compare": args.compare}
    texts |= {"ledger": args.ledger}
    knowledge = report.GivenShare(args.prior, args.scores)
    path = report.write_report(args.sources, out, labels=labels, known=knowledge, **texts)
    print_result(SCHEMA | {"report": str(path)}, [f"report: open {path}"], as_json=args.json)
