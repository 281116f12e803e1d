"""Print the result of a command, for a person or for a program."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from deep._files import to_json
from deep.exceptions import printable

Results = Mapping[str, Any]
"""JSON values by key."""

SCHEMA = {"schema_version": 1}


def print_result(results: Results, lines: Iterable[str], *, as_json: bool) -> None:
    """Print results as JSON, or else the lines that say the same to a person."""
    sys.stdout.write(to_json(dict(results)) if as_json else _shown("\n".join(lines)))


def _shown(text: str) -> str:
    """Return lines as a terminal may have them, whatever names they hold."""
    return "\n".join(map(printable, text.rstrip("\n").split("\n"))) + "\n"


def percent(share: float, of: float = 1) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(0.0951), percent(3, 8)
    ('9.5 %', '37.5 %')
    """
    return f"{100 * share / of:.1f} %"


def points(share: float, sign: str = "") -> str:
    """Return a difference of shares in percentage points; `sign` is '+' to show that of a positive one too.

    Examples
    --------
    >>> points(0.0951), points(0.012, "+")
    ('9.5', '+1.2')
    """
    return f"{100 * share:{sign}.1f}"
