"""Data frames of votes, read and written through the Arrow interface that pandas, Polars and others share."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from deep._util.checks import Labels, Positions, Texts, Votes, check_choice, check_votes, shown
from deep._util.columns import LONG, Column, TablePlace, label_cells, long_names, name_cells, text_cells, vote_cells
from deep._util.names import check_name, check_no_known, family_of
from deep.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa


Layout = Literal["crowd-kit", "long", "wide"]
"""One row an item; one row an item and voter; the same by the names that crowd-kit has for them."""

ROLES = ("dataset", "item_id", "label", "document_id", "family")
NO_VOTE = -1


@runtime_checkable
class Frame(Protocol):
    """A data frame of pandas, Polars, pyarrow, or whatever else has the Arrow stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the frame as an Arrow stream."""


def frame_table(frame: Frame) -> "pa.Table":
    """Return a frame as a table of Arrow, without the index of pandas where it has no name."""
    import pyarrow as pa

    columns = _columns(frame)
    return pa.table({name: column.values for name, column in columns.items()})


def without_codes(table: "pa.Table") -> "pa.Table":
    """Return a table in which the number -1, which stands for no vote in arrays, is an empty cell."""
    import pyarrow as pa
    from pyarrow import compute

    for at, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_integer(column.type) and name not in ROLES:
            cells = compute.if_else(compute.equal(column, NO_VOTE), pa.scalar(None, column.type), column)
            table = table.set_column(at, name, cells)
    return table


class FramePlace(TablePlace):
    """A frame, whose rows count from 0."""

    path = "`frame`"
    first = 0

    def where(self, row: int, column: str) -> str:
        """Return the place of a cell for an error message."""
        return f"row {row} (from 0), column {shown(column)}"


@dataclass(frozen=True)
class FrameVotes:
    """The contents of a frame, a row an item; fields as in :class:`deep.VoteMatrix`."""

    votes: Votes
    example_ids: Texts
    voter_names: tuple[str, ...]
    datasets: Texts
    labels: Labels
    document_ids: Texts | None
    families: Mapping[str, str]


def read_label_matrix(
    matrix: npt.NDArray[Any], *, layout: str | None, dataset: str | None, voter_names: Iterable[object] | None
) -> FrameVotes:
    """Return the votes of snorkel's label matrix, as `read_frame` does those of a frame."""
    if layout is not None or dataset is None or voter_names is None:
        raise InputError(
            "`dataset` and `voter_names` must be given for an array of votes, and no `layout`. Got it otherwise."
        )
    voters = tuple(map(str, voter_names))
    votes = check_votes(matrix, name="frame", voters=voters)
    n = len(votes)
    items = np.array([str(row) for row in range(n)], dtype=object)
    datasets = _datasets({}, dataset, n)
    return FrameVotes(votes, items, voters, datasets, np.full(n, NO_VOTE, np.int8), None, _families({}, datasets))


def read_frame(frame: Frame, *, layout: Layout | None, dataset: str | None) -> FrameVotes:
    """Return the votes of a frame; parameters and errors as in :meth:`deep.VoteMatrix.from_frame`."""
    columns = _columns(frame)
    named = long_names({*columns})
    of_names = "wide" if not named else "crowd-kit" if named is LONG["crowd-kit"] else "long"
    found = of_names if layout is None else check_choice(layout, get_args(Layout), "layout")
    roles = _roles(columns, found)
    items = text_cells(roles["item_id"], required=True)
    datasets = _datasets(roles, dataset, len(items))
    rows, first = _number(zip(datasets, items, strict=True))
    if found == "wide":
        _check_once(rows, roles["item_id"], items, "within a dataset")
        names, votes = _wide(columns)
    else:
        names, votes = _pivot(roles, rows, len(first), items)
    labels = _by_item("label", roles, rows, len(first))
    documents = _by_item("document_id", roles, rows, len(first))
    if documents is not None:
        documents = np.where(documents == "", datasets[first] + "/" + items[first], documents)
    return FrameVotes(
        votes=votes,
        example_ids=items[first],
        voter_names=names,
        datasets=datasets[first],
        labels=np.full(len(first), NO_VOTE, dtype=np.int8) if labels is None else labels,
        document_ids=documents,
        families=_families(roles, datasets),
    )


def _roles(columns: Mapping[str, Column], layout: str) -> dict[str, Column]:
    """Return the columns that hold no votes of one voter, by what they hold."""
    names = {role: role for role in ROLES} if layout == "wide" else LONG[layout]
    names = names | long_names(columns) if layout == "long" else names
    missing = [names[role] for role in ("item_id", "voter", "vote") if role in names and names[role] not in columns]
    if missing:
        raise InputError(
            f"`frame` must have a column {missing[0]}. Got {_listed(columns)}. Rename the column that holds it."
        )
    more = {role: role for role in ("dataset", "document_id", "family")}
    return {role: columns[name] for role, name in (more | names).items() if name in columns}


