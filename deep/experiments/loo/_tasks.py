"""What a hold-out has to fit, in parallel: every ensembler on every subset of voters, and the pool."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from joblib import delayed

from deep.console import in_processes
from deep.datasets import ScoreTable
from deep.ensembles import ENSEMBLERS
from deep.evaluate import HoldOut, TestCells
from deep.exceptions import InputError
from deep.experiments.loo._pooled import Pooled, fit_pool
from deep.experiments.loo._settings import Settings
from deep.model import Candidate, Recipe, Subset, TrainingSet, fit_candidates, task_seed

__all__ = ["Outcome", "PoolTask", "Scored", "Step", "Task", "run_tasks"]

Step = Callable[[], None]

Scored = tuple[Candidate, dict[str, Any]]
"""A candidate chain and its metrics on the held-out dataset."""


@dataclass(frozen=True)
class Outcome:
    """What came of a task: chains with their metrics or a pool, or the reason why there is nothing.

    Parameters
    ----------
    ensembler : str
    recipe : str
    scored : list of (Candidate, dict)
    pooled : Pooled or None
    seconds : float
        Of processor time.
    warning : str or None
    """

    ensembler: str
    recipe: str
    scored: list[Scored] = field(default_factory=list)
    pooled: Pooled | None = None
    seconds: float = 0.0
    warning: str | None = None


@dataclass(frozen=True)
class Task:
    """One ensembler on one subset of the voters, with every calibrator."""

    ensembler: str
    subset: Subset
    training: TrainingSet
    recipe: Recipe

    @property
    def cost(self) -> float:
        """Return something that grows with the time it takes."""
        return len(self.subset.columns)

    def run(self, target: TestCells, settings: Settings) -> Outcome:
        """Fit and measure; one ensembler that cannot be fitted does not stop the others."""
        size, least = len(self.subset.columns), ENSEMBLERS[self.ensembler].min_voters
        if size < least:
            return self._without(f"{self.ensembler} needs at least {least} voters; left out at size {size}.")
        started = time.process_time()
        try:
            candidates = fit_candidates(
                self.ensembler,
                self.subset,
                self.training,
                target.patterns,
                calibrators=settings.calibrators,
                recipe=self.recipe,
                random_state=task_seed(self.ensembler, self.subset.columns, self.recipe.name, settings.random_state),
            )
        except InputError as error:
            return self._without(f"{self.ensembler} was left out at size {size}: {error}")
        options = {"n_bins": settings.n_bins, "n_boot": settings.n_boot, "random_state": settings.random_state}
        scored = [(candidate, target.metrics(candidate.p, **options)) for candidate in candidates]
        return Outcome(self.ensembler, self.recipe.name, scored, seconds=time.process_time() - started)

    def _without(self, warning: str) -> Outcome:
        return Outcome(self.ensembler, self.recipe.name, warning=warning)


@dataclass(frozen=True)
class PoolTask:
    """The pool of all voters, and of encoder scores where there are any."""

    split: HoldOut
    scores: ScoreTable | None

    cost = float("inf")

    def run(self, _target: TestCells, settings: Settings) -> Outcome:
        """Fit the pool and score the held-out rows."""
        started = time.process_time()
        pooled = fit_pool(self.split, self.scores, settings)
        return Outcome("Pool", "deep", pooled=pooled, seconds=time.process_time() - started)


def run_tasks(tasks: Sequence[Task | PoolTask], target: TestCells, settings: Settings, step: Step) -> list[Outcome]:
    """Run tasks in as many processes as the settings say.

    Parameters
    ----------
    tasks : sequence of Task or PoolTask
    target : TestCells
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
    order = sorted(range(len(tasks)), key=lambda i: -tasks[i].cost)
    calls = [delayed(_run)(i, tasks[i], target, settings) for i in order]
    # The pool has a label model among its members.
    libraries = dict.fromkeys((*settings.ensemblers, "LabelModel"))
    found: dict[int, Outcome] = {}
    for i, outcome in in_processes(calls, settings.n_jobs, ensemblers=libraries, ordered=False):
        found[i] = outcome
        step()
    outcomes = [found[i] for i in range(len(tasks))]
    if not any(outcome.scored for outcome in outcomes):
        reasons = " ".join(outcome.warning for outcome in outcomes if outcome.warning)
        raise InputError(f"`ensembler` must name one that can be fitted on these votes. {reasons}")
    return outcomes


def _run(position: int, task: Task | PoolTask, target: TestCells, settings: Settings) -> tuple[int, Outcome]:
    return position, task.run(target, settings)
