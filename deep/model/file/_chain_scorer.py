"""A chain as the scorer of a model: by look-up where it has few voters, else by fitting it again once."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from deep._checks import Floats, Votes, check_votes
from deep._odds import logit
from deep.features import distinct_patterns
from deep.model.chain import ChainSpec, KeptCells
from deep.model.file._table import Table, look_up
from deep.model.linear import Rows

if TYPE_CHECKING:
    from deep.model.chain import Chain


@dataclass(frozen=True, eq=False)
class ChainScorer:
    """Voters, one ensembler, one calibrator.

    Parameters
    ----------
    spec : ChainSpec
        Ensembler, parameters, calibrator, recipe and seed.
    kept : KeptCells
        The training cells of the chain's voters.
    table : Table or None
        All patterns; None above 10 voters.
    """

    spec: ChainSpec
    kept: KeptCells
    table: Table | None

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds of calibrated P, shape (n_examples,)."""
        return logit(self.predict(rows.votes))

    @cached_property
    def chain(self) -> "Chain":
        """Return the chain, fitted again from the training cells."""
        from deep.model.chain import fit_chain

        return fit_chain(self.spec, self.kept.training())

    def predict(self, votes: Votes) -> Floats:
        """Return calibrated P(consistent) of rows of votes, shape (n_examples,)."""
        if self.table is not None:
            return look_up(self.table.p, votes)
        distinct, inverse = distinct_patterns(check_votes(votes, name="votes"))
        return np.asarray(self.chain.predict(distinct)[inverse])

    def uncalibrated(self, votes: Votes) -> Floats:
        """Return the ensembler's own P(consistent) of rows of votes, shape (n_examples,)."""
        if self.table is not None:
            return look_up(self.table.uncalibrated, votes)
        distinct, inverse = distinct_patterns(check_votes(votes, name="votes"))
        return np.asarray(self.chain.uncalibrated(distinct)[inverse])
