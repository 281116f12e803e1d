"""Two-coin Dawid-Skene: each voter's error rates and the class prior, learned from votes alone."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from deep._util.checks import Floats, Labels, Votes
from deep.base import BaseEnsembler, Grid
from deep.exceptions import InputError
from deep.features import vote_tokens, weighted_sums
from deep.records import ABSTAIN

# The least expected count of a vote that occurs, the least prior and the least probability of a vote. It only keeps
# logarithms finite: far below the share of any row.
MIN_SHARE = 1e-10

# The signs of the log-odds for label 0 and for label 1.
LABEL_SIGNS = np.array([[-1.0], [1.0]])


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
        has_votes = (X != ABSTAIN).any(axis=1)
        if not has_votes.any():
            raise InputError("`X` must hold at least one vote. Got only -1 (no vote).")
        votes, w = vote_tokens(X[has_votes]), w[has_votes]
        # The least expected count of each token; a voter that never votes gets as many of both.
        cast = (w @ votes).reshape(2, -1)
        least = np.where(cast > 0, MIN_SHARE, np.where(cast.sum(axis=0) == 0, 0.5, 0.0)).ravel()
        ones = votes[:, : X.shape[1]].sum(axis=1) / votes.sum(axis=1)
        # EM starts from the vote shares, which is what tells label 1 from label 0: the likelihood is the same with both
        # labels exchanged.
        posterior = np.stack([1.0 - ones, ones])
        prior, rates = _maximization_step(votes, w * posterior, least)
        self.n_iter_, self.converged_ = 0, False
        while self.n_iter_ < self.max_iter and not self.converged_:
            by_token, of_prior = _token_log_odds(prior, rates)
            # Bayes' rule under conditional independence: log-likelihood ratios of the votes add to the prior log-odds.
            before, posterior = posterior, np.asarray(expit(LABEL_SIGNS * (votes @ by_token + of_prior)))
            prior, rates = _maximization_step(votes, w * posterior, least)
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
        by_token, prior = _token_log_odds(np.array([1.0 - self.prior_, self.prior_]), rates)
        return np.asarray(expit(weighted_sums(vote_tokens(X), by_token) + prior))


def _maximization_step(votes: Floats, share: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Return the most likely prior of label 0 and 1, and error rates, where labels have weights `share`.

    Parameters
    ----------
    votes : ndarray of float, shape (n, 2 * n_voters)
        Tokens.
    share : ndarray of float, shape (2, n)
        Weight of each row by label.
    least : ndarray of float, shape (2 * n_voters,)
        The least count that each token is taken to have, so that no rate has the logarithm of 0.

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


def _token_log_odds(prior: Floats, rates: Floats) -> tuple[Floats, float]:
    """Return the log-odds of label 1 that each token adds, and those of the prior."""
    log_rates, log_prior = np.log(np.maximum(rates, MIN_SHARE)), np.log(np.maximum(prior, MIN_SHARE))
    return log_rates[1] - log_rates[0], float(log_prior[1] - log_prior[0])


# The share of each voter's votes that are right where the descent starts, as in snorkel.
PRECISION = 0.7

# The number of starts of a fit; the one that ends at the least loss is kept.
# P is the same for 20 seeds to 1e-6 with four, on all twelve columns of the paper's Table 2 (decision 18).
N_STARTS = 4

# The fit ends where no slope of the loss is steeper.
MIN_SLOPE = 1e-11

# The most steps from one start. It bounds the time of a fit that does not settle.
MAX_STEPS = 1_000

# A term that decides where votes do not tell minima apart (unanimous voters, two that agree and one that is constant):
# it takes the one where voters tell the labels apart least, and alike.
TIES = 1e-9 * np.array([[1.0, -1.0], [-1.0, 1.0]])

# The longest step behind the fit, for its last digits: a longer one would leave the minimum for another.
MAX_STEP = 1e-3


@dataclass(eq=False, repr=False, kw_only=True)
class LabelModel(BaseEnsembler):
    """Snorkel's label model: voters' accuracies from how often they agree, without labels [1]_.

    P(voter votes v | label), abstaining being one more outcome, is fitted so that voters who
    err independently would overlap as often as these do. An abstain is no evidence in P(consistent), so a row
    without votes gets `class_balance`. Voters that share their errors make P far too sure: calibrate it.

    The loss is snorkel's and sees the votes only as the share of rows on which each pair of votes meets, here the
    weighted share: exact on weighted rows, in time that does not depend on how many there are. Snorkel descends 100
    steps, which stops well before the minimum, at a place that depends on the seed: its balanced accuracy on one
    dataset spreads over 7 points. This class goes to the minimum by Newton's steps in a trust region, from `N_STARTS`
    starts, and keeps the least loss: P is the same for every seed (docs/decisions/0018-label-model.md). No global
    random state is touched. Snorkel's own descent is :class:`deep.integrations.snorkel.SnorkelLabelModel`.

    A voter without votes has the same P for both labels, and so no influence; one that always votes alike has little.
    P is finite for any finite fit.

    Parameters
    ----------
    l2 : float, default=0.0
        At least 0: weight decay, and pull to the start, where each voter is right on 7 of 10 of its votes.
    class_balance : tuple of two floats, default=(0.5, 0.5)
        Assumed shares of labels 0 and 1: positive, summing to 1.
    random_state : int, default=0
        Snorkel's seed: scales the start, and the others.

    Attributes
    ----------
    vote_probs_ : ndarray of float64, shape (n_voters, 2, 2)
        ``vote_probs_[i, y, v]`` = P(voter i votes v | true label y). Within [e, 1 - e], where e is snorkel's
        default, the power of ten at or below 1 / sum of weights, at most 0.01.

    Raises
    ------
    InputError
        In `fit`: a parameter is out of range.

    References
    ----------
    .. [1] Ratner et al., "Training complex models with multi-task weak supervision", AAAI 2019.
       https://arxiv.org/abs/1810.02840

    Examples
    --------
    >>> X = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> model = LabelModel().fit(X, sample_weight=[40, 10, 10, 40])
    >>> round(float(model.vote_probs_[2, 1, 1]), 3)
    0.8
    >>> model.predict_proba([[1, 1, -1], [-1, -1, 0], [-1, -1, -1]])[:, 1].round(3).tolist()
    [1.0, 0.2, 0.5]
    """

    l2: float = 0.0
    class_balance: tuple[float, float] = (0.5, 0.5)
    random_state: int = 0

    uses_labels: ClassVar[bool] = False
    min_voters: ClassVar[int] = 3
    param_grid: ClassVar[Grid] = {"l2": (0.0, 0.1)}

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:  # noqa: ARG002 - learns from votes alone
        self._check_params()
        # Snorkel's own bound on the rates, with the sum of weights for the number of rows.
        least = min(0.01, 10 ** -np.ceil(np.log10(w.sum())))
        bounded = _orient_labels(self._mu(X, w).clip(least, 1 - least), self.class_balance)
        self.vote_probs_ = bounded.reshape(X.shape[1], 2, 2).transpose(0, 2, 1)

    def _check_params(self) -> None:
        if not self.l2 >= 0:
            raise InputError(f"`l2` must be at least 0. Got {self.l2!r}.")
        balance = np.asarray(self.class_balance, dtype=np.float64)
        if balance.shape != (2,) or not (balance > 0).all() or abs(balance.sum() - 1) > 1e-9:
            raise InputError(
                f"`class_balance` must be two positive shares that sum to 1, of labels 0 and 1. "
                f"Got {self.class_balance!r}."
            )

    def _mu(self, X: Votes, w: Floats) -> Floats:
        """Return the mu of least loss that `N_STARTS` starts lead to, shape (2 * n_voters, 2)."""
        votes, rng = _vote_indicators(X), np.random.RandomState(self.random_state)
        overlaps = np.asarray(votes.T @ (w[:, None] * votes) / w.sum())
        loss = _Loss(overlaps, np.asarray(self.class_balance), self.l2, _initial_mu(overlaps, self.class_balance))
        result = [
            loss.minimum(loss.start * rng.random_sample(None if i == 0 else loss.start.shape)) for i in range(N_STARTS)
        ]
        return min(result, key=lambda mu: loss.value_and_slope(mu)[0])

    @property
    def vote_log_odds_(self) -> Floats:
        """Return the log-odds that a vote for 0 and a vote for 1 add, shape (n_voters, 2)."""
        # Unlike in snorkel, the sums are not exponentiated one by one, which makes 0 / 0 of many voters.
        log_probs = np.log(self.vote_probs_)
        return np.asarray(log_probs[:, 1] - log_probs[:, 0])

    def _proba(self, X: Votes) -> Floats:
        prior = np.log(self.class_balance[1]) - np.log(self.class_balance[0])
        return np.asarray(expit(prior + weighted_sums(_vote_indicators(X), self.vote_log_odds_.ravel())))


def _vote_indicators(X: Votes) -> Floats:
    """Return two columns a voter, "voted 0" and "voted 1", in snorkel's order."""
    return np.stack([X == 0, X == 1], axis=2).reshape(len(X), -1).astype(np.float64)


