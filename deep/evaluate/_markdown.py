"""A table as Markdown, for the terminal and for files."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

__all__ = ["markdown"]


def markdown(frame: pd.DataFrame) -> Iterator[str]:
    """Yield the lines of a Markdown table; fractions with four decimals, empty where there is no value."""
    yield "| " + " | ".join(map(str, frame.columns)) + " |"
    yield "|" + " --- |" * len(frame.columns)
    for row in frame.itertuples(index=False):
        yield "| " + " | ".join(_text(value) for value in row) + " |"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.4f}"
    return "" if value is None else str(value).replace("|", "\\|")
