"""The desk at which people label: who gets which item, what they may see; and the page that asks it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from deep._util.files import JsonObject
from deep._util.names import check_name, sentence_spans, visible_form
from deep.datasets import Item
from deep.evaluate import agreement_measures
from deep.exceptions import InputError, needs_extra
from deep.integrations.labeling import _label_log
from deep.integrations.labeling._label_book import (
    AnswerBook,
    LabelEvent,
    keep_other_labels,
    write_annotations,
    write_labels,
)
from deep.integrations.labeling._subject import LabelFolder, LabelSubject, label_summary
from deep.integrations.serve import WebError, make_app
from deep.records import Example
from deep.report import page_asset

if TYPE_CHECKING:
    from starlette.applications import Starlette


# Items that are laid out at a time: their texts are read, and the log has them.
N_LAID_OUT = 500

# Resamples of the intervals of agreement on the page.
N_BOOT = 500


@dataclass
class LabelDesk:
    """The desk of several people who label items of one dataset; safe to use from several threads.

    What a person gets to see before a label holds texts alone: no vote, no P, and no label of anybody else.

    Parameters
    ----------
    subject : LabelSubject
        The dataset whose items are labeled, with its votes, model and texts.
    log : LabelLog
        With a queue.
    files : LabelFolder
        The paths of the log and of the two tables that are written from it.
    rest : list of Item
        Items that were drawn and are laid out, a few hundred at a time, as people come to them.
    problem : str
        Why the tables could not be written lately; else ''. The log has everything even so.

    See Also
    --------
    open_label_desk : The way to one.
    """

    subject: LabelSubject
    log: _label_log.LabelLog
    files: LabelFolder
    rest: list[Item] = field(default_factory=list)
    problem: str = ""
    _texts: dict[Item, Example] = field(default_factory=dict)
    _remarks_told_to: dict[str, int] = field(default_factory=dict)
    _then: float | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def start(self) -> JsonObject:
        """Return the name of the dataset and the people who labeled before."""
        with self._lock:
            return {"dataset": self.subject.target.name, "people": list(self.log.book.people)}

    def state(self, person: str) -> JsonObject:
        """Return the item that a person is to label next, with the progress of all.

        Raises
        ------
        InputError
            The name cannot stand on one line.
        """
        person = _person(person)
        with self._lock:
            item, last = self._next_laid_out(person), self._last(person)
            if item is not None and item != self.log.book.shown.get(person):
                with suppress(OSError):  # that it is held is a comfort, no label
                    self.log.add(LabelEvent("show", *item, person))
            return {
                "person": person,
                "item": None if item is None else self._texts_to_show(item, person),
                "last": None if last is None else {"item_id": last[1], **self._answer_of_person(last, person)},
                "progress": self._progress(person),
                "expected": self._expected(self.log.book.majority()),
                "problem": self._untold_remarks(person),
            }

    def answer(self, person: str, item_id: str, label: int | None, note: str = "") -> JsonObject:
        """Keep a label (1, 0, or -1 where it cannot be decided), or None to skip; return the next state.

        It is on disk when this returns.

        Raises
        ------
        InputError
            There is no such item to label, or the person has labeled it already.
        OSError
            It could not be written; nothing has changed.
        """
        person = _person(person)
        with self._lock:
            item = self._item(item_id)
            if item in self.log.book.answers.get(person, {}):
                raise InputError(f"`item_id` must be an item that you have not labeled. Got {item_id!r} again.")
            do, value = ("skip", -1) if label is None else ("label", label)
            self._add(LabelEvent(do, *item, person, value, note))  # type: ignore[arg-type]
            return self.state(person)

    def undo(self, person: str) -> JsonObject:
        """Take back a person's last label or skip, so that its item comes next; return the state."""
        person = _person(person)
        with self._lock:
            last = self._last(person)
            if last is not None:
                self._add(LabelEvent("undo", *last, person), LabelEvent("show", *last, person))
            return self.state(person)

    def again(self, person: str) -> JsonObject:
        """Put the items that a person skipped before that person once more; return the state."""
        person = _person(person)
        with self._lock:
            own = self.log.book.answers.get(person, {})
            skipped = [item for item, answer in own.items() if answer.label is None]
            if skipped:
                self._add(*(LabelEvent("undo", *item, person) for item in skipped))
            return self.state(person)

    def reveal(self, person: str, item_id: str) -> JsonObject:
        """Return P, votes and everybody's labels of an item that a person has labeled; the log keeps that it was seen.

        Raises
        ------
        InputError
            The person has not labeled it.
        """
        person = _person(person)
        with self._lock:
            item, book = self._item(item_id), self.log.book
            if person not in book.labelers(item):
                raise InputError(f"`item_id` must be an item that you have labeled. Got {item_id!r}.")
            if item not in book.revealed.get(person, ()):
                self._add(LabelEvent("reveal", *item, person))
            example = self._texts[item]
            people = [{"person": who, **self._answer_of_person(item, who)} for who in book.labelers(item)]
            texts = {"id": item_id, **_texts_of(example)}
            return {"item": texts | self.subject.judged([item], self._texts)[item], "people": people}

    def enough(self) -> JsonObject:
        """Return the expected errors, the canary of the model by these labels, and how far people agree."""
        with self._lock:
            book = self.log.book
            labels, shared = book.majority(), [item for item in book.queue if len(book.labelers(item)) > 1]
            expected = self._expected(labels)
            result = book.annotations(shared) if shared else None
        measures = (
            [] if result is None else agreement_measures(result.ratings(result.items), result.annotators, n_boot=N_BOOT)
        )
        return {
            "expected": expected,
            "canary": self.subject.canary(labels),
            "agreement": {"items": len(shared), "measures": measures},
            "ties": len(book.ties()),
            "commands": self.subject.commands(self.files.labels),
        }

    def write(self) -> None:
        """Write the tables; where that fails, say so in `problem` and go on, for the log has everything."""
        with self._lock:
            try:
                remark = keep_other_labels(self.log.book, self.files.labels, self.files.annotations)
                self.log.remarks += [remark] if remark else []
                write_labels(self.log.book, self.files.labels)
                write_annotations(self.log.book, self.files.annotations)
                self.problem = ""
            except (InputError, OSError) as error:
                self.problem = str(error)

    def summary(self) -> JsonObject:
        """Return how many labels there are and where."""
        with self._lock:
            return label_summary(self.log.book, self.files) | {
                "items": len(self._all_items()),
                "dataset": self.subject.target.name,
                "problem": " ".join([*self._faults(), *dict.fromkeys(self.log.remarks)]),
            }

    def _faults(self) -> list[str]:
        """Return the faults of the log and the tables now."""
        return [fault for fault in (self.log.look(), self.problem) if fault]

    def _untold_remarks(self, person: str) -> str:
        """Return the faults now, and the remarks that this person has not been told yet."""
        faults, heard = self._faults(), self._remarks_told_to.get(person, 0)
        self._remarks_told_to[person] = len(self.log.remarks)
        return " ".join([*faults, *self.log.remarks[heard:]])

    def _add(self, *events: LabelEvent) -> None:
        self.log.add(*events)
        self.write()

    def _item(self, item_id: str) -> Item:
        item = self.subject.target.name, item_id
        if item not in self.log.book.queue:
            raise InputError(f"`item_id` must be one of the items to label. Got {item_id!r}.")
        return item

    def _expected(self, labels: Mapping[Item, int]) -> dict[str, float]:
        """Return how far P is expected to be off on average: `now` with these labels, `then` with all of the items."""
        if self._then is None:  # the same for as long as the desk is open, and of many items
            self._then = self.subject.expected_error(self._all_items())
        return {"now": self.subject.expected_error(labels), "then": self._then}

    def _all_items(self) -> list[Item]:
        """Return all items to label, those that are not laid out yet last."""
        return [*self.log.book.queue, *self.rest]

    def _next_laid_out(self, person: str) -> Item | None:
        """Return the item that comes next, having laid out more where none is left; nothing more where that fails."""
        item = self._next(person)
        while item is None and self.rest:
            items = self.rest[:N_LAID_OUT]
            texts = self.subject.found_texts(items)
            try:
                self.log.add(*(LabelEvent("queue", *item) for item in items if item in texts))
            except OSError:
                break
            self._texts |= texts
            del self.rest[:N_LAID_OUT]
            if len(texts) < len(items):
                self.log.remarks.append(f"{len(items) - len(texts)} of the next items have no text, and are left out.")
            item = self._next(person)
        return item

    def _next(self, person: str) -> Item | None:
        """Return the item that a person holds or is given: one that others do not hold, where there is one."""
        book = self.log.book
        own = book.answers.get(person, {})
        open_items = [item for item in book.queue if item not in own and book.missing(item) > 0]
        current = book.shown.get(person)
        if current is not None and current not in own:
            return current
        others = [item for who, item in book.shown.items() if who != person]
        free = [item for item in open_items if book.missing(item) > others.count(item)]
        return next(iter(free or open_items), None)

    def _last(self, person: str) -> Item | None:
        return next(reversed(self.log.book.answers.get(person, {})), None)

    def _answer_of_person(self, item: Item, person: str) -> JsonObject:
        answer = self.log.book.answers[person][item]
        return {"label": answer.label, "note": answer.note, "after_reveal": answer.after_reveal}

    def _texts_to_show(self, item: Item, person: str) -> JsonObject:
        """Return the texts of an item, with the places of their sentences as scripts count them."""
        example = self._texts[item]
        return {
            "item_id": item[1],
            **_texts_of(example),
            "sentences": _places(example.source),
            "revealed": item in self.log.book.revealed.get(person, ()),
        }

    def _progress(self, person: str) -> JsonObject:
        """Return how far the labeling has come, by this person and by all."""
        book = self.log.book
        own = book.answers.get(person, {})
        labeled = [item for item, answer in own.items() if answer.label is not None]
        open_ = [item for item in book.queue if book.missing(item) > 0]
        return {
            "items": len(book.queue) + len(self.rest),
            "complete": len(book.queue) - len(open_),
            "wanted": sum(book.queue.values()) + len(self.rest),
            "given": sum(n_people - max(0, book.missing(item)) for item, n_people in book.queue.items()),
            "labeled": len(labeled),
            "skipped": len(own) - len(labeled),
            "left": sum(item not in own for item in open_) + len(self.rest),
            "waiting": sum(item in labeled for item in open_),
        }


