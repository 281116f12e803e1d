"""Reasons beside votes: failures are counted, told apart from abstentions, and never fitted silently."""

import pandas as pd
import pytest

from deep.datasets import check_failures, read_reasons, reasons_path
from deep.exceptions import InputError
from deep.records import VoteMatrix

VOTES = VoteMatrix([[-1, 1]] * 4, range(4), ["p@1/m", "q@2/m"], ["news"] * 3 + ["talks"], [1, 0, 1, 1])


def write(path, rows):
    """Write a table of reasons beside a table of votes, and return the path of the votes."""
    pd.DataFrame(rows, columns=["dataset", "item_id", "voter", "reason"]).to_parquet(reasons_path(path))
    return path


def test_counts_by_voter_dataset_and_reason(tmp_path):
    """Two failures and an abstention of one voter on three items are a failure rate of two thirds."""
    path = write(
        tmp_path / "v.parquet",
        [
            ("news", "0", "p@1/m", "unparsable"),
            ("news", "1", "p@1/m", "failed"),
            ("news", "2", "p@1/m", "abstained"),
            ("talks", "3", "p@1/m", "abstained"),
            ("news", "2", "left-out", "failed"),
        ],
    )
    news, talks = read_reasons([path, tmp_path / "without.csv"], VOTES)
    assert (news.voter, news.dataset, news.n_items) == ("p@1/m", "news", 3)
    assert news.reasons == {"abstained": 1, "failed": 1, "unparsable": 1}
    assert news.rate == pytest.approx(2 / 3)
    assert talks.rate == 0


def test_failures_beyond_the_limit_are_an_error(tmp_path):
    """The worst voter is named with its dataset, counts and the ways out; at the limit nothing is said."""
    failures = read_reasons([write(tmp_path / "v.parquet", [("news", "0", "p@1/m", "truncated")])], VOTES)
    check_failures(failures, 1 / 3)
    with pytest.raises(InputError, match=r"Got 33 % for 'p@1/m' on 'news' \(1 truncated of 3 items\).*--ignore"):
        check_failures(failures, 0.05)
    check_failures([], 0.0)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"dataset": ["news"], "item_id": ["0"], "voter": ["p"]}, "must have the columns .* Got none named 'reason'"),
        (
            {"dataset": ["news"], "item_id": ["0"], "voter": ["p"], "reason": ["tired"]},
            "`reason` must be one of abstained, failed, .* Got 'tired' at .*, column 'reason', row 1",
        ),
    ],
)  # fmt: skip
def test_unusable_reasons(tmp_path, frame, message):
    """A missing column and a reason outside the closed set are named."""
    pd.DataFrame(frame).to_parquet(tmp_path / "v.reasons.parquet")
    with pytest.raises(InputError, match=message):
        read_reasons([tmp_path / "v.csv"], VOTES)


def test_votes_without_a_gap_have_no_failures(tmp_path):
    """An empty table of reasons, as a run without any missing vote leaves it, is no fault."""
    assert read_reasons([write(tmp_path / "v.parquet", [])], VOTES) == []
