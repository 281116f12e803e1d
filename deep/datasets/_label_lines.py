"""The lines of a log of labels: each with a checksum of itself, and the checksum of the line before it."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from hashlib import sha256

from deep._files import JsonObject
from deep._names import person_name
from deep.datasets._label_book import DEEDS, LabelEvent
from deep.exceptions import InputError

SCHEMA = 2
"""The version of the lines of a log; those of version 1 have no checksums."""

START = b'{"schema_version"'
"""How every line begins; no text in a line can hold it, for JSON escapes quotes."""

_NAMES = tuple(field.name for field in fields(LabelEvent))
_STRAY = b" \t\r\0\xef\xbb\xbf"
"""Bytes that editors, and logs that were lengthened, put around a line."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that is whole.

    Parameters
    ----------
    event : LabelEvent
    before : str
        The checksum of the line before it; '' for the first.
    check : str
        Its own checksum, which `before` is part of, so that no two lines of a log share one.
    data : bytes
        As it is written.
    """

    event: LabelEvent
    before: str
    check: str
    data: bytes


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """Bytes of a log that are no line, and the number of the line that they stand in."""

    number: int
    data: bytes


def log_line(event: LabelEvent, before: str) -> LogLine:
    """Return the line of an event behind the line of a checksum."""
    values = {"schema_version": SCHEMA, **{name: getattr(event, name) for name in _NAMES}, "before": before}
    # Half a surrogate pair is escaped: it has no bytes in UTF-8.
    body = json.dumps(values)[:-1].encode("ascii")
    check = sha256(body).hexdigest()[:16]
    return LogLine(event, before, check, b'%s, "check": "%s"}\n' % (body, check.encode()))


def log_lines(events: Iterable[LabelEvent], before: str) -> list[LogLine]:
    """Return the lines of events, the first behind the line of a checksum, each other behind its neighbour."""
    lines = []
    for event in events:
        lines.append(log_line(event, before))
        before = lines[-1].check
    return lines


def split_log(data: bytes) -> tuple[list[LogLine], list[BrokenLine]]:
    """Return the whole lines of a log, in the order of the file, and what else it holds.

    Ends of lines and a byte-order mark of an editor break no line, nor does a line end that is missing between two.

    Raises
    ------
    InputError
        A newer deep wrote the last line.
    """
    lines: list[LogLine] = []
    broken: list[BrokenLine] = []
    newer = False
    for number, row in enumerate(data.split(b"\n"), start=1):
        for piece in (row,) if row.count(START) < 2 else re.split(b"(?=%s)" % re.escape(START), row):
            text = piece.strip(_STRAY)
            if text:
                values = _values(text)
                line = None if values is None else _whole(values, lines[-1].check if lines else "")
                newer = line is None and _version(values) > SCHEMA
                lines += [] if line is None else [line]
                broken += [BrokenLine(number, text)] if line is None else []
    if newer:
        raise InputError(
            f"`labels` must be a log of schema version {SCHEMA} at most. Got {broken[-1].data[:60]!r} at line "
            f"{broken[-1].number}. Use the newer deep that wrote it."
        )
    return lines, broken


def in_written_order(lines: Iterable[LogLine]) -> list[LogLine]:
    """Return lines of one log or several, each once, and behind the line that it was written behind, if that is there.

    Where two were written behind the same line, as in copies that went different ways, the first given comes first.
    """
    once: dict[str, LogLine] = {}
    for line in lines:
        once.setdefault(line.check, line)
    waiting: dict[str, list[LogLine]] = {}
    ordered: list[LogLine] = []
    done: set[str] = set()
    for line in once.values():
        if line.before in once and line.before not in done:
            waiting.setdefault(line.before, []).append(line)
            continue
        ready = [line]
        while ready:
            ordered.append(ready.pop())
            done.add(ordered[-1].check)
            ready += reversed(waiting.pop(ordered[-1].check, []))
    return ordered


def _values(text: bytes) -> JsonObject | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _version(values: JsonObject | None) -> int:
    found = (values or {}).get("schema_version")
    return found if type(found) is int else 0


def _whole(values: JsonObject, before: str) -> LogLine | None:
    """Return the line of some values if nothing is wrong with them; one of version 1 stands behind `before`."""
    try:
        event = LabelEvent(**{name: values[name] for name in _NAMES})
        texts = (event.dataset, event.item_id, event.person, event.note, event.time)
        right = event.do in DEEDS and all(isinstance(text, str) for text in texts)
        if not (right and type(event.people) is type(event.label) is int and event.label in (1, 0, -1)):
            return None
        if _version(values) == 1:
            return log_line(replace(event, person=person_name(event.person)), before)
        line = log_line(event, values["before"])
    except (KeyError, TypeError, InputError):
        return None
    return line if _version(values) == SCHEMA and line.check == values.get("check") else None
