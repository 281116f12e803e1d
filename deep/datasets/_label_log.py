"""The log of people's labels: JSON lines that are only ever added to, each on disk before the next item is shown."""

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from deep._files import JsonObject, read_bytes, whole_file
from deep._names import check_name
from deep.datasets._label_book import ANNOTATION_COLUMNS, DEEDS, AnswerBook, LabelEvent
from deep.exceptions import InputError

LARGEST_LOG = 1 << 28
"""Bytes of a log."""

LONGEST_NOTE = 2000
"""Characters of a note."""

PLAIN = str.maketrans({"\0": "\ufffd", "\r": "\n"})
"""What stands in a table for characters that would break it."""

SCHEMA = 1
"""The version of the lines of a log."""

_FIELDS = tuple(field.name for field in fields(LabelEvent))


@dataclass
class LabelLog:
    """A log that this process alone may add to.

    Parameters
    ----------
    path : Path
    book : AnswerBook
        What holds after the events so far.
    torn : str
        What is told of a last line that was not whole, as a killed process or a full disk leaves it; else ''.

    See Also
    --------
    open_label_log : The way to one.
    """

    path: Path
    book: AnswerBook
    torn: str
    _file: int
    _size: int

    def add(self, *events: LabelEvent) -> None:
        """Write events and wait until they are on disk; only then do they hold.

        Raises
        ------
        InputError
            A name or a note cannot be kept.
        OSError
            They could not be written, as on a full disk; the log is then as it was before.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        stamped = [_checked(event if event.time else replace(event, time=now)) for event in events]
        data = b"".join(_line(event) for event in stamped)
        if os.fstat(self._file).st_size != self._size:
            os.ftruncate(self._file, self._size)  # a part that an earlier failure left
        try:
            _write_all(self._file, data)
            os.fsync(self._file)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)
        for event in stamped:
            self.book.add(event)


@contextmanager
def open_label_log(path: str | Path) -> Iterator[LabelLog]:
    r"""Open a log, a new one where there is none, for this process alone.

    A last line that is not whole is taken off: nobody was told that it is kept. A log with nothing in it is taken
    away where an error ends its use, as on a full disk.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    InputError
        Another process has it open, or it is no log.

    Examples
    --------
    >>> import tempfile
    >>> from deep.datasets import LabelEvent, open_label_log, read_label_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.jsonl")
    ...     with open_label_log(path) as log:
    ...         log.add(LabelEvent("label", "news", "a", "Ann", 1, note="clear"))
    ...     with path.open("a") as file:
    ...         _ = file.write('{"schema_v')
    ...     book, torn = read_label_log(path)
    >>> book.majority(), torn
    ({('news', 'a'): 1}, 'the last line was not whole and is passed over (10 bytes)')
    """
    path = Path(path).resolve()
    with _only_one(path):
        events, whole, torn = _read(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        file = os.open(path, flags, 0o644)
        try:
            os.ftruncate(file, whole)
            if whole and _last_byte(path) != b"\n":
                _write_all(file, b"\n")
            os.fsync(file)
            _sync_folder(path.parent)
            yield LabelLog(path, _book(events), torn, file, os.fstat(file).st_size)
        except BaseException:
            if os.fstat(file).st_size == 0:
                with suppress(OSError):
                    path.unlink()
            raise
        finally:
            os.close(file)


def read_label_log(path: str | Path) -> tuple[AnswerBook, str]:
    """Read a log, also one that another process has open.

    Returns
    -------
    book : AnswerBook
    torn : str
        What is told of a last line that was not whole; else ''.

    Raises
    ------
    InputError
        There is none, or it is no log.
    """
    if not Path(path).is_file():
        raise InputError(f"`labels` must be a log that `deep label` wrote. Got {str(path)!r}, where there is no file.")
    events, _, torn = _read(Path(path))
    return _book(events), torn


def write_labels(book: AnswerBook, out: Path) -> None:
    """Write the label of most people for each item that has one, as :func:`deep.datasets.read_labels` reads it."""
    rows = [{"dataset": item[0], "item_id": item[1], "label": str(label)} for item, label in book.majority().items()]
    _write_table(out, ("dataset", "item_id", "label"), rows)


def write_annotations(book: AnswerBook, out: Path) -> None:
    """Write the labels of each person, as :func:`deep.datasets.read_annotations` reads them."""
    _write_table(out, ANNOTATION_COLUMNS, book.annotation_rows())


def _write_table(out: Path, columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> None:
    with whole_file(out) as scratch, scratch.open("w", encoding="utf-8", errors="replace", newline="") as file:
        table = csv.DictWriter(file, columns, lineterminator="\n")
        table.writeheader()
        # No table may hold a NUL, which is a character of notes like any other; nor a bare \r, which csv quotes not.
        table.writerows({name: cell.translate(PLAIN) for name, cell in row.items()} for row in rows)


def _book(events: Iterable[LabelEvent]) -> AnswerBook:
    book = AnswerBook()
    for event in events:
        book.add(event)
    return book


def _checked(event: LabelEvent) -> LabelEvent:
    if event.do != "queue":
        check_name(event.person, "person")
    if len(event.note) > LONGEST_NOTE:
        raise InputError(f"`note` must have at most {LONGEST_NOTE:,} characters. Got {len(event.note):,}.")
    return event


def _line(event: LabelEvent) -> bytes:
    values = {"schema_version": SCHEMA} | asdict(event)
    # Half a surrogate pair is escaped: it has no bytes in UTF-8.
    return json.dumps(values, ensure_ascii=True).encode("ascii") + b"\n"


def _read(path: Path) -> tuple[list[LabelEvent], int, str]:
    """Return the events of a log, the bytes they take, and a note on the rest."""
    data = read_bytes(path, "labels", LARGEST_LOG) if path.exists() else b""
    lines = data.split(b"\n")
    tail = lines.pop()
    where = repr(str(path))
    events = [_event(line, f"line {number} of {where}") for number, line in enumerate(lines, start=1)]
    if not tail:
        return events, len(data), ""
    with suppress(InputError):
        return [*events, _event(tail, where)], len(data), ""
    if not events and not data.startswith(b'{"schema_version"'[: len(data)]):
        _event(tail, f"line 1 of {where}")  # some other file: it raises
    return events, len(data) - len(tail), f"the last line was not whole and is passed over ({len(tail)} bytes)"


def _event(line: bytes, where: str) -> LabelEvent:
    try:
        values: JsonObject = json.loads(line)
        event = LabelEvent(**{name: values[name] for name in _FIELDS})
        wrong = values["schema_version"] != SCHEMA or event.do not in DEEDS or event.label not in (1, 0, -1)
        texts = (event.dataset, event.item_id, event.person, event.note, event.time)
        wrong = wrong or not all(isinstance(text, str) for text in texts) or type(event.people) is not int
        wrong = wrong or type(event.label) is not int
    except (ValueError, KeyError, TypeError, RecursionError):
        wrong = True
    if wrong:
        raise InputError(f"`labels` must be a log that `deep label` wrote. Got {line[:60]!r} at {where}.")
    return event


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read()


def _sync_folder(folder: Path) -> None:
    """Wait until a new file's name is on disk too, on systems that open folders."""
    with suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Hold the lock of a log, which the system gives back however the process ends."""
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f".{path.name}.lock"), blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(
            f"`out` must not be in use. Got {str(path)!r}, to which another `deep label` adds. End that one first; "
            "several people can use its page."
        ) from None
    try:
        yield
    finally:
        lock.release()
