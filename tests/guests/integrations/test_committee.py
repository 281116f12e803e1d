"""A committee's figures, without any tool: those of the panel's card."""

import math

import numpy as np
import pytest

from deep.evaluate import panel_card
from deep.integrations.committee import measure, votes_of


def grades_of_three(n=90):
    """Return the grades of three judges on items with a label, some of them missing."""
    draw = np.random.default_rng(3)
    labels = draw.integers(0, 2, n)
    same = draw.random(n) < 0.15
    grades = []
    for label, erring in zip(labels.tolist(), same.tolist(), strict=True):
        own = [label ^ erring, label ^ erring, label ^ int(draw.random() < 0.2)]
        row = {name: ("C" if vote else "I") for name, vote in zip("abc", own, strict=True)}
        grades.append({name: grade for name, grade in row.items() if draw.random() < 0.95})
    return votes_of(grades, labels.tolist(), [f"s{i}" for i in range(n)], "samples")


def test_the_figures_are_those_of_the_card():
    """Two judges that err together and one alone: less than three, more than one."""
    votes = grades_of_three()
    card = panel_card(votes)
    assert measure(votes) == {
        "effective_size": card.effective_votes,
        "agreement": card.agreement,
        "calibrated_accuracy": card.worth.outer.balanced_accuracy,
    }
    assert 1.2 < card.effective_votes < 2.5
    pairs = [card.between[1, 0], card.between[2, 0], card.between[2, 1]]
    assert card.agreement == pytest.approx(sum(pairs) / 3)


def test_too_little_is_no_figure():
    """Without labels agreement alone is known; of one judge no agreement."""
    votes = grades_of_three()
    bare = measure(votes.with_columns(labels=np.full(len(votes.votes), -1, dtype=np.int8)))
    assert [name for name, value in bare.items() if not math.isnan(value)] == ["agreement"]
    alone = votes_of([{"a": 1}, {"a": 0}], [1, 0], ["x", "y"], "samples")
    assert math.isnan(measure(alone)["agreement"])


def test_items_of_one_document_keep_their_own_names():
    """As epochs of one sample."""
    votes = votes_of([{"a": 1}, {"a": 0}, {"a": "C"}], [1, None, "I"], ["x", "x", "y"], "samples")
    assert votes.item_ids.tolist() == ["x@epoch-1", "x@epoch-2", "y"]
    assert votes.document_ids.tolist() == ["x", "x", "y"]
    assert (votes.votes[:, 0].tolist(), votes.labels.tolist()) == ([1, 0, 1], [1, -1, 0])
