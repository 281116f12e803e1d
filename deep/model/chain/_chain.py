"""A chain of ensembler and calibrator, fitted from its description."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from deep._checks import Floats, Votes
from deep._odds import P_MIN
from deep.base import BaseCalibrator, BaseEnsembler
from deep.model.chain._calibrate import fit_calibrator, scored_rows
from deep.model.chain._grid import grid_search
from deep.model.chain._recipe import RECIPES, ChainSpec
from deep.model.chain._search import MapLike
from deep.model.chain._training import KeptCells, TrainingSet


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
    found = grid_search(
        spec.ensembler, training, criterion=recipe.criterion, grid=point, random_state=spec.random_state
    )
    if spec.calibrator is None:
        return Chain(found.ensembler, None)
    if recipe.calibrate_on == "training":
        X, y, w = training.table()
        return Chain(found.ensembler, fit_calibrator(spec.calibrator, found.ensembler.predict_proba(X)[:, 1], y, w))
    everything = np.ones(len(training.fold_of), dtype=bool)
    scores = scored_rows(found.oof, training, training.weights(), everything)
    return Chain(found.ensembler, fit_calibrator(spec.calibrator, *scores))


def predict_left_out(spec: ChainSpec, kept: KeptCells, patterns: Votes, run: MapLike = map) -> Floats:
    """Return P of each pattern by the chain fitted without each unit of datasets, shape (n_patterns, n_units)."""
    step = partial(_predict_without, spec=spec, kept=kept, patterns=patterns)
    return np.column_stack(list(run(step, range(kept.n_units))))


def _predict_without(unit: int, *, spec: ChainSpec, kept: KeptCells, patterns: Votes) -> Floats:
    return fit_chain(spec, kept.training(without=unit)).predict(patterns)
