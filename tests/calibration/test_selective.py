"""Deciding only where confident: the curve, the guarantee over many draws, and bad input."""

import numpy as np
import pytest

from deep.calibration import risk_coverage, selective_threshold
from deep.exceptions import InputError


def draw(rng, n):
    """Return labels and overconfident probabilities: accuracy grows with confidence, but less than it says."""
    p = rng.random(n)
    honest = 0.5 + 0.9 * (p - 0.5)
    return (rng.random(n) < honest).astype(int), p


def accuracy(confidence):
    """Return the true accuracy of decisions from this confidence on."""
    return 0.5 + 0.45 * confidence


def test_the_guarantee_holds_over_draws():
    """Of 400 draws of 300 labels at most about 10 % fall short of the target on the rest."""
    rng = np.random.default_rng(0)
    short, covered = 0, []
    for _ in range(400):
        result = selective_threshold(*draw(rng, 300), 0.75, delta=0.1)
        covered.append(result.coverage)
        short += result.confidence is not None and accuracy(result.confidence) < 0.75
    assert short <= 400 * 0.1 + 3 * np.sqrt(400 * 0.1 * 0.9)
    assert np.mean(covered) > 0.15


def test_more_labels_decide_more():
    """With many labels the coverage comes near the best there is: confidence from 0.556 on, 89 % of the items."""
    result = selective_threshold(*draw(np.random.default_rng(1), 20_000), 0.75)
    assert 0.8 <= result.coverage <= 0.95
    assert result.accuracy_low >= 0.75


def test_nothing_is_decided_where_nothing_can_be_shown():
    """Coin flips never reach 90 %, and ten labels show nothing."""
    rng = np.random.default_rng(2)
    for n in (10, 2000):
        result = selective_threshold(rng.integers(0, 2, n), rng.random(n), 0.9)
        assert result.confidence is None
        assert result.coverage == 0
        assert np.isnan(result.accuracy)


def test_weights_are_repeated_rows():
    """A row of weight w is the row w times."""
    rng = np.random.default_rng(3)
    y, p = rng.integers(0, 2, 40), rng.choice([0.1, 0.4, 0.8, 0.95], 40)
    w = rng.integers(1, 9, 40)
    result = selective_threshold(y, p, 0.3, sample_weight=w)
    assert result.confidence is not None
    assert result == selective_threshold(np.repeat(y, w), np.repeat(p, w), 0.3)
    weighted, rows = risk_coverage(y, p, sample_weight=w), risk_coverage(np.repeat(y, w), np.repeat(p, w))
    np.testing.assert_allclose(weighted, rows)


def test_curve_ends_at_all_items():
    """The last row decides everything, with the plain error."""
    y, p = draw(np.random.default_rng(4), 500)
    curve = risk_coverage(y, p)
    assert curve["coverage"].iloc[-1] == 1
    assert curve["risk"].iloc[-1] == pytest.approx(np.mean((p >= 0.5) != y))
    assert curve["confidence"].is_monotonic_decreasing


@pytest.mark.parametrize("change", [{"target": 1.0}, {"delta": 0.0}, {"sample_weight": [1.5, 1]}])
def test_bad_input(change):
    """Levels lie strictly between 0 and 1; weights are counts."""
    name = next(iter(change))
    with pytest.raises(InputError, match=f"`{name}`"):
        selective_threshold([0, 1], [0.2, 0.9], **({"target": 0.8} | change))
