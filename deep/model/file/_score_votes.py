"""Score tables of votes a piece at a time: first each dataset's contexts are found, then P of its rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Positions, Votes
from deep._util.files import whole_file
from deep._util.odds import expit
from deep._util.plain_cells import PlainCsvWriter
from deep.datasets import BatchColumns
from deep.exceptions import InputError
from deep.model.adaptation import PriorEstimate, context_of_mean
from deep.model.file._export import InspectWriter
from deep.model.file._model import Model
from deep.model.file._moments import Moments, matched_names, merged, moments_of_piece
from deep.model.file._pieces import (
    KeptRows,
    ScoreOptions,
    VotePiece,
    by_pattern,
    check_scores_given,
    dataset_codes,
    iter_pieces,
    rows_by_dataset,
)
from deep.model.file._table import MAX_TABLE_VOTERS, pattern_codes, pattern_grid
from deep.model.linear import Rows
from deep.model.score import Scores
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

    BatchLike = TypeVar("BatchLike", pa.RecordBatch, pa.Table)


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows of one dataset with their scores.

    Parameters
    ----------
    scores : Scores
    own : ndarray of float, shape (n_rows,), optional
        P of a chain before calibration; None where the model is no chain.
    n_votes : ndarray of int, shape (n_rows,)
    """

    scores: Scores
    own: Floats | None
    n_votes: npt.NDArray[np.integer]

    @cached_property
    def uniform(self) -> Floats:
        """Return P at equal class weights."""
        return self.scores.p_uniform

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Return the bounds of P."""
        return self.scores.interval()

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of scores by name."""
        return {name: of(self) for name, (_, of) in SCORE_COLUMNS.items()}


ITEM_COLUMNS = {"dataset": "string", "item_id": "string", "label": "int8"}
"""The columns that name a row and say what is known of it, with their types in Arrow."""

SCORE_COLUMNS: Mapping[str, tuple[str, Callable[[ScoredRows], npt.NDArray[Any]]]] = {
    "p_consistent": ("double", lambda rows: rows.scores.p_consistent),
    "p_uniform": ("double", lambda rows: rows.uniform),
    "p_uncalibrated": ("double", lambda rows: rows.uniform if rows.own is None else rows.own),
    "n_votes": ("int64", lambda rows: rows.n_votes),
    "p_low": ("double", lambda rows: rows.bounds[0]),
    "p_high": ("double", lambda rows: rows.bounds[1]),
}
"""What is said of a row, with its type in Arrow and in numpy."""


def score_schema() -> "pa.Schema":
    """Return the columns of scores."""
    return schema_of({**ITEM_COLUMNS, **{name: kind for name, (kind, _) in SCORE_COLUMNS.items()}})


def schema_of(types: Mapping[str, str]) -> "pa.Schema":
    """Return columns of these types."""
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in types.items()])


def count_votes(votes: Votes) -> npt.NDArray[np.integer]:
    """Return how many voters voted on each row."""
    return np.asarray((votes != ABSTAIN).sum(axis=1))


KEPT_TABLES = 8
"""Of large datasets, the scores of every pattern of votes; more are made again."""


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
        Tables of votes. One Parquet file of any length is never held in memory: what P is made of, less than what is
        written, waits beside `out` until the contexts of its datasets are known.
    out : Path
    options : ScoreOptions
    scores : sequence of str, optional
        Tables of soft scores, where the model was fitted with some. Parquet files of the same items in the same order
        as the votes, or their very file, are not held in memory either; others are joined there.
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
    with whole_file(out) as scratch:
        kept = KeptRows(model, scratch.with_name("rows"))
        kept.write((piece, _add(sums, model, piece)) for piece in iter_pieces(model, paths, scores, options))
        known = model.contexts if model.target is not None else None
        contexts = {name: one.contexts() if known is None else known for name, one in sums.items()}
        score = _RowScorer(model, contexts, {name: one.n for name, one in sums.items()}, options.prior)
        n = _write_tables(map(score, kept), scratch, out.suffix.lower(), to, dense=not by_pattern(model))
    empty = np.empty((len(model.blend.parts), 0))
    priors = {name: model.scores_at(empty, at, options.prior).prior for name, at in contexts.items()}
    return ScoredFile(n, {name: _warned(model, name, prior) for name, prior in priors.items()})


def moments_of_files(model: Model, paths: Sequence[str], options: ScoreOptions, scores: Sequence[str] = ()) -> Moments:
    """Return the moments of tables of votes, read a piece at a time as by :func:`score_file`."""
    check_scores_given(model, scores)
    pieces = iter_pieces(model, paths, scores, options)
    return merged(Moments.empty(model), (moments_of_piece(model, piece) for piece in pieces))


