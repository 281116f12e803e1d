"""Opening a ledger's database: a SQLite file for one process, PostgreSQL for several machines."""

import logging
import os
import sqlite3
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import quote

from sqlalchemy import (
    ARRAY,
    URL,
    ColumnElement,
    Connection,
    Engine,
    any_,
    create_engine,
    event,
    inspect,
    literal,
    make_url,
)
from sqlalchemy import text as sql
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from deep.exceptions import InputError, MissingDependencyError
from deep.llm import _schema
from deep.llm._errors import LedgerError

T = TypeVar("T")

_SILENT = logging.NullHandler()

LOCK_CLASS = 0x64656570
"""The first half of the advisory locks that live runs hold in PostgreSQL."""


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
        return make_url(target).set(query={}).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return "at a URL that cannot be read"


def one_line(error: Exception) -> str:
    """Return the driver's message on one line, without the statement and its values."""
    return " ".join(str(getattr(error, "orig", None) or error).split())[:300]


def engine_for(target: str, *, create: bool) -> Engine:
    """Return an engine for the ledger at `target`, its tables in place.

    Raises
    ------
    InputError
        `target` is no ledger, or `create` is False and there is none.
    LedgerError
        The database cannot be opened.
    """
    url, frozen = _url(target), is_read_only(target)
    if frozen:  # without a log beside it, SQLite must be told that it needs to make none
        query = {"mode": "ro", "uri": "true"} | ({} if Path(f"{target}-wal").exists() else {"immutable": "1"})
        url = URL.create("sqlite", database=f"file:{quote(str(Path(target).absolute()))}", query=query)
    if not is_shared(target) and not create and not Path(target).is_file():
        raise InputError(f"`ledger` must be an existing ledger. Got {target!r}, which is no file.")
    try:
        engine = create_engine(url, poolclass=NullPool, hide_parameters=True)
        if not is_shared(target) and not frozen:
            event.listen(engine, "connect", _set_pragmas)
        _prepare(engine, describe_ledger(target), create=create, frozen=frozen)
    except ModuleNotFoundError:
        raise MissingDependencyError(
            f"`ledger` {describe_ledger(target)} needs a driver that is not installed. Install deep-judges[postgresql]."
        ) from None
    except (SQLAlchemyError, UnicodeDecodeError) as error:  # the latter of SQLite's own message about a damaged file
        raise LedgerError(f"`ledger` {describe_ledger(target)} cannot be opened: {one_line(error)}.") from None
    return engine


def _url(target: str) -> URL:
    if not is_shared(target):
        return URL.create("sqlite", database=target)
    try:
        url = make_url(target)
    except (ArgumentError, ValueError):
        raise InputError("`ledger` must be a file or a database URL. Got a URL that cannot be read.") from None
    if url.get_backend_name() != "postgresql":
        raise InputError(f"`ledger` must be a file or a postgresql+psycopg:// URL. Got the scheme {url.drivername!r}.")
    return url


def _set_pragmas(connection: sqlite3.Connection, _: object) -> None:
    """Make every commit survive a power cut, and let reports read while a run writes."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 30000")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _prepare(engine: Engine, name: str, *, create: bool, frozen: bool) -> None:
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sql("SELECT pg_advisory_xact_lock(:lock, 0)"), {"lock": LOCK_CLASS})
        tables = set(inspect(connection).get_table_names())
        if not tables >= {"deep_meta"} and ((tables and engine.dialect.name == "sqlite") or not create):
            raise InputError(f"`ledger` must be a ledger of deep. Got {name!r}, which holds something else.")
        if not frozen:
            _schema.metadata.create_all(connection)
        found = connection.execute(_schema.meta.select()).scalar()
        if found is None:
            connection.execute(_schema.meta.insert(), {"version": _schema.VERSION})
        elif found != _schema.VERSION:
            raise InputError(f"`ledger` must have schema version {_schema.VERSION}. Got {found} in {name!r}.")


def in_parts(values: Sequence[T], size: int = 500) -> Iterator[Sequence[T]]:
    """Yield `values` in parts that one statement can name."""
    return (values[at : at + size] for at in range(0, len(values), size))


def among(connection: Connection, column: ColumnElement[T], values: Collection[T]) -> ColumnElement[bool]:
    """Return the condition that a column has one of `values`; in PostgreSQL as one array, to be prepared once."""
    if connection.dialect.name != "postgresql":
        return column.in_(list(values))
    return column == any_(literal(list(values), ARRAY(column.type)))


def connect(engine: Engine, name: str) -> Connection:
    """Return a connection, or raise a LedgerError."""
    for library in ("psycopg", "sqlalchemy.pool"):  # a lost connection is our error to tell
        logging.getLogger(library).addHandler(_SILENT)
    try:
        return engine.connect()
    except SQLAlchemyError as error:
        raise LedgerError(f"`ledger` {name} cannot be opened: {one_line(error)}.") from None


def one_round_trip(connection: Connection) -> AbstractContextManager[object]:
    """Return a context in which writes and their commit go to the database together, where its driver can."""
    driver = connection.connection.driver_connection
    return driver.pipeline() if connection.dialect.name == "postgresql" and driver is not None else nullcontext()


class FileLock:
    """Keeps a second process from writing to a SQLite ledger; the system frees it when the process dies.

    Parameters
    ----------
    path : str
        The ledger; the lock is an empty SQLite file beside it.
    """

    def __init__(self, path: str) -> None:
        try:
            self._connection = sqlite3.connect(f"{path}.lock", timeout=0, isolation_level=None, check_same_thread=False)
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


SIZE = 1 << 22
"""Bytes: the answers, and the pages of the log that they lie on, of many requests in flight."""


class Reserve:
    """A nameless file beside the ledger, which goes with the process; none where there is no room for it.

    Parameters
    ----------
    ledger : str
        The ledger's file.
    """

    def __init__(self, ledger: str) -> None:
        self._file: IO[bytes] | None = None
        with suppress(OSError):
            folder = Path(ledger).absolute().parent
            file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  open until it is released
            try:
                _fill(file)
            except OSError:
                file.close()
                raise
            self._file = file

    def release(self) -> bool:
        """Give the room back; return whether there was any."""
        if self._file is None:
            return False
        self._file.close()
        self._file = None
        return True


def _fill(file: IO[bytes]) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, SIZE)
    elif file.write(bytes(SIZE)) < SIZE:
        raise OSError("no room")
