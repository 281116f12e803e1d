"""The log of people's labels: JSON lines that are only ever added to, each on disk before the next item is shown."""

import csv
import glob
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from errno import EBUSY
from itertools import count
from pathlib import Path

from deep._util.columns import read_row, write_rows
from deep._util.files import read_bytes, remember, whole_file
from deep._util.names import check_name, listed, plain_form
from deep.exceptions import DeepError, InputError, needs_extra
from deep.integrations.labeling import _label_book
from deep.integrations.labeling._held_file import FileChangedError, HeldFile, free_files, in_use, sync_folder, write_all

COPY = ".copy"
"""What the name of a log's copy ends in, and a number where there are several."""

LARGEST_LOG = 1 << 28
"""Bytes of a log."""


@dataclass(frozen=True)
class FoundLines:
    """The lines of a log and its copies.

    Parameters
    ----------
    files : dict of Path to bytes
    lines : list of LogLine
        The whole ones of all files, each once, in the order in which they were written.
    broken : list of str
        Where the others are.
    rest : bytes
        What the others hold.
    told : str
    """

    files: dict[Path, bytes]
    lines: list[_label_book.LogLine]
    broken: list[str]
    rest: bytes
    told: str


def read_log_files(path: Path) -> FoundLines:
    """Read a log and the copies beside it.

    Raises
    ------
    InputError
        It is no log.
    """
    files = {file: read_bytes(file, "labels", LARGEST_LOG) for file in label_log_files(path)}
    whole: dict[Path, list[_label_book.LogLine]] = {}
    broken: list[str] = []
    rest = b""
    for file, data in files.items():
        whole[file], others = _label_book.split_log(data)
        name = "" if file == path else f" of {file.name!r}"
        broken += [f"line {line.number}{name}" for line in others]
        rest += b"".join(line.data + b"\n" for line in others)
    ordered = _label_book.in_written_order(line for lines in whole.values() for line in lines)
    if rest and not ordered and not _is_torn(rest.removesuffix(b"\n"), files):
        raise InputError(
            f"`labels` must be a log that `deep label` wrote. Got {rest[:60]!r} at line 1 of {str(path)!r}."
        )
    own = whole.get(path, [])
    told = list(_oddities(own, ordered))
    if (
        not (told or rest)
        and _label_book.START + b": 1" not in files.get(path, b"")
        and files.get(path, b"") != b"".join(line.data for line in own)
    ):
        told = ["it was written otherwise than `deep label` writes it, but its lines are whole"]
    return FoundLines(files, ordered, broken, rest, "; ".join(told))


def _is_torn(rest: bytes, files: Mapping[Path, bytes]) -> bool:
    """Return whether bytes are a first line that was being written, as a killed process or a full disk leaves it."""
    start = rest[: len(_label_book.START)] == _label_book.START[: len(rest)]
    return start and b"\n" not in rest and not any(data.endswith(b"\n") for data in files.values())


def _oddities(own: list[_label_book.LogLine], ordered: list[_label_book.LogLine]) -> Iterator[str]:
    """Yield the oddities of the lines of a log, beside all that its copies hold too."""
    checks = {line.check for line in own}
    lacking = sum(line.check not in checks for line in ordered)
    if lacking:
        yield f"{lacking} lines that it lacked were taken from the copy beside it"
    if len(checks) < len(own):
        yield f"{len(own) - len(checks)} lines stood there twice"
    if [line for line in ordered if line.check in checks] != list({line.check: line for line in own}.values()):
        yield "lines stood in another order than they were written in"
    known = {line.check for line in ordered} | {""}
    gaps = [number for number, line in enumerate(ordered, start=1) if line.before not in known]
    if gaps:
        yield f"lines are missing before {listed([f'line {number}' for number in gaps], 5)}"
    behind = [line.before for line in ordered]
    if len(set(behind)) < len(behind):
        yield "it was written to from two places at once; where these differ on an item, the later line holds"


def mend_log(path: Path, found: FoundLines) -> str:
    """Write a log as its whole lines, where it is not so; return what became of the others."""
    told = ""
    if found.rest:
        aside = path.with_name(f"{path.name}.broken")
        append_whole(aside, found.rest)
        told = f"{are_not_whole(found.broken)} set aside in {aside.name!r}"
    content = b"".join(line.data for line in found.lines)
    if found.files.get(path) != content:
        with whole_file(Path(os.path.realpath(path))) as scratch:
            append_whole(scratch, content)
        sync_folder(Path(os.path.realpath(path)).parent)
    return told


