"""Members of the stack against loops over rows, judges and datasets, and the libraries that they call."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression as Ridge

from deep.ensembles import RandomForest
from deep.features import Rows
from deep.model import LabeledRows, fit_best_judge, fit_majority, fit_ridge
from deep.model.stack import ANSWER_MEMBERS, MEMBER_FITS, VOTE_MEMBERS, members_for, simple_members


def panel(seed, n_datasets=3, n=40, n_voters=3, n_scorers=0):
    """Return labeled rows of datasets whose leniency and prior differ, weighted, some votes missing."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_datasets), n)
    y = (rng.random(len(groups)) < expit(rng.normal(0.3, 0.8, n_datasets))[groups]).astype(np.int8)
    y[::n], y[1::n] = 0, 1
    k = max(n_voters, n_scorers)
    latent = (2.0 * y - 1)[:, None] * np.linspace(0.4, 1.2, k) + rng.normal(0, 0.5, n_datasets)[groups][:, None]
    latent = latent + rng.normal(0, 1, latent.shape)
    votes = np.where(rng.random(latent.shape) < 0.1, -1, latent > 0).astype(np.int8)[:, :n_voters]
    return LabeledRows(votes, latent[:, :n_scorers], rng.integers(1, 4, len(y)) * 1.0, y, groups)


def unlabeled(rows):
    """Return rows of a panel as those of a new dataset."""
    return Rows(rows.votes, rows.evidence, rows.weights)


def balanced(rows):
    """Return weights under which every dataset and class weighs the same, summing to those of the rows."""
    w = np.empty(len(rows.labels))
    kinds = set(zip(rows.groups.tolist(), rows.labels.tolist(), strict=True))
    for group, label in kinds:
        kept = (rows.groups == group) & (rows.labels == label)
        w[kept] = rows.weights[kept] / rows.weights[kept].sum() * rows.weights.sum() / len(kinds)
    return w


def test_which_members_can_be_fitted():
    """Where some judges grade all are on evidence; the few best judges are at least two."""
    assert members_for(0) == VOTE_MEMBERS
    assert members_for(1) == tuple(name for name in ANSWER_MEMBERS if name != "logistic-top-scores")
    assert members_for(2) == members_for(9) == ANSWER_MEMBERS
    assert {*VOTE_MEMBERS, *ANSWER_MEMBERS} == {*MEMBER_FITS}


def test_which_members_are_simple():
    """Three, of votes and of answers; all where none of them is there."""
    assert simple_members(members_for(0)) == ("best-judge", "majority", "ridge-votes")
    assert simple_members(members_for(1)) == ("best-score", "majority", "ridge-votes")
    assert simple_members(("forest-votes",)) == ("forest-votes",)
    assert simple_members(("forest-votes", "majority")) == ("majority",)


@pytest.mark.parametrize("seed", [0, 3])
def test_the_forest_weighs_datasets_and_classes_alike(seed):
    """The ensembler fitted with balanced weights, its P held within [0.001, 0.999]."""
    rows, new = panel(0), panel(1, n_datasets=1)
    model = RandomForest(100, max_depth=5, random_state=seed)
    p = model.fit(rows.votes, rows.labels, sample_weight=balanced(rows)).predict_proba(new.votes)[:, 1]
    result = MEMBER_FITS["forest-votes"](rows, seed)(unlabeled(new))
    assert result == pytest.approx(logit(np.clip(p, 1e-3, 1 - 1e-3)), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "fit"), [("best-judge", fit_best_judge), ("majority", fit_majority), ("ridge-votes", fit_ridge)]
)
def test_simple_members_are_sums_over_votes(name, fit):
    """As fitted on few datasets, log-odds held within those of 0.001 and 0.999; the seed changes nothing."""
    rows, new = panel(2), panel(3, n_datasets=1)
    expected = np.clip(fit(rows).log_odds(new.votes), -np.log(999), np.log(999))
    assert MEMBER_FITS[name](rows, 0)(unlabeled(new)) == pytest.approx(expected, abs=1e-12)
    assert np.array_equal(MEMBER_FITS[name](rows, 9)(unlabeled(new)), MEMBER_FITS[name](rows, 0)(unlabeled(new)))


@pytest.mark.parametrize(("name", "columns"), [("best-score", 1), ("logistic-top-scores", 4), ("logistic-scores", 6)])
def test_linear_scores_are_a_ridge_on_the_strongest(name, columns):
    """Strength is the mean area under the ROC curve, by counting pairs; a mean loss beside a penalty of 1 / 200."""
    rows, new = panel(4, n_scorers=6), panel(5, n_datasets=1, n_scorers=6)
    areas = np.zeros(6)
    for j, d in product(range(6), range(3)):
        one, zero = ((rows.groups == d) & (rows.labels == label) for label in (1, 0))
        above = rows.evidence[one, j][:, None] > rows.evidence[zero, j]
        areas[j] += rows.weights[one] @ above @ rows.weights[zero] / rows.weights[one].sum() / rows.weights[zero].sum()
    kept = np.argsort(-abs(areas - 1.5))[:columns] if columns < 6 else np.arange(6)
    w = balanced(rows)
    model = Ridge(C=100.0 / w.sum(), max_iter=500)
    model.fit(rows.evidence[:, kept], rows.labels, sample_weight=w)
    expected = np.clip(model.decision_function(new.evidence[:, kept]), -np.log(999), np.log(999))
    assert MEMBER_FITS[name](rows, 0)(unlabeled(new)) == pytest.approx(expected, abs=1e-6)


def test_the_forest_of_scores_is_grown_on_few_rows():
    """At most 300 of a dataset and class, drawn by the seed."""
    rows, new = panel(6, n_datasets=2, n=700, n_voters=1, n_scorers=2), panel(7, n_datasets=1, n_voters=1, n_scorers=2)
    rng = np.random.default_rng(3)
    drawn = []
    for d, label in product(range(2), range(2)):
        drawn.extend(rng.permutation(np.flatnonzero((rows.groups == d) & (rows.labels == label)))[:300])
    thinned = rows.rows(np.sort(drawn))
    w = balanced(thinned)
    model = RandomForestClassifier(40, max_depth=6, max_features=0.3, min_weight_fraction_leaf=0.005, random_state=3)
    model.fit(thinned.evidence, thinned.labels, sample_weight=w)
    p = model.predict_proba(new.evidence)[:, 1]
    assert MEMBER_FITS["forest-scores"](rows, 3)(unlabeled(new)) == pytest.approx(logit(np.clip(p, 1e-3, 1 - 1e-3)))
