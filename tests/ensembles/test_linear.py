"""Linear ensemblers: parity with scikit-learn on the repeated rows, and known values."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn import discriminant_analysis, linear_model

from deep.ensembles import LDA, LogisticRegression
from tests.contract.test_ensemblers import make_votes, make_weights, patterns


def signed(X: Any) -> Any:
    """Return votes as +1, -1, and 0 for none."""
    return np.where(np.asarray(X) == -1, 0.0, 2.0 * np.asarray(X) - 1.0)


def repeated() -> tuple[Any, Any, Any, Any, Any]:
    """Return votes, labels and whole weights, and the rows repeated by weight, signed."""
    X, y = make_votes()
    w = np.random.default_rng(0).integers(1, 6, len(y))
    return X, y, w, signed(np.repeat(X, w, axis=0)), np.repeat(y, w)


@pytest.mark.parametrize("C", [0.001, 1.0, 100.0])
def test_logistic_regression_equals_scikit_learns_on_repeated_rows(C: float) -> None:
    """Coefficients and intercept are those of another solver of the same library."""
    X, y, w, rows, labels = repeated()
    ours = LogisticRegression(C=C).fit(X, y, w)
    theirs = linear_model.LogisticRegression(C=C, tol=1e-10, max_iter=1000).fit(rows, labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_[0], abs=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X)[:, 1], theirs.predict_proba(signed(X))[:, 1], atol=1e-6)


def test_logistic_regression_is_at_its_optimum() -> None:
    """The gradient of summed log loss times C plus half the squared norm is 0, the intercept going free."""
    (X, y), w = make_votes(), make_weights()
    model = LogisticRegression(C=0.3).fit(X, y, w)
    residual = w * (y - model.predict_proba(X)[:, 1])
    np.testing.assert_allclose(0.3 * residual @ signed(X), model.coef_, rtol=0, atol=1e-9)
    assert residual.sum() == pytest.approx(0, abs=1e-9)


def test_logistic_regression_with_nothing_to_learn_is_silent() -> None:
    """Balanced labels and votes that say nothing give 0.5, although the solver starts at its optimum."""
    model = LogisticRegression().fit([[1], [1], [-1], [-1]], [0, 1, 0, 1], [2 / 3, 2 / 3, 0.1, 0.1])
    np.testing.assert_allclose(model.predict_proba(patterns(1))[:, 1], 0.5, atol=1e-6)


@pytest.mark.parametrize("solver", ["svd", "lsqr"])
def test_lda_equals_scikit_learns_on_repeated_rows(solver: str) -> None:
    """P of every pattern is that of either solver."""
    X, y, w, rows, labels = repeated()
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(solver=solver).fit(rows, labels)
    got = LDA().fit(X, y, w).predict_proba(patterns())
    np.testing.assert_allclose(got, theirs.predict_proba(signed(patterns())), rtol=0, atol=1e-6)


@pytest.mark.parametrize("shrinkage", [0.1, 0.5, 1.0])
def test_shrunken_lda_equals_scikit_learns_on_repeated_rows(shrinkage: float) -> None:
    """Shrinkage means what it means in scikit-learn."""
    X, y, w, rows, labels = repeated()
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(rows, labels)
    got = LDA(shrinkage=shrinkage).fit(X, y, w).predict_proba(patterns())
    np.testing.assert_allclose(got, theirs.predict_proba(signed(patterns())), rtol=0, atol=1e-6)


def test_lda_known_value() -> None:
    """Right 3 times in 4: class means ±1/2, variance 1 - 1/4, so a vote moves the log-odds by 1 / 0.75."""
    model = LDA().fit([[1], [0], [0], [1]], [1, 1, 0, 0], [3, 1, 3, 1])
    expected = [expit(-4 / 3), 0.5, expit(4 / 3)]
    np.testing.assert_allclose(model.predict_proba([[0], [-1], [1]])[:, 1], expected, atol=1e-7)


def test_lda_follows_a_voter_that_is_never_wrong() -> None:
    """Without any variance within classes the flawless voter still decides, against all others."""
    X, y = make_votes()
    votes = np.column_stack([y, X[:, :2]])
    assert LDA().fit(votes, y).predict([[1, 0, 0], [0, 1, 1]]).tolist() == [1, 0]
