"""The options that several commands have in common, each written once."""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from deep.calibration import CALIBRATOR_CLASSES, NETCAL_CLASSES
from deep.console._names import RECIPES, SELECTORS, UNCALIBRATED
from deep.console._parser import Values
from deep.ensembles import ENSEMBLER_NAMES
from deep.exceptions import InputError

SEVERAL: dict[str, Any] = {"action": Values, "nargs": "+", "default": []}
"""The settings of an option that takes several values."""

MOST_JOBS = 8
"""The most processes by default: each loads every library, and there are some fifty tasks at a time."""

MOST_DRAWS = 10_000
"""Answers to one question, or draws of a study: more than any of them needs, and a number mistyped takes years."""

MOST_RESAMPLES = 1_000_000
"""Of an interval: its ends then move by a thousandth of its width, and more take hours or all memory."""


def resamples(word: str) -> int:
    """Return a number of resamples that can be drawn."""
    if (n := int(word)) > MOST_RESAMPLES:
        raise argparse.ArgumentTypeError(f"must be at most {MOST_RESAMPLES:,}. Got {n}")
    return n


OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "votes": SEVERAL | {"metavar": "FILE", "help": "tables of votes (CSV, Parquet); default: simulated"},
    "scores": SEVERAL | {"metavar": "FILE", "help": "tables of encoder scores"},
    "range": SEVERAL
    | {
        "metavar": "NAME=LOW:HIGH",
        "help": "what a scorer can give, for its centre; those of the paper are known",
    },
    "ignore": SEVERAL | {"metavar": "COLUMN", "help": "columns that are no voters"},
    "sizes": SEVERAL | {"metavar": "N", "default": ["3", "5", "9"], "help": "numbers of voters, or 'all'"},
    "selector": {"default": "auto", "choices": SELECTORS, "help": "how the voters are selected"},
    "ensembler": SEVERAL
    | {"metavar": "NAME", "help": f"of: {', '.join(ENSEMBLER_NAMES)}; default: those of the paper"},
    "calibrator": SEVERAL
    | {
        "metavar": "NAME",
        "help": f"of: {', '.join(CALIBRATOR_CLASSES)}, {UNCALIBRATED} (default: all), {', '.join(NETCAL_CLASSES)}",
    },
    "recipe": {"default": "deep", "choices": RECIPES, "help": "how a chain is chosen and fitted"},
    "max-failure-rate": {
        "type": float,
        "default": 0.05,
        "metavar": "SHARE",
        "help": "refuse voters that failed on more of a dataset, by the reasons beside the votes",
    },
    "n-boot": {"type": resamples, "default": 10_000, "metavar": "N", "help": "resamples of every interval"},
    "seed": {"type": int, "default": 0, "metavar": "N", "help": "seed of every random draw"},
    "jobs": {
        "type": int,
        "metavar": "N",
        "help": "processes, half a gigabyte of memory each; the results do not depend on it (default: one a core, at "
        f"most {MOST_JOBS})",
    },
    "allow-mismatch": {"action": "store_true", "help": "take votes of another prompt version or model"},
    "allow-missing": {"action": "store_true", "help": "a voter without a column has no vote"},
    "json": {"action": "store_true", "help": "print JSON and nothing else"},
}


def add_options(
    parser: "argparse.ArgumentParser | argparse._ArgumentGroup", *names: str, **changes: Mapping[str, object]
) -> None:
    """Add shared options by name.

    Parameters
    ----------
    parser : ArgumentParser
    *names : str
        Keys of `OPTIONS`.
    **changes : mapping
        By name, with _ for -: settings that differ in this command; `flags` are all the names of the option.
    """
    for name in names:
        settings: dict[str, Any] = {**OPTIONS[name], **changes.get(name.replace("-", "_"), {})}
        if name == "jobs":  # by the machine the command runs on
            settings["default"] = min(os.cpu_count() or 1, MOST_JOBS)
        parser.add_argument(*settings.pop("flags", [f"--{name}"]), **settings)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    add_options(parser, "json")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the model file, the first word of many commands."""
    parser.add_argument("model", metavar="MODEL", help="a model file that `deep fit` wrote")


def add_target_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the tables of the one dataset that a model is used on."""
    votes = {"required": required, "help": "votes of the whole dataset"}
    scores = {"help": "tables of soft scores, where the model was fitted on some"}
    add_options(parser, "votes", "scores", votes=votes, scores=scores)
    labels = "labels of a random sample of it: dataset, item_id, label"
    parser.add_argument("--labels", **SEVERAL, metavar="FILE", help=labels)


def options_given(args: argparse.Namespace, *adders: Callable[[argparse.ArgumentParser], None]) -> list[str]:
    """Return the names of the options, of those that some functions add, that are not at their defaults.

    Values are not returned: an address or a ledger may hold a secret, which no error repeats.
    """
    parser = argparse.ArgumentParser()
    for add in adders:
        add(parser)
    defaults = vars(parser.parse_args([]))
    return [name for name, default in defaults.items() if getattr(args, name, default) != default]


def numbers_of_voters(words: Sequence[str], n_voters: int) -> list[int]:
    """Return the numbers that `--sizes` names; 'all' is `n_voters`."""
    wrong = [word for word in words if word != "all" and not word.isdecimal()]
    if wrong:
        raise InputError(f"`sizes` must hold positive whole numbers or 'all'. Got {wrong[0]!r}.")
    return [n_voters if word == "all" else int(word) for word in words]


def check_least(args: argparse.Namespace, **least: int) -> None:
    """Raise where an option is below the least value that it may have."""
    for name, low in least.items():
        if getattr(args, name) < low:
            raise InputError(f"`{name}` must be {low} or more. Got {getattr(args, name)}.")


def check_draws(args: argparse.Namespace, name: str) -> None:
    """Raise where an option is no number of answers or draws from 1 to `MOST_DRAWS`."""
    check_least(args, **{name: 1})
    if getattr(args, name) > MOST_DRAWS:
        raise InputError(f"`{name}` must be at most {MOST_DRAWS:,}. Got {getattr(args, name)}.")


@contextmanager
def named(option: str) -> Iterator[None]:
    """Name the command's own option in an error about the argument `examples` of a function that reads files."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace("`examples`", f"`{option}`")) from None
