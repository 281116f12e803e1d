"""The content of a model file as a model: each value is checked before it is believed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats
from deep._util.names import check_name
from deep._util.odds import P_MIN
from deep.calibration import CALIBRATOR_CLASSES, NETCAL_CLASSES
from deep.ensembles import ENSEMBLER_NAMES
from deep.features import Cells
from deep.model.adaptation import (
    Correction,
    FixedPrior,
    LearnedPrior,
    LeftOut,
    Misfit,
    PriorEstimate,
    PriorRule,
    ShiftedPrior,
)
from deep.model.chain import RECIPES, ChainSpec, KeptCells, Weighting
from deep.model.file._document import REPORT
from deep.model.file._model import METHODS, Model
from deep.model.file._table import ChainScorer, Table, Voter, patterns_from_text
from deep.model.linear import Linear
from deep.model.score import Blend, Part, ScoreForest, Scorer, ScoreSum, Standardizer, Trees, VoteForest, VoteSum

Known = TypeVar("Known")

FileObject = Mapping[str, Any]
"""An object of the file, of which nothing is known before it is checked."""

LARGEST_NUMBER = 1e12
"""Log-odds, coefficients and counts lie far below: with more of them sums overflow."""

LARGEST_SCORE = 1e100
"""Scores come in any unit."""


def from_document(content: FileObject) -> Model:
    """Return the model that a file's content describes.

    Raises
    ------
    KeyError, TypeError, ValueError
        The content is not what `Model.document` returns.
    """
    for name, kind in REPORT.items():
        _expect(isinstance(content[name], kind), f"{name} must be a {kind.__name__}")
        _check_keys(content[name], name)
    with _key("training_datasets"):
        described = all(isinstance(row, dict) and "prior" in row for row in content["training_datasets"].values())
        _expect(described, "training_datasets must have a prior each")
    with _key("voters"):
        voters = tuple(Voter(_text(row["name"], "voters"), dict(row["details"])) for row in content["voters"])
        names = tuple(voter.name for voter in voters)
        _expect(0 < len(voters) == len(set(names)), "voters must be named once each")
    with _key("score_names"):
        score_names = tuple(_text(name, "score_names") for name in content["score_names"])
        _expect(len(set(score_names)) == len(score_names), "score_names must be named once each")
    with _key("parts"):
        parts = tuple(_part(row, names, len(score_names)) for row in content["parts"])
        method = _one_of(content["method"], METHODS, "method")
        _expect(bool(parts), "parts must not be empty")
        chains = [isinstance(part.scorer, ChainScorer) for part in parts]
        _expect(chains == [True] if method == "chain" else not any(chains), "parts must fit the method")
    contexts = sized(content["contexts"], len(parts), "contexts")
    with _key("prior"):
        rule = _rule(content["prior"], len(parts))
    with _key("misfit"):
        misfit = _misfit(content["misfit"])
    with _key("correction"):
        target = None if content["target"] is None else _text(content["target"], "target")
        correction = _correction(content["correction"], misfit)
        _expect(correction is None or target is not None, "correction must have a target")
    with _key("training_cells"):
        cells = _cells(content["training_cells"], names)
    with _key("left_out"):
        left_out = {_text(name, "left_out"): _left_out(one) for name, one in content["left_out"].items()}
    report = {name: content[name] for name in REPORT}
    return Model(
        voters, score_names, method, Blend(parts), rule, misfit, contexts, cells, left_out, report, target, correction
    )


def _check_keys(value: object, where: str) -> None:
    """Raise where a key within a value that is shown, the name of a dataset say, cannot stand on a line."""
    left = [value]
    while left:
        found = left.pop()
        if isinstance(found, dict):
            for name in found:
                check_name(name, where)
            left += found.values()
        elif isinstance(found, list):
            left += found


@contextmanager
def _key(name: str) -> Iterator[None]:
    """Say in which key of the file something is wrong."""
    try:
        yield
    except KeyError as error:
        raise KeyError(*dict.fromkeys([*error.args, name])) from None
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name!r} is wrong, {error}") from None


def _part(row: FileObject, names: tuple[str, ...], n_scores: int) -> Part:
    numbers = (_number(row[term], f"parts.{term}") for term in ("intercept", "slope", "context"))
    return Part(_text(row["name"], "parts"), _scorer(row["scorer"], names, n_scores), *numbers)


def _scorer(values: FileObject, names: tuple[str, ...], n_scores: int) -> Scorer:
    """Return the scorer of one part."""
    kind = _one_of(values["kind"], ("chain", "score-forest", "score-sum", "vote-forest", "vote-sum"), "kind")
    if kind == "vote-sum":
        ones, zeros = (sized(values[name], len(names), f"scorer.{name}") for name in ("ones", "zeros"))
        return VoteSum(Linear(_number(values["intercept"], "scorer.intercept"), ones, zeros))
    if kind == "vote-forest":
        return VoteForest(_trees(values["trees"], len(names)))
    if kind == "score-forest":
        return ScoreForest(_standardizer(values["standardizer"], n_scores), _trees(values["trees"], n_scores))
    if kind == "score-sum":
        columns = tuple(_whole(list(values["columns"]), n_scores, "scorer.columns").tolist())
        coef = sized(values["coef"], len(columns), "scorer.coef")
        standardizer = _standardizer(values["standardizer"], len(columns))
        return ScoreSum(columns, standardizer, _number(values["intercept"], "scorer.intercept"), coef)
    return _chain(values, names)


def _chain(values: FileObject, names: tuple[str, ...]) -> ChainScorer:
    made, cells = values["ensembler"], values["cells"]
    spec = ChainSpec(
        recipe=_one_of(values["recipe"], RECIPES, "recipe"),
        ensembler=_one_of(made["name"], ENSEMBLER_NAMES, "ensembler"),
        params=dict(made["params"]),
        calibrator=_one_of(values["calibrator"], (None, *CALIBRATOR_CLASSES, *NETCAL_CLASSES), "calibrator"),
        random_state=_count(made["random_state"], "ensembler.random_state"),
    )
    joint = _cells(cells, names)
    folds = _whole(list(cells["folds"]), None, "folds")
    _expect(len(folds) == len(joint.groups), "folds must be one a group")
    _expect(bool(joint.counts.sum(axis=0).any(axis=0).all()), "cells must hold both labels")
    group_by = _one_of(cells["group_by"], ("dataset", "fold"), "group_by")
    weighed = cast("Weighting", _one_of(cells["weighting"], ("dataset", "dataset-class", "uniform"), "weighting"))
    return ChainScorer(
        spec, KeptCells(joint, tuple(folds.tolist()), group_by, weighed), _table(values["table"], len(names))
    )


def _trees(values: FileObject, n_features: int) -> Trees:
    n = len(values["feature"])
    left, right, roots = (_whole(list(values[name]), n, f"trees.{name}") for name in ("left", "right", "roots"))
    feature = np.array(values["feature"])
    _expect(set(map(type, values["feature"])) <= {int}, "trees.feature must be whole numbers")
    _expect(bool(((feature >= -1) & (feature < n_features)).all()), "trees.feature is out of range")
    threshold, p = (sized(values[name], n, f"trees.{name}") for name in ("threshold", "p"))
    _expect(bool(((p >= 0) & (p <= 1)).all()), "trees.p must lie between 0 and 1")
    _expect(len(roots) > 0 and len(left) == len(right) == n, "trees must have arrays of one length")
    # Children stand behind their parent, so that no walk can go round in a circle.
    inner, nodes = feature >= 0, np.arange(n)
    _expect(bool((np.minimum(left, right)[inner] > nodes[inner]).all()), "trees must not turn back")
    _expect(bool((left == nodes)[~inner].all() and (right == nodes)[~inner].all()), "trees must end in their leaves")
    starts = bool(roots[0] == 0 and (np.diff(roots) > 0).all())
    _expect(starts, "trees.roots must begin with 0 and ascend")
    end = np.repeat(np.append(roots[1:], n), np.diff(roots, append=n))
    _expect(bool((np.maximum(left, right) < end).all()), "trees must keep to their own nodes")
    return Trees(
        feature.astype(np.intp), threshold, left.astype(np.intp), right.astype(np.intp), p, roots.astype(np.intp)
    )


def _standardizer(values: FileObject, n: int) -> Standardizer:
    knots = []
    for row in values["knots"]:
        scores = _numbers(row["scores"], "knots", LARGEST_SCORE)
        ranks = sized(row["ranks"], len(scores), "knots")
        ascending = bool((np.diff(scores) > 0).all() and (np.diff(ranks) >= 0).all())
        _expect(len(scores) > 0 and ascending, "knots must ascend")
        _expect(bool(((ranks >= 0) & (ranks <= 1)).all()), "knots must have ranks between 0 and 1")
        knots.append((scores, ranks))
    _expect(len(knots) == n, "knots must be one a column")
    centre, scale = (sized(values[name], n, f"standardizer.{name}") for name in ("centre", "scale"))
    _expect(bool((scale > 0).all()), "standardizer.scale must be above 0")
    return Standardizer(knots, centre, scale)


def _rule(values: FileObject, n_parts: int) -> PriorRule:
    kind = _one_of(values["rule"], ("fixed", "learned", "shifted"), "rule")
    if kind == "fixed":
        estimate, low, high = (_number(values[name], f"prior.{name}") for name in ("estimate", "low", "high"))
        _expect(0 < low <= estimate <= high < 1, "prior.low, estimate and high must ascend between 0 and 1")
        warning = values["warning"]
        _expect(warning is None or isinstance(warning, str), "prior.warning must be text")
        return FixedPrior(PriorEstimate(estimate, low, high, warning))
    statistics = np.array([sized(row, n_parts, "prior.statistics") for row in values["statistics"]])
    priors = _numbers(values["priors"], "prior.priors")
    _expect(bool(((priors >= 0) & (priors <= 1)).all()), "prior.priors must lie between 0 and 1")
    if kind == "learned":
        return LearnedPrior().fit(statistics, priors)
    means = values["class_means"]
    if means is not None:
        means = np.array([[sized(pair, 2, "prior.class_means") for pair in row] for row in means])
        _expect(means.shape == (*statistics.shape, 2), "prior.class_means must be two a statistic")
        _expect(bool(((means >= 0) & (means <= 1)).all()), "prior.class_means must lie between 0 and 1")
    return ShiftedPrior().fit(statistics, priors, means)


def _left_out(values: FileObject) -> LeftOut:
    score = _numbers(values["log_odds"], "left_out.log_odds")
    ones, zeros = (sized(values[name], len(score), f"left_out.{name}") for name in ("ones", "zeros"))
    _expect(
        len(score) > 0 and bool((ones >= 0).all() and (zeros >= 0).all()), "left_out must have weights of 0 or more"
    )
    _expect(bool(ones.sum() > 0 and zeros.sum() > 0), "left_out must hold both labels")
    return LeftOut(score, ones, zeros)


def _correction(values: FileObject | None, misfit: Misfit) -> Correction | None:
    if values is None:
        return None
    names = ("prior", "intercept", "slope", "threshold", "n_effective")
    numbers = {name: _number(values[name], f"correction.{name}") for name in names}
    _expect(0 < numbers["prior"] < 1, "correction.prior must lie between 0 and 1")
    _expect(numbers["slope"] > 0, "correction.slope must be above 0")
    return Correction(
        covariance=_covariance(values["covariance"]),
        n_labels=_count(values["n_labels"], "correction.n_labels"),
        misfit=misfit,
        **numbers,
    )


def _misfit(values: FileObject) -> Misfit:
    cell_spread = _number(values["cell_spread"], "misfit.cell_spread")
    _expect(cell_spread >= 0, "misfit.cell_spread must be 0 or more")
    worst = None if values["worst"] is None else sized(values["worst"], 2, "misfit.worst")
    return Misfit(
        mean=sized(values["mean"], 2, "misfit.mean"),
        covariance=_covariance(values["covariance"]),
        n_datasets=_count(values["n_datasets"], "misfit.n_datasets"),
        cell_spread=cell_spread,
        worst=worst,
    )


def _table(values: FileObject | None, n_voters: int) -> Table | None:
    if values is None:
        return None
    columns = {name: sized(values[name], 3**n_voters, f"table.{name}") for name in ("p", "uncalibrated")}
    for name, shares in columns.items():
        _expect(shares.min() >= P_MIN and shares.max() <= 1 - P_MIN, f"table.{name} must not reach 0 or 1")
    return Table(**columns)


def _cells(values: FileObject, names: tuple[str, ...]) -> Cells:
    patterns = patterns_from_text(list(values["patterns"]), len(names))
    groups = tuple(_text(name, "groups") for name in values["groups"])
    shape = (len(patterns), len(groups), 2)
    place = tuple(
        _whole(values[f"cell_{axis}"], size, f"cell_{axis}")
        for axis, size in zip(("pattern", "group", "label"), shape, strict=True)
    )
    n = _whole(values["cell_count"], None, "cell_count")
    _expect({len(axis) for axis in place} == {len(n)}, "training_cells must have arrays of one length")
    _expect(len(np.unique(patterns, axis=0)) == len(patterns), "patterns must come once each")
    used = all(len(np.unique(axis)) == size for axis, size in zip(place[:2], shape, strict=False))
    _expect(used and bool(n.all()), "training_cells must have rows in every pattern, group and cell")
    _expect(len(np.unique(np.ravel_multi_index(place, shape))) == len(n), "cells must come once each")
    counts = np.zeros(shape, dtype=np.int64)
    counts[place] = n
    return Cells(patterns, counts, groups, names)


def _expect(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(rule)


def _one_of(value: Known, allowed: Iterable[Known], name: str) -> Known:
    _expect(value in tuple(allowed), f"{name} must be known, not {value!r}")
    return value


def _text(value: object, name: str) -> str:
    _expect(isinstance(value, str), f"{name} must have names that are text")
    return check_name(cast("str", value), name)


def _numbers(values: object, name: str, largest: float = LARGEST_NUMBER) -> Floats:
    """Return a JSON array of numbers; a text or a boolean is none."""
    numbers = isinstance(values, list) and set(map(type, values)) <= {int, float}
    _expect(numbers, f"{name} must hold numbers")
    found = np.array(values, dtype=np.float64)
    _expect(bool((np.abs(found) <= largest).all()), f"{name} must lie within {largest:.0e}")
    return found


def sized(values: object, length: int, name: str) -> Floats:
    """Return a JSON array of so many numbers."""
    found = _numbers(values, name)
    _expect(found.shape == (length,), f"{name} must have {length} entries")
    return found


def _number(value: object, name: str) -> float:
    return float(_numbers([value], name)[0])


def _count(value: object, name: str) -> int:
    return int(_whole([value], None, name)[0])


def _covariance(values: Sequence[object]) -> Floats:
    found = np.array([_numbers(row, "covariance") for row in values])
    _expect(found.shape == (2, 2), "covariance must be two by two")
    symmetric = bool(np.isclose(found[0, 1], found[1, 0], rtol=1e-6, atol=1e-12))
    spread = float(np.linalg.eigvalsh(found)[0]) >= -1e-9 * float(np.abs(found).max())
    _expect(symmetric and spread, "covariance must be symmetric, and no variance below 0")
    return found


def _whole(values: list[object], below: int | None, name: str) -> npt.NDArray[np.int64]:
    _expect(set(map(type, values)) <= {int}, f"{name} must be whole numbers")
    found = np.array(values, dtype=np.int64)
    _expect(bool((found >= 0).all()) and (below is None or bool((found < below).all())), f"{name} is out of range")
    return found
