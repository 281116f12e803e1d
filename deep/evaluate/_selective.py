"""Selective decisions: keep those of the model's rule that are sure enough to be right, and abstain elsewhere."""

# Python's help shows the names of types then, and not all that an `ArrayLike` may be.
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep import calibration, evaluate  # by the room, since a fit's report needs nothing of what they hold
from deep._util.checks import Floats, check_share
from deep._util.names import listed, short_names
from deep._util.odds import expit
from deep.datasets import LabelsGiven, as_labels
from deep.exceptions import InputError
from deep.model import LEVEL, HeldOutData, Model, PriorEstimate, VotesLike, as_vote_matrix, sure_mask
from deep.records import VoteMatrix


@dataclass(frozen=True, eq=False)
class Selection:
    """Decisions on one dataset at one confidence.

    Parameters
    ----------
    votes : VoteMatrix
        Of the dataset, with what labels there are.
    p : ndarray of float, shape (n_examples,)
        P(consistent).
    decided : ndarray of bool, shape (n_examples,)
        False where the model abstains.
    threshold : float
        The P from which on an item is called consistent.
    report : dict
        JSON values: the confidence, how it was found, and the decisions counted.
    """

    votes: VoteMatrix
    p: Floats
    decided: npt.NDArray[np.bool_]
    threshold: float
    report: dict[str, object]

    def rows(self) -> Iterator[tuple[str, str, int | None, float]]:
        """Yield dataset, item id, decision (None: abstention) and P of each item."""
        columns = (self.votes.datasets, self.votes.item_ids, self.decided, self.p)
        for dataset, item, decided, p in zip(*columns, strict=True):
            yield str(dataset), str(item), int(p >= self.threshold) if decided else None, float(p)


def select_decisions(model: Model, target: evaluate.Target, *, accuracy: float = 0.9, delta: float = 0.1) -> Selection:
    """Decide where decisions can be expected to be right often enough.

    Parameters
    ----------
    model : Model
        Gives the items P, and the threshold from which on an item is called consistent.
    target : Target
        Labels of a random sample of it give a guarantee; without any, see :func:`transferred_confidence`.
    accuracy : float in (0, 1), default=0.9
        Wanted share of right decisions.
    delta : float in (0, 1), default=0.1
        Allowed chance that the guarantee fails.

    Raises
    ------
    InputError
        `accuracy` or `delta` is out of range, or the confidence cannot be learned.
    """
    for name, value in (("accuracy", accuracy), ("delta", delta)):
        check_share(value, name)
    votes = target.votes
    result = model.scores_of(votes)
    p, is_labeled, threshold = result.p_consistent, votes.labels >= 0, result.threshold
    if is_labeled.any():
        level = calibration.selective_threshold(
            votes.labels[is_labeled], p[is_labeled], accuracy, delta=delta, threshold=threshold
        )
        counts = {"guaranteed": level.confidence is not None, "labels": int(is_labeled.sum())}
        report = counts | {name: evaluate.json_value(value) for name, value in vars(level).items()}
    else:
        report = transferred_confidence(model, accuracy)
    # Without a level nothing is decided.
    confidence = report["confidence"] if isinstance(report["confidence"], float) else np.inf
    decided = (np.where(p >= threshold, p, 1 - p) >= confidence) & result.voted
    report |= {"dataset": target.name, "n": len(p), "decided": int(decided.sum()), "prior": asdict(result.share)}
    report |= {"threshold": threshold, "rule": model.rule.sentence(threshold)}
    if is_labeled.any():
        curve = calibration.risk_coverage(votes.labels[is_labeled], p[is_labeled], threshold=threshold)
        report["risk_coverage"] = curve.to_dict("list")
    return Selection(votes, p, decided, threshold, report)


