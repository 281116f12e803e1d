"""Labels in tables of their own, of one person or several, in every layout; how they join votes."""

import numpy as np
import pandas as pd
import pytest

from deep.datasets import LabelTable, join_labels, read_labels, read_people
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


VOTES = VoteMatrix([[1], [0], [1]], ["a", "b", "a"], ["j"], ["news", "news", "talk"], [-1, -1, -1])
ONE_DATASET = VOTES.rows(np.array([True, True, False]))
NEWS = [("news", "a"), ("news", "b")]


def wide(**people):
    """Return a table with a column a person."""
    return pd.DataFrame(NEWS, columns=["dataset", "item_id"]).assign(**people)


LAYOUTS = {
    "label": wide(label=[1, 0], note=["x", "y"]),
    "annotators": pd.DataFrame(
        [("news", "a", "Ann", 1), ("news", "b", "Ann", 0)], columns=["dataset", "item_id", "annotator", "label"]
    ),
    "wide": wide(Ann=[1, 0]),
    "wide, several": wide(Ann=[1, 0], Bob=[1, None], Cy=[0, 0]),
}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(tmp_path, layout, ending):
    """Each gives the label of most people on the same rows."""
    path, frame = tmp_path / f"labels.{ending}", LAYOUTS[layout]
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    result = read_people(path, VOTES)
    assert result.labels.tolist() == [1, 0, -1]
    assert result.names == (
        ("Ann", "Bob", "Cy") if "several" in layout else ("label",) if layout == "label" else ("Ann",)
    )


def test_several_files_and_items_without_votes(tmp_path):
    """A person a file; an item that has no votes is counted."""
    wide(Ann=[1, 0]).to_csv(tmp_path / "a.csv", index=False)
    frame = wide(Bob=[1, 1])
    frame.loc[2] = ["news", "z", 1]
    frame.to_csv(tmp_path / "b.csv", index=False)
    result = read_people([tmp_path / "a.csv", tmp_path / "b.csv"], VOTES)
    assert (result.names, result.labels.tolist(), result.n_tied, result.n_unmatched) == (
        ("Ann", "Bob"),
        [1, -1, -1],
        1,
        1,
    )


def test_no_dataset_is_needed_where_ids_are_unique(tmp_path):
    """Else it is asked for."""
    wide(Ann=[1, 0]).drop(columns="dataset").to_csv(tmp_path / "a.csv", index=False)
    assert read_people(tmp_path / "a.csv", ONE_DATASET).labels.tolist() == [1, 0]
    with pytest.raises(InputError, match="`labels` must have a column dataset"):
        read_people(tmp_path / "a.csv", VOTES)


def test_documents_and_grades(tmp_path):
    """Documents are those of the table; grades from a limit on are 1, an empty one is none."""
    wide(document_id=["x", ""], Ann=[4.5, 2], Bob=[None, 5]).to_csv(tmp_path / "a.csv", index=False)
    result = read_people(tmp_path / "a.csv", VOTES, people=["Ann", "Bob"], consistent_from=4)
    assert result.ratings.tolist() == [[1, -1], [0, 1], [-1, -1]]
    assert result.document_ids.tolist() == ["x", "news/b", "talk/a"]


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (wide(), {}, "`labels` must have a column label, or a column a person. Got 'dataset', 'item_id'"),
        (wide(Ann=[1, 0]).drop(columns="item_id"), {}, "`labels` must have a column item_id"),
        (wide(Ann=[1, 0]), {"people": ["Bob"]}, "`people` must name columns of the labels. Got 'Bob'"),
        (
            wide(Ann=[3, 0]),
            {},
            "`labels` must be 0, 1 or empty. Got '3' at .* For grades, give the lowest that means consistent",
        ),
        (wide(Ann=[None, None]), {}, "`labels` must hold a label of 0 or 1 for an item that has votes"),
        (
            wide().join(pd.DataFrame(1, [0, 1], [f"p{k}" for k in range(10_001)])),
            {},
            "`labels` must have at most 10,000 person columns each. Got 10,001 in ",
        ),
        (LAYOUTS["annotators"].iloc[[0, 0]], {}, "one label for each item and person. Got two by 'Ann'"),
    ],
)
def test_unusable_labels(tmp_path, frame, options, message):
    """One line each."""
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(InputError, match=message):
        read_people(tmp_path / "a.csv", VOTES, **options)
