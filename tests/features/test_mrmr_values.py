"""mRMR against a loop over voters with plain weighted correlations."""

import numpy as np
import pytest

from deep.exceptions import InputError
from deep.features import MRMR, RFE, MRMRSelection
from tests.processor_time import growth


def correlation(a, b, w):
    """Return the weighted Pearson correlation of two columns, by its definition; 0 with a constant one."""
    mean_a, mean_b = (w * a).sum() / w.sum(), (w * b).sum() / w.sum()
    cov, var_a, var_b = (
        (w * first * second).sum() / w.sum()
        for first, second in ((a - mean_a, b - mean_b), (a - mean_a, a - mean_a), (b - mean_b, b - mean_b))
    )
    return 0.0 if len(set(a)) == 1 or len(set(b)) == 1 else round(cov / np.sqrt(var_a * var_b), 12)


def picked_plainly(X, y, w):
    """Return columns as mRMR picks them: the highest F over mean absolute correlation with those picked."""
    X, y, w = np.asarray(X), np.asarray(y, dtype=float), np.asarray(w, dtype=float)
    signed = np.where(X == -1, 0.0, 2.0 * X - 1.0)
    columns = range(X.shape[1])
    r = [correlation(signed[:, j], y, w) for j in columns]
    relevance = [r[j] ** 2 / max(1 - r[j] ** 2, 1e-12) for j in columns]
    picked = []
    left = [j for j in columns if relevance[j] > 0]
    while left:
        redundancy = {
            j: np.mean([max(abs(correlation(signed[:, j], signed[:, k], w)), 1e-3) for k in picked]) if picked else 1.0
            for j in left
        }
        # The library takes a redundancy of 1 for infinite.
        score = {j: 0.0 if redundancy[j] == 1.0 and picked else relevance[j] / redundancy[j] for j in left}
        best = max(left, key=lambda j: (score[j], -j))
        picked.append(best)
        left.remove(best)
    rest = [j for j in columns if j not in picked]
    return [*picked, *sorted(rest, key=lambda j: (len(set(signed[:, j])) == 1, j))]


