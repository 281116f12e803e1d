"""Intervals of P on a dataset never seen."""

import numpy as np
from deep.model.target._interval import Transfer, interval, learn_transfer
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

RATES = np.array([0.2, 0.4, 0.6, 0.8])


def counted(shift, rng, n=2000):
    """Return counts of cells whose log-odds lie `shift` from RATES."""
    ones = rng.binomial(n, expit(logit(RATES) + shift))
    return np.column_stack([n - ones, ones])


def learned(shifts, rng):
    """Return the transfer learned from datasets that are `shifts` away from fits without them."""
    counts = np.stack([counted(shift, rng) for shift in shifts], axis=1)
    left_out = np.column_stack([RATES] * len(shifts))
    return learn_transfer(left_out, counts, tuple(f"d{i}" for i in range(len(shifts))), len(shifts))


def test_datasets_that_agree_have_next_to_no_spread():
    """What is left is the noise of counting, which is taken off."""
    found = learned([0.0] * 6, np.random.default_rng(0))
    assert found.spread < 0.05
    assert max(map(abs, found.shifts.values())) < 0.1


def test_the_spread_is_recovered():
    """Cells scatter around P by as much as they were made to, up to what the class weights take off."""
    rng = np.random.default_rng(1)
    cells = rng.normal(0, 0.8, (40, 4))
    counts = np.stack([counted(shift, rng) for shift in cells], axis=1)
    found = learn_transfer(np.column_stack([RATES] * 40), counts, tuple(map(str, range(40))), 40)
    assert 0.6 < found.spread < 0.9


def test_a_change_of_the_class_prior_is_no_shift():
    """Rows of one class nine times as often leave the shift where it was."""
    counts = np.array([[80, 20], [60, 40], [40, 60], [20, 80]])[:, None]
    found = [learn_transfer(RATES[:, None], c, ("a",), 3).shifts["a"] for c in (counts, counts * np.array([1, 9]))]
    assert abs(found[0]) < 1e-9
    assert abs(found[1]) < 1e-9


def test_fits_that_are_too_strict_have_a_positive_shift():
    """It is what their log-odds lack."""
    counts = np.array([[80, 20], [60, 40], [40, 60], [20, 80]])[:, None]
    assert abs(learn_transfer(expit(logit(RATES) - 1)[:, None], counts, ("a",), 3).shifts["a"] - 1) < 1e-9


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
    st.floats(0, 10),
    st.integers(0, 1000),
)
def test_p_lies_within_its_interval(p, spread, seed):
    """At the ends too, and whatever the fits without a dataset say."""
    p = np.array(p)
    left_out = np.random.default_rng(seed).random((len(p), 4))
    low, high = interval(p, left_out, Transfer(0.9, {}, spread, 2.35))
    assert ((low >= 0) & (low <= p) & (p <= high) & (high <= 1)).all()


def test_fits_that_disagree_widen_the_interval():
    """The jackknife variance comes on top of the spread."""
    transfer = Transfer(0.9, {}, 0.5, 2.0)
    same, apart = np.full((1, 3), 0.5), np.array([[0.2, 0.5, 0.8]])
    (low, high), (lower, higher) = (interval(np.array([0.5]), left, transfer) for left in (same, apart))
    assert lower[0] < low[0] < high[0] < higher[0]
