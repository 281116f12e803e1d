"""Rationale, evidence and cost of each judgment, in the file beside a table of votes; voters and licences of votes."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from deep import datasets
from deep._util.checks import Positions, Votes, quote
from deep._util.columns import text_cells
from deep._util.files import JsonObject
from deep._util.join import number_items
from deep.datasets._rows import open_parquet, read_rows
from deep.datasets._source import file_beside, file_metadata, open_source, read_beside
from deep.exceptions import InputError
from deep.records import ABSTAIN, FAILURE_REASONS, UNASKED_REASONS, Reason, VoteMatrix

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


COLUMNS = ("dataset", "item_id", "voter", "reason")


@dataclass(frozen=True)
class Failures:
    """How often one voter gave no vote on one dataset, by reason.

    Parameters
    ----------
    voter, dataset : str
        The column of the voter, and the dataset, as the table of votes names them.
    n_items : int
        Items of the dataset.
    reasons : dict of str to int
        Those of `FAILURE_REASONS` are failures; `abstained` is the voter's own will, and those of `UNASKED_REASONS`
        are not its doing.
    """

    voter: str
    dataset: str
    n_items: int
    reasons: dict[str, int]

    @property
    def rate(self) -> float:
        """Return the share of failures among the items that the voter was asked about."""
        n_asked = self.n_items - sum(self.reasons.get(reason, 0) for reason in UNASKED_REASONS)
        return sum(self.reasons.get(reason, 0) for reason in FAILURE_REASONS) / max(n_asked, 1)


def read_reasons(paths: Sequence[str | Path], votes: VoteMatrix) -> list[Failures]:
    """Read the reasons that lie beside tables of votes.

    Parameters
    ----------
    paths : sequence of str or Path
        The tables of votes; one without reasons beside it adds nothing.
    votes : VoteMatrix
        What was read from them; voters and datasets that it lacks are left out.

    Returns
    -------
    list of Failures
        By voter and dataset, only where a vote is missing.

    Raises
    ------
    InputError
        A file lacks a column or holds a reason outside the closed set.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    for dataset, _, voter, reason in _reason_rows(paths):
        counts.setdefault((voter, dataset), Counter())[reason] += 1
    sizes = Counter(votes.datasets.tolist())
    return [
        Failures(voter, dataset, sizes[dataset], dict(sorted(result.items())))
        for (voter, dataset), result in sorted(counts.items())
        if voter in votes.voter_names and dataset in sizes
    ]


def read_item_reasons(
    paths: Sequence[str | Path], *, items: Collection[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], str, str]]:
    """Yield the item, the voter and the reason of each missing vote on some items.

    Parameters
    ----------
    paths : sequence of str or Path
        The tables of votes; one without reasons beside it adds nothing.
    items : collection of (dataset, item_id)
        Those whose missing votes are wanted.

    Raises
    ------
    InputError
        A file lacks a column or holds a reason outside the closed set.
    """
    keys = set(items)
    for dataset, item, voter, reason in _reason_rows(paths):
        if (dataset, item) in keys:
            yield (dataset, item), voter, reason


def _reason_rows(paths: Sequence[str | Path]) -> Iterator[tuple[str, ...]]:
    """Yield dataset, item, voter and reason of each missing vote of tables of votes that have reasons beside them."""
    from pyarrow import parquet

    allowed = get_args(Reason)
    for path in filter(None, (read_beside(path, "reasons") for path in paths)):
        source = open_source(path)
        missing = [name for name in COLUMNS if name not in source.columns]
        if missing:
            raise InputError(
                f"`reasons` must have the columns {', '.join(COLUMNS)}. Got none named {missing[0]!r} in {path}."
            )
        # A run without a missing vote writes a table without rows, which is an error for every other table.
        if not parquet.read_metadata(path).num_rows:
            continue
        columns = source.read(COLUMNS)
        rows = zip(*(text_cells(columns[name]) for name in COLUMNS), strict=True)
        for number, row in enumerate(rows):
            if row[-1] not in allowed:
                place = columns["reason"].where(number)
                raise InputError(f"`reason` must be one of {', '.join(allowed)}. Got {quote(row[-1])} at {place}.")
            yield row


FILE_AS_WRITER = "file"
"""The word in place of a column that says: each table is of another system."""

