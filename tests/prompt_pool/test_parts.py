"""What a judge lists before its verdict becomes the judgment's evidence, and never its vote."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep.prompt_pool import Prompt, load_prompt

JSON = load_prompt("fect-3d-reasoned-json")
XML = load_prompt("fect-3d-reasoned-xml")
SAID = {
    "units": ["the guest left", "the room was noisy"],
    "concrete": ["guest", "room"],
    "interpretive": ["noisy"],
    "failed": ["the noise was why the guest left"],
}
EVIDENCE = (
    "units: the guest left",
    "units: the room was noisy",
    "concrete: guest",
    "concrete: room",
    "interpretive: noisy",
    "failed: the noise was why the guest left",
)
XML_REPLY = """<units>
- the guest left
- the room was noisy
</units>
<concrete>
guest
room
</concrete><interpretive>noisy</interpretive>
<failed>
• the noise was why the guest left
</failed>
<reasoning>No tie is said.</reasoning>
<verdict>FALSE</verdict>"""


def test_json_lists_are_evidence():
    """Each entry goes with the name of its list; the reasoning stays the rationale."""
    judgment = JSON.parse(json.dumps({**SAID, "reasoning": "No tie is said.", "verdict": "FALSE"}))
    assert (judgment.vote, judgment.evidence, judgment.rationale) == (0, EVIDENCE, "No tie is said.")


def test_xml_elements_are_evidence():
    """One entry a line, with or without the signs of a list."""
    judgment = XML.parse(XML_REPLY)
    assert (judgment.vote, judgment.evidence, judgment.rationale) == (0, EVIDENCE, "No tie is said.")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (json.dumps(SAID), "unparsable"),
        (json.dumps({**SAID, "verdict": "MAYBE"}), "unparsable"),
        (json.dumps({**SAID, "verdict": None}), "unparsable"),
        ('{"units": ["a"], "verdict"', "unparsable"),
        ("", "unparsable"),
    ],
)
def test_lists_without_a_verdict_are_no_vote(said, reason):
    """Whatever was found, only a verdict is one."""
    assert JSON.parse(said).reason == reason
    assert XML.parse(XML_REPLY.replace("verdict", "opinion")).reason == "unparsable"


@pytest.mark.parametrize("lists", [{}, {"units": "the guest left"}, {"units": None}, {"failed": [None, 3, " "]}])
def test_a_verdict_without_lists_is_a_vote(lists):
    """What is no list of texts is left out, and the verdict stands."""
    judgment = JSON.parse(json.dumps({**lists, "reasoning": "so", "verdict": "TRUE"}))
    assert (judgment.vote, judgment.evidence) == (1, ())


entries = st.dictionaries(st.sampled_from(JSON.parts), st.lists(st.text()) | st.text() | st.integers() | st.none())


@given(lists=entries, verdict=st.sampled_from(["TRUE", "FALSE"]))
def test_no_list_changes_the_verdict(lists, verdict):
    """Any content of the lists leaves the vote to the verdict."""
    judgment = JSON.parse(json.dumps({**lists, "verdict": verdict}))
    assert judgment.vote == int(verdict == "TRUE")
    assert all(entry.partition(": ")[0] in JSON.parts for entry in judgment.evidence)


soup = st.lists(st.sampled_from(["<units>", "</units>", "<failed>", "</failed>", "a", "\n"])).map("".join)


@given(text=st.text(alphabet="<>/unitsfaled \n-") | soup)
def test_any_xml_is_read_without_an_error(text):
    """Unclosed, nested and repeated elements give what can be read of them."""
    assert XML.parse(f"{text}<verdict>TRUE</verdict>").vote == 1


def test_the_schema_asks_for_the_lists_before_the_verdict():
    """In the order that the prompt gives."""
    schema = JSON.schema()
    assert list(schema["properties"]) == ["units", "concrete", "interpretive", "failed", "reasoning", "verdict"]
    assert schema["properties"]["failed"] == {"type": "array", "items": {"type": "string"}}
    assert schema["required"] == list(schema["properties"])


def mine(**fields):
    """Return a prompt with parts."""
    user = "{{source}} {{claim}} Give units, then {{verdict}}: TRUE or FALSE."
    common = {"id": "mine", "version": "1", "family": "mine", "follows": "own", "reasons_first": False, "user": user}
    return Prompt(**{**common, "labels": {"TRUE": 1, "FALSE": 0}, "output": "json", "document_first": True, **fields})


def test_parts_are_identity_only_where_there_are_any():
    """A prompt with parts is another one; one without is what it was before there were any."""
    assert mine(parts=("units",)).hash != mine().hash
    assert mine(parts=["units"]).hash == mine(parts=("units",)).hash
