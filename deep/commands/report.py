"""Write one HTML file that shows a run, a model or votes: figures, judges, and every item to browse.

It loads nothing from outside: open it, send it, print it.

For instance:

  deep report runs/loo-aggrefact-xsum
      the report of a run, again
  deep report votes.parquet --labels labels.csv --out report.html
      the judges, and P(consistent) by their votes alone, beside labels
  deep report model.json votes.parquet --out report.html
      P(consistent) by a model, with what drift and canary say
  deep report model.json votes.parquet --compare generator
      beside that the systems that the column `generator` names, every pair with its difference
"""

import argparse
from pathlib import Path

import deep.report as report
from deep.console import SCHEMA, SEVERAL, CommandParser, add_example_options, add_options, column_map, print_result
from deep.exceptions import ExitStatus, InputError


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    sources = "the folder of a run, or a model file, and tables of votes"
    parser.add_argument("sources", nargs="+", metavar="RUN|MODEL|VOTES", help=sources)
    labels = "people's labels, in place of those beside the votes, as `deep panel` takes them"
    parser.add_argument("--labels", **SEVERAL, metavar="FILE", help=labels)
    parser.add_argument("--people", **SEVERAL, metavar="COLUMN", help="the columns of the labels that are people")
    grade = "grades of people from this one on mean consistent"
    parser.add_argument("--consistent-from", type=float, metavar="GRADE", help=grade)
    prior = "share of consistent items; default: estimated for each dataset"
    parser.add_argument("--prior", type=float, metavar="P", help=prior)
    examples = "a benchmark or a file of examples, in place of what the votes remember"
    parser.add_argument("--examples", metavar="FILE", help=examples)
    no_text = "leave out sources, claims, rationales and evidence"
    parser.add_argument("--no-text", action="store_true", help=no_text)
    compare = "compare the systems that a column of the votes names; file: each table is a system"
    parser.add_argument("--compare", metavar="COLUMN", help=compare)
    out = "the report; default: report.html in the folder of the run, else here"
    parser.add_argument("--out", type=Path, metavar="FILE", help=out)
    scores = {"help": "tables of soft scores, where the model was fitted on some"}
    dataset = {"help": "the dataset of tables that have no column dataset"}
    add_options(parser, "dataset", "json", "scores", dataset=dataset, scores=scores)
    add_example_options(parser)


def run(args: argparse.Namespace) -> int:
    """Write and report."""
    out = args.out or report.standard_place(args.sources)
    if (args.people or args.consistent_from is not None) and not args.labels:
        raise InputError("`labels` must be given with `people` and `consistent_from`. Got none.")
    labels = report.LabelFiles(args.labels, args.people, args.consistent_from)
    texts = {"examples": args.examples, "columns": column_map(args), "texts": not args.no_text, "compare": args.compare}
    known = report.Known(args.prior, args.scores)
    written = report.write_report(args.sources, out, labels=labels, known=known, **texts)
    print_result(SCHEMA | {"report": str(written)}, [f"report: open {written}"], as_json=args.json)
    return ExitStatus.DONE
