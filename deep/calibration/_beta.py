"""Beta calibration."""

from itertools import product

import numpy as np

from deep._checks import Floats, Labels
from deep._logistic import fit_logistic
from deep._odds import P_MIN, expit
from deep.base import BaseCalibrator
from deep.calibration._scores import DistinctScores, collapse


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
