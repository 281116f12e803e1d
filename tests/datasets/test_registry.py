"""Names of datasets as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep._util.names import family_of, resolve_dataset
from deep.datasets import published_datasets
from tests.datasets.tables import fault

PAPER = [dataset.name for dataset in published_datasets()]
BENCHMARK = ["AggreFact-CNN", "AggreFact-XSum", "TofuEval-MediaS", "TofuEval-MeetB", "Wice", "Reveal", "RAGTruth"]
PLAIN = ["aggrefact-cnn", "aggrefact-xsum", "ragtruth", "reveal", "tofueval-mediasum", "tofueval-meetingbank", "wice"]


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("wice", PLAIN, "wice"),
        ("WICE", PLAIN, "wice"),
        ("wice", BENCHMARK, "Wice"),
        ("aggrefact", PAPER, "aggrefact-xsum"),
        ("aggrefact", PLAIN, "aggrefact-xsum"),
        ("AggreFact", BENCHMARK, "AggreFact-XSum"),
        ("aggrefact", ["aggrefact-cnn", "wice"], "aggrefact-cnn"),
        ("aggrefact", ["aggrefact", "aggrefact-xsum"], "aggrefact"),
        ("aggrefact_xsum", PLAIN, "aggrefact-xsum"),
        ("AggreFact-XSUM FTSOTA", PAPER, "aggrefact-xsum"),
        ("TofuEval MeetingBank Summary-Level", BENCHMARK, "TofuEval-MeetB"),
        ("tofueval-mediasum", BENCHMARK, "TofuEval-MediaS"),
        ("TofuEval-MediaS", PLAIN, "tofueval-mediasum"),
        ("halueval", PAPER, "halueval-summarization"),
        ("mediasum", BENCHMARK, "TofuEval-MediaS"),
        ("meetingbank", PLAIN, "tofueval-meetingbank"),
        ("xsum", ["cnn-xsum", "xsum-b", "AggreFact-XSum"], "AggreFact-XSum"),
        ("rev", PLAIN, "reveal"),
        ("truth", BENCHMARK, "RAGTruth"),
        ("w", ["wice", "view"], "wice"),
        ("Wice", ["WICE", "Wice", "wice"], "Wice"),
    ],
)
def test_what_a_name_means(name, known, expected):
    """The exact name comes first, then spellings, short names, beginnings and parts."""
    assert resolve_dataset(name, known) == expected


def test_names_that_mean_none_or_several_list_what_there_is():
    """Nothing that matches: the names are listed, sorted; one that several have in common is not guessed at."""
    for name in ("lfqa", "", "  ", "aggrefact-xsum-2", "-"):
        message = fault(resolve_dataset, name, ["wice", "reveal"], param="test")
        assert message == f"`test` must be one of reveal, wice. Got {name!r}."
    known = ["wice", "tofueval-meetingbank", "reveal", "rewrite", "tofueval-mediasum"]
    for name, options in (
        ("tofueval", "tofueval-mediasum, tofueval-meetingbank"),
        ("re", "reveal, rewrite"),
        ("i", "rewrite, wice"),
    ):
        some = [dataset for dataset in known if name == "tofueval" or not dataset.startswith("tofu")]
        assert fault(resolve_dataset, name, some) == (
            f"`dataset` must name one dataset. Got {name!r}, which could be any of {options}."
        )


@given(known=st.lists(st.text(), min_size=1, unique=True), data=st.data())
def test_every_known_name_means_itself(known, data):
    """Whatever other datasets there are, a full name is taken as it is."""
    name = data.draw(st.sampled_from(known))
    assert resolve_dataset(name, known) == name


@pytest.mark.parametrize(
    ("dataset", "family"),
    [
        ("aggrefact-cnn", "aggrefact"),
        ("AggreFact-XSum", "aggrefact"),
        ("AggreFact-CNN/DM FTSOTA", "aggrefact"),
        ("tofueval-mediasum", "tofueval"),
        ("TofuEval-MeetB", "tofueval"),
        ("halueval-summarization", "halueval"),
        ("halueval-qa", "halueval"),
        ("RAGTruth", "RAGTruth"),
        ("xsum", "xsum"),
    ],
)
def test_families(dataset, family):
    """Siblings share a family in both spellings; any other dataset is its own."""
    assert family_of(dataset) == family
