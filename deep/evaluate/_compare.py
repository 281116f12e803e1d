"""Comparisons by votes: systems by the share of consistent items in what they wrote, new votes with those of a fit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import deep.model
from deep._util.checks import Floats, Positions, Votes, factorize
from deep._util.names import listed, short_names
from deep._util.scales import binary_votes as votes_of_answers
from deep._util.scales import numbers_of_votes
from deep.datasets import Failures, missing_without_reason, worst_failures
from deep.evaluate._measured import DataTable, IntervalRow, Measured, draw_intervals, in_percent, shown
from deep.evaluate._target import Target, labels_seen
from deep.evaluate._verdict import moved_words
from deep.exceptions import InputError
from deep.features import Cells
from deep.model import (
    LEVEL,
    TRAINING_ROWS_KEY,
    JointShares,
    Model,
    holm,
    joint_shares,
    match_columns,
    row_fingerprints,
)
from deep.records import VoteMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Draws of the shares of all systems together, from which ranks and their bounds are read.
# A bound is a 5 % quantile, and 4,000 draws know the share beyond it to 0.3 points.
N_DRAWS = 4000

# The chance to detect a difference for which a number of labels is given.
# The convention since Cohen (1988): a missed difference is four times as bearable as a false one.
PLANNED_TEST_POWER = 0.8

UNLABELED = (
    "From votes alone: a judge that favours one system's style looks like a better system. Only labels of each "
    "system tell the two apart. Read the differences here, not the shares."
)
TRAINED_ON_THEM = "The model was trained on labels of {}: their intervals are too narrow."


@dataclass(frozen=True)
class SystemShare:
    """The share of consistent items that one system writes.

    Parameters
    ----------
    system : str
        As `systems` of :func:`compare_systems` names it.
    n, labels : int
        Its items, and those with a label.
    estimate, low, high : float
        The share of its items that are consistent, in [0, 1], and its interval at `level`.
    rank, rank_low, rank_high : int
        1 is the system of the largest share; the bounds hold its rank at the level of the intervals.
    best : float
        The chance that it is the best.
    """

    system: str
    n: int
    labels: int
    estimate: float
    low: float
    high: float
    rank: int
    rank_low: int
    rank_high: int
    best: float


@dataclass(frozen=True)
class PairDifference:
    """The difference between the shares of two systems.

    Parameters
    ----------
    first, second : str
        The systems, the one of the larger share first.
    difference, low, high : float
        Of the first less the second.
    p_value, p_holm : float
        That they are alike; by Holm's method for all pairs together.
    labels_to_tell : int or None
        Labels of each system that tell a difference of the size asked about in 80 % of draws; None where no number of
        labels of these documents does.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    p_value: float
    p_holm: float
    labels_to_tell: int | None


