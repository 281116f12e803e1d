"""Replies as small models write them, generated: every form with every label, and forms that give no answer."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

SOURCE = "The harbour office counted 14 ships on Monday. Two of them were ferries, and the wind was calm all day."
CLAIM = "Fourteen ships were counted on Monday."

FORMS = json.loads(Path(__file__).with_name("reply_forms.json").read_text(encoding="utf-8"))
REASONING, ENDS, PLAIN_ENDS = FORMS["reasoning"], FORMS["ends"], FORMS["plain_ends"]
"""What may stand before the answer, and behind it, where it means nothing; the last behind the forms of `MORE`."""

LINES, MORE, ALONE = FORMS["lines"], FORMS["more"], FORMS["alone"]
"""Forms of the answer; each goes with any label."""

WITH_REASON, REASONS = FORMS["with_reason"], {vote: FORMS["reasons"][str(vote)] for vote in (1, 0)}
"""Forms of an answer with its reason, and reasons by vote."""

DOUBTFUL, REFUSALS, CUT_OFF = FORMS["doubtful"], FORMS["refusals"], FORMS["cut_off"]
"""Forms that say nothing, both, or not for sure, each of which goes with any label; refusals; cut-off replies."""

ECHOED, QUOTED = FORMS["echoed"], FORMS["quoted"]
"""Endings of documents that look like an answer, and ways to quote a document."""


class Reply(NamedTuple):
    """A reply with the form it was made from and the vote that it means; None where it means none."""

    form: str
    text: str
    vote: int | None


def spelled(form: str, label: str, other: str, vote: int, **more: str) -> str:
    """Return a form with its label in it."""
    tick = {1: "\u2705", 0: "\u274c"}[vote]
    return form.format(label=label, other=other, lower=label.lower(), title=label.title(), tick=tick, **more)


def pairs(labels: dict[str, int]) -> Iterator[tuple[str, str, int]]:
    """Yield each label of a vote with the first label of the other vote, and the vote."""
    for label, vote in labels.items():
        if vote != -1:
            yield label, next(other for other, polarity in labels.items() if polarity == 1 - vote), vote


def around(form: str, number: int, *, whole: bool) -> Iterator[tuple[str, str]]:
    """Yield what stands before and behind a form: nothing, and a pair in turn; `whole` every pair."""
    ends = PLAIN_ENDS if form in MORE else ENDS
    in_turn = [("", ""), (REASONING[1 + number % (len(REASONING) - 1)], ends[number % len(ends)])]
    yield from product(REASONING, ends) if whole else in_turn


def answers(labels: dict[str, int], *, whole: bool = False) -> Iterator[Reply]:
    """Yield replies that give an answer: each form with each label; `whole` also with each reasoning and ending."""
    forms = [(form, *pair) for i, form in enumerate(LINES + ALONE + MORE) for pair in around(form, i, whole=whole)]
    for label, other, vote in pairs(labels):
        for form, before, end in forms:
            fenced = "```" in form or form.startswith(("{{", "<", "Here")) or "oxed" in form
            if not (end.startswith((".", " \n\n```")) and fenced) and not (
                end == "." and form.endswith((",", "!", ";"))
            ):
                text = spelled(before, label, other, vote) + spelled(form, label, other, vote) + end
                yield Reply(form, text, vote)
        for form, reason in product(WITH_REASON, REASONS[vote]):
            escaped = json.dumps(reason)[1:-1] if form.startswith("{{") else reason
            yield Reply(form, spelled(form, label, other, vote, reason=escaped), vote)


def doubtful(labels: dict[str, int]) -> Iterator[Reply]:
    """Yield replies that give no answer, or not a sure one."""
    for label, other, vote in pairs(labels):
        for form, before in product(DOUBTFUL, REASONING[:-1]):
            yield Reply(form, before + spelled(form, label, other, vote), None)


def echoes(labels: dict[str, int]) -> Iterator[tuple[str, Reply]]:
    """Yield documents that end like an answer, with replies that quote them and hold nothing else."""
    for label, other, vote in pairs(labels):
        for number, (form, quote) in enumerate(product(ECHOED, QUOTED)):
            message = spelled(form, label, other, vote)
            document = message if number % 2 else f"{SOURCE}\n\n{message}"
            yield document, Reply(f"{form} in {quote}", quote.format(text=document), None)
