"""The columns of a table by their roles; several tables of votes or scores, joined into one row per item."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from deep._util.checks import Array, Floats, Labels, Positions, Texts, Votes, shown
from deep._util.columns import Column, Hashes, hash_texts, id_cells, label_cells, name_cells, text_cells, texts
from deep._util.names import ODD, check_twins, family_of, plain_form
from deep.datasets._source import Source
from deep.exceptions import InputError
from deep.records import VoteMatrix

if TYPE_CHECKING:
    import pyarrow as pa

ColumnValues = npt.NDArray[Any]
"""Votes, scores or text."""

DATASET_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd: the hash of a dataset times this, added to that of an item, tells items of one id in two datasets apart."""


KEYS = ("dataset", "item_id")


VOTE_COLUMNS = (*KEYS, "label", "document_id", "family", "generator")
"""The columns of a table of votes that are no voters; `generator` is read where judges are held beside writers."""


ROWS_AT_ONCE = 1 << 17


ROLE_READERS: Mapping[str, Callable[[Column], Any]] = {
    "dataset": partial(name_cells, required=True),
    "label": label_cells,
    "document_id": text_cells,
    "family": name_cells,
}
"""What reads the columns that are no voters, but for the ids of items."""


CellReader = Callable[[Column], Votes] | Callable[[Column], Floats]


@dataclass(frozen=True, eq=False)
class TablePart:
    """The contents of one file, with a hash of each item; a column that it lacks is None."""

    source: Source
    dataset: Texts
    item_id: Texts
    hashes: list[Hashes]
    label: Labels | None
    document_id: Texts | None
    family: Texts | None
    names: tuple[str, ...]
    values: ColumnValues


def check_keys(source: Source) -> None:
    for key in KEYS:
        if key not in source.columns:
            remedy = " Rename the column that holds it"
            if key == "dataset":
                remedy += ", or, where all rows are of one dataset, name that with `--dataset NAME` (`dataset`)"
            if {"source", "claim"} <= set(source.columns):
                remedy = " It holds claims: `deep votes` makes votes of it"
            raise InputError(
                f"`paths` must have a column {key}. Got {quoted(source.columns)} in {source.path}.{remedy}."
            )


def read_part(source: Source, names: tuple[str, ...], ignored: frozenset[str], cells: CellReader) -> TablePart:
    """Read the columns `names` of a table, and those of `VOTE_COLUMNS` that it has and that are not ignored."""
    check_keys(source)
    roles = [role for role in dict.fromkeys((*KEYS, *ROLE_READERS)) if role in source.columns and role not in ignored]
    pieces = source.pieces([*roles, *names], ROWS_AT_ONCE, whole=True)
    hashes: list[Hashes] = []
    found: dict[str, list[Array]] = {"values": []}
    for piece in pieces:
        values = [cells(piece[name]) for name in names]
        item_ids = id_cells(piece["item_id"])
        found["values"].append(np.column_stack(values) if values else np.empty((len(item_ids), 0)))
        found.setdefault("item_id", []).append(item_ids)
        for role, read in ROLE_READERS.items():
            if role in piece:
                found.setdefault(role, []).append(read(piece[role]))
        hashes.append(hash_items(*(texts(piece[key], required=True) for key in KEYS)))
    columns = {name: below(parts) for name, parts in found.items()}
    given: dict[str, Any] = {role: columns.get(role) for role in ROLE_READERS}
    return TablePart(source, item_id=columns["item_id"], hashes=hashes, names=names, values=columns["values"], **given)


def quoted(names: Iterable[str]) -> str:
    return ", ".join(shown(name) for name in names)


@dataclass(frozen=True, eq=False)
class Joined:
    """All files, one row per item in the order of first appearance."""

    datasets: Texts
    example_ids: Texts
    labels: Labels
    document_ids: Texts | None
    families: Mapping[str, str]
    names: tuple[str, ...]
    values: ColumnValues


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of k scorers on n examples, for example of encoders.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_examples, n_scorers)
        In each scorer's own unit; nan where there is none.
    example_ids : ndarray of str, shape (n_examples,)
        Unique within a dataset.
    score_names : tuple of str
    datasets : ndarray of str, shape (n_examples,)
    labels : ndarray of int8, shape (n_examples,)
        1, 0, or -1 where unknown.
    document_ids : ndarray of str, shape (n_examples,), optional
    n_unmatched : int
        Rows left out by `join_scores` since the votes have no such item.
    ranges : mapping of str to (float, float)
        The lowest and highest score that a scorer can give, where that is known; see `score_ranges`.
    """

    scores: Floats
    example_ids: Texts
    score_names: tuple[str, ...]
    datasets: Texts
    labels: Labels
    document_ids: Texts | None = None
    n_unmatched: int = 0
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n_examples, n_scorers)."""
        return self.scores.shape[0], self.scores.shape[1]


