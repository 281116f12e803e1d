"""The model file: a table of its keys, and the JSON that it is written as; docs/model-file.md describes both."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from deep._util.checks import Floats, Votes, check_share
from deep._util.files import JsonObject, atomic_file
from deep._util.odds import P_MIN
from deep._util.scales import Scale
from deep.calibration import CALIBRATOR_NAMES
from deep.ensembles import ENSEMBLER_NAMES
from deep.exceptions import InputError
from deep.features import Cells, Linear
from deep.model import _kinds
from deep.model._average import AnswerMap
from deep.model._blend import Blend, Part, Trees, VoteForest, VoteSum
from deep.model._correction import Belief, BelievedPrior, Correction
from deep.model._kinds import (
    COUNT,
    NAME,
    NUMBER,
    OBJECT,
    OF_TYPE,
    EarlierValues,
    JsonKind,
    list_of,
    numbers,
    optional,
    require,
)
from deep.model._misfit import HeldOutData, Misfit
from deep.model._prior import SHIFTS, FixedPrior, LearnedPrior, PriorEstimate
from deep.model._scores import DecisionRule, KeptShare
from deep.model._table import ChainScorer, PatternTable, Voter, pattern_text, patterns_from_text
from deep.model._training import RECIPES, ChainSpec, FoldCells

# The name of the format, the first key of every model file.
FORMAT_NAME = "deep model"
# The oldest schema version that can be read.
OLDEST_SCHEMA = 4

# How a model can have been fitted.
FIT_METHODS = ("average", "chain", "own-labels", "stack", "votes")


def record(
    label: str,
    build: Callable[..., Any],
    *,
    take: Callable[[Any], EarlierValues] | None = None,
    uses: tuple[str, ...] = (),
    **entries: JsonKind,
) -> JsonKind:
    """Return the kind of objects that have these keys.

    Parameters
    ----------
    label : str
        What errors call it.
    build : callable
        From the values by key. The fields of a dataclass are keys too; where none is given, the type tells the kind.
    take : callable, optional
        From what `build` returns to its values by key, in the order in which they are written; those of other keys are
        written as they are, and not read. Default: attributes.
    uses : tuple of str
        Keys read before, outside of the object, that `build` takes too.
    **entries : JsonKind
        By key, in the order in which they are read, behind the fields of a dataclass.
    """
    # The fields of a dataclass in their order, then the other entries.
    hints = get_type_hints(build) if is_dataclass(build) else {}
    kinds = {key: entries[key] if key in entries else OF_TYPE[hints[key]] for key in hints if key not in uses} | entries
    values_of = take or attributes(*kinds)

    def read(value: Any, _: str, earlier: EarlierValues) -> Any:
        # Training cells have no label of their own, for they stand in two places; errors name their keys alone.
        require(isinstance(value, Mapping), f"{label or 'cells'} must be an object")
        own = {**earlier}
        for key, kind in kinds.items():
            own[key] = kind.read(value[key], f"{label}.{key}".lstrip("."), own)
        return build(**{key: own[key] for key in (*uses, *kinds)})

    def write(one: Any) -> dict[str, Any]:
        return {key: kinds[key].write(value) if key in kinds else value for key, value in values_of(one).items()}

    return JsonKind(read, write)


def attributes(*names: str) -> Callable[[Any], EarlierValues]:
    """Return a function that takes these attributes of an object."""
    return lambda one: {name: getattr(one, name) for name in names}


def tagged_kind(tag: str, kinds: Mapping[str, tuple[type, JsonKind]]) -> JsonKind:
    """Return the kind of objects of several classes, told apart by the name under the key `tag`."""
    tags = _kinds.one_of(kinds)

    def read(value: Any, where: str, earlier: EarlierValues) -> Any:
        return kinds[tags.read(value[tag], tag, earlier)][1].read(value, where, earlier)

    def write(one: Any) -> dict[str, Any]:
        name, kind = next((name, kind) for name, (cls, kind) in kinds.items() if isinstance(one, cls))
        return {tag: name, **kind.write(one)}

    return JsonKind(read, write)


def _is_above_zero(value: Any) -> bool:
    return bool(np.all(value > 0))


def _are_not_negative(value: Any) -> bool:
    return bool(np.all(value >= 0))


def _are_shares(value: Floats) -> bool:
    return bool(((value >= 0) & (value <= 1)).all())


def _are_ascending(values: Floats) -> bool:
    return bool((np.diff(values) > 0).all())


# Voters ---------------------------------------------------------------------------------------------------------------

# This constant, and each in capitals below it, is the kind (`JsonKind`) of the part of a model file that it names.
VOTERS = list_of(
    record("voters", Voter, take=attributes("name", "id", "version", "model", "details"), details=OBJECT)
).checked(lambda voters: 0 < len(voters) == len({voter.name for voter in voters}), "{} must be named once each")

# Training cells -------------------------------------------------------------------------------------------------------


def _read_cells(voters: tuple[Voter, ...], patterns: Votes, groups: tuple[str, ...], **arrays: Any) -> Cells:
    """Return training cells from their arrays."""
    # All that reads cells relies on patterns that come once each.
    require(len(np.unique(patterns, axis=0)) == len(patterns), "patterns must come once each")
    place, rows = (arrays["cell_pattern"], arrays["cell_group"], arrays["cell_label"]), arrays["cell_count"]
    shape = (len(patterns), len(groups), 2)
    # No fit writes a pattern or a group without rows.
    full = all(len(np.unique(axis)) == size for axis, size in zip(place[:2], shape, strict=False))
    require(full and rows.all(), "training_cells must have rows in every pattern, group and cell")
    require(len(np.unique(np.ravel_multi_index(place, shape))) == len(rows), "cells must come once each")
    counts = np.zeros(shape, dtype=np.int64)
    counts[place] = rows
    return Cells(patterns, counts, groups, tuple(voter.name for voter in voters))


def _write_cells(cells: Cells) -> JsonObject:
    """Return the arrays of training cells: each that has rows, with their number."""
    place = np.nonzero(cells.counts)
    arrays = dict(zip(("cell_pattern", "cell_group", "cell_label"), place, strict=True))
    return {"groups": cells.groups, "patterns": cells.patterns, **arrays, "cell_count": cells.counts[place]}


CELL_KINDS = {
    "groups": list_of(NAME),
    "patterns": JsonKind(
        lambda texts, _, earlier: patterns_from_text(list(texts), len(earlier["voters"])), pattern_text
    ),
    "cell_pattern": _kinds.whole_numbers(below="patterns"),
    "cell_group": _kinds.whole_numbers("cell_pattern", below="groups"),
    "cell_label": _kinds.whole_numbers("cell_pattern", below=2),
    "cell_count": _kinds.whole_numbers("cell_pattern"),
}

# The patterns are read once the voters are: their number is the length of a pattern.
CELLS = record("", _read_cells, take=_write_cells, uses=("voters",), **CELL_KINDS)

# Scorers --------------------------------------------------------------------------------------------------------------


def _read_trees(**arrays: Any) -> Trees:
    """Return trees from their arrays, in which every walk ends."""
    feature, left, right, roots = (arrays[name] for name in ("feature", "left", "right", "roots"))
    inner, nodes = feature >= 0, np.arange(len(feature))
    # Children stand behind their parent, so that no walk can go round in a circle.
    require((np.minimum(left, right)[inner] > nodes[inner]).all(), "trees must not turn back")
    require((left == nodes)[~inner].all() and (right == nodes)[~inner].all(), "trees must end in their leaves")
    require(len(roots) and roots[0] == 0 and _are_ascending(roots), "trees.roots must begin with 0 and ascend")
    # Nodes of one tree end where the next begins: a child beyond would lead into another tree.
    end = np.repeat(np.append(roots[1:], len(nodes)), np.diff(roots, append=len(nodes)))
    require((np.maximum(left, right) < end).all(), "trees must keep to their own nodes")
    return Trees(**arrays)


TREES = record(
    "trees",
    _read_trees,
    feature=_kinds.whole_numbers(low=-1, below="voters"),
    threshold=numbers("feature"),
    left=_kinds.whole_numbers("feature", below="feature"),
    right=_kinds.whole_numbers("feature", below="feature"),
    p=numbers("feature").checked(_are_shares, "{} must lie between 0 and 1"),
    roots=_kinds.whole_numbers(below="feature"),
)


SCALE = NAME.made_into(Scale.parse, str)

KNOTS = record(
    "knots",
    lambda places, shares: (places, shares),
    take=lambda pair: dict(zip(("places", "shares"), pair, strict=True)),
    places=numbers().checked(lambda places: len(places) and _are_ascending(places), "knots must ascend"),
    shares=numbers("places")
    .checked(lambda shares: (np.diff(shares) >= 0).all(), "knots must not fall")
    .checked(_are_shares, "{} must lie between 0 and 1"),
)

ANSWER_MAP = record(
    "answer_map",
    AnswerMap,
    scales=list_of(SCALE, "voters"),
    knots=list_of(KNOTS, "voters").made_into(list, tuple),
    log_odds=list_of(_kinds.one_of((True, False)), "voters"),
    centre=numbers("voters"),
    scale=numbers("voters").checked(_is_above_zero, "{} must be above 0"),
).checked(lambda one: not all(scale.binary for scale in one.scales), "{} must have a judge that does not vote")


def _read_chain(voters: tuple[Voter, ...], cells: JsonObject, table: PatternTable | None, **spec: Any) -> ChainScorer:
    """Return a chain; one without a table is fitted again from its cells when P is first wanted."""
    ensembler = spec.pop("ensembler")
    joint = _read_cells(voters, **{name: cells[name] for name in CELL_KINDS})
    require(len(cells["folds"]) == len(joint.groups), "folds must be one a group")
    require(joint.counts.sum(axis=0).any(axis=0).all(), "cells must hold both labels")
    training_cells = FoldCells(joint, cells["folds"], cells["group_by"], cells["weighting"])
    own = {"ensembler": ensembler["name"], "params": ensembler["params"], "random_state": ensembler["random_state"]}
    return ChainScorer(ChainSpec(**spec, **own), training_cells, table)


def _write_chain(scorer: ChainScorer) -> JsonObject:
    """Return the values of a chain that its file holds: what it was fitted on and, where it has one, its table."""
    spec, data = scorer.spec, scorer.cells
    cells = {**_write_cells(data.joint), **{name: getattr(data, name) for name in ("group_by", "folds", "weighting")}}
    if scorer.table is None:  # what a later fit from these cells must come back to
        cells["p"] = scorer.predict(data.joint.patterns).tolist()
    ensembler = {"name": spec.ensembler, "params": spec.params, "random_state": spec.random_state}
    calibrator, table = spec.calibrator, scorer.table
    return {"recipe": spec.recipe, "ensembler": ensembler, "calibrator": calibrator, "table": table, "cells": cells}


PATTERN_P = numbers(lambda earlier: 3 ** len(earlier["voters"])).checked(
    lambda p: p.min() >= P_MIN and p.max() <= 1 - P_MIN, "{} must not reach 0 or 1"
)

CHAIN = record(
    "chain",
    _read_chain,
    take=_write_chain,
    uses=("voters",),
    recipe=_kinds.one_of(RECIPES),
    ensembler=record(
        "ensembler", dict, take=dict, name=_kinds.one_of(ENSEMBLER_NAMES), params=OBJECT, random_state=COUNT
    ),
    calibrator=_kinds.one_of((None, *CALIBRATOR_NAMES)),
    table=optional(record("table", PatternTable, p=PATTERN_P, uncalibrated=PATTERN_P)),
    cells=record(
        "",
        dict,
        take=dict,
        uses=(),
        **CELL_KINDS,
        group_by=_kinds.one_of(("dataset", "fold")),
        folds=_kinds.whole_numbers().made_into(lambda array: tuple(array.tolist()), np.array),
        weighting=_kinds.one_of(("dataset", "dataset-class", "uniform")),
    ),
)

VOTE_SUM = record("scorer", Linear, ones=numbers("voters"), zeros=numbers("voters"))

SCORER = tagged_kind(
    "kind",
    {
        "chain": (ChainScorer, CHAIN),
        "vote-forest": (VoteForest, record("scorer", VoteForest, trees=TREES)),
        "vote-sum": (VoteSum, VOTE_SUM.made_into(VoteSum, attrgetter("linear"))),
    },
)

PART = record("parts", Part, take=attributes("name", "intercept", "slope", "context", "scorer"), scorer=SCORER)
PARTS = list_of(PART).checked(len, "{} must not be empty")

# The prior, and how far off P may be ----------------------------------------------------------------------------------


def _read_learned_prior(profiles: Floats, priors: Floats) -> LearnedPrior:
    require(len(profiles) == len(priors) > 0, "prior.profiles must be one a prior")
    require(bool((np.diff(profiles) >= 0).all()), "prior.profiles must not fall")
    return LearnedPrior().fit(profiles, priors)


def _is_covariance(matrix: Floats) -> bool:
    # Looser than equality, since rounding may leave the two apart in their last digits.
    symmetric = np.isclose(matrix[0, 1], matrix[1, 0], rtol=1e-6, atol=1e-12)
    return bool(symmetric and np.linalg.eigvalsh(matrix)[0] >= -1e-9 * np.abs(matrix).max())


COVARIANCE = (
    list_of(numbers())
    .made_into(np.array, list)
    .checked(lambda matrix: matrix.shape == (2, 2), "{} must be two by two")
    .checked(_is_covariance, "{} must be symmetric, and no variance below 0")
)
SLOPE = NUMBER.checked(_is_above_zero, "{} must be above 0")

ESTIMATE = record("prior", PriorEstimate, slope=SLOPE).checked(
    lambda prior: 0 < prior.low <= prior.estimate <= prior.high < 1,
    "{}.low, estimate and high must ascend between 0 and 1",
)

PANEL_PRIORS = {
    "fixed": (FixedPrior, ESTIMATE.made_into(FixedPrior, attrgetter("estimate"))),
    "learned": (
        LearnedPrior,
        record(
            "prior",
            _read_learned_prior,
            take=lambda rule: {"profiles": rule.profiles_, "priors": rule.priors_},
            profiles=list_of(numbers(len(SHIFTS))).made_into(np.array, list),
            priors=numbers().checked(_are_shares, "{} must lie between 0 and 1"),
        ),
    ),
}

BELIEVED_PRIOR = record(
    "prior",
    lambda low, high, panel: BelievedPrior(panel, Belief(low, high)),
    take=lambda rule: {**vars(rule.belief), "panel": rule.rule},
    low=NUMBER,
    high=NUMBER,
    panel=tagged_kind("rule", PANEL_PRIORS),
).checked(lambda rule: 0 < rule.belief.low < rule.belief.high < 1, "prior.low and high must ascend between 0 and 1")

PRIOR_RULE = tagged_kind("rule", {"believed": (BelievedPrior, BELIEVED_PRIOR), **PANEL_PRIORS})

MISFIT = record(
    "misfit",
    Misfit,
    mean=numbers(2),
    covariance=COVARIANCE,
    cell_spread=NUMBER.checked(_are_not_negative, "{} must be 0 or more"),
    worst=optional(numbers(2)),
)

CORRECTION = record("correction", Correction, uses=("misfit",), prior=ESTIMATE, slope=SLOPE, covariance=COVARIANCE)

WEIGHTS = numbers("log_odds").checked(_are_not_negative, "{} must be weights of 0 or more")

# Not by the fields of `HeldOutData`: the file's key is `log_odds`, and the field is `score`.
LEFT_OUT = record(
    "left_out",
    lambda log_odds, ones, zeros: HeldOutData(log_odds, ones, zeros),
    take=lambda one: {"log_odds": one.score, "ones": one.ones, "zeros": one.zeros},
    log_odds=numbers(),
    ones=WEIGHTS,
    zeros=WEIGHTS,
).checked(lambda one: one.ones.sum() > 0 and one.zeros.sum() > 0, "{} must hold both labels")


def _read_rule(decide: str, log_odds: float | None, kept: KeptShare | None) -> DecisionRule:
    """Return the rule of decision; the threshold of a rule by labels is in the file, of any other in its name."""
    rule = DecisionRule.parse(decide)
    if rule.by_labels:
        require(log_odds is not None and kept is not None, "decision must have a threshold by labels")
        return DecisionRule(decide, log_odds, kept)
    require(log_odds == rule.log_odds and kept is None, "decision must be as its name says")
    return rule


KEPT = record("decision", KeptShare).checked(
    lambda one: 0 <= one.low <= one.high <= 1 and 0 <= one.share <= 1, "decision must keep a share"
)

DECISION = record("decision", _read_rule, decide=NAME, log_odds=optional(NUMBER), kept=optional(KEPT))

# The table ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileField:
    """One key of the file.

    Parameters
    ----------
    key : str
        Its name in the file's JSON object.
    kind : JsonKind
        How its value is read and written.
    attribute : str, optional
        Of the model; default the key. ``fit_report``: an entry of the report.
    since : int
        The schema version that brought it; the highest of all fields is that of the file.
    default : object
        Its value where a file is of an earlier version.
    """

    key: str
    kind: JsonKind
    attribute: str = ""
    since: int = OLDEST_SCHEMA
    default: object = None

    def take(self, model: object) -> Any:
        """Return the value of a model."""
        value = getattr(model, self.attribute or self.key)
        return value[self.key] if self.attribute == "fit_report" else value


SHARE = NUMBER.checked(lambda value: 0 <= value <= 1, "{} must lie between 0 and 1")

DATASETS = _kinds.unchecked_type(dict).checked(
    lambda rows: all(isinstance(row, dict) and "prior" in row for row in rows.values()), "{} must have a prior each"
)

# The schema version from which on scores are answers of judges; those of earlier files had maps of another kind.
FIRST_SCHEMA_WITH_SCALES = 6

# The keys of the file, in the order in which they are written; a later one may rely on those before it.
FILE_FIELDS = (
    FileField("method", _kinds.one_of(FIT_METHODS)),
    FileField("voters", VOTERS),
    FileField("answer_map", optional(ANSWER_MAP), since=FIRST_SCHEMA_WITH_SCALES),
    FileField("target", optional(NAME)),
    FileField("created", _kinds.unchecked_type(str), "fit_report"),
    FileField("chosen", _kinds.unchecked_type(dict), "fit_report"),
    FileField("left_out_scores", _kinds.unchecked_type(dict), "fit_report"),
    FileField("notes", _kinds.unchecked_type(list), "fit_report"),
    FileField("training_datasets", DATASETS, "fit_report"),
    FileField("versions", _kinds.unchecked_type(dict), "fit_report"),
    FileField("provenance", _kinds.unchecked_type(dict), "fit_report"),
    FileField("prior", PRIOR_RULE, "prior_rule"),
    FileField("misfit", MISFIT),
    FileField("correction", optional(CORRECTION)),
    FileField("decision", DECISION, "rule"),
    FileField("context_weight", SHARE, since=5, default=0.0),
    FileField("contexts", numbers()),
    FileField("parts", PARTS.made_into(Blend, attrgetter("parts")), "blend"),
    FileField("left_out", _kinds.mapping_of(LEFT_OUT)),
    FileField("training_cells", CELLS, "cells"),
)

SCHEMA_VERSION = max(field.since for field in FILE_FIELDS)


def model_values(model: object) -> JsonObject:
    """Return the content of a model's file."""
    head = {"format": FORMAT_NAME, "schema_version": SCHEMA_VERSION}
    content = {**head, **{field.key: field.kind.write(field.take(model)) for field in FILE_FIELDS}}
    return {**content, "checksum": checksum(content)}


