"""Room on a ledger's disk, kept for the answers that are on their way when it becomes full."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

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
