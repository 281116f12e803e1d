"""Table 3 of the DEEP paper: its baselines, beside those of a run on the votes that are simulated from Table 1.

The data file beside this module holds it in percent, as printed; here the figures are fractions in [0, 1].
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from deep._files import JsonObject
from deep.datasets import published_datasets
from deep.evaluate import Row


@dataclass(frozen=True, slots=True)
class PublishedBaseline:
    """One cell of the paper's Table 3.

    Parameters
    ----------
    kind : {'encoder', 'ensemble', 'llm'}
        An encoder with thresholds from the other three datasets, the paper's own ensembles, or a single
        LLM prompt of earlier work.
    method : str
    dataset : str
    balanced_accuracy : float
        In [0, 1].
    margin : float
        Half the width of the 95 % confidence interval, in the same unit.
    """

    kind: Literal["encoder", "ensemble", "llm"]
    method: str
    dataset: str
    balanced_accuracy: float
    margin: float


@cache
def published_baselines() -> tuple[PublishedBaseline, ...]:
    """Return the cells of Table 3: five encoders, six LLM prompts of others and the paper's ensembles.

    Examples
    --------
    >>> from deep.experiments.loo import published_baselines
    >>> best = published_baselines()[0]
    >>> best.method, best.dataset, best.balanced_accuracy, best.margin
    ('AlignScore', 'aggrefact-xsum', 0.702, 0.038)
    """
    stored: JsonObject = json.loads(files(__package__).joinpath("published_baselines.json").read_bytes())
    return tuple(
        PublishedBaseline(
            row["kind"], row["method"], dataset.name, *(round(figure / 100.0, 6) for figure in row[dataset.name])
        )
        for row in stored["rows"]
        for dataset in published_datasets()
    )


def published_rows(test: str) -> list[Row]:
    """Return the paper's Table 3 for one dataset as baseline rows; its figures are not ours."""
    return [
        {
            "name": cell.method,
            "kind": "published",
            "threshold_from": "train" if cell.kind == "encoder" else None,
            "threshold": None,
            "balanced_accuracy": cell.balanced_accuracy,
            "balanced_accuracy_ci": [cell.balanced_accuracy - cell.margin, cell.balanced_accuracy + cell.margin],
            "precision": None,
            "recall": None,
        }
        for cell in published_baselines()
        if cell.dataset == test
    ]
