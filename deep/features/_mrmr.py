"""Minimum redundancy, maximum relevance selection of voters."""

import warnings
from collections.abc import Callable

import numpy as np

from deep._checks import Floats, Labels, Rows, Votes
from deep.base import BasePromptSelector
from deep.features._rfe import signed_rows

CORRELATION_DECIMALS = 12
"""Correlations that agree this far are equal, so that neither rounding nor the grouping of rows breaks a tie."""


class MRMR(BasePromptSelector):
    """Picks the voter that tells most about the label and repeats least of the voters picked before.

    The mrmr-selection library's algorithm with its default criterion, the F statistic over the mean absolute Pearson
    correlation with the voters picked so far, both weighted here, since the library knows no weights. Votes are
    signed (+1 consistent, -1 inconsistent, 0 no vote). One ranking serves every size.

    Parameters
    ----------
    n_prompts : int, default=5
        How many voters to select, from 1 to n_voters.

    Attributes
    ----------
    ranking_ : ndarray of int, shape (n_voters,)
        1 for the voter picked first, n_voters for the last.
    support_ : ndarray of bool, shape (n_voters,)
        True for the `n_prompts` selected voters.

    Notes
    -----
    The library never picks a voter of no relevance: those come last here, constant voters at the very end. Ties go
    to the earlier column. With two classes F = (n - 2) r^2 / (1 - r^2), r being the voter's correlation with the
    label; the factor n - 2, common to all voters, is left out, so that the scale of the weights does not matter.

    References
    ----------
    .. [1] Ding and Peng (2005), Minimum redundancy feature selection from microarray gene expression data.
       https://doi.org/10.1142/S0219720005001004
    .. [2] Zhao, Anand and Wang (2019), Maximum relevance and minimum redundancy feature selection methods for a
       marketing machine learning platform. https://arxiv.org/abs/1908.05376

    Examples
    --------
    The second voter repeats the first; the third is no better but brings something new.

    >>> from deep.features import MRMR
    >>> X = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0], [0, 0, 1]]
    >>> mrmr = MRMR(2).fit(X, [1, 1, 1, 0, 0, 0], sample_weight=[4, 2, 2, 4, 1, 1])
    >>> mrmr.ranking_
    array([1, 3, 2])
    >>> mrmr.get_feature_names_out(["judge", "copy", "rival"]).tolist()
    ['judge', 'rival']
    """

    def __init__(self, n_prompts: int = 5) -> None:
        self.n_prompts = n_prompts

    def _rank(self, X: Votes, y: Labels, w: Floats) -> Rows:
        votes, labels, weights = signed_rows(X, y, w)
        correlations = _correlations(np.column_stack([votes, labels]), weights)
        picked = _pick(_relevance(correlations[:-1, -1]), correlations[:-1, :-1])
        rest = np.setdiff1d(np.arange(votes.shape[1]), picked)
        constant = np.ptp(votes[:, rest], axis=0) == 0
        return np.concatenate([picked, rest[~constant], rest[constant]]).astype(np.intp)


def _correlations(values: Floats, w: Floats) -> Floats:
    """Return the weighted Pearson correlations of the columns; 0 with a constant column."""
    centred = values - np.average(values, axis=0, weights=w)
    covariance = centred.T @ (centred * w[:, None])
    scale = np.sqrt(np.diag(covariance))
    scale[np.ptp(values, axis=0) == 0] = np.inf
    return np.asarray(np.round(covariance / np.outer(scale, scale), CORRELATION_DECIMALS))


def _relevance(r: Floats) -> Floats:
    """Return F / (n - 2) from the correlation with the label, finite for a perfect voter too."""
    unexplained = np.maximum(1.0 - r**2, 10.0**-CORRELATION_DECIMALS)
    return np.asarray(r**2 / unexplained)


def _pick(relevance: Floats, correlations: Floats) -> Rows:
    """Return the columns of positive relevance in the order in which the library picks them."""
    import pandas as pd

    def redundancy(target_column: int, features: list[int]) -> "pd.Series[float]":
        return pd.Series(correlations[features, target_column], index=features)

    picked = _mrmr_base()(len(relevance), lambda: pd.Series(relevance), redundancy, show_progress=False)
    return np.array(picked, dtype=np.intp)


def _mrmr_base() -> Callable[..., list[int]]:
    """Import the library without letting it mute every warning of the process, as it does when imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mrmr import mrmr_base
    return mrmr_base  # type: ignore[no-any-return]
