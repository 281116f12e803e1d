"""The ensemblers' names, and the libraries behind them, known without loading those."""

from importlib.util import find_spec

ENSEMBLER_NAMES = (
    "AdaBoost",
    "BernoulliNB",
    "CatBoost",
    "DawidSkene",
    "DecisionTree",
    "GradientBoosting",
    "KNeighbors",
    "LDA",
    "LGBM",
    "LabelModel",
    "LogisticRegression",
    "MajorityLabelVoter",
    "MultinomialNB",
    "RandomForest",
    "SVC",
    "WeightedMajorityVoting",
    "XGB",
    "snorkel-labelmodel",
)
"""The sixteen of the paper, and MultinomialNB from its calibration tables; then snorkel's own class."""

NAMED_ONLY = ("snorkel-labelmodel",)
"""Those that are tried only where they are named."""

BOOSTING = {"CatBoost": "catboost", "LGBM": "lightgbm", "XGB": "xgboost"}
"""The library of each ensembler that ``deep-judges[boosting]`` brings."""


def default_ensemblers() -> tuple[str, ...]:
    """Return the ensemblers that are tried where none are named: those whose library is installed."""
    return tuple(name for name in ENSEMBLER_NAMES if name not in (*NAMED_ONLY, *_lacking()))


def left_out_note() -> str | None:
    """Return the sentence that names the ensemblers whose libraries are not installed; None where all are."""
    lacking = _lacking()
    if not lacking:
        return None
    names = ", ".join(lacking)
    return f"Left out, for their libraries are not installed: {names}. Run: pip install 'deep-judges[boosting]'."


def _lacking() -> list[str]:
    return [name for name, library in BOOSTING.items() if find_spec(library) is None]
