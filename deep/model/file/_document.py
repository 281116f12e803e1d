"""The parts of a model as JSON values, and the file they are written to; docs/model-file.md describes it."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np

from deep._files import whole_file
from deep.exceptions import InputError
from deep.model.chain import KeptCells
from deep.model.file._table import Table, pattern_text
from deep.model.file._voters import Voter
from deep.model.target import Adaptation, Correction, Misfit

FORMAT = "deep model"
SCHEMA_VERSION = 1

REPORT = {
    "created": str,
    "selector": str,
    "prior": float,
    "inner": dict,
    "left_out": dict,
    "notes": list,
    "training_datasets": dict,
    "versions": dict,
    "provenance": dict,
}
"""The keys of the file that describe and decide nothing, besides `calibrator.map`."""


def checksum(content: Mapping[str, object]) -> str:
    """Return the SHA-256 of the content in one canonical spelling, without its own entry."""
    rest = {name: value for name, value in content.items() if name != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode("ascii")).hexdigest()


def adaptation_values(adaptation: Adaptation) -> dict[str, object]:
    """Return the adaptation learned from datasets left out, as JSON values."""
    return {
        "contexts": dict(adaptation.contexts),
        "priors": dict(adaptation.priors),
        "misfit": _misfit_values(adaptation.misfit),
    }


def correction_values(correction: Correction) -> dict[str, object]:
    """Return the correction learned from labels of one dataset, as JSON values."""
    parts = {"covariance": correction.covariance.tolist(), "misfit": _misfit_values(correction.misfit)}
    return {**vars(correction), **parts}


def _misfit_values(misfit: Misfit) -> dict[str, object]:
    arrays = {"mean": misfit.mean, "covariance": misfit.covariance, "worst": misfit.worst}
    return {**vars(misfit), **{name: None if of is None else of.tolist() for name, of in arrays.items()}}


def voter_values(voter: Voter) -> dict[str, object]:
    """Return a voter, and the parts of its name."""
    parts = {"name": voter.name, "id": voter.id, "version": voter.version, "model": voter.model}
    return {**parts, "details": dict(voter.details)}


def table_values(table: Table) -> dict[str, object]:
    """Return the columns of a table of patterns."""
    return {name: None if values is None else values.tolist() for name, values in vars(table).items()}


def cell_values(kept: KeptCells) -> dict[str, object]:
    """Return the training cells, each with its count."""
    pattern, group, label = np.nonzero(kept.joint.counts)
    return {
        "group_by": kept.group_by,
        "groups": [
            {"dataset": dataset, "fold": fold} for dataset, fold in zip(kept.joint.groups, kept.folds, strict=True)
        ],
        "patterns": pattern_text(kept.joint.patterns),
        "cell_pattern": pattern.tolist(),
        "cell_group": group.tolist(),
        "cell_label": label.tolist(),
        "cell_count": kept.joint.counts[pattern, group, label].tolist(),
    }


def write_document(content: Mapping[str, object], path: str | Path) -> None:
    """Write what a model file holds with its checksum; a reader sees the old file or the new one, never a part."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"`path` must be a file in an existing folder. Got {str(path)!r}.")
    with whole_file(path) as scratch:
        scratch.write_text(_text(dict(content)) + "\n", encoding="ascii")


def _text(value: object, depth: int = 0) -> str:
    """Return JSON with an entry of an object a line, and arrays on one, so that people can read it."""
    inner = "\n" + " " * (depth + 1)
    if isinstance(value, dict) and value:
        entries = [f"{json.dumps(name)}: {_text(entry, depth + 1)}" for name, entry in value.items()]
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        entries = [json.dumps(entry, allow_nan=False) for entry in value]
    else:
        return json.dumps(value, allow_nan=False)
    start, end = "{}" if isinstance(value, dict) else "[]"
    return start + inner + f",{inner}".join(entries) + "\n" + " " * depth + end
