"""The share of consistent items in a dataset without labels, learned from datasets that have some."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, check_consistent_length, check_probabilities
from deep._util.odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.model.adaptation._misfit import MIN_DATASETS, LeftOut, student_quantile


@dataclass(frozen=True)
class PriorEstimate:
    """A dataset's share of consistent items, with its 90 % interval.

    Parameters
    ----------
    estimate, low, high : float
        In (0, 1).
    warning : str or None
        In a sentence, what makes the estimate less sure than the training datasets make it look.
    """

    estimate: float
    low: float
    high: float
    warning: str | None = None

    @classmethod
    def from_log_odds(cls, centre: float, reach: float, warning: str | None = None) -> "PriorEstimate":
        """Return the estimate at `centre`, with an interval of `reach` log-odds to either side, held off 0 and 1.

        Examples
        --------
        >>> PriorEstimate.from_log_odds(0.0, 1.0)
        PriorEstimate(estimate=0.5, low=0.26..., high=0.73..., warning=None)
        """
        held = (min(max(float(expit(at)), P_MIN), 1 - P_MIN) for at in (centre, centre - reach, centre + reach))
        estimate, low, high = held
        return cls(estimate, low, high, warning)


MIN_FOR_LINE = MIN_DATASETS + 1
"""Fewer leave no residual to judge a line by."""

TAILS = 4.0
"""Degrees of freedom of the errors about the line: one odd dataset must not turn it."""

MARGIN = 0.25
"""A statistic is held within what was seen and this share of the seen range on either side."""

LEAST_SPREAD = 0.01
"""Of a statistic over training datasets: one that varies less is as good as constant, and rounding must not fit it."""

PRIOR_CLIP = 0.01
"""Priors are held within [PRIOR_CLIP, 1 - PRIOR_CLIP]: a dataset all of one class must not turn the line."""

SHARE_CLIP = 0.05
"""An implied share is held within [SHARE_CLIP, 1 - SHARE_CLIP]."""

LEAST_GAP = 0.05
"""Of the mean P in the two classes: a panel that tells them apart by less cannot imply a share."""

BETWEEN = 0.3
"""Squared log-odds added to how far training priors lie apart, before a shift is believed."""

OFF = 1.0
"""Squared log-odds added to how far implied shares were off: with two or three datasets they may be right by luck."""

LEAST_SQUARES = 1.0
"""Squared error of a line, added as that of `LEAST_WEIGHT` datasets: training priors that are alike prove little."""

LEAST_WEIGHT = 2.0

USUAL_SPREAD = 0.8
"""Standard deviation of the log-odds of priors from dataset to dataset, assumed before any was seen."""

USUAL_WEIGHT = 6.0
"""How many datasets that assumption is worth."""


class PriorRule(Protocol):
    """From label-free statistics of a dataset to its share of consistent items."""

    def predict(self, statistic: npt.ArrayLike) -> PriorEstimate:
        """Return the estimate for a dataset."""


def learn_prior(left_out: Sequence[Sequence[LeftOut]]) -> "LearnedPrior | ShiftedPrior":
    """Learn from training datasets, each scored by fits without it, how to tell the prior of a new one.

    Parameters
    ----------
    left_out : sequence of sequence of LeftOut
        By dataset and scorer.

    Returns
    -------
    LearnedPrior or ShiftedPrior
        A line needs four datasets.
    """
    contexts = [[one.context for one in scorers] for scorers in left_out]
    priors = [scorers[0].prior for scorers in left_out]
    if len(left_out) >= MIN_FOR_LINE:
        return LearnedPrior().fit(contexts, priors)
    classes = [[one.class_means for one in scorers] for scorers in left_out]
    return ShiftedPrior().fit(contexts, priors, classes)


class LearnedPrior:
    """Learns across datasets how label-free statistics of an ensemble's output map to the class prior.

    A line from each statistic to the log-odds of the prior, with errors of Student's t: robust against a dataset
    whose labels follow other rules [1]_. Estimates by several lines are averaged, all alike: with so few datasets,
    which line is best cannot be told, and choosing or weighing by past errors mostly adds noise [2]_. A statistic
    outside what was seen is held at the margin. The interval comes from the errors on datasets left out one by one.

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
        Root mean square error of the log-odds on datasets left out, with what `LEAST_SQUARES` adds.
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
    >>> round(found.estimate, 2), found.warning
    (0.56, None)
    >>> prior.predict(3.0).warning
    'The log-odds of the mean P is 3.00, outside what was seen on 6 training datasets (-1.00 to 1.00).'
    """

    def __init__(self, *, tails: float = TAILS, margin: float = MARGIN) -> None:
        self.tails = tails
        self.margin = margin

    def fit(self, statistic: npt.ArrayLike, prior: npt.ArrayLike) -> Self:
        """Learn a line for each statistic.

        Parameters
        ----------
        statistic : array-like of shape (n_datasets,) or (n_datasets, n_statistics)
            Numbers of each training dataset, computed without its labels, by fits that never saw it; of at least
            four.
        prior : array-like of shape (n_datasets,)
            The datasets' shares of label 1, in [0, 1].

        Raises
        ------
        InputError
            There are too few datasets, a value is not finite, or a parameter is out of range.
        """
        if not self.tails > 0 or not self.margin >= 0:
            name = "tails" if not self.tails > 0 else "margin"
            raise InputError(f"`{name}` must be positive. Got {getattr(self, name)!r}.")
        self.statistic_, self.priors_ = _checked(statistic, prior)
        self.log_odds_ = logit(self.priors_, clip=PRIOR_CLIP)
        n = len(self.log_odds_)
        if n < MIN_FOR_LINE:
            raise InputError(f"`prior` must be of at least {MIN_FOR_LINE} datasets. Got {n}.")
        self.coef_ = np.array([_robust_line(column, self.log_odds_, self.tails) for column in self.statistic_.T])
        self.left_out_ = self._left_out()
        squares = LEAST_SQUARES + ((self.log_odds_ - self.left_out_) ** 2).sum()
        self.error_ = float(np.sqrt(squares / (LEAST_WEIGHT + n - 2)))
        return self

    def predict(self, statistic: npt.ArrayLike) -> PriorEstimate:
        """Estimate the prior of a dataset from its statistics.

        Parameters
        ----------
        statistic : float or array-like of shape (n_statistics,)

        Returns
        -------
        PriorEstimate
            With a warning where most statistics lie outside what was seen; the interval is the wider, the further
            they lie from it.
        """
        _check_fitted(self, "coef_")
        values = np.atleast_1d(np.asarray(statistic, dtype=np.float64))
        check_consistent_length(values, self.statistic_.shape[1], "statistic")
        lines = zip(self.coef_, self.statistic_.T, values, strict=True)
        centre = float(np.mean([_line_at(coef, seen, float(value), self.margin) for coef, seen, value in lines]))
        n = len(self.statistic_)
        reach = self.error_ * student_quantile(LEAST_WEIGHT + n - 2) * self._widening(values)
        return PriorEstimate.from_log_odds(centre, float(reach), self._warning(values))

    def _widening(self, values: Floats) -> float:
        """Return how much wider the interval is than on a dataset like those that were seen."""
        n, seen = self.statistic_.shape[0], self.statistic_
        spread = np.maximum(seen.var(axis=0), LEAST_SPREAD**2) * n
        leverage = np.mean((values - seen.mean(axis=0)) ** 2 / spread)
        return float(np.sqrt(max(1.0, (1 + 1 / n + leverage) / (1 + 2 / n))))

    def _warning(self, values: Floats) -> str | None:
        low, high = self.statistic_.min(axis=0), self.statistic_.max(axis=0)
        margin = self.margin * (high - low)
        outside = (values < low - margin) | (values > high + margin)
        if outside.mean() <= 0.5:
            return None
        first = int(outside.argmax())
        return (
            f"The log-odds of the mean P is {values[first]:.2f}, outside what was seen on {len(self.statistic_)} "
            f"training datasets ({low[first]:.2f} to {high[first]:.2f})."
        )

    def _left_out(self) -> Floats:
        """Return each dataset's log-odds as estimated from the others."""
        n = len(self.statistic_)
        found = np.empty(self.statistic_.shape)
        for i, column in np.ndindex(found.shape):
            others = np.arange(n) != i
            x, y = self.statistic_[others, column], self.log_odds_[others]
            coef = _robust_line(x, y, self.tails)
            found[i, column] = _line_at(coef, x, float(self.statistic_[i, column]), self.margin)
        return np.asarray(found.mean(axis=1))


