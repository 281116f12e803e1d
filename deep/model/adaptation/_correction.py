"""A few labels of a dataset, and how they correct a model there."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Mask, Positions, check_consistent_length
from deep._util.odds import P_MIN, at_prior, expit, logit
from deep.exceptions import InputError
from deep.model.adaptation._misfit import Misfit

CORRELATION = 0.1
"""Of the errors of labels that share a document, before any was seen."""

PAIRS = 20.0
"""`CORRELATION` is worth so many pairs of labels."""

NOISE = 0.01
"""P is held this far off 0 and 1 where labels are compared with it: one label in a hundred is a slip of the hand."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """The documents that labels belong to.

    Parameters
    ----------
    codes : ndarray of int, shape (n_labels,)
        The document of each label, counted from 0.
    weights : ndarray of float, shape (n_labels,)
        How often each label counts.
    known : bool
        Whether documents were given; else a label that counts twice is two labels of two documents.
    """

    codes: Positions
    weights: Floats
    known: bool

    @classmethod
    def from_documents(
        cls, documents: npt.ArrayLike | None, n: int, weights: Floats | None = None, *, kept: Mask | None = None
    ) -> "Clusters":
        """Group n labels by document, each by itself where there are none; `kept` chooses rows of `documents`."""
        if documents is None:
            codes = np.arange(n)
        else:
            names = np.asarray(documents).astype(str)
            check_consistent_length(names, n if kept is None else len(kept), "documents")
            codes = np.unique(names if kept is None else names[kept], return_inverse=True)[1]
        return cls(codes, np.ones(n) if weights is None else weights, documents is not None)

    @cached_property
    def sizes(self) -> Floats:
        """Return the labels of each document."""
        return np.asarray(np.bincount(self.codes, weights=self.weights), dtype=np.float64)

    @property
    def alone(self) -> bool:
        """Return whether no two labels share a document."""
        return not self.known or bool((self.sizes <= 1).all())

    def correlation(self, errors: Floats) -> float:
        """Return the intraclass correlation of standardised errors (mean 0, variance 1), in [0, 1].

        The mean product over pairs that share a document, less that over pairs that do not, which an error common to
        all would raise alike; `PAIRS` pairs at `CORRELATION` are added, for a few labels cannot tell it.

        Examples
        --------
        >>> Clusters.from_documents(["a", "a", "b", "b"], 4).correlation(np.array([1.0, 1.0, -1.0, -1.0]))
        0.2727272727272727
        """
        sums = np.bincount(self.codes, weights=self.weights * errors)
        within, squares = float((sums**2).sum()), float(self.weights @ errors**2)
        pairs = float(np.maximum(self.sizes**2 - self.sizes, 0.0).sum()) / 2
        across = float(self.weights.sum() ** 2 - (self.sizes**2).sum()) / 2
        common = float(sums.sum() ** 2 - within) / 2 / across if across > 0 else 0.0
        products = (within - squares) / 2 - pairs * common
        return float(np.clip((products + PAIRS * CORRELATION) / (pairs + PAIRS), 0.0, 1.0))

    def shares(self, correlation: float) -> Floats:
        """Return how much each label counts beside one that is alone: m of them are worth m / (1 + (m - 1) r)."""
        return np.asarray(1.0 / (1.0 + np.maximum(self.sizes - 1.0, 0.0) * correlation)[self.codes])

    def design_effect(self, correlation: float) -> float:
        """Return the variance of the mean of the labels beside that of as many independent ones (Kish)."""
        mean_size = float((self.sizes**2).sum() / self.sizes.sum())
        return 1.0 + max(mean_size - 1.0, 0.0) * correlation


def standardised(labels: Floats, p: Floats) -> Floats:
    """Return labels less P over its standard deviation, P held off 0 and 1 by `NOISE`."""
    held = np.clip(p, NOISE, 1 - NOISE)
    return np.asarray((labels - held) / np.sqrt(held * (1 - held)))


def labeled_rows(labels: npt.ArrayLike, n: int) -> Mask:
    """Return which of n rows have a label: 1 or 0, where -1 is none.

    Raises
    ------
    InputError
        A value is another, or their number is not n.
    """
    raw = np.asarray(labels)
    check_consistent_length(raw, n, "labels")
    wrong = ~np.isin(raw, (-1, 0, 1))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(f"`labels` must be 1, 0, or -1 where there is none. Got {raw[row].item()!r} at row {row}.")
    return np.asarray(raw >= 0)


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
