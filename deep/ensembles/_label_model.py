"""Snorkel's label model, fitted to weighted rows in double precision."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from deep._checks import Floats, Labels, Votes
from deep.base import BaseEnsembler
from deep.ensembles._encoding import Grid, check_above, weighted_sums
from deep.exceptions import InputError

RATES = 4
"""How many learning rates are tried, each a tenth of the one before."""

MOMENTUM = 0.9
"""Of the descent, as in snorkel."""

PRECISION = 0.7
"""The share of each voter's votes that are right where the descent starts, as in snorkel."""

LARGEST = float(np.finfo(np.float32).max)
"""A loss above this is no number in snorkel's single precision: the descent has diverged."""


@dataclass(eq=False, repr=False)
class LabelModel(BaseEnsembler):
    """Snorkel's label model: voters' accuracies from how often they agree, without labels [1]_.

    P(voter votes v | label), abstaining being one more outcome, is fitted by gradient descent so that voters who
    err independently would overlap as often as these do. An abstain is no evidence in P(consistent), so a row
    without votes gets `class_balance`. Voters that share their errors make P far too sure: calibrate it.

    The descent is snorkel's (SGD with momentum from the same start, the same loss, rate and bounds) and sees the votes
    only as the share of rows on which each pair of votes meets, here the weighted share: exact on weighted rows, in
    time that does not depend on how many there are. Snorkel runs it in torch in single precision, this class in numpy
    in double: P differs from snorkel's by its rounding, 1e-6 at most on real votes, in a thirtieth of the time
    (docs/decisions/0018-label-model.md). No global random state is touched.

    A voter without votes has the same P for both labels, and so no influence; one that always votes alike has little.
    P is finite for any finite fit.

    Parameters
    ----------
    n_epochs : int, default=100
        At least 1: steps of gradient descent. Snorkel's default, which stops well before convergence.
    lr : float, default=0.01
        Above 0: learning rate. Where the descent diverges (at 0.01 beyond 100 to 150 voters that all vote on all
        rows) a tenth of it is tried, at most three times.
    l2 : float, default=0.0
        At least 0: weight decay, and pull to the start, where each voter is right on 7 of 10 of its votes.
    class_balance : tuple of two floats, default=(0.5, 0.5)
        Assumed shares of labels 0 and 1: positive, summing to 1.
    random_state : int, default=0
        Snorkel's seed: scales the start.

    Attributes
    ----------
    vote_probs_ : ndarray of float64, shape (n_voters, 2, 2)
        ``vote_probs_[i, y, v]`` = P(voter i votes v | true label y). Within [e, 1 - e], where e is snorkel's
        default, the power of ten at or below 1 / sum of weights, at most 0.01.

    Raises
    ------
    InputError
        In `fit`: the descent diverged at every rate, or a parameter is out of range.

    References
    ----------
    .. [1] Ratner et al., "Training complex models with multi-task weak supervision", AAAI 2019.
       https://arxiv.org/abs/1810.02840

    Examples
    --------
    >>> X = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> model = LabelModel(n_epochs=1000, lr=0.1).fit(X, sample_weight=[40, 10, 10, 40])
    >>> round(float(model.vote_probs_[2, 1, 1]), 1)
    0.8
    >>> model.predict_proba([[1, 1, -1], [-1, -1, 0], [-1, -1, -1]])[:, 1].round(1).tolist()
    [1.0, 0.2, 0.5]
    """

    n_epochs: int = 100
    _: KW_ONLY
    lr: float = 0.01
    l2: float = 0.0
    class_balance: tuple[float, float] = (0.5, 0.5)
    random_state: int = 0

    uses_labels: ClassVar[bool] = False
    min_voters: ClassVar[int] = 3
    param_grid: ClassVar[Grid] = {"l2": (0.0, 0.1)}

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:  # noqa: ARG002 - learns from votes alone
        self._check_params()
        rates = [self.lr / 10**step for step in range(RATES)]
        descents = (self._descend(X, w, rate) for rate in rates)
        mu = next((found for found in descents if np.isfinite(found).all()), None)
        if mu is None:
            raise InputError(
                f"`lr` must be small enough for the descent to converge. Got {self.lr!r} for {X.shape[1]} voters, and "
                f"{rates[-1]:g} was tried too. Fit fewer voters."
            )
        self.vote_probs_ = mu.reshape(X.shape[1], 2, 2).transpose(0, 2, 1)

    def _check_params(self) -> None:
        check_above(self.lr, 0, "lr")
        for name, least in (("n_epochs", 1), ("l2", 0)):
            if not getattr(self, name) >= least:
                raise InputError(f"`{name}` must be at least {least}. Got {getattr(self, name)!r}.")
        balance = np.asarray(self.class_balance, dtype=np.float64)
        if balance.shape != (2,) or not (balance > 0).all() or abs(balance.sum() - 1) > 1e-9:
            raise InputError(
                f"`class_balance` must be two positive shares that sum to 1, of labels 0 and 1. "
                f"Got {self.class_balance!r}."
            )

    def _descend(self, X: Votes, w: Floats, rate: float) -> Floats:
        """Return snorkel's mu, shape (2 * n_voters, 2), or NaN where its loss is."""
        # Snorkel's loss compares O, the second moments of the vote indicators, with mu P mu', which is what they are
        # where voters err independently; only O depends on the rows, so weighted moments are all that weights need.
        votes = _indicators(X)
        overlaps = votes.T @ (w[:, None] * votes) / w.sum()
        start = _start(overlaps, self.class_balance)
        mu = start * np.random.RandomState(self.random_state).random_sample()  # snorkel's draw
        speed: Floats | None = None
        for _ in range(self.n_epochs):
            gradient = _gradient(mu, overlaps, self.class_balance)
            if gradient is None:
                return np.full_like(mu, np.nan)
            # Snorkel gives `l2` to the loss, squared, and to torch as weight decay.
            gradient += 2 * self.l2**2 * (mu - start) + self.l2 * mu
            speed = gradient if speed is None else MOMENTUM * speed + gradient
            mu = mu - rate * speed
        # Snorkel's own bound on the rates, with the sum of weights for the number of rows.
        least = min(0.01, 10 ** -np.ceil(np.log10(w.sum())))
        return _right_way_round(mu.clip(least, 1 - least), self.class_balance)

    @property
    def vote_log_odds_(self) -> Floats:
        """Return the log-odds that a vote for 0 and a vote for 1 add, shape (n_voters, 2)."""
        # Unlike in snorkel, the sums are not exponentiated one by one, which makes 0 / 0 of many voters.
        log_probs = np.log(self.vote_probs_)
        return np.asarray(log_probs[:, 1] - log_probs[:, 0])

    def _proba(self, X: Votes) -> Floats:
        prior = np.log(self.class_balance[1]) - np.log(self.class_balance[0])
        return np.asarray(expit(prior + weighted_sums(_indicators(X), self.vote_log_odds_.ravel())))


