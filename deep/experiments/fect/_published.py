"""Tables 2, 4 and 5 of the FECT paper: F1, precision and recall of 17 LLMs and detectors under four prompts."""

import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files

import pandas as pd

from deep._files import JsonObject
from deep.evaluate import t_reach
from deep.experiments.fect._scores import CONFIDENCE

SOURCE = "as printed (Shin et al. 2025, arXiv:2508.00889, ten runs a model and prompt)"

_METRICS = ("f1", "precision", "recall")


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """One cell of the FECT paper's Tables 2, 4 and 5; the non-factual class is the positive one.

    Parameters
    ----------
    model : str
    prompt : {'basic', 'basic-ttc', '3d', '3d-ttc'}
    metric : {'f1', 'precision', 'recall'}
    mean, sd : float
        Over `n_runs` runs, to two decimals as printed.
    n_runs : int

    References
    ----------
    .. [1] Shin et al. (2025). https://arxiv.org/abs/2508.00889
    """

    model: str
    prompt: str
    metric: str
    mean: float
    sd: float
    n_runs: int


@cache
def published_fect() -> tuple[PublishedScore, ...]:
    """Return every cell of the FECT paper's Tables 2, 4 and 5.

    Examples
    --------
    >>> from deep.experiments.fect import published_fect
    >>> f1 = [score for score in published_fect() if score.metric == "f1"]
    >>> best = max(f1, key=lambda score: score.mean)
    >>> len(f1), best.model, best.prompt, best.mean
    (62, 'o1', '3d-ttc', 0.86)
    """
    stored: JsonObject = json.loads(files(__package__).joinpath("published.json").read_bytes())
    return tuple(
        PublishedScore(model, prompt, metric, cell[0], cell[1], stored["n_runs"])
        for metric in _METRICS
        for model, cells in stored[metric].items()
        for prompt, cell in zip(stored["prompts"], cells, strict=True)
        if cell is not None
    )


def printed_summary() -> pd.DataFrame:
    """Return the printed means and deviations with the 95 % t-intervals that they imply."""
    frame = pd.DataFrame([asdict(score) for score in published_fect()])
    half = [t_reach(sd, n, CONFIDENCE) for n, sd in zip(frame["n_runs"], frame["sd"], strict=True)]
    return frame.assign(low=frame["mean"] - half, high=frame["mean"] + half, coverage=1.0)
