"""How far datasets lie apart beyond the noise of counting, and how wide an interval for one dataset more must be."""

from functools import cache
from math import cos, pi, sin

import numpy as np

from deep._checks import Floats

LEVEL = 0.9
"""Nominal coverage of every interval for a new dataset."""

MIN_DATASETS = 3
"""With two, a fit without one of them has seen a single dataset, and nothing tells how far datasets lie apart."""

MIN_ROWS = 5
"""Cells with fewer rows are too noisy to add to a spread."""

HALVINGS = 60
"""Of the range in which a quantile is looked for."""

WIDEST = 100.0
"""Of a spread in log-odds: far beyond any, so that the root lies within."""

Deviations = tuple[Floats, Floats]
"""Of the cells of one dataset: observed minus expected log-odds, and the variance of counting."""


@cache
def student_quantile(degrees: float) -> float:
    """Return the two-sided quantile of Student's t at `LEVEL`.

    Examples
    --------
    >>> round(student_quantile(10), 3)
    1.812
    """
    whole = round(degrees)
    if whole != degrees or whole < 1:
        from scipy.special import stdtrit

        return float(stdtrit(degrees, (1 + LEVEL) / 2))
    low, high = 0.0, pi / 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, whole) < LEVEL else (low, middle)
    return float(np.tan((low + high) / 2) * np.sqrt(whole))


def _within(angle: float, degrees: int) -> float:
    """Return P(|t| <= sqrt(degrees) tan(angle)): a finite series for whole degrees of freedom [1]_.

    SciPy would take longer to load than a text to score.

    References
    ----------
    .. [1] M. Abramowitz and I. A. Stegun, "Handbook of mathematical functions", 1964, 26.7.3 and 26.7.4.
    """
    sine, cosine, odd = sin(angle), cos(angle), degrees % 2
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for i in range(2 + odd, degrees - 1, 2):
        term *= cosine**2 * (i - 1) / i
        total += term
    return 2 / pi * (angle + sine * total) if odd else sine * total


def cell_log_odds(ones: Floats, zeros: Floats) -> Deviations:
    """Return the empirical log-odds of cells and their variance of counting.

    Half a row is added to each class (the Haldane-Anscombe correction), so that a cell of one class is finite.
    """
    ones, zeros = ones + 0.5, zeros + 0.5
    return np.log(ones / zeros), 1.0 / ones + 1.0 / zeros


def paule_mandel(deviations: list[Deviations]) -> float:
    """Return the standard deviation of cells around their expectation, beyond the noise of counting.

    Parameters
    ----------
    deviations : list of (ndarray, ndarray)
        Of each dataset; those without cells are left out.

    Notes
    -----
    The root of Paule and Mandel's equation: squared deviations, over the variance of counting plus the spread
    squared, average 1, every dataset weighing the same [1]_.

    References
    ----------
    .. [1] R. C. Paule and J. Mandel, "Consensus values and weighting factors", J. Res. NBS 87, 1982.
       https://doi.org/10.6028/jres.087.022
    """
    from scipy.optimize import brentq

    known = [pair for pair in deviations if len(pair[0])]

    def excess(spread: float) -> float:
        return float(np.mean([np.mean(gap**2 / (noise + spread**2)) for gap, noise in known])) - 1.0

    # The mean falls as the spread grows: where counting alone explains the deviations, there is no root above 0.
    return 0.0 if not known or excess(0.0) <= 0 else float(brentq(excess, 0.0, WIDEST))
