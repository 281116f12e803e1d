"""A table as Markdown, as rows of JSON, and as files: one way for every study and report."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import ParamSpec

import numpy as np
import pandas as pd

from deep._plain_cells import plain_frame
from deep.evaluate._result import Row

P = ParamSpec("P")


MARKUP = re.compile(r"[\\|]|<(?=[A-Za-z/!?])")
"""Characters of a cell that Markdown would take for its own."""


def framed(rows: Callable[P, Iterator[Row]]) -> Callable[P, pd.DataFrame]:
    """Make a function that yields rows return them as a table."""

    @wraps(rows)
    def build(*args: P.args, **kwargs: P.kwargs) -> pd.DataFrame:
        return pd.DataFrame(list(rows(*args, **kwargs)))

    return build


def markdown(frame: pd.DataFrame) -> Iterator[str]:
    """Yield the lines of a Markdown table; fractions with four decimals, empty where there is no value."""
    yield "| " + " | ".join(map(_text, frame.columns)) + " |"
    yield "|" + " --- |" * len(frame.columns)
    for row in frame.itertuples(index=False):
        yield "| " + " | ".join(_text(value) for value in row) + " |"


def _text(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.4f}"
    return "" if value is None else MARKUP.sub(r"\\\g<0>", " ".join(str(value).splitlines()))


def write_table(
    folder: Path, name: str, frame: pd.DataFrame, title: str, *, shown: pd.DataFrame | None = None, note: str = ""
) -> None:
    """Write a table as CSV and, under its title, as Markdown.

    Parameters
    ----------
    folder : Path
    name : str
        Of both files, without suffix.
    frame : DataFrame
    title : str
    shown : DataFrame, optional
        The Markdown table, where it differs from `frame`.
    note : str
        A last line of the Markdown text.
    """
    plain_frame(frame).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
    lines = [f"# {title}", "", *markdown(frame if shown is None else shown), "", *([note, ""] if note else [])]
    (folder / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")


def null_if_nan(value: float | Sequence[float] | None) -> float | list[float] | None:
    """Return a number JSON can hold: None for NaN, also where a list holds one."""
    if isinstance(value, list | tuple):
        return None if any(null_if_nan(item) is None for item in value) else [float(item) for item in value]
    return None if value is None or np.isnan(value) else float(value)  # type: ignore[arg-type]


def records(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a table as JSON holds them, None where a value is missing or NaN."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def percent(value: float | None) -> str:
    """Return a share in percent with one decimal, nothing for None."""
    return "" if value is None else f"{100 * value:.1f}"
