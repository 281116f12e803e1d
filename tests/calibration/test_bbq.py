"""BBQ against a plain reading of the paper; histogram binning and the calibration error against netcal."""

import contextlib
import io
import warnings
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest

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
