"""Prompts of several steps, read from a TOML file."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from deep._files import JsonObject, read_bytes
from deep.exceptions import InputError
from deep.prompt_pool import PLACEHOLDER, clean, fill


@dataclass(frozen=True, slots=True)
class PrintedSteps:
    """The prompts of a judge's or a builder's steps, as a paper prints them.

    Parameters
    ----------
    id : str
    follows : str
        The paper and where in it they stand, and whether they were verified.
    steps : mapping of str to mapping
        By step: ``user``, ``reply`` (the form of the reply), and ``system`` where there is one.
    hash : str
        SHA-256 of all that is asked.
    """

    id: str
    follows: str
    steps: Mapping[str, Mapping[str, str]]
    hash: str

    def messages(self, step: str, **texts: str) -> list[dict[str, str]]:
        """Return the chat messages of a step; the texts stand in them without tags, as the paper has it."""
        cleaned = {name: clean(text, name) for name, text in texts.items()}
        asked = self.steps[step]
        return [
            {"role": role, "content": fill(asked[role], cleaned).strip()}
            for role in ("system", "user")
            if role in asked
        ]


def load_steps(path: str | Path, wanted: Mapping[str, Sequence[str]]) -> PrintedSteps:
    """Return the steps of a file that ``deep prompts import`` wrote.

    Parameters
    ----------
    path : str or Path
    wanted : mapping of str to sequence of str
        The steps that the file must hold, each with the placeholders that its messages may and must hold.

    Raises
    ------
    InputError
        The file cannot be read, or lacks a step, a message or a placeholder.
    """
    values = _read(path)
    for step, names in wanted.items():
        asked = values.get(step)
        if not isinstance(asked, dict) or not all(isinstance(asked.get(key), str) for key in ("user", "reply")):
            raise InputError(f"`prompt` must have `user` and `reply` in a table [{step}]. Got none in {str(path)!r}.")
        found = PLACEHOLDER.findall(str(asked.get("system", "")) + asked["user"])
        if set(found) != set(names):
            raise InputError(
                f"`prompt` must hold the placeholders {', '.join(sorted(names))} in [{step}], and no others. "
                f"Got {', '.join(sorted(set(found))) or 'none'} in {str(path)!r}."
            )
    steps = {step: {key: str(text) for key, text in values[step].items()} for step in wanted}
    content = repr(sorted((step, sorted(texts.items())) for step, texts in steps.items()))
    return PrintedSteps(
        str(values.get("id") or Path(path).stem),
        str(values.get("follows") or "own design"),
        steps,
        sha256(content.encode()).hexdigest(),
    )


def _read(path: str | Path) -> JsonObject:
    try:
        return tomllib.loads(read_bytes(path, "prompt").decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"`prompt` must be a readable file. Got {str(path)!r}: {error.strerror}.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"`prompt` must hold TOML in UTF-8. Got {str(path)!r}: {error}.") from None
