"""What small models write: cut off behind a label, a code glued to a word, claim and source the wrong way round."""

import pytest

from deep.prompt_pool import load_prompt

STEPS = load_prompt("deep-strict-steps")

NONE = [
    "The answer is SUPPORTED if0b15db13 is not empty, garbled, or in another language.",
    "The answer is NOT SUPPORTED if0b15db13 is not empty, garbled, or in another language.",
    "The source is not supported by the claim.",
    "The source is supported by the claim.",
    "The answer and the source are not supported by the claim.",
    "The claim-0ba93e11 is not supported by the claim-0ba93e11.",
    "The claim-0ba93e11 is supported by the claim-0ba93e11.",
]
READ = [
    ("The claim is supported by the source.", 1),
    ("The claim is not supported by the source.", 0),
    ("The claim-0ba93e11 is not supported by the source-0ba93e11.", 0),
]


@pytest.mark.parametrize("text", NONE)
def test_what_says_nothing_of_the_claim_is_no_vote(text):
    """A condition that is glued to a code; a claim in the place of the source."""
    assert STEPS.parse(text).vote == -1


@pytest.mark.parametrize(("text", "vote"), READ)
def test_the_same_words_in_their_places_are_read(text, vote):
    """With the codes of claim and source, too."""
    assert STEPS.parse(text).vote == vote


@pytest.mark.parametrize("label", ["SUPPORTED", "NOT SUPPORTED"])
def test_a_label_where_the_reply_was_cut_off_may_go_on(label):
    """An answer in other words is often followed by "if"; behind the marker that was asked for the label is whole."""
    text = f"It rained.\n\nThe answer is {label}"
    assert STEPS.parse(text).vote == int(label == "SUPPORTED")
    cut = STEPS.parse(text, finish_reason="length")
    assert (cut.vote, cut.reason) == (-1, "truncated")
    assert STEPS.parse(f"VERDICT: {label}", finish_reason="length").vote == int(label == "SUPPORTED")


# In pairs: one leans no, its mirror yes.
RAMBLING = [
    (
        "One part has no support in the passage. On a second look that part is stated in the last paragraph.",
        "One part has support in the passage. On a second look that part is missing from the last paragraph.",
    ),
    (
        "One part is not supported by the passage. So overall it does not hold up.",
        "One part is supported by the passage. So overall it holds up.",
    ),
    (
        "The claim is not supported by the passage. Overall, though, that is fine.",
        "The claim is supported by the passage. Overall, though, that is weak.",
    ),
    (
        "The claim is not supported. Looking again, the last line says so.",
        "The claim is supported. Looking again, the last line says otherwise.",
    ),
]


@pytest.mark.parametrize("text", [text for pair in RAMBLING for text in pair])
def test_what_a_reply_may_take_back_is_no_vote(text):
    """Neither sign is read from the middle of a reply whose conclusion cannot be read: the repair turn asks for it."""
    assert STEPS.parse(text).vote == -1
