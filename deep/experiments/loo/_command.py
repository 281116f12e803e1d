"""`deep loo`: leave one dataset out."""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

import deep.report as report
from deep import calibration, console, datasets, ensembles, evaluate, model
from deep._util.checks import check_choice
from deep._util.entry_points import load_part
from deep._util.files import check_replaceable, write_results
from deep._util.names import file_name, resolve_dataset
from deep._util.options import option, topic_values
from deep.evaluate import HoldOutUnit
from deep.exceptions import ExitStatus, InputError
from deep.experiments import loo
from deep.model import AVERAGE, RECIPE_NAMES, SELECTOR_NAMES, STACK, UNCALIBRATED, ChainOptions, Weighting

if TYPE_CHECKING:
    from deep.datasets import ScoreTable
    from deep.records import VoteMatrix


@dataclass(frozen=True)
class Encoders:
    """Encoders beside the votes that are held out.

    Parameters
    ----------
    texts : str, optional
        With --scores: the items' texts, to relate thresholds to the length of the source.
    """

    scores: tuple[str, ...] = option((), "FILE", help=f"tables of encoder scores, or '{console.SIMULATED}'")
    texts: str | None = option(None, "FILE")


@dataclass(frozen=True)
class LooOptions(ChainOptions, console.Computation):
    """The options of :func:`leave_one_dataset_out`, beside those of a chain and of computation.

    What is asked for by one of the options of a chain decides what is recommended, and P. With none of them it is what
    :func:`deep.model.fit` chooses, and the table shows the default ensemblers and calibrators at 3, 5 and 9 voters
    beside it.

    Parameters
    ----------
    tables : sequence of str, optional
        The recipes whose chains the table shows; default: the one asked for, else deep's.
    netcal : bool, default=False
        Add netcal's calibration error of every chain and, for unweighted recipes, its calibrators on the fewest voters.
    all_chains : bool, default=False
        Write chains.parquet: P by every chain.
    unit : {'dataset', 'family'}, default='dataset'
        Also leave out datasets of the same family.
    n_bins : int, default=8
        Bins of the calibration error.

    Raises
    ------
    InputError
        A name is unknown, a number is out of range, or a list is empty.
    """

    tables: Sequence[str] = ()
    netcal: bool = False
    all_chains: bool = option(False)
    unit: HoldOutUnit = option("dataset", flags=["--hold-out"])
    n_bins: int = option(calibration.DEFAULT_BINS, "N", flags=["--bins"])

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("n_bins", 1), ("n_boot", 100), ("random_state", 0)):
            if getattr(self, name) < least:
                raise InputError(f"`{name}` must be at least {least}. Got {getattr(self, name)!r}.")
        for name in ("calibrator", "ensembler", "sizes"):
            if getattr(self, name) is not None and not getattr(self, name):
                raise InputError(f"`{name}` must name at least one. Got an empty list.")
        if self.n_jobs == 0 or self.n_jobs < -1:
            raise InputError(f"`n_jobs` must be at least 1, or -1 for one a core. Got {self.n_jobs!r}.")
        choices: dict[str, tuple[Sequence[str | None], Sequence[str]]] = {
            "selector": ([self.selector], SELECTOR_NAMES),
            "weighting": ([self.weighting], get_args(Weighting)),
            "recipe": ([*self.tables, self.recipe], RECIPE_NAMES),
            "hold_out": ([self.unit], get_args(HoldOutUnit)),
            "ensembler": (self.ensembler or (), (*ensembles.ENSEMBLER_NAMES, AVERAGE, STACK)),
            "calibrator": (self.calibrator or (), (*calibration.CALIBRATOR_NAMES, UNCALIBRATED)),
        }
        for name, (values, allowed) in choices.items():
            for value in values:
                if value is not None:
                    check_choice(value, allowed, name)
        _ = self.own  # which refuses others beside it

    @property
    def own_recipe(self) -> str:
        """Return the recipe of a chain that is asked for."""
        return self.recipe or "deep"

    @property
    def rivals_weighting(self) -> Weighting:
        """Return the weighting under which the best judge and the thresholds of encoders are chosen."""
        recipe = self.recipe or (self.tables[0] if len(self.tables) == 1 else "deep")
        return self.weighting or model.RECIPES[recipe].weighting

    @property
    def shown(self) -> tuple[model.Recipe, ...]:
        """Return the recipes whose chains are run and tabulated; none where only the stack or the average is wanted."""
        if self.own is not None:
            return ()
        return tuple(model.RECIPES[name] for name in dict.fromkeys(self.tables or (self.own_recipe,)))

    def table_ensemblers(self, recipe: str) -> tuple[str, ...]:
        """Return the ensemblers of the table of a recipe; of none named, those of guests that are installed too."""
        if self.ensembler is None:
            return ensembles.default_ensemblers(recipe) + ensembles.guest_ensemblers()
        return tuple(dict.fromkeys(self.ensembler))

    @property
    def table_calibrators(self) -> tuple[str, ...]:
        """Return the calibrators of the table, first of all none."""
        names = tuple(calibration.CALIBRATORS) if self.calibrator is None else self.calibrator
        return tuple(dict.fromkeys((UNCALIBRATED, *names)))

    @property
    def resampling(self) -> dict[str, int]:
        """Return how metrics and their intervals are drawn."""
        return {"n_bins": self.n_bins, "n_boot": self.n_boot, "random_state": self.random_state}

    def sizes_for(self, n_voters: int) -> list[int]:
        """Return the distinct sizes for a number of voters, in the order given."""
        return model.distinct_sizes(self.sizes or model.DEFAULT_SUBSET_SIZES, n_voters)


