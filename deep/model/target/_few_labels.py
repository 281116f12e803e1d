"""How far log-odds are off from dataset to dataset, and their correction by a few labels of the new one."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from deep._checks import Floats, check_labels, check_probabilities, check_sample_weight
from deep.base import P_MIN
from deep.exceptions import InputError
from deep.features import weigh
from deep.model.target._align import newton_logistic
from deep.model.target._misfit import Misfit

__all__ = ["FewLabels", "LeftOutRows", "learn_misfit"]

START = ((0.5, 0.0), (0.0, 0.15))
"""Second moments of intercept and slope - 1 assumed before any dataset was seen, worth `START_WEIGHT` datasets."""

START_WEIGHT = 1.0

MIN_ROWS = 5
"""Cells with fewer rows are too noisy to add to the cells' spread."""

WIDEST = 100.0


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """One dataset's rows with log-odds of P by fits without it.

    Parameters
    ----------
    log_odds : ndarray of float, shape (n_examples,)
    ones, zeros : ndarray of float, shape (n_examples,)
        Weight of label 1 and of label 0.
    cell : ndarray of int, shape (n_examples,)
        Which vote pattern each row has.
    """

    log_odds: Floats
    ones: Floats
    zeros: Floats
    cell: npt.NDArray[np.intp]


def learn_misfit(left_out: list[LeftOutRows]) -> Misfit:
    """Learn the misfit from datasets left out.

    Parameters
    ----------
    left_out : list of LeftOutRows

    Returns
    -------
    Misfit
        Of one dataset: its own, as far as `START` lets it count. The cells' spread is the root of Paule and
        Mandel's equation: squared deviations over the variance of counting plus the spread squared average 1,
        every dataset weighing the same [1]_.

    References
    ----------
    .. [1] R. C. Paule and J. Mandel, "Consensus values and weighting factors", J. Res. NBS 87, 1982.
       https://doi.org/10.6028/jres.087.022
    """
    moments = START_WEIGHT * np.array(START)
    deviations = []
    for one in left_out:
        correction = _correction(one)
        moments = moments + np.outer(correction, correction)
        deviations.append(_deviations(one, correction))
    spread = _cell_spread([pair for pair in deviations if len(pair[0])])
    return Misfit(moments / (START_WEIGHT + len(left_out)), len(left_out), spread)


def _correction(one: LeftOutRows) -> Floats:
    """Return intercept and slope - 1 that a whole labeled dataset asks for."""
    design = np.column_stack([np.ones(len(one.log_odds)), one.log_odds])
    # About one row's worth of pull keeps a separable dataset finite.
    penalty = np.eye(2) / (one.ones.sum() + one.zeros.sum())
    found = newton_logistic(design, one.ones, one.zeros, centre=np.array([0.0, 1.0]), penalty=penalty)
    return np.asarray(found - np.array([0.0, 1.0]))


def _deviations(one: LeftOutRows, correction: Floats) -> tuple[Floats, Floats]:
    """Return observed minus corrected log-odds of the cells with rows enough, and the variance of counting."""
    ones, zeros = (weigh(one.cell, weights) for weights in (one.ones, one.zeros))
    n = ones + zeros
    corrected = correction[0] + (1 + correction[1]) * one.log_odds
    expected = np.bincount(one.cell, weights=(one.ones + one.zeros) * expit(corrected)) / np.maximum(n, 1e-9)
    kept = n >= MIN_ROWS
    ones, zeros = ones[kept] + 0.5, zeros[kept] + 0.5
    return np.log(ones / zeros) - logit(np.clip(expected[kept], P_MIN, 1 - P_MIN)), 1 / ones + 1 / zeros


def _cell_spread(deviations: list[tuple[Floats, Floats]]) -> float:
    def excess(spread: float) -> float:
        return float(np.mean([np.mean(gap**2 / (noise + spread**2)) for gap, noise in deviations])) - 1.0

    return 0.0 if not deviations or excess(0.0) <= 0 else float(brentq(excess, 0.0, WIDEST))


class FewLabels(BaseEstimator):
    """Corrects transferred probabilities by a few labels of the new dataset.

    Intercept and slope in log-odds are shrunk towards (0, 1), no correction, by a Gaussian prior as wide as
    the training datasets' own corrections: with few labels little moves, with many the labels decide.

    Parameters
    ----------
    misfit : Misfit
        What the training datasets tell.

    Attributes
    ----------
    coef_ : ndarray of shape (2,)
        Intercept and slope.
    covariance_ : ndarray of shape (2, 2)
        Of `coef_` given the labels.

    References
    ----------
    .. [1] B. Efron and C. Morris, "Stein's estimation rule and its competitors: an empirical Bayes approach",
       JASA 68, 1973. https://doi.org/10.1080/01621459.1973.10481350

    Examples
    --------
    >>> misfit = Misfit(np.array([[1.0, 0.0], [0.0, 0.1]]), 10)
    >>> p = [0.6, 0.7, 0.8, 0.9] * 5
    >>> few = FewLabels(misfit).fit(p, [0, 0, 1, 1] * 5)
    >>> few.transform([0.7]).round(2).tolist()
    [0.46]
    """

    def __init__(self, misfit: Misfit) -> None:
        self.misfit = misfit

    def fit(self, y_prob: Any, y_true: Any, sample_weight: Any = None) -> Self:
        """Learn from labeled rows of the new dataset; one class alone is enough.

        Parameters
        ----------
        y_prob : array-like of shape (n_examples,)
            Transferred P(consistent).
        y_true : array-like of shape (n_examples,)
            Labels 0/1.
        sample_weight : array-like of shape (n_examples,), optional

        Raises
        ------
        InputError
            A value is out of range or lengths differ.
        """
        z = _log_odds(y_prob)
        y = check_labels(y_true, len(z), name="y_true")
        w = check_sample_weight(sample_weight, len(z))
        moment = self.misfit.second_moment
        if not np.all(np.linalg.eigvalsh(moment) > 0):
            raise InputError(f"`misfit` must have a positive definite second moment. Got {moment.tolist()!r}.")
        design = np.column_stack([np.ones(len(z)), z])
        precision = np.linalg.inv(moment)
        self.coef_ = newton_logistic(
            design, w * (y == 1), w * (y == 0), centre=np.array([0.0, 1.0]), penalty=precision / w.sum()
        )
        p = expit(design @ self.coef_)
        self.covariance_ = np.linalg.inv((design.T * (w * p * (1 - p))) @ design + precision)
        return self

    def transform(self, y_prob: Any) -> Floats:
        """Return corrected P(consistent), shape (n_examples,)."""
        check_is_fitted(self, "coef_")
        z = _log_odds(y_prob)
        return np.asarray(np.clip(expit(self.coef_[0] + self.coef_[1] * z), P_MIN, 1 - P_MIN))

    def interval(self, y_prob: Any, counts: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the bounds of corrected P at level 0.9; of the rate observed in `counts` rows where given."""
        check_is_fitted(self, "coef_")
        z = _log_odds(y_prob)
        return self.misfit.bounds(z, self.coef_[0] + self.coef_[1] * z, self.covariance_, counts)


def _log_odds(y_prob: Any) -> Floats:
    return np.asarray(logit(np.clip(check_probabilities(y_prob), P_MIN, 1 - P_MIN)))
