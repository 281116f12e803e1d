"""Metrics of decisions and probabilities, all from one sorted pass over distinct scores.

They equal scikit-learn's (tested), and are not taken from it: on collapsed scores each is a line, where
``sklearn.metrics`` takes rows, checks them again for each metric, and warns or raises where a class is missing.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from deep._util.checks import Floats, Labels, RandomState, Weights, weigh
from deep._util.odds import P_MIN
from deep.calibration import _ece
from deep.calibration._names import DEFAULT_BINS
from deep.exceptions import InputError


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
    return _log_loss(_ece.checked_scores(y_true, y_prob, sample_weight))


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
    return _auroc(_ece.checked_scores(y_true, y_prob, sample_weight))


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
    p, y, w = _ece.checked_rows(y_true, y_prob, sample_weight)
    if y_decision is None:
        decided = _decide(p, threshold)
    else:
        _, decided, _ = _ece.checked_rows(y_decision, y_prob, sample_weight, labels="y_decision")
    scores = _ece.collapse(p, y, w)
    return {
        **_decisions(y, decided, w),
        "auroc": _auroc(scores),
        "log_loss": _log_loss(scores),
        **_brier(scores, _ece.bin_edges(_ece.check_bins(n_bins))),
        **_calibration_errors(scores, n_bins, n_draws, random_state),
    }


def _calibration_errors(
    scores: _ece.DistinctScores, n_bins: int, n_draws: int, random_state: RandomState
) -> dict[str, float]:
    ece, mean, q95 = _ece.plain_ece(scores, n_bins), float("nan"), float("nan")
    if n_draws != 0:
        mean, q95 = _ece.floor_of(scores, n_bins, n_draws=n_draws, random_state=random_state)
    # Noise and true gap add up in squares within a bin. So the floor is taken off in squares: in full where P is right,
    # and hardly at all where it is far off. Near 0, and as often below it, for a perfect predictor.
    debiased = float(np.sign(ece - mean) * np.sqrt(abs(ece**2 - mean**2)))
    return {"ece": ece, "ece_debiased": debiased, "ece_floor": mean, "ece_floor_95": q95}


def _log_loss(scores: _ece.DistinctScores) -> float:
    p = np.clip(scores.p, P_MIN, 1.0 - P_MIN)
    loss = xlogy(scores.n1, p) + xlogy(scores.n - scores.n1, 1.0 - p)
    return float(-loss.sum() / scores.n.sum())


def _brier(scores: _ece.DistinctScores, edges: Floats) -> dict[str, float]:
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
    brier = float((n1 * (1.0 - p) ** 2 + (n - n1) * p**2).sum() / total)
    mass, expected, observed = _ece.bin_sums(scores, edges)
    squared = np.divide((observed - expected) ** 2, mass, out=np.zeros_like(mass), where=mass > 0)
    reliability = float(squared.sum() / total)
    resolution = reliability + share * (1.0 - share) - brier
    return {"brier": brier, "brier_reliability": reliability, "brier_resolution": resolution}


def _auroc(scores: _ece.DistinctScores) -> float:
    n0 = scores.n - scores.n1
    pairs = float(scores.n1.sum() * n0.sum())
    below = np.cumsum(n0) - n0 / 2.0
    return _ratio(float(scores.n1 @ below), pairs)


def _decide(p: Floats, threshold: float) -> Labels:
    if not 0.0 <= threshold <= 1.0:
        raise InputError(f"`threshold` must lie in [0, 1]. Got {threshold!r}.")
    return (p >= threshold).astype(np.int8)


def _decisions(y: Labels, decided: Labels, w: Floats) -> dict[str, float]:
    """Return the metrics of decisions, from the weight of each (label, decision)."""
    confusion = weigh(2 * y + decided, w, 4).reshape(2, 2)
    right0, right1 = (_ratio(confusion[label, label], confusion[label].sum()) for label in (0, 1))
    precise = _ratio(confusion[1, 1], confusion[:, 1].sum())
    return {"balanced_accuracy": (right0 + right1) / 2.0, "precision": precise, "recall": right1}


def _decisions_at(y_true: ArrayLike, y_prob: ArrayLike, threshold: float, sample_weight: Weights) -> dict[str, float]:
    p, y, w = _ece.checked_rows(y_true, y_prob, sample_weight)
    return _decisions(y, _decide(p, threshold), w)


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else float("nan")
