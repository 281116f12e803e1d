"""What a prompt must be, rule by rule; each broken rule is one line that says what to do."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from deep.prompt_pool._material import PLACEHOLDER
from deep.prompt_pool.reader import normalise_label

FIELDS: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "version": (str,),
    "family": (str,),
    "follows": (str,),
    "system": (str,),
    "user": (str,),
    "labels": (dict,),
    "kind": (str,),
    "output": (str,),
    "reasons_first": (bool,),
    "document_first": (bool,),
    "parameters": (dict,),
    "scale": (list, tuple, dict, type(None)),
    "threshold": (float, int),
    "threshold_reason": (str,),
    "parts": (list, tuple),
    "fenced": (bool,),
    "windows": (str,),
    "strictness": (str,),
    "unshared_error": (str,),
    "expected_tpr": (str,),
    "expected_tnr": (str,),
    "answer_first": (bool,),
    "verdict_words": (dict,),
    "scale_words": (dict,),
    "listed": (bool,),
    "coded": (bool,),
}
REQUIRED = ("id", "version", "family", "follows", "user", "reasons_first")
PURPOSE: dict[str, tuple[str, ...]] = {
    "strictness": ("even", "lenient", "strict"),
    "expected_tpr": ("higher", "lower", "same"),
    "expected_tnr": ("higher", "lower", "same"),
}
"""The words of a prompt that is to err in its own way, beside its `unshared_error`."""

_PART = re.compile(r"[a-z][a-z_]{0,39}")
_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_OURS = ("messages", "model", "n", "response_format", "stream", "logprobs", "top_logprobs")


def find_problems(values: Mapping[str, Any]) -> list[str]:
    """Return every rule that the fields of a prompt break, as lines of an error message; empty where it is sound."""
    problems = list(_shape(values))
    if problems:
        return problems
    rules = (_names, _placeholders, _order, _labels, _scale, _parameters, _parts)
    return [problem for rule in rules for problem in rule(values)]


def _shape(values: Mapping[str, Any]) -> Iterator[str]:
    for name in values.keys() - FIELDS.keys():
        yield f"`{name}` must be one of {', '.join(sorted(FIELDS))}. Got an unknown field. Remove it."
    for name, types in FIELDS.items():
        if name not in values:
            if name in REQUIRED:
                yield f"`{name}` must be given. Got none."
        elif not isinstance(values[name], types) or (isinstance(values[name], bool) and bool not in types):
            yield f"`{name}` must be a {types[0].__name__}. Got {values[name]!r}."
    yield from _choices(values)


def _choices(values: Mapping[str, Any]) -> Iterator[str]:
    closed = {"kind": ("score", "verdict"), "output": ("json", "text", "xml"), "windows": ("all", "any")}
    closed |= {name: words for name, words in PURPOSE.items() if values.get(name)}
    for name, options in closed.items():
        if name in values and values[name] not in options:
            yield f"`{name}` must be one of {', '.join(options)}. Got {values[name]!r}."


def _names(values: Mapping[str, Any]) -> Iterator[str]:
    if not _IDENTIFIER.fullmatch(values["id"]):
        yield (
            "`id` must be 1 to 80 lower-case letters, digits, dots, hyphens and underscores, a letter or digit first. "
            f"Got {values['id']!r}."
        )
    for name in ("version", "family", "follows"):
        if not values[name].strip():
            yield f"`{name}` must say something. Got {values[name]!r}."


def _placeholders(values: Mapping[str, Any]) -> Iterator[str]:
    in_system = PLACEHOLDER.findall(values.get("system", ""))
    in_user = PLACEHOLDER.findall(values["user"])
    for name in ("source", "claim"):
        if in_user.count(name) != 1 or name in in_system:
            yield f"`user` must hold {{{{{name}}}}} exactly once, and `system` not at all."
    if "question" in in_system or in_user.count("question") > 1:
        yield "`user` must hold {{question}} once at most, and `system` not at all."
    by_paragraph = map(PLACEHOLDER.findall, values["user"].split("\n\n"))
    if any("question" in found and len(found) > 1 for found in by_paragraph):
        yield "`user` must hold {{question}} in a paragraph without other placeholders: it is left out without one."
    if in_user.count("examples") != values["user"].count("{{examples}}\n\n") or in_user.count("examples") > 1:
        yield "`user` must hold {{examples}} once at most, as a paragraph of its own."
    if "examples" in in_system:
        yield "`system` must not hold {{examples}}, which belongs to `user`. Got it."
    for name in sorted({*in_system, *in_user} - {"source", "claim", "examples", "question", "verdict"}):
        allowed = "claim, examples, question, source and verdict"
        yield f"`user` must hold no placeholder but {allowed}. Got {{{{{name}}}}}."
    if "verdict" not in in_system + in_user and values.get("fenced", True):
        yield "`user` must hold {{verdict}} where it tells the judge how to write the answer. Got none."
    if values.get("coded", False) and (values.get("listed", False) or not values.get("fenced", True)):
        yield "`coded` must be false where `fenced` is false or `listed` is true: such an answer has no marker."


def _order(values: Mapping[str, Any]) -> Iterator[str]:
    leads = values["user"].lstrip().startswith("{{source}}")
    if values.get("document_first", False) and not leads:
        yield "`user` must begin with {{source}} where `document_first` is true, for prompts to share the prefix."
    if leads and not values.get("document_first", False):
        yield "`document_first` must be true where `user` begins with {{source}}. Got False."


def _labels(values: Mapping[str, Any]) -> Iterator[str]:
    words = values.get("verdict_words", {})
    labels = {**values.get("labels", {}), **words}
    if values.get("kind", "verdict") == "score":
        if labels:
            yield f"`labels` must be empty for a prompt of kind score. Got {', '.join(labels)}."
        return
    for label, polarity in labels.items():
        if isinstance(polarity, bool) or polarity not in (1, 0, -1):
            yield f"`labels` must map to 1, 0 or -1 (abstains). Got {polarity!r} for {label!r}."
    for polarity, meaning in ((1, "consistent"), (0, "inconsistent")):
        if polarity not in labels.values():
            yield f"`labels` must have a label for {polarity} ({meaning}). Got none."
    said = [normalise_label(label) for label in labels]
    if "" in said or len(set(said)) < len(said):
        listed = ", ".join(map(repr, labels))
        yield f"`labels` must differ by more than case, punctuation and white space. Got {listed}."
    yield from _unmentioned(values)


def _unmentioned(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a problem for the first label of each polarity where the judge is never told of it."""
    told = values.get("system", "") + values["user"]
    for label in first_labels(values.get("labels") or values.get("verdict_words", {})):
        if label not in told:
            yield f"`user` must tell the judge of each label. Got none of {label!r}."


