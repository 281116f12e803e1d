"""The names that options accept, here so that `--help` loads none of what they name; a test compares the registries."""

CALIBRATORS = ("bbq", "beta", "histogram", "isotonic", "platt", "temperature")
UNCALIBRATED = "none"
"""In place of a calibrator's name: the ensembler's own probabilities."""

ENSEMBLERS = (
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
)

LEVELS = ("rational", "grounded", "irrefutable")
"""The criteria of the judge tiered."""

RECIPES = ("deep", "paper")
SELECTORS = ("auto", "exhaustive", "mrmr", "rfe")
STRATEGIES = ("design", "random", "spread")
"""How `deep label-next` chooses items."""
