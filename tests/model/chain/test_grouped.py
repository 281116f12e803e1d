"""Many training datasets share folds, so that the fits do not grow with the square of the datasets."""

import numpy as np
import pytest

from deep.datasets import read_votes
from deep.exceptions import InputError
from deep.model import RECIPES, STACK_FOLDS, fit, inner_folds, shared_folds_note
from deep.records import ABSTAIN, VoteMatrix
from tests.model.fitted import QUICK, small_votes


def folds(votes, **limit):
    """Return the number of inner folds."""
    return len(np.unique(inner_folds(votes, RECIPES["deep"], **limit).of_row))


@pytest.mark.parametrize(("n", "expected"), [(12, 12), (13, 5), (1000, 5)])
def test_above_twelve_datasets_the_folds_of_a_search_are_five(n, expected):
    """Up to there every dataset is a fold."""
    assert folds(small_votes([f"d{i:04}" for i in range(n)], n=4)) == expected


@pytest.mark.parametrize(("n", "expected"), [(50, 50), (51, 20), (1000, 20)])
def test_above_fifty_datasets_those_of_the_stack_are_twenty(n, expected):
    """Its prior is learned from datasets left out one by one as long as that can be paid."""
    assert folds(small_votes([f"d{i:04}" for i in range(n)], n=4), limit=STACK_FOLDS) == expected


@pytest.mark.parametrize(("n", "expected"), [(5, 5), (6, 5)])
def test_where_patterns_are_many_the_folds_of_a_search_are_five(n, expected):
    """Nine judges who abstain now and then give a thousand patterns of votes, and fits take long."""
    assert folds(small_votes([f"d{i}" for i in range(n)], n_voters=9, n=600)) == expected


@pytest.mark.parametrize(
    "panel",
    ["alttest/votes.parquet", "css_binary/votes.parquet", "llm_aggrefact/votes.parquet", "llmbar/votes.parquet"],
)
def test_no_folds_are_shared_on_public_panels(data_home, panel):
    """Their datasets and patterns are few, so that figures measured on them stand."""
    votes = read_votes([str(data_home / panel)])
    assert folds(votes) == len(votes.dataset_names)


def test_a_model_says_that_its_datasets_shared_folds():
    """The note names how many datasets and groups there were, and only where there were groups."""
    few, many = (fit(small_votes([f"d{i:04}" for i in range(n)], n=12), **QUICK).fit_report["notes"] for n in (12, 13))
    assert shared_folds_note(12) is None
    assert few == []
    assert many == ["The 13 training datasets were left out in 5 groups, not one by one."]


def test_votes_that_are_all_empty_say_so():
    """Nothing can be learned from them, whatever a fit would write."""
    votes = small_votes()
    empty = VoteMatrix(np.full(votes.shape, ABSTAIN), votes.item_ids, votes.voter_names, votes.datasets, votes.labels)
    with pytest.raises(InputError, match="`votes` must hold a vote of 0 or 1 in the rows to learn from"):
        fit(empty, **QUICK)
