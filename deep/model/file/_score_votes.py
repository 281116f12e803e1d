"""Votes scored: the columns of every table of scores, and tables of votes, a piece at a time, with P of their rows."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Positions, Votes
from deep._util.entry_points import WRITER, load_part
from deep._util.files import JsonObject, whole_file
from deep._util.frames import frame_of_table
from deep._util.odds import logit
from deep._util.plain_cells import PlainCsvWriter
from deep.datasets import read_texts
from deep.features import distinct_patterns
from deep.model.adaptation import PriorEstimate, contexts_of_means
from deep.model.file import _pieces
from deep.model.file._model import Model
from deep.model.file._pieces import ScoreOptions, check_scores_given
from deep.model.file._table import VotesLike, pattern_codes, pattern_grid, votes_of_voters
from deep.model.linear import Rows
from deep.model.score import DecisionRule, Scores
from deep.records import ABSTAIN, VoteMatrix

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

    @property
    def decision(self) -> npt.NDArray[np.int8]:
        """Return 1 or 0 where there is a vote, and -1 elsewhere."""
        return np.where(self.n_votes > 0, self.scores.p_consistent >= self.scores.threshold, ABSTAIN).astype(np.int8)

    @property
    def sure(self) -> npt.NDArray[np.int8]:
        """Return 1 where there is a vote and the interval of P excludes the threshold, else 0."""
        (low, high), threshold = self.bounds, self.scores.threshold
        return ((self.n_votes > 0) & ((low >= threshold) | (high < threshold))).astype(np.int8)

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
    "p_low": ("double", lambda rows: rows.bounds[0]),
    "p_high": ("double", lambda rows: rows.bounds[1]),
    "decision": ("int8", lambda rows: rows.decision),
    "sure": ("int8", lambda rows: rows.sure),
    "threshold": ("double", lambda rows: np.full(len(rows.n_votes), rows.scores.threshold)),
    "p_uniform": ("double", lambda rows: rows.scores.p_uniform),
    "p_uncalibrated": ("double", lambda rows: rows.scores.p_uniform if rows.own is None else rows.own),
    "n_votes": ("int64", lambda rows: rows.n_votes),
}
"""What is said of a row, with its type in Arrow and in numpy."""


def arrow_column(name: str, values: npt.NDArray[Any]) -> "pa.Array":
    """Return a column of scores in Arrow, without a value where it is no decision."""
    import pyarrow as pa

    return pa.array(values, mask=values == ABSTAIN if name == "decision" else None)


TEXT_COLUMNS = {"claim": "string", "source": "string", "question": "string"}
"""The texts of a row, where they are wanted."""


def score_schema(*, with_texts: bool = False) -> "pa.Schema":
    """Return the columns of scores."""
    columns = {**ITEM_COLUMNS, **{name: kind for name, (kind, _) in SCORE_COLUMNS.items()}}
    return schema_of(columns | TEXT_COLUMNS if with_texts else columns)


def schema_of(types: Mapping[str, str]) -> "pa.Schema":
    """Return columns of these types."""
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in types.items()])


def count_votes(votes: Votes) -> npt.NDArray[np.integer]:
    """Return how many voters voted on each row."""
    return np.asarray((votes != ABSTAIN).sum(axis=1))


def score_rows(model: Model, votes: Votes, options: ScoreOptions) -> list[dict[str, float]]:
    """Return the columns of scores of rows as if of a dataset like the training ones; no decision without a vote."""
    check_scores_given(model, ())
    rows = Rows(votes, np.empty((len(votes), 0)), np.ones(len(votes)))
    scores = model.scores_at(model.raw(rows), model.contexts, options.prior)
    columns = ScoredRows(scores, model.uncalibrated(votes), count_votes(votes)).columns()
    values = {name: column.tolist() for name, column in columns.items()}
    values["decision"] = [None if decided == ABSTAIN else decided for decided in values["decision"]]
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def score_frame(model: Model, votes: VotesLike, prior: float | None, library: str, **matching: bool) -> object:
    """Return the scores of votes as a data frame, as :meth:`Model.score_frame`."""
    import pyarrow as pa

    given = votes_of_voters(model.voters, votes)
    if not isinstance(given, VoteMatrix):
        rows = model.rows(model.select(given)).votes
        n, names = len(rows), model.voter_names
        given = VoteMatrix(rows, range(n), names, ["data"] * n, np.full(n, -1))
    selected = model.select(given, **matching)
    columns = {name: np.empty(len(selected), kind) for name, (kind, _) in SCORE_COLUMNS.items()}
    for name in given.dataset_names:
        at = np.flatnonzero(given.datasets == name)
        found = ScoredRows(
            model.scores_of(selected[at], prior=prior), model.uncalibrated(selected[at]), count_votes(selected[at])
        )
        for column, values in found.columns().items():
            columns[column][at] = values
    items = {"dataset": pa.array(given.datasets, pa.string()), "item_id": pa.array(given.example_ids, pa.string())}
    label = pa.array(given.labels, mask=given.labels == ABSTAIN)
    scores = {name: arrow_column(name, values) for name, values in columns.items()}
    return frame_of_table(pa.table({**items, "label": label, **scores, "why": _why(model, selected)}), library)


def _why(model: Model, votes: Votes) -> list[str]:
    """Return for each row the two votes that move P most, with the log-odds that each adds."""
    distinct, where = distinct_patterns(votes)
    whole = logit(model.score(distinct, streamed=True))
    gains = np.zeros(distinct.shape)
    for column in range(distinct.shape[1]):
        without = distinct.copy()
        without[:, column] = ABSTAIN
        gains[:, column] = whole - logit(model.score(without, streamed=True))
    said = []
    for row, gain in zip(distinct, gains, strict=True):
        order = [j for j in np.argsort(-np.abs(gain), kind="stable").tolist() if row[j] != ABSTAIN][:2]
        said.append(", ".join(f"{model.voters[j].id} {row[j]} ({gain[j]:+.1f})" for j in order) or "no vote")
    return [said[at] for at in where]


KEPT_TABLES = 8
"""Of large datasets, the scores of every pattern of votes; more are made again."""


@dataclass
class _Sums:
    """Sum of P by part and number of rows, of one dataset."""

    p: Floats | float = 0.0
    n: int = 0

    def contexts(self) -> Floats:
        """Return the context of each part."""
        return contexts_of_means(np.asarray(self.p) / self.n)


@dataclass(frozen=True)
class ScoredFile:
    """The number of rows that were scored, by dataset the prior and the threshold, and the rule of the decision."""

    n: int
    priors: dict[str, PriorEstimate]
    thresholds: dict[str, float]
    rule: DecisionRule

    @property
    def sentence(self) -> str:
        """Return the rule in words, with its threshold where there is one."""
        return self.rule.sentence(next(iter(self.thresholds.values())) if len(self.thresholds) == 1 else None)

    def results(self) -> JsonObject:
        """Return JSON values."""
        decision = {"rule": self.sentence, "thresholds": self.thresholds, **self.rule.values()}
        return {"rows": self.n, "priors": {name: vars(one) for name, one in self.priors.items()}, "decision": decision}


def score_file(
    model: Model,
    paths: Sequence[str],
    out: Path,
    options: _pieces.ScoreOptions,
    scores: Sequence[str] = (),
    to: str | None = None,
    *,
    with_texts: bool = False,
    seen: "Callable[[pa.Table], None]" = lambda _: None,
) -> ScoredFile:
    """Score tables of votes into a CSV or Parquet file, each dataset at its own prior.

    Parameters
    ----------
    model : Model
    paths : sequence of str
        Tables of votes. One Parquet file of any length is never held in memory: what P is made of, less than what is
        written, waits beside `out` until the contexts of its datasets are known.
    out : Path
    options : _pieces.ScoreOptions
    scores : sequence of str, optional
        Tables of soft scores, where the model was fitted with some. Parquet files of the same items in the same order
        as the votes, or their very file, are not held in memory either; others are joined there.
    to : {'inspect'}, optional
        JSON lines for a tool in place of a table; see :func:`writer`.
    with_texts : bool, default=False
        Add the texts of the examples that the tables of votes remember; empty where they are not found.
    seen : callable, optional
        Takes each piece of the scores as it is written.

    Raises
    ------
    InputError
        A table cannot be read, a voter of the model is missing or of another version or model, or an item comes
        twice. Nothing is written then.
    """
    _pieces.check_scores_given(model, scores)
    sums: dict[str, _Sums] = {}
    with whole_file(out) as scratch:
        kept = _pieces.KeptRows(model, scratch.with_name("rows"))
        pieces = _pieces.iter_pieces(model, paths, scores, options)
        kept.write(_added(sums, ahead(partial(_sums_of, model), pieces)))
        known = model.contexts if model.target is not None else None
        contexts = {name: one.contexts() if known is None else known for name, one in sums.items()}
        score = _RowScorer(model, contexts, {name: one.n for name, one in sums.items()}, options.prior)
        tables = ahead(score, kept)
        if with_texts:
            tables = map(partial(_beside_texts, paths), tables)
        schema = score_schema(with_texts=with_texts)
        dense = not _pieces.by_pattern(model)
        n = _write_tables(_shown(tables, seen), schema, scratch, out.suffix.lower(), to, dense=dense)
    empty = np.empty((len(model.blend.parts), 0))
    found = {name: model.scores_at(empty, at, options.prior) for name, at in contexts.items()}
    priors = {name: _warned(model, name, one.prior) for name, one in found.items()}
    return ScoredFile(n, priors, {name: one.threshold for name, one in found.items()}, model.rule)


def _warned(model: Model, name: str, prior: PriorEstimate) -> PriorEstimate:
    """Warn where the model is that of another dataset."""
    if model.target in (None, name):
        return prior
    return replace(prior, warning=f"The model is that of {model.target}, whose prior and context stand in.")


THREADS = 2
"""Pieces that are scored while another is read or written: most of that is done outside Python's lock."""