def transferred_confidence(model: Model, accuracy: float) -> dict[str, object]:
    """Return the least confidence at which decisions on left-out training datasets were right often enough.

    Each training dataset is scored by a fit without it, at the prior that its votes suggest, and decided by the
    model's rule; the mean P stands for that prior. The accuracy averaged over datasets is held to the wanted one;
    nothing is guaranteed under shift.

    Parameters
    ----------
    model : Model
        Not corrected by labels of its target.
    accuracy : float in (0, 1)
        Wanted share of right decisions.

    Returns
    -------
    dict
        `confidence`, None where no level was right often enough; the number of training `datasets` with decisions
        at that level, `datasets_held` of them with the wanted accuracy, and the `lowest_accuracy` among them.

    Raises
    ------
    InputError
        The model has no training datasets to learn from.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import transferred_confidence
    >>> from deep.model import fit
    >>> model = fit(simulate_votes(0), sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> result = transferred_confidence(model, 0.7)
    >>> result["guaranteed"], 0 < result["confidence"] < 1, result["datasets"]
    (False, True, 4)
    """
    if not model.left_out or model.correction is not None:
        raise InputError("`labels` must be given: without them this model has no datasets to learn a confidence from.")
    curves = [_confidence_curve(one, model.rule.at(one.context)) for one in model.left_out.values()]
    # Accuracy changes only where an item joins, so these are all levels there are to try.
    levels = np.unique(np.concatenate([confidence for confidence, _, _ in curves]))
    accuracies = np.array([[_accuracy_above(level, *curve) for level in levels] for curve in curves])
    decided = np.isfinite(accuracies)
    # Over datasets and not over items: a new dataset is like one of them, whatever its size.
    mean = np.where(decided, accuracies, 0.0).sum(axis=0) / np.maximum(decided.sum(axis=0), 1)
    enough = np.flatnonzero(mean >= accuracy)
    if not len(enough):
        return {"guaranteed": False, "confidence": None, "datasets_held": 0, "datasets": len(curves)}
    first = enough[0]
    at_first = accuracies[:, first]
    return {
        "guaranteed": False,
        "confidence": float(levels[first]),
        "datasets_held": int((at_first >= accuracy).sum()),
        "datasets": int(np.isfinite(at_first).sum()),
        "lowest_accuracy": float(np.nanmin(at_first)),
    }


def _confidence_curve(one: HeldOutData, threshold: float) -> tuple[Floats, Floats, Floats]:
    """Return the confidence at each point, its rows, and the number of them that are decided rightly."""
    p = expit(one.score)
    positive = p >= threshold
    return np.where(positive, p, 1 - p), one.ones + one.zeros, np.where(positive, one.ones, one.zeros)


def _accuracy_above(level: float, confidence: Floats, n: Floats, right: Floats) -> float:
    """Return the accuracy of the decisions at a confidence or above; NaN where there is none."""
    confident = confidence >= level
    total = n[confident].sum()
    return float(right[confident].sum() / total) if total else float("nan")


def sure_words(model: Model) -> str | None:
    """Return in a sentence how often sure decisions, and the others, were right on labels left out; None without any.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import sure_words
    >>> from deep.model import fit
    >>> model = fit(simulate_votes(0), sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> sure_words(model).partition(",")[0]
    'On 4 training datasets'
    """
    if not model.left_out or model.correction is not None:
        return None
    items, right, n_sure = np.zeros(2), np.zeros(2), 0.0
    for one in model.left_out.values():
        threshold = model.rule.at(one.context)
        _, n, hits = _confidence_curve(one, threshold)
        low, high = model.misfit.interval(one.score)
        sure = sure_mask(low, high, threshold)
        n_sure += n[sure].sum()
        for i, of in enumerate((sure, ~sure)):
            items[i] += n[of].sum() / n.sum()  # each dataset weighs the same
            right[i] += hits[of].sum() / n.sum()
    k = len(model.left_out)
    shares = (items[0] / k, right.sum() / k, *(right / np.maximum(items, 1e-9)))
    share, rate, of_sure, of_others = (f"{100 * value:.1f} %" for value in shares)
    start = f"{_training_words(k)}, {share} of items are sure"
    if not items.all():
        return f"{start}; {rate} of decisions are right."
    return f"{start}: {of_sure} of these {n_sure:,.0f} decisions are right, {of_others} of the others."


