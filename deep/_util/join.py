"""Tables, files and frames alike: their columns by their roles, joined into one row an item."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import numpy.typing as npt

from deep._util.checks import Array, Floats, Labels, Positions, Texts, Votes, check_choice, quote
from deep._util.columns import (
    LONG_LAYOUTS,
    Column,
    GradeError,
    Hashes,
    answer_cells,
    hash_texts,
    id_cells,
    label_cells,
    long_names,
    name_cells,
    score_cells,
    text_cells,
    texts,
    vote_cells,
)
from deep._util.frames import NO_VOTE, ROLES, SCALES, Frame, FrameSource, Layout, Source, frame_table, votes_array
from deep._util.names import ODD_CHARACTER, check_lookalikes, check_misspelled, check_name, family_of, visible_form
from deep._util.scales import Scale, UnknownScaleError, answer_columns, infer_scales, scales_of
from deep.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa

# Votes, scores or text.
ColumnValues = npt.NDArray[Any]

# Odd: the hash of a dataset times this, added to that of an item, tells items of one id in two datasets apart.
DATASET_FACTOR = np.uint64(0x9E3779B97F4A7C15)


# The most votes of a long table as a wide one, those that are missing counted in: a byte each.
MAX_CELLS = 1 << 29

# The columns by which rows of several files are joined.
KEYS = ROLES[:2]

# The rows of a table that are in memory at once while it is read.
ROWS_AT_ONCE = 1 << 17


# The readers of the columns that are no voters, but for the ids of items.
ROLE_READERS: Mapping[str, Callable[[Column], Any]] = {
    "dataset": partial(name_cells, required=True),
    "label": label_cells,
    "document_id": text_cells,
    "family": name_cells,
}


CellReader = Callable[[Column], Votes] | Callable[[Column], Floats]


@dataclass(frozen=True, eq=False)
class TablePart:
    """The contents of one file, with a hash of each item; a column that it lacks is None.

    Parameters
    ----------
    source : Source
        The file or frame.
    dataset, item_id : ndarray of str, shape (n_rows,)
        The key of each row.
    hashes : list of ndarray
        A hash of each row's key, in pieces of the rows that were read together.
    label, document_id, family : ndarray, optional
        As their readers return them (`ROLE_READERS`).
    names : tuple of str
        The columns of voters.
    values : ndarray, shape (n_rows, n_voters)
        Their votes, grades or scores.
    """

    source: Source
    dataset: Texts
    item_id: Texts
    hashes: list[Hashes]
    label: Labels | None
    document_id: Texts | None
    family: Texts | None
    names: tuple[str, ...]
    values: ColumnValues


def check_keys(source: Source, names: Mapping[str, str] = MappingProxyType({})) -> None:
    """Raise where a table lacks a column of dataset or item, by the name that it has for it."""
    for key in KEYS:
        if names.get(key, key) not in source.columns:
            remedy = " Rename the column that holds it"
            if key == "dataset":
                remedy += ", or, where all rows are of one dataset, name that with `--dataset NAME` (`dataset`)"
            if {"source", "claim"} <= set(source.columns):
                remedy = " It holds claims: `deep ask` makes votes of it"
            raise InputError(
                f"`{source.param}` must have a column {names.get(key, key)}. Got {quoted_names(source.own_columns)} in "
                f"{source.path}.{remedy}."
            )


def read_part(source: Source, names: tuple[str, ...], ignored: Collection[str], cells: CellReader) -> TablePart:
    """Read the columns `names` of a table, and those of `ROLES` that it has and that are not ignored."""
    check_keys(source)
    roles = [role for role in dict.fromkeys((*KEYS, *ROLE_READERS)) if role in source.columns and role not in ignored]
    pieces = source.pieces([*roles, *names], ROWS_AT_ONCE, whole=True)
    hashes: list[Hashes] = []
    result: dict[str, list[Array]] = {"values": []}
    for piece in pieces:
        values = [cells(piece[name]) for name in names]
        item_ids = id_cells(piece["item_id"])
        result["values"].append(np.column_stack(values) if values else np.empty((len(item_ids), 0)))
        result.setdefault("item_id", []).append(item_ids)
        for role, read in ROLE_READERS.items():
            if role in piece:
                result.setdefault(role, []).append(read(piece[role]))
        hashes.append(hash_items(*(texts(piece[key], required=True) for key in KEYS)))
    columns = {name: concat_columns(parts) for name, parts in result.items()}
    others: dict[str, Any] = {role: columns.get(role) for role in ROLE_READERS}
    return TablePart(source, item_id=columns["item_id"], hashes=hashes, names=names, values=columns["values"], **others)


class LongSource(FrameSource):
    """A long table, a row an item and judge, as the wide one that it is.

    Parameters
    ----------
    inner : Source
        The long table.
    names : mapping of str to str
        Its columns of items, voters and votes, by what they hold.

    Attributes
    ----------
    costs : dict of str to float
        By judge the mean of the column cost, dollars of a vote, where there is one.
    """

    def __init__(self, inner: Source, names: Mapping[str, str]) -> None:
        check_keys(inner, names)
        self.path, self.param, self.first = inner.path, inner.param, inner.first  # type: ignore[misc]
        self.is_crowd = "task" in names.values()
        self._inner, self._names = inner, names
        others = [role for role in (*ROLES, "cost") if role in inner.columns and role not in names.values()]
        columns = inner.read([*others, *names.values()])
        self._table = self._wide({role: columns[names.get(role, role)] for role in (*others, *names)})
        self.columns = self._header()
        self._check_header()

    def where(self, row: int, column: str) -> str:
        """Return the place of a cell of the long table."""
        return self._inner.where(row, self._names.get(column, column))

    def _wide(self, columns: Mapping[str, Column]) -> "pa.Table":
        """Return the wide table: items and voters in order of first appearance."""
        import pyarrow as pa

        roles: dict[str, Any] = {
            role: read(columns[role]) if role in columns else None for role, read in ROLE_READERS.items()
        }
        items = text_cells(columns["item_id"], required=True)
        part = TablePart(self, item_id=items, hashes=[], names=(), values=np.empty((len(items), 0)), **roles)
        (rows,), first = number_items([part.dataset], [items])
        of_row = pa.array(name_cells(columns["voter"], required=True), pa.string()).dictionary_encode()
        voters, codes = of_row.dictionary.to_pylist(), of_row.indices.to_numpy()
        self._check_voters(voters, len(first))
        check_repeated(part, rows * len(voters) + codes, "for a voter within a dataset")
        votes = np.full((len(first), len(voters)), NO_VOTE, dtype=np.int8)
        self._cells: tuple[Column, Texts] | None = None
        try:
            votes[rows, codes] = vote_cells(columns["vote"])
        except GradeError:
            votes = np.full(votes.shape, np.nan)
            votes[rows, codes] = answer_cells(columns["vote"], {}, codes)
            self._cells = columns["vote"], np.array(voters, dtype=object)[codes]
        self.costs: dict[str, float] = {}
        if "cost" in columns:
            costs = score_cells(columns["cost"])
            has_cost = ~np.isnan(costs)
            counts = np.bincount(codes[has_cost], minlength=len(voters))
            sums = np.bincount(codes[has_cost], costs[has_cost], minlength=len(voters))
            self.costs = {name: float(sums[code] / counts[code]) for code, name in enumerate(voters) if counts[code]}

        wide = {"dataset": part.dataset[first], "item_id": items[first]}
        documents = _merge_role([part], [rows], "document_id", np.full(len(first), "", dtype=object))
        labels = _merge_role([part], [rows], "label", np.full(len(first), NO_VOTE, dtype=np.int8))
        if documents is not None:
            wide["document_id"] = documents
        if part.family is not None:
            families = _merge_families([part], part.dataset)
            wide["family"] = np.array([families.get(name, name) for name in wide["dataset"]], dtype=object)
        strings = {name: pa.array(values, pa.string()) for name, values in wide.items()}
        if labels is not None:
            strings["label"] = votes_array(labels)
        array = partial(pa.array, from_pandas=True) if votes.dtype == np.float64 else votes_array
        return pa.table(strings | {name: array(votes[:, code]) for code, name in enumerate(voters)})

    def check_votes(self, name: str) -> None:
        """Raise where an answer of a judge that votes is no vote."""
        if self._cells is not None:  # else all were read as votes
            column, voters = self._cells
            vote_cells(column, voters == name)

    def _check_voters(self, voters: Sequence[str], n_items: int) -> None:
        """Raise where a judge is named like a column of its own role, or the wide table would be too large."""
        clash = next((name for name in voters if name in ROLES), None)
        if clash is not None:
            raise InputError(
                f"`{self._names['voter']}` must not be one of {', '.join(ROLES)}. Got {clash!r} in {self.path}. "
                "Give that judge another name."
            )
        self.check_width(voters, self.param, "voter")
        if n_items * len(voters) > MAX_CELLS:
            raise InputError(
                f"`{self.param}` must have at most {MAX_CELLS:,} pairs of an item and a judge. Got {n_items:,} items "
                f"and {len(voters):,} judges in {self.path}. Split it by judge or dataset."
            )


def quoted_names(names: Iterable[str]) -> str:
    return ", ".join(quote(name) for name in names)


def hash_items(datasets: "pa.ChunkedArray", item_ids: "pa.ChunkedArray") -> Hashes:
    """Return a hash of each item and its dataset."""
    import pyarrow as pa

    coded = datasets.combine_chunks().dictionary_encode()
    of_dataset = hash_texts(pa.chunked_array([coded.dictionary]))
    return np.asarray(hash_texts(item_ids) + DATASET_FACTOR * of_dataset[coded.indices.to_numpy()])


def has_duplicates(hashes: list[Hashes]) -> bool:
    """Say whether a hash comes twice; the list is emptied, to spare memory."""
    result = np.concatenate(hashes)
    hashes.clear()
    result.sort()
    return bool((result[1:] == result[:-1]).any())


def number_items(datasets: Sequence[Texts], item_ids: Sequence[Texts]) -> tuple[list[Positions], Positions]:
    """Give each item of several tables a number, by first appearance.

    Return the number of each row, one array a table, and where each item first stands in all rows stacked.
    """
    import pyarrow as pa

    items, n_items = _text_codes(item_ids)
    # A pair of numbers as one: at most (distinct datasets x distinct ids), far below 2^63.
    keys = _text_codes(datasets)[0] * n_items + items
    # Arrow numbers keys as they first occur, so that output keeps the order of the first file.
    encoded = pa.array(keys).dictionary_encode()
    numbers, first = encoded.indices.to_numpy().astype(np.intp), np.empty(len(encoded.dictionary), dtype=np.intp)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # from the last row on, so that the first one stays
    ends = np.cumsum([len(ids) for ids in item_ids])[:-1]
    return np.split(numbers, ends), first


def _text_codes(columns: Sequence[Texts]) -> tuple[npt.NDArray[np.int64], int]:
    """Return a whole number for each string of columns below each other, equal where they look alike; and how many."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.concat_arrays([pa.array(one, pa.large_string()) for one in columns])
    odd = pc.match_substring_regex(texts, ODD_CHARACTER.pattern)
    forms = [visible_form(text) for text in texts.filter(odd).to_pylist()]
    encoded = pc.replace_with_mask(texts, odd, pa.array(forms, pa.large_string())).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def join_parts(parts: list[TablePart], empty: np.generic) -> dict[str, Any]:
    """Return one row an item of all files, in the order of first appearance, with `empty` where a file lacks it.

    They are the arguments of a :class:`deep.VoteMatrix`, all of them checked.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(parts) == 1 and not has_duplicates(parts[0].hashes):
        (one,) = parts
        datasets, item_ids, names = one.dataset, one.item_id, one.names
        labels, documents = one.label, one.document_id
        values = one.values.astype(empty.dtype, copy=False)
    else:
        rows, first = number_items([part.dataset for part in parts], [part.item_id for part in parts])
        for part, own in zip(parts, rows, strict=True):
            check_repeated(part, own)
        datasets = np.concatenate([part.dataset for part in parts])[first]
        item_ids = np.concatenate([part.item_id for part in parts])[first]
        labels = _merge_role(parts, rows, "label", np.full(len(first), -1, dtype=np.int8))
        documents = _merge_role(parts, rows, "document_id", np.full(len(first), "", dtype=object))
        names, values = _merge_values(parts, rows, len(first), empty)
    check_lookalikes(names, "paths")
    check_lookalikes(dict.fromkeys(datasets), "dataset")
    if len(parts) > 1:
        _check_shared(parts, rows)
    elif pc.any(pc.match_substring_regex(pa.array(item_ids, pa.large_string()), ODD_CHARACTER.pattern)).as_py():
        # Items that look the same have one number, as those that are the same.
        check_repeated(parts[0], number_items([datasets], [item_ids])[0][0])
    if documents is not None and not (documents != "").all():  # an item without one is a document of its own
        documents = np.where(documents == "", datasets + "/" + item_ids, documents)
    return {
        "votes": values,
        "item_ids": item_ids,
        "voter_names": names,
        "datasets": datasets,
        "labels": np.full(len(datasets), -1, dtype=np.int8) if labels is None else labels,
        "document_ids": documents,
        "families": _merge_families(parts, datasets),
        "checked": True,
    }


def concat_columns(parts: list[ColumnValues]) -> ColumnValues:
    """Return arrays below each other; each is given up once it is copied, so that they are hardly held twice."""
    if len(parts) == 1:
        return parts.pop()
    whole = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype)
    start = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[start : start + len(part)] = part
        start += len(part)
    return whole


# The ids of each file that an error names where two files share no item.
MAX_IDS = 3


def _check_shared(parts: list[TablePart], rows: list[Positions]) -> None:
    """Raise where a file of other judges on a dataset has none of its items: their ids are written otherwise."""
    for part, own in zip(parts, rows, strict=True):
        mates = [
            (other, its)
            for other, its in zip(parts, rows, strict=True)
            if part.names
            and other.names
            and {*part.names}.isdisjoint(other.names)
            and not {*part.dataset}.isdisjoint(other.dataset)
        ]
        if mates and not any(np.isin(own, its).any() for _, its in mates):
            other = mates[0][0]
            ids, its_ids = (", ".join(quote(str(item)) for item in one.item_id[:MAX_IDS]) for one in (part, other))
            raise InputError(
                f"`item_id` must be written alike in files of different judges of one dataset. Got none in common: "
                f"{ids} in {part.source.path}, and {its_ids} in {other.source.path}."
            )


def check_repeated(part: TablePart, rows: Positions, scope: str = "within a dataset") -> None:
    """Raise where an item comes twice in a file; `rows` numbers its items, or pairs of these and voters."""
    _, first = np.unique(rows, return_index=True)
    if len(first) == len(rows):
        return
    again = int(np.setdiff1d(np.arange(len(rows)), first)[0])
    before = int(np.flatnonzero(rows == rows[again])[0])
    check_lookalikes([str(part.item_id[before]), str(part.item_id[again])], "item_id")
    raise InputError(
        f"`item_id` must be unique {scope}. Got {quote(part.item_id[again])} of dataset "
        f"{quote(part.dataset[again])} at {part.source.where(again, 'item_id')}, and before at row "
        f"{before + part.source.first}."
    )


def _merge_role(parts: list[TablePart], rows: list[Positions], role: str, merged: ColumnValues) -> ColumnValues | None:
    """Fill `merged`, which holds only the empty value, from the files that have the column; None if none has."""
    empty, origin = merged[0], np.zeros(len(merged), dtype=np.intp)
    columns = [(k, getattr(part, role)) for k, part in enumerate(parts) if getattr(part, role) is not None]
    for k, values in columns:
        places = np.flatnonzero(values != empty)
        new = places[merged[rows[k][places]] == empty]
        merged[rows[k][new]], origin[rows[k][new]] = values[new], k
        clash = places[merged[rows[k][places]] != values[places]]
        if len(clash):
            row, part = int(clash[0]), parts[k]
            item = rows[k][row]
            other = parts[origin[item]]
            scope, place = (
                ("all files", other.source.path) if other is not part else ("all rows of an item", "another row")
            )
            raise InputError(
                f"`{role}` must be the same in {scope}. Got {quote(values[row])} at {part.source.where(row, role)}, "
                f"but {quote(merged[item])} in {place}, for item {quote(part.item_id[row])} of dataset "
                f"{quote(part.dataset[row])}."
            )
    return merged if columns else None


def _merge_families(parts: list[TablePart], datasets: Texts) -> dict[str, str]:
    """Return the families that differ from the dataset's own name: given by a file, else registered."""
    places: dict[str, tuple[str, Source, int]] = {}
    for part in parts:
        if part.family is None:
            continue
        # The first row of each pair of dataset and family, in order.
        family_rows = np.flatnonzero(part.family != "")
        codes, n_families = _text_codes([part.family[family_rows]])
        _, first = np.unique(_text_codes([part.dataset[family_rows]])[0] * n_families + codes, return_index=True)
        for row in np.sort(family_rows[first]).tolist():
            dataset, family = part.dataset[row], str(part.family[row])
            before, source, place = places.setdefault(dataset, (family, part.source, row))
            if before != family:
                raise InputError(
                    f"`family` must be the same throughout a dataset. Got {quote(family)} at "
                    f"{part.source.where(row, 'family')}, but {quote(before)} at {source.where(place, 'family')}, for "
                    f"dataset {quote(dataset)}."
                )
    families = {name: places[name][0] if name in places else family_of(name) for name in sorted(set(datasets))}
    return {name: family for name, family in families.items() if family != name}


