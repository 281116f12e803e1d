"""Votes and scores from tables, whole or a piece at a time: of any length in the memory of a short one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np

from deep._util.checks import Answers, Labels, shown
from deep._util.columns import (
    GradeError,
    answer_cells,
    label_cells,
    score_cells,
    text_cells,
    texts,
    vote_cells,
)
from deep._util.frames import Frame, frame_table
from deep._util.names import check_no_known, resolve_dataset
from deep._util.scales import Scale, UnknownScaleError, recognise, scales_of
from deep.datasets._join import (
    KEYS,
    ROWS_AT_ONCE,
    VOTE_COLUMNS,
    CellReader,
    Joined,
    ScoreTable,
    check_keys,
    check_repeated,
    check_same_labels,
    hash_items,
    join_parts,
    join_scores,
    number_items,
    quoted,
    read_part,
    twice,
)
from deep.datasets._judgments import read_beside
from deep.datasets._source import DATASET, SCALES, UNNAMED, LongSource, ParquetSource, Source, open_table, rows_under
from deep.exceptions import InputError, warn
from deep.records import ABSTAIN, VoteMatrix, answer_columns

if TYPE_CHECKING:
    import pyarrow as pa

SOFT = ".soft.parquet"
"""What the name of soft votes ends in, which lie beside the votes of the same run."""


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
    scales : mapping of str to str, optional
        The scales of judges that give no votes, by name or pattern: ``{"gpt-*": "1-5"}``, as :class:`Scale` reads
        them. Those of other judges are recognised: grades are whole numbers or halves up to 10, and judges who give
        them share one range; shares lie between 0 and 1.

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
        joined, columns = _read_answers(paths, ignore, scales)
    return VoteMatrix(
        **columns,
        example_ids=joined.example_ids,
        voter_names=joined.names,
        datasets=joined.datasets,
        labels=joined.labels,
        document_ids=joined.document_ids,
        families=joined.families,
        checked=True,
    )


def _read_answers(
    paths: Tables, ignore: Iterable[str], scales: Mapping[str, str | Scale] | None
) -> tuple[Joined, dict[str, Any]]:
    """Read tables of judges, and return their answers as columns of a vote matrix; votes alone are read as such."""
    scales = SCALES.get() if scales is None else scales
    if not scales:
        with suppress(GradeError):
            joined = _read(paths, ignore, vote_cells, np.int8(-1), "voter")
            return joined, {"votes": joined.values}
    ignore = [ignore] if isinstance(ignore, str) else [*ignore]
    declared = scales_of(scales, [name for name in table_columns(paths) if name not in {*VOTE_COLUMNS, *ignore}])
    joined = _read(paths, ignore, partial(answer_cells, scales=declared), np.float64(np.nan), "voter")
    rest = {name: column for name, column in zip(joined.names, joined.values.T, strict=True) if name not in declared}
    try:
        known = declared | recognise(rest)
    except UnknownScaleError as error:
        row = int(np.flatnonzero(rest[error.column] == error.value)[0])
        place = locate_row(paths, joined.datasets[row], joined.example_ids[row], error.column)
        raise InputError(str(error).replace(f"in {shown(error.column)}", f"at {place}", 1)) from None
    for name, column in rest.items():
        column[:] = known[name].places(column)
    of_judges = tuple(known[name] for name in joined.names)
    return joined, answer_columns(joined.values, of_judges)


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


def locate_row(paths: Tables, dataset: str, item_id: str, column: str) -> str | None:
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


def declared_scales(names: Sequence[str], others: Sequence[str] = ()) -> dict[str, Scale]:
    """Return the scales that `--scale` declares of some judges; those of `others` are passed over."""
    found = scales_of(SCALES.get(), [*names, *others])
    return {name: scale for name, scale in found.items() if name in names}


def _read(paths: Tables, ignore: Iterable[str], cells: CellReader, empty: np.generic, what: str) -> Joined:
    """Read files and join them; `cells` reads a column, `empty` stands where a file lacks an item."""
    sources = open_all(paths)
    ignored = _check_ignored(ignore, sources)
    voters = [
        tuple(name for name in source.columns if name not in VOTE_COLUMNS and name not in ignored) for source in sources
    ]
    for source, names in zip(sources, voters, strict=True):
        source.check_width(names, "paths", what)
        if not isinstance(source, LongSource):  # whose voters are cells, not names of columns
            leave_out = "leave it out with `--ignore {name!r}` (`ignore`)"
            check_no_known(names, VOTE_COLUMNS, "paths", leave_out, f" in {source.path}")
    if not any(voters):
        raise InputError(
            f"`paths` must have at least one {what} column beside {', '.join(VOTE_COLUMNS)} and the ignored ones. "
            f"Got {quoted(all_columns(sources))} in {', '.join(str(source.path) for source in sources)}."
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


def _check_ignored(ignore: Iterable[str], sources: list[Source]) -> frozenset[str]:
    ignored = frozenset([ignore] if isinstance(ignore, str) else ignore)
    columns = all_columns(sources)
    for name in sorted(ignored):
        if name in KEYS:
            raise InputError(f"`ignore` must not name dataset or item_id, which every table needs. Got {name!r}.")
        if name not in columns:
            raise InputError(f"`ignore` must name columns of the files: {quoted(columns)}. Got {name!r}.")
    return ignored


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


@dataclass(frozen=True, eq=False)
class VoteRows:
    """Rows of tables of votes, in their order.

    Parameters
    ----------
    datasets, example_ids : pyarrow.ChunkedArray of str, length n_examples
    labels : ndarray of int8, shape (n_examples,)
        1, 0, or -1 where unknown.
    answers : ndarray, shape (n_examples, n_voters)
        Votes as int8, or places on scales, NaN for none, where some judges give grades or scores.
    """

    datasets: "pa.ChunkedArray"
    example_ids: "pa.ChunkedArray"
    labels: Labels
    answers: Answers


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
    voters : sequence of str
        The columns to read, in this order; at least one. `document_id`, `family` and all other columns are not read.
    scales : mapping of str to Scale, optional
        Of all voters, where some give grades or scores.
    scores : path or sequence of paths, optional
        Further tables, of scores.
    score_names : sequence of str, optional
        The voters that stand there, and not in the tables of votes.
    size : int

    Raises
    ------
    InputError
        As in `read_votes`, but at the first piece with a fault; an item that comes twice is found after the last.
    """
    import pyarrow as pa

    sources = open_all(paths)
    beside = open_all(scores) if score_names else []
    each_in_one = all(sum(name in source.columns for source in beside) == 1 for name in score_names)
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
    answers: Answers = votes.votes[:, at]
    if scales:
        answers = np.column_stack([votes.answers_on(scales[name], j) for name, j in zip(voters, at, strict=True)])
    for start in range(0, len(answers), size):
        rows = slice(start, start + size)
        datasets, ids = (
            pa.chunked_array([pa.array(column[rows], pa.string())]) for column in (votes.datasets, votes.example_ids)
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
    check_keys(source)
    own = [name for name in voters if name not in score_names]
    pieces = source.pieces([*KEYS, *{"label"}.intersection(source.columns), *own], size)
    soft = [one.pieces([name for name in ("label", *score_names) if name in one.columns], size) for one in beside]
    seen = []
    for piece, *others in zip(pieces, *soft, strict=True):
        datasets, example_ids = (texts(piece[key], required=True) for key in KEYS)
        columns = {name: column for each in (*others, piece) for name, column in each.items()}
        read = partial(answer_cells, scales=scales) if scales else vote_cells
        answers: list[Any] = [read(columns[name]) for name in voters]
        labels = label_cells(piece["label"]) if "label" in piece else np.full(len(answers[0]), ABSTAIN, dtype=np.int8)
        for other in others:
            if "label" in other:
                check_same_labels(labels, label_cells(other["label"]), datasets, example_ids)
        seen.append(hash_items(datasets, example_ids))
        yield VoteRows(datasets, example_ids, labels, np.column_stack(answers))
    if twice(seen):  # two items may share a hash, though hardly ever do: whether they are one is looked up
        part = read_part(source, (), frozenset(VOTE_COLUMNS[2:]), vote_cells)
        check_repeated(part, number_items([part.dataset], [part.item_id])[0][0])


def is_paths(given: object) -> TypeGuard[Paths]:
    """Return whether something is a path or paths."""
    listed = given if isinstance(given, list | tuple) else [given]
    return bool(listed) and all(isinstance(one, str | Path) for one in listed)


def is_frame(given: object) -> TypeGuard[Frame]:
    """Return whether something is a data frame or a table of Arrow, and not one column, a Series or an array."""
    return isinstance(given, Frame) and (hasattr(given, "columns") or hasattr(given, "schema"))


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
        dataset = None if "dataset" in table.column_names else UNNAMED
        if not scales:
            with suppress(GradeError):
                return VoteMatrix.from_frame(table, dataset=dataset)
        return read_votes(table, dataset=dataset, scales=scales)
    if is_paths(votes):
        return read_votes(votes, scales=scales)
    raise InputError(
        "`votes` must be a VoteMatrix, a data frame of pandas, Polars or pyarrow with the columns item_id and one a "
        f"judge, or a path. Got {type(votes).__name__}."
    )


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
