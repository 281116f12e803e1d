"""How far log-odds may be off on a dataset without labels, and how far errors on one document go together."""

from dataclasses import dataclass
from functools import cache, cached_property
from math import cos, pi, sin

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Mask, Positions, bincount, check_consistent_length
from deep._util.odds import P_MIN, expit, fit_logistic, logit

# This is added to the diagonal of a penalty: a direction without data or penalty stays where it started.
PENALTY_JITTER = 1e-9

# Newton's steps end below this: losses of alignments differ little, so the last step has to be below 1e-9.
NEWTON_TOLERANCE = 1e-18

# Pull of slope towards 1 and of context towards 0, against a mean log loss: felt where datasets are few.
ALIGNMENT_PENALTY = 4e-3

# A dataset's scores are kept as so many equal-weight points: slopes differ by less than 0.1 %.
N_SCORE_POINTS = 256

# A dataset's mean P is held within [SHARE_CLIP, 1 - SHARE_CLIP]: nearer to 0 or 1 says nothing more of its prior.
SHARE_CLIP = 0.02


@dataclass(frozen=True, eq=False)
class HeldOutData:
    """A member's log-odds on one dataset, by a fit that never saw it.

    Parameters
    ----------
    score : ndarray of float, shape (n_points,)
        The member's log-odds at each point.
    ones, zeros : ndarray of float, shape (n_points,)
        Weight of label 1 and of label 0 at each point.
    """

    score: Floats
    ones: Floats
    zeros: Floats

    @classmethod
    def from_rows(cls, score: Floats, ones: Floats, zeros: Floats) -> "HeldOutData":
        """Merge rows into at most `N_SCORE_POINTS` points of about equal weight."""
        order = np.argsort(score, kind="stable")
        score, ones, zeros = score[order], ones[order], zeros[order]
        total = np.cumsum(ones + zeros)
        value = np.concatenate([[True], score[1:] != score[:-1]])
        distinct = np.flatnonzero(value)
        if len(distinct) <= N_SCORE_POINTS:
            start = distinct
        else:
            cuts = np.searchsorted(total[distinct], np.arange(N_SCORE_POINTS) * total[-1] / N_SCORE_POINTS)
            start = distinct[np.unique(np.minimum(cuts, len(distinct) - 1))]
            # The first point takes all rows before the second: none may fall out at the low end.
            start[0] = 0
        n1, n0 = np.add.reduceat(ones, start), np.add.reduceat(zeros, start)
        weighted = np.add.reduceat(score * (ones + zeros), start)
        weighty = n1 + n0 > 0
        return cls((weighted[weighty] / (n1 + n0)[weighty]), n1[weighty], n0[weighty])

    @cached_property
    def context(self) -> float:
        """Return the log-odds of the mean P over the whole dataset: needs no label."""
        weights = self.ones + self.zeros
        return float(logit(float(weights @ expit(self.score) / weights.sum()), clip=SHARE_CLIP))

    @cached_property
    def prior(self) -> float:
        """Return the share of label 1."""
        return float(self.ones.sum() / (self.ones.sum() + self.zeros.sum()))

    def classes(self) -> tuple[Floats, Floats]:
        """Return the weights of label 1 and of label 0, each summing to 1."""
        return self.ones / self.ones.sum(), self.zeros / self.zeros.sum()


@dataclass(frozen=True)
class Alignment:
    """log-odds = intercept + slope * score + context * (log-odds of the dataset's mean P).

    Parameters
    ----------
    intercept, slope, context : float
        `context` is below 0: where a member finds a whole dataset consistent, part of that is leniency.
    """

    intercept: float
    slope: float
    context: float

    def __call__(self, score: Floats, context: float) -> Floats:
        """Return log-odds at equal class weights."""
        return np.asarray(self.intercept + self.slope * score + self.context * context)


