"""PROBE: the builder of the benchmark, the measures of every step of a detector, and training data of both."""

from deep.experiments.probe._command import main

__all__ = ["main"]
