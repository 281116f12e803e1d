"""The intercept of P on a dataset without labels, and with it the share of consistent items there."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, check_consistent_length, check_fitted, check_probabilities
from deep._util.odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.model._misfit import SHARE_CLIP, HeldOutData, newton_logistic

SHIFTS = np.concatenate([np.arange(-8.0, -4.0), np.arange(-4.0, 4.0, 0.5), np.arange(4.0, 9.0)])
"""Intercepts at which the mean P of a dataset is known; between them its log-odds are nearly straight."""


# Log-odds beyond it give the same P.
MAX_LOG_ODDS_OF_P = 500.0

# A mean P is held off 0 and 1 by so much: only that its log-odds be finite.
PROFILE_CLIP = 1e-12


def context_probabilities(raw: Floats, weighted: Floats) -> Floats:
    """Return all P whose means over a dataset are its contexts, shape (n_parts + n_shifts, n_examples)."""
    result = np.empty((len(raw) + len(SHIFTS), len(weighted)))
    result[: len(raw)] = expit(raw)
    # exp(-z - shift) is exp(-z) times a constant: one exponential a row for all shifts.
    odds = np.exp(-np.clip(weighted, -MAX_LOG_ODDS_OF_P, MAX_LOG_ODDS_OF_P))
    for row, shift in zip(result[len(raw) :], SHIFTS, strict=True):
        np.multiply(odds, np.exp(-shift), out=row)
        row += 1.0
        np.reciprocal(row, out=row)
    return result


def contexts_of_means(means: npt.ArrayLike) -> Floats:
    """Return the contexts of a dataset from the means of its `context_probabilities`: of each part, then the profile.

    The *profile* holds the log-odds of the mean P at each of `SHIFTS` as intercept.
    """
    p = np.asarray(means, dtype=np.float64)
    n_parts = len(p) - len(SHIFTS)
    return np.concatenate([logit(p[:n_parts], clip=SHARE_CLIP), logit(p[n_parts:], clip=PROFILE_CLIP)])


def profile_of(log_odds: Floats, weights: Floats) -> Floats:
    """Return the log-odds of the mean P at each of `SHIFTS` as intercept, shape (n_shifts,).

    Examples
    --------
    >>> profile = profile_of(np.array([-1.0, 1.0]), np.array([1.0, 1.0]))
    >>> round(float(share_at(profile, 0.0)), 6), round(intercept_at(profile, 0.0), 6)
    (0.0, 0.0)
    """
    means = [weights @ expit(log_odds + shift) / weights.sum() for shift in SHIFTS]
    return logit(means, clip=PROFILE_CLIP)


def share_at(profile: Floats, intercept: float) -> Floats:
    """Return the log-odds of the mean P of a dataset, or of each of several, at an intercept.

    Beyond the ends their slope is 1: there all P lie near 0 or near 1, and move with the intercept.
    """
    inner = min(max(intercept, float(SHIFTS[0])), float(SHIFTS[-1]))
    i = min(int(np.searchsorted(SHIFTS, inner, side="right")), len(SHIFTS) - 1)
    steps = (profile[..., i] - profile[..., i - 1]) / (SHIFTS[i] - SHIFTS[i - 1])
    result: Floats = profile[..., i - 1] + steps * (inner - SHIFTS[i - 1]) + (intercept - inner)
    return result


def intercept_at(profile: Floats, share: float) -> float:
    """Return the intercept at which the log-odds of the mean P of a dataset are `share`."""
    inner = min(max(share, float(profile[0])), float(profile[-1]))
    return float(np.interp(inner, profile, SHIFTS)) + share - inner


# Where datasets are few the intercept is what is known least, so P of an item is held against the mean P of its dataset
# rather than against even odds. Three quarters of the way gain most of what the whole way gains, and lose less on the
# panels where it loses: docs/decisions/0044 has the figures.
FEW_DATASETS_CONTEXT_WEIGHT = 0.75

# Training datasets up to which the threshold moves.
MAX_DATASETS_FOR_CONTEXT = 3


def context_weight(n_datasets: int) -> float:
    """Return how far the balanced threshold of a model of so many training datasets moves to the mean P."""
    return FEW_DATASETS_CONTEXT_WEIGHT if n_datasets <= MAX_DATASETS_FOR_CONTEXT else 0.0


@dataclass(frozen=True)
class PriorEstimate:
    """A dataset's share of consistent items with its 90 % interval, and the line that P takes there.

    Parameters
    ----------
    estimate, low, high : float
        In (0, 1).
    warning : str or None
        In a sentence, what makes the estimate less sure than the training datasets make it look.
    intercept : float, optional
        The log-odds of P are `intercept` + `slope` * those at equal class weights; default: the log-odds of `estimate`.
    slope : float, default=1.0
        Above 0.
    """

    estimate: float
    low: float
    high: float
    warning: str | None = None
    intercept: float | None = None
    slope: float = 1.0

    @property
    def is_measured(self) -> bool:
        """Return whether the share is one of these items: where every share is possible it is carried over."""
        return self.high - self.low < 1

    @property
    def threshold(self) -> float:
        """Return the log-odds of P from which on an item is called consistent: those at even odds."""
        return float(logit(self.estimate, clip=0.0)) if self.intercept is None else self.intercept

    def threshold_in_context(self, weight: float, offset: float = 0.0) -> float:
        """Return the threshold moved from even odds (`weight` 0) to the mean P of the dataset (1), in log-odds.

        `offset` is what contexts add to log-odds that the line is not of.

        Examples
        --------
        >>> prior = PriorEstimate(0.5, 0.3, 0.7, intercept=-0.8)
        >>> [round(prior.threshold_in_context(weight), 6) for weight in (0.0, 0.75)]
        [-0.8, -0.2]
        """
        even_odds = float(self.line(-offset))
        # `slope` draws P to a half where the intercept is not known, and the mean P with it.
        return even_odds + weight * (self.slope * float(logit(self.estimate)) - even_odds) if weight else even_odds

    def line(self, log_odds: npt.ArrayLike) -> Floats:
        """Return the log-odds of P from those at equal class weights."""
        return np.asarray(self.threshold + self.slope * np.asarray(log_odds, dtype=np.float64))

    @classmethod
    def known(cls, share: float, profile: Floats, offset: float = 0.0) -> "PriorEstimate":
        """Return a share that is known, and the intercept at which it is the mean P; `offset` as in `Intercept`."""
        return cls(share, share, share, None, intercept_at(profile, float(logit(share, clip=0.0))) - offset)


@dataclass(frozen=True)
class Intercept:
    """The intercept of P on a dataset as far as it is known: mean, variance, and reach of its 90 % interval.

    Parameters
    ----------
    mean, variance, reach : float
        In log-odds.
    """

    mean: float
    variance: float
    reach: float

    def estimate(self, profile: Floats, *, offset: float = 0.0, warning: str | None = None) -> PriorEstimate:
        """Return the share of consistent items on a dataset of this profile, and the line of P.

        P is the mean over what the intercept may be (MacKay's approximation [1]_): the less is known, the nearer P
        stays to a half.

        Parameters
        ----------
        profile : ndarray of shape (n_shifts,)
            The log-odds of the mean P of the dataset by intercept, as :func:`profile_of` returns them.
        offset : float
            What the contexts add to the log-odds that the line is of, and to no log-odds of the profile.
        warning : str, optional
            The warning of the result, for people; default: none.

        References
        ----------
        .. [1] D. J. C. MacKay, "The evidence framework applied to classification networks", Neural Computation 4,
           1992. https://doi.org/10.1162/neco.1992.4.5.720
        """
        log_odds = (share_at(profile, self.mean + step) for step in (0.0, -self.reach, self.reach))
        estimate, low, high = (min(max(float(expit(at)), P_MIN), 1 - P_MIN) for at in log_odds)
        # MacKay 1992: the mean of a logistic function over a normal intercept is nearly a flatter logistic function.
        slope = float(1 / np.sqrt(1 + np.pi * self.variance / 8))
        return PriorEstimate(estimate, low, high, warning, slope * (self.mean - offset), slope)


class PriorRule(Protocol):
    """From the profile of a dataset to its share of consistent items and the line of P."""

    def predict(self, profile: Floats, offset: float = 0.0) -> PriorEstimate:
        """Return the estimate for a dataset; `offset` as in :meth:`Intercept.estimate`."""


# A 90 % interval reaches so many standard deviations to either side.
Z_90 = NormalDist().inv_cdf(0.95)


@dataclass(frozen=True)
class FixedPrior:
    """A prior that is known, whatever the profile of a dataset says.

    Parameters
    ----------
    estimate : PriorEstimate
        Returned for every dataset, with its share and its line of P.
    """

    estimate: PriorEstimate

    def predict(self, profile: Floats, offset: float = 0.0) -> PriorEstimate:  # noqa: ARG002 - a rule like the others
        """Return the estimate."""
        return self.estimate


MIN_BATCH = 30
"""Items from which on the share of a batch is measured: fewer leave nearly every share possible."""

# The standard deviation of the share of a batch about that of the fit, before its votes are seen: a uniform one's.
BATCH_SPREAD = 12**-0.5

# The relative error of a gap between the classes that the spread of P implies, as on 53 datasets of 14 panels.
RELATIVE_GAP_ERROR = 0.3

# Profiles that differ by less are of the rows that the model was fitted on.
PROFILE_TOLERANCE = 1e-9

# The slope of a profile is taken between intercepts so far to either side: half of the distance of its knots.
PROFILE_HALF_STEP = 0.25


def share_of_batch(
    anchor: PriorEstimate, fitted: Floats, batch: Floats, n: int, *, of: str, intercept: float, slope: float = 1.0
) -> PriorEstimate:
    """Measure the share of consistent items in a batch that a model of one dataset has scored.

    The share at the fit, moved by the change of the mean P over the gap between the mean P of the two classes, as
    "adjusted classify and count" does with probabilities [1]_. Where P is calibrated the gap is var(P) / (m (1 - m)),
    so that the two profiles hold all that is needed. P itself stays as it is: an item's judges do not know its batch.

    Parameters
    ----------
    anchor : PriorEstimate
        The share at the fit.
    fitted, batch : ndarray of shape (n_shifts,)
        The profiles of the dataset of the fit and of the batch.
    n : int
        Items of the batch. Of fewer than `MIN_BATCH` the share at the fit is carried over, and every share is possible.
    of : str
        The dataset of the fit.
    intercept : float
        Of the profiles, at which their mean is that of P where P has their slope.
    slope : float, default=1.0
        Of the log-odds of P on theirs: the gap shrinks with it.

    References
    ----------
    .. [1] A. Bella et al., "Quantification via probability estimators", ICDM 2010. https://doi.org/10.1109/ICDM.2010.75

    Examples
    --------
    >>> z = np.array([-2.0] * 60 + [2.0] * 40)
    >>> profiles = [profile_of(z, weights) for weights in (np.ones(100), (z > 0) * 1.0)]
    >>> share = share_of_batch(PriorEstimate(0.4, 0.3, 0.5), *profiles, 40, of="mine", intercept=0.0)
    >>> round(share.estimate, 2), round(share.low, 2), round(share.high, 2)
    (1.0, 0.8, 1.0)
    """
    # These are the very rows of the fit, so nothing has moved.
    if np.allclose(fitted, batch, rtol=0, atol=PROFILE_TOLERANCE):
        return anchor
    if n < MIN_BATCH:
        return PriorEstimate(anchor.estimate, 0.0, 1.0, f"carried over from {of}, not measured here")
    mean, _, gap = _profile_moments(fitted, intercept)
    batch_mean, batch_spread, _ = _profile_moments(batch, intercept)
    gap, noise = slope * gap, max(batch_spread / n, PROFILE_CLIP)
    # A regression drawn towards no change: where P hardly tells the classes apart, its mean says little of the share.
    precision = BATCH_SPREAD**2 * gap**2 + noise
    change = BATCH_SPREAD**2 * gap / precision * (batch_mean - mean)
    at_fit = (anchor.high - anchor.low) / 2 / Z_90
    reach = Z_90 * np.sqrt(at_fit**2 + BATCH_SPREAD**2 * noise / precision + (RELATIVE_GAP_ERROR * change) ** 2)
    centre = anchor.estimate + change
    estimate, low, high = (min(max(float(share), 0.0), 1.0) for share in (centre, centre - reach, centre + reach))
    return PriorEstimate(estimate, low, high, anchor.warning)


def _profile_moments(profile: Floats, intercept: float) -> tuple[float, float, float]:
    """Return the mean and the variance of P at an intercept, and the variance over that of a label of that mean."""
    mean = float(expit(share_at(profile, intercept)))
    steep = share_at(profile, intercept + PROFILE_HALF_STEP) - share_at(profile, intercept - PROFILE_HALF_STEP)
    gap = min(max(1 - float(steep) / (2 * PROFILE_HALF_STEP), 0.0), 1.0)
    return mean, gap * mean * (1 - mean), gap


# The slope of the log-odds of labels on those of votes, before any dataset was seen.
DEFAULT_SLOPE = 1.0

# How many datasets `DEFAULT_SLOPE` is worth.
DEFAULT_SLOPE_DATASETS = 4.0

# The training datasets' slope is held between these: where they are separable there is none.
MIN_SLOPE, MAX_SLOPE = 0.05, 4.0

# The variance of intercepts about their line is unknown: these values are summed over.
VARIANCES = np.exp(np.linspace(np.log(0.005), np.log(12.0), 24))

# What the panel says of a dataset is held within [PANEL_SHARE_CLIP, 1 - PANEL_SHARE_CLIP].
PANEL_SHARE_CLIP = 1e-3


@dataclass(frozen=True)
class AcrossPanels:
    """The distribution of the intercepts of a panel's datasets, before any of them was seen.

    An empirical Bayes fit across ten panels of real judges: `python benchmarks/few_datasets.py` prints it, and what
    the nine others would have chosen for each of them.

    Parameters
    ----------
    mean : float
        Variance of the mean intercept, which is 0 in the mean of panels.
    following : float
        Variance of how far intercepts rise with what the panel says of a dataset: 0 in the mean of panels.
    spread, degrees : float
        Scale and degrees of freedom of the variance of intercepts about that line: scaled inverse chi-square.
    """

    mean: float = 0.8
    following: float = 1.1
    spread: float = 0.06
    degrees: float = 4.0


# What 90 % intervals go by. The best P is found by trusting that datasets are alike, as on most panels they are; an
# interval has to hold on the panels where they are not.
INTERVAL_PRIOR = AcrossPanels(spread=0.4, degrees=10.0)


def shared_slope(seen: Sequence[HeldOutData]) -> float:
    """Return the slope of labels on log-odds that all training datasets share, drawn to `DEFAULT_SLOPE`.

    Each has an intercept of its own and the same weight. A mean of slopes fitted one by one would be steeper: a dataset
    on which votes mislead costs more at a steep slope than the others gain.
    """
    rows = [one.ones + one.zeros for one in seen]
    which = np.repeat(np.arange(len(seen)), [len(n) for n in rows])
    design = np.column_stack([which[:, None] == np.arange(len(seen)), np.concatenate([one.score for one in seen])])
    ones, zeros = (
        np.concatenate([getattr(one, label) / n.sum() for one, n in zip(seen, rows, strict=True)])
        for label in ("ones", "zeros")
    )
    # About two rows' worth of pull keeps separable datasets finite.
    pull = np.append(np.zeros(len(seen)), np.mean([2.0 / n.sum() for n in rows]))
    centre = np.append(np.zeros(len(seen)), 1.0)
    shared = newton_logistic(design.astype(float), ones, zeros, centre=centre, penalty=np.diag(pull))[-1]
    # The slope that all share, drawn to 1 by four datasets' worth, has an ECE of 11.8 at three datasets; the mean of
    # their own slopes had 12.1 (decision 26).
    clipped = float(np.clip(shared, MIN_SLOPE, MAX_SLOPE))
    return (DEFAULT_SLOPE_DATASETS * DEFAULT_SLOPE + len(seen) * clipped) / (DEFAULT_SLOPE_DATASETS + len(seen))


def learn_line(seen: Sequence[HeldOutData]) -> tuple[float, "LearnedPrior"]:
    """Learn from training datasets the factor of log-odds, and the intercept of a new dataset's.

    Parameters
    ----------
    seen : sequence of HeldOutData
        Log-odds of each training dataset by the fit that will score new ones.
    """
    slope = shared_slope(seen)
    profiles = [profile_of(slope * one.score, one.ones + one.zeros) for one in seen]
    return slope, LearnedPrior().fit(profiles, [one.prior for one in seen])


class LearnedPrior:
    """Learns from training datasets whether the intercept of P follows what a panel says of a dataset.

    On a training dataset d the intercept a is the one at which the mean P is its share of label 1, and x what the
    panel says of it without labels: the log-odds of its mean P at the training datasets' mean intercept. Then

        a = m + g (x - mean x) + e

    with m, g and e normal. Where g is 0, P travels unchanged; where g is above 0, a dataset that looks more consistent
    is; where it is below 0, judges are lenient there. Few datasets tell little of g, which then stays near 0. The
    variance of e has a scaled inverse chi-square prior and is summed over [1]_. What m, g and e are before any dataset
    of a panel was seen is an empirical Bayes fit across panels [2]_.

    Parameters
    ----------
    across : AcrossPanels, optional
        How intercepts vary on other panels; default: as fitted across ten panels of real judges.

    Attributes
    ----------
    said_ : ndarray of shape (n_datasets,)
        x of the training datasets.
    intercepts_ : ndarray of shape (n_datasets,)
        a of the training datasets.

    References
    ----------
    .. [1] A. Gelman et al., "Bayesian data analysis", third edition, 2013, chapters 5 and 14.
    .. [2] B. Efron and C. Morris, "Stein's estimation rule and its competitors: an empirical Bayes approach",
       JASA 68, 1973. https://doi.org/10.1080/01621459.1973.10481350

    Examples
    --------
    >>> z = np.linspace(-3.0, 3.0, 50)
    >>> profiles = [profile_of(z + shift, np.ones(50)) for shift in (-1.0, 0.0, 1.0)]
    >>> follows, lenient = LearnedPrior().fit(profiles, [0.3, 0.5, 0.7]), LearnedPrior().fit(profiles, [0.5] * 3)
    >>> [round(float(rule.predict(profiles[2]).estimate), 1) for rule in (follows, lenient)]
    [0.7, 0.5]
    """

    def __init__(self, across: AcrossPanels = AcrossPanels()) -> None:
        self.across = across

    def fit(self, profiles: npt.ArrayLike, prior: npt.ArrayLike) -> Self:
        """Learn from one dataset or more.

        Parameters
        ----------
        profiles : array-like of shape (n_datasets, n_shifts)
            As :func:`profile_of` returns them.
        prior : array-like of shape (n_datasets,)
            The datasets' shares of label 1.

        Raises
        ------
        InputError
            There is no dataset, a value is not finite, or a profile falls.
        """
        self.priors_ = check_probabilities(prior, name="prior")
        self.profiles_ = np.asarray(profiles, dtype=np.float64)
        check_consistent_length(self.profiles_, len(self.priors_), "profiles")
        good = self.profiles_.shape[1:] == SHIFTS.shape and (np.diff(self.profiles_) >= 0).all()
        if not good or not np.isfinite(self.profiles_).all():
            raise InputError(f"`profiles` must be {len(SHIFTS)} finite numbers a dataset that never fall. Got others.")
        shares = logit(self.priors_, clip=SHARE_CLIP / 2)
        self._learn(np.array([intercept_at(*pair) for pair in zip(self.profiles_, shares, strict=True)]))
        return self

    def predict(self, profile: Floats, offset: float = 0.0) -> PriorEstimate:
        """Estimate the share of consistent items of a dataset, and the line of P there."""
        return self.intercept(profile).estimate(np.asarray(profile), offset=offset, warning=self._warning(profile))

    def intercept(self, profile: Floats) -> Intercept:
        """Return the intercept on a dataset of this profile, as far as it is known."""
        check_fitted(self, "priors_")
        apart = self._panel_log_odds(np.asarray(profile, dtype=np.float64)) - self.said_.mean()
        means = self._mean + self._following * apart
        variances = self._mean_variance + self._following_variance * apart**2 + VARIANCES

        def moments(weights: Floats) -> tuple[float, float]:
            mean = float(weights @ means)
            return mean, float(weights @ (variances + (means - mean) ** 2))

        return Intercept(*moments(self._weights), Z_90 * float(np.sqrt(moments(self._cautious)[1])))

    def left_out(self, held: Sequence[Floats]) -> list[PriorEstimate]:
        """Return the estimate for each training dataset from the others; of one alone, from itself.

        Parameters
        ----------
        held : sequence of ndarray of shape (n_shifts,)
            Their profiles, by fits without them.
        """
        n = len(self.priors_)
        estimates = []
        for d, profile in enumerate(held):
            # With one dataset there is no other to learn from, and its own estimate is what can be told.
            rest, rule = np.arange(n) != d if n > 1 else np.ones(1, dtype=bool), LearnedPrior(self.across)
            rule.priors_, rule.profiles_ = self.priors_[rest], self.profiles_[rest]
            rule._learn(self.intercepts_[rest])
            estimates.append(rule.predict(profile))
        return estimates

    def _panel_log_odds(self, profile: Floats) -> Floats:
        """Return the log-odds that the panel gives a dataset, or each of several."""
        low, high = logit([PANEL_SHARE_CLIP, 1 - PANEL_SHARE_CLIP])
        return np.clip(share_at(profile, self.centre_), low, high)

    def _learn(self, intercepts: Floats) -> None:
        """Compute the posterior at each of `VARIANCES`: weight, mean and variance of m and of g."""
        self.centre_ = float(logit(self.priors_, clip=SHARE_CLIP / 2).mean())
        self.said_, self.intercepts_ = self._panel_log_odds(self.profiles_), intercepts
        n, apart, off = len(self.priors_), self.said_ - self.said_.mean(), intercepts
        precision, following = (
            1 / self.across.mean + n / VARIANCES,
            1 / self.across.following + apart @ apart / VARIANCES,
        )
        pulls = off.sum() / VARIANCES, (off @ apart) / VARIANCES
        self._mean, self._mean_variance = pulls[0] / precision, 1 / precision
        self._following, self._following_variance = pulls[1] / following, 1 / following
        # The marginal likelihood of the intercepts, m and g integrated out: apart sums to 0, so that they part.
        fit = off @ off / VARIANCES - pulls[0] ** 2 / precision - pulls[1] ** 2 / following
        size = n * np.log(VARIANCES) + np.log(precision * self.across.mean) + np.log(following * self.across.following)
        self._weights, self._cautious = (
            normalised_weights(-(fit + size + across.degrees * (np.log(VARIANCES) + across.spread / VARIANCES)) / 2)
            for across in (self.across, INTERVAL_PRIOR)
        )

    def _warning(self, profile: Floats) -> str | None:
        """Return a warning where training datasets are few, or where the dataset lies outside their range."""
        n = len(self.priors_)
        if n < MIN_DATASETS_FOR_RANGE:
            return f"{n} training {'dataset tells' if n == 1 else 'datasets tell'} little about how much shares differ."
        here, low, high = self._panel_log_odds(np.asarray(profile)), float(self.said_.min()), float(self.said_.max())
        if abs(here - (low + high) / 2) <= (0.5 + RANGE_MARGIN) * (high - low):
            return None
        return (
            f"The log-odds of the mean P are {here:.2f}, outside the range of {n} training datasets ({low:.2f} to "
            f"{high:.2f})."
        )


def normalised_weights(log: Floats) -> Floats:
    """Return weights that sum to 1 from their logarithms."""
    weights = np.exp(log - log.max())
    return np.asarray(weights / weights.sum())


# Fewer training datasets tell little of how far priors lie apart.
MIN_DATASETS_FOR_RANGE = 4

# A dataset is unlike those that were seen where it lies outside their range by more than this share of it. Chosen; no
# measurement is known. A smaller one warns of datasets that differ by chance.
RANGE_MARGIN = 0.25
