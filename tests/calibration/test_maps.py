"""Known values of the calibrators, worked out by hand or by an independent implementation."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from deep._util.odds import fit_logistic
from deep.calibration import Beta, Histogram, Isotonic, Platt, Temperature
from deep.exceptions import InputError

Arrays = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def sample(seed: int, n: int = 300) -> Arrays:
    """Return probabilities of a lenient and overconfident judge, labels and counts."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1.5, n)
    return expit(2 * x + 0.7), (rng.random(n) < expit(x)).astype(int), rng.integers(1, 5, n)


@pytest.mark.parametrize(
    ("p", "n1", "n0"),
    [
        ([0.195, 0.426, 0.99998], [0, 1000, 100], [1, 0, 0]),
        ([0.481, 0.801, 0.814], [10_000, 10_000, 0], [0, 0, 1]),
        ([0.0, 0.5, 1.0], [1, 5, 1], [10**7, 5, 10**7]),
        ([0.2, 0.4, 0.7], [3, 4, 5], [6, 5, 4]),
    ],
)
def test_newton_ends_where_the_gradient_is_zero(p: list[float], n1: list[int], n0: list[int]) -> None:
    """Also where the full step overshoots, or millions of rows stand at hard 0 and 1."""
    design = np.column_stack([logit(np.clip(p, 1e-6, 1 - 1e-6)), np.ones(3)])
    n, ones, centre = np.add(n1, n0).astype(float), np.array(n1, dtype=float), np.array([1.0, 0.0])
    theta = fit_logistic(design, n, ones, centre=centre)
    gradient = design.T @ (n * expit(design @ theta) - ones) + 1e-6 * (theta - centre)
    assert np.abs(gradient).max() < 1e-9 * n.sum()


def test_platt_aims_at_smoothed_targets() -> None:
    """Two scores, two parameters: the fit hits each score's smoothed share exactly.

    n1 = n0 = 10, so the targets are 11/12 and 1/12. At P = 0.9 stand 7 labels 1 and 3 labels 0:
    (7 * 11/12 + 3 * 1/12) / 10 = 80 / 120 = 2/3; at P = 0.1 by symmetry 1/3. The slope is
    log(2) / log(9) = 0.31546, the intercept 0.
    """
    platt = Platt().fit([0.1, 0.1, 0.9, 0.9], [1, 0, 1, 0], [3, 7, 7, 3])
    np.testing.assert_allclose(platt.transform([0.1, 0.9]), [1 / 3, 2 / 3], atol=1e-7)
    assert platt.slope_ == pytest.approx(np.log(2) / np.log(9), abs=1e-6)
    assert platt.intercept_ == pytest.approx(0.0, abs=1e-9)


def test_platt_equals_scikit_learn_on_log_odds() -> None:
    """Scikit-learn's sigmoid calibration, fed log-odds and weights, is the oracle."""
    p, y, w = sample(0)
    oracle = _SigmoidCalibration().fit(logit(p), y, sample_weight=w.astype(float))
    ours = Platt().fit(p, y, w)
    np.testing.assert_allclose(ours.transform(p), oracle.predict(logit(p)), atol=2e-5)


def test_platt_turns_a_judge_round_that_is_reliably_wrong() -> None:
    """The slope may be negative, unlike those of beta and temperature."""
    p, y, w = sample(1)
    assert Platt().fit(1 - p, y, w).slope_ < 0
    assert Temperature().fit(1 - p, y, w).temperature_ == pytest.approx(100)
    beta = Beta().fit(1 - p, y, w)
    assert (beta.a_, beta.b_) == (0, 0)
    np.testing.assert_allclose(beta.transform(p), np.average(y, weights=w), atol=1e-6)
    isotonic = Isotonic().fit(1 - p, y, w)
    assert np.ptp(isotonic.transform(p)) < 0.25


def test_temperature_halves_doubled_log_odds() -> None:
    """0.9 stands for log 9; a share of 3/4 has log-odds log 3 = log 9 / 2, so the temperature is 2."""
    temperature = Temperature().fit([0.1, 0.1, 0.9, 0.9], [1, 0, 1, 0], [1, 3, 3, 1])
    assert temperature.temperature_ == pytest.approx(2.0, rel=1e-12)
    np.testing.assert_allclose(temperature.transform([0.1, 0.5, 0.9]), [0.25, 0.5, 0.75], atol=1e-12)


def test_temperature_is_the_maximum_of_the_likelihood() -> None:
    """No temperature on a fine grid explains the labels better."""
    p, y, w = sample(2)
    fitted = Temperature().fit(p, y, w).temperature_
    grid = fitted * np.linspace(0.9, 1.1, 201)
    z = logit(p)[None, :] / grid[:, None]
    losses = (w * (np.logaddexp(0, z) - y * z)).sum(axis=1)
    assert abs(grid[losses.argmin()] / fitted - 1) < 1e-9


@pytest.mark.parametrize(("y", "expected"), [([0, 1], 0.01), ([1, 0], 100.0)])
def test_temperature_stays_in_its_range(y: list[int], expected: float) -> None:
    """Separable scores get the coldest, reversed ones the hottest temperature."""
    assert Temperature().fit([0.2, 0.8], y).temperature_ == pytest.approx(expected)


