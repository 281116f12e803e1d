"""The prior where one to three other datasets were labeled: shrunken, never sure, right about as often as it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import t as student
from sklearn.exceptions import NotFittedError

from deep.exceptions import InputError
from deep.model import LearnedPrior, LeftOut, PriorEstimate, ShiftedPrior
from deep.model.adaptation import FixedPrior, learn_prior

RATES = (0.2, 0.8)
"""Mean P in class 0 and in class 1."""


def mean_p(prior, rates=RATES):
    """Return the log-odds of the mean P of a dataset."""
    return logit(prior * rates[1] + (1 - prior) * rates[0])


def fitted(priors, rates=RATES):
    """Return a rule that learned from datasets whose mean P is that of their priors at these rates."""
    return ShiftedPrior().fit([[mean_p(p, rates)] for p in priors], priors, [[rates]] * len(priors))


@pytest.mark.parametrize("prior", [0.1, 0.5, 0.9])
def test_one_dataset_says_its_own_prior_half_way(prior):
    """Its log-odds drawn by a quarter towards a half, whatever the mean P of the new dataset."""
    alone = ShiftedPrior().fit([[0.3]], [prior])
    assert alone.trust_ == 0.0
    for statistic in (-3.0, 0.0, 3.0):
        assert alone.predict([statistic]).estimate == pytest.approx(expit(0.75 * logit(prior)))
    assert alone.predict([0.0]).warning == "1 training dataset tells little of how far priors lie apart."
    told = ShiftedPrior().fit([[0.3]], [prior], [[RATES]])
    assert told.predict([1.0]) == alone.predict([1.0])


@pytest.mark.parametrize("priors", [(0.3, 0.7), (0.2, 0.5, 0.9)])
def test_two_and_three_by_hand(priors):
    """A shift implied by the rates, believed as far as it was right, drawn to the mean and to a half."""
    k, y = len(priors), logit(np.array(priors))
    rule = fitted(priors)
    between = (0.3 + ((y - y.mean()) ** 2).sum()) / (0.3 + k - 1)
    trust = between / (between + 1.0 / (1.0 + k))  # every share was implied exactly
    assert rule.trust_ == pytest.approx(trust, abs=1e-9)
    shrink = (k + 0.5) / (k + 1)
    for prior in (0.15, 0.6):
        centre = shrink * (y.mean() + trust * (logit(prior) - y.mean()))
        found = rule.predict([mean_p(prior)])
        spread = np.sqrt((6 * 0.64 + ((y - y.mean()) ** 2).sum()) / (5 + k) * (1 + 1 / k))
        reach = spread * student.ppf(0.95, 5 + k)
        expected = expit([centre, centre - reach, centre + reach])
        assert [found.estimate, found.low, found.high] == pytest.approx(expected, abs=1e-9)
    assert rule.left_out_ == pytest.approx(shrink * (y.mean() + trust * (y - y.mean())), abs=1e-9)
    assert found.warning == f"{k} training datasets tell little of how far priors lie apart."


def test_without_rates_of_the_classes_nothing_is_implied():
    """As where a chain has seen the datasets: the mean of their priors, drawn towards a half."""
    rule = ShiftedPrior().fit([[0.0], [1.0]], [0.6, 0.8])
    centre = logit(np.array([0.6, 0.8])).mean() * 2.5 / 3
    assert rule.predict([-2.0]).estimate == rule.predict([2.0]).estimate == pytest.approx(expit(centre))
    assert rule.trust_ == 0.0


def test_what_was_wrong_on_the_training_datasets_is_believed_less():
    """Two datasets whose priors are the reverse of what their mean P implies."""
    right, wrong = fitted((0.3, 0.7)), ShiftedPrior().fit([[mean_p(0.7)], [mean_p(0.3)]], [0.3, 0.7], [[RATES]] * 2)
    assert wrong.trust_ < 0.5 * right.trust_
    assert abs(logit(wrong.predict([mean_p(0.8)]).estimate)) < 0.5 * logit(right.predict([mean_p(0.8)]).estimate)


def test_an_implied_share_is_held_off_0_and_1():
    """A mean P above that of class 1 implies no more than 0.95; rates that do not differ imply no more either."""
    rule = fitted((0.4, 0.6))
    most = (2.5 / 3) * rule.trust_ * logit(0.95)
    for statistic in (mean_p(0.95), 2.0, 30.0):
        assert logit(rule.predict([statistic]).estimate) == pytest.approx(most, abs=1e-9)
    assert logit(rule.predict([-30.0]).estimate) == pytest.approx(-most, abs=1e-9)
    flat = fitted((0.4, 0.6), rates=(0.5, 0.5))
    assert abs(logit(flat.predict([3.0]).estimate)) <= logit(0.95)


@given(
    st.lists(st.tuples(st.floats(-4, 4), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=3),
    st.floats(-4, 4),
    st.booleans(),
)
def test_any_datasets_give_a_shrunken_share(datasets, statistic, with_rates):
    """Trust is between 0 and 1, the estimate between what was implied and a half, its interval never short."""
    x, priors = [[one[0]] for one in datasets], [one[1] for one in datasets]
    means = [[one[2:]] for one in datasets] if with_rates else None
    rule = ShiftedPrior().fit(x, priors, means)
    found = rule.predict([statistic])
    assert 0 <= rule.trust_ <= 1
    assert 0 < found.low < found.estimate < found.high < 1
    held = logit(np.clip(priors, 0.01, 0.99)).mean()
    assert abs(logit(found.estimate)) <= max(abs(held), logit(0.95)) + 1e-9
    # Six datasets' worth of a spread of 0.8 stand beside what was seen.
    assert logit(found.high) - logit(found.low) > 2 * 0.8 * np.sqrt(6 / 8) * student.ppf(0.95, 8)
    assert np.isfinite(rule.left_out_).all()


def simulated(rng, k, rate_spread=0.3):
    """Return the rule learned from k datasets, and the statistic and prior of one dataset more."""
    priors = expit(rng.normal(0.3, 0.8, k + 1))
    lenient = rng.normal(0, rate_spread, k + 1)
    rates = expit(logit(np.array(RATES)) + lenient[:, None])
    statistic = [mean_p(p, r) for p, r in zip(priors, rates, strict=True)]
    means = [[tuple(pair)] for pair in rates[:k]] if k > 1 else None
    return ShiftedPrior().fit([[s] for s in statistic[:k]], priors[:k], means), statistic[k], priors[k]


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("rate_spread", "most"), [(0.3, 1.0), (1.0, 0.98), (1.5, 0.98)])
def test_intervals_cover_nine_of_ten(k, rate_spread, most):
    """Over 400 collections whose priors lie 0.8 apart in log-odds: 85 to 98 % where leniency moves as much.

    They know of no shift that is right, so that they hold more where judges err alike everywhere.
    """
    rng, held = np.random.default_rng(k), []
    for _ in range(400):
        rule, statistic, prior = simulated(rng, k, rate_spread)
        found = rule.predict([statistic])
        held.append(found.low <= prior <= found.high)
    assert 0.85 <= np.mean(held) <= most


@pytest.mark.parametrize("k", [2, 3])
def test_a_shift_is_better_than_the_mean_where_rates_hold(k):
    """And hardly worse where they do not."""
    for rate_spread, factor in ((0.1, 0.8), (1.0, 1.25)):
        rng, errors = np.random.default_rng(k), []
        for _ in range(300):
            rule, statistic, prior = simulated(rng, k, rate_spread)
            shifted, mean = logit(rule.predict([statistic]).estimate), rule.mean_ * (k + 0.5) / (k + 1)
            errors.append([abs(shifted - logit(prior)), abs(mean - logit(prior))])
        ours, theirs = np.mean(errors, axis=0)
        assert ours < factor * theirs


def left_out(rng, n=40):
    """Return a dataset's points."""
    ones = rng.random(n)
    return LeftOut(rng.normal(0, 1, n), ones, 1 - ones)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_which_rule_is_learned(n):
    """A line from four datasets on; statistics are the contexts of every scorer, priors those of the labels."""
    rng = np.random.default_rng(n)
    points = [[left_out(rng), left_out(rng)] for _ in range(n)]
    rule = learn_prior(points)
    assert isinstance(rule, LearnedPrior if n >= 4 else ShiftedPrior)
    assert rule.statistic_.tolist() == [[one.context for one in pair] for pair in points]
    assert rule.priors_.tolist() == [pair[0].prior for pair in points]
    if n < 4:
        assert rule.class_means_.shape == (n, 2, 2) if n > 1 else rule.class_means_ is None
        assert n == 1 or rule.rates_ == pytest.approx(np.mean([[p.class_means for p in q] for q in points], axis=0))
    found = rule.predict([one.context for one in points[0]])
    assert 0 < found.low < found.estimate < found.high < 1


def test_a_fixed_prior_says_what_it_was_told():
    """Whatever the statistic."""
    told = PriorEstimate(0.3, 0.2, 0.4, "Why.")
    assert FixedPrior(told).predict([9.0]) is told
    assert FixedPrior(told) == FixedPrior(PriorEstimate(0.3, 0.2, 0.4, "Why."))


def test_faults_are_told():
    """In one line each."""
    with pytest.raises(NotFittedError, match="not fitted"):
        ShiftedPrior().predict([0.0])
    with pytest.raises(InputError, match=r"^`prior` must have at least one value"):
        ShiftedPrior().fit([], [])
    with pytest.raises(InputError, match=r"^`statistic` must be finite\. Got nan\.$"):
        ShiftedPrior().fit([[np.nan]], [0.5])
    with pytest.raises(InputError, match=r"^`statistic` must have 1 entries, one a row\. Got 2\.$"):
        ShiftedPrior().fit([[0.1]], [0.5]).predict([0.1, 0.2])
