"""Tables 2, 4 and 5 of the DEEP paper: balanced accuracy and calibration error of every ensembler.

The data file beside this module holds them in percent, as printed; here they are fractions in [0, 1].
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from deep._checks import check_choice
from deep._files import JsonObject

TABLES = ("2", "4", "5")

TABLE_5_PROMPTS = 3
"""The paper does not say; its figures on AggreFact-XSUM are those of Table 4 with three prompts."""


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One figure of the paper's Tables 2, 4 and 5.

    Parameters
    ----------
    table : {'2', '4', '5'}
    dataset : str
    ensembler : str
    n_prompts : {3, 5, 9}
    calibrator : str or None
        None: before calibration.
    metric : {'balanced_accuracy', 'ece'}
    value : float
        In [0, 1].

    References
    ----------
    .. [1] Chandler, Surve and Su (2024). https://arxiv.org/abs/2406.13009
    """

    table: str
    dataset: str
    ensembler: str
    n_prompts: int
    calibrator: str | None
    metric: str
    value: float


@cache
def published_table(number: str) -> tuple[PublishedFigure, ...]:
    """Return every figure of one of the paper's large tables.

    Parameters
    ----------
    number : {'2', '4', '5'}

    Returns
    -------
    tuple of PublishedFigure

    Examples
    --------
    >>> from deep.experiments.paper import published_table
    >>> [len(published_table(number)) for number in ("2", "4", "5")]
    [192, 84, 280]
    >>> max(published_table("2"), key=lambda figure: figure.value).value
    0.7974
    """
    table = _tables()[check_choice(number, TABLES, "number")]
    return tuple(
        PublishedFigure(number, dataset, method, n_prompts, calibrator, table["metric"], round(value / 100.0, 6))
        for method, dataset, n_prompts, calibrator, value in _READERS[number](table)
    )


@cache
def _tables() -> JsonObject:
    tables: JsonObject = json.loads(files(__package__).joinpath("published_tables.json").read_bytes())
    return tables


PrintedCell = tuple[str, str, int, str | None, float]


def _by_size(table: JsonObject) -> Iterator[PrintedCell]:
    for method, by_dataset in table["methods"].items():
        for dataset, values in zip(table["datasets"], by_dataset, strict=True):
            for n_prompts, value in zip(table["values"], values, strict=True):
                yield method, dataset, n_prompts, None, value


def _by_size_and_calibrator(table: JsonObject) -> Iterator[PrintedCell]:
    (dataset,) = table["datasets"]
    for method, by_size in table["methods"].items():
        for n_prompts, values in zip(table["values"], by_size, strict=True):
            for calibrator, value in zip(table["calibrators"], values, strict=True):
                yield method, dataset, n_prompts, _calibrator(calibrator), value


def _by_calibrator(table: JsonObject) -> Iterator[PrintedCell]:
    for method, by_dataset in table["methods"].items():
        for dataset, values in zip(table["datasets"], by_dataset, strict=True):
            for calibrator, value in zip(table["values"], values, strict=True):
                yield method, dataset, TABLE_5_PROMPTS, _calibrator(calibrator), value


def _calibrator(name: str) -> str | None:
    return None if name == "uncalibrated" else name


_READERS = {"2": _by_size, "4": _by_size_and_calibrator, "5": _by_calibrator}
