"""The fitted chain: voters, ensembler and calibrator, chosen and fitted on training data alone."""

from deep.model._candidates import Candidate, fit_candidates, recommend
from deep.model._folds import training_set
from deep.model._recipe import RECIPES, Recipe
from deep.model._search import SearchResult, search
from deep.model._subsets import SELECTOR_NAMES, Subset, choose_subsets
from deep.model._training import TrainingSet, Weighting, group_weights

__all__ = [
    "RECIPES",
    "SELECTOR_NAMES",
    "Candidate",
    "Recipe",
    "SearchResult",
    "Subset",
    "TrainingSet",
    "Weighting",
    "choose_subsets",
    "fit_candidates",
    "group_weights",
    "recommend",
    "search",
    "training_set",
]
