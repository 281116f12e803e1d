"""Which columns of tables of votes and of scores a model looks at."""

from collections.abc import Sequence

from deep._checks import Floats
from deep.datasets import VOTE_COLUMNS, join_scores, read_scores, table_columns
from deep.exceptions import InputError
from deep.model.file._model import Model
from deep.model.file._voters import Voter
from deep.records import VoteMatrix

SHOWN = 4
"""Names in an error."""


def other_columns(model: Model, paths: Sequence[str]) -> list[str]:
    """Return the columns that cannot stand for a voter of the model, and so need not hold votes.

    Raises
    ------
    InputError
        No column can.
    """
    ids = {voter.id for voter in model.voters}
    names = [name for name in table_columns(paths) if name not in VOTE_COLUMNS]
    others = [name for name in names if Voter(name).id not in ids]
    if len(others) == len(names):
        raise InputError(
            f"`votes` must have the columns of the model's voters, {_listed(model.voter_names)}. "
            f"Got {_listed(names) or 'no voter'} in {', '.join(map(repr, paths))}."
        )
    return others


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more


def scores_for(model: Model, votes: VoteMatrix, paths: Sequence[str]) -> Floats | None:
    """Return the soft scores of a model beside votes, in its order; None where it was fitted on none.

    Parameters
    ----------
    model : Model
    votes : VoteMatrix
    paths : sequence of str
        Tables of scores; other columns of them are not read.

    Raises
    ------
    InputError
        There are no tables where the model needs some, or it has no use for them, or a column is missing.
    """
    check_score_columns(model, paths)
    if not paths:
        return None
    columns = table_columns(paths)
    ignored = [name for name in columns if name not in ("dataset", "item_id", "label", *model.score_names)]
    found = join_scores(votes, read_scores(paths, ignore=ignored))
    return found.scores[:, [found.score_names.index(name) for name in model.score_names]]


def check_score_columns(model: Model, paths: Sequence[str]) -> None:
    """Raise where tables lack a score of a model, or there are none where it needs some, or the reverse."""
    check_scores_given(model, paths)
    columns = table_columns(paths) if paths else ()
    missing = [name for name in model.score_names if name not in columns]
    if missing:
        names = ", ".join(model.score_names)
        raise InputError(f"`scores` must have the columns {names}. Got none named {missing[0]!r}.")


def check_scores_given(model: Model, paths: Sequence[str]) -> None:
    """Raise where a model needs soft scores and has none, or the reverse."""
    if bool(paths) != bool(model.score_names):
        names = ", ".join(model.score_names)
        what = f"be given with a model that was fitted on them: {names}" if names else "not be given with this model"
        raise InputError(f"`scores` must {what}. Got {repr(paths[0]) if paths else 'none'}.")
