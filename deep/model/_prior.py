"""The share of consistent items in a dataset without labels, learned from datasets that have some."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit
from scipy.stats import t as student
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from deep._validation import Floats, check_consistent_length, check_probabilities
from deep.exceptions import InputError

__all__ = ["LEVEL", "LearnedPrior", "PriorEstimate"]

LEVEL = 0.9
"""Nominal coverage of every interval of the pool."""

MIN_DATASETS = 4
"""Fewer leave no residual to judge a line by."""

TAILS = 4.0
"""Degrees of freedom of the errors about the line: one odd dataset must not turn it."""

MARGIN = 0.25
"""A statistic further outside what was seen than this share of the seen range is refused."""

PRIOR_CLIP = 0.01


@dataclass(frozen=True)
class PriorEstimate:
    """What is believed of a dataset's share of consistent items.

    Parameters
    ----------
    estimate, low, high : float
        In [0, 1].
    refused : bool
        True where nothing could be learned from the dataset itself: the estimate is then the training
        datasets' mean, and the interval as wide as they lie apart.
    why : str or None
        The reason, in a sentence.
    """

    estimate: float
    low: float
    high: float
    refused: bool
    why: str | None


class LearnedPrior(BaseEstimator):
    """Learns across datasets how a label-free statistic of the ensemble's output maps to the class prior.

    A line from the statistic to the log-odds of the prior, with errors of Student's t: robust against a dataset
    whose labels follow other rules. Its interval comes from the errors on datasets left out one by one.

    Parameters
    ----------
    tails : float, default=4.0
        Above 0: degrees of freedom of the errors about the line.
    margin : float, default=0.25
        Not negative: how far outside the seen range a statistic may lie, as a share of that range.

    Attributes
    ----------
    coef_ : ndarray of shape (2,)
        Intercept and slope on the standardised statistic.
    error_ : float
        Root mean square error of the log-odds on datasets left out, over n - 2 of them, since the line was chosen
        for them; NaN where there are too few.
    left_out_ : ndarray of shape (n_datasets,)
        The estimate of each dataset's log-odds by the line through the others.

    References
    ----------
    .. [1] K. L. Lange, R. J. A. Little and J. M. G. Taylor, "Robust statistical modeling using the t
       distribution", JASA 84, 1989. https://doi.org/10.1080/01621459.1989.10478852

    Examples
    --------
    >>> statistic = [-1.0, -0.5, 0.0, 0.4, 0.6, 1.0]
    >>> prior = LearnedPrior().fit(statistic, [0.2, 0.3, 0.5, 0.6, 0.7, 0.8])
    >>> found = prior.predict(0.2)
    >>> round(found.estimate, 2), found.refused
    (0.56, False)
    >>> prior.predict(3.0).refused
    True
    """

    def __init__(self, *, tails: float = TAILS, margin: float = MARGIN) -> None:
        self.tails = tails
        self.margin = margin

    def fit(self, statistic: Any, prior: Any) -> Self:
        """Learn the line.

        Parameters
        ----------
        statistic : array-like of shape (n_datasets,)
            One number a training dataset, computed without its labels, by a fit that never saw it.
        prior : array-like of shape (n_datasets,)
            The datasets' shares of label 1, in [0, 1].

        Raises
        ------
        InputError
            There is no dataset, a value is not finite, or a parameter is out of range.
        """
        if not self.tails > 0 or not self.margin >= 0:
            name = "tails" if not self.tails > 0 else "margin"
            raise InputError(f"`{name}` must be positive. Got {getattr(self, name)!r}.")
        shares = check_probabilities(prior, name="prior")
        x = np.asarray(statistic, dtype=np.float64)
        check_consistent_length(x, len(shares), "statistic")
        if not np.isfinite(x).all():
            raise InputError(f"`statistic` must be finite. Got {x[~np.isfinite(x)][0].item()!r}.")
        self.statistic_ = x
        self.log_odds_ = np.asarray(logit(np.clip(shares, PRIOR_CLIP, 1 - PRIOR_CLIP)))
        self.coef_ = _robust_line(x, self.log_odds_, self.tails)
        self.left_out_ = self._left_out()
        errors = self.log_odds_ - self.left_out_
        self.error_ = float(np.sqrt((errors**2).sum() / (len(x) - 2))) if self.learned else float("nan")
        return self

    @property
    def learned(self) -> bool:
        """Return whether there were datasets enough, and apart enough, to learn a line from."""
        return len(self.statistic_) >= MIN_DATASETS and bool(np.ptp(self.statistic_) > 0)

    def predict(self, statistic: float) -> PriorEstimate:
        """Estimate the prior of a dataset from its statistic, or say why it cannot be done.

        Parameters
        ----------
        statistic : float

        Returns
        -------
        PriorEstimate
        """
        check_is_fitted(self, "coef_")
        why = self._objection(float(statistic))
        if why is not None:
            return self._from_mean(why)
        centre = float(_line_at(self.coef_, self.statistic_, statistic))
        reach = self.error_ * student.ppf((1 + LEVEL) / 2, len(self.statistic_) - 2)
        return _estimate(centre, float(reach), None)

    def _objection(self, statistic: float) -> str | None:
        n = len(self.statistic_)
        if not self.learned:
            return f"{n} training datasets are too few to learn how the votes map to the prior."
        low, high = float(self.statistic_.min()), float(self.statistic_.max())
        margin = self.margin * (high - low)
        if not low - margin <= statistic <= high + margin:
            return (
                f"The log-odds of the mean P is {statistic:.2f}, outside what was seen on {n} training datasets "
                f"({low:.2f} to {high:.2f})."
            )
        return None

    def _from_mean(self, why: str) -> PriorEstimate:
        """Return the mean of the training priors, with the interval of one dataset more."""
        n, centre = len(self.log_odds_), float(self.log_odds_.mean())
        # One dataset says nothing of the spread: then as if priors were spread like the logistic distribution.
        spread = float(self.log_odds_.std(ddof=1)) if n > 1 else 1.8
        reach = spread * np.sqrt(1 + 1 / n) * student.ppf((1 + LEVEL) / 2, max(n - 1, 1))
        return _estimate(centre, float(reach), why)

    def _left_out(self) -> Floats:
        """Return each dataset's log-odds as estimated from the others, by the line or by their mean."""
        n = len(self.statistic_)
        found = np.empty(n)
        for i in range(n):
            others = np.arange(n) != i
            x, y = self.statistic_[others], self.log_odds_[others]
            if n - 1 < MIN_DATASETS - 1 or np.ptp(x) == 0:
                found[i] = y.mean() if len(y) else 0.0
            else:
                found[i] = _line_at(_robust_line(x, y, self.tails), x, self.statistic_[i])
        return found


def _estimate(centre: float, reach: float, why: str | None) -> PriorEstimate:
    """Return an estimate from log-odds; `why` is the reason of a refusal."""
    estimate, low, high = (float(expit(value)) for value in (centre, centre - reach, centre + reach))
    return PriorEstimate(estimate, low, high, why is not None, why)


def _robust_line(x: Floats, y: Floats, tails: float) -> Floats:
    """Return intercept and slope on standardised x by iteratively reweighted least squares for t errors."""
    scale = x.std() or 1.0
    design = np.column_stack([np.ones(len(x)), (x - x.mean()) / scale])
    weights = np.ones(len(x))
    coef = np.zeros(2)
    for _ in range(100):
        root = np.sqrt(weights)
        fresh = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
        residual = y - design @ fresh
        variance = float((weights * residual**2).sum() / len(x)) + 1e-9
        weights = (tails + 1) / (tails + residual**2 / variance)
        if np.abs(fresh - coef).max() < 1e-10:
            break
        coef = fresh
    return np.asarray(fresh)


def _line_at(coef: Floats, seen: Floats, statistic: float) -> float:
    return float(coef[0] + coef[1] * (statistic - seen.mean()) / (seen.std() or 1.0))
