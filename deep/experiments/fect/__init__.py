"""FECT: judges of interpretive claims under four prompts and repeated runs."""

from deep.experiments.fect._command import main

__all__ = ["main"]
