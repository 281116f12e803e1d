"""Endings in twelve forms and six languages are read as meant, and their adversarial twins are not read."""

from collections import Counter

import pytest

from deep.prompt_pool import Prompt
from tests.replies.endings import FORMS, LANGUAGES, endings, twins

OTHER = "A text about something else."
CLAIM = "Another claim."


def prompt_of(language):
    """Return a prompt that asks for the labels of a language, as papers print them."""
    labels = LANGUAGES[language].labels
    user = f"Compare {{{{source}}}} and {{{{claim}}}}: {', '.join(labels)}."
    return Prompt(
        id=language, version="1", family="mine", follows="own design", reasons_first=True, fenced=False,
        user=user, labels=labels,
    )  # fmt: skip


PROMPTS = {language: prompt_of(language) for language in LANGUAGES}
ENDINGS = [*endings()]


def test_the_corpus_is_large():
    """At least 400 endings, in twelve forms and six languages."""
    assert len({(ending.language, ending.text) for ending in ENDINGS}) >= 400
    assert len({ending.form for ending in ENDINGS}) == len(FORMS) == 12
    assert len(LANGUAGES) == 6


@pytest.mark.parametrize("language", LANGUAGES)
def test_endings_are_read_as_meant(language):
    """At least 95 % give the vote that they mean, in each language, and none gives the other."""
    counts, unread = Counter(), []
    for ending in (ending for ending in ENDINGS if ending.language == language):
        vote = PROMPTS[language].parse(ending.text, source=OTHER, claim=CLAIM).vote
        assert vote in (ending.vote, -1), ending
        counts[vote == ending.vote] += 1
        unread += [ending.text] if vote == -1 else []
    assert counts[True] >= 0.95 * counts.total(), unread


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_twin_is_no_vote(language):
    """A hedge, a question, a quotation, two verdicts; and a document that holds the ending, repeated."""
    for ending in (ending for ending in ENDINGS if ending.language == language):
        for text in twins(ending):
            assert PROMPTS[language].parse(text, source=OTHER, claim=CLAIM).vote == -1, text
        document = f"{OTHER}\n{ending.text}"
        for reply in (ending.text, document, f"> {ending.text}", f"{OTHER}\n\n{ending.text}"):
            judgment = PROMPTS[language].parse(reply, source=document, claim=CLAIM)
            assert judgment.vote == -1, reply
