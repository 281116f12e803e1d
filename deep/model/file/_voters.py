"""The voters of a model, and the columns of new votes that stand for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from deep._checks import Votes, check_votes, column_names
from deep.exceptions import InputError
from deep.judge import parse_voter
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    import pandas as pd

VotesLike = VoteMatrix | npt.ArrayLike
"""Rows of votes: a vote matrix, a data frame by name, or an array in the order of the voters."""


@dataclass(frozen=True)
class Voter:
    """One column that a chain was fitted on.

    Parameters
    ----------
    name : str
        ``<id>@<version>/<model>`` for prompts and encoders, ``<id>@<version>`` for lexical checks; any other name
        stands for itself.
    details : mapping
        What the vote file said of it: hash, parameters, endpoint.
    """

    name: str
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """Return the name of the prompt or check."""
        return parse_voter(self.name).name

    @property
    def version(self) -> str | None:
        """Return the first 8 digits of its hash; None where the name has none."""
        return parse_voter(self.name).version

    @property
    def model(self) -> str | None:
        """Return the model that was asked; None where there was none."""
        return parse_voter(self.name).model


def voters_of(names: Sequence[str], provenance: Mapping[str, object]) -> tuple[Voter, ...]:
    """Return the voters of these names, with their details in a fit's provenance."""
    details = provenance.get("voters")
    known = details if isinstance(details, Mapping) else {}
    return tuple(Voter(name, known.get(name, {})) for name in names)


def match_columns(
    voters: Sequence[Voter], columns: Sequence[str], *, allow_mismatch: bool = False, allow_missing: bool = False
) -> list[int | None]:
    """Return the column that stands for each voter.

    Parameters
    ----------
    voters : sequence of Voter
    columns : sequence of str
        Those that are no voter of the model are not used.
    allow_mismatch : bool, default=False
        Take a column of the same id where version or model differ.
    allow_missing : bool, default=False
        None for a voter without any column, which then counts as no vote.

    Raises
    ------
    InputError
        A voter has no column, or only one of another version or model.

    Examples
    --------
    >>> match_columns([Voter("strict@0a1b2c3d/small")], ["other", "strict@0a1b2c3d/small"])
    [1]
    """
    exact = {name: position for position, name in enumerate(columns)}
    taken = {voter.name for voter in voters}
    found: list[int | None] = []
    for voter in voters:
        if voter.name in exact:
            found.append(exact[voter.name])
            continue
        kin = [name for name in columns if name not in taken and Voter(name).id == voter.id]
        if kin and not allow_mismatch:
            raise InputError(_mismatch(voter, Voter(kin[0])))
        if len(kin) > 1:
            raise InputError(
                f"`votes` must have one column for {voter.id!r} to stand for {voter.name!r}. "
                f"Got {', '.join(map(repr, kin))}."
            )
        if not kin and not allow_missing:
            raise InputError(
                f"`votes` must have a column for every voter of the model. Got none named {voter.name!r}. "
                "Add it, or let it count as no vote with `allow_missing`."
            )
        found.append(exact[kin[0]] if kin else None)
    if all(column is None for column in found):
        raise InputError(f"`votes` must have a column of the model. Got none of {', '.join(v.name for v in voters)}.")
    return found


def select_columns(
    voters: Sequence[Voter], votes: VotesLike, *, allow_mismatch: bool = False, allow_missing: bool = False
) -> Votes:
    """Return the columns of voters, in their order; parameters as in :func:`match_columns`."""
    names = votes.voter_names if isinstance(votes, VoteMatrix) else column_names(votes)
    raw = votes.votes if isinstance(votes, VoteMatrix) else votes
    if names is None:
        return raw if isinstance(raw, np.ndarray) else check_votes(raw, name="votes")
    columns = match_columns(voters, names, allow_mismatch=allow_mismatch, allow_missing=allow_missing)
    known = [column for column in columns if column is not None]
    if isinstance(raw, np.ndarray):
        found = raw[:, known]
    else:  # a data frame, whose other columns need not hold votes
        cells = cast("pd.DataFrame", getattr(raw, "iloc", raw))  # Polars takes positions as they are
        found = check_votes(cells[:, known], name="votes")
    if len(known) == len(columns):
        return found
    matrix = np.full((len(found), len(columns)), ABSTAIN, dtype=np.int8)
    matrix[:, [position for position, column in enumerate(columns) if column is not None]] = found
    return matrix


def _mismatch(voter: Voter, other: Voter) -> str:
    what = "version" if voter.version != other.version else "model"
    return (
        f"`votes` must come from the {what} of {voter.id!r} that the model was fitted on, {voter.name!r}. "
        f"Got {other.name!r}. Judge anew, fit anew, or override with `allow_mismatch`."
    )
