"""Judges that ask several questions, each depending on the answers before: programs."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from deep.prompt_pool._answer import CUT_OFF, WITHHELD
from deep.prompt_pool._labeling import Reply
from deep.records import Reason

__all__ = ["Program", "Question", "run_program", "why_unusable"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Question:
    """One request that a program wants answered.

    Parameters
    ----------
    step : str
        The stage it belongs to, for reports; two questions with the same messages, schema, parameters and sample
        are one question, whatever their step.
    messages : list of dict
        Chat messages with `role` and `content`.
    schema : mapping, optional
        JSON schema of the reply.
    parameters : mapping, default={}
        Sent along with the request; `model` among them asks another model than the program's own.
    sample : int, default=0
        Which of several draws of the same question.
    """

    step: str
    messages: list[dict[str, str]]
    schema: Mapping[str, Any] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sample: int = 0


Program = Generator[Sequence[Question], Sequence[Reply | None], T]
"""Yields the questions to ask next, side by side; is sent their replies in order, None where a call failed for good.

It must be deterministic given the replies, because a call layer replays it from its ledger.
"""


def run_program(program: Program[T], ask: Callable[[Question], Reply | None]) -> T:
    """Run a program to its end.

    Parameters
    ----------
    program : generator
    ask : callable
        Returns the reply to a question; None where the call failed for good.

    Returns
    -------
    object
        What the program returns.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep.prompt_pool import Question, run_program
    >>> def twice():
    ...     first, = yield [Question(step="ask", messages=[{"role": "user", "content": "rain?"}])]
    ...     second, = yield [Question(step="check", messages=[{"role": "user", "content": first.text + "?"}])]
    ...     return second.text
    >>> run_program(twice(), lambda question: SimpleNamespace(text=question.messages[0]["content"].upper()))
    'RAIN??'
    """
    try:
        questions = next(program)
        while True:
            questions = program.send([ask(question) for question in questions])
    except StopIteration as end:
        value: T = end.value
        return value


def why_unusable(reply: Reply | None) -> Reason | None:
    """Return why a reply cannot be read, whatever it was to say; None where it can.

    Returns
    -------
    {'failed', 'refused', 'truncated', None}
        There is no reply; the endpoint or the model withheld it; it was cut off.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep.prompt_pool import why_unusable
    >>> why_unusable(None), why_unusable(SimpleNamespace(text="The", finish_reason="length", refusal=None))
    ('failed', 'truncated')
    """
    if reply is None:
        return "failed"
    finish = str(reply.finish_reason or "").casefold()
    if reply.refusal or finish in WITHHELD:
        return "refused"
    return "truncated" if finish in CUT_OFF else None
