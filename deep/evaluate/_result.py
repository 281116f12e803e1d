"""The result of one hold-out."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

__all__ = ["LooResult"]


@dataclass(frozen=True, eq=False)
class LooResult:
    """One dataset held out.

    Parameters
    ----------
    results : dict
        What `results.json` holds; docs/results-schema.md describes every key.
    scores : DataFrame
        A row per held-out item: dataset, item_id, label, p_consistent, p_low, p_high, p_uniform, p_uncalibrated,
        n_votes.
    """

    results: dict[str, Any]
    scores: pd.DataFrame
