"""The quantile of Student's t that intervals reach to, beside SciPy's."""

import pytest
from scipy.special import stdtrit

from deep.model._misfit import student_quantile


def test_it_is_scipys():
    """By a finite series for whole degrees of freedom, odd and even; older releases of SciPy are off by 2e-11."""
    for degrees in [*range(1, 40), 100, 101, 999, 1000, 2.5, 7.25]:
        assert student_quantile(degrees) == pytest.approx(stdtrit(degrees, 0.95), rel=1e-10)
