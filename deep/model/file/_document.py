"""The parts of a model as JSON values, and the file they are written to; docs/model-file.md describes it."""

import json
from collections.abc import Mapping
from functools import singledispatch
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deep._util.checks import check_share
from deep._util.files import JsonObject, whole_file
from deep.exceptions import InputError
from deep.features import Cells
from deep.model.adaptation import BelievedPrior, Correction, FixedPrior, LearnedPrior, LeftOut, Misfit
from deep.model.file._table import ChainScorer, Table, Voter, pattern_text
from deep.model.score import Part, ScoreForest, ScoreSum, Standardizer, Trees, VoteForest, VoteSum

if TYPE_CHECKING:
    from deep.model.file._model import Model

FORMAT = "deep model"
SCHEMA_VERSION = 4

REPORT = {
    "created": str,
    "chosen": dict,
    "left_out_scores": dict,
    "notes": list,
    "training_datasets": dict,
    "versions": dict,
    "provenance": dict,
}
"""The keys of the file that describe and decide nothing."""


def model_values(model: "Model") -> JsonObject:
    """Return the content of a model's file."""
    content = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "method": model.method,
        "voters": [voter_values(voter) for voter in model.voters],
        "score_names": list(model.score_names),
        "target": model.target,
        **{name: model.report[name] for name in REPORT},
        "prior": rule_values(model.prior_rule),
        "misfit": misfit_values(model.misfit),
        "correction": None if model.correction is None else correction_values(model.correction),
        "decision": model.rule.values(),
        "contexts": model.contexts.tolist(),
        "parts": [part_values(part) for part in model.blend.parts],
        "left_out": {name: left_out_values(one) for name, one in model.left_out.items()},
        "training_cells": cell_values(model.cells),
    }
    return {**content, "checksum": checksum(content)}


def checksum(content: Mapping[str, object]) -> str:
    """Return the SHA-256 of the content in one canonical spelling, without its own entry."""
    rest = {name: value for name, value in content.items() if name != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode("ascii")).hexdigest()


def part_values(part: Part) -> JsonObject:
    """Return one part of a blend."""
    terms = {name: getattr(part, name) for name in ("name", "intercept", "slope", "context")}
    return {**terms, "scorer": scorer_values(part.scorer)}


@singledispatch
def scorer_values(scorer: object) -> JsonObject:
    """Return a scorer, with its kind."""
    raise TypeError(f"no file holds a {type(scorer).__name__}")


@scorer_values.register
def _vote_sum(scorer: VoteSum) -> JsonObject:
    linear = scorer.linear
    return {"kind": "vote-sum", "intercept": linear.intercept, "ones": _list(linear.ones), "zeros": _list(linear.zeros)}


@scorer_values.register
def _score_sum(scorer: ScoreSum) -> JsonObject:
    return {
        "kind": "score-sum",
        "columns": list(scorer.columns),
        "standardizer": _standardizer(scorer.standardizer),
        "intercept": scorer.intercept,
        "coef": _list(scorer.coef),
    }


@scorer_values.register
def _vote_forest(scorer: VoteForest) -> JsonObject:
    return {"kind": "vote-forest", "trees": _trees(scorer.trees)}


@scorer_values.register
def _score_forest(scorer: ScoreForest) -> JsonObject:
    return {
        "kind": "score-forest",
        "standardizer": _standardizer(scorer.standardizer),
        "trees": _trees(scorer.trees),
    }


@scorer_values.register
def _chain(scorer: ChainScorer) -> JsonObject:
    spec, kept = scorer.spec, scorer.kept
    cells = cell_values(kept.joint)
    cells |= {"group_by": kept.group_by, "folds": list(kept.folds), "weighting": kept.weighting}
    if scorer.table is None:  # what a later fit from these cells must come back to
        cells["p"] = _list(scorer.predict(kept.joint.patterns))
    return {
        "kind": "chain",
        "recipe": spec.recipe,
        "ensembler": {"name": spec.ensembler, "params": dict(spec.params), "random_state": spec.random_state},
        "calibrator": spec.calibrator,
        "table": None if scorer.table is None else table_values(scorer.table),
        "cells": cells,
    }


def _standardizer(found: Standardizer) -> JsonObject:
    knots = [{"scores": _list(scores), "ranks": _list(ranks)} for scores, ranks in found.knots]
    return {"knots": knots, "centre": _list(found.centre), "scale": _list(found.scale)}


def _trees(trees: Trees) -> JsonObject:
    return {name: _list(values) for name, values in trees.arrays().items()}


def rule_values(rule: object) -> JsonObject:
    """Return how a prior is estimated."""
    if isinstance(rule, FixedPrior):
        return {"rule": "fixed", **vars(rule.estimate)}
    if isinstance(rule, BelievedPrior):
        return {"rule": "believed", **vars(rule.belief), "panel": rule_values(rule.rule)}
    assert isinstance(rule, LearnedPrior)  # the other one
    return {"rule": "learned", "profiles": rule.profiles_.tolist(), "priors": _list(rule.priors_)}


def misfit_values(misfit: Misfit) -> JsonObject:
    """Return how far P may be off."""
    parts = {name: getattr(misfit, name) for name in ("n_datasets", "cell_spread")}
    worst = None if misfit.worst is None else _list(misfit.worst)
    return {"mean": _list(misfit.mean), "covariance": misfit.covariance.tolist(), **parts, "worst": worst}


def correction_values(correction: Correction) -> JsonObject:
    """Return the correction learned from labels of one dataset."""
    rest = {name: value for name, value in vars(correction).items() if name != "misfit"}
    return {**rest, "prior": dict(vars(correction.prior)), "covariance": correction.covariance.tolist()}


def left_out_values(one: LeftOut) -> JsonObject:
    """Return a training dataset's log-odds by fits without it."""
    return {"log_odds": _list(one.score), "ones": _list(one.ones), "zeros": _list(one.zeros)}


def voter_values(voter: Voter) -> JsonObject:
    """Return a voter, and the parts of its name."""
    parts = {"name": voter.name, "id": voter.id, "version": voter.version, "model": voter.model}
    return {**parts, "details": dict(voter.details)}


def table_values(table: Table) -> JsonObject:
    """Return the columns of a table of patterns."""
    return {name: _list(values) for name, values in vars(table).items()}


def cell_values(cells: Cells) -> JsonObject:
    """Return training cells, each with its count."""
    pattern, group, label = np.nonzero(cells.counts)
    return {
        "groups": list(cells.groups),
        "patterns": pattern_text(cells.patterns),
        "cell_pattern": pattern.tolist(),
        "cell_group": group.tolist(),
        "cell_label": label.tolist(),
        "cell_count": cells.counts[pattern, group, label].tolist(),
    }


def _list(values: npt.NDArray[Any]) -> list[Any]:
    return list(values.tolist())


def write_document(content: Mapping[str, object], path: str | Path) -> None:
    """Write the content of a model file with its checksum; a reader sees the old file or the new one, never a part."""
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


def check_prior(prior: float) -> float:
    """Return a class prior if it lies strictly between 0 and 1."""
    return check_share(prior, "prior")
