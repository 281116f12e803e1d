"""`deep transfer`: how well P(consistent) holds on datasets never seen, the stack beside its rivals."""

import argparse
import time
from pathlib import Path

from deep import report
from deep._files import check_replaceable, write_results
from deep.console import (
    SEVERAL,
    CommandParser,
    add_options,
    check_draws,
    check_jobs,
    parallel_map,
    print_result,
    progress_bars,
    read_votes_and_scores,
)
from deep.exceptions import ExitStatus, InputError

SCHEMA_VERSION = 1


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    tables = {"votes": "tables of votes (CSV, Parquet), all labeled", "scores": "tables of scores: soft votes"}
    add_options(parser, "votes", "scores", "ignore", **{name: {"help": text} for name, text in tables.items()})
    numbers = "numbers of training datasets, or 'all': every table of --votes is a panel, every rival is compared"
    parser.add_argument("--training-datasets", **SEVERAL, metavar="K", help=numbers)
    parser.add_argument("--simulated", action="store_true", help="four simulated worlds instead of votes")
    parser.add_argument(
        "--draws", type=int, metavar="N", help="draws: 200 of labels, 20 of training datasets, 8 of simulated worlds"
    )
    add_options(parser, "seed", "jobs")
    parser.add_argument("--out", type=Path, default=Path("runs/transfer"), metavar="DIR", help="folder for results")
    add_options(parser, "json", json={"help": "print results.json to stdout and nothing else"})


def run(args: argparse.Namespace) -> int:
    """Transfer, write and report."""
    from deep.experiments.transfer._study import numbers_of, transfer_on_panels, transfer_on_votes, transfer_on_worlds

    check_jobs(args.jobs)
    if args.simulated and (args.votes or args.scores or args.training_datasets):
        raise InputError("`simulated` must be given without --votes, --scores and --training-datasets. Got both.")
    check_replaceable(args.out)
    if not args.simulated and not args.votes:
        raise InputError("`votes` must name at least one table, or --simulated be given. Got neither.")
    if not 0 <= args.seed < 2**32:
        raise InputError(f"`seed` must be from 0 to {2**32 - 1}. Got {args.seed}.")
    options = {"random_state": args.seed}
    if args.draws is not None:
        check_draws(args, "draws")
        options["n_draws"] = args.draws
    started = time.perf_counter()
    with progress_bars() as progress:
        task = "worlds" if args.simulated else "draws" if args.training_datasets else "datasets"
        mapper = parallel_map(args.jobs, progress, task)
        if args.simulated:
            results, text = transfer_on_worlds(mapper, **options)
        elif args.training_datasets:
            results, text = transfer_on_panels(
                args.votes, args.scores, numbers_of(args.training_datasets), mapper, **options
            )
        else:
            results, text = transfer_on_votes(*read_votes_and_scores(args), mapper, **options)
            results = {"votes": args.votes, "scores": args.scores, **results}
    shared = {"schema_version": SCHEMA_VERSION, "simulated": args.simulated, "seed": args.seed}
    results = {**shared, **results, "seconds": round(time.perf_counter() - started, 1)}
    with report.reported_folder(args.out) as folder:
        write_results(folder, results)
        (folder / "results.md").write_text(text, encoding="utf-8")
    end = f"\n{results['seconds']:.0f} s. Everything is in {args.out}"
    print_result(results, [f"{text}{end}", report.report_line(args.out)], as_json=args.json)
    return ExitStatus.DONE
