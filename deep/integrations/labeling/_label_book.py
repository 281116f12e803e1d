"""Labels of items by people, event by event: given, skipped, taken back, looked at."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from typing import Literal

from deep._util.files import JsonObject
from deep._util.names import plain_form
from deep.datasets import Item
from deep.exceptions import InputError
from deep.integrations.labeling._annotations import Annotations, annotations_of

Deed = Literal["label", "queue", "reveal", "show", "skip", "undo"]
DEEDS: tuple[Deed, ...] = ("label", "queue", "reveal", "show", "skip", "undo")

UNDECIDED = -1
"""The label of an item that a person calls undecidable."""

ANNOTATION_COLUMNS = ("dataset", "item_id", "annotator", "label", "ambiguous", "note", "time", "after_reveal")

AMBIGUOUS = "relation"
"""The kind of ambiguity that an undecidable item has in a file of annotations: what is connected with what, or why."""


@dataclass(frozen=True, slots=True)
class LabelEvent:
    """One thing that happened to one item.

    Parameters
    ----------
    do : {'label', 'queue', 'reveal', 'show', 'skip', 'undo'}
        ``queue`` puts the item among those to be labeled; ``show`` gave it to the person; ``undo`` takes back the
        person's label or skip of it; ``reveal`` showed the person votes, P and the labels of others.
    dataset, item_id : str
    person : str, default=''
        Nobody for ``queue``.
    label : int, default=-1
        1, 0 or -1 (cannot be decided) of a ``label``.
    note : str, default=''
    time : str, default=''
        ISO 8601.
    people : int, default=1
        How many people are to label an item of the ``queue``.
    """

    do: Deed
    dataset: str
    item_id: str
    person: str = ""
    label: int = UNDECIDED
    note: str = ""
    time: str = ""
    people: int = 1

    @property
    def item(self) -> Item:
        """Return the dataset and the id of the item."""
        return self.dataset, self.item_id


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """The last word of a person on an item.

    Parameters
    ----------
    label : int or None
        1, 0, -1 (cannot be decided) or None (skipped).
    note, time : str
    after_reveal : bool
        Whether the person had looked at votes, P and the labels of others before.
    """

    label: int | None
    note: str
    time: str
    after_reveal: bool


@dataclass
class AnswerBook:
    """The state of labels after some events: later ones of a person and item take the place of earlier ones.

    Parameters
    ----------
    queue : dict of Item to int
        By item to be labeled, in order: how many people are to label it.
    answers : dict of str to dict of Item to GivenAnswer
        By person, the latest last.
    revealed : dict of str to set of Item
        By person.
    shown : dict of str to Item
        By person: the item that was given and has no answer yet.
    given : set of (Item, str, int, str)
        Item, person, label and note of every label that was ever given, those that were taken back too.

    Examples
    --------
    >>> from deep.integrations.labeling import AnswerBook, LabelEvent
    >>> book = AnswerBook()
    >>> book.add(LabelEvent("label", "news", "a", "Ann", 1))
    >>> book.add(LabelEvent("label", "news", "b", "Ann", 0))
    >>> book.add(LabelEvent("undo", "news", "b", "Ann"))
    >>> book.majority()
    {('news', 'a'): 1}
    """

    queue: dict[Item, int] = field(default_factory=dict)
    answers: dict[str, dict[Item, GivenAnswer]] = field(default_factory=dict)
    revealed: dict[str, set[Item]] = field(default_factory=dict)
    shown: dict[str, Item] = field(default_factory=dict)
    given: set[tuple[Item, str, int, str]] = field(default_factory=set)

    def add(self, event: LabelEvent) -> None:
        """Apply the next event."""
        own = self.answers.setdefault(event.person, {}) if event.person else {}
        match event.do:
            case "queue":
                self.queue[event.item] = event.people
            case "reveal":
                self.revealed.setdefault(event.person, set()).add(event.item)
            case "show":
                self.shown[event.person] = event.item
            case "undo":
                own.pop(event.item, None)
            case "label" | "skip":
                own.pop(event.item, None)  # so that it comes last
                if self.shown.get(event.person) == event.item:
                    del self.shown[event.person]
                label = event.label if event.do == "label" else None
                if label is not None:
                    self.given.add((event.item, event.person, label, event.note))
                seen = event.item in self.revealed.get(event.person, set())
                own[event.item] = GivenAnswer(label, event.note, event.time, seen)

    @property
    def people(self) -> tuple[str, ...]:
        """Return the names of all who did something, sorted."""
        return tuple(sorted(self.answers))

    def labels(self) -> Iterator[tuple[Item, str, GivenAnswer]]:
        """Yield every label that holds, skipped items apart: by the order of the queue, then by person."""
        found = ((item, who, given) for who, own in self.answers.items() for item, given in own.items())
        at = {item: number for number, item in enumerate(self.queue)}
        kept = [each for each in found if each[2].label is not None]
        yield from sorted(kept, key=lambda each: (at.get(each[0], len(at)), each[0], each[1]))

    def labelers(self, item: Item) -> list[str]:
        """Return who has labeled an item, sorted."""
        return [who for who in self.people if (given := self.answers[who].get(item)) and given.label is not None]

    def missing(self, item: Item) -> int:
        """Return how many people are still to label an item of the queue; less than 1 where it is done."""
        return self.queue[item] - len(self.labelers(item))

    def balance(self) -> dict[Item, int]:
        """Return, for each item that anybody decided, how many more people say 1 than say 0."""
        found: Counter[Item] = Counter()
        for item, _, given in self.labels():
            if given.label in (0, 1):
                found[item] += 1 if given.label == 1 else -1
        return dict(found)

    def majority(self) -> dict[Item, int]:
        """Return the label of most people for each item that has one; ties are left out."""
        return {item: int(balance > 0) for item, balance in self.balance().items() if balance}

    def ties(self) -> list[Item]:
        """Return the items on which as many people say 1 as say 0."""
        return [item for item, balance in self.balance().items() if not balance]

    def annotation_rows(self) -> list[dict[str, str]]:
        """Return a row for each item and person, with the columns `ANNOTATION_COLUMNS`."""
        return [
            {
                "dataset": item[0],
                "item_id": item[1],
                "annotator": person,
                "label": "" if given.label == UNDECIDED else str(given.label),
                "ambiguous": AMBIGUOUS if given.label == UNDECIDED else "",
                "note": given.note,
                "time": given.time,
                "after_reveal": str(int(given.after_reveal)),
            }
            for item, person, given in self.labels()
        ]

    def annotations(self, items: Collection[Item] = ()) -> Annotations:
        """Return the labels of one dataset as annotations, as a file of them would be read.

        Parameters
        ----------
        items : collection of Item, optional
            The items to keep; default: all.

        Raises
        ------
        InputError
            Two datasets share the id of an item.
        """
        rows = [row for row in self.annotation_rows() if not items or (row["dataset"], row["item_id"]) in items]
        keys = {(row["item_id"], row["dataset"]) for row in rows}
        if len({item for item, _ in keys}) < len(keys):
            raise InputError("`labels` must be of one dataset. Got an item of the same id in two.")
        return annotations_of(list(ANNOTATION_COLUMNS), rows, "the log")


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
            return log_line(replace(event, person=plain_form(event.person)), before)
        line = log_line(event, values["before"])
    except (KeyError, TypeError, InputError):
        return None
    return line if _version(values) == SCHEMA and line.check == values.get("check") else None
