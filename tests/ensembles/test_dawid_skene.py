"""DawidSkene: the EM of the paper, step for step crowd-kit's, run to convergence on weighted rows."""

import warnings

import numpy as np
import pandas as pd
import pytest

from deep.ensembles._label_models import DawidSkene
from deep.exceptions import InputError

RTE, BLUEBIRDS = "votes_RTE.csv", "votes_bluebirds_duck.csv"


def read_crowd(data_home, file):
    """Return votes and labels of a table of the crowd folder."""
    table = pd.read_csv(data_home / "crowd" / file)
    voters = table.columns.drop(["dataset", "item_id", "label"])
    return table[voters].fillna(-1).to_numpy().astype(np.int8), table["label"].to_numpy()


def crowd_kit(X, n_iter):
    """Return P(label 1) by row, prior and confusion of crowd-kit after `n_iter` steps."""
    rows, voters = np.nonzero(X >= 0)
    data = pd.DataFrame({"task": rows, "worker": voters, "label": X[rows, voters].astype(int)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # crowd-kit's calls that pandas deprecates
        from crowdkit.aggregation import DawidSkene as CrowdKit

        model = CrowdKit(n_iter=n_iter, tol=-1.0).fit(data)
    full = pd.MultiIndex.from_product([range(X.shape[1]), [0, 1]])
    errors = model.errors_.reindex(full, fill_value=0.0)[[0, 1]].to_numpy()
    return model.probas_[1].sort_index().to_numpy(), model.priors_[1], errors.reshape(-1, 2, 2).transpose(0, 2, 1)


def simulate(n=2000, *, right=(0.9, 0.8, 0.7, 0.6), missing=0.2, seed=0):
    """Return votes of voters that err independently, and the labels."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.6).astype(int)
    X = np.where(rng.random((n, len(right))) < right, y[:, None], 1 - y[:, None]).astype(np.int8)
    X[rng.random(X.shape) < missing] = -1
    return X, y


@pytest.mark.parametrize("file", [RTE, BLUEBIRDS])
@pytest.mark.parametrize("n_iter", [1, 2, 12])
def test_equals_crowd_kit_step_for_step(data_home, file, n_iter):
    """Prior and error rates after n steps, and the posterior of the step before, agree to 1e-8."""
    X, _ = read_crowd(data_home, file)
    posterior, prior, confusion = crowd_kit(X, n_iter)
    model = DawidSkene(n_iter, tol=0.0).fit(X)
    assert model.n_iter_ == n_iter
    assert model.prior_ == pytest.approx(prior, abs=1e-8)
    np.testing.assert_allclose(model.confusion_, confusion, atol=1e-8)
    before = DawidSkene(n_iter - 1, tol=0.0).fit(X).predict_proba(X)[:, 1]
    np.testing.assert_allclose(before, posterior, atol=1e-8)


@pytest.mark.parametrize(("file", "majority", "accuracy"), [(RTE, 0.8750, 0.9275), (BLUEBIRDS, 0.7593, 0.8981)])
def test_accuracy_on_real_crowds(data_home, file, majority, accuracy):
    """At convergence it beats the majority vote by as much as is published."""
    X, y = read_crowd(data_home, file)
    ones, cast = (X == 1).sum(axis=1), (X >= 0).sum(axis=1)
    model = DawidSkene().fit(X)
    assert np.mean((2 * ones >= cast) == y) == pytest.approx(majority, abs=1e-4)
    assert model.converged_
    assert np.mean(model.predict(X) == y) == pytest.approx(accuracy, abs=1e-4)


def test_likelihood_never_falls():
    """Each step of EM raises the likelihood of the votes."""
    X, _ = simulate(300)

    def log_likelihood(model):
        cast = np.where(X[:, :, None] >= 0, model.confusion_[np.arange(4), :, np.maximum(X, 0)], 1.0)
        return np.log(cast.prod(axis=1) @ [1 - model.prior_, model.prior_]).sum()

    path = [log_likelihood(DawidSkene(n, tol=0.0).fit(X)) for n in range(15)]
    assert (np.diff(path) > -1e-9).all()
    assert path[-1] > path[0] + 1


def test_recovers_the_rates_behind_the_votes():
    """Prior and error rates that made 20,000 rows come back within sampling error."""
    X, _ = simulate(20_000)
    model = DawidSkene().fit(X)
    assert model.prior_ == pytest.approx(0.6, abs=0.03)
    np.testing.assert_allclose(model.confusion_[:, 1, 1], [0.9, 0.8, 0.7, 0.6], atol=0.03)
    np.testing.assert_allclose(model.confusion_[:, 0, 0], [0.9, 0.8, 0.7, 0.6], atol=0.03)
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1.0)


def test_silent_rows_and_voters():
    """Rows without votes do not enter the fit and get the prior; a voter that never votes says nothing."""
    X, _ = simulate(400)
    silent = np.full((100, 4), -1)
    model = DawidSkene().fit(np.vstack([X, silent]))
    assert model.prior_ == DawidSkene().fit(X).prior_
    np.testing.assert_allclose(model.predict_proba(silent)[:, 1], model.prior_)
    wide = DawidSkene().fit(np.column_stack([X, np.full(len(X), -1)]))
    assert wide.confusion_[4].tolist() == [[0.5, 0.5], [0.5, 0.5]]
    with_vote = np.column_stack([X, np.ones(len(X), dtype=np.int8)])
    np.testing.assert_allclose(wide.predict_proba(with_vote), model.predict_proba(X), atol=1e-9)


def test_a_voter_of_one_vote_only_has_no_influence():
    """Its vote is equally probable under both labels, and so is the vote it never gave."""
    X, _ = simulate(400)
    keyword = np.where(X[:, 0] == 1, 1, -1)
    model = DawidSkene().fit(np.column_stack([X, keyword]))
    assert model.confusion_[4].tolist() == [[0.0, 1.0], [0.0, 1.0]]
    p = [model.predict_proba(np.column_stack([X, np.full(len(X), vote)])) for vote in (-1, 0, 1)]
    np.testing.assert_array_equal(p[0], p[1])
    np.testing.assert_array_equal(p[0], p[2])


@pytest.mark.parametrize("vote", [0, 1])
def test_unanimity_is_finite(vote):
    """All voters agree everywhere: P is certain, and a vote never seen gives no NaN."""
    p = DawidSkene().fit(np.full((20, 3), vote)).predict_proba([[vote] * 3, [1 - vote] * 3, [-1] * 3])[:, 1]
    assert np.isfinite(p).all()
    assert p[0] == pytest.approx(vote, abs=1e-9)


def test_many_voters_do_not_underflow():
    """3,000 votes on a row multiply to nothing in double precision; their logarithms add up."""
    X, y = simulate(50, right=np.full(3000, 0.6), missing=0.0)
    p = DawidSkene().fit(X).predict_proba(X)[:, 1]
    np.testing.assert_allclose(p, y, atol=1e-6)


def test_no_votes_at_all_is_an_error():
    """There is nothing to learn from."""
    with pytest.raises(InputError, match=r"`X` must hold at least one vote. Got only -1"):
        DawidSkene().fit([[-1, -1]])
