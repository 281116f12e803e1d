"""The search for a chain, on training data alone: voters, parameters by inner folds, every ensembler and calibrator."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, product
from operator import methodcaller
from typing import cast
from zlib import crc32

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Labels, Votes, check_choice, check_kind
from deep._util.odds import DECISION_P, P_MIN
from deep.base import BaseCalibrator, BaseEnsembler, StagedEnsembler
from deep.calibration import ALL_CALIBRATORS, NETCAL_CLASSES, Platt
from deep.ensembles import ENSEMBLERS
from deep.exceptions import InputError
from deep.features import SELECTORS, distinct_patterns, installed_mrmr
from deep.model._training import RECIPES, ChainSpec, Criterion, FoldCells, MapLike, Recipe, TrainingSet
from deep.model.options import SELECTOR_NAMES, UNCALIBRATED

ParamValues = Mapping[str, Sequence[object]]


@dataclass(frozen=True, eq=False)
class GridResult:
    """The winner of one grid search.

    Parameters
    ----------
    name : str
        The ensembler's, a key of `ENSEMBLERS`.
    ensembler : BaseEnsembler
        Fitted on the whole training set with the winning parameters.
    params : dict
        The winning value of each parameter of the grid, by name.
    oof : ndarray of float, shape (n_patterns, n_folds)
        P(consistent) of each training pattern by the fit that left the fold out.
    score : float
        Inner score of the winner; higher is better (log loss is negated).
    """

    name: str
    ensembler: BaseEnsembler
    params: dict[str, object]
    oof: Floats
    score: float


def make_ensembler(name: str, params: Mapping[str, object], random_state: int) -> BaseEnsembler:
    """Return an unfitted ensembler by its name, seeded where it draws."""
    ensembler = ENSEMBLERS[name](**params)
    # Most ensemblers draw nothing, and have no such parameter.
    if "random_state" in ensembler.get_params():
        ensembler.set_params(random_state=random_state)
    return ensembler


def inner_score(p: Floats, training: TrainingSet, criterion: Criterion, weights: Floats) -> float:
    """Return how well out-of-fold probabilities do on the rows that their fits left out.

    Parameters
    ----------
    p : ndarray of float, shape (n_patterns, n_folds)
        P(consistent) by pattern and left-out fold.
    training : TrainingSet
        The cells that `p` is judged on, and the inner fold of each group.
    criterion : {'accuracy', 'balanced_accuracy', 'log_loss'}
        Accuracy counts rows; the other two use `weights`, under which balanced accuracy is the mean over
        datasets. Log loss is negated, so that higher is better.
    weights : ndarray of float, shape (n_patterns, n_groups, 2)
        ``training.weights()``.
    """
    by_group = p[:, training.fold_of]
    if criterion == "log_loss":
        # One sure and wrong P would make the loss infinite, and all candidates equally bad.
        clipped = np.clip(by_group, P_MIN, 1 - P_MIN)
        loss = np.stack([-np.log1p(-clipped), -np.log(clipped)], axis=2)
        return -float((weights * loss).sum() / weights.sum())
    # Accuracy is the paper's criterion, which knows no weights: a row is a row there.
    w = training.cells.counts if criterion == "accuracy" else weights
    positive = by_group >= DECISION_P
    hits = w[:, :, 0][~positive].sum(), w[:, :, 1][positive].sum()
    if criterion == "accuracy":
        return float(sum(hits) / w.sum())
    totals = w.sum(axis=(0, 1))
    return float(sum(hit / total for hit, total in zip(hits, totals, strict=True)) / 2)


def grid_search(
    name: str,
    training: TrainingSet,
    *,
    criterion: Criterion = "log_loss",
    grid: ParamValues | None = None,
    random_state: int = 0,
) -> GridResult:
    """Choose an ensembler's parameters by leaving out one inner fold at a time, then fit it on everything.

    Parameters
    ----------
    name : str
        A key of `ENSEMBLERS`.
    training : TrainingSet
        The cells to fit on, their weights, and the inner folds to leave out.
    criterion : {'accuracy', 'balanced_accuracy', 'log_loss'}, default='log_loss'
        The inner score by which grid points are compared, as in :func:`inner_score`.
    grid : mapping of str to sequence, optional
        Default: the ensembler's `param_grid`.
    random_state : int, default=0
        Seed of the ensembler's fits, where it draws.

    Returns
    -------
    GridResult
        Of equally good points the first of the grid wins.
    """
    weights = training.weights()
    best: GridResult | None = None
    for params, oof in _grid_scores(
        name, training, ENSEMBLERS[name].param_grid if grid is None else grid, random_state
    ):
        score = inner_score(oof, training, criterion, weights)
        if best is None or score > best.score:
            best = GridResult(name, make_ensembler(name, params, random_state), params, oof, score)
    assert best is not None  # a product over no parameters still has one point
    X, y, w = training.table()
    best.ensembler.fit(X, y, w)
    return best


def out_of_fold(
    name: str, training: TrainingSet, params: Mapping[str, object] | None = None, random_state: int = 0
) -> Floats:
    """Return P(consistent) of each pattern by the fit that left a fold out, shape (n_patterns, n_folds)."""
    fits = _fit_without_each_fold(name, params or {}, training, random_state)
    return np.column_stack([one.predict_proba(training.cells.patterns)[:, 1] for one in fits])


def _grid_scores(
    name: str, training: TrainingSet, grid: ParamValues, random_state: int
) -> Iterator[tuple[dict[str, object], Floats]]:
    """Yield each grid point with its out-of-fold probabilities; stages of one fit share it."""
    stage_param = getattr(ENSEMBLERS[name], "stage_param", None)
    # Boosting to the most rounds passes all smaller numbers on the way, so one fit serves them all.
    stages = cast("Sequence[int]", grid.get(stage_param, ()) if stage_param else ())
    names, patterns = [key for key in grid if not (stages and key == stage_param)], training.cells.patterns
    for values in product(*(grid[key] for key in names)):
        params = dict(zip(names, values, strict=True))
        if stages:
            fits = _fit_without_each_fold(name, params | {str(stage_param): max(stages)}, training, random_state)
            staged = [cast("StagedEnsembler", one).staged_predict_proba(patterns, stages) for one in fits]
            for stage, oof in zip(stages, np.stack(staged, axis=2), strict=True):
                yield params | {str(stage_param): stage}, oof
        else:
            yield params, out_of_fold(name, training, params, random_state)


def _fit_without_each_fold(
    name: str, params: Mapping[str, object], training: TrainingSet, random_state: int
) -> Iterator[BaseEnsembler]:
    """Yield the fit without each inner fold."""
    for fold in range(training.n_folds):
        yield make_ensembler(name, params, random_state).fit(*training.without_fold(fold))


@dataclass(frozen=True)
class VoterSubset:
    """Some columns of a vote matrix and the selector that chose them ('all' where there was no choice)."""

    columns: tuple[int, ...]
    selector: str


def choose_subsets(
    training: TrainingSet, sizes: Sequence[int], *, selector: str = "auto", criterion: Criterion = "balanced_accuracy"
) -> list[VoterSubset]:
    """Choose one subset of the voters for each size.

    Parameters
    ----------
    training : TrainingSet
        The cells of all voters, their weights, and the inner folds to leave out.
    sizes : sequence of int
        Numbers of voters; a size of at least the number of voters takes them all.
    selector : {'auto', 'mrmr', 'mrmr-selection', 'rfe'}, default='auto'
        'auto' takes the better of mRMR and RFE for each size, by the inner `criterion` of logistic
        regression; mRMR by the loop of mrmr-selection where that is installed, else by the same of deep's own.
    criterion : {'accuracy', 'balanced_accuracy', 'log_loss'}, default='balanced_accuracy'
        The inner score by which 'auto' compares two subsets of one size, as in :func:`inner_score`.

    Returns
    -------
    list of Subset
        In the order of `sizes`; columns in ascending order.

    Raises
    ------
    InputError
        `selector` is unknown.
    """
    check_choice(selector, SELECTOR_NAMES, "selector")
    n_voters, table = len(training.cells.voter_names), training.table()
    selectors: tuple[str, ...] = (installed_mrmr(), "rfe") if selector == "auto" else (selector,)
    if all(size >= n_voters for size in sizes):
        selectors = ()
    # Rankings do not depend on how many are wanted: one.
    rankings = {name: np.argsort(SELECTORS[name](1).fit(*table).ranking_).tolist() for name in selectors}

    def score(subset: VoterSubset) -> float:
        some = training.select(subset.columns)
        return inner_score(out_of_fold("LogisticRegression", some), some, criterion, some.weights())

    subsets: list[VoterSubset] = []
    for size in sizes:
        if size >= n_voters:
            subsets.append(VoterSubset(tuple(range(n_voters)), "all"))
        else:
            proposals = [VoterSubset(tuple(sorted(order[:size])), name) for name, order in rankings.items()]
            # Where both selectors propose the same voters, nothing is fitted to compare them.
            best = proposals[0]
            if len({one.columns for one in proposals}) > 1:
                best = max(proposals, key=score)  # of equals the first
            subsets.append(best)
    return subsets


def calibrated_scores(
    result: GridResult,
    training: TrainingSet,
    scores: Floats,
    calibrators: Sequence[str],
    recipe: Recipe,
    random_state: int,
    faults: list[str],
) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield each calibrator, its inner probabilities (n_patterns, n_folds), and the target's calibrated scores.

    A calibrator that cannot be fitted is noted in `faults` and left out.
    """
    rows, on_probability = calibration_rows(result, training, recipe), recipe.calibrate_on == "training"
    # A score of another fold by a fit that did see the judged fold tells about its labels: where the judged fold's are
    # high, so is that score. A flexible calibrator reads this off and looks better than it is. With two folds nothing
    # would be left to fit on, and the plain out-of-fold scores have to do. The paper names no loss that calibrators are
    # chosen by: each is judged on folds that it was not fitted on.
    if on_probability or training.n_folds < 3 or not calibrators:
        pairs = np.stack([result.oof] * training.n_folds)
    else:
        pairs = leave_pairs_out(result.name, result.params, training, random_state)
    weights = training.weights()
    for name in calibrators:
        try:
            fitted = fit_calibrator(name, *rows, on_probability=on_probability)
            inner = np.empty_like(result.oof)  # each fold's, calibrated on the other folds' by fits without it
            for fold in range(training.n_folds):
                others = scored_rows(pairs[fold], training, weights, training.fold_of != fold)
                of_others = fit_calibrator(name, *others, on_probability=on_probability)
                inner[:, fold] = of_others.transform(result.oof[:, fold])
            yield name, inner, fitted.transform(scores)
        except InputError as error:
            faults.append(str(error))


