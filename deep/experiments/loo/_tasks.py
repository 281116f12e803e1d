"""Every ensembler on every subset of voters, in parallel, measured on the held-out dataset."""

import signal
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed

from deep.ensembles import ENSEMBLERS
from deep.exceptions import InputError
from deep.experiments.loo._score import TestCells
from deep.experiments.loo._settings import Settings
from deep.model import Candidate, Recipe, Subset, TrainingSet, fit_candidates, task_seed

__all__ = ["Outcome", "Scored", "Step", "Task", "run_tasks"]

Step = Callable[[], None]

Scored = tuple[Candidate, dict[str, Any]]
"""A candidate chain and its metrics on the held-out dataset."""


@dataclass(frozen=True)
class Task:
    """One ensembler on one subset of the voters."""

    ensembler: str
    subset: Subset

    @property
    def possible(self) -> bool:
        """Return whether the ensembler can be fitted on so few voters."""
        return len(self.subset.columns) >= ENSEMBLERS[self.ensembler].min_voters

    def seed(self, recipe: str, random_state: int) -> int:
        """Return a seed that depends on what is fitted and not on when or where."""
        return task_seed(self.ensembler, self.subset.columns, recipe, random_state)


@dataclass(frozen=True)
class Outcome:
    """What came of a task: chains with their metrics, or the reason why there are none.

    Parameters
    ----------
    scored : list of (Candidate, dict)
    seconds : float
        Of processor time.
    warning : str or None
    """

    scored: list[Scored]
    seconds: float
    warning: str | None = None


def run_tasks(
    tasks: Sequence[Task], training: TrainingSet, target: TestCells, recipe: Recipe, settings: Settings, step: Step
) -> list[Outcome]:
    """Run tasks in as many processes as the settings say.

    Parameters
    ----------
    tasks : sequence of Task
    training : TrainingSet
    target : TestCells
    recipe : Recipe
    settings : Settings
    step : callable
        Called after each task.

    Returns
    -------
    list of Outcome
        In the order of `tasks`, whatever the number of processes.

    Raises
    ------
    InputError
        No task has any chain to show.
    """
    # The costliest start first, so that no process is left alone with one at the end.
    order = sorted(range(len(tasks)), key=lambda i: -len(tasks[i].subset.columns))
    calls = (delayed(_run)(i, tasks[i], training, target, recipe, settings) for i in order)
    found: dict[int, Outcome] = {}
    n_jobs = settings.n_jobs if settings.n_jobs < 0 else max(1, min(settings.n_jobs, len(tasks)))
    # On Ctrl-C the main process ends its workers; a word from each of them would only hide its own.
    pool = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered", initializer=_ignore_interrupt)
    with warnings.catch_warnings():
        # A worker that has grown, as one does when it loads torch, is replaced by a fresh one between two tasks.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs", category=UserWarning)
        for i, outcome in pool(calls):
            found[i] = outcome
            step()
    outcomes = [found[i] for i in range(len(tasks))]
    if not any(outcome.scored for outcome in outcomes):
        reasons = " ".join(outcome.warning for outcome in outcomes if outcome.warning)
        raise InputError(f"`ensembler` must name one that can be fitted on these votes. {reasons}")
    return outcomes


def _ignore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(
    position: int, task: Task, training: TrainingSet, target: TestCells, recipe: Recipe, settings: Settings
) -> tuple[int, Outcome]:
    """Fit with every calibrator and measure; one ensembler that cannot be fitted does not stop the others."""
    size = len(task.subset.columns)
    if not task.possible:
        least = ENSEMBLERS[task.ensembler].min_voters
        return position, Outcome([], 0.0, f"{task.ensembler} needs at least {least} voters; left out at size {size}.")
    started = time.process_time()
    try:
        candidates = fit_candidates(
            task.ensembler,
            task.subset,
            training,
            target.patterns,
            calibrators=settings.calibrators,
            recipe=recipe,
            random_state=task.seed(recipe.name, settings.random_state),
        )
    except InputError as error:
        return position, Outcome([], 0.0, f"{task.ensembler} was left out at size {size}: {error}")
    options = {"n_bins": settings.n_bins, "n_boot": settings.n_boot, "random_state": settings.random_state}
    scored = [(candidate, target.metrics(candidate.p, **options)) for candidate in candidates]
    return position, Outcome(scored, time.process_time() - started)
