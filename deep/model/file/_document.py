"""A model as JSON values, and back: what docs/model-file.md describes."""

from collections.abc import Mapping
from hashlib import sha256
from json import dumps
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep.calibration import CALIBRATORS
from deep.ensembles import ENSEMBLERS
from deep.features import Cells
from deep.model.chain import RECIPES, ChainSpec, KeptCells, Weighting
from deep.model.file._model import Model
from deep.model.file._table import Table, pattern_text, patterns_from_text
from deep.model.file._voters import Voter
from deep.model.target import Adaptation, Correction, Misfit, Transfer

__all__ = ["FORMAT", "SCHEMA_VERSION", "checksum", "from_document", "to_document"]

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


TABLE = ("p", "uncalibrated", "low", "high")


def checksum(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the content in one canonical spelling, without its own entry."""
    rest = {name: value for name, value in content.items() if name != "checksum"}
    text = dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode("ascii")).hexdigest()


def to_document(model: Model) -> dict[str, Any]:
    """Return what the file of a model holds; its floats come back as they are."""
    spec, report = model.spec, model.report
    content = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "voters": [_voter(voter) for voter in model.voters],
        "recipe": spec.recipe,
        "weighting": model.kept.weighting,
        "ensembler": {"name": spec.ensembler, "params": dict(spec.params), "random_state": spec.random_state},
        "calibrator": {"name": spec.calibrator, "map": report["calibrator_map"]},
        "interval": None if model.transfer is None else vars(model.transfer),
        "adaptation": None if model.adaptation is None else _adaptation_values(model.adaptation),
        "correction": None if model.correction is None else _correction_values(model.correction),
        **{name: report[name] for name in REPORT},
        "table": None if model.table is None else _columns(model.table),
        "training_cells": _cells(model),
    }
    return {**content, "checksum": checksum(content)}


def _adaptation_values(adaptation: Adaptation) -> dict[str, Any]:
    return {
        "contexts": dict(adaptation.contexts),
        "priors": dict(adaptation.priors),
        "misfit": _misfit_values(adaptation.misfit),
    }


def _correction_values(correction: Correction) -> dict[str, Any]:
    parts = {"covariance": correction.covariance.tolist(), "misfit": _misfit_values(correction.misfit)}
    return {**vars(correction), **parts}


def _misfit_values(misfit: Misfit) -> dict[str, Any]:
    return {**vars(misfit), "second_moment": misfit.second_moment.tolist()}


def _voter(voter: Voter) -> dict[str, Any]:
    parts = {"name": voter.name, "id": voter.id, "version": voter.version, "model": voter.model}
    return {**parts, "details": dict(voter.details)}


def _columns(table: Table) -> dict[str, Any]:
    return {name: None if values is None else values.tolist() for name, values in vars(table).items()}


def _cells(model: Model) -> dict[str, Any]:
    """Return the training cells, each with its count; where there is no table, with P for a check."""
    kept = model.kept
    pattern, group, label = np.nonzero(kept.joint.counts)
    values: dict[str, Any] = {
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
    if model.table is None:
        values["p"] = model.predict(kept.joint.patterns).tolist()
    return values


def from_document(content: Mapping[str, Any]) -> Model:
    """Return the model that a file's content describes.

    Raises
    ------
    KeyError, TypeError, ValueError
        The content is not what `to_document` writes.
    """
    for name, kind in REPORT.items():
        _expect(isinstance(content[name], kind), f"{name} must be a {kind.__name__}")
    voters = tuple(Voter(_text(row["name"], "voters"), dict(row["details"])) for row in content["voters"])
    _expect(0 < len(voters) == len({voter.name for voter in voters}), "voters must be named once each")
    made = content["ensembler"]
    spec = ChainSpec(
        recipe=_one_of(content["recipe"], RECIPES, "recipe"),
        ensembler=_one_of(made["name"], ENSEMBLERS, "ensembler"),
        params=dict(made["params"]),
        calibrator=_one_of(content["calibrator"]["name"], (None, *CALIBRATORS), "calibrator"),
        random_state=int(made["random_state"]),
    )
    kept = _kept(content["training_cells"], tuple(voter.name for voter in voters), content["weighting"])
    report = {**{name: content[name] for name in REPORT}, "calibrator_map": content["calibrator"]["map"]}
    return Model(
        voters=voters,
        spec=spec,
        kept=kept,
        transfer=_transfer(content["interval"]),
        adaptation=_adaptation(content["adaptation"]),
        table=_table(content["table"], len(voters)),
        report=report,
        correction=_correction(content["correction"]),
    )


def _expect(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(rule)


def _one_of(value: Any, allowed: Any, name: str) -> Any:
    _expect(value in tuple(allowed), f"{name} must be known, not {value!r}")
    return value


def _text(value: Any, name: str) -> str:
    _expect(isinstance(value, str), f"{name} must have names that are text")
    return cast("str", value)


def _transfer(values: Any) -> Transfer | None:
    if values is None:
        return None
    shifts = {str(name): float(shift) for name, shift in values["shifts"].items()}
    return Transfer(float(values["level"]), shifts, float(values["spread"]), float(values["quantile"]))


def _adaptation(values: Any) -> Adaptation | None:
    if values is None:
        return None
    contexts, priors = (
        {str(name): _finite(value) for name, value in values[part].items()} for part in ("contexts", "priors")
    )
    _expect(len(contexts) > 0 and set(contexts) == set(priors), "adaptation must have the same datasets throughout")
    _expect(all(0 <= prior <= 1 for prior in priors.values()), "priors must lie between 0 and 1")
    return Adaptation(contexts, priors, _misfit(values["misfit"]))


def _correction(values: Any) -> Correction | None:
    if values is None:
        return None
    numbers = {name: _finite(values[name]) for name in ("prior", "intercept", "slope")}
    _expect(0 < numbers["prior"] < 1, "correction.prior must lie between 0 and 1")
    return Correction(
        prior=numbers["prior"],
        intercept=numbers["intercept"],
        slope=numbers["slope"],
        covariance=_square(values["covariance"]),
        n_labels=int(values["n_labels"]),
        misfit=_misfit(values["misfit"]),
    )


def _misfit(values: Any) -> Misfit:
    return Misfit(_square(values["second_moment"]), int(values["n_datasets"]), _finite(values["cell_spread"]))


def _finite(value: Any) -> float:
    number = float(value)
    _expect(bool(np.isfinite(number)), "numbers must be finite")
    return number


def _square(values: Any) -> Floats:
    found = np.array(values, dtype=np.float64)
    _expect(found.shape == (2, 2) and bool(np.isfinite(found).all()), "a covariance must be two by two")
    return found


def _table(values: Any, n_voters: int) -> Table | None:
    if values is None:
        return None
    p, raw, low, high = (_shares(values[name], 3**n_voters, f"table.{name}") for name in TABLE)
    _expect((low is None) == (high is None), "table must have low and high or neither")
    if p is None or raw is None:
        raise ValueError("table must have p and uncalibrated")
    return Table(p, raw, low, high)


def _shares(values: Any, length: int, name: str) -> Floats | None:
    if values is None:
        return None
    found = np.array(values, dtype=np.float64)
    _expect(found.shape == (length,), f"{name} must have {length} entries")
    _expect(bool(((found >= 0) & (found <= 1)).all()), f"{name} must lie between 0 and 1")
    return found


def _whole(values: Any, below: int | None, name: str) -> npt.NDArray[np.int64]:
    found = np.array(values)
    _expect(found.dtype == np.int64 and found.ndim == 1, f"{name} must be whole numbers")
    _expect(bool((found >= 0).all()) and (below is None or bool((found < below).all())), f"{name} is out of range")
    return found


def _kept(values: Any, names: tuple[str, ...], weighting: Any) -> KeptCells:
    patterns = patterns_from_text(list(values["patterns"]), len(names))
    groups = [(_text(row["dataset"], "groups"), row["fold"]) for row in values["groups"]]
    folds = _whole([fold for _, fold in groups], None, "folds")
    counts = np.zeros((len(patterns), len(groups), 2), dtype=np.int64)
    place = tuple(
        _whole(values[f"cell_{axis}"], size, f"cell_{axis}")
        for axis, size in zip(("pattern", "group", "label"), counts.shape, strict=True)
    )
    n = _whole(values["cell_count"], None, "cell_count")
    _expect({len(axis) for axis in place} == {len(n)}, "training_cells must have arrays of one length")
    np.add.at(counts, place, n)
    _expect(bool(counts.sum(axis=0).any(axis=0).all()), "training_cells must hold both labels")
    joint = Cells(patterns, counts, tuple(dataset for dataset, _ in groups), names)
    group_by = _one_of(values["group_by"], ("dataset", "fold"), "group_by")
    weighed = cast("Weighting", _one_of(weighting, ("dataset", "dataset-class", "uniform"), "weighting"))
    return KeptCells(joint, tuple(folds.tolist()), group_by, weighed)
