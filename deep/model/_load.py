"""Read a model file: JSON that is checked value by value before it is believed."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from deep._util.checks import check_kind
from deep._util.files import LARGEST_MODEL, read_bytes
from deep.exceptions import InputError
from deep.model._document import FORMAT, OLDEST_SCHEMA, SCHEMA_VERSION, checksum, library_versions, model_arguments
from deep.model._kinds import numbers
from deep.model._model import Model
from deep.model._table import ChainScorer

# An object of the file, of which nothing is known before it is checked.
FileObject = Mapping[str, Any]

# How far a chain that is fitted again may be from the probabilities in its file.
TOLERANCE = 1e-6


def load(path: str | Path) -> Model:
    """Read a model file.

    Parameters
    ----------
    path : path
        Of a file that ``deep fit`` or :meth:`Model.save` wrote.

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
    # JSON has true, which Python takes for 1.
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _refused(path, f"schema_version {version!r}")
    if version < OLDEST_SCHEMA:
        raise _refused(path, f"schema_version {version}, of an earlier deep", "Fit again.")
    if version > SCHEMA_VERSION:
        raise _refused(path, f"schema_version {version}, and this deep knows {SCHEMA_VERSION}", "Update deep.")
    try:
        fits = content.get("checksum") == checksum(content)
    except (ValueError, RecursionError) as error:  # 1e999 is infinite once it is read
        raise _refused(path, f"JSON that no model has: {error}") from None
    if not fits:
        raise _refused(path, "a checksum that does not fit: the file was changed after it was written", "Fit anew.")
    try:
        model = Model(**model_arguments(content))
    except KeyError as error:
        raise _refused(path, f"no key {' in '.join(map(repr, error.args))}") from None
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise _refused(path, f"content that no model has: {str(error).splitlines()[0].rstrip('.')}") from None
    if model.chain is not None and model.chain.table is None:
        _check_refit(model.chain, content, path)
    return model


def _refused(path: Path, reason: str, remedy: str = "") -> InputError:
    return InputError(f"`model` must be a model file of deep. Got {str(path)!r}, with {reason}. {remedy}".rstrip())


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
        # A pickle runs code as it is opened, so a file of one is named and never opened as one.
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
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key comes twice")
    return entries


def _check_refit(chain: ChainScorer, content: FileObject, path: Path) -> None:
    """Check that a chain fitted again gives the probabilities in its file."""
    try:
        patterns = chain.cells.joint.patterns
        stored = numbers(len(patterns)).read(content["parts"][0]["scorer"]["cells"]["p"], "cells.p", {})
        gap = float(np.abs(chain.predict(patterns) - stored).max())
    except (KeyError, TypeError, ValueError) as error:
        raise _refused(path, f"no usable probabilities of its training cells ({error})") from None
    # Written so that a gap of NaN is refused too.
    if not gap <= TOLERANCE:
        here = library_versions()
        names = [f"{n} {v} (here {here.get(n, 'none')})" for n, v in content["versions"].items() if here.get(n) != v]
        versions = ", ".join(names) or "the same library versions"
        raise _refused(path, f"probabilities that differ by {gap:.1g} when fitted again, with {versions}", "Fit anew.")
