"""The rule for the intercept: brute-force integration, what it does where priors are alike and where they differ."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from deep.exceptions import InputError
from deep.model import (
    SHIFTS,
    AcrossPanels,
    FixedPrior,
    HeldOutData,
    Intercept,
    LearnedPrior,
    PriorEstimate,
    context_probabilities,
    context_weight,
    contexts_of_means,
    intercept_at,
    learn_line,
    profile_of,
    share_at,
)
from deep.model._prior import INTERVAL_PRIOR, VARIANCES

Z = np.repeat([-2.5, -0.5, 0.4, 3.0], [6, 3, 5, 7]).astype(float)


def profile(shift=0.0):
    """Return the profile of a dataset on which all log-odds are moved."""
    return profile_of(Z + shift, np.ones(len(Z)))


def test_the_profile_gives_share_and_intercept():
    """Within rounding of an exact mean P, at intercepts between and beyond the knots; one undoes the other."""
    for intercept in (-15.0, -7.3, -2.2, 0.0, 0.7, 3.9, 11.0):
        share = share_at(profile(), intercept)
        assert share == pytest.approx(logit(expit(Z + intercept).mean()), abs=0.03)
        assert intercept_at(profile(), share) == pytest.approx(intercept, abs=1e-6)


def test_contexts_are_those_of_means():
    """Of each part the log-odds of its mean P, held within 2 %; then the profile of their sum."""
    raw = np.array([Z, np.full(len(Z), -9.0)])
    result = contexts_of_means(context_probabilities(raw, Z).mean(axis=1))
    assert result[:2] == pytest.approx([logit(expit(Z).mean()), logit(0.02)])
    assert result[2:] == pytest.approx(profile())


def brute_force(said, intercepts, new, across, n=61):
    """Return mean and variance of the intercept of a new dataset, by summing over a grid of m, g and the variance."""
    apart, grid = said - said.mean(), np.linspace(-5, 5, n)
    m, g, s2 = np.meshgrid(grid, grid, VARIANCES, indexing="ij")
    prior = norm.pdf(m, 0, np.sqrt(across.mean)) * norm.pdf(g, 0, np.sqrt(across.following))
    nu, scale = across.degrees, across.spread
    weight = prior * s2 ** (-nu / 2) * np.exp(-nu * scale / (2 * s2))  # of log s2, which the grid is even in
    for x, a in zip(apart, intercepts, strict=True):
        weight = weight * norm.pdf(a, m + g * x, np.sqrt(s2))
    weight /= weight.sum()
    mean = m + g * (new - said.mean())
    centre = (weight * mean).sum()
    return centre, (weight * (mean**2 + s2)).sum() - centre**2


@pytest.mark.parametrize("priors", [(0.3,), (0.3, 0.6), (0.2, 0.55, 0.7)])
def test_the_posterior_is_that_of_brute_force(priors):
    """Of one dataset, of two and of three."""
    shifts = np.array([-1.1, 0.3, 1.0])[: len(priors)]
    rule = LearnedPrior().fit([profile(shift) for shift in shifts], priors)
    centre = np.mean(logit(priors))
    message = np.array([share_at(profile(shift), centre) for shift in shifts])
    intercepts = [intercept_at(profile(s), float(logit(p))) for s, p in zip(shifts, priors, strict=True)]
    new = share_at(profile(0.8), centre)
    mean, variance = brute_force(message, intercepts, new, AcrossPanels())
    result = rule.intercept(profile(0.8))
    assert result.mean == pytest.approx(mean, abs=0.01)
    assert result.variance == pytest.approx(variance, rel=0.02)
    cautious = np.sqrt(brute_force(message, intercepts, new, INTERVAL_PRIOR)[1])
    assert result.reach == pytest.approx(norm.ppf(0.95) * cautious, rel=0.02)


def test_it_learns_whether_to_follow_the_panel():
    """Where what votes say goes with the share, P follows; where shares stay alike, the share is told; else between."""
    shifts = (-1.5, -0.5, 0.5, 1.5)
    profiles = [profile(shift) for shift in shifts]
    follows = LearnedPrior().fit(profiles, [expit(share_at(profile(2 * s), 0.0)) for s in shifts])
    lenient = LearnedPrior().fit(profiles, [0.5] * 4)
    one = LearnedPrior().fit([profile()], [0.5])
    new = profile(1.2)
    estimates = [rule.predict(new).estimate for rule in (lenient, one, follows)]
    assert estimates == sorted(estimates)
    assert lenient.predict(new).estimate == pytest.approx(0.5, abs=0.05)
    assert follows.predict(new).estimate == pytest.approx(expit(share_at(profile(2.4), 0.0)), abs=0.06)


def test_p_says_how_little_is_known():
    """Datasets that contradict each other flatten P, and widen the interval; datasets that agree narrow it."""
    profiles = [profile(), profile(0.1), profile(-0.1)]
    agree, differ = (LearnedPrior().fit(profiles, p).predict(profile()) for p in ((0.5, 0.52, 0.48), (0.05, 0.5, 0.95)))
    assert differ.slope < agree.slope - 0.05
    assert differ.high - differ.low > 2 * (agree.high - agree.low)
    assert agree.low < agree.estimate < agree.high


def test_turned_round_it_says_the_opposite():
    """Votes and labels the other way round: one less the share, the other sign of the intercept."""
    shifts, priors = np.array([-1.0, 0.2, 0.9]), np.array([0.2, 0.5, 0.6])
    one = LearnedPrior().fit([profile(s) for s in shifts], priors).predict(profile(0.5))
    flipped = [profile_of(-(Z + s), np.ones(len(Z))) for s in (*shifts, 0.5)]
    two = LearnedPrior().fit(flipped[:3], 1 - priors).predict(flipped[3])
    assert (two.estimate, two.low, two.high) == pytest.approx((1 - one.estimate, 1 - one.high, 1 - one.low), abs=1e-9)
    assert (two.intercept, two.slope) == pytest.approx((-one.intercept, one.slope), abs=1e-9)


def test_the_decision_is_p_at_the_printed_threshold():
    """Whatever the contexts add: log-odds of 0 at equal class weights are the threshold of P."""
    estimate = LearnedPrior().fit([profile()], [0.7]).predict(profile(0.4), 0.3)
    log_odds = Z + 0.3
    p = expit(estimate.line(log_odds))
    assert ((p >= expit(estimate.threshold)) == (log_odds >= 0)).all()
    plain = LearnedPrior().fit([profile()], [0.7]).predict(profile(0.4))
    assert estimate.line(log_odds) == pytest.approx(plain.line(Z))


def test_a_known_share_is_the_mean_of_p():
    """No doubt is left, and P is as steep as it was."""
    estimate = PriorEstimate.known(0.3, profile(), 0.2)
    assert (estimate.estimate, estimate.low, estimate.high, estimate.slope) == pytest.approx((0.3, 0.3, 0.3, 1.0))
    assert expit(estimate.line(Z + 0.2)).mean() == pytest.approx(0.3, abs=0.005)


def of_slope(slope, intercept=0.0, seed=0):
    """Return a dataset whose labels have this slope on log-odds."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, 20_000)
    y = rng.random(20_000) < expit(intercept + slope * z)
    return HeldOutData.from_rows(z, y * 1.0, ~y * 1.0)


