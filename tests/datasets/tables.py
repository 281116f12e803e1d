"""Small tables on disk, and the check that a fault gives one line."""

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from deep.exceptions import InputError


def write_text(path: Path, text: str) -> Path:
    """Write text as it is, without any change of line ends."""
    path.write_bytes(text.encode())
    return path


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write a table as CSV or Parquet, by the suffix of the path; in Parquet every column keeps its own type."""
    if path.suffix == ".parquet":
        pd.DataFrame(list(rows), columns=list(header)).to_parquet(path)
        return path
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def fault(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Return the message of the InputError that a call raises, which must be a single line."""
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message
