"""What a command takes: wall clock, processor time and largest memory, of all processes that it starts."""

import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
"""Of Linux: what a command leaves running becomes this process's child, and is counted as one."""


@dataclass(frozen=True)
class Usage:
    """What a command took.

    Parameters
    ----------
    status : int
    wall_s, processor_s : float
    largest_process_gb : float
        The largest resident memory of any one process so far.
    """

    status: int
    wall_s: float
    processor_s: float
    largest_process_gb: float


def measure(command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Usage:
    """Run a command without its output, and return what it and all that it started took until they ended.

    Workers are children of a fork server that nobody waits for: on other systems than Linux their processor time is
    missing.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    status = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.DEVNULL, check=False).returncode
    wall = time.perf_counter() - started
    _wait_for_all()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Usage(status, wall, used, after.ru_maxrss / 2**20)


def _wait_for_all() -> None:
    """Wait for every child, those inherited too."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return
