"""Every ensembler, selector and calibrator inside scikit-learn: pipelines, cross-validation, grids, routed weights."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline

from deep.base import BasePromptSelector
from deep.calibration import CALIBRATORS
from deep.ensembles import ENSEMBLERS
from deep.features import SELECTORS

FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)
RNG = np.random.default_rng(7)
Y = RNG.permutation(np.repeat([0, 1], 45))
RATES = np.array([0.9, 0.8, 0.7, 0.6])
VOTES = np.where(RNG.random((90, 4)) < RATES, Y[:, None], 1 - Y[:, None])
VOTES = np.where(RNG.random((90, 4)) < 0.1, -1, VOTES).astype(np.int8)
WEIGHTS = RNG.integers(1, 4, 90).astype(float)
P = np.clip(0.25 + 0.5 * Y + RNG.normal(0, 0.2, 90), 0.01, 0.99)


@pytest.fixture
def routing() -> Iterator[None]:
    """Turn scikit-learn's metadata routing on."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def selector(name: str, n_prompts: int) -> BasePromptSelector:
    """Return a selector of so many voters."""
    return SELECTORS[name](n_prompts)


def by_hand(estimator: BaseEstimator, X: np.ndarray, method: str, weights: np.ndarray) -> np.ndarray:
    """Return the predictions of weighted fits, fold by fold."""
    result: list[np.ndarray] = [np.empty(0)] * len(X)
    for train, test in FOLDS.split(X, Y):
        fitted = clone(estimator).fit(X[train], Y[train], sample_weight=weights[train])
        for row, prediction in zip(test, getattr(fitted, method)(X[test]), strict=True):
            result[row] = prediction
    return np.array(result)


def wants_weights(estimator: BaseEstimator) -> BaseEstimator:
    """Return the estimator with a request for weights."""
    return estimator.set_fit_request(sample_weight=True)


@pytest.mark.parametrize("name", ENSEMBLERS)
def test_an_ensembler_is_cross_validated_with_weights(name: str, routing: None) -> None:
    """Routed weights reach every fit: the predictions are those of weighted fits by hand."""
    estimator = wants_weights(ENSEMBLERS[name]())
    result = cross_val_predict(estimator, VOTES, Y, cv=FOLDS, method="predict_proba", params={"sample_weight": WEIGHTS})
    np.testing.assert_allclose(result, by_hand(ENSEMBLERS[name](), VOTES, "predict_proba", WEIGHTS), atol=1e-9)
    assert result.shape == (90, 2)


@pytest.mark.parametrize("name", ENSEMBLERS)
def test_an_ensembler_works_behind_a_selector(name: str, routing: None) -> None:
    """In a pipeline on a data frame, cloned, with weights for both, and searched over the number of voters."""
    select, ensemble = wants_weights(SELECTORS["mrmr"](n_prompts=3)), wants_weights(ENSEMBLERS[name]())
    pipeline = Pipeline([("select", select), ("ensemble", ensemble)])
    scorer = make_scorer(balanced_accuracy_score).set_score_request(sample_weight=True)
    frame = pd.DataFrame(VOTES, columns=["a", "b", "c", "d"])
    search = GridSearchCV(pipeline, {"select__n_prompts": [3, 4]}, cv=FOLDS, scoring=scorer, error_score="raise")
    search.fit(frame, Y, sample_weight=WEIGHTS)
    best = search.best_estimator_
    kept = best["select"].get_feature_names_out()
    direct = ENSEMBLERS[name]().fit(frame[kept].to_numpy(), Y, WEIGHTS).predict_proba(frame[kept].to_numpy())
    np.testing.assert_allclose(best.predict_proba(frame), direct, atol=1e-9)
    assert 0.5 <= search.best_score_ <= 1
    assert clone(best).get_params()["select__n_prompts"] == search.best_params_["select__n_prompts"]


@pytest.mark.parametrize("name", ["LogisticRegression", "DawidSkene"])
def test_weights_that_are_not_requested_are_refused(name: str, routing: None) -> None:
    """By scikit-learn: they never vanish silently."""
    with pytest.raises(ValueError, match="sample_weight"):
        cross_val_score(ENSEMBLERS[name](), VOTES, Y, cv=FOLDS, params={"sample_weight": WEIGHTS})


@pytest.mark.parametrize("name", SELECTORS)
def test_a_selector_is_a_step_with_weights(name: str, routing: None) -> None:
    """What it selects in a pipeline is what it selects by itself, and weights count."""
    ensemble = wants_weights(ENSEMBLERS["LogisticRegression"]())
    pipeline = Pipeline([("select", wants_weights(selector(name, 2))), ("ensemble", ensemble)])
    pipeline.fit(VOTES, Y, sample_weight=WEIGHTS)
    alone = selector(name, 2).fit(VOTES, Y, WEIGHTS)
    np.testing.assert_array_equal(pipeline["select"].support_, alone.support_)
    result = cross_val_predict(pipeline, VOTES, Y, cv=FOLDS, method="predict_proba", params={"sample_weight": WEIGHTS})
    assert result.shape == (90, 2)
    by_last = np.where(VOTES[:, 3] == Y, 1.0, 1e-9)  # only rows on which the worst voter is right count
    assert selector(name, 1).fit(VOTES, Y, by_last).support_[3]
    assert not selector(name, 1).fit(VOTES, Y).support_[3]


@pytest.mark.parametrize("name", CALIBRATORS)
def test_a_calibrator_is_cross_validated_with_weights(name: str, routing: None) -> None:
    """Its input is P instead of votes; fits and routed weights are those by hand."""
    calibrator = wants_weights(CALIBRATORS[name]())
    assert list(calibrator.fit(P, Y).predict(P)) == list(calibrator.transform(P))
    result = cross_val_predict(calibrator, P, Y, cv=FOLDS, method="predict", params={"sample_weight": WEIGHTS})
    np.testing.assert_allclose(result, by_hand(CALIBRATORS[name](), P, "transform", WEIGHTS), atol=1e-12)
    assert ((result >= 0) & (result <= 1)).all()


@pytest.mark.parametrize("name", ["LogisticRegression", "XGB", "DawidSkene"])
def test_scikit_learns_calibration_takes_an_ensembler(name: str) -> None:
    """As any classifier of two classes."""
    calibrated = CalibratedClassifierCV(ENSEMBLERS[name](), cv=FOLDS).fit(VOTES, Y)
    assert calibrated.predict_proba(VOTES).shape == (90, 2)
    assert calibrated.score(VOTES, Y) > 0.7
