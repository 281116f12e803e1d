"""Read the replies to the steps: a JSON object, or the reason why there is none."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from deep.judge import LLMReply
from deep.prompt_pool import AnswerForm, Material, unrepeated, why_none, why_unusable
from deep.records import ABSTAIN, Judgment, Reason

MOST_ATTEMPTS = 200
"""Openings of an object that are tried, which bounds the work that a hostile reply can cause."""

_OPENING = re.compile(r'\{\s*"')
_VERDICT = AnswerForm("verdict", "json", {"PASS": 1, "FAIL": 0}, None, 0.5)


def read_list(reply: LLMReply | None, key: str, *shown: str) -> list[Any] | Reason:
    r"""Return the list under `key` in the last object of a reply that has one.

    Reasoning before the object, a fence around it and words behind it do no harm. An object that stands in one of
    the texts `shown` to the judge is an echo, not an answer.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep.experiments.stepwise import read_list
    >>> said = 'Well.\n```json\n{"evidence": ["It rained."]}\n```'
    >>> reply = SimpleNamespace(text=said, finish_reason="stop", refusal=None)
    >>> read_list(reply, "evidence"), read_list(reply, "claims"), read_list(None, "claims")
    (['It rained.'], 'unparsable', 'failed')
    """
    reason = why_unusable(reply)
    if reply is None or reason in ("failed", "refused"):
        return reason or "failed"
    text = reply.text if isinstance(reply.text, str) else ""
    cut = reason == "truncated"
    echo = Material("\n".join(shown), "")
    found = [(fields[key], end) for fields, end in _objects(text, key) if not echo.repeats(fields)]
    if not found or (cut and text[found[-1][1] :].strip("` \n")):
        return why_none(text, cut)
    value: list[Any] = found[-1][0]
    return value


def _objects(text: str, key: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield each outermost object that has a list under `key`, and where it ends; a key said twice says nothing."""
    at = 0
    for _ in range(MOST_ATTEMPTS):
        match = _OPENING.search(text, at)
        if match is None:
            return
        try:
            fields, at = json.JSONDecoder(object_pairs_hook=unrepeated).raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.end()
            continue
        if isinstance(fields.get(key), list):
            yield fields, at


def read_verdict(reply: LLMReply | None, *shown: str) -> Judgment:
    """Return the vote on one excerpt: 1 PASS, 0 FAIL, -1 with a reason where the reply says neither."""
    if reply is None:
        return Judgment(vote=ABSTAIN, reason="failed")
    return _VERDICT.judge(
        reply.text,
        finish_reason=reply.finish_reason,
        refusal=reply.refusal,
        material=Material("\n".join(shown), ""),
        logprobs=None,
    )


def strings(values: Sequence[Any]) -> list[str] | None:
    """Return the strings that are not blank; None where something else is among them."""
    if not all(isinstance(value, str) for value in values):
        return None
    return [value for value in values if value.strip()]
