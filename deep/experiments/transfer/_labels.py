"""A few labels of the held-out dataset: the calibration error that remains, and which items to label."""

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Labels
from deep.calibration import expected_calibration_error
from deep.model import STRATEGIES, FewLabels, PoolScores, propose_labels

FEW = (20, 50, 100)
"""Numbers of target labels given."""

PAIRS = ((15, 20), (30, 40), (75, 100))
"""A quarter fewer labels by a strategy, beside the number by random draws."""

DRAWS = 0.25
"""Share of the draws that a strategy gets: it is compared with random draws on three pairs together."""


def few_label_errors(
    y: Labels, found: PoolScores, *, n_draws: int, n_bins: int, random_state: int
) -> dict[str, float | None]:
    """Return the calibration error on the unlabeled rest by the number of labels, the mean over random draws.

    None where more than half of the dataset would be labeled.
    """
    p = found.p_consistent
    rng = np.random.default_rng(random_state)
    errors: dict[str, float | None] = dict.fromkeys(map(str, FEW))
    for n in FEW:
        if 2 * n <= len(y):
            drawn = [_error(y, p, rng.permutation(len(y))[:n], found, n_bins) for _ in range(n_draws)]
            errors[str(n)] = float(np.mean(drawn))
    return errors


def fewer_labels(
    y: Labels, found: PoolScores, *, n_draws: int, n_bins: int, random_state: int
) -> dict[str, float | None]:
    """Return, by strategy, its calibration error with a quarter fewer labels less that of random draws.

    The mean over `PAIRS`; 0 or less says that the strategy needs at least a quarter fewer labels. None where the
    dataset is too small.
    """
    if 2 * max(n for _, n in PAIRS) > len(y):
        return dict.fromkeys(STRATEGIES)
    p = found.p_consistent
    draws = range(random_state, random_state + max(1, round(DRAWS * n_draws)))

    def error(strategy: str, n: int) -> float:
        proposals = (propose_labels(p, found.misfit, n, strategy=strategy, random_state=seed) for seed in draws)
        return float(np.mean([_error(y, p, proposal.rows, found, n_bins) for proposal in proposals]))

    usual = [error("random", n) for _, n in PAIRS]
    return {
        strategy: float(np.mean([error(strategy, n) for n, _ in PAIRS]) - np.mean(usual)) for strategy in STRATEGIES
    }


def _error(y: Labels, p: Floats, labeled: npt.NDArray[np.intp], found: PoolScores, n_bins: int) -> float:
    rest = np.ones(len(y), dtype=bool)
    rest[labeled] = False
    few = FewLabels(found.misfit).fit(p[labeled], y[labeled])
    return expected_calibration_error(y[rest], few.transform(p[rest]), n_bins=n_bins)
