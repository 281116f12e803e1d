"""Correct log-odds by the labels of the new dataset, none to thousands, as far as training datasets let them count."""

from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from deep._util import checks
from deep._util.checks import Floats, Weights
from deep._util.odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.model.adaptation._correction import Clusters, standardised
from deep.model.adaptation._misfit import NO_CORRECTION, Misfit, newton_logistic
from deep.model.adaptation._prior import normalised

MIN_SLOPE = 0.05
"""Labels may take nearly all weight from the votes, but never turn them round."""

SCALES = (1.0, 8.0)
"""How far off P may be, in variances of the misfit: labels weigh the two, at odds before of 1 : scale.

One alone holds P too near to what it was where a dataset is unlike those of the training and labels are many."""

HOLD = 1e9
"""Precision of a slope that is held at `MIN_SLOPE`."""


class FewLabels(BaseEstimator):
    """Corrects transferred probabilities by labels of the new dataset, from none to thousands.

    Intercept and slope in log-odds have a Gaussian prior, with the mean and the covariance of the training datasets'
    own corrections [1]_, or `SCALES` times that covariance: with few labels little moves, with many the labels decide.
    Laplace's approximation gives each scale's weight. Without any label P stays as it is: the mean correction of ten
    datasets is no better on another one than none.

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
    [0.42]
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
        y = checks.check_labels(y_true, n, name="y_true").astype(float)
        self.coef_, self.covariance_ = np.array(NO_CORRECTION), self.misfit.second_moment
        self.n_effective_ = 0.0
        if n:
            z = logit(checks.check_probabilities(y_prob))
            self._fit(z, y, Clusters.from_documents(documents, n, checks.check_sample_weight(sample_weight, n)))
        elif documents is not None:
            checks.check_consistent_length(np.asarray(documents), n, "documents")
        return self

    def _fit(self, z: Floats, y: Floats, clusters: Clusters) -> None:
        weights = clusters.weights
        self._average(z, y, weights)
        if not clusters.alone:
            # Whole documents are easier or harder than P says: an error then comes with its neighbours'.
            errors = standardised(y, expit(self.coef_[0] + self.coef_[1] * z))
            weights = weights * clusters.shares(clusters.correlation(errors))
            self._average(z, y, weights)
        self.n_effective_ = float(weights.sum())

    def _average(self, z: Floats, y: Floats, weights: Floats) -> None:
        """Average the fits by each of `SCALES`, as labels weigh them."""
        fits = [self._at_scale(z, y, weights, self.misfit.covariance * scale) for scale in SCALES]
        evidence = np.array([one[2] for one in fits]) - np.log(SCALES)
        share = normalised(evidence)
        coefs = np.array([one[0] for one in fits])
        self.coef_ = share @ coefs
        apart = coefs - self.coef_
        self.covariance_ = np.tensordot(share, [one[1] for one in fits], 1) + (apart.T * share) @ apart

    def _at_scale(self, z: Floats, y: Floats, weights: Floats, across: Floats) -> tuple[Floats, Floats, float]:
        """Return the most likely intercept and slope by one prior covariance, theirs, and the log evidence."""
        design = np.column_stack([np.ones(len(z)), z])
        coef = self._coefficients(design, weights * y, weights * (1 - y), across)
        log_odds, off = design @ coef, coef - self.misfit.mean
        information = (design.T * (weights * expit(log_odds) * expit(-log_odds))) @ design
        precision = np.linalg.inv(across)
        volume = np.linalg.slogdet(np.eye(2) + across @ information)[1]
        likelihood = weights @ (y * log_odds - np.logaddexp(0.0, log_odds))
        return coef, np.linalg.inv(information + precision), float(likelihood - (off @ precision @ off + volume) / 2)

    def _coefficients(self, design: Floats, ones: Floats, zeros: Floats, across: Floats) -> Floats:
        """Return the most likely intercept and slope, the slope at least `MIN_SLOPE`."""
        mean, precision, total = self.misfit.mean, np.linalg.inv(across), ones.sum() + zeros.sum()
        found = newton_logistic(design, ones, zeros, centre=mean, penalty=precision / total)
        if found[1] >= MIN_SLOPE:
            return found
        held = np.array([mean[0] + across[0, 1] / across[1, 1] * (MIN_SLOPE - mean[1]), MIN_SLOPE])
        penalty = np.diag([precision[0, 0] / total, HOLD])
        return newton_logistic(design, ones, zeros, centre=held, penalty=penalty)

    def _check_misfit(self) -> None:
        covariance = self.misfit.covariance
        if not np.all(np.linalg.eigvalsh(covariance) > 0):
            raise InputError(f"`misfit` must have a positive definite covariance. Got {covariance.tolist()!r}.")

    def transform(self, y_prob: npt.ArrayLike) -> Floats:
        """Return corrected P(consistent), shape (n_examples,)."""
        check_is_fitted(self, "coef_")
        z = logit(checks.check_probabilities(y_prob))
        return np.asarray(np.clip(expit(self.coef_[0] + self.coef_[1] * z), P_MIN, 1 - P_MIN))

    def interval(self, y_prob: npt.ArrayLike, counts: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return the bounds of corrected P at level 0.9; of the rate observed in `counts` rows where given."""
        check_is_fitted(self, "coef_")
        z = logit(checks.check_probabilities(y_prob))
        return self.misfit.bounds(z, self.coef_[0] + self.coef_[1] * z, self.covariance_, counts)
