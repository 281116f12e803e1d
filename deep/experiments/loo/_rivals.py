"""Held-out rows as cells, the chains that are measured on them, and the rivals of what deep recommends."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Self, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep import calibration, model
from deep._util.checks import Floats, Labels, Mask, Texts, Votes, factorize
from deep._util.odds import DECISION_P, expit, logit
from deep.console import in_processes
from deep.datasets import ScoreTable
from deep.ensembles import MajorityLabelVoter
from deep.evaluate import CONTEXT, HoldOut, Row, decision_metrics, row_weights
from deep.experiments.loo._command import LooOptions
from deep.features import distinct_patterns
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    from deep.model import VoteSum


@dataclass(frozen=True, eq=False)
class Baseline:
    """A rival of the ensemble, with its decision on every held-out row.

    Parameters
    ----------
    name : str
        As the tables call it.
    kind : {'best_judge_context', 'best_prompt', 'encoder', 'majority', 'other', 'prompt'}
        Those with 'best' are chosen on training data, 'prompt' is any one judge, 'other' another way to learn P.
    decisions : ndarray of bool, shape (n_examples,)
        Whether it calls each held-out row consistent.
    threshold_from : {'center', 'test', 'train'} or None
        Whence an encoder's threshold is: the centre of its range, test labels or training labels; None of others.
    threshold : float or None
        On the encoder's own scale; None of others.
    p : ndarray of float, shape (n_examples,), optional
        P(consistent), where the rival has one.
    """

    name: str
    kind: str
    decisions: Mask
    threshold_from: str | None = None
    threshold: float | None = None
    p: Floats | None = None

    def row(self, labels: Labels, *, n_boot: int, random_state: int, n_bins: int = calibration.DEFAULT_BINS) -> Row:
        """Return the entry of `results.json`."""
        metrics = decision_metrics(
            labels, self.p, self.decisions, n_bins=n_bins, n_boot=n_boot, random_state=random_state
        )
        names = ("name", "kind", "threshold_from", "threshold")
        return {name: getattr(self, name) for name in names} | metrics


def balanced_accuracies(decisions: Mask, y: Labels, w: Floats) -> Floats:
    """Return the balanced accuracy of each column of decisions; NaN where `y` lacks a class."""
    per_class = [(w[y == c] @ (decisions[y == c] == c)) / (w[y == c].sum() or np.nan) for c in (0, 1)]
    return np.asarray((per_class[0] + per_class[1]) / 2)


def _votes_as_decisions(votes: Votes) -> Mask:
    """Return votes as decisions; no vote is P = 0.5, which decides for consistent as everywhere."""
    # A judge that does not vote has flagged nothing.
    return np.asarray((votes == 1) | (votes == ABSTAIN))


def vote_baselines(split: HoldOut, weighting: model.Weighting = "dataset-class") -> list[Baseline]:
    """Return every single voter, the best one chosen on training data, and the majority of all."""
    test, train = split.test, split.train
    on_train = balanced_accuracies(_votes_as_decisions(train.votes), train.labels, row_weights(train, weighting))
    # On training data: the best judge by test labels is known to nobody who deploys one.
    best = int(np.argmax(on_train))
    decisions = _votes_as_decisions(test.votes)
    singles = [Baseline(name, "prompt", decisions[:, i]) for i, name in enumerate(test.voter_names)]
    majority = MajorityLabelVoter().fit(train.votes).predict(test.votes) == 1
    return [
        *singles,
        Baseline(test.voter_names[best], "best_prompt", decisions[:, best]),
        Baseline("majority vote", "majority", majority),
    ]


def with_scores(split: HoldOut, scores: ScoreTable | None) -> tuple[VoteMatrix, VoteMatrix]:
    """Return training and test rows in which the scores stand, on the scales of the training rows."""
    if scores is None:
        return split.train, split.test
    train = split.train.with_answers(scores.scores[split.train_rows], scores.score_names)
    assert train.scales is not None  # scores are no votes
    scales = dict(zip(train.voter_names, train.scales, strict=True))
    own_scales = {name: scales[name] for name in scores.score_names}
    return train, split.test.with_answers(scores.scores[split.test_rows], scores.score_names, own_scales)


def _fit_and_score(
    stack: model.Stack, train: VoteMatrix, test: VoteMatrix, groups: Texts, fits: model.Fits | None
) -> model.Scores:
    """Fit a stack on training rows, and score test rows."""
    answer_map = None if train.answers is None else model.AnswerMap.fit(train)
    stack.fit(train.answers_or_votes, train.labels, groups=groups, answer_map=answer_map, fits=fits)
    return stack.score(test.answers_or_votes)


def context_baseline(
    split: HoldOut, scores: ScoreTable | None, *, groups: Texts, fits: model.Fits | None = None, random_state: int = 0
) -> Baseline | None:
    """Return the best judge with its context: one judge, chosen on training data, and its mean over the dataset.

    It is the stack of that one member: its log-odds are aligned on training datasets left out, and its P is at the
    prior that its mean tells.

    Parameters
    ----------
    split : HoldOut
        The dataset held out, and the training rows.
    scores : ScoreTable or None
        Aligned with the whole vote matrix.
    groups : ndarray of str, shape (n_train,)
        What training rows are left out with.
    fits : mapping, optional
        As in :meth:`deep.model.Stack.fit`.
    random_state : int, default=0
        Seed of the stack's fit.

    Returns
    -------
    Baseline or None
        None where fewer than three groups can be left out.
    """
    if len(factorize(groups)[0]) < model.MIN_DATASETS_FOR_SPREAD:
        return None
    train, test = with_scores(split, scores)
    # Grades stand in the votes themselves, too: the table of scores alone does not tell.
    member = "best-judge" if train.answers is None else "best-score"
    stack = model.Stack([member], random_state=random_state)
    result = _fit_and_score(stack, train, test, groups, fits)
    name = train.voter_names[model.leading_column(cast("VoteSum", stack.blend_.parts[0].scorer))]
    return Baseline(name, CONTEXT, result.decisions, p=result.p_consistent)


def best_threshold(scores: Floats, y: Labels, w: Floats, *, share: float = 0.5) -> float:
    """Return the threshold t for which ``score >= t`` has the best weighted balanced accuracy.

    Parameters
    ----------
    scores : ndarray of float, shape (n_examples,)
        NaN where there is no score; such rows are left out.
    y, w : ndarray, shape (n_examples,)
        Labels, 1 or 0, and weights of 0 or more.
    share : float, default=0.5
        What the consistent rows weigh in all: the best accuracy where such a share of them is consistent.

    Returns
    -------
    float
        Halfway between two neighbouring scores; the middle one of equally good thresholds. NaN where a
        class has no score.

    Examples
    --------
    >>> best_threshold(np.array([0.1, 0.2, 0.8]), np.array([0, 0, 1], dtype=np.int8), np.ones(3))
    0.5
    """
    has_score = ~np.isnan(scores)
    scores, y, w = scores[has_score], y[has_score], w[has_score]
    if len(np.unique(y)) < 2:
        return float("nan")
    values, position = np.unique(scores, return_inverse=True)
    rates = [np.bincount(position[y == c], w[y == c], len(values)) / w[y == c].sum() for c in (0, 1)]
    # gain[i]: accuracy (up to a constant) of calling everything from values[i] on consistent.
    gain = np.append(np.cumsum((2 * share * rates[1] - 2 * (1 - share) * rates[0])[::-1])[::-1], 0.0)
    # Of equally good thresholds the middle one, farthest from those that are worse.
    best = np.flatnonzero(gain >= gain.max() - 1e-12)
    i = int(best[len(best) // 2])
    if i in (0, len(values)):
        return float(values[0] if i == 0 else np.nextafter(values[-1], np.inf))  # the latter calls nothing consistent
    return float((values[i - 1] + values[i]) / 2)


def encoder_baselines(
    split: HoldOut, scores: ScoreTable | None, weighting: model.Weighting = "dataset-class"
) -> list[Baseline]:
    """Return every encoder with its threshold from the test set, the centre of its range and the training sets.

    The range is the one that `scores` knows, else that of the training scores; `weighting` says what weighs the same
    where a threshold is learned on the training sets.
    """
    if scores is None:
        return []
    weights = row_weights(split.train, weighting)
    result: list[Baseline] = []
    for column, name in enumerate(scores.score_names):
        train, test = scores.scores[split.train_rows, column], scores.scores[split.test_rows, column]
        for origin, threshold in _thresholds(split, train, test, weights, scores.ranges.get(name)):
            decisions = ~(test < threshold)  # a missing score decides as a missing vote does
            result.append(Baseline(name, "encoder", decisions, origin, threshold))
    return result


def _thresholds(
    split: HoldOut, train: Floats, test: Floats, weights: Floats, limits: tuple[float, float] | None
) -> Iterator[tuple[str, float]]:
    labeled = split.test.labels >= 0
    if np.isnan(train).all() or np.isnan(test).all():
        return
    optimistic = best_threshold(test[labeled], split.test.labels[labeled], np.ones(int(labeled.sum())))
    if not np.isnan(optimistic):
        yield "test", optimistic
    low, high = limits or (float(np.nanmin(train)), float(np.nanmax(train)))
    yield "center", (low + high) / 2
    realistic = best_threshold(train, split.train.labels, weights)
    if not np.isnan(realistic):
        yield "train", realistic


def score_held_out(fitted: model.Model, split: HoldOut, scores: ScoreTable | None) -> model.Scores:
    """Score the rows of a held-out dataset."""
    return fitted.scores_of(with_scores(split, scores)[1])


def compare_parts(
    split: HoldOut,
    scores: ScoreTable,
    *,
    groups: Texts,
    fits: model.Fits | None,
    prompt_fits: model.Fits | None = None,
    n_bins: int,
    n_boot: int,
    random_state: int,
) -> list[Row]:
    """Return the figures of prompts, encoders and both as deep's stack, and their paired differences.

    Parameters
    ----------
    split, scores, groups, fits
        As in :func:`context_baseline`; `fits` hold every member.
    prompt_fits : mapping, optional
        As `fits`, of the members fitted to the votes alone.
    n_bins, n_boot, random_state : int
        Bins of the ECE, resamples of the intervals, and the seed of these and of the stacks' fits.

    Returns
    -------
    list of dict
        ``part, balanced_accuracy, low, high, ece, log_loss, log_loss_low, log_loss_high``: three stacks, then the
        differences of both less each of the others and of prompts less encoders, with 95 % intervals (bootstrap of
        rows; log loss by its standard error). Empty where the test has not both classes or fewer than three groups can
        be left out.
    """
    labeled = split.test.labels >= 0
    y = split.test.labels[labeled]
    if len(factorize(groups)[0]) < model.MIN_DATASETS_FOR_SPREAD or len(np.unique(y)) < 2:
        return []
    both = with_scores(split, scores)
    of_encoders = [name in scores.score_names for name in both[0].voter_names]
    encoders = (part.judges(np.flatnonzero(of_encoders)) for part in both)
    result: dict[str, tuple[Floats, Mask]] = {}
    rows: list[Row] = []
    # Without scores rows are other cells, and forests draw others: prompts are fitted as in a run without scores.
    panels = (("prompts", (split.train, split.test), prompt_fits), ("encoders", encoders, None), ("both", both, fits))
    for name, (train, test), own_fits in panels:
        scored = _fit_and_score(model.Stack(random_state=random_state), train, test, groups, own_fits)
        p, decisions = result[name] = scored.p_consistent[labeled], scored.decisions[labeled]
        of = decision_metrics(y, p, decisions, n_bins=n_bins, n_boot=n_boot, random_state=random_state)
        low, high = of["balanced_accuracy_ci"]
        figures = {metric: of[metric] for metric in ("balanced_accuracy", "ece", "log_loss")}
        rows.append({"part": name, **figures, "low": low, "high": high})
    for one, other in (("both", "prompts"), ("both", "encoders"), ("prompts", "encoders")):
        rows.append({"part": f"{one} less {other}", **_difference(y, result[one], result[other], n_boot, random_state)})
    return rows


def _difference(y: Labels, one: tuple[Floats, Mask], other: tuple[Floats, Mask], n_boot: int, random_state: int) -> Row:
    """Return the paired difference of two methods in log loss and balanced accuracy, with its interval."""
    paired = calibration.paired_bootstrap(y, one[1], other[1], n_boot=n_boot, random_state=random_state)
    # -log P of the label, from log-odds.
    losses = [np.log1p(np.exp(np.where(y == 1, -1, 1) * logit(p))) for p, _ in (one, other)]
    by_item = losses[0] - losses[1]
    # The items are the same, so the spread of their differences is the error: that of either loss alone is larger.
    mean, half = float(by_item.mean()), 1.96 * float(by_item.std(ddof=1)) / len(y) ** 0.5
    bounds = {"log_loss_low": mean - half, "log_loss_high": mean + half}
    low, high = (float(bound) for bound in paired.ci)
    return {"balanced_accuracy": float(paired.difference), "low": low, "high": high, "log_loss": mean, **bounds}


# Significance level after Bonferroni's correction over datasets, as in the paper's section 4.4.
SIGNIFICANCE_LEVEL = 0.01

# Kinds of baselines that are chosen on training data; encoders with a threshold from there come after them.
RIVAL_KINDS = ("best_prompt", CONTEXT, "majority")

# The resamples that each of m tests needs.
# No p is below 1 / (draws + 1), and of m tests it has to fall below 0.01 / m: 100 m draws at least.
DRAWS_PER_TEST = 200


def rivals_without_test_labels(baselines: Sequence[Baseline]) -> list[Baseline]:
    """Return the baselines that need no test label."""
    return [b for b in baselines if b.kind in RIVAL_KINDS or (b.kind, b.threshold_from) == ("encoder", "train")]


def compare(
    decisions: npt.NDArray[np.bool_],
    labels: Labels,
    baselines: Sequence[Baseline],
    *,
    n_boot: int,
    random_state: int,
    n_datasets: int = 1,
) -> list[Row]:
    """Test the balanced accuracy of `recommended` against each rival by paired bootstrap.

    Parameters
    ----------
    decisions : ndarray of bool, shape (n_examples,)
        Of what is recommended.
    labels : ndarray of int8, shape (n_examples,)
        -1 where unknown; such rows are left out.
    baselines : sequence of Baseline
        Their decisions are on the same rows; those that need test labels are left out.
    n_boot : int
        Raised to 200 a test where it is less.
    random_state : int
        Seed of the resamples.
    n_datasets : int, default=1
        How many datasets are held out in turn, each with the same tests.

    Returns
    -------
    list of dict
        ``a, b, difference, ci, p`` each; ``p_bonferroni, significant`` after the correction over rivals,
        ``p_bonferroni_datasets, significant_datasets`` after that over datasets. Empty where a class has no labeled
        row.
    """
    against = rivals_without_test_labels(baselines)
    labeled = labels >= 0
    if len(np.unique(labels[labeled])) < 2:
        return []
    y, a = labels[labeled], decisions[labeled]
    # Two rivals that decide alike, as the best judge does with and without a context that moves nothing, are one.
    n_rivals = len({rival.decisions[labeled].tobytes() for rival in against})
    rows = []
    for rival in against:
        result = calibration.paired_bootstrap(
            y,
            a,
            rival.decisions[labeled],
            n_boot=max(n_boot, DRAWS_PER_TEST * max(n_rivals, n_datasets)),  # p cannot be below 1 / (draws + 1)
            random_state=random_state,
        )
        over_rivals, over_datasets = (float(min(1.0, result.p * n)) for n in (n_rivals, n_datasets))
        rows.append(
            {
                "a": "recommended",
                "b": f"{rival.kind}: {rival.name}",
                "difference": float(result.difference),
                "ci": [float(bound) for bound in result.ci],
                "p": float(result.p),
                "p_bonferroni": over_rivals,
                "significant": over_rivals < SIGNIFICANCE_LEVEL,
                "p_bonferroni_datasets": over_datasets,
                "significant_datasets": over_datasets < SIGNIFICANCE_LEVEL,
            }
        )
    return rows


@dataclass(frozen=True, eq=False)
class TestCells:
    """The held-out rows collapsed to vote patterns.

    Parameters
    ----------
    patterns : ndarray of int8, shape (n_patterns, n_voters)
        Each distinct row of votes once.
    row_pattern : ndarray of int, shape (n_examples,)
        The position in `patterns` of the pattern that each row has.
    counts : ndarray of int, shape (n_patterns, 2)
        Labeled rows by pattern and label; zeros where the dataset has no labels.
    """

    __test__ = False  # pytest takes the name for that of a test class

    patterns: Votes
    row_pattern: npt.NDArray[np.intp]
    counts: npt.NDArray[np.int64]

    @classmethod
    def from_votes(cls, votes: VoteMatrix) -> Self:
        """Collapse a held-out vote matrix; rows without a label are scored but not counted."""
        patterns, row_pattern = distinct_patterns(votes.votes)
        labeled = votes.labels >= 0
        cell = row_pattern[labeled] * 2 + votes.labels[labeled]
        return cls(patterns, row_pattern, np.bincount(cell, minlength=2 * len(patterns)).reshape(-1, 2))

    @property
    def labeled(self) -> bool:
        """Return whether any metric can be computed."""
        return bool(self.counts.any())

    def metrics(self, p: Floats, *, n_bins: int, n_boot: int, random_state: int) -> Row:
        """Return every metric of P(consistent) by pattern, null where it is not defined."""
        pattern, label = np.nonzero(self.counts)
        counts, of = self.counts[pattern, label], p[pattern]
        return decision_metrics(
            label, of, of >= DECISION_P, n_bins=n_bins, n_boot=n_boot, random_state=random_state, counts=counts
        )

    def netcal_ece(self, p: Floats, *, n_bins: int) -> float:
        """Return netcal's calibration error of P(consistent) by pattern."""
        pattern, label = np.nonzero(self.counts)
        weight = self.counts[pattern, label]
        return calibration.netcal_expected_calibration_error(label, p[pattern], n_bins=n_bins, sample_weight=weight)


