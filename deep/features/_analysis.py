"""Statistics of voters: coverage, overlaps, conflicts, error rates, error correlation and effective number."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Labels, Votes, Weights, check_labels, check_sample_weight, check_votes, column_names
from deep.exceptions import InputError
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-12
"""A weight below this share of the rows it belongs to is what rounding left of 0."""


def analyze_votes(
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    sample_weight: Weights = None,
    voter_names: Sequence[str] | None = None,
) -> "pd.DataFrame":
    """Describe each voter in the terms of Snorkel's labeling function analysis.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_voters)
        Votes: 1 consistent, 0 inconsistent, -1 no vote.
    y : array-like of shape (n_examples,), optional
        Labels 0/1. Without them the last four columns are left out.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each.
    voter_names : sequence of str, length n_voters, optional
        Default: the columns of a data frame, else x0, x1, and so on.

    Returns
    -------
    pandas.DataFrame
        One row a voter, all values in [0, 1], NaN where there is nothing to take a share of:

        - ``coverage``: share of rows that it votes on;
        - ``overlaps``: share of rows that it and at least one other vote on;
        - ``conflicts``: share of rows that it votes on and on which two votes differ;
        - ``polarity``: share of 1 among its votes;
        - ``accuracy``: share of its votes that are right;
        - ``tpr``, ``tnr``: the same among consistent (label 1) and among inconsistent rows;
        - ``balanced_accuracy``: the mean of the two.

    Raises
    ------
    InputError
        Votes, labels or weights are out of range, or lengths differ.

    References
    ----------
    .. [1] Ratner et al. (2017), Snorkel: rapid training data creation with weak supervision.
       https://doi.org/10.14778/3157794.3157797

    Examples
    --------
    >>> from deep.features import analyze_votes
    >>> table = analyze_votes([[1, 1], [1, 0], [0, -1]], [1, 0, 0], sample_weight=[2, 1, 1], voter_names=["a", "b"])
    >>> print(table.T.round(2))
    voter                 a     b
    coverage           1.00  0.75
    overlaps           0.75  0.75
    conflicts          0.25  0.25
    polarity           0.75  0.67
    accuracy           0.75  1.00
    tpr                1.00  1.00
    tnr                0.50  1.00
    balanced_accuracy  0.75  1.00
    """
    import pandas as pd

    names = column_names(X) if voter_names is None else [str(name) for name in voter_names]
    votes = check_votes(X, voters=names)
    w = check_sample_weight(sample_weight, len(votes))
    columns = _vote_rates(votes, w)
    if y is not None:
        columns |= _label_rates(votes, check_labels(y, len(votes)), w)
    return pd.DataFrame(columns, index=pd.Index(_check_names(names, votes.shape[1]), name="voter"))


def error_correlation(X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: Weights = None) -> Floats:
    """Correlate the errors of each pair of voters within the classes.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_voters)
        Votes: 1 consistent, 0 inconsistent, -1 no vote.
    y : array-like of shape (n_examples,)
        Labels 0/1.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each.

    Returns
    -------
    ndarray of float, shape (n_voters, n_voters)
        Pearson correlations in [-1, 1], symmetric, with a diagonal of 1 and no NaN.

    Raises
    ------
    InputError
        Votes, labels or weights are out of range, or lengths differ.

    Notes
    -----
    A pair is judged on the rows that both vote on. Errors are centred on their mean within each class, and the
    products pooled over the classes, so that two voters that lean the same way, but err on unrelated rows, are
    uncorrelated. Voters that never differ have correlation 1, even if neither's errors vary within a class. Else it
    is 0 where the errors of one do not vary, and where no row has votes of both.

    Examples
    --------
    >>> from deep.features import error_correlation
    >>> error_correlation([[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]], [1, 1, 1, 1])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    votes = check_votes(X)
    labels = check_labels(y, len(votes))
    w = check_sample_weight(sample_weight, len(votes))
    by_class = [_pair_sums(votes[labels == c], c, w[labels == c]) for c in (0, 1)]
    shared, differing, variation, product = (sum(parts) for parts in zip(*by_class, strict=True))
    scale = np.sqrt(variation * variation.T)
    correlation = np.divide(product, scale, out=np.zeros_like(scale), where=scale > ROUNDING * shared)
    correlation[(differing <= ROUNDING * shared) & (shared > 0)] = 1.0
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(np.clip((correlation + correlation.T) / 2, -1.0, 1.0))


