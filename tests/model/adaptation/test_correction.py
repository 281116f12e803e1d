"""The correction of one dataset: none without labels, its threshold, its slope, and bounds at the ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit, logit

from deep._util.odds import shift_prior
from deep.calibration import balanced_accuracy
from deep.exceptions import InputError
from deep.model import Correction, FewLabels, HeldOutRows, JudgeColumns, Misfit, PriorEstimate, Scores, learn_misfit

NONE = np.array([0.0, 1.0])
MOMENT = np.array([[0.6, -0.1], [-0.1, 0.2]])
ASKED = Misfit(np.array([0.3, 1.2]), MOMENT, 10, 0.1)
P = np.linspace(0.05, 0.95, 19)
EVEN = PriorEstimate(0.5, 0.3, 0.7)
LIKE = Misfit(np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 0.1]]), 10)


def decided(correction, p):
    """Return which items are called consistent, from P at equal class weights."""
    return Scores(logit(p), PriorEstimate(0.5, 0.4, 0.6), ASKED, correction).decisions


def test_without_labels_p_stays():
    """Whatever the mean correction of the training datasets, with their whole second moment as uncertainty."""
    correction, _ = Correction.learn(ASKED, PriorEstimate(0.3, 0.2, 0.4), P, np.full(19, -1))
    assert correction.apply(P) == pytest.approx(shift_prior(P, 0.3), abs=1e-12)
    assert decided(correction, P).tolist() == (P > 0.5 + 1e-9).tolist()  # at a share of .3 a tie is not consistent
    assert (correction.n_labels, correction.n_effective) == (0, 0.0)
    low, high = correction.interval(P)
    expected = ASKED.interval(logit(shift_prior(P, 0.3)))
    assert np.stack([low, high]) == pytest.approx(np.stack(expected))


def test_the_mean_correction_counts_once_there_are_labels():
    """One label in the middle of what it says leaves P near the training datasets' mean correction."""
    few = FewLabels(ASKED).fit([0.5, 0.5], [0, 1], sample_weight=[1e-3 * (1 - expit(0.3)), 1e-3 * expit(0.3)])
    assert few.coef_ == pytest.approx([0.3, 1.2], abs=1e-3)


def test_the_threshold_is_the_mean_corrected_p():
    """Over all items, labeled or not."""
    labels = np.where(np.arange(19) % 4 == 0, 1, -1)
    correction, _ = Correction.learn(ASKED, EVEN, P, labels)
    assert correction.n_labels == 5
    assert expit(correction.threshold) == pytest.approx(correction.apply(P).mean(), abs=1e-9)
    corrected = correction.apply(P)
    assert decided(correction, P).tolist() == (corrected >= corrected.mean()).tolist()


def test_deciding_again_gains_balanced_accuracy():
    """Over simulated datasets whose prior was misjudged, 30 labels raise balanced accuracy."""
    rng, gains = np.random.default_rng(0), []
    for _ in range(80):
        shift = rng.normal(0, 1.2)
        z = rng.normal(0, 1.5, 800)
        y = (rng.random(800) < expit(z + shift)).astype(int)
        labels = np.where(np.arange(800) < 30, y, -1)
        correction, _ = Correction.learn(Misfit(NONE, np.diag([1.4, 0.05]), 10), EVEN, expit(z), labels)
        rest = slice(30, None)
        gains.append(balanced_accuracy(y[rest], decided(correction, expit(z))[rest]))
        gains[-1] -= balanced_accuracy(y[rest], z[rest] >= 0)
    assert np.mean(gains) > 2 * np.std(gains) / np.sqrt(len(gains))


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), max_size=30), st.integers(0, 4))
def test_the_slope_is_above_0(rows, n_documents):
    """Whatever the labels say: votes are trusted less, never turned round."""
    p, y = [q for q, _ in rows], [label for _, label in rows]
    documents = None if not n_documents else [str(i % n_documents) for i in range(len(p))]
    few = FewLabels(ASKED).fit(p, y, documents=documents)
    assert few.coef_[1] >= 0.05 - 1e-6
    assert np.isfinite(few.coef_).all()
    assert np.all(np.linalg.eigvalsh(few.covariance_) > 0)


def test_labels_against_the_votes_leave_their_mean():
    """Labels that say the opposite of P: slope 0.05, the intercept that fits the labels at that slope.

    It lies between the best by the prior variance and by eight times that, which are 0.001 apart.
    """
    p = np.tile([0.1, 0.9], 100)
    y = np.tile([1, 0], 100) * (np.arange(200) % 10 > 0)
    few = FewLabels(Misfit(NONE, np.diag([4.0, 0.1]), 10)).fit(p, y)
    assert few.coef_[1] == pytest.approx(0.05, abs=1e-6)
    intercepts = np.linspace(-1, 1, 20001)
    z = intercepts[:, None] + 0.05 * logit(np.array([0.1, 0.9]))
    ones = np.array([y[p == q].sum() for q in (0.1, 0.9)])
    losses = [np.logaddexp(0, z) @ [100.0, 100.0] - z @ ones + intercepts**2 / 2 / v for v in (4.0, 32.0)]
    low, high = sorted(float(intercepts[np.argmin(loss)]) for loss in losses)
    assert low - 2e-4 <= few.coef_[0] <= high + 2e-4
    assert high - low < 0.01


