"""Votes and scores from tables, whole or a piece at a time: of any length in the memory of a short one."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np

from deep._util.checks import AnyVotes, Floats, Labels, Mask, Positions, Texts, Votes, quote
from deep._util.columns import answer_cells, label_cells, score_cells, text_cells, texts, vote_cells
from deep._util.frames import DATASET, DEFAULT_DATASET, ROLES, SCALES, Frame, Source, frame_table, table_defaults
from deep._util.join import (
    KEYS,
    ROWS_AT_ONCE,
    LongSource,
    all_columns,
    check_keys,
    check_repeated,
    has_duplicates,
    hash_items,
    number_items,
    quoted_names,
    read_answers,
    read_joined,
    read_part,
)
from deep._util.names import resolve_dataset, short_names, visible_form
from deep._util.scales import Scale, binary_votes, scales_of
from deep.datasets._judgments import vote_details
from deep.datasets._source import ParquetSource, open_table, read_beside
from deep.exceptions import InputError
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    import pyarrow as pa

    from deep.datasets._labels import LabelTable

# The columns of a table of votes that are no voters.
VOTE_COLUMNS = ROLES
# The ending of a file of soft votes, which lies beside the votes of the same run.
SOFT_ENDING = ".soft.parquet"


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of k scorers on n examples, for example of encoders.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_examples, n_scorers)
        In each scorer's own unit; nan where there is none.
    datasets, item_ids : ndarray of str, shape (n_examples,)
        The item of each row; an id is unique within its dataset.
    score_names : tuple of str
        In the order of the columns.
    labels : ndarray of int8, shape (n_examples,)
        1, 0, or -1 where unknown.
    document_ids : ndarray of str, shape (n_examples,), optional
        Which document each row is about, for intervals by document.
    n_unmatched : int
        Rows left out by `join_scores` since the votes have no such item.
    ranges : mapping of str to (float, float)
        The lowest and highest score that a scorer can give, where that is known; see `score_ranges`.
    """

    scores: Floats
    item_ids: Texts
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


Paths = str | Path | Sequence[str | Path]
Tables = Paths | Frame


def read_votes(
    paths: Tables,
    *,
    ignore: Iterable[str] = (),
    dataset: str | None = None,
    scales: Mapping[str, str | Scale] | None = None,
) -> VoteMatrix:
    r"""Read the answers of judges, mostly votes, from one or more tables.

    Parameters
    ----------
    paths : path or sequence of paths
        CSV (UTF-8, comma-separated; also ``.csv.gz`` that holds at most 24 MiB), Parquet, or JSON (an object a line, or
        an array of them; ``.json``, ``.jsonl``, ``.ndjson``, each also with ``.gz``), by suffix. Columns ``dataset``
        and ``item_id`` are required; ``label``, ``document_id`` and ``family`` are optional; every other column is a
        voter. Or a long table, a row an item and judge: ``item_id`` (``item``), ``judge`` (``voter``), ``vote``.
        Votes and labels are 1, 0 or empty, also 1.0 and 0.0, True and False, yes and no. Ids are text.
    ignore : iterable of str
        Columns to leave out, of whichever files have them; also ``label``, ``document_id`` or ``family``.
    dataset : str, optional
        That of the rows of tables without a column dataset.
    scales : mapping of str to str, optional
        The scales of judges that give no votes, by name or pattern: ``{"gpt-*": "1-5"}``, as :class:`Scale` reads
        them. Those of other judges are recognised: grades are whole numbers or halves up to 10, and judges who give
        them share one range; shares lie between 0 and 1.

    Returns
    -------
    VoteMatrix
        Files are joined on (dataset, item_id), in order of first appearance, with no vote where a file lacks an item.
        Families are those of the column, else the registered ones. An item without a document id is its own document.

    Raises
    ------
    InputError
        On the first fault, in one line with file, column and row; data rows count from 1, and for CSV the
        line is the one that an editor shows. Among the faults: a cell that is neither vote nor empty, an item given
        twice in a file, a voter of one item in two files, labels that disagree, an `ignore` that no file has.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deep.datasets import read_votes
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "votes.csv")
    >>> _ = path.write_text("dataset,item_id,label,strict,lenient\nnews,007,1,,1\nnews,008,0,0,1\n")
    >>> votes = read_votes(path)
    >>> votes.voter_names, votes.votes.tolist(), votes.item_ids.tolist()
    (('strict', 'lenient'), [[-1, 1], [0, 1]], ['007', '008'])
    >>> folder.cleanup()
    """
    if dataset is None and isinstance(paths, Frame):
        dataset = DATASET.get() or DEFAULT_DATASET
    with table_defaults(dataset) if dataset is not None else nullcontext():
        sources = open_all(paths)
        ignored = _check_ignored(ignore, sources)
        # What `deep ask` wrote of a judge's scale counts, unless another is declared; without a scale it votes.
        details = vote_details([str(source.path) for source in sources if not str(source.path).endswith(SOFT_ENDING)])
        by_name = {v: str(details[v].get("scale", "binary")) for v in details if v in {*all_columns(sources)} - ignored}
        columns = read_answers(sources, ignored, {**by_name, **(SCALES.get() if scales is None else scales)})
    return VoteMatrix(**columns)


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
    sources = open_all(paths)
    table = read_joined(sources, _check_ignored(ignore, sources), score_cells, np.float64(np.nan), "score")
    columns = ("votes", "item_ids", "voter_names", "datasets", "labels", "document_ids")
    return ScoreTable(*(table[name] for name in columns))


