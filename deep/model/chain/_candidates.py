"""Candidate chains (voters, ensembler, calibrator), scored on training data alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from deep._checks import Floats, Votes, check_choice
from deep._odds import P_MIN
from deep.features import distinct_patterns
from deep.model.chain._calibrate import calibrate
from deep.model.chain._grid import grid_search, inner_score
from deep.model.chain._recipe import Recipe
from deep.model.chain._subsets import Subset
from deep.model.chain._training import TrainingSet


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
        inner folds, by fits that saw neither. Where a recipe calibrates on training scores they are those of
        the uncalibrated probabilities.
    p : ndarray of float, shape (n_target_patterns,)
        P(consistent).
    """

    ensembler: str
    params: dict[str, object]
    subset: Subset
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
    subset: Subset,
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
    found = grid_search(ensembler, chosen, criterion=recipe.criterion, random_state=random_state)
    patterns, row_pattern = distinct_patterns(np.ascontiguousarray(target[:, list(subset.columns)]))
    scores = found.ensembler.predict_proba(patterns)[:, 1]
    calibrated = calibrate(found, chosen, scores, calibrators, recipe, random_state, faults)
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
