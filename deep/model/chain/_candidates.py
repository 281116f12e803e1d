"""Candidate chains (voters, ensembler, calibrator), scored on training data alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Labels, Votes, check_choice
from deep._odds import P_MIN
from deep.base import BaseCalibrator
from deep.calibration import CALIBRATORS
from deep.features import distinct_patterns
from deep.model.chain._grid import GridResult, grid_search, inner_score, leave_pairs_out
from deep.model.chain._recipe import Recipe
from deep.model.chain._subsets import Subset
from deep.model.chain._training import TrainingSet

__all__ = ["Candidate", "fit_calibrator", "fit_candidates", "recommend", "scored_rows", "task_seed"]


@dataclass(frozen=True, eq=False)
class Candidate:
    """One fitted chain and what it says of the target's vote patterns.

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
        inner folds, by fits that saw neither. Where a recipe calibrates on training scores they are those of
        the uncalibrated probabilities.
    p : ndarray of float, shape (n_target_patterns,)
        P(consistent).
    """

    ensembler: str
    params: dict[str, Any]
    subset: Subset
    prompts: tuple[str, ...]
    calibrator: str | None
    inner_log_loss: float
    inner_balanced_accuracy: float
    inner_accuracy: float
    p: Floats


def task_seed(ensembler: str, columns: tuple[int, ...], recipe: str, random_state: int) -> int:
    """Return a seed that depends on what is fitted and not on when or where."""
    return crc32(f"{random_state}|{recipe}|{ensembler}|{columns}".encode()) % 2**31


def fit_candidates(
    ensembler: str,
    subset: Subset,
    training: TrainingSet,
    target: Votes,
    *,
    calibrators: Sequence[str],
    recipe: Recipe,
    random_state: int = 0,
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

    Returns
    -------
    list of Candidate
        The uncalibrated one first, then one a calibrator.
    """
    chosen = training.select(subset.columns)
    found = grid_search(ensembler, chosen, criterion=recipe.criterion, random_state=random_state)
    patterns, row_pattern = distinct_patterns(np.ascontiguousarray(target[:, list(subset.columns)]))
    scores = found.ensembler.predict_proba(patterns)[:, 1]
    if recipe.calibrate_on == "training":
        calibrated = _on_training_scores(found, chosen, scores, calibrators)
    else:
        calibrated = _on_out_of_fold_scores(found, chosen, scores, calibrators, random_state)
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
                inner_log_loss=-inner_score(inner, chosen, "log_loss", weights),
                inner_balanced_accuracy=inner_score(inner, chosen, "balanced_accuracy", weights),
                inner_accuracy=inner_score(inner, chosen, "accuracy", weights),
                p=p[row_pattern],
            )
        )
    return candidates


Calibrated = Iterator[tuple[str, Floats, Floats]]
"""Calibrator, inner probabilities (n_patterns, n_folds), and the target's calibrated scores."""


def _on_training_scores(
    found: GridResult, training: TrainingSet, scores: Floats, calibrators: Sequence[str]
) -> Calibrated:
    """Calibrate on the rows that the ensembler was fitted on, as the paper does."""
    X, y, w = training.table()
    seen = found.ensembler.predict_proba(X)[:, 1]
    for name in calibrators:
        yield name, found.oof, fit_calibrator(name, seen, y, w).transform(scores)


def _on_out_of_fold_scores(
    found: GridResult, training: TrainingSet, scores: Floats, calibrators: Sequence[str], random_state: int
) -> Calibrated:
    """Calibrate on scores of rows left out of the fit."""
    weights = training.weights()
    pairs = _without_the_judged_fold(found, training, random_state) if calibrators else found.oof
    everything = np.ones(len(training.fold_of), dtype=bool)
    for name in calibrators:
        fitted = fit_calibrator(name, *scored_rows(found.oof, training, weights, everything))
        yield name, _cross_fitted(name, found.oof, pairs, training, weights), fitted.transform(scores)


def fit_calibrator(name: str, p: Floats, y: Labels, w: Floats) -> BaseCalibrator:
    """Return a calibrator by its name, fitted."""
    return CALIBRATORS[name]().fit(p, y, w)


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
    name = type(found.ensembler).__name__
    return leave_pairs_out(name, found.params, training, random_state)


def _cross_fitted(name: str, oof: Floats, pairs: Floats, training: TrainingSet, weights: Floats) -> Floats:
    """Return out-of-fold probabilities, each fold's calibrated on the other folds' by fits without it."""
    columns = []
    for fold in range(training.n_folds):
        calibrator = fit_calibrator(name, *scored_rows(pairs[fold], training, weights, training.fold_of != fold))
        columns.append(calibrator.transform(oof[:, fold]))
    return np.column_stack(columns)


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