def _warned(model: Model, name: str, prior: PriorEstimate) -> PriorEstimate:
    """Warn where the model is that of another dataset."""
    if model.target in (None, name):
        return prior
    return replace(prior, warning=f"The model is that of {model.target}, whose prior and context stand in.")


def _add(sums: dict[str, _Sums], model: Model, piece: VotePiece) -> Floats:
    """Add the rows of a piece to the sums of their datasets, and return their log-odds by part."""
    raw = model.raw(piece.plain())
    n = np.bincount(piece.dataset_of, minlength=len(piece.datasets))
    by_part = np.array([np.bincount(piece.dataset_of, weights=row, minlength=len(n)) for row in expit(raw)]).T
    for name, parts, rows in zip(piece.datasets, by_part, n.tolist(), strict=True):
        one = sums.setdefault(name, _Sums())
        one.p = one.p + parts
        one.n += rows
    return raw


class _RowScorer:
    """Turns kept rows into scores.

    Parameters
    ----------
    model : Model
    contexts : mapping of str to ndarray
        By dataset.
    sizes : mapping of str to int
        How many rows a dataset has: of large ones the scores of every pattern are looked up.
    prior : float, optional
    """

    def __init__(
        self, model: Model, contexts: Mapping[str, Floats], sizes: Mapping[str, int], prior: float | None
    ) -> None:
        self._model, self._contexts, self._sizes, self._prior = model, contexts, sizes, prior
        self._grid = pattern_grid(len(model.voters)) if by_pattern(model) else None
        self._of_every_pattern = lru_cache(KEPT_TABLES)(lambda name: self._of_patterns(name, slice(None)))

    def __call__(self, kept: "pa.Table") -> "pa.Table":
        """Return the scores of a piece."""
        import pyarrow as pa

        names, dataset_of = dataset_codes(kept["dataset"])
        columns = {name: kept[name].to_numpy() for name in kept.schema.names[3:]}
        values = [np.empty(len(kept), kind) for kind, _ in SCORE_COLUMNS.values()]
        for name, at in zip(names, rows_by_dataset(dataset_of, len(names)), strict=True):
            found = self._of_rows(name, {column: cells[at] for column, cells in columns.items()})
            for column, cells in zip(values, found, strict=True):
                column[at] = cells
        return pa.table([*kept.columns[:3], *values], schema=score_schema())

    def _of_rows(self, name: str, kept: Mapping[str, npt.NDArray[Any]]) -> Iterable[npt.NDArray[Any]]:
        """Return the scores of rows of one dataset, in the order of their columns."""
        if self._grid is None:
            scores = self._model.scores_at_sum(kept["log_odds"], self._contexts[name], self._prior)
            own = None if self._model.chain is None else kept["own"]
            return ScoredRows(scores, own, kept["n_votes"]).columns().values()
        if self._sizes[name] < len(self._grid):
            return self._of_patterns(name, kept["pattern"])
        return [table.take(kept["pattern"], mode="clip") for table in self._of_every_pattern(name)]

    def _of_patterns(self, name: str, at: Positions | slice) -> list[npt.NDArray[Any]]:
        assert self._grid is not None  # the scorer is one of patterns
        votes = self._grid[at]
        scores = self._model.scores_at(self._model.raw(_rows(votes)), self._contexts[name], self._prior)
        return [*ScoredRows(scores, self._model.uncalibrated(votes), count_votes(votes)).columns().values()]


def _rows(votes: Votes) -> Rows:
    return Rows(votes, np.empty((len(votes), 0)), np.ones(len(votes)))


def score_rows(model: Model, votes: Votes, options: ScoreOptions) -> list[dict[str, float]]:
    """Return the columns of scores, and the decision, of rows as if of a dataset like the training ones.

    The decision is 1 where an item is called consistent, at the prior unless labels moved it, and 0 elsewhere.
    """
    check_scores_given(model, ())
    scores = model.scores_at(model.raw(_rows(votes)), model.contexts, options.prior)
    columns = ScoredRows(scores, model.uncalibrated(votes), count_votes(votes)).columns()
    columns["decision"] = scores.decisions.astype(int)
    return [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]


def _write_tables(tables: "Iterable[pa.Table]", path: Path, suffix: str, to: str | None, *, dense: bool) -> int:
    """Write tables of scores below each other, and return the number of rows."""
    n = 0
    with ExitStack() as stack:
        file = stack.enter_context(writer(path, suffix, score_schema(), to, dense=dense))
        for table in tables:
            file.write_table(table)
            n += len(table)
    return n


