"""Minimum redundancy, maximum relevance selection of voters."""

import warnings
from typing import Any

import numpy as np

from deep._checks import Floats, Labels, Positions, Votes
from deep.base import BasePromptSelector
from deep.exceptions import needs_extra
from deep.features._relevance import CANDIDATES, by_relevance, correlations, relevance, signed_rows

FLOOR = 1e-3
"""The least redundancy, as in the library: a voter unlike those picked is not infinitely good."""


class MRMR(BasePromptSelector):
    """Picks the voter that tells most about the label and repeats least of the voters picked before.

    The algorithm of the mrmr-selection library with its default criterion, the F statistic over the mean absolute
    Pearson correlation with the voters picked so far, both weighted here, since the library knows no weights. Votes are
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
    Of more than 128 voters, the most relevant are compared with each other; the others come behind them, the most
    relevant first, so that the time grows with the number of voters and not with its square.

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

    def _rank(self, X: Votes, y: Labels, w: Floats) -> Positions:
        votes, labels, weights = signed_rows(X, y, w)
        relevances = relevance(votes, labels, weights)
        order = by_relevance(votes, relevances)
        candidates = np.sort(order[:CANDIDATES])
        compared = votes[:, candidates]
        picked = candidates[self._pick(relevances[candidates], correlations(compared, compared, weights))]
        return np.concatenate([picked, order[~np.isin(order, picked)]])

    def _pick(self, relevances: Floats, correlated: Floats) -> Positions:
        """Return the columns of positive relevance, each the best beside those picked before."""
        redundancy = np.maximum(np.abs(correlated), FLOOR)
        left, picked = np.flatnonzero(relevances > 0).tolist(), list[int]()
        while left:
            mean = redundancy[left][:, picked].mean(axis=1) if picked else np.ones(len(left))
            # What repeats all that was picked comes last.
            score = np.where((mean == 1) & bool(picked), 0.0, relevances[left] / mean)
            picked.append(left.pop(int(score.argmax())))
        return np.array(picked, dtype=np.intp)


class MRMRSelection(MRMR):
    """The same by the mrmr-selection library's own loop, on the same weighted relevances and correlations.

    Raises
    ------
    MissingDependencyError
        In `fit`: ``deep-judges[boosting]`` is not installed.

    Examples
    --------
    >>> from deep.features import MRMRSelection
    >>> X = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0], [0, 0, 1]]
    >>> MRMRSelection(2).fit(X, [1, 1, 1, 0, 0, 0], sample_weight=[4, 2, 2, 4, 1, 1]).ranking_
    array([1, 3, 2])
    """

    def _pick(self, relevances: Floats, correlated: Floats) -> Positions:
        """Return the columns of positive relevance in the order in which the library picks them."""
        import pandas as pd

        def redundancy(target_column: int, features: list[int]) -> "pd.Series[float]":
            return pd.Series(correlated[features, target_column], index=features)

        # The library mutes every warning of the process as it is imported.
        with needs_extra("boosting", what="`selector` 'mrmr-selection'"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from mrmr import mrmr_base
        picked: Any = mrmr_base(len(relevances), lambda: pd.Series(relevances), redundancy, show_progress=False)
        return np.array(picked, dtype=np.intp)
