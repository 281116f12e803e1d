"""Columns of new votes and the voters that they stand for; the table of a chain, and look-up by code."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep.exceptions import InputError
from deep.model import Voter, match_columns
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


STRICT = Voter("strict@0a1b2c3d/small")
PLAIN = Voter("base")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("strict@0a1b2c3d/org/small", ("strict", "0a1b2c3d", "org/small")),
        ("lexical-numbers@0a1b2c3d", ("lexical-numbers", "0a1b2c3d", None)),
        ("prompt-1/gpt-4", ("prompt-1/gpt-4", None, None)),
        ("a@b", ("a@b", None, None)),
    ],
)
def test_a_name_tells_id_version_and_model(name, parts):
    """Any other name stands for itself."""
    voter = Voter(name)
    assert (voter.id, voter.version, voter.model) == parts


def test_columns_are_found_by_name_and_others_ignored():
    """The order of the columns does not matter."""
    assert match_columns([STRICT, PLAIN], ["x", "base", "strict@0a1b2c3d/small"]) == [2, 1]


@pytest.mark.parametrize(("column", "what"), [("strict@ffffffff/small", "version"), ("strict@0a1b2c3d/large", "model")])
def test_another_version_or_model_is_refused_unless_allowed(column, what):
    """The reason names both."""
    with pytest.raises(InputError, match=rf"the {what} of 'strict' .* 'strict@0a1b2c3d/small'. Got '{column}'"):
        match_columns([STRICT], [column])
    assert match_columns([STRICT], [column], allow_mismatch=True) == [0]


def test_two_columns_that_could_stand_for_a_voter_are_refused():
    """No one knows which."""
    with pytest.raises(InputError, match="must have one column for 'strict'"):
        match_columns([STRICT], ["strict@ffffffff/small", "strict@eeeeeeee/small"], allow_mismatch=True)


def test_a_missing_voter_is_refused_unless_allowed():
    """A model of which no voter is there is refused always."""
    with pytest.raises(InputError, match="Got none named 'base'"):
        match_columns([STRICT, PLAIN], [STRICT.name])
    assert match_columns([STRICT, PLAIN], [STRICT.name], allow_missing=True) == [0, None]
    with pytest.raises(InputError, match="must have a column of the model"):
        match_columns([STRICT, PLAIN], ["x"], allow_missing=True)


def test_a_column_that_stands_for_one_voter_stands_for_no_other():
    """A second model of the same prompt is not a mismatch of the first."""
    large = Voter("strict@0a1b2c3d/large")
    with pytest.raises(InputError, match="Got none named 'strict@0a1b2c3d/large'"):
        match_columns([STRICT, large], [STRICT.name], allow_mismatch=True)
