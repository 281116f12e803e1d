"""Scores in the form that Inspect attaches to the samples of a log: records for its ``precomputed_scores``."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from deep.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa

EPOCH = re.compile(r"(.+)@epoch-([1-9][0-9]*)", re.DOTALL)
"""The item of a sample that was run several times, as ``deep data from-inspect`` names it."""


def inspect_record(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the record of a row of scores; None where no judge gave a vote, which leaves the sample unscored.

    Parameters
    ----------
    row : mapping
        Columns of scores; of texts also `judges`, whose votes and words become the explanation.

    Examples
    --------
    >>> row = {"item_id": "a@epoch-2", "p_consistent": 0.75, "n_votes": 3, "p_low": 0.5, "p_high": 0.875}
    >>> inspect_record(row)["id"], inspect_record(row)["epoch"], inspect_record(row)["value"]
    ('a', 2, 0.75)
    >>> inspect_record(row | {"n_votes": 0}) is None
    True
    """
    if not row["n_votes"]:
        return None
    found = EPOCH.fullmatch(row["item_id"])
    where = {"id": row["item_id"]} if found is None else {"id": found[1], "epoch": int(found[2])}
    decision = row.get("decision")
    answer = {} if decision is None else {"answer": "consistent" if decision else "inconsistent"}
    kept = ("dataset", "p_low", "p_high", "n_votes", "judges")
    metadata = {name: row[name] for name in kept if row.get(name) is not None}
    return {**where, "value": row["p_consistent"], **answer, "explanation": _explanation(row), "metadata": metadata}


def _explanation(row: Mapping[str, Any]) -> str:
    bounds = "" if row["p_low"] is None else f", 90 % interval {row['p_low']:.3f} to {row['p_high']:.3f}"
    lines = [f"P(consistent) = {row['p_consistent']:.3f}{bounds}, from {row['n_votes']} votes"]
    for judge in row.get("judges", ()):
        vote = judge["vote"] if judge["reason"] is None else judge["reason"]
        said = " ".join((judge["rationale"] or "").split())
        lines.append(f"{judge['judge']}: {vote}{f'. {said}' if said else ''}")
    return "\n".join(lines)


class InspectWriter:
    """Writes rows of scores as JSON lines that ``inspect_ai.scorer.precomputed_scores`` reads.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")
        self._seen: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def write_table(self, table: "pa.Table") -> None:
        """Write the rows of a table of scores."""
        for row in table.to_pylist():
            self.write_row(row)

    def write_row(self, row: Mapping[str, Any]) -> None:
        """Write one row.

        Raises
        ------
        InputError
            Another dataset has an item of that id, which Inspect would take for the same sample.
        """
        record = inspect_record(row)
        if row["item_id"] in self._seen:
            raise InputError(
                f"`item_id` must be unique with `--to inspect`, which knows no datasets. Got {row['item_id']!r} "
                f"again in dataset {row['dataset']!r}. Score one dataset at a time."
            )
        self._seen.add(row["item_id"])
        if record is not None:
            self._file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
