"""Batches of replies in the voices of many judges, each written before the reader was run on it.

A line is ``prompt | meaning | reply``, with ``-`` for a reply that states no verdict. At first sight 98.7 % of `d`,
90.8 % of `e`, 95.3 % of `f`, 91.1 % of `h`, 87.9 % of `i`, 93.4 % of `j`, 86.5 % of `k`, 94.2 % of `l`, 95.1 % of
`m`, 94.1 % of `n`, 94.6 % of `o`, 94.7 % of `p`, 95.7 % of `q` and 88.2 % of `r` were read as meant; one of `k` (a
passive in Chinese) was read otherwise, and of the 105 hedges of `j` to `m` twelve, of the 92 of `n` to `r` thirteen
were read as votes. At first sight 136 of 142 of `s` and 137 of 155 of `t` were read as meant, one of `s` otherwise
(*Hallucination detected: No*); of their 80 hedges 19, and of their 81 replies without an answer two were read. Three
replies of these that may be tagged either way are left out since. Of `u`, written after these were mended and before
it was read, 49 of 55 were read as meant, none otherwise; of its 40 hedges eight, of its 15 other replies none were
read. Each of the next seven was written after the rules for the one before were mended: of `v`, `w`, `x`, `y`, `z`,
`za` and `zb`, 192 of 209, 194 of 206, 200 of 206, 108 of 114, 90 of 97, 88 of 90 and 38 of 40 were read as meant, one
of `v` otherwise (a negation in Korean); of their replies without a verdict 3 of 53, 2 of 58, 3 of 57, 7 of 47, 10 of
33, 1 of 32 and 13 of 47, hedges all; one reply that may be tagged either way and one to another prompt are left out
since. These seven are read whole but for the few that `LEFT` counts, so that each rule has a reply that is read by
it. The rules before read 55 to 77 % of `a`, `b` and `c`. `g` holds traps without a verdict.
"""

from pathlib import Path

import pytest

from tests.replies.asked import PROMPTS

# Of the batches that are otherwise read whole, how many with a verdict are still unread.
LEFT = {
    "v-many-tasks": 1,
    "w-other-voices": 4,
    "x-third-round": 3,
    "y-long-voices": 1,
    "z-last-round": 1,
    "za-plain-judges": 0,
    "zb-hedges-and-more": 0,
    "zc-words-of-tasks": 0,
}
BATCHES = sorted(Path(__file__).parent.joinpath("batches").glob("*.txt"))


def lines_of(path):
    """Yield the prompt's name, the meaning and the reply of each line of a batch."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, meant, text = line.split("|", 2)
            yield name, None if meant == "-" else float(meant), text.replace("\\n", "\n")


def read(name, text):
    """Return the score or the label that is read, None for nothing."""
    judgment = PROMPTS[name].parse(text)
    if PROMPTS[name].kind == "score":
        return judgment.score
    return None if judgment.vote == -1 and judgment.reason != "abstained" else float(judgment.vote)


@pytest.mark.parametrize("path", BATCHES, ids=lambda path: path.stem)
def test_a_batch_is_read_as_meant(path):
    """At least 95 % of the replies with a verdict are read as meant, and none otherwise."""
    unread, n = [], 0
    for name, meant, text in lines_of(path):
        message = read(name, text)
        if meant is not None:
            assert message is None or message == pytest.approx(meant), text
            unread += [text] if message is None else []
            n += 1
    assert len(unread) <= LEFT.get(path.stem, 0.05 * n), unread


@pytest.mark.parametrize("path", BATCHES, ids=lambda path: path.stem)
def test_what_states_no_verdict_is_not_read(path):
    """Hedges, choices, questions, tasks, news and parts of a claim."""
    assert [text for name, meant, text in lines_of(path) if meant is None and read(name, text) is not None] == []