def test_the_slope_is_drawn_to_one():
    """Four datasets' worth of 1 beside the slope of the datasets."""
    assert learn_line([of_slope(2)])[0] == pytest.approx((4 + 2) / 5, abs=0.02)
    assert learn_line([of_slope(2, shift, d) for d, shift in enumerate((-1.0, 0.0, 1.0, 2.0))])[0] == pytest.approx(
        (4 + 8) / 8, abs=0.02
    )


def test_votes_that_mislead_on_a_dataset_flatten_p():
    """Slopes of 3, 3 and -1: the one that all share has the least log loss on all, well below their mean."""
    seen = [of_slope(slope, d / 2, d) for d, slope in enumerate((3.0, 3.0, -1.0))]

    def loss(slope):
        def of(one):
            n = one.ones + one.zeros
            at = minimize_scalar(
                lambda a: n @ np.logaddexp(0, a + slope * one.score) - one.ones @ (a + slope * one.score)
            )
            return at.fun / n.sum()

        return sum(map(of, seen))

    best = minimize_scalar(loss, bounds=(0, 4), method="bounded").x
    assert best < 1.2
    assert learn_line(seen)[0] == pytest.approx((4 + 3 * best) / 7, abs=0.005)


def test_each_training_dataset_is_told_by_the_others():
    """One alone by itself."""
    profiles, priors = [profile(s) for s in (-1.0, 0.0, 1.0)], [0.3, 0.5, 0.8]
    result = LearnedPrior().fit(profiles, priors).left_out(profiles)
    assert result[1] == LearnedPrior().fit([profiles[0], profiles[2]], [0.3, 0.8]).predict(profiles[1])
    alone = LearnedPrior().fit(profiles[:1], priors[:1])
    assert alone.left_out(profiles[:1]) == [alone.predict(profiles[0])]


