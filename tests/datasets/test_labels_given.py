"""Labels in the forms in which people hold them: each is taken rightly, or refused."""

import unicodedata

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deep
from deep.datasets import as_labels, join_labels, read_labels
from deep.exceptions import DeepWarning, InputError
from deep.records import VoteMatrix

LABELS = [1, 0, None, 1]
IDS = ["d", "b", "c", "a"]
CODES = [1, 0, -1, 1]


def matrix(ids=IDS):
    """Return votes without labels on some items."""
    return VoteMatrix([[1]] * len(ids), ids, ["j"], ["data"] * len(ids), [-1] * len(ids))


FORMS = {
    "list of None": LABELS,
    "list of nan": [1, 0, float("nan"), 1],
    "list of NA": [1, 0, pd.NA, 1],
    "list of codes": CODES,
    "array of words": np.array(["yes", "No", "", "1"]),
    "masked array": np.ma.array([1, 0, 1, 1], mask=[0, 0, 1, 0]),
    "masked booleans": np.ma.array([True, False, True, True], mask=[0, 0, 1, 0]),
    "list of truth": [True, False, None, True],
    "array of floats": np.array([1, 0, np.nan, 1]),
    "array of objects": np.array(LABELS, dtype=object),
    "index": pd.Index([1.0, 0.0, np.nan, 1.0]),
    "Series of floats": pd.Series(LABELS),
    "Series of Int64": pd.Series(LABELS, dtype="Int64"),
    "Series of booleans": pd.Series([True, False, None, True], dtype="boolean"),
    "Series of Arrow": pd.Series(LABELS, dtype="int8[pyarrow]"),
    "Series of categories": pd.Series(["1", "0", None, "1"], dtype="category"),
    "Series of Polars": pl.Series(LABELS),
    "booleans of Polars": pl.Series([True, False, None, True]),
    "array of Arrow": pa.array(LABELS),
    "chunked array of Arrow": pa.chunked_array([LABELS[:2], LABELS[2:]]),
    "frame of pandas": pd.DataFrame({"item_id": IDS, "label": LABELS}),
    "frame of Polars": pl.DataFrame({"item_id": IDS[::-1], "label": LABELS[::-1]}),
    "table of Arrow": pa.table({"item_id": IDS, "label": LABELS}),
    "Series of ids": pd.Series(LABELS[::-1], index=IDS[::-1]),
    "Series of some ids": pd.Series({"d": 1, "a": 1, "b": 0}),
    "Series of pairs": pd.Series(LABELS, index=pd.MultiIndex.from_tuples([("data", item) for item in IDS])),
    "Series of named pairs": pd.Series(
        LABELS, index=pd.MultiIndex.from_tuples([(item, "data") for item in IDS], names=["item_id", "dataset"])
    ),
    "rows by annotator": pd.DataFrame({"item_id": [*IDS, "d"], "annotator": [*"aaaa", "b"], "label": [*LABELS, 1]}),
    "crowd-kit": pd.DataFrame({"task": ["d", "b", "a"], "worker": ["w"] * 3, "label": [1, 0, 1]}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_taken(form):
    """By position where it names no items, else by item."""
    assert as_labels(FORMS[form], matrix()).labels.tolist() == CODES


@pytest.mark.parametrize(
    "form",
    [
        [1, 0, 2, 1],
        [1, 0, 0.5, 1],
        [1, 0, "maybe", 1],
        pl.Series(["x"] * 4),
        [1, 0],
        1.0,
        {"a": 1},
        [[1], [0], [1], [1]],
        [[1], [0, 1], [1], [1]],
        pd.Series([1, 0]),
        pd.Series(CODES, index=[True, False, True, False]),
        pd.Series(CODES, index=pd.MultiIndex.from_arrays([IDS] * 3)),
        pd.Series(CODES, index=pd.MultiIndex.from_arrays([IDS] * 2, names=["item_id", "task"])),
    ],
    ids=str,
)
def test_what_is_no_label(form):
    """It is refused in one line; nothing is ever taken for a label."""
    with pytest.raises(InputError, match=r"^`labels` must .*$"):
        as_labels(form, matrix())


FRAME = pd.DataFrame({"item_id": [f"i{k}" for k in range(8)], "j": [1, 0] * 4, "gold": [1, 1, 0, 0] * 2})


def labels_of(frame, labels):
    """Return the labels by item that votes in a frame get."""
    votes = deep.VoteMatrix.from_frame(frame[["item_id", "j"]], dataset="data")
    result = as_labels(labels, votes, frame)
    return dict(zip(result.item_ids, result.labels.tolist(), strict=True))


RIGHT = dict(zip(FRAME["item_id"], FRAME["gold"], strict=True))


def test_a_column_of_the_same_rows():
    """Filtered or shuffled, a column is aligned by the index that it shares with the votes."""
    for frame in (
        FRAME,
        FRAME[FRAME["j"] == 1],
        FRAME.sample(frac=1, random_state=0),
        FRAME.set_index("item_id", drop=False),
    ):
        labels = frame["gold"]
        assert labels_of(frame, labels) == {item: RIGHT[item] for item in frame["item_id"]}
        assert labels_of(frame, labels.iloc[::-1]) == {item: RIGHT[item] for item in frame["item_id"]}


def test_some_labels_of_the_rows():
    """Labels of some rows are those of these rows."""
    some = FRAME["gold"][[6, 1, 2]]
    assert labels_of(FRAME, some) == {item: RIGHT[item] if item in ("i6", "i1", "i2") else -1 for item in RIGHT}


@pytest.mark.parametrize(
    ("frame", "labels"),
    [
        (FRAME, FRAME["gold"].set_axis(range(100, 108))),
        (FRAME, FRAME["gold"].set_axis([0, 1, 2, 3, 4, 5, 6, 6])),
        (FRAME.sample(frac=1, random_state=0), FRAME["gold"]),
        (FRAME.assign(item_id=range(1, 9)), FRAME["gold"].set_axis([1, 2, 3, 4, 5, 6, 7, 0])[:7]),
        (FRAME, FRAME["gold"].set_axis(pd.Index(range(8), name="row"))),
    ],
    ids=["other numbers", "twice", "order not known", "ids or rows", "other name"],
)
def test_a_foreign_index_is_never_taken_by_position(frame, labels):
    """It is not known which row a label is of."""
    with pytest.raises(InputError, match=r"^`labels` must .*$"):
        labels_of(frame, labels)


NUMBERED = pd.DataFrame({"item_id": ["6", "7", "2", "1", "4", "5", "3", "0"], "j": [1, 0] * 4, "gold": FRAME["gold"]})


@pytest.mark.parametrize("is_frame", [True, False])
@pytest.mark.parametrize(
    "labels",
    [
        NUMBERED["gold"][:5],
        NUMBERED["gold"][[0, 2, 5]],
        NUMBERED["gold"][::-1],
        NUMBERED["gold"].rename_axis("row"),
        NUMBERED["gold"].set_axis(pd.Index(range(1, 9), name="row")),
    ],
    ids=["first", "some", "backwards", "named", "from 1"],
)
def test_numbers_that_may_be_rows_or_ids_are_refused(labels, is_frame):
    """Ids of numbers and rows of numbers look alike, and a label must never go to another row in silence."""
    votes = deep.VoteMatrix.from_frame(NUMBERED[["item_id", "j"]], dataset="data")
    with pytest.raises(InputError, match=r"^`labels` must .*$"):
        as_labels(labels, votes, NUMBERED if is_frame else None)
    # By the order of rows, and by ids that are named so, they are taken.
    assert as_labels(NUMBERED["gold"], votes).labels.tolist() == NUMBERED["gold"].tolist()
    by_id = NUMBERED.set_index("item_id")["gold"][::-1]
    assert as_labels(by_id, votes).labels.tolist() == NUMBERED["gold"].tolist()


def test_positions_beside_a_shuffled_frame_whose_ids_are_its_index():
    """Labels from 0 on are of the rows before the shuffling or after it."""
    frame = NUMBERED.assign(item_id=[*map(str, range(8))]).sample(frac=1, random_state=1)
    with pytest.raises(InputError, match=r"must have the index of the votes"):
        labels_of(frame, pd.Series(frame["gold"].tolist()))


def test_rows_of_a_long_frame_are_no_rows_of_votes():
    """Labels from 0 on are by item; others by the index of a long frame are refused, also where they look like ids."""
    long = pd.DataFrame({"item_id": [*"642031"] * 2, "judge": [*"jjjjjjkkkkkk"], "vote": [1, 0] * 6})
    votes = deep.VoteMatrix.from_frame(long, dataset="data")
    assert as_labels(pd.Series([1, 0, 0, 1, 0, 1]), votes, long).labels.tolist() == [1, 0, 0, 1, 0, 1]
    with pytest.raises(InputError, match=r"must have the index of the votes"):
        as_labels(pd.Series([1, 0, 0], index=[6, 1, 2]), votes, long)


def test_without_a_frame_an_index_of_numbers_is_foreign():
    """A matrix has no index but the ids of its items."""
    for index in ([3, 2, 1, 0], [10, 11, 12, 13]):
        with pytest.raises(InputError, match="must have the index of the votes"):
            as_labels(pd.Series(CODES, index=index), matrix())
    assert as_labels(pd.Series([1, 0], index=[7, 8]), matrix(["8", "7"])).labels.tolist() == [0, 1]


NFD = unicodedata.normalize("NFD", "é1")


@pytest.mark.parametrize(
    ("ids", "given", "n", "reason"),
    [
        (["007", "100"], ["7", "100"], 1, r" '7' may be '007'\."),
        (["7", "8"], ["7.0", "8"], 1, r" '7\.0' may be '7'\."),
        (["Ab", "c"], ["aB", "c"], 1, r" 'aB' may be 'Ab'\."),
        (["a", "b"], ["x", "b"], 1, "$"),
        (["é1", "b"], [NFD, "b"], 0, None),
        (["a", "b"], [" a ", "b"], 0, None),
        ([f" {NFD}", "b"], ["é1", "b"], 0, None),
    ],
)
def test_labels_of_no_item_are_told_with_the_likely_reason(ids, given, n, reason):
    """Ids that look alike are the same; of others the likely reason is told, once for files and frames."""
    frame = pd.DataFrame({"item_id": given, "label": [1, 0]})
    if n:
        with pytest.warns(DeepWarning, match=f"^{n} labels are of items without votes, and are left out.{reason}"):
            result = as_labels(frame, matrix(ids))
        assert result.labels.tolist() == [-1, 0]
    else:
        assert as_labels(frame, matrix(ids)).labels.tolist() == [1, 0]
    with pytest.raises(InputError, match=r"Got none in common: 'A', 'B' of 'data'.* 'A' may be 'a'\. Write dataset"):
        as_labels(pd.DataFrame({"item_id": ["A", "B"], "label": [1, 0]}), matrix(["a", "b"]))


def test_a_dataset_that_looks_alike_is_the_same(tmp_path):
    """Labels of files name it as the votes do."""
    votes = VoteMatrix([[1], [0]], ["a", "b"], ["j"], ["é", "z"], [-1, -1])
    path = tmp_path / "l.csv"
    path.write_text(f"dataset,item_id,label\n{unicodedata.normalize('NFD', 'é')} ,a,1\n")
    table = read_labels(path, votes)
    assert (table.datasets.tolist(), join_labels(votes, table).labels.tolist()) == (["é"], [1, -1])


def test_a_label_column_of_another_name(tmp_path):
    """It is named as the one to rename."""
    path = tmp_path / "l.csv"
    path.write_text("item_id,Label\na,1\n")
    with pytest.raises(InputError, match=r"must have a column label\. Got .* Rename 'Label' if it holds them\."):
        read_labels(path, matrix())


def test_every_step_takes_the_same_votes_and_labels(tmp_path):
    """Each layout, as a frame and as a file, gives the same numbers in all steps."""
    rng = np.random.default_rng(0)
    truth = (rng.random(60) < 0.6).astype(int)
    votes = {name: np.where(rng.random(60) < 0.8, truth, 1 - truth) for name in ("j", "k", "m")}
    wide = pd.DataFrame({"item_id": [f"i{n}" for n in range(60)], **votes})
    long = wide.melt("item_id", var_name="judge", value_name="vote")
    crowd = long.rename(columns={"item_id": "task", "judge": "worker", "vote": "label"})
    model = deep.fit(wide, labels=truth)
    some = np.where(np.arange(60) < 30, truth, -1)
    result = []
    for name, frame in {
        "wide": wide.assign(dataset="data"),
        "long": long.assign(dataset="data"),
        "crowd": crowd,
    }.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        frame.to_parquet(tmp_path / f"{name}.parquet")
        for given in (frame, tmp_path / f"{name}.csv", str(tmp_path / f"{name}.parquet"), pl.from_pandas(frame)):
            steps = [
                deep.fit(given, labels=truth).score_frame(given)["p_consistent"].tolist(),
                model.score_frame(given)["p_consistent"].tolist(),
                dict(deep.check(model, given, labels=pl.Series(some))),
                deep.adapt(model, given, labels=list(some)).threshold(),
                deep.estimate(model, given, labels=pd.Series(some))["estimate"].tolist(),
            ]
            result.append(str(steps))
    assert len(set(result)) == 1


def test_a_voter_that_is_always_right_is_doubted():
    """From 30 rows with both labels on; a vote that is missing is no exception."""
    y = [1, 0] * 20
    other = [1, 1, 0, 0] * 10
    frame = pd.DataFrame({"item_id": [f"i{k}" for k in range(40)], "a": [None, *y[1:]], "b": other, "c": other[::-1]})
    with pytest.warns(DeepWarning, match=r"^'a' equals the label on all 39 rows .* `--ignore a`"):
        deep.fit(frame, labels=y)
    deep.fit(frame[:29], labels=y[:29])
    deep.fit(frame.assign(a=[None, 0, *y[2:]]), labels=[1, 1, *y[2:]])
