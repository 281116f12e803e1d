"""P in tables of others: Arrow batches scored row by row, every pattern of votes with its P, and SQL to count them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeVar

import numpy as np
import numpy.typing as npt

import deep.model
from deep._util.checks import AnyVotes, Texts, is_votes, quote
from deep._util.columns import Column, TablePlace, answer_cells, escape_formula, text_cells, vote_cells
from deep._util.files import atomic_file
from deep._util.names import check_name
from deep._util.scales import BINARY, Scale
from deep.exceptions import InputError
from deep.model import MAX_TABLE_VOTERS, SCORE_COLUMNS, Model, exported_columns, pattern_grid, schema_of
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pyarrow as pa

    BatchLike = TypeVar("BatchLike", pa.RecordBatch, pa.Table)


@dataclass(frozen=True, eq=False)
class BatchColumns:
    """Columns of an Arrow batch, read and checked as those of a file are.

    Parameters
    ----------
    batch : RecordBatch or Table
        Its columns are read by name, and each name must stand there once.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"a": pa.array([1, None, 0], pa.int8()), "s": [0.5, 0.25, None]})
    >>> BatchColumns(batch).votes(["a"]).tolist()
    [[1], [-1], [0]]
    """

    batch: "pa.RecordBatch | pa.Table"

    def votes(self, names: Sequence[str | None], scales: Mapping[str, Scale] = MappingProxyType({})) -> AnyVotes:
        """Return columns of votes as 1, 0, or -1 where a cell is empty, shape (n_rows, n_names); None: all empty.

        With scales of the columns, answers are places on them.

        Raises
        ------
        InputError
            A column is missing, or a cell is none of these.
        """
        empty = np.full(self.batch.num_rows, np.nan) if scales else np.full(self.batch.num_rows, -1, dtype=np.int8)
        read = partial(answer_cells, scales=scales) if scales else vote_cells
        columns = [empty if name is None else read(self._column(name, "votes")) for name in names]
        return np.column_stack(columns) if columns else np.empty((self.batch.num_rows, 0), dtype=np.int8)

    def names(self, column: str) -> Texts:
        """Return a column of text, none of it empty."""
        return text_cells(self._column(column, "batch"), required=True)

    def _column(self, name: str, role: str) -> Column:
        import pyarrow as pa

        if self.batch.schema.names.count(name) != 1:
            raise InputError(
                f"`{role}` must have one column named {quote(name)}. Got {self.batch.schema.names.count(name)} of "
                f"{len(self.batch.schema.names)} in the batch."
            )
        values = self.batch.column(name)
        whole = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
        return Column(TablePlace(), name, whole)


def matched_names(model: Model, columns: Sequence[str], **matching: bool) -> list[str | None]:
    """Return the column that stands for each voter; parameters as in :func:`deep.model.match_columns`."""
    return [None if at is None else columns[at] for at in deep.model.match_columns(model.voters, columns, **matching)]


@dataclass(frozen=True)
class BatchScorer:
    """Scores an Arrow batch, row by row: P of a row does not depend on the rows beside it.

    It can be pickled, and so sent to workers: DuckDB ``create_function(type="arrow")``, Polars ``map_batches``, Spark
    ``mapInArrow``, Ray Data ``map_batches(batch_format="pyarrow")``.

    Parameters
    ----------
    model : Model
        Adapted to the dataset of the rows (``deep adapt``).
    streamed : bool, default=False
        Take a model for any dataset, and score rows as of one like the mean of those that were trained on.
    allow_mismatch, allow_missing : bool, default=False
        As in :meth:`Model.score`.

    Raises
    ------
    InputError
        The model is not that of a dataset, and `streamed` is not given.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from deep.datasets import simulate_votes
    >>> from deep.integrations.engines import BatchScorer
    >>> from deep.model import fit
    >>> model = fit(simulate_votes(0), sizes=[1], ensembler="LogisticRegression", calibrator="platt")
    >>> score = BatchScorer(model, streamed=True)
    >>> batch = pa.record_batch({"id": ["a", "b"], model.voter_names[0]: pa.array([1, None], pa.int8())})
    >>> result = score(batch)
    >>> result.schema.names[:2], result["n_votes"].to_pylist()
    (['id', 'p_consistent'], [1, 0])
    """

    model: Model
    streamed: bool = False
    allow_mismatch: bool = False
    allow_missing: bool = False

    def __post_init__(self) -> None:
        if self.model.target is None and not self.streamed:
            raise InputError(
                "`model` must be adapted to the dataset of the rows. Got one for any dataset. Run `deep adapt`, or "
                "give `streamed` to score each row at the mean of the training datasets."
            )

    def __call__(self, batch: "BatchLike") -> "BatchLike":
        """Return the columns of a batch that are no votes or scores of the model, and after them those of scores.

        Raises
        ------
        InputError
            A column is missing or holds something else.
        """
        arrays = [*(batch.column(name) for name in self._others(batch.schema.names)), *self._scores(batch)]
        return type(batch).from_arrays(arrays, schema=self.schema(batch.schema))

    def schema(self, schema: "pa.Schema") -> "pa.Schema":
        """Return the columns of the scores of batches with the columns `schema`, for engines that ask beforehand."""
        import pyarrow as pa

        fields = [schema.field(name) for name in self._others(schema.names)]
        return pa.schema([*fields, *schema_of(SCORE_COLUMNS)])

    def _others(self, names: list[str]) -> list[str]:
        read = {*self._voters(names)}
        others = [name for name in names if name not in read]
        clash = next((name for name in SCORE_COLUMNS if name in others), None)
        if clash is not None:
            raise InputError(f"`batch` must not have a column named {clash!r}, which scores have. Got one. Rename it.")
        return others

    def _voters(self, names: list[str]) -> list[str | None]:
        return matched_names(self.model, names, allow_mismatch=self.allow_mismatch, allow_missing=self.allow_missing)

    def _scores(self, batch: "pa.RecordBatch | pa.Table") -> "list[pa.Array]":
        import pyarrow as pa

        columns = BatchColumns(batch)
        scales = deep.model.scales_of_columns(self.model.voters, batch.schema.names, self.model.scales)
        votes = columns.votes(self._voters(batch.schema.names), scales)
        if not len(votes):
            return [pa.array([], field.type) for field in schema_of(SCORE_COLUMNS)]
        if self._table is None:
            result = self.model.scores_of(votes, streamed=True).columns()
            return [SCORE_COLUMNS[name].array(values) for name, values in result.items()]
        codes = deep.model.pattern_codes(votes)
        return [SCORE_COLUMNS[name].array(values[codes]) for name, values in self._table.items()]

    @cached_property
    def _table(self) -> dict[str, npt.NDArray[Any]] | None:
        """Return the scores of every pattern of votes; None where they are too many, as grades are."""
        model = self.model
        return model.scores_at(model.contexts, evidence=model.every_pattern).columns() if model.has_table else None

    def __reduce__(self) -> tuple[type["BatchScorer"], tuple[object, ...]]:
        """Return the parts that a worker makes the scorer of: no table that it can make itself."""
        return BatchScorer, (self.model, self.streamed, self.allow_mismatch, self.allow_missing)


def quoted(name: str) -> str:
    """Return an identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


