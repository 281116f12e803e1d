"""Voters are chosen on training data, by the selector asked for."""

import numpy as np
import pytest

from deep.exceptions import InputError
from deep.features import installed_mrmr
from deep.model import RECIPES, choose_subsets, training_set
from deep.records import VoteMatrix


def good_and_noise(seed=0, n=900):
    """Return votes of three datasets where voters 1 and 3 know something and the other four guess."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, size=n)
    votes = rng.integers(0, 2, size=(n, 6))
    for column, skill in ((1, 0.9), (3, 0.8)):
        votes[:, column] = np.where(rng.random(n) < skill, labels, 1 - labels)
    return VoteMatrix(votes, range(n), [f"v{j}" for j in range(6)], rng.choice(["a", "b", "c"], size=n), labels)


@pytest.fixture(scope="module")
def training():
    """Return the training set of `good_and_noise`."""
    return training_set(good_and_noise(), RECIPES["deep"])


@pytest.mark.parametrize("selector", ["auto", "mrmr", "rfe"])
def test_informative_voters_are_found(training, selector):
    """Every selector takes the two voters that know something."""
    (subset,) = choose_subsets(training, [2], selector=selector)
    assert subset.columns == (1, 3)
    assert subset.selector in ({installed_mrmr(), "rfe"} if selector == "auto" else {selector})


def test_sizes_beyond_the_voters_take_all(training):
    """Asking for as many voters as there are is no choice."""
    subsets = choose_subsets(training, [2, 6])
    assert [(len(s.columns), s.selector) for s in subsets][1] == (6, "all")


def test_unknown_selector(training):
    """The error lists the selectors."""
    with pytest.raises(InputError, match=r"`selector` must be one of auto, mrmr, mrmr-selection, rfe. Got 'lasso'"):
        choose_subsets(training, [2], selector="lasso")
