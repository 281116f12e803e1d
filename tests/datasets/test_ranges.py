"""Ranges of encoder scores: published ones by name, others by option."""

import numpy as np
import pytest

from deep._util.scales import Scale
from deep.datasets import score_ranges
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
    """AlignScore in percent keeps the range of its scores; a declared scale goes before the name."""
    assert score_ranges(["AlignScore"], np.array([[70.0]]), {}) == {}
    percent = {"AlignScore": Scale.parse("0-100")}
    assert score_ranges(["AlignScore"], np.array([[70.0]]), percent) == {"AlignScore": (0, 100)}


@pytest.mark.parametrize(("text", "ends"), [("0:5", (0, 5)), ("-1:1", (-1, 1)), ("-3.5..0", (-3.5, 0))])
def test_the_ends_of_a_scale_stand_apart(text, ends):
    """With a colon too, as `--range` had them."""
    scale = Scale.parse(text)
    assert (scale.low, scale.high) == ends


@pytest.mark.parametrize("scale", ["0-5", "6-0"])
def test_scales_that_cannot_be(scale):
    """Scores beyond what was said, and a scorer whose low scores are the best, for a threshold from below."""
    scores = np.array([[0.2, 5.5]])
    assert fault(score_ranges, ["a", "b"], scores, {"b": Scale.parse(scale)}) == (
        f"`scale` must hold every score of 'b', low to high. Got 5.5, not in {scale}."
    )
