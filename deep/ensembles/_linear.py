"""Linear ensemblers: P(consistent) is the logistic function of a weighted sum of signed votes."""

from typing import ClassVar

import numpy as np
from scipy.special import expit

from deep._checks import Floats, Labels, Votes
from deep._logistic import fit_logistic
from deep.base import BaseEnsembler
from deep.ensembles._encoding import Grid, check_above, signed, weighted_sums
from deep.exceptions import InputError

SLOPE = 1e-8
"""Where Newton's method stops: no slope of the mean log loss is steeper."""


class LogisticRegression(BaseEnsembler):
    """Logistic regression on signed votes, with an L2 penalty on all but the intercept.

    Exact on weighted rows. The coefficients are those of scikit-learn's Newton solver to 1e-12, whose checks take
    longer than the few small matrix products that its steps come to.

    Parameters
    ----------
    C : float, default=0.1
        Inverse strength of the penalty, above 0: C times the summed log loss stands against half the squared
        norm of the coefficients.

    Attributes
    ----------
    coef_ : ndarray of shape (n_voters,)
        Change of the log-odds by a vote for 1; a vote for 0 is the opposite, no vote is 0.
    intercept_ : float

    Examples
    --------
    >>> model = LogisticRegression(C=1.0).fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0])
    >>> model.coef_[0].round(3).item()
    1.043
    >>> model.predict_proba([[1, 0], [-1, -1]])[:, 1].round(3).tolist()
    [0.739, 0.5]
    """

    param_grid: ClassVar[Grid] = {"C": (0.0001, 0.001, 0.01, 1.0)}

    def __init__(self, C: float = 0.1) -> None:
        self.C = C

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_above(self.C, 0, "C")
        self.coef_, self.intercept_ = penalised_logistic(signed(X), y, w, C=self.C)

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(expit(weighted_sums(signed(X), self.coef_) + self.intercept_))


class LDA(BaseEnsembler):
    """Linear discriminant analysis on signed votes.

    The two classes are taken as normal with one covariance in common [1]_. Fitted in closed form on weighted
    moments, because scikit-learn's takes no weights; on unweighted rows it equals scikit-learn's
    ``LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage)``. A variance of 1e-8 is added to every
    voter, so that a voter that never varies is harmless and one that is never wrong is followed.

    Parameters
    ----------
    shrinkage : float, default=0.0
        In [0, 1]: how far the covariance is drawn to a multiple of the identity matrix of the same trace.

    Attributes
    ----------
    coef_ : ndarray of shape (n_voters,)
        Change of the log-odds by a vote for 1; a vote for 0 is the opposite, no vote is 0.
    intercept_ : float

    References
    ----------
    .. [1] Fisher, "The use of multiple measurements in taxonomic problems", Annals of Eugenics 7 (1936).
       https://doi.org/10.1111/j.1469-1809.1936.tb02137.x

    Examples
    --------
    >>> X, y = [[1, 1], [1, 0], [0, 1], [1, 1], [0, 0], [0, 1]], [1, 1, 1, 0, 0, 0]
    >>> model = LDA().fit(X, y)
    >>> model.predict_proba([[1, 1], [0, 0]])[:, 1].round(3).tolist()
    [0.679, 0.321]
    """

    param_grid: ClassVar[Grid] = {"shrinkage": (0.0, 0.1, 0.5)}

    def __init__(self, shrinkage: float = 0.0) -> None:
        self.shrinkage = shrinkage

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        if not 0 <= self.shrinkage <= 1:
            raise InputError(f"`shrinkage` must be in [0, 1]. Got {self.shrinkage!r}.")
        votes, total = signed(X), np.bincount(y, weights=w)
        means = np.stack([w[y == label] @ votes[y == label] / total[label] for label in (0, 1)])
        centred = votes - means[y]
        covariance = (centred.T * w) @ centred / w.sum()
        self.coef_ = np.linalg.solve(self._regularised(covariance), means[1] - means[0])
        self.intercept_ = float(np.log(total[1] / total[0]) - means.mean(axis=0) @ self.coef_)

    def _regularised(self, covariance: Floats) -> Floats:
        mean_variance = float(np.trace(covariance)) / len(covariance)
        ridge = self.shrinkage * mean_variance + 1e-8
        return np.asarray((1 - self.shrinkage) * covariance + ridge * np.eye(len(covariance)))

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(expit(weighted_sums(signed(X), self.coef_) + self.intercept_))


def penalised_logistic(features: Floats, y: Labels, w: Floats, *, C: float) -> tuple[Floats, float]:
    """Return the coefficients and the intercept of logistic regression with a penalty on the coefficients.

    Parameters
    ----------
    features : ndarray of float64, shape (n_examples, n_features)
    y : ndarray of int8, shape (n_examples,)
        Labels, 0 and 1, both present.
    w : ndarray of float64, shape (n_examples,)
    C : float
        Inverse strength of the L2 penalty.
    """
    n_features = features.shape[1]
    design = np.column_stack([features, np.ones(len(features))])
    penalty = np.diag(np.append(np.full(n_features, 1 / C), 0.0))
    theta = fit_logistic(design, w, w * y, centre=np.zeros(n_features + 1), penalty=penalty, slope=SLOPE)
    return theta[:-1], float(theta[-1])
