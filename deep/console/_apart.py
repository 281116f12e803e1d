"""What a command reads stays as it is: its output is another file, and no folder with an input in it."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from deep._files import MARKER
from deep.exceptions import InputError


def check_apart(args: argparse.Namespace, out: Path | None = None) -> None:
    """Raise where the output of a command would take the place of a file that it reads, or of its ledger.

    Parameters
    ----------
    args : Namespace
    out : Path, optional
        Where the command writes, if not where its option `out` says.

    Raises
    ------
    InputError
        `out` is a file among the other options, or the folder of an earlier run in which one of them lies.
    """
    out = out or getattr(args, "out", None)
    if isinstance(out, Path):
        for option, path in _files(args):
            check_not_in(out, path, option)


def check_not_in(out: Path, path: Path, option: str) -> None:
    """Raise where writing `out` would take the place of `path`, which was given as `option`."""
    place, kept = out.resolve(), path.resolve()
    if place == kept or ((out / MARKER).exists() and place in kept.parents):
        raise InputError(f"`out` must leave `{option}` as it is. Got {str(out)!r} for {str(path)!r}. Name another.")


def _files(args: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Yield the files that a command is given; a ledger is one before it is there."""
    for option, value in vars(args).items():
        for one in value if isinstance(value, list) else [value]:
            named = option != "out" and isinstance(one, str | Path) and "\0" not in str(one)
            if named and (option == "ledger" or _is_file(Path(one))):
                yield option, Path(one)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False
