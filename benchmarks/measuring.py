"""What a command takes: wall clock, processor time and largest memory, of all processes that it starts."""

import ctypes
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    all_processes_gb : float
        The most that all processes held at once, looked at twice a second, pages that several share counted once; NaN
        where the system does not tell, as Linux does.
    stdout, stderr : str, optional
        Where they were to be kept.
    """

    status: int
    wall_s: float
    processor_s: float
    largest_process_gb: float
    all_processes_gb: float
    stdout: str | None = None
    stderr: str | None = None


class Children:
    """Counts what processes take that are started within it, from its beginning to their ends.

    Workers are children of a fork server that nobody waits for: on other systems than Linux their processor time is
    missing. One of these at a time in a process, since it waits for every child.

    Attributes
    ----------
    processor_s : float
    largest_process_gb : float
        The largest resident memory of any one process so far.
    """

    processor_s = 0.0
    largest_process_gb = 0.0

    def __enter__(self) -> "Children":
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._before = resource.getrusage(resource.RUSAGE_CHILDREN)
        return self

    def __exit__(self, *_: object) -> None:
        _wait_for_all()
        before, after = self._before, resource.getrusage(resource.RUSAGE_CHILDREN)
        self.processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.largest_process_gb = after.ru_maxrss / 2**20


def measure(
    command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, keep: bool = False
) -> Usage:
    """Run a command, and return what it and all that it started took until they ended.

    With `keep`, what it writes is returned too; otherwise its output is dropped, and its errors are shown.
    """
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} if keep else {"stdout": subprocess.DEVNULL}
    started = time.perf_counter()
    with Children() as children:
        with subprocess.Popen(command, cwd=cwd, env=env, text=True, **streams) as process, _watched() as sums:
            stdout, stderr = process.communicate()
        wall = time.perf_counter() - started
    used, largest = children.processor_s, children.largest_process_gb
    return Usage(process.returncode, wall, used, largest, max(sums, default=float("nan")), stdout, stderr)


@contextmanager
def _watched() -> Iterator[list[float]]:
    """Yield a list that gathers the memory of all processes below this one, in GiB, until the end."""
    sums: list[float] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.5):
            sums.append(sum(_proportional(pid) for pid in _below(os.getpid())) / 2**20)

    watcher = threading.Thread(target=look)
    if sys.platform == "linux":
        watcher.start()
    try:
        yield sums
    finally:
        over.set()
        if watcher.ident is not None:
            watcher.join()


def _below(root: int) -> set[int]:
    """Return the processes that a process started, and those that they started."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
    result, new = set[int](), {root}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - result
        result |= new
    return result


def _proportional(pid: int) -> int:
    """Return the memory of a process in KiB, its share of the pages that it shares; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _wait_for_all() -> None:
    """Wait for every child, those inherited too."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return
