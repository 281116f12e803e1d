"""A fitted chain that scores votes: by look-up where it has few voters, else by fitting it again once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Votes, check_labels, check_votes, column_names
from deep._odds import P_MIN, at_prior, logit
from deep.exceptions import InputError
from deep.features import Cells, distinct_patterns
from deep.model.chain import ChainSpec, KeptCells
from deep.model.file._document import (
    FORMAT,
    REPORT,
    SCHEMA_VERSION,
    adaptation_values,
    cell_values,
    checksum,
    correction_values,
    table_values,
    voter_values,
    write_document,
)
from deep.model.file._explain import Contribution, contributions
from deep.model.file._table import Table, look_up
from deep.model.file._voters import Voter, match_columns
from deep.model.target import Adaptation, Correction, PriorEstimate, Transfer, interval
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    import pandas as pd

    from deep.model.chain import Chain

VotesLike = VoteMatrix | npt.ArrayLike
"""Rows of votes: a vote matrix, a data frame by name, or an array in the order of the voters."""

PRIOR = 0.5
"""The class prior at which a chain's probabilities stand: its fits weigh both classes alike."""


@dataclass(frozen=True, eq=False)
class Model:
    """Voters, ensembler and calibrator, fitted; what ``deep fit`` writes and ``deep score`` reads.

    Parameters
    ----------
    voters : tuple of Voter
    spec : ChainSpec
        Ensembler, parameters, calibrator, recipe and seed.
    kept : KeptCells
        The training cells of these voters.
    transfer : Transfer or None
        What leaving datasets out told; None where there were fewer than three.
    adaptation : Adaptation or None
        What is known of the prior of new datasets; None where there were fewer than three to learn from.
    table : Table or None
        All patterns; None above 10 voters.
    report : mapping
        What else the file says: training datasets, inner scores, calibrator knots, versions, date.
    correction : Correction, optional
        What labels of one dataset say of P there; the table holds it already.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> model = fit(votes, sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> p = model.score(votes)
    >>> len(p) == len(votes.votes), bool(0 < p.min() < 0.5 < p.max() < 1)
    (True, True)
    """

    voters: tuple[Voter, ...]
    spec: ChainSpec
    kept: KeptCells
    transfer: Transfer | None
    adaptation: Adaptation | None
    table: Table | None
    report: Mapping[str, object]
    correction: Correction | None = None

    @property
    def voter_names(self) -> tuple[str, ...]:
        """Return the names of the voters, in the order of a pattern."""
        return tuple(voter.name for voter in self.voters)

    @property
    def prior(self) -> float:
        """Return the class prior at which `score` stands unless told otherwise."""
        return PRIOR

    @property
    def cells(self) -> Cells:
        """Return the training cells of the model's voters, by training dataset."""
        return self.kept.by_dataset

    @cached_property
    def chain(self) -> "Chain":
        """Return the chain, fitted again from the training cells."""
        from deep.model.chain import fit_chain

        return fit_chain(self.spec, self.kept.training())

    @cached_property
    def chains_left_out(self) -> "tuple[Chain, ...]":
        """Return the chain fitted without each training dataset, or each set of datasets with common documents."""
        from deep.model.chain import fit_chain

        return tuple(fit_chain(self.spec, self.kept.training(without=unit)) for unit in range(self.kept.n_units))

    def predict(self, patterns: Votes) -> Floats:
        """Return P(consistent) of rows of votes in the order of `voters`, shape (n_examples,).

        Raises
        ------
        InputError
            A vote is out of range, or the number of columns differs.
        """
        self._check_width(patterns)
        if self.table is not None:
            return look_up(self.table.p, patterns)
        distinct, inverse = distinct_patterns(check_votes(patterns, name="votes", voters=self.voter_names))
        p = self.chain.predict(distinct)
        return (p if self.correction is None else self.correction.apply(p))[inverse]

    def uncalibrated(self, patterns: Votes) -> Floats:
        """Return the ensembler's own P(consistent) of rows of votes, as `predict` does the calibrated one."""
        self._check_width(patterns)
        if self.table is not None:
            return look_up(self.table.uncalibrated, patterns)
        distinct, inverse = distinct_patterns(check_votes(patterns, name="votes", voters=self.voter_names))
        return self.chain.uncalibrated(distinct)[inverse]

    def score(
        self,
        votes: VotesLike,
        *,
        prior: float | None = None,
        allow_mismatch: bool = False,
        allow_missing: bool = False,
    ) -> Floats:
        """Return P(consistent) of each row.

        Parameters
        ----------
        votes : VoteMatrix, DataFrame, or array-like of shape (n_examples, n_voters)
            A matrix or frame is matched by column name; a plain array has the model's voters in their order.
        prior : float in (0, 1), optional
            Share of label 1 that is expected among the rows; log-odds move by its log-odds. Default: 0.5.
        allow_mismatch : bool, default=False
            Score votes of another prompt version or model, where the id is the same.
        allow_missing : bool, default=False
            Let a voter without a column count as no vote.

        Returns
        -------
        ndarray of float, shape (n_examples,)

        Raises
        ------
        InputError
            A voter is missing or of another version or model, a vote is out of range, or `prior` is not in (0, 1).
        """
        matrix = self.select(votes, allow_mismatch=allow_mismatch, allow_missing=allow_missing)
        if self.table is None:
            return self._at(prior, self.predict(matrix))
        self._check_width(matrix)
        return look_up(self._at(prior, self.table.p), matrix)

    def intervals(
        self,
        votes: VotesLike,
        *,
        prior: float | None = None,
        estimated: bool = False,
        allow_mismatch: bool = False,
        allow_missing: bool = False,
    ) -> Floats:
        """Return the 90 % interval of P(consistent) of each row on a dataset never seen, shape (n_examples, 2).

        NaN where the model was fitted on too few datasets to know. With `estimated` the prior is one that the model
        estimated, and the interval covers its error too. The other parameters are those of `score`.
        """
        matrix = self.select(votes, allow_mismatch=allow_mismatch, allow_missing=allow_missing)
        if estimated and self.adaptation is not None:
            z = logit(self._at(prior, self.predict(matrix)))
            return np.column_stack(self.adaptation.misfit.interval(z))
        if self.transfer is None:
            self._check_width(matrix)
            return np.full((len(matrix), 2), np.nan)
        if self.table is not None and self.table.low is not None and self.table.high is not None:
            bounds = [look_up(self._at(prior, bound), matrix) for bound in (self.table.low, self.table.high)]
            return np.column_stack(bounds)
        distinct, inverse = distinct_patterns(check_votes(matrix, name="votes", voters=self.voter_names))
        if self.correction is not None:
            return np.column_stack(self.correction.interval(self.chain.predict(distinct)))[inverse]
        left_out = np.column_stack([chain.predict(distinct) for chain in self.chains_left_out])
        return self._at(prior, np.column_stack(interval(self.predict(distinct), left_out, self.transfer)))[inverse]

    def _at(self, prior: float | None, p: Floats) -> Floats:
        """Return probabilities at another class prior."""
        if prior is None:
            return p
        if self.correction is not None:
            raise InputError(
                f"`prior` must not be given: the model was calibrated on labels of its target. Got {prior!r}."
            )
        return np.clip(at_prior(p, check_prior(prior)), P_MIN, 1 - P_MIN)

    def estimate_prior(
        self, votes: VotesLike, *, allow_mismatch: bool = False, allow_missing: bool = False
    ) -> PriorEstimate:
        """Estimate the share of consistent items in a whole dataset without labels.

        Parameters
        ----------
        votes : VoteMatrix, DataFrame, or array-like of shape (n_examples, n_voters)
            Of one dataset, the more rows the better; the rest as in `score`.

        Returns
        -------
        PriorEstimate
            With an interval; `refused` where the dataset lies outside what the training datasets show.

        Raises
        ------
        InputError
            The model was fitted on fewer than three datasets, or is calibrated on labels of its target.
        """
        if self.adaptation is None or self.correction is not None:
            why = "three training datasets or more" if self.correction is None else "no labels of its target in it"
            raise InputError(f"`model` must have {why} to estimate a prior. Give one with `prior`.")
        matrix = self.select(votes, allow_mismatch=allow_mismatch, allow_missing=allow_missing)
        return self.adaptation.estimate(self.predict(matrix))

    def calibrated(self, votes: VotesLike, labels: npt.ArrayLike, *, everything: VotesLike | None = None) -> "Model":
        """Return the model corrected by labels of one dataset: a slope and an intercept, shrunk towards none.

        Parameters
        ----------
        votes : VoteMatrix, DataFrame, or array-like of shape (n_labels, n_voters)
            Of the labeled items.
        labels : array-like of shape (n_labels,)
            0 or 1; one class alone is enough.
        everything : like `votes`, optional
            Of the whole dataset, labeled or not, to estimate its prior from first. Default: `votes`.

        Raises
        ------
        InputError
            As in `estimate_prior`, or labels and votes differ in length.
        """
        prior = self.estimate_prior(votes if everything is None else everything).estimate
        assert self.adaptation is not None  # checked by estimate_prior
        matrix = self.select(votes)
        y = check_labels(labels, len(matrix), name="labels")
        correction = Correction.learn(self.adaptation.misfit, prior, self.predict(matrix), y)
        table = self.table
        if table is not None:
            low, high = correction.interval(table.p)
            table = replace(table, p=correction.apply(table.p), low=low, high=high)
        return replace(self, table=table, correction=correction)

    def explain(self, votes: Sequence[int] | Mapping[str, int]) -> list[Contribution]:
        """Return the contribution of each vote of one row to the log-odds of P(consistent).

        Parameters
        ----------
        votes : sequence of int in the order of `voters`, or mapping of voter name to vote
            A voter that a mapping does not name has no vote.
        """
        if isinstance(votes, Mapping):
            unknown = sorted(set(votes) - set(self.voter_names))
            if unknown:
                raise InputError(f"`votes` must name voters of the model, {self._listed}. Got {unknown[0]!r}.")
            votes = [votes.get(name, ABSTAIN) for name in self.voter_names]
        row = check_votes([list(votes)], name="votes")
        self._check_width(row)
        return contributions(self.predict, self.voter_names, row[0])

    def document(self) -> dict[str, object]:
        """Return the content of the model's file; its floats come back bit for bit."""
        spec, cells = self.spec, cell_values(self.kept)
        if self.table is None:  # what a later fit from these cells must come back to
            cells["p"] = self.predict(self.kept.joint.patterns).tolist()
        content = {
            "format": FORMAT,
            "schema_version": SCHEMA_VERSION,
            "voters": [voter_values(voter) for voter in self.voters],
            "recipe": spec.recipe,
            "weighting": self.kept.weighting,
            "ensembler": {"name": spec.ensembler, "params": dict(spec.params), "random_state": spec.random_state},
            "calibrator": {"name": spec.calibrator, "map": self.report["calibrator_map"]},
            "interval": None if self.transfer is None else vars(self.transfer),
            "adaptation": None if self.adaptation is None else adaptation_values(self.adaptation),
            "correction": None if self.correction is None else correction_values(self.correction),
            **{name: self.report[name] for name in REPORT},
            "table": None if self.table is None else table_values(self.table),
            "training_cells": cells,
        }
        return {**content, "checksum": checksum(content)}

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, whole or not at all; :func:`load` reads it.

        Parameters
        ----------
        path : path
            Replaced if it is a file.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        write_document(self.document(), path)

    def select(self, votes: VotesLike, *, allow_mismatch: bool = False, allow_missing: bool = False) -> Votes:
        """Return the columns of the model's voters, in their order; parameters as in `score`."""
        names = votes.voter_names if isinstance(votes, VoteMatrix) else column_names(votes)
        raw = votes.votes if isinstance(votes, VoteMatrix) else votes
        if names is None:
            return raw if isinstance(raw, np.ndarray) else check_votes(raw, name="votes")
        columns = match_columns(self.voters, names, allow_mismatch=allow_mismatch, allow_missing=allow_missing)
        known = [column for column in columns if column is not None]
        if isinstance(raw, np.ndarray):
            found = raw[:, known]
        else:  # a data frame, whose other columns need not hold votes
            found = check_votes(cast("pd.DataFrame", raw).iloc[:, known], name="votes")
        if len(known) == len(columns):
            return found
        matrix = np.full((len(found), len(columns)), ABSTAIN, dtype=np.int8)
        matrix[:, [position for position, column in enumerate(columns) if column is not None]] = found
        return matrix

    @property
    def _listed(self) -> str:
        return ", ".join(sorted(self.voter_names))

    def _check_width(self, patterns: npt.ArrayLike) -> None:
        shape = np.shape(patterns)
        if len(shape) != 2 or shape[1] != len(self.voters):
            raise InputError(
                f"`votes` must have {len(self.voters)} columns: {', '.join(self.voter_names)}. Got {shape}."
            )


def check_prior(prior: float) -> float:
    """Return a class prior if it lies strictly between 0 and 1."""
    if not 0 < prior < 1:
        raise InputError(f"`prior` must lie strictly between 0 and 1. Got {prior!r}.")
    return prior