WRITER = "generator"
"""The column that names the LLM which wrote an item."""


def read_writers(paths: Sequence[str | Path], votes: VoteMatrix, column: str = WRITER) -> list[str]:
    """Return who wrote each item, "" where the column names nobody; nothing where no table has the column."""
    if not paths or column not in (FILE_AS_WRITER, *datasets.table_columns(paths)):
        return []
    result = {}
    for path in paths:
        for _, row in read_rows(Path(path), ["dataset", "item_id", column], param="votes"):
            name = Path(path).stem if column == FILE_AS_WRITER else row.get(column)
            if name not in (None, ""):
                result[str(row["dataset"]), str(row["item_id"])] = str(name)
    return [result.get(key, "") for key in zip(votes.datasets.tolist(), votes.item_ids.tolist(), strict=True)]


def missing_without_reason(votes: VoteMatrix, failures: Sequence[Failures]) -> dict[str, int]:
    """Return by voter how many of its votes are missing without a reason.

    A dataset on which a voter has neither a vote nor a reason is not one that it was asked about.

    Examples
    --------
    >>> from deep import VoteMatrix
    >>> from deep.datasets import missing_without_reason
    >>> votes = VoteMatrix([[1, -1], [-1, 0]], ["a", "b"], ["strict", "terse"], ["news", "chat"], [1, 0])
    >>> missing_without_reason(votes, ())
    {'strict': 0, 'terse': 0}
    """
    names, dataset_of = np.unique(votes.datasets.astype(str), return_inverse=True)
    cast = np.stack([(votes.votes[dataset_of == code] != ABSTAIN).sum(axis=0) for code in range(len(names))])
    explained = np.zeros(cast.shape, dtype=np.int64)
    for one in failures:
        if one.voter in votes.voter_names and one.dataset in names:
            explained[names == one.dataset, votes.voter_names.index(one.voter)] += sum(one.reasons.values())
    missing = np.bincount(dataset_of)[:, None] - cast - explained
    # A judge with neither vote nor reason on a dataset was not asked there, which is no failure.
    result = np.where(cast + explained > 0, np.maximum(missing, 0), 0).sum(axis=0)
    return dict(zip(votes.voter_names, result.tolist(), strict=True))


def worst_failures(failures: Sequence[Failures]) -> dict[str, Failures]:
    """Return by voter the dataset on which it failed most often."""
    # In the order of their rates, so that of each judge the worst dataset stays.
    return {each.voter: each for each in sorted(failures, key=lambda each: each.rate)}


def failing_words(failures: Failures, limit: float) -> str:
    """Return a sentence on a voter that fails more often than `limit`: what is left is no fair sample.

    Examples
    --------
    >>> from deep.datasets import Failures, failing_words
    >>> failing_words(Failures("strict", "rag", 296, {"refused": 15}), 0.05)
    "'strict' has no usable answer to 5.07 % of dataset 'rag' (15 refused of 296 items), above the limit of 5 %"
    """
    shares = failures.rate, limit
    # As many digits as tell the two apart: "5 % of at most 5 %" helps nobody.
    rate, most = next(pair for n in range(3, 18) if len(set(pair := [f"{100 * x:.{n}g}" for x in shares])) == 2)
    counts = ", ".join(f"{count} {reason}" for reason, count in failures.reasons.items())
    return (
        f"{failures.voter!r} has no usable answer to {rate} % of dataset {failures.dataset!r} "
        f"({counts} of {failures.n_items} items), above the limit of {most} %"
    )


TextPlace = tuple[Literal["claim", "source"], int, int]
"""The text that a passage stands in, where it begins there, and the position behind its last character."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that a judge gives as evidence.

    Parameters
    ----------
    text : str
        As the judge gave it, without a verdict that stood before it.
    where : {'claim', 'source', None}
        The text that it was found in; None where it stands in neither, word for word, or is one of very many pieces.
    start, end : int, optional
        Its characters there: ``source[start:end]``; None where `where` is.
    verdict : str, optional
        What the judge says of it, in the judge's own word: PASS, hallucinated, unsupported.
    about : str, optional
        The part of the claim that it is evidence for, where the judge takes the claim apart.
    """

    text: str
    where: Literal["claim", "source"] | None = None
    start: int | None = None
    end: int | None = None
    verdict: str | None = None
    about: str | None = None


