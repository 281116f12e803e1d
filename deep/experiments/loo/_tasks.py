"""The chains of a run, which may be searched for in several processes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from deep.console import in_processes
from deep.evaluate import Row, TestCells
from deep.experiments.loo._settings import LooOptions
from deep.model import Candidate, ChainAttempt, ChainTask, all_candidates

Step = Callable[[], None]

Scored = tuple[Candidate, Row]
"""A candidate chain and its metrics on the held-out dataset."""


@dataclass(frozen=True)
class LooOutcome:
    """One ensembler's chains with their metrics, or the reason why there are none.

    Parameters
    ----------
    ensembler : str
    recipe : str
    scored : list of (Candidate, dict)
    warning : str or None
    seconds : float
        Of processor time.
    """

    ensembler: str
    recipe: str
    scored: list[Scored] = field(default_factory=list)
    warning: str | None = None
    seconds: float = 0.0


def run_tasks(tasks: Sequence[ChainTask], target: TestCells, options: LooOptions, step: Step) -> list[LooOutcome]:
    """Run the tasks, in as many processes as the options say.

    Parameters
    ----------
    tasks : sequence of ChainTask
    target : TestCells
    options : LooOptions
    step : callable
        Called after each task.

    Returns
    -------
    list of LooOutcome
        In the order of `tasks`, whatever the number of processes.

    Raises
    ------
    InputError
        There are tasks, and none of them has any chain to show.
    """
    if not tasks:
        return []
    # The costliest start first, so that no process is left alone with one at the end.
    order = sorted(range(len(tasks)), key=lambda i: -len(tasks[i].subset.columns))
    measure = partial(_measure, target=target, options=options)
    found: dict[int, LooOutcome] = {}
    for position, outcome in in_processes(measure, [(i, tasks[i]) for i in order], options.n_jobs, ordered=False):
        found[position] = outcome
        step()
    outcomes = [found[i] for i in range(len(tasks))]
    all_candidates(ChainAttempt([candidate for candidate, _ in o.scored], o.warning) for o in outcomes)
    return outcomes


def _measure(numbered: tuple[int, ChainTask], target: TestCells, options: LooOptions) -> tuple[int, LooOutcome]:
    """Run one task and measure its candidates on the held-out dataset."""
    (position, task), started = numbered, time.process_time()
    attempt = task.run(target.patterns)
    scored = [(candidate, _metrics(candidate, target, options)) for candidate in attempt.candidates]
    seconds = time.process_time() - started
    return position, LooOutcome(task.ensembler, task.recipe.name, scored, warning=attempt.reason, seconds=seconds)


def _metrics(candidate: Candidate, target: TestCells, options: LooOptions) -> Row:
    found = target.metrics(candidate.p, n_bins=options.n_bins, n_boot=options.n_boot, random_state=options.random_state)
    if options.netcal and target.labeled:
        found["ece_netcal"] = target.netcal_ece(candidate.p, n_bins=options.n_bins)
    return found
