"""The ledger in PostgreSQL, which several machines share: its locks, and the way on after a lost connection."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

import sqlalchemy as sa
from sqlalchemy import text as sql
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from deep.exceptions import InputError, MissingDependencyError
from deep.llm import Database, PendingWork, Work, Writer, describe_ledger, new_engine, one_line, schema

# Keeps libraries from writing their own lines: a lost connection is deep's error to tell.
_SILENT = logging.NullHandler()

# The first half of the advisory locks that live runs hold.
LOCK_CLASS = 0x64656570

# The states of a transaction that the server has undone to let another one pass.
DEADLOCK, CONFLICT_CODES = "40P01", "40001"

# How often a transaction that the database has undone is tried again.
MAX_UNDONE_TRIES = 50

# Seconds for which a server that was lost is waited for; answers that come meanwhile are kept in memory.
RECONNECT_SECONDS = 60.0


class PostgresqlDatabase(Database):
    """A ledger that several machines write to at once.

    A run holds an advisory lock for as long as it lives, so that the others know whose requests to take over.

    Parameters
    ----------
    target : str
        A ``postgresql+psycopg://`` URL.

    Examples
    --------
    >>> from deep.integrations.postgresql import PostgresqlDatabase
    >>> PostgresqlDatabase("postgresql+psycopg://deep@127.0.0.1/ledger").shared
    True
    """

    shared = True
    _engine: sa.Engine
    _run: int | None = None

    def engine(self) -> sa.Engine:
        """Return an engine.

        Raises
        ------
        InputError
            The URL cannot be read, or is another database's.
        MissingDependencyError
            The driver is not installed.
        """
        try:
            url = sa.make_url(self.target)
        except (ArgumentError, ValueError):
            raise InputError("`ledger` must be a file or a database URL. Got a URL that cannot be read.") from None
        if url.get_backend_name() != "postgresql":
            raise InputError(
                f"`ledger` must be a file or a postgresql+psycopg:// URL. Got the scheme {url.drivername!r}."
            )
        for library in ("psycopg", "sqlalchemy.pool"):  # a lost connection is our error to tell
            logging.getLogger(library).addHandler(_SILENT)
        try:
            self._engine = new_engine(url)
        except ModuleNotFoundError:
            raise MissingDependencyError(
                f"`ledger` {describe_ledger(self.target)} needs a driver that is not installed. "
                "Install deep-judges[postgresql]."
            ) from None
        return self._engine

    def lock_tables(self, connection: sa.Connection) -> None:
        """Keep others from making the same tables until the transaction ends."""
        connection.execute(sql("SELECT pg_advisory_xact_lock(:lock, 0)"), {"lock": LOCK_CLASS})

    def lock_run(self, connection: sa.Connection, run: int) -> None:
        """Hold a lock by which others see that this run is alive; it goes with the connection."""
        connection.execute(sql("SELECT pg_advisory_lock(:lock, :run)"), {"lock": LOCK_CLASS, "run": run})
        self._run = run

    def live_runs(self, connection: sa.Connection, run: int) -> set[int]:
        """Return the runs whose process holds its advisory lock; a dead process holds none."""
        query = sql(
            "SELECT objid FROM pg_locks JOIN pg_database ON pg_database.oid = database "
            "WHERE locktype = 'advisory' AND granted AND classid = :lock AND datname = current_database()"
        )
        return {run, *connection.execute(query, {"lock": LOCK_CLASS}).scalars()}

    def writer(self, connection: sa.Connection, name: str) -> Writer:
        """Return a writer that tries again what was undone or lost."""
        return SharedWriter(connection, name, self)

    @contextmanager
    def round_trip(self, connection: sa.Connection) -> Iterator[None]:
        """Return a context in which writes and their commit go to the server together.

        Raises
        ------
        DBAPIError
            The server says at the end of the context what became of them; the driver's own error is its `orig`.
        """
        driver, library = connection.connection.driver_connection, connection.dialect.loaded_dbapi
        if driver is None:
            yield
            return
        try:
            with driver.pipeline():
                yield
        except library.Error as failure:
            raise DBAPIError("the end of a pipeline", None, failure) from failure

    def connection_after(self, connection: sa.Connection, failure: Exception) -> sa.Connection | None:
        """Return the connection by which to try again what was lost, or undone to let another transaction pass.

        Raises
        ------
        SQLAlchemyError
            The connection was lost, and there is no other one for `RECONNECT_SECONDS` seconds.
        """
        if self._run is not None and _is_lost(connection, failure):
            return self._connect_again(connection, self._run, failure)
        if isinstance(failure, DBAPIError) and _is_undone(failure):
            connection.connection.rollback()  # in a pipeline, its own does not reach the server
            return connection
        return None

    def _connect_again(self, lost: sa.Connection, run: int, failure: Exception) -> sa.Connection:
        """Return another connection to a server that may be starting again, with this run's lock where it is free."""
        end = time.monotonic() + RECONNECT_SECONDS
        with suppress(Exception):
            lost.invalidate()
        while True:
            try:
                connection = self._engine.connect()
                with connection.begin():
                    connection.execute(
                        sql("SELECT pg_try_advisory_lock(:lock, :run)"), {"lock": LOCK_CLASS, "run": run}
                    )
            except SQLAlchemyError:
                if time.monotonic() > end:
                    why = f"{one_line(failure)}, and no other connection within {RECONNECT_SECONDS:g} s"
                    raise SQLAlchemyError(why) from None
                time.sleep(0.2)
            else:
                return connection


