"""A file that one process adds to, and knows again before it adds more: its place, and all that is in it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ELOOP
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG

from deep.exceptions import InputError

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows, where nobody can remove or replace the lock's file while it is open
    flock = None  # type: ignore[assignment]

FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)

Signature = tuple[int, int, int, int, int]


class FileChangedError(Exception):
    """A file is not as it was left; the message is the rest of a sentence that begins with its name."""


class HeldFile:
    """A file that this process alone may add to, for as long as it is open.

    Parameters
    ----------
    path : Path
    content : bytes
        All that is in it.
    new : bool, default=False
        Whether it is made, with this content; else it is there.

    Raises
    ------
    FileChangedError
        It holds something else, or another process has it.
    OSError
        It cannot be opened or written.
    """

    def __init__(self, path: Path, content: bytes, *, new: bool = False) -> None:
        self.path = path
        self._size, self._hash = len(content), sha256(content)
        self._tried = b""
        self._file = os.open(path, FLAGS | (os.O_CREAT | os.O_EXCL if new else 0), 0o644)
        try:
            _lock(self._file)
            if new:
                write_all(self._file, content)
                os.fsync(self._file)
                sync_folder(path.parent)
            self._left = None if not new else _signature(os.fstat(self._file))
            self.check()
        except BaseException:
            os.close(self._file)
            if new:
                with suppress(OSError):
                    path.unlink()
            raise

    def close(self) -> None:
        """Give the file back."""
        os.close(self._file)

    def check(self) -> None:
        """Raise where the file at the path is not the one that was left; a part of a line of ours is taken off.

        Times and numbers of a file only spare the reading: where they differ, its content decides, so that a copy put
        in its place, a hard link or another mode are no loss.
        """
        now = _status(self.path)
        if _signature(now) == self._left:
            return
        if now.st_size > self._size + len(self._tried):
            raise FileChangedError("was added to by another program")
        if not os.path.samestat(now, os.fstat(self._file)):
            self._take(os.open(self.path, FLAGS))
        data = self.path.read_bytes()
        if sha256(data[: self._size]).digest() != self._hash.digest():
            raise FileChangedError(f"was {'cut off' if len(data) < self._size else 'changed'} by another program")
        rest = data[self._size :]
        if not self._tried.startswith(rest):
            raise FileChangedError("was added to by another program")
        if rest:
            os.ftruncate(self._file, self._size)  # our own, from a write that failed
        self._left = _signature(os.fstat(self._file))

    def add(self, data: bytes) -> None:
        """Add bytes and wait until they are on disk.

        Raises
        ------
        FileChangedError
            The file is not as it was left, before or after.
        OSError
            They could not be written, as on a full disk; the file is then as it was before.
        """
        self.check()
        if not data:
            return
        self._tried = data
        try:
            write_all(self._file, data)
            os.fsync(self._file)
        except OSError:
            with suppress(OSError, FileChangedError):
                self.check()
            raise
        now = os.fstat(self._file)
        if now.st_size != self._size + len(data) or not _is_at(self.path, now):
            raise FileChangedError("was replaced or written to by another program")
        self._size, self._tried, self._left = now.st_size, b"", _signature(now)
        self._hash.update(data)

    def _take(self, file: int) -> None:
        """Go on with another descriptor, of an equal file that was put in the place of ours."""
        try:
            _lock(file)
        except FileChangedError:
            os.close(file)
            raise
        os.close(self._file)
        self._file = file


@contextmanager
def free_files(paths: list[Path]) -> Iterator[None]:
    """Raise where a process has one of the files, by whatever name; hold them until the end of the block."""
    files = [os.open(path, FLAGS) for path in paths]
    try:
        for file, path in zip(files, paths, strict=True):
            try:
                _lock(file)
            except FileChangedError:
                raise in_use(path) from None
        yield
    finally:
        for file in files:
            os.close(file)


def in_use(path: Path) -> InputError:
    """Return the error of a log that another process adds to."""
    return InputError(
        f"`out` must not be in use. Got {str(path)!r}, to which another `deep label` adds. End that one first; "
        "several people can use its page."
    )


def write_all(file: int, data: bytes) -> None:
    """Write bytes, however many calls it takes."""
    while data:
        data = data[os.write(file, data) :]


def sync_folder(folder: Path) -> None:
    """Wait until a new file's name is on disk too, on systems that open folders."""
    with suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _lock(file: int) -> None:
    """Lock an open file itself, whatever it is called; some file systems have no such locks."""
    if flock is not None:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise FileChangedError("is in use by another process") from None
        except OSError:
            pass


def _status(path: Path) -> os.stat_result:
    """Return the status of the file at a path; raise where no file is there any more."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise FileChangedError("is gone") from None
    except OSError as error:
        if error.errno != ELOOP:
            raise
        raise FileChangedError("is a loop of links") from None
    if not S_ISREG(found.st_mode):  # reading a pipe would wait for ever
        raise FileChangedError("is a folder, a pipe or a device now, to be taken away")
    return found


def _signature(status: os.stat_result) -> Signature:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_at(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), status)
    except OSError:
        return False
