"""Records and base classes: what they accept, and how they refuse."""

import pytest

from deep.exceptions import InputError
from deep.records import Example, Judgment, VoteMatrix

GOOD = {
    "votes": [[1, 0], [1, -1], [0, 0]],
    "item_ids": ["a", "b", "a"],
    "voter_names": ["strict", "lenient"],
    "datasets": ["news", "news", "talks"],
    "labels": [1, 0, -1],
}


def test_example_refuses_other_labels():
    """A label is 0, 1 or unknown; the error names the example."""
    with pytest.raises(InputError, match=r"`label` must be 0, 1 or None. Got 2 in example 'x'"):
        Example("source", "claim", "x", label=2)
    assert Example("source", "claim", "x").label is None


REASONS = "abstained, failed, no_source, not_asked, refused, truncated, unparsable"


@pytest.mark.parametrize(
    ("vote", "reason", "message"),
    [
        (2, None, "`vote` must be -1, 0 or 1. Got 2"),
        (-1, None, "`reason` must be given exactly where `vote` is -1"),
        (1, "failed", "`reason` must be given exactly where `vote` is -1"),
        (-1, "lost", f"`reason` must be one of {REASONS}. Got 'lost'"),
    ],
)
def test_judgment_keeps_failures_apart_from_votes(vote, reason, message):
    """Only 1 and 0 are votes, and everything else has a reason from the closed set."""
    with pytest.raises(InputError, match=message):
        Judgment(vote, reason)


def test_vote_matrix_keeps_rows_together():
    """Selecting rows keeps votes, names, labels and families in step."""
    matrix = VoteMatrix(**GOOD, document_ids=["d1", "d1", "d2"], families={"news": "press"})
    talks = matrix.rows(matrix.datasets == "talks")
    assert talks.shape == (1, 2)
    assert talks.labels.tolist() == [-1]
    assert talks.document_ids.tolist() == ["d2"]
    assert (matrix.family_of("news"), matrix.family_of("talks")) == ("press", "talks")
    assert matrix.dataset_names == ("news", "talks")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"votes": [[1, 0], [1, 5], [0, 0]]}, r"Got 5.* at row 1, column 1 \('lenient'\)"),
        ({"votes": [1, 0, 1]}, "`votes` must be two-dimensional"),
        ({"votes": [["yes", "no"]] * 3}, "`votes` must hold numbers"),
        ({"labels": [1, 0, 7]}, "`labels` must hold only 0 and 1. Got 7"),
        ({"labels": [1, 0]}, "`labels` must have 3 entries, one a row. Got 2"),
        ({"voter_names": ["strict"]}, "`voter_names` must have 2 entries, one per column. Got 1"),
        ({"voter_names": ["strict", "strict"]}, "`voter_names` must be unique. Got 'strict' more than once"),
        ({"item_ids": ["a", "a", "a"]}, "`item_ids` must be unique within a dataset. Got 'a' twice in 'news'"),
        ({"datasets": ["news"]}, "`datasets` must have 3 entries, one a row. Got 1"),
        ({"voter_names": ["a\nb", "b"]}, r"`voter_names` must be printable .* U\+000A"),
        ({"datasets": ["news", "news", "\x1b[2J"]}, r"`datasets` must be printable .* U\+001B"),
        ({"families": {"news": "\u202e"}}, r"`families` must be printable .* U\+202E"),
        ({"document_ids": ["d"]}, "`document_ids` must have 3 entries, one a row. Got 1"),
    ],
)
def test_vote_matrix_refuses_what_does_not_fit(change, message):
    """Every mismatch is one line that names the argument."""
    with pytest.raises(InputError, match=message):
        VoteMatrix(**(GOOD | change))
