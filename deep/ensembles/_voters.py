"""Voters: ensemblers that count votes."""

from typing import ClassVar

import numpy as np

from deep._checks import Floats, Labels, Votes
from deep.base import BaseEnsembler
from deep.ensembles._encoding import check_above, weighted_sums
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
