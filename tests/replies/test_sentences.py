"""Sentences that state a verdict in the words of eight tasks, and sentences that hold the same words and state none."""

import tomllib
from pathlib import Path

import pytest

from tests.replies.asked import PROMPTS

SUBJECTS = {"correct": "answer", "true": "statement", "accurate": "statement", "supported": "claim"}
LABELS = {
    "consistent": ("consistent", "inconsistent", "not consistent"),
    "faithful": ("faithful", "unfaithful", "not faithful"),
    "correct": ("correct", "incorrect", "not correct"),
    "accurate": ("accurate", "inaccurate", "not accurate"),
    "true": ("true", "false", "not true"),
    "grounded": ("grounded", "not grounded", "ungrounded"),
    "supported": ("supported", "not supported", "unsupported"),
    "factual": ("factual", "non-factual", "not factual"),
}
NOUNS = {"contradiction": "contradiction", "hallucination": "hallucination", "factual-errors": "factual error"}

FORMS = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text(encoding="utf-8"))


def forms(kind):
    """Return the sentences of a kind, with line breaks where they are spelled."""
    return [line.replace("/n/", "\n") for line in FORMS[kind].splitlines()]


def vote_of(name, text):
    """Return the vote or the score that is read; None where there is none."""
    judgment = PROMPTS[name].parse(text)
    return None if judgment.vote == -1 else judgment.vote if judgment.score is None else judgment.score


def spelled(form, name, label):
    """Return a sentence about what a task speaks of."""
    begins = label.capitalize() if form.startswith("{L}") else label
    message = form.replace("Yes", "No") if label != LABELS[name][0] else form
    return message.format(S=SUBJECTS.get(name, "summary"), L=begins)


@pytest.mark.parametrize("name", LABELS)
def test_a_sentence_states_its_label(name):
    """Three labels each."""
    for form in forms("states"):
        message = [vote_of(name, spelled(form, name, label)) for label in LABELS[name]]
        assert message == [1, 0, 0], form


@pytest.mark.parametrize("name", LABELS)
def test_a_hedge_states_none(name):
    """Either label."""
    label, other, _ = LABELS[name]
    for form in forms("hedges"):
        for one, two in ((label, other), (other, label)):
            text = form.format(S=SUBJECTS.get(name, "summary"), L=one, M=two)
            assert vote_of(name, text[0].upper() + text[1:]) is None, text


@pytest.mark.parametrize("name", NOUNS)
def test_a_fault_is_there_or_is_not(name):
    """Contradictions, hallucinations, errors: found, counted and denied."""
    noun = NOUNS[name]
    for kind, vote in (("none_of_it", 1), ("some_of_it", 0)):
        for form in forms(kind):
            text = form.format(n=noun, N=noun.capitalize())
            assert vote_of(name, text) == vote, text


@pytest.mark.parametrize(("name", "high"), [("1-5", 5), ("1-10", 10)])
def test_a_score_is_given(name, high):
    """Three scores on either scale."""
    for form in forms("scores"):
        for score in (2, 4, 5):
            text = form.format(k=score, h=high)
            assert vote_of(name, text) == pytest.approx((score - 1) / (high - 1)), text