def calibration_rows(result: GridResult, training: TrainingSet, recipe: Recipe) -> tuple[Floats, Labels, Floats]:
    """Return P, labels and weights to calibrate on: of rows left out or, as in the paper, of those that the fit saw."""
    if recipe.calibrate_on == "training":
        X, y, w = training.table()
        return result.ensembler.predict_proba(X)[:, 1], y, w
    return scored_rows(result.oof, training, training.weights(), np.ones(len(training.fold_of), dtype=bool))


def fit_calibrator(name: str, p: Floats, y: Labels, w: Floats, *, on_probability: bool = False) -> BaseCalibrator:
    """Return a calibrator by its name, fitted; Platt scaling on P itself, as in the paper, where asked for."""
    calibrator = ALL_CALIBRATORS[name]()
    if on_probability and isinstance(calibrator, Platt):
        calibrator.on_probability = True
    return calibrator.fit(p, y, w)


def scored_rows(
    oof: Floats, training: TrainingSet, weights: Floats, groups: npt.NDArray[np.bool_]
) -> tuple[Floats, Labels, Floats]:
    """Return out-of-fold probabilities, labels and weights of the rows in `groups`."""
    # Weights stay those of the whole training set: to balance a part anew would change what the loss means.
    masked = np.where(groups[None, :, None], weights, 0.0)
    pattern, group, label = np.nonzero(masked)
    return oof[pattern, training.fold_of[group]], label.astype(np.int8), masked[pattern, group, label]