def _merge_values(
    parts: list[TablePart], rows: list[Positions], n: int, empty: np.generic
) -> tuple[tuple[str, ...], ColumnValues]:
    """Put the columns of all files side by side, those of one name below each other."""
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    place = {name: column for column, name in enumerate(names)}
    result = np.full((n, len(names)), empty)
    for k, part in enumerate(parts):
        for other, other_rows in zip(parts[:k], rows, strict=False):
            others = frozenset(other.names)
            shared = [name for name in part.names if name in others]
            both = np.flatnonzero(np.isin(rows[k], other_rows))
            if shared and len(both):
                item = f"item {quote(part.item_id[both[0]])} of dataset {quote(part.dataset[both[0]])}"
                raise InputError(
                    f"`paths` must give each voter once for an item. Got column {quote(shared[0])} for {item} "
                    f"in {other.source.path} and in {part.source.path}."
                )
        columns = np.array([place[name] for name in part.names], dtype=np.intp)
        result[np.ix_(rows[k], columns)] = part.values
    return names, result


def read_joined(
    sources: Sequence[Source], ignored: Collection[str], cells: CellReader, empty: np.generic, what: str
) -> dict[str, Any]:
    """Read tables and join them as `join_parts` does; `cells` reads a column of a voter."""
    of_source = [
        tuple(name for name in source.columns if name not in ROLES and name not in ignored) for source in sources
    ]
    for source, names in zip(sources, of_source, strict=True):
        source.check_width(names, source.param, what)
        if not isinstance(source, LongSource):  # whose voters are cells, not names of columns
            leave_out = "leave it out with `--ignore {name!r}` (`ignore`)"
            check_misspelled(names, ROLES, source.param, leave_out, f" in {source.path}")
    if not any(of_source):
        raise InputError(
            f"`{sources[0].param}` must have at least one {what} column beside {', '.join(ROLES)} and the ignored "
            f"ones. Got {quoted_names(all_columns(sources))} in {', '.join(str(source.path) for source in sources)}."
        )
    parts = [
        read_part(source, names, frozenset(ignored), cells) for source, names in zip(sources, of_source, strict=True)
    ]
    return join_parts(parts, empty)


