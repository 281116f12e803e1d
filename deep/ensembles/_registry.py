"""The names by which options and files call what this package holds."""

from deep.base import BaseEnsembler
from deep.ensembles._ada_boost import AdaBoost
from deep.ensembles._boosting import LGBM, XGB, CatBoost
from deep.ensembles._dawid_skene import DawidSkene
from deep.ensembles._label_model import LabelModel
from deep.ensembles._linear import LDA, LogisticRegression
from deep.ensembles._naive_bayes import BernoulliNB, MultinomialNB
from deep.ensembles._neighbors import KNeighbors
from deep.ensembles._svc import SVC
from deep.ensembles._trees import DecisionTree, GradientBoosting, RandomForest
from deep.ensembles._voters import MajorityLabelVoter, WeightedMajorityVoting

ENSEMBLERS: dict[str, type[BaseEnsembler]] = {
    "AdaBoost": AdaBoost,
    "BernoulliNB": BernoulliNB,
    "CatBoost": CatBoost,
    "DawidSkene": DawidSkene,
    "DecisionTree": DecisionTree,
    "GradientBoosting": GradientBoosting,
    "KNeighbors": KNeighbors,
    "LDA": LDA,
    "LGBM": LGBM,
    "LabelModel": LabelModel,
    "LogisticRegression": LogisticRegression,
    "MajorityLabelVoter": MajorityLabelVoter,
    "MultinomialNB": MultinomialNB,
    "RandomForest": RandomForest,
    "SVC": SVC,
    "WeightedMajorityVoting": WeightedMajorityVoting,
    "XGB": XGB,
}
"""The ensemblers by name: the sixteen of the paper, and MultinomialNB from its calibration tables."""


__all__ = ["ENSEMBLERS"]
