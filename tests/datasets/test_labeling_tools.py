"""Exports of Argilla (layouts of 2.8.0, as its own classes write them) and of Label Studio (its task format)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep import InputError
from deep.datasets import read_argilla, read_label_studio

ANSWERS = {"supported": 1, "not": 0, "unsure": None}


def saved(path, records):
    """Write an export."""
    path.write_text(records if isinstance(records, str) else json.dumps(records), encoding="utf-8")
    return path


def argilla(item, *said):
    """Return a record as `to_json` writes it; `said` are users with their answers."""
    responses = [{"value": value, "user_id": user} for user, value in said]
    suggested = {"verdict": {"value": "supported", "score": None, "agent": "m"}}
    return {
        "id": item, "fields": {"text": "x"}, "metadata": {}, "suggestions": suggested,
        "responses": {"verdict": responses} if said else {}, "vectors": {}, "status": "pending", "_server_id": None,
    }  # fmt: skip


def flattened(item, *said):
    """Return a record as `to_list(flatten=True)` gives it; `said` are users, answers and states."""
    columns = [list(column) for column in zip(*said, strict=True)] or [None] * 3
    keys = ("verdict.responses.users", "verdict.responses", "verdict.responses.status")
    return {"id": item, "status": "pending", "_server_id": None, "text": "x", **dict(zip(keys, columns, strict=True))}


def task(item, *said, **more):
    """Return a task of Label Studio; `said` are annotators with their choices."""
    annotations = [
        {"id": 1, "completed_by": by, "was_cancelled": False, "result": [
            {"from_name": "verdict", "to_name": "text", "type": "choices", "value": {"choices": [choice]}},
            {"from_name": "why", "to_name": "text", "type": "textarea", "value": {"text": ["because"]}},
        ]}
        for by, choice in said
    ]  # fmt: skip
    return {"id": item, "data": {"text": "x"}, "annotations": annotations, "predictions": [], **more}


def test_records_of_argilla(tmp_path):
    """A voter a user, no vote where a user gave no answer or one that is none; records without an answer stay."""
    records = [argilla("a", ("u1", "supported"), ("u2", "not")), argilla("b", ("u2", "unsure")), argilla("c")]
    votes = read_argilla(saved(tmp_path / "r.json", records), "verdict", ANSWERS, dataset="news")
    assert votes.voter_names == ("u1", "u2")
    assert votes.votes.tolist() == [[1, 0], [-1, -1], [-1, -1]]
    assert votes.example_ids.tolist() == ["a", "b", "c"]
    assert set(votes.datasets) == {"news"}


def test_drafts_and_discarded_responses_of_argilla_are_no_votes(tmp_path):
    """Where the export says so."""
    records = [
        flattened("a", ("u1", "supported", "submitted"), ("u2", "not", "draft"), ("u3", "not", "discarded")),
        flattened("b", ("u2", "not", "submitted")),
        flattened("c"),
    ]
    votes = read_argilla(saved(tmp_path / "r.json", records), "verdict", ANSWERS, dataset="news")
    assert votes.voter_names == ("u1", "u2")
    assert votes.votes.tolist() == [[1, -1], [-1, 0], [-1, -1]]


def test_tasks_of_label_studio(tmp_path):
    """By e-mail address where there is one; skipped annotations, drafts and predictions are no votes."""
    skipped = task(8, (1, "not"))
    skipped["annotations"][0]["was_cancelled"] = True
    drafts = task(9, drafts=task(9, (1, "not"))["annotations"], predictions=task(9, (1, "not"))["annotations"])
    records = [task(7, ({"id": 2, "email": "ann@x.org"}, "supported"), (1, "not")), skipped, drafts]
    votes = read_label_studio(saved(tmp_path / "p.json", records), "verdict", ANSWERS, dataset="news")
    assert votes.voter_names == ("ann@x.org", "1")
    assert votes.votes.tolist() == [[1, 0], [-1, -1], [-1, -1]]
    assert votes.example_ids.tolist() == ["7", "8", "9"]


READERS = {"argilla": read_argilla, "label studio": read_label_studio}


@pytest.mark.parametrize(
    ("tool", "records", "message"),
    [
        ("argilla", [argilla("a", ("u", "maybe"))], r"name every answer, now 'supported', .* Got 'maybe' in record 1"),
        ("argilla", [argilla("a", ("u", None))], "Got None in record 1"),
        ("argilla", [argilla("a", ("u", ["not"]))], r"Got \['not'\] in record 1"),
        ("argilla", [argilla("a", ("u", "not"), ("u", "not"))], r"one answer of a person\. Got two of 'u' in record 1"),
        ("argilla", [argilla("a", ("u", "not")), argilla("a")], "each item once. Got 'a' again in record 2"),
        ("argilla", [argilla("\ud800", ("u", "not"))], r"items in plain text, .* Got '\\ud800' in record 1"),
        ("argilla", [argilla("a")], "`question` must be one that somebody answered. Got 'verdict'"),
        ("argilla", [task(1, (1, "not"))], "must be Argilla's records. Got another layout in record 1"),
        ("label studio", [argilla("a")], "must be Label Studio's export as JSON. Got another layout in record 1"),
        ("label studio", [{"id": 1, "verdict": "not", "annotator": 1}], "Got another layout in record 1"),
        ("label studio", "[", r"must be Label Studio's export as JSON\. Got '.*p\.json': Expecting value"),
        ("label studio", "{}", "a list of records. Got {} in"),
        ("label studio", "[" * 100_000, "nested too deeply|Got"),
    ],
)
def test_what_is_no_export_is_one_line(tool, records, message, tmp_path):
    """With the record; an answer without a meaning is never a vote."""
    path = saved(tmp_path / "p.json", records)
    with pytest.raises(InputError, match=message) as caught:
        READERS[tool](path, "verdict", ANSWERS, dataset="news")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_bad_arguments(reader, tmp_path):
    """A vote that is none, no answers, no file."""
    path = saved(tmp_path / "p.json", [task(1, (1, "not"))])
    for answers in ({"yes": 2}, {}):
        with pytest.raises(InputError, match="`answers` must give 1, 0 or None for each answer"):
            reader(path, "verdict", answers, dataset="news")
    with pytest.raises(InputError, match="`path` must be"):
        reader(tmp_path / "absent.json", "verdict", ANSWERS, dataset="news")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "responses", "annotations", "result", "verdict", "completed_by"]), inner
        )
    ),
    max_leaves=8,
)


@given(records=JSON)
def test_any_json_is_read_or_refused(records, tmp_path_factory):
    """Never another error."""
    path = saved(tmp_path_factory.mktemp("json") / "p.json", records if not isinstance(records, str) else "0")
    for reader in READERS.values():
        try:
            found = reader(path, "verdict", ANSWERS, dataset="news")
        except InputError:
            continue
        assert set(found.votes.ravel()) <= {1, 0, -1}
