"""The fitted chain: voters, ensembler and calibrator, chosen and fitted on training data alone."""

from deep.model._adapt import Adaptation, Correction
from deep.model._candidates import Candidate, fit_candidates, recommend, task_seed
from deep.model._drift import PANEL, STATISTICS, DriftRow, compare_votes, false_alarms
from deep.model._explain import Contribution
from deep.model._few_labels import FewLabels, Misfit
from deep.model._file import load_model, save_model
from deep.model._fit import UNCALIBRATED, fit_model
from deep.model._folds import training_set
from deep.model._label_next import STRATEGIES, Proposal, propose_labels
from deep.model._model import Model, check_prior
from deep.model._panel import PanelReport, PanelStep, panel_worth
from deep.model._pool import Pool, PoolScores
from deep.model._prior import LearnedPrior, PriorEstimate
from deep.model._recipe import RECIPES, Recipe
from deep.model._search import SearchResult, search
from deep.model._sequential import STOP, AskingPolicy, Simulation
from deep.model._subsets import SELECTOR_NAMES, Subset, choose_subsets
from deep.model._table import MAX_TABLE_VOTERS, pattern_grid
from deep.model._training import TrainingSet, Weighting, group_weights
from deep.model._voters import Voter, match_columns

__all__ = [
    "MAX_TABLE_VOTERS",
    "PANEL",
    "RECIPES",
    "SELECTOR_NAMES",
    "STATISTICS",
    "STOP",
    "STRATEGIES",
    "UNCALIBRATED",
    "Adaptation",
    "AskingPolicy",
    "Candidate",
    "Contribution",
    "Correction",
    "DriftRow",
    "FewLabels",
    "LearnedPrior",
    "Misfit",
    "Model",
    "PanelReport",
    "PanelStep",
    "Pool",
    "PoolScores",
    "PriorEstimate",
    "Proposal",
    "Recipe",
    "SearchResult",
    "Simulation",
    "Subset",
    "TrainingSet",
    "Voter",
    "Weighting",
    "check_prior",
    "choose_subsets",
    "compare_votes",
    "false_alarms",
    "fit_candidates",
    "fit_model",
    "group_weights",
    "load_model",
    "match_columns",
    "panel_worth",
    "pattern_grid",
    "propose_labels",
    "recommend",
    "save_model",
    "search",
    "task_seed",
    "training_set",
]