def test_bounds_of_rates_at_the_ends():
    """No warning, and bounds within [0, 1], for log-odds that no float of P can hold."""
    z = np.array([-800.0, -40.0, -37.0, 0.0, 37.0, 40.0, 800.0])
    low, high = ASKED.interval(z, np.full(7, 50.0))
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()
    assert 0 < low[3] < high[3] < 1


@pytest.mark.parametrize("n_datasets", [0, 1, 2, 10])
def test_intervals_cover_however_few_datasets_there_were(n_datasets):
    """In worlds whose datasets lie more or less far apart, P without labels is within its interval in 85 to 97 %.

    The spread of a world is that under which Student's t with three degrees of freedom is exact for no dataset.
    """
    rng, held = np.random.default_rng(n_datasets), []

    def drawn(scale, n):
        intercept, slope = rng.multivariate_normal([0.0, 1.0], scale * np.diag([0.5, 0.15]))
        z = rng.normal(0.3, 1.5, n)
        return z, expit(intercept + slope * z)

    for _ in range(400):
        scale, left_out = 3 / rng.chisquare(3), []
        for _ in range(n_datasets):
            z, truth = drawn(scale, 400)
            y = rng.random(400) < truth
            left_out.append(HeldOutRows(z, y.astype(float), (~y).astype(float), np.digitize(z, [-1, 0, 1])))
        z, truth = drawn(scale, 1)
        low, high = learn_misfit(left_out).interval(z)
        held.append(low[0] <= truth[0] <= high[0])
    assert 0.85 <= np.mean(held) <= 0.97


def test_faults_are_told():
    """Labels are one an item."""
    with pytest.raises(InputError, match=r"^`labels` must have 19 entries"):
        Correction.learn(ASKED, EVEN, P, [1, 0])


def reversed_judge(seed, n=600):
    """Return votes of five judges, labels, and log-odds that trust the first, which is mostly wrong here."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    right = rng.random((n, 5)) < [0.3, 0.75, 0.75, 0.75, 0.75]
    votes = np.where(right, y[:, None], 1 - y[:, None]).astype(np.int8)
    votes[rng.random(votes.shape) < 0.1] = -1
    signed = (votes == 1) * 1.0 - (votes == 0)
    return votes, y, signed @ [1.5, 0.5, 0.5, 0.5, 0.5]


def learned(n_labels, seed=0, **options):
    """Return log loss on the rows without a label, with the judges weighed anew and without, and the weights."""
    votes, y, z = reversed_judge(seed)
    labels, p = np.where(np.arange(600) < n_labels, y, -1), expit(z)
    judges = JudgeColumns.of(votes)
    correction, weights = Correction.learn(LIKE, EVEN, p, labels, judges=judges, **options)
    plain, _ = Correction.learn(LIKE, EVEN, p, labels, **options)
    rest = labels < 0
    intercept, coef = judges.linear(weights) if len(weights) else (0.0, np.zeros(5))
    signed = (votes == 1) * 1.0 - (votes == 0)
    anew = expit(logit(correction.apply(p)) + intercept + signed @ coef)
    losses = [-np.log(np.where(y == 1, q, 1 - q))[rest].mean() for q in (anew, plain.apply(p))]
    return losses, coef, correction, plain


def test_labels_take_the_word_from_a_judge_that_is_wrong_here():
    """Its weight is negative, where labels support that; P is better on rows without a label."""
    (anew, plain), coef, correction, _ = learned(100)
    assert anew < plain - 0.05
    assert coef[0] < 0
    assert (coef[1:] > coef[0]).all()
    assert correction.n_labels == 100


def test_fewer_than_thirty_labels_correct_as_before():
    """Bit by bit: intercept, slope, threshold and covariance."""
    _, coef, correction, plain = learned(29)
    assert not coef.any()
    assert np.array_equal(correction.covariance, plain.covariance)
    assert (correction.intercept, correction.slope, correction.threshold) == (
        plain.intercept,
        plain.slope,
        plain.threshold,
    )


def test_labels_that_agree_with_p_leave_the_judges_nearly_alone():
    """Where the log-odds are right already, thirty labels move P of other rows by little."""
    rng = np.random.default_rng(1)
    votes, _, _ = reversed_judge(1)
    signed = (votes == 1) * 1.0 - (votes == 0)
    z = signed @ np.full(5, 1.1)
    y = (rng.random(600) < expit(z)).astype(int)
    labels, judges = np.where(np.arange(600) < 30, y, -1), JudgeColumns.of(votes)
    _, weights = Correction.learn(LIKE, EVEN, expit(z), labels, judges=judges)
    intercept, coef = judges.linear(weights)
    assert np.std(intercept + signed @ coef) < 0.25 * np.std(z)


def test_columns_of_judges_have_one_spread_however_many_there_are():
    """Centred, the squares of an item's columns sum to 1 in the mean; the linear sum over votes is theirs."""
    rng = np.random.default_rng(2)
    for k in (2, 40):
        votes = rng.integers(-1, 2, (300, k)).astype(np.int8)
        judges = JudgeColumns.of(votes)
        values = judges.patterns[judges.row]
        assert_allclose(values.mean(axis=0), 0, atol=1e-12)
        assert (values**2).sum(axis=1).mean() == pytest.approx(1)
        weights = rng.normal(size=k)
        intercept, coef = judges.linear(weights)
        assert_allclose(intercept + ((votes == 1) * 1.0 - (votes == 0)) @ coef, values @ weights, atol=1e-10)