def are_not_whole(broken: list[str]) -> str:
    """Return the words on broken lines, but for what became of them."""
    verb = "is" if len(broken) == 1 else "are"
    return f"{listed(broken, 5)} {verb} not whole and {verb}"


def place_of(path: str | Path) -> Path:
    """Return the whole path of a log; where it is a link, copies stand beside that."""
    return Path(path).parent.resolve() / Path(path).name


def label_log_files(path: str | Path) -> list[Path]:
    """Return the files that the lines of a log stand in: itself, and the copies beside it; those that are there."""
    path = place_of(path)
    copies = path.parent.glob(f"{glob.escape(path.name + COPY)}*")
    return [file for file in (path, *sorted(copies, key=lambda copy: (len(copy.name), copy.name))) if file.is_file()]


def append_whole(path: Path, data: bytes) -> None:
    """Add bytes to a file, a new one where there is none, and wait until they are on disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
    try:
        write_all(file, data)
        os.fsync(file)
    finally:
        os.close(file)


def free_place(path: Path, ending: str) -> Path:
    """Return a place beside a file where nothing is."""
    names = (f"{path.name}{ending}{number or ''}" for number in count())
    return next(place for name in names if not (place := path.with_name(name)).exists())


LONGEST_NOTE = 2000
"""Characters of a note."""

JUMP = 60
"""Seconds by which a clock may be put forward or back before that is told."""

SET_ASIDE = ("label", "skip", "undo")
"""Deeds that are kept for the next start where the log cannot take them."""


class LabelLogLostError(DeepError):
    """The log is not the file that was left, so that nothing is added to it; the message says where answers are."""


@dataclass
class LabelLog:
    """A log that this process alone may add to, and a copy of it beside, from which the next start mends it.

    Before each line the log is known to be as it was left. Where it is not, nothing is added to it until the next
    start: what people say then is set aside in the copy.

    Parameters
    ----------
    path : Path
    book : AnswerBook
        What holds after the events so far.
    told : str
        What the start found in the log that should not be there, and what it did about it; else ''.
    problem : str
        What is wrong now with the log or its copy; else ''.
    remarks : list of str
        What happened to the files and the clock since the start, and is mended.
    lost : str
        Why the log is no longer the file that was left; else ''.

    See Also
    --------
    open_label_log : The way to one.
    """

    path: Path
    book: _label_book.AnswerBook
    told: str
    problem: str = field(default="", init=False)
    remarks: list[str] = field(default_factory=list, init=False)
    lost: str = field(default="", init=False)
    _log: HeldFile
    _copy: "LogCopy"
    _last: str
    _clock: float

    def add(self, *events: _label_book.LabelEvent) -> None:
        """Write events and wait until they are on disk; only then do they hold.

        Raises
        ------
        InputError
            A name or a note cannot be kept.
        LabelLogLostError
            The log is not as it was left. Labels, skips and undone ones are set aside for the next start.
        OSError
            They could not be written, as on a full disk; the log is then as it was before.
        """
        lines = self._lines(events)
        data = b"".join(line.data for line in lines)
        if not data:
            return
        if not self.lost:
            try:
                self._log.add(data)
            except FileChangedError as error:
                self._lose(str(error))
        if self.lost:
            raise self._set_aside([line.event for line in lines if line.event.do in SET_ASIDE])
        self.problem = self._copied(data)
        self._remark(self._jump())
        self._last = lines[-1].check
        for line in lines:
            self.book.add(line.event)

    def look(self) -> str:
        """Return the fault of the log or its copy, else '', having looked whether both are as they were left."""
        try:
            if not self.lost:
                self._log.check()
                self.problem = self._copied(b"")
            else:
                self._lose(self.lost)
        except FileChangedError as error:
            self._lose(str(error))
        except OSError as error:
            self.problem = f"{str(self.path)!r} cannot be looked at: {error.strerror}."
        return self.problem

    def close(self) -> None:
        """Give the files back."""
        self._log.close()
        self._copy.close()

    def _lines(self, events: Iterable[_label_book.LabelEvent]) -> list[_label_book.LogLine]:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return _label_book.log_lines([_checked(event, now) for event in events], self._last)

    def _remark(self, sentence: str) -> None:
        self.remarks += [sentence] if sentence else []

    def _jump(self) -> str:
        """Return by how much the clock has jumped since the last time; no order of labels depends on it."""
        before, self._clock = self._clock, _clock_ahead()
        seconds = round(self._clock - before)
        if abs(seconds) < JUMP:
            return ""
        way = "forward" if seconds > 0 else "back"
        return (
            f"The clock of this machine was put {way} by {timedelta(seconds=abs(seconds))}: times beside labels may be "
            "wrong, their order is not."
        )

    def _copied(self, data: bytes) -> str:
        """Add to the copy; return why there is none, else ''."""
        try:
            self._remark(self._copy.add(data))
        except OSError as error:
            return f"No copy of {self.path.name!r} can be written: {error.strerror}."
        return ""

    def _lose(self, why: str) -> None:
        """Go on without the log; all that was in it is in the copy."""
        self.lost = why
        wrong = self._copied(b"")
        kept = f"the labels are in this process alone. {wrong}" if self._copy.path is None else "every label is kept."
        self.problem = (
            f"{str(self.path)!r} {why}. Nothing more is written to it, and {kept} End `deep label` in its terminal "
            "(Ctrl-C) and start it again: it takes everything up."
        )

    def _set_aside(self, events: list[_label_book.LabelEvent]) -> LabelLogLostError:
        """Keep events for the next start, and return the error that says so."""
        lines = self._lines(events)
        if not lines:
            return LabelLogLostError(self.problem)
        self._last = lines[-1].check
        self._copied(b"".join(line.data for line in lines))
        self._lose(self.lost)
        if self._copy.path is None:
            return LabelLogLostError(f"{self.problem} This answer could not be written beside it either.")
        return LabelLogLostError(f"{self.problem} Until then this answer is set aside in {self._copy.path.name!r}.")


class LogCopy:
    """All lines of a log in a file beside it, another one where that is not as it was left.

    Parameters
    ----------
    log : Path
    content : bytes
        The lines so far.
    path : Path, optional
        A copy that holds them already.
    """

    def __init__(self, log: Path, content: bytes, path: Path | None = None) -> None:
        self._log, self._content = log, bytearray(content)
        self._file = None if path is None else HeldFile(path, content)

    @property
    def path(self) -> Path | None:
        """Return the file, or None where there is none."""
        return None if self._file is None else self._file.path

    def add(self, data: bytes) -> str:
        """Add lines, and see that all are in the file; return what was wrong with it, else ''.

        Raises
        ------
        OSError
            No file can be written now.
        """
        wrong = ""
        if self._file is not None:
            try:
                self._file.add(data)
            except (FileChangedError, OSError) as error:
                wrong = f"{str(self._file.path)!r} {error}; all labels are in a new copy."
                self.close()
        self._content += data
        if self._file is None and self._content:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._file = HeldFile(free_place(self._log, COPY), bytes(self._content), new=True)
            except FileChangedError as error:  # others removed it at once
                raise OSError(EBUSY, str(error)) from None
        return wrong

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()
        self._file = None


@contextmanager
def open_label_log(path: str | Path) -> Iterator[LabelLog]:
    r"""Open a log, a new one where there is none, for this process alone.

    Lines that are not whole are set aside in a file of their own. What the log lacks is taken from the copies beside
    it, in the order in which it was written. A log with nothing in it is taken away where an error ends its use.

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
    >>> from deep.integrations.labeling import LabelEvent, open_label_log, read_label_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.jsonl")
    ...     with open_label_log(path) as log:
    ...         log.add(LabelEvent("label", "news", "a", "Ann", 1, note="clear"))
    ...     with path.open("a") as file:
    ...         _ = file.write('{"schema_v')
    ...     book, told = read_label_log(path)
    >>> book.majority(), told
    ({('news', 'a'): 1}, 'line 2 is not whole and is passed over')
    """
    path = place_of(path)
    with _only_one(path):
        with free_files(label_log_files(path)):
            found = read_log_files(path)
            told = "; ".join(filter(None, (found.told, mend_log(path, found)))) or _without_copy(path, found)
        log = _log_of(path, found, told)
        try:
            yield log
        except BaseException:
            with suppress(OSError):
                if not path.stat().st_size:
                    path.unlink()
            raise
        finally:
            log.close()


def _without_copy(path: Path, found: FoundLines) -> str:
    """Return that no file but the log had all of its lines, else ''; logs of schema version 1 had no copy."""
    content = b"".join(line.data for line in found.lines)
    old = _label_book.START + b": 1" in found.files.get(path, b"")
    others = (data for file, data in found.files.items() if file != path)
    return "" if old or content in (b"", *others) else "no copy beside it had all of its lines; there is a new one"


def read_label_log(path: str | Path) -> tuple[_label_book.AnswerBook, str]:
    """Read a log, also one that another process has open.

    Returns
    -------
    book : AnswerBook
    told : str
        What was found that should not be there; else ''.

    Raises
    ------
    InputError
        There is none, or it is no log.
    """
    if not label_log_files(path):
        raise InputError(f"`labels` must be a log that `deep label` wrote. Got {str(path)!r}, where there is no file.")
    found = read_log_files(place_of(path))
    broken = f"{are_not_whole(found.broken)} passed over" if found.broken else ""
    return _book(found.lines), "; ".join(filter(None, (found.told, broken)))


def _log_of(path: Path, found: FoundLines, told: str) -> LabelLog:
    """Return a log that was mended, open."""
    content = b"".join(line.data for line in found.lines)
    try:
        if not path.exists():
            append_whole(path, b"")
        file = HeldFile(path, content)
    except FileChangedError:
        raise in_use(path) from None
    last = found.lines[-1].check if found.lines else ""
    return LabelLog(path, _book(found.lines), told, file, _copied(path, found, content), last, _clock_ahead())


def _copied(path: Path, found: FoundLines, content: bytes) -> LogCopy:
    """Return the one copy of a log that it goes on with; others, which hold nothing more, are taken away."""
    copies = [file for file in found.files if file != path]
    same = next((file for file in copies if found.files[file] == content), None)
    copy = LogCopy(path, content, same)
    try:
        copy.add(b"")
    except OSError:
        return copy  # a full disk: what is there stays
    for file in copies:
        if file != copy.path:
            file.unlink(missing_ok=True)
    return copy


def _clock_ahead() -> float:
    """Return how far the clock is ahead of one that nobody sets and that goes on in sleep; 0 where there is none."""
    steady = getattr(time, "CLOCK_BOOTTIME", None)
    return 0.0 if steady is None else time.time() - time.clock_gettime(steady)


def _book(lines: Iterable[_label_book.LogLine]) -> _label_book.AnswerBook:
    book = _label_book.AnswerBook()
    for line in lines:
        book.add(line.event)
    return book


def _checked(event: _label_book.LabelEvent, now: str) -> _label_book.LabelEvent:
    event = replace(event, person=plain_form(event.person), time=event.time or now)
    if event.do != "queue":
        check_name(event.person, "person")
    if len(event.note) > LONGEST_NOTE:
        raise InputError(f"`note` must have at most {LONGEST_NOTE:,} characters. Got {len(event.note):,}.")
    return event


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Hold the lock of a log, which the system gives back however the process ends."""
    with needs_extra("serve", what="Labeling"):
        from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f".{path.name}.lock"), blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise in_use(path) from None
    except OSError as error:  # a network file system without locks
        raise InputError(
            f"`out` must be where files can be locked. Got {str(path)!r}: {error.strerror}. Name a folder on a disk of "
            "this machine."
        ) from None
    try:
        yield
    finally:
        lock.release()


