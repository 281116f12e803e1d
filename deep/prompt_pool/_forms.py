"""Where a reply may hold its answer: behind a marker, in an element, an object or a box, or by itself."""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from deep.prompt_pool._material import CODE_LENGTH

Kind = Literal["score", "verdict"]

# More line-initial braces than this is no answer, and bounds the work that a hostile reply can cause.
MOST_OBJECTS = 50
MOST_MARKS = 500

_NAMES: dict[str, str] = {
    "verdict": r"verdict|answer|conclusion|judge?ment|decision|label|classification|determination|assessment|ruling"
    r"|result"
    r"|output|response|prediction|urteil|antwort|ergebnis|fazit|r\u00e9ponse|veredicto|respuesta|conclusi\u00f3n"
    r"|verdetto"
    r"|risposta|veredito|resposta|\u0432\u0435\u0440\u0434\u0438\u043a\u0442|\u043e\u0442\u0432\u0435\u0442"
    r"|(?:\u6700\u7ec8|\u6700\u7d42)?(?:\u7b54\u6848|\u7ed3\u8bba|\u7d50\u8ad6|\u5224\u65ad|\u5224\u5b9a|\u88c1\u51b3"
    r"|\u56de\u7b54|\u7d50\u8ad6|\u7d50\u679c)|\ud310\uc815|\ub2f5\ubcc0|\uc815\ub2f5",
    "score": r"scores?|rating|grade|stars?|points?|answer|result|output|response|assessment|punktzahl|note"
    r"|puntuaci\u00f3n",
}
_KEYS: dict[str, tuple[str, ...]] = {
    "verdict": ("finalverdict", "answer", "finalanswer", "label", "judgment", "judgement", "decision", "conclusion"),
    "score": ("finalscore", "rating", "grade", "stars", "answer", "finalanswer"),
}
_START = (
    r"(?:^|</(?:think|thinking|thought|reasoning|analysis|reflection)>|<\|[^|\n]{1,40}\|>|<(?:answer|output|response|result)>)"
    r"[ \t*_#`\"'(\[\u2018\u201c\u2022\u00b7\u2023\u25aa\u27a4\u27a1\u2192\u2705\u274c\ufe0f-]{0,40}"
    r"(?:\d{1,2}[.)][ \t*_]{0,8})?(?:</?(?:b|strong|p|em|i)>){0,2}(?:assistant[ \t]{0,4}:[ \t]{0,4})?"
)
_SIGN = r"(?:[:\uff1a=]|[-\u2010-\u2015]+>?(?=[\s*_])|\u2192|\bis\b[ \t]*[:\uff1a]?)"
_THOUGHT_END = re.compile(
    r"</(?:think|thinking|thought|reflection|analysis)>|<\|channel\|>final<\|message\|>", re.IGNORECASE
)
_THOUGHT_START = re.compile(r"^[ \t]*<(?:think|thinking|thought|reflection|analysis)>", re.IGNORECASE | re.MULTILINE)
_OBJECT = re.compile(
    r"(?:^|</think>|\|>|[:\uff1a][ \t]|<(?:answer|output|response|result)>)[ \t]*(?:```(?:json)?[ \t]*)?(\{)",
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
    form: Literal["box", "json", "text", "xml"]
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
    >>> from deep.prompt_pool._forms import after_thoughts
    >>> after_thoughts("<think>Well.</think>NO"), after_thoughts("NO"), after_thoughts("<think>Well. NO")
    (20, 0, None)
    """
    begin = max((match.end() for match in _THOUGHT_END.finditer(text)), default=0)
    return None if _THOUGHT_START.search(text, begin) else begin


def line_marks(text: str, kind: Kind, tag: str | None) -> list[Place]:
    """Return the markers that begin a line, in order; each place ends where the marker does."""
    marks = [
        Place(mark.start(), mark.end(), mark.end(), "", "text", sure=True)
        for mark in _asked_marker(kind, tag).finditer(text)
    ]
    known = {mark.end for mark in marks}
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


def _other_marks(text: str, kind: str) -> Iterator[Place]:
    """Yield the markers in other words or with another sign than the prompt asked for."""
    for mark in _OTHER_MARKER[kind].finditer(text):
        before = text[max(0, mark.start() - 80) : mark.start()].rstrip(" \t\r\n*_")
        if not before.endswith(("?", "\uff1f")):
            yield Place(mark.start(), mark.end(), mark.end(), "", "text", strict=not mark["sign"])


_OTHER_MARKER = {
    kind: re.compile(
        rf"{_START}(?:(?:so|therefore|thus|hence|overall|in conclusion"
        rf"|(?:based on|given|considering|in light of) [^,.\n]{{1,80}})"
        rf"[,:]?[ \t]+)?(?:(?:my|the|our)[ \t]+)?"
        rf"(?:(?:final|overall)[ \t_-]+)?(?:{names})(?![\w-])[*_`\"' \t]{{0,8}}(?P<sign>{_SIGN})?(?(sign)|(?=[\s*_`]))",
        re.MULTILINE | re.IGNORECASE,
    )
    for kind, names in _NAMES.items()
}


def elements(text: str, kind: Kind, tag: str | None) -> Iterator[Place]:
    """Yield the elements of the name that was asked for, and those of other names for an answer."""
    others = "" if tag else "|(?:final[_-])?answer|label|conclusion|decision|judge?ment|result|output"
    name = rf"(?P<name>(?P<asked>{kind}{_suffix(tag)}){others})"
    pattern = (
        rf"<[ \t]{{0,4}}{name}[ \t]{{0,4}}>(?P<value>[^<]{{0,300}})<[ \t]{{0,4}}/[ \t]{{0,4}}(?P=name)[ \t]{{0,4}}>"
    )
    for match in re.finditer(pattern, text, re.IGNORECASE | re.ASCII):
        yield Place(match.start(), match.start("value"), match.end(), match["value"], "xml", bool(match["asked"]))


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
            value, sure = _answer_in(fields, kind)
            yield Place(start, start, end, value, "json", sure, fields=fields)
        else:
            yield from _loose_object(text, start, kind)


def _answer_in(fields: dict[str, Any], kind: Kind) -> tuple[Any, bool]:
    """Return the answer that an object holds, and whether it stands under the key that was asked for."""
    if kind in fields:
        return fields[kind], True
    found = [value for key, value in fields.items() if re.sub(r"[\s_-]", "", key) in _KEYS[kind]]
    return (found[0] if len(found) == 1 else None), False


def _decode(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    """Return the JSON object at `start`, its keys in lower case, and where it ends."""
    try:
        fields, end = json.JSONDecoder(object_pairs_hook=_unrepeated, strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return fields, end


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as a dict; an object that says one key twice says nothing."""
    fields = {key.casefold(): value for key, value in pairs}
    if len(fields) < len(pairs):
        raise ValueError("a key is repeated")
    return fields


def _loose_object(text: str, start: int, kind: Kind) -> Iterator[Place]:
    """Yield an object with single quotes, without quotes, with quotes inside quotes or with a comma too many."""
    flat = _FLAT.match(text, start)
    found = list(_LOOSE_KEY[kind].finditer(flat[1])) if flat else []
    if flat is None or len(found) != 1:
        return
    value = _LOOSE_VALUE.match(flat[1], found[0].end())
    if value:
        said = next(group for group in value.groups() if group is not None)
        yield Place(start, start, flat.end(), said, "json")


_LOOSE_KEY = {
    kind: re.compile(
        rf"[\"'\u201c\u2018]?\b(?:final[ _-]?)?(?:{kind}|answer|label)[\"'\u201d\u2019]?\s*[:\uff1a=]\s*", re.IGNORECASE
    )
    for kind in _KEYS
}
_LOOSE_VALUE = re.compile(r"(?:\"([^\"\n]*)\"|'([^'\n]*)'|\u201c([^\u201d\n]*)\u201d|([^\s,\"'][^,\"'\n]*?))\s*(?:,|$)")