def leave_pairs_out(name: str, params: Mapping[str, object], training: TrainingSet, random_state: int) -> Floats:
    """Return P(consistent) of each pattern by the fit that left two inner folds out.

    Parameters
    ----------
    name, params : str, mapping
        A key of `ENSEMBLERS`, and the values of its parameters.
    training : TrainingSet
        Of three folds or more.
    random_state : int
        Seed of the ensembler's fits, where it draws.

    Returns
    -------
    ndarray of float, shape (n_folds, n_patterns, n_folds)
        ``[f, :, g]`` is the fit without folds f and g; NaN where f is g.
    """
    n = training.n_folds
    p = np.full((n, len(training.cells.patterns), n), np.nan)
    for pair in combinations(range(n), 2):
        table = training.table(~np.isin(training.fold_of, pair))
        scores = make_ensembler(name, params, random_state).fit(*table).predict_proba(training.cells.patterns)[:, 1]
        p[pair[0], :, pair[1]] = p[pair[1], :, pair[0]] = scores
    return p


@dataclass(frozen=True, eq=False)
class ChainCandidate:
    """One fitted chain and its P of the target's vote patterns.

    Parameters
    ----------
    ensembler : str
        A key of `ENSEMBLERS`.
    params : dict
        The winning value of each parameter of the grid, by name.
    subset : VoterSubset
        Which voters, and how they were chosen.
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
    subset: VoterSubset
    prompts: tuple[str, ...]
    calibrator: str | None
    inner_log_loss: float
    inner_balanced_accuracy: float
    inner_accuracy: float
    p: Floats


def task_seed(ensembler: str, columns: tuple[int, ...], recipe: str, random_state: int) -> int:
    """Return a seed that depends on the chain alone, not on the order or the process of fits."""
    # CRC rather than `hash`, which Python salts anew in every process.
    return crc32(f"{random_state}|{recipe}|{ensembler}|{columns}".encode()) % 2**31


def recommend(candidates: Sequence[ChainCandidate], by: str) -> ChainCandidate:
    """Return the candidate that does best on the training data alone.

    Parameters
    ----------
    candidates : sequence of ChainCandidate
        One or more; what they do on a target is not looked at.
    by : {'accuracy', 'balanced_accuracy', 'log_loss'}
        An inner score. Equals are decided by log loss, then by fewer voters, then by the order given.
    """

    def worse(c: ChainCandidate) -> tuple[float, float, int]:
        score = {"accuracy": -c.inner_accuracy, "balanced_accuracy": -c.inner_balanced_accuracy}.get(
            by, c.inner_log_loss
        )
        # Rounded, since equal chains differ in the last digits from one processor to another.
        return round(score, 12), round(c.inner_log_loss, 12), len(c.subset.columns)

    check_choice(by, ("accuracy", "balanced_accuracy", "log_loss"), "by")
    return min(candidates, key=worse)


# This in place of a number of voters takes all of them.
ALL_VOTERS = "all"


@dataclass(frozen=True, eq=False)
class ChainAttempt:
    """The candidates of one task, and the reason why there are none or some are missing.

    Parameters
    ----------
    candidates : list of ChainCandidate
        One for each of the calibrators, 'none' among them, that could be fitted.
    reason : str or None
        Why there are none, or why some are missing; None where all are there.
    seconds : float
        Of processor time.
    """

    candidates: list[ChainCandidate]
    reason: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class ChainTask:
    """One ensembler on one subset of the voters, to be fitted once and calibrated in every way.

    Parameters
    ----------
    ensembler : str
        A key of `ENSEMBLERS`.
    subset : VoterSubset
        Which voters, and how they were chosen.
    training : TrainingSet
        Of all voters.
    recipe : Recipe
        Says what the grid search maximises, and what calibrators are fitted on.
    calibrators : tuple of str
        Keys of `CALIBRATORS`, or 'none' for the ensembler's own probabilities.
    random_state : int
        Of the whole search; the task's own seed depends on what it fits, not on when or where.
    """

    ensembler: str
    subset: VoterSubset
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
            candidates = list(self._candidates(target, faults))
        except InputError as error:
            return ChainAttempt([], f"{self.ensembler} was left out at size {size}: {error}")
        reason = f"{self.ensembler} at size {size}: {' '.join(faults)}" if faults else None
        return ChainAttempt(candidates, reason, seconds=time.process_time() - started)

    def _candidates(self, target: Votes, faults: list[str]) -> Iterator[ChainCandidate]:
        """Yield the ensembler's own probabilities first, where they are wanted, then those of each calibrator.

        `faults` takes a sentence on each calibrator that cannot be fitted. The target's labels are never seen here.
        """
        columns, subset = list(self.subset.columns), self.training.select(self.subset.columns)
        seed = task_seed(self.ensembler, self.subset.columns, self.recipe.name, self.random_state)
        grid = {**ENSEMBLERS[self.ensembler].param_grid, **self.recipe.grids.get(self.ensembler, {})}
        result = grid_search(self.ensembler, subset, criterion=self.recipe.criterion, grid=grid, random_state=seed)
        patterns, row_pattern = distinct_patterns(np.ascontiguousarray(target[:, columns]))
        scores, weights = result.ensembler.predict_proba(patterns)[:, 1], subset.weights()
        names = [name for name in self.calibrators if name != UNCALIBRATED]
        calibrated = calibrated_scores(result, subset, scores, names, self.recipe, seed, faults)
        own = [(None, result.oof, np.clip(scores, P_MIN, 1 - P_MIN))] if UNCALIBRATED in self.calibrators else []
        for calibrator, inner, p in chain(own, calibrated):
            yield ChainCandidate(
                ensembler=self.ensembler,
                params=result.params,
                subset=self.subset,
                prompts=subset.cells.voter_names,
                calibrator=calibrator,
                inner_log_loss=-inner_score(inner, subset, "log_loss", weights),
                inner_balanced_accuracy=inner_score(inner, subset, "balanced_accuracy", weights),
                inner_accuracy=inner_score(inner, subset, "accuracy", weights),
                p=p[row_pattern],
            )


def distinct_sizes(sizes: Sequence[int | str], n_voters: int) -> list[int]:
    """Return the numbers of voters to try, in the order given; 'all', or more than there are, takes all.

    Examples
    --------
    >>> distinct_sizes([3, 5, 9, "all"], 7)
    [3, 5, 7]
    """
    check_kind(sizes, (list, tuple, range), "sizes", "a list of positive whole numbers or 'all'")
    wrong = [size for size in sizes if size != ALL_VOTERS and (not isinstance(size, int) or size < 1)]
    if wrong or not sizes:
        raise InputError(f"`sizes` must hold positive whole numbers or 'all'. Got {wrong[0] if wrong else sizes!r}.")
    return list(dict.fromkeys(n_voters if size == ALL_VOTERS else min(int(size), n_voters) for size in sizes))


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
        Cells of all voters.
    recipe : Recipe
        Says how each chain is fitted, and by which criterion subsets are chosen.
    sizes : sequence of int or 'all'
        Numbers of voters.
    ensemblers : sequence of str
        Keys of `ENSEMBLERS`.
    calibrators : sequence of str
        Keys of `CALIBRATORS`, or 'none'.
    selector : {'auto', 'mrmr', 'mrmr-selection', 'rfe'}, default='auto'
        How voters are chosen for each size, as in :func:`choose_subsets`.
    random_state : int, default=0
        Each task makes the seed of its fits from it; the choice of voters draws nothing.
    """
    # netcal counts rows: with weights its calibrators would silently answer another question.
    weighted = [name for name in calibrators if name in NETCAL_CLASSES and training.weighting != "uniform"]
    if weighted:
        raise InputError(
            f"`calibrator` must be one of deep's own where rows are weighted. Got {weighted[0]!r} with weighting "
            f"{training.weighting!r}: netcal takes no weights. Add `--weighting uniform` or `--recipe paper`."
        )
    numbers = distinct_sizes(sizes, len(training.cells.voter_names))
    subsets = choose_subsets(training, numbers, selector=selector, criterion=recipe.subset_criterion)
    return [
        ChainTask(name, subset, training, recipe, tuple(calibrators), random_state)
        for subset in subsets
        for name in ensemblers
    ]


