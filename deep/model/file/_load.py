"""Read a model file: JSON that is checked value by value before it is believed."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from os import PathLike
from pathlib import Path
from platform import python_version
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
import numpy.typing as npt

from deep import __version__
from deep._util.checks import Floats, check_kind
from deep._util.files import LARGEST_MODEL, read_bytes
from deep._util.names import check_name
from deep._util.odds import P_MIN
from deep.calibration import CALIBRATOR_NAMES
from deep.ensembles import ENSEMBLER_NAMES
from deep.exceptions import InputError
from deep.features import Cells
from deep.model import adaptation, score
from deep.model.chain import RECIPES, ChainSpec, KeptCells, Weighting
from deep.model.file._document import FORMAT, REPORT, SCHEMA_VERSION, checksum
from deep.model.file._model import METHODS, Model
from deep.model.file._table import ChainScorer, Table, Voter, patterns_from_text
from deep.model.linear import Linear

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
    contexts = sized(content["contexts"], len(parts) + len(adaptation.SHIFTS), "contexts")
    with _key("prior"):
        rule = _rule(content["prior"])
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
    with _key("decision"):
        decision = _decision(content["decision"])
    report = {name: content[name] for name in REPORT}
    blend, parts_of_target = score.Blend(parts), (target, correction, decision)
    return Model(voters, score_names, method, blend, rule, misfit, contexts, cells, left_out, report, *parts_of_target)


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


def _part(row: FileObject, names: tuple[str, ...], n_scores: int) -> score.Part:
    numbers = (_number(row[term], f"parts.{term}") for term in ("intercept", "slope", "context"))
    return score.Part(_text(row["name"], "parts"), _scorer(row["scorer"], names, n_scores), *numbers)


def _scorer(values: FileObject, names: tuple[str, ...], n_scores: int) -> score.Scorer:
    """Return the scorer of one part."""
    kind = _one_of(values["kind"], ("chain", "score-forest", "score-sum", "vote-forest", "vote-sum"), "kind")
    if kind == "vote-sum":
        ones, zeros = (sized(values[name], len(names), f"scorer.{name}") for name in ("ones", "zeros"))
        return score.VoteSum(Linear(_number(values["intercept"], "scorer.intercept"), ones, zeros))
    if kind == "vote-forest":
        return score.VoteForest(_trees(values["trees"], len(names)))
    if kind == "score-forest":
        return score.ScoreForest(_standardizer(values["standardizer"], n_scores), _trees(values["trees"], n_scores))
    if kind == "score-sum":
        columns = tuple(_whole(list(values["columns"]), n_scores, "scorer.columns").tolist())
        coef = sized(values["coef"], len(columns), "scorer.coef")
        standardizer = _standardizer(values["standardizer"], len(columns))
        return score.ScoreSum(columns, standardizer, _number(values["intercept"], "scorer.intercept"), coef)
    return _chain(values, names)


def _chain(values: FileObject, names: tuple[str, ...]) -> ChainScorer:
    made, cells = values["ensembler"], values["cells"]
    spec = ChainSpec(
        recipe=_one_of(values["recipe"], RECIPES, "recipe"),
        ensembler=_one_of(made["name"], ENSEMBLER_NAMES, "ensembler"),
        params=dict(made["params"]),
        calibrator=_one_of(values["calibrator"], (None, *CALIBRATOR_NAMES), "calibrator"),
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


def _trees(values: FileObject, n_features: int) -> score.Trees:
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
    return score.Trees(
        feature.astype(np.intp), threshold, left.astype(np.intp), right.astype(np.intp), p, roots.astype(np.intp)
    )


def _standardizer(values: FileObject, n: int) -> score.Standardizer:
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
    return score.Standardizer(knots, centre, scale)


def _rule(values: FileObject) -> adaptation.PriorRule:
    kind = _one_of(values["rule"], ("believed", "fixed", "learned"), "rule")
    if kind == "fixed":
        return adaptation.FixedPrior(_estimate(values))
    if kind == "believed":
        low, high = (_number(values[name], f"prior.{name}") for name in ("low", "high"))
        _expect(0 < low < high < 1, "prior.low and high must ascend between 0 and 1")
        _expect(values["panel"]["rule"] != "believed", "prior.panel must be a panel's")
        return adaptation.BelievedPrior(_rule(values["panel"]), adaptation.Belief(low, high))
    profiles = np.array([sized(row, len(adaptation.SHIFTS), "prior.profiles") for row in values["profiles"]])
    priors = _numbers(values["priors"], "prior.priors")
    _expect(len(profiles) == len(priors) > 0, "prior.profiles must be one a prior")
    _expect(bool((np.diff(profiles) >= 0).all()), "prior.profiles must not fall")
    _expect(bool(((priors >= 0) & (priors <= 1)).all()), "prior.priors must lie between 0 and 1")
    return adaptation.LearnedPrior().fit(profiles, priors)


def _estimate(values: FileObject) -> adaptation.PriorEstimate:
    estimate, low, high, slope = (
        _number(values[name], f"prior.{name}") for name in ("estimate", "low", "high", "slope")
    )
    _expect(0 < low <= estimate <= high < 1, "prior.low, estimate and high must ascend between 0 and 1")
    _expect(slope > 0, "prior.slope must be above 0")
    warning = values["warning"]
    _expect(warning is None or isinstance(warning, str), "prior.warning must be text")
    intercept = None if values["intercept"] is None else _number(values["intercept"], "prior.intercept")
    return adaptation.PriorEstimate(estimate, low, high, warning, intercept, slope)


def _decision(values: FileObject) -> score.DecisionRule:
    """Return the rule of decision; that of a rule by labels is in the file, of any other in its name."""
    rule, found = score.DecisionRule.parse(_text(values["decide"], "decision")), values["kept"]
    if not rule.by_labels:
        _expect(values["log_odds"] == rule.log_odds and found is None, "decision must be as its name says")
        return rule
    share, low, high = (_number(found[name], f"decision.{name}") for name in ("share", "low", "high"))
    _expect(0 <= low <= high <= 1 and 0 <= share <= 1, "decision must keep a share")
    kept = score.Kept(
        share, low, high, _count(found["n_labels"], "decision.n_labels"), _text(found["of"], "decision.of")
    )
    return score.DecisionRule(rule.decide, _number(values["log_odds"], "decision.log_odds"), kept)


def _left_out(values: FileObject) -> adaptation.LeftOut:
    log_odds = _numbers(values["log_odds"], "left_out.log_odds")
    ones, zeros = (sized(values[name], len(log_odds), f"left_out.{name}") for name in ("ones", "zeros"))
    _expect(
        len(log_odds) > 0 and bool((ones >= 0).all() and (zeros >= 0).all()), "left_out must have weights of 0 or more"
    )
    _expect(bool(ones.sum() > 0 and zeros.sum() > 0), "left_out must hold both labels")
    return adaptation.LeftOut(log_odds, ones, zeros)


def _correction(values: FileObject | None, misfit: adaptation.Misfit) -> adaptation.Correction | None:
    if values is None:
        return None
    names = ("intercept", "slope", "threshold", "n_effective")
    numbers = {name: _number(values[name], f"correction.{name}") for name in names}
    _expect(numbers["slope"] > 0, "correction.slope must be above 0")
    return adaptation.Correction(
        prior=_estimate(values["prior"]),
        covariance=_covariance(values["covariance"]),
        n_labels=_count(values["n_labels"], "correction.n_labels"),
        misfit=misfit,
        **numbers,
    )


def _misfit(values: FileObject) -> adaptation.Misfit:
    cell_spread = _number(values["cell_spread"], "misfit.cell_spread")
    _expect(cell_spread >= 0, "misfit.cell_spread must be 0 or more")
    worst = None if values["worst"] is None else sized(values["worst"], 2, "misfit.worst")
    return adaptation.Misfit(
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


LIBRARIES = ("numpy", "scipy", "scikit-learn", "catboost", "lightgbm", "xgboost")


def library_versions() -> dict[str, str]:
    """Return the versions of Python, deep and the libraries that a fit depends on."""
    found = {"deep": __version__, "python": python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


TOLERANCE = 1e-6
"""How far a chain that is fitted again may be from the probabilities in its file."""


def load(path: str | Path) -> Model:
    """Read a model file.

    Parameters
    ----------
    path : path

    Returns
    -------
    Model

    Raises
    ------
    InputError
        There is no such file, it is no model file, a newer deep wrote it, it was changed since it was written, or
        (above 10 voters) the chain fitted again from its training cells does not give its probabilities.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from deep.datasets import simulate_votes
    >>> from deep.model import fit, load
    >>> votes = simulate_votes(0)
    >>> model = fit(votes, sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.json")
    ...     model.save(path)
    ...     bool((load(path).score(votes) == model.score(votes)).all())
    True
    """
    check_kind(path, (str, PathLike), "path", "the path of a model file")
    path = Path(path)
    content = _content(path)
    if content.get("format") != FORMAT:
        raise _refused(path, f"no {FORMAT!r} in its key 'format'", "Give a file that `deep fit` wrote.")
    version = content.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _refused(path, f"schema_version {version!r}")
    if version < SCHEMA_VERSION:
        raise _refused(path, f"schema_version {version}, of an earlier deep", "Fit again.")
    if version > SCHEMA_VERSION:
        raise _refused(path, f"schema_version {version}, and this deep knows {SCHEMA_VERSION}", "Update deep.")
    if content.get("checksum") != _checksum_of(content, path):
        raise _refused(path, "a checksum that does not fit: the file was changed after it was written", "Fit anew.")
    try:
        model = from_document(content)
    except KeyError as error:
        raise _refused(path, f"no key {' in '.join(map(repr, error.args))}") from None
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise _refused(path, f"content that no model has: {str(error).splitlines()[0].rstrip('.')}") from None
    if model.chain is not None and model.chain.table is None:
        _check_refit(model.chain, content, path)
    return model


def _refused(path: Path, reason: str, remedy: str = "") -> InputError:
    return InputError(f"`model` must be a model file of deep. Got {str(path)!r}, with {reason}. {remedy}".rstrip())


def _checksum_of(content: Mapping[str, object], path: Path) -> str:
    try:
        return checksum(content)
    except (ValueError, RecursionError) as error:  # 1e999 is infinite once it is read
        raise _refused(path, f"JSON that no model has: {error}") from None


def _content(path: Path) -> FileObject:
    """Return the JSON object that a file holds."""
    try:
        raw = read_bytes(path, "model", LARGEST_MODEL)
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise InputError(f"`model` must be a readable file. Got {str(path)!r}: {reason}.") from None
    if not raw.strip():
        raise _refused(path, "nothing in it")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        what = "a pickle" if raw[:1] == b"\x80" else f"byte 0x{raw[error.start]:02x} at {error.start}, not UTF-8 text"
        raise _refused(path, f"{what} in place of JSON", "It was not opened as anything else.") from None
    try:
        content = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise _refused(path, f"JSON that breaks off or is wrong at line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise _refused(path, f"JSON that no model has: {error}") from None
    if not isinstance(content, dict):
        raise _refused(path, f"a JSON {type(content).__name__} in place of an object")
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice")
    return found


def _check_refit(chain: ChainScorer, content: FileObject, path: Path) -> None:
    """Check that a chain fitted again gives the probabilities in its file."""
    try:
        patterns = chain.kept.joint.patterns
        stored = sized(content["parts"][0]["scorer"]["cells"]["p"], len(patterns), "cells.p")
        gap = float(np.abs(chain.predict(patterns) - stored).max())
    except (KeyError, TypeError, ValueError) as error:
        raise _refused(path, f"no usable probabilities of its training cells ({error})") from None
    if not gap <= TOLERANCE:
        here = library_versions()
        names = [f"{n} {v} (here {here.get(n, 'none')})" for n, v in content["versions"].items() if here.get(n) != v]
        versions = ", ".join(names) or "the same library versions"
        raise _refused(path, f"probabilities that differ by {gap:.1g} when fitted again, with {versions}", "Fit anew.")
