"""The simplest aggregator: log-odds that are a sum over votes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deep._checks import Floats, Votes


@dataclass(frozen=True, eq=False)
class Linear:
    """Log-odds of P(consistent) as a sum over votes, at equal class weights; no vote adds nothing.

    Logistic regression, naive Bayes, Dawid-Skene, the label model and majority votes are all of this form.

    Parameters
    ----------
    intercept : float
    ones, zeros : ndarray of float, shape (n_voters,)
        What a vote of 1 and a vote of 0 add.

    Examples
    --------
    >>> linear = Linear(0.5, np.array([1.0, 2.0]), np.array([-1.0, -3.0]))
    >>> linear.log_odds(np.array([[1, 0], [-1, -1]], dtype=np.int8)).tolist()
    [-1.5, 0.5]
    """

    intercept: float
    ones: Floats
    zeros: Floats

    @classmethod
    def signed(cls, intercept: float, coef: Floats) -> "Linear":
        """Return the sum in which a vote of 0 takes what a vote of 1 adds."""
        return cls(intercept, coef, -coef)

    @classmethod
    def mean(cls, members: Sequence["Linear"]) -> "Linear":
        """Return the mean of several sums."""
        parts = ([one.intercept for one in members], [one.ones for one in members], [one.zeros for one in members])
        intercept, ones, zeros = (np.mean(part, axis=0) for part in parts)
        return cls(float(intercept), ones, zeros)

    def log_odds(self, votes: Votes) -> Floats:
        """Return the log-odds of each row of votes, shape (n_examples,)."""
        difference = (votes == 1) @ self.ones + (votes == 0) @ self.zeros
        return np.asarray(self.intercept + difference, dtype=np.float64)
