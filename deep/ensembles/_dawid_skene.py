"""Two-coin Dawid-Skene: each voter's error rates and the class prior, learned from votes alone."""

from typing import ClassVar

import numpy as np
from scipy.special import expit

from deep._validation import Floats, Votes
from deep.base import ABSTAIN, BaseEnsembler
from deep.ensembles._encoding import tokens
from deep.exceptions import InputError

__all__ = ["DawidSkene"]


SMALLEST = 1e-10
"""The least expected count of a vote that occurs, the least prior and the least probability of a vote."""


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
    Two voters agree; the third is at odds with both as often as not, and its vote comes to count for nothing.

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

    def _fit(self, X: Votes, y: Votes, w: Floats) -> None:  # noqa: ARG002 - learns from votes alone
        self._check_params()
        voted = (X != ABSTAIN).any(axis=1)
        if not voted.any():
            raise InputError("`X` must hold at least one vote. Got only -1 (no vote).")
        votes, w = tokens(X[voted]), w[voted]
        ones = votes[:, : X.shape[1]].sum(axis=1) / votes.sum(axis=1)
        posterior = np.stack([1.0 - ones, ones])
        self._maximize(votes, posterior, w)
        self.n_iter_, self.converged_ = 0, False
        while self.n_iter_ < self.max_iter and not self.converged_:
            before, posterior = posterior, self._expect(votes)
            self._maximize(votes, posterior, w)
            self.n_iter_ += 1
            self.converged_ = bool(np.abs(posterior - before).max() <= self.tol)

    def _check_params(self) -> None:
        if self.max_iter < 0:
            raise InputError(f"`max_iter` must be at least 0. Got {self.max_iter!r}.")
        if not self.tol >= 0:
            raise InputError(f"`tol` must be at least 0. Got {self.tol!r}.")

    def _maximize(self, votes: Floats, posterior: Floats, w: Floats) -> None:
        """Set prior and error rates to their most likely values where labels have P `posterior`, shape (2, n)."""
        share = w * posterior
        self.prior_ = float(share[1].sum() / w.sum())
        counts = np.where(w @ votes > 0, np.maximum(share @ votes, SMALLEST), 0.0).reshape(2, 2, -1)
        totals = counts.sum(axis=1, keepdims=True)
        rates = np.divide(counts, totals, out=np.full_like(counts, 0.5), where=totals > 0)
        self.confusion_ = rates[:, ::-1].transpose(2, 0, 1)

    def _expect(self, votes: Floats) -> Floats:
        """Return P(label 0) and P(label 1) of each row of tokens, shape (2, n)."""
        log_rates = np.log(np.maximum(self.confusion_, SMALLEST))
        evidence = (log_rates[:, 1] - log_rates[:, 0])[:, ::-1].T.ravel()
        prior = np.clip([1.0 - self.prior_, self.prior_], SMALLEST, None)
        log_odds = np.log(prior[1] / prior[0]) + votes @ evidence
        return np.stack([expit(-log_odds), expit(log_odds)])

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(self._expect(tokens(X))[1])