@dataclass(frozen=True)
class _LooCommandOptions:
    """Options of the command.

    Parameters
    ----------
    test : str
        Dataset to hold out, an alias of it, or 'all' (many in groups).
    compare_recipes : bool, default=False
        Show the chains of both recipes.
    out : Path, optional
        Folder for results; default: runs/loo-<test>.
    few : tuple of str, optional
        Study few training datasets (how many, or 'all'; default 1 2 3) and few labels of the target.
    brief : bool, default=False
        Print only the recommendation and its rivals.
    train : tuple of str, optional
        Datasets to learn from; default: all others.
    seeds : int, default=1
        Repeat with this many seeds (of simulated votes: other draws); write mean and spread.
    """

    test: str = option(MISSING, "NAME")
    compare_recipes: bool = option(False)
    out: Path | None = option(None, "DIR")
    few: tuple[str, ...] | None = option(None, "K", nargs="*", action="store", default=None)
    brief: bool = option(False)
    train: tuple[str, ...] = option((), "NAME", rare=True)
    seeds: int = option(1, "N", rare=True)


# The heading under which the help shows the options that choose what is recommended.
RECOMMENDED_OPTION_GROUP = {"group": "recommend this one; default: deep's choice"}

add_arguments = console.adder(
    *("votes", Encoders, "scale", "ignore", "max-failure-rate", "strict"),
    *(_LooCommandOptions, LooOptions, "json"),
    **dict.fromkeys(("selector", "ensembler", "calibrator", "recipe", "weighting"), RECOMMENDED_OPTION_GROUP),
    sizes={"flags": ["--sizes", "--prompts"], **RECOMMENDED_OPTION_GROUP},
    scale={"flags": ["--scale", "--range"], "rare": True},
    json={"help": "print results.json to stdout and nothing else"},
)


def _read_loo_options(args: argparse.Namespace) -> LooOptions:
    values = topic_values(LooOptions, args)
    values |= {name: tuple(dict.fromkeys(values[name])) for name in ("ensembler", "calibrator") if name in values}
    sizes = [int(word) if word.isdecimal() else word for word in args.sizes] or None
    beside = {"sizes": sizes, "tables": RECIPE_NAMES if args.compare_recipes else ()}
    return LooOptions(**values | beside, netcal=find_spec("netcal") is not None)


def _results_content(args: argparse.Namespace, results: "Sequence[loo.LooResult]", seconds: float) -> "evaluate.Run":
    """Return the contents of `results.json`: one run, or all of them with their means."""
    from deep.experiments.loo._run import SCHEMA_VERSION
    from deep.experiments.loo._show import mean_of_runs

    runs = [result.results for result in results]
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


def _output_lines(results: "evaluate.Run", folder: Path, *, brief: bool) -> Iterator[str]:
    from deep.experiments.loo._show import library_lines, mean_summary, source_of, summary_lines, table_lines

    runs = results.get("runs", [results])
    for run in runs:
        yield from (*summary_lines(run), "")
    if not brief:
        yield from table_lines(runs)
        yield from library_lines(runs)
    if "mean" in results:
        yield from (*mean_summary(results["mean"], source_of(results, {})), "")
    if "few" in results:
        few = load_part("few-datasets")
        yield from console.study_lines(few.few_verdict(results["few"]), "\n".join(few.few_lines(results["few"])))
    if results["votes"] == console.SIMULATED:
        yield console.NOTICE
    if (folder / "seeds-spread.md").is_file():
        yield from console.plain_tables((folder / "seeds-spread.md").read_text(encoding="utf-8"))
    files = ", ".join(sorted(path.name + "/" * path.is_dir() for path in folder.iterdir()))
    yield f"{results['seconds']['total']:.1f} s. Everything is in {folder}: {files}"
    yield report.report_line(folder)


