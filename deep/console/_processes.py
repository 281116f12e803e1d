"""Work in as many processes as wanted."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import TypeVar

from deep.exceptions import InputError

# The module that the process from which workers are forked has imported.
PRELOAD_MODULE = "deep.console._preload"

Task = TypeVar("Task")
Result = TypeVar("Result")


def check_jobs(n_jobs: int) -> int:
    """Return a number of processes if it is usable: at least 1, or -1 for one a core."""
    if n_jobs == 0 or n_jobs < -1:
        raise InputError(f"`jobs` must be at least 1, or -1 for one a core. Got {n_jobs!r}.")
    return n_jobs


def in_processes(
    function: Callable[[Task], Result], tasks: Sequence[Task], n_jobs: int, *, ordered: bool = True
) -> Iterator[Result]:
    """Yield the function's result of each task.

    Parameters
    ----------
    function : callable
        It, the tasks and the results can be pickled where there is more than one process.
    tasks : sequence
        Started in this order.
    n_jobs : int
        Processes; -1 for one a core. With one all is done in this one.
    ordered : bool, default=True
        In the order of the tasks, or each when it is there.

    Raises
    ------
    InputError
        A process was killed, as the system does where memory runs out.
    """
    n_workers = min(n_jobs if n_jobs > 0 else os.cpu_count() or 1, len(tasks))
    if n_workers < 2:
        yield from map(function, tasks)
        return
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed

    # A caller may have processes of its own, which are not ours to end.
    others = set(multiprocessing.active_children())
    workers = ProcessPoolExecutor(n_workers, mp_context=_start_context(), initializer=_ignore_interrupts)
    started = set[BaseProcess]()
    try:
        with _signals_held():
            calls = [workers.submit(function, task) for task in tasks]
            started = set(multiprocessing.active_children()) - others
        for call in calls if ordered else as_completed(calls):
            yield call.result()
        workers.shutdown()
    except BaseException as error:  # an interrupt, an error, or nobody reads on
        workers.shutdown(wait=False, cancel_futures=True)
        for process in started:
            process.terminate()
        for process in started:
            process.join()
        if isinstance(error, BrokenExecutor):
            raise InputError(f"`jobs` must fit in memory. Got {n_jobs!r}, and the system ended a process.") from error
        raise


def parallel_map(
    n_jobs: int, progress: Callable[[str, int], Callable[[], None]], name: str
) -> Callable[[Callable[[Task], Result], Sequence[Task]], Iterator[Result]]:
    """Return a function that maps in processes, in the order of the tasks, and shows how far it is."""

    def run(function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        step = progress(name, len(tasks))
        for result in in_processes(function, tasks, n_jobs):
            yield result
            step()

    return run


def prepare_processes(n_jobs: int) -> None:
    """Begin to load the libraries that workers share, beside whatever this process does next.

    Where there is a fork server, as on Linux, it loads them once and every worker is a copy of it. It runs nothing,
    so that no thread is lost in a copy. Elsewhere each worker loads them itself.
    """
    # Only Linux copies a process that has its libraries; elsewhere there is nothing to prepare (decision 21).
    if n_jobs != 1 and (os.cpu_count() or 1) > 1 and sys.platform == "linux":
        from multiprocessing import forkserver

        _start_context()
        with _signals_held():
            forkserver.ensure_running()


def _start_context() -> multiprocessing.context.BaseContext:
    """Return how workers are started: as copies of a process that has loaded the libraries, where that is safe."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PRELOAD_MODULE])
    return context


@contextmanager
def _signals_held() -> Iterator[None]:
    """Leave Ctrl-C and a lost terminal to the main process from a worker's first instruction on.

    A worker inherits what is blocked where it is started; here both are heard again, late, at the end.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # first, for as it starts it may unblock Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the main process, which ends its workers; a word from each of them would only hide its own."""
    # Ctrl-C reaches the whole group: the main process ends its workers, or each would print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
