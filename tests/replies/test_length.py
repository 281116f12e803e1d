"""Reading takes as long as the reply is, whatever it holds."""

import pytest

from deep.prompt_pool import _answer_form, load_prompt
from tests.processor_time import growth
from tests.replies.asked import PROMPTS

PIECES = [
    "VERDICT: YES\n",
    "{\n",
    "\n",
    "*",
    "yes, ",
    "5 stars ",
    "score of 3 ",
    "<answer>yes</answer>\n",
    "<own>yes</own>",
    "Q?\na: no\n",
    "so, ",
    "is not ",
    "a ",
    "a, ",
    "</think>",
    "Answer\nyes\n\n",
    "\u4e0d",
]


@pytest.mark.parametrize(
    ("name", "piece"),
    [
        *(("yes-no", piece) for piece in PIECES),
        *(("five-stars", piece) for piece in ("5 stars ", "score of 3 ", "*")),
        *(("fect-basic-direct-json", piece) for piece in ("{\n", "\n", "</think>")),
    ],
)
def test_a_reply_ten_times_as_long_takes_at_most_thirty_times_as_long(name, piece):
    """From 100,000 characters to a million the processor time grows no faster than three times the length."""
    prompt = load_prompt(name)
    assert growth(lambda size: prompt.parse(piece * (size // len(piece))), 100_000, 1_000_000) < 30


def test_boxes_with_two_answers_are_compared_in_one_pass():
    """Ten times as many boxes take at most thirty times as long."""

    def read(n):
        assert PROMPTS["pair"].parse("[[B]]" + "[[A]]" * n).vote == -1

    assert growth(read, 1_000, 10_000) < 30


def test_of_long_hidden_reasoning_the_last_part_is_read(monkeypatch):
    """However long it is, 60,000 characters are looked at, and the answer behind it is read."""
    read = []
    reader = _answer_form.ReplyReader
    monkeypatch.setattr(_answer_form, "ReplyReader", lambda text, *rest: read.append(len(text)) or reader(text, *rest))
    assert PROMPTS["yes"].parse("<think>" + "Well. " * 100_000 + "</think>\nYes").vote == 1
    assert read == [60_001]
