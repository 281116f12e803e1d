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

from deep.calibration import Beta, Histogram, Isotonic, Platt, Temperature
from deep.exceptions import InputError

Arrays = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def sample(seed: int, n: int = 300) -> Arrays:
    """Return probabilities of a lenient and overconfident judge, labels and counts."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1.5, n)
    return expit(2 * x + 0.7), (rng.random(n) < expit(x)).astype(int), rng.integers(1, 5, n)


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


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True, None])
def test_the_number_of_bins_must_be_whole_and_positive(n_bins: object) -> None:
    """The message names the parameter and the value."""
    with pytest.raises(InputError, match=r"`n_bins` must be a whole number of at least 1. Got " + repr(n_bins)):
        Histogram(n_bins=n_bins).fit([0.1, 0.9], [0, 1])  # type: ignore[arg-type]
