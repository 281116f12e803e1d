"""netcal's calibrators behind deep's contract: the same maps, exact rows, one line where it fails."""

import contextlib
import io
import subprocess
import sys
import warnings
from importlib import import_module

import numpy as np
import pytest

from deep.calibration import (
    NETCAL_CALIBRATORS,
    NETCAL_CLASSES,
    NetcalCalibrator,
    expected_calibration_error,
    netcal_expected_calibration_error,
)
from deep.calibration._calibrators import whole_counts
from deep.exceptions import InputError
from tests.deep_commands import fit


def rows(n=400):
    """Return distinct scores of an overconfident judge, and labels."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return p, (rng.random(n) < 0.25 + 0.5 * p).astype(int)


def netcals_own(name, p, y, at):
    """Return what netcal's class, fitted without deep, makes of scores."""
    module, own = NETCAL_CLASSES[name]
    quiet = {"tensorboard": False} if module == "netcal.scaling" else {}
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        return getattr(import_module(module), own)().fit(p, y, **quiet).transform(np.array(at))


@pytest.mark.parametrize("name", NETCAL_CALIBRATORS)
def test_maps_are_netcals_own(name):
    """On rows of weight 1 and distinct scores the map is what netcal's class gives."""
    p, y = rows()
    ours = NETCAL_CALIBRATORS[name]().fit(p, y).transform(p)
    np.testing.assert_allclose(ours, np.clip(netcals_own(name, p, y, p), 1e-6, 1 - 1e-6), rtol=0, atol=1e-6)


def test_an_option_that_netcal_has_not_is_refused():
    """In Python too the calibrator is one of netcal's, by its name in options."""
    with pytest.raises(InputError, match=r"`option` must be .*netcal-bbq.* Got 'isotonic'"):
        NetcalCalibrator("isotonic").fit(*rows(60))


def test_weights_become_the_smallest_whole_numbers():
    """Where only ratios matter, any multiple of whole numbers is exact; where rows count, whole numbers alone are."""
    shares = np.array([1 / 3, 1.0, 7 / 9])
    assert whole_counts(shares, multiples=True, option="netcal-platt").tolist() == [3, 9, 7]
    with pytest.raises(InputError, match="`sample_weight` must be whole, with at most 1,000,000 rows in all, for 'x'"):
        whole_counts(shares, multiples=False, option="x")


@pytest.mark.parametrize("weights", [np.array([1.0, np.sqrt(2)]), np.array([1.0, 2_000_003.0])])
def test_weights_that_cannot_be_expanded_are_one_line(weights):
    """Irrational ratios and too many rows name the bound and the remedy."""
    with pytest.raises(InputError, match=r"netcal takes no weights.*--weighting uniform") as error:
        NetcalCalibrator("netcal-histogram").fit([0.2, 0.8], [0, 1], weights)
    assert "\n" not in str(error.value)


def test_the_error_is_measured_as_deep_does():
    """Both give the same calibration error, with scores on edges between bins and weights as repeated rows."""
    p, y = rows()
    p[:200] = (8 * p[:200]).round() / 8
    w = np.random.default_rng(1).integers(1, 5, len(p))
    ours = expected_calibration_error(y, p, sample_weight=w, n_bins=8)
    assert netcal_expected_calibration_error(y, p, sample_weight=w, n_bins=8) == pytest.approx(ours, abs=1e-9)


def test_a_map_outside_0_and_1_is_one_line():
    """What netcal returns is checked: a map that leaves [0, 1] is refused, not clipped."""
    fitted = NetcalCalibrator("netcal-bbq").fit(*rows(60))

    class Outside:
        def transform(self, p):
            return p + 0.5

    fitted.fitted_ = Outside()
    with pytest.raises(InputError, match=r"whose map stays in \[0, 1\]. Got 1.4 of 'netcal-bbq' at P = 0.9"):
        fitted.transform([0.2, 0.9])


def test_netcal_says_nothing(capsys):
    """Neither its progress bars nor its prints reach the terminal."""
    for kind in NETCAL_CALIBRATORS.values():
        kind().fit(*rows(60)).transform([0.5])
    message = capsys.readouterr()
    assert (message.out, message.err) == ("", "")


def test_a_fitted_chain_is_saved_and_scores_without_netcal(tmp_path, capsys):
    """A model file holds the table of P, so that scoring needs no netcal; fit names the calibrator."""
    path = tmp_path / "model.json"
    words = ["--simulated", "--recipe", "paper", "--sizes", "3", "--ensembler", "LogisticRegression"]
    assert fit([*words, "--calibrator", "netcal-platt", "--out", str(path)]) == 0
    assert "netcal-platt" in path.read_text()
    code = (
        "import sys; from deep import load; model = load(sys.argv[1]); "
        "import numpy as np; p = model.score(np.ones((1, 3), dtype=np.int8)); "
        "assert 'netcal' not in sys.modules; print(p)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 0


def test_weighted_recipes_are_refused_in_one_line(tmp_path, capsys):
    """Deep's recipe weighs datasets and classes, which netcal cannot."""
    words = ["--simulated", "--calibrator", "netcal-bbq", "--sizes", "3", "--ensembler", "LogisticRegression"]
    assert fit([*words, "--out", str(tmp_path / "model.json")]) == 2
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert "`calibrator` must be one of deep's own where rows are weighted. Got 'netcal-bbq'" in message
    assert "--recipe paper" in message
