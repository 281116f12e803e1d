"""Trees: parity with scikit-learn on the repeated rows, abstains, and the forest's draws."""

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn import config_context, ensemble, tree

from deep.base import BaseEnsembler, StagedEnsembler
from deep.ensembles import AdaBoost, DecisionTree, GradientBoosting, RandomForest
from deep.exceptions import InputError
from deep.features import merge_repeats
from tests.contract.test_ensemblers import make_votes, patterns

COMPLETE = patterns()[(patterns() != -1).all(axis=1)]


def repeated() -> tuple[Any, Any, Any, Any, Any]:
    """Return complete votes, labels and whole weights without ties, and the rows repeated by weight, signed."""
    X, y = make_votes(abstains=0.0)
    w = np.random.default_rng(0).integers(1, 9, len(y))
    return X, y, w, 2.0 * np.repeat(X, w, axis=0) - 1.0, np.repeat(y, w)


def one_of(theirs: Any) -> Any:
    """Return P(consistent) of every complete pattern from an estimator of scikit-learn."""
    return theirs.predict_proba(2.0 * COMPLETE - 1.0)[:, 1]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("max_depth", [None, 3])
def test_decision_tree_equals_scikit_learns_on_repeated_rows(share: float, max_depth: int | None) -> None:
    """P of every pattern is scikit-learn's."""
    X, y, w, rows, labels = repeated()
    ours = DecisionTree(max_depth, min_weight_fraction_leaf=share).fit(X, y, w)
    theirs = tree.DecisionTreeClassifier(max_depth=max_depth, min_weight_fraction_leaf=share, random_state=0)
    got = ours.predict_proba(COMPLETE)[:, 1]
    np.testing.assert_allclose(got, one_of(theirs.fit(rows, labels)), rtol=0, atol=1e-12)


def test_leaf_size_is_a_share_of_the_weight() -> None:
    """One cell is a leaf where it weighs enough, however few rows of the table it is."""
    X, y = [[1], [0]], [1, 0]
    assert DecisionTree(min_weight_fraction_leaf=0.1).fit(X, y, [900, 100]).predict_proba([[0]])[0, 1] == 0
    p = DecisionTree(min_weight_fraction_leaf=0.1).fit(X, y, [901, 99]).predict_proba([[0]])[0, 1]
    assert p == pytest.approx(0.901)


def test_merged_weights_do_not_depend_on_the_order_of_rows() -> None:
    """Not even by rounding, which (0.1 + 0.2) + 0.3 shows: cells in one order, summed in one order."""
    X, y = np.array([[1], [1], [1], [0]], dtype=np.int8), np.array([1, 1, 1, 0], dtype=np.int8)
    w = np.array([0.1, 0.2, 0.3, 1.0])
    merged = [merge_repeats(X[order], y[order], w[order]) for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 2, 0])]
    for votes, labels, weights in merged:
        assert (votes.tolist(), labels.tolist()) == ([[0], [1]], [0, 1])
        assert weights.tolist() == merged[0][2].tolist()


@pytest.mark.parametrize("kind", [DecisionTree, RandomForest, GradientBoosting, AdaBoost])
def test_unheard_abstains_take_both_sides(kind: type[BaseEnsembler]) -> None:
    """Where training rows are complete, no vote is the mean of vote 1 and vote 0."""
    model = kind().fit([[1], [0]] * 2, [1, 1, 0, 0], [90, 20, 10, 80])
    said_0, said_1, silent = model.predict_proba([[0], [1], [-1]])[:, 1]
    assert said_0 < 0.35 < 0.65 < said_1
    assert silent == pytest.approx((said_0 + said_1) / 2)


@pytest.mark.parametrize("kind", [DecisionTree, RandomForest, GradientBoosting])
def test_abstains_heard_in_training_are_a_value_of_their_own(kind: type[BaseEnsembler]) -> None:
    """Where silence is what marks label 1, it is learned, between two votes that both mark label 0."""
    model = kind().fit([[1], [0], [-1]], [0, 0, 1], [100, 101, 102])
    assert model.predict([[1], [0], [-1]]).tolist() == [0, 0, 1]


