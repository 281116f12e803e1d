"""A SQLite ledger that other programs move, remove or write to in mid-run: noticed, and its answers kept beside."""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from deep.exceptions import DeepError
from deep.llm._database import connect, engine_for
from deep.llm._errors import LedgerError
from deep.llm._schema import metadata

KEPT = ".kept-"
"""Between a ledger's name and a number: the name of the file that keeps what its run could not write into it."""

ENTERED = ".entered"
"""The ending of such a file once a run has entered what it holds."""

_Stat = tuple[int, ...] | None

_RANKS = "CASE {}.state WHEN 'done' THEN 4 WHEN 'failed' THEN 3 WHEN 'sent' THEN 2 WHEN 'unknown' THEN 1 ELSE 0 END"

_ENTER = (
    # An answer that the ledger has another one for stands beside it, under a number below 0.
    """INSERT INTO main.attempts SELECT {attempts} FROM kept.attempts AS k JOIN main.attempts AS m USING (key, number)
        WHERE k.outcome = 'answered' AND m.outcome = 'answered' AND k.reply <> m.reply AND NOT EXISTS (
            SELECT 1 FROM main.attempts AS o WHERE o.key = k.key AND o.number < 0 AND o.reply = k.reply)""",
    """DELETE FROM main.attempts WHERE (outcome IS NULL OR outcome IN ('unknown', 'unsent')) AND EXISTS (
        SELECT 1 FROM kept.attempts AS k
            WHERE k.key = attempts.key AND k.number = attempts.number AND k.outcome IS NOT NULL)""",
    """DELETE FROM main.requests WHERE EXISTS (SELECT 1 FROM kept.requests AS k WHERE k.key = requests.key
        AND {rank_kept} > {rank_main} AND NOT EXISTS (SELECT 1 FROM main.attempts AS m
            WHERE m.key = k.key AND m.number = k.attempts AND m.outcome = 'answered'))""",
    "INSERT OR IGNORE INTO main.runs SELECT * FROM kept.runs",
    "INSERT OR IGNORE INTO main.attempts SELECT * FROM kept.attempts",
    "INSERT OR IGNORE INTO main.requests ({requests}) SELECT {requests} FROM kept.requests",
    "INSERT OR IGNORE INTO main.items SELECT * FROM kept.items",
    "INSERT OR IGNORE INTO main.quirks SELECT * FROM kept.quirks",
    "INSERT OR IGNORE INTO main.batches SELECT * FROM kept.batches",
)
"""What enters a kept file: the state of a request that is nearer to its end counts, and every answer."""


class LedgerFiles:
    """The ledger's file, its log and its lock, as this run has left them.

    Parameters
    ----------
    path : str
        The ledger, which this process has open.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = _identity(f"{path}.lock")
        self.left()

    def left(self) -> None:
        """Remember the files as they are now, just written by this process."""
        self._file = _identity(self.path, content=True)
        self._log = _identity(f"{self.path}-wal")

    def change(self) -> str | None:
        """Return the change that others made to the files since; None where they are as they were left."""
        return self.moved() or ("was written to" if _identity(self.path, content=True) != self._file else None)

    def moved(self) -> str | None:
        """Return how what is written now would not be found under the ledger's name; None where it would."""
        file, log = _identity(self.path), _identity(f"{self.path}-wal")
        if file is None or self._file is None:
            return "was removed"
        if file != self._file[:2]:
            return "was replaced"
        return None if self._log is None or log == self._log else "lost its -wal file"

    @property
    def unlocked(self) -> bool:
        """Whether the lock is not the one that this process holds, so that another process may write."""
        return self._lock is not None and _identity(f"{self.path}.lock") != self._lock

    @contextmanager
    def closing(self, *, overwritten: bool) -> Iterator[None]:
        """Keep SQLite, as it closes the file that was opened, from writing to the other and removing its log."""
        log, aside = Path(f"{self.path}-wal"), Path(f"{self.path}-wal.aside")
        mine = _identity(str(log)) == self._log
        if overwritten and mine:
            with suppress(OSError):
                os.truncate(log, 0)  # its pages are of the content that was overwritten
        if not mine and log.exists():
            log.rename(aside)
        yield
        if not mine and aside.exists():
            aside.rename(log)


