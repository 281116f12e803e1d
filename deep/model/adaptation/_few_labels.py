"""Correct log-odds by the labels of the new dataset, none to thousands, as far as training datasets let them count."""

from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from deep._util.checks import (
    Floats,
    Weights,
    check_consistent_length,
    check_labels,
    check_probabilities,
    check_sample_weight,
)
from deep._util.odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.model.adaptation._correction import Clusters, standardised
from deep.model.adaptation._misfit import NO_CORRECTION, Misfit, newton_logistic

MIN_SLOPE = 0.05
"""Labels may take nearly all weight from the votes, but never turn them round."""

HOLD = 1e9
"""Precision of a slope that is held at `MIN_SLOPE`."""


class FewLabels(BaseEstimator):
    """Corrects transferred probabilities by labels of the new dataset, from none to thousands.

    Intercept and slope in log-odds have a Gaussian prior, with the mean and the covariance of the training datasets'
    own corrections [1]_: with few labels little moves, with many the labels decide. Without any label P stays as it
    is: the mean correction of ten datasets is no better on another one than none.

    Parameters
    ----------
    misfit : Misfit
        What the training datasets tell.

    Attributes
    ----------
    coef_ : ndarray of shape (2,)
        Intercept and slope; the slope is at least 0.05.
    covariance_ : ndarray of shape (2, 2)
        Of `coef_` given the labels (Laplace's approximation).
    n_effective_ : float
        How many independent labels there were: those that share a document count less.

    References
    ----------
    .. [1] B. Efron and C. Morris, "Stein's estimation rule and its competitors: an empirical Bayes approach",
       JASA 68, 1973. https://doi.org/10.1080/01621459.1973.10481350

    Examples
    --------
    >>> misfit = Misfit(np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 0.1]]), 10)
    >>> p = [0.6, 0.7, 0.8, 0.9] * 5
    >>> few = FewLabels(misfit).fit(p, [0, 0, 1, 1] * 5)
    >>> few.transform([0.7]).round(2).tolist()
    [0.46]
    >>> FewLabels(misfit).fit([], []).transform([0.7]).round(2).tolist()
    [0.7]
    """

    def __init__(self, misfit: Misfit) -> None:
        self.misfit = misfit

    def fit(
        self,
        y_prob: npt.ArrayLike,
        y_true: npt.ArrayLike,
        sample_weight: Weights = None,
        *,
        documents: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from labeled rows of the new dataset; one class alone is enough, and so are no rows.

        Parameters
        ----------
        y_prob : array-like of shape (n_labels,)
            Transferred P(consistent).
        y_true : array-like of shape (n_labels,)
            Labels 0/1.
        sample_weight : array-like of shape (n_labels,), optional
        documents : array-like of shape (n_labels,), optional
            The document of each row; default: each row has its own.

        Raises
        ------
        InputError
            A value is out of range or lengths differ.
        """
        self._check_misfit()
        n = np.size(y_prob)
        y = check_labels(y_true, n, name="y_true").astype(float)
        self.coef_, self.covariance_ = np.array(NO_CORRECTION), self.misfit.second_moment
        self.n_effective_ = 0.0
        if n:
            z = logit(check_probabilities(y_prob))
            self._fit(z, y, Clusters.from_documents(documents, n, check_sample_weight(sample_weight, n)))
        elif documents is not None:
            check_consistent_length(np.asarray(documents), n, "documents")
        return self

    def _fit(self, z: Floats, y: Floats, clusters: Clusters) -> None:
        weights = clusters.weights
        self.coef_ = self._coefficients(z, y, weights)
        if not clusters.alone:
            # Whole documents are easier or harder than P says: an error then comes with its neighbours'.
            errors = standardised(y, expit(self.coef_[0] + self.coef_[1] * z))
            weights = weights * clusters.shares(clusters.correlation(errors))
            self.coef_ = self._coefficients(z, y, weights)
        self.n_effective_ = float(weights.sum())
        design = np.column_stack([np.ones(len(z)), z])
        p = expit(design @ self.coef_)
        information = (design.T * (weights * p * (1 - p))) @ design
        self.covariance_ = np.linalg.inv(information + np.linalg.inv(self.misfit.covariance))

    def _coefficients(self, z: Floats, y: Floats, weights: Floats) -> Floats:
        """Return the most likely intercept and slope, the slope at least `MIN_SLOPE`."""
        mean, precision = self.misfit.mean, np.linalg.inv(self.misfit.covariance)
        design = np.column_stack([np.ones(len(z)), z])
        ones, zeros = weights * y, weights * (1 - y)
        found = newton_logistic(design, ones, zeros, centre=mean, penalty=precision / weights.sum())
        if found[1] >= MIN_SLOPE:
            return found
        across = self.misfit.covariance
        held = np.array([mean[0] + across[0, 1] / across[1, 1] * (MIN_SLOPE - mean[1]), MIN_SLOPE])
        penalty = np.diag([precision[0, 0] / weights.sum(), HOLD])
        return newton_logistic(design, ones, zeros, centre=held, penalty=penalty)

    def _check_misfit(self) -> None:
        covariance = self.misfit.covariance
        if not np.all(np.linalg.eigvalsh(covariance) > 0):
            raise InputError(f"`misfit` must have a positive definite covariance. Got {covariance.tolist()!r}.")

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
