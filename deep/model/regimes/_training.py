"""Training rows: what is left out together, and their cells."""

import numpy as np
import numpy.typing as npt

from deep.features import Cells
from deep.model.chain import RECIPES, inner_folds
from deep.records import VoteMatrix

Groups = npt.NDArray[np.str_]


def training_groups(votes: VoteMatrix, *, by_family: bool = False, random_state: int = 0) -> Groups:
    """Return the group that each labeled row is left out with: its dataset, or all that share documents with it."""
    names = votes.datasets.astype(str)
    if len(votes.dataset_names) == 1:
        return names
    folds = inner_folds(votes, RECIPES["deep"], by_family=by_family, random_state=random_state).of_row
    first = {int(fold): min(names[folds == fold].tolist()) for fold in np.unique(folds)}
    return np.array([first[int(fold)] for fold in folds])


def training_cells(votes: VoteMatrix) -> Cells:
    """Return the training rows counted by dataset."""
    return Cells.from_rows(votes.votes, labels=votes.labels, groups=votes.datasets, voter_names=votes.voter_names)
