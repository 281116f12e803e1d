"""`deep loo --few`: few training datasets, every rival beside `fit` on the same draws, and labels of the new one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep import evaluate, model
from deep._util.checks import Floats, Labels
from deep._util.figures import save_figures
from deep._util.names import listed
from deep._util.odds import at_prior, expit, logit
from deep.calibration import DEFAULT_BINS, balanced_accuracy, expected_calibration_error, log_loss
from deep.datasets import ScoreTable
from deep.ensembles import BernoulliNB, DawidSkene, LabelModel, LogisticRegression, WeightedMajorityVoting
from deep.evaluate import DatasetVerdict, HoldOut, IntervalRow, Row, draw_intervals, hold_out, in_percent
from deep.exceptions import InputError
from deep.experiments.loo._few_labels import few_labels, labeled_lines, summarize_labeled
from deep.experiments.loo._rivals import TestCells
from deep.records import VoteMatrix

CONSTANT = "training prior"
"""The mean prior of the training datasets for every row, which decides nothing."""

PAPER_ENSEMBLERS = ("GradientBoosting", "LogisticRegression", "RandomForest")
PAPER_SIZES = (3, 5, 9)

RivalScores = tuple[Floats, npt.NDArray[np.bool_]]
"""P(consistent) and the decision of each held-out row."""


def rivals(split: HoldOut, scores: Floats | None, random_state: int) -> Iterator[tuple[str, RivalScores]]:
    """Yield each rival; those that weigh both classes alike get the mean prior of the training datasets."""
    train, test = split.train, split.test.votes
    prior, w = _mean_prior(train), evaluate.row_weights(train)
    rows = model.LabeledRows.of(train)

    def at_mean(uniform: Floats) -> RivalScores:
        return at_prior(uniform, prior), uniform >= 0.5

    yield CONSTANT, (np.full(len(test), prior), np.ones(len(test), dtype=bool))
    yield "best judge", at_mean(expit(model.fit_best_judge(rows).log_odds(test)))
    # A majority decides by itself; labels only give it a probability.
    ones = (test == 1).sum(axis=1) - (test == 0).sum(axis=1)
    yield "majority", (at_prior(expit(model.fit_majority(rows).log_odds(test)), prior), ones >= 0)
    for name, ensembler in (
        ("weighted majority", WeightedMajorityVoting()),
        ("naive Bayes", BernoulliNB()),
        ("ridge", LogisticRegression()),
    ):
        yield name, at_mean(ensembler.fit(train.votes, train.labels, sample_weight=w).predict_proba(test)[:, 1])
    yield "Dawid-Skene on the target", _as_given(DawidSkene().fit(test).predict_proba(test)[:, 1])
    if test.shape[1] >= LabelModel.min_voters:
        yield "LabelModel", at_mean(LabelModel().fit(train.votes, sample_weight=w).predict_proba(test)[:, 1])
    yield "the paper's recipe", _as_given(paper_p(split, random_state))
    context = judge_in_context(split, scores, random_state=random_state)
    if context is not None:
        yield "best judge, its context", _scored(context)
        yield "Stack", _scored(fit_and_score(split, scores, ensembler=model.STACK, random_state=random_state)[1])


def _scored(found: model.Scores) -> RivalScores:
    return found.p_consistent, found.decisions


def _as_given(p: Floats) -> RivalScores:
    return p, p >= 0.5


def fit_and_score(
    split: HoldOut, scores: Floats | None, *, random_state: int, ensembler: str | None = None
) -> tuple[model.Model, model.Scores]:
    """Return the fit on the training datasets and its scores of the held-out one.

    Parameters
    ----------
    split : HoldOut
    scores : ndarray of float, shape (n_examples, n_scorers), or None
        Of all rows; a fit that cannot use them goes without.
    random_state : int
    ensembler : str, optional
        As in :func:`deep.model.fit`.
    """
    fitted = model.fit(
        split.train, scores=_at(scores, split.train_rows), ensembler=ensembler, random_state=random_state
    )
    held = _at(scores, split.test_rows) if fitted.score_names else None
    return fitted, fitted.scores_of(split.test, scores=held)


def judge_in_context(split: HoldOut, scores: Floats | None, *, random_state: int) -> model.Scores | None:
    """Return the scores by one judge (its score where there are scores) and its mean over the dataset.

    None where the training datasets are too few to learn what that mean tells.
    """
    groups = model.training_groups(split.train)
    if len(np.unique(groups)) < model.MIN_DATASETS:
        return None
    stack = model.Stack(["best-judge" if scores is None else "best-score"], random_state=random_state)
    stack.fit(split.train.votes, split.train.labels, groups=groups, scores=_at(scores, split.train_rows))
    return stack.score(split.test.votes, scores=_at(scores, split.test_rows))


def _at(scores: Floats | None, rows: npt.NDArray[np.intp]) -> Floats | None:
    return None if scores is None else scores[rows]


def paper_p(split: HoldOut, random_state: int) -> Floats:
    """Return P of each held-out row by the paper's recipe."""
    best = model.recommend(paper_chains(split, PAPER_ENSEMBLERS, PAPER_SIZES, random_state), "accuracy")
    return best.p[TestCells.from_votes(split.test).row_pattern]


