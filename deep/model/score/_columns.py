"""What deep says of an item: the table of columns that files, frames, answers, exports, pages and help derive from."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deep._util.checks import Mask
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ItemColumn:
    """A column of a table about items.

    Parameters
    ----------
    name : str
    type : str
        In Arrow and in numpy.
    meaning : str
        For people. Neighbours of one meaning are told of together.
    example : object
    of : callable, optional
        From :class:`Scores`, or what has the same attributes, to the cells; default: the attribute of that name. Where
        there is no value a cell is NaN, in a column of whole numbers -1.
    high : float or None, default=1
        The largest value; the least is 0.
    nullable : bool, default=False
        Whether a cell may have no value.
    program : str, optional
        How a Python program of the standard library has it from `p`, `low`, `high`, `n_votes` and `THRESHOLD`. A column
        without stands in deep's own files and answers alone, and in nothing that is exported for use elsewhere.
    since : str
        The version of deep that brought it.
    """

    name: str
    type: str
    meaning: str
    example: object = None
    of: Callable[[Any], npt.NDArray[Any]] | None = None
    high: float | None = 1
    nullable: bool = False
    program: str | None = None
    since: str = "0.1.0"

    def cells(self, scores: object) -> npt.NDArray[Any]:
        """Return the cells of rows with these scores."""
        return np.asarray(getattr(scores, self.name) if self.of is None else self.of(scores))

    def missing(self, cells: npt.NDArray[Any]) -> Mask:
        """Return in which cells there is no value."""
        if not self.nullable:
            return np.zeros(len(cells), dtype=bool)
        return np.asarray(np.isnan(cells) if self.type == "double" else cells == ABSTAIN)

    def array(self, cells: npt.NDArray[Any]) -> "pa.Array":
        """Return cells as Arrow has them."""
        import pyarrow as pa

        missing = self.missing(cells)
        return pa.array(cells, mask=missing if missing.any() else None)

    def values(self, cells: npt.NDArray[Any]) -> list[Any]:
        """Return cells as JSON has them."""
        return [None if no else cell for cell, no in zip(cells.tolist(), self.missing(cells).tolist(), strict=True)]


def columns_by_name(*columns: ItemColumn) -> dict[str, ItemColumn]:
    """Return a table of columns."""
    return {column.name: column for column in columns}


ITEM_COLUMNS = columns_by_name(
    ItemColumn("dataset", "string", "the dataset of the item", "weather"),
    ItemColumn("item_id", "string", "its name there", "a1"),
    ItemColumn("label", "int8", "1 consistent, 0 inconsistent, null where it is not known", 1, nullable=True),
)
"""The columns that name an item and say what is known of it."""

SCORE_COLUMNS = columns_by_name(
    ItemColumn("p_consistent", "double", "P(consistent)", 0.21, program="p"),
    # A model's whole panel always has an interval; P that rests on a part of the judges has none.
    ItemColumn(
        "p_low", "double", "its 90 % interval", 0.08, lambda scores: scores.bounds[0], nullable=True, program="low"
    ),
    ItemColumn(
        "p_high", "double", "its 90 % interval", 0.44, lambda scores: scores.bounds[1], nullable=True, program="high"
    ),
    ItemColumn(
        "decision",
        "int8",
        "1 where P is at least the threshold, 0 below it, null without a vote",
        0,
        lambda scores: np.where(scores.voted, scores.decisions, ABSTAIN).astype(np.int8),
        nullable=True,
        program="int(p >= THRESHOLD) if n_votes else None",
    ),
    ItemColumn(
        "sure",
        "int8",
        "1 where the interval excludes the threshold, else 0",
        1,
        lambda scores: (scores.voted & scores.sure).astype(np.int8),
        program="int(n_votes > 0 and (low >= THRESHOLD or high < THRESHOLD))",
    ),
    ItemColumn(
        "threshold",
        "double",
        "the P from which on an item is called consistent",
        0.52,
        lambda scores: np.full(len(scores.p_consistent), scores.threshold),
        program="THRESHOLD",
    ),
    ItemColumn("p_uniform", "double", "P as if both classes were equally frequent", 0.19),
    ItemColumn("p_uncalibrated", "double", "of a chain P of its ensembler before the calibrator, else p_uniform", 0.19),
    ItemColumn("n_votes", "int64", "votes of 1 or 0", 1, high=None, program="n_votes"),
)
"""What deep says of an item. Whoever shows it takes the columns from here: a new one is an entry, and no other edit."""

TEXT_COLUMNS = columns_by_name(
    ItemColumn("claim", "string", "the claim", "The river rose by 41 cm.", nullable=True),
    ItemColumn("source", "string", "the source that it is held against", "The river rose by 14 cm.", nullable=True),
    ItemColumn("question", "string", "the question that the claim answers", "How far did it rise?", nullable=True),
)
"""The texts of an item, where they are wanted."""


def exported_columns() -> dict[str, ItemColumn]:
    """Return the columns of scores that stand in what is exported for use elsewhere.

    Examples
    --------
    >>> from deep.model import SCORE_COLUMNS, exported_columns
    >>> [name for name in SCORE_COLUMNS if name not in exported_columns()]
    ['p_uniform', 'p_uncalibrated']
    """
    return {name: column for name, column in SCORE_COLUMNS.items() if column.program is not None}


def schema_of(*tables: Mapping[str, ItemColumn]) -> "pa.Schema":
    """Return the columns of tables as Arrow has them."""
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(one.type)) for table in tables for name, one in table.items()])


def records_of(table: Mapping[str, ItemColumn], scores: object) -> list[dict[str, Any]]:
    """Return the cells of a table of scores as JSON values, by row."""
    values = {name: column.values(column.cells(scores)) for name, column in table.items()}
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def column_lines(columns: Iterable[ItemColumn]) -> Iterator[str]:
    """Yield a line for people on each column, and one on neighbours that mean the same.

    Examples
    --------
    >>> from deep.model import SCORE_COLUMNS, column_lines
    >>> list(column_lines(SCORE_COLUMNS.values()))[1]
    'p_low, p_high    its 90 % interval'
    """
    groups = groupby(columns, key=lambda column: column.meaning)
    lines = [(", ".join(column.name for column in group), meaning) for meaning, group in groups]
    width = max(len(names) for names, _ in lines) + 3
    yield from (f"{names:<{width}}{meaning}" for names, meaning in lines)
