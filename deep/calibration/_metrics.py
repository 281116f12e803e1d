"""Metrics of decisions and probabilities, all from one sorted pass over distinct scores.

Equal probabilities are collapsed to one weighted score, which is all that calibrators and metrics look at. The metrics
equal scikit-learn's (tested), and are not taken from it: on collapsed scores each is a line, where ``sklearn.metrics``
takes rows, checks them again for each metric, and warns or raises where a class is missing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from deep._util import checks
from deep._util.checks import Floats, Labels, RandomState, Weights
from deep._util.odds import P_MIN
from deep.calibration._registry import DEFAULT_BINS
from deep.exceptions import InputError

# Probabilities, labels and weights.
LabeledScores = tuple[Floats, Labels, Floats]


class DistinctScores(NamedTuple):
    """The distinct probabilities, ascending, with the weight of their rows.

    Parameters
    ----------
    p : ndarray of shape (n_scores,)
        Distinct probabilities of the rows of positive weight.
    n : ndarray of shape (n_scores,)
        Total weight of the rows with that probability; positive.
    n1 : ndarray of shape (n_scores,)
        Weight of those of them with label 1.
    """

    p: Floats
    n: Floats
    n1: Floats


def collapse_scores(p: Floats, y: Labels, w: Floats) -> DistinctScores:
    """Sum the weights of rows with exactly equal probability, by label."""
    # Votes give few distinct P: from here on every measure runs over some hundred values, not over the rows.
    distinct, where = np.unique(p, return_inverse=True)
    by_label = checks.bincount(2 * where + y, w, 2 * len(distinct)).reshape(-1, 2)
    return DistinctScores(distinct, by_label.sum(axis=1), by_label[:, 1])


def checked_rows(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights, *, labels: str = "y_true", scores: str = "y_prob"
) -> LabeledScores:
    """Check labels and probabilities, called so in errors, and weights; return the rows of positive weight."""
    p = checks.check_probabilities(y_prob, name=scores)
    y = checks.check_labels(y_true, len(p), name=labels)
    w = checks.check_sample_weight(sample_weight, len(p))
    # A row of weight 0 is as good as absent. Kept, it would be a P with no rows, whose share n1 / n is NaN.
    mask = w > 0
    return p[mask], y[mask], w[mask]


def checked_scores(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights) -> DistinctScores:
    """Check labels, probabilities and weights of a metric, drop rows of weight 0, and collapse the rest."""
    return collapse_scores(*checked_rows(y_true, y_prob, sample_weight))


def check_whole(number: object, *, least: int, name: str) -> int:
    """Return `number` if it is a whole number of at least `least`."""
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
        raise InputError(f"`{name}` must be a whole number of at least {least}. Got {number!r}.")
    return int(number)


def check_bins(n_bins: object) -> int:
    """Return `n_bins` if it is a whole number of at least 1."""
    return check_whole(n_bins, least=1, name="n_bins")


def check_counts(n: Floats) -> Floats:
    """Return the weights if all are whole numbers, for estimators that draw rows at random."""
    if not np.array_equal(n, np.rint(n)):
        wrong = n[n != np.rint(n)][0].item()
        raise InputError(
            f"`sample_weight` must hold whole numbers, how often each row occurs. Got a sum of {wrong!r} in one cell."
        )
    return n


def bin_edges(n_bins: int) -> Floats:
    """Return the n_bins + 1 edges of equal-width bins over [0, 1]; each holds its left edge, the last both."""
    return np.linspace(0.0, 1.0, n_bins + 1)


def bin_sums(scores: DistinctScores, edges: Floats) -> tuple[Floats, Floats, Floats]:
    """Return by bin the weight, the weighted sum of P, and the weight of label 1, each of shape (n_bins,)."""
    n_bins = len(edges) - 1
    # A P on an edge belongs to the bin above it. P = 1 has none above, and goes to the last bin.
    where = np.minimum(np.searchsorted(edges, scores.p, side="right") - 1, n_bins - 1)
    n, expected, n1 = (checks.bincount(where, part, n_bins) for part in (scores.n, scores.n * scores.p, scores.n1))
    return n, expected, n1


# A count is followed so many standard deviations and rows to either side of its mean: beyond lies less than 1e-18.
TAIL_SDS = 9.0
# Rows beyond those deviations: where the variance is next to 0, they alone reach far enough.
TAIL_ROWS = 20

# Frequencies at which a characteristic function is below exp(-40) = 4e-18 are left out.
MAX_FACTOR_EXPONENT = 40.0


class NoiseFloor(NamedTuple):
    """The expected calibration error of a predictor without error, on a sample of this size.

    Parameters
    ----------
    mean : float
        Its expectation, in [0, 1].
    q95 : float
        Its 95 % quantile, in [0, 1]: a perfect predictor stays below in 19 of 20 samples.
    """

    mean: float
    q95: float


def expected_calibration_error(
    y_true: ArrayLike, y_prob: ArrayLike, *, n_bins: int = DEFAULT_BINS, sample_weight: Weights = None
) -> float:
    """Return the weighted mean gap between the share of label 1 and the mean P, over bins of P.

    Parameters
    ----------
    y_true : array-like of shape (n_examples,)
        Labels 0/1.
    y_prob : array-like of shape (n_examples,)
        P(consistent), in [0, 1].
    n_bins : int, default=8
        Equal-width bins over [0, 1]; each holds its left edge, the last one both.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each.

    Returns
    -------
    float
        In [0, 1]; 0 is perfect. **Never expected to be 0**: see :func:`ece_noise_floor`.

    Raises
    ------
    InputError
        A value is out of range, or lengths differ.

    Notes
    -----
    ``sum_b (n_b / n) |share of label 1 in b - mean P in b|``: equation 1 of the paper on DEEP [1]_, with P(consistent)
    as the confidence. Empty bins add nothing.

    References
    ----------
    .. [1] A. Chandler, D. Surve and H. Su, "Detecting errors through ensembling prompts (DEEP)", 2024.
       https://arxiv.org/abs/2406.13009
    .. [2] M. P. Naeini, G. F. Cooper and M. Hauskrecht, AAAI 2015. https://doi.org/10.1609/aaai.v29i1.9602

    Examples
    --------
    >>> from deep.calibration import expected_calibration_error
    >>> expected_calibration_error([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
    0.25
    """
    return ece_of_scores(checked_scores(y_true, y_prob, sample_weight), check_bins(n_bins))


def ece_noise_floor(
    y_prob: ArrayLike,
    *,
    n_bins: int = DEFAULT_BINS,
    sample_weight: Weights = None,
    n_draws: int = 1000,
    random_state: RandomState = 0,
) -> NoiseFloor:
    """Return the expected calibration error of a perfect predictor with these P.

    Parameters
    ----------
    y_prob : array-like of shape (n_examples,)
        P(consistent), in [0, 1]. Every label is drawn from its row's own P.
    n_bins : int, default=8
        As in :func:`expected_calibration_error`.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row occurs, a whole number; default 1 each.
    n_draws : int, default=1000
        Samples of labels for the quantile; 0 leaves it nan. The mean needs none.
    random_state : int, Generator or None, default=0
        Seeds the samples.

    Returns
    -------
    NoiseFloor
        Mean and 95 % quantile.

    Raises
    ------
    InputError
        A value is out of range, lengths differ, or a weight is not a whole number.

    Notes
    -----
    The number of consistent rows in a bin is a sum of binomials, one a distinct P; its law is computed from
    its characteristic function (to 1e-12), the mean floor follows without a draw, and draws for the quantile
    come from that law. The time grows with the distinct P and hardly with the rows.

    Examples
    --------
    >>> from deep.calibration import ece_noise_floor
    >>> floor = ece_noise_floor([0.1, 0.3, 0.5, 0.7, 0.9], sample_weight=[60, 50, 50, 50, 58])
    >>> round(floor.mean, 3), round(floor.q95, 2)
    (0.043, 0.07)
    """
    p = checks.check_probabilities(y_prob)
    scores = checked_scores(np.zeros(len(p)), p, sample_weight)
    return floor_of(scores, check_bins(n_bins), n_draws=n_draws, random_state=random_state)


def ece_of_scores(scores: DistinctScores, n_bins: int) -> float:
    """Return the expected calibration error of checked scores."""
    n, expected, n1 = bin_sums(scores, bin_edges(n_bins))
    return float(np.abs(n1 - expected).sum() / n.sum())


def floor_of(scores: DistinctScores, n_bins: int, *, n_draws: int, random_state: RandomState = 0) -> NoiseFloor:
    """Return the noise floor of checked scores; its quantile is nan where `n_draws` is 0."""
    counts, total = check_counts(scores.n), scores.n.sum()
    # P ascends, so that a bin is a slice of it; empty bins begin where the next one does, and drop out.
    bounds = np.unique(np.searchsorted(scores.p, bin_edges(n_bins)[:-1]))
    parts = [slice(start, stop) for start, stop in zip(bounds, [*bounds[1:], None], strict=True)]
    laws = [_gap_distribution(scores.p[part], counts[part]) for part in parts if len(scores.p[part])]
    # The mean of a sum is the sum of the means, so the mean floor needs no draw. A quantile of the sum does.
    mean = sum(float(gaps @ law) for gaps, law in laws) / float(total)
    if not check_whole(n_draws, least=0, name="n_draws"):
        return NoiseFloor(mean, float("nan"))
    uniform = np.random.default_rng(random_state).random((len(laws), n_draws))
    draws = np.zeros(n_draws)
    for (gaps, law), u in zip(laws, uniform, strict=True):
        # Inverse of the distribution function. The bound is for a sum of probabilities that rounding keeps below u.
        draws += gaps[np.minimum(np.searchsorted(np.cumsum(law), u), len(gaps) - 1)]
    return NoiseFloor(mean, float(np.quantile(draws / total, 0.95)))


def _gap_distribution(p: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return |count of label 1 - its mean| at each possible count of one bin, and the probability of each.

    The law of a sum of independent binomials is the Fourier transform of the product of their characteristic
    functions, taken on a window of odd length (so that no frequency is pi, where a factor can be 0).
    """
    mean, variance = float(n @ p), float(n @ (p * (1.0 - p)))
    reach = int(np.ceil(TAIL_SDS * np.sqrt(variance))) + TAIL_ROWS
    first = max(0, int(mean) - reach)
    length = (min(int(n.sum()), int(mean) + reach) - first) // 2 * 2 + 3
    highest = length // 2 if variance <= MAX_FACTOR_EXPONENT / 2.0 else _highest_frequency(variance, length)
    angles = np.linspace(0.0, 2.0 * np.pi * highest / length, highest + 1)
    # Log modulus and phase of E[exp(i angle (count - first))], in real arithmetic, 10 times as fast.
    cosine_less_1 = -2.0 * np.sin(angles / 2.0) ** 2
    # |E[exp(i angle X)]|^2 = 1 - 2 p (1 - p) (1 - cos angle) of one label X with P(X = 1) = p; logarithms of n such add
    # up.
    log_size = np.log1p(np.outer(cosine_less_1, 2.0 * p * (1.0 - p))) @ n / 2.0
    phase = np.arctan2(np.outer(np.sin(angles), p), 1.0 + np.outer(cosine_less_1, p)) @ n - angles * first
    law = np.clip(np.fft.irfft(np.exp(log_size - 1j * phase), length), 0.0, None)
    return np.abs(first + np.arange(length) - mean), law / law.sum()


def _highest_frequency(variance: float, length: int) -> int:
    """Return the last frequency that matters: |factor| <= exp(-p (1 - p) (1 - cos angle)) a row."""
    # By log(1 - x) <= -x the modulus is at most exp(-variance (1 - cos angle)), which is exp(-40) at this angle.
    angle = np.arccos(1.0 - MAX_FACTOR_EXPONENT / variance)
    return min(length // 2, int(np.ceil(angle * length / (2.0 * np.pi))))


def log_loss(y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: Weights = None) -> float:
    """Return the mean negative log-likelihood of the labels, in nats.

    Parameters
    ----------
    y_true : array-like of shape (n_examples,)
        Labels 0/1; one class may be missing.
    y_prob : array-like of shape (n_examples,)
        P(consistent), in [0, 1]; held within [1e-6, 1 - 1e-6], so that a hard vote costs at most 13.8.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each.

    Examples
    --------
    >>> from deep.calibration import log_loss
    >>> round(log_loss([1, 0], [0.5, 0.5]), 4)
    0.6931
    """
    return _log_loss(checked_scores(y_true, y_prob, sample_weight))


def auroc(y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: Weights = None) -> float:
    """Return the chance that a consistent row has the higher P than an inconsistent one, ties counting half.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in :func:`log_loss`.

    Returns
    -------
    float
        In [0, 1]; nan where a class is missing.

    Examples
    --------
    >>> from deep.calibration import auroc
    >>> auroc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    return _auroc(checked_scores(y_true, y_prob, sample_weight))


def balanced_accuracy(
    y_true: ArrayLike, y_prob: ArrayLike, *, threshold: float = 0.5, sample_weight: Weights = None
) -> float:
    """Return the mean of the shares of consistent and of inconsistent rows that are decided rightly.

    Parameters
    ----------
    y_true : array-like of shape (n_examples,)
        Labels 0/1.
    y_prob : array-like of shape (n_examples,)
        P(consistent), or decisions 0/1.
    threshold : float, default=0.5
        Rows with P >= threshold are decided consistent.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each.

    Returns
    -------
    float
        In [0, 1]; nan where a class is missing.

    Examples
    --------
    >>> from deep.calibration import balanced_accuracy
    >>> balanced_accuracy([0, 1, 1, 1, 1], [0.2, 0.4, 0.5, 0.7, 0.9])
    0.875
    """
    return _decisions_at(y_true, y_prob, threshold, sample_weight)["balanced_accuracy"]


def precision(y_true: ArrayLike, y_prob: ArrayLike, *, threshold: float = 0.5, sample_weight: Weights = None) -> float:
    """Return the share of rows decided consistent that are; nan where none is decided so.

    Parameters
    ----------
    y_true, y_prob, threshold, sample_weight
        As in :func:`balanced_accuracy`.

    Examples
    --------
    >>> from deep.calibration import precision
    >>> precision([0, 0, 1, 1], [0.2, 0.6, 0.7, 0.4])
    0.5
    """
    return _decisions_at(y_true, y_prob, threshold, sample_weight)["precision"]


def recall(y_true: ArrayLike, y_prob: ArrayLike, *, threshold: float = 0.5, sample_weight: Weights = None) -> float:
    """Return the share of consistent rows that are decided so; nan where there is none.

    Parameters
    ----------
    y_true, y_prob, threshold, sample_weight
        As in :func:`balanced_accuracy`.

    Examples
    --------
    >>> from deep.calibration import recall
    >>> recall([1, 1, 1, 1], [0.2, 0.6, 0.7, 0.9])
    0.75
    """
    return _decisions_at(y_true, y_prob, threshold, sample_weight)["recall"]


def evaluate(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: Weights = None,
    n_bins: int = DEFAULT_BINS,
    threshold: float = 0.5,
    y_decision: ArrayLike | None = None,
    n_draws: int = 1000,
    random_state: RandomState = 0,
) -> dict[str, float]:
    """Return every metric of probabilities and their decisions at once.

    Parameters
    ----------
    y_true : array-like of shape (n_examples,)
        Labels 0/1; one class may be missing.
    y_prob : array-like of shape (n_examples,)
        P(consistent), in [0, 1].
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each. Whole numbers, unless `n_draws` is 0.
    n_bins : int, default=8
        Equal-width bins of the calibration errors and of the parts of the Brier score.
    threshold : float, default=0.5
        Rows with P >= threshold are decided consistent.
    y_decision : array-like of shape (n_examples,), optional
        Decisions 0/1 that were made otherwise; `threshold` is then not used.
    n_draws : int, default=1000
        Samples behind `ece_floor_95`. 0 leaves out the three keys that need whole weights, as nan.
    random_state : int, Generator or None, default=0
        Seeds those samples.

    Returns
    -------
    dict of str to float
        balanced_accuracy, precision, recall, auroc, log_loss (nats), brier, brier_reliability,
        brier_resolution (over bins), ece, ece_debiased, ece_floor, ece_floor_95: fractions in [0, 1] but for
        the log loss, and for ece_debiased, which may be negative. A figure that is undefined, for want of a
        class or of a positive decision, is nan.

    Raises
    ------
    InputError
        A value is out of range, lengths differ, or a weight is not a whole number.

    Examples
    --------
    >>> from deep.calibration import evaluate
    >>> result = evaluate([0, 1, 0, 1], [0.3, 0.3, 0.8, 0.8], sample_weight=[70, 30, 40, 60])
    >>> {name: round(result[name], 3) for name in ("balanced_accuracy", "auroc", "ece", "ece_floor")}
    {'balanced_accuracy': 0.652, 'auroc': 0.652, 'ece': 0.1, 'ece_floor': 0.034}
    """
    p, y, w = checked_rows(y_true, y_prob, sample_weight)
    if y_decision is None:
        decided = _decisions_from_p(p, threshold)
    else:
        _, decided, _ = checked_rows(y_decision, y_prob, sample_weight, labels="y_decision")
    scores = collapse_scores(p, y, w)
    ece, floor, q95 = ece_of_scores(scores, check_bins(n_bins)), float("nan"), float("nan")
    if n_draws != 0:
        floor, q95 = floor_of(scores, n_bins, n_draws=n_draws, random_state=random_state)
    return {
        **_decision_metrics(y, decided, w),
        "auroc": _auroc(scores),
        "log_loss": _log_loss(scores),
        **_brier(scores, bin_edges(n_bins)),
        "ece": ece,
        # Noise and true gap add up in squares within a bin. So the floor is taken off in squares: in full where P is
        # right, and hardly at all where it is far off. Near 0, and as often below it, for a perfect predictor.
        "ece_debiased": float(np.sign(ece - floor) * np.sqrt(abs(ece**2 - floor**2))),
        "ece_floor": floor,
        "ece_floor_95": q95,
    }


def _log_loss(scores: DistinctScores) -> float:
    # One P of exactly 0 or 1 that is wrong would make the loss infinite, and hide all other rows.
    p = np.clip(scores.p, P_MIN, 1.0 - P_MIN)
    loss = xlogy(scores.n1, p) + xlogy(scores.n - scores.n1, 1.0 - p)
    return float(-loss.sum() / scores.n.sum())


def brier_score(p: Floats, n: Floats, n1: Floats) -> float:
    """Return the mean squared difference of labels and P."""
    return float((n1 * (1.0 - p) ** 2 + (n - n1) * p**2).sum() / n.sum())


def _brier(scores: DistinctScores, edges: Floats) -> dict[str, float]:
    """Return the Brier score, and its reliability and resolution over bins.

    brier = reliability - resolution + uncertainty [1]_. The identity holds with bins too: resolution then takes in what
    P varies, and varies with the label, within bins [2]_, and may come out slightly below 0.

    References
    ----------
    .. [1] A. H. Murphy, "A new vector partition of the probability score", 1973.
       https://doi.org/10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2
    .. [2] D. B. Stephenson, C. A. S. Coelho and I. T. Jolliffe, "Two extra components in the Brier score
       decomposition", 2008. https://doi.org/10.1175/2007WAF2006116.1
    """
    p, n, n1 = scores
    total = n.sum()
    share = float(n1.sum() / total)
    brier = brier_score(p, n, n1)
    mass, expected, observed = bin_sums(scores, edges)
    squared = np.divide((observed - expected) ** 2, mass, out=np.zeros_like(mass), where=mass > 0)
    reliability = float(squared.sum() / total)
    # Not the binned sum of Murphy, so that the three terms add up exactly though P varies within a bin.
    resolution = reliability + share * (1.0 - share) - brier
    return {"brier": brier, "brier_reliability": reliability, "brier_resolution": resolution}


def _auroc(scores: DistinctScores) -> float:
    n0 = scores.n - scores.n1
    # Mann and Whitney's statistic: pairs in which label 1 has the higher P, a tie counting one half.
    pairs = float(scores.n1.sum() * n0.sum())
    below = np.cumsum(n0) - n0 / 2.0
    return _ratio(float(scores.n1 @ below), pairs)


def _decisions_from_p(p: Floats, threshold: float) -> Labels:
    if not 0.0 <= threshold <= 1.0:
        raise InputError(f"`threshold` must lie in [0, 1]. Got {threshold!r}.")
    return (p >= threshold).astype(np.int8)


def _decision_metrics(y: Labels, decided: Labels, w: Floats) -> dict[str, float]:
    """Return the metrics of decisions, from the weight of each (label, decision)."""
    confusion = checks.bincount(2 * y + decided, w, 4).reshape(2, 2)
    right0, right1 = (_ratio(confusion[label, label], confusion[label].sum()) for label in (0, 1))
    precise = _ratio(confusion[1, 1], confusion[:, 1].sum())
    return {"balanced_accuracy": (right0 + right1) / 2.0, "precision": precise, "recall": right1}


def _decisions_at(y_true: ArrayLike, y_prob: ArrayLike, threshold: float, sample_weight: Weights) -> dict[str, float]:
    p, y, w = checked_rows(y_true, y_prob, sample_weight)
    return _decision_metrics(y, _decisions_from_p(p, threshold), w)


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else float("nan")
