"""The log of people's labels: a SQLite file, with a copy beside it, that has each event before the next item is shown.

A file is known by reading it, at the start and after each write. Where another program changed, replaced or removed it,
it is written anew with all events. An event has a number and a checksum, so that the events of several files are one
log: those of the copy, of a second process, and of the JSON lines that deep wrote before 2026-11-28.
"""

import glob
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from errno import EBUSY, EIO, ELOOP
from hashlib import sha256
from itertools import islice
from pathlib import Path
from stat import S_ISREG

from deep._util.files import JsonObject, read_bytes
from deep._util.names import check_name, visible_form
from deep.exceptions import InputError, needs_extra
from deep.integrations.labeling._label_book import EVENT_KINDS, AnswerBook, LabelEvent, free_place

# What the name of a log ends in.
LOG_ENDING = ".log.sqlite"

# What the name of its copy ends in behind that.
COPY_ENDING = ".copy"

SCHEMA = 3
"""The version of the log; 1 and 2 were JSON lines."""

# Bytes of a log of JSON lines.
LARGEST_LOG = 1 << 28

# Characters of a note.
LONGEST_NOTE = 2000

# How long a write waits for a program that reads the log.
BUSY_SECONDS = 5

# Errors that tell of the content of a file; all others tell of the disk, and may pass.
CONTENT_FAULTS = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_NOTADB})

# The one table of a log; a row is written once and never changed.
EVENTS_TABLE_SQL = "CREATE TABLE events (number INTEGER NOT NULL, event TEXT NOT NULL, checksum TEXT PRIMARY KEY)"

# By checksum: the number of an event, and its JSON.
EventRows = dict[str, tuple[int, str]]

# The numbers that `_signature` gives: device, inode, size, and the times of the last change of content and of status.
Signature = tuple[int, int, int, int, int]

# The fields of an event, which are the keys of its JSON.
_NAMES = tuple(field.name for field in fields(LabelEvent))


def log_place(path: str | Path) -> Path:
    """Return the whole path of a log that is named by itself, its table of labels or its old JSON lines.

    Where it is a link, its copy stands beside that.
    """
    name = Path(path).name
    ending = next((end for end in (LOG_ENDING, ".jsonl", ".csv") if name.endswith(end)), "")
    return Path(path).parent.resolve() / (name.removesuffix(ending) + LOG_ENDING)


def label_log_files(path: str | Path) -> list[Path]:
    """Return the files that the events of a log stand in: itself, its copy and old JSON lines; those that are there."""
    log = log_place(path)
    return [file for file in (log, _copy_of(log), *_old_files(log)) if os.path.lexists(file)]


