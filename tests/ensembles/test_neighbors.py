"""Nearest neighbours and the support vector machine: scikit-learn's answers, ties shared, and known values."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn import svm
from sklearn.neighbors import KNeighborsClassifier

from deep.ensembles import SVC, KNeighbors, _classifiers
from deep.ensembles._classifiers import _decisions
from tests.contract.test_ensemblers import make_votes, make_weights, patterns
from tests.ensembles.test_linear import signed


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
    monkeypatch.setattr(_classifiers, "BLOCK", 1)
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
    by_table = _classifiers._weights_of_all
    monkeypatch.setattr(_classifiers, "_weights_of_all", lambda *given: calls.append(1) or by_table(*given))
    whole = model.predict_proba(asked)
    assert calls
    monkeypatch.setattr(_classifiers, "TABLE", 0)
    np.testing.assert_allclose(model.predict_proba(asked), whole, rtol=0, atol=1e-12)
    assert len(calls) == 1


def test_training_rows_are_kept_once() -> None:
    """What is stored grows with the distinct rows, not with the rows."""
    X, y = make_votes()
    model = KNeighbors().fit(np.tile(X, (10, 1)), np.tile(y, 10))
    assert len(model.patterns_) == len(np.unique(X, axis=0))
    np.testing.assert_allclose(model.counts_.sum(axis=0), [10 * np.sum(y == 0), 10 * np.sum(y == 1)])


@pytest.mark.parametrize("C", [1.0, 30.0])
def test_decision_equals_scikit_learns_on_repeated_rows(C: float) -> None:
    """The decision values are scikit-learn's, whose C is ours over the number of rows."""
    X, y = make_votes()
    w = np.random.default_rng(0).integers(1, 6, len(y))
    ours = SVC(C=C, gamma=0.2).fit(X, y, w)
    theirs = svm.SVC(C=C / w.sum(), gamma=0.2, tol=1e-6).fit(signed(np.repeat(X, w, axis=0)), np.repeat(y, w))
    rows = signed(patterns())
    np.testing.assert_allclose(ours.model_.decision_function(rows), theirs.decision_function(rows), rtol=0, atol=1e-5)


def test_kernel_width_is_the_weighted_variance() -> None:
    """Columns of 1 in 3/4 and 1/2 of the weight: variances 1 - 1/4 and 1 - 0, so gamma is 1 / 1.75."""
    model = SVC().fit([[1, 1], [0, 0], [1, 0]], [1, 0, 1], [2, 1, 1])
    assert model.model_.gamma == pytest.approx(1 / 1.75)
    assert SVC(gamma=0.3).fit([[1], [0]], [1, 0]).model_.gamma == 0.3


def test_number_of_rows_changes_neither_margin_nor_effort() -> None:
    """A thousand times the rows give the same decision after as many steps of the solver."""
    (X, y), w = make_votes(), make_weights()
    few, many = SVC().fit(X, y, w), SVC().fit(X, y, 1000 * w)
    rows = signed(patterns())
    got = many.model_.decision_function(rows)
    np.testing.assert_allclose(got, few.model_.decision_function(rows), rtol=0, atol=1e-5)
    assert many.model_.n_iter_[0] < 2 * few.model_.n_iter_[0]


def test_sigmoid_is_the_best_for_softened_labels() -> None:
    """Weighted residuals against Platt's targets are orthogonal to 1 and to the decision values."""
    (X, y), w = make_votes(), make_weights()
    model = SVC().fit(X, y, w)
    total = np.bincount(y, weights=w)
    target = np.where(y == 1, (total[1] + 1) / (total[1] + 2), 1 / (total[0] + 2))
    residual = w * (target - model.predict_proba(X)[:, 1])
    assert residual.sum() == pytest.approx(0, abs=1e-4)
    assert residual @ model.model_.decision_function(signed(X)) == pytest.approx(0, abs=1e-4)
    assert model.sigmoid_[0] > 0


def test_flawless_votes_get_platts_targets() -> None:
    """Of 9 and 4 rows, all separable, P reaches (9 + 1) / (9 + 2) and 1 / (4 + 2), not 1 and 0."""
    model = SVC().fit([[1, 1], [0, 0]], [1, 0], [9, 4])
    np.testing.assert_allclose(model.predict_proba([[1, 1], [0, 0]])[:, 1], [10 / 11, 1 / 6], atol=1e-6)


def test_votes_that_say_nothing_leave_the_prior() -> None:
    """Where no decision is possible, P is the share of Platt's targets and nothing warns."""
    p = SVC().fit([[1, 0], [1, 0], [0, 1], [0, 1]], [0, 1, 0, 1], [2 / 3] * 4).predict_proba(patterns(2))[:, 1]
    np.testing.assert_allclose(p, 0.5, atol=1e-6)


def test_decisions_are_scikit_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked up by distance, in blocks, to the last digits; of abstains too."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(-1, 2, (300, 4)).astype(np.int8), rng.integers(0, 2, 300)
    model = SVC().fit(X, y)
    votes = signed(X)
    monkeypatch.setattr("deep.ensembles._classifiers.BLOCK", 1_000)
    result = _decisions(model.model_, model.model_.gamma, votes)
    np.testing.assert_allclose(result, model.model_.decision_function(votes), atol=1e-12)


def many_rows(n: int) -> tuple[Any, Any, Any]:
    """Return distinct rows of nine voters, labels that they tell of, and weights."""
    rng = np.random.default_rng(1)
    X = np.unique(rng.integers(-1, 2, (n, 9)), axis=0)
    y = (signed(X).sum(axis=1) + rng.normal(size=len(X)) > 0).astype(int)
    return X, y, rng.uniform(0.5, 3, len(X))


def test_of_too_many_rows_as_many_are_drawn_and_they_decide_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The draws keep each class's weight, are the same in every fit, and decide alike; up to the limit all count."""
    X, y, w = many_rows(1_500)
    whole = SVC().fit(X, y, w).predict_proba(X)[:, 1]
    monkeypatch.setattr(_classifiers, "MOST_ROWS", len(X))
    np.testing.assert_array_equal(SVC().fit(X, y, w).predict_proba(X)[:, 1], whole)
    monkeypatch.setattr(_classifiers, "MOST_ROWS", 500)
    model, order = SVC().fit(X, y, w), np.random.default_rng(2).permutation(len(X))
    assert model.model_.shape_fit_[0] <= 500
    drawn = _classifiers._drawn(y, w)
    np.testing.assert_allclose(np.bincount(y, weights=drawn), np.bincount(y, weights=w))
    again = SVC().fit(X[order], y[order], w[order]).predict_proba(X)[:, 1]
    np.testing.assert_allclose(again, model.predict_proba(X)[:, 1], rtol=0, atol=1e-6)
    assert np.mean((again >= 0.5) == (whole >= 0.5)) > 0.9


def test_a_rare_class_is_drawn_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """One draw at least: without it there would be nothing to tell apart."""
    monkeypatch.setattr(_classifiers, "MOST_ROWS", 50)
    X, y, w = many_rows(400)
    rare = np.where(y == 1, w * 1e-6, w)
    assert np.isfinite(SVC().fit(X, y, rare).predict_proba(X)).all()
