"""The answer of a prompt as a constraint: what the endpoint is told, and how a reply that keeps to it is read."""

import json
from typing import Literal, get_args

from deep._checks import check_choice
from deep.judge import Choice
from deep.prompt_pool._answer_form import AnswerForm

Constraint = Literal["none", "schema", "vllm"]
"""How a choice of answers is told: not at all, as a JSON schema with an enumeration, or as vLLM's list of texts."""


def check_constraint(value: str) -> str:
    """Return how a choice is told, or refuse a word for it that is not known.

    Examples
    --------
    >>> from deep.prompt_pool._choice import check_constraint
    >>> check_constraint("guided_choice")
    Traceback (most recent call last):
    deep.exceptions.InputError: `constrain` must be one of none, schema, vllm. Got 'guided_choice'.
    """
    return check_choice(value, get_args(Constraint), "constrain")


def choice_of(form: AnswerForm, tag: str, how: str) -> Choice | None:
    """Return the constraint to the labels of a verdict; None for a score, and where nothing is to be constrained.

    Parameters
    ----------
    form : AnswerForm
    tag : str
        The code that the answer must carry.
    how : {'none', 'schema', 'vllm'}
        A JSON schema (``response_format``) makes the reply an object, ``{"verdict": "YES"}``; vLLM's
        ``structured_outputs``, from its version 0.12 on, makes it the very line that the prompt asks for.
    """
    if how == "none" or form.kind == "score":
        return None
    labels = list(form.told)
    if how == "vllm":
        lines = [form.line(tag, label) for label in labels]
        return Choice({"structured_outputs": {"choice": lines}}, frozenset(map(_squeezed, lines)))
    key = form.key(tag)
    answers = [json.dumps({key: label}, ensure_ascii=False) for label in labels]
    return Choice({"response_format": _schema(key, labels)}, frozenset(map(_squeezed, answers)))


def _schema(key: str, labels: list[str]) -> dict[str, object]:
    schema = {
        "type": "object",
        "properties": {key: {"type": "string", "enum": labels}},
        "required": [key],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}


def _squeezed(text: str) -> str:
    return "".join(text.split())
