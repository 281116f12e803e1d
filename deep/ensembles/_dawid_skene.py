"""Two-coin Dawid-Skene: each voter's error rates and the class prior, learned from votes alone."""

from typing import ClassVar

import numpy as np
from scipy.special import expit

from deep._checks import Floats, Labels, Votes
from deep.base import BaseEnsembler
from deep.ensembles._encoding import tokens, weighted_sums
from deep.exceptions import InputError
from deep.records import ABSTAIN

SMALLEST = 1e-10
"""The least expected count of a vote that occurs, the least prior and the least probability of a vote."""

SIGNS = np.array([[-1.0], [1.0]])
"""Of the log-odds, for label 0 and label 1."""


class DawidSkene(BaseEnsembler):
    """Maximum-likelihood error rates of every voter and class by expectation-maximization, without labels.

    Given the true label, voters are taken to err independently, each with its own rate for either label [1]_;
    P(consistent) is the posterior under the learned rates and prior, so a row without votes gets the prior.
    Voters that share their errors break that assumption, and P is then far too sure: calibrate it. Nothing is
    smoothed, so `max_iter` rounds are as many rounds of crowd-kit's.

    The two labels are told apart only by the start, each row's share of votes for 1: where most voters are
    worse than chance, all labels come out turned round. Votes turned round turn P to 1 - P, weighted rows are
    exact, and rows without votes take no part in the fit. Whether a voter votes at all is taken to say nothing,
    so a voter that only ever votes one way, as keyword rules do, has no influence.

    Parameters
    ----------
    max_iter : int, default=1_000
        The most rounds, each an E-step and an M-step. 0 leaves the error rates against the vote shares. Where
        voters hardly tell the labels apart, rates creep towards 0 or 1 for ever, and more rounds change P little.
    tol : float, default=1e-10
        At least 0: converged once no row's P(consistent) changes by more.

    Attributes
    ----------
    prior_ : float
        P(consistent) before any vote is seen.
    confusion_ : ndarray of shape (n_voters, 2, 2)
        ``confusion_[i, y, v]`` = P(voter i votes v | it votes, true label y); 0.5 for one that never votes.
    n_iter_ : int
        Rounds done.
    converged_ : bool
        Whether `tol` was reached.

    References
    ----------
    .. [1] Dawid and Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
       Applied Statistics 28 (1979). https://doi.org/10.2307/2346806

    Examples
    --------
    Two voters agree; the third is at odds with both as often as not, and its vote ends up with no influence.

    >>> X = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> model = DawidSkene().fit(X, sample_weight=[30, 30, 20, 20])
    >>> round(model.prior_, 3), model.confusion_[2].round(3).tolist()
    (0.6, [[0.5, 0.5], [0.5, 0.5]])
    >>> model.predict_proba([[-1, -1, 0], [0, -1, 1]])[:, 1].round(3).tolist()
    [0.6, 0.0]
    """

    uses_labels: ClassVar[bool] = False

    def __init__(self, max_iter: int = 1_000, *, tol: float = 1e-10) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:  # noqa: ARG002 - learns from votes alone
        self._check_params()
        voted = (X != ABSTAIN).any(axis=1)
        if not voted.any():
            raise InputError("`X` must hold at least one vote. Got only -1 (no vote).")
        votes, w = tokens(X[voted]), w[voted]
        least = _least_counts(w @ votes)
        ones = votes[:, : X.shape[1]].sum(axis=1) / votes.sum(axis=1)
        # EM starts from the vote shares, which is what tells label 1 from label 0: the likelihood is the same with both
        # labels exchanged.
        posterior = np.stack([1.0 - ones, ones])
        prior, rates = _maximize(votes, w * posterior, least)
        self.n_iter_, self.converged_ = 0, False
        while self.n_iter_ < self.max_iter and not self.converged_:
            before, posterior = posterior, _expect(votes, prior, rates)
            prior, rates = _maximize(votes, w * posterior, least)
            self.n_iter_ += 1
            self.converged_ = bool(np.abs(posterior - before).max() <= self.tol)
        self.prior_ = float(prior[1])
        self.confusion_ = rates.reshape(2, 2, -1)[:, ::-1].transpose(2, 0, 1)

    def _check_params(self) -> None:
        if self.max_iter < 0:
            raise InputError(f"`max_iter` must be at least 0. Got {self.max_iter!r}.")
        if not self.tol >= 0:
            raise InputError(f"`tol` must be at least 0. Got {self.tol!r}.")

    def _proba(self, X: Votes) -> Floats:
        rates = self.confusion_.transpose(1, 2, 0)[:, ::-1].reshape(2, -1)
        by_token, prior = _log_odds(np.array([1.0 - self.prior_, self.prior_]), rates)
        return np.asarray(expit(weighted_sums(tokens(X), by_token) + prior))


def _least_counts(cast: Floats) -> Floats:
    """Return the least expected count of each token; a voter that never votes gets as many of both."""
    k = len(cast) // 2
    silent = np.tile(cast[:k] + cast[k:] == 0, 2)
    return np.where(cast > 0, SMALLEST, np.where(silent, 0.5, 0.0))


def _maximize(votes: Floats, share: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Return the most likely prior of label 0 and 1, and error rates, where labels have weights `share`.

    Parameters
    ----------
    votes : ndarray of float, shape (n, 2 * n_voters)
        Tokens.
    share : ndarray of float, shape (2, n)
        Weight of each row by label.
    least : ndarray of float, shape (2 * n_voters,)

    Returns
    -------
    prior : ndarray of float, shape (2,)
    rates : ndarray of float, shape (2, 2 * n_voters)
        P(token | label, the voter votes).
    """
    mass = share.sum(axis=1)
    counts = np.maximum(share @ votes, least)
    by_vote = counts.reshape(2, 2, -1)
    # Each rate is over the votes that the voter cast, so that an abstain is missing at random and not a third answer.
    return mass / mass.sum(), (by_vote / by_vote.sum(axis=1, keepdims=True)).reshape(2, -1)


def _expect(votes: Floats, prior: Floats, rates: Floats) -> Floats:
    """Return P(label 0) and P(label 1) of each row of tokens, shape (2, n)."""
    by_token, of_prior = _log_odds(prior, rates)
    # Bayes' rule under conditional independence: log-likelihood ratios of the votes add to the prior log-odds.
    return np.asarray(expit(SIGNS * (votes @ by_token + of_prior)))


def _log_odds(prior: Floats, rates: Floats) -> tuple[Floats, float]:
    """Return the log-odds of label 1 that each token adds, and those of the prior."""
    log_rates, log_prior = np.log(np.maximum(rates, SMALLEST)), np.log(np.maximum(prior, SMALLEST))
    return log_rates[1] - log_rates[0], float(log_prior[1] - log_prior[0])
