"""Score tables of votes, a piece at a time."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deep._checks import Floats, Votes
from deep._files import whole_file
from deep.datasets import VOTE_COLUMNS, VoteRows, iter_votes, table_columns
from deep.model.file._model import Model
from deep.model.file._voters import match_columns
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv, parquet

COLUMNS = ("dataset", "item_id", "label", "p_consistent", "p_uncalibrated", "n_votes", "p_low", "p_high")


@dataclass(frozen=True)
class ScoreOptions:
    """How votes are matched to a model's voters, and at which class prior, given or estimated, they are scored."""

    allow_mismatch: bool = False
    allow_missing: bool = False
    prior: float | None = None
    estimated: bool = False


def score_schema() -> "pa.Schema":
    """Return the columns of scores: those of `scores.parquet`, and the interval."""
    import pyarrow as pa

    kinds = (pa.string(), pa.string(), pa.int8(), pa.float64(), pa.float64(), pa.int64(), pa.float64(), pa.float64())
    return pa.schema(list(zip(COLUMNS, kinds, strict=True)))


def score_file(model: Model, paths: Sequence[str], out: Path, options: ScoreOptions) -> int:
    """Score tables of votes into a CSV or Parquet file, and return the number of rows.

    Raises
    ------
    InputError
        A table cannot be read, a voter of the model is missing or of another version or model, or an item comes
        twice. Nothing is written then.
    """
    names = [name for name in table_columns(paths) if name not in VOTE_COLUMNS]
    matched = match_columns(
        model.voters, names, allow_mismatch=options.allow_mismatch, allow_missing=options.allow_missing
    )
    read = list(dict.fromkeys(names[column] for column in matched if column is not None))
    # A voter without a column looks up the last one, of no votes.
    place = [len(read) if column is None else read.index(names[column]) for column in matched]
    return write_tables((score_table(model, piece, options, place) for piece in iter_votes(paths, read)), out)


def write_tables(tables: "Iterable[pa.Table]", out: Path) -> int:
    """Write tables of scores below each other, whole or not at all, and return the number of rows."""
    n = 0
    with whole_file(out) as scratch, ExitStack() as stack:
        file = stack.enter_context(writer(scratch, out.suffix.lower(), score_schema()))
        for table in tables:
            file.write_table(table)
            n += len(table)
        stack.close()  # before the file takes its place
    return n


def writer(path: Path, suffix: str, schema: "pa.Schema") -> "parquet.ParquetWriter | csv.CSVWriter":
    """Return a writer of tables of these columns to a Parquet or CSV file."""
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, schema)
    from pyarrow import csv

    return csv.CSVWriter(path, schema)


def score_table(model: Model, rows: VoteRows, options: ScoreOptions, place: Sequence[int] | None = None) -> "pa.Table":
    """Return the scores of rows, whose votes have the model's voters in their order, or at the columns `place`."""
    import pyarrow as pa

    votes = rows.votes
    if place is not None and place != list(range(votes.shape[1])):
        votes = np.column_stack([votes, np.full(len(votes), ABSTAIN, dtype=np.int8)])[:, place]
    columns = [rows.datasets, rows.example_ids, pa.array(rows.labels, mask=rows.labels == ABSTAIN)]
    columns += [pa.array(values, mask=np.isnan(values)) for values in _scores(model, votes, options)]
    return pa.table(columns, schema=score_schema())


def score_rows(model: Model, votes: Votes, options: ScoreOptions) -> list[dict[str, float | None]]:
    """Return the columns of scores that votes decide for each row, None where there is no interval."""
    found = zip(*(values.tolist() for values in _scores(model, votes, options)), strict=True)
    return [dict(zip(COLUMNS[3:], (None if v != v else v for v in row), strict=True)) for row in found]


def _scores(model: Model, votes: Votes, options: ScoreOptions) -> list[Floats]:
    """Return the last five columns of scores."""
    p, prior = model.uncalibrated(votes), options.prior
    bounds = model.intervals(votes, prior=prior, estimated=options.estimated)
    return [model.score(votes, prior=prior), p, (votes != ABSTAIN).sum(axis=1), *bounds.T]
