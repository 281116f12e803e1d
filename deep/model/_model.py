"""The fitted model that scores votes; `deep fit` writes it and `deep score` reads it."""

# Python's help shows the names of types then, and not all that an `ArrayLike` may be.
from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast, overload

import numpy as np
import numpy.typing as npt

from deep import __version__
from deep._util.checks import AnyVotes, Floats, Positions, as_floats, is_votes
from deep._util.frames import table_to_frame
from deep._util.names import html_table, listed
from deep._util.odds import P_MIN
from deep._util.scales import Scale
from deep.exceptions import InputError
from deep.features import Cells, Rows, distinct_rows
from deep.model import _table
from deep.model._average import AnswerMap
from deep.model._blend import NO_EVIDENCE, Blend, Contribution, Evidence, contributions, strongest_votes
from deep.model._correction import Belief, BelievedPrior, Correction, JudgeColumns
from deep.model._document import check_prior, model_values, write_document
from deep.model._misfit import HeldOutData, Misfit
from deep.model._prior import FixedPrior, PriorEstimate, PriorRule, contexts_of_means, share_of_batch
from deep.model._scores import BALANCED_RULE, SCORE_COLUMNS, DecisionRule, Scores
from deep.model._table import MAX_TABLE_VOTERS, ChainScorer, Voter, VotesLike
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@dataclass(frozen=True, eq=False)
class Model:
    """Judges, how their votes are added up, and the prior of a dataset without labels.

    Parameters
    ----------
    voters : tuple of Voter
        In the order of the columns that the model reads.
    method : {'average', 'chain', 'own-labels', 'stack', 'votes'}
        How it was fitted; see docs/which-fit.md.
    blend : Blend
        From rows to log-odds at equal class weights.
    prior_rule : PriorRule
        From a dataset's contexts to its share of consistent items.
    misfit : Misfit
        How far P may be off on a dataset never seen.
    contexts : ndarray of float, shape (n_parts,)
        The mean of the training datasets, or those of the target.
    cells : Cells
        The training rows, by dataset; where none was labeled, all are counted under label 0.
    left_out : mapping of str to HeldOutData
        By training dataset: log-odds of P at the estimated prior by fits without it.
    fit_report : mapping
        What else the file says: training datasets, inner scores, versions, date.
    target, correction : str, Correction, optional
        The dataset that the model was adapted to, and what labels of it say of P there.
    rule : DecisionRule, optional
        From which P on an item is called consistent; :meth:`deciding` sets it.
    context_weight : float, default=0.0
        How far the threshold of the rule 'balanced' moves from even odds to the mean P of a dataset.
    answer_map : AnswerMap, optional
        From answers to evidence, where some judges give grades or scores.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> model = fit(votes.rows(votes.datasets != "aggrefact-xsum"))
    >>> p = model.predict_proba(votes.rows(votes.datasets == "aggrefact-xsum"))[:, 1]
    >>> model.method, len(p), bool(0 < p.min() < 0.5 < p.max() < 1)
    ('stack', 558, True)
    """

    voters: tuple[Voter, ...]
    method: str
    blend: Blend
    prior_rule: PriorRule
    misfit: Misfit
    contexts: Floats
    cells: Cells
    left_out: Mapping[str, HeldOutData]
    fit_report: Mapping[str, object]
    target: str | None = None
    correction: Correction | None = None
    rule: DecisionRule = BALANCED_RULE
    context_weight: float = 0.0
    answer_map: AnswerMap | None = None

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    @property
    def report(self) -> Mapping[str, object]:
        """The earlier name of `fit_report`, which :func:`deep.report` is easily taken for."""
        warnings.warn("`Model.report` is `Model.fit_report` now.", FutureWarning, stacklevel=2)
        return self.fit_report

    def _repr_html_(self) -> str:
        training = cast("Mapping[str, Mapping[str, Any]]", self.fit_report["training_datasets"])
        rows = [
            (name, row["n"], "" if row["prior"] is None else f"{row['prior']:.2f}") for name, row in training.items()
        ]
        return html_table(self._lines(), ("training dataset", "rows", "share consistent"), rows)

    def _lines(self) -> list[str]:
        """Return lines on the model for people."""
        n, prior = len(self.cells.groups), self.prior
        whose = "any dataset" if self.target is None else f"the dataset {self.target}"
        share = f"{prior.estimate:.2f} (90 % interval {prior.low:.2f} to {prior.high:.2f})"
        return [
            f"Model ({self.method}) of {len(self.voters)} judges, fitted on {n} dataset{'s' * (n != 1)}, for {whose}",
            f"judges: {listed(self.voter_names, rest='more')}",
            f"share of consistent items expected: {share}",
            self.rule.sentence(self.threshold()),
        ]

    @property
    def voter_names(self) -> tuple[str, ...]:
        """Return the names of the voters, in the order of a pattern."""
        return tuple(voter.name for voter in self.voters)

    @property
    def scales(self) -> Mapping[str, Scale]:
        """Return the scales of the voters by name; none where all vote."""
        return {} if self.answer_map is None else dict(zip(self.voter_names, self.answer_map.scales, strict=True))

    @property
    def score_names(self) -> tuple[str, ...]:
        """Return the names of the voters that do not vote."""
        return tuple(name for name, scale in self.scales.items() if not scale.binary)

    @property
    def chain(self) -> ChainScorer | None:
        """Return the chain, where the model is one."""
        scorer = self.blend.parts[0].scorer
        return scorer if isinstance(scorer, ChainScorer) else None

    @property
    def has_table(self) -> bool:
        """Return whether all that is said of a row hangs on its pattern of votes, of which there are few."""
        return self.answer_map is None and len(self.voters) <= MAX_TABLE_VOTERS

    def threshold(self, prior: float | None = None) -> float:
        """Return the P from which on an item of a dataset not known is called consistent; `prior` as in `score`."""
        return self.scores_at(self.contexts, prior).threshold

    def deciding(self, decide: str) -> Model:
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

    def predict_proba(
        self, votes: VotesLike, *, prior: float | None = None, streamed: bool = False, **matching: bool
    ) -> Floats:
        """Return P of each row, shape (n_examples, 2): inconsistent, consistent; parameters as in `score`."""
        p = self.score(votes, prior=prior, streamed=streamed, **matching)
        return np.column_stack([1 - p, p])

    def predict(self, votes: VotesLike) -> NoReturn:  # noqa: ARG002 - called as the earlier one
        """Raise InputError: it was P at equal class weights, and others expect decisions here."""
        raise InputError(
            "`predict` must be replaced: it gave P at equal class weights. Take "
            '`score_frame(votes)["decision"]` for decisions, or `predict_proba(votes)[:, 1]` for P(consistent).'
        )

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
            A matrix or frame is matched by name, and each dataset scored alone; a plain array is one dataset, and has
            the model's voters in their order, with places on their scales, 0 to 1, where some grade.
        scores : array-like of shape (n_examples, n_scorers), optional
            Of the judges `score_names` in their own units, where they do not stand in `votes`.
        prior : float in (0, 1), optional
            Share of label 1 among the rows; default: estimated.
        streamed : bool, default=False
            Score each row by itself, as one of a dataset like the training mean.
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
            A voter is missing or of another version or model, or a value is out of range.
        """
        matching = {"allow_mismatch": allow_mismatch, "allow_missing": allow_missing}
        columns = self._columns(["p_consistent"], votes, scores, prior=prior, streamed=streamed, **matching)
        return columns["p_consistent"]

    @overload
    def score_frame(
        self, votes: VotesLike, *, prior: float | None = None, library: Literal["pandas"] = "pandas", **matching: bool
    ) -> pd.DataFrame: ...
    @overload
    def score_frame(
        self, votes: VotesLike, *, prior: float | None = None, library: Literal["polars"], **matching: bool
    ) -> pl.DataFrame: ...
    def score_frame(
        self, votes: VotesLike, *, prior: float | None = None, library: str = "pandas", **matching: bool
    ) -> object:
        """Return the columns of a table of scores, and `why`: the two votes that move P most, in log-odds.

        Parameters
        ----------
        votes, prior, matching
            As in `score`.
        library : {'pandas', 'polars'}, default='pandas'
            Whose frame.

        Examples
        --------
        >>> from deep.datasets import simulate_votes
        >>> from deep.model import fit
        >>> votes = simulate_votes(0)
        >>> result = fit(votes, sizes=[2], ensembler="LogisticRegression", calibrator="platt").score_frame(votes)
        >>> list(result)[:9]
        ['dataset', 'item_id', 'label', 'p_consistent', 'p_low', 'p_high', 'decision', 'sure', 'threshold']
        >>> bool((result["decision"] == (result["p_consistent"] >= result["threshold"])).all())
        True
        """
        import pyarrow as pa

        matrix = _table.votes_of_voters(self.voters, votes, self.scales)
        answers = self.select(matrix, **matching)
        if not isinstance(matrix, VoteMatrix):
            rows = self.rows(answers).votes
            matrix = VoteMatrix(rows, range(len(rows)), self.voter_names, ["data"] * len(rows), np.full(len(rows), -1))
        items = {"dataset": pa.array(matrix.datasets, pa.string()), "item_id": pa.array(matrix.item_ids, pa.string())}
        label = pa.array(matrix.labels, mask=matrix.labels == ABSTAIN)
        columns = self._columns(list(SCORE_COLUMNS), matrix, None, prior=prior, **matching)
        scores = {name: SCORE_COLUMNS[name].array(cells) for name, cells in columns.items()}
        why = strongest_votes(self.p_streamed, [voter.id for voter in self.voters], answers, [*self.scales.values()])
        return table_to_frame(pa.table({**items, "label": label, **scores, "why": why}), library)

    def intervals(
        self,
        votes: VotesLike,
        *,
        scores: npt.ArrayLike | None = None,
        prior: float | None = None,
        streamed: bool = False,
        **matching: bool,
    ) -> Floats:
        """Return the 90 % interval of P(consistent) of each row, shape (n_examples, 2); parameters as in `score`."""
        columns = self._columns(["p_low", "p_high"], votes, scores, prior=prior, streamed=streamed, **matching)
        return np.column_stack([columns["p_low"], columns["p_high"]])

    def scores_of(
        self,
        votes: VotesLike,
        *,
        scores: npt.ArrayLike | None = None,
        prior: float | None = None,
        streamed: bool = False,
        **matching: bool,
    ) -> Scores:
        """Return all that is said of the rows of one dataset; parameters as in `score`."""
        evidence, where = self.evidence(self.select(self.beside(votes, scores), **matching))
        if streamed or not len(where):
            return self.scores_at(self.contexts, prior, evidence.of_rows(where))
        batch = contexts_of_means(evidence.sums(where) / len(where))
        result = self.scores_at(batch if self.target is None else self.contexts, prior, evidence.of_rows(where))
        return replace(result, batch_share=self.share_of(batch, len(where)) if prior is None else None)

    def evidence(self, answers: AnyVotes) -> tuple[Evidence, Positions]:
        """Return the evidence on distinct rows of answers, and which of these each row is; parameters as in `rows`.

        Where all hangs on the pattern of votes and rows are many, the distinct rows are all patterns.
        """
        _table.check_width(self.voters, answers)
        if self.looks_up(len(answers)):
            return self.every_pattern, _table.pattern_codes(answers).astype(np.intp)
        patterns, where = distinct_rows(_table.check_answers(self.voters, self.scales, answers))
        return self.of_patterns(patterns), where

    def looks_up(self, n_rows: int) -> bool:
        """Return whether so many rows are looked up among all patterns of votes, which are scored once."""
        return self.has_table and n_rows >= 3 ** len(self.voters)

    @cached_property
    def every_pattern(self) -> Evidence:
        """The evidence on every pattern of votes: the one table that is kept."""
        return self.of_patterns(_table.pattern_grid(len(self.voters)))

    def of_patterns(self, patterns: AnyVotes) -> Evidence:
        """Return the evidence on rows of answers, none of which is checked."""
        if is_votes(patterns):
            rows = Rows(patterns, np.empty((len(patterns), 0)), np.ones(len(patterns)))
        else:
            rows = Rows.from_arrays(patterns, self.answer_map)
        raw = self.blend.of_rows(rows)
        own = None if self.chain is None else self.chain.uncalibrated(rows.votes)
        return Evidence(self.blend.weighted(raw), (rows.votes != ABSTAIN).sum(axis=1), own, raw)

    def _contexts(self, evidence: Evidence, where: Positions) -> Floats:
        """Return the contexts of a dataset of these rows; those of the target where the model was adapted to one."""
        # A model of one dataset keeps the contexts of its fit: a batch of it may be small, and its mean chance.
        fixed = self.target is not None or not len(where)
        return self.contexts if fixed else contexts_of_means(evidence.sums(where) / len(where))

    def share_of(self, contexts: Floats, n: int) -> PriorEstimate:
        """Return the share of consistent items in a batch of n items with these contexts.

        A prior that follows the votes is the share; to one that is fixed by a fit comes what has moved since.
        """
        # A chain of the paper's recipe estimates no prior, and a belief is joined to the votes of every batch.
        if not isinstance(self.prior_rule, FixedPrior) or (self.chain is not None and self.target is None):
            return self.prior_at(contexts)
        correction = self.correction
        line = self.prior if correction is None else correction.prior
        return share_of_batch(
            self.prior,
            self.blend.profile(self.contexts),
            self.blend.profile(contexts),
            n,
            of=listed(self.cells.groups, rest="more") if self.target is None else self.target,
            intercept=line.threshold / line.slope + self.blend.offset(self.contexts),
            slope=line.slope * (1.0 if correction is None else correction.slope),
        )

    def scores_at(self, contexts: Floats, prior: float | None = None, evidence: Evidence = NO_EVIDENCE) -> Scores:
        """Return the scores of evidence on rows of a dataset with these contexts: here P is made, and nowhere else."""
        is_own = prior is None and contexts is self.contexts
        prior_here = self.prior if is_own else self.prior_at(contexts, prior)
        log_odds = evidence.log_odds + self.blend.offset(contexts)
        n_votes, own = evidence.n_votes, evidence.own
        return Scores(log_odds, prior_here, self.misfit, self.correction, self.rule, n_votes, own, self.context_weight)

    def columns_at(
        self,
        datasets: Sequence[tuple[Floats, Positions | slice]],
        prior: float | None,
        evidence: Evidence,
        where: Positions | None = None,
        names: Sequence[str] = (),
    ) -> dict[str, npt.NDArray[Any]]:
        """Return columns of the scores of `datasets`, each its contexts and rows; of all `names` where none is given.

        `where` says which distinct row of the evidence each row is; by default each is itself.
        """
        columns: dict[str, npt.NDArray[Any]] = {}
        for contexts, rows in datasets:
            at = rows if where is None else where[rows]
            # Whichever is fewer is scored: the rows of the dataset, or the distinct rows of all.
            if isinstance(at, slice) or len(at) < len(evidence):
                part = self.scores_at(contexts, prior, evidence.of_rows(at)).columns(names)
            else:
                distinct = self.scores_at(contexts, prior, evidence).columns(names)
                part = {name: cells.take(at, mode="clip") for name, cells in distinct.items()}
            if len(datasets) == 1:
                return part  # a copy of many rows takes as long as their scores
            n = len(evidence if where is None else where)
            columns = columns or {name: np.empty(n, cells.dtype) for name, cells in part.items()}
            for name, cells in part.items():
                columns[name][rows] = cells
        return columns

    def estimate_prior(
        self, votes: VotesLike, *, scores: npt.ArrayLike | None = None, **matching: bool
    ) -> PriorEstimate:
        """Estimate the share of consistent items in a whole dataset without labels, with its 90 % interval.

        Parameters are as in `score`, with votes of one dataset: the more rows the better.
        """
        return self.scores_of(votes, scores=scores, **matching).share

    def adapted(
        self,
        votes: VotesLike,
        labels: npt.ArrayLike | None = None,
        *,
        scores: npt.ArrayLike | None = None,
        documents: npt.ArrayLike | None = None,
        target: str = "target",
        decide: str | None = None,
    ) -> Model:
        """Return the model of one dataset: contexts and prior are kept, and labels correct P and weigh judges.

        Parameters
        ----------
        votes : VoteMatrix, DataFrame, or array-like of shape (n_examples, n_voters)
            Of the whole dataset, labeled or not.
        labels, documents : array-like of shape (n_examples,), optional
            1 or 0, and -1 where there is none, of items drawn at random; the document of each item.
        scores : array-like of shape (n_examples, n_scorers), optional
            Of the judges `score_names` in their own units, where they do not stand in `votes`.
        target : str, default='target'
            The dataset's name.
        decide : str, optional
            Another rule of decision (:meth:`deciding`); by labels where there are some.

        Raises
        ------
        InputError
            The model was adapted before.
        """
        if self.target is not None:
            raise InputError(
                f"`model` must be one for any dataset. Got one for {self.target!r}. "
                "Adapt the model that it was made of, or fit again with all labels."
            )
        Belief.check_rule(self.prior_rule, labels, documents)
        answers = self.select(self.beside(votes, scores))
        evidence, where = self.evidence(answers)
        contexts = self._contexts(evidence, where)
        result = self.scores_at(contexts, evidence=evidence.of_rows(where))
        fresh = replace(self, contexts=contexts, prior_rule=FixedPrior(result.prior), target=target)
        if labels is None or not (as_floats(labels, "labels") >= 0).any():
            return fresh if decide is None else fresh.deciding(decide)
        from deep.model._share import estimate_share  # scikit-learn, which a model that is read does without

        judges = JudgeColumns.of(self.rows(answers).features) if self.chain is None else None
        correction, weights = Correction.learn(
            self.misfit, result.prior, result.p_uniform, labels, documents=documents, judges=judges
        )
        share = estimate_share(
            result.p_consistent, labels, prior=result.prior, documents=documents, misfit=self.misfit
        )[0]
        # A share of 0 or 1 has no log-odds, and the line of P needs them.
        estimate, low, high = (min(max(p, P_MIN), 1 - P_MIN) for p in (share.estimate, share.low, share.high))
        fresh = replace(fresh, prior_rule=FixedPrior(PriorEstimate(estimate, low, high)), correction=correction)
        if judges is not None and len(weights):
            # The line and the correction stretch what stands in the blend.
            blend = self.blend.with_judges(*judges.linear(weights), 1 / (result.prior.slope * correction.slope))
            fresh = replace(fresh, blend=blend)
            evidence = fresh.evidence(answers)[0]
            fresh = replace(fresh, contexts=contexts_of_means(evidence.sums(where) / len(where)))
            result = fresh.scores_at(fresh.contexts, evidence=evidence.of_rows(where))
        rule = self.rule if decide is None else DecisionRule.parse(decide)
        return replace(fresh, rule=rule.learn_on_target(correction.apply(result.p_uniform), labels, target))

    def believing(self, share: Belief | str | None) -> Model:
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
        # A belief takes the place of an earlier one.
        panel = self.prior_rule.rule if isinstance(self.prior_rule, BelievedPrior) else self.prior_rule
        return replace(self, prior_rule=BelievedPrior(panel, Belief.of(share)))

    def explain(self, votes: Sequence[float] | Mapping[str, float]) -> list[Contribution]:
        """Return the contribution of each vote of one row to the log-odds of P(consistent).

        Parameters
        ----------
        votes : sequence of numbers in the order of `voters`, or mapping of voter name to vote
            A voter that a mapping does not name has no vote. Grades and scores are as the judge gives them.
        """
        row = _table.row_in_order(self.voters, self.scales, votes)
        return contributions(self.p_streamed, self.voter_names, row, [*self.scales.values()])

    def p_streamed(self, answers: AnyVotes) -> Floats:
        """Return P(consistent) of rows of answers, as :meth:`select` gives them, each scored by itself."""
        evidence, at = self.evidence(answers)
        return self.scores_at(self.contexts, evidence=evidence.of_rows(at)).p_consistent

    def document(self) -> dict[str, object]:
        """Return the content of the model's file; its floats come back bit for bit."""
        return model_values(self)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON to a file, whole or not at all; :func:`load` reads it. A file there is replaced.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        write_document(self.document(), path)

    def select(self, votes: VotesLike, *, allow_mismatch: bool = False, allow_missing: bool = False) -> AnyVotes:
        """Return the columns of voters, in their order: votes, or places on their scales; parameters as in `score`."""
        matching = {"allow_mismatch": allow_mismatch, "allow_missing": allow_missing}
        return _table.select_columns(self.voters, votes, self.scales, **matching)

    def rows(self, answers: AnyVotes) -> Rows:
        """Return rows of answers in the order of `voters`, as :meth:`select` gives them, checked."""
        return Rows.from_arrays(_table.check_answers(self.voters, self.scales, answers), self.answer_map, name="votes")

    def beside(self, votes: VotesLike, scores: npt.ArrayLike | None) -> VotesLike:
        """Return votes in which the scores of `score_names` stand that are given beside them."""
        return votes if scores is None else _table.join_scores(self.voters, self.scales, votes, scores)

    def _columns(
        self,
        names: Sequence[str],
        votes: VotesLike,
        scores: npt.ArrayLike | None,
        *,
        prior: float | None,
        streamed: bool = False,
        **matching: bool,
    ) -> dict[str, npt.NDArray[Any]]:
        """Return columns of the scores of all rows, each dataset scored by itself."""
        votes = _table.votes_of_voters(self.voters, self.beside(votes, scores), self.scales)
        answers = self.select(votes, **matching)
        evidence, where = self.evidence(answers)
        rows: Sequence[Positions | slice] = [slice(None)]
        if isinstance(votes, VoteMatrix) and not streamed:
            dataset_names, dataset_of = _table.dataset_codes(votes.datasets)
            rows = _table.rows_by_dataset(dataset_of, len(dataset_names))
        datasets = [(self.contexts if streamed else self._contexts(evidence, where[at]), at) for at in rows]
        return self.columns_at(datasets, prior, evidence, where, names)

    def prior_at(self, contexts: Floats, mean: float | None = None) -> PriorEstimate:
        """Return the prior of a dataset and the line of P there, which ends in the mean that is given, if any."""
        profile, offset = self.blend.profile(contexts), self.blend.offset(contexts)
        if mean is None:
            return self.prior_rule.predict(profile, offset)
        if self.correction is not None:
            raise InputError(
                f"`prior` must not be given: the model was corrected by labels of its target. Got {mean!r}."
            )
        return PriorEstimate.known(check_prior(mean), profile, offset)


# The libraries whose versions a model file records, since a fit depends on them.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "catboost", "lightgbm", "xgboost")


def library_versions() -> dict[str, str]:
    """Return the versions of Python, deep and the libraries that a fit depends on."""
    result = {"deep": __version__, "python": python_version()}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            result[name] = metadata.version(name)
    return result
