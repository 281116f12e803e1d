"""Platt scaling on log-odds."""

import numpy as np

from deep._checks import Floats, Labels
from deep._logistic import fit_logistic
from deep._odds import expit, logit
from deep.base import BaseCalibrator
from deep.calibration._scores import collapse


class Platt(BaseCalibrator):
    """Logistic regression of the label on the log-odds of P: slope and intercept.

    ``P(calibrated) = sigmoid(slope_ * log-odds(P) + intercept_)``, with P held within [1e-6, 1 - 1e-6] first.

    Attributes
    ----------
    slope_ : float
        1 leaves confidence as it is, below 1 lessens it. **Negative** where the scores point the wrong way:
        the map then falls, since a judge that is reliably wrong still informs. Rising otherwise.
    intercept_ : float
        In log-odds.

    Notes
    -----
    As in the paper, the fit aims not at labels 1 and 0 but at (n1 + 1) / (n1 + 2) and 1 / (n0 + 2), where n1
    and n0 are the sums of weights of the classes. Weights are therefore counts: scale them to sum to the
    number of rows, since a small sum means little evidence. With it separable scores have a finite slope.
    Scores that are all equal keep slope 1, and get the share of label 1 by their intercept.

    The log-odds, not P itself, are the regressor: the identity is then among the maps that can be fitted.

    Flipping labels and probabilities together (y to 1 - y, P to 1 - P) flips the output.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
       likelihood methods", Advances in Large Margin Classifiers, 1999, 61-74.

    Examples
    --------
    >>> from deep.calibration import Platt
    >>> overconfident = Platt().fit([0.1] * 10 + [0.9] * 10, [1] * 3 + [0] * 7 + [0] * 3 + [1] * 7)
    >>> overconfident.transform([0.1, 0.5, 0.9]).round(3)
    array([0.333, 0.5  , 0.667])
    """

    slope_: float
    intercept_: float

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        scores = collapse(p, y, w)
        n1 = scores.n1.sum()
        n0 = scores.n.sum() - n1
        smoothed = scores.n1 * (n1 + 1.0) / (n1 + 2.0) + (scores.n - scores.n1) / (n0 + 2.0)
        x = logit(scores.p)
        design = np.column_stack([x, np.ones_like(x)])
        slope, intercept = fit_logistic(design, scores.n, smoothed, centre=np.array([1.0, 0.0]))
        self.slope_, self.intercept_ = float(slope), float(intercept)

    def _transform(self, p: Floats) -> Floats:
        return np.asarray(expit(self.slope_ * logit(p) + self.intercept_))
