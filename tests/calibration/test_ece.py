"""Expected calibration error, and what chance alone gives."""

import math
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from deep.calibration import ece_noise_floor, evaluate, expected_calibration_error
from deep.exceptions import InputError

Floats = npt.NDArray[np.float64]


def test_ece_of_two_bins() -> None:
    """Bin [1/8, 1/4): P 0.2, share 1/2, gap 0.3, mass 2/5; bin [7/8, 1]: P 0.9, share 2/3, gap 0.2333, mass 3/5.

    0.4 * 0.3 + 0.6 * 0.23333 = 0.26.
    """
    assert expected_calibration_error([0, 1, 1, 1, 0], [0.2, 0.2, 0.9, 0.9, 0.9]) == pytest.approx(0.26)


def test_the_floor_of_one_score_is_a_mean_absolute_deviation() -> None:
    """4 rows at P = 1/2: |count - 2| is 0, 1, 2 with chance 6, 8, 2 of 16, mean 12/16; over 4 rows 0.1875."""
    floor = ece_noise_floor([0.5], sample_weight=[4])
    assert floor.mean == pytest.approx(0.1875, abs=1e-13)
    assert floor.q95 == 0.5


@pytest.mark.parametrize("n", [1, 50, 5000, 10**6])
@pytest.mark.parametrize("p", [1e-4, 0.3, 0.5, 0.97])
def test_the_floor_of_one_score_is_de_moivres(n: int, p: float) -> None:
    """E|count - n p| of a binomial is 2 k (1 - p) P(count = k), with k the whole part of n p, plus 1."""
    k = math.floor(n * p) + 1
    expected = 2 * k * (1 - p) * binom.pmf(k, n, p) / n
    assert ece_noise_floor([p], sample_weight=[n], n_draws=0).mean == pytest.approx(expected, rel=3e-11)


@given(
    p=st.lists(st.sampled_from([0.0, 0.03, 0.2, 0.24, 0.5, 0.51, 0.9, 1.0]), min_size=1, max_size=8),
    n_bins=st.sampled_from([1, 2, 8]),
)
@settings(max_examples=40, deadline=None)
def test_the_mean_floor_is_exact(p: list[float], n_bins: int) -> None:
    """Every way the labels can fall, weighed by its chance under P, gives the same mean error."""
    chances = np.array(p)
    expected = 0.0
    for labels in product([0, 1], repeat=len(p)):
        y = np.array(labels)
        chance = float(np.prod(np.where(y == 1, chances, 1 - chances)))
        expected += chance * expected_calibration_error(y, p, n_bins=n_bins)
    assert ece_noise_floor(p, n_bins=n_bins).mean == pytest.approx(expected, abs=1e-12)


def drawn_floor(p: Floats, w: npt.NDArray[np.int64], n_draws: int) -> Floats:
    """Draw labels score by score, and return the calibration error of each draw."""
    rng = np.random.default_rng(1)
    counts = rng.binomial(w[:, None], p[:, None], size=(len(p), n_draws)) - (w * p)[:, None]
    sums = np.zeros((8, n_draws))
    np.add.at(sums, np.minimum((8 * p).astype(int), 7), counts)
    return np.asarray(np.abs(sums).sum(axis=0) / w.sum())


@pytest.mark.parametrize("size", [1, 6, 10_000])
def test_the_floor_is_that_of_labels_drawn_from_p(size: int) -> None:
    """Mean and quantile agree with binomial draws, for single rows, cells, and two million rows."""
    p = np.sort(np.random.default_rng(0).random(200))
    w = np.random.default_rng(2).integers(1, 2 * size + 1, 200)
    floor, drawn = ece_noise_floor(p, sample_weight=w, n_draws=4000), drawn_floor(p, w, 4000)
    assert floor.mean == pytest.approx(drawn.mean(), abs=4 * drawn.std() / math.sqrt(4000))
    assert floor.q95 == pytest.approx(np.quantile(drawn, 0.95), rel=0.04)


def test_a_perfect_predictor_stays_below_the_quantile_in_19_of_20_samples() -> None:
    """400 samples: the share above is within three standard errors of 5 %."""
    rng = np.random.default_rng(4)
    above = 0
    for _ in range(400):
        p = rng.random(150)
        above += expected_calibration_error(rng.random(150) < p, p) > ece_noise_floor(p, n_draws=2000).q95
    assert abs(above / 400 - 0.05) < 3 * math.sqrt(0.05 * 0.95 / 400)


def test_a_seed_decides_the_quantile_and_nothing_else() -> None:
    """Same seed, same floor; another seed, the same exact mean; a generator is used as it is."""
    p = np.linspace(0, 1, 50)
    assert ece_noise_floor(p) == ece_noise_floor(p, random_state=0)
    assert ece_noise_floor(p, random_state=np.random.default_rng(0)) == ece_noise_floor(p)
    assert ece_noise_floor(p, random_state=1).mean == ece_noise_floor(p).mean
    assert math.isnan(ece_noise_floor(p, n_draws=0).q95)


def test_certain_probabilities_have_no_floor() -> None:
    """Where P is 0 or 1 a perfect predictor makes no error."""
    assert ece_noise_floor([0.0, 1.0], sample_weight=[30, 50]) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_the_floor_needs_counts() -> None:
    """A row cannot be drawn 0.37 times."""
    with pytest.raises(InputError, match=r"`sample_weight` must hold whole numbers.*Got a sum of 0.37 in one cell"):
        ece_noise_floor([0.5, 0.6], sample_weight=[0.37, 1])


def test_debiased_ece_is_the_error_less_its_floor_in_squares() -> None:
    """4 rows at P = 1/2, all consistent: ece 1/2, floor 0.1875: sqrt(0.25 - 0.03516) = 0.46351.

    Half of them consistent: ece 0, so -0.1875.
    """
    assert evaluate([1, 1, 1, 1], [0.5] * 4)["ece_debiased"] == pytest.approx(0.46351, abs=1e-5)
    assert evaluate([1, 1, 0, 0], [0.5] * 4)["ece_debiased"] == pytest.approx(-0.1875)


@pytest.mark.parametrize("n", [268, 558, 3000])
@pytest.mark.parametrize(("slope", "true"), [(1.0, 0.0), (0.6, 0.077)])
def test_debiased_ece_is_centred_on_the_true_error(n: int, slope: float, true: float) -> None:
    """Over 300 samples the mean is within 0.006 of the error without noise; the plain one is up to 0.05 off."""
    rng = np.random.default_rng(5)
    plain, debiased = [], []
    for _ in range(300):
        x = rng.normal(0, 2, n)
        y, p = rng.random(n) < 1 / (1 + np.exp(-slope * x)), 1 / (1 + np.exp(-x))
        plain.append(expected_calibration_error(y, p))
        debiased.append(evaluate(y, p, n_draws=1)["ece_debiased"])
    assert abs(np.mean(debiased) - true) < 0.006
    assert abs(np.mean(debiased) - true) < abs(np.mean(plain) - true) + 0.001
