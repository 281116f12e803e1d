"""The map from answers to evidence: by hand, and where answers say nothing."""

import numpy as np
import pytest
from scipy.special import logit

from deep._util.scales import Scale
from deep.model import AnswerMap
from deep.model._average import MAX_KNOTS
from deep.records import VoteMatrix


def matrix(numbers, scales, datasets=None):
    """Return a matrix of answers without labels."""
    n, k = np.shape(numbers)
    names = ["news"] * n if datasets is None else datasets
    return VoteMatrix(numbers, range(n), [f"judge {j}" for j in range(k)], names, [-1] * n, scales=scales)


def test_votes_are_minus_one_and_one_and_scores_standardised_log_odds():
    """Scores are held within [0.01, 0.99]; no answer stays none."""
    numbers = np.array([[1, 0.2], [0, 0.001], [np.nan, 0.7], [1, np.nan]])
    votes = matrix(numbers, ["binary", "unit"])
    result = AnswerMap.fit(votes)(votes.answers)
    z = logit([0.2, 0.01, 0.7])
    assert result[:, 0] == pytest.approx([1, -1, np.nan, 1], nan_ok=True)
    assert result[:, 1] == pytest.approx([*(z - z.mean()) / z.std(), np.nan], nan_ok=True)


def test_without_labels_a_share_stands_for_itself():
    """A score of 0.7 is a vote of 1 by 0.7: evidence 0.4."""
    votes = matrix(np.array([[0.2], [0.7], [np.nan]]), ["unit"])
    assert AnswerMap.fit(votes, labeled=False)(votes.answers)[:, 0] == pytest.approx([-0.6, 0.4, np.nan], nan_ok=True)


def test_levels_are_valued_by_what_the_others_say_there():
    """A judge whose 2 and 3 mean the same to the others, and whose 4 lies near its 5."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=4000)
    others = np.clip(np.round(3 + truth[:, None] + rng.normal(0, 0.5, (4000, 3))), 1, 5)
    steps = np.searchsorted([-1.5, -0.5, 0.5], truth)
    grader = np.array([1, 2, 4, 5])[steps] + ((steps == 1) & (rng.random(4000) < 0.5))
    votes = matrix(np.column_stack([grader, others]), ["1-5"] * 4)
    places, shares = AnswerMap.fit(votes).knots[0]
    assert places.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert shares[2] - shares[1] < 0.05
    assert shares[1] > 0.25
    assert (np.diff(shares) >= 0).all()


def test_a_level_that_was_not_seen_borrows_from_its_neighbours():
    """Nobody gave a 3, and one alone a 1; a grade between two levels lies between their values."""
    rng = np.random.default_rng(1)
    truth = rng.random(500)
    numbers = np.column_stack([np.where(truth < 0.5, 2, 5 - (truth < 0.8)), np.round(1 + 4 * truth)])
    numbers[0] = 1, 1
    votes = matrix(numbers, ["1-5", "1-5"])
    result = AnswerMap.fit(votes)
    new = result(Scale(1, 5).places(np.array([[1.0], [2], [3], [3.5], [4], [5]])) * np.ones(2))[:, 0]
    assert (np.diff(new) >= 0).all()
    assert new[1] <= new[2] <= new[4]
    assert new[3] == pytest.approx((new[2] + new[4]) / 2)


def test_datasets_weigh_the_same():
    """Rows repeated in one of them change nothing."""
    rng = np.random.default_rng(2)
    numbers = rng.integers(1, 6, (60, 3)).astype(float)
    rows = np.r_[np.repeat(np.arange(30), 4), np.arange(30, 60)]
    once = matrix(numbers, ["1-5"] * 3, ["a"] * 30 + ["b"] * 30)
    more = matrix(numbers[rows], ["1-5"] * 3, ["a"] * 120 + ["b"] * 30)
    one, two = (AnswerMap.fit(votes) for votes in (once, more))
    np.testing.assert_allclose(one(once.answers), two(once.answers), rtol=0, atol=0.2)


def test_numbers_in_any_unit_become_ranks():
    """However they are stretched; many keep few knots."""
    rng = np.random.default_rng(1)
    plain = rng.normal(3, 2, 5000)
    one = matrix(plain[:, None], [Scale(-10.0, 20.0)])
    other = matrix(np.exp(plain)[:, None], [Scale(0.0, 1e9)])
    result = AnswerMap.fit(one)
    places, ranks = result.knots[0]
    assert len(places) <= MAX_KNOTS
    assert (np.diff(places) > 0).all()
    assert abs(np.interp(one.answers[:, 0], places, ranks) - (np.argsort(np.argsort(plain)) + 0.5) / 5000).max() < 0.004
    np.testing.assert_allclose(AnswerMap.fit(other)(other.answers), result(one.answers), rtol=0, atol=0.02)


@pytest.mark.parametrize("column", [np.full(6, np.nan), np.full(6, 3.0), np.full(6, 5.0)])
def test_a_judge_that_says_nothing_has_no_evidence(column):
    """All missing, or all alike."""
    votes = matrix(np.column_stack([column, [1.0, 2, 3, 4, 5, 5]]), ["1-5", "1-5"])
    for labeled in (True, False):
        result = AnswerMap.fit(votes, labeled=labeled)(votes.answers)[:, 0]
        assert np.isnan(result).all() == np.isnan(column).all()
        assert np.ptp(np.nan_to_num(result)) == pytest.approx(0.0, abs=1e-9)
