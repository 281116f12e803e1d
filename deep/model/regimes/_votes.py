"""No label anywhere: the votes alone."""

from collections.abc import Mapping

import numpy as np

from deep.features import Cells
from deep.model.adaptation import FixedPrior, Misfit
from deep.model.file import Model, voters_of
from deep.model.linear import fit_unlabeled
from deep.model.regimes._report import report_of
from deep.model.score import Blend, Part, VoteSum
from deep.records import VoteMatrix

MISFIT = ((1.0, 0.0), (0.0, 0.15))
"""Covariance of intercept and slope by which log-odds may be off where no dataset ever had a label."""

NONE = "No row is labeled: P is learned from the votes alone, and nothing shows how far it is off."
FEW = (
    "Too few rows, or too few documents, of either class are labeled to learn from: P is learned from the votes, and "
    "corrected by the labels."
)


def fit_votes(votes: VoteMatrix, provenance: Mapping[str, object], *, random_state: int) -> Model:
    """Learn from votes without labels, all datasets as one, and draw up the model."""
    found = fit_unlabeled(
        votes.votes, voter_names=votes.voter_names, groups=votes.document_ids, random_state=random_state
    )
    blend = Blend((Part(found.method, VoteSum(found.linear)),))
    # Cells are counted by label, and no label is known: all stand under 0.
    labels = np.zeros(len(votes.labels), dtype=np.int8)
    cells = Cells.from_rows(votes.votes, labels=labels, groups=votes.datasets, voter_names=votes.voter_names)
    notes = [FEW if (votes.labels >= 0).any() else NONE]
    chosen = {"ensembler": "Votes", "found": found.method}
    report = report_of(chosen, cells, {}, [], provenance, notes=[*notes, *found.warnings], labeled=False)
    return Model(
        voters=voters_of(votes.voter_names, provenance),
        score_names=(),
        method="votes",
        blend=blend,
        prior_rule=FixedPrior(found.prior),
        misfit=Misfit(np.array([0.0, 1.0]), np.array(MISFIT), 0),
        contexts=np.zeros(1),
        cells=cells,
        left_out={},
        report=report,
    )
