"""The reasons of missing votes: the table that lies beside a table of votes."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from deep._cells import shown, text_cells
from deep.datasets._source import open_source
from deep.exceptions import InputError
from deep.records import Reason, VoteMatrix

COLUMNS = ("dataset", "item_id", "voter", "reason")


@dataclass(frozen=True)
class Failures:
    """How often one voter gave no vote on one dataset, by reason.

    Parameters
    ----------
    voter, dataset : str
    n_items : int
        Items of the dataset.
    reasons : dict of str to int
        Only `abstained` is the voter's own will; the others are failures.
    """

    voter: str
    dataset: str
    n_items: int
    reasons: dict[str, int]

    @property
    def rate(self) -> float:
        """Return the share of items on which the voter failed, abstentions not counted."""
        return sum(count for reason, count in self.reasons.items() if reason != "abstained") / self.n_items


def reasons_path(votes_path: str | Path) -> Path:
    """Return where the reasons of a table of votes are, if there are any.

    Examples
    --------
    >>> reasons_path("runs/votes.parquet").name
    'votes.reasons.parquet'
    """
    return file_beside(votes_path, "reasons")


def file_beside(votes_path: str | Path, kind: str) -> Path:
    """Return where a file lies beside a table of votes: its judgments, reasons or soft votes.

    Examples
    --------
    >>> from deep.datasets import file_beside
    >>> file_beside("runs/votes.parquet", "judgments").name
    'votes.judgments.parquet'
    """
    path = Path(votes_path)
    stem = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    return path.parent / f"{stem}.{kind}.parquet"  # also of a folder without a name, which no reader takes


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
    for path in map(reasons_path, paths):
        if path.exists():
            for _, voter, dataset, reason in _rows(path):
                counts.setdefault((voter, dataset), Counter())[reason] += 1
    sizes = Counter(votes.datasets.tolist())
    return [
        Failures(voter, dataset, sizes[dataset], dict(sorted(found.items())))
        for (voter, dataset), found in sorted(counts.items())
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

    Raises
    ------
    InputError
        A file lacks a column or holds a reason outside the closed set.
    """
    wanted = set(items)
    for path in map(reasons_path, paths):
        if path.exists():
            for item, voter, dataset, reason in _rows(path):
                if (dataset, item) in wanted:
                    yield (dataset, item), voter, reason


def _rows(path: Path) -> list[tuple[str, str, str, str]]:
    from pyarrow import parquet

    source = open_source(path)
    missing = [name for name in COLUMNS if name not in source.columns]
    if missing:
        raise InputError(
            f"`reasons` must have the columns {', '.join(COLUMNS)}. Got none named {missing[0]!r} in {path}."
        )
    if not parquet.read_metadata(path).num_rows:
        return []
    columns = source.read(COLUMNS)
    cells = {name: text_cells(column) for name, column in columns.items()}
    allowed = get_args(Reason)
    for row, reason in enumerate(cells["reason"]):
        if reason not in allowed:
            raise InputError(
                f"`reason` must be one of {', '.join(allowed)}. Got {shown(reason)} at {columns['reason'].where(row)}."
            )
    return list(zip(cells["item_id"], cells["voter"], cells["dataset"], cells["reason"], strict=True))


def check_failures(failures: Sequence[Failures], limit: float) -> None:
    """Raise where a voter failed on more than a share `limit` of a dataset: what is left is no fair sample."""
    worst = max(failures, key=lambda f: f.rate, default=None)
    if worst is None or worst.rate <= limit:
        return
    counted = ", ".join(f"{count} {reason}" for reason, count in worst.reasons.items())
    raise InputError(
        f"`votes` must come from voters that fail on at most {limit:.0%} of a dataset. Got {worst.rate:.0%} for "
        f"{worst.voter!r} on {worst.dataset!r} ({counted} of {worst.n_items} items). Ask again what failed, leave the "
        "voter out with --ignore, or raise --max-failure-rate."
    )
