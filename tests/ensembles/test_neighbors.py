"""Nearest neighbours with ties shared: known values, and scikit-learn's mean over orders of the rows."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from deep.ensembles import KNeighbors, _classifiers
from tests.contract.test_ensemblers import make_votes, make_weights, patterns


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_is_scikit_learns_mean_over_all_orders_of_the_rows(k: int) -> None:
    """Over the 120 orders of five rows, scikit-learn's answers average to the one of shared ties."""
    X = np.array([[1, 1], [1, 0], [0, 1], [-1, 1], [1, 1]])
    y, asked = np.array([1, 0, 1, 1, 0]), patterns(2)
    signs, targets = (np.where(rows == -1, 0, 2 * rows - 1) for rows in (X, asked))
    theirs = [
        KNeighborsClassifier(k, algorithm="brute", metric="manhattan")
        .fit(signs[list(order)], y[list(order)])
        .predict_proba(targets)
        for order in permutations(range(5))
    ]
    got = KNeighbors(n_neighbors=k).fit(X, y).predict_proba(asked)
    np.testing.assert_allclose(got, np.mean(theirs, axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("n_neighbors", "expected"),
    [
        (2, 1.0),  # two of the three equal rows
        (3, 1.0),  # all three
        (4, (3 + 1 / 4) / 4),  # and a quarter of the four at distance 2, of which one is 1
        (3.5, (3 + 1 / 8) / 3.5),  # and an eighth of them
        (7, 4 / 7),
        (8, 4 / 8),  # and the one at distance 4
        (1000, 4 / 8),  # there are no more
    ],
)
def test_neighbours_are_counted_by_weight(n_neighbors: float, expected: float) -> None:
    """Weight 3 is three neighbours, and what does not fit is shared by all at that distance."""
    model = KNeighbors(n_neighbors=n_neighbors).fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0], [3, 1, 3, 1])
    assert model.predict_proba([[1, 1]])[0, 1] == pytest.approx(expected)


def test_rows_asked_in_blocks_get_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many distances are held at once changes nothing."""
    model = KNeighbors(n_neighbors=20).fit(*make_votes(), make_weights())
    whole = model.predict_proba(patterns())
    monkeypatch.setattr(_classifiers, "MAX_DISTANCES_HELD", 1)
    np.testing.assert_allclose(model.predict_proba(patterns()), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_neighbors", [1, 40, 1e6])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_the_table_of_all_patterns_gives_what_pairs_of_rows_give(
    monkeypatch: pytest.MonkeyPatch, k: int, n_neighbors: float
) -> None:
    """The way that is quicker is taken, and both are exact."""
    rng = np.random.default_rng(k)
    X, y, w = rng.integers(-1, 2, (600, k)), rng.integers(0, 2, 600), rng.uniform(0, 2, 600)
    asked = rng.integers(-1, 2, (20_000, k))
    model = KNeighbors(n_neighbors=n_neighbors).fit(X, y, w)
    calls: list[int] = []
    by_table = _classifiers._weights_of_all_patterns
    monkeypatch.setattr(_classifiers, "_weights_of_all_patterns", lambda *given: calls.append(1) or by_table(*given))
    whole = model.predict_proba(asked)
    assert calls
    monkeypatch.setattr(_classifiers, "MAX_TABLE_CELLS", 0)
    np.testing.assert_allclose(model.predict_proba(asked), whole, rtol=0, atol=1e-12)
    assert len(calls) == 1


def test_training_rows_are_kept_once() -> None:
    """What is stored grows with the distinct rows, not with the rows."""
    X, y = make_votes()
    model = KNeighbors().fit(np.tile(X, (10, 1)), np.tile(y, 10))
    assert len(model.patterns_) == len(np.unique(X, axis=0))
    np.testing.assert_allclose(model.counts_.sum(axis=0), [10 * np.sum(y == 0), 10 * np.sum(y == 1)])