def paper_chains(
    split: HoldOut, ensemblers: Sequence[str], sizes: Sequence[int | str], random_state: int
) -> list[model.Candidate]:
    """Return the chains of the paper's recipe, each with Platt."""
    training = model.training_set(split.train, model.RECIPES["paper"], random_state=random_state)
    tasks = model.chain_tasks(
        training,
        model.RECIPES["paper"],
        sizes=sizes,
        ensemblers=ensemblers,
        calibrators=["platt"],
        random_state=random_state,
    )
    return model.search(tasks, TestCells.from_votes(split.test).patterns)


def _mean_prior(train: VoteMatrix) -> float:
    """Return the mean of the log-odds of the training priors, as a share."""
    shares = [float(train.labels[train.datasets == name].mean()) for name in train.dataset_names]
    return float(expit(logit(shares, clip=0.01).mean()))


ALL = "all"

DATASET_DRAWS = 20
"""Draws of training datasets at each number of them."""

LABEL_DRAWS = 50
"""Draws of labels at each number of them."""


METRICS = ("balanced_accuracy", "ece", "log_loss")

DEEP = "deep"
"""The choice of `fit`."""


@dataclass(frozen=True, eq=False)
class StudyPanel:
    """One table of labeled votes, and the scores beside it.

    Parameters
    ----------
    name : str
    votes : VoteMatrix
    scores : ScoreTable, optional
    """

    name: str
    votes: VoteMatrix
    scores: ScoreTable | None = None


@dataclass(frozen=True)
class Draw:
    """One held-out dataset, and those that are trained on.

    Parameters
    ----------
    panel : int
    k : int or 'all'
    target : str
    others : tuple of str
    """

    panel: int
    k: int | str
    target: str
    others: tuple[str, ...]


def draws_of(panels: Sequence[StudyPanel], sizes: Sequence[int | str], n_draws: int, random_state: int) -> list[Draw]:
    """Return the draws: targets in turn, each with as many others at random; of 'all' each target once.

    Raises
    ------
    InputError
        No panel has so many datasets.
    """
    found = []
    for position, panel in enumerate(panels):
        names = panel.votes.dataset_names
        for k in sizes:
            rng = np.random.default_rng([random_state, position])
            n = len(names) - 1 if k == ALL else int(k)
            if n > len(names) - 1:
                continue
            for i in range(len(names) if k == ALL else n_draws):
                target = names[i % len(names)]
                others = [name for name in names if name != target]
                chosen = tuple(sorted(others[j] for j in rng.permutation(len(others))[:n]))
                found.append(Draw(position, k, target, chosen))
    if not found:
        most = max(len(panel.votes.dataset_names) for panel in panels) - 1
        if most < 1:
            raise InputError("`votes` must hold a table of two datasets or more, one to test on. Got one in each.")
        given = ", ".join(map(str, sizes))
        raise InputError(f"`few` must be 'all', or at most {most} with these panels. Got {given}.")
    return found


