"""Labels of items by people: annotations and their agreement; and a log's events, with the tables made of them."""

import csv
import os
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from deep._util.columns import unescape_row, write_rows
from deep._util.files import JsonObject, atomic_file, remember_state
from deep._util.names import listed, visible_form
from deep.datasets import Item, read_rows
from deep.evaluate import agreement_measures
from deep.exceptions import InputError

WORKSHEET = files("deep.integrations.labeling").joinpath("worksheet.md").read_text(encoding="utf-8")
"""FECT's steps for people in our own words: decompose, decouple, detach (arXiv:2508.00889, section 2.2); Markdown."""

# The steps of the worksheet, in order: columns of a file of annotations.
STEPS = ("concrete", "descriptive", "interpretive", "relation")

# Kinds of ambiguity that an annotator may mark, the one that wins a tie first.
AMBIGUITIES = ("sentiment", "relation")

# The columns that name a row of such a file.
KEY = ("item_id", "annotator")

# Places of a table of items and annotators: 160 MB, and what is measured on it takes several times that.
MOST_RATINGS = 20_000_000

# Marks by their cells; an empty one is none.
_MARKS = {"": -1, "0": 0, "1": 1}


@dataclass(frozen=True)
class Annotations:
    """All rows of a file, as they came and as marks.

    Parameters
    ----------
    columns : list of str
        The names of the file's columns, in its order.
    rows : list of dict
        The file's own cells.
    marks : dict of (item, annotator) to dict
        For `label` and each step: 1, 0, or -1 where there is none.
    ambiguous : dict of str to Counter
        By item: how many annotators call it undecidable, and over what.
    """

    columns: list[str]
    rows: list[dict[str, str]]
    marks: dict[tuple[str, str], dict[str, int]]
    ambiguous: dict[str, Counter[str]] = field(default_factory=dict)

    @cached_property
    def items(self) -> list[str]:
        """The items, in the order of the file."""
        return list(self.by_item)

    @cached_property
    def by_item(self) -> dict[str, dict[str, dict[str, int]]]:
        """The marks of each item by annotator, sorted."""
        result: dict[str, dict[str, dict[str, int]]] = {item: {} for item, _ in self.marks}
        for item, annotator in sorted(self.marks, key=lambda key: key[1]):
            result[item][annotator] = self.marks[item, annotator]
        return result

    @cached_property
    def annotators(self) -> list[str]:
        """The annotators, sorted."""
        return sorted({annotator for _, annotator in self.marks})

    def ratings(self, items: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return labels of shape (n_items, n_annotators), -1 where there is none."""
        marks = ((item, one, marks["label"]) for item in items for one, marks in self.by_item[item].items())
        return rating_table(marks, items, self.annotators)

    def disagreements(self) -> list[JsonObject]:
        """Return the items whose labels or steps differ, in the order of the file, as JSON values.

        `labels` are those that were given, by annotator; `on_label` is whether they differ, and not the steps alone.
        """
        result = []
        for item, by_annotator in self.by_item.items():
            steps = [step for step in STEPS if {0, 1} <= {marks[step] for marks in by_annotator.values()}]
            labels = {one: marks["label"] for one, marks in by_annotator.items() if marks["label"] >= 0}
            on_label = len(set(labels.values())) > 1
            if steps or on_label:
                result.append({"item": item, "labels": labels, "on_label": on_label, "steps": steps})
        return result

    def ambiguity(self, item: str, *, at_least: int) -> str | None:
        """Return the kind of ambiguity that most annotators see, if so many do; sentiment on a tie, else None."""
        counts = self.ambiguous.get(item, Counter())
        if counts.total() < at_least:
            return None
        return max(AMBIGUITIES, key=lambda kind: counts[kind])

    def majority(self, item: str) -> int:
        """Return the label that most annotators give an item; -1 on a tie or where nobody gave one."""
        labels = [marks["label"] for marks in self.by_item[item].values()]
        balance = labels.count(1) - labels.count(0)
        return -1 if balance == 0 else int(balance > 0)


def rating_table(
    marks: Iterable[tuple[str, str, int]], items: Sequence[str], annotators: Sequence[str]
) -> npt.NDArray[np.int64]:
    """Lay marks out as a table of items and annotators.

    Parameters
    ----------
    marks : iterable of (item, annotator, mark)
        Names, and 1, 0 or -1 (none); of two marks at one place the last one counts.
    items, annotators : sequence of str
        The rows and the columns.

    Returns
    -------
    ndarray of int, shape (n_items, n_annotators)
        -1 where there is no mark.

    Raises
    ------
    InputError
        The table would have more than 20 million places.

    Examples
    --------
    >>> from deep.integrations.labeling import rating_table
    >>> rating_table([("1", "ann", 1), ("2", "bob", 0)], items=["1", "2"], annotators=["ann", "bob"]).tolist()
    [[1, -1], [-1, 0]]
    """
    if len(items) * len(annotators) > MOST_RATINGS:
        raise InputError(
            f"`file` must hold at most {MOST_RATINGS:,} pairs of an item and an annotator, labeled or not. Got "
            f"{len(items):,} items and {len(annotators):,} annotators. Measure parts of it."
        )
    table = np.full((len(items), len(annotators)), -1, dtype=np.int64)
    rows, columns = ({name: place for place, name in enumerate(names)} for names in (items, annotators))
    for item, annotator, mark in marks:
        table[rows[item], columns[annotator]] = mark
    return table


def read_annotation_rows(path: Path, key: Sequence[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Read a file of annotations.

    Parameters
    ----------
    path : Path
        CSV (UTF-8, with a header).
    key : sequence of str
        The columns that together name a row: each filled in, no two rows alike. `label` is required too.

    Returns
    -------
    columns : list of str
    rows : list of dict
        The file's own cells.

    Raises
    ------
    InputError
        The file is not as described.
    """
    rows = [unescape_row(row) for _, row in read_rows(path, (), ".csv", param="file", pad=True)]
    columns = list(rows[0]) if rows else []
    required = (*key, "label")
    missing = [name for name in required if name not in columns]
    if missing or not rows:
        got = f"no column {missing[0]!r}" if rows else "no row"
        raise InputError(f"`file` must hold rows with the columns {', '.join(required)}. Got {got} in {str(path)!r}.")
    keys: set[tuple[str, ...]] = set()
    for number, row in enumerate(rows, start=1):
        names = tuple(visible_form(row[name]) if name == "annotator" else row[name].strip() for name in key)
        if not all(names):
            raise InputError(f"`{key[names.index('')]}` must not be empty. Got '' in row {number} of {str(path)!r}.")
        if names in keys:
            raise InputError(
                f"`file` must have one row for each {', '.join(key)}. Got {', '.join(names)} again in row {number} of "
                f"{str(path)!r}."
            )
        keys.add(names)
    return columns, rows


def read_annotations(path: str | Path) -> Annotations:
    """Read a file of annotations.

    Parameters
    ----------
    path : str or Path
        CSV (UTF-8, with a header), one row an item and annotator. `item_id`, `annotator` and `label` are required;
        `concrete`, `descriptive`, `interpretive`, `relation` (1, 0 or empty, like `label`) and `ambiguous`
        (``sentiment``, ``relation`` or empty) are read where they are; any other column is kept as it is.

    Raises
    ------
    InputError
        The file or a cell is not as described, or somebody labeled an item twice.
    """
    columns, rows = read_annotation_rows(Path(path), KEY)
    return annotations_of(columns, rows, repr(str(path)))


def annotations_of(columns: list[str], rows: list[dict[str, str]], source: str) -> Annotations:
    """Return rows with their marks read; errors name their `source`."""
    marks: dict[tuple[str, str], dict[str, int]] = {}
    ambiguous: dict[str, Counter[str]] = {}
    for number, row in enumerate(rows, start=1):
        where = f"in row {number} of {source}"
        item, annotator = row["item_id"].strip(), visible_form(row["annotator"])
        marks[item, annotator] = {name: _mark(row, name, where) for name in ("label", *STEPS)}
        kind = row.get("ambiguous", "").strip().lower()
        if kind and kind not in AMBIGUITIES:
            raise InputError(f"`ambiguous` must be empty, relation or sentiment. Got {kind!r} {where}.")
        ambiguous.setdefault(item, Counter()).update([kind] if kind else [])
    return Annotations(columns, rows, marks, ambiguous)


def _mark(row: Mapping[str, str], name: str, where: str) -> int:
    cell = row.get(name, "").strip()
    if cell not in _MARKS:
        raise InputError(f"`{name}` must be 0, 1 or empty. Got {cell!r} {where}.")
    return _MARKS[cell]


def annotator_agreement(
    annotations: Annotations, *, min_marks: int = 1, n_boot: int = 2000, random_state: int = 0
) -> dict[str, object]:
    """Measure the agreement of annotators.

    Parameters
    ----------
    annotations : Annotations
        Of two annotators or more.
    min_marks : int, default=1
        Annotators who must call an item ambiguous.
    n_boot : int, default=2000
        Resamples of every interval.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    dict
        JSON values: the agreement on ``all`` items and ``without_ambiguous`` ones (Cohen's kappa of each pair,
        Fleiss' kappa, Krippendorff's alpha), the counts of the paper's Table 1, and every disagreement.

    Raises
    ------
    InputError
        There is one annotator only.
    """
    if len(annotations.annotators) < 2:
        raise InputError(f"`file` must hold two annotators or more. Got {annotations.annotators[0]!r} alone.")
    kinds = {item: annotations.ambiguity(item, at_least=min_marks) for item in annotations.items}
    clear = [item for item, kind in kinds.items() if kind is None]

    def measures(items: Sequence[str]) -> dict[str, object]:
        found_here = annotations.ratings(items)
        rows = agreement_measures(found_here, annotations.annotators, n_boot=n_boot, random_state=random_state)
        return {"items": len(items), "measures": rows}

    return {
        "annotators": annotations.annotators,
        "all": measures(annotations.items),
        "without_ambiguous": measures(clear),
        "table_1": _table_1(annotations, kinds),
        "disagreements": annotations.disagreements(),
    }


def _table_1(annotations: Annotations, kinds: dict[str, str | None]) -> dict[str, int]:
    """Return the counts of the paper's Table 1; a tied majority is neither factual nor not."""
    labels = [annotations.majority(item) for item, kind in kinds.items() if kind is None]
    ambiguous = {kind: sum(value == kind for value in kinds.values()) for kind in AMBIGUITIES}
    counts = {"factual": labels.count(1), "non_factual": labels.count(0), "undecided": labels.count(-1)}
    return {**counts, "total": len(labels), **ambiguous}


EventKind = Literal["label", "queue", "reveal", "show", "skip", "undo"]
EVENT_KINDS: tuple[EventKind, ...] = ("label", "queue", "reveal", "show", "skip", "undo")

# The label of an item that a person calls undecidable.
UNDECIDED = -1

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
        The item's dataset, and its id there.
    person : str, default=''
        Nobody for ``queue``.
    label : int, default=-1
        1, 0 or -1 (cannot be decided) of a ``label``.
    note : str, default=''
        What the person wrote beside the answer.
    time : str, default=''
        ISO 8601.
    people : int, default=1
        How many people are to label an item of the ``queue``.
    """

    do: EventKind
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
        What the person wrote beside it; when, by ISO 8601.
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
    history : set of (Item, str, int, str)
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
    history: set[tuple[Item, str, int, str]] = field(default_factory=set)

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
                    self.history.add((event.item, event.person, label, event.note))
                after_reveal = event.item in self.revealed.get(event.person, set())
                own[event.item] = GivenAnswer(label, event.note, event.time, after_reveal)

    @property
    def people(self) -> tuple[str, ...]:
        """Return the names of all who did something, sorted."""
        return tuple(sorted(self.answers))

    def labels(self) -> Iterator[tuple[Item, str, GivenAnswer]]:
        """Yield every label that holds, skipped items apart: by the order of the queue, then by person."""
        result = ((item, who, answer) for who, own in self.answers.items() for item, answer in own.items())
        at = {item: number for number, item in enumerate(self.queue)}
        entries = [each for each in result if each[2].label is not None]
        yield from sorted(entries, key=lambda each: (at.get(each[0], len(at)), each[0], each[1]))

    def labelers(self, item: Item) -> list[str]:
        """Return who has labeled an item, sorted."""
        return [who for who in self.people if (answer := self.answers[who].get(item)) and answer.label is not None]

    def missing(self, item: Item) -> int:
        """Return how many people are still to label an item of the queue; less than 1 where it is done."""
        return self.queue[item] - len(self.labelers(item))

    def balance(self) -> dict[Item, int]:
        """Return, for each item that anybody decided, how many more people say 1 than say 0."""
        result: Counter[Item] = Counter()
        for item, _, answer in self.labels():
            if answer.label in (0, 1):
                result[item] += 1 if answer.label == 1 else -1
        return dict(result)

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
                "label": "" if answer.label == UNDECIDED else str(answer.label),
                "ambiguous": AMBIGUOUS if answer.label == UNDECIDED else "",
                "note": answer.note,
                "time": answer.time,
                "after_reveal": str(int(answer.after_reveal)),
            }
            for item, person, answer in self.labels()
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


def free_place(path: Path, ending: str) -> Path:
    """Return a place beside a file where nothing is."""
    names = (f"{path.name}{ending}{number or ''}" for number in count())
    return next(place for name in names if not (place := path.with_name(name)).exists())


LABEL_COLUMNS = ("dataset", "item_id", "label")

# What the name of a table that was kept ends in, and a number where there are several.
OLD_ENDING = ".old"

CELL_REPLACEMENTS = str.maketrans({"\0": "\ufffd", "\r": "\n"})
"""What stands in a table for characters that would break it."""

LabelCells = Mapping[str, str]


def write_labels(book: AnswerBook, out: Path) -> None:
    """Write the label of most people for each item that has one, as :func:`deep.datasets.read_labels` reads it."""
    rows = ({"dataset": name, "item_id": item, "label": str(label)} for (name, item), label in book.majority().items())
    _write(out, LABEL_COLUMNS, rows)


def write_annotations(book: AnswerBook, out: Path) -> None:
    """Write the labels of each person, as :func:`read_annotations` reads them."""
    _write(out, ANNOTATION_COLUMNS, book.annotation_rows())


def keep_other_labels(book: AnswerBook, labels: Path, annotations: Path) -> str:
    """Keep a copy of each table that holds labels which nobody gave by the log; return what was kept, and where.

    Labels that were given and taken back are none of those.

    Parameters
    ----------
    book : AnswerBook
        Of the log; labels that it was ever given, also those taken back, are no others'.
    labels, annotations : Path
        The tables that are about to be written over.

    Raises
    ------
    InputError
        A copy cannot be written, so that nothing may be written over the table.
    """
    by_item = {(*item, str(label)) for item, _, label, _ in book.history}
    by_person = {(*item, who, "" if label < 0 else str(label), _plain(note)) for item, who, label, note in book.history}
    columns = (*LABEL_COLUMNS[:2], "annotator", "label", "note")
    remarks = [_keep_copy(labels, LABEL_COLUMNS, by_item), _keep_copy(annotations, columns, by_person)]
    return " ".join(filter(None, remarks))


def _keep_copy(path: Path, columns: Sequence[str], keys: Collection[tuple[str, ...]]) -> str:
    remember_state(path)  # so that what is added from now on is not written over
    others = [row for row in _rows_of(path, columns) if row not in keys]
    if not others:
        return ""
    old = free_place(path, OLD_ENDING)
    with atomic_file(old) as scratch:
        shutil.copyfile(path, scratch)
        with scratch.open("rb+") as file:
            os.fsync(file.fileno())
    shown = listed([" ".join(filter(None, row[1:4])) for row in others], 5)
    return f"{str(path)!r} held {len(others)} rows that are not in the log ({shown}). It was renamed to {old.name!r}."


def _rows_of(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of a table under some columns, as well as it can be read."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            for cells in csv.DictReader(file, restkey="", restval=""):
                row = unescape_row({name: cell for name, cell in cells.items() if name})
                result = tuple(row.get(name, "") for name in columns)
                pairs = zip(columns, result, strict=True)
                plain = (visible_form(cell) if name == "annotator" else _plain(cell) for name, cell in pairs)
                yield tuple(plain) if any(result) else (path.name, str(cells))
        except csv.Error as error:
            yield path.name, f"no CSV: {error}"


def _plain(text: str) -> str:
    # No table may hold a NUL, which is a character of notes like any other; nor a bare \r, which csv quotes not.
    return text.translate(CELL_REPLACEMENTS).encode(errors="replace").decode()


def _write(out: Path, columns: Sequence[str], rows: Iterable[LabelCells]) -> None:
    with atomic_file(out) as scratch, scratch.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, columns, ([_plain(row[name]) for name in columns] for row in rows))
