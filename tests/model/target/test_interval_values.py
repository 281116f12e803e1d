"""Transfer and its intervals against loops and root finding, and numbers worked out by hand."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.optimize import bisect
from scipy.special import expit, logit

from deep.model.target import MIN_DATASETS, Transfer, interval, learn_transfer

# The 0.95 quantiles of Student's t, from a printed table, by degrees of freedom.
STUDENT = {1: 6.313752, 2: 2.919986, 3: 2.353363, 4: 2.131847}

LEFT_OUT = np.array([[0.1, 0.2, 0.15], [0.35, 0.3, 0.5], [0.55, 0.7, 0.6], [0.9, 0.85, 1.0]])
# By pattern, dataset and label; cells of 4 and 5 rows among them.
COUNTS = np.array(
    [
        [[30, 5], [12, 1], [3, 2]],
        [[14, 9], [2, 2], [8, 7]],
        [[6, 11], [9, 20], [5, 5]],
        [[4, 31], [1, 3], [2, 40]],
    ]
)


def plain_shift(p, counts):
    """Return what added to the log-odds makes the mean P a half at equal class weights, by bisection."""
    zeros, ones = counts[:, 0] / counts[:, 0].sum(), counts[:, 1] / counts[:, 1].sum()
    z = logit(np.clip(p, 1e-6, 1 - 1e-6))
    return bisect(lambda shift: (zeros + ones) @ expit(z + shift) / 2 - 0.5, -50, 50, xtol=1e-12)


def plain_deviations(p, counts):
    """Return by cell of at least five rows the gap of log-odds at equal class weights, and its variance."""
    found = []
    for at, (zeros, ones) in zip(p, counts, strict=True):
        if zeros + ones >= 5:
            balanced = np.log((ones + 0.5) / (zeros + 0.5)) - np.log(counts[:, 1].sum() / counts[:, 0].sum())
            found.append((balanced - logit(np.clip(at, 1e-6, 1 - 1e-6)), 1 / (ones + 0.5) + 1 / (zeros + 0.5)))
    return found


def plain_spread(deviations):
    """Return the spread at which squared gaps over their variance average 1, each dataset weighing the same."""

    def mean_square(spread):
        return np.mean([np.mean([gap**2 / (noise + spread**2) for gap, noise in one]) for one in deviations if one])

    return bisect(lambda s: mean_square(s) - 1, 0, 100, xtol=1e-12) if mean_square(0.0) > 1 else 0.0


def test_shifts_and_spread_are_those_of_loops():
    """Three datasets of four patterns, some of them too rare to count."""
    found = learn_transfer(LEFT_OUT, COUNTS, ("x", "y", "z"), 3)
    shifts = [plain_shift(LEFT_OUT[:, d], COUNTS[:, d]) for d in range(3)]
    assert list(found.shifts) == ["x", "y", "z"]
    assert list(found.shifts.values()) == pytest.approx(shifts, abs=1e-9)
    spread = plain_spread([plain_deviations(LEFT_OUT[:, d], COUNTS[:, d]) for d in range(3)])
    assert spread > 0.1
    assert found.spread == pytest.approx(spread, abs=1e-9)
    assert found.level == 0.9
    assert found.quantile == pytest.approx(STUDENT[2], abs=1e-6)


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_the_quantile_has_a_degree_less_than_folds(n_folds):
    """It is Student's 0.95 quantile, of folds rather than datasets."""
    found = learn_transfer(LEFT_OUT, COUNTS, ("x", "y", "z"), n_folds)
    assert found.quantile == pytest.approx(STUDENT[n_folds - 1], abs=1e-6)


def test_one_cell_by_hand():
    """One pattern of 40 zeros and 40 ones predicted at P = expit(-1): the shift is 1.

    The observed log-odds are log(40.5 / 40.5) - log(40 / 40) = 0, the gap is 1, its variance 2 / 40.5, and the
    spread squared 1 - 2 / 40.5.
    """
    found = learn_transfer(np.array([[expit(-1.0)]]), np.array([[[40, 40]]]), ("a",), 3)
    assert found.shifts["a"] == pytest.approx(1.0, abs=1e-9)
    assert found.spread == pytest.approx(np.sqrt(1 - 2 / 40.5), abs=1e-9)


def test_the_class_prior_is_taken_off():
    """Ten zeros and thirty ones at P = 1/2: the gap is log(30.5 / 10.5) - log 3, less than counting explains."""
    found = learn_transfer(np.array([[0.5]]), np.array([[[10, 30]]]), ("a",), 3)
    assert found.shifts["a"] == pytest.approx(0.0, abs=1e-9)
    assert found.spread == 0.0
    # Two patterns: 300 zeros and 100 ones in one, the reverse in the other, P all the same: gaps of -+log 3.
    counts = np.array([[[300, 100]], [[100, 300]]])
    gap, noise = np.log(300.5 / 100.5), 1 / 300.5 + 1 / 100.5
    found = learn_transfer(np.full((2, 1), 0.5), counts, ("a",), 3)
    assert found.spread == pytest.approx(np.sqrt(gap**2 - noise), abs=1e-9)


