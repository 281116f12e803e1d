"""LabelModel: the minimum of snorkel's loss on weighted rows, without a trace in the global state."""

import numpy as np
import pandas as pd
import pytest

from deep.datasets import published_datasets, simulate_votes
from deep.ensembles._label_models import LabelModel, _orient_labels
from deep.evaluate import hold_out
from deep.exceptions import InputError
from deep.integrations.snorkel import SnorkelLabelModel
from deep.model import RECIPES, choose_subsets, training_set


def simulate(n=500, *, n_voters=5, missing=0.2, seed=0):
    """Return votes of voters that are right on three of four."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, (n, 1))
    X = np.where(rng.random((n, n_voters)) < 0.75, y, 1 - y).astype(np.int8)
    X[rng.random(X.shape) < missing] = -1
    return X


def snorkel_proba(X, rows=None, *, class_balance=(0.5, 0.5), seed=0, **settings):
    """Return P(label 1) of `rows` by snorkel itself, fitted to `X`."""
    from snorkel.labeling.model.label_model import LabelModel as SnorkelLabelModel

    model = SnorkelLabelModel(cardinality=2, verbose=False)
    model.fit(X.astype(int), class_balance=list(class_balance), progress_bar=False, seed=seed, **settings)
    return model.predict_proba((X if rows is None else rows).astype(int))[:, 1]


def real_votes(path):
    """Return the votes of a file, -1 where there is none."""
    table = pd.read_csv(path)
    voters = table.columns.drop(["dataset", "item_id", "label", "document_id"], errors="ignore")
    return table[voters].fillna(-1).to_numpy().astype(np.int8)


def cells(X):
    """Return the distinct rows and how often each occurs."""
    return np.unique(X, axis=0, return_counts=True)


@pytest.mark.parametrize("file", ["wrench_youtube/votes.csv", "summeval_llm/votes_ge5.csv"])
def test_equals_snorkel_on_real_votes(data_home, file):
    """Cells with counts give what snorkel gives on all rows, abstains included."""
    X = real_votes(data_home / file)
    patterns, counts = cells(X)
    assert (X == -1).any()
    ours = SnorkelLabelModel().fit(patterns, sample_weight=counts).predict_proba(X)[:, 1]
    np.testing.assert_allclose(ours, snorkel_proba(X), atol=1e-6)


def spread(patterns, counts, *, kind=LabelModel, seeds=20):
    """Return the largest difference in P of any pattern between seeds."""
    fits = (kind(random_state=seed).fit(patterns, sample_weight=counts) for seed in range(seeds))
    return np.ptp([fitted.predict_proba(patterns)[:, 1] for fitted in fits], axis=0).max()


@pytest.mark.parametrize("dataset", [result.name for result in published_datasets()])
def test_p_is_the_same_for_every_seed(dataset):
    """All columns of the paper's Table 2, 20 seeds: equal, where snorkel's 100 steps differ by a tenth and more."""
    split = hold_out(simulate_votes(0), dataset)
    training = training_set(split.train, RECIPES["paper"])
    for size, subset in zip([3, 5, 9], choose_subsets(training, [3, 5, 9], criterion="accuracy"), strict=True):
        table = cells(split.train.votes[:, list(subset.columns)])
        assert spread(*table) < 1e-6
        if size == 5 and dataset == published_datasets()[0].name:  # a second for each seed
            assert spread(*table, kind=SnorkelLabelModel) > 0.1


@pytest.mark.parametrize("file", ["wrench_youtube/votes.csv", "summeval_llm/votes_ge5.csv"])
def test_p_is_the_same_for_every_seed_on_real_votes(data_home, file):
    """With abstains too."""
    assert spread(*cells(real_votes(data_home / file)), seeds=5) < 1e-6


def test_voters_that_cannot_be_told_apart_count_alike():
    """Two that agree on 9 of 10 and one that is constant: the product of what they know is known, not its parts."""
    X, w = np.array([[1, 1, 1], [0, 0, 1], [1, 0, 1], [0, 1, 1]]), [45, 45, 5, 5]
    assert spread(X, w) < 1e-6
    p = LabelModel().fit(X, sample_weight=w).predict_proba(X)[:, 1]
    np.testing.assert_allclose(p[2:], 0.5, atol=1e-6)


def descended(X, n_steps, rate, *, l2=0.0, class_balance=(0.5, 0.5)):
    """Return P(vote | label), a row a vote, where gradient descent with momentum ends on snorkel's loss."""
    votes = np.stack([X == 0, X == 1], axis=2).reshape(len(X), -1).astype(float)
    overlaps, balance = votes.T @ votes / len(X), np.array(class_balance)
    shares = np.diag(overlaps)
    others = np.kron(1 - np.eye(X.shape[1]), np.ones((2, 2)))
    start = np.zeros((len(shares), 2))
    for row, share in enumerate(shares):
        start[row, row % 2] = min(0.7 * share / balance[row % 2], 1)
    mu, speed = 0.5 * start, 0.0
    for _ in range(n_steps):
        joint = mu * balance
        away = others * (joint @ mu.T - overlaps)
        slope = 4 * away @ joint + 2 * (joint.sum(axis=1) - shares)[:, None] * balance
        speed = 0.9 * speed + slope + 2 * l2**2 * (mu - start) + l2 * mu
        mu = mu - rate * speed
    return mu