def transfer_over_panels(
    panels: Sequence[StudyPanel],
    sizes: Sequence[int | str],
    run: Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]],
    *,
    n_draws: int = DATASET_DRAWS,
    random_state: int = 0,
) -> Row:
    """Measure every rival on the same draws of training datasets, for each panel and number of them.

    Parameters
    ----------
    panels : sequence of StudyPanel
    sizes : sequence of int or 'all'
        Numbers of training datasets; a panel with too few is passed over.
    run : callable
        Like the built-in `map`.
    n_draws : int, default=20
        Draws of each panel and number; 'all' holds each dataset out once.
    random_state : int, default=0

    Returns
    -------
    dict
        JSON values: `cells`, one a panel and number of training datasets.
    """
    tasks = draws_of(panels, sizes, n_draws, random_state)
    rows = list(run(partial(_measure, panels, random_state), tasks))
    cells = []
    for key in dict.fromkeys((task.panel, task.k) for task in tasks):
        mine = [row for task, row in zip(tasks, rows, strict=True) if (task.panel, task.k) == key]
        cells.append({"panel": panels[key[0]].name, "training_datasets": key[1], **_summary(mine)})
    return {"cells": cells}


def _measure(panels: Sequence[StudyPanel], random_state: int, draw: Draw) -> Row:
    """Return the metrics of every rival on one draw."""
    panel = panels[draw.panel]
    kept = np.isin(panel.votes.datasets.astype(str), [draw.target, *draw.others])
    scores = None if panel.scores is None else panel.scores.scores[kept]
    split = hold_out(panel.votes.rows(kept), draw.target)
    y, found = split.test.labels, dict(rivals(split, scores, random_state))
    _, scored = fit_and_score(split, scores, random_state=random_state)
    found[DEEP] = scored.p_consistent, scored.decisions
    share = float(y.mean())
    return {
        "target": draw.target,
        "rivals": {name: _metrics(y, p, decided) for name, (p, decided) in found.items()},
        "prior": {"covered": bool(scored.prior.low <= share <= scored.prior.high), "estimate": scored.prior.estimate},
    }


def _metrics(y: Labels, p: Floats, decided: npt.NDArray[np.bool_]) -> dict[str, float]:
    held = np.clip(p, 1e-6, 1 - 1e-6)
    return {
        "balanced_accuracy": balanced_accuracy(y, decided),
        "ece": expected_calibration_error(y, held, n_bins=DEFAULT_BINS),
        "log_loss": log_loss(y, held),
    }


def _summary(rows: Sequence[Row]) -> Row:
    """Return the means over draws, and by how much deep differs from each rival with its standard error."""
    names = [name for name in rows[0]["rivals"] if all(name in row["rivals"] for row in rows)]
    targets = [row["target"] for row in rows]
    table = {name: {m: np.array([row["rivals"][name][m] for row in rows]) for m in METRICS} for name in names}
    by_rival = {}
    for name, by_metric in table.items():
        means = {metric: float(values.mean()) for metric, values in by_metric.items()}
        less = {metric: _paired(table[DEEP][metric] - values, targets) for metric, values in by_metric.items()}
        by_rival[name] = means | {"deep_less": less}
    return {
        "draws": len(rows),
        "targets": len(set(targets)),
        "rivals": by_rival,
        "prior_covered": float(np.mean([row["prior"]["covered"] for row in rows])),
    }


