"""The fitted model that scores votes; `deep fit` writes it and `deep score` reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Positions, Votes, check_votes, weigh
from deep._util.odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.features import Cells, distinct_patterns
from deep.model.adaptation import Correction, FixedPrior, LeftOut, Misfit, PriorEstimate, PriorRule
from deep.model.file._document import model_values, write_document
from deep.model.file._table import (
    MAX_TABLE_VOTERS,
    ChainScorer,
    Voter,
    VotesLike,
    pattern_codes,
    pattern_grid,
    select_columns,
)
from deep.model.linear import Rows
from deep.model.score import Blend, Scores
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    from deep.model.adaptation import Predict


MAX_EXACT_VOTES = 12
"""Up to this many cast votes all 2**n sets of them are tried."""


@dataclass(frozen=True)
class Contribution:
    """The contribution of one voter to the log-odds of P(consistent).

    Parameters
    ----------
    voter : str
    vote : {1, 0, -1}
    without : float
        Log-odds of P minus log-odds of P with this vote taken back; 0 where there is no vote.
    shapley : float or None
        The Shapley value: what the vote adds on average over all orders in which the votes could come in. They sum
        to the log-odds of P minus those of a row without votes. None where too many votes were cast.
    """

    voter: str
    vote: int
    without: float
    shapley: float | None


def contributions(predict: "Predict", names: tuple[str, ...], votes: npt.NDArray[np.int8]) -> list[Contribution]:
    """Return the contribution of each vote of one row.

    Parameters
    ----------
    predict : callable
        From patterns (n, n_voters) to P(consistent).
    names : tuple of str
    votes : ndarray of int8, shape (n_voters,)

    Notes
    -----
    A row's Shapley values [1]_ are exact: P is known for every set of votes.

    References
    ----------
    .. [1] L. S. Shapley, "A value for n-person games", 1953. https://doi.org/10.1515/9781400881970-018
    """
    cast = np.flatnonzero(votes != ABSTAIN)
    alone = np.tile(votes, (len(cast) + 1, 1))
    alone[np.arange(len(cast)), cast] = ABSTAIN
    scores = logit(predict(alone))
    without = dict(zip(cast.tolist(), (scores[-1] - scores[:-1]).tolist(), strict=True))
    shapley = _shapley(predict, votes, cast) if len(cast) <= MAX_EXACT_VOTES else None
    return [
        Contribution(
            voter=name,
            vote=int(votes[column]),
            without=without.get(column, 0.0),
            shapley=None if shapley is None else shapley.get(column, 0.0),
        )
        for column, name in enumerate(names)
    ]


def _shapley(predict: "Predict", votes: npt.NDArray[np.int8], cast: npt.NDArray[np.intp]) -> dict[int, float]:
    n = len(cast)
    sets = np.arange(2**n)
    inside = (sets[:, None] >> np.arange(n) & 1).astype(bool)
    patterns = np.full((len(sets), len(votes)), ABSTAIN, dtype=np.int8)
    patterns[:, cast] = np.where(inside, votes[cast], ABSTAIN)
    scores = logit(predict(patterns))
    weight = np.array([factorial(size) * factorial(n - size - 1) / factorial(n) for size in range(n)])
    sizes = inside.sum(axis=1)
    found = {}
    for position, column in enumerate(cast.tolist()):
        before = sets[~inside[:, position]]
        gain = scores[before | 1 << position] - scores[before]
        found[column] = float(weight[sizes[before]] @ gain)
    return found


def by_labels(
    found: Scores, labels: npt.ArrayLike | None, documents: npt.ArrayLike | None
) -> tuple[PriorEstimate, Correction | None]:
    """Return the prior of a dataset and the correction of P, from scores without labels and the labels, if any."""
    if labels is None or not (np.asarray(labels) >= 0).any():
        return found.prior, None
    from deep.model.adaptation import estimate_share  # scikit-learn, which a model that is read does without

    misfit, prior = found.misfit, found.prior
    correction = Correction.learn(misfit, prior.estimate, found.p_uniform, labels, documents=documents)
    told = estimate_share(found.p_consistent, labels, prior=prior, documents=documents, misfit=misfit)[0]
    estimate, low, high = (min(max(share, P_MIN), 1 - P_MIN) for share in (told.estimate, told.low, told.high))
    return PriorEstimate(estimate, low, high), correction


METHODS = ("average", "chain", "own-labels", "stack", "votes")
"""How a model can have been fitted."""


@dataclass(frozen=True, eq=False)
class Model:
    """Judges, how their votes are added up, and the prior of a dataset without labels.

    Parameters
    ----------
    voters : tuple of Voter
    score_names : tuple of str
        Soft scores beside the votes; mostly none.
    method : {'average', 'chain', 'own-labels', 'stack', 'votes'}
        How it was fitted; docs/which-fit.md tells when.
    blend : Blend
        From rows to log-odds at equal class weights.
    prior_rule : PriorRule
        From a dataset's contexts to its share of consistent items.
    misfit : Misfit
        How far P may be off on a dataset never seen.
    contexts : ndarray of float, shape (n_parts,)
        The mean of the training datasets, or those of the target where the model was adapted to one.
    cells : Cells
        The training rows, by dataset; where none was labeled, all are counted under label 0.
    left_out : mapping of str to LeftOut
        By training dataset: log-odds of P at the estimated prior by fits without it.
    report : mapping
        What else the file says: training datasets, inner scores, versions, date.
    target : str, optional
        The dataset that the model was adapted to.
    correction : Correction, optional
        What labels of that dataset say of P there.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> model = fit(votes.rows(votes.datasets != "aggrefact-xsum"))
    >>> p = model.score(votes.rows(votes.datasets == "aggrefact-xsum"))
    >>> model.method, len(p), bool(0 < p.min() < 0.5 < p.max() < 1)
    ('stack', 558, True)
    """

    voters: tuple[Voter, ...]
    score_names: tuple[str, ...]
    method: str
    blend: Blend
    prior_rule: PriorRule
    misfit: Misfit
    contexts: Floats
    cells: Cells
    left_out: Mapping[str, LeftOut]
    report: Mapping[str, object]
    target: str | None = None
    correction: Correction | None = None

    @property
    def voter_names(self) -> tuple[str, ...]:
        """Return the names of the voters, in the order of a pattern."""
        return tuple(voter.name for voter in self.voters)

    @property
    def chain(self) -> ChainScorer | None:
        """Return the chain, where the model is one."""
        scorer = self.blend.parts[0].scorer
        return scorer if isinstance(scorer, ChainScorer) else None

    @cached_property
    def table(self) -> Floats | None:
        """Return P(consistent) of every pattern at equal class weights; None above 10 voters or with scores."""
        return self._uniform(self._grid) if self._has_grid and not self.score_names else None

    @property
    def decision_log_odds(self) -> float:
        """Return the log-odds of P, at the dataset's prior, from which on an item is called consistent."""
        return float(logit(self.prior.estimate)) if self.correction is None else self.correction.threshold

    @cached_property
    def decision_table(self) -> Floats | None:
        """Return the table with P moved so that an item is called consistent from 0.5 on, as labels correct it."""
        if self.table is None or self.correction is None:
            return self.table
        return np.asarray(expit(logit(self.correction.apply(self.table)) - self.correction.threshold))

    @cached_property
    def prior(self) -> PriorEstimate:
        """Return the prior where a dataset is not known: that of the training datasets, or of the target."""
        return self.prior_rule.predict(self.contexts)

    def predict(self, patterns: Votes, scores: Floats | None = None) -> Floats:
        """Return P(consistent) of rows at equal class weights and the training contexts, shape (n_examples,).

        Raises
        ------
        InputError
            A vote is out of range, or the number of columns differs.
        """
        return self._uniform(self.raw(self.rows(patterns, scores)))

    def uncalibrated(self, patterns: Votes) -> Floats | None:
        """Return the ensembler's own P(consistent) of rows of votes; None where the model is no chain."""
        return None if self.chain is None else self.chain.uncalibrated(patterns)

    def raw(self, rows: Rows) -> Floats:
        """Return the log-odds that each part of the blend gives to rows, shape (n_parts, n_examples)."""
        few = "_grid" not in vars(self) and len(rows.votes) < 3 ** len(self.voters)  # to score them all costs more
        if self._has_grid and not few:
            return self.blend.with_scores(self._grid, pattern_codes(rows.votes), rows.scores)
        return self.blend.raw(rows)

    def score(
        self,
        votes: VotesLike,
        *,
        scores: npt.ArrayLike | None = None,
        prior: float | None = None,
        streamed: bool = False,
        allow_mismatch: bool = False,
        allow_missing: bool = False,
    ) -> Floats:
        """Return P(consistent) of each row.

        Parameters
        ----------
        votes : VoteMatrix, DataFrame, or array-like of shape (n_examples, n_voters)
            A matrix or frame is matched by column name; a plain array has the model's voters in their order. Each
            dataset of a matrix is scored by itself; rows of an array are one dataset.
        scores : array-like of shape (n_examples, n_scorers), optional
            Soft scores in the order of `score_names`, given where `fit` was given them.
        prior : float in (0, 1), optional
            Share of label 1 among the rows. Default: estimated from them.
        streamed : bool, default=False
            Score each row by itself, as one of a dataset like the mean of those that were trained on.
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
        matching = {"allow_mismatch": allow_mismatch, "allow_missing": allow_missing}
        found = self._by_dataset(votes, scores, prior=prior, streamed=streamed, **matching)
        return _joined([(rows, one.p_consistent[where]) for rows, one, where in found])

    def intervals(
        self,
        votes: VotesLike,
        *,
        scores: npt.ArrayLike | None = None,
        prior: float | None = None,
        streamed: bool = False,
        allow_mismatch: bool = False,
        allow_missing: bool = False,
    ) -> Floats:
        """Return the 90 % interval of P(consistent) of each row, shape (n_examples, 2); parameters as in `score`."""
        matching = {"allow_mismatch": allow_mismatch, "allow_missing": allow_missing}
        found = self._by_dataset(votes, scores, prior=prior, streamed=streamed, **matching)
        return _joined([(rows, np.column_stack(one.interval())[where]) for rows, one, where in found])

    def scores_of(
        self, votes: VotesLike, *, scores: npt.ArrayLike | None = None, prior: float | None = None, **matching: bool
    ) -> Scores:
        """Return all that is said of the rows of one dataset; parameters as in `score`."""
        rows = self.rows(self.select(votes, **matching), scores)
        raw = self.raw(rows)
        contexts = self.contexts if self.target is not None else self.blend.contexts(raw, rows.weights)
        return self.scores_at(raw, contexts, prior)

    def scores_at(self, raw: Floats, contexts: Floats, prior: float | None = None) -> Scores:
        """Return the scores of rows of which `raw` and the dataset's contexts are known."""
        return self.scores_at_sum(self.blend.weighted(raw), contexts, prior)

    def scores_at_sum(self, weighted: Floats, contexts: Floats, prior: float | None = None) -> Scores:
        """Return the scores of rows of which the weighted sum of `raw` is known."""
        estimate = self.prior_rule.predict(contexts) if prior is None else self._given(prior)
        return Scores(weighted + self.blend.offset(contexts), estimate, self.misfit, self.correction)

    def estimate_prior(
        self, votes: VotesLike, *, scores: npt.ArrayLike | None = None, **matching: bool
    ) -> PriorEstimate:
        """Estimate the share of consistent items in a whole dataset without labels, with its 90 % interval.

        Parameters
        ----------
        votes : VoteMatrix, DataFrame, or array-like of shape (n_examples, n_voters)
            Of one dataset, the more rows the better; the rest as in `score`.
        """
        return self.scores_of(votes, scores=scores, **matching).prior

    def adapted(
        self,
        votes: VotesLike,
        labels: npt.ArrayLike | None = None,
        *,
        scores: npt.ArrayLike | None = None,
        documents: npt.ArrayLike | None = None,
        target: str = "target",
    ) -> "Model":
        """Return the model of one dataset: its contexts and prior are kept, and its labels correct P.

        Parameters
        ----------
        votes : VoteMatrix, DataFrame, or array-like of shape (n_examples, n_voters)
            Of the whole dataset, labeled or not.
        labels : array-like of shape (n_examples,), optional
            1 or 0, and -1 where there is none; of items drawn at random.
        scores : array-like of shape (n_examples, n_scorers), optional
        documents : array-like of shape (n_examples,), optional
            The document of each item.
        target : str, default='target'
            The dataset's name.

        Raises
        ------
        InputError
            The model was adapted to a dataset before.
        """
        if self.target is not None:
            raise InputError(
                f"`model` must be one for any dataset. Got one for {self.target!r}. "
                "Adapt the model that it was made of, or fit again with all labels."
            )
        rows = self.rows(self.select(votes), scores)
        raw = self.raw(rows)
        contexts = self.blend.contexts(raw, rows.weights)
        found = Scores(self.blend.log_odds(raw, contexts), self.prior_rule.predict(contexts), self.misfit)
        prior, correction = by_labels(found, labels, documents)
        return replace(self, contexts=contexts, prior_rule=FixedPrior(prior), target=target, correction=correction)

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
        return contributions(lambda patterns: self.score(patterns, streamed=True), self.voter_names, row[0])

    def document(self) -> dict[str, object]:
        """Return the content of the model's file; its floats come back bit for bit."""
        return model_values(self)

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
        return select_columns(self.voters, votes, allow_mismatch=allow_mismatch, allow_missing=allow_missing)

    @cached_property
    def _grid(self) -> Floats:
        """Return the log-odds that each part on votes gives to every pattern of them."""
        return self.blend.of_votes(Rows.from_arrays(pattern_grid(len(self.voters))))

    @property
    def _has_grid(self) -> bool:
        return len(self.voters) <= MAX_TABLE_VOTERS

    def _uniform(self, raw: Floats) -> Floats:
        return np.clip(expit(self.blend.log_odds(raw, self.contexts)), P_MIN, 1 - P_MIN)

    def rows(self, votes: Votes, scores: npt.ArrayLike | None = None) -> Rows:
        """Return rows of votes in the order of `voters` and of scores in that of `score_names`, checked."""
        self._check_width(votes)
        rows = Rows.from_arrays(votes, scores)
        if rows.scores.shape[1] != len(self.score_names):
            names = ", ".join(self.score_names) or "none"
            raise InputError(
                f"`scores` must have the columns that the model was fitted on: {names}. Got {rows.scores.shape[1]}."
            )
        return rows

    def _by_dataset(
        self,
        votes: VotesLike,
        scores: npt.ArrayLike | None,
        *,
        prior: float | None,
        streamed: bool,
        **matching: bool,
    ) -> list[tuple[Positions | slice, Scores, Positions]]:
        """Return the rows of each dataset, the scores of distinct rows, and which of these each row is."""
        matrix = self.select(votes, **matching)
        self._check_width(matrix)
        soft = None if scores is None else np.asarray(scores, dtype=np.float64)
        streamed = streamed or not len(matrix)
        names = votes.dataset_names if isinstance(votes, VoteMatrix) and not streamed else ("",)
        found: list[tuple[Positions | slice, Scores, Positions]] = []
        for name in names:
            alone = len(names) == 1
            rows = slice(None) if alone else np.flatnonzero(cast("VoteMatrix", votes).datasets == name)
            raw, weights, where = self._distinct(matrix[rows], None if soft is None else soft[rows])
            mean = streamed or self.target is not None
            contexts = self.contexts if mean else self.blend.contexts(raw, weights)
            found.append((rows, self.scores_at(raw, contexts, prior), where))
        return found

    def _distinct(self, votes: Votes, scores: Floats | None) -> tuple[Floats, Floats, Positions]:
        """Return each part's log-odds of distinct rows, how often they come, and which of them each row is."""
        if scores is None and not self.score_names and self._has_grid:
            codes = pattern_codes(votes)
            counts = np.bincount(codes, minlength=self._grid.shape[1]).astype(np.float64)
            return self._grid, counts, codes.astype(np.intp)
        rows = self.rows(votes, scores)
        if scores is not None:
            return self.raw(rows), rows.weights, np.arange(len(votes))
        patterns, where = distinct_patterns(rows.votes)
        return self.blend.raw(Rows.from_arrays(patterns)), weigh(where, rows.weights, len(patterns)), where

    def _given(self, prior: float) -> PriorEstimate:
        if self.correction is not None:
            raise InputError(
                f"`prior` must not be given: the model was corrected by labels of its target. Got {prior!r}."
            )
        return PriorEstimate(check_prior(prior), prior, prior)

    @property
    def _listed(self) -> str:
        return ", ".join(sorted(self.voter_names))

    def _check_width(self, patterns: npt.ArrayLike) -> None:
        shape = np.shape(patterns)
        if len(shape) != 2 or shape[1] != len(self.voters):
            raise InputError(
                f"`votes` must have {len(self.voters)} columns: {', '.join(self.voter_names)}. Got {shape}."
            )


def _joined(parts: Sequence[tuple[Positions | slice, Floats]]) -> Floats:
    """Return the values of all rows, from those of the rows of each dataset."""
    if len(parts) == 1:
        return parts[0][1]
    whole = np.empty((sum(len(values) for _, values in parts), *parts[0][1].shape[1:]))
    for rows, values in parts:
        whole[rows] = values
    return whole


def check_prior(prior: float) -> float:
    """Return a class prior if it lies strictly between 0 and 1."""
    if not 0 < prior < 1:
        raise InputError(f"`prior` must lie strictly between 0 and 1. Got {prior!r}.")
    return prior
