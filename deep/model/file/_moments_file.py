"""Moments as JSON: read with care, written whole."""

import json
from pathlib import Path

from deep._files import JsonObject, read_bytes
from deep._names import check_name
from deep.exceptions import InputError
from deep.model.file._document import write_document
from deep.model.file._moments import DatasetMoments, Moments

MOMENTS_FORMAT = "deep moments"
MOMENTS_VERSION = 1
LARGEST = 1 << 28
"""Bytes of a file of moments."""


def moments_values(moments: Moments) -> JsonObject:
    """Return moments as a JSON object; sums are text, for they have more digits than other readers' numbers."""
    return {
        "format": MOMENTS_FORMAT,
        "schema_version": MOMENTS_VERSION,
        "voters": list(moments.voters),
        "score_names": list(moments.score_names),
        "parts": list(moments.parts),
        "model": moments.model,
        "datasets": {
            name: {"n": one.n, "cells": dict(one.cells), "p_sums": [str(total) for total in one.p_sums]}
            for name, one in moments.datasets.items()
        },
    }


def moments_from(values: JsonObject) -> Moments:
    """Return the moments that a JSON object holds.

    Raises
    ------
    InputError
        It is no such object, or its numbers contradict each other.
    """
    try:
        return _checked(values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"`moments` must be written by `deep data moments`. Got an object that is not: {reason[:120]}. Count again."
        ) from None


def save_moments(moments: Moments, path: str | Path) -> None:
    """Write moments as JSON, whole or not at all; :func:`read_moments` reads them.

    Parameters
    ----------
    moments : Moments
    path : path
    """
    write_document(moments_values(moments), path)


def read_moments(path: str | Path) -> Moments:
    """Read moments from a JSON file.

    Parameters
    ----------
    path : path

    Raises
    ------
    InputError
        There is no such file, or it holds something else.
    """
    shown = repr(str(path))
    try:
        values = json.loads(read_bytes(path, "moments", LARGEST).decode("utf-8"))
    except OSError as error:
        raise InputError(f"`moments` must be a readable file. Got {shown}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"`moments` must be JSON. Got {shown}: {reason}. Count again.") from None
    if not isinstance(values, dict) or values.get("format") != MOMENTS_FORMAT:
        raise InputError(f"`moments` must be a file that `deep data moments` wrote. Got {shown}.")
    if values.get("schema_version") != MOMENTS_VERSION:
        raise InputError(
            f"`moments` must have schema_version {MOMENTS_VERSION}. Got {values.get('schema_version')!r} in {shown}."
        )
    return moments_from(values)


def _checked(values: JsonObject) -> Moments:
    names = {key: tuple(check_name(name, key) for name in values[key]) for key in ("voters", "score_names", "parts")}
    model = values["model"]
    _expect(model is None or isinstance(model, str), "model is no checksum")
    _expect((model is None) == (not names["parts"]), "parts and model go together")
    datasets = {
        check_name(name, "datasets"): _dataset(one, len(names["voters"]), len(names["parts"]))
        for name, one in values["datasets"].items()
    }
    return Moments(**names, model=model, datasets=dict(sorted(datasets.items())))


def _dataset(values: JsonObject, n_voters: int, n_parts: int) -> DatasetMoments:
    n, cells = values["n"], dict(sorted(values["cells"].items()))
    sums = tuple(int(text) for text in values["p_sums"])
    _expect(type(n) is int and n >= 1, "n is not 1 or more")
    _expect(len(sums) == n_parts, "p_sums are not one a part")
    _expect(all(0 <= total <= n << 53 for total in sums), "p_sums are out of range")
    _expect(all(type(count) is int and count >= 1 for count in cells.values()), "a cell counts no rows")
    _expect(all(len(text) == n_voters and not set(text) - set("-01") for text in cells), "a cell is no pattern")
    _expect(sum(cells.values()) == (0 if n_parts else n), "cells do not add up to n")
    return DatasetMoments(n, cells, sums)


def _expect(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(rule)
