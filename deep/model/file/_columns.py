"""What the commands around a model file share: where votes came from, and which columns are none."""

import json
from collections.abc import Sequence
from typing import Any

from deep.datasets import table_columns
from deep.model.file._model import Model
from deep.model.file._voters import Voter

__all__ = ["ROLES", "other_columns", "vote_details"]

ROLES = ("dataset", "item_id", "label", "document_id", "family")
"""The columns of a table of votes that are no voters."""


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
