"""Holding out: nothing of the held-out dataset, its siblings or its documents is trained on."""

import numpy as np
import pytest

from deep.evaluate._holdout import hold_out
from deep.exceptions import InputError
from deep.records import VoteMatrix


def votes_of(datasets, labels, documents=None, families=None):
    """Return one voter's votes for the datasets and labels given."""
    return VoteMatrix([[1]] * len(labels), range(len(labels)), ["v"], datasets, labels, documents, families)


def test_dataset_leaves_training():
    """The held-out dataset is the test set, all others are trained on."""
    split = hold_out(votes_of(list("aabbcc"), [0, 1] * 3), "b")
    assert split.test_rows.tolist() == [2, 3]
    assert split.train_rows.tolist() == [0, 1, 4, 5]
    assert (split.dropped, split.warnings) == (0, [])


def test_family_leaves_training_with_it():
    """With families, the siblings of the held-out dataset are not trained on either."""
    votes = votes_of(list("aabbcc"), [0, 1] * 3, families={"a": "kin", "b": "kin"})
    assert hold_out(votes, "b", unit="family").train.dataset_names == ("c",)
    assert hold_out(votes, "b").train.dataset_names == ("a", "c")


def test_held_out_dataset_needs_no_labels():
    """Labels may be missing in the held-out dataset."""
    assert hold_out(votes_of(list("aabb"), [0, 1, -1, -1]), "b").test.labels.tolist() == [-1, -1]


def test_rows_of_held_out_documents_are_dropped_and_counted():
    """A training row whose document is held out is not trained on."""
    documents = ["x", "y", "z", "x", "q", "r", "s", "t"]
    split = hold_out(votes_of(list("aaabbccc"), [1, 1, 0, 0, 1, 0, 1, 0], documents), "b")
    assert split.dropped == 1
    assert 0 not in split.train_rows
    assert "1 training rows were dropped" in split.warnings[0]


def test_a_dataset_left_with_one_class_goes_whole():
    """Where dropping leaves a dataset one class only, all of it leaves the training."""
    documents = ["x", "y", "x", "q", "r", "s"]
    split = hold_out(votes_of(list("aabbcc"), [0, 1, 0, 1, 0, 1], documents), "b")
    assert split.train.dataset_names == ("c",)
    assert split.dropped == 2


def test_shared_documents_are_kept_where_nothing_would_be_left():
    """Datasets over the same documents are trained on all the same, with a warning."""
    split = hold_out(votes_of(list("aabb"), [0, 1, 0, 1], ["x", "y"] * 2), "b")
    assert split.dropped == 0
    assert len(split.train_rows) == 2
    assert "2 training rows share a document" in split.warnings[0]


@pytest.mark.parametrize(
    ("datasets", "labels", "unit", "message"),
    [
        ("aa", [0, 1], "dataset", "two dataset names.*Got only 'a'. Add labels of other datasets, .* use `deep fit`"),
        ("aabb", [0, 1, 0, 1], "family", "at least two family names.*Got only 'a'"),
        (
            "aabb",
            [0, 1, 0, -1],
            "dataset",
            "0 or 1 in every training dataset. Got none for item '3' of",
        ),
        ("aabb", [0, 1, 1, 1], "dataset", "`label` must hold both 0 and 1 .* Got only 1 in dataset 'b'"),
    ],
)
def test_what_cannot_be_trained_on(datasets, labels, unit, message):
    """Each unusable split is one line that names dataset and item."""
    votes = votes_of(list(datasets), labels, families={"a": "kin", "b": "kin"})
    with pytest.raises(InputError, match=message):
        hold_out(votes, "a", unit=unit)


def test_split_is_disjoint_and_complete():
    """Every row is in the test set, in the training set, or counted as dropped."""
    rng = np.random.default_rng(0)
    votes = votes_of(rng.choice(list("abcd"), 400), rng.integers(0, 2, 400), rng.integers(0, 300, 400))
    split = hold_out(votes, "a")
    assert not set(split.test_rows) & set(split.train_rows)
    assert len(split.test_rows) + len(split.train_rows) + split.dropped == 400
    assert not set(split.test.document_ids) & set(split.train.document_ids)


def test_what_is_held_out_besides_is_not_trained_on():
    """Nor are rows of its documents: one training set serves all that are held out together."""
    documents = ["x", "y", "z", "q", "x", "s", "t", "u"]
    votes = votes_of(list("aabbccdd"), [0, 1] * 4, documents)
    first, second = (hold_out(votes, name, besides=["a", "b"]) for name in "ab")
    assert (first.test.dataset_names, second.test.dataset_names) == (("a",), ("b",))
    assert first.train_rows.tolist() == second.train_rows.tolist() == [6, 7]
    assert hold_out(votes, "b").train.dataset_names == ("a", "c", "d")


def test_a_training_dataset_of_one_class_is_left_out_and_named():
    """It cannot be learned from, and stops nothing where others can."""
    split = hold_out(votes_of(list("aabbccdd"), [0, 1, 0, 0, 1, 1, 0, 1]), "a")
    assert split.train.dataset_names == ("d",)
    assert split.warnings == ["Not used for training because their labels are all 0 or all 1: b, c."]


def test_unknown_dataset_lists_the_known():
    """A dataset that the votes lack is an error that names those they have."""
    with pytest.raises(InputError, match=r"`test` must be one of a, b. Got 'z'"):
        hold_out(votes_of(list("aabb"), [0, 1, 0, 1]), "z")
