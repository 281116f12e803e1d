"""Members of the pool against loops over rows, judges and datasets, and the libraries that they call."""

from dataclasses import FrozenInstanceError, replace
from itertools import product

import numpy as np
import pytest
from deep.model.pool._latent_class import fit_latent_class, judge_estimates
from deep.model.pool._rows import LabeledRows, Rows
from deep.model.pool._tilt import fit_tilt
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression as Ridge

from deep.ensembles import LogisticRegression, RandomForest
from deep.model.pool import _members
from deep.model.pool._members import ADAPTIVE, MEMBERS, members_for, members_of


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
    return LabeledRows(votes, expit(latent[:, :n_scorers]), rng.integers(1, 4, len(y)) * 1.0, y, groups)


def unlabeled(rows):
    """Return rows of a panel as those of a new dataset."""
    return Rows(rows.votes, rows.scores, rows.weights)


def balanced(rows):
    """Return weights under which every dataset and class weighs the same, summing to those of the rows."""
    w = np.empty(len(rows.labels))
    kinds = set(zip(rows.groups.tolist(), rows.labels.tolist(), strict=True))
    for group, label in kinds:
        kept = (rows.groups == group) & (rows.labels == label)
        w[kept] = rows.weights[kept] / rows.weights[kept].sum() * rows.weights.sum() / len(kinds)
    return w


def test_which_members_can_be_fitted():
    """Label models need three voters, scores one scorer, the few best scores two."""
    votes = ("forest-votes", "latent-class", "logistic-votes", "tilt")
    label = ("label-model-source", "label-model-target")
    scores = ("best-score", "forest-scores", "logistic-scores")
    assert members_for(1, 0) == members_for(2, 0) == votes
    assert members_for(3, 0) == tuple(sorted(votes + label))
    assert members_for(2, 1) == tuple(sorted(votes + scores))
    assert members_for(2, 2) == tuple(sorted((*votes, *scores, "logistic-top-scores")))
    assert members_for(4, 3) == tuple(sorted(MEMBERS))
    assert ADAPTIVE == ("label-model-target", "latent-class", "tilt")


@pytest.mark.parametrize(("name", "seed"), [("logistic-votes", 0), ("forest-votes", 0), ("forest-votes", 3)])
def test_models_of_votes_weigh_datasets_and_classes_alike(name, seed):
    """The ensembler fitted with balanced weights, its P held within [0.001, 0.999]."""
    rows, new = panel(0), panel(1, n_datasets=1)
    model = LogisticRegression() if name == "logistic-votes" else RandomForest(100, max_depth=5, random_state=seed)
    p = model.fit(rows.votes, rows.labels, sample_weight=balanced(rows)).predict_proba(new.votes)[:, 1]
    assert MEMBERS[name](rows, seed)(unlabeled(new)) == pytest.approx(logit(np.clip(p, 1e-3, 1 - 1e-3)), abs=1e-9)


@pytest.mark.parametrize("name", ["label-model-source", "label-model-target"])
def test_label_models_are_fitted_on_votes_alone(monkeypatch, name):
    """On the training rows with a weight of 1,000 a dataset, or on the new dataset's rows as they weigh."""
    fits = []

    class Recorder:
        def __init__(self, random_state):
            self.random_state = random_state

        def fit(self, votes, sample_weight):
            fits.append((self.random_state, votes, sample_weight))
            return self

        def predict_proba(self, votes):
            p = expit(votes.sum(axis=1) * 4.0)
            return np.column_stack([1 - p, p])

    monkeypatch.setattr(_members, "LabelModel", Recorder)
    rows, new = panel(2), panel(3, n_datasets=1)
    found = MEMBERS[name](rows, 7)(unlabeled(new))
    p = np.clip(expit(new.votes.sum(axis=1) * 4.0), 1e-3, 1 - 1e-3)
    assert found == pytest.approx(logit(p), abs=1e-9)
    ((seed, votes, weights),) = fits
    assert seed == 7
    if name == "label-model-source":
        np.testing.assert_array_equal(votes, rows.votes)
        sums = np.array([rows.weights[rows.groups == d].sum() for d in range(3)])
        assert weights == pytest.approx(rows.weights * 1000 / sums[rows.groups], abs=1e-9)
    else:
        np.testing.assert_array_equal(votes, new.votes)
        np.testing.assert_array_equal(weights, new.weights)