def keep(connection: Connection, path: str) -> tuple[str, Connection]:
    """Copy an open ledger to a file beside it, as far as it can be read; return its name and a connection to it.

    Raises
    ------
    DeepError, OSError
        No file can be made there.
    """
    kept = _free_name(path)
    source = connection.connection.driver_connection
    assert source is not None, "an open connection"
    damaged = Path(f"{kept}.damaged")
    try:
        with closing(sqlite3.connect(kept)) as copy:
            source.backup(copy)
            sound = copy.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.Error:
        sound = False
    if not sound:
        Path(kept).replace(damaged)
    opened = connect(engine_for(kept, create=True), kept)
    if not sound:
        _salvage(damaged, opened)
    return kept, opened


def _salvage(damaged: Path, connection: Connection) -> None:
    """Copy the rows of a damaged ledger that can be read: what this run wrote stands in its log, and is whole."""
    with closing(sqlite3.connect(damaged)) as source:
        for table in metadata.sorted_tables:
            names = ", ".join(f'"{column.name}"' for column in table.columns)
            marks = ", ".join("?" * len(table.columns))
            with suppress(sqlite3.Error, SQLAlchemyError), connection.begin():
                rows = source.execute(f"SELECT {names} FROM {table.name}")
                with suppress(sqlite3.Error):  # up to the first page that is not its own
                    for row in rows:
                        connection.exec_driver_sql(
                            f"INSERT OR IGNORE INTO {table.name} ({names}) VALUES ({marks})", row
                        )


def kept_files(path: str) -> list[Path]:
    """Return the files beside a ledger that keep what its runs could not write into it, oldest first."""
    name = re.compile(re.escape(Path(path).name + KEPT) + r"([0-9]{1,6})")
    folder = Path(path).absolute().parent
    found = [(int(match[1]), file) for file in folder.iterdir() if (match := name.fullmatch(file.name))]
    return [file for _, file in sorted(found)]


def enter_kept(connection: Connection, path: str) -> list[str]:
    """Enter what files beside a ledger keep; return a sentence on each.

    Raises
    ------
    LedgerError
        One cannot be read.
    """
    return [_enter(connection, file) for file in kept_files(path)]


def _enter(connection: Connection, file: Path) -> str:
    try:
        connect(engine_for(str(file), create=False), str(file)).close()  # it is a ledger, and its log is in it
        n = _merge(connection, file)
    except (DeepError, sqlite3.Error, SQLAlchemyError) as error:
        raise LedgerError(
            f"`ledger` must be able to take what {file} keeps. Got {error}. Move that file away to go on without it."
        ) from None
    entered = file.with_name(file.name + ENTERED)
    file.rename(entered)
    return f"{n} answers that were kept in {file} while the ledger was moved or written to are entered ({entered})."


def _merge(connection: Connection, file: Path) -> int:
    """Enter all rows of a kept file in one transaction, and return how many answers are new."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    answered = "SELECT count(*) FROM main.attempts WHERE outcome = 'answered'"
    driver.execute("ATTACH DATABASE ? AS kept", (str(file),))
    try:
        with driver:
            driver.execute("BEGIN IMMEDIATE")
            (before,) = driver.execute(answered).fetchone()
            for statement in _statements(driver):
                driver.execute(statement)
            (after,) = driver.execute(answered).fetchone()
    finally:
        driver.execute("DETACH DATABASE kept")
    return int(after) - int(before)


def _statements(driver: sqlite3.Connection) -> Iterator[str]:
    names = {
        table: [name for _, name, *_ in driver.execute(f"PRAGMA main.table_info({table})")]
        for table in ("attempts", "requests")
    }
    below = "(SELECT min(0, min(o.number)) FROM main.attempts AS o WHERE o.key = k.key) - k.number"
    attempts = ", ".join(below if name == "number" else f"k.{name}" for name in names["attempts"])
    requests = ", ".join(names["requests"])
    ranks = {"rank_kept": _RANKS.format("k"), "rank_main": _RANKS.format("requests")}
    return (statement.format(attempts=attempts, requests=requests, **ranks) for statement in _ENTER)


def _identity(path: str, *, content: bool = False) -> _Stat:
    """Return device and inode of a file; with `content` also size and time, which change when it is written to."""
    try:
        found = os.stat(path)  # noqa: PTH116  twice a commit; a Path would be made each time
    except OSError:
        return None
    return (found.st_dev, found.st_ino, *((found.st_size, found.st_mtime_ns) if content else ()))


def _free_name(path: str) -> str:
    number = 1
    while True:
        name = f"{path}{KEPT}{number}"
        if not Path(f"{name}{ENTERED}").exists():
            with suppress(FileExistsError):
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                return name
        number += 1