StepCallback = Callable[[], None]

# A candidate chain and its metrics on the held-out dataset.
ScoredChain = tuple[model.ChainCandidate, Row]


@dataclass(frozen=True)
class LooOutcome:
    """One ensembler's chains with their metrics on one dataset, or the reason why there are none.

    Parameters
    ----------
    ensembler : str
        Its registered name.
    recipe : str
        ``deep`` or ``paper``.
    scored : list of (Candidate, dict)
        Chains that could be fitted, with their metrics.
    warning : str or None
        Why some or all chains could not be fitted; None where nothing went wrong.
    seconds : float
        Of processor time, on all datasets held out together.
    """

    ensembler: str
    recipe: str
    scored: list[ScoredChain] = field(default_factory=list)
    warning: str | None = None
    seconds: float = 0.0


def run_tasks(
    tasks: Sequence[model.ChainTask], targets: Sequence[TestCells], options: LooOptions, step: StepCallback
) -> list[list[LooOutcome]]:
    """Run the tasks, in as many processes as the options say.

    Parameters
    ----------
    tasks : sequence of ChainTask
        As :func:`deep.model.chain_tasks` makes them.
    targets : sequence of TestCells
        The datasets that are held out together.
    options : LooOptions
        Its `n_jobs`, `netcal`, and the bins, resamples and seed of the metrics are used.
    step : callable
        Called after each task.

    Returns
    -------
    list of list of LooOutcome
        Of each target, in the order of `tasks`, whatever the number of processes.

    Raises
    ------
    InputError
        There are tasks, and none of them has any chain to show.
    """
    if not tasks:
        return [[] for _ in targets]
    # The costliest start first, so that no process is left alone with one at the end.
    order = sorted(range(len(tasks)), key=lambda i: -len(tasks[i].subset.columns))
    # Each vote pattern once, and which of them each dataset has.
    patterns, where = distinct_patterns(np.concatenate([target.patterns for target in targets]))
    rows = np.split(where, np.cumsum([len(target.patterns) for target in targets])[:-1])
    measure = partial(_run_and_measure_task, patterns, list(zip(targets, rows, strict=True)), options)
    result: dict[int, list[LooOutcome]] = {}
    for position, outcome in in_processes(measure, [(i, tasks[i]) for i in order], options.n_jobs, ordered=False):
        result[position] = outcome
        step()
    outcomes = [result[i] for i in range(len(tasks))]
    model.all_candidates(model.ChainAttempt([candidate for candidate, _ in o.scored], o.warning) for o, *_ in outcomes)
    return [list(of_target) for of_target in zip(*outcomes, strict=True)]


