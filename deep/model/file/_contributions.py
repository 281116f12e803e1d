"""What each vote adds to P: taken back alone, and over all orders in which the votes could come in."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from deep._util.odds import logit
from deep.features import distinct_patterns
from deep.records import ABSTAIN

if TYPE_CHECKING:
    from deep.model.adaptation import Predict

MAX_EXACT_VOTES = 12
"""Up to this many cast votes all 2**n sets of them are tried."""


@dataclass(frozen=True)
class Contribution:
    """The contribution of one voter to the log-odds of P(consistent).

    Parameters
    ----------
    voter : str
    vote : {1, 0, -1}
    without : float
        Log-odds of P minus log-odds of P with this vote taken back; 0 where there is no vote.
    shapley : float or None
        The Shapley value: what the vote adds on average over all orders in which the votes could come in. They sum
        to the log-odds of P minus those of a row without votes. None where too many votes were cast.
    """

    voter: str
    vote: int
    without: float
    shapley: float | None


def contributions(predict: "Predict", names: tuple[str, ...], votes: npt.NDArray[np.int8]) -> list[Contribution]:
    """Return the contribution of each vote of one row.

    Parameters
    ----------
    predict : callable
        From patterns (n, n_voters) to P(consistent).
    names : tuple of str
    votes : ndarray of int8, shape (n_voters,)

    Notes
    -----
    A row's Shapley values [1]_ are exact: P is known for every set of votes.

    References
    ----------
    .. [1] L. S. Shapley, "A value for n-person games", 1953. https://doi.org/10.1515/9781400881970-018
    """
    cast = np.flatnonzero(votes != ABSTAIN)
    alone = np.tile(votes, (len(cast) + 1, 1))
    alone[np.arange(len(cast)), cast] = ABSTAIN
    scores = logit(predict(alone))
    without = dict(zip(cast.tolist(), (scores[-1] - scores[:-1]).tolist(), strict=True))
    shapley = _shapley(predict, votes, cast) if len(cast) <= MAX_EXACT_VOTES else None
    return [
        Contribution(
            voter=name,
            vote=int(votes[column]),
            without=without.get(column, 0.0),
            shapley=None if shapley is None else shapley.get(column, 0.0),
        )
        for column, name in enumerate(names)
    ]


def _shapley(predict: "Predict", votes: npt.NDArray[np.int8], cast: npt.NDArray[np.intp]) -> dict[int, float]:
    n = len(cast)
    sets = np.arange(2**n)
    inside = (sets[:, None] >> np.arange(n) & 1).astype(bool)
    patterns = np.full((len(sets), len(votes)), ABSTAIN, dtype=np.int8)
    patterns[:, cast] = np.where(inside, votes[cast], ABSTAIN)
    scores = logit(predict(patterns))
    weight = np.array([factorial(size) * factorial(n - size - 1) / factorial(n) for size in range(n)])
    sizes = inside.sum(axis=1)
    found = {}
    for position, column in enumerate(cast.tolist()):
        before = sets[~inside[:, position]]
        gain = scores[before | 1 << position] - scores[before]
        found[column] = float(weight[sizes[before]] @ gain)
    return found


def strongest_votes(predict: "Predict", ids: Sequence[str], votes: npt.NDArray[np.int8]) -> list[str]:
    """Return for each row the two votes that move P most, with the log-odds that each adds."""
    distinct, where = distinct_patterns(votes)
    whole = logit(predict(distinct))
    gains = np.zeros(distinct.shape)
    for column in range(distinct.shape[1]):
        without = distinct.copy()
        without[:, column] = ABSTAIN
        gains[:, column] = whole - logit(predict(without))
    said = []
    for row, gain in zip(distinct, gains, strict=True):
        order = [j for j in np.argsort(-np.abs(gain), kind="stable").tolist() if row[j] != ABSTAIN][:2]
        said.append(", ".join(f"{ids[j]} {row[j]} ({gain[j]:+.1f})" for j in order) or "no vote")
    return [said[at] for at in where]