def fit_alignment(datasets: list[HeldOutData], *, use_context: bool) -> Alignment:
    """Fit a logistic regression of the label on score and dataset context, every dataset x class weighing the same.

    Parameters
    ----------
    datasets : list of HeldOutData
        One or more, each with labels of both classes.
    use_context : bool
        Whether the log-odds of a dataset's mean P enter; else their effect is 0.

    Notes
    -----
    The within-between form of Mundlak: a score's effect within a dataset and that of the dataset's mean are
    allowed to differ [1]_. Were a mean raised by the labels alone, the context would get 0.

    References
    ----------
    .. [1] Y. Mundlak, "On the pooling of time series and cross section data", Econometrica 46, 1978.
       https://doi.org/10.2307/1913646
    """
    score = np.concatenate([one.score for one in datasets])
    contexts = np.array([one.context for one in datasets])
    columns = [score]
    if use_context:
        columns.append(np.repeat(contexts - contexts.mean(), [len(one.score) for one in datasets]))
    shares = [one.classes() for one in datasets]
    ones, zeros = (np.concatenate([pair[c] for pair in shares]) for c in (0, 1))
    centre = np.array([1.0, 0.0])[: len(columns)]
    penalty = ALIGNMENT_PENALTY * np.eye(len(columns))
    slope, *context = newton_logistic(np.column_stack(columns), ones, zeros, centre=centre, penalty=penalty).tolist()
    # A member that ranks a new dataset the wrong way round is switched off rather than believed in reverse.
    if slope <= 0:
        return Alignment(0.0, 0.0, 0.0)
    effect = context[0] if context else 0.0
    # There is no free intercept: with one, four small datasets moved decisions by up to 13 points of balanced
    # accuracy (decision 13).
    return Alignment(-effect * float(contexts.mean()), slope, effect)


def newton_logistic(design: Floats, ones: Floats, zeros: Floats, *, centre: Floats, penalty: Floats) -> Floats:
    """Return the coefficients that minimise mean log loss plus half the quadratic form of `penalty` about `centre`.

    Parameters
    ----------
    design : ndarray of shape (n_points, n_coefficients)
        One row a point and one column a coefficient; no intercept is added.
    ones, zeros : ndarray of shape (n_points,)
        Weight of label 1 and of label 0; the loss is divided by their sum.
    centre : ndarray of shape (n_coefficients,)
        The coefficients that the penalty draws to.
    penalty : ndarray of shape (n_coefficients, n_coefficients)
        Symmetric, and positive semidefinite.

    Examples
    --------
    >>> design = np.column_stack([np.ones(2), [-1.0, 1.0]])
    >>> weights = np.array([1.0, 3.0]), np.array([3.0, 1.0])
    >>> newton_logistic(design, *weights, centre=np.zeros(2), penalty=np.zeros((2, 2)))[1].round(3).item()
    1.099
    """
    weight = ones + zeros
    total = weight.sum()
    penalty = penalty + PENALTY_JITTER * np.eye(len(centre))
    return fit_logistic(
        design, weight / total, ones / total, centre=centre, penalty=penalty, start=centre, tolerance=NEWTON_TOLERANCE
    )


def laplace(
    design: Floats, labels: Floats, weights: Floats, coef: Floats, centre: Floats, covariance: Floats
) -> tuple[Floats, float]:
    """Return the information of labels on coefficients, and the log evidence by Laplace's approximation about them.

    Parameters
    ----------
    design : ndarray of shape (n_labels, n_coefficients)
        One row a labeled item, with the columns that `coef` multiplies.
    labels, weights : ndarray of shape (n_labels,)
        0 or 1, and how much each counts.
    coef : ndarray of shape (n_coefficients,)
        The most likely ones.
    centre, covariance : ndarray
        Mean and covariance of their Gaussian prior.
    """
    z, off = design @ coef, coef - centre
    information = (design.T * (weights * expit(z) * expit(-z))) @ design
    volume = np.linalg.slogdet(np.eye(len(coef)) + covariance @ information)[1]
    likelihood = weights @ (labels * z - np.logaddexp(0.0, z))
    return information, float(likelihood - (off @ np.linalg.inv(covariance) @ off + volume) / 2)


def balanced_log_loss(log_odds: Floats, dataset: HeldOutData) -> float:
    """Return the mean log loss of log-odds at the dataset's points, both classes weighing the same."""
    ones, zeros = dataset.classes()
    return float(ones @ np.logaddexp(0.0, -log_odds) + zeros @ np.logaddexp(0.0, log_odds)) / 2


LEVEL = 0.9
"""Nominal coverage of every interval for a new dataset."""

MIN_DATASETS_FOR_SPREAD = 3
"""With two, a fit without one of them has seen a single dataset, and nothing tells how far datasets lie apart."""

# Cells with fewer rows are too noisy to add to a spread.
MIN_CELL_ROWS = 5

# The range in which a quantile is looked for is halved so often: then its ends lie within rounding.
N_BISECTIONS = 60

# A spread in log-odds is looked for up to here, far beyond any, so that the root lies within.
MAX_SPREAD = 100.0


