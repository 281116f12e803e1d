"""AdaBoost: parity with scikit-learn on repeated rows and real votes, where it stops, and its parameters."""

from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from sklearn import ensemble

from deep.datasets import read_votes
from deep.ensembles import AdaBoost
from deep.features import merge_repeats, signed
from tests.ensembles.test_trees import COMPLETE, repeated


def test_ada_boost_equals_scikit_learns_on_repeated_rows() -> None:
    """The log-odds are scikit-learn's decision before it is divided by the stumps' total weight, and halved."""
    X, y, w, rows, labels = repeated()
    ours = AdaBoost(30, learning_rate=0.7).fit(X, y, w)
    theirs = ensemble.AdaBoostClassifier(n_estimators=30, learning_rate=0.7, random_state=0).fit(rows, labels)
    expected = theirs.decision_function(2.0 * COMPLETE - 1.0) * theirs.estimator_weights_.sum() / 2
    np.testing.assert_allclose(logit(ours.predict_proba(COMPLETE)[:, 1]), expected, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(ours.predict(COMPLETE), theirs.predict(2.0 * COMPLETE - 1.0))


def test_ada_boost_without_a_useful_stump_gives_the_share_of_labels() -> None:
    """Balanced labels and votes that say nothing are fitted, at every stage."""
    model = AdaBoost().fit([[1, 0], [1, 0]], [0, 1], [30, 30])
    assert model.predict_proba([[1, 0], [0, 1]])[:, 1].tolist() == [0.5, 0.5]
    assert model.staged_predict_proba([[1, 0]], [10, 50]).tolist() == [[0.5], [0.5]]


def test_ada_boost_stops_at_a_flawless_stump() -> None:
    """The only stump has scikit-learn's weight 1, and later stages repeat its probabilities."""
    model = AdaBoost().fit([[1], [0]], [1, 0], [30, 30])
    assert len(model.stumps_) == 1
    staged = model.staged_predict_proba([[1], [0]], [1, 10, 50])
    np.testing.assert_allclose(staged, [[expit(1), expit(-1)]] * 3)


def test_ada_boost_equals_scikit_learns_on_real_votes(data_home: Path) -> None:
    """Round for round, on the votes of nine judges of eleven datasets."""
    votes = read_votes([data_home / "llm_aggrefact" / "votes.parquet"])
    cells, labels, weights = merge_repeats(votes.votes[:, :9], votes.labels, np.ones(len(votes.labels)))
    rows = signed(cells)
    for learning_rate in (0.2, 1.0):
        ours = AdaBoost(50, learning_rate=learning_rate).fit(cells, labels, weights)
        theirs = ensemble.AdaBoostClassifier(n_estimators=50, learning_rate=learning_rate, random_state=0)
        theirs = theirs.fit(rows, labels, sample_weight=weights)
        np.testing.assert_allclose(ours.stump_weights_, theirs.estimator_weights_, rtol=0, atol=1e-9)
        for stump, other in zip(ours.stumps_, theirs.estimators_, strict=True):
            np.testing.assert_array_equal(stump.predict(rows), other.predict(rows) == 1)
