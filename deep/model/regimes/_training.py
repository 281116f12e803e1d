"""Training rows: the groups left out together, and their cells."""

import numpy as np

from deep._checks import Texts, numbered
from deep.features import Cells
from deep.model.chain import RECIPES, STACK_FOLDS, inner_folds
from deep.records import VoteMatrix


def training_groups(votes: VoteMatrix, *, by_family: bool = False, random_state: int = 0) -> Texts:
    """Return the group that each labeled row is left out with: its dataset, or all that share documents with it."""
    names, codes = numbered(votes.datasets)
    if len(names) == 1:
        return votes.datasets
    recipe = RECIPES["deep"]
    folds = inner_folds(votes, recipe, by_family=by_family, random_state=random_state, limit=STACK_FOLDS).of_row
    pairs = np.unique(folds * len(names) + codes).tolist()
    first = {pair // len(names): names[pair % len(names)] for pair in reversed(pairs)}
    of_fold = np.array([first.get(fold, "") for fold in range(max(first) + 1)], dtype=object)
    return np.asarray(of_fold[folds])


def training_cells(votes: VoteMatrix) -> Cells:
    """Return the training rows counted by dataset."""
    return Cells.from_rows(votes.votes, labels=votes.labels, groups=votes.datasets, voter_names=votes.voter_names)
