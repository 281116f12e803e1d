"""A model of lexical judges, fitted on the invented claims of the examples, to be served in tests."""

from functools import cache
from pathlib import Path

import deep
from deep.model import Model

ROOT = Path(__file__).resolve().parents[3]
CLAIMS = ROOT / "examples" / "claims.csv"
UNLABELED = ROOT / "examples" / "unlabeled.csv"

FEW = ("lexical-coverage", "lexical-negation", "lexical-numbers", "lexical-opposites")
"""Judges that are quick, and enough to tell a swapped number."""


@cache
def lexical_model() -> Model:
    """Return the model."""
    return deep.fit(deep.ask(deep.read_examples(CLAIMS), list(FEW)))