@dataclass(frozen=True)
class SystemComparison(Measured):
    """Systems, best first, and every pair of them.

    Parameters
    ----------
    systems, pairs : list of SystemShare, list of PairDifference
        The system of the largest share first; each pair once.
    level, tell : float
        Of the intervals; the difference that `labels_to_tell` is about.
    notes : list of str
        What to know before these figures are used.
    """

    systems: list[SystemShare]
    pairs: list[PairDifference]
    level: float
    tell: float
    notes: list[str]

    def tables(self) -> tuple[DataTable, DataTable]:
        """Return the table of systems and that of pairs."""
        interval = f"{100 * self.level:g} % interval"
        systems = [
            {
                "system": one.system,
                "items": f"{one.n:,}",
                "labels": f"{one.labels:,}",
                "share, %": in_percent(one.estimate),
                interval: shown([one.low, one.high], ".1%"),
                "rank": f"{one.rank} ({one.rank_low} to {one.rank_high})",
                "best, %": in_percent(one.best),
            }
            for one in self.systems
        ]
        pairs = [
            {
                "pair": f"{one.first} - {one.second}",
                "points": in_percent(one.difference),
                interval: shown([one.low, one.high], ".1%"),
                "p": shown(one.p_value, ".3f"),
                "Holm's p": shown(one.p_holm, ".3f"),
                "labels": "no number" if one.labels_to_tell is None else f"{one.labels_to_tell:,}",
            }
            for one in self.pairs
        ]
        # Heads are short, so that a terminal of 80 columns holds the table; the captions say what they are.
        return (
            DataTable("Systems, by share of consistent items (best: chance to be the best)", systems),
            DataTable(
                f"Difference of each pair in points (labels: of each system, to detect {100 * self.tell:g} points in "
                f"{100 * PLANNED_TEST_POWER:g} % of cases)",
                pairs,
            ),
        )

    def lines(self) -> Iterator[str]:
        """Yield the tables, and the notes on them."""
        for table in self.tables():
            yield from (*table.lines(), "")
        yield from self.notes

    def draw(self) -> "Figure":
        """Draw the difference of each pair with its interval (a forest plot)."""
        rows = [IntervalRow(f"{one.first} - {one.second}", one.difference, [one.low, one.high]) for one in self.pairs]
        xlabel = f"difference of shares, {100 * self.level:.0f} % interval"
        return draw_intervals(rows[::-1], xlabel=xlabel, at=0.0)


def compare_systems(
    model: Model,
    target: Target,
    systems: Sequence[str],
    *,
    of: str = "system",
    level: float = LEVEL,
    tell: float = 0.1,
) -> SystemComparison:
    """Compare systems by the share of consistent items in what they wrote.

    Parameters
    ----------
    model : Model
        Gives the items P.
    target : Target
        The items of all systems, scored as one dataset; labels, where there are some, of items or documents drawn at
        random from each system.
    systems : sequence of str
        The system that wrote each item.
    of : {'system', 'items'}, default='system'
        Whether differences are those between systems, on other documents like these, or between these items.
    level, tell : float in (0, 1), default=0.9, 0.1
        Coverage of the intervals; the difference that `labels_to_tell` is about.

    Notes
    -----
    All shares come from one fit (:func:`deep.model.joint_shares`), which knows the documents that systems share. Tests
    and intervals go by the variance over draws of labels; ranks by draws from the shares' distribution. P-values are
    Holm's [1]_.

    References
    ----------
    .. [1] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6,
       1979. https://www.jstor.org/stable/4615733

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import Target, compare_systems
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> mine = votes.datasets == "aggrefact-xsum"
    >>> target = Target(votes.rows(mine))
    >>> systems = ["ab"[label] for label in target.votes.labels]  # b writes nothing but what is consistent
    >>> result = compare_systems(fit(votes.rows(~mine)), target, systems)
    >>> [one.system for one in result.systems], result.pairs[0].p_value < 0.01
    (['b', 'a'], True)
    """
    names, system = factorize(systems)
    if len(names) < 2:
        raise InputError(f"`compare` must name two systems or more. Got {', '.join(names) or 'none'}.")
    for name, value in (("level", level), ("tell", tell)):
        # So near to 1 the normal quantile is infinite.
        if not 0 < value < 1 or (1 + value) / 2 == 1:
            raise InputError(f"`{name}` must lie strictly between 0 and 1. Got {value!r}.")
    votes = target.votes
    p = model.scores_of(votes).p_consistent  # one prior for all: differences are not shrunk
    joint = joint_shares(
        p, votes.labels, model.misfit, systems=system, documents=votes.document_ids, of_items=of == "items"
    )
    labels = np.bincount(system, votes.labels >= 0).astype(int)
    train = sorted(labels_seen(model) & set(votes.dataset_names))
    notes = [*([] if labels.all() else [UNLABELED]), *([TRAINED_ON_THEM.format(", ".join(train))] if train else [])]
    order = np.argsort(-joint.estimate, kind="stable")
    ranked = _system_shares(names, np.bincount(system), labels, joint, order, level)
    return SystemComparison(ranked, _pair_differences(names, joint, order, level, tell), level, tell, notes)


