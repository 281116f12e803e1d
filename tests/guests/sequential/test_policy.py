"""Asking judges one by one: never another decision where it must not, and no policy is cheaper."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from deep.exceptions import InputError
from deep.integrations.sequential import STOP_ASKING, AskingPolicy
from deep.model import pattern_grid


@st.composite
def problems(draw, most=4):
    """Draw a table, patterns with weights, and prices."""
    k = draw(st.integers(1, most))
    table = draw(nps.arrays(float, 3**k, elements=st.floats(0.01, 0.99)))
    patterns = draw(nps.arrays(np.int8, st.tuples(st.integers(1, 12), st.just(k)), elements=st.integers(-1, 1)))
    weights = draw(nps.arrays(float, len(patterns), elements=st.floats(0.1, 10)))
    prices = draw(nps.arrays(float, k, elements=st.floats(0.1, 5)))
    return table, patterns, weights, prices


@given(problems())
def test_lossless_changes_no_decision(problem):
    """Whatever the votes, seen before or not, the decision is that of the whole panel."""
    table, patterns, weights, prices = problem
    policy = AskingPolicy.learn(table, patterns, weights, prices=prices)
    everything = pattern_grid(patterns.shape[1])
    result = policy.simulate(everything, table)
    assert not result.changed.any()
    assert (result.calls <= patterns.shape[1]).all()
    whole = result.calls == patterns.shape[1]
    np.testing.assert_allclose(result.p[whole], table[whole], rtol=1e-9)


def cheapest(table, chance, prices, error_cost):
    """Return the least expected cost by trying every order, written anew and slowly."""
    k = len(prices)
    codes = pattern_grid(k)

    def matching(state):
        return np.all([(codes[:, j] == v) | (v is None) for j, v in enumerate(state)], axis=0)

    @cache
    def cost(state):
        rows = matching(state)
        mass = chance[rows].sum()
        if error_cost is None:
            consistent = table[rows] >= 0.5
            stop = 0.0 if consistent.all() or not consistent.any() else np.inf
        else:
            p = (chance[rows] * table[rows]).sum() / mass
            stop = error_cost * min(p, 1 - p)
        options = [stop]
        for j in range(k):
            if state[j] is None:
                after = [(*state[:j], vote, *state[j + 1 :]) for vote in (-1, 0, 1)]
                options.append(prices[j] + sum(chance[matching(s)].sum() / mass * cost(s) for s in after))
        return min(options)

    return cost((None,) * k)


@given(problems(3), st.one_of(st.none(), st.floats(0.5, 50)))
def test_no_policy_is_cheaper(problem, error_cost):
    """The expected cost is that of an exhaustive search over all orders."""
    from deep.integrations.sequential._policy import _distribution

    table, patterns, weights, prices = problem
    policy = AskingPolicy.learn(table, patterns, weights, prices=prices, error_cost=error_cost)
    chance = _distribution(patterns, weights).ravel()
    assert policy.expected_cost == pytest.approx(cheapest(table, chance, prices, error_cost), rel=1e-6, abs=1e-6)


@given(problems())
def test_next_walks_like_simulate(problem):
    """Asking step by step meets the same judges and the same probability as the simulation."""
    table, patterns, weights, prices = problem
    policy = AskingPolicy.learn(table, patterns, weights, prices=prices)
    result = policy.simulate(patterns, table)
    for row, calls, p in zip(patterns, result.calls, result.p, strict=True):
        heard = {}
        while (judge := policy.next(heard)) != STOP_ASKING:
            heard[judge] = int(row[judge])
        assert len(heard) == calls
        assert policy.probability(heard) == p


def panel():
    """Return the table and the patterns of five judges of unlike weight."""
    grid = pattern_grid(5)
    logit = np.where(grid < 0, 0, 2 * grid - 1) @ np.array([2.0, 1.0, 1.0, 0.5, 0.5])
    return 1 / (1 + np.exp(-logit)), grid[(grid >= 0).all(axis=1)]


def test_dearer_errors_buy_more_questions():
    """With errors that cost next to nothing nobody is asked; the dearer they are, the more are."""
    table, patterns = panel()
    calls = [
        AskingPolicy.learn(table, patterns, np.ones(32), error_cost=cost).simulate(patterns, table).calls.mean()
        for cost in (0.1, 5, 50, 1e6)
    ]
    assert calls[0] == 0
    assert calls == sorted(calls)
    assert calls[-1] > 2.5


def test_a_dear_judge_is_asked_last():
    """The judge of most weight comes first at equal prices, and last where it costs ten times as much."""
    table, patterns = panel()
    assert AskingPolicy.learn(table, patterns, np.ones(32)).next({}) == 0
    dear = AskingPolicy.learn(table, patterns, np.ones(32), prices=[10, 1, 1, 1, 1])
    assert dear.next({}) != 0
    assert dear.next({1: 1, 2: 1, 3: 1, 4: 1}) == STOP_ASKING


def test_bad_input():
    """Sizes and signs are checked."""
    table, patterns = panel()
    for change, message in (
        ({"prices": [1, 1]}, "`prices` must be 5 finite numbers"),
        ({"prices": [1, 1, 1, 1, -1]}, "`prices` must be 5 finite numbers"),
        ({"error_cost": 0}, "`error_cost` must be above 0"),
        ({"table": np.ones(4)}, "`table` must hold"),
    ):
        with pytest.raises(InputError, match=message):
            AskingPolicy.learn(**{"table": table, "patterns": patterns, "weights": np.ones(32)} | change)