@contextmanager
def open_label_desk(
    subject: LabelSubject, out: str | Path = "labels.csv", *, n: int = 30, double: int = 0, random_state: int = 0
) -> Iterator[LabelDesk]:
    """Open the desk for one dataset: the first time its items are drawn, later it goes on where it ended.

    Parameters
    ----------
    subject : LabelSubject
        The dataset whose items are labeled, with its votes, model and texts.
    out : path, default='labels.csv'
        See :class:`LabelFolder`.
    n : int, default=30
        Items to label; more than before adds some.
    double : int, default=0
        How many of them two people are to label.
    random_state : int, default=0
        Seed of the draw of items, at first and whenever `n` adds some.

    Raises
    ------
    InputError
        There are fewer items without a label than `n`, or no texts of them; the files are of another dataset or in use.
    """
    if not 0 <= double <= n:
        raise InputError(f"`double` must be from 0 to {n}, the number of items to label. Got {double!r}.")
    files = LabelFolder(Path(out))
    files.check()
    plan_after = partial(_plan, subject, files.log, (n, double), random_state=random_state)
    book = _label_log.read_label_log(files.log)[0] if _label_log.label_log_files(files.log) else AnswerBook()
    events, texts, rest = plan_after(book)  # what is refused leaves no file
    with _label_log.open_label_log(files.log) as log:
        if log.book.queue != book.queue:  # another process was there in between
            events, texts, rest = plan_after(log.book)
        log.add(*events)
        desk = LabelDesk(subject, log, files, rest, _texts=texts)
        desk.write()
        try:
            yield desk
        finally:
            desk.write()