class ShiftedPrior:
    """The prior of a dataset where only one to three others were labeled: a label shift, shrunk to their mean.

    Were a panel's error rates the same everywhere, the mean P of a dataset would imply its share of label 1. They
    are not, so the implied share is believed as far as it was right on the training datasets [1]_. With one of them
    nothing tells how far, and the estimate is theirs, drawn towards a half.

    Attributes
    ----------
    rates_ : ndarray of shape (n_statistics, 2)
        Mean P in class 0 and in class 1, over training datasets left out.
    trust_ : float
        In [0, 1]: how far an implied share is followed.
    left_out_ : ndarray of shape (n_datasets,)
        The estimate of each dataset's log-odds by the same rule, itself among those it was learned from.

    References
    ----------
    .. [1] B. Efron and C. Morris, "Stein's estimation rule and its competitors: an empirical Bayes approach",
       JASA 68, 1973. https://doi.org/10.1080/01621459.1973.10481350

    Examples
    --------
    >>> rule = ShiftedPrior().fit([0.0, 1.0], [0.5, 0.7], [[(0.2, 0.8)], [(0.2, 0.8)]])
    >>> round(rule.predict(0.0).estimate, 2), round(rule.predict(1.0).estimate, 2)
    (0.55, 0.71)
    """

    def fit(self, statistic: npt.ArrayLike, prior: npt.ArrayLike, class_means: npt.ArrayLike | None = None) -> Self:
        """Learn from one dataset or more.

        Parameters
        ----------
        statistic : array-like of shape (n_datasets, n_statistics)
            Log-odds of each scorer's mean P on each training dataset, by fits without it.
        prior : array-like of shape (n_datasets,)
            The datasets' shares of label 1.
        class_means : array-like of shape (n_datasets, n_statistics, 2), optional
            Mean P in class 0 and in class 1. None of one dataset alone, which cannot be left out.
        """
        self.statistic_, self.priors_ = _checked(statistic, prior)
        self.log_odds_ = logit(self.priors_, clip=PRIOR_CLIP)
        self.class_means_: Floats | None = None
        k = len(self.log_odds_)
        self.mean_ = float(self.log_odds_.mean())
        self.rates_ = np.full((self.statistic_.shape[1], 2), 0.5)
        self.trust_, self.left_out_ = 0.0, np.full(k, self._towards_half(self.mean_))
        if class_means is not None and k > 1:
            self.class_means_ = np.asarray(class_means, dtype=np.float64).reshape(k, -1, 2)
            self.rates_ = self.class_means_.mean(axis=0)
            implied = np.array([self._implied(row) for row in self.statistic_])
            between = (BETWEEN + ((self.log_odds_ - self.mean_) ** 2).sum()) / (BETWEEN + k - 1)
            off = (OFF + ((implied - self.log_odds_) ** 2).sum()) / (OFF + k)
            self.trust_ = float(between / (between + off))
            self.left_out_ = np.array([self._centre(value) for value in implied])
        return self

    def predict(self, statistic: npt.ArrayLike) -> PriorEstimate:
        """Estimate the prior of a dataset from its statistics, shape (n_statistics,)."""
        _check_fitted(self, "trust_")
        values = np.atleast_1d(np.asarray(statistic, dtype=np.float64))
        check_consistent_length(values, self.statistic_.shape[1], "statistic")
        k = len(self.log_odds_)
        squares = USUAL_WEIGHT * USUAL_SPREAD**2 + ((self.log_odds_ - self.mean_) ** 2).sum()
        degrees = USUAL_WEIGHT + k - 1
        reach = np.sqrt(squares / degrees * (1 + 1 / k)) * student_quantile(degrees)
        return PriorEstimate.from_log_odds(self._centre(self._implied(values)), float(reach), _few(k))

    def _implied(self, contexts: Floats) -> float:
        """Return the log-odds of the share that the mean P of each statistic implies, averaged."""
        low, high = self.rates_.T
        share = (expit(contexts) - low) / np.maximum(high - low, LEAST_GAP)
        return float(logit(share, clip=SHARE_CLIP).mean())

    def _centre(self, implied: float) -> float:
        return self._towards_half(self.mean_ + self.trust_ * (implied - self.mean_))

    def _towards_half(self, log_odds: float) -> float:
        k = len(self.log_odds_)
        return log_odds * (k + 0.5) / (k + 1)