def effective_votes(X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: Weights = None) -> float:
    """Count the independent voters that would be worth as much as these.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_voters)
        Votes: 1 consistent, 0 inconsistent, -1 no vote.
    y : array-like of shape (n_examples,)
        Labels 0/1.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each.

    Returns
    -------
    float
        k / (1 + (k - 1) r) for k voters whose errors have the mean pairwise correlation r, see
        :func:`error_correlation`; within [1, k], k where r is negative.

    Raises
    ------
    InputError
        Votes, labels or weights are out of range, or lengths differ.

    Notes
    -----
    The divisor is Kish's design effect of sampling in clusters of k [1]_: the mean of k equally correlated votes
    has the variance of the mean of that many independent ones. Panels of LLM judges have been found to hold about two
    effective votes in nine [2]_. Only votes are compared, not where they are missing: voters that always vote the same
    way count as one, although when they do so may tell much.

    References
    ----------
    .. [1] Kish (1965), Survey Sampling. Wiley.
    .. [2] Nine Judges, Two Effective Votes (2026). https://arxiv.org/abs/2605.29800

    Examples
    --------
    Three voters, two of which are one: the mean correlation is 1/3.

    >>> from deep.features import effective_votes
    >>> round(effective_votes([[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]], [1, 1, 1, 1]), 3)
    1.8
    """
    return effective_number(error_correlation(X, y, sample_weight))


def effective_number(correlation: Floats) -> float:
    """Return the effective votes of voters whose errors have these correlations; see :func:`effective_votes`.

    Examples
    --------
    >>> import numpy as np
    >>> from deep.features import effective_number
    >>> round(effective_number(np.array([[1.0, 0.5], [0.5, 1.0]])), 3)
    1.333
    """
    k = len(correlation)
    if k == 1:
        return 1.0
    mean = (correlation.sum() - k) / (k * (k - 1))
    return float(k / np.clip(1.0 + (k - 1) * mean, 1.0, k))


def _check_names(names: list[str] | None, n_voters: int) -> list[str]:
    if names is None:
        return [f"x{column}" for column in range(n_voters)]
    if len(names) != n_voters:
        raise InputError(f"`voter_names` must have {n_voters} entries, one a column. Got {len(names)}.")
    return names


def _share(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)


def _vote_rates(votes: Votes, w: Floats) -> dict[str, Floats]:
    voted = votes != ABSTAIN
    overlapping = (voted.sum(axis=1) > 1) * w
    conflicting = ((votes == 1).any(axis=1) & (votes == 0).any(axis=1)) * w
    return {
        "coverage": w @ voted / w.sum(),
        "overlaps": overlapping @ voted / w.sum(),
        "conflicts": conflicting @ voted / w.sum(),
        "polarity": _share(w @ (votes == 1), w @ voted),
    }


def _label_rates(votes: Votes, y: Labels, w: Floats) -> dict[str, Floats]:
    voted, right = votes != ABSTAIN, votes == y[:, None]
    tpr, tnr = (_share((w * (y == c)) @ right, (w * (y == c)) @ voted) for c in (1, 0))
    return {
        "accuracy": _share(w @ right, w @ voted),
        "tpr": tpr,
        "tnr": tnr,
        "balanced_accuracy": (tpr + tnr) / 2,
    }


def _pair_sums(votes: Votes, label: int, w: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, for the rows of one class and each pair (i, j), sums over the rows that both vote on.

    The weight of those rows, and of the rows where the two differ; the squares of i's centred errors; the products
    of both voters' centred errors.
    """
    voted = (votes != ABSTAIN).astype(np.float64)
    errors = voted * (votes != label)
    shared = (voted * w[:, None]).T @ voted
    wrong = (errors * w[:, None]).T @ voted
    both_wrong = (errors * w[:, None]).T @ errors
    rate = np.divide(wrong, shared, out=np.zeros_like(wrong), where=shared > 0)
    return shared, wrong + wrong.T - 2.0 * both_wrong, wrong * (1.0 - rate), both_wrong - wrong * rate.T