@pytest.mark.slow
def test_intervals_cover_datasets_of_simulated_panels():
    """90 % intervals hold the share of a new dataset in 85 % or more, for one training dataset to eight."""
    rng = np.random.default_rng(3)
    for k in (1, 2, 8):
        inside = []
        for _ in range(150):
            mean, follows, spread = rng.normal(0, 1), rng.normal(0, 1), rng.uniform(0.1, 0.6)
            shifts = rng.normal(0, 1, k + 1)
            profiles = [profile(s) for s in shifts]
            shares = [
                expit(share_at(one, mean + follows * s + rng.normal(0, spread)))
                for one, s in zip(profiles, shifts, strict=True)
            ]
            told = LearnedPrior().fit(profiles[:k], shares[:k]).predict(profiles[k])
            inside.append(told.low <= shares[k] <= told.high)
        assert np.mean(inside) >= 0.85, k


def test_warnings():
    """Few datasets tell little; a dataset unlike those that were seen."""
    assert LearnedPrior().fit([profile()], [0.4]).predict(profile()).warning == (
        "1 training dataset tells little about how much shares differ."
    )
    rule = LearnedPrior().fit([profile(s) for s in (-1.0, -0.5, 0.5, 1.0)], [0.3, 0.4, 0.5, 0.7])
    assert rule.predict(profile(0.2)).warning is None
    assert "outside the range of 4 training datasets" in rule.predict(profile(4.0)).warning


def test_a_fixed_prior_asks_nothing():
    """It is what it was given, its threshold the log-odds of the share unless told otherwise."""
    told = PriorEstimate(0.3, 0.2, 0.4, "Why.")
    assert FixedPrior(told).predict(profile(), 2.0) is told
    assert told.threshold == pytest.approx(logit(0.3))
    assert PriorEstimate(0.3, 0.2, 0.4, None, 1.5, 0.8).line([1.0]).tolist() == pytest.approx([2.3])


@pytest.mark.parametrize(
    ("profiles", "priors", "message"),
    [
        ([profile()], [1.2], "`prior` must"),
        ([profile()], [0.5, 0.5], "`profiles` must"),
        ([profile()[::-1]], [0.5], f"`profiles` must be {len(SHIFTS)} finite numbers"),
        ([np.full(len(SHIFTS), np.nan)], [0.5], "`profiles` must be"),
    ],
)
def test_what_cannot_be_learned_from(profiles, priors, message):
    """Refused in one line."""
    with pytest.raises(InputError, match=message):
        LearnedPrior().fit(profiles, priors)


def test_predict_needs_a_fit():
    """As scikit-learn says it."""
    with pytest.raises(NotFittedError, match="LearnedPrior"):
        LearnedPrior().predict(profile())


def test_the_threshold_in_context_is_the_mean_p_where_the_intercept_is_known():
    """The whole way, and nothing shrunk: an item is held against the mean of its dataset; no way is even odds."""
    prior = PriorEstimate.known(0.3, profile())
    mean = expit(prior.line(Z)).mean()
    assert prior.threshold_in_context(0.0) == prior.threshold
    assert prior.threshold_in_context(1.0) == pytest.approx(logit(mean), abs=0.03)
    assert prior.threshold_in_context(0.5) == pytest.approx((prior.threshold + logit(0.3)) / 2)
    fixed = PriorEstimate(0.3, 0.2, 0.4)  # of a model of one dataset both are the same
    assert fixed.threshold_in_context(0.75) == fixed.threshold


def test_the_threshold_in_context_minds_what_contexts_add():
    """Log-odds that contexts have moved are at even odds elsewhere; the mean P is where it was."""
    prior = Intercept(0.7, 0.4, 1.0).estimate(profile(), offset=0.5)
    same = Intercept(0.7, 0.4, 1.0).estimate(profile())
    for weight in (0.0, 0.75, 1.0):
        assert prior.threshold_in_context(weight) == pytest.approx(same.threshold_in_context(weight, offset=0.5))


def test_few_datasets_alone_move_the_threshold():
    """One to three."""
    assert [context_weight(n) for n in (1, 2, 3, 4, 11)] == [0.75, 0.75, 0.75, 0.0, 0.0]
