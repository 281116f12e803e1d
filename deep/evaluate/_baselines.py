"""The rivals of an ensemble: single judges, one with its context, the majority, thresholded encoder scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Labels, Mask, Texts, Votes, check_choice, numbered
from deep.calibration import (
    DEFAULT_BINS,
    balanced_accuracy,
    bootstrap_balanced_accuracy,
    paired_bootstrap,
    precision,
    recall,
)
from deep.datasets import ScoreTable
from deep.ensembles import ENSEMBLERS, MajorityLabelVoter
from deep.evaluate._holdout import HoldOut, decision_metrics
from deep.evaluate._tables import Row, null_if_nan
from deep.exceptions import InputError
from deep.model import MIN_DATASETS, Fits, Stack, group_weights, leading_column
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    from deep.model.score import ScoreSum, VoteSum


CONTEXT = "best_judge_context"


@dataclass(frozen=True, eq=False)
class Baseline:
    """A rival of the ensemble, with its decision on every held-out row.

    Parameters
    ----------
    name : str
    kind : {'best_judge_context', 'best_prompt', 'encoder', 'majority', 'prompt'}
    decisions : ndarray of bool, shape (n_examples,)
    threshold_from : {'center', 'test', 'train'} or None
    threshold : float or None
    p : ndarray of float, shape (n_examples,), optional
        P(consistent), where the rival has one.
    """

    name: str
    kind: str
    decisions: Mask
    threshold_from: str | None = None
    threshold: float | None = None
    p: Floats | None = None

    def row(self, labels: Labels, *, n_boot: int, random_state: int, n_bins: int = DEFAULT_BINS) -> Row:
        """Return the entry of `results.json`."""
        row: Row = {
            "name": self.name,
            "kind": self.kind,
            "threshold_from": self.threshold_from,
            "threshold": self.threshold,
        }
        if self.p is not None:
            options = {"n_bins": n_bins, "n_boot": n_boot, "random_state": random_state}
            return row | decision_metrics(labels, self.p, self.decisions, **options)
        return row | self._of_decisions(labels, n_boot, random_state)

    def _of_decisions(self, labels: Labels, n_boot: int, random_state: int) -> Row:
        labeled = labels >= 0
        if not labeled.any():
            return dict.fromkeys(("balanced_accuracy", "balanced_accuracy_ci", "precision", "recall"))
        y, decisions = labels[labeled], self.decisions[labeled]
        ci = bootstrap_balanced_accuracy(y, decisions, n_boot=n_boot, random_state=random_state)
        measured: Row = {
            "balanced_accuracy": balanced_accuracy(y, decisions),
            "balanced_accuracy_ci": list(ci),
            "precision": precision(y, decisions),
            "recall": recall(y, decisions),
        }
        return {name: null_if_nan(value) for name, value in measured.items()}


def row_weights(train: VoteMatrix) -> Floats:
    """Return row weights under which every training dataset x class weighs the same."""
    _, code = np.unique(train.datasets.astype(str), return_inverse=True)
    sizes = np.bincount(code * 2 + train.labels, minlength=2 * (code.max() + 1)).reshape(-1, 2)
    return group_weights(sizes, "dataset-class")[code, train.labels]


def balanced_accuracies(decisions: Mask, y: Labels, w: Floats) -> Floats:
    """Return the balanced accuracy of each column of decisions; NaN where `y` lacks a class."""
    per_class = [(w[y == c] @ (decisions[y == c] == c)) / (w[y == c].sum() or np.nan) for c in (0, 1)]
    return np.asarray((per_class[0] + per_class[1]) / 2)


def _as_decisions(votes: Votes) -> Mask:
    """Return votes as decisions; no vote is P = 0.5, which decides for consistent as everywhere."""
    return np.asarray((votes == 1) | (votes == ABSTAIN))


def vote_baselines(split: HoldOut) -> list[Baseline]:
    """Return every single voter, the best one chosen on training data, and the majority of all."""
    test, train = split.test, split.train
    on_train = balanced_accuracies(_as_decisions(train.votes), train.labels, row_weights(train))
    best = int(np.argmax(on_train))
    decisions = _as_decisions(test.votes)
    singles = [Baseline(name, "prompt", decisions[:, i]) for i, name in enumerate(test.voter_names)]
    majority = MajorityLabelVoter().fit(train.votes).predict(test.votes) == 1
    return [
        *singles,
        Baseline(test.voter_names[best], "best_prompt", decisions[:, best]),
        Baseline("majority vote", "majority", majority),
    ]


def context_member(n_scorers: int) -> str:
    """Return the member of the stack that is one judge: the best by its score, or by its vote without scores."""
    return "best-score" if n_scorers else "best-judge"


def context_baseline(
    split: HoldOut, scores: ScoreTable | None, *, groups: Texts, fits: Fits | None = None
) -> Baseline | None:
    """Return the best judge with its context: one judge, chosen on training data, and its mean over the dataset.

    It is the stack of that one member: its log-odds are aligned on training datasets left out, and its P is at the
    prior that its mean tells.

    Parameters
    ----------
    split : HoldOut
    scores : ScoreTable or None
        Aligned with the whole vote matrix.
    groups : ndarray of str, shape (n_train,)
        What training rows are left out with.
    fits : mapping, optional
        As in :meth:`deep.model.Stack.fit`.

    Returns
    -------
    Baseline or None
        None where fewer than three groups can be left out.
    """
    if len(numbered(groups)[0]) < MIN_DATASETS:
        return None
    soft = (None, None) if scores is None else (scores.scores[split.train_rows], scores.scores[split.test_rows])
    stack = Stack([context_member(0 if scores is None else scores.scores.shape[1])])
    stack.fit(split.train.votes, split.train.labels, groups=groups, scores=soft[0], fits=fits)
    found = stack.score(split.test.votes, scores=soft[1])
    names = split.train.voter_names if scores is None else scores.score_names
    name = names[leading_column(cast("VoteSum | ScoreSum", stack.blend_.parts[0].scorer))]
    return Baseline(name, CONTEXT, found.decisions, p=found.p_consistent)


def best_threshold(scores: Floats, y: Labels, w: Floats) -> float:
    """Return the threshold t for which ``score >= t`` has the best weighted balanced accuracy.

    Parameters
    ----------
    scores : ndarray of float, shape (n_examples,)
        NaN where there is no score; such rows are left out.
    y, w : ndarray, shape (n_examples,)

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
    known = ~np.isnan(scores)
    scores, y, w = scores[known], y[known], w[known]
    if len(np.unique(y)) < 2:
        return float("nan")
    values, position = np.unique(scores, return_inverse=True)
    share = [np.bincount(position[y == c], w[y == c], len(values)) / w[y == c].sum() for c in (0, 1)]
    # gain[i]: balanced accuracy (up to a constant) of calling everything from values[i] on consistent.
    gain = np.append(np.cumsum((share[1] - share[0])[::-1])[::-1], 0.0)
    best = np.flatnonzero(gain >= gain.max() - 1e-12)
    i = int(best[len(best) // 2])
    if i in (0, len(values)):
        return float(values[0] if i == 0 else np.nextafter(values[-1], np.inf))
    return float((values[i - 1] + values[i]) / 2)


def optimal_thresholds(votes: VoteMatrix, scores: ScoreTable) -> dict[str, dict[str, float]]:
    """Return the threshold that each encoder would need on each labeled dataset: the paper's Figure 1."""
    found: dict[str, dict[str, float]] = {name: {} for name in scores.score_names}
    for dataset in votes.dataset_names:
        rows = (votes.datasets == dataset) & (votes.labels >= 0)
        for column, name in enumerate(scores.score_names):
            threshold = best_threshold(scores.scores[rows, column], votes.labels[rows], np.ones(int(rows.sum())))
            if not np.isnan(threshold):
                found[name][dataset] = threshold
    return found


def encoder_baselines(split: HoldOut, scores: ScoreTable | None) -> list[Baseline]:
    """Return every encoder with its threshold from the test set, the centre of its range and the training sets.

    The range is the one that `scores` knows, else that of the training scores.
    """
    if scores is None:
        return []
    weights = row_weights(split.train)
    found: list[Baseline] = []
    for column, name in enumerate(scores.score_names):
        train, test = scores.scores[split.train_rows, column], scores.scores[split.test_rows, column]
        for origin, threshold in _thresholds(split, train, test, weights, scores.ranges.get(name)):
            decisions = ~(test < threshold)  # a missing score decides as a missing vote does
            found.append(Baseline(name, "encoder", decisions, origin, threshold))
    return found


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


ALPHA = 0.01
"""Significance level after Bonferroni's correction over datasets, as in the paper's section 4.4."""

RIVALS = ("best_prompt", CONTEXT, "majority")
"""Kinds of baselines that are chosen on training data; encoders with a threshold from there come after them."""

DRAWS_A_TEST = 200
"""Resamples that each of m tests needs, or no p can be small enough to pass ALPHA / m."""


def rivals(baselines: Sequence[Baseline]) -> list[Baseline]:
    """Return the baselines that need no test label."""
    return [b for b in baselines if b.kind in RIVALS or (b.kind, b.threshold_from) == ("encoder", "train")]


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
    n_boot : int
        Raised to 200 a test where it is less.
    random_state : int
    n_datasets : int, default=1
        How many datasets are held out in turn, each with the same tests.

    Returns
    -------
    list of dict
        ``a, b, difference, ci, p`` each; ``p_bonferroni, significant`` after the correction over rivals,
        ``p_bonferroni_datasets, significant_datasets`` after that over datasets. Empty where a class has no labeled
        row.
    """
    against = rivals(baselines)
    labeled = labels >= 0
    if len(np.unique(labels[labeled])) < 2:
        return []
    y, a = labels[labeled], decisions[labeled]
    rows = []
    for rival in against:
        found = paired_bootstrap(
            y,
            a,
            rival.decisions[labeled],
            n_boot=max(n_boot, DRAWS_A_TEST * max(len(against), n_datasets)),
            random_state=random_state,
        )
        over_rivals, over_datasets = (float(min(1.0, found.p * n)) for n in (len(against), n_datasets))
        rows.append(
            {
                "a": "recommended",
                "b": f"{rival.kind}: {rival.name}",
                "difference": float(found.difference),
                "ci": [float(bound) for bound in found.ci],
                "p": float(found.p),
                "p_bonferroni": over_rivals,
                "significant": over_rivals < ALPHA,
                "p_bonferroni_datasets": over_datasets,
                "significant_datasets": over_datasets < ALPHA,
            }
        )
    return rows


LABEL_FREE = tuple(name for name, ensembler in ENSEMBLERS.items() if not ensembler.uses_labels)
"""The ensemblers that can be fitted to the votes that they are to judge."""


def ensemble_votes(votes: VoteMatrix, names: Sequence[str]) -> VoteMatrix:
    """Return the decisions of ensembles of all voters, each fitted to each dataset's votes without their labels.

    Parameters
    ----------
    votes : VoteMatrix
        Of at least two voters. Those without a vote on a dataset are left out there.
    names : sequence of str
        Of `LABEL_FREE`.

    Returns
    -------
    VoteMatrix
        A voter an ensembler, ``<name> of <number of voters>``; no vote where its P(consistent) is 0.5.

    Examples
    --------
    >>> from deep import VoteMatrix
    >>> from deep.evaluate import ensemble_votes
    >>> votes = VoteMatrix([[1, 1, 0], [0, -1, 0], [1, 0, -1]], "abc", ["x", "y", "z"], ["d"] * 3, [-1] * 3)
    >>> made = ensemble_votes(votes, ["MajorityLabelVoter"])
    >>> made.voter_names, made.votes.ravel().tolist()
    (('MajorityLabelVoter of 3',), [1, 0, -1])
    """
    chosen = [check_choice(name, LABEL_FREE, "ensembler") for name in names]
    k = len(votes.voter_names)
    if k < 2:
        raise InputError(f"`votes` must have at least two voters for `ensembler`. Got {k}.")
    decided: Votes = np.full((len(votes.votes), len(chosen)), ABSTAIN, dtype=np.int8)
    for name in votes.dataset_names:
        rows = np.flatnonzero((votes.datasets == name) & (votes.votes != ABSTAIN).any(axis=1))
        for column, ensembler in enumerate(chosen if len(rows) else ()):
            decided[rows, column] = _decide(ensembler, votes.votes[rows])
    return VoteMatrix(
        votes=decided,
        example_ids=votes.example_ids,
        voter_names=[f"{name} of {k}" for name in chosen],
        datasets=votes.datasets,
        labels=votes.labels,
        document_ids=votes.document_ids,
    )


def _decide(ensembler: str, votes: Votes) -> Votes:
    cast = votes[:, (votes != ABSTAIN).any(axis=0)]
    p = ENSEMBLERS[ensembler]().fit(cast).predict_proba(cast)[:, 1]
    return np.where(np.abs(p - 0.5) < 1e-12, ABSTAIN, p > 0.5).astype(np.int8)