def passages_of(
    evidence: Iterable[str], find: Callable[[str], TextPlace | None] = lambda _: None
) -> tuple[Passage, ...]:
    """Return the evidence of a judgment of whichever kind of judge as passages.

    Parameters
    ----------
    evidence : iterable of str
        Excerpts or words; ``<verdict>: <text>``; or a claim that was checked with its excerpts, as JSON.
    find : callable, optional
        Returns the place of a text.

    Examples
    --------
    >>> from deep.datasets import passages_of
    >>> passages_of(["unsupported: It snowed."], lambda text: ("claim", 3, 13) if text == "It snowed." else None)
    (Passage(text='It snowed.', where='claim', start=3, end=13, verdict='unsupported', about=None),)
    """
    return tuple(passage for entry in evidence for passage in _passages(entry, find))


def _passages(entry: str, find: Callable[[str], TextPlace | None]) -> Iterator[Passage]:
    """Yield the passages of one entry of evidence: a checked claim with its excerpts, or a quotation."""
    checked = _checked_claim(entry) if find(entry) is None else None  # a document may hold such a record
    if checked is not None:
        yield Passage(checked["claim"], *_place_of(checked, "claim"), checked.get("state"))
        for result in checked.get("evidence", ()):
            yield Passage(result["excerpt"], *_place_of(result, "source"), result.get("verdict"), checked["claim"])
        return
    verdict, colon, rest = entry.partition(": ")
    if (place := find(entry)) is not None:
        yield Passage(entry, *place)
    elif colon and (place := find(rest)) is not None:
        yield Passage(rest, *place, verdict=verdict)
    else:
        yield Passage(entry)


def _checked_claim(entry: str) -> dict[str, Any] | None:
    """Return the record of a claim that was checked; None for every other text, also for JSON of another shape."""
    try:
        record = json.loads(entry) if entry.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    result = record.get("evidence", []) if isinstance(record, dict) else None
    if not isinstance(result, list) or not _has_place(record, "claim", "state"):
        return None
    return record if all(_has_place(excerpt, "excerpt", "verdict") for excerpt in result) else None


def _has_place(part: Any, text: str, word: str) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get(text), str):
        return False
    span = part.get("span")
    placed = span is None or (
        isinstance(span, list) and [type(n) for n in span] == [int, int] and 0 <= span[0] <= span[1] < 1 << 31
    )
    return placed and isinstance(part.get(word), str | None)


def _place_of(
    part: dict[str, Any], where: Literal["claim", "source"]
) -> tuple[Literal["claim", "source"] | None, int | None, int | None]:
    """Return the place of a claim or excerpt that was checked, where it has one."""
    return (None, None, None) if part.get("span") is None else (where, *part["span"])


# The columns that name a judgment.
JUDGMENT_KEY = ("dataset", "item_id", "voter")
# The rows of judgments, with their texts, that are in memory at once.
ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class JudgmentDetail:
    """All but the vote of one judgment.

    Parameters
    ----------
    dataset, item_id, voter : str
        Which item was judged, and the voter's column in the table of votes.
    rationale : str, optional
        The judge's reasoning, where it gives one.
    passages : tuple of Passage
        Its evidence, with offsets.
    samples : tuple of int
        The votes of repeated samples, -1 where one gave none; empty where the judge was asked once.
    cost, seconds : float, optional
        US dollars and seconds of wall time, each summed over the requests of the judgment; None where unknown.
    tokens : int, optional
        Read and written, together.
    repaired : bool, default=False
        A repair turn gave the vote, or that of a sample.
    """

    dataset: str
    item_id: str
    voter: str
    rationale: str | None = None
    passages: tuple[Passage, ...] = ()
    samples: tuple[int, ...] = ()
    cost: float | None = None
    seconds: float | None = None
    tokens: int | None = None
    repaired: bool = False


def judgments_schema() -> "pa.Schema":
    """Return the columns of such a file."""
    import pyarrow as pa

    text, number = pa.string(), pa.int32()
    passage = [("text", text), ("where", text), ("start", number), ("end", number), ("verdict", text), ("about", text)]
    columns = [(name, text) for name in (*JUDGMENT_KEY, "rationale")]
    columns += [("passages", pa.list_(pa.struct(passage))), ("samples", pa.list_(pa.int8()))]
    columns += [("cost", pa.float64()), ("seconds", pa.float64()), ("tokens", pa.int64()), ("repaired", pa.bool_())]
    return pa.schema(columns)


