"""How every command of deep reads its options and reports an error."""

import argparse
import os
import sys
from _thread import interrupt_main
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

from deep.exceptions import DeepError, InputError

__all__ = ["LEVELS", "HelpFormatter", "StoppedError", "Values", "add_jobs", "check_least", "guarded", "named"]

LEVELS = ("rational", "grounded", "irrefutable")
"""What `--level` may be: the criteria of the judge tiered, here so that help needs no judge."""

MOST_JOBS = 8
"""Processes where nobody says how many: each loads every library, and there are some fifty tasks at a time."""

USAGE_ERROR = 2
INTERRUPTED = 130
STOPPED = {"budget": (3, "the budget is reached"), "interrupted": (INTERRUPTED, "interrupted")}


class StoppedError(Exception):
    """A run that writes nothing before its end was stopped; its argument, a key of `STOPPED`, says why."""


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the layout of examples and shows defaults that the help does not tell itself."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        told = action.default is False or action.default in (None, []) or "default" in (action.help or "")
        return action.help if told else super()._get_help_string(action)


class Values(argparse.Action):
    """An option of several values: repeated, separated by blanks, or by commas.

    A value that is itself the name of an existing file is never cut at its commas.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002  argparse hands it over by position
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """Add the values to those given before."""
        parts = [part for value in values for part in ([value] if Path(value).exists() else value.split(","))]
        seen = getattr(namespace, self.dest)
        before = [] if seen is self.default else seen
        setattr(namespace, self.dest, [*before, *(part.strip() for part in parts if part.strip())])


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the option that says in how many processes the work is done."""
    parser.add_argument(
        "--jobs",
        type=int,
        default=min(os.cpu_count() or 1, MOST_JOBS),
        metavar="N",
        help="processes, half a gigabyte of memory each; the results do not depend on it (default: one a core, at most "
        f"{MOST_JOBS})",
    )


def check_least(args: argparse.Namespace, **least: int) -> None:
    """Raise where an option is below the least value that it may have."""
    for name, low in least.items():
        if getattr(args, name) < low:
            raise InputError(f"`{name}` must be {low} or more. Got {getattr(args, name)}.")


@contextmanager
def named(option: str) -> Iterator[None]:
    """Call by the name of the command's own option what a reader of files complains of as `examples`."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace("`examples`", f"`{option}`")) from None


def guarded(run: Callable[[Sequence[str] | None], int], argv: Sequence[str] | None) -> int:
    """Run a command: an error that the user can mend becomes one line on stderr and exit status 2."""
    try:
        with _interrupts_heard():
            return run(argv)
    except DeepError as error:
        sys.stderr.write(f"error: {error}\n")
        return USAGE_ERROR
    except StoppedError as stop:
        status, why = STOPPED[str(stop)]
        sys.stderr.write(f"stopped: {why}. Nothing was written; the same command again asks what is missing.\n")
        return status
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was written\n")
        return INTERRUPTED


@contextmanager
def _interrupts_heard() -> Iterator[None]:
    """Raise Ctrl-C again where Python drops it.

    In a callback, of which importing has many, an exception is printed and no more.
    """
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            # Not at once, for this is still the callback.
            Timer(0.05, interrupt_main).start()
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
