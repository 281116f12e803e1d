"""The learned prior against the t likelihood maximised by scipy, and numbers worked out by hand."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.exceptions import NotFittedError

from deep.exceptions import InputError
from deep.model.adaptation import LearnedPrior, PriorEstimate

# The 0.95 quantiles of Student's t, from a printed table, by degrees of freedom.
STUDENT = {1: 6.313752, 2: 2.919986, 3: 2.353363, 4: 2.131847, 5: 2.015048, 6: 1.943180, 7: 1.894579}

X = np.array([-1.3, -0.8, -0.1, 0.2, 0.7, 1.1, 1.9])
Y = np.array([0.18, 0.35, 0.3, 0.62, 0.55, 0.9, 0.8])
SECOND = np.array([0.4, -0.3, 0.6, 0.1, 1.2, 0.8, 1.7])


def line(x, y, tails):
    """Return intercept and slope at x = 0 that maximise the likelihood of t errors of unknown scale."""

    def loss(theta):
        z = (y - theta[0] - theta[1] * x) / np.exp(theta[2])
        return (tails + 1) / 2 * np.sum(np.log1p(z**2 / tails)) + len(y) * theta[2]

    slope, intercept = np.polyfit(x, y, 1)
    start = [intercept, slope, np.log(np.std(y - intercept - slope * x))]
    rough = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000}).x
    return minimize(loss, rough, method="BFGS", options={"gtol": 1e-8}).x[:2]


def left_out(x, y, tails):
    """Return the log-odds of each dataset by the line through the others, held at their margin."""
    found = []
    for i in range(len(x)):
        seen = np.delete(x, i)
        intercept, slope = line(seen, np.delete(y, i), tails)
        reach = 0.25 * np.ptp(seen)
        found.append(intercept + slope * np.clip(x[i], seen.min() - reach, seen.max() + reach))
    return np.array(found)


@pytest.mark.parametrize("tails", [2.0, 4.0, 30.0])
def test_the_line_maximises_the_likelihood_of_t_errors(tails):
    """Coefficients on the standardised statistic, errors of datasets left out, and what follows for a new one."""
    y = logit(Y)
    intercept, slope = line(X, y, tails)
    model = LearnedPrior(tails=tails).fit(X, Y)
    assert model.coef_.shape == (1, 2)
    assert model.coef_[0] == pytest.approx([intercept + slope * X.mean(), slope * X.std()], abs=2e-5)
    others = left_out(X, y, tails)
    assert model.left_out_ == pytest.approx(others, abs=5e-5)
    error = np.sqrt((1 + np.sum((y - others) ** 2)) / 7)
    assert model.error_ == pytest.approx(error, abs=1e-4)
    for statistic in (-1.7, 0.35, 2.0):
        centre = intercept + slope * statistic
        leverage = (statistic - X.mean()) ** 2 / np.sum((X - X.mean()) ** 2)
        wider = np.sqrt(max(1, (1 + 1 / 7 + leverage) / (1 + 2 / 7)))
        reach = error * STUDENT[7] * wider
        found = model.predict(statistic)
        assert [found.estimate, found.low, found.high] == pytest.approx(
            expit([centre, centre - reach, centre + reach]), abs=1e-4
        )
        assert found.warning is None
        assert (wider > 1) == (statistic != 0.35)


def test_the_default_has_four_degrees_of_freedom():
    """A dataset off the line turns it as far as with tails of 4, and a normal law would turn it further."""
    odd = np.where(np.arange(7) == 2, 0.97, expit(0.3 + 0.8 * X))
    default, four, normal = (LearnedPrior(**k).fit(X, odd).coef_[0] for k in ({}, {"tails": 4.0}, {"tails": 1e9}))
    assert default == pytest.approx(four, abs=1e-12)
    slope, intercept = np.polyfit((X - X.mean()) / X.std(), logit(odd), 1)
    assert normal == pytest.approx([intercept, slope], abs=1e-6)
    assert default[1] == pytest.approx(0.8 * X.std(), abs=0.02)
    assert abs(normal[1] - 0.8 * X.std()) > 0.05


def test_points_on_a_line_are_found_exactly():
    """Log-odds 0.5 - x / 2: every line, also through all points but one, is that one; the least error is left."""
    x = np.array([0.0, 1.0, 2.0, 4.0])
    model = LearnedPrior().fit(x, expit(0.5 - 0.5 * x))
    # Mean 1.75, standard deviation sqrt(21/4 - 49/16) = sqrt(35)/4.
    assert model.coef_[0] == pytest.approx([0.5 - 0.5 * 1.75, -0.5 * np.sqrt(35) / 4], abs=1e-9)
    # Without 0 or 4 the others reach from 1 to 4 or from 0 to 2, and their margins to 0.25 and 2.5.
    assert model.left_out_ == pytest.approx(0.5 - 0.5 * np.array([0.25, 1.0, 2.0, 2.5]), abs=1e-9)
    error = np.sqrt((1 + 0.125**2 + 0.75**2) / 4)
    assert model.error_ == pytest.approx(error, abs=1e-9)
    found, reach = model.predict(1.75), error * STUDENT[4]
    centre = 0.5 - 0.5 * 1.75
    expected = expit([centre - reach, centre, centre + reach])
    assert [found.low, found.estimate, found.high] == pytest.approx(expected, abs=1e-6)


def test_several_lines_are_averaged():
    """Two statistics: the mean of the log-odds by either line, of a new dataset and of each left out."""
    y, both = logit(Y), np.column_stack([X, SECOND])
    model = LearnedPrior().fit(both, Y)
    lines = [line(x, y, 4.0) for x in (X, SECOND)]
    for coef, (intercept, slope), x in zip(model.coef_, lines, (X, SECOND), strict=True):
        assert coef == pytest.approx([intercept + slope * x.mean(), slope * x.std()], abs=5e-5)
    others = np.mean([left_out(x, y, 4.0) for x in (X, SECOND)], axis=0)
    assert model.left_out_ == pytest.approx(others, abs=1e-4)
    assert model.error_ == pytest.approx(np.sqrt((1 + np.sum((y - others) ** 2)) / 7), abs=1e-4)
    centre = np.mean([intercept + slope * x for (intercept, slope), x in zip(lines, (0.3, 0.9), strict=True)])
    assert logit(model.predict([0.3, 0.9]).estimate) == pytest.approx(centre, abs=1e-4)


def test_a_statistic_outside_is_held_at_the_margin():
    """A quarter of the range beyond its end; a warning where more than half of them are outside."""
    model = LearnedPrior().fit(np.column_stack([X, SECOND]), Y)
    edges = X.max() + 0.25 * np.ptp(X), 0.9
    found, held = model.predict([9.0, 0.9]), model.predict(edges)
    assert found.warning is None
    assert found.estimate == pytest.approx(held.estimate, abs=1e-12)
    assert found.high > held.high
    assert model.predict([9.0, -9.0]).warning is not None
    three = LearnedPrior().fit(np.column_stack([X, SECOND, X]), Y)
    assert three.predict([0.2, 9.0, 9.0]).warning == (
        "The log-odds of the mean P is 9.00, outside what was seen on 7 training datasets (-0.30 to 1.70)."
    )
    assert three.predict([0.2, 9.0, 0.2]).warning is None


@pytest.mark.parametrize(
    ("margin", "statistic", "outside"),
    [
        (0.25, -1.0, False),
        (0.25, -1.0001, True),
        (0.25, 5.0, False),
        (0.25, 5.0001, True),
        (0.0, 4.0, False),
        (0.0, 4.0001, True),
        (2.0, 12.0, False),
        (2.0, -8.1, True),
    ],
)
def test_the_margin_is_a_share_of_the_seen_range(margin, statistic, outside):
    """Seen from 0 to 4: a quarter of 4 is 1, to either side; the default is a quarter."""
    model = LearnedPrior(margin=margin).fit([0.0, 1.0, 2.0, 3.0, 4.0], [0.3, 0.4, 0.5, 0.5, 0.7])
    assert (model.predict(statistic).warning is not None) == outside
    if margin == 0.25:
        default = LearnedPrior().fit([0.0, 1.0, 2.0, 3.0, 4.0], [0.3, 0.4, 0.5, 0.5, 0.7])
        assert default.predict(statistic) == model.predict(statistic)


def test_left_out_of_four_datasets():
    """The line through three, which lie on it."""
    four = LearnedPrior().fit([0.0, 1.0, 2.0, 3.0], expit([0.0, 1.0, 2.0, 3.0]))
    # Without an end, the margin of the others' range holds the statistic: half a step beyond.
    assert four.left_out_ == pytest.approx([0.5, 1.0, 2.0, 2.5], abs=1e-7)


def test_left_out_where_the_others_are_all_alike():
    """Statistics 0, 0, 0, 2: without the last there is no line, so the mean of the first three stands for it."""
    y = [-0.3, 0.0, 0.9, 1.0]
    model = LearnedPrior().fit([0.0, 0.0, 0.0, 2.0], expit(y))
    alone = LearnedPrior().fit([0.0, 0.0, 0.0, 0.0], expit([-0.3, 0.0, 0.9, 0.2])).coef_[0]
    assert alone[1] == 0.0
    # The robust centre of three: between their median and their mean.
    assert 0.0 < model.left_out_[3] < 0.2
    # Without the first: 0.0 and 0.9 at the statistic 0, with errors alike, so their middle.
    assert model.left_out_[0] == pytest.approx(0.45, abs=1e-6)


def test_a_constant_statistic_says_the_robust_centre():
    """One statistic of two never moves: its line is flat, at the centre of the log-odds; alone it teaches nothing."""
    constant = np.full(7, 3.5)
    model = LearnedPrior().fit(np.column_stack([X, constant]), Y)
    assert model.coef_[1, 1] == 0.0
    both = logit(model.predict([0.35, 3.5]).estimate)
    alone = logit(LearnedPrior().fit(X, Y).predict(0.35).estimate)
    assert both == pytest.approx((alone + model.coef_[1, 0]) / 2, abs=1e-9)
    only = LearnedPrior().fit(constant, Y)
    assert logit(only.predict(3.5).estimate) == pytest.approx(model.coef_[1, 0], abs=1e-9)
    assert only.predict(3.6).estimate == pytest.approx(only.predict(3.5).estimate, abs=1e-12)


def test_priors_are_held_off_0_and_1():
    """Shares of 0 and 1 count as 0.01 and 0.99, whose log-odds are -+log 99."""
    model = LearnedPrior().fit([0.0, 1.0, 2.0, 3.0], [0.0, 0.5, 1.0, 0.012])
    assert model.log_odds_ == pytest.approx([-np.log(99), 0.0, np.log(99), logit(0.012)])
    assert model.priors_.tolist() == [0.0, 0.5, 1.0, 0.012]


def test_units_and_order_do_not_matter():
    """Statistics in other units, and datasets in another order, give the same estimate."""
    base = LearnedPrior().fit(X, Y).predict(0.4)
    for model, at in (
        (LearnedPrior().fit(100 * X + 7, Y), 47.0),
        (LearnedPrior().fit(X[::-1], Y[::-1]), 0.4),
        (LearnedPrior().fit(-X[:, np.newaxis], Y), -0.4),
    ):
        found = model.predict(at)
        assert [found.estimate, found.low, found.high] == pytest.approx([base.estimate, base.low, base.high], abs=1e-7)
    flipped = LearnedPrior().fit(-X, 1 - Y).predict(-0.4)
    assert [1 - flipped.estimate, 1 - flipped.high] == pytest.approx([base.estimate, base.low], abs=1e-9)


@pytest.mark.parametrize(
    ("statistic", "prior", "options", "message"),
    [
        ([0.0, 1.0], [0.5], {}, r"^`statistic` must have 1 entries, one a row\. Got 2\.$"),
        ([0.0, np.inf], [0.5, 0.5], {}, r"^`statistic` must be finite\. Got inf\.$"),
        ([0.0], [-0.5], {}, r"^`prior` must lie in \[0, 1\]\. Got -0\.5 at row 0\.$"),
        ([], [], {}, r"^`prior` must have at least one value\. Got none\.$"),
        ([0.0], [0.5], {"tails": 0.0}, r"^`tails` must be positive\. Got 0\.0\.$"),
        ([0.0], [0.5], {"tails": np.nan}, r"^`tails` must be positive\. Got nan\.$"),
        ([0.0], [0.5], {"margin": -0.5}, r"^`margin` must be positive\. Got -0\.5\.$"),
        ([0.0], [0.5], {"margin": np.nan}, r"^`margin` must be positive\. Got nan\.$"),
    ],
)
def test_values_out_of_range(statistic, prior, options, message):
    """Each is refused by name, with what came."""
    with pytest.raises(InputError, match=message):
        LearnedPrior(**options).fit(statistic, prior)


def test_small_tails_and_no_margin_are_allowed():
    """Any tails above 0 and any margin from 0 on."""
    model = LearnedPrior(tails=0.5, margin=0.0).fit(X, Y)
    assert (model.tails, model.margin) == (0.5, 0.0)
    assert model.predict(0.0).warning is None


def test_it_must_be_fitted_and_asked_for_every_statistic():
    """An estimate is a frozen record."""
    with pytest.raises(NotFittedError, match="not fitted"):
        LearnedPrior().predict(0.0)
    model = LearnedPrior().fit(np.column_stack([X, SECOND]), Y)
    with pytest.raises(InputError, match=r"^`statistic` must have 2 entries, one a row\. Got 1\.$"):
        model.predict([0.1])
    found = model.predict([0.1, 0.2])
    assert found == PriorEstimate(found.estimate, found.low, found.high, warning=None)
    with pytest.raises(FrozenInstanceError):
        found.low = 0.0