def read_judgments(
    paths: str | Path | Sequence[str | Path], *, items: Collection[tuple[str, str]] | None = None
) -> Iterator[JudgmentDetail]:
    r"""Read rationale, evidence with offsets, samples and cost of the judgments beside tables of votes.

    Parameters
    ----------
    paths : path or sequence of paths
        The tables of votes. One with nothing beside it adds nothing; of one that an earlier version of deep wrote,
        the evidence of the staged judges is read.
    items : collection of (dataset, item_id), optional
        Only these; of a large file no more than a piece is held at a time.

    Yields
    ------
    JudgmentDetail
        In the order of the files.

    Raises
    ------
    InputError
        A file cannot be read, or lacks a column.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deep.cli import main
    >>> from deep.datasets import read_judgments
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     claims, votes = Path(folder, "claims.csv"), Path(folder, "votes.parquet")
    ...     _ = claims.write_text("source,claim\nSales rose to 12.,Sales rose to 13.\n")
    ...     _ = main(["votes", str(claims), "--lexical", "numbers", "--out", str(votes), "--json"])
    ...     for detail in read_judgments(votes):
    ...         passage = detail.passages[0]
    ...         print(detail.rationale, passage.text, passage.where, passage.start)
    {...}
    The source lacks numbers of the claim: 13. 13 claim 14
    """
    keys = None if items is None else set(items)
    for path in [paths] if isinstance(paths, str | Path) else paths:
        now, before = read_beside(path, "judgments"), file_beside(path, "evidence")
        if now is not None:
            yield from _rows(now, judgments_schema().names, keys)
        elif before.exists():
            yield from _rows(before, (*JUDGMENT_KEY, "evidence"), keys)


def judgment_pieces(path: Path, columns: Sequence[str], size: int | None = ROWS_AT_ONCE) -> "Iterator[pa.Table]":
    """Yield some columns of a file of judgments, at most `size` rows at a time; None: all at once.

    Raises
    ------
    InputError
        It cannot be read, or lacks a column.
    """
    with open_parquet(path, "judgments") as table:
        missing = next((name for name in columns if name not in table.names), None)
        if missing is not None:
            raise InputError(f"`judgments` must have a column {missing}. Got none in {str(path)!r}.")
        yield from table.tables(columns, size)


def _rows(path: Path, columns: Sequence[str], keys: set[tuple[str, str]] | None) -> Iterator[JudgmentDetail]:
    import pyarrow as pa
    import pyarrow.compute as pc

    # Arrow filters by id alone, many times faster than Python by pairs; the pairs are told apart in what is left.
    ids = None if keys is None else pa.array(sorted({item for _, item in keys}), pa.string())
    for piece in judgment_pieces(path, columns):
        near = piece if ids is None else piece.filter(pc.is_in(piece.column("item_id"), value_set=ids))
        for row in near.to_pylist():
            if keys is None or (row["dataset"], row["item_id"]) in keys:
                yield _detail(row)


def _detail(row: dict[str, Any]) -> JudgmentDetail:
    if "evidence" in row:
        return JudgmentDetail(**{name: row[name] for name in JUDGMENT_KEY}, passages=passages_of(row["evidence"] or ()))
    passages, samples = row["passages"] or (), row["samples"] or ()
    return JudgmentDetail(
        **(row | {"passages": tuple(Passage(**passage) for passage in passages), "samples": tuple(samples)})
    )


@dataclass(frozen=True, eq=False)
class VoterUsage:
    """The cost of a voter, and the votes of its repeated samples.

    Parameters
    ----------
    n_judgments : int
        Its judgments on the items of the votes.
    cost : float or None
        US dollars in all; None where the price of an answer is unknown.
    seconds, tokens : float or None
        In all, as far as they are known.
    n_repaired : int, default=0
        Judgments whose vote a repair turn gave.
    sample_rows : ndarray of int, shape (n_sampled,)
        The rows of the votes that were sampled more than once.
    samples : ndarray of int8, shape (n_sampled, n_samples)
        The vote of each sample, -1 where there is none.
    """

    n_judgments: int
    cost: float | None
    seconds: float | None
    tokens: float | None
    n_repaired: int = 0
    sample_rows: Positions = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    samples: Votes = field(default_factory=lambda: np.empty((0, 0), dtype=np.int8))