class SharedWriter(Writer):
    """Writes to a database that may undo a transaction, or be lost for a while.

    Parameters
    ----------
    connection : Connection
        To the ledger's database; from now on used by the writer's thread alone.
    name : str
        The ledger's name, for error messages.
    database : PostgresqlDatabase
        Says whether what has failed is tried again, by another connection where this one is lost: what is in flight
        is then written down.
    """

    def __init__(self, connection: sa.Connection, name: str, database: PostgresqlDatabase) -> None:
        self._database = database
        self._repeating = self._replaced = False
        self._together = True
        super().__init__(connection, name)

    def _carry_out(self, part: list[PendingWork]) -> object:
        """Run work in a transaction, and again where the database has undone it, or was lost."""
        self._together, self._repeating = True, False
        result = self._try([entry.work for entry in part])
        if self._replaced:
            self._report([entry for entry in part if _begins(entry.work)], None, self.full)
            part[:] = [entry for entry in part if not _begins(entry.work)]
        return result

    def _try(self, works: list[Work]) -> object:
        """Run work, and again where the database undid it or was lost, a bounded number of times."""
        for _ in range(MAX_UNDONE_TRIES):
            try:
                return self._execute(self._still_due(works))
            except Exception as failure:
                connection = self._database.connection_after(self._connection, failure)
                if connection is None:
                    raise
                if connection is not self._connection:
                    self._connection = self._opened = connection
                    # Whether it was committed before the connection was lost is not known.
                    self._replaced = self._repeating = True
                    self.full = self._full_error(failure)
                self._together = False
        return self._execute(self._still_due(works))

    def _still_due(self, works: list[Work]) -> list[Work]:
        """Leave out attempts that are about to be sent, once the connection was lost, and with it the lease of the run.

        Another run may have taken over their requests and asked them: to send them now would be to pay twice.
        """
        return [work for work in works if not (self._replaced and _begins(work))]

    def _transact(self, works: list[Work]) -> object:
        """Run work in one transaction of PostgreSQL; what was lost before may be there already."""
        if works and callable(works[0]):
            return super()._transact(works)
        writes = [write for work in works if not callable(work) for write in work]
        if self._repeating:
            writes = [write._replace(how="insert_or_keep") if write.how == "insert" else write for write in writes]
        if self._replaced:  # what another run has answered meanwhile stays answered
            writes = [w._replace(how="update_open") if w.table is schema.requests else w for w in writes]
        together = self._database.round_trip(self._connection) if self._together else nullcontext()
        with together, self._connection.begin():
            schema.write_all(self._connection, writes)
        return None


def _begins(work: Work) -> bool:
    """Return whether work announces an attempt that is sent once it is written."""
    return not callable(work) and any(write.row.get("state") == "sent" for write in work)


def _is_lost(connection: sa.Connection, failure: Exception) -> bool:
    """Return whether a connection is gone, by what SQLAlchemy says of it or by the driver's own word."""
    if connection.invalidated or getattr(failure, "connection_invalidated", False):
        return True
    return bool(getattr(connection.connection.driver_connection, "closed", False))


def _is_undone(failure: DBAPIError) -> bool:
    """Return whether the server may do at a second try what it has undone, or the driver does not say why it was."""
    aborted = type(failure.orig).__name__ == "PipelineAborted"
    return aborted or getattr(failure.orig, "sqlstate", None) in (DEADLOCK, CONFLICT_CODES)
