"""Labels of the user's own dataset alone: scores of rows that nothing saw, over seeds, and odd samples."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

from deep.evaluate import Target, share_report
from deep.exceptions import InputError
from deep.model import fit, prior_lines
from deep.model._regimes import CANDIDATE_FITS, _choose_fit
from deep.records import VoteMatrix


def dataset(seed, n_labels, n=1500, n_voters=5, noise=False, documents=None):
    """Return votes of a dataset of which some rows have labels, and all its labels."""
    rng = np.random.default_rng(seed)
    y = np.r_[[0] * 6, [1] * 6, rng.integers(0, 2, n - 12)]
    right = rng.random((n, n_voters)) < np.linspace(0.55, 0.8, n_voters)
    votes = rng.integers(0, 2, (n, n_voters)) if noise else np.where(right, y[:, None], 1 - y[:, None])
    votes[rng.random(votes.shape) < 0.1] = -1
    labels = np.where(np.arange(n) < n_labels, y, -1)
    ids, names = [f"i{i}" for i in range(n)], [f"j{j}" for j in range(n_voters)]
    return VoteMatrix(votes, ids, names, ["mine"] * n, labels, documents), y


def log_loss(p, y):
    """Return the mean log loss."""
    return float(-np.mean(np.log(np.where(y == 1, p, 1 - p))))


@pytest.mark.parametrize(("n_labels", "n_seeds"), [(24, 10), pytest.param(60, 40, marks=pytest.mark.slow)])
def test_scores_are_those_of_fresh_rows(n_labels, n_seeds):
    """Over seeds the log loss that is printed is that of rows without a label, within noise, choice and all."""
    gaps = []
    for seed in range(n_seeds):
        votes, y = dataset(seed, n_labels)
        model = fit(votes)
        assert model.method == "own-labels"
        fresh = log_loss(model.score(votes)[n_labels:], y[n_labels:])
        gaps.append(model.fit_report["left_out_scores"]["mean"]["log_loss"] - fresh)
    assert abs(np.mean(gaps)) < 2.5 * np.std(gaps) / np.sqrt(n_seeds) + 0.01


def test_noise_does_not_print_a_good_score():
    """Twenty-four rows, eight judges that toss coins: no score is near perfect, and their mean is that of chance."""
    result = []
    for seed in range(10):
        votes, _ = dataset(seed, 24, n=200, n_voters=8, noise=True)
        mean = fit(votes).fit_report["left_out_scores"]["mean"]
        result.append([mean["auroc"], mean["balanced_accuracy"], mean["log_loss"]])
    auroc, balanced, loss = np.transpose(result)
    assert max(auroc.max(), balanced.max()) < 0.95
    assert auroc.mean() == pytest.approx(0.5, abs=0.12)
    assert balanced.mean() == pytest.approx(0.5, abs=0.12)
    assert loss.mean() > np.log(2) - 0.03


def test_p_is_calibrated_where_labels_are_many():
    """The mean P is the share of label 1, and so it is among the rows of high and of low P."""
    votes, y = dataset(1, 600, n=6000)
    p = fit(votes).score(votes)[600:]
    assert p.mean() == pytest.approx(y[600:].mean(), abs=0.04)
    for kept in (p > 0.6, p < 0.4):
        assert kept.sum() > 500
        assert p[kept].mean() == pytest.approx(y[600:][kept].mean(), abs=0.05)


def test_intervals_hold_the_rate_of_patterns():
    """Over seeds, in about nine of ten frequent patterns: how far a fit varies from sample to sample is in them."""
    inside = []
    for seed in range(8):
        votes, y = dataset(seed + 100, 80, n=3000, n_voters=3)
        low, high = fit(votes).intervals(votes).T
        _, where = np.unique(votes.votes, axis=0, return_inverse=True)
        n = np.bincount(where)
        kept = n >= 100
        rate = np.bincount(where, weights=y) / n
        inside.extend(((np.bincount(where, low) / n <= rate) & (rate <= np.bincount(where, high) / n))[kept])
    assert 0.8 <= np.mean(inside) <= 0.97


def test_the_average_is_taken_unless_another_is_clearly_better():
    """By more than one standard error of the difference."""
    rng = np.random.default_rng(0)
    average = rng.random(50)
    rest = {name: average + 0.1 for name in CANDIDATE_FITS if name != "average"}
    assert _choose_fit({"average": average, **rest}, average) == "average"
    assert _choose_fit({"average": average, **rest, "majority": average - 0.1}, average) == "majority"
    noisy = average - 0.01 + rng.normal(0, 1, 50)
    noisy = noisy - noisy.mean() + average.mean() - 0.01
    assert _choose_fit({"average": average, **rest, "majority": noisy}, average) == "average"


def test_order_of_rows_and_rows_without_a_label_change_nothing_but_the_prior():
    """P at a given prior is the same; the share of the whole dataset is told by the labels."""
    votes, _ = dataset(3, 50, n=300)
    model = fit(votes)
    p = model.score(votes, prior=0.5)
    order = np.random.default_rng(0).permutation(300)
    assert fit(votes.rows(order)).score(votes, prior=0.5) == pytest.approx(p, abs=1e-9)
    labeled = fit(votes.rows(np.arange(300) < 60), target="mine")
    uniform = (one.scores_of(votes).p_uniform for one in (labeled, model))
    assert next(uniform) == pytest.approx(next(uniform), abs=1e-9)
    share = (votes.labels == 1).sum() / 50
    assert expit(model.prior.threshold) == pytest.approx(share)
    assert model.prior.low < model.prior.estimate < model.prior.high
    assert logit(model.prior.high) - logit(model.prior.low) > 0.5


def test_the_share_that_is_told_uses_all_votes_and_sees_no_label_twice():
    """Cross-fitted and prediction-powered: nearer to the truth than the mean of the labels, and as honest as 90 %."""
    off, plain, covered = [], [], 0
    for seed in range(20):
        votes, y = dataset(seed, 0, n=400, n_voters=9)
        drawn = np.random.default_rng(seed).permutation(400) < 40
        votes = replace(votes, labels=np.where(drawn, y, -1))
        share = fit(votes).prior
        off.append(share.estimate - y.mean())
        plain.append(votes.labels[votes.labels >= 0].mean() - y.mean())
        covered += share.low <= y.mean() <= share.high
    assert np.sqrt(np.mean(np.square(off))) < 0.8 * np.sqrt(np.mean(np.square(plain)))
    assert covered >= 15


@pytest.mark.parametrize("n_labels", [0, 60])
def test_the_share_of_a_batch_is_measured_on_it(n_labels):
    """All wrong and all right items of one fit: far apart, each within its interval; P of an item stays as it is."""
    votes, y = dataset(1, n_labels, n=400)
    bare = replace(votes, labels=np.full(400, -1))
    model = fit(votes)
    assert model.estimate_prior(bare) == model.prior
    p = model.score(bare)
    for label in (0, 1):
        half = bare.rows(y == label)
        share = model.scores_of(half).share
        assert share.low <= label <= share.high
        assert abs(share.estimate - label) < 0.15
        assert share.high - share.low < 0.7
        assert np.array_equal(model.score(half), p[y == label])
        (told,) = share_report(model, Target(half), of="items")["shares"]
        assert (told["estimate"], told["low"], told["high"]) == pytest.approx((share.estimate, share.low, share.high))


@pytest.mark.parametrize("n_labels", [0, 60])
def test_the_share_of_a_few_items_is_carried_over(n_labels):
    """And the output says so, with every share left possible."""
    votes, y = dataset(1, n_labels, n=400)
    model = fit(votes)
    few = model.scores_of(votes.rows(np.flatnonzero(y == 0)[:29])).share
    assert (few.estimate, few.low, few.high) == (model.prior.estimate, 0.0, 1.0)
    assert few.warning == "carried over from mine, not measured here"
    assert "90 %" not in next(prior_lines({"mine": few}))
    assert model.scores_of(votes.rows(np.flatnonzero(y == 0)[:30])).share.high < 1


def test_rows_of_one_document_count_less():
    """Six documents a class, each of one class: the share and P are less sure than with a document a row."""
    _, y = dataset(4, 60, n=200)
    alone, alike = ([f"d{part}" for part in parts] for parts in (range(200), y * 6 + np.arange(200) % 6))
    many, few = (fit(dataset(4, 60, n=200, documents=of)[0]) for of in (alone, alike))
    assert many.method == few.method == "own-labels"
    assert few.prior.high - few.prior.low > 1.2 * (many.prior.high - many.prior.low)


@pytest.mark.parametrize("lot", [lambda i, y: i % 3, lambda i, y: i if y else 0])
def test_few_documents_of_a_class_only_correct_the_votes(lot):
    """Three documents in all, or all rows of class 0 in one: too few to be left out in folds, and no crash."""
    _, y = dataset(4, 60, n=200)
    votes, _ = dataset(4, 60, n=200, documents=[f"d{lot(i, y[i])}" for i in range(200)])
    model = fit(votes)
    assert (model.method, model.correction.n_labels, model.target) == ("votes", 60, "mine")
    whole = fit(votes.rows(votes.labels >= 0))  # as a dataset that others may come after
    assert (whole.method, whole.left_out) == ("average", {})
    with pytest.raises(InputError, match=r"^`labels` must hold two rows of two documents of each class"):
        fit(dataset(4, 200, n=200, documents=["d"] * 200)[0], recipe="paper", sizes=[3], ensembler="LDA")


def test_labels_of_one_document_say_so():
    """Their intervals are of that document alone; labels of two need no word."""
    votes, y = dataset(2, 0, n=300)
    model = fit(replace(votes, labels=y.astype(np.int8), datasets=np.full(300, "other", dtype=object)))
    labels = np.where(np.arange(300) < 20, y, -1)
    for size, message in ((20, True), (10, False)):
        rows = replace(votes, labels=labels, document_ids=np.array([f"d{i // size}" for i in range(300)], dtype=object))
        note = share_report(model, Target(rows))["note"]
        assert (note is not None and "one document" in note) == message
