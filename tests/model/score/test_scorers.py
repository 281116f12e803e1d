"""Fitted members as written-down arrays, against the libraries that fitted them and sums by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from deep.ensembles import RandomForest
from deep.features import Linear, Rows, average_over_abstains
from deep.model import Trees, VoteForest, VoteSum
from deep.model._blend import most_discriminating_judges
from tests.model.stack.test_members_values import panel, unlabeled


def shares(tree):
    """Return the share of class 1 in every node of a fitted tree."""
    return tree.value[:, 0, 1] / tree.value[:, 0].sum(axis=1)


def on(votes=None, evidence=None):
    """Return rows of votes or of evidence."""
    n = len(evidence if votes is None else votes)
    votes = np.zeros((n, 1), np.int8) if votes is None else votes
    return Rows(votes, np.empty((n, 0)) if evidence is None else evidence, np.ones(n))


@pytest.mark.parametrize("depth", [None, 1, 4])
def test_a_tree_says_what_scikit_learn_says(depth):
    """On new rows, on rows at the very thresholds, and a float next to them."""
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(300, 4)).round(2), rng.integers(0, 2, 300)
    model = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(features, labels)
    trees = Trees.from_sklearn([model.tree_], shares)
    edges = np.repeat(model.tree_.threshold[:, None], 4, axis=1)
    new = np.vstack([rng.normal(size=(500, 4)), edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    np.testing.assert_allclose(trees.mean(new), model.predict_proba(new)[:, 1], rtol=0, atol=1e-12)


@given(st.integers(0, 1000), st.integers(1, 12), st.integers(1, 5))
def test_a_forest_says_what_scikit_learn_says(seed, n_trees, n_features):
    """For any numbers of trees and of features, weights among them."""
    rng = np.random.default_rng(seed)
    features, labels = rng.normal(size=(80, n_features)), np.r_[0, 1, rng.integers(0, 2, 78)]
    model = RandomForestClassifier(n_trees, max_depth=5, random_state=seed)
    model.fit(features, labels, sample_weight=rng.random(80) + 0.1)
    trees = Trees.from_sklearn([one.tree_ for one in model.estimators_], shares)
    new = rng.normal(size=(60, n_features))
    np.testing.assert_allclose(trees.mean(new), model.predict_proba(new)[:, 1], rtol=0, atol=1e-12)
    assert len(trees.roots) == n_trees


def test_the_forest_on_votes_says_what_the_ensembler_says():
    """No vote is the mean of what lies on either side, as in `average_over_abstains`."""
    rows, new = panel(0, n_voters=4), panel(1, n_datasets=1, n_voters=4)
    model = RandomForest(20, max_depth=4, random_state=0).fit(rows.votes, rows.labels, sample_weight=rows.balanced())
    trees = Trees.from_sklearn([one.tree_ for one in model.trees_], lambda tree: tree.value[:, 0, 0])
    p = model.predict_proba(new.votes)[:, 1]
    assert (new.votes == -1).any(axis=1).sum() > 5
    np.testing.assert_allclose(average_over_abstains(new.votes, trees.mean), p, rtol=0, atol=1e-12)
    result = VoteForest(trees)(unlabeled(new))
    np.testing.assert_allclose(result, logit(np.clip(p, 1e-3, 1 - 1e-3)), rtol=0, atol=1e-9)


def test_a_forest_of_one_leaf_says_its_share():
    """There is nothing to compare."""
    leaf = np.zeros(1, dtype=np.intp)
    trees = Trees(leaf - 1, np.zeros(1), leaf, leaf, np.array([0.3]), leaf)
    assert trees.mean(np.zeros((3, 2))).tolist() == [0.3] * 3
    certain = Trees(leaf - 1, np.zeros(1), leaf, leaf, np.array([1.0]), leaf)
    assert VoteForest(certain)(on(np.ones((2, 2), np.int8))) == pytest.approx([logit(0.999)] * 2)


def test_a_sum_over_votes_is_held_within_a_thousandth():
    """Log-odds of 0.001 and 0.999 are the most that votes say; no vote adds nothing."""
    scorer = VoteSum(Linear(0.5, np.array([2.0, 30.0]), np.array([-1.0, -30.0])))
    votes = np.array([[1, -1], [0, -1], [-1, -1], [-1, 1], [-1, 0]], dtype=np.int8)
    limit = np.log(999)
    assert scorer(on(votes)) == pytest.approx([2.5, -0.5, 0.5, limit, -limit])


def test_a_sum_over_evidence_by_hand():
    """Evidence of x is a vote of 1 by (1 + x) / 2, of 0 for the rest; none adds nothing."""
    scorer = VoteSum(Linear(0.5, np.array([2.0, 4.0]), np.array([-1.0, -4.0])))
    evidence = np.array([[1.0, np.nan], [-1.0, np.nan], [0.0, 0.5], [np.nan, np.nan]])
    assert scorer(on(evidence=evidence)) == pytest.approx([2.5, -0.5, 0.5 + 0.5 + 2.0, 0.5])


def test_a_forest_on_evidence_takes_none_for_0():
    """One split at 0 of the second column."""
    trees = Trees(*(np.array(v) for v in ([1, -1, -1], [0.0, 0, 0], [1, 1, 2], [2, 1, 2], [0.0, 0.2, 0.9], [0])))
    result = VoteForest(trees)(on(evidence=np.array([[0.9, -0.6], [0.1, 0.8], [0.1, np.nan]])))
    assert expit(result) == pytest.approx([0.2, 0.9, 0.2])


def test_the_strongest_scorer_is_that_of_the_largest_area():
    """An inverted one is as strong; areas are counted pair by pair."""
    rows = panel(4, n_scorers=3)
    inverted = rows.evidence * [1, 1, -1]
    result = most_discriminating_judges(rows.__class__(rows.votes, inverted, rows.weights, rows.labels, rows.groups), 3)
    areas = np.zeros(3)
    for group in range(3):
        one, zero = ((rows.groups == group) & (rows.labels == label) for label in (1, 0))
        above = inverted[one][:, None] > inverted[zero]
        areas += np.einsum("i,ijk,j->k", rows.weights[one], above, rows.weights[zero]) / (
            rows.weights[one].sum() * rows.weights[zero].sum()
        )
    assert result == np.argsort(-abs(areas - 1.5)).tolist()
