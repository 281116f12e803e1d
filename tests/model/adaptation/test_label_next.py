"""Which items to label: none twice, none with a label; and that the expected error means something."""

import numpy as np
import pytest
from scipy.special import expit, logit

from deep.exceptions import InputError
from deep.model import FewLabels, Misfit, propose_labels

MISFIT = Misfit(np.array([0.0, 1.0]), np.array([[0.6, 0.0], [0.0, 0.1]]), 10)

P = np.linspace(0.05, 0.95, 300)


def test_distinct_unlabeled_rows():
    """None twice, none that has a label; more labels are expected to leave less error."""
    labeled = np.arange(0, 300, 7)
    few, many = (propose_labels(P, MISFIT, n, labeled=labeled) for n in (10, 60))
    for result in (few, many):
        assert len(set(result.rows.tolist())) == len(result.rows)
        assert not set(result.rows.tolist()) & set(labeled.tolist())
    assert many.error_after < few.error_after < few.error_before


def test_the_expected_error_is_met():
    """Over worlds drawn from the misfit itself, the mean error after labeling is the expected one, within a tenth."""
    rng = np.random.default_rng(0)
    z = logit(P)
    errors, expected = [], []
    for seed in range(200):
        intercept, slope = rng.multivariate_normal([0, 1], MISFIT.covariance)
        truth = expit(intercept + slope * z)
        result = propose_labels(P, MISFIT, 40, random_state=seed)
        few = FewLabels(MISFIT).fit(P[result.rows], (rng.random(40) < truth[result.rows]).astype(int))
        errors.append(np.abs(few.transform(P) - truth).mean())
        expected.append(result.error_after)
    assert np.mean(errors) == pytest.approx(np.mean(expected), rel=0.12)


@pytest.mark.parametrize("n", [0, 301, 2.5])
def test_bad_numbers(n):
    """From 1 to the unlabeled items."""
    with pytest.raises(InputError, match="`n` must be a whole number from 1 to 300"):
        propose_labels(P, MISFIT, n)


def test_nothing_is_left_to_label():
    """It is said, and no range without a number in it."""
    with pytest.raises(InputError, match=r"`votes` must hold an item without a label. Got 300 items, all with one"):
        propose_labels(P, MISFIT, 1, labeled=range(300))
