"""Trees walked by scikit-learn, against the same trees in numpy: the same to the last bit."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from deep.features import Rows
from deep.model import Blend, Part, Trees, _blend
from deep.model.stack import Stack
from tests.model.fitted import identity
from tests.model.score.test_scorers import shares
from tests.model.stack.test_members_values import panel, unlabeled


def forest(seed, n_trees, n_features, n=90, **settings):
    """Return the trees of a forest on random rows, and new rows: any, and those at thresholds or a float beside."""
    rng = np.random.default_rng(seed)
    features, labels = rng.normal(size=(n, n_features)).round(1), np.r_[0, 1, rng.integers(0, 2, n - 2)]
    model = RandomForestClassifier(n_trees, random_state=seed, **settings).fit(features, labels)
    trees = Trees.from_sklearn([one.tree_ for one in model.estimators_], shares)
    edges = np.repeat(trees.threshold[:, None], n_features, axis=1)
    beside = [np.nextafter(edges.astype(np.float32), np.float32(way)) for way in (-np.inf, np.inf)]
    return trees, np.vstack([rng.normal(size=(50, n_features)), edges, *beside, np.full((1, n_features), -1e30)])


def in_numpy(trees, rows):
    """Return the mean P by the walk in numpy."""
    single, plain = rows.astype(np.float32), replace(trees)
    leaves = plain._leaves(single, plain.roots)
    total = np.zeros(len(rows))
    for start in range(0, len(leaves), 2):
        total += plain.p[leaves[start : start + 2]].sum(axis=0)
    return total / len(leaves)


@pytest.fixture
def always(monkeypatch):
    """Take scikit-learn's walk from the first row on, a few rows at a time."""
    monkeypatch.setattr(_blend, "MIN_ROWS_FOR_SKLEARN", 0)
    monkeypatch.setattr(_blend, "ROWS_PER_BATCH", 64)
    monkeypatch.setattr(_blend, "ROWS_PER_BATCH", 64)


@pytest.mark.usefixtures("always")
@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 5), st.integers(1, 6))
def test_many_rows_get_the_p_of_few(seed, n_trees, n_features, depth):
    """For any forest, on rows at its very thresholds too; the P of the leaves is added up in the same order."""
    trees, rows = forest(seed, n_trees, n_features, max_depth=depth)
    assert (trees.mean(rows) == in_numpy(trees, rows)).all()


@pytest.mark.usefixtures("always")
@given(st.integers(0, 100))
def test_thresholds_lie_between_floats(seed):
    """In double precision anywhere: a float32 goes the way that the threshold sends it."""
    rng = np.random.default_rng(seed)
    trees, _ = forest(seed, 4, 2, max_depth=3)
    moved = replace(trees, threshold=rng.normal(size=len(trees.threshold)))
    single = moved.threshold.astype(np.float32)
    rows = np.repeat([single, *(np.nextafter(single, np.float32(way)) for way in (-9, 9))], 2, axis=0).reshape(2, -1).T
    assert (moved.mean(rows) == in_numpy(moved, rows)).all()


def test_few_rows_load_no_scikit_learn():
    """One text is scored without it; the same trees are made ready once, at the first call of many rows."""
    trees, rows = forest(0, 5, 3, max_depth=4)
    many = np.resize(rows, (_blend.MIN_ROWS_FOR_SKLEARN, 3))
    trees.mean(many[1:])
    assert "_compiled" not in vars(trees)
    result = trees.mean(many)
    assert "_compiled" in vars(trees)
    assert (result == np.resize(in_numpy(trees, rows), len(many))).all()


@pytest.mark.usefixtures("always")
def test_trees_are_sent_to_another_process():
    """With or without what was made of them."""
    trees, rows = forest(0, 4, 3, max_depth=4)
    result = trees.mean(rows)
    assert (pickle.loads(pickle.dumps(trees)).mean(rows) == result).all()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_all_members_at_once_say_what_each_says(missing):
    """Of evidence row by row; none is neutral."""
    train, new = panel(0, n_scorers=5), panel(1, n_datasets=1, n_scorers=5)
    rng = np.random.default_rng(0)
    for rows in (train, new):
        rows.evidence[rng.random(rows.evidence.shape) < missing] = np.nan
    blend = Stack().fit(train.evidence, train.labels, groups=train.groups, answer_map=identity(5)).blend_
    rows = unlabeled(new)
    each = np.array([part.scorer(rows) for part in blend.parts])
    np.testing.assert_allclose(blend.raw(rows), each, rtol=0, atol=1e-12)
    turned = Blend(tuple(Part(part.name, part.scorer) for part in blend.parts[::-1]))
    np.testing.assert_allclose(turned.raw(rows), each[::-1], rtol=0, atol=1e-12)
    few = Rows(rows.votes[:3], rows.evidence[:3], rows.weights[:3])
    np.testing.assert_allclose(blend.raw(few), each[:, :3], rtol=0, atol=1e-12)
