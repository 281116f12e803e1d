"""The columns of a table of scores: the name, the type and the function of each, once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Votes
from deep.model.score import Scores
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pyarrow as pa


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