def _training_words(n_datasets: int) -> str:
    """Return the words for labels that no fit has seen: of datasets left out, or of parts of a single one."""
    if n_datasets == 1:
        return "On 1 training dataset, by parts left out"
    return f"On {n_datasets} training datasets, each left out in turn"


# What fits without labels reach on 19 panels of real judges: the share inconsistent in the tenth with the lowest P and
# in all, the share consistent in the highest tenth and in all (`python benchmarks/unlabeled.py --ends`).
TENTH_SHARES_WITHOUT_LABELS = (0.79, 0.48, 0.78, 0.52)


def order_words(model: Model) -> str | None:
    """Return in a sentence what is known of the items of the lowest and of the highest P; None after labels of theirs.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import order_words
    >>> from deep.model import fit
    >>> model = fit(simulate_votes(0), sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> order_words(model).partition(":")[0]
    'On 4 training datasets, each left out in turn'
    """
    if model.correction is not None or not (model.left_out or model.method == "votes"):
        return None
    shares, on = TENTH_SHARES_WITHOUT_LABELS, "On 19 panels of other judges, without labels"
    if model.left_out:
        on = _training_words(len(model.left_out))
        shares = tuple(np.mean([_shares_of_outer_tenths(one) for one in model.left_out.values()], axis=0).tolist())
    low, zeros, high, ones = (f"{100 * share:.0f} %" for share in shares)
    return (
        f"{on}: in the lowest tenth of P {low} were inconsistent ({zeros} of all). In the highest tenth {high} were "
        f"consistent ({ones} of all)."
    )


def _shares_of_outer_tenths(one: HeldOutData) -> tuple[float, float, float, float]:
    """Return the shares of label 0 in the lowest tenth and in all, of label 1 in the highest tenth and in all."""
    order, n = np.argsort(one.score, kind="stable"), one.ones + one.zeros
    result = []
    for label, rows in ((one.zeros, order), (one.ones, order[::-1])):
        before = np.cumsum(n[rows]) - n[rows]
        # The pattern that reaches over the tenth counts in part, so that equal P are not cut by their order.
        part = np.clip(0.1 * n.sum() - before, 0.0, n[rows]) / n[rows]
        result += [float(part @ label[rows] / (part @ n[rows])), float(label.sum() / n.sum())]
    return result[0], result[1], result[2], result[3]


# Up to so many training datasets the share is known so badly that labels are asked for, and how many (decision 44).
MAX_DATASETS, N_LABELS = 3, 10


def label_words(model: Model, priors: Iterable[PriorEstimate]) -> str | None:
    """Return in a sentence by how much the share may be off, and how far ten labels narrow it; None where not needed.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import label_words
    >>> from deep.model import PriorEstimate, fit
    >>> votes = simulate_votes(0)
    >>> model = fit(votes.rows(votes.datasets == "aggrefact-xsum"))
    >>> label_words(model, [PriorEstimate(0.6, 0.35, 0.83)])
    'The share may be wrong by ± 24 points; ten labels of random items reduce this to about ± 17.'
    """
    measured = [prior for prior in priors if prior.low < prior.high and prior.is_measured]
    if (
        model.correction is not None
        or model.method == "own-labels"
        or len(model.cells.groups) > MAX_DATASETS
        or not measured
    ):
        return None
    worst = max(measured, key=lambda prior: prior.high - prior.low)
    reach = (worst.high - worst.low) / 2
    # Half of the normal interval of a share of n labels.
    of_labels = Z_90 * np.sqrt(worst.estimate * (1 - worst.estimate) / N_LABELS)
    combined = reach * of_labels / np.hypot(reach, of_labels)  # two independent estimates of one share
    off, rest = f"{100 * reach:.0f} points", f"{100 * combined:.0f}"
    return f"The share may be wrong by ± {off}; ten labels of random items reduce this to about ± {rest}."


# Half the width of a 90 % interval, in standard deviations.
Z_90 = 1.645

