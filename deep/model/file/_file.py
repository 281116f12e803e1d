"""The model file: JSON that anyone can read, written whole or not at all, and checked before it is believed."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from deep.exceptions import InputError
from deep.model.file._document import FORMAT, SCHEMA_VERSION, checksum, from_document, to_document
from deep.model.file._model import Model
from deep.model.file._versions import library_versions

__all__ = ["load_model", "save_model"]

TOLERANCE = 1e-6
"""How far a chain that is fitted again may be from the probabilities in its file."""


def save_model(model: Model, path: str | Path) -> None:
    """Write a model as JSON.

    Parameters
    ----------
    model : Model
    path : path
        Replaced if it is a file; a reader sees the old file or the new one, never a part.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"`path` must be a file in an existing folder. Got {str(path)!r}.")
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_text(_text(to_document(model)) + "\n", encoding="ascii")
        partial.replace(path)
    except OSError as error:
        raise InputError(f"`path` must be a file that can be written. Got {str(path)!r}: {error.strerror}.") from None
    finally:
        partial.unlink(missing_ok=True)


def _text(value: Any, depth: int = 0) -> str:
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


def load_model(path: str | Path) -> Model:
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
    >>> from deep.model import fit_model, load_model, save_model
    >>> votes = simulate_votes(0)
    >>> model = fit_model(votes, sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.json")
    ...     save_model(model, path)
    ...     bool((load_model(path).score(votes) == model.score(votes)).all())
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


def _checksum_of(content: Mapping[str, Any], path: Path) -> str:
    try:
        return checksum(content)
    except (ValueError, RecursionError) as error:  # 1e999 is infinite once it is read
        raise _refused(path, f"JSON that no model has: {error}") from None


def _content(path: Path) -> dict[str, Any]:
    """Return the JSON object that a file holds."""
    if path.is_dir():
        raise InputError(f"`model` must be a file. Got the folder {str(path)!r}.")
    try:
        raw = path.read_bytes()
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


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice")
    return found


def _check_refit(model: Model, content: Mapping[str, Any], path: Path) -> None:
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
