"""How a reply becomes a vote, or a reason for none."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep.prompt_pool import list_prompts, load_prompt

STEPS = load_prompt("deep-strict-steps")
NUMBERS = load_prompt("deep-numbers")
YES_NO = load_prompt("yes-no")
POINTS = load_prompt("direct-assessment")
STARS = load_prompt("five-stars")
JSON_DIRECT = load_prompt("fect-basic-direct-json")
JSON_REASONED = load_prompt("fect-3d-reasoned-json")
XML = load_prompt("fect-3d-reasoned-xml")
ALL = [load_prompt(name) for name in list_prompts()]


def outcome(prompt, text, **said):
    """Return the vote, or the reason where there is none."""
    judgment = prompt.parse(text, **said)
    return judgment.vote if judgment.reason is None else judgment.reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # read correctly by the original parser, and here
        ("SUPPORTED", 1),
        ("NOT SUPPORTED", 0),
        ("Unsupported.", 0),
        # read as consistent by the original parser
        ("VERDICT: not consistent with the article", "unparsable"),
        ("VERDICT: not fully supported", "unparsable"),
        ("VERDICT: isn't supported", "unparsable"),
        ("VERDICT: cannot be supported", "unparsable"),
        ("VERDICT: partially supported", "unparsable"),
        ("VERDICT: not-supported", 0),
        ("VERDICT: NOT  SUPPORTED", 0),
        ("VERDICT: NOT **SUPPORTED**", 0),
        ("VERDICT: not\nsupported", 0),
        # read as inconsistent by the original parser
        ("nothing inconsistent. Answer: SUPPORTED", 1),
        ("nothing inconsistent.\nVERDICT: SUPPORTED", 1),
        ("If you are not sure, output NOT SUPPORTED; I am sure.\nVERDICT: SUPPORTED", 1),
        ("(SUPPORTED or NOT SUPPORTED): SUPPORTED", "unparsable"),
        # not read, or a crash
        ("NOT_SUPPORTED", 0),
        ("yes", "unparsable"),
        ("", "unparsable"),
        ("supports", "unparsable"),
        (None, "unparsable"),
        (0.5, "unparsable"),
    ],
)
def test_traps_of_the_original_parser(text, expected):
    """Every text that the original repository's parser misreads, and what it reads well."""
    assert outcome(STEPS, text) == expected


@pytest.mark.parametrize(
    "line",
    [
        "VERDICT: NOT SUPPORTED",
        "verdict: not supported",
        "**VERDICT: NOT SUPPORTED**",
        "**VERDICT:** NOT SUPPORTED.",
        "### Final verdict: `NOT SUPPORTED`",
        "- VERDICT : “Not Supported”",
        "VERDICT\uff1a NOT SUPPORTED!",
        "VERDICT: (NOT\u00a0SUPPORTED)",
        "VERDICT:\n\n  NOT SUPPORTED\n\n",
        "VERDICT: \uff2e\uff2f\uff34 \uff33\uff35\uff30\uff30\uff2f\uff32\uff34\uff25\uff24",
        "```\nVERDICT: NOT SUPPORTED\n```",
        "VERDICT: UNSUPPORTED\n---",
        "VERDICT: NOT SUPPORTED\r\n",
        "<think>SUPPORTED, surely.</think>VERDICT: NOT SUPPORTED",
        "VERDICT: NOT SUPPORTED\nVERDICT: NOT SUPPORTED",
        "VERDICT: NOT SUPPORTED\n\n**Final verdict:** unsupported",
    ],
)
def test_case_markdown_and_white_space_do_not_matter(line):
    """A verdict dressed up is the same verdict, with reasoning before it that names the other label."""
    assert outcome(STEPS, line) == 0
    assert outcome(STEPS, f"At first sight it is SUPPORTED.\n{line}") == 0