def _paired(differences: Floats, targets: Sequence[str]) -> list[float | None]:
    """Return the mean difference and its standard error over held-out datasets.

    Draws of one target are averaged first: they share its items. The differences between targets hold the noise of
    their documents already, so that nothing is added for it.
    """
    by_target = [differences[[t == name for t in targets]].mean() for name in dict.fromkeys(targets)]
    n = len(by_target)
    error = float(np.std(by_target, ddof=1) / np.sqrt(n)) if n > 1 else None
    return [float(differences.mean()), error]


def panels_text(results: Mapping[str, Any]) -> str:
    """Return the cells as Markdown, a table each."""
    return "\n\n".join("\n".join(_cell_lines(cell)) for cell in results["cells"]) + "\n"


def _cell_lines(cell: Row) -> Iterator[str]:
    yield (
        f"### {cell['panel']}, {cell['training_datasets']} training datasets "
        f"({cell['draws']} draws of {cell['targets']} held-out datasets)"
    )
    yield ""
    yield "| | balanced accuracy, % | ECE, % | log loss | deep less it: balanced accuracy | log loss |"
    yield "|---|---|---|---|---|---|"
    for name, row in cell["rivals"].items():
        (ba, ba_error), (loss, loss_error) = row["deep_less"]["balanced_accuracy"], row["deep_less"]["log_loss"]
        less = ["", ""] if name == DEEP else [_shown(100, ba, ba_error, ".1f"), _shown(1, loss, loss_error, ".3f")]
        means = f"{100 * row['balanced_accuracy']:.1f} | {100 * row['ece']:.1f} | {row['log_loss']:.3f}"
        yield f"| {f'**{name}**' if name == DEEP else name} | {means} | {less[0]} | {less[1]} |"
    yield ""
    yield f"The 90 % interval of deep's prior covered in {100 * cell['prior_covered']:.0f} % of draws."


def _shown(factor: float, mean: float, error: float | None, form: str) -> str:
    return f"{factor * mean:+{form}}" + ("" if error is None else f" ± {factor * error:{form}}")


def few_study(
    panel: StudyPanel,
    sizes: Sequence[int | str],
    run: Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]],
    *,
    n_bins: int = DEFAULT_BINS,
    random_state: int = 0,
) -> Row:
    """Return the study of few training datasets, and that of random labels of each held-out dataset.

    Parameters
    ----------
    panel : StudyPanel
        All rows labeled, both classes in every dataset.
    sizes : sequence of int or 'all'
        Numbers of training datasets.
    run : callable
        Like the built-in `map`.
    n_bins, random_state : int
    """
    few = transfer_over_panels([panel], sizes, run, n_draws=DATASET_DRAWS, random_state=random_state)
    labels = list(run(partial(_labels_of, panel, n_bins, random_state), panel.votes.dataset_names))
    return {**few, "labels": {"targets": labels, "summary": summarize_labeled(labels)}}


def _labels_of(panel: StudyPanel, n_bins: int, random_state: int, test: str) -> Row:
    split = hold_out(panel.votes, test)
    soft = None if panel.scores is None else panel.scores.scores
    _, found = fit_and_score(split, soft, random_state=random_state)
    options = {"n_draws": LABEL_DRAWS, "n_bins": n_bins, "random_state": random_state}
    return {
        "dataset": test,
        **few_labels(split.test.labels, found.p_consistent, found.prior, found.misfit, **options),
    }


def few_verdict(found: Row) -> DatasetVerdict:
    """Return the answer of the study: deep beside its rivals, and what labels of the new dataset bring."""
    told = []
    for cell in found["cells"]:
        losses = {name: row["log_loss"] for name, row in cell["rivals"].items() if name != DEEP}
        own, best = cell["rivals"][DEEP]["log_loss"], min(losses, key=losses.__getitem__)
        below = sum(own < loss for loss in losses.values())
        told.append(
            f"Trained on {cell['training_datasets']} of the datasets, deep has a log loss of {own:.3f}, below that of "
            f"{below} of {len(losses)} rivals; the best, {best}, has {losses[best]:.3f}."
        )
    errors = [f"{in_percent(value)} after {n}" for n, value, *_ in _errors(found)] or ["what so few items cannot tell"]
    trust = f"With labels of the new dataset P is off by {', '.join(errors)} (ECE on the rest, in percent)."
    says = f"{len(found['labels']['targets'])} datasets, each held out in turn.", " ".join(told), trust
    return DatasetVerdict(*says, "label 20 claims of a new dataset before you trust P there", picture=FEW_DATASETS)