def model_arguments(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the model that a file's content describes.

    Raises
    ------
    KeyError, ValueError
        The content is not what `model_values` returns.
    """
    values: dict[str, Any] = {}
    if content["schema_version"] < FIRST_SCHEMA_WITH_SCALES:
        require(not content["score_names"], "score_names must be empty: scores are answers on a scale now. Fit again")
    for field in FILE_FIELDS:
        if field.since > content["schema_version"]:
            values[field.key] = field.default
            continue
        try:
            values[field.key] = field.kind.read(content[field.key], field.key, values)
        except KeyError as error:
            # The key that is missing, then the field that lacks it; once where both are the same.
            raise KeyError(*dict.fromkeys([*error.args, field.key])) from None
        except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"{field.key!r} is wrong, {error}") from None
    parts = values["parts"].parts
    chains = [isinstance(part.scorer, ChainScorer) for part in parts]
    require(chains == [True] if values["method"] == "chain" else not any(chains), "parts must fit the method")
    length = len(parts) + len(SHIFTS)
    require(len(values["contexts"]) == length, f"contexts must have {length} entries")
    require(values["correction"] is None or values["target"] is not None, "correction must have a target")
    report = {field.key: values[field.key] for field in FILE_FIELDS if field.attribute == "fit_report"}
    own = {field.attribute or field.key: values[field.key] for field in FILE_FIELDS if field.attribute != "fit_report"}
    return {**own, "fit_report": report}


def checksum(content: Mapping[str, object]) -> str:
    """Return the SHA-256 of the content in one canonical spelling, without its own entry."""
    # Keys are sorted and blanks left out, so that a file which an editor has only laid out anew still fits its
    # checksum.
    rest = {name: value for name, value in content.items() if name != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode("ascii")).hexdigest()


def write_document(content: Mapping[str, object], path: str | Path) -> None:
    """Write the content of a model file with its checksum; a reader sees the old file or the new one, never a part."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"`path` must be a file in an existing folder. Got {str(path)!r}.")
    with atomic_file(path) as scratch:
        scratch.write_text(_indented_json(dict(content)) + "\n", encoding="ascii")


def _indented_json(value: object, depth: int = 0) -> str:
    """Return JSON with an entry of an object a line, and arrays on one, so that people can read it."""
    inner = "\n" + " " * (depth + 1)
    if isinstance(value, dict) and value:
        entries = [f"{json.dumps(name)}: {_indented_json(entry, depth + 1)}" for name, entry in value.items()]
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        entries = [json.dumps(entry, allow_nan=False) for entry in value]
    else:
        return json.dumps(value, allow_nan=False)
    start, end = "{}" if isinstance(value, dict) else "[]"
    return start + inner + f",{inner}".join(entries) + "\n" + " " * depth + end


def check_prior(prior: float) -> float:
    """Return a class prior if it lies strictly between 0 and 1."""
    return check_share(prior, "prior")
