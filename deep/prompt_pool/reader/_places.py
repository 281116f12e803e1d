"""Where a reply may hold its answer: behind a marker, in an element, an object or a box, or by itself."""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from deep.prompt_pool._material import CODE_LENGTH, unrepeated
from deep.prompt_pool.reader._words import BEFORE, BEHIND, COPULA, NAMES, THEREFORE

Kind = Literal["score", "verdict"]

# More line-initial braces than this is no answer, and bounds the work that a hostile reply can cause.
MOST_OBJECTS = 50
MOST_MARKS = 500
DEEPEST = 6

_KEYS: dict[str, tuple[str, ...]] = {
    "verdict": (
        *("finalverdict", "answer", "finalanswer", "label", "judgment", "judgement", "decision", "conclusion"),
        *("result", "output", "prediction", "classification", "response", "outcome", "ruling", "assessment"),
    ),
    "score": ("finalscore", "rating", "grade", "stars", "answer", "finalanswer"),
}
_THOUGHTS = r"(?:think|thinking|thought|reflection|analysis|scratchpad|seed:think)"
_THOUGHT_CLOSES = rf"</{_THOUGHTS}>|\[/think\]|\u25c1/think\u25b7|<\|end_of_thought\|>|assistantfinal"
_HTML = r"(?:</?(?:b|strong|p|em|i|div|span|h[1-6]|li|center)>|<br ?/?>)"
# Arrows, geometric shapes, dingbats, emoji, and the selector that makes an emoji of a sign.
_SYMBOLS = "\u2190-\u21ff\u25a0-\u25ff\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff\ufe0f"
_START = (
    rf"(?:^|</reasoning>|{_THOUGHT_CLOSES}|<\|[^|\n]{{1,40}}\|>|<(?:answer|output|response|result)>)"
    rf"[ \t*_#`\"'(\[\u2018\u201c\u2022\u00b7\u2023{_SYMBOLS}|-]{{0,40}}"
    rf"(?:(?:\d{{1,2}}|[a-e])[.)][ \t*_]{{0,8}})?{_HTML}{{0,3}}"
    r"(?:(?:assistant|ai|model|judge|(?:final|last)[ \t](?:line|step)|step[ \t]\d)[ \t]{0,4}[:-][ \t*_]{0,8})?"
)
_SIGN = (
    r"(?:[:\uff1a]{1,2}|={1,3}>?|>{1,2}|[-\u2010-\u2015]+>?(?=[\s*_])|[\u2192\u2794-\u27be]|\|"
    rf"|{COPULA}[ \t]*[:\uff1a]?)"
)
_THOUGHT_END = re.compile(rf"{_THOUGHT_CLOSES}|<\|channel\|>final<\|message\|>", re.IGNORECASE)
_THOUGHT_START = re.compile(
    rf"^[ \t]*(?:<{_THOUGHTS}>|\[think\]|\u25c1think\u25b7|<\|begin_of_thought\|>)", re.IGNORECASE | re.MULTILINE
)
_OBJECT = re.compile(
    r"(?:^|</think>|\|>|[:\uff1a!.][ \t]|<(?:answer|output|response|result)>)[ \t]*"
    r"(?:```(?:json)?[ \t]*)?(?:\[\s*)?(\{)",
    re.MULTILINE | re.IGNORECASE,
)
_FLAT = re.compile(r"\{([^{}]{0,4000})\}")
_BOX = re.compile(
    r"\$?\\?\(?\\(?:boxed|fbox)\{(?P<value>(?:[^{}\n]|\{[^{}\n]{0,100}\}){1,300}?)\}(?:\s*(?:\$+|\\[)\]]))?\.?"
)


class Place(NamedTuple):
    """A part of a reply that may be its answer.

    `sure` is whether it is named as the prompt asked; `strict` is true where only a bare label may stand.
    """

    start: int
    value_start: int
    end: int
    value: Any
    form: Literal["box", "json", "table", "text", "xml"]
    sure: bool = False
    strict: bool = False
    fields: dict[str, Any] | None = None

    @property
    def behind_marker(self) -> bool:
        """Whether the answer runs from a marker to the next one or the end, and is not enclosed in anything."""
        return self.form == "text"


def after_thoughts(text: str) -> int | None:
    """Return where the reply begins behind the judge's hidden reasoning; None where that never ends.

    Examples
    --------
    >>> from deep.prompt_pool.reader._places import after_thoughts
    >>> after_thoughts("<think>Well.</think>NO"), after_thoughts("NO"), after_thoughts("<think>Well. NO")
    (20, 0, None)
    """
    begin = max((match.end() for match in _THOUGHT_END.finditer(text)), default=0)
    return None if _THOUGHT_START.search(text, begin) else begin