# The events that bring the queue up to date now, the texts of its items, and the items that are laid out later.
_Plan = tuple[list[LabelEvent], dict[Item, Example], list[Item]]


def _plan(subject: LabelSubject, path: Path, sizes: tuple[int, int], book: AnswerBook, *, random_state: int) -> _Plan:
    """Return the plan to bring a queue to as many items or more, the first of which are for two people."""
    n, double = sizes
    queue = book.queue
    other = next((item for item in queue if item not in subject.rows), None)
    if other is not None:
        raise InputError(
            f"`out` must be new, or belong to the same votes. Got {str(path)!r}, which labels item {other[1]!r} of "
            f"dataset {other[0]!r}. Name another."
        )
    more = n - len(queue)
    n_rest = len(subject.unlabeled(queue)) if queue else more
    if more > n_rest:
        raise InputError(
            f"`n` must be at most {len(queue) + n_rest}, the {len(queue)} items of {str(path)!r} and the {n_rest} "
            f"others without a label. Got {n}."
        )
    new = subject.propose(more, taken=queue, random_state=random_state) if more > 0 else []
    now = max(N_LAID_OUT, double)
    people = {item: 2 if at < double else queue.get(item, 1) for at, item in enumerate([*queue, *new[:now]])}
    events = [LabelEvent("queue", *item, people=k) for item, k in people.items() if queue.get(item) != k]
    return events, subject.texts(list(people)), new[now:]  # texts before a word of them is kept


