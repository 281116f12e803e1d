"""Which columns of new votes stand for the voters of a model."""

import pytest

from deep.exceptions import InputError
from deep.model import Voter, match_columns

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