@pytest.mark.parametrize(
    "text",
    [
        "VERDICT: SUPPORTED\nVERDICT: NOT SUPPORTED",
        "VERDICT: SUPPORTED\n\n**VERDICT:** UNSUPPORTED",
        "VERDICT: SUPPORTED / NOT SUPPORTED",
        "VERDICT: SUPPORTED or NOT SUPPORTED",
        "VERDICT: SUPPORTED?",
        "VERDICT: ~~SUPPORTED~~",
        "VERDICT: ¬SUPPORTED",
        "VERDICT: SUPPORTED (in part)",
        "VERDICT: SUPPORTED\n\nOn second thoughts the date is wrong.",
        "VERDICT: SUPPORTED, but the date is wrong",
        'The article says "VERDICT: SUPPORTED"',
        "The article says VERDICT: SUPPORTED",
        "> VERDICT: SUPPORTED",
        "Some would say that the verdict is SUPPORTED",
        "PREVERDICT: SUPPORTED",
        "VERDICT: ",
        "VERDICT: " + "very " * 100 + "SUPPORTED",
    ],
)
def test_what_is_no_clear_verdict_is_no_vote(text):
    """A contradiction, a hedge, a remark behind it, or a verdict that is only reported."""
    assert outcome(STEPS, text) == "unparsable"


def test_only_declared_labels_count():
    """A label of one prompt is nothing to another; a declared abstention is not unparsable."""
    assert outcome(NUMBERS, "VERDICT: cannot tell") == "abstained"
    assert outcome(STEPS, "VERDICT: cannot tell") == "unparsable"
    assert outcome(YES_NO, "VERDICT: SUPPORTED") == "unparsable"
    assert outcome(YES_NO, "No.") == 0


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("1. The claim says", {"finish_reason": "length"}, "truncated"),
        ("", {"finish_reason": "max_tokens"}, "truncated"),
        (None, {"finish_reason": "LENGTH"}, "truncated"),
        ("So it is.\nVERDICT: NOT", {"finish_reason": "length"}, "truncated"),
        ("So it is.\nVERDICT:", {"finish_reason": "length"}, "truncated"),
        ("SUPPORTED", {"finish_reason": "length"}, "truncated"),
        ("So it is.\nVERDICT: SUPPORTED", {"finish_reason": "length"}, 1),
        ("VERDICT: SUPPORTED\nVERDICT: UNSUPPORTED", {"finish_reason": "length"}, "unparsable"),
        ("VERDICT: SUPPORTED", {"finish_reason": "content_filter"}, "refused"),
        ("VERDICT: SUPPORTED", {"finish_reason": "SAFETY"}, "refused"),
        ("VERDICT: SUPPORTED", {"refusal": "No."}, "refused"),
        (None, {"refusal": "No."}, "refused"),
        ("I'm sorry, but I can\u2019t help with that.", {"finish_reason": "stop"}, "refused"),
        ("As a language model, I am unable to fulfil this request.", {}, "refused"),
        ("I cannot comply.", {}, "refused"),
        ("I can't help but notice a slip.\nVERDICT: SUPPORTED", {}, 1),
        ("The author cannot help it, I think.", {}, "unparsable"),
        ("VERDICT: SUPPORTED", {"finish_reason": "stop"}, 1),
        ("VERDICT: SUPPORTED", {"finish_reason": 7}, 1),
    ],
)
def test_why_the_judge_stopped(text, said, expected):
    """Cut off, withheld, declined in the reply's own words, or complete."""
    assert outcome(STEPS, text, **said) == expected


def test_a_label_that_another_begins_with_may_be_cut_off():
    """With a length limit reached, a label is complete only if no longer one starts with it."""
    labels = {"TRUE": 1, "FALSE": 0, "FALSE IN PART": -1}
    prompt = type(STEPS)(
        id="mine", version="1", family="mine", follows="own", reasons_first=False, labels=labels,
        user="{{claim}} {{source}} {{verdict}} TRUE, FALSE or FALSE IN PART",
    )  # fmt: skip
    assert outcome(prompt, "VERDICT: FALSE", finish_reason="length") == "truncated"
    assert outcome(prompt, "VERDICT: FALSE.", finish_reason="length") == 0
    assert outcome(prompt, "VERDICT: FALSE") == 0
    assert outcome(prompt, "VERDICT: FALSE IN PART", finish_reason="length") == "abstained"


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("SCORE: 85", 0.85),
        ("SCORE: **85/100**", 0.85),
        ("SCORE: 85 out of 100.", 0.85),
        ("SCORE: 85%", 0.85),
        ("score: 7.5 points", 0.075),
        ("SCORE: eighty-five", 0.85),
        ("SCORE: one hundred", 1.0),
        ("SCORE: zero", 0.0),
        ("85", 0.85),
        ("It says 100.\nSCORE: 12", 0.12),
        ("SCORE: 40\nSCORE: 40/100", 0.4),
        ("SCORE: 101", None),
        ("SCORE: -5", None),
        ("SCORE: 8/10", None),
        ("SCORE: 80-85", None),
        ("SCORE: 1,000", None),
        ("SCORE: high", None),
        ("SCORE: 85 or so", None),
        ("SCORE: NaN", None),
        ("SCORE: 1e2", None),
        ("SCORE: 40\nSCORE: 41", None),
        ("SCORE: 8" + "0" * 400, None),
        ("VERDICT: 85", None),
    ],
)
def test_scores_from_0_to_100(text, score):
    """A number within the scale, scaled to [0, 1]; anything else is unparsable."""
    judgment = POINTS.parse(text)
    assert judgment.score == (None if score is None else pytest.approx(score))
    assert judgment.reason == ("unparsable" if score is None else None)


