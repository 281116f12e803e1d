"""Arrow batches scored row by row, as any engine hands them over."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy.typing as npt

from deep.datasets import BatchColumns
from deep.exceptions import InputError
from deep.integrations.engines._moments import matched_names
from deep.model import SCORE_COLUMNS, Model, file, schema_of

if TYPE_CHECKING:
    import pyarrow as pa

    BatchLike = TypeVar("BatchLike", pa.RecordBatch, pa.Table)


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
        return pa.schema([*fields, *schema_of(SCORE_COLUMNS)])

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
            return [pa.array([], field.type) for field in schema_of(SCORE_COLUMNS)]
        if self._table is None:
            soft = columns.scores(self.model.score_names) if self.model.score_names else None
            found = self.model.scores_of(votes, scores=soft, streamed=True).columns()
            return [SCORE_COLUMNS[name].array(values) for name, values in found.items()]
        codes = file.pattern_codes(votes)
        return [SCORE_COLUMNS[name].array(values[codes]) for name, values in self._table.items()]

    @cached_property
    def _table(self) -> dict[str, npt.NDArray[Any]] | None:
        """Return the scores of every pattern of votes; None where there are too many or soft scores beside them."""
        model = self.model
        return model.scores_at(model.contexts, evidence=model.every_pattern).columns() if model.has_table else None

    def __reduce__(self) -> tuple[type["BatchScorer"], tuple[object, ...]]:
        """Return the parts that a worker makes the scorer of: no table that it can make itself."""
        return BatchScorer, (self.model, self.streamed, self.allow_mismatch, self.allow_missing)
