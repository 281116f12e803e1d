"""Running programs with the options of a command."""

import argparse
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from deep._util.files import read_bytes
from deep.asking import Entry, ProgramId, run_programs
from deep.console import ask_options, endpoint_of, live_progress
from deep.exceptions import InputError, StoppedError
from deep.experiments.printed import PrintedSteps, load_steps, reworded
from deep.judge import Program


def ask(args: argparse.Namespace, programs: Callable[[], Iterator[Entry]]) -> dict[ProgramId, Any]:
    """Run programs to their end; return their values, or raise where the run was stopped before."""
    options = ask_options(args, args.out)
    args.out.absolute().parent.mkdir(parents=True, exist_ok=True)  # where the ledger lies
    with live_progress() as progress:
        outcome, values = run_programs(programs, options, endpoint=endpoint_of(args), progress=progress)
    if outcome.stopped is not None:
        raise StoppedError(outcome.stopped)
    return values


T = TypeVar("T")

JUDGE_STEPS = {"decompose": ("response",), "find": ("claim", "source"), "evaluate": ("claim", "context", "excerpt")}

BUILDER_STEPS = {
    "summarize": ("source",),
    "ask": ("source",),
    "answer": ("question", "source"),
    **{f"restyle-{style}": ("source",) for style in ("blog", "faq", "lecture_notes", "textbook")},
    "invent": ("count", "source"),
}
"""Those of the builder that can be asked in the paper's words.

The printed prompt of insertion asks for no tags, so that nobody would know what was inserted; deep's own is asked.
"""


def read_printed(paths: Sequence[str], known: Mapping[str, Sequence[str]]) -> PrintedSteps | None:
    """Return the printed prompts of the steps that are known; None where no file is given.

    Raises
    ------
    InputError
        A file cannot be read, or holds no step that is known, or lacks a placeholder of one.
    """
    if not paths:
        return None
    files = [load_steps(path, _held(path, known)) for path in paths]
    steps = {name: step for file in files for name, step in file.steps.items()}
    names = (" and ".join(getattr(file, name) for file in files) for name in ("id", "follows", "hash"))
    return PrintedSteps(next(names), next(names), steps, next(names))


def _held(path: str, known: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the known steps that a file has a table of."""
    try:
        tables = tomllib.loads(read_bytes(path, "prompt").decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"`prompt` must be a TOML file. Got {path!r}: {reason}.") from None
    held = {step: names for step, names in known.items() if step in tables}
    if not held:
        raise InputError(f"`prompt` must hold one of the steps {', '.join(known)}. Got none in {path!r}.")
    return held


def in_print(program: Program[T], printed: PrintedSteps | None) -> Program[T]:
    """Return a program that asks in the printed words, where some are given."""
    return program if printed is None else reworded(program, printed)
