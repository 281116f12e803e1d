"""The calibrators against plain readings of their definitions: loops, scipy's optimisers, numbers by hand."""

from math import log

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit

from deep._util.odds import fit_logistic
from deep.calibration import Beta, Histogram, Isotonic, Platt, Temperature
from tests.calibration.test_bbq_values import shares_of

GRID = np.linspace(0.0, 1.0, 41)

# Probabilities, labels and counts: scattered, with ties, pointing the wrong way, and at hard 0 and 1.
SCATTERED = (
    [0.07, 0.22, 0.31, 0.38, 0.46, 0.52, 0.66, 0.71, 0.83, 0.95],
    [0, 0, 1, 0, 0, 1, 0, 1, 1, 1],
    [3, 4, 2, 5, 1, 3, 2, 6, 4, 5],
)
TIED = ([0.2, 0.2, 0.4, 0.4, 0.7, 0.7, 0.9, 0.9], [0, 1, 0, 1, 0, 1, 0, 1], [9, 1, 4, 6, 7, 5, 2, 8])
REVERSED = ([0.1, 0.1, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8], [0, 1, 0, 1, 0, 1, 0, 1], [2, 8, 3, 5, 6, 4, 9, 2])
HARD = ([0.0, 0.0, 0.3, 0.3, 1.0, 1.0], [0, 1, 0, 1, 0, 1], [12, 2, 5, 4, 3, 14])
SAMPLES = {"scattered": SCATTERED, "tied": TIED, "reversed": REVERSED, "hard": HARD}


def held(p):
    """Return probabilities held off 0 and 1 as every calibrator holds them."""
    return np.clip(np.asarray(p, dtype=float), 1e-6, 1 - 1e-6)


def minimum(loss, start):
    """Return where a smooth convex function of a few numbers is least, by a simplex refined by BFGS."""
    rough = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000}).x
    return minimize(loss, rough, method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.parametrize("on_probability", [False, True])
@pytest.mark.parametrize("name", SAMPLES)
def test_platt_is_the_minimum_of_the_smoothed_log_loss(name, on_probability):
    """Slope and intercept that scipy finds for targets (n1 + 1) / (n1 + 2) and 1 / (n0 + 2), on either regressor."""
    p, y, w = map(np.array, SAMPLES[name])
    n1, n0 = w[y == 1].sum(), w[y == 0].sum()
    target = np.where(y == 1, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))

    def loss(theta):
        z = theta[0] * regressor(p) + theta[1]
        return w @ (np.logaddexp(0, z) - target * z)

    def regressor(p):
        return np.asarray(p) if on_probability else logit(held(p))

    slope, intercept = minimum(loss, [0.5, 0.0])
    platt = Platt(on_probability).fit(p, y, w)
    near = 1e-4 if on_probability else 2e-6  # P spans less than its log-odds: scipy's minimum is less sharp
    assert [platt.slope_, platt.intercept_] == pytest.approx([slope, intercept], abs=near)
    assert (platt.slope_ < 0) == (name == "reversed")
    assert platt.transform(GRID) == pytest.approx(held(expit(slope * regressor(GRID) + intercept)), abs=near / 2)


def test_a_direction_without_information_keeps_the_identity():
    """One distinct score: Platt keeps slope 1, beta goes the least way from a = b = 1, c = 0."""
    # n1 = 3, n0 = 1: targets 4/5 and 1/3, of which 0.5 gets (3 * 4/5 + 1/3) / 4 = 41/60: log-odds log(41/19).
    platt = Platt().fit([0.5] * 4, [1, 1, 1, 0])
    assert platt.slope_ == pytest.approx(1.0, abs=1e-9)
    assert platt.intercept_ == pytest.approx(log(41 / 19), abs=1e-5)
    # At 0.5 log-odds are c - (a - b) log 2 = log 3: the step from (1, 1, 0) lies along (-log 2, log 2, 1).
    beta = Beta().fit([0.5] * 4, [1, 1, 1, 0])
    step = log(3) / (1 + 2 * log(2) ** 2)
    assert [beta.a_, beta.b_, beta.c_] == pytest.approx([1 - step * log(2), 1 + step * log(2), step], abs=1e-5)


