"""`deep paper`: regenerate the DEEP paper's tables and figures from any votes, beside its printed figures."""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import deep.report as report
from deep import console
from deep._util.files import check_replaceable, write_results
from deep.exceptions import ExitStatus
from deep.experiments import loo

NO_NETCAL = "netcal is not installed: its calibrators and ECE are left out. Run: pip install 'deep-judges[netcal]'."


SCORES = f"tables of encoder scores, or '{console.SIMULATED}'"
TEXTS = "with --scores: the items' texts, for how thresholds move with the length of the source"


def add_arguments(parser: console.CommandParser) -> None:
    """Add the options."""
    console.add_options(parser, "votes", "scores", "range", "ignore", "ensembler", scores={"help": SCORES})
    parser.add_argument("--texts", metavar="FILE", help=TEXTS)
    dataset = "of Figure 4; default: aggrefact-xsum, else the first"
    parser.add_argument("--figure-dataset", metavar="NAME", help=dataset)
    parser.add_argument("--no-netcal", action="store_true", help="leave out netcal's calibrators and ECE (Tables 4, 5)")
    console.add_options(parser, "max-failure-rate", "strict", "n-boot", "seed", "jobs")
    parser.add_argument("--out", type=Path, default=Path("runs/paper"), metavar="DIR", help="folder for the results")


def run(args: argparse.Namespace) -> int:
    """Hold every dataset out, write and report."""
    from deep.experiments.loo import LooOptions, part_lines, run_all
    from deep.experiments.paper import _paper_tables, _show

    check_replaceable(args.out)
    given, scores = loo.read_votes_and_encoders(args)
    votes, rivals = _paper_tables.ours_and_rivals(given)
    origin = console.origin_of(args)
    _paper_tables.check_labeled(votes)
    example = _paper_tables.figure_dataset(args.figure_dataset, votes)
    lacks_netcal = not args.no_netcal and find_spec("netcal") is None
    settings = LooOptions(
        tables=("paper",),
        all_chains=True,
        netcal=not (args.no_netcal or lacks_netcal),
        ensemblers=tuple(dict.fromkeys(args.ensembler)) or None,
        n_boot=args.n_boot,
        random_state=args.seed,
        n_jobs=args.jobs,
    )
    with console.progress_bars() as progress:
        found = run_all(settings, votes.dataset_names, votes, scores, origin, progress)
    runs = [_paper_tables.with_rivals(each.results, rivals, settings) for each in found]
    figures = _show.with_verdicts(_paper_tables.paper_tables(runs), origin)
    verdict = _show.verdict_of(figures, origin)
    with report.reported_folder(args.out) as scratch:
        write_results(scratch, {"verdict": verdict.as_dict(), "votes": origin, "runs": runs})
        drawn = _show.paper_figures(loo.write_encoders(args, votes, scores, runs, scratch), found, example)
        _show.write(scratch, figures, drawn | {_show.ANSWER: _show.draw_distance(figures)}, origin)
        loo.write_named(loo.PARTS, runs, scratch, votes=origin)
    names = ", ".join([*(f"table{table}.md" for table in _paper_tables.TABLES), *(f"{name}.png" for name in drawn)])
    notice = (f"{console.NOTICE}\n" if origin == console.SIMULATED else "") + (f"{NO_NETCAL}\n" if lacks_netcal else "")
    lines = (
        *console.study_lines(verdict, ""),
        *_show.table_lines(figures),
        *part_lines(runs),
        *_show.summary_lines(figures),
    )
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.write(f"{notice}{names}: in {args.out}\n{report.report_line(args.out)}\n")
    return ExitStatus.DONE
