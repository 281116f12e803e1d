"""The prior learned across datasets: honest intervals over many simulated collections, in and outside what was seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from deep.exceptions import InputError
from deep.model import LearnedPrior


def collection(rng, n, noise):
    """Return a statistic and the prior of `n` datasets that follow a line with normal errors."""
    statistic = rng.normal(0, 1, n)
    return statistic, expit(0.3 + 0.9 * statistic + rng.normal(0, noise, n))


@pytest.mark.parametrize(("n", "noise"), [(6, 0.6), (10, 0.6), pytest.param(30, 0.6, marks=pytest.mark.slow)])
def test_intervals_cover_the_truth_about_nine_times_in_ten(n, noise):
    """Over 200 simulated collections, the interval of one dataset more holds its prior in 84 to 98 percent.

    The floor of the error adds a little where datasets are few.
    """
    rng = np.random.default_rng(n)
    held = []
    for _ in range(200):
        statistic, prior = collection(rng, n + 1, noise)
        found = LearnedPrior().fit(statistic[:-1], prior[:-1]).predict(statistic[-1])
        held.append(found.low <= prior[-1] <= found.high)
    assert 0.84 <= np.mean(held) <= 0.98


def test_learning_beats_the_mean_prior():
    """The line's error is well below that of taking the training datasets' mean for every new one."""
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(60):
        statistic, prior = collection(rng, 11, 0.4)
        found = LearnedPrior().fit(statistic[:-1], prior[:-1]).predict(statistic[-1])
        errors.append([abs(found.estimate - prior[-1]), abs(prior[:-1].mean() - prior[-1])])
    line, mean = np.mean(errors, axis=0)
    assert line < 0.6 * mean


def test_one_odd_dataset_hardly_turns_the_line():
    """A dataset whose labels follow other rules moves a robust line less than it would a least-squares line."""
    statistic = np.linspace(-1, 1, 11)
    prior = expit(statistic)
    odd = prior.copy()
    odd[5] = 0.97
    plain = np.polyval(np.polyfit(statistic, np.log(odd / (1 - odd)), 1), 0.0)
    robust = LearnedPrior().fit(statistic, odd).predict(0.0).estimate
    assert abs(robust - 0.5) < 0.3 * abs(expit(plain) - 0.5)


def test_outside_what_was_seen_it_holds_the_margin_and_says_so():
    """A statistic far outside the seen range gets the estimate at the margin, a wider interval and a warning."""
    statistic, prior = np.linspace(-1, 1, 9), expit(np.linspace(-1, 1, 9))
    model = LearnedPrior().fit(statistic, prior)
    inside, edge, outside, far = (model.predict(value) for value in (1.4, 1.5, 1.6, 2.6))
    assert inside.warning is None
    assert outside.warning == (
        "The log-odds of the mean P is 1.60, outside what was seen on 9 training datasets (-1.00 to 1.00)."
    )
    assert outside.estimate == far.estimate == edge.estimate == pytest.approx(expit(1.5), abs=1e-6)
    widths = [logit(one.high) - logit(one.low) for one in (inside, edge, outside, far)]
    assert widths == sorted(widths)
    assert widths[0] < widths[2] < widths[3]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_up_to_three_datasets_are_for_another_rule(n):
    """They leave nothing to judge a line by."""
    with pytest.raises(InputError, match=rf"^`prior` must be of at least 4 datasets\. Got {n}\.$"):
        LearnedPrior().fit(np.arange(n), np.linspace(0.3, 0.7, n))


def test_equal_statistics_teach_nothing_but_the_mean():
    """Where all datasets have the same statistic, to rounding, the line is flat."""
    prior = np.linspace(0.2, 0.8, 6)
    for jitter in (0.0, 1e-15, 1e-6):
        statistic = 1.3 + jitter * np.array([1.0, -1, 1, -1, 1, 1])
        found = LearnedPrior().fit(statistic, prior).predict(1.3)
        assert found.estimate == pytest.approx(0.5, abs=0.02)
        assert (found.low, found.high) == pytest.approx((0.15, 0.85), abs=0.1)


def test_priors_that_are_alike_prove_little():
    """Ten datasets on the very line leave an error of a tenth of a unit or more, and an interval to match."""
    found = LearnedPrior().fit(np.linspace(-1, 1, 10), np.full(10, 0.5)).predict(0.0)
    assert found.low < 0.4
    assert found.high > 0.6


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 1)), min_size=4, max_size=12),
    st.floats(-10, 10),
)
def test_estimates_are_shares_within_their_interval(datasets, statistic):
    """Whatever was seen, the estimate is a share and its interval holds it."""
    model = LearnedPrior().fit([x for x, _ in datasets], [p for _, p in datasets])
    found = model.predict(statistic)
    assert 0 < found.low <= found.estimate <= found.high < 1


@pytest.mark.parametrize(
    ("statistic", "prior", "options", "message"),
    [
        ([0.0, 1.0], [0.5], {}, "`statistic` must have 1 entries"),
        ([np.nan], [0.5], {}, "`statistic` must be finite"),
        ([0.0], [1.5], {}, r"`prior` must lie in \[0, 1\]"),
        ([0.0], [0.5], {"tails": 0.0}, "`tails` must be positive"),
        ([0.0], [0.5], {"margin": -1.0}, "`margin` must be"),
    ],
)
def test_faults_are_told(statistic, prior, options, message):
    """A fault is one line that names the parameter."""
    with pytest.raises(InputError, match=message):
        LearnedPrior(**options).fit(statistic, prior)


def test_several_lines_are_averaged_and_weigh_alike():
    """The log-odds estimated from two statistics is the mean of those from either."""
    rng = np.random.default_rng(3)
    first, prior = collection(rng, 9, 0.3)
    second = first + rng.normal(0, 0.2, 9)
    both = LearnedPrior().fit(np.column_stack([first, second]), prior)
    alone = [LearnedPrior().fit(one, prior) for one in (first, second)]
    at = [0.1, 0.2]
    expected = np.mean([logit(model.predict(value).estimate) for model, value in zip(alone, at, strict=True)])
    assert logit(both.predict(at).estimate) == pytest.approx(expected)
    np.testing.assert_allclose(both.left_out_, np.mean([model.left_out_ for model in alone], axis=0))


def test_most_statistics_must_lie_outside_for_a_warning():
    """One statistic of three outside is held at the margin; two of three are told."""
    statistic, prior = np.linspace(-1, 1, 9), expit(np.linspace(-1, 1, 9))
    model = LearnedPrior().fit(np.column_stack([statistic, statistic, statistic]), prior)
    found = model.predict([0.2, 9.0, 0.2])
    assert found.warning is None
    assert logit(found.estimate) == pytest.approx((0.2 + 1.5 + 0.2) / 3, abs=1e-6)
    assert model.predict([9.0, 9.0, 0.2]).warning is not None


def test_as_many_statistics_as_were_learned():
    """A statistic too few is refused by name."""
    model = LearnedPrior().fit(np.zeros((5, 2)) + np.arange(5)[:, None], np.linspace(0.2, 0.8, 5))
    with pytest.raises(InputError, match="`statistic` must"):
        model.predict([0.1])