def _wide(columns: Mapping[str, Column]) -> tuple[tuple[str, ...], Votes]:
    """Return the voters of a wide frame and their votes."""
    voters = {name: column for name, column in columns.items() if name not in ROLES}
    if not voters:
        raise InputError(f"`frame` must have a column of votes beside {', '.join(ROLES)}. Got {_listed(columns)}.")
    check_no_known(voters, ROLES, "frame", "drop it")
    return tuple(voters), np.column_stack([vote_cells(column) for column in voters.values()])


def _columns(frame: Frame) -> dict[str, Column]:
    """Return the columns of a frame by name."""
    import pyarrow as pa

    if not hasattr(frame, "__arrow_c_stream__"):
        raise InputError(
            f"`frame` must be a data frame of pandas, Polars or pyarrow. Got {type(frame).__name__}. "
            "Give an array of votes with `voter_names`."
        )
    frame = _with_names(frame)
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _refused(frame, error) from None
    if not table.num_rows:
        raise InputError("`frame` must have at least one row. Got none.")
    index = [name for name in table.column_names if name.startswith("__index_level_")]
    _check_unique(table.column_names)
    binary = next((field.name for field in table.schema if pa.types.is_fixed_size_binary(field.type)), None)
    if binary is not None:  # what Polars makes of Python objects: their addresses
        raise InputError(f"`frame` must have columns of text, numbers or booleans. Got objects in {shown(binary)}.")
    return {name: Column(FramePlace(), name, table[name]) for name in table.column_names if name not in index}


def _with_names(frame: Any) -> Frame:
    """Return a frame of pandas with text above every column, also where a pivot has put numbers there."""
    if not hasattr(frame, "iloc"):
        return cast("Frame", frame)
    for name in frame.columns:
        if not isinstance(name, str | int | np.integer) or isinstance(name, bool):
            raise InputError(f"`frame` must have text above every column. Got {name!r}. Rename the column.")
    _check_unique(map(str, frame.columns))
    return cast("Frame", frame.rename(columns=str))


def _check_unique(names: Iterable[str]) -> None:
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise InputError(f"`frame` must have unique column names. Got {shown(twice)} twice.")


def _refused(frame: Any, error: Exception) -> InputError:
    """Return the error for a frame with a column of several kinds, which Arrow has no type for."""
    if hasattr(frame, "iloc"):
        for name in getattr(frame, "columns", ()):
            given = [(row, cell) for row, cell in enumerate(frame[name].tolist()) if cell is not None and cell == cell]
            other = next(((row, cell) for row, cell in given if _kind(cell) is not _kind(given[0][1])), None)
            if other is not None:
                return InputError(
                    f"`frame` must have one kind of cell in a column. Got {shown(other[1])} at "
                    f"{FramePlace().where(other[0], name)}, below {shown(given[0][1])}. Votes are 1, 0 or empty."
                )
    reason = str(error).partition("\n")[0].rstrip(".")
    return InputError(f"`frame` must have columns of text, numbers or booleans. Got: {reason}.")


def _kind(cell: object) -> type:
    """Return the kind of a cell; whole numbers and others are one."""
    return float if isinstance(cell, int | float) and not isinstance(cell, bool) else type(cell)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(shown, names)) or "no column"


def _datasets(roles: Mapping[str, Column], dataset: str | None, n: int) -> Texts:
    """Return the dataset of each row: a column's, or the same for all."""
    if ("dataset" in roles) == (dataset is not None):
        got = "both" if dataset is not None else "neither"
        raise InputError(f"`dataset` must be given for a frame without a column dataset, and only then. Got {got}.")
    if dataset is None:
        return name_cells(roles["dataset"], required=True)
    check_name(dataset, "dataset")
    return np.full(n, dataset, dtype=object)


def _number(keys: Iterable[object]) -> tuple[Positions, Positions]:
    """Return the number of each key, by first appearance, and where each stands first."""
    numbers: dict[object, int] = {}
    rows = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
    return rows, np.unique(rows, return_index=True)[1]


def _check_once(keys: Positions, column: Column, items: Texts, scope: str) -> None:
    """Raise where a key comes twice."""
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        again = int(np.setdiff1d(np.arange(len(keys)), first)[0])
        before = int(np.flatnonzero(keys == keys[again])[0])
        raise InputError(
            f"`item_id` must be unique {scope}. Got {shown(items[again])} at {column.where(again)}, and before at row "
            f"{before}."
        )


def _pivot(roles: Mapping[str, Column], rows: Positions, n: int, items: Texts) -> tuple[tuple[str, ...], Votes]:
    """Return the voters of a long frame, in order of first appearance, and their votes."""
    names = name_cells(roles["voter"], required=True)
    codes, first = _number(names)
    _check_once(rows * len(first) + codes, roles["item_id"], items, "for a voter within a dataset")
    votes = np.full((n, len(first)), NO_VOTE, dtype=np.int8)
    votes[rows, codes] = vote_cells(roles["vote"])
    return tuple(names[first]), votes