def _normal_quantile(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


def _system_shares(
    names: Sequence[str], n: Positions, labels: Positions, joint: JointShares, order: Positions, level: float
) -> list[SystemShare]:
    """Return the systems, best first."""
    rng = np.random.default_rng(0)
    # The seed is fixed, so that the same table has the same ranks. `eigh` also takes a covariance without full rank.
    samples = rng.multivariate_normal(joint.estimate, joint.covariance, size=N_DRAWS, method="eigh")
    # Sorting the order gives each system its place.
    ranks = 1 + np.argsort(np.argsort(-samples, axis=1), axis=1)
    # A rank is a whole number: nothing between two ranks is a bound.
    low, high = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="closest_observation")
    reach = _normal_quantile(level) * np.sqrt(np.diag(joint.covariance))
    return [
        SystemShare(
            system=names[i],
            n=int(n[i]),
            labels=int(labels[i]),
            estimate=float(joint.estimate[i]),
            low=max(float(joint.estimate[i] - reach[i]), 0.0),
            high=min(float(joint.estimate[i] + reach[i]), 1.0),
            rank=place,
            rank_low=int(low[i]),
            rank_high=int(high[i]),
            best=float((ranks[:, i] == 1).mean()),
        )
        for place, i in enumerate(order, start=1)
    ]


def _pair_differences(
    names: Sequence[str], joint: JointShares, order: Positions, level: float, tell: float
) -> list[PairDifference]:
    """Return every pair, the better system first."""
    pairs = list(combinations(order.tolist(), 2))
    gaps = np.array([joint.estimate[i] - joint.estimate[j] for i, j in pairs])
    errors = np.sqrt([_variance_of_difference(joint.sampling, i, j) for i, j in pairs])
    p_values = [2 * NormalDist().cdf(-abs(gap) / error) for gap, error in zip(gaps, errors, strict=True)]
    reach, adjusted = _normal_quantile(level) * errors, holm(p_values)
    # How many labels of each system tell a difference: their noise falls with their number.
    # The usual sample size: with a standard error of tell / (z of the level + z of the power), `tell` is found that
    # often.
    variance = (tell / (_normal_quantile(level) + NormalDist().inv_cdf(PLANNED_TEST_POWER))) ** 2
    rest = [variance - _variance_of_difference(joint.drawn, i, j) for i, j in pairs]
    return [
        PairDifference(
            names[i],
            names[j],
            float(gaps[k]),
            max(float(gaps[k] - reach[k]), -1.0),
            min(float(gaps[k] + reach[k]), 1.0),
            p_values[k],
            float(adjusted[k]),
            None if rest[k] <= 0 else int(np.ceil((joint.noise[i] + joint.noise[j]) / rest[k])),
        )
        for k, (i, j) in enumerate(pairs)
    ]


def _variance_of_difference(covariance: Floats, i: int, j: int) -> float:
    # Rounding may leave a variance of 0 a little below it.
    return max(float(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]), 1e-12)


MIN_DATASETS_FOR_FALSE_ALARMS = 3
"""False alarms are told from so many training datasets on: each is then held beside two others at least."""


# The failure rate of a judge whose model does not hold its own: the most that `deep fit` takes unasked.
DEFAULT_FAILURE_RATE = 0.05