# Types of SQL by those in Arrow.
SQL_TYPES = {"double": "DOUBLE PRECISION", "int8": "SMALLINT", "int64": "BIGINT"}

# Rows of one INSERT: databases bound the length of a statement, and one a row is slow to read.
ROWS_A_STATEMENT = 500


def export_table(model: Model, out: Path, to: Literal["csv", "parquet", "sql"], *, name: str = "deep_model") -> int:
    """Write every pattern of votes with its probability, to be joined wherever votes are kept.

    Parameters
    ----------
    model : Model
        Of at most 10 voters, of fewer where some give grades; one that gives shares has no table.
    out : Path
        The file to write, in the form that `to` names, whatever its ending.
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
    >>> from deep.integrations.engines import export_table
    >>> from deep.model import fit
    >>> model = fit(simulate_votes(0), sizes=[2], ensembler="LogisticRegression", calibrator="platt")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_table(model, Path(folder, "model.sql"), "sql")
    9
    """
    for voter in model.voter_names:
        check_name(voter, "model")
    check_name(name, "table")
    table = _every_pattern(model)
    with atomic_file(out) as scratch:
        if to == "sql":
            _check_names(model)
            with scratch.open("w", encoding="utf-8", newline="\n") as file:
                _write_sql(model, quoted(name), table, file)
        elif to == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, scratch)
        else:
            from pyarrow import csv

            csv.write_csv(table.rename_columns([escape_formula(name) for name in table.column_names]), scratch)
    return len(table)


def _every_pattern(model: Model) -> "pa.Table":
    """Return every pattern of answers, nulls for none, beside the columns of its scores."""
    import pyarrow as pa

    answers = _grid(model)
    # How many votes there are, a pattern tells itself.
    exported = [name for name in exported_columns() if name != "n_votes"]
    clash = next((name for name in exported if name in (voter.lower() for voter in model.voter_names)), None)
    if clash is not None:
        raise InputError(f"`model` must not have a voter named {clash!r}, which is a column of the table. Got one.")
    evidence, where = model.evidence(answers)
    scores = model.scores_at(model.contexts, evidence=evidence.of_rows(where)).columns(exported)
    columns = [_as_given(column, scale) for column, scale in zip(answers.T, _scales(model), strict=True)]
    columns += [SCORE_COLUMNS[name].array(cells) for name, cells in scores.items()]
    return pa.table(columns, names=[*model.voter_names, *exported])


def _scales(model: Model) -> list[Scale]:
    return [model.scales.get(name, BINARY) for name in model.voter_names]


