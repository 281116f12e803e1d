"""Running programs with the options of a command."""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from deep.asking import Entry, ProgramId, run_programs
from deep.console import call_settings, endpoint_of
from deep.exceptions import StoppedError


def ask(args: argparse.Namespace, programs: Callable[[], Iterator[Entry]]) -> dict[ProgramId, Any]:
    """Run programs to their end; return what each found, or raise where the run was stopped before."""
    outcome, values = run_programs(programs, call_settings(args, args.out), endpoint=endpoint_of(args))
    if outcome.stopped is not None:
        raise StoppedError(outcome.stopped)
    return values