def _select_training_datasets(
    args: argparse.Namespace, votes: "VoteMatrix", scores: "ScoreTable | None", tests: Sequence[str]
) -> "tuple[VoteMatrix, ScoreTable | None]":
    """Return the rows of the dataset held out and of those that `--train` names."""
    names = [resolve_dataset(name, votes.dataset_names, param="train") for name in args.train]
    if args.test == "all" or set(names) & set(tests):
        raise InputError(f"`train` must name datasets beside the one held out. Got {args.train} with {args.test!r}.")
    mask = np.isin(votes.datasets.astype(str), [*names, *tests])
    if scores is not None:
        rows = {name: getattr(scores, name)[mask] for name in ("scores", "item_ids", "datasets", "labels")}
        scores = replace(scores, **rows)
    return votes.rows(mask), scores


def run(args: argparse.Namespace) -> int:
    """Hold out, write and report."""
    from deep.experiments.loo._run import run_all, write_chains, write_held_out, write_scores
    from deep.experiments.loo._run_tables import seed_tables

    console.prepare_processes(args.jobs)
    settings, origin = _read_loo_options(args), console.origin_of(args)
    votes, scores = loo.read_votes_and_encoders(args)
    few = None if args.few is None else load_part("few-datasets")
    panel = () if few is None else few.few_panel(args.test, args.few, votes, scores)
    names = votes.dataset_names
    tests = list(names) if args.test == "all" else [resolve_dataset(args.test, names, param="test")]
    if args.train:
        votes, scores = _select_training_datasets(args, votes, scores, tests)
    folder = args.out or Path("runs") / f"loo-{'all' if args.test == 'all' else file_name(tests[0])}"
    check_replaceable(folder)
    console.check_apart(args, folder)
    settings.sizes_for(votes.shape[1])
    started = time.perf_counter()
    try:
        with console.progress_bars() as progress:
            outputs = run_all(settings, tests, votes, scores, origin, progress)
            seeds = {settings.random_state: [result.results for result in outputs]}
            for seed in range(settings.random_state + 1, settings.random_state + args.seeds):
                again = datasets.simulate_votes(seed) if origin == console.SIMULATED else votes
                seed_votes = again.rows(np.isin(again.datasets, votes.dataset_names))
                repeats = run_all(replace(settings, random_state=seed), tests, seed_votes, scores, origin, progress)
                seeds[seed] = [result.results for result in repeats]
            studied = None
            if few is not None:
                mapper = console.parallel_map(settings.n_jobs, progress, "few")
                studied = few.few_study(*panel, mapper, n_bins=settings.n_bins, random_state=settings.random_state)
    except evaluate.UnlabeledTrainingError as error:
        where = datasets.locate_row(args.votes, error.dataset, error.example_id, "label")
        raise InputError(f"{error} It is in {where}.") from error
    answer = {} if few is None else {"few": studied, "verdict": few.few_verdict(studied).as_dict()}
    results = _results_content(args, outputs, time.perf_counter() - started) | answer
    with report.open_folder_with_report(folder) as scratch:
        if few is not None:
            few.write_few(studied, scratch)
        write_results(scratch, results)
        write_held_out(votes, tests, scratch / "votes.parquet")
        write_scores(outputs, scratch / "scores.parquet", origin)
        if args.seeds > 1:
            for name, title, table in seed_tables(seeds):
                evaluate.write_table(scratch, name, table, title)
        if settings.all_chains:
            write_chains(outputs, scratch / "chains.parquet", origin)
        runs = [result.results for result in outputs]
        loo.write_tables(runs, scratch / "tables", votes=origin)
        encoder_figures, moves = loo.encoder_parts(args, votes, scores, runs)
        for name, table in moves.items():
            evaluate.write_table(scratch / "tables", name, table, loo.MOVES_TITLE)
        loo.write_figures(outputs, scratch / "figures", encoders=encoder_figures, simulated=origin == console.SIMULATED)
    console.print_result(results, _output_lines(results, folder, brief=args.brief), as_json=args.json)
    return ExitStatus.DONE