@dataclass
class LabelLog:
    """A log that one process adds to.

    Parameters
    ----------
    path : Path
        Of the log, a SQLite file.
    book : AnswerBook
        What holds after the events so far.
    told : str
        What the start found amiss, and what it did about it; else ''.
    problem : str
        Why the log or its copy cannot be written now; else ''.
    remarks : list of str
        What others did to the files since the start, and is mended.

    See Also
    --------
    open_label_log : The way to one.
    """

    path: Path
    book: AnswerBook
    told: str = ""
    problem: str = field(default="", init=False)
    remarks: list[str] = field(default_factory=list, init=False)
    _rows: EventRows = field(default_factory=dict)
    _is_new: bool = True
    _states: dict[Path, tuple[Signature | None, int]] = field(default_factory=dict, init=False)

    def add(self, *events: LabelEvent) -> None:
        """Write events, and know that they are on disk; only then do they hold.

        Raises
        ------
        InputError
            A name or a note cannot be kept.
        OSError
            They could not be written, as on a full disk; nothing has changed.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        checked = [_checked(event, now) for event in events]
        new = _numbered(checked, 1 + max((number for number, _ in self._rows.values()), default=0))
        if new:
            self._write(self.path, new)
            self._rows |= new
            for event in checked:
                self.book.add(event)
            self.look()

    def look(self) -> str:
        """Mend what others changed in the log and its copy; return why one cannot be written, else ''."""
        self.problem = ""
        for path in (self.path, _copy_of(self.path)):
            try:
                if self._rows and self._states.get(path) != (_signature(path), len(self._rows)):
                    self._write(path, {})
            except OSError as error:
                self.problem = f"{str(path)!r} cannot be written: {error.strerror}."
        return self.problem

    def _write(self, path: Path, new: EventRows) -> None:
        """Bring a file to all events and the new ones, and know by reading it that they are there.

        Events that another process wrote to it are kept; they hold from the next start on.
        """
        rows = self._rows | new
        before, n_rows = self._states.get(path, (None, 0))
        if before is not None and before == _signature(path):
            # A full disk, or a file that was changed just now: reading it tells. The journal of SQLite is the old one
            # and no WAL: every label is in the one file that people copy.
            with suppress(sqlite3.Error), closing(_connect(path)) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")
                _insert(connection, islice(rows.items(), n_rows, None))
        now = _signature(path)
        file = _read_file(path)
        theirs = {check: row for check, row in file.rows.items() if check not in rows}
        self._rows |= theirs
        if file.fault or len(file.rows) < len(rows) + len(theirs):
            aside = _write_anew(path, rows | theirs, keep=file.is_foreign)
            now = _signature(path)
            untouched = path in self._states and not file.fault and len(file.rows) == n_rows  # the disk was full
            if not (untouched or (self._is_new and path not in self._states)):
                lacking = sum(check not in file.rows for check in self._rows)
                fault = file.fault or f"lacked {lacking} events"
                note = f"; what stood there is in {aside.name!r}" if aside else ""
                self.remarks.append(f"{str(path)!r} {fault}. It was written anew with all labels{note}.")
        if theirs:
            self.remarks.append(
                f"Another program added {len(theirs)} events to {str(path)!r}. They count after the next start."
            )
        self._states[path] = now, len(rows) + len(theirs)


@contextmanager
def open_label_log(path: str | Path) -> Iterator[LabelLog]:
    r"""Open a log, a new one where there is none, for this process alone.

    What the log lacks is taken from its copy, and from the JSON lines of an earlier deep.

    Parameters
    ----------
    path : str or Path
        The log, its table of labels or its old JSON lines.

    Raises
    ------
    InputError
        Another process has it open, or it is no log.
    OSError
        It cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from deep.integrations.labeling import LabelEvent, open_label_log, read_label_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.csv")
    ...     with open_label_log(path) as log:
    ...         log.add(LabelEvent("label", "news", "a", "Ann", 1, note="clear"))
    ...     Path(folder, "labels.log.sqlite").unlink()
    ...     book, told = read_label_log(path)
    >>> book.majority(), told
    ({('news', 'a'): 1}, "'labels.log.sqlite' is gone")
    """
    path = log_place(path)
    with _log_lock(path):
        rows, taken_over, notes = _merged(path)
        log = LabelLog(path, _book(rows), _rows=rows, _is_new=not notes and len(rows) == taken_over)
        if log.look() and path not in log._states:
            raise OSError(EIO, log.problem)
        if taken_over:
            lines = path.name.removesuffix(LOG_ENDING) + ".jsonl"
            log.told = ". ".join([f"{taken_over} events were taken over from {lines!r}", *notes])
        log.told = " ".join(filter(None, (log.told, *log.remarks)))
        log.remarks.clear()
        yield log


def read_label_log(path: str | Path) -> tuple[AnswerBook, str]:
    """Read a log, also one that another process has open.

    Parameters
    ----------
    path : str or Path
        The log, its table of labels or its old JSON lines.

    Returns
    -------
    book : AnswerBook
    told : str
        What is amiss in its files; else ''.

    Raises
    ------
    InputError
        There is none, or it is no log.
    """
    if not label_log_files(path):
        raise InputError(f"`labels` must be a log that `deep label` wrote. Got {str(path)!r}, which does not exist.")
    rows, _, notes = _merged(log_place(path))
    return _book(rows), "; ".join(notes)


@dataclass
class LogFile:
    """The content of one file of a log.

    Parameters
    ----------
    rows : EventRows
        The events that are whole.
    fault : str
        What is wrong with it, as the rest of a sentence that begins with its name; else ''.
    is_foreign : bool
        Whether it holds something that is no event of a log.
    """

    rows: EventRows
    fault: str = ""
    is_foreign: bool = False


def _merged(path: Path) -> tuple[EventRows, int, list[str]]:
    """Return the events of all files in the order of writing, how many are of JSON lines alone, and what is amiss."""
    files = {file: _read_file(file) for file in (path, _copy_of(path)) if os.path.lexists(file)}
    rows = {check: row for file in files.values() for check, row in file.rows.items()}
    lines, broken = _read_lines(_old_files(path))
    events = rows | lines
    refusal = next(((file, result.fault) for file, result in files.items() if result.is_foreign), None)
    if not events and refusal is not None:
        raise InputError(
            f"`labels` must be a log that `deep label` wrote. Got {str(refusal[0])!r}, which {refusal[1]}."
        )
    if broken and not events:
        raise InputError(f"`labels` must be a log that `deep label` wrote. Got text of another program at {broken[0]}.")
    notes = [f"{file.name!r} {result.fault}" for file, result in files.items() if result.fault]
    if rows:
        notes += [f"{file.name!r} is gone" for file in (path, _copy_of(path)) if file not in files]
    if len(events) > len(rows):
        notes += [f"{place} is incomplete and was skipped" for place in broken]
    ordered = dict(sorted(events.items(), key=lambda row: row[1][0]))
    return ordered, len(events) - len(rows), notes


def _read_file(path: Path) -> LogFile:
    """Read the log or its copy; raise an OSError where that may go well another time."""
    unread = _unreadable(path)
    if unread is not None:
        return unread
    rows: EventRows = {}
    wrong = 0
    try:
        with closing(_connect(path)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA:
                raise InputError(
                    f"`labels` must be a log of schema version {SCHEMA} at most. Got {version} in {str(path)!r}. Use "
                    "the newer deep that wrote it."
                )
            for number, event, check in connection.execute("SELECT number, event, checksum FROM events ORDER BY 1"):
                if check == _checksum(number, event) and _event_of(json.loads(event)) is not None:
                    rows[check] = number, event
                else:
                    wrong += 1
    except sqlite3.Error as error:
        if _code(error) not in CONTENT_FAULTS:
            raise _as_os_error(error) from None
        return LogFile(rows, f"is not a complete log ({error})", is_foreign=True)
    return LogFile(rows, f"held {wrong} events that were changed" if wrong else "", is_foreign=bool(wrong))


def _unreadable(path: Path) -> LogFile | None:
    """Return the fault of a place where there is no file to read, else None."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return LogFile({}, "is gone")
    except OSError as error:
        if error.errno != ELOOP:
            raise
        return LogFile({}, "is a circular link", is_foreign=True)
    if not S_ISREG(status.st_mode):  # reading a pipe would wait for ever
        return LogFile({}, "is a folder, a pipe or a device", is_foreign=True)
    return None if status.st_size else LogFile({}, "is empty")


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file that is there. Each use opens it anew, so that none goes to a file that was moved away."""
    uri = Path(os.path.realpath(path)).as_uri()
    return sqlite3.connect(f"{uri}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def _insert(connection: sqlite3.Connection, rows: Iterable[tuple[str, tuple[int, str]]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        connection.executemany(
            "INSERT INTO events VALUES (?, ?, ?)", ((number, event, check) for check, (number, event) in rows)
        )


def _write_anew(path: Path, rows: EventRows, *, keep: bool) -> Path | None:
    """Put a new file in the place of one, and keep what stood there where that is wanted; return where it is."""
    place = Path(os.path.realpath(path))
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".deep-label-", dir=place.parent) as folder:
        scratch = Path(folder, "log")
        try:
            with closing(sqlite3.connect(scratch, isolation_level=None)) as connection:
                connection.execute(f"PRAGMA user_version = {SCHEMA}")
                connection.execute(EVENTS_TABLE_SQL)
                _insert(connection, rows.items())
        except sqlite3.Error as error:
            raise _as_os_error(error) from None
        aside = free_place(place, ".broken") if keep else None
        if aside is not None:
            place.rename(aside)
        place.with_name(f"{place.name}-journal").unlink(missing_ok=True)  # of what stood there
        scratch.replace(place)
    with suppress(OSError):  # some systems open no folders
        file = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    return aside


def _as_os_error(error: sqlite3.Error) -> OSError:
    return OSError(EBUSY if _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else EIO, str(error))


def _code(error: sqlite3.Error) -> int:
    """Return the code of an error; those of Python's own module, as of text that is no UTF-8, have none."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _copy_of(path: Path) -> Path:
    return path.with_name(path.name + COPY_ENDING)


