"""What the three boosting libraries share."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from deep._checks import Floats, Votes
from deep.base import StagedEnsembler
from deep.ensembles._encoding import check_above, merge_repeats, signed
from deep.exceptions import InputError
from deep.records import ABSTAIN

__all__ = ["MirroredBoosting"]


LEAST = {"n_estimators": 1, "max_depth": 1, "num_leaves": 2, "min_child_weight": 0, "reg_lambda": 0}
"""The least value of each parameter that has one."""


class MirroredBoosting(StagedEnsembler):
    """Boosted trees fitted to the votes and, once more, to votes and labels turned round.

    A tree must send "no vote" to one side of a split, also where it learned that split from votes of 0 and 1
    only; the side is then an accident of the library, worth up to 0.9 in P for a row that says nothing. Turned
    round, the same library takes the other side, so the mean of the two log-odds reads nothing into silence, and
    votes turned round give exactly 1 - P. On votes that it was fitted on, the two boosters agree.

    A subclass implements ``_boost(votes, y, w)`` and ``_log_odds(booster, votes, n_rounds)``; rows come merged to
    cells (:func:`merge_repeats`), so that sums are rounded alike for weighted and for repeated rows, in any order.

    Attributes
    ----------
    boosters_ : tuple of two boosters of the library, or of none
        Fitted to the votes as they are, and turned round. None where no voter's votes vary.
    prior_ : float
        Weighted share of label 1: where the boosters start, and P where there are none.
    """

    stage_param: ClassVar[str] = "n_estimators"
    n_estimators: int
    learning_rate: float

    @abstractmethod
    def _boost(self, votes: Floats, y: Votes, w: Floats) -> Any:
        """Return a booster of `n_estimators` rounds, fitted to signed votes."""

    @abstractmethod
    def _log_odds(self, booster: Any, votes: Floats, n_rounds: int) -> Floats:
        """Return the booster's log-odds of label 1 after `n_rounds` rounds."""

    def _fit(self, X: Votes, y: Votes, w: Floats) -> None:
        self._check_params()
        self.prior_ = float(np.average(y, weights=w))
        self.boosters_: tuple[Any, ...] = ()
        if np.ptp(X, axis=0).any():
            self.boosters_ = self._boost_cells(X, y, w), self._boost_cells(_turned(X), 1 - y, w)

    def _boost_cells(self, X: Votes, y: Votes, w: Floats) -> Any:
        cells, labels, weights = merge_repeats(X, y, w)
        return self._boost(signed(cells), labels, weights)

    def _check_params(self) -> None:
        check_above(self.learning_rate, 0, "learning_rate")
        for name, value in self.get_params().items():
            if name in LEAST and not value >= LEAST[name]:
                raise InputError(f"`{name}` must be at least {LEAST[name]}. Got {value!r}.")

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(self._staged_proba(X, [self.n_estimators])[0])

    def _staged_proba(self, X: Votes, stages: Sequence[int]) -> Floats:
        if not self.boosters_:
            return np.full((len(stages), len(X)), self.prior_)
        votes = signed(X)
        return np.array([self._mean_proba(votes, stage) for stage in stages])

    def _mean_proba(self, votes: Floats, n_rounds: int) -> Floats:
        plain, turned = self.boosters_
        log_odds = self._log_odds(plain, votes, n_rounds) - self._log_odds(turned, -votes, n_rounds)
        return np.asarray(expit(log_odds / 2))


def _turned(X: Votes) -> Votes:
    """Return votes of 0 as 1 and of 1 as 0."""
    return np.where(X == ABSTAIN, X, 1 - X)
