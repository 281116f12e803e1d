"""Annotations by people: the worksheet, files of them, ambiguous items, and how far people agree (arXiv:2508.00889)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from deep._util.columns import read_row
from deep._util.names import plain_form
from deep.datasets import read_rows
from deep.evaluate import agreement_measures
from deep.exceptions import InputError

WORKSHEET = files("deep.integrations.labeling").joinpath("worksheet.md").read_text(encoding="utf-8")
"""FECT's steps for people in our own words: decompose, decouple, detach (arXiv:2508.00889, section 2.2); Markdown."""

STEPS = ("concrete", "descriptive", "interpretive", "relation")
"""Of the worksheet, in order."""

AMBIGUITIES = ("sentiment", "relation")

KEY = ("item_id", "annotator")

MOST_RATINGS = 20_000_000
"""Places of a table of items and annotators: 160 MB, and what is measured on it takes several times that."""

_MARKS = {"": -1, "0": 0, "1": 1}


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item that annotators do not see alike.

    Parameters
    ----------
    item : str
    labels : dict of str to int
        By annotator; only those that gave one.
    steps : tuple of str
        The steps on which their marks differ, in order.
    """

    item: str
    labels: Mapping[str, int]
    steps: tuple[str, ...]

    @property
    def on_label(self) -> bool:
        """Whether the labels differ, and not the steps alone."""
        return len(set(self.labels.values())) > 1


@dataclass(frozen=True)
class Annotations:
    """All rows of a file, as they came and as marks.

    Parameters
    ----------
    columns : list of str
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
        found: dict[str, dict[str, dict[str, int]]] = {item: {} for item, _ in self.marks}
        for item, annotator in sorted(self.marks, key=lambda key: key[1]):
            found[item][annotator] = self.marks[item, annotator]
        return found

    @cached_property
    def annotators(self) -> list[str]:
        """The annotators, sorted."""
        return sorted({annotator for _, annotator in self.marks})

    def ratings(self, items: Sequence[str], name: str = "label") -> npt.NDArray[np.int64]:
        """Return marks of shape (n_items, n_annotators), -1 where there is none."""
        marks = ((item, one, marks[name]) for item in items for one, marks in self.by_item[item].items())
        return rating_table(marks, items, self.annotators)

    def disagreements(self) -> list[Disagreement]:
        """Return the items whose labels or steps differ, in the order of the file."""
        found = []
        for item, given in self.by_item.items():
            steps = tuple(step for step in STEPS if {0, 1} <= {marks[step] for marks in given.values()})
            labels = {one: marks["label"] for one, marks in given.items() if marks["label"] >= 0}
            if steps or len(set(labels.values())) > 1:
                found.append(Disagreement(item, labels, steps))
        return found

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
    rows = [read_row(row) for _, row in read_rows(path, (), ".csv", param="file", pad=True)]
    columns = list(rows[0]) if rows else []
    required = (*key, "label")
    missing = [name for name in required if name not in columns]
    if missing or not rows:
        got = f"no column {missing[0]!r}" if rows else "no row"
        raise InputError(f"`file` must hold rows with the columns {', '.join(required)}. Got {got} in {str(path)!r}.")
    seen: set[tuple[str, ...]] = set()
    for number, row in enumerate(rows, start=1):
        names = tuple(plain_form(row[name]) if name == "annotator" else row[name].strip() for name in key)
        if not all(names):
            raise InputError(f"`{key[names.index('')]}` must not be empty. Got '' in row {number} of {str(path)!r}.")
        if names in seen:
            raise InputError(
                f"`file` must have one row for each {', '.join(key)}. Got {', '.join(names)} again in row {number} of "
                f"{str(path)!r}."
            )
        seen.add(names)
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
        item, annotator = row["item_id"].strip(), plain_form(row["annotator"])
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
    found: Annotations, *, min_marks: int = 1, n_boot: int = 2000, random_state: int = 0
) -> dict[str, object]:
    """Measure the agreement of annotators.

    Parameters
    ----------
    found : Annotations
        Of two annotators or more.
    min_marks : int, default=1
        Annotators who must call an item ambiguous.
    n_boot : int, default=2000
        Resamples of every interval.
    random_state : int, default=0

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
    if len(found.annotators) < 2:
        raise InputError(f"`file` must hold two annotators or more. Got {found.annotators[0]!r} alone.")
    kinds = {item: found.ambiguity(item, at_least=min_marks) for item in found.items}
    clear = [item for item, kind in kinds.items() if kind is None]

    def measures(items: Sequence[str]) -> dict[str, object]:
        found_here = found.ratings(items)
        rows = agreement_measures(found_here, found.annotators, n_boot=n_boot, random_state=random_state)
        return {"items": len(items), "measures": rows}

    return {
        "annotators": found.annotators,
        "all": measures(found.items),
        "without_ambiguous": measures(clear),
        "table_1": _table_1(found, kinds),
        "disagreements": [
            {"item": d.item, "labels": dict(d.labels), "on_label": d.on_label, "steps": list(d.steps)}
            for d in found.disagreements()
        ],
    }


def _table_1(found: Annotations, kinds: dict[str, str | None]) -> dict[str, int]:
    """Return the counts of the paper's Table 1; a tied majority is neither factual nor not."""
    labels = [found.majority(item) for item, kind in kinds.items() if kind is None]
    ambiguous = {kind: sum(given == kind for given in kinds.values()) for kind in AMBIGUITIES}
    counts = {"factual": labels.count(1), "non_factual": labels.count(0), "undecided": labels.count(-1)}
    return {**counts, "total": len(labels), **ambiguous}
