"""Leave one dataset out, from the command line.

python -m deep.experiments.loo --test aggrefact
python -m deep.experiments.loo --test all --votes votes.parquet --scores scores.parquet
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from deep._files import check_replaceable, to_json, whole_folder
from deep.calibration import CALIBRATORS
from deep.console import HelpFormatter, Values, add_jobs, guarded, progress_bars
from deep.datasets import (
    ScoreTable,
    check_failures,
    join_scores,
    locate_row,
    published_baselines,
    read_reasons,
    read_scores,
    read_votes,
    resolve_dataset,
    simulate_votes,
    table_columns,
)
from deep.ensembles import ENSEMBLERS
from deep.evaluate import LooResult, UnlabeledTrainingError, optimal_thresholds, write_figures, write_tables
from deep.exceptions import InputError
from deep.experiments.loo._run import SCHEMA_VERSION, leave_one_dataset_out
from deep.experiments.loo._settings import LooOptions
from deep.experiments.loo._summary import mean_of_runs, mean_summary, summary
from deep.model import RECIPES, SELECTOR_NAMES
from deep.records import VoteMatrix

__all__ = ["main"]

SIMULATED = "simulated"

NOTICE = (
    "These votes are SIMULATED from the operating points that the DEEP paper publishes; no LLM was called. "
    "Give your own with --votes."
)

EXAMPLES = """\
examples:
  python -m deep.experiments.loo --test aggrefact
      hold out AggreFact-XSUM on the embedded, simulated votes
  python -m deep.experiments.loo --test all --votes votes.parquet --scores scores.parquet
      hold out each of your datasets in turn, with encoder scores as baselines
  python -m deep.experiments.loo --test mine --votes labeled.csv,mine.csv --sizes 3,5 --json
      score a dataset without labels from labeled ones; results.json to stdout
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="python -m deep.experiments.loo",
        description="Learn from all datasets but one, and give a calibrated P(consistent) for every item of that one.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    p.add_argument("--test", required=True, metavar="NAME", help="dataset to hold out, an alias of it, or 'all'")
    several: dict[str, Any] = {"action": Values, "nargs": "+"}
    p.add_argument(
        "--votes", metavar="FILE", default=[], **several, help="tables of votes (CSV, Parquet); default: simulated"
    )
    p.add_argument("--scores", metavar="FILE", default=[], **several, help="tables of encoder scores, as baselines")
    p.add_argument("--ignore", metavar="COLUMN", default=[], **several, help="columns that are no voters")
    p.add_argument(
        "--sizes", "--prompts", metavar="N", default=["3", "5", "9"], **several, help="numbers of voters, or 'all'"
    )
    p.add_argument("--selector", default="auto", choices=SELECTOR_NAMES, help="what picks the voters")
    p.add_argument(
        "--ensembler", metavar="NAME", default=[], **several, help=f"of: {', '.join(ENSEMBLERS)}; default: all"
    )
    p.add_argument(
        "--calibrator", metavar="NAME", default=[], **several, help=f"of: {', '.join(CALIBRATORS)}; default: all"
    )
    p.add_argument(
        "--weighting",
        default="dataset-class",
        choices=("dataset-class", "dataset", "uniform"),
        help="what weighs the same",
    )
    p.add_argument("--recipe", default="deep", choices=tuple(RECIPES), help="whose choices the table shows")
    p.add_argument("--compare-recipes", action="store_true", help="show both recipes side by side")
    p.add_argument("--hold-out", default="dataset", choices=("dataset", "family"), help="leave out siblings too")
    p.add_argument(
        "--max-failure-rate",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="refuse voters that failed on more of a dataset, by the reasons beside the votes",
    )
    p.add_argument("--bins", type=int, default=8, metavar="N", help="bins of the calibration error")
    p.add_argument("--n-boot", type=int, default=10_000, metavar="N", help="resamples of every interval and test")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of everything that draws")
    add_jobs(p)
    p.add_argument("--out", type=Path, metavar="DIR", help="folder for results; default: runs/loo-<test>")
    p.add_argument("--json", action="store_true", help="print results.json to stdout and nothing else")
    return p


def settings_from(args: argparse.Namespace) -> LooOptions:
    """Return the settings that the options name."""
    return LooOptions(
        sizes=[_size(text) for text in args.sizes],
        selector=args.selector,
        ensemblers=tuple(dict.fromkeys(args.ensembler)) or tuple(ENSEMBLERS),
        calibrators=tuple(dict.fromkeys(args.calibrator)) or tuple(CALIBRATORS),
        weighting=args.weighting,
        recipe=args.recipe,
        compare_recipes=args.compare_recipes,
        unit=args.hold_out,
        n_bins=args.bins,
        n_boot=args.n_boot,
        random_state=args.seed,
        n_jobs=args.jobs,
    )


def _size(text: str) -> int | str:
    if text == "all" or not text.isdecimal():
        return text
    return int(text)