def ends_thoughts(text: str) -> bool:
    """Tell whether a text holds something that ends hidden reasoning, also where it was broken up."""
    return _THOUGHT_END.search(text.replace("\u200b", "")) is not None


def line_marks(text: str, kind: Kind, tag: str | None) -> list[Place]:
    """Return the markers that begin a line, in order; each place ends where the marker does."""
    marks = [
        Place(mark.start(), mark.end(), mark.end(), "", "text", sure=True)
        for mark in _asked_marker(kind, tag).finditer(text)
    ]
    known = {mark.end for mark in marks}
    marks += [mark for mark in _marks_behind_sentences(text, kind, tag) if mark.end not in known]
    if not tag:
        marks += [mark for mark in _other_marks(text, kind) if mark.end not in known]
    return sorted(marks)[-MOST_MARKS:]


def _suffix(tag: str | None) -> str:
    """Return the pattern of the code behind a marker: any where the inputs are unknown, else exactly theirs."""
    if tag is None:
        return rf"(?:-[0-9a-f]{{{CODE_LENGTH}}})?"
    return f"-{tag}" if tag else ""


def _asked_marker(kind: str, tag: str | None) -> re.Pattern[str]:
    sign = rf"(?:[:\uff1a]|{_SIGN})" if tag else "[:\uff1a]"
    pattern = rf"{_START}(?:final[ \t]+)?{kind}{_suffix(tag)}[*_` \t]{{0,8}}{sign}"
    return re.compile(pattern, re.MULTILINE | re.IGNORECASE | re.ASCII)


def _marks_behind_sentences(text: str, kind: str, tag: str | None) -> Iterator[Place]:
    """Yield the markers that were asked for and stand behind a sentence in its line, where that is no quotation.

    Where a text that was shown holds one, the marker carries a code, or the answer is looked up in the text.
    """
    pattern = (
        rf"(?<=[^\W\d_]{{2}}[.!;])[ \t]{{1,3}}[*_`]{{0,3}}(?:final[ \t]+)?{kind}{_suffix(tag)}[*_`]{{0,3}}[:\uff1a]"
    )
    for mark in re.finditer(pattern, text, re.IGNORECASE):
        before = text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()]
        if not (before.lstrip().startswith((">", "|")) or before.count('"') % 2 or "\u201c" in before):
            yield Place(mark.start(), mark.end(), mark.end(), "", "text", sure=True)


def _other_marks(text: str, kind: str) -> Iterator[Place]:
    """Yield the markers in other words or with another sign than the prompt asked for."""
    for mark in _OTHER_MARKER[kind].finditer(text):
        before = text[max(0, mark.start() - 80) : mark.start()].rstrip(" \t\r\n*_")
        if not before.endswith(("?", "\uff1f")):
            yield Place(mark.start(), mark.end(), mark.end(), "", "text", strict=not mark["sign"])


_OTHER_MARKER = {
    kind: re.compile(
        rf"{_START}{THEREFORE}{BEFORE}(?:{names})(?:(?![\w-])|(?={COPULA})){BEHIND}[*_`\"' \t]{{0,8}}"
        rf"(?P<sign>{_SIGN})?(?(sign)|(?=[\s*_`]))",
        re.MULTILINE | re.IGNORECASE,
    )
    for kind, names in NAMES.items()
}


def elements(text: str, kind: Kind, tag: str | None) -> Iterator[Place]:
    """Yield the elements of the name that was asked for, and those of other names for an answer."""
    others = (
        ""
        if tag
        else "|final(?:[_-]?verdict)?|(?:final[_-])?answer|label|conclusion|decision|judge?ment|result|output"
        "|statement|choice|prediction|classification|evaluation"
    )
    name = rf"(?P<name>(?P<asked>{kind}{_suffix(tag)}){others})"
    pattern = (
        rf"<[ \t]{{0,4}}{name}[ \t]{{0,4}}>(?P<value>[^<]{{0,300}})<[ \t/<]{{0,8}}/[ \t<]{{0,4}}(?P=name)[ \t]{{0,4}}>"
    )
    for match in re.finditer(pattern, text, re.IGNORECASE | re.ASCII):
        yield Place(match.start(), match.start("value"), match.end(), match["value"], "xml", bool(match["asked"]))


def tables(text: str, kind: Kind) -> Iterator[Place]:
    """Yield the cell below the name of the answer in tables with one row, as judges write them in Markdown."""
    for match in _TABLE.finditer(text):
        head, row = (_cells(match[name]) for name in ("head", "row"))
        named = [i for i, cell in enumerate(head) if re.fullmatch(rf"(?:final )?{kind}", cell, re.IGNORECASE)]
        if len(named) == 1 and len(head) == len(row):
            yield Place(match.start(), match.start("row"), match.end(), row[named[0]], "table")


