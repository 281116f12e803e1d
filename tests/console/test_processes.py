"""Work in several processes: its order, what each process loads before it starts, and that it is kept."""

import argparse
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from deep.console import add_options
from deep.console._processes import check_jobs, in_processes, parallel_map
from deep.ensembles import CatBoost
from deep.exceptions import InputError


def slow_square(number):
    """Return a square, the later the smaller the number."""
    time.sleep(0.2 if number == 1 else 0.0)
    return number**2


def loaded_here(_):
    """Return the process, and whether catboost was there before it was asked for."""
    before = "catboost" in sys.modules
    CatBoost().fit([[1, 1, 1], [0, 0, 0]], [1, 0])
    return os.getpid(), before


def killed(_):
    """End this process as the system ends one for want of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_come_in_the_order_of_the_calls_or_as_they_are_there(n_jobs):
    """Ordered ones wait for each other; the others are the same, in any order."""
    assert list(in_processes(slow_square, (1, 2, 3), n_jobs)) == [1, 4, 9]
    assert sorted(in_processes(slow_square, (1, 2, 3), n_jobs, ordered=False)) == [1, 4, 9]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every process loads the libraries itself")
def test_processes_are_copies_of_one_that_has_loaded_the_libraries():
    """Two processes do all the work, and neither loads what the others have; this one loads none of it for them."""
    result = list(in_processes(loaded_here, range(8), 2, ordered=False))
    assert os.getpid() not in {process for process, _ in result}
    assert len({process for process, _ in result}) <= 2
    assert all(before for _, before in result)


def test_a_process_that_was_killed_is_an_error_and_nothing_waits_for_it():
    """The system kills what takes too much memory."""
    with pytest.raises(InputError, match="Got 2, and the system ended a process"):
        list(in_processes(killed, range(4), 2))
    assert not multiprocessing.active_children()


def test_an_error_in_a_process_is_raised_here():
    """With its message, and the processes end."""
    with pytest.raises(TypeError, match="unsupported operand"):
        list(in_processes(slow_square, [2, "a", 3], 2))
    assert not multiprocessing.active_children()


def test_results_that_nobody_reads_are_dropped_in_silence():
    """As by an interrupt, whose one line advice of a library would hide; here warnings are errors."""
    results = in_processes(slow_square, [1] * 8, 2)
    assert next(results) == 1
    results.close()


def test_every_result_is_a_step():
    """The bar is told how many steps there are, and of each."""
    told = []

    def progress(name, steps):
        told.append((name, steps))
        return lambda: told.append("step")

    assert list(parallel_map(1, progress, "squares")(slow_square, [2, 3])) == [4, 9]
    assert told == [("squares", 2), "step", "step"]


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_a_number_of_processes_that_cannot_be(n_jobs):
    """Only -1 has a meaning below 1."""
    with pytest.raises(InputError, match=f"`jobs` must be at least 1, or -1 for one a core. Got {n_jobs}"):
        check_jobs(n_jobs)


@pytest.mark.parametrize(("cores", "jobs"), [(None, 1), (2, 2), (64, 8)])
def test_processes_where_nobody_says_how_many(monkeypatch, most_jobs, cores, jobs):
    """One a core, but a machine of many cores is not filled with libraries."""
    monkeypatch.setattr("deep.console._options.MOST_JOBS", most_jobs)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    parser = argparse.ArgumentParser()
    add_options(parser, "jobs")
    assert parser.parse_args([]).jobs == jobs


def blocked(_):
    """Return the signals that never reach this process."""
    return signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_process_never_hears_an_interrupt():
    """Not even while it imports, where Ctrl-C would print its traceback; the main process hears it."""
    (result,) = in_processes(blocked, [0], 1)
    assert not result & {signal.SIGINT, signal.SIGHUP}
    for result in in_processes(blocked, range(4), 2):
        assert {signal.SIGINT, signal.SIGHUP} <= result
    assert not blocked(0) & {signal.SIGINT, signal.SIGHUP}


def test_what_workers_load_is_there():
    """A name that is gone would end every run of several processes."""
    subprocess.run([sys.executable, "-c", "import deep.console._preload"], check=True)