# The ids of each file that an error names where two files share no item.
N_IDS = 3

# The end that a column of floats puts behind whole numbers.
ZERO_DECIMALS = re.compile(r"\.0+$")


def _loose_form(item: str) -> str:
    """Return an id without what spreadsheets and data frames take or add: zeros before a number, `.0` behind, case."""
    return ZERO_DECIMALS.sub("", visible_form(item)).lstrip("0").casefold()


def likely_reason(ids: Texts, known: Texts) -> str:
    """Return the likely reason why ids are not among those known: a sentence about the first, or nothing.

    Examples
    --------
    >>> likely_reason(np.array(["x", "7.0"]), np.array(["006", "007"]))
    " '7.0' may be '007'."
    """
    forms = {_loose_form(item): item for item in known.tolist()}
    result = next((item for item in ids.tolist() if _loose_form(item) in forms), None)
    return "" if result is None else f" {quote(result)} may be {quote(forms[_loose_form(result)])}."


def matched_rows(votes: VoteMatrix, name: str, other: "ScoreTable | LabelTable") -> tuple[Mask, Positions]:
    """Return which rows of a table are of items of the votes, and which rows of the votes these are.

    Raises
    ------
    InputError
        There is none; the message has three ids of each.
    """
    # Votes first, so that their items are 0 to n - 1; what lies above has no votes.
    rows, _ = number_items([votes.datasets, other.datasets], [votes.item_ids, other.item_ids])
    matched = rows[1] < len(votes.votes)
    if matched.any():
        return matched, rows[1][matched]
    # Where both have a dataset, its ids tell more than those of any other.
    own_datasets = set(votes.datasets.tolist())
    dataset = next((one for one in other.datasets.tolist() if one in own_datasets), None)
    ids, its_ids = (_first_ids(table, dataset) for table in (other, votes))
    raise InputError(
        f"`{name}` must share items with `votes`. Got none in common: {ids} in `{name}`, and {its_ids} in `votes`."
        f"{likely_reason(other.item_ids, votes.item_ids)} Write dataset and item_id alike."
    )


def _first_ids(table: "VoteMatrix | ScoreTable | LabelTable", dataset: str | None) -> str:
    """Return the first ids of a dataset, or else of the first dataset."""
    name = table.datasets[0] if dataset is None else dataset
    return f"{', '.join(map(quote, table.item_ids[table.datasets == name][:N_IDS]))} of {quote(name)}"


