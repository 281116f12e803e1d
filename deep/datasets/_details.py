"""The voters of a Parquet file of votes, as its metadata describe them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from deep._files import JsonObject
from deep.datasets._parquet import open_parquet


def vote_details(paths: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return the descriptions of voters in vote files, by name: hash, model, parameters; and `samples` where several.

    Files that say nothing, or that cannot be read, are passed over: the reader of the votes says what is wrong.
    """
    details: dict[str, dict[str, object]] = {}
    for path in paths:
        stored = file_metadata(path)
        if isinstance(voters := stored.get("voters"), dict):
            samples = {"samples": stored["samples"]} if stored.get("samples", 1) != 1 else {}
            details |= {name: {**entry, **samples} for name, entry in voters.items() if isinstance(entry, Mapping)}
    return details


def file_metadata(path: str | Path) -> JsonObject:
    """Return the metadata that deep wrote into a Parquet file; nothing where there are none, or it cannot be read."""
    import pyarrow as pa

    if not (str(path).lower().endswith(".parquet") and Path(path).is_file()):
        return {}
    try:
        with open_parquet(Path(path), "paths") as table:
            stored = json.loads((table.file.schema_arrow.metadata or {}).get(b"deep", b"{}"))
    except (pa.ArrowException, OSError, RecursionError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
