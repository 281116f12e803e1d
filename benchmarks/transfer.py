"""Hold each dataset out in turn, `deep fit` beside its rivals: the tables of README.md and docs/results*.md.

    python benchmarks/transfer.py --votes votes.parquet --scores scores.parquet
        hold out each labeled dataset in turn; scores enter as soft votes
    python benchmarks/transfer.py --votes panel-a.parquet panel-b.parquet --training-datasets 1 2 3 4 6 all --draws 20
        every rival on several panels, with few and many training datasets
    python benchmarks/transfer.py --simulated
        four simulated worlds with known truth

`deep loo --test all --few` is the same study of one panel of your own.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from transfer_report import report_text, simulated_text, summarize, summarize_simulated
from transfer_target import TransferSettings, transfer_to
from transfer_worlds import WORLDS, transfer_in

from deep import report
from deep._util.files import check_replaceable, write_results
from deep._util.names import listed
from deep.console import (
    CommandParser,
    Values,
    add_options,
    check_draws,
    check_jobs,
    parallel_map,
    print_result,
    progress_bars,
    read_votes_and_scores,
)
from deep.datasets import ScoreTable, join_scores, read_scores, read_votes
from deep.evaluate import Row
from deep.exceptions import DeepError, ExitStatus, InputError
from deep.experiments.few_datasets import StudyPanel, check_sizes, measurable, panels_text, transfer_over_panels
from deep.records import VoteMatrix

MAX_TARGETS = 500
MAX_NAMED = 5

Mapper = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Like the built-in `map`."""

SCHEMA_VERSION = 1


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    tables = {"votes": "tables of votes (CSV, Parquet), all labeled", "scores": "tables of scores: soft votes"}
    add_options(parser, "votes", "scores", "ignore", **{name: {"help": text} for name, text in tables.items()})
    numbers = "numbers of training datasets, or 'all': every table of --votes is a panel, every rival is compared"
    parser.add_argument("--training-datasets", action=Values, nargs="+", default=[], metavar="K", help=numbers)
    parser.add_argument("--simulated", action="store_true", help="four simulated worlds instead of votes")
    parser.add_argument(
        "--draws", type=int, metavar="N", help="draws: 200 of labels, 20 of training datasets, 8 of simulated worlds"
    )
    add_options(parser, "seed", "jobs")
    parser.add_argument("--out", type=Path, default=Path("runs/transfer"), metavar="DIR", help="folder for results")
    add_options(parser, "json", json={"help": "print results.json to stdout and nothing else"})


def run(args: argparse.Namespace) -> int:
    """Transfer, write and report."""
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
                args.votes, args.scores, check_sizes(args.training_datasets), mapper, **options
            )
        else:
            results, text = transfer_on_votes(*read_votes_and_scores(args), mapper, **options)
            results = {"votes": args.votes, "scores": args.scores, **results}
    shared = {"schema_version": SCHEMA_VERSION, "simulated": args.simulated, "seed": args.seed}
    results = {**shared, **results, "seconds": round(time.perf_counter() - started, 1)}
    with report.open_folder_with_report(args.out) as folder:
        write_results(folder, results)
        (folder / "results.md").write_text(text, encoding="utf-8")
    end = f"\n{results['seconds']:.0f} s. Everything is in {args.out}"
    print_result(results, [f"{text}{end}", report.report_line(args.out)], as_json=args.json)
    return ExitStatus.DONE


def transfer_on_votes(
    votes: VoteMatrix, scores: ScoreTable | None, run: Mapper, *, n_draws: int = 200, random_state: int = 0
) -> tuple[Row, str]:
    """Hold out each dataset; return results and their Markdown.

    Raises
    ------
    InputError
        A row has no label, or there are more than 500 datasets.
    """
    if len(votes.dataset_names) > MAX_TARGETS:
        raise InputError(
            f"`votes` must hold at most {MAX_TARGETS} datasets, each of which is held out. Got "
            f"{len(votes.dataset_names):,}. Hold out one of them with `deep loo`."
        )
    votes, left = measurable(votes)
    if left and scores is not None:
        scores = join_scores(votes, scores)
    settings = TransferSettings(n_draws=n_draws, random_state=random_state)
    targets = list(run(partial(_transfer_to, votes, scores, settings), votes.dataset_names))
    summary = summarize(targets)
    return {"left_out": left, "targets": targets, "summary": summary}, report_text(targets, summary) + _left_out(left)


def _left_out(datasets: Sequence[str]) -> str:
    return f"\nLeft out, for their labels are all 0 or all 1: {listed(datasets, MAX_NAMED)}.\n" if datasets else ""


def _transfer_to(votes: VoteMatrix, scores: ScoreTable | None, settings: TransferSettings, test: str) -> Row:
    return transfer_to(votes, test, scores=scores, settings=settings)


def transfer_on_panels(
    paths: Sequence[str],
    scores: Sequence[str],
    sizes: Sequence[int | str],
    run: Mapper,
    *,
    n_draws: int = 20,
    random_state: int = 0,
) -> tuple[Row, str]:
    """Compare every rival on several panels with few or many training datasets; return results and their Markdown.

    Parameters
    ----------
    paths : sequence of str
        Tables of labeled votes, each a panel of its own.
    scores : sequence of str
        Tables of soft scores; they stand beside the panel whose items they have.
    """
    soft = read_scores(scores) if scores else None
    panels, left_out = [], dict[str, list[str]]()
    for path in paths:
        votes, left_out[path] = measurable(read_votes([path]))
        mine = soft if soft is not None and set(soft.datasets) & set(votes.datasets) else None
        panels.append(StudyPanel(_panel_name(path), votes, None if mine is None else join_scores(votes, mine)))
    results = transfer_over_panels(panels, sizes, run, n_draws=n_draws, random_state=random_state)
    message = "".join(_left_out(left) for left in left_out.values())
    return {"votes": list(paths), "scores": list(scores), "left_out": left_out, **results}, panels_text(
        results
    ) + message


def _panel_name(path: str) -> str:
    return "/".join(Path(path).parts[-2:])


def transfer_on_worlds(run: Mapper, *, n_draws: int = 8, random_state: int = 0) -> tuple[Row, str]:
    """Hold out each dataset of every draw of the simulated worlds; return results and their Markdown."""
    draws = range(random_state, random_state + n_draws)
    tasks = [(world, draw) for draw in draws for world in WORLDS]
    result = [row for rows in run(_transfer_in, tasks) for row in rows]
    summary = summarize_simulated(result)
    table = simulated_text(summary, {name: world.title for name, world in WORLDS.items()})
    return {"votes": "simulated", "targets": result, "summary": summary}, table


def _transfer_in(task: tuple[str, int]) -> list[Row]:
    return transfer_in(*task)


def main(words: Sequence[str] | None = None) -> int:
    """Read the options, run, and print a fault as one line."""
    parser = CommandParser(prog="transfer.py", description=__doc__)
    add_arguments(parser)
    try:
        return run(parser.parse(list(sys.argv[1:] if words is None else words)))
    except DeepError as error:
        sys.stderr.write(f"error: {error}\n")
        return ExitStatus.ERROR


if __name__ == "__main__":
    raise SystemExit(main())