class Items(Protocol):
    """A table with a row for each item."""

    @property
    def datasets(self) -> Texts:
        """Of each row."""

    @property
    def example_ids(self) -> Texts:
        """Of each row."""


def hash_items(datasets: "pa.ChunkedArray", item_ids: "pa.ChunkedArray") -> Hashes:
    """Return a hash of each item and its dataset."""
    import pyarrow as pa

    coded = datasets.combine_chunks().dictionary_encode()
    of_dataset = hash_texts(pa.chunked_array([coded.dictionary]))
    return np.asarray(hash_texts(item_ids) + DATASET_FACTOR * of_dataset[coded.indices.to_numpy()])


def twice(hashes: list[Hashes]) -> bool:
    """Say whether a hash comes twice; the list is emptied, to spare memory."""
    found = np.concatenate(hashes)
    hashes.clear()
    found.sort()
    return bool((found[1:] == found[:-1]).any())


def number_items(datasets: Sequence[Texts], item_ids: Sequence[Texts]) -> tuple[list[Positions], Positions]:
    """Give each item of several tables a number, by first appearance.

    Return the number of each row, one array a table, and where each item first stands in all rows stacked.
    """
    items, n_items = _codes(item_ids)
    keys = _codes(datasets)[0] * n_items + items
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.intp)
    order = np.argsort(first)
    number[order] = np.arange(len(first))
    ends = np.cumsum([len(ids) for ids in item_ids])[:-1]
    return np.split(number[inverse], ends), first[order]


def _codes(columns: Sequence[Texts]) -> tuple[npt.NDArray[np.int64], int]:
    """Return a whole number for each string of columns below each other, equal where they look alike; and how many."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.concat_arrays([pa.array(one, pa.large_string()) for one in columns])
    odd = pc.match_substring_regex(texts, ODD.pattern)
    forms = [plain_form(text) for text in texts.filter(odd).to_pylist()]
    encoded = pc.replace_with_mask(texts, odd, pa.array(forms, pa.large_string())).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def join_parts(parts: list[TablePart], empty: np.generic) -> Joined:
    """Return one row per item of all files, with `empty` where a file lacks it."""
    if len(parts) == 1 and not twice(parts[0].hashes):
        (one,) = parts
        datasets, example_ids, names = one.dataset, one.item_id, one.names
        labels, documents = one.label, one.document_id
        values = one.values.astype(empty.dtype, copy=False)
    else:
        rows, first = number_items([part.dataset for part in parts], [part.item_id for part in parts])
        for part, own in zip(parts, rows, strict=True):
            check_repeated(part, own)
        datasets = np.concatenate([part.dataset for part in parts])[first]
        example_ids = np.concatenate([part.item_id for part in parts])[first]
        labels = _merge(parts, rows, "label", np.full(len(first), -1, dtype=np.int8))
        documents = _merge(parts, rows, "document_id", np.full(len(first), "", dtype=object))
        names, values = _merge_values(parts, rows, len(first), empty)
    check_twins(names, "paths")
    check_twins(dict.fromkeys(datasets), "dataset")
    _check_twin_items(datasets, example_ids)
    if len(parts) > 1:
        _check_shared(parts, rows)
    if documents is not None and not (documents != "").all():  # an item without one is a document of its own
        documents = np.where(documents == "", datasets + "/" + example_ids, documents)
    return Joined(
        datasets,
        example_ids,
        np.full(len(datasets), -1, dtype=np.int8) if labels is None else labels,
        documents,
        _merge_families(parts, datasets),
        names,
        values,
    )


def _check_twin_items(datasets: Texts, example_ids: Texts) -> None:
    """Raise where two items of a dataset look the same; only ids that another one can look like are compared."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array(example_ids, pa.large_string())
    odd = np.flatnonzero(pc.match_substring_regex(texts, ODD.pattern).to_numpy(zero_copy_only=False))
    if not odd.size:
        return
    forms = pa.array([plain_form(name) for name in texts.take(odd).to_pylist()], pa.large_string())
    alike = np.flatnonzero(pc.is_in(texts, value_set=forms).to_numpy(zero_copy_only=False))
    rows = np.union1d(odd, alike)
    items: dict[str, list[str]] = {}
    for dataset, item in zip(datasets[rows], texts.take(rows).to_pylist(), strict=True):
        items.setdefault(dataset, []).append(item)
    for ids in items.values():
        check_twins(ids, "item_id")


def below(parts: list[ColumnValues]) -> ColumnValues:
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


IDS = 3
"""Of each file that shares no item with another."""

