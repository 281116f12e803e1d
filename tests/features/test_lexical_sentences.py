"""Where sentences end: abbreviations, initials, numbers, other scripts, glued ones; whatever the text."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep._util.names import sentence_spans
from deep.features.lexical._base import sentence_ends
from tests.processor_time import growth


def cut(text):
    """Return the sentences of a text."""
    return [text[start:end].strip() for start, end in pairwise([0, *sentence_ends(text)])]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Rain fell.", "It stopped!", "Really?!", "Yes..."],
        ["Dr. Wu met Gen. Li, i.e. Ann Li."],
        ["Acme Inc. Chairman Bo spoke.", "So did Bo of Acme Inc.", "The rest did not."],
        ["J. Smith of the U.S. Army came at 5 p.m.", "He left."],
        ["It is No. 5 of 9.", "Is it?", "He said no.", "Others came."],
        ["It fell 3.5 percent.", "5 fell more."],
        ['"Who?" he asked.', '"Me," she said.', "“No.”", "He ran."],
        ["It rained.", "Then it snowed in U.S.A."],
        ["雨が降った。", "雪も降った。"],
        ["पानी गिरा।", "बर्फ भी।"],
        ["A headline", "A first line\nand its second."],
        ["It went on... and on.", "Done"],
    ],
)
def test_sentences(sentences):
    """Joined by what stands between sentences, and cut apart again."""
    text = {"雨": "".join, "A": "\n\n".join}.get(sentences[0][0], " ".join)(sentences)
    assert cut(text) == sentences


def test_a_blank_may_be_lacking():
    """Behind a word in lower case and before a capital."""
    assert cut("It rained.Then it stopped.com or U.S.Army or Node.JS.") == [
        "It rained.",
        "Then it stopped.com or U.S.Army or Node.JS.",
    ]


@settings(max_examples=200)
@given(st.text(max_size=80) | st.text(alphabet="aA.!?…\"')]\n 1。Dr\ud800\u2028", max_size=80))
def test_positions_rise_to_the_end_of_any_text(text):
    """So that every character is in one sentence."""
    ends = sentence_ends(text)
    assert ends[-1] == len(text)
    assert ends == sorted(set(ends))


@pytest.mark.parametrize("text", [("", ". "), ("", "."), ("\n", " "), (".", ")"), ("", "\n")])
def test_hostile_texts_take_time_by_their_length(text):
    """No run of characters is gone through twice."""
    first, piece = text
    assert growth(lambda n: sentence_ends(first + piece * n), 20_000, 200_000) < 30


def test_plain_text_is_cut_as_by_the_library():
    """Where the library's rules and these agree, which is nearly everywhere in prose."""
    text = (
        "Mr. Bo paid 3.5 million. Prof. Li of the U.S. Navy asked: why? She left at 5 p.m. He stayed. Then it rained."
    )
    assert cut(text) == [text[start:end] for start, end in sentence_spans(text)]
