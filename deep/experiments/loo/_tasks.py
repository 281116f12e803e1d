"""The chains of a run, which may be searched for in several processes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep import model
from deep._util.checks import Votes, check_choice
from deep._util.odds import expit, logit
from deep.calibration import CALIBRATOR_NAMES, CALIBRATORS, DEFAULT_BINS
from deep.console import in_processes
from deep.ensembles import ENSEMBLER_NAMES, default_ensemblers
from deep.evaluate import HoldOut, HoldOutUnit, Row
from deep.exceptions import InputError
from deep.experiments.loo._rivals import TestCells
from deep.features import distinct_patterns


@dataclass(frozen=True)
class LooOptions:
    """The options of :func:`leave_one_dataset_out`.

    What is asked for by one of the first six decides what is recommended, and P. With none of them it is what
    :func:`deep.model.fit` chooses, and the table shows the default ensemblers and calibrators at 3, 5 and 9 voters
    beside it.

    Parameters
    ----------
    sizes : sequence of int or 'all', optional
        Numbers of voters to ensemble; one above the number of voters counts as 'all'.
    selector : {'auto', 'exhaustive', 'mrmr', 'mrmr-selection', 'rfe'}, optional
    ensemblers : sequence of str, optional
        Of `ENSEMBLER_NAMES`, or 'Stack' or 'Average' alone.
    calibrators : sequence of str, optional
        Of `CALIBRATOR_NAMES`, or 'none'. The table shows uncalibrated probabilities in any case.
    weighting : {'dataset', 'dataset-class', 'uniform'}, optional
        What weighs the same.
    recipe : {'deep', 'paper'}, optional
    tables : sequence of str, optional
        The recipes whose chains the table shows; default: the one asked for, else deep's.
    all_chains : bool, default=False
        Keep P of every chain that was run.
    unit : {'dataset', 'family'}, default='dataset'
        Whether siblings of the held-out dataset may be trained on.
    netcal : bool, default=False
        netcal's calibrators on the smallest number of voters, and netcal's calibration error of every chain, in the
        table beside deep's. For recipe 'paper', which does not weigh.
    n_bins : int, default=8
        Of the calibration error.
    n_boot : int, default=10_000
        Resamples of every interval and test.
    random_state : int, default=0
    n_jobs : int, default=1
        Processes; -1 for one a core. Results do not depend on it. A script that asks for more than one needs its
        ``if __name__ == "__main__"``.

    Raises
    ------
    InputError
        A name is unknown, a number is out of range, or a list is empty.
    """

    sizes: Sequence[int | str] | None = None
    selector: str | None = None
    ensemblers: Sequence[str] | None = None
    calibrators: Sequence[str] | None = None
    weighting: model.Weighting | None = None
    recipe: str | None = None
    tables: Sequence[str] = ()
    all_chains: bool = False
    netcal: bool = False
    unit: HoldOutUnit = "dataset"
    n_bins: int = DEFAULT_BINS
    n_boot: int = 10_000
    random_state: int = 0
    n_jobs: int = 1

    def __post_init__(self) -> None:
        self._check_names()
        for name, least in (("n_bins", 1), ("n_boot", 100), ("random_state", 0)):
            if getattr(self, name) < least:
                raise InputError(f"`{name}` must be at least {least}. Got {getattr(self, name)!r}.")
        for name in ("calibrators", "ensemblers", "sizes"):
            if getattr(self, name) is not None and not getattr(self, name):
                raise InputError(f"`{name}` must name at least one. Got an empty list.")
        if self.n_jobs == 0 or self.n_jobs < -1:
            raise InputError(f"`n_jobs` must be at least 1, or -1 for one a core. Got {self.n_jobs!r}.")

    def _check_names(self) -> None:
        """Raise where a name is unknown, or the stack is asked for beside something else."""
        asked = self.asked
        if self.selector is not None:
            check_choice(self.selector, model.SELECTOR_NAMES, "selector")
        if self.weighting is not None:
            check_choice(self.weighting, ("dataset", "dataset-class", "uniform"), "weighting")
        for name in (*self.tables, *([] if self.recipe is None else [self.recipe])):
            check_choice(name, model.RECIPES, "recipe")
        check_choice(self.unit, ("dataset", "family"), "hold_out")
        for name in self.ensemblers or ():
            check_choice(name, (*ENSEMBLER_NAMES, model.AVERAGE, model.STACK), "ensembler")
        for name in self.calibrators or ():
            check_choice(name, (*CALIBRATOR_NAMES, model.UNCALIBRATED), "calibrator")
        _ = asked.own

    @property
    def asked(self) -> model.ChainOptions:
        """Return the options that :func:`deep.model.fit` is given."""
        return model.ChainOptions(
            recipe=self.recipe,
            weighting=self.weighting,
            sizes=self.sizes,
            ensembler=None if self.ensemblers is None else tuple(self.ensemblers),
            calibrator=None if self.calibrators is None else tuple(self.calibrators),
            selector=self.selector,
        )

    @property
    def own_recipe(self) -> str:
        """Return the recipe of a chain that is asked for."""
        return self.recipe or "deep"

    @property
    def rivals_weighting(self) -> model.Weighting:
        """Return the weighting under which the best judge and the thresholds of encoders are chosen."""
        recipe = self.recipe or (self.tables[0] if len(self.tables) == 1 else "deep")
        return self.weighting or model.RECIPES[recipe].weighting

    @property
    def shown(self) -> tuple[model.Recipe, ...]:
        """Return the recipes whose chains are run and tabulated; none where only the stack or the average is wanted."""
        if self.asked.own is not None:
            return ()
        return tuple(model.RECIPES[name] for name in dict.fromkeys(self.tables or (self.own_recipe,)))

    @property
    def table_ensemblers(self) -> tuple[str, ...]:
        """Return the ensemblers of the table; none where only the stack or the average is wanted."""
        if self.asked.own is not None:
            return ()
        return default_ensemblers() if self.ensemblers is None else tuple(dict.fromkeys(self.ensemblers))

    @property
    def table_calibrators(self) -> tuple[str, ...]:
        """Return the calibrators of the table, first of all none."""
        names = tuple(CALIBRATORS) if self.calibrators is None else self.calibrators
        return tuple(dict.fromkeys((model.UNCALIBRATED, *names)))

    def sizes_for(self, n_voters: int) -> list[int]:
        """Return the distinct sizes for a number of voters, in the order given."""
        return model.distinct_sizes(self.sizes or model.SIZES, n_voters)


Step = Callable[[], None]

ScoredChain = tuple[model.Candidate, Row]
"""A candidate chain and its metrics on the held-out dataset."""


@dataclass(frozen=True)
class LooOutcome:
    """One ensembler's chains with their metrics on one dataset, or the reason why there are none.

    Parameters
    ----------
    ensembler : str
    recipe : str
    scored : list of (Candidate, dict)
    warning : str or None
    seconds : float
        Of processor time, on all datasets held out together.
    """

    ensembler: str
    recipe: str
    scored: list[ScoredChain] = field(default_factory=list)
    warning: str | None = None
    seconds: float = 0.0


def run_tasks(
    tasks: Sequence[model.ChainTask], targets: Sequence[TestCells], options: LooOptions, step: Step
) -> list[list[LooOutcome]]:
    """Run the tasks, in as many processes as the options say.

    Parameters
    ----------
    tasks : sequence of ChainTask
    targets : sequence of TestCells
        The datasets that are held out together.
    options : LooOptions
    step : callable
        Called after each task.

    Returns
    -------
    list of list of LooOutcome
        Of each target, in the order of `tasks`, whatever the number of processes.

    Raises
    ------
    InputError
        There are tasks, and none of them has any chain to show.
    """
    if not tasks:
        return [[] for _ in targets]
    # The costliest start first, so that no process is left alone with one at the end.
    order = sorted(range(len(tasks)), key=lambda i: -len(tasks[i].subset.columns))
    measure = partial(_measure, targets=_merged(targets), options=options)
    found: dict[int, list[LooOutcome]] = {}
    for position, outcome in in_processes(measure, [(i, tasks[i]) for i in order], options.n_jobs, ordered=False):
        found[position] = outcome
        step()
    outcomes = [found[i] for i in range(len(tasks))]
    model.all_candidates(model.ChainAttempt([candidate for candidate, _ in o.scored], o.warning) for o, *_ in outcomes)
    return [list(of_target) for of_target in zip(*outcomes, strict=True)]


@dataclass(frozen=True, eq=False)
class _Targets:
    """Datasets held out together: the vote patterns of all, and which of them each one has."""

    patterns: Votes
    each: list[tuple[TestCells, npt.NDArray[np.intp]]]


def _merged(targets: Sequence[TestCells]) -> _Targets:
    patterns, where = distinct_patterns(np.concatenate([target.patterns for target in targets]))
    ends = np.cumsum([len(target.patterns) for target in targets])
    return _Targets(patterns, list(zip(targets, np.split(where, ends[:-1]), strict=True)))


def _measure(
    numbered: tuple[int, model.ChainTask], targets: _Targets, options: LooOptions
) -> tuple[int, list[LooOutcome]]:
    """Run one task and measure its candidates on each held-out dataset."""
    (position, task), started = numbered, time.process_time()
    attempt = task.run(targets.patterns)
    found = [
        [
            # P as the model of a chain gives it, from its log-odds: the same to the last digit on any processor.
            _scored(replace(candidate, p=expit(logit(candidate.p[where]))), target, options)
            for candidate in attempt.candidates
        ]
        for target, where in targets.each
    ]
    seconds = time.process_time() - started
    of_task = partial(LooOutcome, task.ensembler, task.recipe.name, warning=attempt.reason, seconds=seconds)
    return position, [of_task(scored) for scored in found]


def _scored(candidate: model.Candidate, target: TestCells, options: LooOptions) -> ScoredChain:
    found = target.metrics(candidate.p, n_bins=options.n_bins, n_boot=options.n_boot, random_state=options.random_state)
    if options.netcal and target.labeled:
        found["ece_netcal"] = target.netcal_ece(candidate.p, n_bins=options.n_bins)
    return candidate, found


Codes = npt.NDArray[np.intp]


def chain_table(split: HoldOut, target: TestCells, scored: Mapping[str, Sequence[ScoredChain]]) -> pd.DataFrame:
    """Return a row for each chain and item, the items of one chain together.

    Parameters
    ----------
    split : HoldOut
    target : TestCells
    scored : mapping of str to sequence of (Candidate, dict)
        The chains by recipe.

    Returns
    -------
    DataFrame
        ``dataset, item_id, recipe, ensembler, size, calibrator, p``: P as the chain gives it, at equal class weights
        under deep's recipe.
    """
    chains = [(recipe, candidate) for recipe, pairs in scored.items() for candidate, _ in pairs]
    n, n_items = len(chains), len(target.row_pattern)
    of_chain, of_item = np.repeat(np.arange(n), n_items), np.tile(np.arange(n_items), n)
    sizes = np.array([len(one.subset.columns) for _, one in chains], dtype=np.int32)
    p = [one.p[target.row_pattern] for _, one in chains]
    return pd.DataFrame(
        {
            "dataset": _names([split.name] * n_items, of_item),
            "item_id": _names(split.test.example_ids.astype(str), of_item),
            "recipe": _names([recipe for recipe, _ in chains], of_chain),
            "ensembler": _names([one.ensembler for _, one in chains], of_chain),
            "size": sizes[of_chain],
            "calibrator": _names([one.calibrator or model.UNCALIBRATED for _, one in chains], of_chain),
            "p": np.concatenate(p) if p else np.empty(0),
        }
    )


def _names(values: Sequence[str] | npt.NDArray[np.str_], rows: Codes) -> pd.Categorical:
    """Return the values at these rows, each name held once."""
    distinct, codes = np.unique(np.asarray(values, dtype=str), return_inverse=True)
    return pd.Categorical.from_codes(codes[rows], categories=distinct.tolist())
