"""Best judge, majority and ridge on few datasets, against loops over rows and scipy's optimisers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from deep.features import Linear
from deep.model import LabeledRows, fit_average, fit_best_judge, fit_majority, fit_ridge

FITS = (fit_best_judge, fit_majority, fit_ridge, fit_average)


def labeled(votes, labels, groups=None, weights=None):
    """Return labeled rows of votes."""
    n = len(labels)
    groups = np.zeros(n, dtype=int) if groups is None else np.asarray(groups)
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    return LabeledRows(np.asarray(votes, dtype=np.int8), np.empty((n, 0)), weights, np.asarray(labels, np.int8), groups)


def panel(seed, n=60, n_voters=4, n_datasets=2):
    """Return rows of judges of accuracies from 0.45 to 0.85, a tenth of their votes missing, rows weighted."""
    rng = np.random.default_rng(seed)
    labels = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    groups = np.r_[np.arange(n) % n_datasets]
    for d in range(n_datasets):
        labels[np.flatnonzero(groups == d)[:2]] = 0, 1
    right = rng.random((n, n_voters)) < np.linspace(0.45, 0.85, n_voters)
    votes = np.where(right, labels[:, None], 1 - labels[:, None])
    votes[rng.random(votes.shape) < 0.1] = -1
    return labeled(votes, labels, groups, rng.integers(1, 4, n))


def balanced(rows):
    """Return weights under which every dataset and class weighs the same, summing to 1."""
    w = np.zeros(len(rows.labels))
    kinds = sorted(set(zip(rows.groups.tolist(), rows.labels.tolist(), strict=True)))
    for group, label in kinds:
        kept = (rows.groups == group) & (rows.labels == label)
        w[kept] = rows.weights[kept] / rows.weights[kept].sum() / len(kinds)
    return w


def signed(votes):
    """Return +1, -1 and 0."""
    return np.select([votes == 1, votes == 0], [1.0, -1.0], 0.0)


def rates(rows, smoothing):
    """Return each judge's share of 1 by class: class 1 first."""
    w = balanced(rows) * rows.weights.sum()
    result = np.full((2, rows.votes.shape[1]), 0.5)
    for c, label in enumerate((1, 0)):
        for j in range(rows.votes.shape[1]):
            of_class = rows.labels == label
            ones = w[of_class & (rows.votes[:, j] == 1)].sum() + smoothing
            cast = w[of_class & (rows.votes[:, j] != -1)].sum() + 2 * smoothing
            if cast:
                result[c, j] = ones / cast
    return result


def platt(score, rows):
    """Return intercept and slope of least loss where each label is drawn towards a half by one row of its class."""
    w = balanced(rows)
    n1, n0 = (rows.weights[rows.labels == label].sum() for label in (1, 0))
    target = np.where(rows.labels == 1, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))

    def loss(theta):
        z = theta[0] + theta[1] * score
        value = w @ (np.logaddexp(0, z) - target * z)
        residual = w * (expit(z) - target)
        return value, np.array([residual.sum(), residual @ score])

    return minimize(loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-12}).x


def at(rows, intercept, slope, coef):
    """Return log-odds of rows."""
    return intercept + slope * signed(rows.votes) @ coef


@pytest.mark.parametrize("seed", range(4))
def test_the_best_judge_is_that_of_loops(seed):
    """The largest difference of its shares of 1 in the two classes; the mean vote decides its ties."""
    rows = panel(seed)
    ones, zeros = rates(rows, 0)
    best = int(np.argmax(ones - zeros))
    coef = np.full(4, 0.001 / 4)
    coef[best] += 1.0
    expected = at(rows, *platt(signed(rows.votes) @ coef, rows), coef)
    assert fit_best_judge(rows).log_odds(rows.votes) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_majority_is_that_of_loops(seed):
    """Every judge weighs the same; slope and intercept are Platt's."""
    rows = panel(seed)
    coef = np.full(4, 0.25)
    expected = at(rows, *platt(signed(rows.votes).mean(axis=1), rows), coef)
    result = fit_majority(rows)
    assert result.log_odds(rows.votes) == pytest.approx(expected, abs=1e-3)
    assert np.ptp(result.ones) == 0
    assert result.zeros.tolist() == (-result.ones).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_the_ridge_is_the_optimum_of_its_loss(seed):
    """Found by a generic optimiser of squares, which cannot be negative; then Platt's slope and intercept."""
    rows = panel(seed, n_voters=5)
    ones, zeros = rates(rows, 1)
    youden = np.maximum(ones - zeros, 0)
    scale = youden / np.sqrt((youden**2).mean()) / np.sqrt(5)
    x, y, w = signed(rows.votes) * scale, rows.labels, balanced(rows)

    def loss(theta):
        b = theta[1:] ** 2
        z = theta[0] + x @ b
        return w @ (np.logaddexp(0, z) - y * z) + 0.03 / 2 * b @ b

    starts = [np.full(6, s) for s in (0.3, 1.0)]
    options = {"gtol": 1e-9, "maxiter": 5000}
    best = min((minimize(loss, s, method="BFGS", options=options) for s in starts), key=lambda found: found.fun)
    coef = best.x[1:] ** 2 * scale
    expected = at(rows, *platt(signed(rows.votes) @ coef, rows), coef)
    found = fit_ridge(rows)
    assert (found.ones >= 0).all()
    assert found.log_odds(rows.votes) == pytest.approx(expected, abs=5e-3)