def load(args: argparse.Namespace) -> tuple[VoteMatrix, ScoreTable | None, str | list[str]]:
    """Return votes, aligned scores, and where the votes came from; refuse voters that failed too often."""
    in_scores = set(table_columns(args.scores)) if args.scores else set()
    origin: str | list[str] = SIMULATED
    if not args.votes:
        votes = simulate_votes(args.seed)
        unknown = [name for name in args.ignore if name not in in_scores]
        if unknown:
            raise InputError(f"`ignore` must name columns of --votes or --scores. Got {unknown[0]!r}, and no --votes.")
    else:
        in_votes = set(table_columns(args.votes))
        # A name that neither has goes to the votes, whose error lists what there is.
        ignored = [name for name in args.ignore if name in in_votes or name not in in_scores]
        votes, origin = read_votes(args.votes, ignore=ignored), [str(path) for path in args.votes]
        check_failures(read_reasons(args.votes, votes), args.max_failure_rate)
    if not args.scores:
        return votes, None, origin
    scores = read_scores(args.scores, ignore=[name for name in args.ignore if name in in_scores])
    return votes, join_scores(votes, scores), origin


def published_rows(test: str) -> list[dict[str, Any]]:
    """Return the paper's Table 3 for one dataset as baseline rows; its figures are not ours."""
    return [
        {
            "name": cell.method,
            "kind": "published",
            "threshold_from": "train" if cell.kind == "encoder" else None,
            "threshold": None,
            "balanced_accuracy": cell.balanced_accuracy,
            "balanced_accuracy_ci": [cell.balanced_accuracy - cell.margin, cell.balanced_accuracy + cell.margin],
            "precision": None,
            "recall": None,
        }
        for cell in published_baselines()
        if cell.dataset == test
    ]


def run_all(settings: LooOptions, tests: Sequence[str], loaded: Any) -> list[LooResult]:
    """Hold out each of `tests` in turn."""
    votes, scores, origin = loaded
    found = []
    with progress_bars() as progress:
        datasets = progress("datasets", len(tests))
        for test in tests:
            result = leave_one_dataset_out(
                votes,
                test,
                settings=settings,
                scores=scores,
                published=published_rows(test) if origin == SIMULATED else (),
                progress=progress,
            )
            found.append(LooResult({"votes": origin, **result.results}, result.scores))
            datasets()
    return found


def whole(args: argparse.Namespace, found: Sequence[LooResult]) -> dict[str, Any]:
    """Return what `results.json` holds: one run, or all of them with their means."""
    runs = [result.results for result in found]
    if args.test != "all":
        return runs[0]
    return {
        "schema_version": SCHEMA_VERSION,
        "test": "all",
        "votes": runs[0]["votes"],
        "runs": runs,
        "mean": mean_of_runs(runs),
        "seconds": {"total": round(sum(run["seconds"]["total"] for run in runs), 3)},
    }


def write_scores(found: Sequence[LooResult], path: Path, origin: str | list[str]) -> None:
    """Write the scored items of every run; the file's metadata say where the votes came from."""
    table = pa.Table.from_pandas(pd.concat([result.scores for result in found]), preserve_index=False)
    kept = table.schema.metadata | {b"deep.votes": json.dumps(origin).encode()}
    pq.write_table(table.replace_schema_metadata(kept), path)


def report(args: argparse.Namespace, results: dict[str, Any], folder: Path) -> None:
    """Print the results, for a program or for a person."""
    if args.json:
        sys.stdout.write(to_json(results))
        return
    lines = [line for run in results.get("runs", [results]) for line in (*summary(run), "")]
    if "mean" in results:
        lines += [*mean_summary(results["mean"]), ""]
    if results["votes"] == SIMULATED:
        lines.append(NOTICE)
    lines.append(f"{results['seconds']['total']:.1f} s. Everything is in {folder}")
    sys.stdout.write("\n".join(lines) + "\n")


def run(argv: Sequence[str] | None) -> int:
    """Read the options, hold out, write and report."""
    args = parser().parse_args(argv)
    settings = settings_from(args)
    votes, scores, origin = load(args)
    tests = (
        list(votes.dataset_names)
        if args.test == "all"
        else [resolve_dataset(args.test, votes.dataset_names, param="test")]
    )
    folder = args.out or Path("runs") / f"loo-{'all' if args.test == 'all' else tests[0]}"
    check_replaceable(folder)
    settings.sizes_for(votes.shape[1])
    try:
        found = run_all(settings, tests, (votes, scores, origin))
    except UnlabeledTrainingError as error:
        where = locate_row(args.votes, error.dataset, error.example_id, "label")
        raise InputError(f"{error} It is in {where}.") from error
    results = whole(args, found)
    with whole_folder(folder) as scratch:
        (scratch / "results.json").write_text(to_json(results), encoding="utf-8")
        write_scores(found, scratch / "scores.parquet", origin)
        runs = [result.results for result in found]
        write_tables(runs, scratch / "tables", votes=origin if isinstance(origin, str) else ", ".join(origin))
        thresholds = {} if scores is None else optimal_thresholds(votes, scores)
        write_figures(found, scratch / "figures", thresholds=thresholds, simulated=origin == SIMULATED)
    report(args, results, folder)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)