# Why a model was fitted as it was, by method.
METHOD_REASONS = {
    "average": "average of simple aggregators, because {labeled} cannot show which one is best",
    "chain": "the best chain of voters, ensembler and calibrator on {labeled}, within your options",
    "own-labels": "labels of one dataset, so simple aggregators are compared on rows left out",
    "stack": "several aggregators, weighted by how well they transfer between {labeled}",
    "votes": "no labels: learned from agreement alone, and the error of P is unknown",
}

# Why a model of few labels was learned from agreement first.
FEW_LABELS_REASON = "too few labels to learn from: learned from agreement, then corrected by the labels"

# A member of less weight is not listed.
# With two decimals it would be listed as 0.00.
MIN_WEIGHT_LISTED = 0.005


# A judge that always says the same is told from so many votes on.
# A judge that says 1 of 4 items in 5 says it of 5 in a row in 33 of 100 cases, of 10 in 11.
MIN_CONSTANT_VOTES = 10

# The share of votes of the other sign up to which a judge says nearly always the same: 2 of 100.
MAX_OTHER_VOTES = 0.02

# A judge is called constant only if it votes on so many of the items. A rule that votes 1 or not at all says something
# by where it votes, and so do the many that vote 0 alone.
MIN_COVERAGE = 0.9


def constant_words(judges: Mapping[str, tuple[str, int, int, int]]) -> list[str]:
    """Return sentences on judges that say the same of every item, or of nearly every one.

    Parameters
    ----------
    judges : mapping of str to (str, int, int, int)
        Of each judge its most frequent answer, how many of its answers are that one, how many it gave, and of how many
        items.

    Returns
    -------
    list of str
        One for all judges that always say the same, one for each that nearly does; at last that no judge distinguishes
        the items, where none does.

    Examples
    --------
    >>> from deep.evaluate import constant_words
    >>> judges = {"yes-no": ("1", 100, 100, 100), "rule": ("1", 40, 40, 100), "grader": ("4", 99, 100, 100)}
    >>> for line in constant_words(judges):
    ...     print(line)
    yes-no always says 1: it tells nothing about which claims are consistent.
    grader says 4 for 99 of its 100 claims: that says little about which claims are consistent.
    """
    many = {name: each for name, each in judges.items() if each[2] >= max(MIN_CONSTANT_VOTES, MIN_COVERAGE * each[3])}
    lines = []
    for answer in dict.fromkeys(answer for answer, same, n, _ in many.values() if same == n):
        names = [name for name, (own, same, n, _) in many.items() if (own, same) == (answer, n)]
        say, it_tells = ("says", "it tells") if len(names) == 1 else ("say", "they tell")
        lines.append(f"{listed(names)} always {say} {answer}: {it_tells} nothing about which claims are consistent.")
    for name, (answer, same, n, _) in many.items():
        if 0 < n - same <= MAX_OTHER_VOTES * n:
            alike = f"{answer} for {same:,} of its {n:,} claims"
            lines.append(f"{name} says {alike}: that says little about which claims are consistent.")
    if many and all(same == n == items for _, same, n, items in judges.values()):
        lines.append(evaluate.NO_JUDGE_DISTINGUISHES)
    return lines


def constant_judges(votes: VoteMatrix) -> list[str]:
    """Return the sentences of :func:`constant_words` on the judges of a table, whose grades are told as given."""
    judges = {}
    columns = zip(short_names(votes.voter_names).values(), votes.answers_or_votes.T, strict=True)
    for (name, column), scale in zip(columns, votes.scales or repeat(None), strict=False):
        own, counts = np.unique(column[column >= 0], return_counts=True)
        same, place = max(zip(counts.tolist(), own.tolist(), strict=True), default=(0, 0.0))
        judges[name] = (f"{place:g}" if scale is None else scale.answer(place), same, int(counts.sum()), len(column))
    return constant_words(judges)