def standardised(scores, rows, w):
    """Return shares as log-odds, held within [0.01, 0.99], less their mean on the training rows, in their spread."""
    z, train = (logit(np.clip(part, 0.01, 0.99)) for part in (scores, rows))
    centre = np.average(train, axis=0, weights=w)
    return (z - centre) / np.sqrt(np.average((train - centre) ** 2, axis=0, weights=w))


@pytest.mark.parametrize(("name", "columns"), [("best-score", 1), ("logistic-top-scores", 4), ("logistic-scores", 6)])
def test_linear_scores_are_a_ridge_on_the_strongest(name, columns):
    """Strength is the mean area under the ROC curve, by counting pairs; a mean loss beside a penalty of 1 / 200."""
    rows, new = panel(4, n_scorers=6), panel(5, n_datasets=1, n_scorers=6)
    areas = np.zeros(6)
    for j, d in product(range(6), range(3)):
        one, zero = ((rows.groups == d) & (rows.labels == label) for label in (1, 0))
        above = rows.scores[one, j][:, None] > rows.scores[zero, j]
        areas[j] += rows.weights[one] @ above @ rows.weights[zero] / rows.weights[one].sum() / rows.weights[zero].sum()
    kept = np.argsort(-abs(areas - 1.5))[:columns] if columns < 6 else np.arange(6)
    w = balanced(rows)
    model = Ridge(C=100.0 / w.sum(), max_iter=500)
    model.fit(standardised(rows.scores[:, kept], rows.scores[:, kept], w), rows.labels, sample_weight=w)
    expected = model.decision_function(standardised(new.scores[:, kept], rows.scores[:, kept], w))
    assert MEMBERS[name](rows, 0)(unlabeled(new)) == pytest.approx(expected, abs=1e-6)


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
    model.fit(standardised(thinned.scores, thinned.scores, w), thinned.labels, sample_weight=w)
    p = model.predict_proba(standardised(new.scores, thinned.scores, w))[:, 1]
    assert MEMBERS["forest-scores"](rows, 3)(unlabeled(new)) == pytest.approx(logit(np.clip(p, 1e-3, 1 - 1e-3)))


# The latent class: what judge j votes of an item of label y and difficulty u is a coin of bias
# sigmoid(leniency_j + (y - 1/2) discrimination_j + loading_j u). Difficulties stand on seven Gauss-Hermite nodes.
NODES, MASSES = np.polynomial.hermite_e.hermegauss(7)
MASSES = MASSES / MASSES.sum()


def likelihoods(pattern, theta):
    """Return P(votes, difficulty | label) of one pattern, by label and node; no vote says nothing."""
    found = np.empty((2, 7))
    for label, node in product(range(2), range(7)):
        p = expit(theta @ [1, label - 0.5, NODES[node]])
        chances = [p[j] if vote == 1 else 1 - p[j] for j, vote in enumerate(pattern) if vote != -1]
        found[label, node] = MASSES[node] * np.prod(chances)
    return found


def newton_step(patterns, posteriors, theta, centre, spread):
    """Return parameters after one Newton step of each judge's penalised logistic regression, at most 1 a number."""
    moved = theta.copy()
    for j in range(len(theta)):
        gradient, curvature = -(theta[j] - centre[j]) / spread**2, np.diag(1 / spread**2)
        for pattern, posterior in zip(patterns, posteriors, strict=True):
            for label, node in product(range(2), range(7)):
                if pattern[j] != -1:
                    x = np.array([1, label - 0.5, NODES[node]])
                    p = expit(theta[j] @ x)
                    gradient = gradient + posterior[label, node] * (pattern[j] - p) * x
                    curvature = curvature + posterior[label, node] * p * (1 - p) * np.outer(x, x)
        moved[j] += np.clip(np.linalg.solve(curvature, gradient), -1, 1)
        moved[j, 1] = max(moved[j, 1], 0.02)
    return moved


