"""Running programs with the options of a command."""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from deep.asking import Entry, ProgramId, run_programs
from deep.console import ask_options, endpoint_of, live_progress
from deep.exceptions import StoppedError


def ask(args: argparse.Namespace, programs: Callable[[], Iterator[Entry]]) -> dict[ProgramId, Any]:
    """Run programs to their end; return their values, or raise where the run was stopped before."""
    options = ask_options(args, args.out)
    args.out.absolute().parent.mkdir(parents=True, exist_ok=True)  # where the ledger lies
    with live_progress() as progress:
        outcome, values = run_programs(programs, options, endpoint=endpoint_of(args), progress=progress)
    if outcome.stopped is not None:
        raise StoppedError(outcome.stopped)
    return values
