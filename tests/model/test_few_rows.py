"""A few rows are scored as they are among many, bit for bit, though other loops do it."""

import numpy as np

from deep.datasets import simulate_votes
from deep.features import distinct_patterns
from deep.model import fit
from deep.model._blend import MAX_ROWS_FOR_JOINT_WALK


def test_few_rows_are_scored_as_among_many():
    """By the trees of a stack, side by side or one after the other."""
    votes = simulate_votes(0)
    model = fit(votes)
    patterns = distinct_patterns(votes.votes)[0]
    assert len(patterns) > MAX_ROWS_FOR_JOINT_WALK
    whole = model.score(patterns, streamed=True)
    for at in range(0, len(patterns), 100):
        assert np.array_equal(model.score(patterns[at : at + 100], streamed=True), whole[at : at + 100])
