"""Repeated samples and cost of each voter, from the file of judgments beside a table of votes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deep._checks import Positions, Votes
from deep.datasets._join import number_items
from deep.datasets._judgment_files import KEY, judgment_pieces
from deep.datasets._reasons import file_beside
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class VoterUsage:
    """The cost of a voter, and the votes of its repeated samples.

    Parameters
    ----------
    n_judgments : int
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

    columns = (*KEY, "samples", "cost", "seconds", "tokens", "repaired")
    pieces: list[pd.DataFrame] = []
    for path in paths:
        file = file_beside(path, "judgments")
        if file.exists():
            pieces += [piece.to_pandas() for piece in judgment_pieces(file, columns, None)]
    if not pieces:
        return {}
    table = pd.concat(pieces, ignore_index=True)
    numbers, _ = number_items(
        [votes.datasets, table["dataset"].to_numpy(object)], [votes.example_ids, table["item_id"].to_numpy(object)]
    )
    table["row"] = numbers[1]
    table = table[(table["row"] < len(votes.votes)) & table["voter"].isin(votes.voter_names)]
    return {str(voter): _usage(rows) for voter, rows in table.groupby("voter")}


def _usage(rows: "pd.DataFrame") -> VoterUsage:
    sampled = rows[rows["samples"].map(len) > 1]
    most = max(map(len, sampled["samples"]), default=0)
    samples = np.full((len(sampled), most), ABSTAIN, dtype=np.int8)
    for i, given in enumerate(sampled["samples"]):
        samples[i, : len(given)] = given
    return VoterUsage(
        n_judgments=len(rows),
        cost=None if rows["cost"].isna().any() else float(rows["cost"].sum()),
        seconds=_known(rows["seconds"]),
        tokens=_known(rows["tokens"]),
        n_repaired=int(rows["repaired"].sum()),
        sample_rows=sampled["row"].to_numpy(np.intp),
        samples=samples,
    )


def _known(values: "pd.Series[float]") -> float | None:
    """Return the sum of the values that are known; None where none is."""
    return None if values.isna().all() else float(values.sum())
