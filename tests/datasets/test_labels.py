"""Labels in tables of their own, and how they join votes."""

import numpy as np
import pandas as pd
import pytest

from deep.datasets import LabelTable, join_labels, read_labels
from deep.exceptions import DeepWarning, InputError
from deep.records import VoteMatrix


def votes(labels=(-1, -1, 1, 0), documents=None):
    """Return votes on two items of each of two datasets."""
    return VoteMatrix(
        [[1], [0], [1], [0]], ["a", "b", "a", "b"], ["strict"], ["news", "news", "talk", "talk"], labels, documents
    )


def written(path, **columns):
    """Write a table."""
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def test_rows_without_a_label_and_other_columns_are_passed_over(tmp_path):
    """Text and probabilities beside the labels are not read; ids are kept to the letter; files are joined."""
    one = written(tmp_path / "1.csv", dataset=["news"] * 2, item_id=["007", "008"], label=[1, None], p=["x", 0.3])
    two = written(tmp_path / "2.csv", dataset=["talk"], item_id=["7"], label=[0], document_id=["d1"])
    result = read_labels([one, two])
    assert result.item_ids.tolist() == ["007", "7"]
    assert result.labels.tolist() == [1, 0]
    assert result.document_ids.tolist() == ["news/007", "d1"]
    assert read_labels(one).document_ids is None


def test_labels_are_of_the_one_dataset_of_the_votes(tmp_path):
    """A table without a column dataset is of it; where the votes are of several, nobody guesses."""
    table = written(tmp_path / "l.csv", item_id=["b"], label=["yes"])
    one = VoteMatrix([[1], [0]], ["a", "b"], ["strict"], ["news"] * 2, [-1, -1])
    assert join_labels(one, read_labels(table, one)).labels.tolist() == [-1, 1]
    with pytest.raises(InputError, match=r"must have a column dataset.* Rename .* `--dataset NAME`"):
        read_labels(table, votes())


def test_labels_replace_those_of_their_datasets_alone(tmp_path):
    """A label beside the votes counts no more where labels of its dataset are given; others stay."""
    table = read_labels(written(tmp_path / "l.csv", dataset=["talk", "talk"], item_id=["b", "zz"], label=[0, 1]))
    with pytest.warns(DeepWarning, match="1 labels are of items without votes"):
        joined = join_labels(votes((1, 0, 1, 0)), table)
    assert joined.labels.tolist() == [1, 0, -1, 0]


def test_documents_come_from_the_labels_where_the_votes_have_none(tmp_path):
    """Other items are documents of their own; documents of the votes stay."""
    columns = {"dataset": ["news"] * 2, "item_id": ["a", "b"], "label": [1, 1], "document_id": ["d", "d"]}
    table = read_labels(written(tmp_path / "l.csv", **columns))
    assert join_labels(votes(), table).document_ids.tolist() == ["d", "d", "talk/a", "talk/b"]
    known = ["w", "x", "y", "z"]
    assert join_labels(votes(documents=known), table).document_ids.tolist() == known


def test_the_order_of_labels_does_not_matter():
    """Nor that of the votes: each item has its own label."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        ids = rng.permutation(30).astype(str).astype(object)
        known = rng.permutation(30)[:12]
        matrix = VoteMatrix(rng.integers(0, 2, (30, 2)), ids, ["x", "y"], ["news"] * 30, [-1] * 30)
        given = rng.integers(0, 2, 12).astype(np.int8)
        table = LabelTable(ids[known], np.array(["news"] * 12, dtype=object), given)
        joined = join_labels(matrix, table)
        assert joined.labels[known].tolist() == given.tolist()
        assert (joined.labels >= 0).sum() == 12
        assert (matrix.labels == -1).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"dataset": ["news"], "item_id": ["a"]}, "`labels` must have a column label. Got 'dataset', 'item_id'"),
        ({"dataset": ["news"], "item_id": ["a"], "label": [None]}, "`labels` must have rows with a label of 0 or 1"),
        ({"dataset": ["news"], "item_id": ["a"], "label": [3]}, "`label` must be 0, 1 or empty"),
        ({"item_id": ["a"], "label": [1]}, "must have a column dataset"),
        ({"dataset": ["news"] * 2, "item_id": ["a", "a"], "label": [1, 1]}, "`item_id` must be unique"),
        ({"dataset": ["film"], "item_id": ["a"], "label": [1]}, "Got none in common: 'a' of 'film' in `labels`, and "),
        ({"dataset": ["talk"], "item_id": ["a"], "label": [0]}, "Got 0 and 1 for item 'a' of dataset 'talk'"),
    ],
)
def test_faults_are_named(tmp_path, columns, message):
    """In one line."""
    with pytest.raises(InputError) as caught:
        join_labels(votes(), read_labels(written(tmp_path / "l.csv", **columns)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
