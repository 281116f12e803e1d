"""Examples, votes and labels as people have them: a data frame, a table of Arrow, paths, or deep's own records."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from deep._util.checks import shown
from deep._util.columns import VOTE_OF_TEXT
from deep._util.frames import Frame, frame_table
from deep._util.names import listed
from deep.datasets._examples import Examples, examples_from_dataset
from deep.datasets._labels import join_labels, read_labels
from deep.datasets._origin import read_examples
from deep.datasets._source import UNNAMED
from deep.datasets._tables import Paths, read_votes
from deep.exceptions import InputError, warn
from deep.records import Example, VoteMatrix

VotesGiven = VoteMatrix | Frame | Paths
"""Votes, a data frame with the columns of a table of votes, or paths of such tables."""

LabelsGiven = npt.ArrayLike | Frame | Paths
"""1, 0 or nothing for each row of votes, a frame with item_id and label, or paths of tables of labels."""


def is_paths(given: object) -> TypeGuard[Paths]:
    """Return whether something is a path or paths."""
    listed = given if isinstance(given, list | tuple) else [given]
    return bool(listed) and all(isinstance(one, str | Path) for one in listed)


def is_frame(given: object) -> TypeGuard[Frame]:
    """Return whether something is a data frame or a table of Arrow, and not one column, a Series or an array."""
    return isinstance(given, Frame) and (hasattr(given, "columns") or hasattr(given, "schema"))


def as_votes(votes: object) -> VoteMatrix:
    """Return votes as a matrix.

    Parameters
    ----------
    votes : VoteMatrix, data frame of pandas, Polars or pyarrow, or path or sequence of paths
        A frame has the columns of a file (:func:`read_votes`); without a column dataset all rows are of one.

    Raises
    ------
    InputError
        It is something else, or cannot be read.

    Examples
    --------
    >>> import pandas as pd
    >>> from deep.datasets import as_votes
    >>> as_votes(pd.DataFrame({"item_id": ["a", "b"], "strict": [True, None]})).votes.tolist()
    [[1], [-1]]
    """
    if isinstance(votes, VoteMatrix):
        return votes
    if isinstance(votes, Frame):
        table = frame_table(votes)
        return VoteMatrix.from_frame(table, dataset=None if "dataset" in table.column_names else UNNAMED)
    if is_paths(votes):
        return read_votes(votes)
    raise InputError(
        "`votes` must be a VoteMatrix, a data frame of pandas, Polars or pyarrow with the columns item_id and one a "
        f"judge, or a path. Got {type(votes).__name__}."
    )


def as_examples(examples: Examples | Iterable[Example] | Frame | str | Path) -> Examples | Iterable[Example]:
    """Return examples of deep, whatever holds them: a frame has the columns of a file of examples, source and claim.

    Raises
    ------
    InputError
        It is something else, or cannot be read.
    """
    if isinstance(examples, Frame):
        return examples_from_dataset(frame_table(examples).to_pylist(), name=UNNAMED)
    if isinstance(examples, str | Path):
        return read_examples(examples)
    if isinstance(examples, Examples):
        return examples
    given = list(examples) if isinstance(examples, Iterable) else [examples]
    wrong = [type(one).__name__ for one in given if not isinstance(one, Example)]
    if wrong:
        raise InputError(f"`examples` must hold Examples, or be a data frame or a path. Got {wrong[0]}.")
    return given


def as_labels(labels: LabelsGiven, votes: VoteMatrix, frame: object = None) -> VoteMatrix:
    """Return votes with labels, and no others on their datasets.

    Parameters
    ----------
    labels : array-like of shape (n_examples,), Series, data frame, or path or sequence of paths
        A list, an array, or a Series by position: 1, 0, or -1, None or NaN where there is none. A Series of pandas
        with another index than 0, 1, ... is aligned, by the index of the frame of votes or by item_id (dataset and
        item_id). Others have the columns dataset, item_id and label.
    votes : VoteMatrix
    frame : object, optional
        What the votes were read from: where that is a frame of pandas, its index tells which row a label is of.

    Raises
    ------
    InputError
        A label is none of these, or it is not known which item a label is of.

    Examples
    --------
    >>> import pandas as pd
    >>> from deep.datasets import as_labels
    >>> votes = VoteMatrix([[1], [0], [1]], ["a", "b", "c"], ["strict"], ["news"] * 3, [-1, -1, -1])
    >>> as_labels([1, None, 0], votes).labels.tolist()
    [1, -1, 0]
    >>> as_labels(pd.Series({"c": 0, "a": 1}), votes).labels.tolist()
    [1, -1, 0]
    """
    if hasattr(labels, "iloc") and not hasattr(labels, "columns"):  # a Series of pandas
        labels = _aligned(labels, votes, frame)
    if is_paths(labels) or is_frame(labels):
        return join_labels(votes, read_labels(labels, votes))
    if isinstance(labels, np.ma.MaskedArray):  # `asarray` would show what the mask hides
        labels = np.ma.filled(labels.astype(object), -1)
    try:
        values = np.asarray(labels)
    except ValueError:  # lists of several lengths
        raise InputError("`labels` must have one entry a row. Got lists of several lengths.") from None
    return VoteMatrix(**{**vars(votes), "labels": _codes(values)})


def _codes(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return labels with -1 where one is missing, and 1 and 0 for words; what else is none is told later."""
    import pandas as pd

    if values.dtype.kind not in "OUf" or values.ndim != 1:
        return values
    cells = np.where(pd.isna(values), -1, values.astype(object)).tolist()
    return np.array([VOTE_OF_TEXT.get(cell, cell) if isinstance(cell, str) else cell for cell in cells])


