"""The stack: exact on cells, calibrated over seeds on worlds with known truth, and honest about its weights."""

import numpy as np
import pytest
from scipy.special import expit

from deep.features import Rows
from deep.model import LabeledRows, Stack
from deep.model.stack import ANSWER_MEMBERS, MEMBER_FITS, VOTE_MEMBERS
from tests.model.fitted import identity

QUICK = ["best-judge", "majority", "ridge-votes"]


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


@pytest.mark.parametrize("name", sorted(MEMBER_FITS))
def test_every_member_separates_the_classes(name):
    """On a dataset that it was not fitted on, each member scores consistent rows higher."""
    (votes, labels, groups, scores), (new_votes, y, _, new_scores) = split(world(0), 7)
    if name in VOTE_MEMBERS and name not in ANSWER_MEMBERS:
        scores, new_scores = scores[:, :0], new_scores[:, :0]
    train = LabeledRows(votes.astype(np.int8), scores, np.ones(len(votes)), labels.astype(np.int8), groups)
    target = Rows(new_votes.astype(np.int8), new_scores, np.ones(len(y)))
    score = MEMBER_FITS[name](train, 0)(target)
    assert score.shape == y.shape
    assert np.isfinite(score).all()
    assert score[y == 1].mean() > score[y == 0].mean() + 0.5


@pytest.mark.slow
def test_over_seeds_the_learned_prior_helps_and_intervals_cover():
    """Over simulated worlds, the learned prior beats the uniform one, and intervals hold the observed rates."""
    losses, priors, cells, widths = [], [], [], []
    for seed in range(12):
        (votes, labels, groups, _), (new_votes, y, *_) = split(world(seed, target_size=1500), 7)
        result = Stack(["majority", "ridge-votes"]).fit(votes, labels, groups=groups).score(new_votes)
        losses.append([-np.mean(np.log(np.where(y == 1, p, 1 - p))) for p in (result.p_consistent, result.p_uniform)])
        priors.append(result.prior.low <= y.mean() <= result.prior.high)
        patterns, where = np.unique(new_votes, axis=0, return_inverse=True)
        n = np.bincount(where, minlength=len(patterns))
        low, high = result.interval(n[where])
        rate = np.bincount(where, weights=y) / n
        inside = (np.bincount(where, weights=low) / n <= rate) & (rate <= np.bincount(where, weights=high) / n)
        cells.append(inside[n >= 30].mean())
        widths.append(result.prior.high - result.prior.low)
    learned, uniform = np.mean(losses, axis=0)
    assert learned < uniform
    assert np.mean(priors) >= 0.75
    assert np.mean(cells) >= 0.85
    assert np.mean(widths) < 0.8


@pytest.mark.slow
def test_soft_scores_add_what_votes_lose():
    """With the latent values beside the votes, the stack decides better than with the votes alone."""
    gains = []
    for seed in range(4):
        (votes, labels, groups, scores), (new_votes, y, _, new_scores) = split(world(seed, n=400), 7)
        hard = Stack(["majority"]).fit(votes, labels, groups=groups).score(new_votes)
        soft = Stack(["logistic-scores", "majority"]).fit(scores, labels, groups=groups, answer_map=identity(5))
        log_odds = soft.score(new_scores).log_odds
        right = [(z >= 0)[y == 1].mean() + (z < 0)[y == 0].mean() for z in (log_odds, hard.log_odds)]
        gains.append(right[0] - right[1])
    assert np.mean(gains) > 0.02


@pytest.mark.parametrize("seed", range(3))
def test_no_slope_is_negative(seed):
    """Also where judges and scores say the opposite of what they said, or nothing at all, on some datasets."""
    votes, labels, groups, scores = world(seed, n_datasets=4, n=60)
    rng = np.random.default_rng(seed)
    odd = groups >= 2
    votes[odd], scores[odd] = 1 - votes[odd], -scores[odd]
    mixed = Stack().fit(scores, labels, groups=groups, answer_map=identity(5))
    noise = Stack().fit(rng.integers(-1, 2, votes.shape), labels, groups=groups)
    for stack in (mixed, noise):
        for part in stack.blend_.parts:
            assert part.slope >= 0
        pairs = zip(stack.blend_.parts, stack.contexts_, strict=False)
        offset = [part.intercept + part.context * c for part, c in pairs]
        assert offset == pytest.approx(np.zeros(len(offset)), abs=1e-9)