def _signature(path: Path) -> Signature | None:
    """Return numbers of a file that change with its content; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _book(rows: EventRows) -> AnswerBook:
    book = AnswerBook()
    for _, text in rows.values():
        event = _event_of(json.loads(text))
        if event is not None:
            book.add(event)
    return book


def _numbered(events: Iterable[LabelEvent], first: int) -> EventRows:
    """Return the rows of events, whose checksums no other row of a log has."""
    rows: EventRows = {}
    for number, event in enumerate(events, start=first):
        text = json.dumps(asdict(event))  # half a surrogate pair is escaped: it has no bytes in UTF-8
        rows[_checksum(number, text)] = number, text
    return rows


def _checksum(number: object, event: object) -> str:
    return sha256(f"{number} {event}".encode(errors="replace")).hexdigest()[:16]


def _checked(event: LabelEvent, now: str) -> LabelEvent:
    event = replace(event, person=visible_form(event.person), time=event.time or now)
    if event.do != "queue":
        check_name(event.person, "person")
    if len(event.note) > LONGEST_NOTE:
        raise InputError(f"`note` must have at most {LONGEST_NOTE:,} characters. Got {len(event.note):,}.")
    return event


def _event_of(values: JsonObject) -> LabelEvent | None:
    """Return the event of some values, None where one is not as it should be."""
    try:
        event = LabelEvent(**{name: values[name] for name in _NAMES})
    except (KeyError, TypeError):
        return None
    texts = (event.dataset, event.item_id, event.person, event.note, event.time)
    right = event.do in EVENT_KINDS and all(isinstance(text, str) for text in texts)
    whole = type(event.people) is type(event.label) is int and event.label in (1, 0, -1)
    return event if right and whole else None


@contextmanager
def _log_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a log, which the system gives back however the process ends."""
    with needs_extra("serve", what="Labeling"):
        from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f".{path.name}.lock"), blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(
            f"`out` must not be in use. Got {str(path)!r}, which another `deep label` uses. End that one first; "
            "several people can use its page."
        ) from None
    except OSError as error:  # a network file system without locks
        raise InputError(
            f"`out` must be in a folder where files can be locked. Got {str(path)!r}: {error.strerror}. Name a "
            "folder on a disk of this machine."
        ) from None
    try:
        yield
    finally:
        lock.release()