@dataclass(frozen=True)
class FixedPrior:
    """A prior that is known, whatever the statistics of a dataset say.

    Parameters
    ----------
    estimate : PriorEstimate
    """

    estimate: PriorEstimate

    def predict(self, statistic: npt.ArrayLike) -> PriorEstimate:  # noqa: ARG002 - a rule like the others
        """Return the estimate."""
        return self.estimate


def _check_fitted(rule: PriorRule, attribute: str) -> None:
    """Raise where a rule was not fitted; scikit-learn is loaded only to say so."""
    if not hasattr(rule, attribute):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"This {type(rule).__name__} is not fitted yet. Call `fit` first.")


def _few(k: int) -> str:
    noun = "dataset tells" if k == 1 else "datasets tell"
    return f"{k} training {noun} little of how far priors lie apart."


def _checked(statistic: npt.ArrayLike, prior: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return statistics, shape (n_datasets, n_statistics), and priors."""
    shares = check_probabilities(prior, name="prior")
    x = np.asarray(statistic, dtype=np.float64)
    x = x[:, np.newaxis] if x.ndim == 1 else x
    check_consistent_length(x, len(shares), "statistic")
    if not np.isfinite(x).all():
        raise InputError(f"`statistic` must be finite. Got {x[~np.isfinite(x)][0].item()!r}.")
    return x, shares


def _robust_line(x: Floats, y: Floats, tails: float) -> Floats:
    """Return intercept and slope on standardised x by iteratively reweighted least squares for t errors."""
    scale = max(float(x.std()), LEAST_SPREAD)
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


def _line_at(coef: Floats, seen: Floats, statistic: float, margin: float) -> float:
    """Return the line's log-odds at a statistic, clipped to the range of the training datasets and a margin."""
    low, high = float(seen.min()), float(seen.max())
    reach = margin * (high - low)
    held = min(max(statistic, low - reach), high + reach)
    return float(coef[0] + coef[1] * (held - seen.mean()) / max(float(seen.std()), LEAST_SPREAD))