def _by_item(role: str, roles: Mapping[str, Column], rows: Positions, n: int) -> npt.NDArray[Any] | None:
    """Return the value of a column for each of `n` items, whose rows must agree where they have one."""
    if role not in roles:
        return None
    column = roles[role]
    values: npt.NDArray[Any] = label_cells(column) if role == "label" else text_cells(column)
    empty = NO_VOTE if role == "label" else ""
    known = np.flatnonzero(values != empty)
    merged = np.full(n, empty, dtype=values.dtype)
    merged[rows[known]] = values[known]
    clash = known[merged[rows[known]] != values[known]]
    if len(clash):
        row = int(clash[0])
        raise InputError(
            f"`{role}` must be the same in all rows of an item. Got {shown(values[row])} at "
            f"{column.where(row)}, and {shown(merged[rows[row]])} in another row."
        )
    return merged


def _families(roles: Mapping[str, Column], datasets: Texts) -> dict[str, str]:
    """Return the families that differ from the dataset's own name: a column's, else the registered ones."""
    names = sorted(set(datasets))
    codes = np.array([names.index(name) for name in datasets]) if "family" in roles else np.zeros(0, int)
    given = _by_item("family", roles, codes, len(names))
    found = {name: family_of(name) for name in names}
    if given is not None:
        found |= {name: family for name, family in zip(names, given, strict=True) if family}
    return {name: family for name, family in found.items() if family != name}


def frame_of(votes: FrameVotes, layout: Layout, library: str) -> object:
    """Return votes as a data frame; parameters and errors as in :meth:`deep.VoteMatrix.to_frame`."""
    check_choice(layout, get_args(Layout), "layout")
    check_choice(library, ("pandas", "polars"), "library")
    table = {"crowd-kit": _crowd_table, "long": _long_table, "wide": wide_table}[layout](votes)
    return frame_of_table(table, library)


def frame_of_table(table: "pa.Table", library: str) -> object:
    """Return a table of Arrow as a frame of pandas or Polars."""
    check_choice(library, ("pandas", "polars"), "library")
    if library == "polars":
        import polars as pl

        return pl.from_arrow(table)
    import pandas as pd
    import pyarrow as pa

    return table.to_pandas(types_mapper={pa.int8(): pd.Int8Dtype()}.get)


def wide_table(votes: FrameVotes) -> "pa.Table":
    """Return votes as a table of Arrow, a row an item."""
    import pyarrow as pa

    taken = next((name for name in votes.voter_names if name in ROLES), None)
    if taken is not None:
        raise InputError(f"`voter_names` must not be one of {', '.join(ROLES)}. Got {taken!r}. Use another layout.")
    voters = {name: _ternary(votes.votes[:, k]) for k, name in enumerate(votes.voter_names)}
    return pa.table(_role_columns(votes, np.arange(len(votes.votes))) | voters)


def _long_table(votes: FrameVotes) -> "pa.Table":
    import pyarrow as pa

    n, k = votes.votes.shape
    cells = {"voter": pa.array(list(votes.voter_names) * n, pa.string()), "vote": _ternary(votes.votes.ravel())}
    return pa.table(_role_columns(votes, np.repeat(np.arange(n), k)) | cells)


def _crowd_table(votes: FrameVotes) -> "pa.Table":
    import pyarrow as pa

    if len(set(votes.datasets)) > 1:
        raise InputError("`layout` must be long or wide for several datasets. Got 'crowd-kit'. Take one by `rows`.")
    rows, codes = np.nonzero(votes.votes != NO_VOTE)
    workers = np.array(votes.voter_names, dtype=object)[codes]
    return pa.table(
        {
            "task": pa.array(votes.example_ids[rows], pa.string()),
            "worker": pa.array(workers, pa.string()),
            "label": pa.array(votes.votes[rows, codes].astype(np.int64)),
        }
    )


def _role_columns(votes: FrameVotes, rows: Positions) -> "dict[str, pa.Array]":
    """Return the columns that are no votes."""
    import pyarrow as pa

    texts = {"dataset": votes.datasets, "item_id": votes.example_ids}
    if votes.document_ids is not None:
        texts["document_id"] = votes.document_ids
    if votes.families:
        texts["family"] = np.array([votes.families.get(name, name) for name in votes.datasets], dtype=object)
    columns = {name: pa.array(values[rows], pa.string()) for name, values in texts.items()}
    return columns | {"label": _ternary(votes.labels[rows])}


def _ternary(values: Labels) -> "pa.Array":
    """Return votes with nothing where there is none."""
    import pyarrow as pa

    return pa.array(values, pa.int8(), mask=values == NO_VOTE)
