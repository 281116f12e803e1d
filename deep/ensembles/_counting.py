"""Voters: ensemblers that count votes."""

from typing import ClassVar

import numpy as np
from scipy.special import expit

from deep._util.checks import Floats, Labels, Votes
from deep.base import BaseEnsembler
from deep.ensembles._encoding import Grid, check_above, tokens, weighted_sums
from deep.records import ABSTAIN


class MajorityLabelVoter(BaseEnsembler):
    """The share of votes cast for 1.

    Learns nothing: labels and weights are ignored. A tie, and a row without votes, is 0.5, which `predict`
    decides as 1.

    Examples
    --------
    >>> voter = MajorityLabelVoter().fit([[1, 1, 0], [0, -1, -1]])
    >>> voter.predict_proba([[1, 0, -1], [1, 1, 1], [-1, -1, -1]])[:, 1].tolist()
    [0.5, 1.0, 0.5]
    """

    uses_labels: ClassVar[bool] = False

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        """Learn nothing."""

    def _proba(self, X: Votes) -> Floats:
        return _share_of_ones(X, np.ones(X.shape[1]))


class WeightedMajorityVoting(BaseEnsembler):
    """The share of votes cast for 1, where better voters count for more.

    A voter's weight is the log-odds of its balanced accuracy on the votes it cast, which is the optimal weight
    where voters err independently and as often on either class [1]_; a voter no better than chance has weight
    0. A row on which no voter of positive weight voted is 0.5.

    Parameters
    ----------
    smoothing : float, default=1.0
        Above 0: votes added to either side of a voter's balanced accuracy, which becomes
        (n * accuracy + smoothing) / (n + 2 * smoothing) for n votes cast. It keeps a flawless voter's weight
        finite, and a voter of few votes from leading the others. A class on which the voter cast no vote
        counts as half right.

    Attributes
    ----------
    voter_weights_ : ndarray of shape (n_voters,)
        Not negative.

    References
    ----------
    .. [1] Nitzan and Paroush, "Optimal decision rules in uncertain dichotomous choice situations",
       International Economic Review 23 (1982). https://doi.org/10.2307/2526438

    Examples
    --------
    Of six votes the first voter's are all right: (6 * 1 + 1) / (6 + 2) = 7/8, and log 7 = 1.95.

    >>> X = [[1, 1], [1, 1], [1, 0], [0, 1], [0, 0], [0, 0]]
    >>> voter = WeightedMajorityVoting().fit(X, [1, 1, 1, 0, 0, 0])
    >>> voter.voter_weights_.round(2).tolist()
    [1.95, 0.51]
    >>> voter.predict_proba([[1, 0], [-1, 0]])[:, 1].round(2).tolist()
    [0.79, 0.0]
    """

    def __init__(self, smoothing: float = 1.0) -> None:
        self.smoothing = smoothing

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        pseudo = check_above(self.smoothing, 0, "smoothing")
        cast = w @ (X != ABSTAIN)
        accuracy = (_share_right(X, y, w, 0) + _share_right(X, y, w, 1)) / 2
        smoothed = (cast * accuracy + pseudo) / (cast + 2 * pseudo)
        self.voter_weights_ = np.maximum(0.0, np.log(smoothed / (1 - smoothed)))

    def _proba(self, X: Votes) -> Floats:
        return _share_of_ones(X, self.voter_weights_)


def _share_right(X: Votes, y: Labels, w: Floats, label: int) -> Floats:
    """Return each voter's weighted share of right votes among those it cast on one class, 0.5 for none."""
    votes, weights = X[y == label], w[y == label]
    return _divide(weights @ (votes == label), weights @ (votes != ABSTAIN))


def _share_of_ones(X: Votes, voter_weights: Floats) -> Floats:
    return _divide(weighted_sums(X == 1, voter_weights), weighted_sums(X != ABSTAIN, voter_weights))


def _divide(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, 0.5 where whole is 0."""
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, 0.5), where=whole > 0))


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