def _indicators(X: Votes) -> Floats:
    """Return two columns a voter, "voted 0" and "voted 1", in snorkel's order."""
    return np.stack([X == 0, X == 1], axis=2).reshape(len(X), -1).astype(np.float64)


def _start(overlaps: Floats, balance: tuple[float, float]) -> Floats:
    """Return P(voter votes v | label) where each voter is right on `PRECISION` of its votes; 0 for wrong votes."""
    shares, label = np.diag(overlaps), np.arange(len(overlaps)) % 2
    start = np.zeros((len(overlaps), 2))
    start[np.arange(len(overlaps)), label] = np.clip(shares * PRECISION / np.asarray(balance)[label], 0, 1)
    return start


def _gradient(mu: Floats, overlaps: Floats, balance: tuple[float, float]) -> Floats | None:
    """Return the gradient of |O - mu P mu'|^2 off the voters' own blocks plus |sum(mu P) - diag O|^2, or None."""
    joint = mu * balance
    misfit = joint @ mu.T - overlaps
    voters = np.arange(0, len(mu), 2)
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        misfit[voters + i, voters + j] = 0
    if not np.vdot(misfit, misfit) <= LARGEST:
        return None
    shares = joint.sum(axis=1) - np.diag(overlaps)
    return np.asarray((4 * misfit @ joint) + 2 * shares[:, None] * balance)


def _right_way_round(mu: Floats, balance: tuple[float, float]) -> Floats:
    """Return mu with its labels swapped where equal priors allow it and voters would else be wrong more often."""
    if np.around(balance[0], 3) != np.around(balance[1], 3):
        return mu
    votes = mu.reshape(-1, 2, 2).sum(axis=0)
    return mu if np.trace(votes) >= np.trace(votes[:, ::-1]) else mu[:, ::-1]
