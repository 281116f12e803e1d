"""Isotonic regression."""

import numpy as np
from sklearn.isotonic import isotonic_regression

from deep._checks import Floats, Labels
from deep.base import BaseCalibrator
from deep.calibration._scores import collapse


class Isotonic(BaseCalibrator):
    """The never falling map that fits best; it has no shape to be wrong about, and needs many labels.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_thresholds,)
        The scores, ascending, where the map can change: the ends of its flat pieces.
    values_ : ndarray of shape (n_thresholds,)
        Its value at each.

    Notes
    -----
    Equal scores are pooled, then adjacent scores that would fall. Between two thresholds the map is linear,
    below the first and above the last it is flat, as scikit-learn's ``IsotonicRegression`` with
    ``out_of_bounds="clip"`` has it: a score never seen in the fit lies between its neighbours' values
    instead of jumping at an arbitrary point between them. Never falling; scores that point the wrong way end
    as a constant. The ends are often exactly 0 or 1 in the fit, and are clipped to 1e-6 and 1 - 1e-6 like
    every output. Below about 1,000 labels it follows noise. Only the ratio of weights matters.

    Flipping labels and probabilities together (y to 1 - y, P to 1 - P) flips the output.

    References
    ----------
    .. [1] B. Zadrozny and C. Elkan, "Transforming classifier scores into accurate multiclass probability
       estimates", KDD 2002. https://doi.org/10.1145/775047.775151

    Examples
    --------
    >>> from deep.calibration import Isotonic
    >>> iso = Isotonic().fit([0.2, 0.2, 0.4, 0.4, 0.8, 0.8], [0, 1, 0, 0, 1, 1])
    >>> iso.transform([0.2, 0.4, 0.6]).round(3)
    array([0.25 , 0.25 , 0.625])
    """

    thresholds_: Floats
    values_: Floats

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        scores = collapse(p, y, w)
        values = isotonic_regression(scores.n1 / scores.n, sample_weight=scores.n)
        inner = np.ones(len(values), dtype=bool)
        inner[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
        self.thresholds_, self.values_ = scores.p[inner], values[inner]

    def _transform(self, p: Floats) -> Floats:
        return np.interp(p, self.thresholds_, self.values_)
