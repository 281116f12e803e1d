"""Is the recommended chain better than its rivals, beyond chance: paired tests."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from deep._checks import Labels
from deep.calibration import paired_bootstrap
from deep.evaluate._baselines import Baseline
from deep.evaluate._result import Row

ALPHA = 0.01
"""Significance level after Bonferroni's correction, as in the paper's section 4.4."""

DRAWS_A_TEST = 200
"""Resamples that each of m tests needs, or no p can be small enough to pass ALPHA / m."""


def rivals(baselines: Sequence[Baseline]) -> list[Baseline]:
    """Return the baselines that need no test label: the best training prompt, the majority, realistic encoders."""
    return [
        b
        for b in baselines
        if b.kind in ("best_prompt", "majority") or (b.kind, b.threshold_from) == ("encoder", "train")
    ]


def compare(
    decisions: npt.NDArray[np.bool_],
    labels: Labels,
    baselines: Sequence[Baseline],
    *,
    n_boot: int,
    random_state: int,
) -> list[Row]:
    """Test the balanced accuracy of `recommended` against each rival by paired bootstrap.

    Parameters
    ----------
    decisions : ndarray of bool, shape (n_examples,)
        Of the recommended chain.
    labels : ndarray of int8, shape (n_examples,)
        -1 where unknown; such rows are left out.
    baselines : sequence of Baseline
    n_boot : int
        Raised to 200 a test where it is less.
    random_state : int

    Returns
    -------
    list of dict
        ``a, b, difference, ci, p, p_bonferroni, significant`` each; empty where a class has no labeled row.
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
            n_boot=max(n_boot, DRAWS_A_TEST * len(against)),
            random_state=random_state,
        )
        corrected = min(1.0, found.p * len(against))
        rows.append(
            {
                "a": "recommended",
                "b": f"{rival.kind}: {rival.name}",
                "difference": float(found.difference),
                "ci": [float(bound) for bound in found.ci],
                "p": float(found.p),
                "p_bonferroni": float(corrected),
                "significant": bool(corrected < ALPHA),
            }
        )
    return rows
