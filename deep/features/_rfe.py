"""Recursive feature elimination of voters."""

import numpy as np

from deep._checks import Floats, Labels, Positions, Votes
from deep._logistic import fit_logistic
from deep.base import BasePromptSelector
from deep.features._relevance import CANDIDATES, by_relevance, relevance, signed_rows

COEF_DECIMALS = 6
"""Coefficients that agree this far are tied: how rows are grouped moves them by less, and must not decide."""


class RFE(BasePromptSelector):
    """Drops the voter that logistic regression needs least, and refits, until one is left.

    Logistic regression on all voters, then on all but the one dropped, and so on, on signed votes (+1 consistent,
    -1 inconsistent, 0 no vote). One fit ranks all voters, so the set of every size is a prefix of the same ranking.

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
        order = by_relevance(votes, relevance(votes, labels, weights))
        candidates = np.sort(order[:CANDIDATES])
        ranked = candidates[_eliminate(votes[:, candidates], labels, weights)]
        return np.concatenate([ranked, order[CANDIDATES:]])


def _eliminate(votes: Floats, labels: Labels, w: Floats) -> Positions:
    """Return the columns, the one dropped first last."""
    design = np.column_stack([votes, np.ones(len(votes))])
    penalty = np.diag(np.append(np.ones(votes.shape[1]), 0.0))
    left, dropped = list(range(votes.shape[1])), []
    while len(left) > 1:
        kept = [*left, -1]
        coef = fit_logistic(
            design[:, kept],
            w,
            w * labels,
            centre=np.zeros(len(kept)),
            penalty=penalty[np.ix_(kept, kept)],
            slope=1e-8,
        )
        size = np.abs(np.round(coef[:-1], COEF_DECIMALS))
        dropped.append(left.pop(int(np.flatnonzero(size == size.min())[-1])))
    return np.array([*left, *reversed(dropped)])
