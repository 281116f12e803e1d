"""Votes from and to the frames of pandas, Polars, pyarrow and crowd-kit, and snorkel's label matrices."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from crowdkit.aggregation import MajorityVote
from hypothesis import given, settings
from hypothesis import strategies as st
from snorkel.labeling import LFApplier, labeling_function
from snorkel.labeling.apply.pandas import PandasLFApplier

from deep import InputError, VoteMatrix, read_votes
from deep._util.names import check_name, intended_column

from_frame = VoteMatrix.from_frame


def is_name(text):
    """Return whether a text may name a voter or dataset."""
    try:
        check_name(text, "name")
    except InputError:
        return False
    return True


NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8).filter(is_name)
KNOWN = ("dataset", "item_id", "label", "document_id", "family")
VOTERS = NAMES.filter(lambda name: name not in KNOWN and intended_column(name, KNOWN) is None)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def matrices(draw):
    """Return any matrix of votes that a frame can hold; families are those of datasets that are there."""
    voters = draw(st.lists(VOTERS, min_size=1, max_size=4, unique=True))
    names = draw(st.lists(NAMES, min_size=1, max_size=2, unique=True))
    items = draw(st.lists(st.tuples(st.sampled_from(names), TEXTS), min_size=1, max_size=6, unique=True))
    cells = st.lists(st.sampled_from([1, 0, -1]), min_size=len(items), max_size=len(items))
    documents = draw(st.none() | st.lists(TEXTS, min_size=len(items), max_size=len(items)))
    datasets, ids = zip(*items, strict=True)
    return VoteMatrix(
        np.column_stack([draw(cells) for _ in voters]), ids, voters, datasets, draw(cells), documents,
        {name: family for name in set(datasets) if (family := draw(st.sampled_from(["", "kin"])))},
    )  # fmt: skip


def content(votes):
    """Return everything that a matrix holds, as plain values."""
    documents = None if votes.document_ids is None else votes.document_ids.tolist()
    return (
        votes.votes.tolist(), votes.item_ids.tolist(), votes.voter_names, votes.datasets.tolist(),
        votes.labels.tolist(), documents, dict(votes.families),
    )  # fmt: skip


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("layout", ["wide", "long"])
@settings(max_examples=40, deadline=None)
@given(votes=matrices())
def test_a_frame_gives_back_the_votes(layout, library, votes):
    """To the letter: ids, votes, labels, documents and families; pandas by its index too."""
    frame = votes.to_frame(layout=layout, library=library)
    assert isinstance(frame, pd.DataFrame if library == "pandas" else pl.DataFrame)
    assert content(from_frame(frame, layout=layout)) == content(votes)
    if library == "pandas":
        assert content(from_frame(frame.set_index(["dataset", "item_id"]), layout=layout)) == content(votes)
        assert content(from_frame(pa.Table.from_pandas(frame), layout=layout)) == content(votes)


@pytest.mark.filterwarnings("ignore:The inplace keyword")
@settings(max_examples=30, deadline=None)
@given(votes=matrices())
def test_crowd_kit_counts_the_votes_and_gives_them_back(votes):
    """Its majority of a long frame is that of the matrix, where there is one; items without a vote are not in it."""
    votes = votes.rows(votes.datasets == votes.datasets[0])
    if (votes.votes < 0).all():
        return
    frame = votes.to_frame(layout="crowd-kit")
    result = MajorityVote().fit_predict(frame)
    ones, zeros = ((votes.votes == vote).sum(axis=1) for vote in (1, 0))
    expected = dict(zip(votes.item_ids, ones > zeros, strict=True))
    tied = set(votes.item_ids[ones == zeros])
    assert {task: bool(label) for task, label in result.items() if task not in tied} == {
        task: label for task, label in expected.items() if task not in tied
    }
    back = from_frame(frame, dataset=votes.datasets[0])
    kept = [votes.voter_names.index(name) for name in back.voter_names]
    rows = [votes.item_ids.tolist().index(item) for item in back.item_ids]
    assert back.votes.tolist() == votes.votes[np.ix_(rows, kept)].tolist()
    assert (np.delete(votes.votes, kept, axis=1) == -1).all()


@labeling_function()
def long_claim(row):
    """Return 1 for a long text, no vote for one that is neither."""
    return 1 if len(row.text) > 6 else -1


@labeling_function()
def no_digit(row):
    """Return 0 for a text with a digit."""
    return 0 if any(map(str.isdigit, row.text)) else 1


def test_label_matrices_of_snorkel():
    """As its appliers return them, with -1 where a labeling function abstains; `votes` is the same again."""
    frame = pd.DataFrame({"text": ["a text", "12 metres", "longer text"]})
    lfs = [long_claim, no_digit]
    matrix = PandasLFApplier(lfs).apply(frame, progress_bar=False)
    votes = from_frame(matrix, voter_names=[lf.name for lf in lfs], dataset="news")
    assert votes.votes.tolist() == matrix.tolist() == [[-1, 1], [1, 0], [1, 1]]
    assert votes.voter_names == ("long_claim", "no_digit")
    assert votes.item_ids.tolist() == ["0", "1", "2"]
    assert (LFApplier(lfs).apply(list(frame.itertuples()), progress_bar=False) == votes.votes).all()


def frame_of(*cells, **more):
    """Return a frame of one voter."""
    return pd.DataFrame({"item_id": [f"i{k}" for k in range(len(cells))], "strict": list(cells), **more})


@pytest.mark.parametrize(
    ("cells", "votes"),
    [
        ([1, 0, None], [1, 0, -1]),
        ([True, False, None], [1, 0, -1]),
        ([True, pd.NA], [1, -1]),
        ([1.0, np.nan, 0.0], [1, -1, 0]),
        (["1", "0", "", "1.0", None], [1, 0, -1, 1, -1]),
        ([None, None], [-1, -1]),
        (pd.Categorical(["1", "0"]), [1, 0]),
        (pd.Series([1, None], dtype="Int8"), [1, -1]),
        (pl.Series(["1", "0"], dtype=pl.Categorical), [1, 0]),
        (pl.Series(["1", None], dtype=pl.Enum(["0", "1"])), [1, -1]),
        (pl.Series([1.0, float("nan"), None]), [1, -1, -1]),
        (pl.Series([True, None]), [1, -1]),
    ],
    ids=str,
)
def test_what_is_a_vote(cells, votes):
    """The rule of the readers of files: 1, 0, also as text or booleans, and nothing."""
    polars = isinstance(cells, pl.Series)
    ids = list(map(str, range(len(cells))))
    frame = (pl if polars else pd).DataFrame({"item_id": ids, "strict": cells})
    assert from_frame(frame, dataset="news").votes[:, 0].tolist() == votes


def test_a_file_and_its_frame_are_read_alike(tmp_path):
    """Registered families, ids as text, documents of their own where there are none."""
    frame = pd.DataFrame(
        {"dataset": ["aggrefact-xsum", "new"], "item_id": [7, 8], "document_id": ["d", None], "a": [1, None]}
    )
    frame.to_parquet(tmp_path / "votes.parquet")
    assert content(from_frame(frame)) == content(read_votes(tmp_path / "votes.parquet"))
    assert from_frame(frame).families == {"aggrefact-xsum": "aggrefact"}


def test_rows_of_a_filtered_frame():
    """The index that pandas then keeps is no voter."""
    votes = from_frame(frame_of(1, 0, 0).iloc[[0, 2]], dataset="news")
    assert votes.voter_names == ("strict",)
    assert votes.item_ids.tolist() == ["i0", "i2"]


LONG = {"item_id": ["a", "a"], "voter": ["x", "y"], "vote": [1, 0]}
NO_VOTE = r"`votes` must be 0, 1 or empty\. Got {} at row 1 \(from 0\), column 'strict'\. "


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (frame_of(1, 2), NO_VOTE.format(2)),
        (frame_of(1, -1), NO_VOTE.format(-1)),
        (frame_of(1, 0.5), NO_VOTE.format(r"0\.5")),
        (frame_of("1", "maybe"), NO_VOTE.format("'maybe'")),
        (frame_of([1], [0]), r"Got \[1\] at row 0"),
        (frame_of(1, "0"), r"one kind of cell in a column\. Got '0' at row 1 \(from 0\), column 'strict', below 1\."),
        (frame_of(1, True), r"Got True at row 1 \(from 0\), column 'strict', below 1\."),
        (frame_of(1, 10**30), r"text, numbers or booleans\. Got: "),
        (frame_of(1, 0, label=[1, 3]), r"`label` must be 0, 1 or empty\. Got 3 at row 1"),
        (
            frame_of(1, 0, item_id=["a", "a"]),
            r"Got 'a' of dataset 'news' at row 1 .*, and before at row 0",
        ),
        (frame_of(1, 0, item_id=["a", None]), r"`item_id` must not be empty\. Got '' at row 1"),
        (frame_of(1, 0, item_id=[1.5, 2]), r"`item_id` must be text or whole numbers\. Got type double in the frame"),
        (frame_of(), r"at least one row"),
        (frame_of(1)[["item_id"]], r"`frame` must have at least one vote column beside"),
        (frame_of(1)[["strict"]], r"`frame` must have a column item_id\. Got 'strict'"),
        (frame_of(1).rename(columns={"strict": 0.5}), r"text above every column\. Got 0\.5\."),
        (pd.concat([frame_of(1), frame_of(1)["strict"]], axis=1), r"unique column names\. Got 'strict' twice"),
        (frame_of(1, dataset=["news"]), r"`dataset` must be given for a frame without .* Got both"),
        (pl.DataFrame({"item_id": ["a"], "strict": [float("inf")]}), r"Got inf at row 0"),
        (pl.DataFrame({"item_id": ["a"], "s": pl.Series([object()], dtype=pl.Object)}), r"Got objects in 's'"),
        (
            pd.DataFrame(LONG | {"voter": ["x", "x"]}),
            r"unique for a voter within a dataset\. Got 'a' .* at row 1",
        ),
        (pd.DataFrame(LONG | {"voter": ["x", None]}), r"`voter` must not be empty\. Got '' at row 1"),
        (pd.DataFrame(LONG | {"label": [1, 0]}), r"`label` must be the same in all rows of an item\. Got 1 at row 0"),
        (pd.DataFrame(LONG | {"vote": [1, 7]}), r"Got 7 at row 1 \(from 0\), column 'vote'"),
        ([[1, 0]], r"`frame` must be a data frame .* Got list"),
        (np.array([[1, 0]]), r"`dataset` and `voter_names` must be given for an array"),
    ],
)
def test_what_is_no_vote_is_named_with_column_and_row(frame, message):
    """In one line; nothing is coerced into a vote."""
    with pytest.raises(InputError, match=message) as caught:
        from_frame(frame, dataset="news")
    assert "\n" not in str(caught.value)


def test_what_a_layout_cannot_hold():
    """Is said."""
    votes = VoteMatrix([[1], [0]], ["a", "b"], ["label"], ["x", "y"], [-1, -1])
    with pytest.raises(InputError, match=r"`voter_names` must not be one of dataset, .* Got 'label'"):
        votes.to_frame()
    with pytest.raises(InputError, match=r"must be long or wide for several datasets\. Got 'crowd-kit'"):
        votes.to_frame(layout="crowd-kit")
    with pytest.raises(InputError, match="`layout` must be one of crowd-kit, long, wide"):
        votes.to_frame(layout="tall")
    with pytest.raises(InputError, match="`library` must be one of pandas, polars"):
        votes.to_frame(library="dask")
    with pytest.raises(InputError, match=r"`dataset` must be given .* Got neither"):
        from_frame(frame_of(1))
    with pytest.raises(InputError, match="`voter_names` must be given with an array alone"):
        from_frame(frame_of(1), voter_names=["a"])
    with pytest.raises(InputError, match=r"Got 2\.0 at row 0, column 1 \('b'\)"):
        from_frame(np.array([[1, 2]]), dataset="news", voter_names=["a", "b"])


def test_import_loads_no_library_of_frames():
    """`import deep` costs what it did."""
    code = "import sys, deep; assert not {'numpy', 'pandas', 'polars', 'pyarrow'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)