# How every line of an old log begins; no text in a line can hold it, for JSON escapes quotes.
OLD_START = b'{"schema_version"'

# Bytes that editors, and logs that were lengthened, put around a line.
OLD_STRAY = b" \t\r\0\xef\xbb\xbf"


def _old_files(log: Path) -> list[Path]:
    """Return the JSON lines of an earlier deep, and their copies."""
    lines = log.with_name(log.name.removesuffix(LOG_ENDING) + ".jsonl")
    copies = lines.parent.glob(f"{glob.escape(lines.name)}{COPY_ENDING}*")
    return [file for file in (lines, *sorted(copies, key=lambda file: (len(file.name), file.name))) if file.is_file()]


def _read_lines(files: Iterable[Path]) -> tuple[EventRows, list[str]]:
    """Return the events of old logs in the order of the longest, and the places of broken lines."""
    logs: list[dict[object, LabelEvent]] = []
    broken = []
    for file in files:
        logs.append({})
        for number, raw in enumerate(read_bytes(file, "labels", LARGEST_LOG).split(b"\n"), start=1):
            for piece in re.split(b"(?=%s)" % re.escape(OLD_START), raw):
                text = piece.strip(OLD_STRAY)
                check, event = _old_event(text)
                if event is not None:
                    logs[-1].setdefault(check or (number, text), event)
                elif text:
                    broken.append(f"line {number} of {file.name!r}")
    events: dict[object, LabelEvent] = {}
    for log in sorted(logs, key=len, reverse=True):
        events |= log
    return _numbered(events.values(), 1), broken


def _old_event(text: bytes) -> tuple[str, LabelEvent | None]:
    """Return the checksum of a line that is whole, and its event; version 1 had no checksums."""
    try:
        values = json.loads(text)
        event = _event_of(values)
    except (ValueError, TypeError, RecursionError):
        return "", None
    if event is None:
        return "", None
    if values.get("schema_version") == 1:
        return "", replace(event, person=visible_form(event.person))
    body = {"schema_version": 2, **asdict(event), "before": values.get("before")}
    check = sha256(json.dumps(body)[:-1].encode("ascii")).hexdigest()[:16]
    return check, event if (values.get("schema_version"), values.get("check")) == (2, check) else None
