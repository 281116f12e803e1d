"""What the tiered judge says: its tasks, the labels of each, and examples of a right label beside a wrong one."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from deep._files import read_bytes
from deep.exceptions import InputError
from deep.experiments.tiered._reading import TIERS
from deep.experiments.tiered._tags import Span, mark
from deep.prompt_pool import Material, fill

FOLDER = Path(__file__).parent

LABELS: Mapping[str, tuple[str, ...]] = {
    "type": ("irrelevant", "factual", "cognitive"),
    "check": ("faithful", "invented", "rational", "misleading"),
    "grounded": ("grounded", "ungrounded"),
    "irrefutable": ("irrefutable", "debatable"),
}
"""The labels that a sentence may get, by task, in the order in which the tasks are asked."""

AUTO_LABELS: Mapping[str, tuple[str, ...]] = {"support": ("faithful", "hallucinated", "irrelevant"), "tier": TIERS}
"""The labels of the two prompts of the automatic pipeline."""

EVERY_LABEL = {**LABELS, **AUTO_LABELS}

UNMARKED = "?"
"""The name of the tags around a sentence of which nothing is known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A sentence with the label that it should get beside one that it should not.

    Parameters
    ----------
    task : {'check', 'grounded', 'irrefutable', 'support', 'tier', 'type'}
    material : str
        What the sentence is to be judged from.
    sentence : str
    right, wrong : str
        Labels of the task.
    why : str
        What tells them apart.

    Raises
    ------
    InputError
        A task or a label is not known, or a text is empty.
    """

    task: str
    material: str
    sentence: str
    right: str
    wrong: str
    why: str

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, str) or not value.strip():
                raise InputError(f"`{name}` of an example must be text. Got {value!r}.")
        if self.task not in EVERY_LABEL:
            allowed = ", ".join(sorted(EVERY_LABEL))
            raise InputError(f"`task` of an example must be one of {allowed}. Got {self.task!r}.")
        for name in ("right", "wrong"):
            if getattr(self, name) not in EVERY_LABEL[self.task]:
                allowed = ", ".join(sorted(EVERY_LABEL[self.task]))
                raise InputError(f"`{name}` of an example must be one of {allowed}. Got {getattr(self, name)!r}.")
        if self.right == self.wrong:
            raise InputError(f"`wrong` of an example must differ from its `right`. Got {self.wrong!r} for both.")


@cache
def wording(judge: str = "tiered") -> Mapping[str, Any]:
    """Return the texts of a judge that come with deep, by name."""
    content: dict[str, Any] = tomllib.loads((FOLDER / f"{judge}.toml").read_text(encoding="utf-8"))
    return content


def task_text(task: str) -> str:
    """Return the text of a task."""
    return str(wording("auto" if task in AUTO_LABELS else "tiered")["tasks"][task])


def own_contrasts() -> tuple[Contrast, ...]:
    """Return the contrastive examples of the annotators' protocol."""
    return tuple(Contrast(**fields) for fields in wording()["examples"])


def auto_contrasts() -> tuple[Contrast, ...]:
    """Return the contrastive examples of the automatic pipeline, those of its first step included."""
    own = tuple(Contrast(**fields) for fields in wording("auto")["examples"])
    return (*own, *(contrast for contrast in own_contrasts() if contrast.task == "type"))


def load_contrasts(path: str | Path) -> tuple[Contrast, ...]:
    """Return the contrastive examples of a TOML file: tables ``[[examples]]`` with the fields of :class:`Contrast`.

    Raises
    ------
    InputError
        The file cannot be read, or an example breaks a rule.
    """
    try:
        content = tomllib.loads(read_bytes(path, "examples").decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"`examples` must be a TOML file. Got {str(path)!r}: {reason}. Check it.") from None
    tables = content.get("examples")
    if not isinstance(tables, list) or not tables or set(content) != {"examples"}:
        raise InputError(f"`examples` must hold tables [[examples]] and nothing else. Got {str(path)!r}. Add one.")
    return tuple(_contrast(table, number, path) for number, table in enumerate(tables, start=1))


def _contrast(table: Any, number: int, path: str | Path) -> Contrast:
    fields = sorted(Contrast.__annotations__)
    if not isinstance(table, dict) or sorted(table) != fields:
        got = sorted(table) if isinstance(table, dict) else table
        raise InputError(
            f"`examples` must have the fields {', '.join(fields)}. Got {got!r} in example {number} of {str(path)!r}."
        )
    try:
        return Contrast(**table)
    except InputError as error:
        raise InputError(f"{str(error).rstrip('.')} in example {number} of {str(path)!r}.") from None


def messages_of(
    task: str, material: Material, marks: Mapping[Span, str], contrasts: Sequence[Contrast], code: str
) -> list[dict[str, str]]:
    """Return the chat messages that ask for the label of every marked sentence.

    Parameters
    ----------
    task : str
        One of `EVERY_LABEL`, or ``list``, which marks nothing.
    material : Material
    marks : mapping of (int, int) to str
        Span of the claim to the name of the tags around it.
    contrasts : sequence of Contrast
        Those of the task are shown.
    code : str
        What tags carry behind a hyphen; nothing where it is empty.
    """
    suffix = f"-{code}" if code else ""
    marked = mark(material.claim, {span: name + suffix for span, name in marks.items()})
    parts = (
        material.fenced("source"),
        task_text(task).strip(),
        _shown(task, contrasts),
        _form(task, marks, suffix) if marks else "",
        f"<reply-{material.code}>\n{marked}\n</reply-{material.code}>",
    )
    user = "\n\n".join(part for part in parts if part)
    return [{"role": "system", "content": wording()["system"].strip()}, {"role": "user", "content": user}]


def _form(task: str, marks: Mapping[Span, str], suffix: str) -> str:
    names = sorted({name + suffix for name in marks.values()})
    values = {
        "opened": " or ".join(f"<{name}>" for name in names),
        "closed": " or ".join(f"</{name}>" for name in names),
        "pairs": ", ".join(f"<{label}{suffix}>...</{label}{suffix}>" for label in EVERY_LABEL[task]),
    }
    return fill(wording()["form"], values).strip()


def _shown(task: str, contrasts: Sequence[Contrast]) -> str:
    """Return the examples of a task as text."""
    chosen = [contrast for contrast in contrasts if contrast.task == task]
    if not chosen:
        return ""
    lines = ["Some sentences with the label that is right for them and one that would be wrong:"]
    for contrast in chosen:
        lines += [
            f"Material: {json.dumps(contrast.material, ensure_ascii=False)}",
            f"Sentence: {json.dumps(contrast.sentence, ensure_ascii=False)}",
            f"Right: {contrast.right}. Wrong: {contrast.wrong}. {contrast.why}",
        ]
    return "\n".join(lines)
