"""Which columns of a table of votes a model does not look at."""

from collections.abc import Sequence

from deep.datasets import VOTE_COLUMNS, table_columns
from deep.model.file._model import Model
from deep.model.file._voters import Voter


def other_columns(model: Model, paths: Sequence[str]) -> list[str]:
    """Return the columns that cannot stand for a voter of the model, and so need not hold votes."""
    ids = {voter.id for voter in model.voters}
    return [name for name in table_columns(paths) if name not in VOTE_COLUMNS and Voter(name).id not in ids]
