"""Ask the judges one by one, and stop when the rest cannot change the decision or is not worth its price."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, check_votes
from deep._util.odds import DECISION_P
from deep.exceptions import InputError
from deep.model import MAX_TABLE_VOTERS

STOP_ASKING = -1
"""What a policy says where no further judge is to be asked."""

# The state of a judge that was not asked, beside its possible answers -1, 0 and 1; digit 3 of a state's code.
UNASKED = 2

# Weight of independent judges in the distribution of patterns, so that no answer is impossible.
INDEPENDENT_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class Simulation:
    """The outcome of a policy on rows whose votes are all known.

    Parameters
    ----------
    calls : ndarray of int, shape (n_examples,)
        Judges asked.
    cost : ndarray of float, shape (n_examples,)
        Their prices.
    p : ndarray of float, shape (n_examples,)
        P(consistent) where it stopped.
    changed : ndarray of bool, shape (n_examples,)
        Whether the decision differs from that of the whole panel.
    """

    calls: npt.NDArray[np.intp]
    cost: Floats
    p: Floats
    changed: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class AskingPolicy:
    """Which judge to ask next, for everything that can have been heard before.

    The policy is the one of least expected cost under the distribution of vote patterns it was learned from: exact
    dynamic programming over the 4**k states (each judge unasked, without a vote, 0 or 1).

    Parameters
    ----------
    next_judge : ndarray of int8, shape (4**k,)
        Column to ask next, `STOP_ASKING` where the decision is made.
    p : ndarray of float, shape (4**k,)
        P(consistent): the table's where all have been asked, else its mean over what the others may answer.
    prices : ndarray of float, shape (k,)
        Of one question to each judge.
    expected_cost : float
        Of one example, under the distribution it was learned from.

    Examples
    --------
    Of three judges that vote like coins, the third is asked only where the first two disagree:

    >>> from deep.integrations.sequential import AskingPolicy
    >>> from deep.model import pattern_grid
    >>> grid = pattern_grid(3)
    >>> majority = 0.5 + 0.1 * np.where(grid < 0, 0, 2 * grid - 1).sum(axis=1)
    >>> coins = grid[(grid >= 0).all(axis=1)]
    >>> policy = AskingPolicy.learn(majority, coins, np.ones(8))
    >>> round(policy.expected_cost, 2), policy.simulate(coins, majority).calls.tolist()
    (2.5, [2, 2, 3, 3, 3, 3, 2, 2])
    """

    next_judge: npt.NDArray[np.int8]
    p: Floats
    prices: Floats
    expected_cost: float

    @classmethod
    def learn(
        cls,
        table: Floats,
        patterns: npt.NDArray[np.int8],
        weights: npt.ArrayLike,
        *,
        prices: Sequence[float] | None = None,
        error_cost: float | None = None,
    ) -> Self:
        """Learn a policy.

        Parameters
        ----------
        table : ndarray of float, shape (3**k,)
            P(consistent) of every pattern, in the order of `pattern_grid`.
        patterns : ndarray of int8, shape (n_patterns, k)
            Vote patterns to expect.
        weights : array-like of shape (n_patterns,)
            How often each of them comes.
        prices : sequence of float, optional
            Of one question to each judge, not negative; default 1 each.
        error_cost : float, optional
            Price of one wrong decision, in the unit of `prices`: stop where asking on costs more than the errors
            it is expected to spare. Default: lossless, stop only where no answer of the others can change the
            decision.

        Raises
        ------
        InputError
            Sizes do not match, or a price is negative.
        """
        k = patterns.shape[1]
        votes = check_votes(patterns, name="patterns")
        if k > MAX_TABLE_VOTERS or table.shape != (3**k,):
            raise InputError(f"`table` must hold 3**k probabilities, k at most 10. Got {len(table)} for k = {k}.")
        price = _check_prices(prices, k)
        if error_cost is not None and not error_cost > 0:
            raise InputError(f"`error_cost` must be above 0. Got {error_cost!r}.")
        chance = _distribution(votes, np.asarray(weights, dtype=np.float64))
        tensor = table.reshape((3,) * k)
        mass = _marginals(chance, np.sum)
        p = _marginals(chance * tensor, np.sum) / mass
        if error_cost is None:
            one_way = (_marginals(tensor, np.min) >= DECISION_P) | (_marginals(tensor, np.max) < DECISION_P)
            loss_of_stopping = np.where(one_way, 0.0, np.inf)
        else:
            loss_of_stopping = error_cost * np.minimum(p, 1.0 - p)
        actions, value = _solve(loss_of_stopping.ravel(), mass.ravel(), price)
        return cls(actions, p.ravel(), price, float(value[-1]))

    def simulate(self, votes: npt.ArrayLike, table: Floats, *, heard: Sequence[int] = ()) -> Simulation:
        """Return the outcome of the policy on rows whose votes are all known.

        Parameters
        ----------
        votes : array-like of shape (n_examples, k)
            Of all judges on each row: 1, 0, or -1 for none.
        table : ndarray of float, shape (3**k,)
            Of the whole panel.
        heard : sequence of int, optional
            Columns that are known from the start; they are not counted.
        """
        matrix = check_votes(votes, name="votes").astype(np.intp)
        n, k = matrix.shape
        state = np.full(n, 4**k - 1)
        for column in heard:
            state -= (UNASKED - matrix[:, column]) * 4 ** (k - 1 - column)
        calls, cost = np.zeros(n, dtype=np.intp), np.zeros(n)
        for _ in range(k):
            judge = self.next_judge[state].astype(np.intp)
            asking = np.flatnonzero(judge != STOP_ASKING)
            column = judge[asking]
            calls[asking] += 1
            cost[asking] += self.prices[column]
            state[asking] -= (UNASKED - matrix[asking, column]) * 4 ** (k - 1 - column)
        whole = table[((matrix + 1) * 3 ** np.arange(k - 1, -1, -1)).sum(axis=1)]
        p = self.p[state]
        return Simulation(calls, cost, p, (p >= DECISION_P) != (whole >= DECISION_P))

    def next(self, heard: dict[int, int]) -> int:
        """Return the column to ask next, or `STOP_ASKING`.

        Parameters
        ----------
        heard : dict of int to {1, 0, -1}
            Answers so far, by column.
        """
        return int(self.next_judge[self._code(heard)])

    def probability(self, heard: dict[int, int]) -> float:
        """Return P(consistent) given the answers so far, by column."""
        return float(self.p[self._code(heard)])

    def _code(self, heard: dict[int, int]) -> int:
        k = len(self.prices)
        return sum((heard.get(j, UNASKED) + 1) * 4 ** (k - 1 - j) for j in range(k))


def _check_prices(prices: Sequence[float] | None, k: int) -> Floats:
    if prices is None:
        return np.ones(k)
    price = np.asarray(prices, dtype=np.float64)
    if price.shape != (k,) or not (np.isfinite(price) & (price >= 0)).all():
        raise InputError(f"`prices` must be {k} finite numbers, not negative. Got {list(prices)!r}.")
    return price


def _distribution(votes: npt.NDArray[np.int8], weights: Floats) -> Floats:
    """Return the chance of every pattern, shape (3,) * k: as weighted, with a little of independent judges."""
    k = votes.shape[1]
    joint = np.zeros((3,) * k)
    np.add.at(joint, tuple(votes.T + 1), weights / weights.sum())
    independent = np.ones(())
    for column in votes.T:
        share = np.bincount(column + 1, weights, 3) + weights.sum() * np.array([1e-3, 1e-3, 1e-3])
        independent = np.multiply.outer(independent, share / share.sum())
    return (1 - INDEPENDENT_SHARE) * joint + INDEPENDENT_SHARE * independent


def _marginals(values: Floats, reduce: Callable[..., Floats]) -> Floats:
    """Return `values`, shape (3,) * k, with a fourth entry along every axis: reduced over its answers."""
    for axis in range(values.ndim):
        values = np.concatenate([values, reduce(values, axis=axis, keepdims=True)], axis=axis)
    return values


def _solve(loss_of_stopping: Floats, mass: Floats, price: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return the best next judge and the expected cost to go of every state, fewest unasked judges first."""
    k = len(price)
    steps = 4 ** np.arange(k - 1, -1, -1)
    unasked = np.arange(4**k)[:, None] // steps % 4 == UNASKED + 1
    value, actions = loss_of_stopping.copy(), np.full(4**k, STOP_ASKING, dtype=np.int8)
    for remaining in range(1, k + 1):
        layer = np.flatnonzero(unasked.sum(axis=1) == remaining)
        for judge in range(k):
            states = layer[unasked[layer, judge]]
            successors = states[:, None] - np.array([3, 2, 1]) * steps[judge]
            chance = mass[successors] / mass[states][:, None]
            asking = price[judge] + (chance * value[successors]).sum(axis=1)
            better = asking < value[states] - 1e-12
            value[states[better]], actions[states[better]] = asking[better], judge
    return actions, value