@pytest.mark.parametrize("params", [{}, {"l2": 0.1}, {"class_balance": (0.7, 0.3)}])
def test_the_default_is_where_snorkels_descent_ends(params):
    """Given 200 times its steps, at three times its rate, in double precision; after 100 steps it is elsewhere."""
    X = simulate()
    model = LabelModel(**params).fit(X)
    there = descended(X, 20_000, 0.03, **params)
    np.testing.assert_allclose(model.vote_probs_.transpose(0, 2, 1).reshape(-1, 2), there, atol=1e-6)
    early = SnorkelLabelModel(**params).fit(X).predict_proba(X)
    assert np.abs(early - model.predict_proba(X)).max() > 1e-3


@pytest.mark.parametrize("total", [30, 100, 101, 5000])
def test_bounds_come_from_the_sum_of_weights(total):
    """Unanimous voters are held off certainty by as much as on `total` rows, in single precision."""
    X, w = np.array([[1, 1, 1], [0, 0, 0]], dtype=np.int8), np.array([total - 10, 10])
    model = SnorkelLabelModel(lr=0.1).fit(X, sample_weight=w)
    ours = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(ours, snorkel_proba(np.repeat(X, w, axis=0), X, lr=0.1), atol=1e-6)
    assert model.vote_probs_.min() == pytest.approx({30: 0.01, 100: 0.01, 101: 0.001, 5000: 0.0001}[total], rel=1e-6)


@pytest.mark.parametrize("balance", [(0.5, 0.5), (0.3, 0.7)])
def test_votes_turned_round_turn_p(balance):
    """With the class balance turned too, 1 - P."""
    X = simulate(n_voters=9)
    turned = np.where(X == -1, -1, 1 - X)
    p = LabelModel(class_balance=balance).fit(X).predict_proba(X)
    flipped = LabelModel(class_balance=balance[::-1]).fit(turned).predict_proba(turned)
    np.testing.assert_allclose(flipped[:, ::-1], p, atol=1e-12)


@pytest.mark.parametrize("column", [-1, 0, 1])
def test_a_constant_voter_is_finite(column):
    """A voter that never votes changes nothing in P; one that always votes alike leaves it finite."""
    X = simulate()
    wide = np.column_stack([X, np.full(len(X), column)])
    model = LabelModel().fit(wide)
    p = model.predict_proba(wide)[:, 1]
    assert np.isfinite(p).all()
    if column == -1:
        assert (model.vote_probs_[-1] == model.vote_probs_[-1, 0]).all()
        np.testing.assert_array_equal(p, model.predict_proba(np.column_stack([X, np.ones(len(X))]))[:, 1])


@pytest.mark.parametrize("vote", [-1, 0, 1])
def test_constant_votes_tell_nothing(vote):
    """Where all voters say the same everywhere."""
    p = LabelModel().fit(np.full((50, 4), vote)).predict_proba([[vote] * 4, [-1] * 4])[:, 1]
    assert p[1] == 0.5
    assert p[0] == pytest.approx(0.5, abs=1e-3)


def test_many_voters_do_not_underflow():
    """Where snorkel's product of probabilities is 0 / 0, the sum of their logarithms is not."""
    X = simulate(100, n_voters=100, missing=0.0)
    X = np.vstack([X, 1 - X[:1]])
    model = LabelModel().fit(X)
    model.vote_probs_ = np.full_like(model.vote_probs_, 1e-4)
    assert model.predict_proba(X)[:, 1].tolist() == [0.5] * len(X)


def test_where_the_descent_diverges_a_smaller_rate_is_taken():
    """200 voters that all vote make it diverge at the default rate."""
    X = simulate(200, n_voters=9, missing=0.0)
    fast, slow = (SnorkelLabelModel(lr=rate).fit(X) for rate in (2.0, 0.2))
    np.testing.assert_array_equal(fast.vote_probs_, slow.vote_probs_)


def test_divergence_is_an_error_with_a_remedy():
    """Snorkel's bare exception becomes a line that says what to change."""
    X = simulate(200, n_voters=9, missing=0.0)
    with pytest.raises(InputError, match=r"`lr` must be small enough .* 9 voters, and 1e\+06 was tried too. Fit fewer"):
        SnorkelLabelModel(lr=1e9).fit(X)


def test_labels_that_came_out_swapped_are_turned_back():
    """Voters wrong on most votes at the start's mirror image: of two labels of one prior the one that trusts them."""
    mu = np.array([[0.2, 0.9], [0.8, 0.1]] * 3)
    np.testing.assert_array_equal(_orient_labels(mu, (0.5, 0.5)), mu[:, ::-1])
    np.testing.assert_array_equal(_orient_labels(mu, (0.3, 0.7)), mu)
    np.testing.assert_array_equal(_orient_labels(mu[:, ::-1], (0.5, 0.5)), mu[:, ::-1])