def _run_and_measure_task(
    patterns: Votes,
    targets: Sequence[tuple[TestCells, npt.NDArray[np.intp]]],
    options: LooOptions,
    numbered: tuple[int, model.ChainTask],
) -> tuple[int, list[LooOutcome]]:
    """Run one task on all patterns and measure its candidates on each held-out dataset, by those that it has."""
    (position, task), started = numbered, time.process_time()
    attempt = task.run(patterns)
    result: list[list[ScoredChain]] = [[] for _ in targets]
    for scored, (target, where) in zip(result, targets, strict=True):
        for candidate in attempt.candidates:
            # P as the model of a chain gives it, from its log-odds: the same to the last digit on any processor.
            p = expit(logit(candidate.p[where]))
            metrics = target.metrics(p, **options.resampling)
            if options.netcal and target.labeled:
                metrics["ece_netcal"] = target.netcal_ece(p, n_bins=options.n_bins)
            scored.append((replace(candidate, p=p), metrics))
    seconds = time.process_time() - started
    of_task = partial(LooOutcome, task.ensembler, task.recipe.name, warning=attempt.reason, seconds=seconds)
    return position, [of_task(scored) for scored in result]


RowCodes = npt.NDArray[np.intp]


def chain_table(split: HoldOut, target: TestCells, scored: Mapping[str, Sequence[ScoredChain]]) -> pd.DataFrame:
    """Return a row for each chain and item, the items of one chain together.

    Parameters
    ----------
    split : HoldOut
        The dataset held out, and the training rows.
    target : TestCells
        The held-out rows by pattern of votes; each chain has a P for every pattern.
    scored : mapping of str to sequence of (Candidate, dict)
        The chains by recipe.

    Returns
    -------
    DataFrame
        ``dataset, item_id, recipe, ensembler, size, calibrator, p``: P as the chain gives it, at equal class weights
        under deep's recipe.
    """
    chains = [(recipe, candidate) for recipe, pairs in scored.items() for candidate, _ in pairs]
    n, n_items = len(chains), len(target.row_pattern)
    # Numbers of chains and items, not their names: a run has thousands of chains on thousands of items.
    of_chain, of_item = np.repeat(np.arange(n), n_items), np.tile(np.arange(n_items), n)
    sizes = np.array([len(one.subset.columns) for _, one in chains], dtype=np.int32)
    p = [one.p[target.row_pattern] for _, one in chains]
    return pd.DataFrame(
        {
            "dataset": _categories([split.name] * n_items, of_item),
            "item_id": _categories(split.test.item_ids.astype(str), of_item),
            "recipe": _categories([recipe for recipe, _ in chains], of_chain),
            "ensembler": _categories([one.ensembler for _, one in chains], of_chain),
            "size": sizes[of_chain],
            "calibrator": _categories([one.calibrator or model.UNCALIBRATED for _, one in chains], of_chain),
            "p": np.concatenate(p) if p else np.empty(0),
        }
    )


def _categories(values: Sequence[str] | npt.NDArray[np.str_], rows: RowCodes) -> pd.Categorical:
    """Return the values at these rows, each name held once."""
    distinct, codes = np.unique(np.asarray(values, dtype=str), return_inverse=True)
    return pd.Categorical.from_codes(codes[rows], categories=distinct.tolist())
