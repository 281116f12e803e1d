"""What stands in a log of labels and the copies beside it, whatever became of them, and how the log is made whole."""

import glob
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from deep._files import read_bytes, whole_file
from deep._text import listed
from deep.datasets._held_file import sync_folder, write_all
from deep.datasets._label_lines import START, LogLine, in_written_order, split_log
from deep.exceptions import InputError

COPY = ".copy"
"""What the name of a log's copy ends in, and a number where there are several."""

LARGEST_LOG = 1 << 28
"""Bytes of a log."""


@dataclass(frozen=True)
class FoundLines:
    """The lines of a log and its copies.

    Parameters
    ----------
    files : dict of Path to bytes
    lines : list of LogLine
        The whole ones of all files, each once, in the order in which they were written.
    broken : list of str
        Where the others are.
    rest : bytes
        What the others hold.
    told : str
    """

    files: dict[Path, bytes]
    lines: list[LogLine]
    broken: list[str]
    rest: bytes
    told: str


def read_log_files(path: Path) -> FoundLines:
    """Read a log and the copies beside it.

    Raises
    ------
    InputError
        It is no log.
    """
    files = {file: read_bytes(file, "labels", LARGEST_LOG) for file in label_log_files(path)}
    whole: dict[Path, list[LogLine]] = {}
    broken: list[str] = []
    rest = b""
    for file, data in files.items():
        whole[file], others = split_log(data)
        name = "" if file == path else f" of {file.name!r}"
        broken += [f"line {line.number}{name}" for line in others]
        rest += b"".join(line.data + b"\n" for line in others)
    ordered = in_written_order(line for lines in whole.values() for line in lines)
    if rest and not ordered and not _is_torn(rest.removesuffix(b"\n"), files):
        raise InputError(
            f"`labels` must be a log that `deep label` wrote. Got {rest[:60]!r} at line 1 of {str(path)!r}."
        )
    own = whole.get(path, [])
    told = list(_oddities(own, ordered))
    if (
        not (told or rest)
        and START + b": 1" not in files.get(path, b"")
        and files.get(path, b"") != b"".join(line.data for line in own)
    ):
        told = ["it was written otherwise than `deep label` writes it, but its lines are whole"]
    return FoundLines(files, ordered, broken, rest, "; ".join(told))


def _is_torn(rest: bytes, files: Mapping[Path, bytes]) -> bool:
    """Return whether bytes are a first line that was being written, as a killed process or a full disk leaves it."""
    start = rest[: len(START)] == START[: len(rest)]
    return start and b"\n" not in rest and not any(data.endswith(b"\n") for data in files.values())


def _oddities(own: list[LogLine], ordered: list[LogLine]) -> Iterator[str]:
    """Yield the oddities of the lines of a log, beside all that its copies hold too."""
    checks = {line.check for line in own}
    lacking = sum(line.check not in checks for line in ordered)
    if lacking:
        yield f"{lacking} lines that it lacked were taken from the copy beside it"
    if len(checks) < len(own):
        yield f"{len(own) - len(checks)} lines stood there twice"
    if [line for line in ordered if line.check in checks] != list({line.check: line for line in own}.values()):
        yield "lines stood in another order than they were written in"
    known = {line.check for line in ordered} | {""}
    gaps = [number for number, line in enumerate(ordered, start=1) if line.before not in known]
    if gaps:
        yield f"lines are missing before {listed([f'line {number}' for number in gaps], 5)}"
    behind = [line.before for line in ordered]
    if len(set(behind)) < len(behind):
        yield "it was written to from two places at once; where these differ on an item, the later line holds"


def mend_log(path: Path, found: FoundLines) -> str:
    """Write a log as its whole lines, where it is not so; return what became of the others."""
    told = ""
    if found.rest:
        aside = path.with_name(f"{path.name}.broken")
        append_whole(aside, found.rest)
        told = f"{are_not_whole(found.broken)} set aside in {aside.name!r}"
    content = b"".join(line.data for line in found.lines)
    if found.files.get(path) != content:
        with whole_file(path.resolve()) as scratch:
            append_whole(scratch, content)
        sync_folder(path.resolve().parent)
    return told


def are_not_whole(broken: list[str]) -> str:
    """Return the words on broken lines, but for what became of them."""
    verb = "is" if len(broken) == 1 else "are"
    return f"{listed(broken, 5)} {verb} not whole and {verb}"


def place_of(path: str | Path) -> Path:
    """Return the whole path of a log; where it is a link, copies stand beside that."""
    return Path(path).parent.resolve() / Path(path).name


def label_log_files(path: str | Path) -> list[Path]:
    """Return the files that the lines of a log stand in: itself, and the copies beside it; those that are there."""
    path = place_of(path)
    copies = path.parent.glob(f"{glob.escape(path.name + COPY)}*")
    return [file for file in (path, *sorted(copies, key=lambda copy: (len(copy.name), copy.name))) if file.is_file()]


def append_whole(path: Path, data: bytes) -> None:
    """Add bytes to a file, a new one where there is none, and wait until they are on disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
    try:
        write_all(file, data)
        os.fsync(file)
    finally:
        os.close(file)


def free_place(path: Path, ending: str) -> Path:
    """Return a place beside a file where nothing is."""
    names = (f"{path.name}{ending}{number or ''}" for number in count())
    return next(place for name in names if not (place := path.with_name(name)).exists())