@dataclass(frozen=True)
class DriftReport(Measured):
    """How new votes differ from those that a model was fitted on.

    Parameters
    ----------
    stale : bool
        Whether anything moved.
    moved : list of str
        Judges that were renamed, fail more often, or moved beyond chance; ``(panel)`` for all of them together.
    other_version_or_model : dict of str to str
        By voter of the model: the column of another version or LLM that stands for it.
    failing : dict of str to float
        By voter: its share of items without a usable answer, where that has risen beyond chance since the fit.
    n : int
        Rows.
    statistics : list of DriftRow
        One row a judge and statistic; the judge ``(panel)`` is all of them together.
    training_datasets, false_alarms_on_training : list of str
        The latter would be called stale beside the others.
    training_votes : list of str
        Datasets of these rows that the model was fitted on, vote for vote: they are not tested.
    untested : list of str
        Voters whose share of failures cannot be told: votes are missing without a reason.
    reference : str or None
        What the votes were compared with in place of the training datasets: earlier ones of the same stream.
    least_shift : float or None
        The change of all judges' share of 1 that is found in 8 of 10 batches like this one; None of one judge alone.
    """

    stale: bool
    moved: list[str]
    other_version_or_model: dict[str, str]
    failing: dict[str, float]
    n: int
    statistics: list[deep.model.DriftRow]
    training_datasets: list[str]
    false_alarms_on_training: list[str]
    training_votes: list[str]
    untested: list[str]
    reference: str | None
    least_shift: float | None

    @property
    def is_training(self) -> bool:
        """Return whether no row is new."""
        return bool(self.training_votes) and not self.n

    def not_tested(self) -> list[str]:
        """Return sentences on what was not tested."""
        says = []
        if self.training_votes:
            rest = "nothing is new" if self.is_training else "only the other rows are compared"
            says.append(f"The model was fitted on these votes of {', '.join(self.training_votes)}: {rest}.")
        if self.untested:
            names = listed([*short_names(self.untested).values()], 3)
            says.append(f"Skipped: the share of failures of {names}, because votes are missing without a reason.")
        return says

    def least_words(self) -> list[str]:
        """Return a sentence on the least change of all judges together that these items could show, if any."""
        if self.least_shift is None:
            return []
        points = f"{100 * self.least_shift:.0f} points"
        if self.reference is None:
            return [
                f"In 8 of 10 batches, only a change by {points} in all judges' share of 1 is detected. "
                "`deep check --reference` with earlier votes of the same stream detects smaller ones."
            ]
        return [
            f"In 8 of 10 batches of this size, a change by {points} in all judges' share of 1 is detected. Votes "
            "cannot tell whether the judges or the items changed."
        ]

    def sentences(self) -> list[str]:
        """Return sentences on it."""
        if self.is_training:
            return self.not_tested()
        differs = "otherwise than" if self.stale else "as"
        result = moved_words(self.moved) if self.stale else "no difference goes beyond chance"
        n = len(self.training_datasets)
        reference = self.reference or (f"the {n} training datasets" if n > 1 else "the training dataset")
        says = [f"The judges vote on these {self.n:,} claims {differs} on {reference}: {result}.", *self.not_tested()]
        says += [
            f"{name}: no usable answer to {in_percent(rate)} %, more often than at the fit."
            for name, rate in self.failing.items()
        ]
        says += self.least_words()
        if n < MIN_DATASETS_FOR_FALSE_ALARMS and self.reference is None:
            says.append("Of fewer than three training datasets, normal differences between datasets are unknown.")
        elif self.reference is None:
            alarms = self.false_alarms_on_training
            unlike = f"also flags training datasets ({', '.join(alarms)}), so a flag may mean little"
            says.append(f"The same test {unlike if alarms else 'flags no training dataset'}.")
        renamed = self.other_version_or_model
        return says + [f"{name}: the votes are of another version or LLM, {now}." for name, now in renamed.items()]

    def tables(self) -> Iterator[DataTable]:
        """Yield the statistics that moved, and on demand all others."""
        for has_moved, caption in ((True, "Moved beyond chance"), (False, "Not moved beyond chance")):
            rows = [
                {
                    "judge": row.judge,
                    "statistic": deep.model.STATISTICS[row.statistic],
                    "now": shown(row.now, ".3f"),
                    "expected": shown([row.low, row.high], ".3f"),
                    "p": f"{row.p:.2g}",
                }
                for row in self.statistics
                if row.moved == has_moved
            ]
            if rows:
                of = self.reference or "the training datasets"
                title = f"{caption}: each statistic now, and its range in {of}"
                yield DataTable(title, rows, not has_moved)

    def lines(self) -> Iterator[str]:
        """Yield it as a terminal shows it: what moved, and how far that can be told."""
        yield f"{'STALE' if self.stale else 'not stale'}: {self.n} new rows"
        yield from self.sentences()
        if not self.is_training:
            short = short_names(row.judge for row in self.statistics)
            for row in (row for row in self.statistics if row.moved):
                # A line each: what a statistic is takes the width of a terminal, so that a table would not fit.
                yield f"  {short[row.judge]}: {deep.model.STATISTICS[row.statistic]}:"
                yield f"    {row.now:.3f} now, {row.low:.3f} to {row.high:.3f} expected (p = {row.p:.1g})"
            yield "Votes can look the same and still be wrong. Give ten labels by `--labels` to test P."


