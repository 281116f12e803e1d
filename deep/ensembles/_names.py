"""The ensemblers' names, known without loading the libraries behind them."""

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
)
"""The sixteen of the paper, and MultinomialNB from its calibration tables; each is the name of its class."""
