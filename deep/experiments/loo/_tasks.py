"""The tasks of a run, which may be spread over processes: every chain that is looked for, and the pool."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from joblib import delayed

from deep.console import in_processes
from deep.datasets import ScoreTable
from deep.evaluate import HoldOut, Row, TestCells
from deep.experiments.loo._pooled import Pooled, fit_pool
from deep.experiments.loo._settings import LooOptions
from deep.model import Candidate, ChainAttempt, ChainTask, all_candidates

Step = Callable[[], None]

POOL = -1
"""The position of the pool among the tasks."""

Scored = tuple[Candidate, Row]
"""A candidate chain and its metrics on the held-out dataset."""


@dataclass(frozen=True)
class LooOutcome:
    """One ensembler's chains with their metrics, or the pool, or the reason why there is nothing.

    Parameters
    ----------
    ensembler : str
    recipe : str
    scored : list of (Candidate, dict)
    pooled : Pooled or None
        In place of chains where the pool was fitted; None where the training datasets are too few for it.
    warning : str or None
    seconds : float
        Of processor time.
    """

    ensembler: str
    recipe: str
    scored: list[Scored] = field(default_factory=list)
    pooled: Pooled | None = None
    warning: str | None = None
    seconds: float = 0.0


def run_tasks(
    split: HoldOut,
    scores: ScoreTable | None,
    tasks: Sequence[ChainTask],
    target: TestCells,
    options: LooOptions,
    step: Step,
) -> list[LooOutcome]:
    """Fit the pool and run the tasks, in as many processes as the options say.

    Parameters
    ----------
    split : HoldOut
    scores : ScoreTable or None
        Soft votes of the pool.
    tasks : sequence of ChainTask
    target : TestCells
    options : LooOptions
    step : callable
        Called after the pool and after each task.

    Returns
    -------
    list of LooOutcome
        The pool's, then those of `tasks` in their order, whatever the number of processes.

    Raises
    ------
    InputError
        No task has any chain to show.
    """
    # The costliest start first, so that no process is left alone with one at the end: the pool, then many voters.
    order = sorted(range(len(tasks)), key=lambda i: -len(tasks[i].subset.columns))
    calls = [delayed(_measure)(i, tasks[i], target, options) for i in order]
    # The pool has a label model among its members.
    libraries = dict.fromkeys((*options.ensemblers, "LabelModel"))
    found: dict[int, LooOutcome] = {}
    everything = [delayed(_fit_pool)(split, scores, options), *calls]
    for position, outcome in in_processes(everything, options.n_jobs, ensemblers=libraries, ordered=False):
        found[position] = outcome
        step()
    outcomes = [found[i] for i in range(POOL, len(tasks))]
    all_candidates(ChainAttempt([candidate for candidate, _ in o.scored], o.warning) for o in outcomes)
    return outcomes


def _fit_pool(split: HoldOut, scores: ScoreTable | None, options: LooOptions) -> tuple[int, LooOutcome]:
    started = time.process_time()
    pooled = fit_pool(split, scores, options)
    return POOL, LooOutcome("Pool", "deep", pooled=pooled, seconds=time.process_time() - started)


def _measure(position: int, task: ChainTask, target: TestCells, options: LooOptions) -> tuple[int, LooOutcome]:
    """Run one task and measure its candidates on the held-out dataset."""
    started = time.process_time()
    attempt = task.run(target.patterns)
    scored = [
        (
            candidate,
            target.metrics(
                candidate.p, n_bins=options.n_bins, n_boot=options.n_boot, random_state=options.random_state
            ),
        )
        for candidate in attempt.candidates
    ]
    seconds = time.process_time() - started
    return position, LooOutcome(task.ensembler, task.recipe.name, scored, warning=attempt.reason, seconds=seconds)
