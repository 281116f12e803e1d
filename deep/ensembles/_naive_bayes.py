"""Naive Bayes: votes are taken as independent given the label."""

from typing import ClassVar

import numpy as np
from scipy.special import expit

from deep._checks import Floats, Labels, Votes
from deep.base import BaseEnsembler
from deep.ensembles._encoding import Grid, check_above, tokens, weighted_sums
from deep.records import ABSTAIN

ALPHAS = {"alpha": (1.0, 300.0, 1000.0, 3000.0, 10000.0, 30000.0)}
"""Strong credit is what makes up for voters that err together, at 10,000 rows about one row each."""


class BernoulliNB(BaseEnsembler):
    """Naive Bayes with one coin a voter and class; no vote says nothing.

    Written out because scikit-learn's knows no missing entries: there an abstain would have to count as a vote
    for 0 or for 1. On complete votes the two are equal. Exact on weighted rows.

    Parameters
    ----------
    alpha : float, default=1.0
        Above 0: votes for 1, and as many for 0, that each voter is credited with in each class. Large values
        draw the probabilities together, which dependent voters need.

    Attributes
    ----------
    class_log_odds_ : float
        Log-odds of label 1 among the training rows.
    vote_log_odds_ : ndarray of shape (2, n_voters)
        What a vote for 0 (first row) and a vote for 1 (second row) add to the log-odds.

    Examples
    --------
    The voter says 1 on both rows of label 1 and on none of label 0: with alpha = 1 its rates of saying 1 are
    3/4 and 1/4, so that a vote for 1 makes the odds 3 to 1.

    >>> model = BernoulliNB().fit([[1], [1], [0], [0]], [1, 1, 0, 0])
    >>> model.predict_proba([[1], [0], [-1]])[:, 1].tolist()
    [0.75, 0.25, 0.5]
    """

    param_grid: ClassVar[Grid] = ALPHAS

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_above(self.alpha, 0, "alpha")
        total = np.bincount(y, weights=w)
        self.class_log_odds_ = float(np.log(total[1] / total[0]))
        rates = np.stack([self._rate_of_ones(X[y == label], w[y == label]) for label in (0, 1)])
        self.vote_log_odds_ = np.stack([np.log((1 - rates[1]) / (1 - rates[0])), np.log(rates[1] / rates[0])])

    def _rate_of_ones(self, X: Votes, w: Floats) -> Floats:
        """Return each voter's smoothed share of 1 among the votes it cast."""
        return np.asarray((w @ (X == 1) + self.alpha) / (w @ (X != ABSTAIN) + 2 * self.alpha))

    def _proba(self, X: Votes) -> Floats:
        said_0, said_1 = self.vote_log_odds_
        return np.asarray(expit(weighted_sums(X == 0, said_0) + weighted_sums(X == 1, said_1) + self.class_log_odds_))


class MultinomialNB(BaseEnsembler):
    """Naive Bayes on tokens: each row is a bag of "voter j said 1" and "voter j said 0".

    No vote gives no token. On complete votes it equals :class:`BernoulliNB`, since all bags are then of one size; where
    voters abstain, how often each is heard in a class counts too. Exact on weighted rows, and equal to scikit-learn's,
    whose checks take longer than the few sums that it comes to.

    Parameters
    ----------
    alpha : float, default=1.0
        Above 0: tokens of each kind that each class is credited with.

    Attributes
    ----------
    class_log_odds_ : float
        Log-odds of label 1 among the training rows.
    token_log_odds_ : ndarray of shape (2 * n_voters,)
        What each voter's 1, and then each voter's 0, adds to the log-odds.

    Examples
    --------
    >>> model = MultinomialNB().fit([[1], [1], [0], [0]], [1, 1, 0, 0])
    >>> model.predict_proba([[1], [0], [-1]])[:, 1].round(6).tolist()
    [0.75, 0.25, 0.5]
    """

    param_grid: ClassVar[Grid] = ALPHAS

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_above(self.alpha, 0, "alpha")
        said, total = tokens(X), np.bincount(y, weights=w)
        self.class_log_odds_ = float(np.log(total[1] / total[0]))
        counts = np.stack([w[y == label] @ said[y == label] for label in (0, 1)]) + self.alpha
        shares = counts / counts.sum(axis=1, keepdims=True)
        self.token_log_odds_ = np.log(shares[1] / shares[0])

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(expit(weighted_sums(tokens(X), self.token_log_odds_) + self.class_log_odds_))
