"""Where a reply may hold its answer: behind a marker, in an element, an object or a box, or by itself."""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from deep.prompt_pool._material import CODE_LENGTH, unrepeated
from deep.prompt_pool.reader._words import one_of, pattern

Kind = Literal["score", "verdict"]

# More line-initial braces than this is no answer, and bounds the work that a hostile reply can cause.
MOST_OBJECTS = 50
MOST_MARKS = 500
DEEPEST = 6


class Place(NamedTuple):
    """A part of a reply that may be its answer.

    `sure` is whether it is named as the prompt asked; `strict` is true where only a bare label may stand.
    Its form is `text` where it runs from a marker to the next one or the end, and is not enclosed in anything.
    """

    start: int
    value_start: int
    end: int
    value: Any
    form: Literal["box", "json", "table", "text", "xml"]
    sure: bool = False
    strict: bool = False
    fields: dict[str, Any] | None = None


def after_thoughts(text: str) -> int | None:
    """Return where the reply begins behind the judge's hidden reasoning; None where that never ends.

    Examples
    --------
    >>> from deep.prompt_pool.reader._places import after_thoughts
    >>> after_thoughts("<think>Well.</think>NO"), after_thoughts("NO"), after_thoughts("<think>Well. NO")
    (20, 0, None)
    """
    begin = max((match.end() for match in pattern("thought_end").finditer(text)), default=0)
    return None if pattern("thought_start").search(text, begin) else begin


def line_marks(text: str, kind: Kind, tag: str | None) -> list[Place]:
    """Return the markers that begin a line, in order; each place ends where the marker does."""
    marks = [
        Place(mark.start(), mark.end(), mark.end(), "", "text", sure=True)
        for mark in _asked_marker(kind, tag).finditer(text)
    ]
    known = {mark.end for mark in marks}
    others = [*_marks_behind_sentences(text, kind, tag), *(() if tag else _other_marks(text, kind))]
    return sorted([*marks, *(mark for mark in others if mark.end not in known)])[-MOST_MARKS:]


def _suffix(tag: str | None) -> str:
    """Return the pattern of the code behind a marker: the one that it must carry, or any where it may do without."""
    return f"-{tag}" if tag else rf"(?:-[0-9a-f]{{{CODE_LENGTH}}})?"


def code_in(marker: str, kind: Kind) -> str:
    """Return the code that a marker carries, perhaps none."""
    found = re.search(rf"{kind}-([0-9a-f]{{{CODE_LENGTH}}})(?![^\W_])", marker, re.IGNORECASE)
    return found[1].casefold() if found else ""


def _asked_marker(kind: str, tag: str | None) -> re.Pattern[str]:
    sign = rf"(?:[:\uff1a]|{pattern('sign').pattern})" if tag else "[:\uff1a]"
    spelled = rf"{pattern('start').pattern}(?:final[ \t]+)?{kind}{_suffix(tag)}[*_` \t]{{0,8}}{sign}"
    return re.compile(spelled, re.MULTILINE | re.IGNORECASE | re.ASCII)


def _marks_behind_sentences(text: str, kind: str, tag: str | None) -> Iterator[Place]:
    """Yield the markers that were asked for and stand behind a sentence in its line, where that is no quotation.

    Where a text that was shown holds one, the marker carries a code, or the answer is looked up in the text.
    """
    spelled = (
        rf"(?<=[^\W\d_]{{2}}[.!;])[ \t]{{1,3}}[*_`]{{0,3}}(?:final[ \t]+)?{kind}{_suffix(tag)}[*_`]{{0,3}}[:\uff1a]"
    )
    for mark in re.finditer(spelled, text, re.IGNORECASE):
        before = text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()]
        if not (before.lstrip().startswith((">", "|")) or before.count('"') % 2 or "\u201c" in before):
            yield Place(mark.start(), mark.end(), mark.end(), "", "text", sure=True)


def _other_marks(text: str, kind: str) -> Iterator[Place]:
    """Yield the markers in other words or with another sign than the prompt asked for."""
    for mark in [*pattern(f"other_{kind}").finditer(text)][-MOST_MARKS:]:
        before = text[max(0, mark.start() - 200) : mark.start()].rstrip(" \t\r\n*_")
        if not pattern("asks_else").search(before):
            yield Place(mark.start(), mark.end(), mark.end(), "", "text", strict=not mark["sign"])


