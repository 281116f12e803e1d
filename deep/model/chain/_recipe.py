"""The recipes, deep's own and the paper's: the rows that each step is fitted on; and the description of one chain."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Weighting = Literal["dataset", "dataset-class", "uniform"]

Criterion = Literal["accuracy", "balanced_accuracy", "log_loss"]


@dataclass(frozen=True)
class Recipe:
    """The choices in which two ways of fitting a chain differ; docs/recipes.md compares them.

    Parameters
    ----------
    name : str
    weighting : {'dataset', 'dataset-class', 'uniform'}
        What weighs the same in every fit and every inner score.
    criterion : {'accuracy', 'balanced_accuracy', 'log_loss'}
        What the grid search and the choice of the recommended chain maximise.
    subset_criterion : {'accuracy', 'balanced_accuracy', 'log_loss'}
        What decides between two prompt selectors.
    inner_folds : {'dataset', 'rows'}
        Training datasets, or five folds of the pooled rows.
    calibrate_on : {'out-of-fold', 'training'}
        Scores of rows left out of the fit, or of the rows the ensembler was fitted on.
    """

    name: str
    weighting: Weighting
    criterion: Criterion
    subset_criterion: Criterion
    inner_folds: Literal["dataset", "rows"]
    calibrate_on: Literal["out-of-fold", "training"]


RECIPES = {
    "deep": Recipe("deep", "dataset-class", "log_loss", "balanced_accuracy", "dataset", "out-of-fold"),
    "paper": Recipe("paper", "uniform", "accuracy", "accuracy", "rows", "training"),
}


@dataclass(frozen=True)
class ChainSpec:
    """All that decides a chain, given the training cells of its voters.

    Parameters
    ----------
    recipe : str
        A key of `RECIPES`; it says what the calibrator is fitted on.
    ensembler : str
        A key of `ENSEMBLERS`.
    params : mapping
    calibrator : str or None
        A key of `CALIBRATORS`; None: the ensembler's own probabilities.
    random_state : int
    """

    recipe: str
    ensembler: str
    params: Mapping[str, object]
    calibrator: str | None
    random_state: int
