"""The pool: exact on cells, calibrated over seeds on worlds with known truth, and honest about its weights."""

import numpy as np
import pytest
from deep.model.pool._rows import LabeledRows, Rows
from deep.model.pool._tilt import fit_tilt
from scipy.special import expit

from deep.exceptions import InputError
from deep.model import Pool
from deep.model.pool._members import ADAPTIVE, MEMBERS, members_for

QUICK = ["logistic-votes", "latent-class", "tilt"]


def world(seed, n_datasets=8, n=300, n_voters=5, target_size=None):
    """Return votes, labels, dataset numbers and scores; leniency and prior move from dataset to dataset."""
    rng = np.random.default_rng(seed)
    votes, labels, groups, scores = [], [], [], []
    strength = np.linspace(0.6, 1.6, n_voters)
    for d in range(n_datasets):
        size = target_size if target_size and d == n_datasets - 1 else n
        prior, lenient = expit(rng.normal(0.4, 0.8)), rng.normal(0, 0.35)
        y = (rng.random(size) < prior).astype(int)
        y[:2] = 0, 1
        latent = lenient + (2 * y - 1)[:, None] * strength + 0.7 * rng.normal(size=(size, 1))
        latent = latent + rng.normal(size=(size, n_voters))
        votes.append((latent > 0).astype(int))
        scores.append(latent)
        labels.append(y)
        groups.append(np.full(size, d))
    return tuple(np.concatenate(part) for part in (votes, labels, groups, scores))


def split(data, target):
    """Return the training and the target part of a world."""
    held = data[2] == target
    return [part[~held] for part in data], [part[held] for part in data]


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_every_member_separates_the_classes(name):
    """On a dataset that it was not fitted on, each member scores consistent rows higher."""
    (votes, labels, groups, scores), (new_votes, y, _, new_scores) = split(world(0), 7)
    train = LabeledRows(votes.astype(np.int8), scores, np.ones(len(votes)), labels.astype(np.int8), groups)
    target = Rows(new_votes.astype(np.int8), new_scores, np.ones(len(y)))
    score = MEMBERS[name](train, 0)(target)
    assert score.shape == y.shape
    assert np.isfinite(score).all()
    assert score[y == 1].mean() > score[y == 0].mean() + 0.5


@pytest.mark.parametrize("name", [name for name in members_for(5, 0) if "label-model" not in name])
def test_members_on_votes_are_exact_on_cells(name):
    """Rows repeated and weighted rows give a member the same scores, in fitting and in scoring."""
    (votes, labels, groups, _), (new_votes, *_) = split(world(1, n_datasets=4, n=120), 3)
    times = np.random.default_rng(0).integers(1, 4, len(votes))
    new_times = np.random.default_rng(1).integers(1, 4, len(new_votes))

    def panel(repeats):
        rows = np.repeat(np.arange(len(votes)), repeats)
        weights = np.ones(len(rows)) if repeats is times else times.astype(float)
        return LabeledRows(
            votes[rows].astype(np.int8), np.empty((len(rows), 0)), weights, labels[rows].astype(np.int8), groups[rows]
        )

    def target(repeats):
        rows = np.repeat(np.arange(len(new_votes)), repeats)
        weights = np.ones(len(rows)) if repeats is new_times else new_times.astype(float)
        return Rows(new_votes[rows].astype(np.int8), np.empty((len(rows), 0)), weights)

    once = np.ones(len(votes), dtype=int), np.ones(len(new_votes), dtype=int)
    repeated = MEMBERS[name](panel(times), 0)(target(new_times))
    weighted = MEMBERS[name](panel(once[0]), 0)(target(once[1]))
    assert repeated == pytest.approx(np.repeat(weighted, new_times), abs=1e-4)


def test_the_pool_is_exact_on_cells():
    """The whole pool, weights and prior included, gives the same for weighted and for repeated rows."""
    (votes, labels, groups, _), (new_votes, *_) = split(world(2, n_datasets=5, n=100), 4)
    times = np.random.default_rng(0).integers(1, 4, len(votes))
    repeated = Pool(QUICK).fit(
        np.repeat(votes, times, axis=0), np.repeat(labels, times), groups=np.repeat(groups, times)
    )
    weighted = Pool(QUICK).fit(votes, labels, groups=groups, sample_weight=times)
    a, b = repeated.score(new_votes), weighted.score(new_votes)
    assert a.p_consistent == pytest.approx(b.p_consistent, abs=1e-3)
    assert repeated.weights_ == pytest.approx(weighted.weights_, abs=1e-3)