def judges(seed, n=60, k=6):
    """Return votes of judges with common errors, some missing, labels and weights."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    error = 0.7 * rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, k))
    X = np.where(error > rng.uniform(0, 1, k), 1 - y[:, None], y[:, None])
    X[rng.random((n, k)) < 0.15] = -1
    return X, y, rng.uniform(0.5, 4, n)


@pytest.mark.parametrize("selector", [MRMR, MRMRSelection])
@pytest.mark.parametrize("seed", range(12))
def test_mrmr_picks_as_a_loop_does(seed, selector):
    """On votes with common errors, missing votes and fractional weights."""
    X, y, w = judges(seed)
    order = np.argsort(selector(1).fit(X, y, w).ranking_)
    assert order.tolist() == picked_plainly(X, y, w)


@pytest.mark.parametrize("k", [9, 40])
def test_mrmr_picks_as_the_library_does(k):
    """Over many panels, of voters that repeat others, are constant or err everywhere too."""
    for seed in range(20):
        X, y, w = judges(seed, n=120, k=k)
        X[:, 1], X[:, 2], X[:, 3] = X[:, 0], 1, 1 - y
        assert MRMR(1).fit(X, y, w).ranking_.tolist() == MRMRSelection(1).fit(X, y, w).ranking_.tolist()


def test_relevance_and_redundancy_by_hand():
    """Eight weighted rows, mirrored so that all means are 0 and every r is a mean of products.

    Label 1 has patterns 111 of weight 6, 110 of 2, 101 of 1 and 000 of 1; label 0 has the opposites. So r(a, y) =
    (6 + 2 + 1 - 1) / 10 = 0.8, r(b, y) = (6 + 2 - 1 - 1) / 10 = 0.6, r(c, y) = (6 - 2 + 1 - 1) / 10 = 0.4,
    r(a, b) = (6 + 2 - 1 + 1) / 10 = 0.8, r(a, c) = (6 - 2 + 1 + 1) / 10 = 0.6. F / (n - 2) is 0.64 / 0.36 for a;
    then b: 0.36 / 0.64 / 0.8 = 0.703 and c: 0.16 / 0.84 / 0.6 = 0.317.
    """
    half = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 0, 0]])
    X, y, w = np.vstack([half, 1 - half]), [1] * 4 + [0] * 4, [6, 2, 1, 1] * 2
    mrmr = MRMR(2).fit(X, y, w)
    assert mrmr.ranking_.tolist() == [1, 2, 3]
    assert mrmr.support_.tolist() == [True, True, False]
    assert picked_plainly(X, y, w) == [0, 1, 2]
    assert MRMR(1).fit(X[:, [2, 1, 0]], y, w).ranking_.tolist() == [3, 2, 1]


def test_a_missing_vote_lies_halfway():
    """A voter that says 1, -1, -1 of label 1 and 0, 0, -1 of label 0 tells less than one of 1, 1, -1 and 0, 0, -1."""
    y = [1, 1, 1, 0, 0, 0]
    X = np.array([[1, -1, -1, 0, 0, -1], [1, 1, -1, 0, 0, -1]]).T
    assert MRMR(1).fit(X, y).ranking_.tolist() == [2, 1]
    # Were no vote a vote for 0, the first (1, 0, 0 against 0, 0, 0) would tell less than (1, 1, 1, against 0, 0, 1).
    X = np.array([[1, 1, -1, 0, 0, -1], [1, 1, 1, 1, 0, 0]]).T
    assert MRMR(1).fit(X, y).ranking_.tolist() == picked_ranks(X, y)


def picked_ranks(X, y):
    """Return the ranking of the loop, of rows that weigh the same."""
    ranks = np.empty(X.shape[1], dtype=int)
    ranks[picked_plainly(X, y, np.ones(len(y)))] = np.arange(1, X.shape[1] + 1)
    return ranks.tolist()


def test_voters_that_tell_nothing_come_last_constants_at_the_end():
    """Columns 0 and 3 never change, 1 and 4 have correlation 0, 2 and 5 tell something."""
    y = [1, 1, 0, 0]
    X = np.array([[1] * 4, [1, 0, 1, 0], [1, 1, 1, 0], [-1] * 4, [0, 1, 0, 1], [1, 1, 0, 0]]).T
    assert MRMR(1).fit(X, y).ranking_.tolist() == [5, 3, 2, 6, 4, 1]


def test_perfect_voters_are_compared_with_others():
    """A voter without error has the relevance 1 / 1e-12, no more, and its copy comes after all of relevance."""
    y = [1, 1, 1, 0, 0, 0]
    X = np.array([y, [1, 1, 0, 0, 0, 1], y, [0, 0, 0, 1, 1, 1]]).T
    assert MRMR(1).fit(X, y).ranking_.tolist() == picked_ranks(X, y) == [1, 2, 3, 4]


@pytest.mark.parametrize("scale", [1e-4, 7.0])
def test_weights_are_rows_repeated_in_any_unit(scale):
    """A row of weight w is w rows, whatever the unit of the weights, and rows of weight 0 are none."""
    X, y, _ = judges(3)
    w = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = MRMR(1).fit(np.repeat(X, w, axis=0), np.repeat(y, w)).ranking_
    assert MRMR(1).fit(X, y, w * scale).ranking_.tolist() == repeated.tolist()


def test_swapping_the_classes_changes_nothing():
    """Votes and labels flipped together rank alike."""
    X, y, w = judges(4)
    flipped = np.where(X == -1, -1, 1 - X)
    assert MRMR(1).fit(flipped, 1 - y, w).ranking_.tolist() == MRMR(1).fit(X, y, w).ranking_.tolist()


def test_the_number_of_voters_asked_for():
    """Five by default, from one to all; others are refused by name."""
    X, y, w = judges(5)
    assert MRMR().fit(X, y, w).support_.sum() == 5
    assert MRMR(6).fit(X, y, w).support_.all()
    for n in (0, 7, 2.0):
        with pytest.raises(InputError, match=rf"^`n_prompts` must be a whole number from 1 to 6\. Got {n!r}\.$"):
            MRMR(n).fit(X, y, w)


@pytest.mark.parametrize("selector", [MRMR, RFE])
def test_of_many_voters_the_most_relevant_are_compared(selector):
    """The first 128 by correlation are ranked as if there were no others; those follow by the same correlation."""
    X, y, w = judges(0, k=300)
    X[:, 7] = 1
    signed = np.where(X == -1, 0.0, 2.0 * X - 1.0)
    strength = np.array([abs(correlation(signed[:, j], y.astype(float), w)) for j in range(300)])
    by_strength = sorted(range(300), key=lambda j: (j == 7, -strength[j], j))
    order = np.argsort(selector(1).fit(X, y, w).ranking_).tolist()
    kept = sorted(by_strength[:128])
    assert order[128:] == by_strength[128:]
    assert order[:128] == np.array(kept)[np.argsort(selector(1).fit(X[:, kept], y, w).ranking_)].tolist()


def test_thousands_of_voters_take_linear_time():
    """Ten times the voters take less than thirty times the processor's time; the square would take a hundred."""
    panels = {k: judges(1, n=200, k=k) for k in (800, 8000)}

    def rank(k):
        assert sorted(MRMR(5).fit(*panels[k]).ranking_) == list(range(1, k + 1))

    assert growth(rank, 800, 8000) < 30
