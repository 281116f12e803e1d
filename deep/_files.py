"""Write files and folders whole or not at all."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deep.exceptions import InputError

JsonObject = dict[str, Any]
"""A JSON object; what a value is depends on its key."""

MARKER = "results.json"
"""A folder that holds it was written by deep and may be replaced."""


def check_out(out: Path, endings: Sequence[str], name: str = "out") -> Path:
    """Return a path that can be written to; raise before any work is done where it cannot."""
    if out.suffix.lower() not in endings:
        raise InputError(f"`{name}` must end in {' or '.join(sorted(endings))}. Got {str(out)!r}.")
    if out.is_dir():
        raise InputError(f"`{name}` must be a file. Got the folder {str(out)!r}.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(f"`{name}` must lie in a folder that can be written to. Got {str(out)!r}.")
    return out


@contextmanager
def whole_file(out: Path) -> Iterator[Path]:
    """Yield a path beside `out` that takes its place if nothing goes wrong."""
    partial = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        yield partial
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)


def check_replaceable(folder: Path) -> None:
    """Raise unless `folder` is absent, empty or an earlier run's."""
    if folder.is_dir():
        if any(folder.iterdir()) and not (folder / MARKER).exists():
            raise InputError(
                f"`out` must be a new folder or an earlier run. Got {str(folder)!r}, which holds other files."
            )
    elif folder.exists():
        raise InputError(f"`out` must be a folder. Got the file {str(folder)!r}.")
    anchor = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not (anchor.is_dir() and os.access(anchor, os.W_OK)):
        raise InputError(f"`out` must be in a folder that can be written to. Got {str(folder)!r}.")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder beside `folder` that takes its place if nothing goes wrong.

    An earlier run in `folder` is there unchanged until the new one is complete.
    """
    check_replaceable(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        fresh = scratch / "new"
        fresh.mkdir()
        yield fresh
        if folder.exists():
            folder.rename(scratch / "old")
        fresh.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def to_json(results: Mapping[str, object]) -> str:
    """Return results as JSON text; a NaN in them is a bug and raises."""
    return json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_results(folder: Path, results: Mapping[str, object]) -> None:
    """Write the file that marks a folder as deep's own."""
    (folder / MARKER).write_text(to_json(results), encoding="utf-8")


def write_json_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write objects as JSON, one a line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