def all_candidates(attempts: Iterable[ChainAttempt]) -> list[ChainCandidate]:
    """Return the candidates of all attempts; raise with the reasons where there are none."""
    attempts = list(attempts)
    candidates = [candidate for attempt in attempts for candidate in attempt.candidates]
    if not candidates:
        reasons = " ".join(attempt.reason for attempt in attempts if attempt.reason)
        raise InputError(f"`ensembler` must name one that can be fitted on these votes. {reasons}")
    return candidates


def search(tasks: Sequence[ChainTask], target: Votes, run: MapLike = map) -> list[ChainCandidate]:
    """Run the tasks, and return every candidate with P of the target's vote patterns.

    Parameters
    ----------
    tasks : sequence of ChainTask
        As :func:`chain_tasks` makes them.
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
    """Fit a chain on a training set of its own voters: the same chain, whatever else was fitted before."""
    recipe = RECIPES[spec.recipe]
    point = {name: (value,) for name, value in spec.params.items()}
    result = grid_search(
        spec.ensembler, training, criterion=recipe.criterion, grid=point, random_state=spec.random_state
    )
    if spec.calibrator is None:
        return Chain(result.ensembler, None)
    rows, on_probability = calibration_rows(result, training, recipe), recipe.calibrate_on == "training"
    return Chain(result.ensembler, fit_calibrator(spec.calibrator, *rows, on_probability=on_probability))


def predict_left_out(spec: ChainSpec, cells: FoldCells, patterns: Votes, run: MapLike = map) -> Floats:
    """Return P of each pattern by the chain fitted without each unit of datasets, shape (n_patterns, n_units)."""
    step = partial(_predict_without, spec=spec, cells=cells, patterns=patterns)
    return np.column_stack(list(run(step, range(cells.n_units))))


def _predict_without(unit: int, *, spec: ChainSpec, cells: FoldCells, patterns: Votes) -> Floats:
    return fit_chain(spec, cells.training(without=unit)).predict(patterns)