def drift_report(
    model: Model,
    votes: VoteMatrix,
    failures: Sequence[Failures] = (),
    *,
    alpha: float = 0.05,
    reference: VoteMatrix | None = None,
) -> DriftReport:
    """Compare new votes with those that a model was fitted on.

    Parameters
    ----------
    model : Model
        It names the judges, and keeps the votes of its fit, which the new ones are compared with by default.
    votes : VoteMatrix
        Columns of another version or LLM of a judge stand for it, and are reported. Datasets that the model was fitted
        on, vote for vote, are left out.
    failures : sequence of Failures
        Why votes are missing (:func:`deep.datasets.read_reasons`).
    alpha : float, default=0.05
        Chance of a false alarm, over all judges and statistics; and over the judges' shares of failures.
    reference : VoteMatrix, optional
        Earlier votes of the same stream, beside which a change of all judges alike is seen too. Default: the votes of
        the fit where these are of the same dataset; else the training datasets.

    Raises
    ------
    InputError
        `alpha` is not in (0, 1), or a voter of the model has no column.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import drift_report
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> mine = votes.datasets == "aggrefact-xsum"
    >>> model = fit(votes.rows(~mine), sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> drift_report(model, votes.rows(mine)).stale, drift_report(model, votes.rows(~mine)).is_training
    (False, True)
    """
    columns = match_columns(model.voters, votes.voter_names, allow_mismatch=True)
    present = {
        voter.name: votes.voter_names[column]
        for voter, column in zip(model.voters, columns, strict=True)
        if column is not None
    }
    renamed = {name: now for name, now in present.items() if now != name}
    # Votes that the fit has seen would look too much like training: they are told, and not tested.
    hashes = _provenance(model, TRAINING_ROWS_KEY)

    def predict(patterns: Votes) -> Floats:  # of judges that give grades or scores the drift of their votes is told
        answers = patterns if not model.scales else numbers_of_votes(patterns)
        return model.scores_of(answers, streamed=True).p_uniform

    answers = model.select(votes, allow_mismatch=True)
    own = [] if renamed else [name for name, of in row_fingerprints(votes, answers).items() if hashes.get(name) == of]
    matrix = votes_of_answers(answers)
    new = ~np.isin(votes.datasets.astype(str), own)
    fresh = votes.rows(new)
    earlier = earlier_votes(model, fresh, reference) if new.any() else None
    if earlier is None:
        rows = deep.model.compare_votes(model.cells, matrix[new] if new.any() else matrix, predict, alpha=alpha)
        # Bonferroni over judges and statistics.
        level, n_old = alpha / len(rows), len(model.cells.groups)
    else:
        # Half of the allowed false alarms for all judges together, half for what tells them apart.
        level, n_old = alpha / 2, 1
        rows = deep.model.compare_votes(earlier.cells, matrix[new], predict, alpha=level)
        shift = deep.model.common_shift(earlier.rates, stream_rates(model, fresh), alpha=level)
        rows = [shift if (row.judge, row.statistic) == (shift.judge, shift.statistic) else row for row in rows]
    shifts = [row for row in rows if (row.judge, row.statistic) == (deep.model.PANEL_NAME, "positive")]
    rows = rows if new.any() else [replace(row, moved=False) for row in rows]
    # Failures, where they have risen beyond chance since the fit.
    worst, before = worst_failures([one for one in failures if one.dataset not in own]), _provenance(model, "failures")
    tested = {name: worst[now] for name, now in present.items() if now in worst}
    rates = [_failure_rate_at_fit(before.get(name)) for name in tested]
    p_values = deep.model.rate_rises(rates, [(one.rate, one.n_items) for one in tested.values()])
    failing = {one.voter: one.rate for one, p in zip(tested.values(), p_values, strict=True) if p <= alpha}
    unknown = missing_without_reason(fresh if new.any() else votes, failures)
    suspects = list(dict.fromkeys([*renamed, *failing, *(row.judge for row in rows if row.moved)]))
    return DriftReport(
        stale=bool(suspects),
        moved=suspects,
        other_version_or_model=renamed,
        failing=failing,
        n=len(fresh.votes),
        statistics=rows,
        training_datasets=list(model.cells.groups),
        false_alarms_on_training=deep.model.false_alarms(model.cells, predict, alpha=alpha),
        training_votes=own,
        untested=[now for now in present.values() if unknown[now] and now not in failing],
        reference=None if earlier is None else earlier.of,
        least_shift=deep.model.least_shift(shifts[0], n_old, alpha=level) if shifts else None,
    )


