"""Labels that share a document: their correlation, what they are worth, and corrections that allow for them."""

import numpy as np
import pytest
from scipy.special import expit, ndtr

from deep.exceptions import InputError
from deep.model import FewLabels, Misfit
from deep.model._correction import labeled_mask
from deep.model._misfit import Clusters, standardised_errors
from tests.model.fitted import interval_of

NONE = np.array([0.0, 1.0])
MOMENT = np.array([[0.5, 0.0], [0.0, 0.1]])


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


@pytest.mark.parametrize("true", [0.0, 0.4])
def test_the_correlation_is_found(true):
    """From 1,000 documents of five labels, the correlation of labels at P = 1/2 within 0.05."""
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(1000), 5)
    shared = np.sin(np.pi / 2 * true)
    labels = (np.sqrt(shared) * rng.normal(size=1000)[codes] + np.sqrt(1 - shared) * rng.normal(size=5000)) > 0
    errors = standardised_errors(labels.astype(float), np.full(5000, 0.5))
    assert Clusters.from_documents(codes, 5000).correlation(errors) == pytest.approx(true, abs=0.05)


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


def test_documents_make_labels_count_less():
    """Four copies of each label under one document move P less than four documents' labels."""
    p, y = np.tile([0.3, 0.4, 0.6], 4), np.ones(12)
    misfit = Misfit(NONE, MOMENT, 10)
    apart = FewLabels(misfit).fit(p, y)
    together = FewLabels(misfit).fit(p, y, documents=np.tile(["a", "b", "c"], 4))
    assert apart.n_effective_ == 12
    assert 3 < together.n_effective_ < 12
    assert 0.5 < together.transform([0.5])[0] < apart.transform([0.5])[0]
    own = FewLabels(misfit).fit(p, y, documents=np.arange(12))
    assert own.coef_.tolist() == apart.coef_.tolist()


def test_weights_are_repeated_rows_of_a_document():
    """A weight of two is the row twice, in its document."""
    p, y, of = np.array([0.2, 0.6, 0.9]), np.array([0, 1, 0]), np.array(["a", "a", "b"])
    misfit, n = Misfit(NONE, MOMENT, 5), [2, 1, 3]
    weighted = FewLabels(misfit).fit(p, y, sample_weight=n, documents=of)
    repeated = FewLabels(misfit).fit(np.repeat(p, n), np.repeat(y, n), documents=np.repeat(of, n))
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-9)
    assert weighted.n_effective_ == pytest.approx(repeated.n_effective_)


def test_faults_are_told():
    """Documents and labels are as many as rows; labels are 1, 0 or -1."""
    with pytest.raises(InputError, match=r"^`documents` must have 2 entries, one a row. Got 3"):
        Clusters.from_documents(["a", "b", "c"], 2)
    with pytest.raises(InputError, match=r"^`documents` must have 0 entries"):
        FewLabels(Misfit(NONE, MOMENT, 5)).fit([], [], documents=["a"])
    with pytest.raises(InputError, match=r"^`labels` must have 2 entries"):
        labeled_mask([1], 2)
    with pytest.raises(InputError, match=r"^`labels` must be 1, 0, or -1 where there is none. Got 2 at row 1"):
        labeled_mask([1, 2], 2)
    assert labeled_mask([1, -1, 0], 3).tolist() == [True, False, True]
