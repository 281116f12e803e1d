"""Rationale, evidence and cost of each judgment: the file beside a table of votes, alike for all kinds of judges."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep.datasets._parquet import open_parquet
from deep.datasets._passages import Passage, passages_of
from deep.datasets._reasons import file_beside
from deep.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa

KEY = ("dataset", "item_id", "voter")
ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class JudgmentDetail:
    """All but the vote of one judgment.

    Parameters
    ----------
    dataset, item_id, voter : str
    rationale : str, optional
        The judge's reasoning, where it gives one.
    passages : tuple of Passage
        Its evidence, with offsets.
    samples : tuple of int
        The votes of repeated samples, -1 where one gave none; empty where the judge was asked once.
    cost : float, optional
        US dollars; None where unknown.
    seconds : float, optional
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
    columns = [(name, text) for name in (*KEY, "rationale")]
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
    wanted = None if items is None else set(items)
    for path in [paths] if isinstance(paths, str | Path) else paths:
        now, before = file_beside(path, "judgments"), file_beside(path, "evidence")
        if now.exists():
            yield from _rows(now, judgments_schema().names, wanted)
        elif before.exists():
            yield from _rows(before, (*KEY, "evidence"), wanted)


def judgment_pieces(path: Path, columns: Sequence[str], size: int | None = ROWS_AT_ONCE) -> "Iterator[pa.Table]":
    """Yield some columns of a file of judgments, at most `size` rows at a time; None: all at once.

    Raises
    ------
    InputError
        It cannot be read, or lacks a column.
    """
    import pyarrow as pa

    try:
        with open_parquet(path, "judgments") as table:
            _check_columns(path, table.names, columns)
            yield from table.tables(columns, size)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"`judgments` must be readable Parquet. Got {str(path)!r}: {reason}.") from None


def _check_columns(path: Path, names: Collection[str], columns: Sequence[str]) -> None:
    missing = next((name for name in columns if name not in names), None)
    if missing is not None:
        raise InputError(f"`judgments` must have a column {missing}. Got none in {str(path)!r}.")


def _rows(path: Path, columns: Sequence[str], wanted: set[tuple[str, str]] | None) -> Iterator[JudgmentDetail]:
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = None if wanted is None else pa.array(sorted({item for _, item in wanted}), pa.string())
    for piece in judgment_pieces(path, columns):
        near = piece if ids is None else piece.filter(pc.is_in(piece.column("item_id"), value_set=ids))
        for row in near.to_pylist():
            if wanted is None or (row["dataset"], row["item_id"]) in wanted:
                yield _detail(row)


def _detail(row: Mapping[str, Any]) -> JudgmentDetail:
    key = {name: row[name] for name in KEY}
    if "evidence" in row:
        return JudgmentDetail(**key, passages=passages_of(row["evidence"] or ()))
    return JudgmentDetail(
        **key,
        rationale=row["rationale"],
        passages=tuple(Passage(**passage) for passage in row["passages"] or ()),
        samples=tuple(row["samples"] or ()),
        cost=row["cost"],
        seconds=row["seconds"],
        tokens=row["tokens"],
        repaired=row["repaired"],
    )
