"""What the commands around a model file share: output paths, whole files, where votes came from."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deep.datasets import table_columns
from deep.exceptions import InputError
from deep.model import Model, Voter

__all__ = ["ROLES", "check_out", "other_columns", "vote_details", "whole_file"]

ROLES = ("dataset", "item_id", "label", "document_id", "family")
"""The columns of a table of votes that are no voters."""


def check_out(out: Path, endings: Sequence[str]) -> Path:
    """Return a path that can be written to; raise before any work is done where it cannot."""
    if out.suffix.lower() not in endings:
        raise InputError(f"`out` must end in {' or '.join(sorted(endings))}. Got {str(out)!r}.")
    if out.is_dir():
        raise InputError(f"`out` must be a file. Got the folder {str(out)!r}.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(f"`out` must lie in a folder that can be written to. Got {str(out)!r}.")
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


def vote_details(paths: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what vote files say of their voters, by name: hash, model, parameters."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        if not path.lower().endswith(".parquet"):
            continue
        try:
            said = json.loads((pq.read_schema(path).metadata or {}).get(b"deep", b"{}"))
            voters = said.get("voters", {}) if isinstance(said, dict) else {}
        except (pa.ArrowException, OSError, ValueError):
            continue  # the reader of the votes says what is wrong with the file
        if isinstance(voters, dict):
            samples = {"samples": said["samples"]} if said.get("samples", 1) != 1 else {}
            found |= {name: {**details, **samples} for name, details in voters.items() if isinstance(details, dict)}
    return found


def other_columns(model: Model, paths: Sequence[str]) -> list[str]:
    """Return the columns that cannot stand for a voter of the model, and so need not hold votes."""
    ids = {voter.id for voter in model.voters}
    return [name for name in table_columns(paths) if name not in ROLES and Voter(name).id not in ids]
