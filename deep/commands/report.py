"""Write one HTML file that shows a run, a model or votes: figures, judges, and every item to browse.

It loads nothing from outside: open it, send it, print it.

For instance:

  deep report runs/loo-aggrefact-xsum
      the report of a run, again
  deep report votes.parquet --labels labels.csv --out report.html
      the judges, and P(consistent) by their votes alone, beside labels
  deep report model.json votes.parquet --out report.html
      P(consistent) by a model, with what drift and canary say
"""

import argparse
from pathlib import Path

from deep import report
from deep.console import SCHEMA, SEVERAL, CommandParser, add_example_options, add_options, column_map, print_result
from deep.exceptions import ExitStatus


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    sources = "the folder of a run, or a model file, and tables of votes"
    parser.add_argument("sources", nargs="+", metavar="RUN|MODEL|VOTES", help=sources)
    parser.add_argument("--labels", **SEVERAL, metavar="FILE", help="tables of labels: dataset, item_id, label")
    examples = "a benchmark or a file of examples, in place of what the votes remember"
    parser.add_argument("--examples", metavar="FILE", help=examples)
    no_text = "leave out sources, claims, rationales and evidence"
    parser.add_argument("--no-text", action="store_true", help=no_text)
    out = "the report; default: report.html in the folder of the run, else here"
    parser.add_argument("--out", type=Path, metavar="FILE", help=out)
    add_options(parser, "json")
    add_example_options(parser)


def run(args: argparse.Namespace) -> int:
    """Write and report."""
    out = args.out or report.standard_place(args.sources)
    written = report.write_report(
        args.sources, out, labels=args.labels, examples=args.examples, columns=column_map(args), texts=not args.no_text
    )
    print_result(SCHEMA | {"report": str(written)}, [f"report: open {written}"], as_json=args.json)
    return ExitStatus.DONE
