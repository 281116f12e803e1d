"""Opening a ledger's database: a SQLite file for one process; one for several machines is a guest."""

import os
import re
import sqlite3
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from deep._util import sqlite_log
from deep._util.entry_points import load_part
from deep._util.sqlite_log import wal_path
from deep.exceptions import DeepError, InputError
from deep.llm import schema
from deep.llm._errors import LedgerError

if TYPE_CHECKING:
    from deep.llm._writer import Writer

T = TypeVar("T")


def is_shared(target: str) -> bool:
    """Return whether `target` is a database URL rather than a file."""
    return "://" in target


def is_read_only(target: str) -> bool:
    """Return whether `target` is a file that can be read and not be written to, as on a read-only medium."""
    path = Path(target)
    return not is_shared(target) and path.is_file() and not all(os.access(p, os.W_OK) for p in (path, path.parent))


def describe_ledger(target: str) -> str:
    """Return the ledger's name for people, without a password or anything that stands behind a question mark."""
    if not is_shared(target):
        return target
    try:
        return sa.make_url(target).set(query={}).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return "at a URL that cannot be read"


def one_line(error: Exception) -> str:
    """Return the driver's message on one line, without the statement and its values."""
    return " ".join(str(getattr(error, "orig", None) or error).split())[:300]


class Database:
    """Where a ledger is kept: a SQLite file, which one process writes to.

    One for several machines is a class on this one, behind the entry point ``postgresql`` of the group ``deep.parts``.

    Parameters
    ----------
    target : str
        A path, or the URL of a database for several machines, as ``--ledger`` takes it.

    Attributes
    ----------
    shared : bool
        Whether other runs may be at work on the same ledger.
    """

    shared = False

    def __init__(self, target: str) -> None:
        self.target = target

    def engine(self) -> sa.Engine:
        """Return an engine that may write."""
        sqlite_log.set_aside_foreign_log(self.target)
        url = sa.URL.create("sqlite", database=str(Path(self.target).absolute()))  # ":memory:" is a name like any other
        engine = new_engine(url)
        sa.event.listen(engine, "connect", _set_pragmas)
        sa.event.listen(engine, "commit", _stamp)
        return engine

    def lock_tables(self, _connection: sa.Connection) -> None:
        """Keep others from making the same tables until the transaction ends; a file has a lock beside it."""

    def lock_run(self, _connection: sa.Connection, _run: int) -> None:
        """Hold a lock by which others see that this run is alive."""

    def live_runs(self, _connection: sa.Connection, run: int) -> set[int]:
        """Return the runs that are alive, this one among them."""
        return {run}

    def writer(self, _connection: sa.Connection, _name: str) -> "Writer | None":
        """Return a writer of its own; None for one that writes to a file."""
        return None


def database_of(target: str) -> Database:
    """Return where a ledger is kept.

    Raises
    ------
    InputError
        `target` is the URL of a database that is not at hand.
    """
    if not is_shared(target):
        return Database(target)
    shared: type[Database] = load_part("postgresql").PostgresqlDatabase
    return shared(target)


def new_engine(url: sa.URL) -> sa.Engine:
    """Return an engine that opens a connection whenever one is asked for, and tells no values in its errors."""
    return sa.create_engine(url, poolclass=NullPool, hide_parameters=True)


def engine_for(target: str, *, create: bool, database: Database | None = None) -> sa.Engine:
    """Return an engine for the ledger at `target`, its tables in place; without `create`, one that only reads.

    Raises
    ------
    InputError
        `target` is no ledger, or one of another version, or `create` is False and there is none.
    LedgerError
        The database cannot be opened.
    """
    name, file, database = describe_ledger(target), Path(target), database or database_of(target)
    if not database.shared and not create and not file.is_file():
        raise InputError(f"`ledger` must be an existing ledger. Got {target!r}, which does not exist.")
    try:
        if not database.shared and file.exists() and file.stat().st_size:
            # A file that is no ledger must not be written to, not even by the pragmas of an engine that may write.
            engine = new_engine(_url_to_read(target))
            with engine.begin() as connection:
                _check_tables(connection, name, create=create)
            if not create:
                if sqlite_log.has_foreign_log(target):
                    sqlite_log.note_once(f"{wal_path(target)} does not belong to {target}, which is read without it.")
                return engine
        engine = database.engine()
        with engine.begin() as connection:
            database.lock_tables(connection)
            if not _check_tables(connection, name, create=create):
                if connection.dialect.name == "sqlite":
                    # Without it each statement is a transaction of its own, and a crash leaves some of the tables.
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                schema.metadata.create_all(connection)
                connection.execute(schema.meta.insert(), {"version": schema.VERSION})
    except (OSError, SQLAlchemyError, UnicodeDecodeError) as error:  # the last of SQLite's message on a damaged file
        raise LedgerError(f"`ledger` {name} cannot be opened: {one_line(error)}.") from None
    return engine


