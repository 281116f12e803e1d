"""How well P(consistent) holds on datasets never seen: the pool beside its rivals.

python -m deep.experiments.transfer --votes votes.parquet --scores scores.parquet
python -m deep.experiments.transfer --simulated
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from deep._files import check_replaceable, to_json, whole_folder
from deep.console import HelpFormatter, Values, add_jobs, check_jobs, guarded, parallel_map, progress_bars
from deep.datasets import ScoreTable, join_scores, read_scores, read_votes, table_columns
from deep.exceptions import InputError
from deep.experiments.transfer._report import report_text, simulated_text, summarize, summarize_simulated
from deep.experiments.transfer._simulated import WORLDS, transfer_in
from deep.experiments.transfer._target import TransferSettings, transfer_to
from deep.records import VoteMatrix

__all__ = ["main"]

SCHEMA_VERSION = 1

EXAMPLES = """\
examples:
  python -m deep.experiments.transfer --votes votes.parquet --scores scores.parquet
      hold out each labeled dataset in turn; scores enter as soft votes
  python -m deep.experiments.transfer --votes a.csv,b.csv,c.csv,d.csv --draws 50 --json
      votes alone; results.json to stdout
  python -m deep.experiments.transfer --simulated
      four simulated worlds with known truth
"""

Mapper = Callable[[Callable[[Any], Any], Sequence[Any]], Any]


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="python -m deep.experiments.transfer",
        description="Hold out each labeled dataset in turn; what the pool says of it without a label and with a few.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    several: dict[str, Any] = {"action": Values, "nargs": "+"}
    p.add_argument("--votes", metavar="FILE", default=[], **several, help="tables of votes (CSV, Parquet), all labeled")
    p.add_argument("--scores", metavar="FILE", default=[], **several, help="tables of scores: soft votes")
    p.add_argument("--ignore", metavar="COLUMN", default=[], **several, help="columns that are no voters")
    p.add_argument("--simulated", action="store_true", help="four simulated worlds instead of votes")
    p.add_argument("--draws", type=int, default=None, metavar="N", help="draws: 200 of labels, 8 of simulated worlds")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of everything that draws")
    add_jobs(p)
    p.add_argument("--out", type=Path, default=Path("runs/transfer"), metavar="DIR", help="folder for results")
    p.add_argument("--json", action="store_true", help="print results.json to stdout and nothing else")
    return p


def load(args: argparse.Namespace) -> tuple[VoteMatrix, ScoreTable | None]:
    """Return labeled votes and the scores aligned with them."""
    if not args.votes:
        raise InputError("`votes` must name at least one table, or --simulated be given. Got neither.")
    in_votes = set(table_columns(args.votes))
    in_scores = set(table_columns(args.scores)) if args.scores else set()
    # A name that neither has goes to the votes, whose error lists what there is.
    votes = read_votes(args.votes, ignore=[name for name in args.ignore if name in in_votes or name not in in_scores])
    unlabeled = (votes.labels < 0).nonzero()[0]
    if len(unlabeled):
        row = unlabeled[0]
        raise InputError(
            f"`label` must be 0 or 1 in every row. Got none for item {votes.example_ids[row]!r} of dataset "
            f"{votes.datasets[row]!r}. Label it or leave it out."
        )
    if not args.scores:
        return votes, None
    scores = read_scores(args.scores, ignore=[name for name in args.ignore if name in in_scores])
    return votes, join_scores(votes, scores)


def on_votes(args: argparse.Namespace, run: Mapper) -> tuple[dict[str, Any], str]:
    """Hold out each dataset; return results and their Markdown."""
    votes, scores = load(args)
    settings = TransferSettings(n_draws=_positive(args.draws, 200), random_state=args.seed)
    one = partial(_transfer_to, votes, scores, settings)
    targets = list(run(one, votes.dataset_names))
    summary = summarize(targets)
    origin = {"votes": [str(path) for path in args.votes], "scores": [str(path) for path in args.scores]}
    return {**origin, "targets": targets, "summary": summary}, report_text(targets, summary)


def _transfer_to(votes: VoteMatrix, scores: ScoreTable | None, settings: TransferSettings, test: str) -> dict[str, Any]:
    return transfer_to(votes, test, scores=scores, settings=settings)


def on_worlds(args: argparse.Namespace, run: Mapper) -> tuple[dict[str, Any], str]:
    """Hold out each dataset of every draw of the simulated worlds."""
    draws = range(args.seed, args.seed + _positive(args.draws, 8))
    tasks = [(world, draw) for draw in draws for world in WORLDS]
    found = [row for rows in run(_transfer_in, tasks) for row in rows]
    summary = summarize_simulated(found)
    table = simulated_text(summary, {name: world.title for name, world in WORLDS.items()})
    return {"votes": "simulated", "targets": found, "summary": summary}, table


def _transfer_in(task: tuple[str, int]) -> list[dict[str, Any]]:
    return transfer_in(*task)


def _positive(value: int | None, default: int) -> int:
    if value is not None and value < 1:
        raise InputError(f"`draws` must be at least 1. Got {value!r}.")
    return default if value is None else value


def run(argv: Sequence[str] | None) -> int:
    """Read the options, transfer, write and report."""
    args = parser().parse_args(argv)
    check_jobs(args.jobs)
    if args.simulated and (args.votes or args.scores):
        raise InputError("`simulated` must be given without --votes and --scores. Got both.")
    check_replaceable(args.out)
    started = time.perf_counter()
    with progress_bars() as progress:
        mapper = parallel_map(
            args.jobs, progress, "worlds" if args.simulated else "datasets", ensemblers=["LabelModel"]
        )
        results, text = (on_worlds if args.simulated else on_votes)(args, mapper)
    results = {
        "schema_version": SCHEMA_VERSION,
        "simulated": args.simulated,
        "seed": args.seed,
        **results,
        "seconds": round(time.perf_counter() - started, 1),
    }
    with whole_folder(args.out) as folder:
        (folder / "results.json").write_text(to_json(results), encoding="utf-8")
        (folder / "results.md").write_text(text, encoding="utf-8")
    end = f"\n{results['seconds']:.0f} s. Everything is in {args.out}\n"
    sys.stdout.write(to_json(results) if args.json else text + end)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)
