"""FECT's printed Tables 2, 4 and 5, in the layout of a run's summary."""

from dataclasses import asdict

import pandas as pd

from deep.datasets import published_fect
from deep.evaluate import t_reach
from deep.experiments.fect._scores import CONFIDENCE

SOURCE = "as printed (Shin et al. 2025, arXiv:2508.00889, ten runs a model and prompt)"


def printed_summary() -> pd.DataFrame:
    """Return the printed means and deviations with the 95 % t-intervals that they imply."""
    frame = pd.DataFrame([asdict(score) for score in published_fect()])
    half = [t_reach(sd, n, CONFIDENCE) for n, sd in zip(frame["n_runs"], frame["sd"], strict=True)]
    return frame.assign(low=frame["mean"] - half, high=frame["mean"] + half, coverage=1.0)
