"""The log of people's labels: JSON lines that are only ever added to, each on disk before the next item is shown."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deep._names import check_name, person_name
from deep.datasets._held_file import FileChangedError, HeldFile, free_files, in_use
from deep.datasets._label_book import AnswerBook, LabelEvent
from deep.datasets._label_lines import LogLine, log_lines
from deep.datasets._label_mend import (
    COPY,
    FoundLines,
    append_whole,
    are_not_whole,
    free_place,
    label_log_files,
    mend_log,
    place_of,
    read_log_files,
)
from deep.exceptions import DeepError, InputError

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
    lost : str
        Why the log is no longer the file that was left; else ''.

    See Also
    --------
    open_label_log : The way to one.
    """

    path: Path
    book: AnswerBook
    told: str
    problem: str = field(default="", init=False)
    lost: str = field(default="", init=False)
    _log: HeldFile
    _copy: "LogCopy"
    _last: str
    _clock: float

    def add(self, *events: LabelEvent) -> None:
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
        self.problem = " ".join(filter(None, (self._copied(data), self._jump())))
        self._last = lines[-1].check
        for line in lines:
            self.book.add(line.event)

    def look(self) -> str:
        """Return the fault of the log or its copy, else '', having looked whether both are as they were left."""
        try:
            if not self.lost:
                self._log.check()
                self.problem = self._copied(b"") or self.problem
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

    def _lines(self, events: Iterable[LabelEvent]) -> list[LogLine]:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return log_lines([_checked(event, now) for event in events], self._last)

    def _jump(self) -> str:
        """Return by how much the clock has jumped since the last time, once; no order of labels depends on it."""
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
        """Add to the copy; return what is wrong with it, else ''."""
        try:
            return self._copy.add(data)
        except OSError as error:
            return f"No copy of {self.path.name!r} can be written: {error.strerror}."

    def _lose(self, why: str) -> None:
        """Go on without the log; all that was in it is in the copy."""
        self.lost = why
        wrong = self._copied(b"")
        kept = f"the labels are in this process alone. {wrong}" if self._copy.path is None else "every label is kept."
        self.problem = (
            f"{str(self.path)!r} {why}. Nothing more is written to it, and {kept} End `deep label` in its terminal "
            "(Ctrl-C) and start it again: it takes everything up."
        )

    def _set_aside(self, events: list[LabelEvent]) -> LabelLogLostError:
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
            self._file = HeldFile(free_place(self._log, COPY), bytes(self._content), new=True)
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
    >>> from deep.datasets import LabelEvent, open_label_log, read_label_log
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
            told = "; ".join(filter(None, (found.told, mend_log(path, found))))
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


def read_label_log(path: str | Path) -> tuple[AnswerBook, str]:
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


def _book(lines: Iterable[LogLine]) -> AnswerBook:
    book = AnswerBook()
    for line in lines:
        book.add(line.event)
    return book


def _checked(event: LabelEvent, now: str) -> LabelEvent:
    event = replace(event, person=person_name(event.person), time=event.time or now)
    if event.do != "queue":
        check_name(event.person, "person")
    if len(event.note) > LONGEST_NOTE:
        raise InputError(f"`note` must have at most {LONGEST_NOTE:,} characters. Got {len(event.note):,}.")
    return event


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Hold the lock of a log, which the system gives back however the process ends."""
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f".{path.name}.lock"), blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise in_use(path) from None
    try:
        yield
    finally:
        lock.release()
