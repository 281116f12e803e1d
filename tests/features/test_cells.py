"""Cells are an exact collapse of rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deep.exceptions import InputError
from deep.features import Cells, distinct_patterns

votes_matrices = hnp.arrays(
    np.int8,
    st.tuples(st.integers(1, 40), st.integers(1, 45)),
    elements=st.integers(-1, 1),
)


@given(votes_matrices)
def test_patterns_rebuild_the_rows(votes):
    """The distinct patterns, indexed by row, are the rows again, sorted and without repeats."""
    patterns, inverse = distinct_patterns(votes)
    assert (patterns[inverse] == votes).all()
    assert (np.unique(patterns, axis=0) == np.unique(votes, axis=0)).all()
    assert len(np.unique(patterns, axis=0)) == len(patterns)


@given(votes_matrices)
def test_patterns_do_not_depend_on_row_order(votes):
    """Shuffled rows give the same patterns in the same order."""
    shuffled = votes[np.random.default_rng(0).permutation(len(votes))]
    assert (distinct_patterns(votes)[0] == distinct_patterns(shuffled)[0]).all()


@pytest.mark.parametrize("n_voters", [2, 14, 50])
def test_counting_by_position_and_by_sorting_agree(n_voters):
    """Few and many columns take different ways to the same lexicographic patterns."""
    votes = np.random.default_rng(1).integers(-1, 2, size=(300, n_voters)).astype(np.int8)
    patterns, _ = distinct_patterns(votes)
    if n_voters <= 20:
        assert (patterns == np.unique(votes, axis=0)).all()
    assert len(patterns) == len(np.unique(votes, axis=0))


def test_counts_by_hand():
    """Five rows in two datasets fall into the cells one counts by hand."""
    cells = Cells.from_rows(
        [[1, 1], [1, 1], [0, 1], [1, 1], [0, 1]], labels=[1, 0, 0, 1, 0], groups=["b", "b", "a", "a", "b"]
    )
    assert cells.groups == ("a", "b")
    assert cells.patterns.tolist() == [[0, 1], [1, 1]]
    assert cells.counts.tolist() == [[[1, 0], [1, 0]], [[0, 1], [1, 1]]]
    assert cells.n_rows == 5


def test_selecting_voters_equals_counting_their_rows():
    """Cells of some columns are the cells counted from those columns alone."""
    rng = np.random.default_rng(2)
    votes, labels = rng.integers(-1, 2, size=(500, 6)), rng.integers(0, 2, size=500)
    groups = rng.choice(["a", "b", "c"], size=500)
    chosen = Cells.from_rows(votes, labels=labels, groups=groups, voter_names=list("uvwxyz")).select([4, 1])
    direct = Cells.from_rows(votes[:, [4, 1]], labels=labels, groups=groups, voter_names=["y", "v"])
    assert (chosen.patterns == direct.patterns).all()
    assert (chosen.counts == direct.counts).all()
    assert chosen.voter_names == direct.voter_names == ("y", "v")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"votes": [[1, 2], [0, 0]]}, r"`votes` must hold only -1 \(no vote\), 0 and 1. Got 2.* at row 0, column 1"),
        ({"labels": [1, 3]}, r"`labels` must hold only 0 and 1. Got 3.* at row 1"),
        ({"labels": [1]}, r"`labels` must have 2 entries, one a row. Got 1"),
        ({"groups": ["a"]}, r"`groups` must have 2 entries, one a row. Got 1"),
    ],
)
def test_bad_rows_are_named(change, message):
    """Votes, labels and groups are checked, and the message says where."""
    good = {"votes": [[1, 0], [0, 0]], "labels": [1, 0], "groups": ["a", "a"]}
    bad = good | change
    with pytest.raises(InputError, match=message):
        Cells.from_rows(bad["votes"], labels=bad["labels"], groups=bad["groups"])


def test_unknown_column_is_an_error():
    """Asking for a column that is not there names the columns asked for."""
    cells = Cells.from_rows([[1, 0]], labels=[1], groups=["a"])
    with pytest.raises(InputError, match=r"`columns` must be positions below 2. Got \[0, 7\]"):
        cells.select([0, 7])
