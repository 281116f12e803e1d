"""Platt scaling on log-odds."""

from itertools import product

import numpy as np

from deep._util.checks import Floats, Labels
from deep._util.odds import P_MIN, expit, fit_logistic, logit
from deep.base import BaseCalibrator
from deep.calibration._ece import DistinctScores, collapse


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


class Beta(BaseCalibrator):
    """Three parameters that bend P apart at its two ends, and never fall.

    ``log-odds(calibrated) = a_ * log P - b_ * log(1 - P) + c_`` with ``a_, b_ >= 0``, and P held within
    [1e-6, 1 - 1e-6] first. ``a_ = b_ = 1, c_ = 0`` is the identity; ``a_ = b_`` is Platt's map.

    Attributes
    ----------
    a_, b_ : float
        Slopes near P = 0 and near P = 1; not negative.
    c_ : float
        Intercept, in log-odds.

    Notes
    -----
    The parameters maximise the weighted likelihood under the constraint. The problem is convex, so a slope
    that comes out negative belongs at 0, and the faces of the constraint are tried for the best. Scores that
    point the wrong way end with both slopes 0: a constant, the share of label 1. Never falling.

    A pull of 1e-6 towards the identity keeps separable scores finite, and settles what fewer than three
    distinct scores leave open. Flipping labels and probabilities together (y to 1 - y, P to 1 - P) flips the
    output.

    References
    ----------
    .. [1] M. Kull, T. Silva Filho and P. Flach, "Beta calibration: a well-founded and easily implemented
       improvement on logistic calibration for binary classifiers", AISTATS 2017.
       https://proceedings.mlr.press/v54/kull17a.html

    Examples
    --------
    >>> from deep.calibration import Beta
    >>> lenient = Beta().fit([0.2] * 10 + [0.9] * 10, [1] * 2 + [0] * 8 + [0] * 4 + [1] * 6)
    >>> lenient.transform([0.2, 0.9]).round(3)
    array([0.2, 0.6])
    """

    a_: float
    b_: float
    c_: float

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        scores = collapse(p, y, w)
        self.a_, self.b_, self.c_ = (float(value) for value in _constrained(_design(scores.p), scores))

    def _transform(self, p: Floats) -> Floats:
        return np.asarray(expit(_design(p) @ np.array([self.a_, self.b_, self.c_])))


def _design(p: Floats) -> Floats:
    clipped = np.clip(p, P_MIN, 1.0 - P_MIN)
    return np.column_stack([np.log(clipped), -np.log1p(-clipped), np.ones_like(clipped)])


def _constrained(design: Floats, scores: DistinctScores) -> Floats:
    """Return the best coefficients with both slopes at least 0."""
    free = _fit_columns(design, scores, (True, True, True))
    if free[:2].min() >= 0.0:
        return free
    faces = [_fit_columns(design, scores, (*kept, True)) for kept in product([True, False], repeat=2) if not all(kept)]
    feasible = [face for face in faces if face[:2].min() >= 0.0]
    return min(feasible, key=lambda face: _loss(design, scores, face))


def _fit_columns(design: Floats, scores: DistinctScores, kept: tuple[bool, ...]) -> Floats:
    """Fit the kept columns, with the coefficients of the others at 0."""
    columns = np.flatnonzero(kept)
    theta = np.zeros(design.shape[1])
    identity = np.array([1.0, 1.0, 0.0])
    theta[columns] = fit_logistic(design[:, columns], scores.n, scores.n1, centre=identity[columns])
    return theta


def _loss(design: Floats, scores: DistinctScores, theta: Floats) -> float:
    z = design @ theta
    return float(scores.n @ np.logaddexp(0.0, z) - scores.n1 @ z)
