"""Support vector classifier: parity of its decision with scikit-learn, and its sigmoid."""

from typing import Any

import numpy as np
import pytest
from sklearn import svm

from deep.ensembles import SVC, _classifiers
from deep.ensembles._classifiers import _decision_function
from tests.contract.test_ensemblers import make_votes, make_weights, patterns
from tests.ensembles.test_linear import signed


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
    monkeypatch.setattr("deep.ensembles._classifiers.MAX_DISTANCES_HELD", 1_000)
    result = _decision_function(model.model_, model.model_.gamma, votes)
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
    monkeypatch.setattr(_classifiers, "MAX_SVC_ROWS", len(X))
    np.testing.assert_array_equal(SVC().fit(X, y, w).predict_proba(X)[:, 1], whole)
    monkeypatch.setattr(_classifiers, "MAX_SVC_ROWS", 500)
    model, order = SVC().fit(X, y, w), np.random.default_rng(2).permutation(len(X))
    assert model.model_.shape_fit_[0] <= 500
    drawn = _classifiers._draw_row_weights(y, w)
    np.testing.assert_allclose(np.bincount(y, weights=drawn), np.bincount(y, weights=w))
    again = SVC().fit(X[order], y[order], w[order]).predict_proba(X)[:, 1]
    np.testing.assert_allclose(again, model.predict_proba(X)[:, 1], rtol=0, atol=1e-6)
    assert np.mean((again >= 0.5) == (whole >= 0.5)) > 0.9


def test_a_rare_class_is_drawn_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """One draw at least: without it there would be nothing to tell apart."""
    monkeypatch.setattr(_classifiers, "MAX_SVC_ROWS", 50)
    X, y, w = many_rows(400)
    rare = np.where(y == 1, w * 1e-6, w)
    assert np.isfinite(SVC().fit(X, y, rare).predict_proba(X)).all()
