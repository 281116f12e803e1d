"""The chains of a run, which may be searched for in several processes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Votes
from deep._odds import expit, logit
from deep.console import in_processes
from deep.evaluate import Row, TestCells
from deep.experiments.loo._settings import LooOptions
from deep.features import distinct_patterns
from deep.model import Candidate, ChainAttempt, ChainTask, all_candidates

Step = Callable[[], None]

Scored = tuple[Candidate, Row]
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
    scored: list[Scored] = field(default_factory=list)
    warning: str | None = None
    seconds: float = 0.0


def run_tasks(
    tasks: Sequence[ChainTask], targets: Sequence[TestCells], options: LooOptions, step: Step
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
    all_candidates(ChainAttempt([candidate for candidate, _ in o.scored], o.warning) for o, *_ in outcomes)
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


def _measure(numbered: tuple[int, ChainTask], targets: _Targets, options: LooOptions) -> tuple[int, list[LooOutcome]]:
    """Run one task and measure its candidates on each held-out dataset."""
    (position, task), started = numbered, time.process_time()
    attempt = task.run(targets.patterns)
    found = [
        [
            _scored(replace(candidate, p=_by_log_odds(candidate.p[where])), target, options)
            for candidate in attempt.candidates
        ]
        for target, where in targets.each
    ]
    seconds = time.process_time() - started
    of_task = partial(LooOutcome, task.ensembler, task.recipe.name, warning=attempt.reason, seconds=seconds)
    return position, [of_task(scored) for scored in found]


def _by_log_odds(p: Floats) -> Floats:
    """Return P as the model of a chain gives it, from its log-odds: the same to the last digit on any processor."""
    return expit(logit(p))


def _scored(candidate: Candidate, target: TestCells, options: LooOptions) -> Scored:
    return candidate, _metrics(candidate, target, options)


def _metrics(candidate: Candidate, target: TestCells, options: LooOptions) -> Row:
    found = target.metrics(candidate.p, n_bins=options.n_bins, n_boot=options.n_boot, random_state=options.random_state)
    if options.netcal and target.labeled:
        found["ece_netcal"] = target.netcal_ece(candidate.p, n_bins=options.n_bins)
    return found