def labeled_fit(rows, start):
    """Return one dataset's parameters: EM over difficulties, with a spread of 2 about the start."""
    theta = start
    for _ in range(20):
        posteriors = []
        for pattern, label, weight in zip(rows.votes, rows.labels, rows.weights, strict=True):
            joint = likelihoods(pattern, theta)[label]
            posteriors.append(np.zeros((2, 7)))
            posteriors[-1][label] = weight * joint / joint.sum()
        before, theta = theta, newton_step(rows.votes, posteriors, theta, start, np.full(3, 2.0))
        if abs(theta - before).max() < 0.01:
            break
    return theta


def adapted(votes, w, mean, spread):
    """Return log-odds of a new dataset's rows after EM over labels and difficulties, of 200 rows at most."""
    counted = w * min(1, 200 / w.sum())
    theta, prior = mean, 0.0
    for _ in range(20):
        posteriors = []
        for pattern, weight in zip(votes, counted, strict=True):
            joint = likelihoods(pattern, theta) * np.array([[expit(-prior)], [expit(prior)]])
            posteriors.append(weight * joint / joint.sum())
        before, theta = theta, newton_step(votes, posteriors, theta, mean, spread)
        zeros, ones = np.sum(posteriors, axis=(0, 2))
        prior = np.log((ones + 2) / (zeros + 2))
        if abs(theta - before).max() < 1e-3:
            break
    return np.array([np.log(joint[1].sum() / joint[0].sum()) for joint in (likelihoods(v, theta) for v in votes)])


@pytest.mark.parametrize(("seed", "n_datasets", "n_voters"), [(10, 3, 3), (11, 1, 3), (12, 2, 4)])
def test_the_latent_class_is_that_of_loops(seed, n_datasets, n_voters):
    """Means over datasets, spread beyond the noise of counting, and a new dataset's log-odds."""
    rows = panel(seed, n_datasets=n_datasets, n=25, n_voters=n_voters)
    if n_datasets == 1:  # a judge that is always wrong, and one that always votes the same: whole steps beyond 1
        rows.votes[:, 0], rows.votes[:, 1], rows.votes[:, 2] = 1 - rows.labels, 1, 0
    start = np.tile([0.0, 2.0, 1.0], (n_voters, 1))
    estimates = np.array([labeled_fit(rows.only(d), start) for d in range(n_datasets)])
    fitted = fit_latent_class(rows)
    assert fitted.mean == pytest.approx(estimates.mean(axis=0), abs=1e-8)
    sizes = [[rows.weights[(rows.groups == d) & (rows.labels == c)].sum() for c in (0, 1)] for d in range(n_datasets)]
    noise = np.mean([(1 / (0.2 * zeros) + 1 / (0.2 * ones)) / 4 for zeros, ones in sizes])
    for number, factor in enumerate((1.0, 4.0, 1.0)):
        between = sum(
            (estimates[d, j, number] - estimates[:, j, number].mean()) ** 2
            for d, j in product(range(n_datasets), range(n_voters))
        ) / (max(n_datasets - 1, 1) * n_voters)
        assert fitted.spread[number] == pytest.approx(np.sqrt(max(between - factor * noise, 0.05**2)), abs=1e-8)
    new = panel(seed + 20, n_datasets=1, n=20, n_voters=n_voters)
    for w in (np.ones(20), new.weights * 8.0):
        expected = adapted(new.votes, w, fitted.mean, fitted.spread)
        assert fitted.adapt(new.votes, w) == pytest.approx(expected, abs=1e-7)
        found = MEMBERS["latent-class"](rows, 0)(replace(unlabeled(new), weights=w))
        assert found == pytest.approx(expected, abs=1e-7)


def test_the_latent_class_spreads_where_datasets_differ():
    """One judge lenient on one dataset, strict on another: the spread is that of the two fits, less the noise."""
    votes, labels = np.tile([[1], [1], [1], [0], [1], [0], [0], [0]], (40, 1)), np.tile([1, 1, 0, 0], 80)
    votes[:160][labels[:160] == 0] = 1
    rows = LabeledRows(
        votes.astype(np.int8), np.empty((320, 0)), np.ones(320), labels.astype(np.int8), np.repeat([0, 1], 160)
    )
    fitted = fit_latent_class(rows)
    estimates = np.array([labeled_fit(rows.only(d), np.array([[0.0, 2.0, 1.0]])) for d in (0, 1)])
    noise = (1 / (0.2 * 80) + 1 / (0.2 * 80)) / 4
    assert fitted.spread[0] == pytest.approx(np.sqrt(np.ptp(estimates[:, 0, 0]) ** 2 / 2 - noise), abs=1e-8)
    assert fitted.spread[0] > 0.5


