"""What every prompt selector must do, whatever its method."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from deep.exceptions import InputError
from deep.features import SELECTORS

NAMES = sorted(SELECTORS)
ACCURACIES = (0.62, 0.95, 0.7, 0.88, 0.76)

pytestmark = pytest.mark.parametrize("name", NAMES)


def make_votes(
    accuracies: tuple[float, ...] = ACCURACIES, *, n: int = 800, abstains: float = 0.1, seed: int = 0
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return votes of independent voters of the given accuracies, labels, and weights 1 to 4."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = np.column_stack([np.where(rng.random(n) < accuracy, y, 1 - y) for accuracy in accuracies])
    X[rng.random(X.shape) < abstains] = -1
    return X.astype(np.int8), y, rng.integers(1, 5, n)


@pytest.mark.parametrize("n_prompts", [1, 3, 5])
def test_selects_as_many_as_asked_from_a_ranking_of_all(name: str, n_prompts: int) -> None:
    """The ranking is a permutation of 1 to n_voters and the first n_prompts of it are selected."""
    X, y, w = make_votes()
    selector = SELECTORS[name](n_prompts).fit(X, y, w)
    assert sorted(selector.ranking_) == [1, 2, 3, 4, 5]
    assert selector.support_.sum() == n_prompts
    np.testing.assert_array_equal(selector.support_, selector.ranking_ <= n_prompts)


def test_serves_data_frames(name: str) -> None:
    """Selected names and columns of a data frame are those of the support."""
    X, y, w = make_votes()
    frame = pd.DataFrame(X, columns=list("abcde"))
    selector = SELECTORS[name](2).fit(frame, y, w)
    assert selector.get_feature_names_out().tolist() == ["b", "d"]
    np.testing.assert_array_equal(selector.transform(frame), X[:, [1, 3]])
    shown = selector.set_output(transform="pandas").transform(frame)
    pd.testing.assert_frame_equal(shown, frame[["b", "d"]])


def test_serves_arrays(name: str) -> None:
    """Without names the selected columns are known by position."""
    X, y, w = make_votes()
    selector = SELECTORS[name](2)
    np.testing.assert_array_equal(selector.fit_transform(X, y, sample_weight=w), X[:, [1, 3]])
    assert selector.get_support(indices=True).tolist() == [1, 3]
    assert selector.get_feature_names_out().tolist() == ["x1", "x3"]


@pytest.mark.parametrize("seed", range(4))
def test_a_weight_is_a_repetition(name: str, seed: int) -> None:
    """A row of weight w ranks the voters as the row repeated w times does."""
    X, y, w = make_votes((0.6, 0.62, 0.58, 0.61, 0.55, 0.6, 0.5), n=150, seed=seed)
    rows = np.repeat(np.arange(len(w)), w)
    weighted = SELECTORS[name](3).fit(X, y, w)
    repeated = SELECTORS[name](3).fit(X[rows], y[rows])
    np.testing.assert_array_equal(weighted.ranking_, repeated.ranking_)
    assert not np.array_equal(weighted.ranking_, SELECTORS[name](3).fit(X, y).ranking_)


def test_a_row_of_no_weight_does_not_count(name: str) -> None:
    """Rows of weight 0 leave the ranking as it is, even where they would make a constant column vary."""
    X, y, w = make_votes()
    X[:, 0] = 1
    plain = SELECTORS[name](2).fit(X, y, w).ranking_
    more, labels = np.vstack([X, np.tile([[0, -1]], (50, 3))[:, :5]]), np.append(y, np.zeros(50, dtype=int))
    weights = np.append(w, np.zeros(50, dtype=int))
    np.testing.assert_array_equal(SELECTORS[name](2).fit(more, labels, weights).ranking_, plain)


@pytest.mark.parametrize("seed", range(3))
def test_columns_may_come_in_any_order(name: str, seed: int) -> None:
    """Permuting the columns permutes the ranking."""
    X, y, w = make_votes(seed=seed)
    order = np.random.default_rng(seed).permutation(5)
    ranking = SELECTORS[name](3).fit(X, y, w).ranking_
    permuted = SELECTORS[name](3).fit(X[:, order], y, w).ranking_
    np.testing.assert_array_equal(permuted, ranking[order])


def test_informative_voters_come_before_noise(name: str) -> None:
    """Voters that know something are selected, coin flips are not."""
    X, y, w = make_votes((0.5, 0.8, 0.5, 0.75, 0.5, 0.7, 0.5), n=600)
    selector = SELECTORS[name](3).fit(X, y, w)
    assert selector.get_support(indices=True).tolist() == [1, 3, 5]


@pytest.mark.parametrize("value", [-1, 0, 1])
def test_a_constant_column_comes_last(name: str, value: int) -> None:
    """A voter that always says the same, or nothing, is ranked below any that varies."""
    X, y, w = make_votes()
    X[:, 1] = value
    assert SELECTORS[name](2).fit(X, y, w).ranking_[1] == 5


def test_a_voter_that_mostly_abstains_can_be_ranked(name: str) -> None:
    """Abstentions are not taken for errors: a good voter with few votes comes before coin flips on every row."""
    X, y, w = make_votes((0.5, 0.9, 0.9, 0.5), abstains=0)
    X[np.random.default_rng(1).random(len(X)) < 0.8, 1] = -1
    assert SELECTORS[name](2).fit(X, y, w).get_support(indices=True).tolist() == [1, 2]


def test_one_voter_is_a_ranking(name: str) -> None:
    """A single column is ranked first and selected."""
    X, y, w = make_votes((0.8,))
    assert SELECTORS[name](1).fit(X, y, w).ranking_.tolist() == [1]


def test_clones_unfitted_with_its_parameters(name: str) -> None:
    """A clone has the same parameters, no fitted state, and fits to the same."""
    X, y, w = make_votes()
    selector = SELECTORS[name](2).fit(X, y, w)
    copy = clone(selector)
    assert copy.get_params() == selector.get_params()
    assert not hasattr(copy, "support_")
    np.testing.assert_array_equal(copy.fit(X, y, w).ranking_, selector.ranking_)
    assert copy.set_params(n_prompts=4).fit(X, y, w).support_.sum() == 4


def test_is_unfitted_before_fit(name: str) -> None:
    """Asking for a selection before fit raises scikit-learn's own error."""
    X, _, _ = make_votes()
    selector = SELECTORS[name](2)
    for ask in (selector.get_support, selector.get_feature_names_out, lambda: selector.transform(X)):
        with pytest.raises(NotFittedError):
            ask()


