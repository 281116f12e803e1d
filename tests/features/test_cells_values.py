"""Cells against counting in dictionaries, and patterns by hand."""

from collections import Counter
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deep._util.checks import bincount
from deep.exceptions import InputError
from deep.features import Cells, distinct_patterns


def rows(seed, n, n_voters):
    """Return votes, labels and groups drawn at random."""
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 2, (n, n_voters)).astype(np.int8), rng.integers(0, 2, n), rng.choice(["b", "a", "c"], n)


def counted(votes, labels, groups):
    """Return the cells of rows by counting in dictionaries."""
    counts = Counter(zip(map(tuple, votes.tolist()), groups.tolist(), labels.tolist(), strict=True))
    patterns, names = sorted({cell[0] for cell in counts}), sorted({cell[1] for cell in counts})
    return patterns, names, [[[counts[p, g, y] for y in (0, 1)] for g in names] for p in patterns]


# 13 columns are the most that are counted by position; from 20 on, codes are made in two steps.
@pytest.mark.parametrize("n_voters", [1, 2, 13, 14, 20])
def test_cells_are_counts_in_a_dictionary(n_voters):
    """Patterns in lexicographic order, groups by name, and how often each occurs with each label."""
    votes, labels, groups = rows(n_voters, 90, n_voters)
    patterns, names, counts = counted(votes, labels, groups)
    cells = Cells.from_rows(votes, labels=labels, groups=groups)
    assert cells.patterns.tolist() == list(map(list, patterns))
    assert cells.patterns.dtype == np.int8
    assert cells.counts.tolist() == counts
    assert cells.groups == tuple(names)
    assert cells.voter_names == tuple(map(str, range(n_voters)))
    assert cells.counts.sum() == 90


@pytest.mark.parametrize("n_voters", [21, 33, 40, 41, 61])
def test_wide_rows_are_told_apart_by_every_column(n_voters):
    """Rows that differ in one column alone, whichever it is, are different patterns; equal rows are the same."""
    votes = np.zeros((2 * n_voters + 2, n_voters), dtype=np.int8)
    for column in range(n_voters):
        votes[1 + column, column] = 1
        votes[1 + n_voters + column, column] = -1
    patterns, inverse = distinct_patterns(votes)
    assert len(patterns) == 2 * n_voters + 1
    assert inverse[0] == inverse[-1]
    assert len(set(inverse[:-1].tolist())) == 2 * n_voters + 1
    np.testing.assert_array_equal(patterns[inverse], votes)


@pytest.mark.parametrize("n_voters", [13, 14, 20])
def test_every_code_is_a_pattern_of_its_own(n_voters):
    """The least and the greatest patterns lie at either end, -1 before 0 before 1, the first column first."""
    ends = [[-1] * n_voters, [-1] * (n_voters - 1) + [0], [1] * (n_voters - 1) + [0], [1] * n_voters]
    votes = np.array([ends[i] for i in (3, 0, 2, 1, 0, 3)], dtype=np.int8)
    patterns, inverse = distinct_patterns(votes)
    assert patterns.tolist() == ends
    assert inverse.tolist() == [3, 0, 2, 1, 0, 3]


@given(hnp.arrays(np.int8, st.tuples(st.integers(1, 40), st.integers(1, 45)), elements=st.integers(-1, 1)))
def test_patterns_rebuild_the_rows(votes):
    """The distinct patterns, indexed by row, are the rows again, without repeats, whatever the order of the rows."""
    patterns, inverse = distinct_patterns(votes)
    assert (patterns[inverse] == votes).all()
    assert len(np.unique(patterns, axis=0)) == len(patterns)
    assert (distinct_patterns(votes[np.random.default_rng(0).permutation(len(votes))])[0] == patterns).all()


@pytest.mark.parametrize("columns", [[2], [0, 2], [3, 1, 0], [3, 2, 1, 0]])
def test_selecting_columns_adds_their_cells(columns):
    """Cells of some columns, in the order asked for, are what counting those columns gives."""
    votes, labels, groups = rows(7, 150, 4)
    cells = Cells.from_rows(votes, labels=labels, groups=groups, voter_names=["w", "x", "y", "z"]).select(columns)
    patterns, _, counts = counted(votes[:, columns], labels, groups)
    assert cells.patterns.tolist() == list(map(list, patterns))
    assert cells.counts.tolist() == counts
    assert cells.counts.dtype == np.int64
    assert cells.voter_names == tuple("wxyz"[column] for column in columns)
    assert cells.counts.sum() == 150


@pytest.mark.parametrize("column", [-1, 2, 5])
def test_columns_that_are_not_there(column):
    """Positions run from 0 to one below the number of voters; none is counted from the end."""
    cells = Cells.from_rows([[1, 0], [0, 1]], labels=[1, 0], groups=["a", "a"])
    message = rf"^`columns` must be positions below 2\. Got \[1, {column}\]\.$"
    with pytest.raises(InputError, match=message):
        cells.select([1, column])
    assert cells.select([1, 0]).patterns.tolist() == [[0, 1], [1, 0]]


def test_groups_may_be_numbers():
    """Folds are named by their numbers, ascending, and cells cannot be changed, nor are two the same."""
    cells = Cells.from_rows([[1], [1], [0]], labels=[1, 1, 0], groups=[10, 2, 10])
    assert cells.groups == ("2", "10")
    assert cells.counts.tolist() == [[[0, 0], [1, 0]], [[0, 1], [0, 1]]]
    with pytest.raises(FrozenInstanceError):
        cells.groups = ("a",)
    assert cells != Cells(cells.patterns, cells.counts, cells.groups, cells.voter_names)


def test_rows_of_other_lengths_are_refused():
    """Labels and groups have one entry a row."""
    with pytest.raises(InputError, match=r"^`groups` must have 2 entries, one a row\. Got 3\.$"):
        Cells.from_rows([[1], [0]], labels=[1, 0], groups=["a", "b", "c"])
    with pytest.raises(InputError, match=r"^`labels` must have 2 entries, one a row\. Got 1\.$"):
        Cells.from_rows([[1], [0]], labels=[1], groups=["a", "b"])
    with pytest.raises(InputError, match=r"^`votes` must hold only -1 \(no vote\), 0 and 1\. Got 3"):
        Cells.from_rows([[1], [3]], labels=[1, 0], groups=["a", "b"])


def test_weights_by_code():
    """1.5 + 2 at code 0, nothing at 1, 0.25 at 2, and zeros up to the size asked for; floats without any row too."""
    codes, weights = np.array([0, 2, 0]), np.array([1.5, 0.25, 2.0])
    assert bincount(codes, weights).tolist() == [3.5, 0.0, 0.25]
    assert bincount(codes, weights, 5).tolist() == [3.5, 0.0, 0.25, 0.0, 0.0]
    assert len(bincount(codes[:0], weights[:0])) == 0
    empty = bincount(codes[:0], weights[:0], 2)
    assert empty.tolist() == [0.0, 0.0]
    assert empty.dtype == np.float64
