"""Imported prompts written as TOML."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from deep._files import JsonObject

Differences = Sequence[tuple[str, str]]

_COPIED = ("reasons_first", "scale", "threshold", "threshold_reason")


def prompt_toml(of: JsonObject, source: str, texts: Mapping[str, str], differs: Differences) -> str:
    """Return the file of a prompt that `deep votes --prompt` takes."""
    fields = {
        "id": of["id"],
        "version": "1",
        "family": "printed",
        "follows": _follows(of, source, differs),
        "kind": "score" if "scale" in of else "verdict",
        "output": "text",
        "document_first": False,
        "fenced": False,
        **{name: of[name] for name in _COPIED if name in of},
    }
    lines = [*_notes(differs), *_values(fields), ""]
    lines += [line for role in ("system", "user") if role in of for line in _text(role, texts[of[role]])]
    if "labels" in of:
        lines += ["[labels]", *_values(of["labels"]), ""]
    return "\n".join([*lines, "[parameters]", *_values({"temperature": 0.0, "max_tokens": of["max_tokens"]}), ""])


def steps_toml(of: JsonObject, source: str, texts: Mapping[str, str], differs: Differences) -> str:
    """Return the file of a judge's or builder's steps, which :func:`load_steps` reads."""
    about = {"id": of["id"], "version": "1", "follows": _follows(of, source, differs), "fenced": False}
    lines = [*_notes(differs), *_values(about), ""]
    for name, step in of["steps"].items():
        lines += [f"[{name}]", *_values({"reply": step["reply"]})]
        for role in ("system", "user"):
            text = texts[step[role]] if role in step else step.get(f"plain_{role}")
            lines += [] if text is None else _text(role, text)
    return "\n".join(lines)


def _follows(of: JsonObject, source: str, differs: Differences) -> str:
    return f"{source}, {of['where']}, {'not verified' if differs else 'as printed'}"


def _notes(differs: Differences) -> Iterator[str]:
    """Yield a comment that names what differs from the printed text."""
    for name, words in differs:
        yield f"# not verified: {name} first differs from the printed text within: {' '.join(words.split())}"


def _values(fields: Mapping[str, object]) -> Iterable[str]:
    for name, value in fields.items():
        key = name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)
        yield f"{key} = {json.dumps(value, ensure_ascii=False)}"


def _text(role: str, text: str) -> Iterator[str]:
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    yield from (f'{role} = """', escaped, '"""', "")
