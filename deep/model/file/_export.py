"""Write a model as a table: its voters (1, 0, empty), P and the decision; a row a pattern."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from deep._util.files import whole_file
from deep._util.names import check_name
from deep._util.plain_cells import plain_cell
from deep.exceptions import InputError
from deep.model.file._model import Model
from deep.model.file._table import MAX_TABLE_VOTERS, arrow_column, pattern_grid
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pyarrow as pa


COLUMNS = ("p_consistent", "p_low", "p_high", "decision", "sure", "threshold")
"""Of the table beside the voters; they are as in a table of scores."""

SQL_TYPES = {"decision": "SMALLINT", "sure": "SMALLINT NOT NULL"}
"""Of these columns; the others are DOUBLE PRECISION NOT NULL."""

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
    table = _table(model)
    with whole_file(out) as scratch:
        if to == "sql":
            _check_names(model)
            with scratch.open("w", encoding="utf-8", newline="\n") as file:
                _write_sql(model, quoted(name), table, file)
        elif to == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, scratch)
        else:
            from pyarrow import csv

            csv.write_csv(table.rename_columns([plain_cell(name) for name in table.column_names]), scratch)
    return len(table)


def _table(model: Model) -> "pa.Table":
    """Return every pattern, nulls for no vote, beside the columns of its scores."""
    import pyarrow as pa

    if not model.has_table:
        raise InputError(
            f"`model` must have at most {MAX_TABLE_VOTERS} voters to be a table. Got {len(model.voters)}. "
            "Fit one with smaller --sizes."
        )
    clash = next((name for name in COLUMNS if name in (voter.lower() for voter in model.voter_names)), None)
    if clash is not None:
        raise InputError(f"`model` must not have a voter named {clash!r}, which is a column of the table. Got one.")
    votes = [pa.array(column, mask=column == ABSTAIN) for column in pattern_grid(len(model.voters)).T]
    scores = model.scores_at(model.contexts, evidence=model.every_pattern).columns(COLUMNS)
    columns = [*votes, *(arrow_column(name, values) for name, values in scores.items())]
    return pa.table(columns, names=[*model.voter_names, *COLUMNS])


def _write_sql(model: Model, name: str, table: "pa.Table", file: TextIO) -> None:
    voters = [quoted(voter) for voter in model.voter_names]
    same = "\n  AND ".join(f"v.{voter} IS NOT DISTINCT FROM m.{voter}" for voter in voters)
    example = f"  SELECT v.*, m.p_consistent, m.decision FROM votes AS v JOIN {name} AS m\n  ON {same};"
    scores = (f"{column} {SQL_TYPES.get(column, 'DOUBLE PRECISION NOT NULL')}" for column in COLUMNS)
    columns = ",\n  ".join([*(f"{voter} SMALLINT" for voter in voters), *scores])
    file.write(
        "-- P(consistent) of every pattern of votes: 1 consistent, 0 inconsistent, NULL no vote.\n"
        f"-- {model.rule.sentence(model.threshold())}.\n"
        "-- To score a table of votes with these columns (SQLite before 3.39: IS in place of IS NOT DISTINCT FROM):\n"
        + "".join(f"-- {line}\n" for line in example.splitlines())
        + f"CREATE TABLE {name} (\n  {columns}\n);\n"
    )
    for batch in table.to_batches(ROWS_A_STATEMENT):
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        values = ",\n".join(f"({', '.join(map(_literal, row))})" for row in rows)
        file.write(f"INSERT INTO {name} VALUES\n{values};\n")


def _check_names(model: Model) -> None:
    seen: dict[str, str] = {}
    for voter in model.voter_names:
        before = seen.setdefault(voter.lower(), voter)
        if before != voter:
            raise InputError(
                f"`model` must have voters whose names differ in more than case, which SQL ignores. Got {before!r} and "
                f"{voter!r}. Export CSV or Parquet."
            )


def _literal(value: float | int | None) -> str:
    """Return a value in SQL; the exponent makes it a double at once, without one DuckDB takes it for a decimal."""
    if value is None or isinstance(value, int):
        return "NULL" if value is None else str(value)
    return repr(value) if "e" in repr(value) else f"{value!r}e0"


def quoted(name: str) -> str:
    """Return an identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'