def _errors(found: Row) -> Iterator[tuple[str, float, float, float]]:
    """Yield the mean ECE after so many labels, with the least and the most of a dataset."""
    for n in found["labels"]["targets"][0]["few_labels"]:
        values = [target["few_labels"][n] for target in found["labels"]["targets"]]
        if known := [value for value in values if value is not None]:
            yield n, float(np.mean(known)), min(known), max(known)


FEW_DATASETS, FEW_LABELS = "few-datasets", "few-labels"


def write_few(found: Row, folder: Path) -> None:
    """Write the pictures of the study with their numbers: deep less each rival, and ECE by the number of labels."""
    labels = [IntervalRow(f"{n} labels", ece, [least, most]) for n, ece, least, most in _errors(found)]
    for name, rows, xlabel in (
        (FEW_DATASETS, list(_less(found)), "log loss of deep less the rival's (90 %), by training datasets"),
        (FEW_LABELS, labels, "ECE on the rest: mean, least and most of a dataset"),
    ):
        if rows:
            save_figures({name: draw_intervals(rows[::-1], xlabel=xlabel, at=0)}, folder, phone=True)
            numbers = [{"row": row.label, "value": row.value, "interval": row.interval} for row in rows]
            pd.DataFrame(numbers).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def _less(found: Row) -> Iterator[IntervalRow]:
    for cell in found["cells"]:
        for name, row in cell["rivals"].items():
            mean, error = row["deep_less"]["log_loss"]
            if name != DEEP:
                reach = None if error is None else [mean - 1.645 * error, mean + 1.645 * error]
                yield IntervalRow(f"{name}, {cell['training_datasets']}", mean, reach)


def few_lines(found: Row) -> list[str]:
    """Return the tables of the study as lines of Markdown."""
    labels = found["labels"]
    return [*panels_text(found).splitlines(), "", *labeled_lines(labels["targets"], labels["summary"]), ""]


def check_sizes(words: Sequence[str]) -> list[int | str]:
    """Return numbers of training datasets, or 'all', from words.

    Examples
    --------
    >>> check_sizes(["1", "3", "all"])
    [1, 3, 'all']
    """
    wrong = [word for word in words if word != ALL and not (word.isdecimal() and int(word) > 0)]
    if wrong:
        raise InputError(f"`few` must be numbers of at least 1, or 'all'. Got {wrong[0]!r}.")
    return [word if word == ALL else int(word) for word in words]


def measurable(votes: VoteMatrix) -> tuple[VoteMatrix, list[str]]:
    """Return the datasets with both classes, and the names of the others: nothing is learned or measured on them."""
    unlabeled = (votes.labels < 0).nonzero()[0]
    if len(unlabeled):
        row = unlabeled[0]
        raise InputError(
            f"`label` must be 0 or 1 in every row. Got none for item {votes.example_ids[row]!r} of dataset "
            f"{votes.datasets[row]!r}. Label it or leave it out."
        )
    kept, left = evaluate.rows_of_both_classes(votes, np.ones(len(votes.labels), dtype=bool))
    if left and len(set(votes.datasets[kept])) < 2:
        raise InputError(
            "`label` must hold both 0 and 1 in at least two datasets, one to test on and one to train on. "
            f"Got all 0 or all 1 in {listed(left, 5)}."
        )
    return (votes.rows(kept) if left else votes), left
