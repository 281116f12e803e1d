"""Signed votes, their correlations, and the voters that a search over voters starts from."""

import numpy as np

from deep._checks import Floats, Labels, Positions, Votes, check_two_classes
from deep.records import ABSTAIN

CORRELATION_DECIMALS = 12
"""Correlations that agree this far are equal, so that neither rounding nor the grouping of rows breaks a tie."""

CANDIDATES = 128
"""Voters that a selector compares with each other: its time grows with their square, or faster."""


def signed_rows(X: Votes, y: Labels, w: Floats) -> tuple[Floats, Labels, Floats]:
    """Return the rows that count, as signed votes: +1 consistent, -1 inconsistent, 0 no vote.

    Parameters
    ----------
    X : ndarray of int8, shape (n_examples, n_voters)
        Checked votes.
    y : ndarray of int8, shape (n_examples,)
        Checked labels.
    w : ndarray of float, shape (n_examples,)
        Checked weights; rows of weight 0 are left out.

    Returns
    -------
    tuple of ndarray
        Signed votes, labels and weights of the rows of positive weight.

    Raises
    ------
    InputError
        A class has no weight.
    """
    kept = w > 0
    votes, labels = X[kept], y[kept]
    check_two_classes(labels, "y")
    return np.where(votes == ABSTAIN, 0.0, 2.0 * votes - 1.0), labels, w[kept]


def correlations(values: Floats, others: Floats, w: Floats) -> Floats:
    """Return the weighted Pearson correlation of each column with each of the others; 0 with a constant column."""
    (first, first_scale), (second, second_scale) = _centred(values, w), _centred(others, w)
    covariance = first.T @ (second * w[:, None])
    return np.asarray(np.round(covariance / np.outer(first_scale, second_scale), CORRELATION_DECIMALS))


def _centred(values: Floats, w: Floats) -> tuple[Floats, Floats]:
    centred = values - np.average(values, axis=0, weights=w)
    scale = np.sqrt(w @ centred**2)
    scale[np.ptp(values, axis=0) == 0] = np.inf
    return centred, scale


def relevance(votes: Floats, labels: Labels, w: Floats) -> Floats:
    """Return each voter's F / (n - 2) from its correlation with the label, finite for a perfect voter too."""
    r = correlations(votes, labels[:, None].astype(float), w)[:, 0]
    unexplained = np.maximum(1.0 - r**2, 10.0**-CORRELATION_DECIMALS)
    return np.asarray(r**2 / unexplained)


def by_relevance(votes: Floats, relevances: Floats) -> Positions:
    """Return the voters, the most relevant first; of equals the earlier column; constant ones last."""
    return np.lexsort((-relevances, np.ptp(votes, axis=0) == 0)).astype(np.intp)
