"""Like `map`, over as many processes as wanted."""

import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from joblib import Parallel, delayed

from deep.exceptions import InputError

__all__ = ["check_jobs", "parallel_map"]


def check_jobs(n_jobs: int) -> int:
    """Return a number of processes if it is usable: at least 1, or -1 for one a core."""
    if n_jobs == 0 or n_jobs < -1:
        raise InputError(f"`jobs` must be at least 1, or -1 for one a core. Got {n_jobs!r}.")
    return n_jobs


def parallel_map(
    n_jobs: int, progress: Callable[[str, int], Callable[[], None]], name: str
) -> Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]:
    """Return a function that maps in processes, in the order of the tasks, and shows how far it is."""

    def run(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        step = progress(name, len(tasks))
        pool = Parallel(n_jobs=min(n_jobs, len(tasks)) or 1, return_as="generator", initializer=_ignore_interrupt)
        with warnings.catch_warnings():
            # A worker that has grown, as one does when it loads torch, is replaced by a fresh one between two tasks.
            warnings.filterwarnings("ignore", message="A worker stopped while some jobs", category=UserWarning)
            for result in pool(delayed(function)(task) for task in tasks):
                yield result
                step()

    return run


def _ignore_interrupt() -> None:
    # On Ctrl-C the main process ends its workers; a word from each of them would only hide its own.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
