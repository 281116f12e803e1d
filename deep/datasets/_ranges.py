"""The ranges that published encoder scores have, by name, and the options that state others."""

from collections.abc import Iterable, Mapping

import numpy as np

from deep._checks import Floats
from deep.exceptions import InputError

Range = tuple[float, float]

PUBLISHED_RANGES: Mapping[str, Range] = {
    "alignscore": (0.0, 1.0),
    "qafacteval": (0.0, 5.0),
    "questeval": (0.0, 1.0),
    "summacconv": (0.0, 1.0),
    "summaccv": (0.0, 1.0),
    "summaczs": (-1.0, 1.0),
}
"""Letters and digits of a scorer's name, and the range that the DEEP paper states for it (footnote 2)."""


def parse_ranges(options: Iterable[str]) -> dict[str, Range]:
    """Read options ``NAME=LOW:HIGH``.

    Examples
    --------
    >>> from deep.datasets import parse_ranges
    >>> parse_ranges(["QAFactEval=0:5"])
    {'QAFactEval': (0.0, 5.0)}
    """
    return dict(_parse(option) for option in options)


def _parse(option: str) -> tuple[str, Range]:
    name, _, bounds = option.rpartition("=")
    try:
        low, high = (float(bound) for bound in bounds.split(":"))
    except ValueError:
        low = high = np.nan
    if not name or not -np.inf < low < high < np.inf:
        raise InputError(f"`range` must be NAME=LOW:HIGH with LOW below HIGH. Got {option!r}.")
    return name, (low, high)


def score_ranges(names: Iterable[str], scores: Floats, given: Mapping[str, Range]) -> dict[str, Range]:
    """Return the ranges of scorers that are known: those given, else the published ones of their names.

    Parameters
    ----------
    names : sequence of str
    scores : ndarray of float, shape (n_examples, n_scorers)
        A published range that does not hold all scores of its scorer is another scorer's, and left out.
    given : mapping of str to (float, float)

    Raises
    ------
    InputError
        A range is given for a name that is none of `names`, or does not hold all scores.
    """
    names = tuple(names)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(f"`range` must be of one of {', '.join(sorted(names))}. Got {unknown[0]!r}.")
    found: dict[str, Range] = {}
    for name, column in zip(names, scores.T, strict=True):
        known = given.get(name) or PUBLISHED_RANGES.get(_plain(name))
        outside = column[(column < known[0]) | (column > known[1])] if known else column
        if known and not outside.size:
            found[name] = known
        elif name in given:
            low, high = given[name]
            raise InputError(
                f"`range` must hold every score of {name!r}. Got {outside[0].item()!r} outside {low:g}:{high:g}."
            )
    return found


def _plain(name: str) -> str:
    return "".join(letter for letter in name.partition("@")[0].casefold() if letter.isalnum())
