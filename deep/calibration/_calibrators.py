"""The calibrators: histogram binning and its kin, maps with one or a few numbers, and those of netcal."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from io import StringIO
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.special import betaln
from sklearn.isotonic import isotonic_regression

from deep._util.checks import Floats, Labels, Weights, bincount, check_choice
from deep._util.odds import P_MIN, expit, fit_logistic, logit
from deep.base import BaseCalibrator
from deep.calibration._metrics import DistinctScores, bin_edges, bin_sums, check_bins, checked_rows, collapse_scores
from deep.calibration._registry import DEFAULT_BINS, NETCAL_CLASSES
from deep.exceptions import InputError, needs_extra


class Histogram(BaseCalibrator):
    """Replace P by the share of label 1 among the fitted rows in its bin, of equal width.

    Parameters
    ----------
    n_bins : int, default=10
        Equal-width bins over [0, 1]; each holds its left edge, the last one both.

    Attributes
    ----------
    edges_ : ndarray of shape (n_bins + 1,)
        The ends of the bins, from 0 to 1.
    values_ : ndarray of shape (n_bins,)
        The calibrated probability of each bin. A bin without fitted rows has its own middle.

    Notes
    -----
    **Not monotone**: a bin may lie below its left neighbour. A bin of one class only is clipped to 1e-6 or
    1 - 1e-6, as every output. Only the ratio of weights matters. Flipping labels and probabilities together
    (y to 1 - y, P to 1 - P) flips the output, save for scores exactly on an inner edge, which the bin to
    their right holds.

    References
    ----------
    .. [1] B. Zadrozny and C. Elkan, "Obtaining calibrated probability estimates from decision trees and
       naive Bayesian classifiers", ICML 2001, 609-616.

    Examples
    --------
    >>> from deep.calibration import Histogram
    >>> histogram = Histogram(n_bins=2).fit([0.1, 0.2, 0.3, 0.4, 0.8, 0.9], [0, 0, 0, 1, 1, 0])
    >>> histogram.transform([0.0, 0.49, 0.5, 1.0])
    array([0.25, 0.25, 0.5 , 0.5 ])
    """

    edges_: Floats
    values_: Floats

    # Ten as in netcal's histogram; `DEFAULT_BINS` is of a measure, the ECE, and no default of this map.
    def __init__(self, n_bins: int = 10) -> None:
        self.n_bins = n_bins

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        edges = bin_edges(check_bins(self.n_bins))
        n, _, n1 = bin_sums(collapse_scores(p, y, w), edges)
        # An empty bin has no share; its middle leaves P nearly as it was.
        middles = (edges[:-1] + edges[1:]) / 2.0
        self.edges_, self.values_ = edges, np.divide(n1, n, out=middles, where=n > 0)

    def _transform(self, p: Floats) -> Floats:
        return self.values_[np.searchsorted(self.edges_[1:-1], p, side="right")]


Counts = npt.NDArray[np.intp]

# A bin's prior mean stays this far from 0 and 1, so that one row cannot rule its binning out. Chosen by hand.
PRIOR_MARGIN = 5e-3

# Pseudo-rows of the Beta prior in each bin: N', its weight in all B bins, is 2B, as in the authors' own code.
PRIOR_WEIGHT = 2.0

# Targets this close to halfway between two scores, as a share of the rows, count as halfway: rounding must not decide.
HALFWAY_TOLERANCE = 1e-9


class BBQ(BaseCalibrator):
    """Average histogram binnings of many sizes, each weighted by how well it explains the labels.

    Every binning M with B equal-frequency bins, for B from N^(1/3) / 10 to 10 N^(1/3) and at most N / 5,
    gets the marginal likelihood of the labels under a Beta prior in each bin; the calibrated probability is
    the mean of the binnings' posterior means under these weights. N is the total weight.

    Attributes
    ----------
    cuts_ : ndarray of shape (n_cuts,)
        Where the map changes value; each piece holds its left end.
    values_ : ndarray of shape (n_cuts + 1,)
        Its value between them. The average of step functions is one step function.

    Notes
    -----
    Equal frequency with ties: the bins' ends stand between distinct scores, at the score whose cumulative
    weight is nearest to j N / B, so **equal probabilities are never split**; ends that coincide merge, and
    binnings that come out the same count once. A cut lies halfway between two scores. The Beta prior of a
    bin has the weight of 2 rows and its mean in the bin's middle, held within [0.005, 0.995].

    Weights are counts: scale them to sum to the number of rows. The time of a fit grows with the number of
    binnings, at most 10 N^(1/3), times that of their bins, at most that of distinct scores.

    **Not monotone.** Flipping labels and probabilities together flips the output but where a target falls
    exactly halfway between two scores.

    The class of the same name in netcal has neither weights, equal frequency nor the marginal likelihood; it is
    ``NetcalCalibrator("netcal-bbq")``.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper and M. Hauskrecht, "Obtaining well calibrated probabilities using
       Bayesian binning", AAAI 2015. https://doi.org/10.1609/aaai.v29i1.9602

    Examples
    --------
    >>> from deep.calibration import BBQ
    >>> bbq = BBQ().fit([0.2] * 50 + [0.9] * 50, [1] * 20 + [0] * 30 + [1] * 30 + [0] * 20)
    >>> bbq.transform([0.2, 0.9]).round(3)
    array([0.446, 0.555])
    """

    cuts_: Floats
    values_: Floats

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        scores = collapse_scores(p, y, w)
        reached, reached1 = (np.append(0.0, np.cumsum(part)) for part in (scores.n, scores.n1))
        below, above = scores.p[:-1], scores.p[1:]
        middle = (below + above) / 2.0
        # Between neighbouring floating-point numbers the middle is one of them; a piece holds its left end.
        edges = np.concatenate([[0.0], np.where(middle > below, middle, above), [1.0]])
        # The bins of all binnings, end to end: each holds the scores from `start` on and before `stop`.
        binnings = _equal_frequency(reached)
        start, stop = (np.concatenate([ends[part] for ends in binnings]) for part in (slice(-1), slice(1, None)))
        sizes = np.array([len(ends) - 1 for ends in binnings])
        n = reached[stop] - reached[start]
        # Sums of fractional weights are not exact; a bin must not hold more of label 1 than it holds.
        n1 = np.clip(reached1[stop] - reached1[start], 0.0, n)
        prior = np.clip((edges[start] + edges[stop]) / 2.0, PRIOR_MARGIN, 1.0 - PRIOR_MARGIN)
        alpha, beta = PRIOR_WEIGHT * prior, PRIOR_WEIGHT * (1.0 - prior)
        # Beta-binomial marginal likelihood of each bin; bins are independent, so their logarithms add up.
        evidence = betaln(n1 + alpha, n - n1 + beta) - betaln(alpha, beta)
        log_weights = np.add.reduceat(evidence, np.cumsum(sizes) - sizes)
        # The posterior over binnings under a flat prior; the largest is taken out first, or all would underflow to 0.
        weights = np.exp(log_weights - log_weights.max())
        values = (n1 + alpha) / (n + PRIOR_WEIGHT) * np.repeat(weights / weights.sum(), sizes)
        # The mean of the binnings' step functions rises by each bin where it starts, and falls by it where it stops.
        rises = bincount(start, values, len(edges)) - bincount(stop, values, len(edges))
        used = np.unique(start)
        self.cuts_ = edges[used[1:]]
        self.values_ = np.clip(np.cumsum(rises)[used], 0.0, 1.0)

    def _transform(self, p: Floats) -> Floats:
        return self.values_[np.searchsorted(self.cuts_, p, side="right")]


def _equal_frequency(reached: Floats) -> list[Counts]:
    """Return the distinct equal-frequency binnings, each as the numbers of scores before its bins' ends.

    Parameters
    ----------
    reached : ndarray of float, shape (n_scores + 1,)
        The weight of the rows before each score, and of all.
    """
    # The sizes tried: from N^(1/3) / 10 to 10 N^(1/3), with at least 5 rows a bin on average.
    total, result = reached[-1], {}
    cube_root = np.power(total, 1.0 / 3.0)
    fewest = max(1, int(cube_root / 10.0))
    most = int(min(np.ceil(total / 5.0), np.ceil(cube_root * 10.0)))
    halfway = (reached[:-1] + reached[1:]) / 2.0 / total
    for n_bins in range(fewest, max(fewest, most) + 1):
        # An end before score i is nearest to the shares between halfway[i - 1] and halfway[i].
        ends = np.searchsorted(halfway, np.arange(n_bins + 1) / n_bins - HALFWAY_TOLERANCE)
        ends[[0, -1]] = 0, len(halfway)
        ends = ends[np.append(True, ends[1:] != ends[:-1])]
        result[ends.tobytes()] = ends
    return list(result.values())


class Isotonic(BaseCalibrator):
    """The never falling map that fits best; it has no shape to be wrong about, and needs many labels.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_thresholds,)
        The scores, ascending, where the map can change: the ends of its flat pieces.
    values_ : ndarray of shape (n_thresholds,)
        Its value at each.

    Notes
    -----
    Equal scores are pooled, then adjacent scores that would fall. Between two thresholds the map is linear,
    below the first and above the last it is flat, as scikit-learn's ``IsotonicRegression`` with
    ``out_of_bounds="clip"`` has it: a score never seen in the fit lies between its neighbours' values
    instead of jumping at an arbitrary point between them. Never falling; scores that point the wrong way end
    as a constant. The ends are often exactly 0 or 1 in the fit, and are clipped to 1e-6 and 1 - 1e-6 like
    every output. Below about 1,000 labels it follows noise. Only the ratio of weights matters.

    Flipping labels and probabilities together (y to 1 - y, P to 1 - P) flips the output.

    References
    ----------
    .. [1] B. Zadrozny and C. Elkan, "Transforming classifier scores into accurate multiclass probability
       estimates", KDD 2002. https://doi.org/10.1145/775047.775151

    Examples
    --------
    >>> from deep.calibration import Isotonic
    >>> iso = Isotonic().fit([0.2, 0.2, 0.4, 0.4, 0.8, 0.8], [0, 1, 0, 0, 1, 1])
    >>> iso.transform([0.2, 0.4, 0.6]).round(3)
    array([0.25 , 0.25 , 0.625])
    """

    thresholds_: Floats
    values_: Floats

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        scores = collapse_scores(p, y, w)
        values = isotonic_regression(scores.n1 / scores.n, sample_weight=scores.n)
        # `interp` draws straight lines, so only the two ends of a flat piece are needed.
        inner = np.ones(len(values), dtype=bool)
        inner[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
        self.thresholds_, self.values_ = scores.p[inner], values[inner]

    def _transform(self, p: Floats) -> Floats:
        return np.interp(p, self.thresholds_, self.values_)


# A dataclass, as `NetcalCalibrator`, only for the constructor; all else stays scikit-learn's.
@dataclass(eq=False, repr=False)
class Platt(BaseCalibrator):
    """Logistic regression of the label on the log-odds of P, or on P itself: slope and intercept.

    ``P(calibrated) = sigmoid(slope_ * log-odds(P) + intercept_)``, with P held within [1e-6, 1 - 1e-6] first.

    Parameters
    ----------
    on_probability : bool, default=False
        ``sigmoid(slope_ * P + intercept_)`` instead: a sigmoid of an ensembler's output, as the DEEP paper has it and
        recipe 'paper' takes it. No slope then leaves P as it is, and all P lie between ``sigmoid(intercept_)`` and
        ``sigmoid(slope_ + intercept_)``.

    Attributes
    ----------
    slope_ : float
        1 leaves confidence as it is, below 1 lessens it. **Negative** where the scores point the wrong way:
        the map then falls, since a judge that is reliably wrong still informs. Rising otherwise.
    intercept_ : float
        In log-odds.

    Notes
    -----
    As in the paper, the fit aims not at labels 1 and 0 but at (n1 + 1) / (n1 + 2) and 1 / (n0 + 2), where n1
    and n0 are the sums of weights of the classes. Weights are therefore counts: scale them to sum to the
    number of rows, since a small sum means little evidence. With it separable scores have a finite slope.
    Scores that are all equal keep slope 1, and get the share of label 1 by their intercept.

    The log-odds, not P itself, are the default regressor: the identity is then among the maps that can be fitted.

    Flipping labels and probabilities together (y to 1 - y, P to 1 - P) flips the output.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
       likelihood methods", Advances in Large Margin Classifiers, 1999, 61-74.

    Examples
    --------
    >>> from deep.calibration import Platt
    >>> overconfident = Platt().fit([0.1] * 10 + [0.9] * 10, [1] * 3 + [0] * 7 + [0] * 3 + [1] * 7)
    >>> overconfident.transform([0.1, 0.5, 0.9]).round(3)
    array([0.333, 0.5  , 0.667])
    """

    on_probability: bool = False

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        scores = collapse_scores(p, y, w)
        n1 = scores.n1.sum()
        n0 = scores.n.sum() - n1
        # Platt's targets: (n1 + 1) / (n1 + 2) for label 1, 1 / (n0 + 2) for label 0. With 1 and 0 a score that
        # separates the labels would get an infinite slope.
        smoothed = scores.n1 * (n1 + 1.0) / (n1 + 2.0) + (scores.n - scores.n1) / (n0 + 2.0)
        x = self._regressor(scores.p)
        design = np.column_stack([x, np.ones_like(x)])
        slope, intercept = fit_logistic(design, scores.n, smoothed, centre=np.array([1.0, 0.0]))
        self.slope_, self.intercept_ = float(slope), float(intercept)

    def _regressor(self, p: Floats) -> Floats:
        return p if self.on_probability else logit(p)

    def _transform(self, p: Floats) -> Floats:
        return np.asarray(expit(self.slope_ * self._regressor(p) + self.intercept_))


# The temperatures searched, chosen by hand. Separable scores reach the first, uninformative ones the second.
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100.0


class Temperature(BaseCalibrator):
    """Divide the log-odds of P by one temperature: 0.5 stays 0.5, so decisions at 0.5 never change.

    ``P(calibrated) = sigmoid(log-odds(P) / temperature_)``, with P held within [1e-6, 1 - 1e-6] first.

    Attributes
    ----------
    temperature_ : float
        Within [0.01, 100]; above 1 where P was overconfident.

    Notes
    -----
    The temperature maximises the weighted likelihood. It is never negative: scores that point the wrong way,
    or say nothing, get temperature 100 and P close to 0.5. Perfectly separable scores get 0.01; where all
    scores are 0.5 the temperature stays 1. Rising always. Only the ratio of weights matters.

    Flipping labels and probabilities together (y to 1 - y, P to 1 - P) flips the output.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On calibration of modern neural networks",
       ICML 2017. https://arxiv.org/abs/1706.04599

    Examples
    --------
    >>> from deep.calibration import Temperature
    >>> overconfident = Temperature().fit([0.1] * 10 + [0.9] * 10, [1] * 3 + [0] * 7 + [0] * 3 + [1] * 7)
    >>> overconfident.transform([0.1, 0.5, 0.9]).round(3)
    array([0.3, 0.5, 0.7])
    """

    temperature_: float

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        scores = collapse_scores(p, y, w)
        x = logit(scores.p)
        # Where every P is one half, all temperatures give the same.
        self.temperature_ = 1.0 / _best_scale(x, scores) if x.any() else 1.0

    def _transform(self, p: Floats) -> Floats:
        return np.asarray(expit(logit(p) / self.temperature_))


def _best_scale(x: Floats, scores: DistinctScores) -> float:
    """Return the scale at which the negative log-likelihood, convex in it, has slope 0, or the nearer bound."""
    from scipy.optimize import brentq

    def slope(scale: float) -> float:
        return float(x @ (scores.n * expit(scale * x) - scores.n1))

    # One root at most, since a regression without intercept is convex in its coefficient.
    low, high = 1.0 / MAX_TEMPERATURE, 1.0 / MIN_TEMPERATURE
    if slope(low) >= 0.0:
        return low
    return high if slope(high) <= 0.0 else float(brentq(slope, low, high, xtol=1e-15, rtol=1e-15))


class Beta(BaseCalibrator):
    """Three parameters that bend P apart at its two ends, and never fall.

    ``log-odds(calibrated) = a_ * log P - b_ * log(1 - P) + c_`` with ``a_, b_ >= 0``, and P held within
    [1e-6, 1 - 1e-6] first. ``a_ = b_ = 1, c_ = 0`` is the identity; ``a_ = b_`` is Platt's map.

    Attributes
    ----------
    a_, b_ : float
        Slopes near P = 0 and near P = 1; not negative.
    c_ : float
        Intercept, in log-odds.

    Notes
    -----
    The parameters maximise the weighted likelihood under the constraint. The problem is convex, so a slope
    that comes out negative belongs at 0, and the faces of the constraint are tried for the best. Scores that
    point the wrong way end with both slopes 0: a constant, the share of label 1. Never falling.

    A pull of 1e-6 towards the identity keeps separable scores finite, and settles what fewer than three
    distinct scores leave open. Flipping labels and probabilities together (y to 1 - y, P to 1 - P) flips the
    output.

    References
    ----------
    .. [1] M. Kull, T. Silva Filho and P. Flach, "Beta calibration: a well-founded and easily implemented
       improvement on logistic calibration for binary classifiers", AISTATS 2017.
       https://proceedings.mlr.press/v54/kull17a.html

    Examples
    --------
    >>> from deep.calibration import Beta
    >>> lenient = Beta().fit([0.2] * 10 + [0.9] * 10, [1] * 2 + [0] * 8 + [0] * 4 + [1] * 6)
    >>> lenient.transform([0.2, 0.9]).round(3)
    array([0.2, 0.6])
    """

    a_: float
    b_: float
    c_: float

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        scores = collapse_scores(p, y, w)
        self.a_, self.b_, self.c_ = (float(value) for value in _fit_with_slopes_above_zero(_design(scores.p), scores))

    def _transform(self, p: Floats) -> Floats:
        return np.asarray(expit(_design(p) @ np.array([self.a_, self.b_, self.c_])))


def _design(p: Floats) -> Floats:
    clipped = np.clip(p, P_MIN, 1.0 - P_MIN)
    # With ln P and -ln(1 - P) as columns, beta calibration is a logistic regression (Kull et al. 2017).
    return np.column_stack([np.log(clipped), -np.log1p(-clipped), np.ones_like(clipped)])


def _fit_with_slopes_above_zero(design: Floats, scores: DistinctScores) -> Floats:
    """Return the best coefficients with both slopes at least 0."""
    # The map falls where a or b is below 0. The loss is convex, so the best map that does not fall then lies where a, b
    # or both are 0.
    free = _fit_columns(design, scores, (True, True, True))
    if free[:2].min() >= 0.0:
        return free
    faces = [_fit_columns(design, scores, (*mask, True)) for mask in product([True, False], repeat=2) if not all(mask)]
    feasible = [face for face in faces if face[:2].min() >= 0.0]

    def loss(theta: Floats) -> float:
        z = design @ theta
        return float(scores.n @ np.logaddexp(0.0, z) - scores.n1 @ z)

    return min(feasible, key=loss)


def _fit_columns(design: Floats, scores: DistinctScores, mask: tuple[bool, ...]) -> Floats:
    """Fit the columns of a mask, with the coefficients of the others at 0."""
    columns = np.flatnonzero(mask)
    theta = np.zeros(design.shape[1])
    # The ridge pulls to a = b = 1, c = 0, which leaves P as it is.
    identity = np.array([1.0, 1.0, 0.0])
    theta[columns] = fit_logistic(design[:, columns], scores.n, scores.n1, centre=identity[columns])
    return theta


# The most rows that stand for weighted ones, each repeated by its weight: a million take some 8 MB a column. It bounds
# the denominators of ratios of weights as well, for a larger one would need more rows.
MAX_ROWS = 1_000_000

# The relative distance from a whole number up to which a weight is that number: what rounding of floats leaves.
WHOLE_WEIGHT_TOLERANCE = 1e-9

# The calibrators whose maps depend on how many rows there are; those of the others depend on shares of label 1 alone.
COUNT_SENSITIVE_CALIBRATORS = ("netcal-bbq", "netcal-enir")


@dataclass(eq=False, repr=False)
class NetcalCalibrator(BaseCalibrator):
    """One of netcal's calibrators at its defaults, fitted to each row as often as it weighs.

    netcal takes no weights, so rows are repeated: exact, and refused where it would not be. Weights must be whole for
    netcal's BBQ and ENIR, which count rows. For the others they may be any multiple of whole numbers. Rows of equal P
    stand together, those of label 1 first. The time of ENIR grows with the square of the distinct scores.

    Parameters
    ----------
    option : str, default='netcal-isotonic'
        A key of `NETCAL_CLASSES`: which of them, by its name in options and results.

    Attributes
    ----------
    fitted_ : object
        netcal's own.

    Raises
    ------
    InputError
        In `fit`: the weights are not whole or expand to more than 1,000,000 rows; netcal fails on these scores;
        or its map leaves [0, 1] on them. In `transform`: it does on others.

    References
    ----------
    .. [1] F. Küppers et al., "Multivariate confidence calibration for object detection", CVPR Workshops 2020.
       https://arxiv.org/abs/2004.13546
    """

    option: str = "netcal-isotonic"

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        module, name = NETCAL_CLASSES[check_choice(self.option, NETCAL_CLASSES, "option")]
        scores = collapse_scores(p, y, w)
        by_label = np.column_stack([scores.n1, scores.n - scores.n1])
        counts = whole_counts(by_label, multiples=self.option not in COUNT_SENSITIVE_CALIBRATORS, option=self.option)
        rows = np.repeat(scores.p, counts.sum(axis=1))
        labels = np.repeat(np.tile([1, 0], len(scores.p)), counts.ravel())
        # Those that optimise would else write logs for TensorBoard into the working folder.
        quiet = {"tensorboard": False} if module == "netcal.scaling" else {}
        with capture_netcal_output(self.option):
            self.fitted_ = getattr(import_module(module), name)().fit(rows, labels, **quiet)
        # Some of netcal's maps leave [0, 1]: that is refused at the fit, not at the first item scored.
        self._transform(scores.p)

    def _transform(self, p: Floats) -> Floats:
        # Each P is mapped by itself, so that equal ones are mapped once: P of votes has few values.
        distinct, where = np.unique(p, return_inverse=True)
        with capture_netcal_output(self.option):
            result = np.asarray(self.fitted_.transform(distinct), dtype=np.float64).reshape(distinct.shape)[where]
        wrong = ~((result >= 0) & (result <= 1))
        if wrong.any():
            raise InputError(
                f"`calibrator` must be one whose map stays in [0, 1]. Got {result[wrong][0].item()!r} of "
                f"{self.option!r} at P = {p[wrong][0].item():.3g}. Take 'isotonic' or 'platt'."
            )
        return result


def netcal_expected_calibration_error(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, n_bins: int = DEFAULT_BINS, sample_weight: Weights = None
) -> float:
    """Return the calibration error as netcal's ``ECE`` measures it, the same as `expected_calibration_error`.

    Weights must be whole, or in the ratio of whole numbers.

    Examples
    --------
    >>> from deep.calibration import netcal_expected_calibration_error
    >>> round(netcal_expected_calibration_error([1, 0, 1, 1], [0.9, 0.2, 0.3, 0.8]), 3)
    0.3
    """
    p, y, w = checked_rows(y_true, y_prob, sample_weight)
    counts = whole_counts(w, multiples=True, option="netcal's ECE")
    with capture_netcal_output("netcal's ECE"):
        measure = import_module("netcal.metrics").ECE(bins=check_bins(n_bins)).measure
        return float(measure(np.repeat(p, counts), np.repeat(y, counts).astype(np.int64)))


def whole_counts(weights: Floats, *, multiples: bool, option: str) -> npt.NDArray[np.int64]:
    """Return weights as numbers of rows, or raise.

    Parameters
    ----------
    weights : ndarray of float
        Not negative.
    multiples : bool
        Whether only their ratio matters: the smallest whole numbers in it are returned then.
    option : str
        The calibrator, for the error.

    Examples
    --------
    >>> whole_counts(np.array([0.5, 0.0, 0.75]), multiples=True, option="netcal-platt").tolist()
    [2, 0, 3]
    """
    scaled = weights
    if multiples and not _can_repeat_rows(weights):
        # Weights by dataset and class are ratios of counts, so that some multiple of them is whole.
        least, denominator = weights[weights > 0].min(), 1
        for ratio in np.unique(weights[weights > 0] / least).tolist():
            denominator = math.lcm(denominator, Fraction(ratio).limit_denominator(MAX_ROWS).denominator)
            if denominator > MAX_ROWS:
                break
        scaled = weights * (denominator / least)
    if not _can_repeat_rows(scaled):
        worst = weights.ravel()[np.abs(weights - np.rint(weights)).argmax()].item()
        of = " or in the ratio of whole numbers" if multiples else ""
        raise InputError(
            f"`sample_weight` must be whole{of}, with at most {MAX_ROWS:,} rows in all, for {option!r}: netcal takes "
            f"no weights, so rows are repeated. Got {worst:.6g}. Weigh every row alike (`--weighting uniform`), or "
            f"take deep's own calibrators."
        )
    return np.rint(scaled).astype(np.int64)


def _can_repeat_rows(weights: Floats) -> bool:
    whole = np.abs(weights - np.rint(weights)) <= WHOLE_WEIGHT_TOLERANCE * np.maximum(weights, 1)
    return bool(whole.all() and weights.sum() <= MAX_ROWS)


@contextmanager
def capture_netcal_output(option: str) -> Iterator[None]:
    """Capture netcal's output and warnings, and turn its exceptions into one line."""
    sink = StringIO()
    with needs_extra("netcal", what=option), warnings.catch_warnings(), redirect_stdout(sink), redirect_stderr(sink):
        warnings.simplefilter("ignore")
        try:
            with np.errstate(all="ignore"):
                yield
        except ImportError:  # `needs_extra` says what to install
            raise
        except Exception as error:  # netcal raises whatever numpy, scipy and torch do
            message = f"{type(error).__name__}: {str(error).strip() or 'no reason'}".splitlines()[0]
            raise InputError(
                f"`calibrator` must be one that can be fitted to these scores. Got {option!r}, where netcal fails with "
                f"{message}. Take 'isotonic' or 'platt'."
            ) from error
