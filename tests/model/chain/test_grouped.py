"""Many training datasets share folds, so that the fits do not grow with the square of the datasets."""

import numpy as np
import pytest

from deep.exceptions import InputError
from deep.model import fit
from deep.model.chain import RECIPES, inner_folds
from deep.records import ABSTAIN, VoteMatrix
from tests.model.fitted import QUICK, small_votes


@pytest.mark.parametrize(("n", "folds"), [(50, 50), (51, 20), (1000, 20)])
def test_above_fifty_datasets_folds_are_shared(n, folds):
    """Up to there every dataset is a fold."""
    votes = small_votes([f"d{i:04}" for i in range(n)], n=4)
    assert len(np.unique(inner_folds(votes, RECIPES["deep"]).of_row)) == folds


def test_votes_that_are_all_empty_say_so():
    """Nothing can be learned from them, whatever a fit would write."""
    votes = small_votes()
    empty = VoteMatrix(
        np.full(votes.shape, ABSTAIN), votes.example_ids, votes.voter_names, votes.datasets, votes.labels
    )
    with pytest.raises(InputError, match="`votes` must hold a vote of 0 or 1 in the rows to learn from"):
        fit(empty, **QUICK)