def read_usage(paths: Sequence[str | Path], votes: VoteMatrix) -> dict[str, VoterUsage]:
    """Read samples and cost of the voters of tables of votes.

    Parameters
    ----------
    paths : sequence of str or Path
        The tables of votes; one without judgments beside it adds nothing.
    votes : VoteMatrix
        What was read from them; voters and items that it lacks are left out.

    Returns
    -------
    dict of str to VoterUsage
        By voter; only those that a file of judgments knows.
    """
    import pandas as pd

    columns = (*JUDGMENT_KEY, "samples", "cost", "seconds", "tokens", "repaired")
    pieces: list[pd.DataFrame] = []
    for path in paths:
        file = read_beside(path, "judgments")
        if file is not None:
            pieces += [piece.to_pandas() for piece in judgment_pieces(file, columns, None)]
    if not pieces:
        return {}
    table = pd.concat(pieces, ignore_index=True)
    numbers, _ = number_items(
        [votes.datasets, table["dataset"].to_numpy(object)], [votes.item_ids, table["item_id"].to_numpy(object)]
    )
    table["row"] = numbers[1]
    table = table[(table["row"] < len(votes.votes)) & table["voter"].isin(votes.voter_names)]
    return {str(voter): _usage(rows) for voter, rows in table.groupby("voter")}


def _usage(rows: "pd.DataFrame") -> VoterUsage:
    """Return the sums of one voter's judgments, and the votes of its repeated samples."""
    sampled = rows[rows["samples"].map(len) > 1]
    most = max(map(len, sampled["samples"]), default=0)
    samples = np.full((len(sampled), most), ABSTAIN, dtype=np.int8)
    for i, row_samples in enumerate(sampled["samples"]):
        samples[i, : len(row_samples)] = row_samples
    return VoterUsage(
        n_judgments=len(rows),
        cost=None if rows["cost"].isna().any() else float(rows["cost"].sum()),
        seconds=_sum_of_known(rows["seconds"]),
        tokens=_sum_of_known(rows["tokens"]),
        n_repaired=int(rows["repaired"].sum()),
        sample_rows=sampled["row"].to_numpy(np.intp),
        samples=samples,
    )


def _sum_of_known(values: "pd.Series[float]") -> float | None:
    """Return the sum of the values that are known; None where none is."""
    return None if values.isna().all() else float(values.sum())


def vote_details(paths: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return the descriptions of voters in vote files, by name: hash, model, parameters; and `samples` where several.

    Files that say nothing, or that cannot be read, are passed over: the reader of the votes says what is wrong.
    """
    details: dict[str, dict[str, object]] = {}
    for path in paths:
        metadata = file_metadata(path)
        if isinstance(voters := metadata.get("voters"), dict):
            samples = {"samples": metadata["samples"]} if metadata.get("samples", 1) != 1 else {}
            details |= {name: {**entry, **samples} for name, entry in voters.items() if isinstance(entry, Mapping)}
    return details


# The shapes of what `origin_record` returns; metadata of any other shape are not deep's.
_RECORDS = (
    {"path": str, "sha256": str, "columns": dict, "dataset": str},
    {"benchmark": str, "sha256": dict, "main_only": bool},
)


def example_record(path: str | Path) -> JsonObject | None:
    """Return the record of its examples that a table of votes holds, else the file of judgments beside it."""
    for file in (path, file_beside(path, "judgments")):
        record = file_metadata(file).get("examples")
        if isinstance(record, dict) and any(
            all(isinstance(record.get(name), kind) for name, kind in shape.items()) for shape in _RECORDS
        ):
            return record
    return None


def benchmark_licences(paths: Sequence[str | Path]) -> dict[str, str]:
    """Return the terms of the benchmarks' datasets that tables of votes remember: a name alone may be anyone's."""
    result: dict[str, str] = {}
    for path in paths:
        record = example_record(path) or {}
        if "benchmark" in record:
            with suppress(InputError):  # one that this version does not have
                benchmark, part = datasets.find_benchmark(record["benchmark"])
                result |= dict.fromkeys([part] if part else benchmark.datasets or [benchmark.name], benchmark.terms)
    return result