def _cells(line: str) -> list[str]:
    return [cell.strip(" \t*_`") for cell in line.strip(" \t|").split("|")]


_TABLE = re.compile(
    r"^[ \t]*(?P<head>\|[^\n]{1,400})\n[ \t]*\|?[ \t]*:?-{2,}[-:| \t]{0,200}\n"
    r"[ \t]*(?P<row>\|(?:[^\n<]|<(?!\|)){1,1000}\|)"
    r"(?!\n[ \t]*\|)",
    re.MULTILINE,
)


def boxes(text: str) -> Iterator[Place]:
    r"""Yield the contents of ``\boxed{...}``."""
    for match in _BOX.finditer(text):
        yield Place(match.start(), match.start("value"), match.end(), match["value"], "box")


def objects(text: str, kind: Kind) -> Iterator[Place]:
    """Yield the objects that begin a line and have a key for the answer, also where they are not quite JSON."""
    end = 0
    for match in list(_OBJECT.finditer(text))[-MOST_OBJECTS:]:
        start = match.start(1)
        if start < end:
            continue
        decoded = _decode(text, start)
        if decoded is not None:
            fields, end = decoded
            value, sure, holder = _answer_in(fields, kind)
            yield Place(start, start, end, value, "json", sure, fields=holder)
        else:
            yield from _loose_object(text, start, kind)


def _answer_in(fields: dict[str, Any], kind: Kind) -> tuple[Any, bool, dict[str, Any]]:
    """Return the answer that an object holds, whether it stands under the key that was asked for, and its object.

    Where there is none but in a single object inside, or in a list of one, that object is looked at.
    """
    value, sure = _own_answer(fields, kind)
    for _ in range(DEEPEST):
        if not isinstance(value, dict | list):
            return value, sure, fields
        if isinstance(value, list):
            value = value[0] if len(value) == 1 else None
        else:
            fields = value
            value, sure = _own_answer(fields, kind)[0], False
    return None, False, fields


def _own_answer(fields: dict[str, Any], kind: Kind) -> tuple[Any, bool]:
    if kind in fields:
        return fields[kind], not isinstance(fields[kind], dict | list)
    found = [value for key, value in fields.items() if re.sub(r"[\s_-]", "", key) in _KEYS[kind]]
    nested = found or [value for value in fields.values() if isinstance(value, dict | list)]
    return (nested[0] if len(nested) == 1 else None), False


def _decode(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    """Return the JSON object at `start`, its keys in lower case, and where it ends."""
    try:
        fields, end = json.JSONDecoder(object_pairs_hook=unrepeated, strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return fields, end


def entries(text: str) -> list[dict[str, Any]]:
    r"""Return the objects of the one list that a reply is, also where quotes in it are escaped as JSON does not allow.

    Examples
    --------
    >>> from deep.prompt_pool.reader._places import entries
    >>> said = '```json\n[{"fact": "It rained.", "response": "Yes"}, {"fact": "It\\\'s cold.", "response": "No"}]\n```'
    >>> entries(said)[1]
    {'fact': "It's cold.", 'response': 'No'}
    """
    start = text.find("[", after_thoughts(text) or 0)
    for said in (text, text.replace("\\'", "'")):
        try:
            listed, _ = json.JSONDecoder(object_pairs_hook=unrepeated, strict=False).raw_decode(said, max(start, 0))
        except (ValueError, RecursionError):
            continue
        found = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        if found and len(found) == len(listed):
            return found
    return []


def _loose_object(text: str, start: int, kind: Kind) -> Iterator[Place]:
    """Yield an object with single quotes, without quotes, with quotes inside quotes or with a comma too many."""
    flat = _FLAT.match(text, start)
    found = list(_LOOSE_KEY[kind].finditer(flat[1])) if flat else []
    if flat is None or len(found) != 1:
        return
    value = _LOOSE_VALUE.match(flat[1], found[0].end())
    if value:
        said = next(group for group in value.groups() if group is not None)
        yield Place(start, flat.start(1) + found[0].start(), flat.end(), said, "json")


_LOOSE_KEY = {
    kind: re.compile(
        rf"[\"'\u201c\u2018]?\b(?:final[ _-]?)?(?:{kind}|answer|label)[\"'\u201d\u2019]?\s*[:\uff1a=]\s*", re.IGNORECASE
    )
    for kind in _KEYS
}
_LOOSE_VALUE = re.compile(r"(?:\"([^\"\n]*)\"|'([^'\n]*)'|\u201c([^\u201d\n]*)\u201d|([^\s,\"'][^,\"'\n]*?))\s*(?:,|$)")
