"""Temperature scaling: one scale on the log-odds."""

import numpy as np

from deep._checks import Floats, Labels
from deep._odds import expit, logit
from deep.base import BaseCalibrator
from deep.calibration._scores import DistinctScores, collapse

COLDEST, HOTTEST = 0.01, 100.0
"""The temperatures searched; separable scores reach the first, uninformative ones the second."""


class Temperature(BaseCalibrator):
    """Divide the log-odds of P by one temperature: 0.5 stays 0.5, so decisions at 0.5 never change.

    ``P(calibrated) = sigmoid(log-odds(P) / temperature_)``, with P held within [1e-6, 1 - 1e-6] first.

    Attributes
    ----------
    temperature_ : float
        Within [0.01, 100]; above 1 where P was overconfident.

    Notes
    -----
    The temperature maximises the weighted likelihood. It is never negative: scores that point the wrong way,
    or say nothing, get temperature 100 and P close to 0.5. Perfectly separable scores get 0.01; where all
    scores are 0.5 the temperature stays 1. Rising always. Only the ratio of weights matters.

    Flipping labels and probabilities together (y to 1 - y, P to 1 - P) flips the output.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On calibration of modern neural networks",
       ICML 2017. https://arxiv.org/abs/1706.04599

    Examples
    --------
    >>> from deep.calibration import Temperature
    >>> overconfident = Temperature().fit([0.1] * 10 + [0.9] * 10, [1] * 3 + [0] * 7 + [0] * 3 + [1] * 7)
    >>> overconfident.transform([0.1, 0.5, 0.9]).round(3)
    array([0.3, 0.5, 0.7])
    """

    temperature_: float

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        scores = collapse(p, y, w)
        x = logit(scores.p)
        self.temperature_ = 1.0 / _best_scale(x, scores) if x.any() else 1.0

    def _transform(self, p: Floats) -> Floats:
        return np.asarray(expit(logit(p) / self.temperature_))


def _best_scale(x: Floats, scores: DistinctScores) -> float:
    """Return the scale at which the negative log-likelihood, convex in it, has slope 0, or the nearer bound."""
    from scipy.optimize import brentq

    def slope(scale: float) -> float:
        return float(x @ (scores.n * expit(scale * x) - scores.n1))

    low, high = 1.0 / HOTTEST, 1.0 / COLDEST
    if slope(low) >= 0.0:
        return low
    return high if slope(high) <= 0.0 else float(brentq(slope, low, high, xtol=1e-15, rtol=1e-15))
