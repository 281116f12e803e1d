"""The ledger in PostgreSQL, which several machines share: its locks, and the way on after a lost connection."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import sqlalchemy as sa
from sqlalchemy import text as sql
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from deep.exceptions import InputError, MissingDependencyError
from deep.llm import Database, describe_ledger, new_engine, one_line

_SILENT = logging.NullHandler()

LOCK_CLASS = 0x64656570
"""The first half of the advisory locks that live runs hold."""

DEADLOCK, CONFLICT = "40P01", "40001"
"""The states of a transaction that the server has undone to let another one pass."""

PATIENCE = 60.0
"""Seconds for which a server that was lost is waited for; answers that come meanwhile are kept in memory."""


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
        held = sql(
            "SELECT objid FROM pg_locks JOIN pg_database ON pg_database.oid = database "
            "WHERE locktype = 'advisory' AND granted AND classid = :lock AND datname = current_database()"
        )
        return {run, *connection.execute(held, {"lock": LOCK_CLASS}).scalars()}

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
            The connection was lost, and there is no other one for `PATIENCE` seconds.
        """
        if self._run is not None and _is_lost(connection, failure):
            return self._connect_again(connection, self._run, failure)
        if isinstance(failure, DBAPIError) and _is_undone(failure):
            connection.connection.rollback()  # in a pipeline, its own does not reach the server
            return connection
        return None

    def _connect_again(self, lost: sa.Connection, run: int, failure: Exception) -> sa.Connection:
        """Return another connection to a server that may be starting again, with this run's lock where it is free."""
        end = time.monotonic() + PATIENCE
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
                    why = f"{one_line(failure)}, and no other connection within {PATIENCE:g} s"
                    raise SQLAlchemyError(why) from None
                time.sleep(0.2)
            else:
                return connection


def _is_lost(connection: sa.Connection, failure: Exception) -> bool:
    """Return whether a connection is gone, by what SQLAlchemy says of it or by the driver's own word."""
    if connection.invalidated or getattr(failure, "connection_invalidated", False):
        return True
    return bool(getattr(connection.connection.driver_connection, "closed", False))


def _is_undone(failure: DBAPIError) -> bool:
    """Return whether the server may do at a second try what it has undone, or the driver does not say why it was."""
    aborted = type(failure.orig).__name__ == "PipelineAborted"
    return aborted or getattr(failure.orig, "sqlstate", None) in (DEADLOCK, CONFLICT)
