"""The bootstrap: cells against rows, and intervals and p-values that mean what they say."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from deep.calibration import bootstrap_balanced_accuracy, paired_bootstrap
from deep.exceptions import InputError

Ints = npt.NDArray[np.int64]


def draw(rng: np.random.Generator, n: int, rates_a: tuple[float, float], rates_b: tuple[float, float]) -> list[Ints]:
    """Draw labels and two correlated sets of decisions with these true positive and true negative rates."""
    y = (rng.random(n) < 0.55).astype(int)
    shared, fresh_a, fresh_b = rng.random((3, n))
    decisions = []
    for rates, fresh in ((rates_a, fresh_a), (rates_b, fresh_b)):
        right = np.where(rng.random(n) < 0.5, shared, fresh) < np.where(y == 1, *rates)
        decisions.append(np.where(right, y, 1 - y))
    return [y, *decisions]


def test_the_interval_is_that_of_resampled_rows() -> None:
    """Row by row resampling, the plain way, gives the same interval within its own noise."""
    rng = np.random.default_rng(0)
    y, decision, _ = draw(rng, 267, (0.8, 0.6), (0.8, 0.6))
    rows = rng.integers(0, 267, (4000, 267))
    right = (y == decision)[rows]
    ones = y[rows] == 1
    values = ((right & ones).sum(axis=1) / ones.sum(axis=1) + (right & ~ones).sum(axis=1) / (~ones).sum(axis=1)) / 2
    assert bootstrap_balanced_accuracy(y, decision) == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.006)


def test_a_weight_is_a_row_repeated() -> None:
    """Cells and rows give the same draws, bit for bit."""
    y, a, b, w = [1, 1, 0, 0], [1, 0, 0, 1], [1, 1, 1, 0], [40, 10, 30, 12]
    rows = [np.repeat(values, w) for values in (y, a, b)]
    assert bootstrap_balanced_accuracy(y, a, sample_weight=w) == bootstrap_balanced_accuracy(*rows[:2])
    assert paired_bootstrap(y, a, b, sample_weight=w) == paired_bootstrap(*rows)


def test_a_billion_rows_cost_what_four_cells_cost() -> None:
    """Resampling draws cells: the interval of 10^9 rows is a thousandth of a percent wide."""
    low, high = bootstrap_balanced_accuracy([1, 1, 0, 0], [1, 0, 0, 1], sample_weight=[4e8, 1e8, 3e8, 2e8])
    assert low < 0.7 < high
    assert high - low < 1e-4


def test_decisions_may_be_boolean() -> None:
    """A comparison of P with a threshold can be passed as it is."""
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0.2, 0.4, 0.7, 0.6, 0.9])
    assert bootstrap_balanced_accuracy(y, p >= 0.5) == bootstrap_balanced_accuracy(y, (p >= 0.5).astype(int))


def test_the_interval_covers_the_truth_in_about_95_percent() -> None:
    """400 samples of 300 rows: coverage within three standard errors of 95 %, or a little below as known."""
    rng = np.random.default_rng(1)
    covered = 0
    for seed in range(400):
        y, decision, _ = draw(rng, 300, (0.8, 0.65), (0.8, 0.65))
        low, high = bootstrap_balanced_accuracy(y, decision, n_boot=1000, random_state=seed)
        covered += low <= 0.725 <= high
    assert 0.915 <= covered / 400 <= 0.983


def test_p_is_uniform_where_the_two_are_equally_good() -> None:
    """400 samples under the null: the shares of small p are within three standard errors of their level."""
    rng = np.random.default_rng(2)
    result = [
        paired_bootstrap(*draw(rng, 267, (0.7, 0.65), (0.7, 0.65)), n_boot=1000, random_state=seed).p
        for seed in range(400)
    ]
    for level in (0.05, 0.2, 0.5, 0.8):
        assert abs(np.mean(np.array(result) <= level) - level) < 3 * math.sqrt(level * (1 - level) / 400)


def test_the_interval_of_the_difference_covers_the_truth() -> None:
    """400 samples with a true difference of 0.1 (TPR 0.8 and 0.7, TNR 0.7 and 0.6)."""
    rng = np.random.default_rng(3)
    covered = 0
    for seed in range(400):
        result = paired_bootstrap(*draw(rng, 300, (0.8, 0.7), (0.7, 0.6)), n_boot=1000, random_state=seed)
        covered += result.ci[0] <= 0.1 <= result.ci[1]
    assert 0.915 <= covered / 400 <= 0.983


def test_the_difference_is_that_of_balanced_accuracy() -> None:
    """a: TPR 85/100, TNR 90/100; b: TPR 75/100, TNR 80/100: 0.875 - 0.775 = 0.1."""
    y, a, b = [1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 1], [1, 0, 1, 0, 1, 0]
    w = [60, 25, 15, 70, 20, 10]
    result, mirrored = paired_bootstrap(y, a, b, sample_weight=w), paired_bootstrap(y, b, a, sample_weight=w)
    assert result.difference == pytest.approx(0.1)
    assert result.ci[0] < 0.1 < result.ci[1]
    assert mirrored.difference == -result.difference
    assert mirrored.p == pytest.approx(result.p, rel=0.3)


def test_equal_decisions_have_p_one() -> None:
    """No difference in any resample, and none observed."""
    result = paired_bootstrap([0, 1, 1, 0], [0, 1, 0, 0], [0, 1, 0, 0])
    assert result == (0.0, (0.0, 0.0), 1.0)


def test_p_is_never_below_one_in_resamples_plus_one() -> None:
    """A perfect against a hopeless judge: none of the 999 resamples lies as far off, so p = 1 / 1000."""
    y = np.repeat([0, 1], 200)
    assert paired_bootstrap(y, y, 1 - y, n_boot=999).p == 1 / 1000


def test_a_missing_class_leaves_everything_undefined() -> None:
    """Balanced accuracy does not exist, so neither does its interval or a test of it."""
    assert all(map(math.isnan, bootstrap_balanced_accuracy([1, 1], [1, 0])))
    result = paired_bootstrap([1, 1], [1, 0], [0, 1])
    assert all(map(math.isnan, (result.difference, *result.ci, result.p)))


def test_resamples_without_a_class_are_left_out() -> None:
    """One inconsistent row of five: a third of the resamples lack it; the others still make an interval."""
    low, high = bootstrap_balanced_accuracy([1, 1, 1, 1, 0], [1, 1, 0, 0, 0])
    assert 0.5 <= low < high <= 1.0


def test_a_seed_decides_the_draws() -> None:
    """The same seed gives the same interval, another seed another."""
    y, a, b = draw(np.random.default_rng(4), 100, (0.7, 0.7), (0.6, 0.6))
    assert paired_bootstrap(y, a, b, random_state=5) == paired_bootstrap(y, a, b, random_state=5)
    assert paired_bootstrap(y, a, b, random_state=5).p != paired_bootstrap(y, a, b, random_state=6).p


def test_a_higher_confidence_widens_the_interval() -> None:
    """99 % encloses 95 %, which encloses 50 %."""
    y, a, _ = draw(np.random.default_rng(6), 100, (0.7, 0.7), (0.6, 0.6))
    widths = [np.ptp(bootstrap_balanced_accuracy(y, a, confidence=level)) for level in (0.5, 0.95, 0.99)]
    assert widths == sorted(widths)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "label": ({"y_true": [0, 2]}, r"`y_true` must hold only 0 and 1. Got 2.0 at row 1"),
    "scalar label": ({"y_true": 1}, r"`y_true` must be one-dimensional. Got 0 dimension"),
    "decision": ({"decision_a": [0.4, 1]}, r"`decision_a` must hold only 0 and 1. Got 0.4 at row 0"),
    "other decision": ({"decision_b": [1]}, r"`decision_b` must have 2 entries, one a row. Got 1"),
    "weight": ({"sample_weight": [0.5, 1]}, r"`sample_weight` must hold whole numbers.*Got a sum of 0.5 in one cell"),
    "resamples": ({"n_boot": 0}, r"`n_boot` must be a whole number of at least 1. Got 0"),
    "confidence": ({"confidence": 1.0}, r"`confidence` must lie strictly between 0 and 1. Got 1.0"),
}


@pytest.mark.parametrize("case", BAD)
def test_unusable_input_is_an_error_that_says_where(case: str) -> None:
    """Every message names the parameter, what is allowed, and what came."""
    changed, message = BAD[case]
    with pytest.raises(InputError, match=message):
        paired_bootstrap(**{"y_true": [0, 1], "decision_a": [0, 1], "decision_b": [1, 1], **changed})