def test_gradient_boosting_equals_scikit_learns_on_repeated_rows() -> None:
    """P of every pattern after 10 and after 40 rounds is scikit-learn's."""
    X, y, w, rows, labels = repeated()
    ours = GradientBoosting(40, learning_rate=0.2, max_depth=3).fit(X, y, w)
    staged = ours.staged_predict_proba(COMPLETE, [10, 40])
    for rounds, got in zip((10, 40), staged, strict=True):
        theirs = ensemble.GradientBoostingClassifier(n_estimators=rounds, learning_rate=0.2, random_state=0)
        np.testing.assert_allclose(got, one_of(theirs.fit(rows, labels)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("max_depth", [1, 3, 8])
def test_gradient_boosting_with_abstains_equals_scikit_learns(max_depth: int) -> None:
    """Where abstains were heard in training, P of the training rows is scikit-learn's on the same weighted rows."""
    X, y = make_votes(abstains=0.2)
    w = np.random.default_rng(0).integers(1, 9, len(y))
    ours = GradientBoosting(30, max_depth=max_depth).fit(X, y, w).predict_proba(X)[:, 1]
    cells, labels, weights = merge_repeats(X, y.astype(np.int8), w.astype(float))
    theirs = ensemble.GradientBoostingClassifier(n_estimators=30, max_depth=max_depth, random_state=0)
    theirs.fit(np.where(cells < 0, 0, 2 * cells - 1), labels, sample_weight=weights)
    expected = theirs.predict_proba(np.where(X < 0, 0, 2 * X - 1))[:, 1]
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", [AdaBoost, GradientBoosting])
@pytest.mark.parametrize("stage", [0, 8])
def test_stages_lie_within_the_rounds(kind: type[StagedEnsembler], stage: int) -> None:
    """A stage that was never fitted is refused."""
    model = kind(n_estimators=7).fit([[1], [0], [1]], [1, 0, 0])
    with pytest.raises(InputError, match=rf"`stages` must be between 1 and `n_estimators`=7. Got {stage}"):
        model.staged_predict_proba([[1]], [stage])


def test_random_forest_draws_as_many_rows_as_there_are() -> None:
    """Every tree sees round(sum of weights) rows, drawn in proportion to the weights."""
    forest = RandomForest(n_estimators=200).fit([[1], [0], [0]], [1, 1, 0], [10.2, 20.4, 69.6])
    counts = np.array([one.tree_.weighted_n_node_samples[0] for one in forest.trees_])
    assert (counts == 100).all()
    # The share of label 1 that a tree drew: mean 0.306, and sd 0.046 / sqrt(200) = 0.003 of the mean over trees.
    roots = np.array([one.tree_.value[0, 0, 0] for one in forest.trees_])
    assert roots.mean() == pytest.approx(0.306, abs=0.015)
    assert roots.std() == pytest.approx(0.046, abs=0.01)


def test_random_forest_does_not_grow_with_the_weights() -> None:
    """Trees on 10^12 rows are drawn without drawing a row."""
    forest = RandomForest(n_estimators=5).fit(*make_votes(), np.full(300, 1e12 / 300))
    assert forest.trees_[0].tree_.weighted_n_node_samples[0] == pytest.approx(1e12)


def test_random_forest_agrees_with_scikit_learns_on_repeated_rows() -> None:
    """Averaged over seeds, P of the patterns is that of scikit-learn's forest up to the noise of drawing."""
    X, y, w, rows, labels = repeated()
    ours, theirs = [], []
    for seed in range(4):
        ours.append(RandomForest(60, random_state=seed).fit(X, y, w).predict_proba(COMPLETE)[:, 1])
        forest = ensemble.RandomForestClassifier(60, min_weight_fraction_leaf=0.01, random_state=seed)
        theirs.append(one_of(forest.fit(rows, labels)))
    gap = np.mean(ours, axis=0) - np.mean(theirs, axis=0)
    # A tree's P has an sd of about 0.2 between seeds, the mean of 240 trees 0.013, a difference of two 0.018.
    assert np.abs(gap).max() < 0.07
    assert abs(gap.mean()) < 0.01


def test_random_forest_serves_draws_without_one_class() -> None:
    """A tree whose draw held one label only still votes, between the two labels."""
    p = RandomForest().fit([[1], [0]], [1, 0]).predict_proba([[1], [0]])[:, 1]
    assert 0.5 < p[0] < 1
    assert 0 < p[1] < 0.5


def test_weights_are_checked_by_scikit_learn_again_after_a_fit() -> None:
    """Only weights that need no check pass unchecked, only while a fit of deep runs."""
    from sklearn.tree import _classes

    check = _classes._check_sample_weight
    with config_context(skip_parameter_validation=True, assume_finite=True):
        known = np.array([1.0, 2.0])
        assert _classes._check_sample_weight(known, np.ones((2, 1)), dtype=np.float64) is known
        assert _classes._check_sample_weight([1, 2], np.ones((2, 1)), dtype=np.float64).tolist() == [1.0, 2.0]
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples|incompatible|shape"):
            _classes._check_sample_weight([1, 2, 3], np.ones((2, 1)), dtype=np.float64)
    assert _classes._check_sample_weight is check


def test_a_version_of_scikit_learn_without_that_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a version without it only the other checks are switched off."""
    from sklearn.tree import _classes

    monkeypatch.delattr(_classes, "_check_sample_weight")
    with config_context(skip_parameter_validation=True, assume_finite=True):
        assert not hasattr(_classes, "_check_sample_weight")
        assert sklearn.get_config()["assume_finite"]