def _person(name: str) -> str:
    """Return the name of a person in one spelling; raise an InputError where it cannot stand on one line."""
    return visible_form(check_name(name.strip(), "person"))


def _texts_of(example: Example) -> dict[str, str | None]:
    return {"claim": example.claim, "source": example.source, "question": example.question}


def _places(text: str) -> list[tuple[int, int]]:
    """Return the places of the sentences of a text, in units of UTF-16, as scripts count."""
    beyond = [0]
    for character in text:
        beyond.append(beyond[-1] + (character > "\uffff"))
    return [(start + beyond[start], end + beyond[end]) for start, end in sentence_spans(text)]


# What a page may answer.
LABEL_OF_BUTTON = {"1": 1, "0": 0, "undecided": -1, "skip": None}

# Characters of a person's name.
LONGEST_NAME = 100


def label_app(desk: LabelDesk, *, person: str | None = None) -> "Starlette":
    """Return the application of a desk: a page, and JSON that it alone asks for.

    Parameters
    ----------
    desk : LabelDesk
        Of :func:`open_label_desk`, open for as long as the application serves.
    person : str, optional
        The name with which the page begins.

    Raises
    ------
    MissingDependencyError
        ``deep-judges[serve]`` is not installed.
    """
    texts = {
        "/": _asset("label.html"),
        "/label.css": page_asset("report.css") + _asset("label.css"),
        "/parts.js": page_asset("parts.js"),
        "/label.js": _asset("label.js"),
    }
    calls: dict[str, Callable[[JsonObject], JsonObject]] = {
        "/start": lambda _: desk.start() | {"person": person},
        "/state": lambda body: desk.state(_name(body)),
        "/answer": lambda body: desk.answer(_name(body), _text(body, "item_id"), _label(body), _text(body, "note")),
        "/undo": lambda body: desk.undo(_name(body)),
        "/again": lambda body: desk.again(_name(body)),
        "/reveal": lambda body: desk.reveal(_name(body), _text(body, "item_id")),
        "/enough": lambda _: desk.enough(),
    }
    with needs_extra("serve", what="A server"):
        return make_app(texts, {path: partial(_answer_or_fault, call) for path, call in calls.items()})


def _answer_or_fault(call: Callable[[JsonObject], JsonObject], body: object) -> JsonObject:
    """Return the answer of a call; a disk that takes nothing is no bug."""
    if not isinstance(body, dict):
        raise InputError("`body` must be a JSON object. Got another value.")
    try:
        return call(body)
    except OSError as error:
        why = error.strerror or type(error).__name__
        message = f"The label could not be written: {why}. Nothing was changed. Make room, and answer again."
        raise WebError(507, "not_kept", message) from None


def _text(body: JsonObject, name: str) -> str:
    value = body.get(name, "")
    if not isinstance(value, str):
        raise InputError(f"`{name}` must be text. Got another value.")
    return value


def _name(body: JsonObject) -> str:
    name = _text(body, "person").strip()  # the desk takes it in one spelling
    if len(name) > LONGEST_NAME:
        raise InputError(f"`person` must have at most {LONGEST_NAME} characters. Got {len(name):,}.")
    return name


def _label(body: JsonObject) -> int | None:
    name = _text(body, "label")
    if name not in LABEL_OF_BUTTON:
        raise InputError(f"`label` must be one of {', '.join(sorted(LABEL_OF_BUTTON))}. Got {name[:60]!r}.")
    return LABEL_OF_BUTTON[name]


def _asset(name: str) -> str:
    return (files("deep.integrations.labeling") / "templates" / name).read_text(encoding="utf-8")
