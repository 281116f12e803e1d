"""Group commit: the thread through which a ledger writes, and the one that brings what it wrote to disk."""

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from deep._util.sqlite_log import SECONDS_OUTSIDE, end_run, transaction
from deep.exceptions import DeepError
from deep.llm import _database
from deep.llm._errors import LedgerError, LedgerFullError, LedgerMovedError
from deep.llm.schema import Write, statements

T = TypeVar("T")
WriteFuture = asyncio.Future[object]
"""Done once something is on disk."""

Work = Sequence[Write] | Callable[[Connection], object]


class PendingWork(NamedTuple):
    """A piece of work to be written, the future of who waits, and whether that waits for the disk."""

    work: Work
    done: WriteFuture
    on_disk: bool


# Rows that share a commit at most; a group holds what came in while the last one was being committed. Chosen; no
# measurement is known. A larger group keeps its first answer waiting longer.
MAX_GROUP = 500


class Writer:
    """Group commit: many writes share one transaction, and transactions one flush to disk.

    The flush has a thread of its own, so that what need not be on disk waits for none.

    Parameters
    ----------
    connection : Connection
        From now on used by the writer's thread alone.
    name : str
        The ledger's, for error messages.
    reserve : Reserve, optional
        Released where something cannot be written, which is then tried once more.
    files : LedgerFiles, optional
        Looked at before and after every commit; where other programs have moved, removed or written to the ledger, a
        copy beside it takes what is written from then on.

    Attributes
    ----------
    full : LedgerFullError or None
        Why nothing new should be begun, once the reserve is released, the ledger is not where it was, or its connection
        was lost.

    Notes
    -----
    Within a group the like is written together: no two writes of a group concern the same row, since whoever writes
    waits for the first before the second.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        reserve: _database.Reserve | None = None,
        files: _database.LedgerFiles | None = None,
    ) -> None:
        self._connection = self._opened = connection
        self._name = name
        self._reserve = reserve
        self._files = files
        self._overwritten = False
        self.full: LedgerFullError | None = None
        self._queue: queue.SimpleQueue[list[PendingWork] | None] = queue.SimpleQueue()
        self._gathering: list[PendingWork] = []
        self._error: LedgerError | None = None
        self._loop = asyncio.get_running_loop()
        self._committed: queue.SimpleQueue[tuple[list[PendingWork], object] | None] = queue.SimpleQueue()
        self._flusher = threading.Thread(target=self._flush, name="deep-ledger-flush", daemon=True)
        self._flusher.start()
        self._thread = threading.Thread(target=self._run, name="deep-ledger", daemon=True)
        self._thread.start()

    def write(self, writes: Sequence[Write], *, on_disk: bool = True) -> WriteFuture:
        """Return a future that is done once `writes` are on disk, or else once they outlive the end of this process."""
        return self._submit(writes, on_disk=on_disk)

    async def call(self, function: Callable[[Connection], T], *, on_disk: bool = True) -> T:
        """Run `function` in a transaction of its own, after all earlier writes, and return its result."""
        return cast(T, await self._submit(function, on_disk=on_disk))

    def _submit(self, work: Work, *, on_disk: bool) -> WriteFuture:
        # After a failed write nothing may be asked: its answer could not be kept.
        if self._error is not None:
            raise self._error
        done = self._loop.create_future()
        self._gathering.append(PendingWork(work, done, on_disk))
        if len(self._gathering) == 1:
            self._loop.call_soon(self._hand_over)
        return done

    def _hand_over(self) -> None:
        """Give the thread the writes of one turn of the event loop: each hand-over costs a thread switch."""
        if self._gathering:
            self._queue.put(self._gathering)
            self._gathering = []

    async def close(self) -> None:
        """Commit the pending writes and close the connection."""
        self._hand_over()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        """Commit what waits, group by group, until the writer is closed; the thread of a writer runs it."""
        stop, due, wait = False, None, 0.0  # what the first commit wrote is moved into the file at once
        while not stop:
            group, stop = self._gather(due)
            for part in _parts(group):
                self._commit(part)
            if group and due is None:
                due, wait = time.monotonic() + wait, SECONDS_OUTSIDE
            if due is not None and time.monotonic() >= due:
                files = self._files if self._connection is self._opened else None
                due = None if files is None or files.move_log(self._connection) else time.monotonic() + wait
        # What is committed is flushed and reported before the connection closes.
        self._committed.put(None)
        self._flusher.join()
        with suppress(SQLAlchemyError):  # of a connection that is lost; what was to be written has its error
            if self._files is not None:
                end_run(_database.driver_of(self._connection))
            self._connection.close()
        if self._files is not None and self._connection is not self._opened:
            with self._files.closing(overwritten=self._overwritten):
                self._opened.close()

    def _gather(self, due: float | None) -> tuple[list[PendingWork], bool]:
        """Return all that waits, at least one piece of work before the time `due`, and whether to stop after it."""
        group: list[PendingWork] = []
        try:
            entries = self._queue.get(timeout=None if due is None else max(0.0, due - time.monotonic()))
        except queue.Empty:
            return group, False
        while entries is not None:
            group += entries
            if len(group) >= MAX_GROUP or self._queue.empty():
                return group, False
            entries = self._queue.get()
        return group, True

    def _commit(self, part: list[PendingWork]) -> None:
        """Commit one part of a group, and report it to those who wait."""
        result: object = None
        error: Exception | None = self._error
        flushed = callable(part[0].work) and part[0].on_disk  # by the transaction itself: there is one now and then
        try:
            if error is None:
                if self._files is not None and self._connection is self._opened:
                    # FULL makes the commit wait for the disk; with NORMAL the thread of flushes does, once for many.
                    level = "FULL" if flushed else "NORMAL"
                    _database.driver_of(self._connection).execute(f"PRAGMA synchronous = {level}")
                result = self._carry_out(part)
        except (sqlite3.Error, SQLAlchemyError) as failure:
            error = self._error = self._broken_error(failure)
        # The error of a function concerns its caller alone; the ledger goes on.
        except Exception as failure:
            error = failure
        if error is None and not flushed and self._files is not None and self._connection is self._opened:
            self._committed.put(([entry for entry in part if entry.on_disk], result))
            part = [entry for entry in part if not entry.on_disk]
        self._report(part, result, error)

    def _flush(self) -> None:
        """Bring to disk what was committed, and report it: all that came in during one flush by the next."""
        parts: list[tuple[list[PendingWork], object] | None] = []
        while None not in parts:
            parts = [self._committed.get()]
            while not self._committed.empty():
                parts.append(self._committed.get())
            try:
                if self._files is not None:
                    self._files.flush()
            except OSError as failure:
                self._error = self._broken_error(failure)
            for part, result in (part for part in parts if part is not None):
                self._report(part, result, self._error)

    def _broken_error(self, failure: Exception) -> LedgerError:
        return LedgerError(
            f"`ledger` {self._name} cannot be written: {_database.one_line(failure)}. The run stops; nothing more is "
            "asked."
        )

    def _carry_out(self, part: list[PendingWork]) -> object:
        """Run work in a transaction, and again where it fails and there is a reserve to release."""
        works = [entry.work for entry in part]
        try:
            return self._execute(works)
        except (sqlite3.Error, SQLAlchemyError) as failure:
            if self._reserve is None or not self._reserve.release():
                raise
            self.full = self._full_error(failure, "Make room, and run it again.")
            return self._execute(works)

    def _full_error(self, failure: Exception, remedy: str = "Run it again.") -> LedgerFullError:
        return LedgerFullError(
            f"`ledger` {self._name} cannot be written: {_database.one_line(failure)}. The run stops; answers in "
            f"flight are saved. {remedy}"
        )

    def _execute(self, works: list[Work]) -> object:
        """Run work in a transaction, and see to it that it is found under the ledger's name, or beside it."""
        files = self._files if self._connection is self._opened else None
        if files is None:
            return self._transact(works)
        # Looked at before and after: another program may act while the transaction runs.
        change = files.change()
        if change is not None and self._move(files.path, change):
            return self._transact(works)
        result = self._transact(works)
        place = files.moved()
        if place is not None:
            self._move(files.path, place)
        elif files.unlocked and self.full is None:
            self.full = LedgerFullError(
                f"`ledger` {self._name} must keep its lock. Another program removed {files.path}.lock, so other "
                "processes may write too. The run stops; answers in flight are saved. Run it again."
            )
        files.remember()
        return result

    def _move(self, path: str, change: str) -> bool:
        """Go on in a copy beside the ledger, so that nothing new is begun; return whether it can be made."""
        why = f"`ledger` {self._name} must not change while it is in use. It {change} by another program."
        if change.startswith("lost"):
            why = why.replace(" by another program", "")
        try:
            copy, self._connection = _database.keep_copy(self._connection, path)
        except (DeepError, OSError) as error:
            self.full = LedgerMovedError(
                f"{why} The run stops. Answers in flight are in the file that was opened; a copy failed: "
                f"{_database.one_line(error)}."
            )
            return False
        self._overwritten = change == "was written to"
        self.full = LedgerMovedError(f"{why} The run stops; all answers are in {copy}, and the next run enters them.")
        return True

    def _transact(self, works: list[Work]) -> object:
        """Run work in one transaction of SQLite."""
        if works and callable(work := works[0]):
            with self._connection.begin():
                return work(self._connection)
        writes = [write for work in works if not callable(work) for write in work]
        # By the driver: SQLAlchemy's own transactions and statements take longer than all that SQLite does.
        driver = _database.driver_of(self._connection)
        with transaction(driver):
            # A copy of a ledger may lack the rows that are to be updated.
            lacking = [] if self._connection is self._opened else [write for write in writes if write.whole is not None]
            missing = [Write(write.table, "insert_or_keep", write.whole()) for write in lacking if write.whole]
            for part in (missing, writes):
                for statement, rows in statements(part, "sqlite"):
                    driver.executemany(statement, rows)
        return None

    def _report(self, part: list[PendingWork], result: object, error: Exception | None) -> None:
        """Wake the waiting tasks; once for the whole group, since each wake-up of the loop costs a system call."""
        futures = [entry.done for entry in part]
        if futures and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_settle, futures, result, error)


def _settle(futures: list[WriteFuture], result: object, error: Exception | None) -> None:
    for future in futures:
        # Its task was stopped, as by a second Ctrl-C; the row is written all the same.
        if future.cancelled():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _parts(group: list[PendingWork]) -> list[list[PendingWork]]:
    """Return runs of row writes, and each function on its own, in order."""
    parts: list[list[PendingWork]] = []
    for entry in group:
        # Rows share a transaction; a function has one of its own, so that its error undoes nothing else.
        if not parts or callable(entry.work) or callable(parts[-1][0].work):
            parts.append([])
        parts[-1].append(entry)
    return parts
