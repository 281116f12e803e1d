"""Labels of people, in every layout that labeling tools write."""

import numpy as np
import pandas as pd
import pytest

from deep.datasets import read_people
from deep.exceptions import InputError
from deep.records import VoteMatrix

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
