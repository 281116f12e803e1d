"""Fitted members of a stack: each gives one log-odds a row, and is written down as a few arrays."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from deep._checks import Floats
from deep._odds import logit
from deep.ensembles import neutral
from deep.features import distinct_patterns
from deep.model.linear import Linear, Rows
from deep.model.score._standardizer import Standardizer
from deep.model.score._trees import Trees

P_CLIP = 1e-3
"""A member's P is held within [P_CLIP, 1 - P_CLIP] before it becomes log-odds: a pure leaf is no proof."""

LIMIT = float(logit(1 - P_CLIP))


class Scorer(Protocol):
    """From the rows of one dataset to one log-odds each."""

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,)."""


@dataclass(frozen=True, eq=False)
class VoteSum:
    """A sum over votes.

    Parameters
    ----------
    linear : Linear
    """

    linear: Linear

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,)."""
        return np.clip(self.linear.log_odds(rows.votes), -LIMIT, LIMIT)


@dataclass(frozen=True, eq=False)
class ScoreSum:
    """A sum over standardised scores.

    Parameters
    ----------
    columns : tuple of int
        Which scorers.
    standardizer : Standardizer
        Of these columns.
    intercept : float
    coef : ndarray of float, shape (n_columns,)
    """

    columns: tuple[int, ...]
    standardizer: Standardizer
    intercept: float
    coef: Floats

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,)."""
        return self.of_standardised(self.standardizer(rows.scores[:, self.columns]))

    def of_standardised(self, values: Floats) -> Floats:
        """Return log-odds of standardised scores of the columns."""
        found = np.zeros(len(values))
        for column, weight in zip(values.T, self.coef, strict=True):  # a matrix product rounds a row by those beside it
            found += column * weight
        return found + self.intercept


@dataclass(frozen=True, eq=False)
class VoteForest:
    """A forest on votes; no vote is the mean of what lies on either side.

    Parameters
    ----------
    trees : Trees
    """

    trees: Trees

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,), computed once a distinct pattern."""
        patterns, where = distinct_patterns(rows.votes)
        return logit(neutral(patterns, self.trees.mean), clip=P_CLIP)[where]


@dataclass(frozen=True, eq=False)
class ScoreForest:
    """A forest on standardised scores.

    Parameters
    ----------
    standardizer : Standardizer
    trees : Trees
    """

    standardizer: Standardizer
    trees: Trees

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds, shape (n_examples,)."""
        return self.of_standardised(self.standardizer(rows.scores))

    def of_standardised(self, values: Floats) -> Floats:
        """Return log-odds of standardised scores."""
        return logit(self.trees.mean(values), clip=P_CLIP)


def leading_column(scorer: VoteSum | ScoreSum) -> int:
    """Return the column that counts most in a sum: the judge, where the sum is of one.

    Examples
    --------
    >>> leading_column(VoteSum(Linear.signed(0.0, np.array([0.1, 2.0, 0.1]))))
    1
    """
    if isinstance(scorer, VoteSum):
        return int(np.argmax(np.abs(scorer.linear.ones - scorer.linear.zeros)))
    return scorer.columns[int(np.argmax(np.abs(scorer.coef)))]
