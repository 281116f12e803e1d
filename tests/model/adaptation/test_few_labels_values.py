"""Misfit and correction by few labels against scipy's optimisers, and numbers worked out by hand."""

import numpy as np
import pytest
from scipy.optimize import bisect, minimize
from scipy.special import expit, logit

from deep.exceptions import InputError
from deep.model import FewLabels, HeldOutRows, Misfit, learn_misfit
from tests.model.fitted import interval_of

# The 0.95 quantiles of Student's t, from a printed table, by degrees of freedom.
STUDENT = {3: 2.353363, 4: 2.131847, 5: 2.015048, 8: 1.859548, 13: 1.770933}

NONE = np.array([0.0, 1.0])
MOMENT = np.array([[0.6, -0.1], [-0.1, 0.2]])


def penalised(z, ones, zeros, precision):
    """Return intercept and slope of least log loss plus half the quadratic form about (0, 1)."""

    def loss(theta):
        fitted, apart = theta[0] + theta[1] * z, theta - [0, 1]
        return ones @ np.logaddexp(0, -fitted) + zeros @ np.logaddexp(0, fitted) + apart @ precision @ apart / 2

    rough = minimize(loss, [0, 1], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x
    return minimize(loss, rough, method="BFGS", options={"gtol": 1e-9}).x


def dataset(seed, intercept, slope, n=60):
    """Return left-out rows in cells of 1 to 12 rows, whose log-odds ask for a correction."""
    rng = np.random.default_rng(seed)
    values = rng.normal(0.2, 1.4, 12)
    cell = np.sort(rng.integers(0, 12, n) * rng.integers(0, 2, n))
    z, weights = values[cell] + rng.normal(0, 0.1, n), rng.uniform(0.3, 2.0, n)
    y = rng.random(n) < expit(intercept + slope * z + rng.normal(0, 1.2, 12)[cell])
    return HeldOutRows(z, weights * y, weights * ~y, cell)


def plain_spread(datasets, corrections):
    """Return the cells' spread by loops over cells and bisection of the mean square."""
    gaps = []
    for one, (intercept, slope) in zip(datasets, corrections, strict=True):
        result = []
        for cell in sorted(set(one.cell.tolist())):
            rows = one.cell == cell
            n1, n0 = one.ones[rows].sum(), one.zeros[rows].sum()
            if n1 + n0 >= 5:
                p = expit(intercept + slope * one.log_odds[rows])
                expected = np.average(p, weights=(one.ones + one.zeros)[rows])
                result.append((np.log((n1 + 0.5) / (n0 + 0.5)) - logit(expected), 1 / (n1 + 0.5) + 1 / (n0 + 0.5)))
        if result:
            gaps.append(result)

    def excess(spread):
        return np.mean([np.mean([gap**2 / (noise + spread**2) for gap, noise in result]) for result in gaps]) - 1

    return bisect(excess, 0, 50, xtol=1e-12) if gaps and excess(0) > 0 else 0.0


@pytest.mark.parametrize("n_datasets", [1, 2, 5])
def test_the_misfit_is_what_datasets_ask_for(n_datasets):
    """Corrections fitted with a row's worth of pull; three datasets more ask for none; a start for the covariance."""
    datasets = [dataset(d, *c) for d, c in enumerate([(0.8, 0.6), (-0.5, 1.3), (0.1, 0.9), (1.2, 1.1), (-0.9, 0.4)])]
    datasets = datasets[:n_datasets]
    corrections = [penalised(one.log_odds, one.ones, one.zeros, np.eye(2)) for one in datasets]
    mean = [
        (sum(c[0] for c in corrections)) / (n_datasets + 3),
        (sum(c[1] for c in corrections) + 3) / (n_datasets + 3),
    ]
    moments = np.array([[0.5, 0.0], [0.0, 0.15]])
    for intercept, slope in corrections:
        a, b = intercept - mean[0], slope - mean[1]
        moments += [[a**2, a * b], [a * b, b**2]]
    result = learn_misfit(datasets)
    assert result.mean == pytest.approx(mean, abs=2e-6)
    assert result.covariance == pytest.approx(moments / n_datasets, abs=5e-6)
    assert result.n_datasets == n_datasets
    off = [
        np.average(abs(expit(c[0] + c[1] * one.log_odds) - expit(one.log_odds)), weights=one.ones + one.zeros)
        for one, c in zip(datasets, corrections, strict=True)
    ]
    assert result.worst == pytest.approx(corrections[int(np.argmax(off))], abs=2e-6)
    spread = plain_spread(datasets, corrections)
    assert spread > 0.1
    assert result.cell_spread == pytest.approx(spread, abs=1e-5)


def test_without_datasets_the_start_is_all_there_is():
    """A variance of 0.5 of the intercept, 0.15 of the slope."""
    result = learn_misfit([])
    assert result.mean.tolist() == [0.0, 1.0]
    assert result.covariance.tolist() == [[0.5, 0.0], [0.0, 0.15]]
    assert (result.n_datasets, result.cell_spread, result.worst) == (0, 0.0, None)


def test_the_spread_of_one_cell_by_hand():
    """One cell at log-odds 0 with 30 ones and 10 zeros, another at 0 with the reverse: nothing to correct.

    Gaps are -+log(30.5 / 10.5), their variance 1 / 30.5 + 1 / 10.5.
    """
    one = HeldOutRows(np.zeros(2), np.array([30.0, 10.0]), np.array([10.0, 30.0]), np.array([0, 1]))
    result = learn_misfit([one])
    expected = np.sqrt(np.log(30.5 / 10.5) ** 2 - 1 / 30.5 - 1 / 10.5)
    assert result.cell_spread == pytest.approx(expected, abs=1e-9)
    assert result.covariance == pytest.approx(np.array([[0.5, 0.0], [0.0, 0.15]]), abs=1e-9)


@pytest.mark.parametrize(("rows", "counted"), [(4.9, False), (5.0, True), (5.5, True)])
def test_cells_of_five_rows_count(rows, counted):
    """Two cells with log-odds far from their rates: from five rows on they add to the spread."""
    one = HeldOutRows(np.zeros(2), np.array([rows, 0.0]), np.array([0.0, rows]), np.array([3, 1]))
    assert (learn_misfit([one]).cell_spread > 0.5) == counted


def test_a_cell_that_is_predicted_certain_is_held_off_0_and_1():
    """Log-odds of 40 and -40 count as P = 1 - 1e-6 and 1e-6."""
    z = np.array([40.0, -40.0])
    one = HeldOutRows(z, np.array([20.0, 0.0]), np.array([0.0, 20.0]), np.array([0, 1]))
    intercept, slope = penalised(z, one.ones, one.zeros, np.eye(2))
    assert slope * 40 > 30
    assert intercept == pytest.approx(0.0, abs=1e-6)
    gap = np.log((1 - 1e-6) / 1e-6) - np.log(20.5 / 0.5)
    assert learn_misfit([one]).cell_spread == pytest.approx(np.sqrt(gap**2 - 1 / 20.5 - 2), abs=1e-6)


def test_the_bounds_of_a_misfit_by_hand():
    """Variance 0.25 + 2 (-0.05) z + 0.04 z^2 + 0.09, at z = 2: 0.25 - 0.2 + 0.16 + 0.09 = 0.3."""
    misfit = Misfit(NONE, np.array([[0.25, -0.05], [-0.05, 0.04]]), 5, 0.3)
    z = np.array([2.0, 0.0, -1.0])
    reach = np.sqrt([0.3, 0.34, 0.25 + 0.1 + 0.04 + 0.09]) * STUDENT[8]
    low, high = misfit.interval(z)
    assert low == pytest.approx(expit(z - reach), abs=1e-6)
    assert high == pytest.approx(expit(z + reach), abs=1e-6)


def test_the_bounds_of_an_observed_rate_by_hand():
    """In n rows a rate has 1 / (n p (1 - p)) more variance of log-odds, and moves in steps of 1 / n."""
    misfit = Misfit(NONE, np.array([[0.3, 0.0], [0.0, 0.0]]), 2)
    low, high = misfit.interval(np.array([0.0, 2.0]), np.array([8.0, 50.0]))
    p = expit(2.0)
    z, half = np.array([0.0, 2.0]), np.array([1 / 16, 1 / 100])
    reach = np.sqrt([0.3 + 4 / 8, 0.3 + 1 / (50 * p * (1 - p))]) * STUDENT[5]
    assert low == pytest.approx(np.maximum(expit(z - reach) - half, 0), abs=1e-6)
    assert high == pytest.approx(np.minimum(expit(z + reach) + half, 1), abs=1e-6)
    low, high = misfit.interval(np.array([0.0]), np.array([1.0]))
    assert (low.tolist(), high.tolist()) == ([0.0], [1.0])


@pytest.mark.parametrize(("n_datasets", "quantile"), [(0, STUDENT[3]), (1, STUDENT[4]), (2, STUDENT[5])])
def test_the_quantile_has_a_degree_for_each_dataset(n_datasets, quantile):
    """And three for those assumed at the start."""
    low, high = Misfit(NONE, np.diag([0.16, 0.0]), n_datasets).interval(np.array([0.5]))
    assert [low[0], high[0]] == pytest.approx(expit([0.5 - 0.4 * quantile, 0.5 + 0.4 * quantile]), abs=1e-6)


P = np.array([0.15, 0.3, 0.42, 0.5, 0.66, 0.8, 0.93, 0.97])
LABELS = np.array([0, 0, 1, 0, 0, 1, 1, 0])
WEIGHTS = np.array([2.0, 1.0, 0.5, 3.0, 1.0, 2.5, 1.0, 1.0])


def averaged(z, y, w, moment):
    """Return intercept and slope by scipy at the prior and at eight times its covariance, and how labels weigh both.

    The log evidence is Laplace's: the log posterior at its maximum, and half the log volume of the Gaussian there.
    """
    result = []
    for scale in (1.0, 8.0):
        precision = np.linalg.inv(scale * moment)
        coef = penalised(z, w * y, w * (1 - y), precision)
        curvature, log = precision.copy(), 0.0
        for zi, yi, wi in zip(z, y, w, strict=True):
            p = expit(coef[0] + coef[1] * zi)
            curvature += wi * p * (1 - p) * np.array([[1, zi], [zi, zi**2]])
            log += wi * np.log(p if yi else 1 - p)
        apart = coef - [0, 1]
        log -= apart @ precision @ apart / 2
        log += (np.log(np.linalg.det(precision)) - np.log(np.linalg.det(curvature))) / 2
        result.append((coef, np.linalg.inv(curvature), np.exp(log) / scale))
    coefs, covariances, odds = (np.array(values) for values in zip(*result, strict=True))
    return coefs, covariances, odds / odds.sum()


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_correction_averages_two_penalised_maxima_of_the_likelihood(weights):
    """Intercept and slope by scipy, their covariance within and between the two, and P and its bounds."""
    w, z = np.ones(8) if weights is None else weights, logit(P)
    coefs, covariances, share = averaged(z, LABELS, w, MOMENT)
    coef = share @ coefs
    few = FewLabels(Misfit(NONE, MOMENT, 10, 0.2)).fit(P, LABELS, sample_weight=weights)
    assert few.coef_ == pytest.approx(coef, abs=1e-6)
    between = sum(part * np.outer(one - coef, one - coef) for part, one in zip(share, coefs, strict=True))
    covariance = np.tensordot(share, covariances, 1) + between
    assert few.covariance_ == pytest.approx(covariance, abs=1e-6)
    at = np.array([0.2, 0.75])
    centre = coef[0] + coef[1] * logit(at)
    assert few.transform(at) == pytest.approx(expit(centre), abs=1e-6)
    variance = np.array([[1, x] @ covariance @ [1, x] for x in logit(at)]) + 0.04
    n = np.array([9, 30])
    for counts, more, half in ((None, 0.0, 0.0), (n, 1 / (n * expit(centre) * expit(-centre)), 0.5 / n)):
        reach = np.sqrt(variance + more) * STUDENT[13]
        low, high = interval_of(few, at, counts)
        assert low == pytest.approx(np.maximum(expit(centre - reach) - half, 0), abs=2e-6)
        assert high == pytest.approx(np.minimum(expit(centre + reach) + half, 1), abs=2e-6)


def test_the_more_labels_the_more_they_decide():
    """At P = 1/2 alone the slope stays, and a thousand labels of which 3/4 are 1 give 3/4."""
    few = FewLabels(Misfit(NONE, np.diag([0.5, 0.1]), 10))
    many = few.fit([0.5, 0.5], [1, 0], sample_weight=[75_000, 25_000])
    assert many.coef_ == pytest.approx([np.log(3), 1.0], abs=1e-3)
    # One label 1: minimise log(1 + exp(-b)) + b^2 / s at s = 1 and 8: where 2b = s expit(-b), b = 0.22 and 1.04.
    one = few.fit([0.5], [1])
    best = np.array([bisect(lambda b, s=s: 2 * b - s * expit(-b), 0, 4, xtol=1e-12) for s in (1, 8)])
    s, p = np.array([1, 8]), expit(best)
    odds = p * np.exp(-(best**2) / s) / np.sqrt(1 + s / 2 * p * (1 - p)) / s
    assert one.coef_[0] == pytest.approx(odds @ best / odds.sum(), abs=1e-7)
    assert one.coef_[1] == pytest.approx(1.0, abs=1e-9)


def test_labels_far_from_p_are_believed_sooner():
    """Forty labels at P = 0.9 of which half are 1: the wider prior takes nearly all the weight."""
    y = np.tile([0, 1], 20)
    coefs, _, share = averaged(np.full(40, logit(0.9)), y, np.ones(40), MOMENT / 10)
    corrected = FewLabels(Misfit(NONE, MOMENT / 10, 10)).fit(np.full(40, 0.9), y).transform([0.9])[0]
    alone = expit(coefs @ [1, logit(0.9)])
    assert share[1] > 0.95
    assert abs(corrected - 0.5) < abs(alone[0] - 0.5) / 2


def test_p_of_0_and_1_is_held_off_the_ends():
    """Log-odds are held within -+13.8, before and after."""
    few = FewLabels(Misfit(NONE, MOMENT, 10)).fit([0.0, 1.0], [0, 1])
    edge = logit(1e-6)
    coef = penalised(np.array([edge, -edge]), np.array([0.0, 1.0]), np.array([1.0, 0.0]), np.linalg.inv(MOMENT))
    assert few.coef_ == pytest.approx(coef, abs=1e-5)
    low, high = few.transform([0.0, 1.0])
    assert (low, high) == pytest.approx((1e-6, 1 - 1e-6), abs=1e-7)
    steep = FewLabels(Misfit(NONE, MOMENT, 10)).fit([0.01] * 50 + [0.99] * 50, [0] * 50 + [1] * 50)
    assert steep.coef_[1] > 1.0
    assert steep.transform([0.0, 1.0]).tolist() == [1e-6, 1 - 1e-6]


def test_rows_may_come_in_any_order_and_classes_may_be_swapped():
    """Weights are rows repeated; with both flipped, intercept and covariance of intercept and slope change sign."""
    few = FewLabels(Misfit(NONE, np.diag([0.6, 0.2]), 10))
    base = few.fit(P, LABELS, sample_weight=[1, 2, 3, 1, 2, 3, 1, 2]).coef_
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(8), [1, 2, 3, 1, 2, 3, 1, 2]))
    assert few.fit(P[rows], LABELS[rows]).coef_ == pytest.approx(base, abs=1e-8)
    flipped = few.fit(1 - P, 1 - LABELS, sample_weight=[1, 2, 3, 1, 2, 3, 1, 2]).coef_
    assert flipped == pytest.approx(base * [-1, 1], abs=1e-8)


