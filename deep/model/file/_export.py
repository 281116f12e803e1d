"""Write a model as a table: its voters (1, 0, empty), then p_consistent; a row a pattern."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats
from deep._util.files import whole_file
from deep._util.names import check_name
from deep._util.plain_cells import plain_cell
from deep.exceptions import InputError
from deep.model.file._model import Model
from deep.model.file._table import MAX_TABLE_VOTERS, pattern_grid
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pyarrow as pa


COLUMN = "p_consistent"

ROWS_A_STATEMENT = 500


def export_table(model: Model, out: Path, to: Literal["csv", "parquet", "sql"], *, name: str = "deep_model") -> int:
    """Write every pattern of votes with its probability, to be joined wherever votes are kept.

    Parameters
    ----------
    model : Model
        Of at most 10 voters.
    out : Path
    to : {'csv', 'parquet', 'sql'}
        SQL is CREATE TABLE and INSERT statements that any database with doubles reads, and an example of the join.
    name : str, default='deep_model'
        Of the table in SQL.

    Returns
    -------
    int
        The number of patterns.

    Raises
    ------
    InputError
        The model has too many voters or names that cannot be columns, or `name` is no name. Nothing is written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deep.datasets import simulate_votes
    >>> from deep.model import export_table, fit
    >>> model = fit(simulate_votes(0), sizes=[2], ensembler="LogisticRegression", calibrator="platt")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_table(model, Path(folder, "model.sql"), "sql")
    9
    """
    for voter in model.voter_names:
        check_name(voter, "model")
    check_name(name, "table")
    patterns, _ = _rows(model)
    with whole_file(out) as scratch:
        if to == "sql":
            _check_names(model)
            with scratch.open("w", encoding="utf-8", newline="\n") as file:
                _write_sql(model, name, file)
        elif to == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(_arrow_table(model), scratch)
        else:
            from pyarrow import csv

            table = _arrow_table(model)
            csv.write_csv(table.rename_columns([plain_cell(name) for name in table.column_names]), scratch)
    return len(patterns)


def _rows(model: Model) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return every pattern, and its probability."""
    if model.table is None or model.score_names:
        raise InputError(
            f"`model` must have at most {MAX_TABLE_VOTERS} voters to be a table. Got {len(model.voters)}. "
            "Fit one with smaller --sizes."
        )
    if COLUMN in (name.lower() for name in model.voter_names):
        raise InputError(f"`model` must not have a voter named {COLUMN!r}, which is a column of the table. Got one.")
    patterns = pattern_grid(len(model.voters))
    return patterns, model.score(patterns, streamed=True)


def _arrow_table(model: Model) -> "pa.Table":
    """Return the table with nulls for no vote."""
    import pyarrow as pa

    patterns, p = _rows(model)
    columns = [pa.array(column, pa.int8(), mask=column == ABSTAIN) for column in patterns.T]
    return pa.table([*columns, pa.array(p)], names=[*model.voter_names, COLUMN])


def _write_sql(model: Model, name: str, file: TextIO) -> None:
    patterns, p = _rows(model)
    voters, table = [quoted(voter) for voter in model.voter_names], quoted(name)
    same = "\n  AND ".join(f"v.{voter} IS NOT DISTINCT FROM m.{voter}" for voter in voters)
    example = f"  SELECT v.*, m.{COLUMN} FROM votes AS v JOIN {table} AS m\n  ON {same};"
    columns = ",\n  ".join([*(f"{voter} SMALLINT" for voter in voters), f"{COLUMN} DOUBLE PRECISION NOT NULL"])
    file.write(
        "-- P(consistent) of every pattern of votes: 1 consistent, 0 inconsistent, NULL no vote.\n"
        "-- To score a table of votes with these columns (SQLite before 3.39: IS in place of IS NOT DISTINCT FROM):\n"
        + "".join(f"-- {line}\n" for line in example.splitlines())
        + f"CREATE TABLE {table} (\n  {columns}\n);\n"
    )
    file.writelines(_statements(table, patterns.tolist(), p.tolist()))


def _check_names(model: Model) -> None:
    seen: dict[str, str] = {}
    for voter in model.voter_names:
        before = seen.setdefault(voter.lower(), voter)
        if before != voter:
            raise InputError(
                f"`model` must have voters whose names differ in more than case, which SQL ignores. Got {before!r} and "
                f"{voter!r}. Export CSV or Parquet."
            )


def _statements(table: str, patterns: list[list[int]], p: list[float]) -> Iterator[str]:
    words = {ABSTAIN: "NULL", 0: "0", 1: "1"}
    for start in range(0, len(p), ROWS_A_STATEMENT):
        stop = start + ROWS_A_STATEMENT
        # The exponent makes it a double at once; without one DuckDB takes it for a decimal first.
        values = [
            f"({', '.join(words[vote] for vote in pattern)}, {share!r}{'' if 'e' in repr(share) else 'e0'})"
            for pattern, share in zip(patterns[start:stop], p[start:stop], strict=True)
        ]
        rows_text = ",\n".join(values)
        yield f"INSERT INTO {table} VALUES\n{rows_text};\n"


def quoted(name: str) -> str:
    """Return an identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


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