def test_a_judge_that_is_mostly_wrong_gets_no_weight():
    """It is not believed the other way round."""
    rows = panel(1, n=200)
    votes = rows.votes.copy()
    votes[:, 0] = 1 - rows.labels
    result = fit_ridge(labeled(votes, rows.labels, rows.groups, rows.weights))
    assert result.ones[0] == result.zeros[0] == 0
    assert result.ones[3] > 0


@pytest.mark.parametrize("n", [5, 20, 400])
@pytest.mark.parametrize("fit", FITS)
def test_a_perfect_judge_on_few_rows_is_believed_as_platt_would(fit, n):
    """Separable labels, n of either class: P is (n + 1) / (n + 2), never 1."""
    labels = np.repeat([1, 0], n)
    result = fit(labeled(labels[:, None], labels))
    assert expit(result.log_odds(np.array([[1], [0]], np.int8))) == pytest.approx(
        [(n + 1) / (n + 2), 1 / (n + 2)], abs=1e-3
    )


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("kind", ["inverted", "constant", "silent", "chance"])
def test_judges_that_say_nothing_add_nothing(fit, kind):
    """A slope of 0 or less is none, and the intercept goes with it."""
    labels = np.tile([1, 0], 30)
    column = {
        "inverted": 1 - labels,
        "constant": np.ones(60),
        "silent": np.full(60, -1),
        "chance": np.tile([1, 1, 0, 0], 15),
    }[kind]
    result = fit(labeled(np.repeat(column[:, None], 3, axis=1), labels))
    assert np.isfinite(result.ones).all()
    assert result.log_odds(np.array([[1, 0, -1], [0, 0, 0], [1, 1, 1]], np.int8)) == pytest.approx([0] * 3, abs=1e-5)


def test_the_average_is_the_mean_of_the_three():
    """Of their log-odds."""
    rows = panel(5)
    members = [fit(rows).log_odds(rows.votes) for fit in (fit_best_judge, fit_majority, fit_ridge)]
    assert fit_average(rows).log_odds(rows.votes) == pytest.approx(np.mean(members, axis=0), abs=1e-12)


def test_a_mean_of_sums_by_hand():
    """Intercepts and both kinds of votes."""
    one, two = Linear(1.0, np.array([1.0]), np.array([-3.0])), Linear(0.0, np.array([3.0]), np.array([-1.0]))
    mean = Linear.mean([one, two])
    assert (mean.intercept, mean.ones.tolist(), mean.zeros.tolist()) == (0.5, [2.0], [-2.0])
    assert mean.log_odds(np.array([[1], [0], [-1]], np.int8)).tolist() == [2.5, -1.5, 0.5]


@given(st.integers(0, 500), st.sampled_from(FITS))
def test_flipping_votes_and_labels_mirrors_log_odds(seed, fit):
    """What speaks for 1 speaks for 0."""
    rows = panel(seed)
    flipped = np.where(rows.votes == -1, -1, 1 - rows.votes)
    other = fit(labeled(flipped, 1 - rows.labels, rows.groups, rows.weights))
    assert other.log_odds(flipped) == pytest.approx(-fit(rows).log_odds(rows.votes), abs=1e-5)


@given(st.integers(0, 500), st.sampled_from(FITS))
def test_order_repeats_and_columns_do_not_matter(seed, fit):
    """Rows in another order, repeated for weighted, judges in another order."""
    rows = panel(seed)
    rng = np.random.default_rng(seed)
    expected = fit(rows).log_odds(rows.votes)
    order, columns = rng.permutation(len(rows.labels)), rng.permutation(4)
    shuffled = rows.rows(order)
    assert fit(shuffled).log_odds(rows.votes) == pytest.approx(expected, abs=1e-5)
    times = np.repeat(np.arange(len(rows.labels)), rows.weights.astype(int))
    repeated = labeled(rows.votes[times], rows.labels[times], rows.groups[times])
    assert fit(repeated).log_odds(rows.votes) == pytest.approx(expected, abs=1e-5)
    moved = labeled(rows.votes[:, columns], rows.labels, rows.groups, rows.weights)
    assert fit(moved).log_odds(rows.votes[:, columns]) == pytest.approx(expected, abs=1e-4)


@given(st.integers(0, 500), st.sampled_from(FITS))
def test_no_vote_lowers_p_of_consistent(seed, fit):
    """A vote of 1 never adds less than a vote of 0, whatever the labels; all numbers are finite."""
    rng = np.random.default_rng(seed)
    labels = np.r_[0, 1, rng.integers(0, 2, 20)]
    result = fit(labeled(rng.integers(-1, 2, (22, 3)), labels))
    assert np.isfinite([result.intercept, *result.ones, *result.zeros]).all()
    assert (result.ones >= 0).all()
    assert (result.zeros <= 0).all()


@given(st.integers(0, 200), st.sampled_from(FITS))
def test_datasets_weigh_alike_whatever_their_size(seed, fit):
    """One of them given twice over changes no score, but for what Platt's smoothing knows of the number of rows."""
    rows = panel(seed, n=400)
    times = np.where(rows.groups == 0, 2.0, 1.0) * rows.weights
    heavy = labeled(rows.votes, rows.labels, rows.groups, times)
    assert fit(heavy).log_odds(rows.votes) == pytest.approx(fit(rows).log_odds(rows.votes), abs=0.05)
