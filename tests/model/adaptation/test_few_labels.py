"""Few labels: intervals that mean what they say, also where labels share documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, ndtr

from deep._util.odds import P_MIN
from deep.exceptions import InputError
from deep.model import FewLabels, Misfit
from deep.model._correction import Clusters, labeled_mask
from deep.model._misfit import LeftOutRows, learn_misfit
from tests.model.fitted import interval_of

NONE = np.array([0.0, 1.0])
MOMENT = np.array([[0.8, -0.05], [-0.05, 0.1]])


def dataset(rng, n=3000):
    """Return transferred P, the true P, and labels of one dataset that asks for a random correction."""
    intercept, slope = rng.multivariate_normal([0, 1], MOMENT)
    z = rng.normal(0.3, 1.5, n)
    truth = expit(intercept + slope * z)
    return expit(z), truth, (rng.random(n) < truth).astype(int)


def learned(rng, n_datasets):
    """Return a misfit learned from `n_datasets` simulated training datasets."""
    left_out = []
    for _ in range(n_datasets):
        p, _, y = dataset(rng)
        cell = np.digitize(p, np.linspace(0, 1, 21))
        rows = LeftOutRows(np.log(p / (1 - p)), (y == 1).astype(float), (y == 0).astype(float), cell)
        left_out.append(rows)
    return learn_misfit(left_out)


@pytest.mark.parametrize("n_labels", [pytest.param(0, marks=pytest.mark.slow), 30])
def test_intervals_cover_the_true_p(n_labels):
    """Over simulated datasets the 90 percent interval of P at one point holds the true P in 84 to 97 percent."""
    rng = np.random.default_rng(n_labels)
    held = []
    for _ in range(200):
        misfit = learned(rng, 8) if n_labels == 0 else Misfit(NONE, MOMENT, 8)
        p, truth, y = dataset(rng, 300)
        if n_labels:
            low, high = interval_of(FewLabels(misfit).fit(p[1 : 1 + n_labels], y[1 : 1 + n_labels]), p[:1])
        else:
            low, high = misfit.interval(np.log(p[:1] / (1 - p[:1])))
        held.append(low[0] <= truth[0] <= high[0])
    assert 0.84 <= np.mean(held) <= 0.98


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=30), st.floats(0, 1))
def test_p_stays_within_its_interval(rows, p):
    """Any labels give a P within [0, 1] and within its own interval."""
    few = FewLabels(Misfit(NONE, MOMENT, 5)).fit([q for q, _ in rows], [y for _, y in rows])
    low, high = interval_of(few, [p])
    assert 0 <= low[0] <= high[0] <= 1
    assert low[0] - P_MIN <= few.transform([p])[0] <= high[0] + P_MIN


SHARED = np.array([[0.5, 0.0], [0.0, 0.1]])


def test_the_correlation_by_hand():
    """Pairs within documents less as many of the mean pair between them, beside 20 pairs at 0.1."""
    documents, errors = ["a", "b", "a", "c", "b", "c", "d"], np.array([1.0, -0.5, 2.0, 1.0, -1.0, -1.0, 4.0])
    pairs = [(i, j) for i in range(7) for j in range(i)]
    within = [errors[i] * errors[j] for i, j in pairs if documents[i] == documents[j]]
    between = [errors[i] * errors[j] for i, j in pairs if documents[i] != documents[j]]
    assert (len(within), len(between)) == (3, 18)
    clusters = Clusters.from_documents(documents, 7)
    assert clusters.correlation(errors) == pytest.approx((sum(within) - 3 * np.mean(between) + 2) / 23)
    assert not clusters.alone


def test_an_error_common_to_all_is_no_correlation():
    """Errors that are all alike within and between documents leave the 20 pairs at 0.1."""
    clusters = Clusters.from_documents(["a", "a", "b", "b"], 4)
    assert clusters.correlation(np.full(4, 1.3)) == pytest.approx(2 / 22)
    assert Clusters.from_documents(["a", "a"], 2).correlation(np.ones(2)) == pytest.approx(3 / 21)


def test_the_worth_of_labels_by_hand():
    """Three labels of one document at correlation 0.5 are worth 3 / 2; Kish's mean size is (9 + 1) / 4."""
    clusters = Clusters.from_documents(["a", "a", "b", "a"], 4)
    assert clusters.shares(0.5) == pytest.approx([0.5, 0.5, 1.0, 0.5])
    assert clusters.design_effect(0.5) == pytest.approx(1 + (10 / 4 - 1) * 0.5)


@pytest.mark.parametrize("documents", [None, ["a", "b", "c"]])
def test_labels_alone_count_whole(documents):
    """Without shared documents nothing changes."""
    clusters = Clusters.from_documents(documents, 3)
    assert clusters.alone
    assert clusters.shares(0.9).tolist() == [1.0, 1.0, 1.0]
    assert clusters.design_effect(0.9) == 1.0


def clustered(rng, n_documents, size, correlation):
    """Return P, the intercept, labels and documents of a dataset whose errors come by document."""
    intercept = rng.normal(0, np.sqrt(0.5))
    z, codes = rng.normal(0, 1.2, n_documents * size), np.repeat(np.arange(n_documents), size)
    shared = np.sin(np.pi / 2 * correlation)
    common = rng.normal(size=n_documents)[codes]
    uniform = ndtr(np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.normal(size=len(z)))
    return expit(z), intercept, (uniform < expit(intercept + z)).astype(int), codes


def test_intervals_hold_when_labels_share_documents():
    """Six labels from each of eight documents: bounds of P cover in 85 to 97 %, without the documents in fewer."""
    rng = np.random.default_rng(3)
    misfit, covered = Misfit(NONE, np.diag([0.5, 0.001]), 30), []
    for _ in range(250):
        p, intercept, y, codes = clustered(rng, 8, 6, 0.4)
        for documents in (codes, None):
            low, high = interval_of(FewLabels(misfit).fit(p, y, documents=documents), [0.5])
            covered.append(low[0] <= expit(intercept) <= high[0])
    told, untold = np.reshape(covered, (-1, 2)).mean(axis=0)
    assert 0.82 <= told <= 0.97
    assert untold < told - 0.05


def test_weights_are_repeated_rows_of_a_document():
    """A weight of two is the row twice, in its document."""
    p, y, of = np.array([0.2, 0.6, 0.9]), np.array([0, 1, 0]), np.array(["a", "a", "b"])
    misfit, n = Misfit(NONE, SHARED, 5), [2, 1, 3]
    weighted = FewLabels(misfit).fit(p, y, sample_weight=n, documents=of)
    repeated = FewLabels(misfit).fit(np.repeat(p, n), np.repeat(y, n), documents=np.repeat(of, n))
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-9)
    assert weighted.n_effective_ == pytest.approx(repeated.n_effective_)


def test_faults_are_told():
    """Documents and labels are as many as rows; labels are 1, 0 or -1."""
    with pytest.raises(InputError, match=r"^`documents` must have 2 entries, one a row. Got 3"):
        Clusters.from_documents(["a", "b", "c"], 2)
    with pytest.raises(InputError, match=r"^`documents` must have 0 entries"):
        FewLabels(Misfit(NONE, SHARED, 5)).fit([], [], documents=["a"])
    with pytest.raises(InputError, match=r"^`labels` must have 2 entries"):
        labeled_mask([1], 2)
    with pytest.raises(InputError, match=r"^`labels` must be 1, 0, or -1 where there is none. Got 2 at row 1"):
        labeled_mask([1, 2], 2)
    assert labeled_mask([1, -1, 0], 3).tolist() == [True, False, True]