class EarlierVotes(NamedTuple):
    """Earlier votes of a stream: counted as those of one dataset, how often each judge votes and says 1, and whose."""

    cells: Cells
    rates: deep.model.VoteRates
    of: str


def earlier_votes(model: Model, votes: VoteMatrix, reference: VoteMatrix | None = None) -> EarlierVotes | None:
    """Return the votes that new ones of the same stream are compared with; None where there are none.

    Parameters
    ----------
    model : Model
        It keeps how often each pattern of votes stood in each dataset that it was fitted on.
    votes : VoteMatrix
        The new ones.
    reference : VoteMatrix, optional
        Default: the votes of the fit, where all new ones are of one dataset that it knew.
    """
    names, training, documents = votes.dataset_names, model.cells, None
    if reference is not None:
        cast, documents, of = votes_of_answers(model.select(reference, allow_mismatch=True)), reference.document_ids, ""
    elif len(names) == 1 and names[0] in training.groups:
        cast = np.repeat(training.patterns, training.counts[:, training.groups.index(names[0])].sum(axis=1), axis=0)
        of = f"{names[0]} at the fit"
    else:
        return None
    none = np.zeros(len(cast), dtype=np.int8)
    cells = Cells.from_rows(cast, labels=none, groups=none.astype(str), voter_names=model.voter_names)
    return EarlierVotes(cells, deep.model.vote_rates(cast, model.voter_names, documents), of or "the reference")


def stream_rates(model: Model, votes: VoteMatrix) -> deep.model.VoteRates:
    """Return how often each voter of a model votes and says 1."""
    cast = votes_of_answers(model.select(votes, allow_mismatch=True))
    return deep.model.vote_rates(cast, model.voter_names, votes.document_ids)


def _provenance(model: Model, name: str) -> Mapping[str, object]:
    """Return an entry of what a model's file says of its origin; empty where it says nothing, as older files do."""
    provenance = model.fit_report["provenance"]
    result = provenance.get(name) if isinstance(provenance, Mapping) else None
    return result if isinstance(result, Mapping) else {}


def _failure_rate_at_fit(entry: object) -> tuple[float, float]:
    """Return the share of failures that a model's file holds of a voter, and of how many items it is."""
    match entry:
        case [float(rate), int(n)] if 0 <= rate <= 1 and n > 0:
            return rate, n
    # A model fitted before failures were kept: its judges failed no more often than `deep fit` allows.
    return DEFAULT_FAILURE_RATE, np.inf