Piece = TypeVar("Piece")
Made = TypeVar("Made")


def ahead(make: Callable[[Piece], Made], pieces: Iterable[Piece]) -> Iterator[Made]:
    """Yield the results of a function of each piece, in their order, computed a few pieces ahead of their use.

    Examples
    --------
    >>> list(ahead(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    with ThreadPoolExecutor(THREADS) as pool:
        waiting: deque[Future[Made]] = deque()
        for piece in pieces:
            waiting.append(pool.submit(make, piece))
            if len(waiting) > THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _added(
    sums: dict[str, _Sums], found: "Iterable[tuple[_pieces.VotePiece, npt.NDArray[Any], Floats]]"
) -> "Iterator[tuple[_pieces.VotePiece, npt.NDArray[Any]]]":
    """Add the sums of pieces to those of their datasets, and yield each piece with the rest."""
    for piece, kept, by_part in found:
        n = np.bincount(piece.dataset_of, minlength=len(piece.datasets))
        for name, parts, rows in zip(piece.datasets, by_part, n.tolist(), strict=True):
            one = sums.setdefault(name, _Sums())
            one.p = one.p + parts
            one.n += rows
        yield piece, kept


def _sums_of(model: Model, piece: _pieces.VotePiece) -> "tuple[_pieces.VotePiece, npt.NDArray[Any], Floats]":
    """Return a piece, the log-odds of its rows by part or codes of patterns, and sums of P by dataset and part."""
    dataset_of, count = piece.dataset_of, np.ones(1)
    kept: npt.NDArray[Any]
    if _pieces.by_pattern(model):
        kept, grid = pattern_codes(piece.votes), pattern_grid(len(model.voters))
        cells, count = np.unique(dataset_of * len(grid) + kept, return_counts=True)
        dataset_of, at = np.divmod(cells, len(grid))
        many = len(kept) >= len(grid)  # the model then keeps what it says of all patterns
        raw = model.raw(Rows.from_arrays(grid))[:, at] if many else model.raw(Rows.from_arrays(grid[at]))
    else:
        raw = kept = model.raw(piece.plain())
    n = len(piece.datasets)
    by_part = [np.bincount(dataset_of, weights=row * count, minlength=n) for row in model.blend.views(raw)]
    return piece, kept, np.array(by_part, dtype=np.float64).T


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
        self._grid = pattern_grid(len(model.voters)) if _pieces.by_pattern(model) else None
        self._of_every_pattern = lru_cache(KEPT_TABLES)(lambda name: self._of_patterns(name, slice(None)))

    def __call__(self, kept: "pa.Table") -> "pa.Table":
        """Return the scores of a piece."""
        import pyarrow as pa

        names, dataset_of = _pieces.dataset_codes(kept["dataset"])
        columns = {name: kept[name].to_numpy() for name in kept.schema.names[3:]}
        values = [np.empty(len(kept), kind) for kind, _ in SCORE_COLUMNS.values()]
        for name, at in zip(names, _pieces.rows_by_dataset(dataset_of, len(names)), strict=True):
            found = self._of_rows(name, {column: cells[at] for column, cells in columns.items()})
            for column, cells in zip(values, found, strict=True):
                column[at] = cells
        made = map(arrow_column, SCORE_COLUMNS, values)
        return pa.table([*kept.columns[:3], *made], schema=score_schema())

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
        scores = self._model.scores_at(self._model.raw(Rows.from_arrays(votes)), self._contexts[name], self._prior)
        return [*ScoredRows(scores, self._model.uncalibrated(votes), count_votes(votes)).columns().values()]


def _beside_texts(paths: Sequence[str], table: "pa.Table") -> "pa.Table":
    """Return scores with the texts of the examples that tables of votes remember."""
    import pyarrow as pa

    keys = list(zip(table["dataset"].to_pylist(), table["item_id"].to_pylist(), strict=True))
    found = read_texts(list(paths), keys).examples
    for name in TEXT_COLUMNS:
        texts = [getattr(found[key], name) if key in found else None for key in keys]
        table = table.append_column(name, pa.array(texts, pa.string()))
    return table


def _shown(tables: "Iterable[pa.Table]", seen: "Callable[[pa.Table], None]") -> "Iterator[pa.Table]":
    for table in tables:
        seen(table)
        yield table


def _write_tables(
    tables: "Iterable[pa.Table]", schema: "pa.Schema", path: Path, suffix: str, to: str | None, *, dense: bool
) -> int:
    """Write tables of scores below each other, and return the number of rows."""
    n = 0
    with ExitStack() as stack:
        file = stack.enter_context(writer(path, suffix, schema, to, dense=dense))
        for table in tables:
            file.write_table(table)
            n += len(table)
    return n


SOUGHT = ("dataset", "p_consistent")
"""The columns of which Parquet keeps the least and largest values: of all twelve that takes a fifth of the writing."""


def writer(
    path: Path, suffix: str, schema: "pa.Schema", to: str | None = None, *, dense: bool = False
) -> "parquet.ParquetWriter | PlainCsvWriter":
    """Return a writer of tables of these columns to a Parquet or CSV file, or in the format of another tool, `to`.

    `dense` says that hardly a probability comes twice, so that Parquet need not look for those that do.
    """
    if to is not None:
        guest: PlainCsvWriter = load_part(to, WRITER)(path)  # with the same methods
        return guest
    if suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        unlike = {
            "item_id",
            *TEXT_COLUMNS,
            *(name for name in schema.names if dense and schema.field(name).type == pa.float64()),
        }
        dictionaries = [name for name in schema.names if name not in unlike]
        return pq.ParquetWriter(path, schema, use_dictionary=dictionaries, write_statistics=list(SOUGHT))
    return PlainCsvWriter(path, schema)


def prior_lines(found: dict[str, PriorEstimate]) -> Iterator[str]:
    """Yield a line a dataset, with the warning about its prior."""
    for name, prior in found.items():
        warning = f" ({prior.warning})" if prior.warning else ""
        yield (
            f"{name}: {100 * prior.estimate:.1f} % consistent, 90 % interval {100 * prior.low:.1f} to "
            f"{100 * prior.high:.1f}{warning}"
        )
