"""P of every held-out item by every chain that was run: the long table that `--all-chains` writes."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep.evaluate import HoldOut, TestCells
from deep.experiments.loo._tasks import Scored
from deep.model import UNCALIBRATED

Codes = npt.NDArray[np.intp]


def chain_table(split: HoldOut, target: TestCells, scored: Mapping[str, Sequence[Scored]]) -> pd.DataFrame:
    """Return a row for each chain and item, the items of one chain together.

    Parameters
    ----------
    split : HoldOut
    target : TestCells
    scored : mapping of str to sequence of (Candidate, dict)
        The chains by recipe.

    Returns
    -------
    DataFrame
        ``dataset, item_id, recipe, ensembler, size, calibrator, p``: P as the chain gives it, at equal class weights
        under deep's recipe.
    """
    chains = [(recipe, candidate) for recipe, pairs in scored.items() for candidate, _ in pairs]
    n, n_items = len(chains), len(target.row_pattern)
    of_chain, of_item = np.repeat(np.arange(n), n_items), np.tile(np.arange(n_items), n)
    sizes = np.array([len(one.subset.columns) for _, one in chains], dtype=np.int32)
    p = [one.p[target.row_pattern] for _, one in chains]
    return pd.DataFrame(
        {
            "dataset": _names([split.name] * n_items, of_item),
            "item_id": _names(split.test.example_ids.astype(str), of_item),
            "recipe": _names([recipe for recipe, _ in chains], of_chain),
            "ensembler": _names([one.ensembler for _, one in chains], of_chain),
            "size": sizes[of_chain],
            "calibrator": _names([one.calibrator or UNCALIBRATED for _, one in chains], of_chain),
            "p": np.concatenate(p) if p else np.empty(0),
        }
    )


def _names(values: Sequence[str] | npt.NDArray[np.str_], rows: Codes) -> pd.Categorical:
    """Return the values at these rows, each name held once."""
    distinct, codes = np.unique(np.asarray(values, dtype=str), return_inverse=True)
    return pd.Categorical.from_codes(codes[rows], categories=distinct.tolist())