def test_leaves_inputs_and_global_state_alone(name: str) -> None:
    """Fitting writes to no argument and draws nothing from the global generator."""
    X, y, w = make_votes()
    before = [X.copy(), y.copy(), w.copy()]
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    SELECTORS[name](2).fit(X, y, w)
    for now, then in zip((X, y, w), before, strict=True):
        np.testing.assert_array_equal(now, then)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("n_prompts", [0, -1, 6, 2.5, True])
def test_refuses_an_impossible_number(name: str, n_prompts: int) -> None:
    """The number of prompts lies between 1 and the number of voters."""
    X, y, _ = make_votes()
    with pytest.raises(InputError, match=rf"`n_prompts` must be a whole number from 1 to 5\. Got {n_prompts}\."):
        SELECTORS[name](n_prompts).fit(X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[2, 0], [0, 1]]}, r"`X` must hold only -1 \(no vote\), 0 and 1\. Got 2\.0 at row 0, column 0\."),
        ({"y": None}, "`y` must be given"),
        ({"y": [0, 3]}, r"`y` must hold only 0 and 1\. Got 3\.0 at row 1\."),
        ({"y": [0, 1, 1]}, r"`y` must have 2 entries, one a row\. Got 3\."),
        ({"sample_weight": [1, -1]}, r"`sample_weight` must be finite and not negative\. Got -1\.0 at row 1\."),
    ],
)
def test_refuses_bad_rows(name: str, change: dict[str, Any], message: str) -> None:
    """Votes, labels and weights out of range are named with their place."""
    good = {"X": [[1, 0], [0, 1]], "y": [0, 1], "sample_weight": None}
    with pytest.raises(InputError, match=message):
        SELECTORS[name](1).fit(**(good | change))


def test_frames_are_realigned_and_checked(name: str) -> None:
    """A frame with its columns in another order gives the same votes; anything but votes is refused."""
    X, y, w = make_votes()
    frame = pd.DataFrame(X, columns=list("abcde"))
    selector = SELECTORS[name](2).fit(frame, y, w)
    np.testing.assert_array_equal(selector.transform(frame[list("edcba")]), X[:, selector.support_])
    with pytest.raises(InputError, match="must hold only -1"):
        selector.transform(np.full((1, 5), 2))


def test_dropped_columns_come_back_as_no_vote(name: str) -> None:
    """The inverse of a selection never turns a dropped voter into a vote."""
    X, y, w = make_votes()
    selector = SELECTORS[name](2).fit(X, y, w)
    back = selector.inverse_transform(selector.transform(X))
    np.testing.assert_array_equal(back, np.where(selector.support_, X, -1))
    with pytest.raises(InputError, match=r"`X` must have 2 columns, the selected ones. Got 5"):
        selector.inverse_transform(X)
