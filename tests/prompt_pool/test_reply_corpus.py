"""Of the replies of the corpus nearly all are read as meant, none is read wrong, none from the document."""

import os
from collections import Counter
from itertools import product

import pytest

from deep.prompt_pool import list_prompts, load_prompt
from tests.prompt_pool import reply_corpus as corpus

ASKED = ("deep-strict-steps", "yes-no", "consistent-inconsistent", "summary-binary", "fect-basic-direct-json")
ASKED += ("fect-basic-direct-xml",)
PROMPTS = {name: load_prompt(name) for name in ASKED}


def told(prompt):
    """Return the labels that mean a vote, without the spellings of the task's own verbs."""
    return {label: vote for label, vote in prompt.labels.items() if not label.startswith(("PASS", "FAIL"))}


def read(prompt, text, source=corpus.SOURCE, **said):
    """Return the judgment of a reply about the corpus's claim."""
    return prompt.parse(text, source=source, claim=corpus.CLAIM, **{"finish_reason": "stop", **said})


def test_the_corpus_is_large_and_own():
    """At least 300 forms of answer, all different, whichever way the label is spelled."""
    replies = [*corpus.answers({"YES": 1, "NO": 0})]
    assert len({reply.form for reply in replies}) > 470
    assert len({reply.text for reply in replies}) > 1_900
    assert len({reply.form for reply in corpus.doubtful({"YES": 1, "NO": 0})}) > 80


@pytest.mark.parametrize("name", ASKED)
def test_answers_are_read_as_meant(name):
    """At least 97 % give the vote that they mean, every form most of the time, and none gives the other.

    Every form stands with every label, alone and with a reasoning and an ending in turn: 15,360 replies to all prompts.
    Set DEEP_LONG=1 for every reasoning and ending with each of them: 205,290 replies.
    """
    missed, seen, read_votes, meant_votes = Counter(), Counter(), Counter(), Counter()
    for reply in corpus.answers(told(PROMPTS[name]), whole=bool(os.environ.get("DEEP_LONG"))):
        vote = read(PROMPTS[name], reply.text).vote
        assert vote in (reply.vote, -1), reply
        seen[reply.form] += 1
        missed[reply.form] += vote == -1
        read_votes[vote] += 1
        meant_votes[reply.vote] += 1
    assert read_votes[1] / meant_votes[1] == pytest.approx(read_votes[0] / meant_votes[0], abs=0.02)
    assert missed.total() <= 0.03 * seen.total(), missed.most_common(8)
    assert [form for form in seen if missed[form] > 0.5 * seen[form]] == []


# Invented: a sentence that says yes beside the same that says no, and what may stand around either.
MIRRORED = [
    ("Yes", "No"),
    ("the answer is yes", "the answer is no"),
    ("SUPPORTED", "NOT SUPPORTED"),
    ("the claim is supported by the source", "the claim is not supported by the source"),
    ("the claim is consistent with the source", "the claim is inconsistent with the source"),
    ("the source confirms the claim", "the source contradicts the claim"),
    ("the claim follows from the source", "the claim does not follow from the source"),
    ("the claim is accurate", "the claim is inaccurate"),
    ("the claim is true", "the claim is false"),
    ("everything in the claim is stated in the source", "not everything in the claim is stated in the source"),
    ("the claim agrees with the source", "the claim disagrees with the source"),
    ("there is evidence for the claim in the source", "there is no evidence for the claim in the source"),
]
AROUND = ["{}", "{}.", "**{}**", "Verdict: {}", "Final answer: {}.", "Therefore, {}.", "In conclusion, {}."]
AROUND += ["Let me think. The first sentence names a length. {}.", "I am fairly sure that {}.", "{}, I think."]
AROUND += [
    "{}. Let me know if you need more.",
    "Step 1: find it. Step 2: compare. Result: {}.",
    "{} because of line 1.",
]
AROUND += ["Hmm, {}. But wait, maybe I should look again. Indeed, {}."]


@pytest.mark.parametrize("name", ASKED)
def test_both_signs_of_a_wording_are_read_alike(name):
    """Of sentences that say yes as many become a vote as of the same sentences that say no, and none the other vote."""
    votes = Counter()
    for (yes, no), frame in product(MIRRORED, AROUND):
        for meant, wording in ((1, yes), (0, no)):
            vote = read(PROMPTS[name], frame.replace("{}", wording)).vote
            assert vote in (meant, -1), (frame, wording)
            votes[meant] += vote == meant
    n = len(MIRRORED) * len(AROUND)
    assert votes[1] / n == pytest.approx(votes[0] / n, abs=0.02)
    # It asks for 1 or 0, and reads no words.
    assert votes.total() > 0 or name == "summary-binary"


@pytest.mark.parametrize("name", ASKED)
def test_doubt_is_no_vote(name):
    """Both words, negations, hedges, questions, quotations and silence are unparsable."""
    for reply in corpus.doubtful(told(PROMPTS[name])):
        judgment = read(PROMPTS[name], reply.text)
        assert (judgment.vote, judgment.reason) == (-1, "unparsable"), reply


@pytest.mark.parametrize("name", ASKED)
def test_why_there_is_no_vote(name):
    """A refusal is refused, a reply that was cut off is truncated."""
    for text in corpus.REFUSALS:
        assert read(PROMPTS[name], text).reason == "refused", text
    for text in corpus.CUT_OFF:
        assert read(PROMPTS[name], text, finish_reason="length").reason == "truncated", text


@pytest.mark.parametrize("side", ["source", "claim"])
@pytest.mark.parametrize("name", ASKED)
def test_no_vote_comes_from_a_quoted_document(name, side):
    """A reply that only quotes a source or a claim gives no vote, in whatever form that ends like an answer."""
    prompt = PROMPTS[name]
    for document, reply in corpus.echoes(told(prompt)):
        texts = {"source": corpus.SOURCE, "claim": corpus.CLAIM} | {side: document}
        assert prompt.parse(reply.text, **texts).vote == -1, reply


@pytest.mark.parametrize("name", [*(n for n in list_prompts() if not n.endswith("-doc-first")), "yes-no-doc-first"])
def test_no_vote_comes_from_the_instructions(name):
    """Any run of lines of a prompt, as the judge sees it, is no answer."""
    prompt = load_prompt(name)
    for message in prompt.render(corpus.SOURCE, corpus.CLAIM):
        lines = message["content"].splitlines()
        for start in range(len(lines)):
            for text in ("\n".join(lines[start:]), "\n".join(lines[: start + 1]), lines[start]):
                for reply in (text, f"> {text}", f"Task: {text}", f"```\n{text}\n```"):
                    assert read(prompt, reply).vote == -1, reply


@pytest.mark.parametrize(
    ("text", "stars"),
    [
        ("SCORE: 4 - the wording is a little loose", 0.75),
        ("Rating: 4/5", 0.75),
        ("**Score**\n4 stars", 0.75),
        ("4</s>", 0.75),
        ("<think>5?</think>\nSCORE: 2 stars<|im_end|>", 0.25),
        ('{"score": 4}', 0.75),
        ("\\boxed{4}", 0.75),
        ("The final score is 4.", 0.75),
        ("SCORE: 4\n\nThe count is right.", 0.75),
        ("SCORE: 4 or 5", None),
        ("SCORE: 3, 4", None),
        ("1. The claim says 14.", None),
        ("SCORE: 4. No, 3.", None),
        ("SCORE: 4/10", None),
    ],
)
def test_grades(text, stars):
    """A grade may have its reason behind it; two grades, a range or a list are none."""
    assert read(load_prompt("five-stars"), text).score == stars
