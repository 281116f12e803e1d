"""`deep loo`: leave one dataset out."""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import deep.report as report
from deep import console, datasets, evaluate
from deep._util.entry_points import load_part
from deep._util.files import check_replaceable, write_results
from deep._util.names import file_name, resolve_dataset
from deep.calibration import CALIBRATOR_NAMES, DEFAULT_BINS
from deep.ensembles import ENSEMBLER_NAMES
from deep.exceptions import ExitStatus, InputError
from deep.experiments import loo

if TYPE_CHECKING:
    from deep.experiments.loo._model import LooOptions

SCORES = f"tables of encoder scores, or '{console.SIMULATED}'"
TEXTS = "with --scores: the items' texts, for how thresholds move with the length of the source"

ASKED: dict[str, dict[str, object]] = {
    "sizes": {"default": [], "flags": ["--sizes", "--prompts"], "help": "numbers of voters of a chain, or 'all'"},
    "selector": {"default": None},
    "ensembler": {"default": [], "help": f"of: {', '.join((*console.OWN_FITS, *ENSEMBLER_NAMES))}"},
    "calibrator": {
        "default": [],
        "help": f"of: {', '.join((console.UNCALIBRATED, *CALIBRATOR_NAMES))}",
    },
    "recipe": {"default": None},
}
"""What decides the recommendation where it is given."""


def add_arguments(parser: console.CommandParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add(
        "--test",
        required=True,
        metavar="NAME",
        help="dataset to hold out, an alias of it, or 'all' (many in groups)",
    )
    console.add_options(parser, "votes", "scores", "range", "ignore", scores={"help": SCORES})
    add("--texts", metavar="FILE", help=TEXTS)
    asked = parser.add_argument_group("what is recommended; default: what deep chooses")
    console.add_options(asked, *ASKED, **ASKED)
    asked.add_argument("--weighting", choices=("dataset-class", "dataset", "uniform"), help="what weighs the same")
    add("--compare-recipes", action="store_true", help="show the chains of both recipes")
    add("--all-chains", action="store_true", help="write chains.parquet: P by every chain")
    add("--hold-out", default="dataset", choices=("dataset", "family"), help="leave out siblings too")
    add("--bins", type=int, default=DEFAULT_BINS, metavar="N", help="bins of the calibration error")
    n_boot = {"help": "resamples of every interval and test"}
    console.add_options(parser, "max-failure-rate", "strict", "n-boot", "seed", "jobs", n_boot=n_boot)
    add("--out", type=Path, metavar="DIR", help="folder for results; default: runs/loo-<test>")
    few = "study few training datasets (numbers of them, or 'all'; 1 2 3) and few labels of the one held out"
    add("--few", nargs="*", metavar="K", help=few)
    add("--brief", action="store_true", help="print the recommendation and its rivals alone")
    console.add_options(parser, "json", json={"help": "print results.json to stdout and nothing else"})


def _settings(args: argparse.Namespace) -> "LooOptions":
    from deep.experiments.loo._model import LooOptions

    return LooOptions(
        sizes=[int(word) if word.isdecimal() else word for word in args.sizes] or None,
        selector=args.selector,
        ensemblers=tuple(dict.fromkeys(args.ensembler)) or None,
        calibrators=tuple(dict.fromkeys(args.calibrator)) or None,
        weighting=args.weighting,
        recipe=args.recipe,
        tables=console.RECIPES if args.compare_recipes else (),
        all_chains=args.all_chains,
        unit=args.hold_out,
        n_bins=args.bins,
        n_boot=args.n_boot,
        random_state=args.seed,
        n_jobs=args.jobs,
    )


def _whole(args: argparse.Namespace, found: "Sequence[loo.LooResult]", seconds: float) -> "evaluate.Run":
    """Return the contents of `results.json`: one run, or all of them with their means."""
    from deep.experiments.loo._run import SCHEMA_VERSION
    from deep.experiments.loo._show import mean_of_runs

    runs = [result.results for result in found]
    if args.test != "all":
        return runs[0]
    return {
        "schema_version": SCHEMA_VERSION,
        "test": "all",
        "votes": runs[0]["votes"],
        "runs": runs,
        "mean": mean_of_runs(runs),
        "seconds": {"total": round(seconds, 3)},
    }


def _lines(results: "evaluate.Run", folder: Path, *, brief: bool) -> Iterator[str]:
    from deep.experiments.loo._show import mean_summary, source_of, summary, tables

    runs = results.get("runs", [results])
    for run in runs:
        yield from (*summary(run), "")
    if not brief:
        yield from tables(runs)
    if "mean" in results:
        yield from (*mean_summary(results["mean"], source_of(results, {})), "")
    if "few" in results:
        few = load_part("few-datasets")
        yield from console.study_lines(few.few_verdict(results["few"]), "\n".join(few.few_lines(results["few"])))
    if results["votes"] == console.SIMULATED:
        yield console.NOTICE
    written = ", ".join(sorted(path.name + "/" * path.is_dir() for path in folder.iterdir()))
    yield f"{results['seconds']['total']:.1f} s. Everything is in {folder}: {written}"
    yield report.report_line(folder)


def run(args: argparse.Namespace) -> int:
    """Hold out, write and report."""
    from deep.experiments.loo._run import run_all, write_chains, write_held_out, write_scores

    console.prepare_processes(args.jobs)
    settings, origin = _settings(args), console.origin_of(args)
    votes, scores = loo.read_votes_and_encoders(args)
    few = None if args.few is None else load_part("few-datasets")
    panel = () if few is None else few.few_panel(args.test, args.few, votes, scores)
    names = votes.dataset_names
    tests = list(names) if args.test == "all" else [resolve_dataset(args.test, names, param="test")]
    folder = args.out or Path("runs") / f"loo-{'all' if args.test == 'all' else file_name(tests[0])}"
    check_replaceable(folder)
    console.check_apart(args, folder)
    settings.sizes_for(votes.shape[1])
    started = time.perf_counter()
    try:
        with console.progress_bars() as progress:
            found = run_all(settings, tests, votes, scores, origin, progress)
            studied = None
            if few is not None:
                mapper = console.parallel_map(settings.n_jobs, progress, "few")
                studied = few.few_study(*panel, mapper, n_bins=settings.n_bins, random_state=settings.random_state)
    except evaluate.UnlabeledTrainingError as error:
        where = datasets.locate_row(args.votes, error.dataset, error.example_id, "label")
        raise InputError(f"{error} It is in {where}.") from error
    answer = {} if few is None else {"few": studied, "verdict": few.few_verdict(studied).as_dict()}
    results = _whole(args, found, time.perf_counter() - started) | answer
    with report.reported_folder(folder) as scratch:
        if few is not None:
            few.write_few(studied, scratch)
        write_results(scratch, results)
        write_held_out(votes, tests, scratch / "votes.parquet")
        write_scores(found, scratch / "scores.parquet", origin)
        if settings.all_chains:
            write_chains(found, scratch / "chains.parquet", origin)
        runs = [result.results for result in found]
        loo.write_tables(runs, scratch / "tables", votes=origin)
        drawn = loo.write_encoders(args, votes, scores, runs, scratch / "tables")
        loo.write_figures(found, scratch / "figures", encoders=drawn, simulated=origin == console.SIMULATED)
    console.print_result(results, _lines(results, folder, brief=args.brief), as_json=args.json)
    return ExitStatus.DONE
