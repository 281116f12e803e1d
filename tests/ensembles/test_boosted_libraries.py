"""XGB, LGBM and CatBoost: exact on weights, symmetric, neutral to silence, scored at every round of one fit."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

from deep.ensembles import LGBM, XGB, CatBoost
from deep.exceptions import InputError
from deep.features import signed

ALL = pytest.mark.parametrize("cls", [XGB, LGBM, CatBoost])
DEEPEST = {XGB: {"max_depth": 3}, LGBM: {"num_leaves": 6}, CatBoost: {"max_depth": 4}}
PATTERNS = np.array(list(itertools.product((-1, 0, 1), repeat=4)), dtype=np.int8)


def votes(n=600, *, n_voters=4, missing=0.1, seed=0):
    """Return votes that share errors, their labels, and whole weights of which one is heavy."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    shared = rng.normal(size=(n, 1))
    X = (1.4 * (y[:, None] - 0.5) + 0.7 * shared + rng.normal(size=(n, n_voters)) > 0).astype(np.int8)
    X[rng.random(X.shape) < missing] = -1
    w = rng.integers(1, 5, n)
    w[0] = 300
    return X, y, w


def turned(X):
    """Return votes of 0 as 1 and of 1 as 0."""
    return np.where(X == -1, -1, 1 - X)


def proba(model, X=PATTERNS):
    """Return P(consistent)."""
    return model.predict_proba(X)[:, 1]


@ALL
def test_equals_the_library_on_rows_repeated_one_by_one(cls):
    """The cells of weight w give what the library itself gives for w rows, under the settings fixed here."""
    X, y, w = votes()
    model = cls(n_estimators=100, **DEEPEST[cls]).fit(X, y, w)
    log_odds = 0.0
    for sign, rows, labels in ((1, X, y), (-1, turned(X), 1 - y)):
        booster = model._boost(signed(np.repeat(rows, w, axis=0)), np.repeat(labels, w), np.ones(w.sum()))
        log_odds += sign * model._log_odds(booster, sign * signed(PATTERNS), 100) / 2
    np.testing.assert_allclose(proba(model), expit(log_odds), atol=1e-6)


@ALL
def test_many_cells_of_one_row_in_a_leaf_with_a_heavy_one(cls):
    """No limit counts cells as rows, nor rows from weights: light cells beside a heavy one are split off."""
    X = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=np.int8)
    model = cls(n_estimators=200, **({"min_child_weight": 0.1} if cls is not CatBoost else {}))
    model.fit(np.repeat(X, 2, axis=0), [0, 1] * 4, [2000, 2000, 1, 9, 9, 1, 2000, 2000])
    low, high = proba(model, [[0, 1], [1, 0]])
    assert low < 0.3 < 0.7 < high


@ALL
def test_a_vote_of_two_cells_is_told_apart(cls):
    """No bin of votes needs more cells: four cells of one voter are learned from."""
    model = cls().fit([[1], [1], [0], [0]], [1, 0, 1, 0], [3000, 1000, 1000, 3000])
    np.testing.assert_allclose(proba(model, [[1], [0]]), [0.75, 0.25], atol=0.02)


@pytest.mark.parametrize(("cls", "reg_lambda"), [(XGB, 1.0), (LGBM, 0.0), (CatBoost, 3.0)])
def test_first_round_by_hand(cls, reg_lambda):
    """One Newton step from even odds: rate times sum w (y - 1/2) over (sum w / 4 + L2), L2 in units of rows."""
    model = cls(n_estimators=1, learning_rate=0.5).fit([[1], [1], [0], [0]], [1, 0, 1, 0], [30, 10, 10, 30])
    step = 0.5 * (30 - 10) / 2 / ((30 + 10) / 4 + reg_lambda)
    np.testing.assert_allclose(proba(model, [[1], [0], [-1]]), expit([step, -step, 0]), atol=1e-6)


@ALL
@pytest.mark.parametrize("seed", range(3))
def test_ties_are_broken_alike_for_weighted_and_repeated_rows(cls, seed):
    """On few rows many splits are equally good; which is taken shows in rows never seen, and is the same."""
    X, y, w = votes(40, missing=0, seed=seed)
    weighted, repeated = cls().fit(X, y, w), cls().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(proba(weighted), proba(repeated), atol=1e-12)


