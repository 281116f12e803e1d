"""Work in as many processes as wanted."""

import signal
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing import resource_tracker
from typing import Any

from deep.exceptions import DeepError, InputError


def check_jobs(n_jobs: int) -> int:
    """Return a number of processes if it is usable: at least 1, or -1 for one a core."""
    if n_jobs == 0 or n_jobs < -1:
        raise InputError(f"`jobs` must be at least 1, or -1 for one a core. Got {n_jobs!r}.")
    return n_jobs


def in_processes(
    calls: Sequence[Any], n_jobs: int, *, ensemblers: Iterable[str] = (), ordered: bool = True
) -> Iterator[Any]:
    """Yield the results of joblib's delayed `calls`.

    Parameters
    ----------
    calls : sequence of joblib.delayed
        Started in this order.
    n_jobs : int
        Processes; -1 for one a core.
    ensemblers : iterable of str
        Keys of `ENSEMBLERS` whose libraries every process loads before its first call; other names load nothing.
    ordered : bool, default=True
        In the order of the calls, or each when it is there.
    """
    from joblib import Parallel

    workers = Parallel(
        n_jobs=n_jobs if n_jobs < 0 else max(1, min(n_jobs, len(calls))),
        batch_size="auto" if ordered else 1,
        return_as="generator" if ordered else "generator_unordered",
        initializer=_start,
        initargs=(tuple(ensemblers),),
    )
    with warnings.catch_warnings():
        # A process that has grown much is replaced between two calls; an interrupt leaves tasks without a reader.
        for message in ("A worker stopped while some jobs", r"\d+ tasks (have been|which were)"):
            warnings.filterwarnings("ignore", message=message, category=UserWarning)
        with nullcontext() if n_jobs == 1 else _signals_held():
            results = workers(calls)
        yield from results


def parallel_map(
    n_jobs: int, progress: Callable[[str, int], Callable[[], None]], name: str, *, ensemblers: Iterable[str] = ()
) -> Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]:
    """Return a function that maps in processes, in the order of the tasks, and shows how far it is."""
    from joblib import delayed

    def run(function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        step = progress(name, len(tasks))
        for result in in_processes([delayed(function)(task) for task in tasks], n_jobs, ensemblers=ensemblers):
            yield result
            step()

    return run


@contextmanager
def _signals_held() -> Iterator[None]:
    """Leave Ctrl-C and a lost terminal to the main process from a worker's first instruction on.

    A worker inherits what is blocked where it is started; here both are heard again, late, at the end.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from joblib.externals.loky.backend import resource_tracker as loky_tracker

    for tracker in (resource_tracker, loky_tracker):
        tracker.ensure_running()  # first, for as it starts it may unblock Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(ensemblers: Sequence[str]) -> None:
    """Prepare a process: leave Ctrl-C to the main one, and load the libraries.

    The main process ends its workers; a word from each of them would only hide its own. A library loaded in the
    middle of the work would make the process look as if it leaked memory, and it would be replaced by one that
    has to load everything again.
    """
    import numpy as np

    from deep.ensembles import ENSEMBLERS

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    votes = np.array([[1, 1, 1], [0, 0, 0]])
    for name in filter(ENSEMBLERS.__contains__, ensemblers):
        # What cannot be fitted says so when it is asked for.
        with suppress(DeepError):
            ENSEMBLERS[name]().fit(votes, [1, 0])
