"""The share of consistent items in a dataset without labels, learned from datasets that have some."""

from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from deep._checks import Floats, check_consistent_length, check_probabilities
from deep._odds import expit, logit
from deep.exceptions import InputError
from deep.model.target._misfit import PriorEstimate
from deep.model.target._spread import MIN_DATASETS, student_quantile

MIN_FOR_LINE = MIN_DATASETS + 1
"""Fewer leave no residual to judge a line by."""

TAILS = 4.0
"""Degrees of freedom of the errors about the line: one odd dataset must not turn it."""

MARGIN = 0.25
"""A statistic further outside what was seen than this share of the seen range is refused."""

PRIOR_CLIP = 0.01
"""Priors are held within [PRIOR_CLIP, 1 - PRIOR_CLIP]: a dataset all of one class must not turn the line."""


class LearnedPrior(BaseEstimator):
    """Learns across datasets how label-free statistics of an ensemble's output map to the class prior.

    A line from each statistic to the log-odds of the prior, with errors of Student's t: robust against a dataset
    whose labels follow other rules [1]_. Estimates by several lines are averaged, all alike: with so few datasets,
    which line is best cannot be told, and choosing or weighing by past errors mostly adds noise [2]_. The interval
    comes from the errors on datasets left out one by one.

    Parameters
    ----------
    tails : float, default=4.0
        Above 0: degrees of freedom of the errors about the line.
    margin : float, default=0.25
        Not negative: how far outside the seen range a statistic may lie, as a share of that range.

    Attributes
    ----------
    coef_ : ndarray of shape (n_statistics, 2)
        Intercept and slope on each standardised statistic.
    error_ : float
        Root mean square error of the log-odds on datasets left out, over n - 2 of them, since the line was chosen
        for them; NaN where there are too few.
    left_out_ : ndarray of shape (n_datasets,)
        The estimate of each dataset's log-odds by the lines through the others.

    References
    ----------
    .. [1] K. L. Lange, R. J. A. Little and J. M. G. Taylor, "Robust statistical modeling using the t
       distribution", JASA 84, 1989. https://doi.org/10.1080/01621459.1989.10478852
    .. [2] J. Smith and K. F. Wallis, "A simple explanation of the forecast combination puzzle", Oxford Bulletin of
       Economics and Statistics 71, 2009. https://doi.org/10.1111/j.1468-0084.2008.00541.x

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

    def fit(self, statistic: npt.ArrayLike, prior: npt.ArrayLike) -> Self:
        """Learn a line for each statistic.

        Parameters
        ----------
        statistic : array-like of shape (n_datasets,) or (n_datasets, n_statistics)
            Numbers of each training dataset, computed without its labels, by fits that never saw it.
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
        x = x[:, np.newaxis] if x.ndim == 1 else x
        check_consistent_length(x, len(shares), "statistic")
        if not np.isfinite(x).all():
            raise InputError(f"`statistic` must be finite. Got {x[~np.isfinite(x)][0].item()!r}.")
        self.statistic_ = x
        self.log_odds_ = logit(shares, clip=PRIOR_CLIP)
        self.coef_ = np.array([_robust_line(column, self.log_odds_, self.tails) for column in x.T])
        self.left_out_ = self._left_out()
        errors = self.log_odds_ - self.left_out_
        self.error_ = float(np.sqrt((errors**2).sum() / (len(x) - 2))) if self.learned else float("nan")
        return self

    @property
    def learned(self) -> bool:
        """Return whether there were datasets enough, and apart enough, to learn a line from."""
        return len(self.statistic_) >= MIN_FOR_LINE and bool((np.ptp(self.statistic_, axis=0) > 0).any())

    def predict(self, statistic: npt.ArrayLike) -> PriorEstimate:
        """Estimate the prior of a dataset from its statistics, or say why it cannot be done.

        Parameters
        ----------
        statistic : float or array-like of shape (n_statistics,)

        Returns
        -------
        PriorEstimate
            A line whose statistic lies outside what was seen says the mean of the training priors; refused where
            most do.
        """
        check_is_fitted(self, "coef_")
        values = np.atleast_1d(np.asarray(statistic, dtype=np.float64))
        check_consistent_length(values, self.statistic_.shape[1], "statistic")
        outside = self._outside(values)
        why = self._objection(values, outside)
        if why is not None:
            return self._from_mean(why)
        lines = zip(self.coef_, self.statistic_.T, values, strict=True)
        estimates = np.array([_line_at(coef, seen, float(value)) for coef, seen, value in lines])
        centre = float(np.where(outside, self.log_odds_.mean(), estimates).mean())
        reach = self.error_ * student_quantile(len(self.statistic_) - 2)
        return _estimate(centre, float(reach), None)

    def _outside(self, values: Floats) -> npt.NDArray[np.bool_]:
        """Return which statistics lie further outside the seen range than the margin."""
        low, high = self.statistic_.min(axis=0), self.statistic_.max(axis=0)
        margin = self.margin * (high - low)
        return np.asarray((values < low - margin) | (values > high + margin))

    def _objection(self, values: Floats, outside: npt.NDArray[np.bool_]) -> str | None:
        n = len(self.statistic_)
        if not self.learned:
            return f"{n} training datasets are too few to learn how the votes map to the prior."
        if outside.mean() <= 0.5:
            return None
        first = int(outside.argmax())
        seen = self.statistic_[:, first]
        return (
            f"The log-odds of the mean P is {values[first]:.2f}, outside what was seen on {n} training datasets "
            f"({seen.min():.2f} to {seen.max():.2f})."
        )

    def _from_mean(self, why: str) -> PriorEstimate:
        """Return the mean of the training priors, with the interval of one dataset more."""
        n, centre = len(self.log_odds_), float(self.log_odds_.mean())
        # One dataset says nothing of the spread: then as if priors were spread like the logistic distribution.
        spread = float(self.log_odds_.std(ddof=1)) if n > 1 else 1.8
        reach = spread * np.sqrt(1 + 1 / n) * student_quantile(max(n - 1, 1))
        return _estimate(centre, float(reach), why)

    def _left_out(self) -> Floats:
        """Return each dataset's log-odds as estimated from the others, by the lines or by their mean."""
        n = len(self.statistic_)
        found = np.empty(self.statistic_.shape)
        for i, column in np.ndindex(found.shape):
            others = np.arange(n) != i
            x, y = self.statistic_[others, column], self.log_odds_[others]
            if n < MIN_FOR_LINE or np.ptp(x) == 0:
                found[i, column] = y.mean() if len(y) else 0.0
            else:
                found[i, column] = _line_at(_robust_line(x, y, self.tails), x, float(self.statistic_[i, column]))
        return np.asarray(found.mean(axis=1))


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