def writer(
    path: Path, suffix: str, schema: "pa.Schema", to: str | None = None, *, dense: bool = False
) -> "parquet.ParquetWriter | PlainCsvWriter | InspectWriter":
    """Return a writer of tables of these columns to a Parquet or CSV file, or `to` what Inspect reads.

    `dense` says that hardly a probability comes twice, so that Parquet need not look for those that do.
    """
    if to == "inspect":
        return InspectWriter(path)
    if suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        unlike = {"item_id", *(name for name in schema.names if dense and schema.field(name).type == pa.float64())}
        return pq.ParquetWriter(path, schema, use_dictionary=[name for name in schema.names if name not in unlike])
    return PlainCsvWriter(path, schema)


def prior_lines(found: dict[str, PriorEstimate]) -> Iterator[str]:
    """Yield a line a dataset, with the warning about its prior."""
    for name, prior in found.items():
        warning = f" ({prior.warning})" if prior.warning else ""
        yield (
            f"{name}: {100 * prior.estimate:.1f} % consistent, 90 % interval {100 * prior.low:.1f} to "
            f"{100 * prior.high:.1f}{warning}"
        )


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
    >>> from deep.model import BatchScorer, fit
    >>> model = fit(simulate_votes(0), sizes=[1], ensembler="LogisticRegression", calibrator="platt")
    >>> score = BatchScorer(model, streamed=True)
    >>> batch = pa.record_batch({"id": ["a", "b"], model.voter_names[0]: pa.array([1, None], pa.int8())})
    >>> found = score(batch)
    >>> found.schema.names[:2], found["n_votes"].to_pylist()
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
                "give `streamed` to score each row as one of a dataset like the training mean."
            )

    def __call__(self, batch: "BatchLike") -> "BatchLike":
        """Return the columns of a batch that are no votes or scores of the model, and after them those of scores.

        Raises
        ------
        InputError
            A column is missing or holds something else.
        """
        arrays = [*(batch.column(name) for name in self._kept(batch.schema.names)), *self._scores(batch)]
        return type(batch).from_arrays(arrays, schema=self.schema(batch.schema))

    def schema(self, schema: "pa.Schema") -> "pa.Schema":
        """Return the columns of the scores of batches with the columns `schema`, for engines that ask beforehand."""
        import pyarrow as pa

        fields = [schema.field(name) for name in self._kept(schema.names)]
        return pa.schema([*fields, *(score_schema().field(name) for name in SCORE_COLUMNS)])

    def _kept(self, names: list[str]) -> list[str]:
        read = {*self._voters(names), *self.model.score_names}
        kept = [name for name in names if name not in read]
        clash = next((name for name in SCORE_COLUMNS if name in kept), None)
        if clash is not None:
            raise InputError(f"`batch` must not have a column named {clash!r}, which scores have. Got one. Rename it.")
        return kept

    def _voters(self, names: list[str]) -> list[str | None]:
        return matched_names(self.model, names, allow_mismatch=self.allow_mismatch, allow_missing=self.allow_missing)

    def _scores(self, batch: "pa.RecordBatch | pa.Table") -> "list[pa.Array]":
        import pyarrow as pa

        columns = BatchColumns(batch)
        votes = columns.votes(self._voters(batch.schema.names))
        if not len(votes):
            return [pa.array([], field.type) for field in score_schema()][len(ITEM_COLUMNS) :]
        if self._table is None:
            soft = columns.scores(self.model.score_names) if self.model.score_names else None
            return [pa.array(values) for values in self._of_rows(votes, soft)]
        codes = pattern_codes(votes)
        return [pa.array(values[codes]) for values in self._table]

    @cached_property
    def _table(self) -> list[npt.NDArray[Any]] | None:
        """Return the scores of every pattern of votes; None where there are too many or soft scores beside them."""
        if self.model.score_names or len(self.model.voters) > MAX_TABLE_VOTERS:
            return None
        return self._of_rows(pattern_grid(len(self.model.voters)), None)

    def _of_rows(self, votes: Votes, soft: Floats | None) -> list[npt.NDArray[Any]]:
        """Return the scores of rows, in the order of their columns."""
        scores = self.model.scores_at(self.model.raw(self.model.rows(votes, soft)), self.model.contexts)
        return [*ScoredRows(scores, self.model.uncalibrated(votes), count_votes(votes)).columns().values()]

    def __reduce__(self) -> tuple[type["BatchScorer"], tuple[object, ...]]:
        """Return the parts that a worker makes the scorer of: no table that it can make itself."""
        return BatchScorer, (self.model, self.streamed, self.allow_mismatch, self.allow_missing)