def test_log_odds_of_the_latent_class_are_held_within_20():
    """Sixty judges that err independently, one time in twelve, have log-odds beyond it."""
    labels = np.repeat([1, 0], 30)
    votes = np.where(np.random.default_rng(0).random((60, 60)) < 1 / 12, 1 - labels[:, None], labels[:, None])
    rows = LabeledRows(
        votes.astype(np.int8), np.empty((60, 0)), np.ones(60), labels.astype(np.int8), np.zeros(60, dtype=int)
    )
    assert fit_latent_class(rows).adapt(rows.votes, rows.weights).max() > 20
    found = MEMBERS["latent-class"](rows, 0)(unlabeled(rows))
    assert (found.min(), found.max()) == (-20.0, 20.0)


def test_what_one_dataset_teaches_can_be_handed_in():
    """Estimates of all datasets serve fits without one of them, and give what working them out anew gives."""
    rows = panel(13, n=20)
    estimates = judge_estimates(rows)
    assert set(estimates) == {0, 1, 2}
    others = rows.without(0)
    assert np.array_equal(fit_latent_class(others, estimates).mean, fit_latent_class(others).mean)
    changed = {**estimates, 1: replace(estimates[1], theta=estimates[1].theta + 1.0)}
    moved = fit_latent_class(others, changed).mean - fit_latent_class(others).mean
    assert moved == pytest.approx(np.full((3, 3), 0.5), abs=1e-12)
    member = members_of(["latent-class"], rows)["latent-class"]
    assert np.array_equal(member(others, 0)(unlabeled(rows)), MEMBERS["latent-class"](others, 0)(unlabeled(rows)))


def plain_tilt(score, rows):
    """Return the bins' edges, log probabilities by class, centres, and the spread of the tilts, by loops."""
    w = balanced(rows)
    order = np.argsort(score, kind="stable")
    reached = np.cumsum(w[order]) / w.sum()
    edges = sorted({next(score[order][i] for i in range(len(w)) if reached[i] >= j / 24) for j in range(1, 24)})
    bins = np.array([sum(s >= edge for edge in edges) for s in score])
    n_bins = len(edges) + 1
    mean = np.average(score, weights=w)
    scale = np.sqrt(np.average((score - mean) ** 2, weights=w))
    centres = np.array(
        [np.average(score[bins == b], weights=w[bins == b]) if (bins == b).any() else 0.0 for b in range(n_bins)]
    )
    centres = (centres - mean) / scale
    shares = np.zeros((len(rows.present()), 2, n_bins))
    for d, label, b in product(range(shares.shape[0]), range(2), range(n_bins)):
        of_class = (rows.groups == d) & (rows.labels == label)
        shares[d, label, b] = rows.weights[of_class & (bins == b)].sum() / rows.weights[of_class].sum()
    table = shares.mean(axis=0)
    table = 0.98 * table + 0.02 * table.mean(axis=0)
    tilts = np.zeros((shares.shape[0], 2))
    for d, label in product(range(shares.shape[0]), range(2)):
        # The tilt of largest likelihood, which is that under which the table's mean score is the dataset's.
        def loss(tilt, d=d, label=label):
            bent = np.log(np.maximum(table[label], 1e-12)) + tilt[0] * centres
            return np.log(np.exp(bent).sum()) - shares[d, label] @ bent

        tilts[d, label] = minimize(loss, [0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13}).x[0]
    return np.array(edges), np.log(np.maximum(table, 1e-12)), centres, np.sqrt((tilts**2).mean(axis=0))


def plain_adapt(score, w, edges, log_table, centres, spread):
    """Return log-odds of rows under the tilts and the prior that maximise the penalised likelihood."""
    bins = np.array([sum(s >= edge for edge in edges) for s in score])

    def bent(tilts):
        raw = np.exp(log_table + np.outer(tilts, centres))
        return np.log(raw / raw.sum(axis=1, keepdims=True))

    def loss(theta):
        mixed = np.log(expit(-theta[2]) * np.exp(bent(theta[:2])[0]) + expit(theta[2]) * np.exp(bent(theta[:2])[1]))
        pull = np.sum((theta[:2] / spread) ** 2) / 2 + (theta[2] / 1.5) ** 2 / 2
        return pull - min(100, w.sum()) * np.average(mixed[bins], weights=w)

    rough = minimize(
        loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 2000}
    ).x
    tilted = bent(minimize(loss, rough, method="BFGS", options={"gtol": 1e-8}).x[:2])
    return (tilted[1] - tilted[0])[bins]