@pytest.mark.parametrize(
    ("text", "score", "vote"),
    [
        ("SCORE: 4 stars", 0.75, 1),
        ("SCORE: 4/5", 0.75, 1),
        ("SCORE: four", 0.75, 1),
        ("Five stars.", 1.0, 1),
        ("SCORE: 3", 0.5, 0),
        ("SCORE: 2.5 of 5", 0.375, 0),
        ("SCORE: 1 star", 0.0, 0),
        ("SCORE: 0", None, -1),
        ("SCORE: 6", None, -1),
        ("SCORE: 40%", None, -1),
    ],
)
def test_stars(text, score, vote):
    """One star is 0, five are 1; the vote is 1 from the declared threshold on."""
    judgment = STARS.parse(text)
    assert (judgment.score, judgment.vote) == (score, vote)


def test_a_number_that_was_cut_off_is_no_score():
    """8 may be the beginning of 85."""
    assert outcome(POINTS, "SCORE: 8", finish_reason="length") == "truncated"
    assert outcome(replace(POINTS, answer_first=True), "8", finish_reason="length") == "truncated"
    assert POINTS.parse("SCORE: 8.\n", finish_reason="length").score == pytest.approx(0.08)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"reasoning": "It is FALSE? No.", "verdict": "TRUE"}', 1),
        ('{"verdict": "FALSE"}', 0),
        ('{"Verdict": " false. "}', 0),
        ('{"verdict": true}', 1),
        ('```json\n{\n  "reasoning": "x",\n  "verdict": "TRUE"\n}\n```', 1),
        ('Here you are:\n\n{"verdict": "TRUE"}', 1),
        ('<think>{"verdict": "FALSE"}</think>{"verdict": "TRUE"}', 1),
        ('It says {"verdict": "FALSE"} somewhere.\n{"verdict": "TRUE"}', 1),
        ('{"verdict": "TRUE"}\n{"verdict": "TRUE"}', 1),
        ('{"verdict": "TRUE"}\n{"verdict": "FALSE"}', "unparsable"),
        ('{"verdict": "TRUE", "verdict": "FALSE"}', "unparsable"),
        ('{"verdict": "TRUE", "Verdict": "FALSE"}', "unparsable"),
        ('{"verdict": "TRUE"} though I doubt it', "unparsable"),
        ('It says {"verdict": "TRUE"}', "unparsable"),
        ('{"verdict": "TRUE"', "unparsable"),
        ('{"verdict": null}', "unparsable"),
        ('{"verdict": 1}', "unparsable"),
        ('{"verdict": ["TRUE"]}', 1),
        ('{"verdict": ["TRUE", "FALSE"]}', "unparsable"),
        ('{"reply": {"verdict": "TRUE"}}', 1),
        ('{"first": {"verdict": "TRUE"}, "second": {"verdict": "FALSE"}}', "unparsable"),
        ('{"reply": ' * 900 + '{"verdict": "TRUE"}' + "}" * 900, "unparsable"),
        ('[{"verdict": "TRUE"}]', 1),
        ('[{"verdict": "TRUE"}, {"verdict": "FALSE"}]', "unparsable"),
        ('[\n{"verdict": "TRUE"},\n{"verdict": "FALSE"}\n]', "unparsable"),
        ("TRUE", 1),
        ("VERDICT: TRUE", 1),
        ("<verdict>TRUE</verdict>", 1),
        ("{'verdict': 'FALSE',}", 0),
        ('{"reasoning": "the "14" is wrong", "verdict": "FALSE"}', 0),
        ('{"verdict": "TRUE", "verdict": "FALSE",}', "unparsable"),
        ('{"verdict": ' + "[" * 100_000, "unparsable"),
        ('{"verdict": ' + "9" * 10_000 + "}", "unparsable"),
    ],
)
def test_json(text, expected):
    """The object that closes the reply decides, by its own key and a declared label."""
    assert outcome(JSON_REASONED, text) == expected
    assert outcome(JSON_DIRECT, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<reasoning>It is FALSE? No.</reasoning><verdict>TRUE</verdict>", 1),
        ("<verdict> false </verdict>\n", 0),
        ("```xml\n<answer><verdict>TRUE</verdict></answer>\n```", 1),
        ("<VERDICT>**FALSE**</VERDICT>", 0),
        ("<verdict>FALSE</verdict> it says.\n<verdict>TRUE</verdict>", 1),
        ("<verdict>TRUE</verdict><verdict>FALSE</verdict>", "unparsable"),
        ("<verdict>TRUE or FALSE</verdict>", "unparsable"),
        ("<verdict>TRUE</verdict>, as I said", "unparsable"),
        ("<reasoning>it says <verdict>TRUE</verdict></reasoning>", "unparsable"),
        ("<verdict>TRUE", "unparsable"),
        ("VERDICT: TRUE", 1),
    ],
)
def test_xml(text, expected):
    """The element that closes the reply decides."""
    assert outcome(XML, text) == expected


