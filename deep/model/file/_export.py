"""Write a model as a table: its voters (1, 0, empty), then p_consistent; a row a pattern."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep._files import whole_file
from deep._names import check_name
from deep._plain_cells import plain_cell
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
