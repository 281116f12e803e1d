"""A few labels of a dataset, and how they correct a model there."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Mask
from deep._odds import P_MIN, at_prior, expit, logit
from deep.model.adaptation._clusters import labeled_rows
from deep.model.adaptation._misfit import Misfit

TIE = 1e-9
"""Log-odds this close to the threshold are at it: rounding must not decide."""


@dataclass(frozen=True, eq=False)
class Correction:
    """The intercept and slope of P on one dataset, learned from labels of it.

    Parameters
    ----------
    prior : float
        The share of consistent items that was estimated before the labels were looked at.
    intercept, slope : float
        In log-odds at that prior; the slope is above 0.
    covariance : ndarray of shape (2, 2)
        Of the two, given the labels.
    n_labels : int
        Labels that it was learned from.
    misfit : Misfit
        What it was shrunk by.
    threshold : float
        Log-odds of corrected P from which on an item is called consistent for balanced accuracy: those of the mean
        corrected P over the dataset, its share of consistent items as far as the labels tell.
    n_effective : float
        Independent labels that those are worth: labels that share a document count less.

    Examples
    --------
    >>> misfit = Misfit(np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 0.1]]), 10)
    >>> p = np.linspace(0.1, 0.9, 9)
    >>> correction = Correction.learn(misfit, 0.5, p, [-1, 1, -1, 1, -1, 1, -1, 1, -1])
    >>> correction.n_labels, bool((correction.apply(p) > p).all())
    (4, True)
    >>> correction.decide(p).tolist()
    [False, False, False, False, True, True, True, True, True]
    """

    prior: float
    intercept: float
    slope: float
    covariance: Floats
    n_labels: int
    misfit: Misfit
    threshold: float
    n_effective: float

    @classmethod
    def learn(
        cls,
        misfit: Misfit,
        prior: float,
        p: Floats,
        labels: npt.ArrayLike,
        *,
        documents: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from a dataset of which some items are labeled, or none.

        Parameters
        ----------
        misfit : Misfit
        prior : float
            The share of consistent items as estimated without labels.
        p : ndarray of float, shape (n_examples,)
            P(consistent) of all items at equal class weights.
        labels : array-like of shape (n_examples,)
            1 or 0, and -1 where there is none.
        documents : array-like of shape (n_examples,), optional
            The document of each item.
        """
        from deep.model.adaptation._few_labels import FewLabels

        known, moved = labeled_rows(labels, len(p)), at_prior(p, prior)
        of = None if documents is None else np.asarray(documents)[known]
        few = FewLabels(misfit).fit(moved[known], np.asarray(labels)[known], documents=of)
        intercept, slope = few.coef_.tolist()
        # Without labels the decision stays the model's own: the mean of P is a worse guess of the prior than `prior`.
        share = few.transform(moved).mean() if known.any() else prior
        threshold = float(logit(share))
        n_labels = int(known.sum())
        return cls(prior, intercept, slope, few.covariance_, n_labels, misfit, threshold, few.n_effective_)

    def apply(self, p: Floats) -> Floats:
        """Return corrected P from P at equal class weights."""
        return np.clip(expit(self._log_odds(p)), P_MIN, 1 - P_MIN)

    def decide(self, p: Floats) -> Mask:
        """Return which items are called consistent, from P at equal class weights."""
        return np.asarray(self._log_odds(p) >= self.threshold - TIE)

    def interval(self, p: Floats, counts: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return the bounds of corrected P at level 0.9, from P at equal class weights; `counts` as in `Misfit`."""
        return self.misfit.bounds(logit(at_prior(p, self.prior)), self._log_odds(p), self.covariance, counts)

    def _log_odds(self, p: Floats) -> Floats:
        return np.asarray(self.intercept + self.slope * logit(at_prior(p, self.prior)))