def _aligned(labels: Any, votes: VoteMatrix, frame: object) -> Any:
    """Return labels by position, or with the ids of their items, as their index says."""
    import pandas as pd

    index, n = labels.index, len(votes.votes)
    rows = frame.index if isinstance(frame, pd.DataFrame) else pd.RangeIndex(n)
    # Rows of a long frame are not those of the votes, so a position is all that 0, 1, ... can mean there.
    of_votes = rows if len(rows) == n else pd.RangeIndex(n)
    if index.equals(of_votes) and index.names == of_votes.names:
        return labels
    names = [*index.names] if any(index.names) else ["dataset", "item_id"][-index.nlevels :]
    if {*names} <= {"dataset", "item_id"} and len(names) == index.nlevels and (any(index.names) or index.nlevels > 1):
        return labels.rename("label").rename_axis(names).reset_index()
    is_numbered = index.name is None and index.equals(pd.RangeIndex(len(labels)))
    if is_numbered and len(labels) != n:
        return labels  # which is refused with both lengths
    # An index may read as rows of the frame, as ids or as positions. It is taken only if all that are possible agree.
    by_row = _places(index, rows, n)
    by_meaning = _places(index.map(str), pd.Index(votes.example_ids), n), tuple(range(n)) if is_numbered else None
    is_of_frame = isinstance(frame, pd.DataFrame) and index.names == rows.names
    readings = {places for places in (by_row, *by_meaning) if places is not None}
    if len(readings) == 1 and -1 not in (places := readings.pop()) and (is_of_frame or places in by_meaning):
        return labels.reset_index(drop=True).set_axis(places).reindex(range(n))
    shown_index = listed([*map(repr, index.tolist())], rest="more")
    raise InputError(
        "`labels` must have the index of the votes, or one of item ids that is named item_id. Got an index that is "
        f"not clear: {shown_index}. Give `labels.to_numpy()` for labels in the order of rows."
    )


def _places(index: Any, known: Any, n: int) -> "tuple[int, ...] | None":
    """Return the row of each entry of an index, -1 where it is one of several; None unless all are known."""
    if index.nlevels > 1 or known.nlevels > 1 or not index.isin(known).all():
        return None
    is_clear = known.is_unique and index.is_unique and len(known) == n
    return tuple(known.get_indexer(index).tolist()) if is_clear else (-1,)


ENOUGH_TO_DOUBT = 30
"""Rows from which on a voter that is always right is doubted to be one."""


def warn_of_copies(votes: VoteMatrix) -> None:
    """Warn of a voter that equals the label wherever there are both, on 30 rows or more."""
    for name, cells in zip(votes.voter_names, votes.votes.T, strict=True):
        both = (cells >= 0) & (votes.labels >= 0)
        n, ones = both.sum(), votes.labels[both].sum()
        if n >= ENOUGH_TO_DOUBT and 0 < ones < n and (cells[both] == votes.labels[both]).all():
            warn(
                f"{shown(name)} equals the label on all {n:,} rows that have both. If it is the label and no judge, "
                f"leave it out with `--ignore {name}` (`ignore`)."
            )