def join_scores(votes: VoteMatrix, scores: ScoreTable) -> ScoreTable:
    """Align scores to the rows of a vote matrix.

    Parameters
    ----------
    votes : VoteMatrix
        Its items are the rows of the result, in its order.
    scores : ScoreTable
        In any order; rows of items without votes are left out.

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
    ids = votes.item_ids
    # Votes and scores of one run have the same rows in the same order, which spares the numbering of items.
    if np.array_equal(ids, scores.item_ids) and np.array_equal(votes.datasets, scores.datasets):
        check_same_labels(votes.labels, scores.labels, votes.datasets, ids)
        labels = np.where(votes.labels == -1, scores.labels, votes.labels)
        return replace(scores, item_ids=ids, labels=labels, document_ids=votes.document_ids, n_unmatched=0)
    matched, at = matched_rows(votes, "scores", scores)
    labels, new = votes.labels.copy(), scores.labels[matched]
    check_same_labels(labels[at], new, votes.datasets[at], votes.item_ids[at])
    labels[at] = np.where(labels[at] == -1, new, labels[at])
    aligned = np.full((len(ids), len(scores.score_names)), np.nan)
    aligned[at] = scores.scores[matched]
    return replace(
        scores,
        scores=aligned,
        item_ids=ids,
        datasets=votes.datasets,
        labels=labels,
        document_ids=votes.document_ids,
        n_unmatched=int((~matched).sum()),
    )


def check_same_labels(labels: Labels, score_labels: Labels, datasets: Texts, items: Texts) -> None:
    """Raise where the label of a row in votes and that in scores are both known and differ."""
    clash = (score_labels != -1) & (labels != -1) & (score_labels != labels)
    if clash.any():
        row = int(np.flatnonzero(clash)[0])
        raise InputError(
            f"`label` must be the same in votes and scores. Got {labels[row]} in votes and {score_labels[row]} in "
            f"scores for item {quote(str(items[row]))} of dataset {quote(str(datasets[row]))}."
        )


def locate_row(paths: Sequence[str | Path], dataset: str, item_id: str, column: str) -> str | None:
    """Return file, column and row of an item for an error message; None where no file has it.

    Parameters
    ----------
    paths : sequence of str or Path
        Tables that `read_votes` has read.
    dataset, item_id : str
        Which item it is.
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


def declared_scales(names: Sequence[str], others: Sequence[str] = ()) -> dict[str, Scale]:
    """Return the scales that `--scale` declares of some judges; those of `others` are passed over."""
    result = scales_of(SCALES.get(), [*names, *others])
    return {name: scale for name, scale in result.items() if name in names}


def open_all(paths: Tables) -> list[Source]:
    """Open tables of votes, scores or labels: files, or one data frame."""
    is_one = isinstance(paths, (str, Path, Frame)) or not isinstance(paths, Iterable)
    places: list[Any] = [paths] if is_one else [*cast("Iterable[str | Path]", paths)]
    if not places:
        raise InputError("`paths` must name at least one file. Got none.")
    # Soft votes beside votes of another run are refused here, where no caller can forget it.
    for path in filter(lambda path: str(path).endswith(SOFT_ENDING), places):
        read_beside(str(path).removesuffix(SOFT_ENDING) + ".parquet", "soft")
    return [open_table(path) for path in places]


def read_costs(paths: Tables) -> dict[str, float]:
    """Return by judge the mean dollars of a vote, where a long table has a column cost."""
    long = [source for source in open_all(paths) if isinstance(source, LongSource)]
    return {name: cost for source in long for name, cost in source.costs.items()}


def _check_ignored(ignore: Iterable[str], sources: list[Source]) -> frozenset[str]:
    columns = all_columns(sources)
    # By the short name too: it is the one that commands print.
    column_of = {short: name for name, short in short_names(columns).items()} | {name: name for name in columns}
    ignored = frozenset(column_of.get(name, name) for name in ([ignore] if isinstance(ignore, str) else ignore))
    for name in sorted(ignored):
        if name in KEYS:
            raise InputError(f"`ignore` must not name dataset or item_id, which every table needs. Got {name!r}.")
        if name not in columns:
            raise InputError(f"`ignore` must name columns of the files: {quoted_names(columns)}. Got {name!r}.")
    return ignored