def test_an_element_of_any_name():
    """A verdict in one may begin the reply; a score in one must be all of it."""
    assert outcome(YES_NO, "<foo>YES</foo> Because it says so.") == 1
    assert outcome(POINTS, "<foo>80</foo>") == 0
    assert outcome(POINTS, "<foo>80</foo> Because it says so.") == "unparsable"


@pytest.mark.parametrize("prompt", [JSON_REASONED, XML], ids=["json", "xml"])
def test_structured_replies_that_were_cut_off(prompt):
    """What is not closed is truncated, what is closed is complete."""
    assert outcome(prompt, '{"verdict": "TRU', finish_reason="length") == "truncated"
    assert outcome(prompt, "<verdict>TRU", finish_reason="length") == "truncated"
    closed = '{"verdict": "TRUE"}' if prompt is JSON_REASONED else "<verdict>TRUE</verdict>"
    assert outcome(prompt, closed, finish_reason="length") == 1


def test_scores_as_json():
    """A prompt may ask for a score as JSON; its number may be a number or a string, and no truth value."""
    prompt = type(POINTS)(
        id="mine", version="1", family="mine", follows="own", reasons_first=True, kind="score", output="json",
        scale=(0, 10), threshold=0.7, user='{{claim}} {{source}} "{{verdict}}" from 0 to 10',
    )  # fmt: skip
    assert prompt.schema()["properties"]["score"] == {"type": "number"}
    assert prompt.parse('{"score": 7}').vote == 1
    assert prompt.parse('{"score": "6.5"}').vote == 0
    assert outcome(prompt, '{"score": true}') == "unparsable"
    assert outcome(prompt, '{"score": NaN}') == "unparsable"


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (STEPS, 'The source says "it rained all night" and “it was cold”.\nVERDICT: SUPPORTED'),
        (XML, "<reasoning>The source says “it rained all night” and “it was cold”.</reasoning><verdict>TRUE</verdict>"),
        (
            JSON_REASONED,
            json.dumps({"reasoning": 'The source says "it rained all night" and “it was cold”.', "verdict": "TRUE"}),
        ),
    ],
    ids=["text", "xml", "json"],
)
def test_rationale_and_evidence(prompt, text):
    """The reasoning is kept without the answer, the passages it quotes by themselves, the reply as it came."""
    judgment = prompt.parse(text)
    assert judgment.rationale.startswith("The source says")
    assert judgment.rationale.endswith("cold”.")
    assert judgment.evidence == ("it rained all night", "it was cold")
    assert judgment.raw_text == text


def test_nothing_is_made_up_where_nothing_is_said():
    """No reasoning, no rationale; no log-probabilities, no score; a refusal is kept as the reply."""
    judgment = STEPS.parse("VERDICT: SUPPORTED")
    assert (judgment.rationale, judgment.evidence, judgment.score) == (None, (), None)
    assert STEPS.parse(None, refusal="No.").raw_text == "No."


