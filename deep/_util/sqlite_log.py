"""A SQLite file that people move, copy and restore as one: how its -wal is kept short, and known from another's.

Every transaction writes a random number into the header of the file (`user_version`), and the number before it beside
that (`application_id`); SQLite itself uses neither. So the copies of the header in a -wal name each state of the file
that the -wal leads from or to, and a file in another state is not its own. An odd number says that a run is open. A
file of an earlier version of deep has the number 0.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import quote

from deep.exceptions import note

# The seconds for which answers may be in the -wal alone. To move them more often costs more syncs of the disk. Chosen;
# no measurement is known.
SECONDS_OUTSIDE = 1.5

# The milliseconds for which a statement waits for another process. A longer wait hides a process that is stuck; a
# shorter one fails beside a slow one. Chosen; no measurement is known.
BUSY_MS = 30_000

# Bytes: the header of a -wal, that of each of its frames, and the part of page 1 that is the file's own header.
_WAL_HEAD, _FRAME_HEAD, _PAGE_HEAD = 32, 24, 100


def wal_path(path: str) -> Path:
    """Return the -wal of a file, which SQLite keeps beside the file itself, whatever links lead there."""
    real = Path(os.path.realpath(path))  # unlike resolve(), no error where links go round
    return real.with_name(f"{real.name}-wal")


def stamp_state(connection: sqlite3.Connection, *, is_open: bool = True) -> None:
    """Give the file the number of a new state, as part of the transaction that is open."""
    (last,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA application_id = {last}")
    connection.execute(f"PRAGMA user_version = {2 * secrets.randbelow(2**30 - 1) + (1 if is_open else 2)}")


def move_log_into_file(connection: sqlite3.Connection) -> bool:
    """Write what is in the -wal into the file, and empty the -wal; return whether no reader stood in the way."""
    busy = 0
    with suppress(sqlite3.Error):  # a full disk, say: the -wal still has it; a timer may find the file closed
        connection.execute("PRAGMA busy_timeout = 0")  # what cannot be done now is done the next time
        try:
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    return not busy


@contextmanager
def transaction(connection: sqlite3.Connection, *, is_open: bool = True) -> Iterator[sqlite3.Connection]:
    """Return a context in which all is written, or nothing."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        stamp_state(connection, is_open=is_open)


def end_run(connection: sqlite3.Connection) -> None:
    """Write down that no run is open any more, where one is, and leave nothing in the -wal."""
    with suppress(sqlite3.Error):
        if connection.execute("PRAGMA user_version").fetchone()[0] % 2:
            with transaction(connection, is_open=False):
                pass
        move_log_into_file(connection)


def has_foreign_log(path: str) -> bool:
    """Return whether the -wal beside a file goes on from another one, or from another state of it."""
    log = wal_path(path)
    while True:
        state, states = _state_number(path), set(_state_numbers(log))
        if state == _state_number(path):  # else a run has just moved its -wal into the file
            break
    if state is None:
        return log.exists() and log.stat().st_size > 0
    return bool(states) and state not in states


def set_aside_foreign_log(path: str) -> None:
    """Give a -wal that does not belong to a file another name, which is told, before SQLite would remove it.

    Where the file says that a run is open on it and has no -wal, tell where the last seconds may be.
    """
    log, state = wal_path(path), _state_number(path)
    if has_foreign_log(path):
        aside = next(name for n in count(1) if not (name := log.with_name(f"{log.name}.aside-{n}")).exists())
        log.rename(aside)
        note_once(
            f"{log} does not belong to {path}, which was moved, restored or copied. It is kept as {aside}. To "
            "recover its last seconds, rename it to the name of its database plus -wal."
        )
    elif state is not None and state % 2 and not log.exists():
        names = [str(other) for other in log.parent.glob("*-wal*") if state in set(_state_numbers(other))]
        where = " or ".join(names) or "the -wal file of its earlier name or folder"
        note_once(f"A run was open on {path} when it was copied or killed. The last seconds may be in {where}.")


# Tell a line once, however often the file is opened.
note_once = cache(note)


def _state_number(path: str) -> int | None:
    """Return the number of the state that a file is in without its -wal; None where there is none, -2 for no database.

    SQLite reads it: to open and close the file by oneself would end the locks that this process holds on it.
    """
    if not Path(path).exists() or Path(path).stat().st_size == 0:
        return None
    try:
        uri = f"file:{quote(str(Path(path).absolute()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.Error:
        return -2


def _state_numbers(log: Path) -> Iterator[int]:
    """Yield the numbers of the states that a -wal leads from and to."""
    with suppress(OSError), log.open("rb") as file:
        header = file.read(_WAL_HEAD)
        page_size, salts = int.from_bytes(header[8:12], "big"), header[16:24]
        # Frames with other salts were left by what the -wal held before.
        while len(frame := file.read(_FRAME_HEAD + _PAGE_HEAD)) == _FRAME_HEAD + _PAGE_HEAD and frame[8:16] == salts:
            # Page 1 has the two numbers of a state: user_version at byte 60, application_id at byte 68.
            if int.from_bytes(frame[:4], "big") == 1:
                yield from (int.from_bytes(frame[_FRAME_HEAD + at : _FRAME_HEAD + at + 4], "big") for at in (60, 68))
            file.seek(page_size - _PAGE_HEAD, 1)