def _grid(model: Model) -> AnyVotes:
    """Return every pattern of answers, as :meth:`Model.select` would: of grades, the whole steps of their scales."""
    levels = {name: scale.n_levels for name, scale in zip(model.voter_names, _scales(model), strict=True)}
    endless = next((name for name, n in levels.items() if n is None), None)
    if endless is not None:
        raise InputError(
            f"`model` must have judges with few levels to be a table. Got {endless!r}, whose scale is "
            f"{model.scales[endless]}. Score tables with `deep score` or `deep.load`."
        )
    n_patterns = prod(n + 1 for n in levels.values() if n is not None)
    if n_patterns > 3**MAX_TABLE_VOTERS:
        raise InputError(
            f"`model` must have at most {MAX_TABLE_VOTERS} voters to be a table, fewer of those that give grades. "
            f"Got {len(levels)} with {n_patterns:,} patterns. Fit one with smaller --sizes."
        )
    if model.has_table:
        return pattern_grid(len(levels))
    steps = [[np.nan, *np.linspace(0, 1, n)] for n in levels.values() if n is not None]
    return np.array([*product(*steps)])


def _as_given(answers: AnyVotes, scale: Scale) -> "pa.Array":
    """Return a column of answers as the judge gives them: numbers, or words where its scale has some."""
    import pyarrow as pa

    if is_votes(answers):
        return pa.array(answers, mask=answers == ABSTAIN)
    cells = [None if np.isnan(at) else scale.answer(at) if scale.words else int(scale.number(at)) for at in answers]
    return pa.array(cells, pa.string() if scale.words else pa.int16())


def _write_sql(model: Model, name: str, table: "pa.Table", file: TextIO) -> None:
    voters = [quoted(voter) for voter in model.voter_names]
    same = "\n  AND ".join(f"v.{voter} IS NOT DISTINCT FROM m.{voter}" for voter in voters)
    example = f"  SELECT v.*, m.p_consistent, m.decision FROM votes AS v JOIN {name} AS m\n  ON {same};"
    scores = (
        f"{column} {SQL_TYPES[SCORE_COLUMNS[column].type]}{'' if table[column].null_count else ' NOT NULL'}"
        for column in table.column_names[len(voters) :]
    )
    types = ["TEXT" if scale.words else "SMALLINT" for scale in _scales(model)]
    columns = ",\n  ".join([*map(" ".join, zip(voters, types, strict=True)), *scores])
    file.write(
        "-- P(consistent) of every pattern of votes: 1 consistent, 0 inconsistent, NULL no vote, grades as given.\n"
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
    forms: dict[str, str] = {}
    for voter in model.voter_names:
        before = forms.setdefault(voter.lower(), voter)
        if before != voter:
            raise InputError(
                f"`model` must have voters whose names differ in more than case, which SQL ignores. Got {before!r} and "
                f"{voter!r}. Export CSV or Parquet."
            )


def _literal(value: float | str | None) -> str:
    """Return a value in SQL; the exponent makes it a double at once, without one DuckDB takes it for a decimal."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if value is None or isinstance(value, int):
        return "NULL" if value is None else str(value)
    return repr(value) if "e" in repr(value) else f"{value!r}e0"


# The column of a table of patterns that says how many rows have each.
COUNT = "n"


def moments_sql(model: Model, *, table: str = "votes") -> str:
    """Return one SELECT that counts every pattern of votes by dataset, in words that every SQL database knows.

    Parameters
    ----------
    model : Model
        Of votes alone.
    table : str, default='votes'
        The table with a column `dataset` and one for each voter: 1, 0, or NULL for no vote.

    Raises
    ------
    InputError
        The model has soft scores, or `table` is no name.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.integrations.engines import moments_sql
    >>> from deep.model import fit
    >>> model = fit(simulate_votes(0), sizes=[1], ensembler="LogisticRegression", calibrator="platt")
    >>> print(moments_sql(model).splitlines()[-1])
    GROUP BY "dataset", "prompt-1/gpt-4";
    """
    if model.score_names:
        raise InputError(
            f"`model` must be one of votes alone to be counted in SQL. Got one with soft scores, "
            f"{model.score_names[0]!r}. Give `deep data moments` the votes and scores, or call `moments_of_batch`."
        )
    check_name(table, "table")
    for name in model.voter_names:
        check_name(name, "model")
    columns = ", ".join(['"dataset"', *(quoted(name) for name in model.voter_names)])
    return (
        "-- Counts of every pattern of votes, by dataset: what a model needs of a whole dataset before it scores one.\n"
        "-- Save the result as cells.csv or cells.parquet; tables of parts of the rows do as well. In DuckDB:\n"
        "--   COPY (this SELECT without its semicolon) TO 'cells.parquet' (FORMAT parquet);\n"
        "-- Then: deep data moments model.json --cells cells.parquet --out moments.json\n"
        f'SELECT {columns}, COUNT(*) AS "n"\nFROM {quoted(table)}\nGROUP BY {columns};\n'
    )
