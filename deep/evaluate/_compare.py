"""Is the recommended chain better than its rivals, beyond chance: paired tests."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from deep._checks import Labels
from deep.calibration import paired_bootstrap
from deep.evaluate._baselines import CONTEXT, Baseline
from deep.evaluate._result import Row

ALPHA = 0.01
"""Significance level after Bonferroni's correction over datasets, as in the paper's section 4.4."""

RIVALS = ("best_prompt", CONTEXT, "majority")
"""Kinds of baselines that are chosen on training data; encoders with a threshold from there come after them."""

DRAWS_A_TEST = 200
"""Resamples that each of m tests needs, or no p can be small enough to pass ALPHA / m."""


def rivals(baselines: Sequence[Baseline]) -> list[Baseline]:
    """Return the baselines that need no test label."""
    return [b for b in baselines if b.kind in RIVALS or (b.kind, b.threshold_from) == ("encoder", "train")]


def compare(
    decisions: npt.NDArray[np.bool_],
    labels: Labels,
    baselines: Sequence[Baseline],
    *,
    n_boot: int,
    random_state: int,
    n_datasets: int = 1,
) -> list[Row]:
    """Test the balanced accuracy of `recommended` against each rival by paired bootstrap.

    Parameters
    ----------
    decisions : ndarray of bool, shape (n_examples,)
        Of what is recommended.
    labels : ndarray of int8, shape (n_examples,)
        -1 where unknown; such rows are left out.
    baselines : sequence of Baseline
    n_boot : int
        Raised to 200 a test where it is less.
    random_state : int
    n_datasets : int, default=1
        How many datasets are held out in turn, each with the same tests.

    Returns
    -------
    list of dict
        ``a, b, difference, ci, p`` each; ``p_bonferroni, significant`` after the correction over rivals,
        ``p_bonferroni_datasets, significant_datasets`` after that over datasets. Empty where a class has no labeled
        row.
    """
    against = rivals(baselines)
    labeled = labels >= 0
    if len(np.unique(labels[labeled])) < 2:
        return []
    y, a = labels[labeled], decisions[labeled]
    rows = []
    for rival in against:
        found = paired_bootstrap(
            y,
            a,
            rival.decisions[labeled],
            n_boot=max(n_boot, DRAWS_A_TEST * max(len(against), n_datasets)),
            random_state=random_state,
        )
        over_rivals, over_datasets = (float(min(1.0, found.p * n)) for n in (len(against), n_datasets))
        rows.append(
            {
                "a": "recommended",
                "b": f"{rival.kind}: {rival.name}",
                "difference": float(found.difference),
                "ci": [float(bound) for bound in found.ci],
                "p": float(found.p),
                "p_bonferroni": over_rivals,
                "significant": over_rivals < ALPHA,
                "p_bonferroni_datasets": over_datasets,
                "significant_datasets": over_datasets < ALPHA,
            }
        )
    return rows