def first_labels(labels: Mapping[str, int]) -> list[str]:
    """Return the first label of each polarity, in the order declared; the others are other spellings."""
    first: dict[int, str] = {}
    for label, polarity in labels.items():
        first.setdefault(polarity, label)
    return list(first.values())


def _scale(values: Mapping[str, Any]) -> Iterator[str]:
    scale, threshold = values.get("scale"), values.get("threshold", 0.5)
    if (scale is not None) != (values.get("kind", "verdict") == "score"):
        yield f"`scale` must be given exactly where `kind` is score, as [lowest, highest]. Got {scale!r}."
    elif scale is not None and not _is_scale(_ends(scale)):
        yield f"`scale` must be two numbers, the lower one first, or a number for each word. Got {scale!r}."
    if scale is None and values.get("threshold_reason", ""):
        yield f"`threshold_reason` must be empty where `kind` is verdict. Got {values['threshold_reason']!r}."
    if not 0 <= threshold <= 1:
        yield f"`threshold` must lie in [0, 1], where 0 is the lowest score and 1 the highest. Got {threshold!r}."


def _parts(values: Mapping[str, Any]) -> Iterator[str]:
    parts = values.get("parts", ())
    if parts and values.get("output", "text") == "text":
        yield "`parts` must be empty where `output` is text, which has no place for them."
    if not all(isinstance(part, str) and _PART.fullmatch(part) for part in parts) or len(set(parts)) < len(parts):
        yield f"`parts` must be different names of lower-case letters and underscores. Got {list(parts)!r}."
    elif set(parts) & {"reasoning", "score", "verdict"}:
        yield f"`parts` must not be named reasoning, score or verdict, which are there already. Got {list(parts)!r}."
    for part in parts:
        if str(part) not in values["user"]:
            yield f"`user` must tell the judge of each of `parts`. Got none of {part!r}."


def _ends(scale: Any) -> Any:
    """Return the lowest and the highest score of a scale in words; one in numbers as it is."""
    if not isinstance(scale, dict):
        return scale
    numbers = [number for number in scale.values() if isinstance(number, int | float)]
    return [min(numbers), max(numbers)] if numbers and len(numbers) == len(scale) else []


def _is_scale(scale: Any) -> bool:
    numbers = [x for x in scale if isinstance(x, int | float) and not isinstance(x, bool)]
    return len(scale) == len(numbers) == 2 and float("-inf") < numbers[0] < numbers[1] < float("inf")


def _parameters(values: Mapping[str, Any]) -> Iterator[str]:
    parameters = values.get("parameters", {})
    for name in sorted(parameters.keys() & set(_OURS)):
        yield f"`parameters` must leave out {', '.join(sorted(_OURS))}, which the call layer sets. Got {name!r}."
    temperature, tokens = parameters.get("temperature", 0), parameters.get("max_tokens", 1)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
        yield f"`parameters.temperature` must lie in [0, 2]. Got {temperature!r}."
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        yield f"`parameters.max_tokens` must be a whole number from 1. Got {tokens!r}."
    try:
        json.dumps(parameters, allow_nan=False)
    except (TypeError, ValueError):
        yield f"`parameters` must be numbers, strings, booleans, lists and tables. Got {parameters!r}."
