"""The tables of a log of labels, for other commands: written again and again, never over labels of somebody else."""

import csv
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from deep._files import whole_file
from deep._names import person_name
from deep._plain_cells import read_row, write_rows
from deep._text import listed
from deep.datasets._label_book import ANNOTATION_COLUMNS, AnswerBook
from deep.datasets._label_mend import free_place

LABEL_COLUMNS = ("dataset", "item_id", "label")

OLD = ".old"
"""What the name of a table that was kept ends in, and a number where there are several."""

PLAIN = str.maketrans({"\0": "\ufffd", "\r": "\n"})
"""What stands in a table for characters that would break it."""

LabelCells = Mapping[str, str]


def write_labels(book: AnswerBook, out: Path) -> None:
    """Write the label of most people for each item that has one, as :func:`deep.datasets.read_labels` reads it."""
    _write(out, LABEL_COLUMNS, _label_rows(book))


def write_annotations(book: AnswerBook, out: Path) -> None:
    """Write the labels of each person, as :func:`deep.datasets.read_annotations` reads them."""
    _write(out, ANNOTATION_COLUMNS, book.annotation_rows())


def keep_other_labels(book: AnswerBook, labels: Path, annotations: Path) -> str:
    """Keep a copy of each table that holds labels which nobody gave by the log; return what was kept, and where.

    Labels that were given and taken back are none of those.

    Parameters
    ----------
    book : AnswerBook
    labels, annotations : Path
        The tables that are about to be written over.

    Raises
    ------
    InputError
        A copy cannot be written, so that nothing may be written over the table.
    """
    given = {(*item, str(label)) for item, _, label, _ in book.given}
    by_person = {(*item, who, "" if label < 0 else str(label), _plain(note)) for item, who, label, note in book.given}
    columns = (*LABEL_COLUMNS[:2], "annotator", "label", "note")
    told = [_kept(labels, LABEL_COLUMNS, given), _kept(annotations, columns, by_person)]
    return " ".join(filter(None, told))


def _kept(path: Path, columns: Sequence[str], known: Collection[tuple[str, ...]]) -> str:
    others = [row for row in _rows_of(path, columns) if row not in known]
    if not others:
        return ""
    old = free_place(path, OLD)
    with whole_file(old) as scratch:
        shutil.copyfile(path, scratch)
        with scratch.open("rb+") as file:
            os.fsync(file.fileno())
    shown = listed([" ".join(filter(None, row[1:4])) for row in others], 5)
    return f"{str(path)!r} held {len(others)} rows that are not in the log ({shown}): it is kept as {old.name!r}."


def _rows_of(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of a table under some columns, as well as it can be read."""
    if not path.exists():
        return
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            for cells in csv.DictReader(file, restkey="", restval=""):
                row = read_row({name: cell for name, cell in cells.items() if name})
                found = tuple(row.get(name, "") for name in columns)
                yield tuple(map(_in_one_spelling, columns, found)) if any(found) else (path.name, str(cells))
        except csv.Error as error:
            yield path.name, f"no CSV: {error}"


def _in_one_spelling(column: str, cell: str) -> str:
    return person_name(cell) if column == "annotator" else _plain(cell)


def _plain(text: str) -> str:
    # No table may hold a NUL, which is a character of notes like any other; nor a bare \r, which csv quotes not.
    return text.translate(PLAIN).encode(errors="replace").decode()


def _label_rows(book: AnswerBook) -> Iterator[LabelCells]:
    for (dataset, item_id), label in book.majority().items():
        yield {"dataset": dataset, "item_id": item_id, "label": str(label)}


def _write(out: Path, columns: Sequence[str], rows: Iterable[LabelCells]) -> None:
    with whole_file(out) as scratch, scratch.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, columns, ([_plain(row[name]) for name in columns] for row in rows))
