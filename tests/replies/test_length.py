"""Reading takes as long as the reply is, whatever it holds."""

import time

import pytest

from deep.prompt_pool import load_prompt

PIECES = [
    "VERDICT: YES\n",
    "{\n",
    "\n",
    "*",
    "yes, ",
    "5 stars ",
    "score of 3 ",
    "<answer>yes</answer>\n",
    "so, ",
    "is not ",
    "a ",
    "a, ",
    "</think>",
    "Answer\nyes\n\n",
    "\u4e0d",
]


@pytest.mark.parametrize("name", ["yes-no", "five-stars", "fect-basic-direct-json"])
@pytest.mark.parametrize("piece", PIECES)
def test_a_reply_ten_times_as_long_takes_at_most_thirty_times_as_long(name, piece):
    """From 100,000 characters to a million the processor time grows no faster than three times the length."""
    prompt = load_prompt(name)
    seconds = []
    for size in (100_000, 1_000_000):
        started = time.process_time()
        prompt.parse(piece * (size // len(piece)))
        seconds.append(time.process_time() - started)
    assert seconds[1] < 30 * max(seconds[0], 0.01)
