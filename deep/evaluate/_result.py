"""The result of one hold-out, and the JSON that it and the studies write."""

from dataclasses import dataclass

import pandas as pd

from deep._files import JsonObject

Row = JsonObject
"""A row of a table, or an object of a results.json."""

Run = Row
"""The entry of `results.json` for one held-out dataset; docs/results-schema.md describes every key."""


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
    chains : DataFrame, optional
        A row per held-out item and chain that was run: dataset, item_id, recipe, ensembler, size, calibrator, p.
    """

    results: Run
    scores: pd.DataFrame
    chains: pd.DataFrame | None = None
