"""`deep paper`: regenerate the DEEP paper's tables and figures from any votes, beside its printed figures."""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from deep import report
from deep._util.files import check_replaceable, write_results
from deep.console import (
    NOTICE,
    SIMULATED,
    CommandParser,
    add_options,
    origin_of,
    progress_bars,
    read_votes_and_scores,
)
from deep.exceptions import ExitStatus

NO_NETCAL = "netcal is not installed: its calibrators and ECE are left out. Run: pip install 'deep-judges[netcal]'."


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    add_options(parser, "votes", "scores", "range", "ignore", "ensembler")
    dataset = "of Figure 4; default: aggrefact-xsum, else the first"
    parser.add_argument("--figure-dataset", metavar="NAME", help=dataset)
    parser.add_argument("--no-netcal", action="store_true", help="leave out netcal's calibrators and ECE (Tables 4, 5)")
    add_options(parser, "max-failure-rate", "n-boot", "seed", "jobs")
    parser.add_argument("--out", type=Path, default=Path("runs/paper"), metavar="DIR", help="folder for the results")


def run(args: argparse.Namespace) -> int:
    """Hold every dataset out, write and report."""
    from deep.experiments.loo import LooOptions, run_all
    from deep.experiments.paper._tables import TABLES, check_labeled, figure_dataset, paper_figures, paper_tables, write

    check_replaceable(args.out)
    votes, scores = read_votes_and_scores(args)
    origin = origin_of(args)
    check_labeled(votes)
    example = figure_dataset(args.figure_dataset, votes)
    lacks_netcal = not args.no_netcal and find_spec("netcal") is None
    settings = LooOptions(
        tables=("paper",),
        netcal=not (args.no_netcal or lacks_netcal),
        ensemblers=tuple(dict.fromkeys(args.ensembler)) or None,
        n_boot=args.n_boot,
        random_state=args.seed,
        n_jobs=args.jobs,
    )
    with progress_bars() as progress:
        found = run_all(settings, votes.dataset_names, votes, scores, origin, progress)
    runs = [each.results for each in found]
    drawn = paper_figures(votes, scores, runs, example, args.seed)
    with report.reported_folder(args.out) as scratch:
        write_results(scratch, {"votes": origin, "runs": runs})
        write(scratch, paper_tables(runs), drawn, origin)
    names = ", ".join([*(f"table{table}.md" for table in TABLES), *(f"{name}.png" for name in drawn)])
    notice = (f"{NOTICE}\n" if origin == SIMULATED else "") + (f"{NO_NETCAL}\n" if lacks_netcal else "")
    sys.stdout.write(f"{notice}{names}: in {args.out}\n{report.report_line(args.out)}\n")
    return ExitStatus.DONE
