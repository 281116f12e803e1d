"""Correct log-odds by a few labels of the new dataset, as far as training datasets let them count."""

from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from deep._checks import Floats, Weights, check_labels, check_probabilities, check_sample_weight
from deep._odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.model.target._align import newton_logistic
from deep.model.target._misfit import Misfit


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

    def fit(self, y_prob: npt.ArrayLike, y_true: npt.ArrayLike, sample_weight: Weights = None) -> Self:
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
        z = logit(check_probabilities(y_prob))
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

    def transform(self, y_prob: npt.ArrayLike) -> Floats:
        """Return corrected P(consistent), shape (n_examples,)."""
        check_is_fitted(self, "coef_")
        z = logit(check_probabilities(y_prob))
        return np.asarray(np.clip(expit(self.coef_[0] + self.coef_[1] * z), P_MIN, 1 - P_MIN))

    def interval(self, y_prob: npt.ArrayLike, counts: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return the bounds of corrected P at level 0.9; of the rate observed in `counts` rows where given."""
        check_is_fitted(self, "coef_")
        z = logit(check_probabilities(y_prob))
        return self.misfit.bounds(z, self.coef_[0] + self.coef_[1] * z, self.covariance_, counts)
