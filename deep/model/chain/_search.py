"""The search for a chain: every ensembler on every chosen subset of the voters, on training data alone."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from zlib import crc32

import numpy as np

from deep._util.checks import Floats, Votes, check_choice, check_kind
from deep._util.odds import P_MIN
from deep.base import BaseCalibrator, BaseEnsembler
from deep.calibration import NETCAL_CLASSES
from deep.ensembles import ENSEMBLERS
from deep.exceptions import InputError
from deep.features import distinct_patterns
from deep.model.chain import _grid
from deep.model.chain._training import RECIPES, ChainSpec, KeptCells, MapLike, Recipe, TrainingSet
from deep.model.options import UNCALIBRATED


@dataclass(frozen=True, eq=False)
class Candidate:
    """One fitted chain and its P of the target's vote patterns.

    Parameters
    ----------
    ensembler : str
    params : dict
        The grid point that won.
    subset : Subset
    prompts : tuple of str
        The names of the subset's voters.
    calibrator : str or None
        None: the ensembler's own probabilities.
    inner_log_loss, inner_balanced_accuracy, inner_accuracy : float
        Of out-of-fold probabilities on the training data, the calibrator cross-fitted: fitted on the other
        inner folds, under recipe 'deep' by fits that saw neither.
    p : ndarray of float, shape (n_target_patterns,)
        P(consistent).
    """

    ensembler: str
    params: dict[str, object]
    subset: _grid.Subset
    prompts: tuple[str, ...]
    calibrator: str | None
    inner_log_loss: float
    inner_balanced_accuracy: float
    inner_accuracy: float
    p: Floats


def task_seed(ensembler: str, columns: tuple[int, ...], recipe: str, random_state: int) -> int:
    """Return a seed that depends on the chain alone, not on the order or the process of fits."""
    return crc32(f"{random_state}|{recipe}|{ensembler}|{columns}".encode()) % 2**31


def fit_candidates(
    ensembler: str,
    subset: _grid.Subset,
    training: TrainingSet,
    target: Votes,
    *,
    calibrators: Sequence[str],
    recipe: Recipe,
    random_state: int = 0,
    faults: list[str] | None = None,
) -> list[Candidate]:
    """Search, fit and calibrate one ensembler on one subset of voters.

    Parameters
    ----------
    ensembler : str
        A key of `ENSEMBLERS`.
    subset : Subset
    training : TrainingSet
        Of all voters.
    target : ndarray of int8, shape (n_target_patterns, n_voters)
        Vote patterns to score; their labels are never seen here.
    calibrators : sequence of str
        Keys of `CALIBRATORS`.
    recipe : Recipe
    random_state : int, default=0
    faults : list of str, optional
        Takes a sentence on each calibrator that cannot be fitted; without it such a one raises.

    Returns
    -------
    list of Candidate
        The uncalibrated one first, then one a calibrator.
    """
    chosen = training.select(subset.columns)
    found = _grid.grid_search(ensembler, chosen, criterion=recipe.criterion, random_state=random_state)
    patterns, row_pattern = distinct_patterns(np.ascontiguousarray(target[:, list(subset.columns)]))
    scores = found.ensembler.predict_proba(patterns)[:, 1]
    calibrated = _grid.calibrate(found, chosen, scores, calibrators, recipe, random_state, faults)
    weights = chosen.weights()
    candidates = []
    for calibrator, inner, p in [(None, found.oof, np.clip(scores, P_MIN, 1 - P_MIN)), *calibrated]:
        candidates.append(
            Candidate(
                ensembler=ensembler,
                params=found.params,
                subset=subset,
                prompts=chosen.cells.voter_names,
                calibrator=calibrator,
                inner_log_loss=-_grid.inner_score(inner, chosen, "log_loss", weights),
                inner_balanced_accuracy=_grid.inner_score(inner, chosen, "balanced_accuracy", weights),
                inner_accuracy=_grid.inner_score(inner, chosen, "accuracy", weights),
                p=p[row_pattern],
            )
        )
    return candidates


def recommend(candidates: Sequence[Candidate], by: str) -> Candidate:
    """Return the candidate that does best on the training data alone.

    Parameters
    ----------
    candidates : sequence of Candidate
    by : {'accuracy', 'balanced_accuracy', 'log_loss'}
        An inner score. Equals are decided by log loss, then by fewer voters, then by the order given.
    """

    def worse(c: Candidate) -> tuple[float, float, int]:
        score = {"accuracy": -c.inner_accuracy, "balanced_accuracy": -c.inner_balanced_accuracy}.get(
            by, c.inner_log_loss
        )
        return round(score, 12), round(c.inner_log_loss, 12), len(c.subset.columns)

    check_choice(by, ("accuracy", "balanced_accuracy", "log_loss"), "by")
    return min(candidates, key=worse)


ALL = "all"


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
    subset: _grid.Subset
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
    check_kind(sizes, (list, tuple, range), "sizes", "a list of positive whole numbers or 'all'")
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
    subsets = _grid.choose_subsets(training, wanted, selector=selector, criterion=recipe.subset_criterion)
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
    return all_candidates(run(methodcaller("run", target), tasks))


@dataclass(frozen=True, eq=False)
class Chain:
    """A fitted ensembler, and the calibrator of its probabilities where there is one."""

    ensembler: BaseEnsembler
    calibrator: BaseCalibrator | None

    def uncalibrated(self, patterns: Votes) -> Floats:
        """Return the ensembler's own P(consistent) of vote patterns, shape (n_patterns,)."""
        return np.asarray(np.clip(self.ensembler.predict_proba(patterns)[:, 1], P_MIN, 1 - P_MIN))

    def predict(self, patterns: Votes) -> Floats:
        """Return P(consistent) of vote patterns, shape (n_patterns,)."""
        if self.calibrator is None:
            return self.uncalibrated(patterns)
        return self.calibrator.transform(self.ensembler.predict_proba(patterns)[:, 1])


def fit_chain(spec: ChainSpec, training: TrainingSet) -> Chain:
    """Fit a chain on a training set of its own voters.

    Parameters
    ----------
    spec : ChainSpec
    training : TrainingSet

    Returns
    -------
    Chain
        The same for the same training set, whatever else was fitted before.
    """
    recipe = RECIPES[spec.recipe]
    point = {name: (value,) for name, value in spec.params.items()}
    found = _grid.grid_search(
        spec.ensembler, training, criterion=recipe.criterion, grid=point, random_state=spec.random_state
    )
    if spec.calibrator is None:
        return Chain(found.ensembler, None)
    rows, on_probability = _grid.calibration_rows(found, training, recipe), recipe.calibrate_on == "training"
    return Chain(found.ensembler, _grid.fit_calibrator(spec.calibrator, *rows, on_probability=on_probability))


def predict_left_out(spec: ChainSpec, kept: KeptCells, patterns: Votes, run: MapLike = map) -> Floats:
    """Return P of each pattern by the chain fitted without each unit of datasets, shape (n_patterns, n_units)."""
    step = partial(_predict_without, spec=spec, kept=kept, patterns=patterns)
    return np.column_stack(list(run(step, range(kept.n_units))))


def _predict_without(unit: int, *, spec: ChainSpec, kept: KeptCells, patterns: Votes) -> Floats:
    return fit_chain(spec, kept.training(without=unit)).predict(patterns)