@pytest.mark.parametrize("with_scores", [False, True])
def test_order_and_names_of_rows_do_not_matter(with_scores):
    """Bit for bit in votes; the forest on scores draws its rows in one order too."""
    votes, labels, groups, scores = world(7, n_datasets=4, n=60)
    answers, given = (scores, {"answer_map": identity(5)}) if with_scores else (votes, {})
    order = np.random.default_rng(0).permutation(len(labels))
    one = Stack().fit(answers, labels, groups=groups, **given)
    two = Stack().fit(answers[order], labels[order], groups=groups[order], **given)
    assert np.array_equal(one.score(answers).p_consistent, two.score(answers).p_consistent)


def voters(kind, labels, rng):
    """Return three voters of a kind that breaks what was not thought of."""
    fair = np.where(rng.random((len(labels), 3)) < 0.75, labels[:, None], 1 - labels[:, None])
    made = {
        "constant": np.ones_like(fair),
        "inverted": 1 - fair,
        "perfect": np.repeat(labels[:, None], 3, axis=1),
        "duplicate": np.repeat(fair[:, :1], 3, axis=1),
        "silent": np.column_stack([np.full((len(labels), 2), -1), fair[:, 0]]),
        "one constant": np.column_stack([np.zeros(len(labels)), fair[:, :2]]),
    }
    return made[kind].astype(np.int8)


@pytest.mark.parametrize("kind", ["constant", "inverted", "perfect", "duplicate", "silent", "one constant"])
@pytest.mark.parametrize("with_scores", [False, True])
def test_odd_voters_give_finite_p(kind, with_scores):
    """And an odd panel of scores beside them: P, its interval and all weights are finite, P never 0 or 1."""
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 2, 160), np.repeat(np.arange(4), 40)
    votes = voters(kind, labels, rng)
    answers, given = votes, {}
    if with_scores:
        answers, given = np.where(votes == -1, np.nan, votes * 3.0 - 1.0), {"answer_map": identity(3)}
    stack = Stack().fit(answers, labels, groups=groups, **given)
    result = stack.score(answers[:40])
    low, high = result.interval()
    for values in (result.log_odds, result.p_consistent, low, high, list(stack.weights_.values())):
        assert np.isfinite(values).all()
    assert (low > 0).all()
    assert (low <= result.p_consistent).all()
    assert (result.p_consistent <= high).all()
    assert (high < 1).all()
    assert 0 < result.prior.low <= result.prior.estimate <= result.prior.high < 1
    if kind == "perfect":
        assert ((result.log_odds > 0) == (labels[:40] == 1)).all()
    if kind == "constant":
        assert np.ptp(result.log_odds) == pytest.approx(0.0, abs=1e-9)
        assert result.prior.low < 0.45
        assert result.prior.high > 0.6


def test_inverted_voters_say_nothing_to_simple_members():
    """A judge that is mostly wrong is not believed the other way round: half of a chance is all it is worth."""
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 2, 160), np.repeat(np.arange(4), 40)
    votes = voters("inverted", labels, rng)
    stack = Stack(QUICK).fit(votes, labels, groups=groups)
    assert stack.score(votes).p_uniform == pytest.approx(np.full(160, 0.5), abs=1e-9)


def test_missing_votes_and_scores_are_neutral():
    """Rows without any vote or score get a finite P; a dataset of nothing else refuses nothing by accident."""
    votes, labels, groups, scores = world(4, n_datasets=4, n=150)
    votes = np.where(np.random.default_rng(0).random(votes.shape) < 0.2, -1, votes)
    scores = np.where(votes == -1, np.nan, scores)
    result = Stack().fit(scores, labels, groups=groups, answer_map=identity(5))
    new = result.score(np.full((3, 5), np.nan))
    assert np.isfinite(new.p_consistent).all()
    assert np.ptp(new.log_odds) == pytest.approx(0.0)
