"""Score tables of votes a piece at a time: first each dataset's contexts are found, then P of its rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Positions, Votes
from deep._files import whole_file
from deep._odds import expit
from deep._plain_cells import PlainCsvWriter
from deep.model.adaptation import PriorEstimate, context_of_mean
from deep.model.file._columns import check_scores_given
from deep.model.file._inspect_records import InspectWriter
from deep.model.file._model import Model
from deep.model.file._moments import Moments, merged, moments_of_piece
from deep.model.file._pieces import (
    KeptRows,
    ScoreOptions,
    VotePiece,
    by_pattern,
    dataset_codes,
    iter_pieces,
    rows_by_dataset,
)
from deep.model.file._score_columns import SCORE_COLUMNS, ScoredRows, count_votes, score_schema
from deep.model.file._table import pattern_grid
from deep.model.linear import Rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

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
