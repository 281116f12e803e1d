"""Selection of voters: by mRMR, or by dropping one after the other (RFE)."""

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from deep._util.checks import Floats, Labels, Positions, Votes, check_two_classes
from deep._util.odds import penalised_logistic
from deep.base import BasePromptSelector
from deep.exceptions import needs_extra
from deep.records import ABSTAIN

# Correlations that agree this far are equal, so that neither rounding nor the grouping of rows breaks a tie.
CORRELATION_DECIMALS = 12

# Voters that a selector compares with each other: its time grows with their square, or faster.
MAX_VOTERS_COMPARED = 128


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
    weighty = w > 0
    votes, labels = X[weighty], y[weighty]
    check_two_classes(labels, "y")
    return np.where(votes == ABSTAIN, 0.0, 2.0 * votes - 1.0), labels, w[weighty]


def correlations(values: Floats, others: Floats, w: Floats) -> Floats:
    """Return the weighted Pearson correlation of each column with each of the others; 0 with a constant column."""
    (first, first_scale), (second, second_scale) = _center_columns(values, w), _center_columns(others, w)
    covariance = first.T @ (second * w[:, None])
    return np.asarray(np.round(covariance / np.outer(first_scale, second_scale), CORRELATION_DECIMALS))


def _center_columns(values: Floats, w: Floats) -> tuple[Floats, Floats]:
    centred = values - np.average(values, axis=0, weights=w)
    scale = np.sqrt(w @ centred**2)
    # A voter that never varies correlates with none; 0 / 0 would be NaN, and win every comparison.
    scale[np.ptp(values, axis=0) == 0] = np.inf
    return centred, scale


def relevance_of_voters(votes: Floats, labels: Labels, w: Floats) -> Floats:
    """Return each voter's F / (n - 2) from its correlation with the label, finite for a perfect voter too."""
    r = correlations(votes, labels[:, None].astype(float), w)[:, 0]
    # r^2 / (1 - r^2) is the F statistic of mRMR (Ding and Peng 2005) but for a factor that is the same for all voters.
    unexplained = np.maximum(1.0 - r**2, 10.0**-CORRELATION_DECIMALS)
    return np.asarray(r**2 / unexplained)


def order_by_relevance(votes: Floats, relevances: Floats) -> Positions:
    """Return the voters, the most relevant first; of equals the earlier column; constant ones last."""
    # Voters that never vary come last, whatever rounding made of their relevance.
    return np.lexsort((-relevances, np.ptp(votes, axis=0) == 0)).astype(np.intp)


# The least redundancy, as in mrmr-selection: a voter unlike those picked is not infinitely good.
MIN_REDUNDANCY = 1e-3


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
        relevances = relevance_of_voters(votes, labels, weights)
        order = order_by_relevance(votes, relevances)
        candidates = np.sort(order[:MAX_VOTERS_COMPARED])
        compared = votes[:, candidates]
        picked = candidates[self._pick(relevances[candidates], correlations(compared, compared, weights))]
        return np.concatenate([picked, order[~np.isin(order, picked)]])

    def _pick(self, relevances: Floats, correlated: Floats) -> Positions:
        """Return the columns of positive relevance, each the best beside those picked before."""
        redundancy = np.maximum(np.abs(correlated), MIN_REDUNDANCY)
        rest, picked = np.flatnonzero(relevances > 0).tolist(), list[int]()
        while rest:
            # mRMR as a quotient: relevance over mean redundancy with the voters picked before.
            mean = redundancy[rest][:, picked].mean(axis=1) if picked else np.ones(len(rest))
            # What repeats all that was picked comes last.
            score = np.where((mean == 1) & bool(picked), 0.0, relevances[rest] / mean)
            picked.append(rest.pop(int(score.argmax())))
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


# Coefficients that agree this far are tied: how rows are grouped moves them by less, and must not decide.
COEF_DECIMALS = 6


class RFE(BasePromptSelector):
    """Drops the voter that logistic regression needs least, and refits, until one is left.

    scikit-learn's RFE, with logistic regression on all voters, then on all but the one dropped, and so on, on signed
    votes (+1 consistent, -1 inconsistent, 0 no vote). One fit ranks all voters, so the set of every size is a prefix of
    the same ranking. The loop is deep's own, since that class needs an estimator around the regression to break ties.

    Parameters
    ----------
    n_prompts : int, default=5
        How many voters to select, from 1 to n_voters.

    Attributes
    ----------
    ranking_ : ndarray of int, shape (n_voters,)
        1 for the voter that was left, n_voters for the one dropped first.
    support_ : ndarray of bool, shape (n_voters,)
        True for the `n_prompts` selected voters.

    Notes
    -----
    A voter's importance is the square of its coefficient, so one that is reliably wrong is as welcome as one that is
    reliably right, and what counts is what a vote says, not how often it is cast. Of voters with equal coefficients
    the later column is dropped first. The penalty is half the squared norm of the coefficients, so the scale of the
    weights matters as the number of rows does. Of more than 128 voters, those that correlate most with the label are
    ranked so; the others come behind them, by the same correlation.

    References
    ----------
    .. [1] Guyon, Weston, Barnhill and Vapnik (2002), Gene selection for cancer classification using support vector
       machines. https://doi.org/10.1023/A:1012487302797

    Examples
    --------
    >>> from deep.features import RFE
    >>> X = [[1, 1, 0], [1, 0, 1], [0, -1, 0], [0, 0, 1], [1, 1, 1]]
    >>> rfe = RFE(2).fit(X, [1, 1, 0, 0, 1], sample_weight=[3, 1, 4, 2, 1])
    >>> rfe.ranking_
    array([1, 2, 3])
    >>> rfe.get_support()
    array([ True,  True, False])
    """

    def __init__(self, n_prompts: int = 5) -> None:
        self.n_prompts = n_prompts

    def _rank(self, X: Votes, y: Labels, w: Floats) -> Positions:
        votes, labels, weights = signed_rows(X, y, w)
        order = order_by_relevance(votes, relevance_of_voters(votes, labels, weights))
        candidates = np.sort(order[:MAX_VOTERS_COMPARED])
        ranked = candidates[_elimination_order(votes[:, candidates], labels, weights)]
        return np.concatenate([ranked, order[MAX_VOTERS_COMPARED:]])


def _elimination_order(votes: Floats, labels: Labels, w: Floats) -> Positions:
    """Return the columns, the one dropped first last."""
    rest, dropped = list(range(votes.shape[1])), list[int]()
    while len(rest) > 1:
        coef, _ = penalised_logistic(votes[:, rest], labels, w, C=1.0)
        size = np.abs(np.round(coef, COEF_DECIMALS))
        # The least, and of equals the later column.
        dropped.append(rest.pop(int(np.lexsort((-np.arange(len(size)), size))[0])))
    return np.array([*rest, *reversed(dropped)], dtype=np.intp)


def installed_mrmr() -> str:
    """Return the name of mRMR by its library's own loop where it is installed, else of the same by deep's."""
    return "mrmr" if find_spec("mrmr") is None else "mrmr-selection"


SELECTORS: dict[str, type[BasePromptSelector]] = {
    "mrmr": MRMR,
    "mrmr-selection": MRMRSelection,
    "rfe": RFE,
}
"""Every selector by the name that a command knows it by."""
