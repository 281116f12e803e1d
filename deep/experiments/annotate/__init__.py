"""A worksheet for people who judge claims, and how far they agree."""

from deep.experiments.annotate._command import main

__all__ = ["main"]
