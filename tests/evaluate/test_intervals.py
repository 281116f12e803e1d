"""Intervals over resampled documents."""

import numpy as np
import pytest

from deep.calibration import balanced_accuracy, bootstrap_balanced_accuracy
from deep.evaluate._verdict import share_words
from deep.model import PriorEstimate


@pytest.fixture
def decided():
    """Return labels and decisions that are right four times in five."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 200)
    return labels, np.where(rng.random(200) < 0.8, labels, 1 - labels)


def test_items_that_repeat_their_document_say_nothing_new(decided):
    """Five copies of each item, in its document, leave the interval as it was; as documents they would narrow it."""
    labels, decisions = decided
    once = bootstrap_balanced_accuracy(labels, decisions, documents=np.arange(200))
    copies = [np.repeat(values, 5) for values in (labels, decisions, np.arange(200))]
    assert bootstrap_balanced_accuracy(*copies[:2], documents=copies[2]) == pytest.approx(once)
    alone = bootstrap_balanced_accuracy(*copies[:2])
    assert alone[1] - alone[0] < 0.6 * (once[1] - once[0])


def test_items_alone_have_the_bootstrap_over_items(decided):
    """Up to the draws."""
    labels, decisions = decided
    result = bootstrap_balanced_accuracy(labels, decisions, documents=np.arange(200), n_boot=20_000)
    assert result == pytest.approx(bootstrap_balanced_accuracy(labels, decisions), abs=0.005)
    assert result[0] < balanced_accuracy(labels, decisions) < result[1]


def test_no_interval_without_both_classes():
    """Where one is missing, also of documents."""
    assert np.isnan(bootstrap_balanced_accuracy([1, 1], [1, 0], documents=["a", "b"])).all()


def test_a_share_that_is_given_has_no_interval():
    """One that is estimated has; where both ends are the estimate nobody estimated anything."""
    share = PriorEstimate(0.5, 0.4, 0.62)
    assert share_words(share) == "Estimated share of consistent claims: 50.0 % (90 % interval 40.0 to 62.0)."
    assert share_words(PriorEstimate(0.5, 0.5, 0.5)) == "Share of consistent claims, as given: 50.0 %."
    assert share_words(PriorEstimate(0.5, 0.0, 1.0)).endswith("; not measured on these few items.")
