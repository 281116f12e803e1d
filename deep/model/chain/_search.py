"""The search for a chain: every ensembler on every chosen subset of the voters, on training data alone."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from deep._checks import Votes
from deep.calibration import NETCAL_CLASSES
from deep.ensembles import ENSEMBLERS
from deep.exceptions import InputError
from deep.model.chain._candidates import Candidate, fit_candidates, task_seed
from deep.model.chain._recipe import Recipe
from deep.model.chain._subsets import Subset, choose_subsets
from deep.model.chain._training import TrainingSet

UNCALIBRATED = "none"
"""In place of a calibrator's name: the ensembler's own probabilities."""

ALL = "all"

Given = TypeVar("Given")
Found = TypeVar("Found")


class MapLike(Protocol):
    """Like the built-in `map`: results in the order of the tasks, wherever they are run."""

    def __call__(self, function: Callable[[Given], Found], tasks: Sequence[Given], /) -> Iterable[Found]:
        """Return the results."""


@dataclass(frozen=True, eq=False)
class ChainAttempt:
    """The candidates of one task, and the reason why there are none or some are missing.

    Parameters
    ----------
    candidates : list of Candidate
    reason : str or None
    seconds : float
        Of processor time.
    """

    candidates: list[Candidate]
    reason: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class ChainTask:
    """One ensembler on one subset of the voters, to be fitted once and calibrated in every way.

    Parameters
    ----------
    ensembler : str
    subset : Subset
    training : TrainingSet
        Of all voters.
    recipe : Recipe
    calibrators : tuple of str
        Keys of `CALIBRATORS`, or 'none' for the ensembler's own probabilities.
    random_state : int
        Of the whole search; the task's own seed depends on what it fits, not on when or where.
    """

    ensembler: str
    subset: Subset
    training: TrainingSet
    recipe: Recipe
    calibrators: tuple[str, ...]
    random_state: int

    def run(self, target: Votes) -> ChainAttempt:
        """Fit, and score the target's vote patterns; a chain that cannot be fitted does not stop the others."""
        size, least = len(self.subset.columns), ENSEMBLERS[self.ensembler].min_voters
        if size < least:
            return ChainAttempt([], f"{self.ensembler} needs at least {least} voters; left out at size {size}.")
        started, faults = time.process_time(), list[str]()
        try:
            candidates = fit_candidates(
                self.ensembler,
                self.subset,
                self.training,
                target,
                calibrators=[name for name in self.calibrators if name != UNCALIBRATED],
                recipe=self.recipe,
                random_state=task_seed(self.ensembler, self.subset.columns, self.recipe.name, self.random_state),
                faults=faults,
            )
        except InputError as error:
            return ChainAttempt([], f"{self.ensembler} was left out at size {size}: {error}")
        wanted = [candidate for candidate in candidates if (candidate.calibrator or UNCALIBRATED) in self.calibrators]
        reason = f"{self.ensembler} at size {size}: {' '.join(faults)}" if faults else None
        return ChainAttempt(wanted, reason, seconds=time.process_time() - started)


def distinct_sizes(sizes: Sequence[int | str], n_voters: int) -> list[int]:
    """Return the numbers of voters to try, in the order given; 'all', or more than there are, takes all.

    Examples
    --------
    >>> distinct_sizes([3, 5, 9, "all"], 7)
    [3, 5, 7]
    """
    wrong = [size for size in sizes if size != ALL and (not isinstance(size, int) or size < 1)]
    if wrong or not sizes:
        raise InputError(f"`sizes` must hold positive whole numbers or 'all'. Got {wrong[0] if wrong else sizes!r}.")
    return list(dict.fromkeys(n_voters if size == ALL else min(int(size), n_voters) for size in sizes))


def chain_tasks(
    training: TrainingSet,
    recipe: Recipe,
    *,
    sizes: Sequence[int | str],
    ensemblers: Sequence[str],
    calibrators: Sequence[str],
    selector: str = "auto",
    random_state: int = 0,
) -> list[ChainTask]:
    """Choose the subsets of voters, and return a task for each subset and ensembler.

    Parameters
    ----------
    training : TrainingSet
    recipe : Recipe
    sizes : sequence of int or 'all'
        Numbers of voters.
    ensemblers : sequence of str
        Keys of `ENSEMBLERS`.
    calibrators : sequence of str
        Keys of `CALIBRATORS`, or 'none'.
    selector : {'auto', 'exhaustive', 'mrmr', 'mrmr-selection', 'rfe'}, default='auto'
    random_state : int, default=0
    """
    weighted = [name for name in calibrators if name in NETCAL_CLASSES and training.weighting != "uniform"]
    if weighted:
        raise InputError(
            f"`calibrator` must be one of deep's own where rows are weighted. Got {weighted[0]!r} with weighting "
            f"{training.weighting!r}: netcal takes no weights. Add `--weighting uniform` or `--recipe paper`."
        )
    wanted = distinct_sizes(sizes, len(training.cells.voter_names))
    subsets = choose_subsets(training, wanted, selector=selector, criterion=recipe.subset_criterion)
    return [
        ChainTask(name, subset, training, recipe, tuple(calibrators), random_state)
        for subset in subsets
        for name in ensemblers
    ]


def all_candidates(attempts: Iterable[ChainAttempt]) -> list[Candidate]:
    """Return the candidates of all attempts; raise with the reasons where there are none."""
    attempts = list(attempts)
    candidates = [candidate for attempt in attempts for candidate in attempt.candidates]
    if not candidates:
        reasons = " ".join(attempt.reason for attempt in attempts if attempt.reason)
        raise InputError(f"`ensembler` must name one that can be fitted on these votes. {reasons}")
    return candidates


def search(tasks: Sequence[ChainTask], target: Votes, run: MapLike = map) -> list[Candidate]:
    """Run the tasks, and return every candidate with P of the target's vote patterns.

    Parameters
    ----------
    tasks : sequence of ChainTask
    target : ndarray of int8, shape (n_patterns, n_voters)
        Their labels are never seen here.
    run : callable, optional
        Like `map`; another one may spread the tasks over processes.

    Raises
    ------
    InputError
        No ensembler can be fitted.
    """
    return all_candidates(run(partial(_run, target=target), tasks))


def _run(task: ChainTask, target: Votes) -> ChainAttempt:
    return task.run(target)
