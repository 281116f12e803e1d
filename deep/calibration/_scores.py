"""Equal probabilities collapsed to one weighted score, which is all that calibrators and metrics look at."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deep._checks import Floats, Labels, Weights, check_labels, check_probabilities, check_sample_weight, weigh
from deep.exceptions import InputError

LabeledScores = tuple[Floats, Labels, Floats]
"""Probabilities, labels and weights."""


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


def collapse(p: Floats, y: Labels, w: Floats) -> DistinctScores:
    """Sum the weights of rows with exactly equal probability, by label."""
    distinct, where = np.unique(p, return_inverse=True)
    by_label = weigh(2 * where + y, w, 2 * len(distinct)).reshape(-1, 2)
    return DistinctScores(distinct, by_label.sum(axis=1), by_label[:, 1])


def checked_rows(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights, *, labels: str = "y_true", scores: str = "y_prob"
) -> LabeledScores:
    """Check labels and probabilities, called so in errors, and weights; return the rows of positive weight."""
    p = check_probabilities(y_prob, name=scores)
    y = check_labels(y_true, len(p), name=labels)
    w = check_sample_weight(sample_weight, len(p))
    kept = w > 0
    return p[kept], y[kept], w[kept]


def checked_scores(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights) -> DistinctScores:
    """Check labels, probabilities and weights of a metric, drop rows of weight 0, and collapse the rest."""
    return collapse(*checked_rows(y_true, y_prob, sample_weight))


def check_whole(number: object, *, least: int, name: str) -> int:
    """Return `number` if it is a whole number of at least `least`."""
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
        raise InputError(f"`{name}` must be a whole number of at least {least}. Got {number!r}.")
    return int(number)


def check_bins(n_bins: object) -> int:
    """Return `n_bins` if it is a whole number of at least 1."""
    return check_whole(n_bins, least=1, name="n_bins")


def check_inside(value: float, name: str) -> float:
    """Return `value` if it lies strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise InputError(f"`{name}` must lie strictly between 0 and 1. Got {value!r}.")
    return value


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
    where = np.minimum(np.searchsorted(edges, scores.p, side="right") - 1, n_bins - 1)
    n, expected, n1 = (weigh(where, part, n_bins) for part in (scores.n, scores.n * scores.p, scores.n1))
    return n, expected, n1