@pytest.mark.parametrize(("seed", "distinct"), [(30, False), (31, True)])
def test_the_tilt_is_that_of_loops(seed, distinct):
    """Bins of about equal weight, tables, tilts of the datasets, and how a new dataset is bent."""
    rows = panel(seed, n=60, n_scorers=1)
    score = logit(rows.scores[:, 0])
    score = score if distinct else score.round()
    edges, log_table, centres, spread = plain_tilt(score, rows)
    tilt = fit_tilt(score, rows)
    assert tilt.edges == pytest.approx(edges, abs=1e-12)
    assert tilt.log_table == pytest.approx(log_table, abs=1e-9)
    assert tilt.centres == pytest.approx(centres, abs=1e-9)
    assert spread.min() > 0.1
    assert tilt.spread == pytest.approx(spread, abs=1e-6)
    new = panel(seed + 5, n_datasets=1, n=30, n_scorers=1)
    at = logit(new.scores[:, 0]) + 0.6
    for w in (new.weights, new.weights * 4):
        expected = plain_adapt(at, w, edges, log_table, centres, spread)
        assert tilt.adapt(at, w) == pytest.approx(expected, abs=2e-4)


def test_tilts_have_a_least_spread_and_bounds():
    """Datasets that are copies have no tilt: a spread of 0.1 is kept; a class at one end has a tilt of 5."""
    score, labels = np.tile(np.linspace(-1, 1, 10), 6), np.tile(np.repeat([0, 1], 10), 3)
    rows = LabeledRows(
        np.zeros((60, 1), np.int8), np.empty((60, 0)), np.ones(60), labels.astype(np.int8), np.repeat([0, 1, 2], 20)
    )
    assert fit_tilt(score, rows).spread.tolist() == [0.1, 0.1]
    # Dataset 0 has all its zeros at the lower end, dataset 1 at the upper: no tilt reaches their means.
    apart = np.concatenate([np.full(10, -1.0), score[:10], np.full(10, 1.0), score[:10]])
    two = LabeledRows(
        np.zeros((40, 1), np.int8),
        np.empty((40, 0)),
        np.ones(40),
        np.tile(np.repeat([0, 1], 10), 2).astype(np.int8),
        np.repeat([0, 1], 20),
    )
    assert fit_tilt(apart, two).spread == pytest.approx([5.0, 0.1], abs=1e-6)


def test_a_constant_score_cannot_be_bent():
    """One bin's worth of score: centred at 0, and a score on the edge lies to its right."""
    rows = panel(33, n=20)
    tilt = fit_tilt(np.full(60, 0.5), rows)
    assert tilt.edges.tolist() == [0.5]
    assert tilt.centres[1] == 0.0
    assert tilt.adapt(np.full(4, 0.5), np.ones(4)) == pytest.approx(np.zeros(4), abs=1e-9)
    estimate = judge_estimates(rows)[0]
    for record in (tilt, fit_latent_class(rows), estimate, unlabeled(rows)):
        assert record != replace(record)
    with pytest.raises(FrozenInstanceError):
        tilt.edges = None
    with pytest.raises(FrozenInstanceError):
        estimate.noise = 0.0
    with pytest.raises(FrozenInstanceError):
        fit_latent_class(rows).mean = None


def test_the_tilt_member_bends_the_logistic_regression_on_votes():
    """Its score is that member's log-odds, on training rows and new ones."""
    rows, new = panel(34), panel(35, n_datasets=1)
    base = MEMBERS["logistic-votes"](rows, 0)
    expected = fit_tilt(base(unlabeled(rows)), rows).adapt(base(unlabeled(new)), new.weights)
    assert MEMBERS["tilt"](rows, 0)(unlabeled(new)) == pytest.approx(expected, abs=1e-9)