@cache
def student_quantile(degrees: float) -> float:
    """Return the two-sided quantile of Student's t at `LEVEL`.

    Examples
    --------
    >>> round(student_quantile(10), 3)
    1.812
    """
    whole = round(degrees)
    if whole != degrees or whole < 1:
        from scipy.special import stdtrit

        return float(stdtrit(degrees, (1 + LEVEL) / 2))
    low, high = 0.0, pi / 2
    for _ in range(N_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_t_probability(middle, whole) < LEVEL else (low, middle)
    return float(np.tan((low + high) / 2) * np.sqrt(whole))


def _student_t_probability(angle: float, degrees: int) -> float:
    """Return P(|t| <= sqrt(degrees) tan(angle)): a finite series for whole degrees of freedom [1]_.

    SciPy would take longer to load than a text to score.

    References
    ----------
    .. [1] M. Abramowitz and I. A. Stegun, "Handbook of mathematical functions", 1964, 26.7.3 and 26.7.4.
    """
    sine, cosine, odd = sin(angle), cos(angle), degrees % 2
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for i in range(2 + odd, degrees - 1, 2):
        term *= cosine**2 * (i - 1) / i
        total += term
    return 2 / pi * (angle + sine * total) if odd else sine * total


def paule_mandel(deviations: list[tuple[Floats, Floats]]) -> float:
    """Return the standard deviation of cells around their expectation, beyond the noise of counting.

    Parameters
    ----------
    deviations : list of (ndarray, ndarray)
        Of the cells of each dataset: observed minus expected log-odds, and the variance of counting. Datasets without
        cells are left out.

    Notes
    -----
    The root of Paule and Mandel's equation: squared deviations, over the variance of counting plus the spread
    squared, average 1, every dataset weighing the same [1]_.

    References
    ----------
    .. [1] R. C. Paule and J. Mandel, "Consensus values and weighting factors", J. Res. NBS 87, 1982.
       https://doi.org/10.6028/jres.087.022
    """
    from scipy.optimize import brentq

    with_cells = [pair for pair in deviations if len(pair[0])]

    def excess(spread: float) -> float:
        return float(np.mean([np.mean(gap**2 / (noise + spread**2)) for gap, noise in with_cells])) - 1.0

    # The mean falls as the spread grows: where counting alone explains the deviations, there is no root above 0.
    return 0.0 if not with_cells or excess(0.0) <= 0 else float(brentq(excess, 0.0, MAX_SPREAD))


# Intercept and slope that leave log-odds as they are.
NO_CORRECTION = (0.0, 1.0)

# Covariance of intercept and slope assumed before any dataset was seen, worth one dataset.
INITIAL_COVARIANCE = ((0.5, 0.0), (0.0, 0.15))

# No correction counts as so many datasets, in the mean and in the degrees of freedom of intervals.
INITIAL_DATASETS = 3

# Intervals that were learned from datasets left out reach only so far.
# `INITIAL_COVARIANCE` and fits that lack a dataset make intervals too wide. On real panels .8 would do; where datasets
# lie apart as Student's t has it, less than this covers too little (decision 44).
INTERVAL_WIDTH_FACTOR = 0.87

# A rate nearer to 0 or 1 has no variance of counting that a float can hold.
MAX_LOG_ODDS = 30.0


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """One dataset's rows with log-odds of P by fits without it.

    Parameters
    ----------
    log_odds : ndarray of float, shape (n_examples,)
        Of P by a fit that never saw the dataset; for :func:`learn_misfit` at the estimated prior.
    ones, zeros : ndarray of float, shape (n_examples,)
        Weight of label 1 and of label 0.
    cell : ndarray of int, shape (n_examples,)
        Which vote pattern each row has.
    """

    log_odds: Floats
    ones: Floats
    zeros: Floats
    cell: npt.NDArray[np.intp]

    def merged(self) -> HeldOutData:
        """Return the rows as points."""
        return HeldOutData.from_rows(self.log_odds, self.ones, self.zeros)


@dataclass(frozen=True, eq=False)
class Misfit:
    """How log-odds z must be corrected on a new dataset, to intercept + slope * z, as training datasets tell.

    Parameters
    ----------
    mean : ndarray of shape (2,)
        Expected intercept and slope; (0, 1) is no correction.
    covariance : ndarray of shape (2, 2)
        Of intercept and slope between datasets.
    n_datasets : int
        How many it was learned from.
    cell_spread : float
        Standard deviation, in log-odds, of a vote pattern's rate around the corrected P, beyond counting.
    worst : ndarray of shape (2,), optional
        Intercept and slope of the training dataset on which P was furthest off.
    """

    mean: Floats
    covariance: Floats
    n_datasets: int
    cell_spread: float = 0.0
    worst: Floats | None = None

    @property
    def second_moment(self) -> Floats:
        """Return the mean squares and product of (intercept, slope - 1): how far off P is that nobody corrected."""
        bias = self.mean - NO_CORRECTION
        return np.asarray(self.covariance + np.outer(bias, bias))

    @property
    def quantile(self) -> float:
        """Return how far intervals reach, in standard deviations: a quantile of Student's t."""
        # `worst` is of datasets left out: labels of the dataset itself leave no slack.
        slack = INTERVAL_WIDTH_FACTOR if self.worst is not None and self.n_datasets > 1 else 1.0
        return slack * student_quantile(self.n_datasets + INITIAL_DATASETS)

    def interval(self, log_odds: Floats, counts: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return the bounds of P at each log-odds, at level 0.9, while no label has corrected it.

        Student's t with `n_datasets` + `INITIAL_DATASETS` degrees of freedom.

        Parameters
        ----------
        log_odds : ndarray of float, shape (n_examples,)
            Of P at the estimated prior.
        counts : ndarray of float, shape (n_examples,), optional
            The bounds are those of the rate observed in so many rows; default: of the true rate.

        Examples
        --------
        >>> misfit = Misfit(np.array([0.0, 1.0]), np.array([[0.25, 0.0], [0.0, 0.01]]), 10)
        >>> low, high = misfit.interval(np.array([0.0, 2.0]))
        >>> low.round(2).tolist(), high.round(2).tolist()
        ([0.29, 0.74], [0.71, 0.95])
        """
        return self.bounds(np.asarray(log_odds), np.asarray(log_odds), self.second_moment, counts)

    def bounds(
        self, log_odds: Floats, centre: Floats, covariance: Floats, counts: npt.ArrayLike | None
    ) -> tuple[Floats, Floats]:
        """Return the bounds around `centre` where intercept and slope on `log_odds` have this covariance."""
        variance = covariance[0, 0] + 2 * covariance[0, 1] * log_odds + covariance[1, 1] * log_odds**2
        variance = variance + self.cell_spread**2
        half, least = np.zeros(()), P_MIN
        if counts is not None:
            clipped = np.clip(centre, -MAX_LOG_ODDS, MAX_LOG_ODDS)
            variance = variance + 1.0 / (np.asarray(counts) * expit(clipped) * expit(-clipped))
            # Continuity correction: an observed rate moves in steps of 1 / n, of which half goes to each side.
            half, least = 0.5 / np.asarray(counts), 0.0
        reach = np.sqrt(variance) * self.quantile
        return np.maximum(expit(centre - reach) - half, least), np.minimum(expit(centre + reach) + half, 1.0 - least)


def learn_misfit(left_out: list[HeldOutRows]) -> Misfit:
    """Learn the misfit from datasets left out.

    Parameters
    ----------
    left_out : list of HeldOutRows
        None, one, or more.

    Returns
    -------
    Misfit
        The mean of the datasets' own corrections is shrunk towards no correction, their covariance towards
        `INITIAL_COVARIANCE`; the cells' spread is that of :func:`paule_mandel`.

    Examples
    --------
    >>> learn_misfit([]).covariance.tolist()
    [[0.5, 0.0], [0.0, 0.15]]
    """
    n = len(left_out)
    corrections = np.array([_correction_of_dataset(one) for one in left_out]).reshape(n, 2)
    # Three datasets without need of correction are added: so bounds cover in 89 to 94 % on four real panels with 0 to
    # all training datasets (decision 11).
    mean = (corrections.sum(axis=0) + INITIAL_DATASETS * np.array(NO_CORRECTION)) / (n + INITIAL_DATASETS)
    apart = corrections - mean
    covariance = (np.array(INITIAL_COVARIANCE) + apart.T @ apart) / max(n, 1)
    spread = paule_mandel([_cell_deviations(one, own) for one, own in zip(left_out, corrections, strict=True)])
    if not n:
        return Misfit(mean, covariance, n, spread)
    off = []  # by dataset, the mean distance between P and corrected P
    for one, (intercept, slope) in zip(left_out, corrections, strict=True):
        gaps = np.abs(expit(intercept + slope * one.log_odds) - expit(one.log_odds))
        off.append(np.average(gaps, weights=one.ones + one.zeros))
    return Misfit(mean, covariance, n, spread, corrections[int(np.argmax(off))])


def _correction_of_dataset(one: HeldOutRows) -> Floats:
    """Return intercept and slope that a whole labeled dataset asks for."""
    design = np.column_stack([np.ones(len(one.log_odds)), one.log_odds])
    # About one row's worth of pull keeps a separable dataset finite.
    penalty = np.eye(2) / (one.ones.sum() + one.zeros.sum())
    return newton_logistic(design, one.ones, one.zeros, centre=np.array(NO_CORRECTION), penalty=penalty)


def _cell_deviations(one: HeldOutRows, correction: Floats) -> tuple[Floats, Floats]:
    """Return observed minus corrected log-odds of the cells with rows enough, and the variance of counting."""
    ones, zeros = (bincount(one.cell, weights) for weights in (one.ones, one.zeros))
    n = ones + zeros
    corrected = correction[0] + correction[1] * one.log_odds
    # Rows of a cell may have unlike scores: the rate that is expected of it is the mean over its rows.
    expected = bincount(one.cell, (one.ones + one.zeros) * expit(corrected)) / np.maximum(n, 1e-9)
    large = n >= MIN_CELL_ROWS
    # Half a row is added to each class (the Haldane-Anscombe correction), so that a cell of one class is finite.
    ones, zeros = ones[large] + 0.5, zeros[large] + 0.5
    return np.log(ones / zeros) - logit(expected[large]), 1.0 / ones + 1.0 / zeros


# Errors of labels that share a document are taken to correlate by so much before any was seen. On alttest the
# correlation of errors within documents was -.07 to .09 (decision 11).
CORRELATION = 0.1

# `CORRELATION` is worth so many pairs of labels. Chosen; no measurement is known.
INITIAL_PAIRS = 20.0

# P is held this far off 0 and 1 where labels are compared with it: one label in a hundred is a slip of the hand.
LABEL_NOISE = 0.01


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
        cls, documents: npt.ArrayLike | None, n: int, weights: Floats | None = None, *, mask: Mask | None = None
    ) -> "Clusters":
        """Group n labels by document, each by itself where there are none; `mask` chooses rows of `documents`."""
        if documents is None:
            codes = np.arange(n)
        else:
            names = np.asarray(documents).astype(str)
            check_consistent_length(names, n if mask is None else len(mask), "documents")
            codes = np.unique(names if mask is None else names[mask], return_inverse=True)[1]
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
        all would raise alike; `INITIAL_PAIRS` pairs at `CORRELATION` are added, for a few labels cannot tell it.

        Examples
        --------
        >>> Clusters.from_documents(["a", "a", "b", "b"], 4).correlation(np.array([1.0, 1.0, -1.0, -1.0]))
        0.2727272727272727
        """
        sums = np.bincount(self.codes, weights=self.weights * errors)
        within, squares = float((sums**2).sum()), float(self.weights @ errors**2)
        pairs = float(np.maximum(self.sizes**2 - self.sizes, 0.0).sum()) / 2
        across = float(self.weights.sum() ** 2 - (self.sizes**2).sum()) / 2
        # An error of P that all documents share is the intercept's, and no sign of clusters.
        common = float(sums.sum() ** 2 - within) / 2 / across if across > 0 else 0.0
        products = (within - squares) / 2 - pairs * common
        return float(np.clip((products + INITIAL_PAIRS * CORRELATION) / (pairs + INITIAL_PAIRS), 0.0, 1.0))

    def shares(self, correlation: float) -> Floats:
        """Return how much each label counts beside one that is alone: m of them are worth m / (1 + (m - 1) r)."""
        return np.asarray(1.0 / (1.0 + np.maximum(self.sizes - 1.0, 0.0) * correlation)[self.codes])

    def design_effect(self, correlation: float) -> float:
        """Return the variance of the mean of the labels beside that of as many independent ones (Kish)."""
        mean_size = float((self.sizes**2).sum() / self.sizes.sum())
        return 1.0 + max(mean_size - 1.0, 0.0) * correlation


def standardised_errors(labels: Floats, p: Floats) -> Floats:
    """Return labels less P over its standard deviation, P held off 0 and 1 by `LABEL_NOISE`."""
    clipped = np.clip(p, LABEL_NOISE, 1 - LABEL_NOISE)
    return np.asarray((labels - clipped) / np.sqrt(clipped * (1 - clipped)))
