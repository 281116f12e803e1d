"""Samples and cost of voters, from the file of judgments beside a table of votes."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deep.datasets import judgments_schema, read_usage
from deep.records import VoteMatrix

VOTES = VoteMatrix([[1, 1], [0, -1]], ["a", "b"], ["j", "k"], ["news", "news"], [1, 0])


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
    result = read_usage([table, "none.csv"], VOTES)
    assert sorted(result) == ["j", "k"]
    j, k = result["j"], result["k"]
    assert (j.n_judgments, j.cost, j.seconds, j.tokens, j.n_repaired) == (2, 0.75, 2.0, 15, 1)
    assert (j.sample_rows.tolist(), j.samples.tolist()) == ([1, 0], [[0, 0, -1], [1, 0, 1]])
    assert (k.cost, k.seconds, k.tokens, len(k.samples)) == (None, None, None, 0)


def test_nothing_beside_the_votes(tmp_path):
    """No usage is known."""
    assert read_usage([tmp_path / "v.parquet"], VOTES) == {}
