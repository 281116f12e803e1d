"""Calibrate a chain on scores of rows that its fits never saw, or as the paper does on those they did."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Labels
from deep.base import BaseCalibrator
from deep.calibration import ALL_CALIBRATORS
from deep.exceptions import InputError
from deep.model.chain._grid import GridResult, make_ensembler
from deep.model.chain._recipe import Recipe
from deep.model.chain._training import TrainingSet

Calibrated = Iterator[tuple[str, Floats, Floats]]
"""Calibrator, inner probabilities (n_patterns, n_folds), and the target's calibrated scores."""

CalibrationData = Callable[[str], tuple[Floats, Floats]]
"""From a calibrator's name to the last two."""


def calibrate(
    found: GridResult,
    training: TrainingSet,
    scores: Floats,
    calibrators: Sequence[str],
    recipe: Recipe,
    random_state: int,
    faults: list[str] | None = None,
) -> Calibrated:
    """Yield, for each calibrator, its inner probabilities and the target's scores, calibrated as the recipe says.

    A calibrator that cannot be fitted is noted in `faults` and left out; it raises where there is no such list.
    """
    if recipe.calibrate_on == "training":
        step = _on_training_scores(found, training, scores)
    else:
        step = _on_out_of_fold_scores(found, training, scores, random_state if calibrators else None)
    for name in calibrators:
        try:
            yield name, *step(name)
        except InputError as error:
            if faults is None:
                raise
            faults.append(str(error))


def _on_training_scores(found: GridResult, training: TrainingSet, scores: Floats) -> CalibrationData:
    """Return the step that calibrates on the rows that the ensembler was fitted on, as the paper does."""
    X, y, w = training.table()
    seen = found.ensembler.predict_proba(X)[:, 1]
    return lambda name: (found.oof, fit_calibrator(name, seen, y, w).transform(scores))


def _on_out_of_fold_scores(
    found: GridResult, training: TrainingSet, scores: Floats, random_state: int | None
) -> CalibrationData:
    """Return the step that calibrates on scores of rows left out of the fit; None: it is not going to be taken."""
    weights = training.weights()
    pairs = found.oof if random_state is None else _without_the_judged_fold(found, training, random_state)
    everything = np.ones(len(training.fold_of), dtype=bool)

    def step(name: str) -> tuple[Floats, Floats]:
        fitted = fit_calibrator(name, *scored_rows(found.oof, training, weights, everything))
        return _cross_fitted(name, found.oof, pairs, training, weights), fitted.transform(scores)

    return step


def fit_calibrator(name: str, p: Floats, y: Labels, w: Floats) -> BaseCalibrator:
    """Return a calibrator by its name, fitted."""
    return ALL_CALIBRATORS[name]().fit(p, y, w)


def scored_rows(
    oof: Floats, training: TrainingSet, weights: Floats, groups: npt.NDArray[np.bool_]
) -> tuple[Floats, Labels, Floats]:
    """Return out-of-fold probabilities, labels and weights of the rows in `groups`."""
    kept = np.where(groups[None, :, None], weights, 0.0)
    pattern, group, label = np.nonzero(kept)
    return oof[pattern, training.fold_of[group]], label.astype(np.int8), kept[pattern, group, label]


def _without_the_judged_fold(found: GridResult, training: TrainingSet, random_state: int) -> Floats:
    """Return, for each fold to be judged, out-of-fold probabilities of the others that never saw it.

    A score of another fold by a fit that did see the judged fold tells about its labels: where the judged
    fold's are high, so is that score. A flexible calibrator reads this off and looks better than it is. With
    two folds nothing would be left to fit on, and the plain out-of-fold scores have to do.
    """
    if training.n_folds < 3:
        return np.stack([found.oof] * training.n_folds)
    return leave_pairs_out(found.name, found.params, training, random_state)


def _cross_fitted(name: str, oof: Floats, pairs: Floats, training: TrainingSet, weights: Floats) -> Floats:
    """Return out-of-fold probabilities, each fold's calibrated on the other folds' by fits without it."""
    columns = []
    for fold in range(training.n_folds):
        calibrator = fit_calibrator(name, *scored_rows(pairs[fold], training, weights, training.fold_of != fold))
        columns.append(calibrator.transform(oof[:, fold]))
    return np.column_stack(columns)


def leave_pairs_out(name: str, params: Mapping[str, object], training: TrainingSet, random_state: int) -> Floats:
    """Return P(consistent) of each pattern by the fit that left two inner folds out.

    Parameters
    ----------
    name : str
        A key of `ENSEMBLERS`.
    params : mapping
    training : TrainingSet
        Of three folds or more.
    random_state : int

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