def elements(text: str, kind: Kind, tag: str | None, begin: int) -> Iterator[Place]:
    """Yield the elements of the name that was asked for, of other names for an answer, and a first one of any name.

    The reply begins at `begin`, behind hidden reasoning. A score in an element of any name must be the whole reply.
    """
    body = text[begin:].strip()
    others = "" if tag else f"|{pattern('other_element').pattern}|(?P<any>{pattern('any_element').pattern})"
    name = rf"(?P<name>(?P<asked>{kind}{_suffix(tag)}){others})"
    spelled = (
        rf"<[ \t]{{0,4}}{name}[ \t]{{0,4}}>(?P<value>[^<]{{0,300}})<[ \t/<]{{0,8}}/[ \t<]{{0,4}}(?P=name)[ \t]{{0,4}}>"
    )
    for match in re.finditer(spelled, text, re.IGNORECASE | re.ASCII):
        asked, any_name = bool(match["asked"]), None if tag else match["any"]
        at = (match.start(), match.start("value"), match.end())
        if not any_name or (body.startswith(match[0]) if kind == "verdict" else body == match[0]):
            fields = {any_name: match["value"]} if any_name else None
            yield Place(*at, "" if fields else match["value"], "xml", asked, strict=not asked, fields=fields)


def tables(text: str, kind: Kind) -> Iterator[Place]:
    """Yield the cell below the name of the answer in tables with one row, as judges write them in Markdown."""
    for match in pattern("table").finditer(text):
        lines = (match[name].strip(" \t|").split("|") for name in ("head", "row"))
        head, row = ([cell.strip(" \t*_`") for cell in line] for line in lines)
        named = [i for i, cell in enumerate(head) if pattern(f"{kind}_name").fullmatch(cell)]
        if len(named) == 1 and len(head) == len(row):
            yield Place(match.start(), match.start("row"), match.end(), row[named[0]], "table")


def boxes(text: str) -> Iterator[Place]:
    r"""Yield the contents of ``\boxed{...}`` and ``[[...]]``."""
    for match in pattern("box").finditer(text):
        yield Place(match.start(), match.start(match.lastgroup or 0), match.end(), match[match.lastgroup or 0], "box")


def objects(text: str, kind: Kind, tag: str | None) -> Iterator[Place]:
    """Yield the objects that begin a line and have a key for the answer, also where they are not quite JSON."""
    end, cleared = 0, pattern("noise").sub(lambda noise: " " * len(noise[0]), text)
    for match in list(pattern("object_start").finditer(text))[-MOST_OBJECTS:]:
        start = match.start(1)
        if start < end:
            continue
        if decoded := _decode(cleared, start):
            fields, end = decoded
            value, sure, holder = _answer_in(fields, kind, tag)
            yield Place(start, start, end, value, "json", sure, fields=holder)
        else:
            yield from _loose_object(text, start, kind, tag)


def _answer_in(fields: dict[str, Any], kind: Kind, tag: str | None) -> tuple[Any, bool, dict[str, Any]]:
    """Return the answer that an object holds, whether it stands under the key that was asked for, and its object.

    Where there is none but in a single object inside, or in a list of one, that object is looked at.
    """
    value, sure = _own_answer(fields, kind, tag)
    for _ in range(DEEPEST):
        if not isinstance(value, dict | list):
            return value, sure, fields
        if isinstance(value, list):
            value = value[0] if len(value) == 1 else None
        else:
            fields = value
            value, sure = _own_answer(fields, kind, tag)[0], False
    return None, False, fields


def _own_answer(fields: dict[str, Any], kind: Kind, tag: str | None) -> tuple[Any, bool]:
    named = [value for key, value in fields.items() if re.fullmatch(kind + _suffix(tag), key)]
    if tag or named:
        return (named[0], not isinstance(named[0], dict | list)) if len(named) == 1 else (None, False)
    found = [value for key, value in fields.items() if re.sub(r"[\s_-]", "", key) in one_of(f"{kind}_keys").split("|")]
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


def _loose_object(text: str, start: int, kind: Kind, tag: str | None) -> Iterator[Place]:
    """Yield an object with single quotes, without quotes, with quotes inside quotes or with a comma too many."""
    if (flat := pattern("flat").match(text, start)) is None:
        return
    found = list(pattern(f"loose_{kind}").finditer(flat[1])) or [*pattern("last_key").finditer(flat[1])][-1:]
    if tag and not (len(found) == 1 and code_in(found[0][0], kind) == tag):
        return
    value = pattern("loose_value").match(flat[1], found[0].end()) if len(found) == 1 else None
    if value:
        said = next(group for group in value.groups() if group is not None)
        named = found[0].re is pattern(f"loose_{kind}")
        yield Place(start, flat.start(1) + found[0].start(), flat.end(), said, "json", strict=not named)
