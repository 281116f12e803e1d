"""Of the replies of the corpus nearly all are read as meant, none is read wrong, none from the document."""

import os
from collections import Counter

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
    missed, seen = Counter(), Counter()
    for reply in corpus.answers(told(PROMPTS[name]), whole=bool(os.environ.get("DEEP_LONG"))):
        vote = read(PROMPTS[name], reply.text).vote
        assert vote in (reply.vote, -1), reply
        seen[reply.form] += 1
        missed[reply.form] += vote == -1
    assert missed.total() <= 0.03 * seen.total(), missed.most_common(8)
    assert [form for form in seen if missed[form] > 0.5 * seen[form]] == []


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