@pytest.mark.parametrize("kind", [Platt, Beta])
def test_separable_scores_have_a_finite_map(kind):
    """Ten rows on either side of 0.5: Platt stops at its smoothed targets, beta at the pull of 1e-6."""
    fitted = kind().fit([0.3] * 10 + [0.7] * 10, [0] * 10 + [1] * 10)
    low, high = fitted.transform([0.3, 0.7])
    assert low + high == pytest.approx(1.0, abs=1e-9)
    if kind is Platt:
        assert low == pytest.approx(1 / 12, abs=1e-6)
    else:
        # By symmetry a = b and c = 0: minimise 20 log(1 + exp(-a L)) + 1e-6 (a - 1)^2 in a, L = log(7/3).
        scale = log(7 / 3)
        best = minimize_scalar(lambda a: 20 * np.logaddexp(0, -a * scale) + 1e-6 * (a - 1) ** 2, bounds=(1, 60))
        assert fitted.a_ == pytest.approx(best.x, rel=1e-4)
        assert fitted.a_ == pytest.approx(fitted.b_, rel=1e-6)


@pytest.mark.parametrize(
    ("p", "n1", "n0"),
    [
        ([0.195, 0.426, 0.99998], [0, 1000, 100], [1, 0, 0]),
        ([0.481, 0.801, 0.814], [10_000, 10_000, 0], [0, 0, 1]),
        ([0.0, 0.5, 1.0], [1, 5, 1], [10**7, 5, 10**7]),
        ([1e-6, 0.5, 1 - 1e-6], [0, 40_000, 1], [1, 0, 60_000]),
    ],
)
@pytest.mark.parametrize("start", [None, [4.0, -7.0]])
def test_newtons_method_converges_from_anywhere(p, n1, n0, start):
    """Also where a whole step overshoots: the gradient vanishes, with the pull of 1e-6 towards the centre."""
    design, centre = np.column_stack([logit(held(p)), np.ones(3)]), np.array([1.0, 0.0])
    n, ones = np.add(n1, n0).astype(float), np.array(n1, dtype=float)
    theta = fit_logistic(design, n, ones, centre=centre, start=None if start is None else np.array(start))
    gradient = design.T @ (n * expit(design @ theta) - ones) + 1e-6 * (theta - centre)
    assert abs(gradient).max() < 1e-10 * n.sum()


def test_a_whole_step_may_lead_nowhere():
    """Without halving, Newton's steps on the second case above still jump after a hundred of them."""
    design = np.column_stack([logit([0.481, 0.801, 0.814]), np.ones(3)])
    n, ones, centre = np.array([10_000.0, 10_000.0, 1.0]), np.array([10_000.0, 10_000.0, 0.0]), np.array([1.0, 0.0])
    theta = np.zeros(2)
    for _ in range(100):
        p = expit(design @ theta)
        curvature = (design.T * (n * p * (1 - p))) @ design + 1e-6 * np.eye(2)
        theta = theta - np.linalg.solve(curvature, design.T @ (n * p - ones) + 1e-6 * (theta - centre))
    assert abs(theta - fit_logistic(design, n, ones, centre=centre)).max() > 100


@pytest.mark.parametrize("penalty", [np.array([[2.0, -0.7], [-0.7, 0.5]]), np.zeros((2, 2))])
def test_the_logistic_regression_is_pulled_by_its_penalty(penalty):
    """Half the quadratic form about the centre on top of the negative log likelihood, minimised by scipy."""
    design = np.column_stack([np.ones(5), [-2.0, -0.5, 0.1, 1.0, 2.5]])
    n, ones, centre = np.array([3.0, 2.5, 4.0, 1.0, 6.0]), np.array([1.0, 0.5, 2.5, 0.2, 4.0]), np.array([0.4, -1.0])

    def loss(theta):
        z = design @ theta
        return n @ np.logaddexp(0, z) - ones @ z + (theta - centre) @ penalty @ (theta - centre) / 2

    expected = minimum(loss, [0.0, 0.0])
    for start in (None, np.array([2.0, 3.0]), np.array([1, -2])):
        result = fit_logistic(design, n, ones, centre=centre, penalty=penalty, start=start)
        assert result == pytest.approx(expected, abs=1e-6)
    # A tolerance so wide that the first step, from a start nearby, is the last: one Newton step exactly.
    start = expected + np.array([0.1, -0.05])
    p = expit(design @ start)
    gradient = design.T @ (n * p - ones) + penalty @ (start - centre)
    step = np.linalg.solve((design.T * (n * p * (1 - p))) @ design + penalty, gradient)
    once = fit_logistic(design, n, ones, centre=centre, penalty=penalty, start=start, tolerance=0.5)
    assert once == pytest.approx(start - step, abs=1e-12)