TAIL = re.compile(r"\.0+$")
"""What a column of floats puts behind whole numbers."""


def _loose_form(item: str) -> str:
    """Return an id without what spreadsheets and data frames take or add: zeros before a number, `.0` behind, case."""
    return TAIL.sub("", plain_form(item)).lstrip("0").casefold()


def likely_reason(ids: Texts, known: Texts) -> str:
    """Return the likely reason why ids are not among those known: a sentence about the first, or nothing.

    Examples
    --------
    >>> likely_reason(np.array(["x", "7.0"]), np.array(["006", "007"]))
    " '7.0' may be '007'."
    """
    forms = {_loose_form(item): item for item in known.tolist()}
    found = next((item for item in ids.tolist() if _loose_form(item) in forms), None)
    return "" if found is None else f" {shown(found)} may be {shown(forms[_loose_form(found)])}."


def check_any_matched(matched: npt.NDArray[np.bool_], votes: Items, name: str, other: Items) -> None:
    """Raise where a table has no item of the votes, with three ids of each."""
    if matched.any():
        return
    # Where both have a dataset, its ids tell more than those of any other.
    known = set(votes.datasets.tolist())
    dataset = next((one for one in other.datasets.tolist() if one in known), None)
    ids, its_ids = (_first_ids(table, dataset) for table in (other, votes))
    raise InputError(
        f"`{name}` must share items with `votes`. Got none in common: {ids} in `{name}`, and {its_ids} in `votes`."
        f"{likely_reason(other.example_ids, votes.example_ids)} Write dataset and item_id alike."
    )


def _first_ids(table: Items, dataset: str | None) -> str:
    """Return the first ids of a dataset, or else of the first dataset."""
    name = table.datasets[0] if dataset is None else dataset
    return f"{', '.join(map(shown, table.example_ids[table.datasets == name][:IDS]))} of {shown(name)}"


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
            ids, its_ids = (", ".join(shown(str(item)) for item in one.item_id[:IDS]) for one in (part, other))
            raise InputError(
                f"`item_id` must be written alike in files of different judges of one dataset. Got none in common: "
                f"{ids} in {part.source.path}, and {its_ids} in {other.source.path}."
            )


def check_repeated(part: TablePart, rows: Positions) -> None:
    """Raise where an item comes twice in a file; `rows` numbers its items."""
    _, first = np.unique(rows, return_index=True)
    if len(first) == len(rows):
        return
    again = int(np.setdiff1d(np.arange(len(rows)), first)[0])
    before = int(np.flatnonzero(rows == rows[again])[0])
    check_twins([str(part.item_id[before]), str(part.item_id[again])], "item_id")
    raise InputError(
        f"`item_id` must be unique within a dataset. Got {shown(part.item_id[again])} of dataset "
        f"{shown(part.dataset[again])} at {part.source.where(again, 'item_id')}, and before at row {before + 1}."
    )


def _merge(parts: list[TablePart], rows: list[Positions], role: str, merged: ColumnValues) -> ColumnValues | None:
    """Fill `merged`, which holds only the empty value, from the files that have the column; None if none has."""
    empty, origin = merged[0], np.zeros(len(merged), dtype=np.intp)
    given = [(k, getattr(part, role)) for k, part in enumerate(parts) if getattr(part, role) is not None]
    for k, values in given:
        known = np.flatnonzero(values != empty)
        at = rows[k][known]
        clash = np.flatnonzero((merged[at] != empty) & (merged[at] != values[known]))
        if len(clash):
            row = int(known[clash[0]])
            item, part = rows[k][row], parts[k]
            raise InputError(
                f"`{role}` must be the same in all files. Got {shown(values[row])} at {part.source.where(row, role)}, "
                f"but {shown(merged[item])} in {parts[origin[item]].source.path}, for item "
                f"{shown(part.item_id[row])} of dataset {shown(part.dataset[row])}."
            )
        merged[at], origin[at] = values[known], k
    return merged if given else None


def _merge_families(parts: list[TablePart], datasets: Texts) -> dict[str, str]:
    """Return the families that differ from the dataset's own name: given by a file, else registered."""
    given: dict[str, tuple[TablePart, int]] = {}
    for part in parts:
        for dataset, row in _given_families(part):
            other, before = given.setdefault(dataset, (part, row))
            if _family(other, before) != _family(part, row):
                raise InputError(
                    f"`family` must be the same throughout a dataset. Got {shown(_family(part, row))} at "
                    f"{part.source.where(row, 'family')}, but {shown(_family(other, before))} at "
                    f"{other.source.where(before, 'family')}, for dataset {shown(dataset)}."
                )
    families = {name: _family(*given[name]) if name in given else family_of(name) for name in sorted(set(datasets))}
    return {name: family for name, family in families.items() if family != name}


