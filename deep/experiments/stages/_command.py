"""One table of judges by stage: DEEP's four sets, FECT's F1, PROBE's recall by complexity, CogniBench's tiers.

Any voter of a vote file is a judge, and so is a model of `deep fit` on those votes. What cannot be measured is named,
with the reason. Nothing is asked.

For instance:

  deep panel compare votes.parquet
      every voter at each stage on whose items it has voted
  deep panel compare votes.parquet fect.parquet model.json --out compared
      and what a model makes of the votes, at 0.5 and at its prior; figures with their intervals as files
  deep panel compare cogni.parquet --cognibench DIR
      the tiers of CogniBench from a folder of its published files
"""

import argparse
from pathlib import Path

from deep import console
from deep._files import check_replaceable, write_results
from deep.exceptions import ExitStatus

TITLE = "Judges by stage, in %"


def add_arguments(parser: console.CommandParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("files", nargs="+", metavar="VOTES|MODEL.json", help="tables of votes (CSV, Parquet), and model files")
    add("--cognibench", metavar="DIR", help="published files of CogniBench; default: where `deep data` puts them")
    ensembles = "ensembles of all voters that learn from no label: DawidSkene, LabelModel, MajorityLabelVoter"
    add("--ensembler", **console.SEVERAL, metavar="NAME", help=ensembles)
    add("--out", type=Path, metavar="FOLDER", help="write the table and every figure with its interval here too")
    console.add_options(parser, "n-boot", "seed", "json", n_boot={"default": 2000})


def run(args: argparse.Namespace) -> int:
    """Measure and report."""
    from deep.experiments.cognibench import verdicts_by_item
    from deep.experiments.stages._stage_table import stage_table
    from deep.report import report_line, reported_folder

    console.check_least(args, n_boot=1, seed=0)
    if args.out is not None:
        check_replaceable(args.out)
    verdicts = verdicts_by_item(args.cognibench)
    table = stage_table(args.files, verdicts, ensemblers=args.ensembler, n_boot=args.n_boot, random_state=args.seed)
    results = console.SCHEMA | table.as_dict()
    lines = [TITLE, "", *table.lines()]
    if args.out is not None:
        with reported_folder(args.out) as folder:
            table.write(folder, TITLE)
            write_results(folder, results)
        lines += [f"written to {args.out}", report_line(args.out)]
    console.print_result(results, lines, as_json=args.json)
    return ExitStatus.DONE
