"""A program that asks the questions of its steps in a paper's words, and reads the replies in the paper's forms."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from deep.judge import LLMReply, Program, Question
from deep.prompt_pool._answer_form import why_unusable
from deep.prompt_pool.printed._steps import PrintedSteps
from deep.prompt_pool.stepwise import TextQuestion

T = TypeVar("T")

_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL | re.IGNORECASE)
_FINAL = re.compile(r"FINAL\s+OUTPUT\W*?:[*_ ]*", re.IGNORECASE)
_BULLET = re.compile(r"\A\s*(?:[-*•]\s+|\d{1,2}[.)]\s+|\**Segment\s*#?\d*\**\s*:?\**\s*)", re.IGNORECASE)
_NOTHING = re.compile(r"\W*(?:none|n/?a|no (?:relevant )?(?:segments?|sentences?|evidence)\b.*)\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _TranslatedReply:
    """A reply whose text stands in the form that a step's reader expects; all else is the reply's own."""

    original: LLMReply
    text: str

    def __getattr__(self, name: str) -> object:
        return getattr(self.original, name)


def reworded(program: Program[T], printed: PrintedSteps) -> Program[T]:
    """Ask the questions of a program in printed words, as far as the prompts hold their steps; the others as they are.

    Parameters
    ----------
    program : generator
        Its questions are of :class:`TextQuestion`, whose texts the printed prompts are filled with.
    printed : PrintedSteps

    Returns
    -------
    object
        The value of the program.
    """
    replies = None
    while True:
        try:
            questions = next(program) if replies is None else program.send(replies)
        except StopIteration as end:
            value: T = end.value
            return value
        asked = [_in_print(question, printed) for question in questions]
        answers = yield [question for question, _ in asked]
        replies = [_translated(reply, form) for reply, (_, form) in zip(answers, asked, strict=True)]


def _in_print(question: Question, printed: PrintedSteps) -> tuple[Question, str | None]:
    """Return a question in printed words with the form of its reply; as it is, and None, where none is printed."""
    if not isinstance(question, TextQuestion):
        return question, None
    name = question.texts.get("manner_of")
    step = question.step if name is None else f"{question.step}-{name}"
    if step not in printed.steps:
        return question, None
    return replace(question, messages=printed.messages(step, **question.texts), schema=None), printed.steps[step][
        "reply"
    ]


def _translated(reply: LLMReply | None, form: str | None) -> LLMReply | None:
    """Return a reply in the form that the step's reader expects; one that is cut off or withheld as it is."""
    if reply is None or form is None or form not in _FORMS or why_unusable(reply) is not None or reply.text is None:
        return reply
    found = _FORMS[form](_THINKING.sub("", reply.text))
    return reply if found is None else _TranslatedReply(reply, json.dumps(found, ensure_ascii=False))  # type: ignore[return-value]


def _segments(text: str) -> Mapping[str, object] | None:
    """Return the claims of a list of segments behind ``>``, each with its assertions in the lines below it."""
    claims = []
    segment = None
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith(">"):
            segment = line.lstrip("> ").strip()
        elif segment:
            claims.append({"segment": segment, "claim": _BULLET.sub("", line)})
    return {"claims": claims} if claims else None


def _final_output(text: str) -> Mapping[str, object] | None:
    """Return the evidence below the last ``FINAL OUTPUT:``, a passage a line."""
    *_, last = (None, *_FINAL.finditer(text))
    if last is None:
        return None
    return {"evidence": [line for line in _lines(text[last.end() :]) if not _NOTHING.fullmatch(line)]}


def _facts(text: str) -> Mapping[str, object] | None:
    return {"facts": list(_lines(text))} if text.strip() else None


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a list without bullets, numbers and the quotes around them."""
    for line in text.splitlines():
        bare = _BULLET.sub("", line).strip().strip('"“”').strip()
        if any(map(str.isalnum, bare)):
            yield bare


_FORMS: Mapping[str, Callable[[str], Mapping[str, object] | None]] = {
    "segments": _segments,
    "final-output": _final_output,
    "lines": _facts,
}
"""The forms that need another reader than a step has; text and a verdict are read as they stand."""