def _initial_mu(overlaps: Floats, balance: tuple[float, float]) -> Floats:
    """Return P(voter votes v | label) where each voter is right on `PRECISION` of its votes; 0 for wrong votes."""
    shares, label = np.diag(overlaps), np.arange(len(overlaps)) % 2
    start = np.zeros((len(overlaps), 2))
    start[np.arange(len(overlaps)), label] = np.clip(shares * PRECISION / np.asarray(balance)[label], 0, 1)
    return start


def _overlap_misfit(mu: Floats, overlaps: Floats, balance: Floats | tuple[float, float]) -> Floats:
    """Return mu P mu' - O, 0 on the voters' own blocks."""
    misfit = (mu * balance) @ mu.T - overlaps
    voters = np.arange(0, len(mu), 2)
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        misfit[voters + i, voters + j] = 0
    return np.asarray(misfit)


@dataclass(frozen=True, eq=False)
class _Loss:
    """Snorkel's loss with its slope and curvature, of mu in one row."""

    overlaps: Floats
    balance: Floats
    l2: float
    start: Floats

    def value_and_slope(self, flat: Floats) -> tuple[float, Floats]:
        mu = flat.reshape(-1, 2)
        joint, misfit = mu * self.balance, _overlap_misfit(mu, self.overlaps, self.balance)
        shares, away, tied = joint.sum(axis=1) - np.diag(self.overlaps), mu - self.start, mu @ TIES
        pull = self.l2**2 * (away**2).sum() + self.l2 / 2 * (mu**2).sum() + (tied * mu).sum() / 2
        slope = (4 * misfit @ joint) + 2 * shares[:, None] * self.balance
        slope = slope + 2 * self.l2**2 * away + self.l2 * mu + tied
        return float((misfit**2).sum() + shares @ shares + pull), slope.ravel()

    @cached_property
    def _others(self) -> Floats:
        """Return 1 where two columns belong to different voters."""
        return np.asarray(1 - np.kron(np.eye(len(self.start) // 2), np.ones((2, 2))))

    def curvature(self, flat: Floats) -> Floats:
        mu, n = flat.reshape(-1, 2), len(self.start)
        joint, i = mu * self.balance, np.arange(n)
        result = 4 * self._others[:, None, :, None] * joint.T[:, :, None] * joint[:, None, None, :]
        result[i, :, i, :] += 4 * np.einsum("ij,ja,jb->iab", self._others, joint, joint) + self._own_curvature
        misfit = 4 * _overlap_misfit(mu, self.overlaps, self.balance)
        for label in (0, 1):
            result[:, label, :, label] += self.balance[label] * misfit
        return np.asarray(result.reshape(2 * n, 2 * n))

    @cached_property
    def _own_curvature(self) -> Floats:
        """Return the curvature of a column's own shares and pulls, shape (2, 2)."""
        return np.asarray(2 * np.outer(self.balance, self.balance) + (2 * self.l2**2 + self.l2) * np.eye(2) + TIES)

    def minimum(self, start: Floats) -> Floats:
        """Return mu, shape (2 * n_voters, 2), of the minimum that a start leads to."""
        options = {"gtol": MIN_SLOPE, "maxiter": MAX_STEPS}
        mu = minimize(
            self.value_and_slope, start.ravel(), jac=True, hess=self.curvature, method="trust-ncg", options=options
        ).x
        # The last digits: the region shrinks where the loss falls by less than its own rounding.
        for _ in range(2):
            step = np.linalg.lstsq(self.curvature(mu), self.value_and_slope(mu)[1], rcond=MIN_SLOPE)[0]
            mu = mu - step if np.abs(step).max() < MAX_STEP else mu
        return np.asarray(mu.reshape(-1, 2))


def _orient_labels(mu: Floats, balance: tuple[float, float]) -> Floats:
    """Return mu with its labels swapped where equal priors allow it and voters would else be wrong more often."""
    if np.around(balance[0], 3) != np.around(balance[1], 3):
        return mu
    votes = mu.reshape(-1, 2, 2).sum(axis=0)
    return mu if np.trace(votes) >= np.trace(votes[:, ::-1]) else mu[:, ::-1]