@ALL
@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_votes_and_labels_turned_round_turn_p(cls, missing):
    """1 - P exactly, also for rows with abstains that no training row shows."""
    X, y, w = votes(150, missing=missing)
    model, mirrored = cls(**DEEPEST[cls]).fit(X, y, w), cls(**DEEPEST[cls]).fit(turned(X), 1 - y, w)
    np.testing.assert_allclose(proba(mirrored, turned(PATTERNS)), 1 - proba(model), atol=1e-14)


@ALL
def test_silence_is_read_as_nothing_where_no_training_row_was_silent(cls):
    """Fitted to votes without abstains that speak for both labels alike, P of no votes is 0.5."""
    X, y, w = votes(missing=0)
    model = cls().fit(np.vstack([X, turned(X)]), np.r_[y, 1 - y], np.r_[w, w])
    assert proba(model, [[-1, -1, -1, -1]])[0] == pytest.approx(0.5, abs=1e-12)
    assert proba(model, [[-1, 1, -1, 1]])[0] > 0.55


@ALL
@pytest.mark.parametrize("stage", [0, 51])
def test_a_stage_outside_the_fit_is_refused(cls, stage):
    """The message says how many rounds there are."""
    X, y, w = votes(50)
    model = cls(n_estimators=50).fit(X, y, w)
    with pytest.raises(InputError, match=rf"`stages` must be between 1 and `n_estimators`=50. Got {stage}"):
        model.staged_predict_proba(X, [25, stage])


@ALL
def test_without_a_voter_that_varies_p_is_the_prior(cls):
    """All columns constant: nothing to split on, at any stage."""
    model = cls().fit([[1, -1, 0]] * 3, [1, 0, 1], [1.0, 1.0, 2.0])
    assert model.boosters_ == ()
    assert model.staged_predict_proba([[0, 1, 0], [1, -1, 0]], [1, 50]).tolist() == [[0.75, 0.75]] * 2


@ALL
def test_probabilities_are_double_precision(cls):
    """P is float64 and strictly inside (0, 1), so that its log loss is finite."""
    X, _, w = votes()
    p = cls(n_estimators=300).fit(X, X[:, 0] == 1, w).predict_proba(X)
    assert p.dtype == np.float64
    assert 0 < p.min() < p.max() < 1


@ALL
def test_every_parameter_of_the_library_is_passed_on(cls):
    """Each constructor argument changes the fit."""
    X, y, w = votes(missing=0.3)
    base = proba(cls().fit(X, y, w))
    for name, value in cls().get_params().items():
        other = {"max_depth": 1, "num_leaves": 2}.get(
            name, 2 * value + 60 * (name in ("min_child_weight", "reg_lambda"))
        )
        assert np.abs(proba(cls(**{name: other}).fit(X, y, w)) - base).max() > 1e-4, name


@ALL
def test_one_booster_is_enough_where_everybody_voted(cls):
    """A second is fitted once a row with a missing vote is asked for, and changes no row that has all votes."""
    X, y, w = votes(missing=0)
    model = cls().fit(X, y, w)
    full = PATTERNS[(PATTERNS >= 0).all(axis=1)]
    before = proba(model, full)
    assert len(model.boosters_) == 1
    silent = proba(model)
    assert len(model.boosters_) == 2
    np.testing.assert_array_equal(silent[(PATTERNS >= 0).all(axis=1)], before)
    np.testing.assert_array_equal(proba(model, full), before)
    few = cls().fit([[1, 1], [1, 0]], [1, 0], [50, 50])
    few.predict_proba([[1, 1]])
    assert len(few.boosters_) == 1, "rows of one weight are told apart by their votes"
    same = cls().fit([[1, 1], [0, 0]], [1, 0], [100 * (0.1 + 0.2), 30])
    same.predict_proba([[1, 1]])
    assert len(same.boosters_) == 2, "turned round they are the same but for rounding"


@ALL
def test_two_boosters_agree_where_everybody_voted(cls):
    """The mean of both is what one says, to the precision of the library."""
    X, y, w = votes(missing=0)
    model = cls(**DEEPEST[cls]).fit(X, y, w)
    full = signed(PATTERNS[(PATTERNS >= 0).all(axis=1)])
    other = cls(**DEEPEST[cls])._boost(signed(turned(X)), 1 - y, w.astype(float))
    mirrored = expit(-model._log_odds(other, -full, 50))
    np.testing.assert_allclose(proba(model, PATTERNS[(PATTERNS >= 0).all(axis=1)]), mirrored, atol=1e-5)
