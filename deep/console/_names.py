"""The names that options accept, here so that `--help` loads none of what they name; a test compares the registries."""

UNCALIBRATED = "none"
"""In place of a calibrator's name: the ensembler's own probabilities."""

CONSTRAINTS = ("none", "schema", "vllm")
"""How an endpoint is told the answers that a reply is chosen from."""

OWN_FITS = ("Average", "Stack")
"""deep's own ways to add up votes, beside the ensemblers."""

RECIPES = ("deep", "paper")
SELECTORS = ("auto", "exhaustive", "mrmr", "mrmr-selection", "rfe")
STRATEGIES = ("design", "random", "spread")
"""How `deep label list` chooses items."""
