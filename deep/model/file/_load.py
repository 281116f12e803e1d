"""Read a model file: JSON that is checked before it is believed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep._files import read_bytes
from deep._names import check_name
from deep._odds import P_MIN
from deep.calibration import CALIBRATOR_CLASSES
from deep.ensembles import ENSEMBLER_NAMES
from deep.exceptions import InputError
from deep.features import Cells
from deep.model.chain import RECIPES, ChainSpec, KeptCells, Weighting
from deep.model.file._document import FORMAT, REPORT, SCHEMA_VERSION, checksum
from deep.model.file._model import Model
from deep.model.file._table import Table, patterns_from_text
from deep.model.file._versions import library_versions
from deep.model.file._voters import Voter
from deep.model.target import Adaptation, Correction, Misfit, Transfer

Known = TypeVar("Known")

Entry = Mapping[str, Any]
"""An object of the file, of which nothing is known before it is checked."""

TABLE = ("p", "uncalibrated", "low", "high")

LARGEST = 1 << 28
"""Bytes of a model file."""

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
    path = Path(path)
    content = _content(path)
    if content.get("format") != FORMAT:
        raise _refused(path, f"no {FORMAT!r} in its key 'format'", "Give a file that `deep fit` wrote.")
    version = content.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _refused(path, f"schema_version {version!r}")
    if version > SCHEMA_VERSION:
        raise _refused(path, f"schema_version {version}, and this deep knows {SCHEMA_VERSION}", "Update deep.")
    if content.get("checksum") != _checksum_of(content, path):
        raise _refused(path, "a checksum that does not fit: the file was changed after it was written", "Fit anew.")
    try:
        model = from_document(content)
    except KeyError as error:
        raise _refused(path, f"no key {error.args[0]!r}") from None
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise _refused(path, f"content that no model has: {str(error).splitlines()[0].rstrip('.')}") from None
    if model.table is None:
        _check_refit(model, content, path)
    return model


def _refused(path: Path, reason: str, remedy: str = "") -> InputError:
    return InputError(f"`model` must be a model file of deep. Got {str(path)!r}, with {reason}. {remedy}".rstrip())


def _checksum_of(content: Mapping[str, object], path: Path) -> str:
    try:
        return checksum(content)
    except (ValueError, RecursionError) as error:  # 1e999 is infinite once it is read
        raise _refused(path, f"JSON that no model has: {error}") from None


def _content(path: Path) -> Entry:
    """Return the JSON object that a file holds."""
    try:
        raw = read_bytes(path, "model", LARGEST)
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


def _check_refit(model: Model, content: Entry, path: Path) -> None:
    """Refuse where this machine's libraries fit another chain from the same cells."""
    try:
        stored = np.array(content["training_cells"]["p"], dtype=np.float64)
        gap = float(np.abs(model.predict(model.kept.joint.patterns) - stored).max())
    except (KeyError, TypeError, ValueError) as error:
        raise _refused(path, f"no usable probabilities of its training cells ({error})") from None
    if not gap <= TOLERANCE:
        here = library_versions()
        names = [f"{n} {v} (here {here.get(n, 'none')})" for n, v in content["versions"].items() if here.get(n) != v]
        versions = ", ".join(names) or "the same library versions"
        raise _refused(path, f"probabilities that differ by {gap:.1g} when fitted again, with {versions}", "Fit anew.")


