"""One thread that owns the ledger's connection and commits whatever has gathered, together."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from deep.exceptions import DeepError
from deep.llm._database import one_line, one_round_trip
from deep.llm._errors import LedgerError, LedgerFullError, LedgerMovedError
from deep.llm._kept import LedgerFiles, keep
from deep.llm._reserve import Reserve
from deep.llm._statements import Write, missing_rows, write_all

T = TypeVar("T")
Written = asyncio.Future[object]
"""Done once something is on disk."""

_Work = Sequence[Write] | Callable[[Connection], object]
_Entry = tuple[_Work, Written]

MAX_GROUP = 500
"""Rows that share a commit at most; a group holds what came in while the last one was being committed."""


UNDONE = 50
"""How often a transaction that the database has undone is tried again."""

DEADLOCK, CONFLICT = "40P01", "40001"
"""PostgreSQL's states for a transaction that it has undone to let another one pass."""


class Writer:
    """Group commit: every write waits for one flush to disk, and many share it.

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
        Why nothing new should be begun, once the reserve is released or the ledger is not where it was.

    Notes
    -----
    Within a group the like is written together: no two writes of a group concern the same row, since whoever writes
    waits for the first before the second.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        reserve: Reserve | None = None,
        files: LedgerFiles | None = None,
    ) -> None:
        self._connection = self._opened = connection
        self._name = name
        self._reserve = reserve
        self._files = files
        self._overwritten = False
        self._together = True
        self.full: LedgerFullError | None = None
        self._queue: queue.SimpleQueue[list[_Entry] | None] = queue.SimpleQueue()
        self._gathering: list[_Entry] = []
        self._error: LedgerError | None = None
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="deep-ledger", daemon=True)
        self._thread.start()

    def write(self, writes: Sequence[Write]) -> Written:
        """Return a future that is done once `writes` are on disk."""
        return self._submit(writes)

    async def call(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in a transaction of its own, after all earlier writes, and return its result."""
        return cast(T, await self._submit(function))

    def _submit(self, work: _Work) -> Written:
        if self._error is not None:
            raise self._error
        done = self._loop.create_future()
        self._gathering.append((work, done))
        if len(self._gathering) == 1:
            self._loop.call_soon(self._hand_over)
        return done

    def _hand_over(self) -> None:
        """Give the thread what one turn of the event loop has gathered: each hand-over costs a thread switch."""
        if self._gathering:
            self._queue.put(self._gathering)
            self._gathering = []

    async def close(self) -> None:
        """Commit what is left and close the connection."""
        self._hand_over()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        stop = False
        while not stop:
            group, stop = self._gather()
            for part in _parts(group):
                self._commit(part)
        with suppress(SQLAlchemyError):  # of a connection that is lost; what was to be written has its error
            self._connection.close()
        if self._files is not None and self._connection is not self._opened:
            with self._files.closing(overwritten=self._overwritten):
                self._opened.close()

    def _gather(self) -> tuple[list[_Entry], bool]:
        """Return all that waits, at least one piece of work, and whether to stop after it."""
        group: list[_Entry] = []
        entries = self._queue.get()
        while entries is not None:
            group += entries
            if len(group) >= MAX_GROUP or self._queue.empty():
                return group, False
            entries = self._queue.get()
        return group, True

    def _commit(self, part: list[_Entry]) -> None:
        result: object = None
        error: Exception | None = self._error
        try:
            if error is None:
                self._together = True
                result = self._execute_again([work for work, _ in part])
        except SQLAlchemyError as failure:
            error = self._error = LedgerError(
                f"`ledger` {self._name} cannot be written: {one_line(failure)}. The run stops; nothing more is asked."
            )
        except Exception as failure:
            error = failure
        self._report(part, result, error)

    def _execute_again(self, works: list[_Work]) -> object:
        """Run work in a transaction, and again where the database broke a deadlock with another one by undoing it."""
        for _ in range(UNDONE):
            try:
                return self._execute_or_release(works)
            except DBAPIError as failure:
                if not _is_undone(failure):
                    raise
                self._connection.connection.rollback()  # in a pipeline, its own does not reach the database
                self._together = False
        return self._execute_or_release(works)

    def _execute_or_release(self, works: list[_Work]) -> object:
        """Run work in a transaction, and again where it fails and there is a reserve to release."""
        try:
            return self._execute(works)
        except SQLAlchemyError as failure:
            if self._reserve is None or not self._reserve.release():
                raise
            self.full = LedgerFullError(
                f"`ledger` {self._name} cannot be written: {one_line(failure)}. The run stops; what was in flight is "
                "written down. Make room, and run it again."
            )
            return self._execute(works)

    def _execute(self, works: list[_Work]) -> object:
        """Run work in a transaction, and see to it that it is found under the ledger's name, or beside it."""
        files = self._files if self._connection is self._opened else None
        if files is None:
            return self._transact(works)
        change = files.change()
        if change is not None and self._move(files.path, change):
            return self._transact(works)
        result = self._transact(works)
        moved = files.moved()
        if moved is not None:
            self._move(files.path, moved)
        elif files.unlocked and self.full is None:
            self.full = LedgerFullError(
                f"`ledger` {self._name} must keep its lock. Another program removed {files.path}.lock, so that other "
                "processes may write too. The run stops; what was in flight is written down. Run it again."
            )
        files.left()
        return result

    def _move(self, path: str, change: str) -> bool:
        """Go on in a copy beside the ledger, so that nothing new is begun; return whether it can be made."""
        why = f"`ledger` {self._name} must stay as it is while it is in use. It {change} by another program."
        if change.startswith("lost"):
            why = why.replace(" by another program", "")
        try:
            kept, self._connection = keep(self._connection, path)
        except (DeepError, OSError) as error:
            self.full = LedgerMovedError(
                f"{why} The run stops; what was in flight is in the file that was opened, and cannot be kept beside: "
                f"{one_line(error)}."
            )
            return False
        self._overwritten = change == "was written to"
        self.full = LedgerMovedError(f"{why} The run stops; all answers are in {kept}, and the next run enters them.")
        return True

    def _transact(self, works: list[_Work]) -> object:
        work, *_ = works
        if callable(work):
            with self._connection.begin():
                return work(self._connection)
        writes = [write for work in works if not callable(work) for write in work]
        together = one_round_trip(self._connection) if self._together else nullcontext()
        with together, self._connection.begin():
            if self._connection is not self._opened:
                write_all(self._connection, missing_rows(writes))
            write_all(self._connection, writes)
        return None

    def _report(self, part: list[_Entry], result: object, error: Exception | None) -> None:
        """Wake the waiting tasks; once for the whole group, since each wake-up of the loop costs a system call."""
        futures = [done for _, done in part]
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_settle, futures, result, error)


def _is_undone(failure: DBAPIError) -> bool:
    """Return whether the database may do at a second try what it has undone, or the driver does not say why it was."""
    aborted = type(failure.orig).__name__ == "PipelineAborted"
    return aborted or getattr(failure.orig, "sqlstate", None) in (DEADLOCK, CONFLICT)


def _settle(futures: list[Written], result: object, error: Exception | None) -> None:
    for future in futures:
        if future.cancelled():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _parts(group: list[_Entry]) -> list[list[_Entry]]:
    """Return runs of row writes, and each function on its own, in order."""
    parts: list[list[_Entry]] = []
    for entry in group:
        if not parts or callable(entry[0]) or callable(parts[-1][0][0]):
            parts.append([])
        parts[-1].append(entry)
    return parts
