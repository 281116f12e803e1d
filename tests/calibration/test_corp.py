"""CORP diagrams: identities, chance, and what the references say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from deep.calibration import CorpDisplay
from deep.exceptions import InputError


@st.composite
def labeled(draw):
    """Draw probabilities and labels."""
    n = draw(st.integers(2, 30))
    p = draw(nps.arrays(float, n, elements=st.sampled_from([0.0, 0.1, 0.35, 0.5, 0.8, 1.0])))
    return draw(nps.arrays(int, n, elements=st.integers(0, 1))), p


@given(labeled())
def test_the_brier_score_is_split_whole(drawn):
    """Miscalibration - discrimination + uncertainty is the Brier score, and no part is negative."""
    y, p = drawn
    display = CorpDisplay.from_predictions(y, p, n_resamples=5)
    parts = display.miscalibration - display.discrimination + display.uncertainty
    assert parts == pytest.approx(np.mean((p - y) ** 2), abs=1e-12)
    assert min(display.miscalibration, display.discrimination, display.uncertainty) >= 0
    assert (np.diff(display.recalibrated) >= -1e-12).all()


def test_a_calibrated_predictor_stays_in_its_band():
    """Point by point, about 90 % of the curves of calibrated predictors lie within the band, over 30 draws."""
    rng = np.random.default_rng(0)
    inside = []
    for seed in range(30):
        p = rng.choice(np.linspace(0.05, 0.95, 10), 500)
        display = CorpDisplay.from_predictions(rng.random(500) < p, p, n_resamples=200, random_state=seed)
        inside.append(np.mean((display.low <= display.recalibrated) & (display.recalibrated <= display.high)))
    assert 0.84 < np.mean(inside) < 0.97


def test_an_overconfident_one_leaves_it():
    """Where P is pushed away from one half, the ends of the curve lie outside."""
    rng = np.random.default_rng(1)
    honest = rng.choice(np.linspace(0.2, 0.8, 7), 2000)
    pushed = np.clip(0.5 + 1.6 * (honest - 0.5), 0, 1)
    display = CorpDisplay.from_predictions(rng.random(2000) < honest, pushed)
    assert display.recalibrated[0] > display.high[0]
    assert display.recalibrated[-1] < display.low[-1]
    assert len(display.plot().lines) == 2


def test_weights_are_repeated_rows():
    """A row of weight w is the row w times."""
    rng = np.random.default_rng(2)
    y, p, w = rng.integers(0, 2, 20), rng.choice([0.1, 0.4, 0.7, 0.9], 20), rng.integers(1, 5, 20)
    one = CorpDisplay.from_predictions(y, p, sample_weight=w, n_resamples=20)
    many = CorpDisplay.from_predictions(np.repeat(y, w), np.repeat(p, w), n_resamples=20)
    np.testing.assert_allclose(one.frame(), many.frame())


@pytest.mark.parametrize("change", [{"level": 1.0}, {"n_resamples": 0}, {"sample_weight": [0.5, 1.0]}])
def test_bad_input(change):
    """Levels, counts and weights are checked."""
    with pytest.raises(InputError, match=f"`{next(iter(change))}`"):
        CorpDisplay.from_predictions([0, 1], [0.1, 0.9], **change)