def from_document(content: Entry) -> Model:
    """Return the model that a file's content describes.

    Raises
    ------
    KeyError, TypeError, ValueError
        The content is not what `Model.document` returns.
    """
    for name, kind in REPORT.items():
        _expect(isinstance(content[name], kind), f"{name} must be a {kind.__name__}")
    voters = tuple(Voter(_text(row["name"], "voters"), dict(row["details"])) for row in content["voters"])
    _expect(0 < len(voters) == len({voter.name for voter in voters}), "voters must be named once each")
    made = content["ensembler"]
    spec = ChainSpec(
        recipe=_one_of(content["recipe"], RECIPES, "recipe"),
        ensembler=_one_of(made["name"], ENSEMBLER_NAMES, "ensembler"),
        params=dict(made["params"]),
        calibrator=_one_of(content["calibrator"]["name"], (None, *CALIBRATOR_CLASSES), "calibrator"),
        random_state=_count(made["random_state"], "ensembler.random_state"),
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


def _one_of(value: Known, allowed: Iterable[Known], name: str) -> Known:
    _expect(value in tuple(allowed), f"{name} must be known, not {value!r}")
    return value


def _text(value: object, name: str) -> str:
    _expect(isinstance(value, str), f"{name} must have names that are text")
    return check_name(cast("str", value), name)


def _transfer(values: Entry | None) -> Transfer | None:
    if values is None:
        return None
    shifts = {
        _text(name, "interval.shifts"): _number(shift, "interval.shifts") for name, shift in values["shifts"].items()
    }
    level, spread, quantile = (_number(values[name], f"interval.{name}") for name in ("level", "spread", "quantile"))
    return Transfer(level, shifts, spread, quantile)


def _adaptation(values: Entry | None) -> Adaptation | None:
    if values is None:
        return None
    contexts, priors = (
        {_text(name, part): _number(value, f"adaptation.{part}") for name, value in values[part].items()}
        for part in ("contexts", "priors")
    )
    _expect(len(contexts) > 0 and set(contexts) == set(priors), "adaptation must have the same datasets throughout")
    _expect(all(0 <= prior <= 1 for prior in priors.values()), "priors must lie between 0 and 1")
    return Adaptation(contexts, priors, _misfit(values["misfit"]))


def _correction(values: Entry | None) -> Correction | None:
    if values is None:
        return None
    names = ("prior", "intercept", "slope", "threshold", "n_effective")
    numbers = {name: _number(values[name], f"correction.{name}") for name in names}
    _expect(0 < numbers["prior"] < 1, "correction.prior must lie between 0 and 1")
    return Correction(
        **numbers,
        covariance=_square(values["covariance"]),
        n_labels=_count(values["n_labels"], "correction.n_labels"),
        misfit=_misfit(values["misfit"]),
    )


def _misfit(values: Entry) -> Misfit:
    return Misfit(
        mean=_pair(values["mean"], "misfit.mean"),
        covariance=_square(values["covariance"]),
        n_datasets=_count(values["n_datasets"], "misfit.n_datasets"),
        cell_spread=_number(values["cell_spread"], "misfit.cell_spread"),
        worst=None if values["worst"] is None else _pair(values["worst"], "misfit.worst"),
    )


def _pair(values: object, name: str) -> Floats:
    """Return intercept and slope."""
    found = _numbers(values, name)
    _expect(found.shape == (2,), f"{name} must hold two numbers")
    return found


def _numbers(values: object, name: str) -> Floats:
    """Return a JSON array of numbers; a text or a boolean is none."""
    numbers = isinstance(values, list) and set(map(type, values)) <= {int, float}
    _expect(numbers, f"{name} must hold numbers")
    found = np.array(values, dtype=np.float64)
    _expect(bool(np.isfinite(found).all()), f"{name} must be finite")
    return found


def _number(value: object, name: str) -> float:
    return float(_numbers([value], name)[0])


def _count(value: object, name: str) -> int:
    return int(_whole([value], None, name)[0])


def _square(values: Sequence[object]) -> Floats:
    found = np.array([_numbers(row, "a covariance") for row in values])
    _expect(found.shape == (2, 2), "a covariance must be two by two")
    return found


def _table(values: Entry | None, n_voters: int) -> Table | None:
    if values is None:
        return None
    p, raw, low, high = (_shares(values[name], 3**n_voters, f"table.{name}") for name in TABLE)
    if p is None or raw is None:
        raise ValueError("table must have p and uncalibrated")
    for name, shares in (("p", p), ("uncalibrated", raw)):
        _expect(shares.min() >= P_MIN and shares.max() <= 1 - P_MIN, f"table.{name} must not reach 0 or 1")
    if low is None or high is None:
        _expect(low is high, "table must have low and high or neither")
        return Table(p, raw)
    # Earlier versions rounded bounds to 0 and 1.
    low, high = low.clip(P_MIN, 1 - P_MIN), high.clip(P_MIN, 1 - P_MIN)
    _expect(bool(((low <= p) & (p <= high)).all()), "table.low, p and high must ascend")
    return Table(p, raw, low, high)


def _shares(values: object, length: int, name: str) -> Floats | None:
    if values is None:
        return None
    found = _numbers(values, name)
    _expect(found.shape == (length,), f"{name} must have {length} entries")
    _expect(bool(((found >= 0) & (found <= 1)).all()), f"{name} must lie between 0 and 1")
    return found


def _whole(values: list[object], below: int | None, name: str) -> npt.NDArray[np.int64]:
    _expect(set(map(type, values)) <= {int}, f"{name} must be whole numbers")
    found = np.array(values, dtype=np.int64)
    _expect(bool((found >= 0).all()) and (below is None or bool((found < below).all())), f"{name} is out of range")
    return found


def _kept(values: Entry, names: tuple[str, ...], weighting: str) -> KeptCells:
    patterns = patterns_from_text(list(values["patterns"]), len(names))
    groups = [(_text(row["dataset"], "groups"), row["fold"]) for row in values["groups"]]
    folds = _whole([fold for _, fold in groups], None, "folds")
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
    _expect(bool(counts.sum(axis=0).any(axis=0).all()), "training_cells must hold both labels")
    joint = Cells(patterns, counts, tuple(dataset for dataset, _ in groups), names)
    group_by = _one_of(values["group_by"], ("dataset", "fold"), "group_by")
    weighed = cast("Weighting", _one_of(weighting, ("dataset", "dataset-class", "uniform"), "weighting"))
    return KeptCells(joint, tuple(folds.tolist()), group_by, weighed)