@pytest.mark.parametrize("name", SAMPLES)
def test_temperature_is_the_minimum_of_the_log_loss(name):
    """The temperature that scipy's bounded search finds in [0.01, 100]."""
    p, y, w = map(np.array, SAMPLES[name])
    x = logit(held(p))

    def loss(log_scale):
        z = np.exp(log_scale) * x
        return w @ (np.logaddexp(0, z) - y * z)

    best = minimize_scalar(loss, bounds=(-log(100), log(100)), method="bounded", options={"xatol": 1e-12})
    fitted = Temperature().fit(p, y, w)
    assert log(fitted.temperature_) == pytest.approx(-best.x, abs=1e-5)
    assert fitted.transform(GRID) == pytest.approx(held(expit(logit(held(GRID)) / fitted.temperature_)), abs=1e-12)


def test_temperature_at_its_bounds():
    """Separable scores reach 0.01, reversed ones 100, scores that are all 0.5 stay at 1."""
    assert Temperature().fit([0.3, 0.7], [0, 1]).temperature_ == 0.01
    assert Temperature().fit([0.3, 0.7], [1, 0]).temperature_ == 100.0
    assert Temperature().fit([0.5, 0.5], [1, 0]).temperature_ == 1.0
    # The best scale would be 0.0100001 and 0.0099999: the first is found, the second is the bound.
    for scale in (0.0100001, 0.0099999):
        share = float(expit(scale * log(4)))
        result = Temperature().fit([0.8, 0.8], [1, 0], [share, 1 - share]).temperature_
        assert result == pytest.approx(min(1 / scale, 100.0), rel=1e-9)


@pytest.mark.parametrize("name", SAMPLES)
def test_beta_is_the_constrained_maximum_of_the_likelihood(name):
    """The coefficients that scipy's bounded search finds with both slopes at least 0."""
    p, y, w = map(np.array, SAMPLES[name])
    design = np.column_stack([np.log(held(p)), -np.log1p(-held(p)), np.ones(len(p))])

    def loss(theta):
        z = design @ theta
        slope = design.T @ (w * (expit(z) - y))
        return w @ (np.logaddexp(0, z) - y * z), slope

    bounds = [(0, None), (0, None), (None, None)]
    result = minimize(loss, [1.0, 1.0, 0.0], jac=True, method="L-BFGS-B", bounds=bounds, options={"gtol": 1e-10})
    beta = Beta().fit(p, y, w)
    assert min(beta.a_, beta.b_) >= 0
    assert loss(np.array([beta.a_, beta.b_, beta.c_]))[0] == pytest.approx(result.fun, abs=1e-7)
    assert expit(design @ [beta.a_, beta.b_, beta.c_]) == pytest.approx(expit(design @ result.x), abs=1e-4)
    q = held(GRID)
    z = beta.a_ * np.log(q) - beta.b_ * np.log1p(-q) + beta.c_
    assert beta.transform(GRID) == pytest.approx(held(expit(z)), abs=1e-12)


def test_beta_of_reversed_scores_is_the_share():
    """Both slopes end at 0, and the intercept is the log-odds of 19 of 39; however mildly the scores are reversed."""
    beta = Beta().fit(*REVERSED)
    assert (beta.a_, beta.b_) == (0.0, 0.0)
    assert beta.c_ == pytest.approx(log(19 / 20), abs=1e-6)
    mild = Beta().fit([0.2, 0.2, 0.5, 0.5, 0.9, 0.9], [0, 1] * 3, [4, 6, 5, 5, 6, 4])
    assert (mild.a_, mild.b_) == (0.0, 0.0)
    assert mild.c_ == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.4), (1.4, 0.0)])
def test_beta_on_a_face_of_the_constraint(a, b):
    """Cells whose shares follow a map with a slope below 0: the slope is 0 and the rest fitted without it."""
    p = np.linspace(0.05, 0.95, 19)
    true = expit((a - 0.6 * (a == 0)) * np.log(p) - (b - 0.6 * (b == 0)) * np.log1p(-p) + 0.2)
    beta = Beta().fit(np.tile(p, 2), np.repeat([1, 0], 19), np.concatenate([true, 1 - true]) * 1000)
    kept = np.log(p) if a else -np.log1p(-p)

    def loss(theta):
        z = theta[0] * kept + theta[1]
        return 1000 * np.sum(np.logaddexp(0, z) - true * z)

    slope, intercept = minimum(loss, [1.0, 0.0])
    assert [beta.a_, beta.b_, beta.c_] == pytest.approx([slope * (a > 0), slope * (b > 0), intercept], abs=1e-4)
    assert min(beta.a_, beta.b_) == 0.0


