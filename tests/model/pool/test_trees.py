"""Trees gone through by XGBoost's predictor, against the same trees in numpy: the same to the last bit."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from deep.model.linear import Rows
from deep.model.pool import Blend, Part, Pool, Trees, _score_parts, _trees
from deep.model.pool._leaf_numbers import number_leaves
from tests.model.pool.test_members_values import panel, unlabeled
from tests.model.pool.test_scorers import shares


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
    """Return the mean P where few rows are asked for."""
    return np.concatenate([Trees(**trees.arrays()).mean(one) for one in np.array_split(rows, 5)])


@pytest.fixture
def always(monkeypatch):
    """Take XGBoost's predictor from the first row on, a few rows at a time."""
    monkeypatch.setattr(_trees, "MANY_ROWS", 0)
    monkeypatch.setattr(_trees, "ROWS_AT_ONCE", 64)
    monkeypatch.setattr(_score_parts, "ROWS_AT_ONCE", 64)


@given(st.integers(0, 1000), st.integers(3, 9), st.integers(1, 5), st.integers(1, 6))
def test_the_leaves_of_many_rows_are_those_of_few(seed, n_trees, n_features, depth):
    """For any forest, on rows at its very thresholds too; the P that stands there is added up in the same order."""
    trees, rows = forest(seed, n_trees, n_features, max_depth=depth)
    leaves = number_leaves(**trees.arrays())
    assert leaves is not None
    assert (leaves.sum_of_p(rows.astype(np.float32)) / n_trees == in_numpy(trees, rows)).all()


@given(st.integers(0, 100))
def test_thresholds_lie_between_floats(seed):
    """In double precision anywhere: a float32 goes the way that the threshold sends it."""
    rng = np.random.default_rng(seed)
    trees, _ = forest(seed, 4, 2, max_depth=3)
    moved = Trees(**trees.arrays() | {"threshold": rng.normal(size=len(trees.threshold))})
    single = moved.threshold.astype(np.float32)
    rows = np.repeat([single, *(np.nextafter(single, np.float32(way)) for way in (-9, 9))], 2, axis=0).reshape(2, -1).T
    assert (number_leaves(**moved.arrays()).sum_of_p(rows) / 4 == in_numpy(moved, rows)).all()


def test_rows_are_counted_until_there_are_many(monkeypatch):
    """In one call or in many; the P of a row is the same before and after."""
    monkeypatch.setattr(_trees, "MANY_ROWS", 120)
    trees, rows = forest(0, 5, 3, max_depth=4)
    found = []
    for start in range(0, 150, 50):
        assert ("_leaf_numbers" in vars(trees)) == (start > 100)
        found.append(trees.mean(rows[start : start + 50]))
    assert "_leaf_numbers" in vars(trees)
    assert (np.concatenate(found) == in_numpy(trees, rows[:150])).all()


@pytest.mark.usefixtures("always")
def test_trees_are_sent_without_what_is_found_again():
    """To another process: the arrays alone."""
    trees, rows = forest(0, 4, 3, max_depth=4)
    found = trees.mean(rows)
    again = pickle.loads(pickle.dumps(trees))
    assert vars(again).keys() == trees.arrays().keys()
    assert (again.mean(rows) == found).all()


@pytest.mark.parametrize(
    ("change", "value"),
    [("left", [3, 3, 2, 3, 4]), ("roots", [0, 0, 2]), ("threshold", [1e300, 0.0, 0.0, 0.0, 0.0])],
    ids=["two parents", "two trees at one root", "a threshold that no float32 holds"],
)
def test_what_no_fit_makes_is_left_to_numpy(change, value, monkeypatch):
    """A file may hold it."""
    arrays = {
        "feature": [0, 0, -1, -1, -1],
        "threshold": [0.0] * 5,
        "left": [1, 3, 2, 3, 4],
        "right": [2, 4, 2, 3, 4],
        "p": [0.0, 0.0, 0.2, 0.4, 0.9],
        "roots": [0, 2, 3],
    }
    plain = {name: np.array(values) for name, values in arrays.items()} | {"roots": np.array([0])}
    moved = ("left", "right")
    several = {name: np.concatenate([plain[name] + 5 * i * (name in moved) for i in range(3)]) for name in plain}
    several["roots"] = np.array([0, 5, 10])
    assert number_leaves(**several) is not None
    odd = several | {change: np.concatenate([value, several[change][len(value) :]])}
    monkeypatch.setattr(_trees, "MANY_ROWS", 0)
    trees, rows = Trees(**odd), np.array([[-1.0], [0.0], [1.0]])
    assert number_leaves(**odd) is None
    assert trees.mean(rows).tolist() == pytest.approx(in_numpy(trees, rows).tolist())


@pytest.mark.parametrize("settings", [{"n_trees": 2}, {"n_trees": 3, "n": 900}], ids=["two trees", "many leaves"])
def test_few_trees_and_large_ones_are_left_to_numpy(settings, monkeypatch):
    """The sums of all pairs of many leaves would fill the memory."""
    monkeypatch.setattr(_trees, "MANY_ROWS", 0)
    trees, rows = forest(0, n_features=4, **settings)
    assert number_leaves(**trees.arrays()) is None
    assert (trees.mean(rows) == in_numpy(trees, rows)).all()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_all_members_at_once_say_what_each_says(missing):
    """Votes once a pattern, what a score stands for once; members that rank by other rows have their own."""
    train, new = panel(0, n_scorers=5), panel(1, n_datasets=1, n_scorers=5)
    rng = np.random.default_rng(0)
    for rows in (train, new):
        rows.scores[:, :3] = 1 / (1 + np.exp(-rows.scores[:, :3]))
        rows.scores[rng.random(rows.scores.shape) < missing] = np.nan
    blend = Pool().fit(train.votes, train.labels, groups=train.groups, scores=train.scores).blend_
    rows = unlabeled(new)
    each = np.array([part.scorer(rows) for part in blend.parts])
    np.testing.assert_allclose(blend.raw(rows), each, rtol=0, atol=1e-12)
    turned = Blend(tuple(Part(part.name, part.scorer) for part in blend.parts[::-1]))
    np.testing.assert_allclose(turned.raw(rows), each[::-1], rtol=0, atol=1e-12)
    few = Rows(rows.votes[:3], rows.scores[:3], rows.weights[:3])
    np.testing.assert_allclose(blend.raw(few), each[:, :3], rtol=0, atol=1e-12)
