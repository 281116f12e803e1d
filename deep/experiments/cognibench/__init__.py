"""CogniBench: who finds hallucinated sentences, factual and cognitive; tables, figures and training data."""

from deep.experiments.cognibench._command import main

__all__ = ["main"]
