"""Ranges of encoder scores: published ones by name, others by option."""

import numpy as np
import pytest

from deep.datasets import parse_ranges, score_ranges
from tests.datasets.tables import fault


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("SummaC-ZS", (-1, 1)),
        ("summac_zs@0a1b2c3d/model", (-1, 1)),
        ("SummaC-Cv", (0, 1)),
        ("SummaC-Conv", (0, 1)),
        ("QAFactEval", (0, 5)),
        ("QuestEval", (0, 1)),
        ("AlignScore", (0, 1)),
        ("mine", None),
    ],
)
def test_published_ranges_are_known_by_name(name, known):
    """However the name is spelled; other scorers have none."""
    result = score_ranges([name], np.array([[0.2], [np.nan]]), {})
    assert result == ({} if known is None else {name: known})


def test_scores_outside_a_published_range_are_of_another_scorer():
    """AlignScore in percent keeps the range of its scores; the option goes before the name."""
    assert score_ranges(["AlignScore"], np.array([[70.0]]), {}) == {}
    assert score_ranges(["AlignScore"], np.array([[70.0]]), {"AlignScore": (0.0, 100.0)}) == {"AlignScore": (0, 100)}


@pytest.mark.parametrize("option", ["QAFactEval", "=0:5", "q=5:0", "q=0", "q=0:x", "q=0:inf", "q=1:1", "q=0:nan"])
def test_options_that_say_no_range(option):
    """One line with the form."""
    assert fault(parse_ranges, [option]) == f"`range` must be NAME=LOW:HIGH with LOW below HIGH. Got {option!r}."


def test_names_may_hold_the_signs_of_the_option():
    """The last equals sign parts name and range."""
    assert parse_ranges(["a=b:c=-1:1"]) == {"a=b:c": (-1.0, 1.0)}


def test_ranges_that_cannot_be():
    """A scorer that is not there, and scores beyond what was said."""
    scores = np.array([[0.2, 5.5]])
    assert fault(score_ranges, ["a", "b"], scores, {"c": (0.0, 1.0)}) == "`range` must be of one of a, b. Got 'c'."
    assert fault(score_ranges, ["a", "b"], scores, {"b": (0.0, 5.0)}) == (
        "`range` must hold every score of 'b'. Got 5.5 outside 0:5."
    )
