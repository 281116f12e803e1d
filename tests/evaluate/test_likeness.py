"""What is told of the votes on one item beside those that a model was fitted on."""

import numpy as np
import pytest

from deep import VoteMatrix, fit
from deep.exceptions import DeepWarning, InputError
from deep.integrations.serve._checker import likeness

NAMES = ("strict", "lenient", "lexical")


@pytest.fixture(scope="module")
def model():
    """Return a model of two datasets: in the small one nobody ever abstains or disagrees."""
    large = [[1, 1, -1], [0, 0, -1], [1, 0, -1], [1, 1, 1], [0, 0, 0]] * 8
    small = [[1, 1, 1], [0, 0, 0]] * 5
    votes = np.array(large + small)
    datasets = ["large"] * len(large) + ["small"] * len(small)
    labels = (votes[:, 0] == 1).astype(int)
    ids = [str(i) for i in range(len(votes))]
    with pytest.warns(DeepWarning, match="'strict' equals the label on all 50 rows"):
        return fit(VoteMatrix(votes, ids, NAMES, datasets, labels))


def test_counts_and_shares(model):
    """Rows are counted, and shares are means over datasets, so that the large one does not own them."""
    result = likeness(model, [1, 0, -1])
    assert (result.rows, result.datasets, result.alike) == (50, 2, 8)
    assert (result.n_voters, result.n_votes, result.n_consistent) == (3, 2, 1)
    assert result.as_few_votes == pytest.approx((3 / 5 + 0) / 2)
    assert result.as_split == pytest.approx((1 / 5 + 0) / 2)
    assert not result.unusual
    assert result.sentences() == [
        "8 of the 50 training rows (2 datasets) have exactly these votes.",
        "2 of 3 judges voted; as few or fewer voted on 30 % of the training rows.",
        "The votes split 1 to 1; 10 % of the training rows are split as much or more.",
        "The model sees votes, not texts. Only labels show whether it holds for new kinds of text.",
    ]


@pytest.mark.parametrize("votes", [[-1, -1, 1], [-1, -1, -1]])
def test_few_votes_are_unusual(model, votes):
    """No training row has fewer than two."""
    result = likeness(model, votes)
    assert result.unusual
    assert result.sentences()[:2] == [
        "UNUSUAL: hardly any training row has as few votes.",
        "None of the 50 training rows (2 datasets) has exactly these votes.",
    ]


def test_disagreement_is_unusual_where_there_never_was_any():
    """Of votes that always agreed."""
    votes = np.array([[1, 1], [0, 0]] * 20)
    with pytest.warns(DeepWarning, match="equals the label on all 40 rows"):
        model = fit(VoteMatrix(votes, [str(i) for i in range(40)], NAMES[:2], ["news"] * 40, votes[:, 0]))
    message = likeness(model, [1, 0]).sentences()
    assert message[0] == "UNUSUAL: judges disagree as much on hardly any training row."
    assert "40 training rows (1 dataset)" in message[1]


@pytest.mark.parametrize("votes", [[1, 0], [1, 0, 2]])
def test_votes_must_be_those_of_the_model(model, votes):
    """As many as it has voters, and votes."""
    with pytest.raises(InputError, match="votes"):
        likeness(model, votes)
