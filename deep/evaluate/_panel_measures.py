"""Measuring a panel of judges: the people first, then each judge, then whether the panel earns its cost."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from deep import datasets, evaluate, model  # by the room: few panels have grades, or writers of their texts
from deep._util.checks import Floats, Votes
from deep._util.frames import Frame
from deep.evaluate import _cards
from deep.evaluate._contribution import PanelProgress, PanelReport, panel_worth
from deep.evaluate._holdout import dataset_rows, row_weights
from deep.evaluate._measured import Row
from deep.exceptions import InputError
from deep.features import cohen_kappa, effective_number, error_correlation
from deep.judges import parse_voter
from deep.records import ABSTAIN, VoteMatrix

# Stands for a figure that the votes and labels cannot tell.
NOT_MEASURED = float("nan")

# A judge may do alone where it votes on so many of the items. One that is silent on more leaves items undecided that
# the panel decides. Chosen; no measurement is known.
MIN_JUDGE_COVERAGE = 0.95


def read_panel_card(
    paths: datasets.Tables,
    labels: datasets.LabelsGiven = (),
    *,
    ignore: Sequence[str] = (),
    people: Sequence[str] = (),
    consistent_from: float | None = None,
    examples: str | None = None,
    columns: Mapping[str, str] | None = None,
    exclude_own: bool = False,
    limit: int = 20,
    n_boot: int = 2000,
    random_state: int = 0,
    worth: bool = True,
    prices: Mapping[str, float] | None = None,
    progress: PanelProgress = lambda _name, _steps: lambda: None,
) -> _cards.PanelCard:
    """Read tables of votes with all that lies beside them, and return the card of their judges.

    Parameters
    ----------
    paths : path or sequence of paths, or data frame
        Tables of votes.
    labels : path or sequence of paths, data frame or array-like, optional
        Tables of people's labels, in place of those beside the votes (:func:`deep.datasets.read_people`), or one label
        a row, as :func:`deep.datasets.as_labels` takes them.
    ignore : sequence of str, optional
        Columns to ignore.
    people, consistent_from
        As in :func:`deep.datasets.read_people`.
    examples, columns
        As in :func:`deep.datasets.read_documents`: where the votes name no documents, those of the examples.
    exclude_own : bool, default=False
        Leave out the votes of judges on texts of their own family of LLMs, which the column ``generator`` tells.
    limit, n_boot, random_state, worth, prices, progress
        As in :func:`panel_card`.

    Raises
    ------
    InputError
        A table cannot be used.
    """
    votes, prices = datasets.read_votes(paths, ignore=ignore), datasets.read_costs(paths) | dict(prices or {})
    files = [] if isinstance(paths, Frame) else [paths] if isinstance(paths, str | Path) else paths
    if examples is not None:
        votes = replace(votes, document_ids=datasets.read_documents(files, votes, examples, columns=columns))
    people_labels = None
    options = {"people": people, "consistent_from": consistent_from}
    if datasets.is_paths(labels) or datasets.is_frame(labels):
        people_labels = datasets.read_people(labels, votes, **options)  # type: ignore[arg-type]
    elif np.size(cast("npt.ArrayLike", labels)):
        votes = datasets.as_labels(labels, votes, paths)
    model.warn_of_label_copies(votes)
    writers = datasets.read_writers(files, votes)
    if exclude_own:
        if not any(writers):
            raise InputError(f"`exclude_own` must be given with votes that have a column {datasets.WRITER}. Got none.")
        votes = evaluate.without_own_family_votes(votes, writers)
    return panel_card(
        votes,
        people_labels,
        writers=writers,
        failures=datasets.read_reasons(files, votes),
        usage=datasets.read_usage(files, votes),
        limit=limit,
        n_boot=n_boot,
        random_state=random_state,
        worth=worth,
        prices=prices,
        progress=progress,
    )


def panel_card(
    votes: VoteMatrix,
    people: datasets.PeopleLabels | None = None,
    *,
    failures: Sequence[datasets.Failures] = (),
    usage: Mapping[str, datasets.VoterUsage] | None = None,
    limit: int = 20,
    n_boot: int = 2000,
    random_state: int = 0,
    worth: bool = True,
    prices: Mapping[str, float] | None = None,
    by_dataset: bool = True,
    writers: Sequence[str] = (),
    progress: PanelProgress = lambda _name, _steps: lambda: None,
) -> _cards.PanelCard:
    """Hold each judge of a panel against people, against itself and against the others.

    Parameters
    ----------
    votes : VoteMatrix
        Without labels, or with too few, what needs them is left out.
    people : PeopleLabels, optional
        In place of the labels beside the votes.
    failures : sequence of Failures, optional
        Why votes are missing (:func:`deep.datasets.read_reasons`).
    usage : mapping of str to VoterUsage, optional
        Samples and cost by voter (:func:`deep.datasets.read_usage`).
    limit : int, default=20
        Disagreements to keep of each judge, and doubtful labels.
    n_boot : int, default=2000
        Resamples of every interval of kappa.
    random_state : int, default=0
        Seed of the resamples, and of the folds on which `worth` is measured.
    worth : bool, default=True
        Measure what each judge adds; it fits k (k + 1) / 2 panels of k judges.
    prices : mapping of str to float, optional
        Dollars of one vote, by voter or by the name before its ``@``, in place of those in `usage`.
    by_dataset : bool, default=True
        Hold each judge against people on each dataset too.
    writers : sequence of str, length n_examples, optional
        The LLM that wrote each item, empty where it is not known.
    progress : callable, optional
        Takes a name and a number of steps, and returns a function to be called after each step.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import panel_card
    >>> votes = simulate_votes(0)
    >>> card = panel_card(votes.rows(votes.datasets == "aggrefact-xsum"), n_boot=100)
    >>> first = card.judges[0].people
    >>> first.n == first.true_positive + first.false_negative + first.false_positive + first.true_negative
    True
    >>> card.frame("steps")["n_judges"].tolist()
    [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    """
    before = votes.labels
    labels = before if people is None else people.labels
    if people is not None:
        documents = people.document_ids if votes.document_ids is None else votes.document_ids
        votes = replace(votes, labels=labels, document_ids=documents)
    labeled, usage_of = votes.rows(labels >= 0), dict(usage or {})
    wrong = ((labeled.votes != ABSTAIN) & (labeled.votes != labeled.labels[:, None])).astype(np.int64)
    correlation = error_correlation(labeled.votes, labeled.labels, row_weights(labeled)) if len(labeled.votes) else None
    result, missing = None, "`deep panel` measures it."
    if worth or not len(labeled.votes):
        result, missing = _worth(labeled, random_state, progress)
    priced = _voter_prices(votes.voter_names, prices or {})
    resampling = {"n_boot": n_boot, "random_state": random_state}
    several = by_dataset and len(votes.dataset_names) > 1
    parts = {name: votes.rows(rows) for name, rows in dataset_rows(votes)} if several else {}
    panel = _PanelData(votes, people, failures, usage_of, priced, correlation, result, limit, resampling, parts)
    cards = tuple(panel.card(column) for column in range(votes.shape[1]))
    if result is not None:
        best = _cards.ranked(cards)[0]  # a judge that is often silent does not do the panel's work alone
        result = replace(
            result, best_judge=best.judge, one_judge=result.one_judge and best.itself.coverage >= MIN_JUDGE_COVERAGE
        )
    agreement: list[Row] = []
    if people is not None and len(people.names) > 1:
        ratings = people.ratings.astype(np.int64)
        agreement = evaluate.agreement_measures(ratings, people.names, documents=votes.document_ids, **resampling)
    costs = [card.others.cost_per_1000 for card in cards]
    paid = [cost for cost in costs if cost is not None]
    # One unknown price makes the sum unknown.
    cost = sum(paid) if len(paid) == len(costs) else None
    effective = NOT_MEASURED if correlation is None else effective_number(correlation)
    replaced = (labels >= 0) & (before >= 0) & (labels != before)
    return _cards.PanelCard(
        n=len(votes.votes),
        datasets=votes.dataset_names,
        n_documents=None if votes.document_ids is None else len(set(votes.document_ids)),
        n_labeled=int((labels >= 0).sum()),
        n_tied=0 if people is None else people.n_tied,
        n_replaced=int(replaced.sum()),
        n_unmatched=0 if people is None else people.n_unmatched,
        people=() if people is None else people.names,
        people_agreement=tuple(agreement),
        judges=cards,
        between=_pairwise_kappa(votes),
        constant=tuple(evaluate.constant_judges(votes)),
        levels=() if votes.answers is None else tuple(evaluate.level_rows(votes)),
        rank_agreement=None if votes.answers is None else evaluate.rank_agreement(votes),
        error_correlation=correlation,
        joint_errors=None if correlation is None else wrong.T @ wrong,
        effective_votes=effective,
        cost_per_1000=cost,
        effective_votes_a_dollar=_effective_votes_per_dollar(effective, cost),
        worth=result,
        worth_missing=missing,
        drop_first=_judge_to_drop_first(cards, effective, cost),
        sample_twice=_judge_to_sample_twice(cards),
        own_family=tuple(evaluate.own_families(votes, writers)) if any(writers) else (),
        by_writer=evaluate.writer_table(votes, writers) if any(writers) else None,
        doubtful_labels=tuple(islice(_doubtful_labels(votes), limit)),
    )


@dataclass(frozen=True, eq=False)
class _PanelData:
    """The votes of a panel, and all that its cards are made of.

    Parameters
    ----------
    votes : VoteMatrix
        Votes of all judges, with the labels that they are held against.
    people : PeopleLabels, optional
        The labels of each person, where they were given apart from the votes.
    failures : sequence of Failures
        How often each judge gave no usable answer, by dataset and reason.
    usage : mapping of str to VoterUsage
        Tokens, seconds and samples, by judge.
    prices : mapping of str to float
        Dollars of one vote, by judge.
    correlation : ndarray of float, shape (n_judges, n_judges), optional
        Of the judges' errors; None without labels.
    worth : PanelReport, optional
        What each judge adds to the panel, where that was measured.
    limit : int
        The most disagreements of a judge that are kept.
    resampling : mapping of str to int
        `n_boot` and `random_state` of intervals.
    by_dataset : mapping of str to VoteMatrix
        The votes on each dataset, where the cards show datasets apart.
    """

    votes: VoteMatrix
    people: datasets.PeopleLabels | None
    failures: Sequence[datasets.Failures]
    usage: Mapping[str, datasets.VoterUsage]
    prices: Mapping[str, float]
    correlation: Floats | None
    worth: PanelReport | None
    limit: int
    resampling: Mapping[str, int]
    by_dataset: Mapping[str, VoteMatrix]

    def card(self, column: int) -> _cards.JudgeCard:
        """Return the card of one judge."""
        votes, name = self.votes, self.votes.voter_names[column]
        usage, own = self.usage.get(name), votes.votes[:, column]
        by_person: dict[str, float] = {}
        if self.people is not None and len(self.people.names) > 1:
            ratings = self.people.ratings.T
            pairs = [np.column_stack([own, rating]).astype(np.int64) for rating in ratings]
            by_person = dict(zip(self.people.names, map(cohen_kappa, pairs), strict=True))
        wrong = _cards.disagreements(votes, column, None if self.people is None else self.people.ratings, usage)
        reasons: Counter[str] = Counter()
        asked_datasets = {*votes.datasets[own != ABSTAIN].astype(str)}
        for failure in self.failures:
            if failure.voter == name:
                reasons.update(failure.reasons)
                asked_datasets.add(failure.dataset)
        # A judge that a dataset does not have, as a grader of another task, was not asked there and is not silent.
        asked_for = own[np.isin(votes.datasets.astype(str), list(asked_datasets))] if asked_datasets else own
        parts = {part: _cards.against_people(of, column, **self.resampling) for part, of in self.by_dataset.items()}
        return _cards.JudgeCard(
            judge=name,
            people=_cards.against_people(votes, column, **self.resampling),
            itself=_cards.against_itself(asked_for, reasons, usage),
            others=self._against_others(column, usage),
            by_dataset={part: measured for part, measured in parts.items() if measured is not None},
            by_person=by_person,
            n_disagreements=int(_cards.wrong_vote_mask(votes, column).sum()),
            disagreements=tuple(islice(wrong, self.limit)),
        )

    def _against_others(self, column: int, usage: datasets.VoterUsage | None) -> _cards.AgainstOthers:
        """Return the gain by one judge beside the others, and its cost."""
        name, k = self.votes.voter_names[column], self.votes.shape[1]
        rest = np.delete(np.arange(k), column)
        correlation = self.correlation if k > 1 else None
        adds = (NOT_MEASURED, NOT_MEASURED, NOT_MEASURED) if self.worth is None else self.worth.value[name]
        per_1000 = 0.0 if usage is None else 1000 / usage.n_judgments
        cost = None if usage is None or usage.cost is None else 1000 * usage.cost / usage.n_judgments
        return _cards.AgainstOthers(
            error_correlation=NOT_MEASURED if correlation is None else float(correlation[column, rest].mean()),
            adds=adds[0],
            adds_ci=adds[1:],
            kept=None if self.worth is None else name in self.worth.keep,
            votes_without=NOT_MEASURED if correlation is None else effective_number(correlation[np.ix_(rest, rest)]),
            second_sample=_votes_added_by_second_sample(self.votes, column, self.usage),
            cost_per_1000=1000 * self.prices[name] if name in self.prices else cost,
            seconds_per_1000=None if usage is None or usage.seconds is None else usage.seconds * per_1000,
            tokens_per_1000=None if usage is None or usage.tokens is None else usage.tokens * per_1000,
        )


def _voter_prices(voters: Sequence[str], prices: Mapping[str, float]) -> dict[str, float]:
    """Return prices by voter, from those by voter or by the name of its judge."""
    names = {voter: (parse_voter(voter).name, voter) for voter in voters}
    result = {voter: prices[name] for voter in voters for name in names[voter] if name in prices}
    unknown = next((name for name in prices if not any(name in group for group in names.values())), None)
    if unknown is not None:
        raise InputError(f"`prices` must name judges of the votes: {', '.join(sorted(voters))}. Got {unknown!r}.")
    return result


def _worth(labeled_votes: VoteMatrix, random_state: int, progress: PanelProgress) -> tuple[PanelReport | None, str]:
    """Return the worth of a panel on labeled rows, or why it cannot be measured."""
    if labeled_votes.shape[1] < 2:
        return None, "There is one judge."
    labels = {(str(name), int(label)) for name, label in zip(labeled_votes.datasets, labeled_votes.labels, strict=True)}
    # Of one class alone there is no balanced accuracy.
    both = [name for name in labeled_votes.dataset_names if {(name, 0), (name, 1)} <= labels]
    if not both:
        return None, "No dataset has both labels, 1 and 0."
    if len(both) == 2:
        return None, "It needs labels of one dataset, which is cut into folds, or of at least three. Got two."
    rows = labeled_votes.rows(np.isin(labeled_votes.datasets.astype(str), both))
    try:
        return panel_worth(rows, random_state=random_state, progress=progress), ""
    except InputError as error:
        return None, str(error)


def _pairwise_kappa(votes: VoteMatrix) -> Floats:
    """Return Cohen's kappa of each two judges."""
    k, ratings = votes.shape[1], votes.votes.astype(np.int64)
    result = np.ones((k, k))
    for i in range(k):
        for j in range(i):
            result[i, j] = result[j, i] = cohen_kappa(ratings[:, [i, j]])
    return result


def _votes_added_by_second_sample(votes: VoteMatrix, column: int, usage: Mapping[str, datasets.VoterUsage]) -> float:
    """Return the effective votes that a second sample of one judge adds to a first sample of each."""
    own = usage.get(votes.voter_names[column])
    if own is None or not len(own.samples):
        return NOT_MEASURED
    rows = own.sample_rows[votes.labels[own.sample_rows] >= 0]
    if not len(rows):
        return NOT_MEASURED
    first = _votes_of_one_sample(votes, usage, 0)
    second = _votes_of_one_sample(votes, {votes.voter_names[column]: own}, 1)[:, column]
    weights = row_weights(votes.rows(rows))
    # One sample a judge on both sides, or the majority of samples would look like a better judge.
    panels = first[rows], np.column_stack([first, second])[rows]
    once, twice = (effective_number(error_correlation(panel, votes.labels[rows], weights)) for panel in panels)
    return twice - once


def _votes_of_one_sample(votes: VoteMatrix, usage: Mapping[str, datasets.VoterUsage], number: int) -> Votes:
    """Return the votes with those of one sample in place of their majority, where there are several."""
    result = votes.votes.copy()
    for column, name in enumerate(votes.voter_names):
        if name in usage and len(usage[name].samples):
            result[usage[name].sample_rows, column] = usage[name].samples[:, number]
    return result


def _effective_votes_per_dollar(effective: float, cost_per_1000: float | None) -> float:
    """Return effective votes a dollar."""
    return 1000 * effective / cost_per_1000 if cost_per_1000 else NOT_MEASURED


def _judge_to_drop_first(cards: Sequence[_cards.JudgeCard], effective: float, cost: float | None) -> str | None:
    """Return the judge without which a panel has most effective votes, a dollar where prices are known."""
    if len(cards) < 2 or np.isnan(effective):
        return None
    paid = bool(cost)
    now = _effective_votes_per_dollar(effective, cost) if paid else effective
    without = {
        card.judge: _effective_votes_per_dollar(card.others.votes_without, cost - (card.others.cost_per_1000 or 0.0))  # type: ignore[operator]
        if paid
        else card.others.votes_without
        for card in cards
    }
    best = max(without, key=lambda name: -np.inf if np.isnan(without[name]) else without[name])
    return best if without[best] > now else None


def _judge_to_sample_twice(cards: Sequence[_cards.JudgeCard]) -> str | None:
    """Return the judge whose second sample adds most, a dollar where prices are known; None where none adds."""
    gains = {card.judge: card.others for card in cards if card.others.second_sample > 0}
    priced = all(others.cost_per_1000 for others in gains.values())
    worth = {name: o.second_sample / (o.cost_per_1000 if priced else 1.0) for name, o in gains.items()}  # type: ignore[operator]
    return max(worth, key=lambda name: worth[name], default=None)


def _doubtful_labels(votes: VoteMatrix) -> Iterator[Row]:
    """Yield the labels that most judges, of two or more, are against, the most of them first."""
    n_votes = (votes.votes != ABSTAIN).sum(axis=1)
    against = ((votes.votes != ABSTAIN) & (votes.votes != votes.labels[:, None])).sum(axis=1)
    share = np.where((votes.labels >= 0) & (n_votes > 1), against / np.maximum(n_votes, 1), 0.0)
    for row in np.lexsort((-n_votes, -share)):
        if share[row] <= 0.5:
            return
        yield {
            "dataset": str(votes.datasets[row]),
            "item_id": str(votes.item_ids[row]),
            "label": int(votes.labels[row]),
            "against": int(against[row]),
            "votes": int(n_votes[row]),
        }