@pytest.mark.parametrize(("rows", "counted"), [(4, False), (5, True), (6, True)])
def test_cells_of_five_rows_count(rows, counted):
    """A cell far off P adds to the spread from five rows on."""
    counts = np.array([[[100, 100]], [[0, rows]]])
    found = learn_transfer(np.array([[0.5], [0.02]]), counts, ("a",), 3)
    assert (found.spread > 0.5) == counted


def test_without_cells_there_is_no_spread():
    """All too rare; and a class that is not there at all still has a shift."""
    found = learn_transfer(np.array([[0.4], [0.6]]), np.array([[[2, 1]], [[1, 3]]]), ("a",), 3)
    assert found.spread == 0.0
    assert found.shifts["a"] == pytest.approx(plain_shift(np.array([0.4, 0.6]), np.array([[2, 1], [1, 3]])), abs=1e-9)


def test_p_is_held_off_0_and_1():
    """P of 0 and of 1 count as 1e-6 and 1 - 1e-6: log-odds of -+13.8155."""
    counts = np.array([[[50, 50]], [[50, 50]]])
    found = learn_transfer(np.array([[0.0], [1.0]]), counts, ("a",), 3)
    assert found.shifts["a"] == pytest.approx(0.0, abs=1e-6)
    gap = np.log((1 - 1e-6) / 1e-6)
    assert found.spread == pytest.approx(np.sqrt(gap**2 - 2 / 50.5), abs=1e-7)


def test_the_interval_by_hand():
    """Log-odds 1 with fits without a fold at 0, 1 and 2.

    The jackknife variance is 2/3 (1 + 0 + 1) = 4/3; with a spread of 1 and a quantile of 2 the reach is
    2 sqrt(7/3).
    """
    p, left_out = expit(np.array([1.0, -3.0])), expit(np.array([[0.0, 1.0, 2.0], [-3.0, -3.0, -3.0]]))
    low, high = interval(p, left_out, Transfer(0.9, {}, 1.0, 2.0))
    reach = np.array([2 * np.sqrt(7 / 3), 2.0])
    assert low == pytest.approx(expit(np.array([1.0, -3.0]) - reach), abs=6e-7)
    assert high == pytest.approx(expit(np.array([1.0, -3.0]) + reach), abs=6e-7)
    assert low.tolist() == low.round(6).tolist()
    assert high.tolist() == high.round(6).tolist()


def test_two_folds_and_four():
    """The jackknife's factor (n - 1) / n: 1/2 of (0.25 + 0.25), and 3/4 of 4 (0.25)."""
    transfer = Transfer(0.9, {}, 0.0, 1.5)
    for n, variance in ((2, 0.25), (4, 0.75)):
        left_out = expit(np.resize([0.5, 1.5], (1, n)))
        low, high = interval(expit(np.array([1.0])), left_out, transfer)
        reach = 1.5 * np.sqrt(variance)
        assert [low[0], high[0]] == pytest.approx(expit([1 - reach, 1 + reach]), abs=6e-7)


def test_p_lies_within_its_interval_however_narrow():
    """Bounds are rounded to six decimals, but never across P; P of 0 and 1 keep a bound at themselves."""
    p = np.array([0.12345678, 0.1234562, 0.0, 1.0])
    low, high = interval(p, np.tile(p[:, None], 3), Transfer(0.9, {}, 0.0, 2.0))
    assert low.tolist() == [0.12345678, 0.123456, 0.0, 0.999999]
    assert high.tolist() == [0.123457, 0.1234562, 0.000001, 1.0]
    wide_low, wide_high = interval(p, np.tile(p[:, None], 3), Transfer(0.9, {}, 5.0, 2.0))
    assert wide_low[2:] == pytest.approx([0.0, expit(np.log((1 - 1e-6) / 1e-6) - 10)], abs=1e-6)
    assert wide_high[2:] == pytest.approx([expit(10 - np.log((1 - 1e-6) / 1e-6)), 1.0], abs=1e-6)


def test_a_transfer_is_a_frozen_record_and_needs_three_folds():
    """Equal where all it holds is equal."""
    transfer = Transfer(0.9, {"a": 0.1}, 1.0, 2.0)
    assert transfer == Transfer(0.9, {"a": 0.1}, 1.0, 2.0)
    with pytest.raises(FrozenInstanceError):
        transfer.spread = 2.0
    assert MIN_DATASETS == 3
