"""Score tables of votes in two passes, a piece at a time: the first finds each dataset's contexts, the second P."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deep._checks import Floats, Votes
from deep._checks import Rows as Positions
from deep._files import whole_file
from deep._odds import expit
from deep.datasets import VOTE_COLUMNS, VoteRows, iter_votes, read_votes, table_columns
from deep.model.file._columns import check_scores_given, other_columns, scores_for
from deep.model.file._inspect_records import InspectWriter
from deep.model.file._model import Model
from deep.model.file._moments import Moments, moments_of_votes
from deep.model.file._voters import match_columns
from deep.model.linear import Rows
from deep.model.pool import Scores
from deep.model.target import PriorEstimate, context_of_mean
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv, parquet

COLUMNS = (
    "dataset",
    "item_id",
    "label",
    "p_consistent",
    "p_uniform",
    "p_uncalibrated",
    "n_votes",
    "p_low",
    "p_high",
)


@dataclass(frozen=True)
class ScoreOptions:
    """How votes are matched to a model's voters, and at which class prior they are scored; None: the estimated one."""

    allow_mismatch: bool = False
    allow_missing: bool = False
    prior: float | None = None


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some rows of a table: what names them, their votes in the order of the model, their scores, their dataset."""

    rows: VoteRows
    votes: Votes
    scores: Floats
    datasets: list[str]
    dataset_of: np.ndarray  # position in `datasets` of each row


@dataclass
class _Sums:
    """Sum of P by part and number of rows, of one dataset."""

    p: Floats | float = 0.0
    n: int = 0

    def contexts(self) -> Floats:
        """Return the context of each part."""
        return np.array([context_of_mean(value / self.n) for value in np.atleast_1d(self.p)])


@dataclass(frozen=True)
class ScoredFile:
    """The number of rows that were scored, and the prior of each dataset."""

    n: int
    priors: dict[str, PriorEstimate] = field(default_factory=dict)


def score_schema() -> "pa.Schema":
    """Return the columns of scores."""
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    kinds = (text, text, pa.int8(), number, number, number, pa.int64(), number, number)
    return pa.schema(list(zip(COLUMNS, kinds, strict=True)))


def score_file(
    model: Model,
    paths: Sequence[str],
    out: Path,
    options: ScoreOptions,
    scores: Sequence[str] = (),
    to: str | None = None,
) -> ScoredFile:
    """Score tables of votes into a CSV or Parquet file, each dataset at its own prior.

    Parameters
    ----------
    model : Model
    paths : sequence of str
        Tables of votes. One Parquet file of any length is read twice and never held in memory.
    out : Path
    options : ScoreOptions
    scores : sequence of str, optional
        Tables of soft scores, where the model was fitted with some; they and the votes are held in memory.
    to : {'inspect'}, optional
        JSON lines for a tool in place of a table; see :func:`writer`.

    Raises
    ------
    InputError
        A table cannot be read, a voter of the model is missing or of another version or model, or an item comes
        twice. Nothing is written then.
    """
    check_scores_given(model, scores)
    sums: dict[str, _Sums] = {}
    for piece in _pieces(model, paths, scores, options):
        _add(sums, model, piece)
    contexts = {name: model.contexts if model.target is not None else one.contexts() for name, one in sums.items()}
    tables = (_table(model, piece, contexts, options) for piece in _pieces(model, paths, scores, options))
    n = _write_tables(tables, out, to)
    empty = np.empty((len(model.blend.parts), 0))
    priors = {name: model.scores_at(empty, at, options.prior).prior for name, at in contexts.items()}
    return ScoredFile(n, {name: _warned(model, name, prior) for name, prior in priors.items()})


def moments_of_files(model: Model, paths: Sequence[str], options: ScoreOptions, scores: Sequence[str] = ()) -> Moments:
    """Return the moments of tables of votes, read a piece at a time as by :func:`score_file`."""
    check_scores_given(model, scores)
    found = Moments.empty(model)
    for piece in _pieces(model, paths, scores, options):
        names = np.array(piece.datasets, dtype=object)[piece.dataset_of]
        soft = piece.scores if scores else None
        found = found.merge(moments_of_votes(model, piece.votes, datasets=names, scores=soft))
    return found


def _warned(model: Model, name: str, prior: PriorEstimate) -> PriorEstimate:
    """Warn where the model is that of another dataset."""
    if model.target in (None, name):
        return prior
    return replace(prior, warning=f"The model is that of {model.target}, whose prior and context stand in.")


def _add(sums: dict[str, _Sums], model: Model, piece: _Piece) -> None:
    """Add the rows of a piece to the sums of their datasets."""
    p = expit(model.raw(_rows(piece.votes, piece.scores)))
    n = np.bincount(piece.dataset_of, minlength=len(piece.datasets))
    by_part = np.array([np.bincount(piece.dataset_of, weights=row, minlength=len(n)) for row in p]).T
    for name, parts, rows in zip(piece.datasets, by_part, n.tolist(), strict=True):
        one = sums.setdefault(name, _Sums())
        one.p = one.p + parts
        one.n += rows


def _pieces(model: Model, paths: Sequence[str], scores: Sequence[str], options: ScoreOptions) -> Iterator[_Piece]:
    matching = {"allow_mismatch": options.allow_mismatch, "allow_missing": options.allow_missing}
    if scores:
        every = read_votes(paths, ignore=other_columns(model, paths))
        soft = scores_for(model, every, scores)
        assert soft is not None  # there are tables
        whole = VoteRows(every.datasets, every.example_ids, every.labels, model.select(every, **matching))
        yield _piece(whole, whole.votes, soft)
        return
    names = [name for name in table_columns(paths) if name not in VOTE_COLUMNS]
    matched = match_columns(model.voters, names, **matching)
    read = list(dict.fromkeys(names[column] for column in matched if column is not None))
    # A voter without a column looks up the last one, of no votes.
    place = [len(read) if column is None else read.index(names[column]) for column in matched]
    for rows in iter_votes(paths, read):
        votes = rows.votes
        if place != list(range(votes.shape[1])):
            votes = np.column_stack([votes, np.full(len(votes), ABSTAIN, dtype=np.int8)])[:, place]
        yield _piece(rows, votes, np.empty((len(votes), 0)))


def _piece(rows: VoteRows, votes: Votes, scores: Floats) -> _Piece:
    import pyarrow as pa

    names = rows.datasets if isinstance(rows.datasets, pa.Array | pa.ChunkedArray) else pa.array(rows.datasets)
    coded = names.cast(pa.string()).dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    return _Piece(rows, votes, scores, coded.dictionary.to_pylist(), np.asarray(coded.indices))


def _rows(votes: Votes, scores: Floats) -> Rows:
    return Rows(votes, scores, np.ones(len(votes)))


def _table(model: Model, piece: _Piece, contexts: dict[str, Floats], options: ScoreOptions) -> "pa.Table":
    """Return the scores of a piece."""
    import pyarrow as pa

    raw, rows = model.raw(_rows(piece.votes, piece.scores)), piece.rows
    values = np.empty((5, len(piece.votes)))
    for name, at in zip(piece.datasets, _rows_by_dataset(piece), strict=True):
        found = model.scores_at(raw[:, at], contexts[name], options.prior)
        values[:, at] = five_scores(model, piece.votes[at], found)
    p, uniform, uncalibrated, low, high = values
    labels = pa.array(rows.labels, mask=rows.labels == ABSTAIN)
    n_votes = (piece.votes != ABSTAIN).sum(axis=1)
    columns = [rows.datasets, rows.example_ids, labels, p, uniform, uncalibrated, n_votes, low, high]
    return pa.table(columns, schema=score_schema())


def _rows_by_dataset(piece: _Piece) -> list[Positions]:
    """Return the rows of each dataset of a piece, in one sort: pieces may hold thousands of datasets."""
    order = np.argsort(piece.dataset_of, kind="stable")
    ends = np.cumsum(np.bincount(piece.dataset_of, minlength=len(piece.datasets)))[:-1]
    return list(np.split(order, ends))


def five_scores(model: Model, votes: Votes, found: Scores) -> list[Floats]:
    """Return P at the prior, at equal class weights, before calibration, and the bounds."""
    uniform, own = found.p_uniform, model.uncalibrated(votes)
    return [found.p_consistent, uniform, uniform if own is None else own, *found.interval()]


def score_rows(model: Model, votes: Votes, options: ScoreOptions) -> list[dict[str, float]]:
    """Return the columns of scores, and the decision, of rows as if of a dataset like the training ones.

    The decision is 1 where an item is called consistent, at the prior unless labels moved it, and 0 elsewhere.
    """
    check_scores_given(model, ())
    raw = model.raw(_rows(votes, np.empty((len(votes), 0))))
    scores = model.scores_at(raw, model.contexts, options.prior)
    p, uniform, own, low, high = five_scores(model, votes, scores)
    columns = (p, uniform, own, (votes != ABSTAIN).sum(axis=1), low, high, scores.decisions.astype(int))
    found = zip(*(values.tolist() for values in columns), strict=True)
    return [dict(zip((*COLUMNS[3:], "decision"), row, strict=True)) for row in found]


def _write_tables(tables: "Iterable[pa.Table]", out: Path, to: str | None) -> int:
    """Write tables of scores below each other, whole or not at all, and return the number of rows."""
    n = 0
    with whole_file(out) as scratch, ExitStack() as stack:
        file = stack.enter_context(writer(scratch, out.suffix.lower(), score_schema(), to))
        for table in tables:
            file.write_table(table)
            n += len(table)
        stack.close()  # before the file takes its place
    return n


def writer(
    path: Path, suffix: str, schema: "pa.Schema", to: str | None = None
) -> "parquet.ParquetWriter | csv.CSVWriter | InspectWriter":
    """Return a writer of tables of these columns to a Parquet or CSV file, or `to` what Inspect reads."""
    if to == "inspect":
        return InspectWriter(path)
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, schema)
    from pyarrow import csv

    return csv.CSVWriter(path, schema)


def prior_lines(found: dict[str, PriorEstimate]) -> Iterator[str]:
    """Yield a line a dataset, with what makes its prior less sure."""
    for name, prior in found.items():
        warning = f" ({prior.warning})" if prior.warning else ""
        yield (
            f"{name}: {100 * prior.estimate:.1f} % consistent, 90 % interval {100 * prior.low:.1f} to "
            f"{100 * prior.high:.1f}{warning}"
        )
