"""The table of a chain: the order of its patterns, and look-up by code."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep.exceptions import InputError
from deep.model._table import MAX_TABLE_VOTERS, look_up, pattern_grid, pattern_text, patterns_from_text


@pytest.mark.parametrize("n_voters", range(1, MAX_TABLE_VOTERS + 1))
def test_the_grid_holds_each_pattern_once_where_look_up_finds_it(n_voters):
    """The entry of a pattern is its row in the grid."""
    grid = pattern_grid(n_voters)
    assert len(np.unique(grid, axis=0)) == len(grid) == 3**n_voters
    assert look_up(np.arange(float(3**n_voters)), grid).tolist() == list(range(3**n_voters))


def test_the_code_is_the_documented_one():
    """No vote counts 0, a vote of 0 counts 1, a vote of 1 counts 2; the first voter weighs most."""
    assert look_up(np.arange(27.0), [[1, 0, -1]]).tolist() == [2 * 9 + 1 * 3 + 0]


@given(st.integers(1, 40_000), st.integers(0, 2**32 - 1))
def test_every_row_is_found_whatever_the_number_of_rows(n, seed):
    """Rows at the seams of the pieces are like any other; so are columns that lie apart in memory."""
    rng = np.random.default_rng(seed)
    votes = rng.integers(-1, 2, (n, 4), dtype=np.int8)
    values = rng.random(81)
    expected = values[(votes.astype(int) + 1) @ 3 ** np.arange(3, -1, -1)]
    assert np.array_equal(look_up(values, votes), expected)
    assert np.array_equal(look_up(values, np.asfortranarray(votes)), expected)


@given(st.integers(-128, 127).filter(lambda value: value not in (-1, 0, 1)), st.integers(0, 20_000))
def test_anything_but_a_vote_is_refused(value, row):
    """Also where it would wrap round to the code of another pattern."""
    votes = np.zeros((20_001, 3), dtype=np.int8)
    votes[row, 1] = value
    with pytest.raises(InputError, match=rf"must hold only -1 .* Got {value} at row {row}, column 1"):
        look_up(np.zeros(27), votes)


def test_patterns_are_told_as_text():
    """One character a voter."""
    grid = pattern_grid(3)
    assert pattern_text(grid)[:4] == ["---", "--0", "--1", "-0-"]
    assert np.array_equal(patterns_from_text(pattern_text(grid), 3), grid)
    with pytest.raises(InputError, match=r"must have 3 characters of - 0 1 each. Got '1x0'"):
        patterns_from_text(["1x0"], 3)


def test_no_table_of_many_voters():
    """It would not fit a file."""
    with pytest.raises(InputError, match=r"between 1 and 10\. Got 11"):
        pattern_grid(11)