@pytest.mark.parametrize(
    ("moment", "p", "y", "message"),
    [
        (np.zeros((2, 2)), [0.1], [1], r"^`misfit` must have a positive definite covariance\. Got \[\[0\.0, 0\.0\]"),
        (
            np.diag([1.0, 0.0]),
            [0.1],
            [1],
            r"^`misfit` must have a positive definite covariance\. Got \[\[1\.0, 0\.0\]",
        ),
        (
            np.diag([1.0, -0.5]),
            [0.1],
            [1],
            r"positive definite covariance\. Got \[\[1\.0, 0\.0\], \[0\.0, -0\.5\]\]\.$",
        ),
        (MOMENT, [0.1, 0.2], [1], r"^`y_true` must have 2 entries, one a row\. Got 1\.$"),
        (MOMENT, [1.1], [1], r"^`y_prob` must lie in \[0, 1\]\. Got 1\.1 at row 0\.$"),
        (MOMENT, [0.1], [2], r"^`y_true` must hold only 0 and 1\. Got 2\.0 at row 0\.$"),
    ],
)
def test_values_out_of_range(moment, p, y, message):
    """Each is refused by name."""
    with pytest.raises(InputError, match=message):
        FewLabels(Misfit(NONE, moment, 5)).fit(p, y)
