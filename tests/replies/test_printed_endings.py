"""The endings that the papers' own printed prompts ask for are read, and their adversarial twins are not."""

import pytest

from deep.prompt_pool import Prompt

USER = "Compare {{source}} {{claim}} Say SUPPORTED, NOT SUPPORTED or UNSUPPORTED; consistent, inconsistent; yes, no."
SUPPORTED = {"SUPPORTED": 1, "NOT SUPPORTED": 0, "UNSUPPORTED": 0}
REASONS = "Step 1: The count is 14 in both.\nStep 2: The day is Monday in both.\n"


def printed(**labels: int) -> Prompt:
    """Return a prompt without fences, as papers print them."""
    return Prompt(
        id="printed", version="1", family="printed", follows="own design", reasons_first=True, fenced=False,
        user=USER, labels=labels,
    )  # fmt: skip


PROMPTS = {
    "deep": printed(**SUPPORTED),
    "li": printed(consistent=1, inconsistent=0),
    "luo": printed(yes=1, no=0),
}
FORMS = (
    "Step 4: The claim is {label}.",
    "Step 6: {label}",
    "Therefore, the claim is marked as {label}.",
    "Answer (SUPPORTED or NOT SUPPORTED): {label}",
    "Thus the summary is classified as '{label}'.",
    "The summary is {label}.",
    "Final answer: The claim is **{label}**.",
    "Based on the comparison, the claim is {label}.",
    "Step 4: {label}. Every fact was found.",
    "Answer: {label}",
    "**Answer (SUPPORTED or NOT SUPPORTED):** {label}",
    "So I conclude that the claim is {label}.",
)
"""Twelve forms with three labels each: 36 endings."""

ENDINGS = [(form.format(label=label), vote) for label, vote in SUPPORTED.items() for form in FORMS]
ENDINGS = [
    (text.replace("Every fact was found", "The day differs") if not vote else text, vote) for text, vote in ENDINGS
]

OTHERS = [
    ("li", "The count is 14 in both, so the summary is consistent.", 1),
    ("li", "The summary is inconsistent with the article.", 0),
    ("li", "The summary is not consistent with the article.", 0),
    ("li", "The summary is not inconsistent with the article.", 1),
    ("luo", "The article says 14 and so does the summary. So the answer is no.", 0),
    ("luo", "The article says 14 and so does the summary. So the answer is yes.", 1),
    ("luo", "Therefore, the answer is: Yes", 1),
    ("luo", "Answer (yes or no): no", 0),
]

TWINS = (
    "The reviewers said that the claim is {label}.",
    "Is the claim {label}?",
    "The claim is {label} or {other}.",
    "The claim could be {label}.",
    "The claim is {label} in part.",
    "The claim is {label}, but I am not sure.",
    'He wrote: "The claim is {label}."',
    "If the day were right, the claim is {label}.",
    "Step 4: Decide whether the claim is {label}.",
    "Answer ({label} or {other}):",
    "The claim is {label}. Wait, on reflection the claim is {other}.",
    "It cannot be said that the claim is {label}.",
)


@pytest.mark.parametrize(("text", "vote"), ENDINGS)
def test_an_ending_of_the_printed_prompts_is_read(text, vote):
    """36 of 36, alone and behind the steps, and the negation of each."""
    assert PROMPTS["deep"].parse(REASONS + text).vote == vote
    assert PROMPTS["deep"].parse(text).vote == vote
    if "claim is SUPPORTED" in text or "summary is SUPPORTED" in text:
        assert PROMPTS["deep"].parse(REASONS + text.replace(" is SUPPORTED", " is not SUPPORTED")).vote == 0
        assert PROMPTS["deep"].parse(REASONS + text.replace(" is SUPPORTED", " is NOT SUPPORTED")).vote == 0


@pytest.mark.parametrize("label", ["SUPPORTED", "UNSUPPORTED"])
@pytest.mark.parametrize("denial", ["not", "NOT", "never"])
@pytest.mark.parametrize("form", FORMS)
def test_a_denied_ending_is_never_read_as_its_label(form, denial, label):
    """The negation of each form is the other vote or none; in a sentence about the claim it is the other vote."""
    text = form.format(label=f"{denial} {label}").replace("Every fact was found", "It was checked")
    vote = PROMPTS["deep"].parse(REASONS + text).vote
    other = 1 - SUPPORTED[label]
    assert vote in (other, -1), text
    if label == "SUPPORTED" and denial == "not" and form.startswith(("The summary", "Based", "Therefore")):
        assert vote == other, text


@pytest.mark.parametrize(("name", "text", "vote"), OTHERS)
def test_an_ending_of_the_other_papers_is_read(name, text, vote):
    """Their labels in sentences, and negated."""
    assert PROMPTS[name].parse(text).vote == vote


@pytest.mark.parametrize("form", TWINS)
@pytest.mark.parametrize("label", SUPPORTED)
def test_its_twin_is_not(form, label):
    """A report, a question, a choice, a hedge, a quotation, a condition: no vote."""
    other = "NOT SUPPORTED" if label == "SUPPORTED" else "SUPPORTED"
    text = form.format(label=label, other=other)
    assert PROMPTS["deep"].parse(text).vote == -1, text
    assert PROMPTS["deep"].parse(REASONS + text).vote == -1, text


@pytest.mark.parametrize(("text", "vote"), ENDINGS)
def test_an_ending_that_the_document_holds_is_not(text, vote):
    """What the document ends with, repeated, is no vote; about another document it is."""
    document = f"The harbour office counted 14 ships.\n{text}"
    claim = "Fourteen ships were counted."
    for reply in (text, document, f"The source says:\n{text}"):
        assert PROMPTS["deep"].parse(reply, source=document, claim=claim).vote == -1
    assert PROMPTS["deep"].parse(text, source="The harbour was empty.", claim=claim).vote == vote
