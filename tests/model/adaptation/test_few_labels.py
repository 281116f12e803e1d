"""Correction by a few labels: it helps over many simulated datasets, and its intervals mean what they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from deep._util.odds import P_MIN
from deep.calibration import log_loss
from deep.model import FewLabels, Misfit
from deep.model._misfit import HeldOutRows, learn_misfit
from tests.model.fitted import interval_of

NONE = np.array([0.0, 1.0])
MOMENT = np.array([[0.8, -0.05], [-0.05, 0.1]])


def dataset(rng, n=3000):
    """Return transferred P, the true P, and labels of one dataset that asks for a random correction."""
    intercept, slope = rng.multivariate_normal([0, 1], MOMENT)
    z = rng.normal(0.3, 1.5, n)
    truth = expit(intercept + slope * z)
    return expit(z), truth, (rng.random(n) < truth).astype(int)


def learned(rng, n_datasets):
    """Return a misfit learned from `n_datasets` simulated training datasets."""
    left_out = []
    for _ in range(n_datasets):
        p, _, y = dataset(rng)
        cell = np.digitize(p, np.linspace(0, 1, 21))
        rows = HeldOutRows(np.log(p / (1 - p)), (y == 1).astype(float), (y == 0).astype(float), cell)
        left_out.append(rows)
    return learn_misfit(left_out)


def test_the_misfit_is_recovered():
    """From many datasets, mean and covariance of what they ask for are the true ones, within a fifth."""
    result = learned(np.random.default_rng(0), 120)
    assert result.mean == pytest.approx([0, 1], abs=0.2)
    assert result.covariance[0, 0] == pytest.approx(MOMENT[0, 0], rel=0.25)
    assert result.covariance[1, 1] == pytest.approx(MOMENT[1, 1], rel=0.3)


@pytest.mark.parametrize("n_labels", [5, 20, 100])
def test_few_labels_bring_p_closer_to_the_truth(n_labels):
    """On average over datasets, corrected P is closer to the true P than transferred P, the more labels the closer."""
    rng = np.random.default_rng(n_labels)
    errors = []
    for _ in range(50):
        p, truth, y = dataset(rng)
        few = FewLabels(Misfit(NONE, MOMENT, 10)).fit(p[:n_labels], y[:n_labels])
        errors.append([np.mean(abs(few.transform(p) - truth)), np.mean(abs(p - truth))])
    corrected, transferred = np.mean(errors, axis=0)
    assert corrected < {5: 0.95, 20: 0.7, 100: 0.45}[n_labels] * transferred


def test_shrinking_beats_a_free_fit_on_few_labels():
    """With 20 labels, the shrunken correction has a lower log loss than slope and intercept without shrinking."""
    rng = np.random.default_rng(3)
    losses = []
    for _ in range(60):
        p, _, y = dataset(rng)
        for moment in (MOMENT, 1e4 * np.eye(2)):
            few = FewLabels(Misfit(NONE, moment, 10)).fit(p[:20], y[:20])
            losses.append(log_loss(y[20:], few.transform(p[20:])))
    shrunk, free = np.reshape(losses, (-1, 2)).mean(axis=0)
    assert shrunk < free


@pytest.mark.parametrize("n_labels", [pytest.param(0, marks=pytest.mark.slow), 30])
def test_intervals_cover_the_true_p(n_labels):
    """Over simulated datasets the 90 percent interval of P at one point holds the true P in 84 to 97 percent."""
    rng = np.random.default_rng(n_labels)
    held = []
    for _ in range(200):
        misfit = learned(rng, 8) if n_labels == 0 else Misfit(NONE, MOMENT, 8)
        p, truth, y = dataset(rng, 300)
        if n_labels:
            low, high = interval_of(FewLabels(misfit).fit(p[1 : 1 + n_labels], y[1 : 1 + n_labels]), p[:1])
        else:
            low, high = misfit.interval(np.log(p[:1] / (1 - p[:1])))
        held.append(low[0] <= truth[0] <= high[0])
    assert 0.84 <= np.mean(held) <= 0.98


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=30), st.floats(0, 1))
def test_p_stays_within_its_interval(rows, p):
    """Any labels give a P within [0, 1] and within its own interval."""
    few = FewLabels(Misfit(NONE, MOMENT, 5)).fit([q for q, _ in rows], [y for _, y in rows])
    low, high = interval_of(few, [p])
    assert 0 <= low[0] <= high[0] <= 1
    assert low[0] - P_MIN <= few.transform([p])[0] <= high[0] + P_MIN
