"""Votes and scores from tidy wide tables: a row per item, a column per voter."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from deep._util.checks import Array, Floats, Labels, Texts, Votes, shown
from deep._util.columns import (
    Column,
    Hashes,
    id_cells,
    label_cells,
    name_cells,
    score_cells,
    text_cells,
    texts,
    vote_cells,
)
from deep._util.frames import Frame
from deep._util.names import check_no_known, resolve_dataset
from deep.datasets._join import Joined, TablePart, below, check_any_matched, hash_items, join_parts, number_items
from deep.datasets._judgments import read_beside
from deep.datasets._source import DATASET, UNNAMED, LongSource, Source, open_table, rows_under
from deep.exceptions import InputError
from deep.records import VoteMatrix

KEYS = ("dataset", "item_id")
VOTE_COLUMNS = (*KEYS, "label", "document_id", "family")
"""The columns of a table of votes that are no voters."""

SOFT = ".soft.parquet"
"""What the name of soft votes ends in, which lie beside the votes of the same run."""

ROWS_AT_ONCE = 1 << 17

ROLE_READERS: Mapping[str, Callable[[Column], Any]] = {
    "dataset": partial(name_cells, required=True),
    "label": label_cells,
    "document_id": text_cells,
    "family": name_cells,
}
"""What reads the columns that are no voters, but for the ids of items."""

Paths = str | Path | Sequence[str | Path]
Tables = Paths | Frame
CellReader = Callable[[Column], Votes] | Callable[[Column], Floats]


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


MOST_VOTERS = 10_000
"""Columns of a table: what compares each judge with each other has their square in memory."""


def read_votes(paths: Tables, *, ignore: Iterable[str] = (), dataset: str | None = None) -> VoteMatrix:
    r"""Read votes from one or more tables.

    Parameters
    ----------
    paths : path or sequence of paths
        CSV (UTF-8, comma-separated; also ``.csv.gz`` that holds at most 24 MiB), Parquet, or JSON (an object a line,
        or an array of them; ``.json``, ``.jsonl``, ``.ndjson``, each also with ``.gz``), by suffix. Columns
        ``dataset`` and ``item_id`` are required; ``label``, ``document_id`` and ``family`` are optional; every other
        column is a voter. Or a long table, a row an item and judge: ``item_id`` (``item``), ``judge`` (``voter``),
        ``vote``. Ids are text, kept to the letter. Votes and labels are 1, 0 or empty, also written 1.0 and 0.0,
        True and False, yes and no. The row index that pandas stores in Parquet is skipped.
    ignore : iterable of str
        Columns to leave out, of whichever files have them; also ``label``, ``document_id`` or ``family``.
    dataset : str, optional
        That of the rows of tables without a column dataset.

    Returns
    -------
    VoteMatrix
        Files are joined on (dataset, item_id): the items of any file, in order of first appearance, with no
        vote where a file lacks an item. Families are those of the ``family`` column, else the registered
        ones. An item without a document id, in a table that has some, is a document of its own.

    Raises
    ------
    InputError
        On the first fault, in one line with file, column and row; data rows count from 1, and for CSV the
        line is the one that an editor shows. Among the faults: a cell that is neither vote nor empty, an
        item given twice in a file, a voter given for one item by two files, labels that disagree, a file
        that cannot be read, an `ignore` that no file has.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deep.datasets import read_votes
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "votes.csv")
    >>> _ = path.write_text("dataset,item_id,label,strict,lenient\nnews,007,1,,1\nnews,008,0,0,1\n")
    >>> votes = read_votes(path)
    >>> votes.voter_names, votes.votes.tolist(), votes.example_ids.tolist()
    (('strict', 'lenient'), [[-1, 1], [0, 1]], ['007', '008'])
    >>> folder.cleanup()
    """
    if dataset is None and isinstance(paths, Frame):
        dataset = DATASET.get() or UNNAMED
    with rows_under(dataset) if dataset is not None else nullcontext():
        joined = _read(paths, ignore, vote_cells, np.int8(-1), "voter")
    return VoteMatrix(
        votes=joined.values,
        example_ids=joined.example_ids,
        voter_names=joined.names,
        datasets=joined.datasets,
        labels=joined.labels,
        document_ids=joined.document_ids,
        families=joined.families,
        checked=True,
    )


def read_scores(paths: Tables, *, ignore: Iterable[str] = ()) -> ScoreTable:
    r"""Read scores from one or more tables.

    Parameters
    ----------
    paths : path or sequence of paths
        As for `read_votes`, with a finite number, ``nan`` or nothing in each cell of a scorer.
    ignore : iterable of str
        As for `read_votes`.

    Returns
    -------
    ScoreTable
        Files are joined as by `read_votes`, with nan where a file lacks an item.

    Raises
    ------
    InputError
        As for `read_votes`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deep.datasets import read_scores
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "scores.csv")
    >>> _ = path.write_text("dataset,item_id,align,summac\nnews,a,0.9,-0.2\nnews,b,,0.4\n")
    >>> read_scores(path).scores.tolist()
    [[0.9, -0.2], [nan, 0.4]]
    >>> folder.cleanup()
    """
    joined = _read(paths, ignore, score_cells, np.float64(np.nan), "score")
    return ScoreTable(
        joined.values, joined.example_ids, joined.names, joined.datasets, joined.labels, joined.document_ids
    )


def locate_row(paths: Sequence[str | Path], dataset: str, item_id: str, column: str) -> str | None:
    """Return file, column and row of an item for an error message; None where no file has it.

    Parameters
    ----------
    paths : sequence of str or Path
        Tables that `read_votes` has read.
    dataset, item_id : str
    column : str
        The column that the message is about.
    """
    for source in open_all(paths):
        datasets, items = (text_cells(cells) for cells in source.read(KEYS).values())
        rows = np.flatnonzero((datasets == dataset) & (items == item_id))
        if rows.size:
            return source.where(int(rows[0]), column)
    return None


def table_columns(paths: Tables) -> tuple[str, ...]:
    """Return the columns of one or more tables, each once, in order of first appearance; no cell is read."""
    return all_columns(open_all(paths))


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


def _read(paths: Tables, ignore: Iterable[str], cells: CellReader, empty: np.generic, what: str) -> Joined:
    """Read files and join them; `cells` reads a column, `empty` stands where a file lacks an item."""
    sources = open_all(paths)
    ignored = _check_ignored(ignore, sources)
    voters = [
        tuple(name for name in source.columns if name not in VOTE_COLUMNS and name not in ignored) for source in sources
    ]
    for source, names in zip(sources, voters, strict=True):
        if not isinstance(source, LongSource):  # whose voters are cells, not names of columns
            leave_out = "leave it out with `--ignore {name!r}` (`ignore`)"
            check_no_known(names, VOTE_COLUMNS, "paths", leave_out, f" in {source.path}")
    if not any(voters):
        raise InputError(
            f"`paths` must have at least one {what} column beside {', '.join(VOTE_COLUMNS)} and the ignored ones. "
            f"Got {_quoted(all_columns(sources))} in {', '.join(str(source.path) for source in sources)}."
        )
    if (widest := max(map(len, voters))) > MOST_VOTERS:
        raise InputError(
            f"`paths` must have at most {MOST_VOTERS:,} {what} columns each. Got {widest:,} in "
            f"{str(sources[[*map(len, voters)].index(widest)].path)!r}. Write one row an item and one column a {what}."
        )
    return join_parts([read_part(*pair, ignored, cells) for pair in zip(sources, voters, strict=True)], empty)


def open_all(paths: Tables) -> list[Source]:
    """Open tables of votes, scores or labels: files, or one data frame."""
    is_one = isinstance(paths, (str, Path, Frame)) or not isinstance(paths, Iterable)
    listed: list[Any] = [paths] if is_one else [*cast("Iterable[str | Path]", paths)]
    if not listed:
        raise InputError("`paths` must name at least one file. Got none.")
    for path in filter(lambda path: str(path).endswith(SOFT), listed):
        read_beside(str(path).removesuffix(SOFT) + ".parquet", "soft")
    return [open_table(path) for path in listed]


def read_costs(paths: Tables) -> dict[str, float]:
    """Return by judge the mean dollars of a vote, where a long table has a column cost."""
    long = [source for source in open_all(paths) if isinstance(source, LongSource)]
    return {name: cost for source in long for name, cost in source.costs.items()}


def all_columns(sources: Iterable[Source]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for source in sources for name in source.columns))


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(shown(name) for name in names)


def _check_ignored(ignore: Iterable[str], sources: list[Source]) -> frozenset[str]:
    ignored = frozenset([ignore] if isinstance(ignore, str) else ignore)
    columns = all_columns(sources)
    for name in sorted(ignored):
        if name in KEYS:
            raise InputError(f"`ignore` must not name dataset or item_id, which every table needs. Got {name!r}.")
        if name not in columns:
            raise InputError(f"`ignore` must name columns of the files: {_quoted(columns)}. Got {name!r}.")
    return ignored


def check_keys(source: Source) -> None:
    for key in KEYS:
        if key not in source.columns:
            remedy = " Rename the column that holds it"
            if key == "dataset":
                remedy += ", or, where all rows are of one dataset, name that with `--dataset NAME` (`dataset`)"
            if {"source", "claim"} <= set(source.columns):
                remedy = " It holds claims: `deep votes` makes votes of it"
            raise InputError(
                f"`paths` must have a column {key}. Got {_quoted(source.columns)} in {source.path}.{remedy}."
            )


def read_part(source: Source, names: tuple[str, ...], ignored: frozenset[str], cells: CellReader) -> TablePart:
    """Read the columns `names` of a table, and those of `VOTE_COLUMNS` that it has and that are not ignored."""
    check_keys(source)
    roles = [role for role in VOTE_COLUMNS if role in source.columns and role not in ignored]
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


def choose_datasets(votes: VoteMatrix, *, only: Sequence[str] = (), exclude: Sequence[str] = ()) -> VoteMatrix:
    """Return the rows of some datasets.

    Parameters
    ----------
    votes : VoteMatrix
    only, exclude : sequence of str
        Names in any spelling; by default all, and none.

    Raises
    ------
    InputError
        A name is unknown, or no dataset is left.

    Examples
    --------
    >>> from deep.datasets import choose_datasets, simulate_votes
    >>> choose_datasets(simulate_votes(0), only=["xsum"]).dataset_names
    ('aggrefact-xsum',)
    """
    names = votes.dataset_names
    kept = {resolve_dataset(name, names, param="only") for name in only} or set(names)
    kept -= {resolve_dataset(name, names, param="exclude") for name in exclude}
    if not kept:
        raise InputError(f"`exclude` must leave a dataset to learn from. Got all of {', '.join(names)}.")
    if kept == set(names):
        return votes
    return votes.rows(np.isin(votes.datasets.astype(str), sorted(kept)))


Range = tuple[float, float]

PUBLISHED_RANGES: Mapping[str, Range] = {
    "alignscore": (0.0, 1.0),
    "qafacteval": (0.0, 5.0),
    "questeval": (0.0, 1.0),
    "summacconv": (0.0, 1.0),
    "summaccv": (0.0, 1.0),
    "summaczs": (-1.0, 1.0),
}
"""Letters and digits of a scorer's name, and the range that the DEEP paper states for it (footnote 2)."""


