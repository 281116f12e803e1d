"""The rows that a model scores, a piece at a time, and their log-odds on disk until their dataset is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Positions, Votes
from deep._util.names import check_name
from deep.datasets import VOTE_COLUMNS, VoteRows, iter_votes, join_scores, read_scores, table_columns
from deep.exceptions import InputError
from deep.model.file._model import Model
from deep.model.file._table import MAX_TABLE_VOTERS, match_columns, other_columns
from deep.model.linear import Rows
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    import pyarrow as pa


def scores_for(model: Model, votes: VoteMatrix, paths: Sequence[str]) -> Floats | None:
    """Return the soft scores of a model beside votes, in its order; None where it was fitted on none.

    Parameters
    ----------
    model : Model
    votes : VoteMatrix
    paths : sequence of str
        Tables of scores; other columns of them are not read.

    Raises
    ------
    InputError
        There are no tables where the model needs some, or it has no use for them, or a column is missing.
    """
    check_score_columns(model, paths)
    if not paths:
        return None
    columns = table_columns(paths)
    ignored = [name for name in columns if name not in ("dataset", "item_id", "label", *model.score_names)]
    found = join_scores(votes, read_scores(paths, ignore=ignored))
    return found.scores[:, [found.score_names.index(name) for name in model.score_names]]


def check_score_columns(model: Model, paths: Sequence[str]) -> None:
    """Raise where tables lack a score of a model, or there are none where it needs some, or the reverse."""
    check_scores_given(model, paths)
    columns = table_columns(paths) if paths else ()
    missing = [name for name in model.score_names if name not in columns]
    if missing:
        names = ", ".join(model.score_names)
        raise InputError(f"`scores` must have the columns {names}. Got none named {missing[0]!r}.")


def check_scores_given(model: Model, paths: Sequence[str]) -> None:
    """Raise where a model needs soft scores and has none, or the reverse."""
    if bool(paths) != bool(model.score_names):
        names = ", ".join(model.score_names)
        what = f"be given with a model that was fitted on them: {names}" if names else "not be given with this model"
        raise InputError(f"`scores` must {what}. Got {repr(paths[0]) if paths else 'none'}.")


KEYS = ("dataset", "item_id", "label")
"""The columns that name a row and say what is known of it."""


@dataclass(frozen=True)
class ScoreOptions:
    """How votes are matched to a model's voters, and at which class prior they are scored; None: the estimated one."""

    allow_mismatch: bool = False
    allow_missing: bool = False
    prior: float | None = None


@dataclass(frozen=True, eq=False)
class VotePiece:
    """Some rows of a table: ids, votes in the order of the model, dataset."""

    rows: VoteRows
    votes: Votes
    datasets: list[str]
    dataset_of: Positions  # position in `datasets` of each row

    def plain(self) -> Rows:
        """Return the votes and scores, each row counting once."""
        return Rows(self.votes, self.rows.scores, np.ones(len(self.votes)))


def iter_pieces(
    model: Model, paths: Sequence[str], scores: Sequence[str], options: ScoreOptions
) -> Iterator[VotePiece]:
    """Read a model's voters and scorers from tables of votes and of scores.

    Raises
    ------
    InputError
        A column is missing or of another version or model, or a table cannot be read.
    """
    check_score_columns(model, scores)
    ignored = set(other_columns(model.voters, list(paths))) if scores else set()
    names = [name for name in table_columns(paths) if name not in VOTE_COLUMNS and name not in ignored]
    matching = {"allow_mismatch": options.allow_mismatch, "allow_missing": options.allow_missing}
    matched = match_columns(model.voters, names, **matching)
    read = list(dict.fromkeys(names[column] for column in matched if column is not None))
    # A voter without a column looks up the last one, of no votes.
    place = [len(read) if column is None else read.index(names[column]) for column in matched]
    for rows in iter_votes(paths, read, scores=scores, score_names=model.score_names):
        votes = rows.votes
        if place != list(range(votes.shape[1])):
            votes = np.column_stack([votes, np.full(len(votes), ABSTAIN, dtype=np.int8)])[:, place]
        yield VotePiece(rows, votes, *dataset_codes(rows.datasets))


def dataset_codes(names: object) -> tuple[list[str], Positions]:
    """Return the distinct names of datasets, and which of them each row has.

    Raises
    ------
    InputError
        A name cannot stand on one line.
    """
    import pyarrow as pa

    column = names if isinstance(names, pa.ChunkedArray) else pa.chunked_array([pa.array(names, pa.string())])
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    return [check_name(name, "dataset") for name in coded.dictionary.to_pylist()], np.asarray(coded.indices)


def rows_by_dataset(dataset_of: Positions, n: int) -> Sequence[Positions | slice]:
    """Return the rows of each of n datasets, in one sort: pieces may hold thousands of them."""
    if n == 1:
        return [slice(None)]
    order = np.argsort(dataset_of, kind="stable")
    return np.split(order, np.cumsum(np.bincount(dataset_of, minlength=n))[:-1])


def by_pattern(model: Model) -> bool:
    """Say whether all that a model says of a row hangs on its pattern of votes, of which there are few."""
    return not model.score_names and len(model.voters) <= MAX_TABLE_VOTERS


class KeptRows:
    """Rows on disk, from the pass that reads tables to the one that writes scores: ids, and log-odds or patterns.

    Where everything hangs on the pattern of votes, its code is kept; else the weighted log-odds, to which the dataset's
    contexts add the same for all of its rows, the number of votes, and of a chain P before calibration.

    Parameters
    ----------
    model : Model
    path : Path
        Written anew.
    """

    def __init__(self, model: Model, path: Path) -> None:
        import pyarrow as pa

        number, whole = pa.float64(), pa.int32()
        more = (
            [("pattern", whole)] if by_pattern(model) else [("log_odds", number), ("n_votes", whole), ("own", number)]
        )
        names = [(name, pa.int8() if name == "label" else pa.string()) for name in KEYS]
        self.schema = pa.schema([*names, *more])
        self._model, self._path = model, path

    def write(self, pieces: "Iterator[tuple[VotePiece, npt.NDArray[Any]]]") -> None:
        """Keep pieces of rows with their log-odds by part, or the codes of their patterns."""
        import pyarrow as pa

        with pa.OSFile(str(self._path), "wb") as file, pa.ipc.new_stream(file, self.schema) as stream:
            for piece, raw in pieces:
                stream.write_table(self._table(piece, raw))

    def _table(self, piece: VotePiece, found: npt.NDArray[Any]) -> "pa.Table":
        import pyarrow as pa

        rows, votes = piece.rows, piece.votes
        names = [rows.datasets, rows.example_ids, pa.array(rows.labels, mask=rows.labels == ABSTAIN)]
        if by_pattern(self._model):
            return pa.table([*names, found], schema=self.schema)
        own = self._model.uncalibrated(votes)
        n_votes = (votes != ABSTAIN).sum(axis=1)
        kept = [self._model.blend.weighted(found), n_votes, pa.nulls(len(votes), pa.float64()) if own is None else own]
        return pa.table([*names, *kept], schema=self.schema)

    def __iter__(self) -> "Iterator[pa.Table]":
        """Yield the rows again, a piece at a time."""
        import pyarrow as pa

        with pa.OSFile(str(self._path), "rb") as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                yield pa.Table.from_batches([batch])
