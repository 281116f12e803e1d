"""A prompt as people read it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from deep._text import table
from deep.prompt_pool._prompt import Prompt

_TEXTS = ("system", "user")
_AIM = ("ID", "STRICTNESS", "TPR", "TNR", "ERROR THAT IT IS NOT TO SHARE")
_AIMS = "\nmeant to err in their own way; rates next to those of deep-strict-steps"


def describe_prompt(prompt: Prompt) -> dict[str, object]:
    """Return the fields of a prompt and its hash.

    Examples
    --------
    >>> from deep.prompt_pool import describe_prompt, load_prompt
    >>> list(describe_prompt(load_prompt("yes-no")))[:3]
    ['id', 'hash', 'version']
    """
    return {"id": prompt.id, "hash": prompt.hash, **{k: v for k, v in asdict(prompt).items() if k != "id"}}


def prompt_lines(prompt: Prompt) -> Iterator[str]:
    """Yield the fields of a prompt as a table, and its messages."""
    fields = describe_prompt(prompt)
    shown = {name: value for name, value in fields.items() if name not in _TEXTS and value not in (None, {}, "")}
    yield table([(name, _in_words(value)) for name, value in shown.items()])
    yield from (f"\n[{name}]\n{str(fields[name]).strip()}" for name in _TEXTS if fields[name])


def prompt_table(prompts: Iterable[Prompt]) -> str:
    """Return a table of prompts, a line each, and one of what those are for that are to err in their own way."""
    listed = list(prompts)
    rows = table([("ID", "HASH", "ANSWER", "REASONS", "FOLLOWS"), *map(_row, listed)])
    aims = [_aim(prompt) for prompt in listed if prompt.unshared_error]
    return "\n".join([rows, _AIMS, table([_AIM, *aims])]) if aims else rows


def _row(prompt: Prompt) -> tuple[str, ...]:
    first = "first" if prompt.reasons_first else "none"
    return prompt.id, prompt.hash[:8], f"{prompt.kind}, {prompt.output}", first, prompt.follows


def _aim(prompt: Prompt) -> tuple[str, ...]:
    return prompt.id, prompt.strictness, prompt.expected_tpr, prompt.expected_tnr, prompt.unshared_error


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_in_words(entry)}" for key, entry in value.items())
    return value if isinstance(value, str) else json.dumps(value)
