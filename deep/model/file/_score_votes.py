"""Score tables of votes: a Parquet file of any length goes through in pieces."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deep._files import whole_file
from deep.datasets import read_votes
from deep.exceptions import InputError
from deep.model.file._columns import other_columns
from deep.model.file._model import Model
from deep.model.file._voters import match_columns
from deep.records import ABSTAIN

__all__ = ["Piece", "ScoreOptions", "score_file", "score_rows", "score_schema", "write_tables", "writer"]

ROWS_AT_ONCE = 1 << 17

COLUMNS = ("dataset", "item_id", "label", "p_consistent", "p_uncalibrated", "n_votes", "p_low", "p_high")


@dataclass(frozen=True)
class ScoreOptions:
    """How votes are matched to a model's voters, and at which class prior, given or estimated, they are scored."""

    allow_mismatch: bool = False
    allow_missing: bool = False
    prior: float | None = None
    estimated: bool = False


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows: ids and labels as Arrow arrays, and the votes of the model's voters."""

    dataset: Any
    item_id: Any
    label: Any
    votes: npt.NDArray[np.int8]


class _NotPlainError(Exception):
    """A file that cannot go through in pieces; the reader of whole files says what is wrong, or reads it."""


def score_schema() -> Any:
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
    if len(paths) == 1 and paths[0].lower().endswith(".parquet"):
        try:
            return _write(model, _in_pieces(model, paths[0], options), out, options)
        except _NotPlainError:
            pass
    return _write(model, _whole(model, paths, options), out, options)


def _write(model: Model, pieces: Iterator[Piece], out: Path, options: ScoreOptions) -> int:
    return write_tables((score_rows(model, piece, options) for piece in pieces), out)


def write_tables(tables: Iterator[Any], out: Path) -> int:
    """Write tables of scores below each other, whole or not at all, and return the number of rows."""
    n = 0
    with whole_file(out) as scratch, ExitStack() as stack:
        file = stack.enter_context(writer(scratch, out.suffix.lower(), score_schema()))
        for table in tables:
            file.write_table(table)
            n += len(table)
        stack.close()  # before the file takes its place
    return n


def writer(path: Path, suffix: str, schema: Any) -> Any:
    """Return what writes tables of these columns to a Parquet or CSV file."""
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, schema)
    from pyarrow import csv

    return csv.CSVWriter(path, schema)


def score_rows(model: Model, piece: Piece, options: ScoreOptions) -> Any:
    """Return the scores of some rows as an Arrow table."""
    import pyarrow as pa

    bounds = model.intervals(piece.votes, prior=options.prior, estimated=options.estimated)
    columns = [
        piece.dataset,
        piece.item_id,
        piece.label,
        model.score(piece.votes, prior=options.prior),
        model.uncalibrated(piece.votes),
        (piece.votes != ABSTAIN).sum(axis=1),
        *(pa.array(bound, mask=np.isnan(bound)) for bound in bounds.T),
    ]
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, score_schema(), strict=True)],
        schema=score_schema(),
    )


def _whole(model: Model, paths: Sequence[str], options: ScoreOptions) -> Iterator[Piece]:
    """Yield the rows of tables that are read whole."""
    votes = read_votes(list(paths), ignore=other_columns(model, paths))
    matrix = model.select(votes, allow_mismatch=options.allow_mismatch, allow_missing=options.allow_missing)
    for start in range(0, len(matrix), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        labels = votes.labels[rows].astype(object)
        labels[labels == ABSTAIN] = None
        yield Piece(votes.datasets[rows], votes.example_ids[rows], labels.tolist(), matrix[rows])


def _in_pieces(model: Model, path: str, options: ScoreOptions) -> Iterator[Piece]:
    """Yield the rows of a Parquet file as they come; ids are held as hashes only, to find one that comes twice."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            yield from _pieces(model, file, options)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise _NotPlainError from None


def _pieces(model: Model, file: Any, options: ScoreOptions) -> Iterator[Piece]:
    names = file.schema_arrow.names
    if len(set(names)) < len(names) or not {"dataset", "item_id"} <= set(names):
        raise _NotPlainError
    voters = [name for name in names if name not in ("dataset", "item_id", "label", "document_id", "family")]
    try:
        matched = match_columns(
            model.voters, voters, allow_mismatch=options.allow_mismatch, allow_missing=options.allow_missing
        )
    except InputError:
        raise _NotPlainError from None
    wanted = [None if column is None else voters[column] for column in matched]
    read = ["dataset", "item_id", *(["label"] if "label" in names else []), *{name for name in wanted if name}]
    seen = []
    for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=read):
        if batch.num_rows:
            yield _piece(batch, wanted)
            seen.append(_id_hashes(batch))
    if not seen or len(np.unique(hashes := np.concatenate(seen))) < len(hashes):
        raise _NotPlainError


def _piece(batch: Any, wanted: Sequence[str | None]) -> Piece:
    columns = [
        np.full(batch.num_rows, ABSTAIN, dtype=np.int8) if name is None else _ternary(batch.column(name))
        for name in wanted
    ]
    label = [None] * batch.num_rows
    if "label" in batch.schema.names:
        known = _ternary(batch.column("label")).astype(object)
        known[known == ABSTAIN] = None
        label = known.tolist()
    return Piece(_ids(batch, "dataset"), _ids(batch, "item_id"), label, np.column_stack(columns))


def _ids(batch: Any, name: str) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    column = batch.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    if not any(is_kind(column.type) for is_kind in kinds):
        raise _NotPlainError
    column = column.cast(pa.string())
    if column.null_count or compute.any(compute.equal(column, "")).as_py():
        raise _NotPlainError
    return column


def _ternary(column: Any) -> npt.NDArray[np.int8]:
    """Return votes or labels as int8, -1 where null; only plain numbers, that are 0 or 1, are read in pieces."""
    import pyarrow as pa

    if not (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type) or pa.types.is_null(column.type)):
        raise _NotPlainError
    try:
        values = column.cast(pa.int8()).fill_null(ABSTAIN).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        raise _NotPlainError from None
    if ((values != 0) & (values != 1)).sum() != column.null_count:
        raise _NotPlainError
    return np.asarray(values, dtype=np.int8)


def _id_hashes(batch: Any) -> npt.NDArray[np.uint64]:
    import pandas as pd

    frame = pd.DataFrame({name: _ids(batch, name).to_numpy(zero_copy_only=False) for name in ("dataset", "item_id")})
    return np.asarray(pd.util.hash_pandas_object(frame, index=False), dtype=np.uint64)
