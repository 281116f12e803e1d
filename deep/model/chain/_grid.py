"""Grid search over inner folds, formed on rows and collapsed per fold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import cast

import numpy as np

from deep._checks import Floats
from deep._odds import DECISION, P_MIN
from deep.base import BaseEnsembler, StagedEnsembler
from deep.ensembles import ENSEMBLERS
from deep.model.chain._recipe import Criterion
from deep.model.chain._training import TrainingSet

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
    criterion : {'accuracy', 'balanced_accuracy', 'log_loss'}
        Accuracy counts rows; the other two use `weights`, under which balanced accuracy is the mean over
        datasets. Log loss is negated, so that higher is better.
    weights : ndarray of float, shape (n_patterns, n_groups, 2)
        ``training.weights()``.
    """
    by_group = p[:, training.fold_of]
    if criterion == "log_loss":
        clipped = np.clip(by_group, P_MIN, 1 - P_MIN)
        loss = np.stack([-np.log1p(-clipped), -np.log(clipped)], axis=2)
        return -float((weights * loss).sum() / weights.sum())
    w = training.cells.counts if criterion == "accuracy" else weights
    positive = by_group >= DECISION
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
    criterion : {'accuracy', 'balanced_accuracy', 'log_loss'}, default='log_loss'
    grid : mapping of str to sequence, optional
        Default: the ensembler's `param_grid`.
    random_state : int, default=0

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


def out_of_fold(name: str, training: TrainingSet) -> Floats:
    """Return P(consistent) of each pattern by the fit that left a fold out, shape (n_patterns, n_folds).

    The ensembler has its default parameters.
    """
    return _oof(name, {}, training, 0)


def cross_validate(name: str, training: TrainingSet, criterion: Criterion) -> float:
    """Return the inner score of an ensembler with its default parameters."""
    return inner_score(out_of_fold(name, training), training, criterion, training.weights())


def _grid_scores(
    name: str, training: TrainingSet, grid: ParamValues, random_state: int
) -> Iterator[tuple[dict[str, object], Floats]]:
    """Yield each grid point with its out-of-fold probabilities; stages of one fit share it."""
    stage_param = getattr(ENSEMBLERS[name], "stage_param", None)
    stages = cast("Sequence[int]", grid.get(stage_param, ()) if stage_param else ())
    names = [key for key in grid if not (stages and key == stage_param)]
    for values in product(*(grid[key] for key in names)):
        params = dict(zip(names, values, strict=True))
        if stages:
            staged = _staged_oof(name, params | {str(stage_param): max(stages)}, training, stages, random_state)
            for stage, oof in zip(stages, staged, strict=True):
                yield params | {str(stage_param): stage}, oof
        else:
            yield params, _oof(name, params, training, random_state)


def _oof(name: str, params: dict[str, object], training: TrainingSet, random_state: int) -> Floats:
    columns = []
    for fold in range(training.n_folds):
        ensembler = make_ensembler(name, params, random_state).fit(*training.without_fold(fold))
        columns.append(ensembler.predict_proba(training.cells.patterns)[:, 1])
    return np.column_stack(columns)


def _staged_oof(
    name: str, params: dict[str, object], training: TrainingSet, stages: Sequence[int], random_state: int
) -> Floats:
    """Return out-of-fold probabilities by stage, shape (n_stages, n_patterns, n_folds)."""
    folds = []
    for fold in range(training.n_folds):
        ensembler = make_ensembler(name, params, random_state).fit(*training.without_fold(fold))
        assert isinstance(ensembler, StagedEnsembler)  # only those have a stage_param
        folds.append(ensembler.staged_predict_proba(training.cells.patterns, stages))
    return np.stack(folds, axis=2)