def fit_report(model: Model) -> dict[str, object]:
    """Return how a model was fitted and why, its scores on datasets left out, and the prior, as JSON values.

    Parameters
    ----------
    model : Model
        Fitted by :func:`deep.fit`, or one of a dataset by :func:`deep.adapt`.

    Returns
    -------
    dict
        `members` and `said` are lines for people.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import fit_report
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> result = fit_report(fit(votes.rows(votes.datasets == "aggrefact-xsum")))
    >>> result["method"], result["why"]
    ('average', 'average of simple aggregators, because 1 labeled dataset cannot show which one is best')
    """
    report, correction = model.fit_report, model.correction
    recipe = report["chosen"]
    assert isinstance(recipe, dict)  # as every fit writes it
    n = len(model.cells.groups)
    labels = None if correction is None else {"n": correction.n_labels, "n_effective": correction.n_effective}
    return {
        "method": model.method,
        "what": recipe["ensembler"],
        "why": FEW_LABELS_REASON
        if model.method == "votes" and correction is not None
        else METHOD_REASONS[model.method].format(labeled=f"{n} labeled dataset{'' if n == 1 else 's'}"),
        "members": list(_content_lines(recipe, model)),
        "voters": list(model.voter_names),
        "scores": list(model.score_names),
        "chosen": {name: value for name, value in recipe.items() if name != "calibrator_map"},
        **{name: report[name] for name in ("left_out_scores", "training_datasets", "notes")},
        "target": model.target,
        "correction": labels,
        "prior": asdict(model.prior),
        "decision": model.rule.values(),
        "said": list(_target_lines(model)),
    }


# The names for people of the methods that learn from votes alone.
UNLABELED_METHOD_NAMES = {
    "average": "majority and Dawid-Skene together",
    "dawid-skene": "Dawid-Skene alone; the majority has weight 0",
    "majority": "majority alone; Dawid-Skene has weight 0",
}


def _content_lines(recipe: Mapping[str, Any], model: Model) -> Iterator[str]:
    """Yield the content: the weights of the stack, the losses of the aggregators compared, the voters of a chain."""
    if model.method == "stack":
        ranked = sorted(recipe["weights"].items(), key=lambda item: -item[1])
        yield from (f"{name}: weight {weight:.2f}" for name, weight in ranked if weight >= MIN_WEIGHT_LISTED)
    elif model.method == "own-labels":
        ranked = sorted(recipe["log_loss"].items(), key=lambda item: item[1])
        yield from (f"{name}: log loss {loss:.4f} on rows left out" for name, loss in ranked)
    elif model.method == "average":
        yield ", ".join(recipe["members"])
    elif model.method == "votes":
        yield f"by {UNLABELED_METHOD_NAMES[recipe['found']]}"
    else:
        params = ", ".join(f"{name}={value}" for name, value in recipe["params"].items())
        voters = f"{len(model.voters)} voters ({recipe['selector']})"
        yield f"{params or 'no parameters'}; calibrator {recipe['calibrator'] or 'none'}; {voters}:"
        yield from (f"  {name}" for name in model.voter_names)
    if "inner" in recipe:
        inner = recipe["inner"]
        accuracy = 100 * inner["balanced_accuracy"]
        yield f"inner scores: log loss {inner['log_loss']:.4f}, balanced accuracy {accuracy:.1f} %"


def _target_lines(model: Model) -> Iterator[str]:
    """Yield lines on the target's labels, and the share of consistent items to expect."""
    if model.correction is not None:
        yield f"corrected by {model.correction.n_labels} labels of {model.target}"
    prior = model.prior
    of = "a new dataset" if model.target is None else f"the dataset {model.target}"
    warning = f" ({prior.warning})" if prior.warning else ""
    yield (
        f"expected share of consistent items in {of}: {100 * prior.estimate:.1f} %, 90 % interval "
        f"{100 * prior.low:.1f} to {100 * prior.high:.1f}{warning}"
    )
    yield model.rule.sentence(model.threshold())
    yield from filter(None, [sure_words(model)])


