"""The same document in several datasets, files or folds."""

import pytest

from deep.datasets import examples_from_dataset, read_examples, shared_documents
from deep.records import Example, VoteMatrix


def rows(*documents):
    """Return examples of (source, dataset, document_id)."""
    return examples_from_dataset(
        [
            {"source": source, "claim": "c", "dataset": dataset, "document_id": document, "example_id": str(i)}
            for i, (source, dataset, document) in enumerate(documents)
        ]
    )


def test_a_text_in_two_datasets_is_found_whatever_its_id_case_and_spaces():
    """The text decides, since an id says nothing outside its dataset."""
    examples = rows(("It  rained.", "a", "1"), ("it rained. ", "b", "2"), ("It rained.", "b", "2"), ("Else", "b", "1"))
    (shared,) = shared_documents(examples)
    assert (shared.kind, shared.by, shared.document, shared.places) == (
        "datasets",
        "text",
        "It  rained.",
        {"a": 1, "b": 2},
    )


def test_a_text_under_two_ids_or_none_may_straddle_a_fold():
    """Folds are grouped by document id, which must then be one."""
    assert shared_documents(rows(("x", "a", "1"), ("x", "a", "1"), ("y", "a", "2"))) == []
    two, none = shared_documents(rows(("x", "a", "1"), ("x", "a", "2"), ("y", "a", None), ("y", "a", None)))
    assert {two.kind, none.kind} == {"folds"}
    assert (two.places, none.places) == ({"a": 2}, {"a": 2})


def test_training_and_test_files_may_name_the_same_dataset():
    """A part is a place of its own."""
    train, test = rows(("x", "news", "1"), ("y", "news", "2")), rows(("x", "news", "1"), ("z", "news", "3"))
    (shared,) = shared_documents({"train": train, "test": test})
    assert shared.places == {"train: news": 1, "test: news": 1}


def test_votes_are_compared_by_document_id():
    """A vote matrix has no texts; where it has no ids either, nothing can be found."""
    common = {"votes": [[1], [0], [1]], "item_ids": "abc", "voter_names": ["v"], "labels": [1, 0, 1]}
    votes = VoteMatrix(**common, datasets=["x", "y", "y"], document_ids=["d", "d", "e"])
    (shared,) = shared_documents(votes)
    assert (shared.by, shared.document, shared.places) == ("document_id", "d", {"x": 1, "y": 1})
    assert shared_documents(VoteMatrix(**common, datasets=["x", "y", "y"])) == []
    assert shared_documents([Example("", "c", "1", dataset="a"), Example("", "c", "1", dataset="b")]) == []


def test_summeval_shares_its_articles_across_summarisers(data_home):
    """Real votes: twelve datasets of one benchmark summarise the same 100 articles."""
    columns = {"source": "document", "claim": "claim", "example_id": "item_id", "document_id": "doc_id"}
    shared = shared_documents(read_examples(data_home / "summeval_llm" / "texts.csv", columns=columns))
    assert len(shared) == 100
    assert all(len(document.places) == 12 for document in shared)


@pytest.mark.parametrize("name", ["summedits", "fect", "cognibench"])
def test_no_published_benchmark_leaks_within_itself(data_home, monkeypatch, name):
    """SummEdits has one text under two ids, which the loader gives one document id."""
    monkeypatch.setenv("DEEP_DATA_HOME", str(data_home))
    assert shared_documents(read_examples(name)) == []