def _family(part: TablePart, row: int) -> str:
    return "" if part.family is None else str(part.family[row])


def _given_families(part: TablePart) -> list[tuple[str, int]]:
    """Return the dataset and the first row of each pair of dataset and family in a file, in order."""
    if part.family is None:
        return []
    known = np.flatnonzero(part.family != "")
    families, n_families = _codes([part.family[known]])
    _, first = np.unique(_codes([part.dataset[known]])[0] * n_families + families, return_index=True)
    return [(part.dataset[row], int(row)) for row in np.sort(known[first])]


def _merge_values(
    parts: list[TablePart], rows: list[Positions], n: int, empty: np.generic
) -> tuple[tuple[str, ...], ColumnValues]:
    """Put the columns of all files side by side, those of one name below each other."""
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    place = {name: column for column, name in enumerate(names)}
    merged = np.full((n, len(names)), empty)
    for k, part in enumerate(parts):
        for j in range(k):
            _check_disjoint(part, rows[k], parts[j], rows[j])
        columns = np.array([place[name] for name in part.names], dtype=np.intp)
        merged[np.ix_(rows[k], columns)] = part.values
    return names, merged


def _check_disjoint(part: TablePart, rows: Positions, other: TablePart, other_rows: Positions) -> None:
    others = frozenset(other.names)
    shared = [name for name in part.names if name in others]
    both = np.flatnonzero(np.isin(rows, other_rows))
    if shared and len(both):
        item = f"item {shown(part.item_id[both[0]])} of dataset {shown(part.dataset[both[0]])}"
        raise InputError(
            f"`paths` must give each voter once for an item. Got column {shown(shared[0])} for {item} "
            f"in {other.source.path} and in {part.source.path}."
        )


def join_scores(votes: VoteMatrix, scores: ScoreTable) -> ScoreTable:
    """Align scores to the rows of a vote matrix.

    Parameters
    ----------
    votes : VoteMatrix
    scores : ScoreTable

    Returns
    -------
    ScoreTable
        A row for each row of `votes`, with nan where `scores` lacks the item; `n_unmatched` counts the rows
        of `scores` that are left out. A label known in either is known here; documents are those of `votes`.

    Raises
    ------
    InputError
        A label is 1 in one and 0 in the other, or they have no item in common.

    Examples
    --------
    >>> import numpy as np
    >>> from deep import VoteMatrix
    >>> from deep.datasets import ScoreTable, join_scores
    >>> votes = VoteMatrix([[1], [0]], ["a", "b"], ["strict"], ["news", "news"], [1, -1])
    >>> scores = ScoreTable(np.array([[0.3], [0.7]]), np.array(["b", "c"], object), ("align",),
    ...                     np.array(["news", "news"], object), np.array([0, 1], np.int8))
    >>> joined = join_scores(votes, scores)
    >>> joined.scores.tolist(), joined.labels.tolist(), joined.n_unmatched
    ([[nan], [0.3]], [1, 0], 1)
    """
    n, known = len(votes.votes), votes.example_ids
    if np.array_equal(known, scores.example_ids) and np.array_equal(votes.datasets, scores.datasets):
        check_same_labels(votes.labels, scores.labels, votes.datasets, known)
        labels = np.where(votes.labels == -1, scores.labels, votes.labels)
        return replace(scores, example_ids=known, labels=labels, document_ids=votes.document_ids, n_unmatched=0)
    rows, _ = number_items([votes.datasets, scores.datasets], [known, scores.example_ids])
    matched = rows[1] < n
    check_any_matched(matched, votes, "scores", scores)
    at = rows[1][matched]
    labels, given = votes.labels.copy(), scores.labels[matched]
    check_same_labels(labels[at], given, votes.datasets[at], votes.example_ids[at])
    labels[at] = np.where(labels[at] == -1, given, labels[at])
    aligned = np.full((n, len(scores.score_names)), np.nan)
    aligned[at] = scores.scores[matched]
    return replace(
        scores,
        scores=aligned,
        example_ids=known,
        datasets=votes.datasets,
        labels=labels,
        document_ids=votes.document_ids,
        n_unmatched=int((~matched).sum()),
    )


def check_same_labels(labels: Labels, given: Labels, datasets: Texts, items: Texts) -> None:
    """Raise where the label of a row in votes and that in scores are both known and differ."""
    clash = (given != -1) & (labels != -1) & (given != labels)
    if clash.any():
        row = int(np.flatnonzero(clash)[0])
        raise InputError(
            f"`label` must be the same in votes and scores. Got {labels[row]} in votes and {given[row]} in "
            f"scores for item {shown(str(items[row]))} of dataset {shown(str(datasets[row]))}."
        )