@pytest.mark.slow
def test_over_seeds_the_learned_prior_helps_and_intervals_cover():
    """Over simulated worlds, the learned prior beats the uniform one, and intervals hold the observed rates."""
    losses, priors, cells, widths = [], [], [], []
    for seed in range(12):
        (votes, labels, groups, _), (new_votes, y, *_) = split(world(seed, target_size=1500), 7)
        found = Pool(["logistic-votes", "tilt"]).fit(votes, labels, groups=groups).score(new_votes)
        losses.append([-np.mean(np.log(np.where(y == 1, p, 1 - p))) for p in (found.p_consistent, found.p_uniform)])
        priors.append(found.prior.low <= y.mean() <= found.prior.high)
        patterns, where = np.unique(new_votes, axis=0, return_inverse=True)
        n = np.bincount(where, minlength=len(patterns))
        low, high = found.interval(n[where])
        rate = np.bincount(where, weights=y) / n
        inside = (np.bincount(where, weights=low) / n <= rate) & (rate <= np.bincount(where, weights=high) / n)
        cells.append(inside[n >= 30].mean())
        widths.append(found.prior.high - found.prior.low)
    learned, uniform = np.mean(losses, axis=0)
    assert learned < uniform
    assert np.mean(priors) >= 0.75
    assert np.mean(cells) >= 0.85
    assert np.mean(widths) < 0.8


@pytest.mark.slow
def test_soft_scores_add_what_votes_lose():
    """With the latent values beside the votes, the pool decides better than with the votes alone."""
    gains = []
    for seed in range(4):
        (votes, labels, groups, scores), (new_votes, y, _, new_scores) = split(world(seed, n=400), 7)
        hard = Pool(["logistic-votes"]).fit(votes, labels, groups=groups).score(new_votes)
        soft = Pool(["logistic-scores", "logistic-votes"]).fit(votes, labels, groups=groups, scores=scores)
        log_odds = soft.score(new_votes, scores=new_scores).log_odds
        right = [(z >= 0)[y == 1].mean() + (z < 0)[y == 0].mean() for z in (log_odds, hard.log_odds)]
        gains.append(right[0] - right[1])
    assert np.mean(gains) > 0.02


def test_weights_are_shown_and_sum_to_one():
    """Members weigh by their loss on datasets left out: the lower, the more."""
    (votes, labels, groups, _), _ = split(world(3), 7)
    pool = Pool(QUICK).fit(votes, labels, groups=groups)
    assert sum(pool.weights_.values()) == pytest.approx(1.0)
    best = min(pool.losses_, key=pool.losses_.get)
    assert pool.form_weights_[best] == max(pool.form_weights_.values())
    assert set(pool.prior_members_) == set(pool.members_) - set(ADAPTIVE)


def test_missing_votes_and_scores_are_neutral():
    """Rows without any vote or score get a finite P; a dataset of nothing else refuses nothing by accident."""
    votes, labels, groups, scores = world(4, n_datasets=4, n=150)
    votes = np.where(np.random.default_rng(0).random(votes.shape) < 0.2, -1, votes)
    scores = np.where(votes == -1, np.nan, scores)
    found = Pool().fit(votes, labels, groups=groups, scores=scores)
    new = found.score(np.full((3, 5), -1), scores=np.full((3, 5), np.nan))
    assert np.isfinite(new.p_consistent).all()
    assert np.ptp(new.log_odds) == pytest.approx(0.0)


def test_the_tilt_moves_towards_the_target():
    """A dataset whose scores all lie higher is read as more lenient judges, not only as a higher prior."""
    rng = np.random.default_rng(0)
    labels, groups = np.tile([0, 1], 600), np.repeat(np.arange(4), 300)
    score = rng.normal(2.0 * labels - 1.0 + rng.normal(0, 0.7, 4)[groups], 1.0)
    panel = LabeledRows(np.zeros((1200, 1), np.int8), np.empty((1200, 0)), np.ones(1200), labels, groups)
    tilt = fit_tilt(score, panel)
    moved = rng.normal(2.0 * labels[:400] - 1.0 + 1.0, 1.0)
    at_zero = tilt.adapt(np.r_[moved, 0.0], np.r_[np.ones(400), 0.0])[-1]
    assert at_zero < -0.4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": np.repeat([0, 1], 50)}, "`groups` must name at least 3 datasets. Got 2."),
        (
            {"y": np.r_[np.zeros(34), np.tile([0, 1], 33)]},
            "`y` must hold both 0 and 1 in every training dataset",
        ),
        ({"scores": np.full((100, 1), np.inf)}, "`scores` must be finite or NaN"),
        ({"scores": np.zeros(100)}, "`scores` must be two-dimensional"),
        ({"members": ["nothing"]}, "`members` must be one of"),
        ({"members": ["best-score"]}, "`members` must be one of"),
        ({"temperature": 0.0}, "`temperature` must be above 0"),
    ],
)
def test_faults_are_told(change, message):
    """A fault is one line that names the parameter."""
    rng = np.random.default_rng(0)
    data = {"y": np.tile([0, 1], 50), "groups": np.r_[np.zeros(34), np.ones(33), np.full(33, 2)], "scores": None}
    options = {"members": QUICK} | {k: v for k, v in change.items() if k in ("members", "temperature")}
    data |= {k: v for k, v in change.items() if k in data}
    with pytest.raises(InputError, match=message):
        Pool(**options).fit(rng.integers(0, 2, (100, 3)), **data)


def test_scores_are_wanted_again_where_they_were_given():
    """A pool fitted with scores cannot score without them."""
    votes, labels, groups, scores = world(5, n_datasets=3, n=60)
    pool = Pool(["logistic-scores"]).fit(votes, labels, groups=groups, scores=scores)
    with pytest.raises(InputError, match="`scores` must have 5 columns"):
        pool.score(votes)
