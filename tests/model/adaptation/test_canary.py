"""The canary: its level by simulation, its power, labels that share documents, and how many it needs."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import expit, logit, ndtr

from deep.exceptions import InputError
from deep.model import Misfit, canary, intercept_at, labels_needed, labels_to_find, possible_error, profile_of
from deep.model._canary import _score_statistics

NONE = np.array([0.0, 1.0])
MISFIT = Misfit(np.array([0.1, 1.1]), np.array([[0.5, -0.1], [-0.1, 0.2]]), 10)


def rejections(n_sets, n_labels, *, truth=(0.0, 1.0), seed=0, **options):
    """Return the share of simulated label sets that are flagged at 5 %."""
    rng, flagged = np.random.default_rng(seed), []
    for i in range(n_sets):
        z = rng.normal(0.3, 1.5, n_labels)
        y = (rng.random(n_labels) < expit(truth[0] + truth[1] * z)).astype(int)
        flagged.append(canary(expit(z), y, n_draws=200, random_state=i, **options).p_value <= 0.05)
    return np.mean(flagged)


@pytest.mark.parametrize("n_labels", [1, 5, 10, 50])
def test_right_predictions_are_flagged_in_5_percent(n_labels):
    """Or in fewer, where labels are too few for a finer p-value."""
    assert rejections(400, n_labels) <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 400)


def test_the_level_is_used():
    """With 20 labels the p-value is fine enough: at least 2.5 % are flagged."""
    assert rejections(400, 20) >= 0.025


@pytest.mark.parametrize(("n_labels", "least"), [(10, 0.5), (20, 0.85)])
def test_a_dataset_that_the_model_misreads_is_found(n_labels, least):
    """An intercept of 1.5 and a slope of 0.3."""
    assert rejections(150, n_labels, truth=(1.5, 0.3)) >= least
    assert rejections(150, n_labels, truth=(1.5, 0.3), misfit=MISFIT) >= least - 0.1


def test_small_errors_are_tolerated():
    """An intercept off by a quarter of the usual error is flagged by 400 labels only where P must be exact."""
    off = (0.18, 1.0)
    assert rejections(100, 400, truth=off, misfit=MISFIT) <= 0.1
    assert rejections(100, 400, truth=off) >= 0.2


def test_labels_that_share_documents_do_not_raise_false_alarms():
    """Five labels from each of ten documents, errors correlated by 0.3: told, at most 9 % are flagged; untold, more."""
    rng, result = np.random.default_rng(2), []
    codes, shared = np.repeat(np.arange(10), 5), np.sin(np.pi / 2 * 0.3)
    for i in range(400):
        z = rng.normal(0.3, 1.2, 50)
        uniform = ndtr(np.sqrt(shared) * rng.normal(size=10)[codes] + np.sqrt(1 - shared) * rng.normal(size=50))
        y = (uniform < expit(z)).astype(int)
        for documents in (codes, None):
            tested = canary(expit(z), y, documents=documents, n_draws=200, random_state=i)
            result.append(tested.p_value <= 0.05)
    told, untold = np.reshape(result, (-1, 2)).mean(axis=0)
    assert told <= 0.09
    assert untold > told + 0.05


def test_the_score_statistic_by_hand():
    """At P = 1/2 and log-odds 0: (sum of residuals)^2 / (n / 4), but for the ridge."""
    z = np.zeros(8)
    y = np.array([[1, 1, 1, 1, 1, 1, 0, 1.0], [1, 0, 1, 0, 1, 0, 1, 0]])
    result = _score_statistics(z, y, np.ones(8))
    assert result == pytest.approx([9 / 2.001, 0.0])
    z = np.array([-1.0, 0.5, 2.0])
    y = np.array([[1.0, 0.0, 0.0]])
    p = expit(z)
    x = np.column_stack([np.ones(3), z])
    u = x.T @ (y[0] - p)
    information = (x.T * (p * (1 - p))) @ x + 1e-3 * np.eye(2)
    assert _score_statistics(z, y, np.ones(3)) == pytest.approx([u @ np.linalg.solve(information, u)])


def test_what_it_reports():
    """Shares and losses of the labeled items alone; unlabeled ones change nothing."""
    p, y = np.array([0.9, 0.2, 0.6, 0.5]), np.array([1, 0, 0, 1])
    result = canary(p, y, random_state=1)
    assert (result.n_labels, result.correlation) == (4, 0.0)
    assert (result.expected, result.observed) == pytest.approx((0.55, 0.5))
    assert result.loss == pytest.approx(-np.log([0.9, 0.8, 0.4, 0.5]).mean())
    entropy = [-q * np.log(q) - (1 - q) * np.log(1 - q) for q in p]
    assert result.expected_loss == pytest.approx(np.mean(entropy))
    more = canary(np.append(p, 0.99), np.append(y, -1), documents=list("abcdd"), random_state=1)
    assert vars(more) == vars(result)
    assert canary([0.0, 1.0], [1, 0]).p_value < 0.01


def test_many_labels_take_no_memory_for_each_draw():
    """Sixteen thousand labels, two thousand draws: less than one table of them all, which has 256 MB."""
    rng = np.random.default_rng(0)
    p = rng.random(16_000)
    tracemalloc.start()
    try:
        result = canary(p, rng.random(16_000) < p, misfit=MISFIT, documents=np.arange(16_000) // 3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.05 < result.p_value <= 1
    assert peak < 200e6


def test_a_p_value_is_never_0():
    """One in the number of draws and one at least."""
    result = canary(np.full(50, 0.01), np.ones(50, dtype=int), n_draws=99)
    assert result.p_value == pytest.approx(0.01)


def test_the_labels_needed_give_the_power():
    """Simulated at the number named for 80 %, the canary finds the alternative in 70 to 90 % of draws."""
    p = expit(np.random.default_rng(0).normal(0.3, 1.5, 3000))
    truth = (1.2, 0.5)
    needed = labels_needed(p, MISFIT, alternative=truth)
    assert needed[0.5] < needed[0.8] < needed[0.9]
    rng, result = np.random.default_rng(1), []
    for i in range(200):
        q = rng.choice(p, needed[0.8])
        y = (rng.random(len(q)) < expit(truth[0] + truth[1] * np.log(q / (1 - q)))).astype(int)
        result.append(canary(q, y, misfit=MISFIT, n_draws=300, random_state=i).p_value <= 0.05)
    assert 0.7 <= np.mean(result) <= 0.9


def test_the_alternative_is_the_worst_training_dataset():
    """Or, where that is unknown, an intercept off by two standard deviations, towards where P has room."""
    p = expit(np.random.default_rng(0).normal(1.0, 1.5, 500))
    worst = Misfit(MISFIT.mean, MISFIT.covariance, 10, worst=np.array([-2.0, 0.4]))
    assert labels_needed(p, worst) == labels_needed(p, worst, alternative=(-2.0, 0.4))
    reach = -2 * np.sqrt(MISFIT.second_moment[0, 0])
    assert labels_needed(p, MISFIT) == labels_needed(p, MISFIT, alternative=(reach, 1.0))
    assert labels_needed(p) == labels_needed(p, alternative=(-2 * np.sqrt(0.5), 1.0))


def test_what_cannot_be_found_needs_no_number():
    """No number of labels tells P from itself, nor do more labels than there are items."""
    p = np.linspace(0.1, 0.9, 30)
    assert labels_needed(p, alternative=(0.0, 1.0), powers=(0.8,)) == {0.8: None}
    assert labels_needed(p, alternative=(0.4, 1.0), powers=(0.9,)) == {0.9: None}


def test_faults_are_told():
    """Labels, draws and the alternative are checked."""
    with pytest.raises(InputError, match=r"^`labels` must hold a label of 0 or 1. Got none"):
        canary([0.5], [-1])
    with pytest.raises(InputError, match=r"^`n_draws` must be a whole number above 0. Got 0"):
        canary([0.5], [1], n_draws=0)
    with pytest.raises(InputError, match=r"^`alternative` must be an intercept and a slope. Got 3"):
        labels_needed([0.5], alternative=3)
    with pytest.raises(InputError, match=r"^`p` must lie in \[0, 1\]. Got 1.5"):
        canary([1.5], [1])


@pytest.mark.parametrize("shift", [0.0, 0.8])
def test_the_error_that_labels_leave_possible_holds_and_shrinks(shift):
    """Above the true error of P in nearly all draws, and nearer to it with more labels; documents widen it."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1.5, 600)
    truth = np.abs(expit(z + shift) - expit(z)).mean()
    bounds = {n: [] for n in (10, 100)}
    for _ in range(20):
        y = (rng.random(600) < expit(z + shift)).astype(int)
        for n, result in bounds.items():
            result.append(possible_error(expit(z), np.where(rng.permutation(600) < n, y, -1)))
    assert (np.array(bounds[10]) >= truth).mean() >= 0.9
    assert (np.array(bounds[100]) >= truth).mean() >= 0.9
    assert np.mean(bounds[100]) - truth < 0.7 * (np.mean(bounds[10]) - truth)
    documents, wider = np.arange(600) // 20, []
    for _ in range(10):
        harder = rng.normal(0, 1.5, 30)[documents]
        labels = np.where(np.arange(600) < 100, rng.random(600) < expit(z + shift + harder), -1).astype(int)
        wider.append(possible_error(expit(z), labels, documents=documents) - possible_error(expit(z), labels))
    assert np.mean(wider) > 0.01


def test_the_labels_to_find_an_error_find_it():
    """As often as was asked for, to the side on which there is room."""
    rng = np.random.default_rng(1)
    for centre in (-1.0, 1.0):
        z = rng.normal(centre, 1.0, 2000)
        n = labels_to_find(expit(z), 0.15)
        mean = expit(z).mean()
        shift = intercept_at(profile_of(z, np.ones(2000)), float(logit(mean + (0.15 if mean < 0.5 else -0.15))))
        result = 0
        for _ in range(60):
            y = (rng.random(2000) < expit(z + shift)).astype(int)
            labels = np.where(rng.permutation(2000) < n, y, -1)
            result += canary(expit(z), labels, n_draws=200).p_value < 0.05
        assert 40 <= result <= 58