LABEL_COLUMNS = ("dataset", "item_id", "label")

OLD = ".old"
"""What the name of a table that was kept ends in, and a number where there are several."""

PLAIN = str.maketrans({"\0": "\ufffd", "\r": "\n"})
"""What stands in a table for characters that would break it."""

LabelCells = Mapping[str, str]


def write_labels(book: _label_book.AnswerBook, out: Path) -> None:
    """Write the label of most people for each item that has one, as :func:`deep.datasets.read_labels` reads it."""
    _write(out, LABEL_COLUMNS, _label_rows(book))


def write_annotations(book: _label_book.AnswerBook, out: Path) -> None:
    """Write the labels of each person, as :func:`read_annotations` reads them."""
    _write(out, _label_book.ANNOTATION_COLUMNS, book.annotation_rows())


def keep_other_labels(book: _label_book.AnswerBook, labels: Path, annotations: Path) -> str:
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
    remember(path)  # so that what is added from now on is not written over
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
    if not path.is_file():
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
    return plain_form(cell) if column == "annotator" else _plain(cell)


def _plain(text: str) -> str:
    # No table may hold a NUL, which is a character of notes like any other; nor a bare \r, which csv quotes not.
    return text.translate(PLAIN).encode(errors="replace").decode()


def _label_rows(book: _label_book.AnswerBook) -> Iterator[LabelCells]:
    for (dataset, item_id), label in book.majority().items():
        yield {"dataset": dataset, "item_id": item_id, "label": str(label)}


def _write(out: Path, columns: Sequence[str], rows: Iterable[LabelCells]) -> None:
    with whole_file(out) as scratch, scratch.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, columns, ([_plain(row[name]) for name in columns] for row in rows))
