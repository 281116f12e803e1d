"""What is fitted on what: deep's own recipe and the paper's."""

from dataclasses import dataclass
from typing import Literal

from deep.model.chain._search import Criterion
from deep.model.chain._training import Weighting

__all__ = ["RECIPES", "Recipe"]


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
