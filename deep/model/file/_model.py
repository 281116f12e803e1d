"""The fitted model that scores votes; `deep fit` writes it and `deep score` reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Positions, Votes, as_numbers, check_consistent_length, check_votes, weigh
from deep._util.columns import html_table, listed
from deep._util.odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.features import Cells, distinct_patterns
from deep.model.adaptation import Belief, Correction, FixedPrior, LeftOut, Misfit, PriorEstimate, PriorRule
from deep.model.file._document import check_prior, model_values, write_document
from deep.model.file._table import (
    MAX_TABLE_VOTERS,
    ChainScorer,
    Voter,
    VotesLike,
    pattern_codes,
    pattern_grid,
    select_columns,
    votes_of_voters,
)
from deep.model.linear import Rows
from deep.model.score import BALANCED, Blend, DecisionRule, Scores, by_labels
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

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
    rule : DecisionRule, optional
        From which P on an item is called consistent; :meth:`deciding` sets it.

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
    rule: DecisionRule = BALANCED

    def __repr__(self) -> str:
        return "\n".join(self._said())

    def _repr_html_(self) -> str:
        training = cast("Mapping[str, Mapping[str, Any]]", self.report["training_datasets"])
        rows = [
            (name, row["n"], "" if row["prior"] is None else f"{row['prior']:.2f}") for name, row in training.items()
        ]
        return html_table(self._said(), ("training dataset", "rows", "share consistent"), rows)

    def _said(self) -> list[str]:
        """Return lines on the model for people."""
        n, prior = len(self.cells.groups), self.prior
        whose = "any dataset" if self.target is None else f"the dataset {self.target}"
        known = f"{n} dataset{'' if n == 1 else 's'}"
        share = f"{prior.estimate:.2f} (90 % interval {prior.low:.2f} to {prior.high:.2f})"
        return [
            f"Model ({self.method}) of {len(self.voters)} judges, fitted on {known}, for {whose}",
            f"judges: {listed(self.voter_names)}",
            f"share of consistent items expected: {share}",
            self.rule.sentence(self.threshold()),
        ]

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

    def threshold(self, prior: float | None = None) -> float:
        """Return the P from which on an item of a dataset not known is called consistent; `prior` as in `score`."""
        return self.scores_at(np.empty((len(self.blend.parts), 0)), self.contexts, prior).threshold

    def deciding(self, decide: str) -> "Model":
        """Return the model with another rule of decision.

        Parameters
        ----------
        decide : str
            'accuracy', 'balanced', 'cost=FP:FN', or by labels of the training datasets, each left out,
            'precision=SHARE' or 'recall=SHARE'; see :class:`deep.model.DecisionRule`.

        Raises
        ------
        InputError
            It is no rule, there are no such labels, or no threshold keeps the share.
        """
        rule = DecisionRule.parse(decide)
        if rule.by_labels and self.correction is not None:
            raise InputError(
                f"`decide` must be given with the labels that corrected the model. Got {decide!r} without them. "
                "Give it to `deep adapt` or `deep fit`."
            )
        n = len(self.left_out)
        of = f"{n} training dataset{'' if n == 1 else 's'}, each left out"
        return replace(self, rule=rule.learn(self.left_out, of) if rule.by_labels else rule)

    @cached_property
    def prior(self) -> PriorEstimate:
        """Return the prior where a dataset is not known: that of the training datasets, or of the target."""
        return self.prior_at(self.contexts)

    def predict(self, patterns: VotesLike, scores: Floats | None = None) -> Floats:
        """Return P(consistent) of rows at equal class weights and the training contexts, shape (n_examples,).

        Raises
        ------
        InputError
            A vote is out of range, or the number of columns differs.
        """
        return self._uniform(self.raw(self.rows(self.select(patterns), scores)))

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

    @overload
    def score_frame(
        self, votes: VotesLike, *, prior: float | None = None, library: Literal["pandas"] = "pandas", **matching: bool
    ) -> "pd.DataFrame": ...
    @overload
    def score_frame(
        self, votes: VotesLike, *, prior: float | None = None, library: Literal["polars"], **matching: bool
    ) -> "pl.DataFrame": ...
    def score_frame(
        self, votes: VotesLike, *, prior: float | None = None, library: str = "pandas", **matching: bool
    ) -> object:
        """Return the columns of a table of scores, and `why`: the two votes that move P most, in log-odds.

        Parameters
        ----------
        votes : VoteMatrix, data frame, array-like, or paths
            As in `score`, as the others are.
        library : {'pandas', 'polars'}, default='pandas'
            Whose frame.

        Examples
        --------
        >>> from deep.datasets import simulate_votes
        >>> from deep.model import fit
        >>> votes = simulate_votes(0)
        >>> found = fit(votes, sizes=[2], ensembler="LogisticRegression", calibrator="platt").score_frame(votes)
        >>> list(found)[:9]
        ['dataset', 'item_id', 'label', 'p_consistent', 'p_low', 'p_high', 'decision', 'sure', 'threshold']
        >>> bool((found["decision"] == (found["p_consistent"] >= found["threshold"])).all())
        True
        """
        from deep.model.file._score_votes import score_frame  # whose columns are of a model

        return score_frame(self, votes, prior, library, **matching)

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
        known = prior is None and contexts is self.contexts
        told = self.prior if known else self.prior_at(contexts, prior)
        return Scores(weighted + self.blend.offset(contexts), told, self.misfit, self.correction, self.rule)

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
        decide: str | None = None,
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
        decide : str, optional
            Another rule of decision (:meth:`deciding`); by labels where there are some.

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
        Belief.check_rule(self.prior_rule, labels, documents)
        rows = self.rows(self.select(votes), scores)
        raw = self.raw(rows)
        contexts = self.blend.contexts(raw, rows.weights)
        found = Scores(self.blend.log_odds(raw, contexts), self.prior_at(contexts), self.misfit)
        prior, correction = by_labels(found, labels, documents)
        fresh = replace(self, contexts=contexts, prior_rule=FixedPrior(prior), target=target, correction=correction)
        if correction is None:
            return fresh if decide is None else fresh.deciding(decide)
        rule = self.rule if decide is None else DecisionRule.parse(decide)
        if not rule.by_labels:
            return replace(fresh, rule=rule)
        y = np.asarray(labels)
        z = logit(correction.apply(found.p_uniform))[y >= 0]
        own = LeftOut(z, (y[y >= 0] == 1).astype(float), (y[y >= 0] == 0).astype(float))
        return replace(fresh, rule=rule.learn({target: own}, f"{target}, by which P was corrected"))

    def believing(self, share: "Belief | str | None") -> "Model":
        """Return the model with a 90 % belief about the share of consistent items, as ``"60-80%"``, beside the votes.

        Raises
        ------
        InputError
            It cannot be read, or the model was corrected by labels, which tell more.
        """
        if share is None:
            return self
        if self.correction is not None:
            raise InputError(f"`share` must be given with a model that no labels have corrected. Got {share!r}.")
        return replace(self, prior_rule=Belief.of(share).joined_to(self.prior_rule))

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
        votes = votes_of_voters(self.voters, votes)
        matrix = self.select(votes, **matching)
        self._check_width(matrix)
        soft = None if scores is None else as_numbers(scores, "scores")
        if soft is not None:
            check_consistent_length(soft, len(matrix), "scores")
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

    def prior_at(self, contexts: Floats, given: float | None = None) -> PriorEstimate:
        """Return the prior of a dataset and the line of P there, which ends in the mean that is given, if any."""
        profile, offset = self.blend.profile(contexts), self.blend.offset(contexts)
        if given is None:
            return self.prior_rule.predict(profile, offset)
        return PriorEstimate.known(self._checked(given), profile, offset)

    def _checked(self, prior: float) -> float:
        if self.correction is not None:
            raise InputError(
                f"`prior` must not be given: the model was corrected by labels of its target. Got {prior!r}."
            )
        return check_prior(prior)

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