said_anything = {
    "finish_reason": st.none() | st.text(max_size=5) | st.sampled_from(["stop", "length", "content_filter"]),
    "refusal": st.none() | st.text(max_size=5),
}
PIECES = ["VERDICT:", "Final verdict:", "SUPPORTED", "NOT", "UNSUPPORTED", "NOT SUPPORTED", "CANNOT TELL", "\n", "\n\n"]
PIECES += [
    " ",
    "**",
    "`",
    ".",
    '"',
    ">",
    "- ",
    "#",
    "{",
    "}",
    '"verdict": ',
    "<verdict>",
    "</verdict>",
    "TRUE",
    "FALSE",
]
PIECES += ["SCORE:", "85", "/100", "the claim", "</think>", "-0a1b2c3d", "\u2019", "_", "SUPPORTED\n", "VERDICT: "]
soup = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=15).map("".join)


@given(prompt=st.sampled_from(ALL), text=soup | st.text(), **said_anything)
def test_any_reply_gives_a_vote_or_a_reason(prompt, text, finish_reason, refusal):
    """Whatever comes back is read without an error, and a vote is never made of nothing."""
    judgment = prompt.parse(text, finish_reason=finish_reason, refusal=refusal)
    assert (judgment.vote == -1) == (judgment.reason is not None)
    assert judgment.score is None or 0 <= judgment.score <= 1


@given(text=soup)
def test_only_a_delimited_final_verdict_decides(text):
    """Where there is a vote, its label stands behind the last marker or in the last line, and no other does."""
    vote = NUMBERS.parse(text).vote
    if vote == -1:
        return
    last = re.split(r"(?i)verdict(?:-[0-9a-f]{8})?[*_`\s]*[:\uff1a]", text)[-1]
    message = " ".join(re.sub(r"[\W_]+", " ", last).split()).casefold()
    negative = re.search(r"\b(?:not ?supported|unsupported)\b", message)
    assert "supported" in message
    assert bool(negative) == (vote == 0)


@given(before=soup | st.text(), vote=st.sampled_from([0, 1]))
def test_what_stands_before_the_verdict_does_not_change_it(before, vote):
    """Reasoning may name any label; unless it ends in another verdict, the last line decides."""
    label = {1: "SUPPORTED", 0: "NOT SUPPORTED"}[vote]
    judgment = NUMBERS.parse(f"{before}\nSo much for that.\nVERDICT: {label}")
    assert judgment.vote == vote


@given(document=soup | st.text(), vote=st.sampled_from([0, 1]))
def test_a_quoted_document_does_not_change_the_verdict(document, vote):
    """The same for a document that ends like a verdict, quoted right before the judge's own answer."""
    label = {1: "SUPPORTED", 0: "NOT SUPPORTED"}[vote]
    asked = NUMBERS.render(document, "It rained.")[-1]["content"]
    marker = re.findall(r"VERDICT[^ :]*:", asked)[-1]
    reply = f"{document}\n{marker} {label}"
    assert NUMBERS.parse(reply, source=document, claim="It rained.").vote == vote


@given(reasoning=soup | st.text(), verdict=st.sampled_from(["TRUE", "FALSE"]))
def test_reasoning_inside_a_structure_does_not_change_the_verdict(reasoning, verdict):
    """Reasoning inside JSON may hold anything."""
    reply = json.dumps({"reasoning": reasoning, "verdict": verdict})
    assert JSON_REASONED.parse(reply).vote == int(verdict == "TRUE")


@given(
    label=st.sampled_from(["SUPPORTED", "NOT SUPPORTED", "UNSUPPORTED"]),
    dress=st.sampled_from(["{}", "**{}**", "`{}`", '"{}"', "({})", "{}.", "  {}\n", "_{}_", "[{}]"]),
    spelled=st.sampled_from([str.upper, str.lower, str.title]),
    gap=st.sampled_from([" ", "  ", "\n", "-", "_", " **", "\u00a0"]),
)
def test_a_dressed_up_label_is_the_same_label(label, dress, spelled, gap):
    """Case, markdown, quotes and the gap between two words carry no meaning."""
    text = "VERDICT: " + dress.format(spelled(label).replace(" ", gap))
    assert STEPS.parse(text).vote == STEPS.labels[label]