def read_answers(
    sources: Sequence[Source],
    ignored: Collection[str],
    scales: Mapping[str, str | Scale] | None = None,
    what: str = "voter",
) -> dict[str, Any]:
    """Return the arguments of a :class:`deep.VoteMatrix` of tables of judges; where all vote, they are read as votes.

    `scales` declares some by name or pattern, those of `table_defaults` where it is None; others are recognised.
    """
    scales = SCALES.get() if scales is None else scales
    if {*map(str, scales.values())} <= {"binary"}:
        with suppress(GradeError):
            return read_joined(sources, ignored, vote_cells, np.int8(NO_VOTE), what)
    voters = [name for name in all_columns(sources) if name not in {*ROLES, *ignored}]
    declared = scales_of(scales, voters)
    table = read_joined(sources, ignored, partial(answer_cells, scales=declared), np.float64(np.nan), what)
    names, answers = table["voter_names"], table["votes"]
    rest = {name: column for name, column in zip(names, answers.T, strict=True) if name not in declared}
    try:
        scale_of = declared | infer_scales(rest)
    except UnknownScaleError as error:
        row = int(np.flatnonzero(rest[error.column] == error.value)[0])
        place = f"item {quote(table['item_ids'][row])} of dataset {quote(table['datasets'][row])}"
        paths = ", ".join(str(source.path) for source in sources if error.column in source.columns)
        raise InputError(f"{error} It is {place}, in {paths}.") from None
    # Of judges that vote beside those that do not, cells are votes as ever: no "01" or "nan" among them.
    for source in sources:
        for name in [name for name in rest if scale_of[name].binary and name in source.columns]:
            try:
                source.check_votes(name)
            except GradeError as error:
                has_grades = not np.isin(rest[name][~np.isnan(rest[name])], (0, 1)).all()
                remedy = f" Of a judge that gives grades or shares, say the scale: `--scale {name}=1-5` (`scales`)."
                raise InputError(f"{error}{remedy * has_grades}") from None
    for name, column in rest.items():
        column[:] = scale_of[name].places(column)
    return table | answer_columns(answers, tuple(scale_of[name] for name in names))


def all_columns(sources: Iterable[Source]) -> tuple[str, ...]:
    """Return the columns of tables, each once, in order of first appearance."""
    return tuple(dict.fromkeys(name for source in sources for name in source.columns))


def read_frame(
    frame: Frame, *, layout: Layout | None, dataset: str | None, scales: Mapping[str, str | Scale] | None = None
) -> dict[str, Any]:
    """Return the arguments of the matrix of a frame; parameters and errors as in :meth:`deep.VoteMatrix.from_frame`."""
    source = FrameSource(frame_table(frame))
    names = long_names(source.columns)
    if layout is not None:
        check_choice(layout, get_args(Layout), "layout")
        names = {} if layout == "wide" else LONG_LAYOUTS[layout] | (names if layout == "long" else {})
    if ("dataset" in source.columns) == (dataset is not None):
        got = "both" if dataset is not None else "neither"
        raise InputError(f"`dataset` must be given for a frame without a column dataset, and only then. Got {got}.")
    if dataset is not None:
        source.name_dataset(check_name(dataset, "dataset"))
    if names:
        source = LongSource(source, names)
    else:
        check_misspelled([name for name in source.columns if name not in ROLES], ROLES, "frame", "drop it")
    return read_answers([source], (), scales, "vote")