def adapt(model: Model, votes: VotesLike, labels: LabelsGiven | None = None, *, decide: str | None = None) -> Model:
    """Return the model of one dataset, as `deep adapt` does.

    Parameters
    ----------
    model : Model
        Of :func:`deep.fit`, and not of one dataset already.
    votes : VoteMatrix, data frame of pandas, Polars or pyarrow, or path or sequence of paths
        Of one dataset; labels beside them are not used.
    labels : array-like, data frame or path, optional
        Of items drawn at random: 1, 0 or -1 for each row, or a table with item_id and label.
    decide : str, optional
        Another rule of decision; see :class:`deep.model.DecisionRule`.

    Examples
    --------
    >>> import deep
    >>> from deep.datasets import simulate_votes
    >>> votes = simulate_votes(0)
    >>> mine = votes.rows(votes.datasets == "aggrefact-xsum")
    >>> model = deep.fit(votes.rows(votes.datasets != "aggrefact-xsum"))
    >>> deep.adapt(model, mine).target
    'aggrefact-xsum'
    """
    return evaluate.adapt_model(model, _as_target(model, votes, labels), decide=decide)[0]


class Findings(dict[str, object]):
    """The values of `deep check --json`, which a notebook shows as the lines of `deep check`.

    Parameters
    ----------
    values : mapping
        What `deep check --json` prints, by key.
    lines : iterable of str
        The lines of `deep check`, as which the object is shown.
    """

    def __init__(self, values: Mapping[str, object], lines: Iterable[str]) -> None:
        super().__init__(values)
        self._lines = tuple(lines)

    def __repr__(self) -> str:
        return "\n".join(self._lines)


def check(model: Model, votes: VotesLike, labels: LabelsGiven | None = None) -> Findings:
    """Return the findings of `deep check`: whether labels agree with P or, without any, which judge has moved.

    Parameters
    ----------
    model, votes, labels
        As in :func:`adapt`.

    Examples
    --------
    >>> import deep
    >>> from deep.datasets import simulate_votes
    >>> votes = simulate_votes(0)
    >>> mine = votes.rows(votes.datasets == "aggrefact-xsum")
    >>> model = deep.fit(votes.rows(votes.datasets != "aggrefact-xsum"))
    >>> result = deep.check(model, mine, mine.labels)
    >>> result["n_labels"], result["flagged"] == (result["p_value"] < 0.05)
    (558, True)
    """
    target = _as_target(model, votes, labels)
    if labels is None:
        report = evaluate.drift_report(model, target.votes)
        return Findings(report.as_dict(), report.lines())
    result = evaluate.canary_report(model, target)
    return Findings(result, evaluate.canary_lines(result))


def estimate(
    model: Model, votes: VotesLike, labels: LabelsGiven | None = None, *, of: str = "system", level: float = LEVEL
) -> pd.DataFrame:
    """Return the share of consistent items with its interval, a row a method, the best first.

    Parameters
    ----------
    model, votes, labels
        As in :func:`adapt`; ``model.believing("60-80%")`` joins what you believe of the share.
    of, level
        As in :func:`deep.model.estimate_share`.

    Examples
    --------
    >>> import deep
    >>> from deep.datasets import simulate_votes
    >>> votes = simulate_votes(0)
    >>> mine = votes.rows(votes.datasets == "aggrefact-xsum")
    >>> model = deep.fit(votes.rows(votes.datasets != "aggrefact-xsum"))
    >>> list(deep.estimate(model, mine, np.where(np.arange(558) < 50, mine.labels, -1))["method"])[:2]
    ['corrected model', 'prediction-powered']
    """
    result = evaluate.share_report(model, _as_target(model, votes, labels), of=of, level=level)
    return pd.DataFrame(cast("list[dict[str, object]]", result["shares"]))


def _as_target(model: Model, votes: VotesLike, labels: LabelsGiven | None) -> evaluate.Target:
    """Return votes as one dataset with these labels and no others."""
    result = as_vote_matrix(model, votes)
    if len(result.dataset_names) > 1:
        raise InputError(
            f"`votes` must be of one dataset. Got {', '.join(result.dataset_names)}. Give the rows of one."
        )
    bare = replace(result, labels=np.full(len(result.labels), -1))
    return evaluate.Target(bare if labels is None else as_labels(labels, bare, votes))