def parse_ranges(options: Iterable[str]) -> dict[str, Range]:
    """Read options ``NAME=LOW:HIGH``.

    Examples
    --------
    >>> from deep.datasets import parse_ranges
    >>> parse_ranges(["QAFactEval=0:5"])
    {'QAFactEval': (0.0, 5.0)}
    """
    return dict(_parse(option) for option in options)


def _parse(option: str) -> tuple[str, Range]:
    name, _, bounds = option.rpartition("=")
    try:
        low, high = (float(bound) for bound in bounds.split(":"))
    except ValueError:
        low = high = np.nan
    if not name or not -np.inf < low < high < np.inf:
        raise InputError(f"`range` must be NAME=LOW:HIGH with LOW below HIGH. Got {option!r}.")
    return name, (low, high)


def score_ranges(names: Iterable[str], scores: Floats, given: Mapping[str, Range]) -> dict[str, Range]:
    """Return the ranges of scorers that are known: those given, else the published ones of their names.

    Parameters
    ----------
    names : sequence of str
    scores : ndarray of float, shape (n_examples, n_scorers)
        A published range that does not hold all scores of its scorer is another scorer's, and left out.
    given : mapping of str to (float, float)

    Raises
    ------
    InputError
        A range is given for a name that is none of `names`, or does not hold all scores.
    """
    names = tuple(names)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(f"`range` must be of one of {', '.join(sorted(names))}. Got {unknown[0]!r}.")
    found: dict[str, Range] = {}
    for name, column in zip(names, scores.T, strict=True):
        known = given.get(name) or PUBLISHED_RANGES.get(_plain(name))
        outside = column[(column < known[0]) | (column > known[1])] if known else column
        if known and not outside.size:
            found[name] = known
        elif name in given:
            low, high = given[name]
            raise InputError(
                f"`range` must hold every score of {name!r}. Got {outside[0].item()!r} outside {low:g}:{high:g}."
            )
    return found


def _plain(name: str) -> str:
    return "".join(letter for letter in name.partition("@")[0].casefold() if letter.isalnum())
