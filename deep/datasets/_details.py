"""The voters of a Parquet file of votes, as its metadata describe them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def vote_details(paths: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return the descriptions of voters in vote files, by name: hash, model, parameters; and `samples` where several.

    Files that say nothing, or that cannot be read, are passed over: the reader of the votes says what is wrong.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    details: dict[str, dict[str, object]] = {}
    for path in paths:
        if not (path.lower().endswith(".parquet") and Path(path).is_file()):
            continue
        try:
            stored = json.loads((pq.read_schema(path).metadata or {}).get(b"deep", b"{}"))
        except (pa.ArrowException, OSError, ValueError):
            continue
        if isinstance(stored, dict) and isinstance(voters := stored.get("voters"), dict):
            samples = {"samples": stored["samples"]} if stored.get("samples", 1) != 1 else {}
            details |= {name: {**entry, **samples} for name, entry in voters.items() if isinstance(entry, Mapping)}
    return details
