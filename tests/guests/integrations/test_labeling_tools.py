"""Exports of Argilla (layouts of 2.8.0, as its own classes write them) and of Label Studio (its task format)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep import InputError
from deep.integrations.foreign import ForeignOptions, read_foreign

MEANT = {"answer": "verdict", "yes": ("supported",), "no": ("not",), "none": ("unsure",), "dataset": "news"}


def read(path, **options):
    """Return the votes of an export."""
    return read_foreign([path], ForeignOptions(**{**MEANT, **options})).votes()


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
    votes = read(saved(tmp_path / "r.json", records))
    assert votes.voter_names == ("u1", "u2")
    assert votes.votes.tolist() == [[1, 0], [-1, -1], [-1, -1]]
    assert votes.item_ids.tolist() == ["a", "b", "c"]
    assert set(votes.datasets) == {"news"}


def test_drafts_and_discarded_responses_of_argilla_are_no_votes(tmp_path):
    """Where the export says so."""
    records = [
        flattened("a", ("u1", "supported", "submitted"), ("u2", "not", "draft"), ("u3", "not", "discarded")),
        flattened("b", ("u2", "not", "submitted")),
        flattened("c"),
    ]
    votes = read(saved(tmp_path / "r.json", records))
    assert votes.voter_names == ("u1", "u2")
    assert votes.votes.tolist() == [[1, -1], [-1, 0], [-1, -1]]


def test_tasks_of_label_studio(tmp_path):
    """By e-mail address where there is one; skipped annotations, drafts and predictions are no votes."""
    skipped = task(8, (1, "not"))
    skipped["annotations"][0]["was_cancelled"] = True
    drafts = task(9, drafts=task(9, (1, "not"))["annotations"], predictions=task(9, (1, "not"))["annotations"])
    records = [task(7, ({"id": 2, "email": "ann@x.org"}, "supported"), (1, "not")), skipped, drafts]
    votes = read(saved(tmp_path / "p.json", records))
    assert votes.voter_names == ("1", "ann@x.org")
    assert votes.votes.tolist() == [[0, 1], [-1, -1], [-1, -1]]
    assert votes.item_ids.tolist() == ["7", "8", "9"]


def test_what_is_no_export_is_one_line(tmp_path):
    """An answer without a meaning is never a vote."""
    twice = r"one answer per person and item\. Got 'not' and 'supported' of 'u'"
    for records, message in (
        ([argilla("a", ("u", "maybe"))], r"^`yes` and `no` must say what the answers mean\. Got 'maybe' \(1\)"),
        ([argilla("a", ("u", "not"), ("u", "supported"))], twice),
        ([argilla("\ud800", ("u", "not"))], r"items in plain text, .* Got '\\ud800'"),
        ([task(1, (1, "not"), (1, "supported"))], "one answer per person and item"),
        ([argilla("a", ("u", "not")), argilla("b", ("u", {"a": 1}))], "must say what the answers mean"),
        ("[", "must hold a JSON object a line"),
        ("[" * 100_000, "`files` must"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            read(saved(tmp_path / "p.json", records))
        assert "\n" not in str(caught.value)


def test_an_item_that_comes_twice_is_told_apart(tmp_path):
    """And is of the same document."""
    path = saved(tmp_path / "r.json", [argilla("a", ("u", "not")), argilla("a", ("u", "supported"))])
    votes = read(path)
    assert (votes.item_ids.tolist(), votes.document_ids.tolist()) == (["a", "a#2"], ["a", "a"])


KEYS = ["id", "responses", "annotations", "result", "verdict", "completed_by"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)


@given(records=JSON)
def test_any_json_is_read_or_refused(records, tmp_path_factory):
    """Never another error."""
    path = saved(tmp_path_factory.mktemp("json") / "p.json", records if not isinstance(records, str) else "0")
    try:
        result = read(path)
    except InputError:
        return
    assert set(result.votes.ravel()) <= {1, 0, -1}
