"""Log-odds and back without SciPy, beside SciPy."""

import numpy as np
import pytest
from scipy import special

from deep._util.odds import expit, logit


def test_expit_is_scipys():
    """To the last digits, at both ends too, and silent where exp overflows."""
    z = np.concatenate([np.linspace(-40, 40, 10_001), [-1e6, -745.0, -710.0, 710.0, 1e6, -np.inf, np.inf]])
    np.testing.assert_allclose(expit(z), special.expit(z), rtol=1e-15, atol=0)
    assert np.isnan(expit(np.nan))
    assert expit(0).shape == ()


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_expit_keeps_the_shape_and_the_input(shape):
    """Whatever the strides; integers and lists are taken."""
    z = np.full(shape, 2.0)
    assert expit(z).shape == shape
    assert (z == 2.0).all()
    assert expit([0, 1]).tolist() == special.expit([0.0, 1.0]).tolist()
    wide = np.arange(12.0).reshape(3, 4)[:, ::2]
    np.testing.assert_allclose(expit(wide), special.expit(wide), rtol=1e-15)


def test_logit_is_the_inverse():
    """Where probabilities are not held off 0 and 1."""
    z = np.linspace(-13, 13, 101)
    np.testing.assert_allclose(logit(expit(z)), z, rtol=1e-9)