def choose_datasets(votes: VoteMatrix, *, only: Sequence[str] = (), exclude: Sequence[str] = ()) -> VoteMatrix:
    """Return the rows of some datasets.

    Parameters
    ----------
    votes : VoteMatrix
        Of one dataset or several.
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
    chosen_names = {resolve_dataset(name, names, param="only") for name in only} or set(names)
    chosen_names -= {resolve_dataset(name, names, param="exclude") for name in exclude}
    if not chosen_names:
        raise InputError(f"`exclude` must leave a dataset to learn from. Got all of {', '.join(names)}.")
    if chosen_names == set(names):
        return votes
    return votes.rows(np.isin(votes.datasets.astype(str), sorted(chosen_names)))


@dataclass(frozen=True, eq=False)
class VoteRows:
    """Rows of tables of votes, in their order.

    Parameters
    ----------
    datasets, item_ids : pyarrow.ChunkedArray of str, length n_examples
        Which item each row is.
    labels : ndarray of int8, shape (n_examples,)
        1, 0, or -1 where unknown.
    answers : ndarray, shape (n_examples, n_voters)
        Votes as int8, or places on scales, NaN for none, where some judges give grades or scores.
    """

    datasets: "pa.ChunkedArray"
    item_ids: "pa.ChunkedArray"
    labels: Labels
    answers: AnyVotes

    @property
    def votes(self) -> Votes:
        """Return the votes, shape (n_examples, n_voters): of a grade or score 1 from the middle of its scale on."""
        return binary_votes(self.answers)


def iter_votes(
    paths: Paths,
    voters: Sequence[str],
    *,
    scales: Mapping[str, Scale] = MappingProxyType({}),
    scores: Paths = (),
    score_names: Sequence[str] = (),
    size: int = ROWS_AT_ONCE,
) -> Iterator[VoteRows]:
    """Read the answers of some voters as `read_votes` does, at most `size` rows at a time.

    One Parquet file of any length needs the memory of one group of its rows, and 8 bytes a row to find an item that
    comes twice. So do Parquet files of scores with the same items in the same order, which may be that very file. Other
    files are joined in memory.

    Parameters
    ----------
    paths : path or sequence of paths
        Tables of votes, read in this order.
    voters : sequence of str
        The columns to read, in this order; at least one. `document_id`, `family` and all other columns are not read.
    scales : mapping of str to Scale, optional
        Of all voters, where some give grades or scores.
    scores : path or sequence of paths, optional
        Further tables, of scores.
    score_names : sequence of str, optional
        The voters that stand there, and not in the tables of votes.
    size : int
        The most rows that are yielded at a time.

    Raises
    ------
    InputError
        As in `read_votes`, but at the first piece with a fault; an item that comes twice is found after the last.
    """
    import pyarrow as pa

    sources = open_all(paths)
    beside = open_all(scores) if score_names else []
    each_in_one = all(sum(name in source.columns for source in beside) == 1 for name in score_names)
    # Only rows in one order can be read piece by piece; anything else is joined in memory.
    if len(sources) == 1 and each_in_one and all(_same_rows(sources[0], one, size) for one in beside):
        yield from _iter_source(sources[0], voters, scales, beside, score_names, size)
        return
    own = [name for name in voters if name not in score_names]
    ignored = {*all_columns(sources)} - {*KEYS, "label", *own}
    votes = read_votes(paths, ignore=ignored, scales={name: scales[name] for name in own if name in scales})
    if score_names:
        table = read_scores(scores, ignore={*all_columns(beside)} - {*KEYS, "label", *score_names})
        table = join_scores(votes, table)
        votes = votes.with_answers(table.scores, table.score_names, {name: scales[name] for name in score_names})
    at = [votes.voter_names.index(name) for name in voters]
    answers: AnyVotes = votes.votes[:, at]
    if scales:
        answers = np.column_stack([votes.answers_on(scales[name], j) for name, j in zip(voters, at, strict=True)])
    for start in range(0, len(answers), size):
        rows = slice(start, start + size)
        datasets, ids = (
            pa.chunked_array([pa.array(column[rows], pa.string())]) for column in (votes.datasets, votes.item_ids)
        )
        yield VoteRows(datasets, ids, votes.labels[rows], answers[rows])


def _same_rows(one: Source, other: Source, size: int) -> bool:
    """Say whether two Parquet files have the same items in the same order, in pieces of the same lengths."""
    if not (isinstance(one, ParquetSource) and isinstance(other, ParquetSource)):
        return False
    if one.path.samefile(other.path):
        return True
    for source in (one, other):
        check_keys(source)
    both = zip_longest(one.pieces(KEYS, size), other.pieces(KEYS, size))
    return all(
        mine and its and all(texts(mine[key], required=True).equals(texts(its[key], required=True)) for key in KEYS)
        for mine, its in both
    )


def _iter_source(
    source: Source,
    voters: Sequence[str],
    scales: Mapping[str, Scale],
    beside: Sequence[Source],
    score_names: Sequence[str],
    size: int,
) -> Iterator[VoteRows]:
    """Yield the rows of one table with the scores of the files beside it, a piece at a time."""
    check_keys(source)
    own = [name for name in voters if name not in score_names]
    pieces = source.pieces([*KEYS, *{"label"}.intersection(source.columns), *own], size)
    soft = [one.pieces([name for name in ("label", *score_names) if name in one.columns], size) for one in beside]
    hashes = []
    for piece, *others in zip(pieces, *soft, strict=True):
        datasets, item_ids = (texts(piece[key], required=True) for key in KEYS)
        # The piece of votes last: of a name in both it is the one that counts.
        columns = {name: column for each in (*others, piece) for name, column in each.items()}
        read = partial(answer_cells, scales=scales) if scales else vote_cells
        answers: list[Any] = [read(columns[name]) for name in voters]
        labels = label_cells(piece["label"]) if "label" in piece else np.full(len(answers[0]), ABSTAIN, dtype=np.int8)
        for other in others:
            if "label" in other:
                check_same_labels(labels, label_cells(other["label"]), datasets, item_ids)
        hashes.append(hash_items(datasets, item_ids))
        yield VoteRows(datasets, item_ids, labels, np.column_stack(answers))
    if has_duplicates(hashes):  # two items may share a hash, though hardly ever do: whether they are one is looked up
        part = read_part(source, (), frozenset(ROLES[2:]), vote_cells)
        check_repeated(part, number_items([part.dataset], [part.item_id])[0][0])


def is_paths(value: object) -> TypeGuard[Paths]:
    """Return whether something is a path or paths."""
    entries = value if isinstance(value, list | tuple) else [value]
    return bool(entries) and all(isinstance(one, str | Path) for one in entries)


def is_frame(value: object) -> TypeGuard[Frame]:
    """Return whether something is a data frame or a table of Arrow, and not one column, a Series or an array."""
    return isinstance(value, Frame) and (hasattr(value, "columns") or hasattr(value, "schema"))


VotesGiven = VoteMatrix | Frame | Paths
"""Votes, a data frame with the columns of a table of votes, or paths of such tables."""


def as_votes(votes: object, *, scales: Mapping[str, str | Scale] | None = None) -> VoteMatrix:
    """Return votes as a matrix.

    Parameters
    ----------
    votes : VoteMatrix, data frame of pandas, Polars or pyarrow, or path or sequence of paths
        A frame has the columns of a file (:func:`read_votes`); without a column dataset all rows are of one.
    scales : mapping of str to str, optional
        As in :func:`read_votes`; of a matrix none.

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
        dataset = None if "dataset" in table.column_names else DEFAULT_DATASET
        return VoteMatrix.from_frame(table, dataset=dataset, scales=scales)
    if is_paths(votes):
        return read_votes(votes, scales=scales)
    raise InputError(
        "`votes` must be a VoteMatrix, a data frame (pandas, Polars, pyarrow) with item_id and a column per judge, "
        f"or a path. Got {type(votes).__name__}."
    )
