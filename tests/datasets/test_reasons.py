"""Reasons, samples and cost beside votes: failures are counted, told apart from abstentions, never fitted silently."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deep.datasets import failing_words, file_beside, judgments_schema, read_reasons, read_usage, worst_failures
from deep.exceptions import InputError
from deep.records import VoteMatrix

VOTES = VoteMatrix([[-1, 1]] * 4, range(4), ["p@1/m", "q@2/m"], ["news"] * 3 + ["talks"], [1, 0, 1, 1])


def write(path, rows):
    """Write a table of reasons beside a table of votes, and return the path of the votes."""
    pd.DataFrame(rows, columns=["dataset", "item_id", "voter", "reason"]).to_parquet(file_beside(path, "reasons"))
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


def test_the_worst_dataset_of_a_voter_is_told_with_digits_enough(tmp_path):
    """With counts; a share that rounds to the limit is not called the limit."""
    failures = read_reasons([write(tmp_path / "v.parquet", [("news", "0", "p@1/m", "truncated")])], VOTES)
    (worst,) = worst_failures(failures).values()
    assert failing_words(worst, 0.05) == (
        "'p@1/m' has no usable answer to 33.3 % of dataset 'news' (1 truncated of 3 items), above the limit of 5 %"
    )
    assert "33.3333 % of dataset" in failing_words(worst, 0.33333)
    assert worst_failures([]) == {}


def test_what_was_not_asked_is_no_failure(tmp_path):
    """Nor is it counted among the items that were asked."""
    reasons = [
        ("news", "0", "p@1/m", "not_asked"),
        ("news", "1", "p@1/m", "no_source"),
        ("news", "2", "p@1/m", "failed"),
    ]
    (result,) = read_reasons([write(tmp_path / "v.parquet", reasons)], VOTES)
    assert result.rate == 1.0


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


TWO_ITEMS = VoteMatrix([[1, 1], [0, -1]], ["a", "b"], ["j", "k"], ["news", "news"], [1, 0])


def row(item, voter, **values):
    """Return a row of the file."""
    empty = dict.fromkeys(judgments_schema().names) | {"passages": [], "samples": [], "repaired": False}
    return empty | {"dataset": "news", "item_id": item, "voter": voter} | values


@pytest.fixture
def table(tmp_path):
    """Return a table of votes with judgments beside it; one is of an item, one of a voter that the votes lack."""
    rows = [
        row("b", "j", cost=0.5, seconds=2.0, tokens=10, samples=[0, 0, -1], repaired=True),
        row("a", "j", cost=0.25, seconds=None, tokens=5, samples=[1, 0, 1]),
        row("a", "k", cost=None),
        row("b", "k", cost=0.0),
        row("z", "j", cost=9.0),
        row("a", "other", cost=9.0),
    ]
    pq.write_table(pa.Table.from_pylist(rows, judgments_schema()), tmp_path / "v.judgments.parquet")
    return tmp_path / "v.parquet"


def test_sums_by_voter_and_samples_by_row(table):
    """An unknown price makes the sum unknown; what took no time that is known adds none."""
    result = read_usage([table, "none.csv"], TWO_ITEMS)
    assert sorted(result) == ["j", "k"]
    j, k = result["j"], result["k"]
    assert (j.n_judgments, j.cost, j.seconds, j.tokens, j.n_repaired) == (2, 0.75, 2.0, 15, 1)
    assert (j.sample_rows.tolist(), j.samples.tolist()) == ([1, 0], [[0, 0, -1], [1, 0, 1]])
    assert (k.cost, k.seconds, k.tokens, len(k.samples)) == (None, None, None, 0)


def test_nothing_beside_the_votes(tmp_path):
    """No usage is known."""
    assert read_usage([tmp_path / "v.parquet"], TWO_ITEMS) == {}
