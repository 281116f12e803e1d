"""BBQ against a plain reading of the paper; histogram binning and the calibration error against netcal."""

import contextlib
import io
import warnings
from itertools import pairwise
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import betaln

from deep.calibration import BBQ, Histogram, expected_calibration_error

Floats = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def netcal() -> ModuleType:
    """Import netcal, which takes seconds and warns about its own dependencies."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        binning = pytest.importorskip("netcal.binning")
        pytest.importorskip("netcal.metrics")
        import netcal
    assert binning.BBQ
    return netcal


def sample(seed: int, n: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return distinct scores of a judge that is too kind, and labels."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p**2).astype(int)


def plainly(p: Floats, y: npt.NDArray[np.int64], at: float) -> float:
    """Calibrate one probability by loops over rows, bin by bin and binning by binning."""
    order = np.argsort(p)
    p, y = p[order], y[order]
    n = len(p)
    root = n ** (1 / 3)
    possible = [0, *(i for i in range(1, n) if p[i - 1] < p[i]), n]
    seen, scores, values = set(), [], []
    for n_bins in range(max(1, int(root / 10)), int(min(np.ceil(n / 5), np.ceil(10 * root))) + 1):
        # The possible end nearest to j n / B, the lower of two equally near.
        nearest = [min(possible, key=lambda end: (abs(j * n - end * n_bins), end)) for j in range(n_bins + 1)]
        ends = tuple(sorted(set(nearest)))
        if ends in seen:
            continue
        seen.add(ends)
        log_evidence, value = 0.0, float("nan")
        for start, stop in pairwise(ends):
            low = 0.0 if start == 0 else (p[start - 1] + p[start]) / 2
            high = 1.0 if stop == n else (p[stop - 1] + p[stop]) / 2
            mean = min(max((low + high) / 2, 0.005), 0.995)
            alpha, beta = 2 * mean, 2 * (1 - mean)
            ones, zeros = y[start:stop].sum(), (1 - y[start:stop]).sum()
            estimate = (ones + alpha) / (ones + zeros + 2)
            log_evidence += betaln(ones + alpha, zeros + beta) - betaln(alpha, beta)
            if low <= at < high or (stop == n and at == 1):
                value = estimate
        scores.append(log_evidence)
        values.append(value)
    weights = np.exp(np.array(scores) - max(scores))
    return float(weights @ values / weights.sum())


@pytest.mark.parametrize(
    ("seed", "n", "power", "steps"),
    [(0, 7, 1, None), (1, 60, 1, None), (2, 251, 1, None), (3, 300, 1, 12), (4, 300, 4, 12), (5, 300, 4, 150)],
)
def test_bbq_is_the_average_that_the_paper_defines(seed: int, n: int, power: int, steps: int | None) -> None:
    """Equal frequency, Beta marginal likelihood, average over all binnings; also with ties, many or very uneven."""
    p, y = sample(seed, n)
    p = p**power if steps is None else (p**power * steps).round() / steps
    y[:2] = [0, 1]
    bbq = BBQ().fit(p, y)
    for at in (0.0, 0.1, 0.37, 0.5, 0.9, 1.0):
        assert bbq.transform([at])[0] == pytest.approx(plainly(p, y, at), abs=1e-12)


def test_bbq_of_two_scores_is_the_average_of_two_binnings() -> None:
    """One bin or two: the only binnings there are, each counted once however many sizes end there.

    One bin: prior mean 1/2, so Beta(1, 1): value 51 / 102, evidence B(51, 51) / B(1, 1).
    Two bins, cut at 0.55: prior means 0.275 and 0.775, so Beta(0.55, 1.45) and Beta(1.55, 0.45): values
    (20 + 0.55) / 52 and (30 + 1.55) / 52.
    """
    bbq = BBQ().fit([0.2, 0.2, 0.9, 0.9], [1, 0, 1, 0], [20, 30, 30, 20])
    one = betaln(51, 51) - betaln(1, 1)
    two = betaln(20.55, 31.45) - betaln(0.55, 1.45) + betaln(31.55, 20.45) - betaln(1.55, 0.45)
    share_of_two = 1 / (1 + np.exp(one - two))
    expected = 0.5 + share_of_two * (np.array([20.55, 31.55]) / 52 - 0.5)
    np.testing.assert_allclose(bbq.transform([0.2, 0.9]), expected, atol=1e-12)
    np.testing.assert_allclose(bbq.cuts_, [0.55])


def test_equal_scores_are_never_split() -> None:
    """With ties the map changes only between distinct scores."""
    rng = np.random.default_rng(4)
    p = rng.choice([0.1, 0.3, 0.35, 0.8], 400)
    bbq = BBQ().fit(p, (rng.random(400) < p).astype(int))
    np.testing.assert_allclose(bbq.cuts_, [0.2, 0.325, 0.575])
    assert len(bbq.values_) == 4


@pytest.mark.parametrize("low", [0.3, float(np.nextafter(0.3, 1))])
def test_neighbouring_floats_are_still_told_apart(low: float) -> None:
    """A cut between two adjacent numbers leaves each on its own side, whichever way their middle is rounded."""
    high = float(np.nextafter(low, 1))
    bbq = BBQ().fit([low, low, high, high], [1, 0, 1, 0], [2, 98, 98, 2])
    assert bbq.transform([low])[0] < 0.1
    assert bbq.transform([high])[0] > 0.9


def test_a_large_count_costs_no_memory_by_the_row() -> None:
    """A hundred million rows in six cells are fitted as six cells, each left in a bin of its own."""
    p, w = [0.1, 0.1, 0.5, 0.5, 0.9, 0.9], np.array([2, 8, 5, 5, 9, 1]) * 10**7
    bbq = BBQ().fit(p, [1, 0] * 3, w)
    np.testing.assert_allclose(bbq.transform([0.1, 0.5, 0.9]), [0.2, 0.5, 0.9], atol=1e-6)


@pytest.mark.parametrize("n_bins", [1, 8, 10, 15])
def test_histogram_equals_netcal(netcal: ModuleType, n_bins: int) -> None:
    """Netcal's histogram binning, empty bins included."""
    p, y = sample(5, 60)
    p = 0.2 + 0.7 * p
    grid = np.linspace(0.001, 0.999, 396)
    expected = np.clip(netcal.binning.HistogramBinning(n_bins).fit(p, y).transform(grid.copy()), 1e-6, 1 - 1e-6)
    np.testing.assert_allclose(Histogram(n_bins).fit(p, y).transform(grid), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_bins", [1, 8, 10, 15])
@pytest.mark.parametrize("n", [10, 558])
def test_expected_calibration_error_equals_netcal(netcal: ModuleType, n: int, n_bins: int) -> None:
    """Netcal's ECE of binary P, scores 0, 1 and on edges included."""
    p, y = sample(6, n)
    p[:6], y[:6] = [0.0, 1.0, 0.5, 0.125, 0.25, 0.6], [1, 0, 1, 0, 1, 0]
    assert expected_calibration_error(y, p, n_bins=n_bins) == pytest.approx(
        netcal.metrics.ECE(n_bins).measure(p, y), abs=1e-6
    )