def _url_to_read(target: str) -> sa.URL:
    """Return the URL by which a file is read and nothing beside it is removed, without a -wal that is not its own."""
    has_log, frozen, foreign = wal_path(target).exists(), is_read_only(target), sqlite_log.has_foreign_log(target)
    # The last connection that may write would move the -wal into the file.
    query = {"mode": "ro" if has_log or frozen else "rw", "uri": "true"}
    if foreign or (frozen and not has_log):  # SQLite must be told that it needs to make none
        query["immutable"] = "1"
    return sa.URL.create("sqlite", database=f"file:{quote(str(Path(target).absolute()))}", query=query)


def _set_pragmas(connection: sqlite3.Connection, _: object) -> None:
    """Make every commit survive a power cut, and let reports read while a run writes."""
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {sqlite_log.BUSY_MS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def driver_of(connection: sa.Connection) -> sqlite3.Connection:
    """Return SQLite's own connection."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _stamp(connection: sa.Connection) -> None:
    if driver_of(connection).in_transaction:  # something was written
        sqlite_log.stamp_state(driver_of(connection))


def _check_tables(connection: sa.Connection, name: str, *, create: bool) -> bool:
    """Return whether the tables of a ledger are there; with `create` it may still be empty.

    Raises
    ------
    InputError
        It holds something else, or the tables of another version.
    """
    found_columns = sa.inspect(connection).get_multi_columns()
    tables = {table: {column["name"] for column in columns} for (_, table), columns in found_columns.items()}
    result = connection.execute(schema.meta.select()).scalar() if "deep_meta" in tables else None
    if result is None:
        # One that was killed as it was made has no version yet.
        if not create or (tables and "deep_meta" not in tables and connection.dialect.name == "sqlite"):
            raise InputError(f"`ledger` must be a ledger of deep. Got {name!r}, which holds something else.")
        return False
    if result != schema.VERSION:
        raise InputError(f"`ledger` must have schema version {schema.VERSION}. Got {result} in {name!r}.")
    for table in schema.metadata.sorted_tables:
        missing_columns = {column.name for column in table.columns} - tables.get(table.name, set())
        if missing_columns:
            raise InputError(
                f"`ledger` must have the tables of schema version {schema.VERSION}. "
                f"Got {name!r}, whose table {table.name} lacks {', '.join(sorted(missing_columns))}."
            )
    return True


def in_parts(values: Sequence[T], size: int = 500) -> Iterator[Sequence[T]]:
    """Yield `values` in parts that one statement can name."""
    return (values[at : at + size] for at in range(0, len(values), size))


def is_among(connection: sa.Connection, column: sa.ColumnElement[T], values: Collection[T]) -> sa.ColumnElement[bool]:
    """Return the condition that a column has one of `values`; in PostgreSQL as one array, to be prepared once."""
    if connection.dialect.name != "postgresql":
        return column.in_(list(values))
    return column == sa.any_(sa.literal(list(values), sa.ARRAY(column.type)))


def connect(engine: sa.Engine, name: str) -> sa.Connection:
    """Return a connection, or raise a LedgerError."""
    try:
        return engine.connect()
    except SQLAlchemyError as error:
        raise LedgerError(f"`ledger` {name} cannot be opened: {one_line(error)}.") from None


def _lock_of(path: str) -> str:
    """Return the name of a ledger's lock, which is one, whatever links lead to the ledger."""
    return f"{os.path.realpath(path)}.lock"


class FileLock:
    """Keeps a second process from writing to a SQLite ledger; the system frees it when the process dies.

    Parameters
    ----------
    path : str
        The ledger; the lock is an empty SQLite file beside it.
    """

    def __init__(self, path: str) -> None:
        try:
            self._connection = sqlite3.connect(_lock_of(path), timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise LedgerError(f"`ledger` {path} cannot be opened: {error}.") from None
        try:
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            self._connection.close()
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:  # a full disk, say
                raise LedgerError(f"`ledger` {path} cannot be opened: {error}.") from None
            raise InputError(
                f"`ledger` must not be in use by another process. Got {path!r}: {error}. "
                "Share a ledger between processes with a postgresql+psycopg:// URL."
            ) from None

    def release(self) -> None:
        """Let the next process in."""
        with closing(self._connection):
            self._connection.execute("ROLLBACK")


# Room of 4 MB that is given back when the disk is full, so that answers in flight are still written. It is for the
# answers, and the pages of the log that they lie on, of many requests.
RESERVE_BYTES = 1 << 22


class Reserve:
    """A nameless file beside the ledger, which goes with the process; none where there is no room for it.

    Parameters
    ----------
    ledger : str
        The ledger's file.
    """

    def __init__(self, ledger: str) -> None:
        self._file: IO[bytes] | None = None
        with suppress(OSError), ExitStack() as stack:
            file = stack.enter_context(tempfile.TemporaryFile(dir=Path(ledger).absolute().parent, buffering=0))
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
            elif file.write(bytes(RESERVE_BYTES)) < RESERVE_BYTES:
                raise OSError("no room")
            stack.pop_all()  # it stays open until it is released
            self._file = file

    def release(self) -> bool:
        """Give the room back; return whether there was any."""
        if self._file is None:
            return False
        self._file.close()
        self._file = None
        return True


# Between a ledger's name and a number: the name of the file that keeps what its run could not write into it.
KEPT_FILE_MARK = ".kept-"

# The ending of such a file once a run has entered what it holds.
ENTERED_ENDING = ".entered"

_Stat = tuple[int, ...] | None

_RANKS = "CASE {}.state WHEN 'done' THEN 4 WHEN 'failed' THEN 3 WHEN 'sent' THEN 2 WHEN 'unknown' THEN 1 ELSE 0 END"

# What enters a kept file: the state of a request that is nearer to its end counts, and every answer.
_ENTER_STATEMENTS = (
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


class LedgerFiles:
    """The ledger's file, its log and its lock, as this run has left them.

    Parameters
    ----------
    path : str
        The ledger, which this process has open.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock_path = _lock_of(path)
        self._lock = _identity(self._lock_path)
        self.remember()

    def flush(self) -> None:
        """Bring to disk what is in the log; where that was removed, the next transaction tells."""
        with suppress(FileNotFoundError), wal_path(self.path).open("rb+", buffering=0) as log:
            getattr(os, "fdatasync", os.fsync)(log.fileno())  # macOS and Windows have the other one alone

    def remember(self) -> None:
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

    def move_log(self, connection: sa.Connection) -> bool:
        """Leave nothing in the log alone, where the files are as they were left; return whether that is all of it."""
        if self.change() is not None:  # the next commit tells
            return True
        whole = sqlite_log.move_log_into_file(driver_of(connection))
        if self.moved() is None:
            self.remember()
        return whole

    @property
    def unlocked(self) -> bool:
        """Whether the lock is not the one that this process holds, so that another process may write."""
        return self._lock is not None and _identity(self._lock_path) != self._lock

    @contextmanager
    def closing(self, *, overwritten: bool) -> Iterator[None]:
        """Keep SQLite, as it closes the file that was opened, from writing to the other and removing its log."""
        log, aside = Path(f"{self.path}-wal"), Path(f"{self.path}-wal.aside")
        has_own_log = _identity(str(log)) == self._log
        if overwritten and has_own_log:
            with suppress(OSError):
                os.truncate(log, 0)  # its pages are of the content that was overwritten
        if not has_own_log and log.exists():
            log.rename(aside)
        yield
        if not has_own_log and aside.exists():
            aside.rename(log)


def keep_copy(connection: sa.Connection, path: str) -> tuple[str, sa.Connection]:
    """Copy an open ledger to a file beside it, as far as it can be read; return its name and a connection to it.

    Raises
    ------
    DeepError, OSError
        No file can be made there.
    """
    copy_path = _free_name(path)
    source = driver_of(connection)
    damaged = Path(f"{copy_path}.damaged")
    try:
        with closing(sqlite3.connect(copy_path)) as copy:
            source.backup(copy)
            sound = copy.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.Error:
        sound = False
    if not sound:
        Path(copy_path).replace(damaged)
    opened = connect(engine_for(copy_path, create=True), copy_path)
    if not sound:
        _salvage(damaged, opened)
    return copy_path, opened


def _salvage(damaged: Path, connection: sa.Connection) -> None:
    """Copy the rows of a damaged ledger that can be read: what this run wrote stands in its log, and is whole."""
    with closing(sqlite3.connect(damaged)) as source:
        for table in schema.metadata.sorted_tables:
            names = ", ".join(f'"{column.name}"' for column in table.columns)
            marks = ", ".join("?" * len(table.columns))
            insert = f"INSERT OR IGNORE INTO {table.name} ({names}) VALUES ({marks})"
            with suppress(sqlite3.Error, SQLAlchemyError), connection.begin():
                rows = source.execute(f"SELECT {names} FROM {table.name}")
                with suppress(sqlite3.Error):  # up to the first page that is not its own
                    for row in rows:
                        connection.exec_driver_sql(insert, row)


def enter_kept(connection: sa.Connection, path: str) -> list[str]:
    """Enter the rows that files beside a ledger keep, the oldest file first; return a sentence on each file.

    Raises
    ------
    LedgerError
        One cannot be read.
    """
    name = re.compile(re.escape(Path(path).name + KEPT_FILE_MARK) + r"([0-9]{1,6})")
    folder = Path(path).absolute().parent
    files_by_number = [(int(match[1]), file) for file in folder.iterdir() if (match := name.fullmatch(file.name))]
    sentences = list[str]()
    for _, file in sorted(files_by_number):
        try:
            engine_for(str(file), create=True)  # it is a ledger, and its log is its own
            n = _merge(connection, file)
        except (DeepError, sqlite3.Error, SQLAlchemyError) as error:
            raise LedgerError(
                f"`ledger` must be able to take what {file} keeps. Got {error}. "
                "Move that file away to go on without it."
            ) from None
        entered = file.with_name(file.name + ENTERED_ENDING)
        file.rename(entered)
        words = f"{n} answers that were kept in {file} while the ledger was moved or written to are entered"
        sentences.append(f"{words} ({entered}).")
    return sentences


def _merge(connection: sa.Connection, file: Path) -> int:
    """Enter all rows of a kept file in one transaction, and return how many answers are new."""
    driver = driver_of(connection)
    tables = ("attempts", "requests")
    names = {table: [row[1] for row in driver.execute(f"PRAGMA main.table_info({table})")] for table in tables}
    below = "(SELECT min(0, min(o.number)) FROM main.attempts AS o WHERE o.key = k.key) - k.number"
    attempts = ", ".join(below if name == "number" else f"k.{name}" for name in names["attempts"])
    requests = ", ".join(names["requests"])
    ranks = {"rank_kept": _RANKS.format("k"), "rank_main": _RANKS.format("requests")}
    count_answers = "SELECT count(*) FROM main.attempts WHERE outcome = 'answered'"
    driver.execute("ATTACH DATABASE ? AS kept", (str(file),))
    try:
        with sqlite_log.transaction(driver):
            (before,) = driver.execute(count_answers).fetchone()
            for statement in _ENTER_STATEMENTS:
                driver.execute(statement.format(attempts=attempts, requests=requests, **ranks))
            (after,) = driver.execute(count_answers).fetchone()
    finally:
        driver.execute("DETACH DATABASE kept")
    return int(after) - int(before)


def _identity(path: str, *, content: bool = False) -> _Stat:
    """Return device and inode of a file; with `content` also size and time, which change when it is written to."""
    try:
        result = os.stat(path)  # noqa: PTH116  twice a commit; a Path would be made each time
    except OSError:
        return None
    return (result.st_dev, result.st_ino, *((result.st_size, result.st_mtime_ns) if content else ()))


def _free_name(path: str) -> str:
    number = 1
    while True:
        name = f"{path}{KEPT_FILE_MARK}{number}"
        if not any(Path(f"{name}{ending}").exists() for ending in (ENTERED_ENDING, "-wal")):
            with suppress(FileExistsError):
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                return name
        number += 1