def test_temperature_of_scores_that_say_nothing_is_one() -> None:
    """Where every P is 0.5 no temperature does anything."""
    assert Temperature().fit([0.5, 0.5], [0, 1]).temperature_ == 1.0


def test_beta_equals_logistic_regression_on_two_logarithms() -> None:
    """Scikit-learn without penalty is the oracle where both slopes come out positive."""
    p, y, w = sample(3)
    features = np.column_stack([np.log(p), -np.log1p(-p)])
    oracle = LogisticRegression(C=1e10, tol=1e-10, max_iter=10_000, solver="newton-cholesky")
    oracle.fit(features, y, sample_weight=w)
    beta = Beta().fit(p, y, w)
    assert min(beta.a_, beta.b_) > 0
    np.testing.assert_allclose([beta.a_, beta.b_], oracle.coef_[0], atol=1e-5)
    assert beta.c_ == pytest.approx(oracle.intercept_[0], abs=1e-5)


def test_beta_recovers_its_own_three_parameters() -> None:
    """Cells whose shares follow a beta map give its parameters back."""
    p = np.linspace(0.03, 0.97, 40)
    true = expit(0.4 * np.log(p) - 1.7 * np.log1p(-p) - 0.3)
    beta = Beta().fit(np.tile(p, 2), np.repeat([1, 0], 40), np.concatenate([true, 1 - true]) * 1e6)
    np.testing.assert_allclose([beta.a_, beta.b_, beta.c_], [0.4, 1.7, -0.3], atol=1e-6)


@pytest.mark.parametrize("end", ["a_", "b_"])
def test_a_slope_of_beta_that_would_be_negative_is_zero(end: str) -> None:
    """The constrained optimum lies on the face where that slope is 0, and the other is refitted."""
    p = np.linspace(0.03, 0.97, 40)
    slopes = (-0.5, 1.5) if end == "a_" else (1.5, -0.5)
    true = expit(slopes[0] * np.log(p) - slopes[1] * np.log1p(-p))
    w = np.concatenate([true, 1 - true]) * 1e4
    beta = Beta().fit(np.tile(p, 2), np.repeat([1, 0], 40), w)
    assert getattr(beta, end) == 0
    x = -np.log1p(-p) if end == "a_" else np.log(p)
    z = np.tile(beta.transform(p), 2)
    gradient = (w * (z - np.repeat([1, 0], 40))) @ np.tile(x, 2) / w.sum()
    assert abs(gradient) < 1e-6


@given(seed=st.integers(0, 10_000), n=st.integers(2, 40), digits=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_isotonic_equals_scikit_learn(seed: int, n: int, digits: int) -> None:
    """Scikit-learn's isotonic regression, clipped out of bounds, is the oracle, ties and weights included."""
    rng = np.random.default_rng(seed)
    p, y, w = rng.random(n).round(digits), rng.integers(0, 2, n), rng.integers(1, 9, n)
    y[:2] = [0, 1]
    oracle = IsotonicRegression(out_of_bounds="clip").fit(p, y, sample_weight=w)
    grid = np.linspace(0, 1, 101)
    expected = np.clip(oracle.predict(grid), 1e-6, 1 - 1e-6)
    np.testing.assert_allclose(Isotonic().fit(p, y, w).transform(grid), expected, atol=1e-12)


def test_isotonic_pools_scores_that_would_fall() -> None:
    """Shares 1/4 at 0.2, 3/4 at 0.4 and 1/2 at 0.6: the last two pool to 5/8, linear between 0.2 and 0.4."""
    isotonic = Isotonic().fit([0.2, 0.2, 0.4, 0.4, 0.6, 0.6], [1, 0, 1, 0, 1, 0], [1, 3, 3, 1, 2, 2])
    np.testing.assert_allclose(
        isotonic.transform([0, 0.2, 0.3, 0.4, 0.5, 1]), [0.25, 0.25, 0.4375, 0.625, 0.625, 0.625]
    )
    np.testing.assert_allclose(isotonic.thresholds_, [0.2, 0.4, 0.6])


def test_histogram_takes_the_share_of_label_1_in_each_bin() -> None:
    """Bins [0, 1/4), [1/4, 1/2), [1/2, 3/4), [3/4, 1]: edges belong to the right, an empty bin to its middle."""
    histogram = Histogram(n_bins=4).fit([0.1, 0.25, 0.3, 1.0, 0.75], [1, 0, 1, 1, 0], [2, 3, 1, 1, 3])
    # [0, 1/4): 2 of 2, clipped; [1/4, 1/2): 1 of 4; [1/2, 3/4): none, 5/8; [3/4, 1]: 1 of 4.
    np.testing.assert_allclose(histogram.transform([0.0, 0.25, 0.6, 1.0]), [1 - 1e-6, 0.25, 0.625, 0.25])


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True, None])
def test_the_number_of_bins_must_be_whole_and_positive(n_bins: object) -> None:
    """The message names the parameter and the value."""
    with pytest.raises(InputError, match=r"`n_bins` must be a whole number of at least 1. Got " + repr(n_bins)):
        Histogram(n_bins=n_bins).fit([0.1, 0.9], [0, 1])  # type: ignore[arg-type]