def pooled(shares, weights):
    """Return the isotonic fit by its minimax formula: the least mean to the right of the largest to the left."""
    shares, weights = np.asarray(shares, dtype=float), np.asarray(weights, dtype=float)
    n = len(shares)

    def mean(i, j):
        return np.average(shares[i : j + 1], weights=weights[i : j + 1])

    return [max(min(mean(i, j) for j in range(k, n)) for i in range(k + 1)) for k in range(n)]


@pytest.mark.parametrize("name", SAMPLES)
def test_isotonic_is_the_minimax_formula(name):
    """The value at every score, straight lines between, flat outside."""
    scores, total, shares = shares_of(*SAMPLES[name])
    values = pooled(shares, total)
    isotonic = Isotonic().fit(*SAMPLES[name])
    assert isotonic.transform(GRID) == pytest.approx(held(np.interp(GRID, scores, values)), abs=1e-12)
    # Inside a flat piece nothing is kept, its ends are; the very ends always.
    ends = [
        k
        for k in range(len(scores))
        if k in (0, len(scores) - 1) or not values[k - 1] == pytest.approx(values[k]) == pytest.approx(values[k + 1])
    ]
    assert isotonic.thresholds_ == pytest.approx([scores[k] for k in ends])
    assert isotonic.values_ == pytest.approx([values[k] for k in ends])


def test_isotonic_keeps_the_ends_of_flat_pieces():
    """Shares 1/2, 1/4, 1/4, 3/4, 3/4, 1/2, 1: pieces 1/3 (of three scores), 2/3 (of three), and 1."""
    shares = np.array([0.5, 0.25, 0.25, 0.75, 0.75, 0.5, 1.0])
    p = np.linspace(0.2, 0.8, 7)
    isotonic = Isotonic().fit(np.tile(p, 2), np.repeat([1, 0], 7), np.concatenate([shares, 1 - shares]) * 8)
    assert isotonic.thresholds_ == pytest.approx([0.2, 0.4, 0.5, 0.7, 0.8])
    assert isotonic.values_ == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3, 1.0])


@pytest.mark.parametrize("n_bins", [1, 3, 10])
@pytest.mark.parametrize("name", SAMPLES)
def test_histogram_counts_bin_by_bin(name, n_bins):
    """The share of label 1 in each bin [j / B, (j + 1) / B), the last one closed; an empty bin's own middle."""
    p, y, w = SAMPLES[name]

    def bin_of(q):
        return min(sum(q >= edge for edge in np.linspace(0, 1, n_bins + 1)[1:]), n_bins - 1)

    expected = []
    for q in GRID:
        rows = [(label, weight) for s, label, weight in zip(p, y, w, strict=True) if bin_of(s) == bin_of(q)]
        total = sum(weight for _, weight in rows)
        ones = sum(weight for label, weight in rows if label)
        expected.append(ones / total if total else (bin_of(q) + 0.5) / n_bins)
    histogram = Histogram(n_bins).fit(p, y, w)
    assert histogram.transform(GRID) == pytest.approx(held(expected), abs=1e-12)
    assert histogram.edges_ == pytest.approx([j / n_bins for j in range(n_bins + 1)])
    assert len(histogram.values_) == n_bins


def test_histogram_by_hand():
    """Four bins; 0.25 and 0.5 belong to the bin on their right, 1 to the last; [1/4, 1/2) holds nothing."""
    histogram = Histogram(4).fit([0.0, 0.2, 0.5, 0.5, 0.74, 0.75, 1.0], [0, 1, 1, 0, 1, 1, 0], [3, 1, 1, 1, 2, 1, 4])
    assert histogram.values_ == pytest.approx([1 / 4, 3 / 8, 3 / 4, 1 / 5])
    assert histogram.transform([0.25, 0.4999, 0.75]) == pytest.approx([3 / 8, 3 / 8, 1 / 5])
    assert Histogram().fit([0.1, 0.9], [0, 1]).edges_ == pytest.approx(np.linspace(0, 1, 11))
