"""`deep loo --few`: few training datasets, the rivals beside `fit` on the same draws, and few labels of the new one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep import evaluate, model
from deep._util.checks import Floats, Labels, Mask
from deep._util.figures import save_figures
from deep._util.names import listed
from deep._util.odds import DECISION_P, expit, logit, shift_prior
from deep.calibration import DEFAULT_BINS, balanced_accuracy, expected_calibration_error, log_loss
from deep.datasets import ScoreTable, join_scores
from deep.ensembles import BernoulliNB, DawidSkene, LabelModel, LogisticRegression, WeightedMajorityVoting
from deep.evaluate import (
    DatasetVerdict,
    HoldOut,
    IntervalRow,
    Row,
    draw_intervals,
    hold_out,
    in_percent,
    markdown,
    row_weights,
)
from deep.exceptions import InputError
from deep.experiments.loo import Baseline, TestCells, context_baseline, mean_of, score_held_out, with_scores
from deep.records import VoteMatrix

# The size that is all datasets but the one that is left out.
ALL_SIZES = "all"

# Draws of which training datasets there are, at each number of them; more draws take as much longer.
DATASET_DRAWS = 20

# Draws of which rows are labeled, at each number of labels.
LABEL_DRAWS = 50


# What is measured on the dataset that is left out.
METRICS = ("balanced_accuracy", "ece", "log_loss")

# The name, beside those of rivals, of what `fit` gives.
DEEP = "deep"


@dataclass(frozen=True, eq=False)
class StudyPanel:
    """One table of labeled votes, and the scores beside it.

    Parameters
    ----------
    name : str
        The panel as the tables of the study call it.
    votes : VoteMatrix
        Labeled, of several datasets.
    scores : ScoreTable, optional
        Aligned with the votes.
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
        Position among the panels.
    k : int or 'all'
        How many datasets are trained on; 'all': every other one of the panel.
    target, others : str, tuple of str
        The dataset held out, and those that are trained on.
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
    result = []
    for position, panel in enumerate(panels):
        names = panel.votes.dataset_names
        for k in sizes:
            rng = np.random.default_rng([random_state, position])
            n = len(names) - 1 if k == ALL_SIZES else int(k)
            if n > len(names) - 1:
                continue
            for i in range(len(names) if k == ALL_SIZES else n_draws):
                target = names[i % len(names)]
                others = [name for name in names if name != target]
                training = tuple(sorted(others[j] for j in rng.permutation(len(others))[:n]))
                result.append(Draw(position, k, target, training))
    if not result:
        most = max(len(panel.votes.dataset_names) for panel in panels) - 1
        if most < 1:
            raise InputError("`votes` must hold a table of two datasets or more, one to test on. Got one in each.")
        text = ", ".join(map(str, sizes))
        raise InputError(f"`few` must be 'all', or at most {most} with these panels. Got {text}.")
    return result


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
        Each with a label in every row, and two datasets at least.
    sizes : sequence of int or 'all'
        Numbers of training datasets; a panel with too few is passed over.
    run : callable
        Like the built-in `map`.
    n_draws : int, default=20
        Draws of each panel and number; 'all' holds each dataset out once.
    random_state : int, default=0
        Seed of the draws and of the fits.

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
    rows = np.isin(panel.votes.datasets.astype(str), [draw.target, *draw.others])
    split, scores = hold_out(panel.votes.rows(rows), draw.target), panel.scores
    if scores is not None:
        aligned = ("scores", "item_ids", "datasets", "labels")
        scores = replace(scores, **{name: getattr(scores, name)[rows] for name in aligned}, document_ids=None)
    _, scored = fit_and_score(split, scores, random_state=random_state)
    y = split.test.labels
    share = float(y.mean())
    metrics = {
        rival.name: transfer_metrics(y, cast("Floats", rival.p), rival.decisions)
        for rival in learned_rivals(split, scores, random_state)
    }
    return {
        "target": draw.target,
        "rivals": metrics | {DEEP: transfer_metrics(y, scored.p_consistent, scored.decisions)},
        "prior": {"covered": bool(scored.prior.low <= share <= scored.prior.high), "estimate": scored.prior.estimate},
    }


def transfer_metrics(y: Labels, p: Floats, decided: Mask) -> dict[str, float]:
    """Return balanced accuracy of the decisions, and ECE and log loss of P, held off 0 and 1."""
    probability = np.clip(p, 1e-6, 1 - 1e-6)
    return {
        "balanced_accuracy": balanced_accuracy(y, decided),
        "ece": expected_calibration_error(y, probability, n_bins=DEFAULT_BINS),
        "log_loss": log_loss(y, probability),
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
    """Yield the Markdown table of one panel and number of training datasets."""
    yield (
        f"### {cell['panel']}, {cell['training_datasets']} training datasets "
        f"({cell['draws']} draws of {cell['targets']} held-out datasets)"
    )
    yield ""
    yield "| | balanced accuracy, % | ECE, % | log loss | deep minus it: balanced accuracy | log loss |"
    yield "|---|---|---|---|---|---|"
    for name, row in cell["rivals"].items():
        (ba, ba_error), (loss, loss_error) = row["deep_less"]["balanced_accuracy"], row["deep_less"]["log_loss"]
        less = ["", ""] if name == DEEP else [_as_text(100, ba, ba_error, ".1f"), _as_text(1, loss, loss_error, ".3f")]
        means = f"{100 * row['balanced_accuracy']:.1f} | {100 * row['ece']:.1f} | {row['log_loss']:.3f}"
        yield f"| {f'**{name}**' if name == DEEP else name} | {means} | {less[0]} | {less[1]} |"
    yield ""
    yield f"The 90 % interval of deep's prior covered in {100 * cell['prior_covered']:.0f} % of draws."


def _as_text(factor: float, mean: float, error: float | None, form: str) -> str:
    return f"{factor * mean:+{form}}" + ("" if error is None else f" ± {factor * error:{form}}")


# Numbers of target labels given.
LABEL_COUNTS = (5, 10, 20, 50, 100)

# Label sets that the canary simulates.
NULL_DRAWS = 500


def few_labels(
    y: Labels,
    p: Floats,
    prior: model.PriorEstimate,
    misfit: model.Misfit,
    *,
    n_draws: int,
    n_bins: int,
    random_state: int,
) -> Row:
    """Return the effects of random labels on a dataset, by their number, as means over draws.

    Parameters
    ----------
    y : ndarray of int8, shape (n_examples,)
        The labels, all of them.
    p : ndarray of float, shape (n_examples,)
        P(consistent) at the estimated prior.
    prior : PriorEstimate
        Estimate of the share of consistent items in the dataset, before any label.
    misfit : Misfit
        How far P was off on the training datasets.
    n_draws, n_bins, random_state : int
        Draws for each number of labels, bins of the ECE, and the seed of the draws.

    Returns
    -------
    dict
        `few_labels`: calibration error on the unlabeled rest; `labeled`: balanced accuracy there at the corrected
        threshold, the share of draws that the canary flags, and estimates of the share of consistent items. None
        where more than half of the dataset would be labeled.
    """
    rng = np.random.default_rng(random_state)
    share = float(y.mean())

    def draw(labeled: npt.NDArray[np.intp], seed: int) -> dict[str, float]:
        labels = np.full(len(y), -1, dtype=np.int8)
        labels[labeled] = y[labeled]
        error, reached = errors_after(y, p, labeled, misfit, n_bins)
        tested = model.canary(p, labels, misfit=misfit, n_draws=NULL_DRAWS, random_state=seed)
        row = {"ece": error, "balanced_accuracy": reached, "flagged": float(tested.p_value <= model.SIGNIFICANCE)}
        for estimate in model.estimate_share(p, labels, prior=prior, misfit=misfit):
            row[f"{estimate.method}: square error"] = (estimate.estimate - share) ** 2
            row[f"{estimate.method}: covered"] = float(estimate.low <= share <= estimate.high)
            row[f"{estimate.method}: width"] = estimate.high - estimate.low
        return row

    result: dict[str, Row | None] = dict.fromkeys(map(str, LABEL_COUNTS))
    for n in LABEL_COUNTS:
        if 2 * n <= len(y):
            draws = [draw(rng.permutation(len(y))[:n], seed) for seed in range(n_draws)]
            result[str(n)] = {name: mean_of(draws, name) for name in draws[0]}
    errors = {n: None if row is None else row.pop("ece") for n, row in result.items()}
    return {"few_labels": errors, "labeled": result}


def errors_after(
    y: Labels, p: Floats, labeled: npt.NDArray[np.intp], misfit: model.Misfit, n_bins: int
) -> tuple[float, float]:
    """Return calibration error and balanced accuracy on the rest, once labels have corrected P."""
    rest = np.ones(len(y), dtype=bool)
    rest[labeled] = False
    corrected = model.FewLabels(misfit).fit(p[labeled], y[labeled]).transform(p)
    error = expected_calibration_error(y[rest], corrected[rest], n_bins=n_bins)
    return error, balanced_accuracy(y[rest], corrected[rest] >= corrected.mean())


def summarize_labeled(targets: Sequence[Row]) -> dict[str, Row]:
    """Return means over held-out datasets by number of labels, of those that have so many."""
    result = {}
    for n in targets[0]["labeled"]:
        rows = [target["labeled"][n] for target in targets if target["labeled"][n] is not None]
        names = rows[0] if rows else {}
        result[n] = {"n_datasets": len(rows)} | {name: mean_of(rows, name) for name in names}
    return result


def labeled_lines(targets: Sequence[Row], summary: dict[str, Row]) -> list[str]:
    """Return the tables of balanced accuracy, canary and estimated shares, by number of labels."""
    rows = [{"held out": target["dataset"], **_reached(target["labeled"])} for target in targets]
    rows.append({"held out": "**mean**", **_reached(summary)})
    shares = [{"labels": n, **_shares(row)} for n, row in summary.items() if row["n_datasets"]]
    return [
        "### After labels: balanced accuracy, and draws flagged by the canary, in percent",
        "",
        *markdown(pd.DataFrame(rows).fillna("")),
        "",
        "### The share of consistent items from labels: root mean square error, coverage and width, in percent",
        "",
        *markdown(pd.DataFrame(shares)),
    ]


def _reached(labeled: Mapping[str, Row | None]) -> dict[str, str]:
    by_size = {n: row for n, row in labeled.items() if row and "flagged" in row}
    reached = {f"{n} labels": in_percent(row["balanced_accuracy"]) for n, row in by_size.items()}
    return reached | {f"flagged, {n}": in_percent(row["flagged"]) for n, row in by_size.items()}


def _shares(row: Row) -> dict[str, str]:
    methods = [name.split(":")[0] for name in row if name.endswith(": covered")]
    return {
        method: f"{in_percent(row[f'{method}: square error'] ** 0.5)}, {in_percent(row[f'{method}: covered'])}, "
        f"{in_percent(row[f'{method}: width'])}"
        for method in methods
    }


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
        Bins of the ECE after labels (default 8); the seed of draws and fits (default 0).
    """
    few = transfer_over_panels([panel], sizes, run, n_draws=DATASET_DRAWS, random_state=random_state)
    labels = list(run(partial(_labels_of, panel, n_bins, random_state), panel.votes.dataset_names))
    return {**few, "labels": {"targets": labels, "summary": summarize_labeled(labels)}}


def _labels_of(panel: StudyPanel, n_bins: int, random_state: int, test: str) -> Row:
    split = hold_out(panel.votes, test)
    _, result = fit_and_score(split, panel.scores, random_state=random_state)
    options = {"n_draws": LABEL_DRAWS, "n_bins": n_bins, "random_state": random_state}
    return {
        "dataset": test,
        **few_labels(split.test.labels, result.p_consistent, result.prior, result.misfit, **options),
    }


def few_verdict(found: Row) -> DatasetVerdict:
    """Return the answer of the study: deep beside its rivals, and what labels of the new dataset bring."""
    sentences = []
    for cell in found["cells"]:
        losses = {name: row["log_loss"] for name, row in cell["rivals"].items() if name != DEEP}
        own, best = cell["rivals"][DEEP]["log_loss"], min(losses, key=losses.__getitem__)
        below = sum(own < loss for loss in losses.values())
        sentences.append(
            f"Trained on {cell['training_datasets']} of the datasets, deep has a log loss of {own:.3f} and beats "
            f"{below} of {len(losses)} rivals. The best rival, {best}, has {losses[best]:.3f}."
        )
    errors = [f"{in_percent(value)} after {n}" for n, value, *_ in _errors(found)] or ["too few items to measure this"]
    trust = f"With labels of the new dataset, P is off by {', '.join(errors)} (ECE on the rest, in percent)."
    says = f"{len(found['labels']['targets'])} datasets, each held out in turn.", " ".join(sentences), trust
    return DatasetVerdict(*says, "label 20 claims of a new dataset before you rely on P there", picture=FEW_DATASETS)


def _errors(row: Row) -> Iterator[tuple[str, float, float, float]]:
    """Yield the mean ECE after so many labels, with the least and the most of a dataset."""
    for n in row["labels"]["targets"][0]["few_labels"]:
        values = [target["few_labels"][n] for target in row["labels"]["targets"]]
        if numbers := [value for value in values if value is not None]:
            yield n, float(np.mean(numbers)), min(numbers), max(numbers)


# The names of the two pictures of the study.
FEW_DATASETS, FEW_LABELS = "few-datasets", "few-labels"


def write_few(found: Row, folder: Path) -> None:
    """Write the pictures of the study with their numbers: deep less each rival, and ECE by the number of labels."""
    labels = [IntervalRow(f"{n} labels", ece, [least, most]) for n, ece, least, most in _errors(found)]
    for name, rows, xlabel in (
        (FEW_DATASETS, list(_less(found)), "log loss of deep minus the rival's (90 %), by number of training datasets"),
        (FEW_LABELS, labels, "ECE on the other items: mean, lowest and highest dataset"),
    ):
        if rows:
            save_figures({name: draw_intervals(rows[::-1], xlabel=xlabel, at=0)}, folder, phone=True)
            numbers = [{"row": row.label, "value": row.value, "interval": row.interval} for row in rows]
            pd.DataFrame(numbers).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def _less(results: Row) -> Iterator[IntervalRow]:
    for cell in results["cells"]:
        for name, row in cell["rivals"].items():
            mean, error = row["deep_less"]["log_loss"]
            if name != DEEP:
                reach = None if error is None else [mean - 1.645 * error, mean + 1.645 * error]
                yield IntervalRow(f"{name}, {cell['training_datasets']}", mean, reach)


def few_lines(row: Row) -> list[str]:
    """Return the tables of the study as lines of Markdown."""
    labels = row["labels"]
    return [*panels_text(row).splitlines(), "", *labeled_lines(labels["targets"], labels["summary"]), ""]


def few_panel(
    test: str, words: Sequence[str], votes: VoteMatrix, scores: ScoreTable | None
) -> tuple[StudyPanel, Sequence[int | str]]:
    """Return the panel of the study and its sizes, which are `words`, or 1, 2 and 3.

    Raises
    ------
    InputError
        Not all datasets are held out, or some size cannot be drawn.
    """
    if test != "all":
        raise InputError(f"`few` must be given with --test all. Got --test {test}.")
    sizes = check_sizes(words or ["1", "2", "3"])
    matrix, one_class = measurable(votes)
    panel = StudyPanel("votes", matrix, join_scores(matrix, scores) if one_class and scores else scores)
    draws_of([panel], sizes, 1, 0)  # before the run, which takes long
    return panel, sizes


def check_sizes(words: Sequence[str]) -> list[int | str]:
    """Return numbers of training datasets, or 'all', from words.

    Examples
    --------
    >>> check_sizes(["1", "3", "all"])
    [1, 3, 'all']
    """
    wrong = [word for word in words if word != ALL_SIZES and not (word.isdecimal() and int(word) > 0)]
    if wrong:
        raise InputError(f"`few` must be numbers of at least 1, or 'all'. Got {wrong[0]!r}.")
    return [word if word == ALL_SIZES else int(word) for word in words]


def measurable(votes: VoteMatrix) -> tuple[VoteMatrix, list[str]]:
    """Return the datasets with both classes, and the names of the others: nothing is learned or measured on them."""
    unlabeled = (votes.labels < 0).nonzero()[0]
    if len(unlabeled):
        row = unlabeled[0]
        raise InputError(
            f"`label` must be 0 or 1 in every row. Got none for item {votes.item_ids[row]!r} of dataset "
            f"{votes.datasets[row]!r}. Label it or leave it out."
        )
    mask, one_class = evaluate.rows_of_both_classes(votes, np.ones(len(votes.labels), dtype=bool))
    if one_class and len(set(votes.datasets[mask])) < 2:
        raise InputError(
            "`label` must hold both 0 and 1 in at least two datasets, one to test on and one to train on. "
            f"Got all 0 or all 1 in {listed(one_class, 5)}."
        )
    return (votes.rows(mask) if one_class else votes), one_class


# The mean prior of the training datasets for every row, which decides nothing.
CONSTANT_RIVAL = "training prior"


PAPER_ENSEMBLERS = ("GradientBoosting", "LogisticRegression", "RandomForest")


# Numbers of voters, as in the paper's tables.
PAPER_SIZES = (3, 5, 9)


def learned_rivals(split: HoldOut, scores: ScoreTable | None, random_state: int) -> Iterator[Baseline]:
    """Yield other ways to learn P, each with its P; those that weigh both classes alike get the mean training prior.

    Parameters
    ----------
    split : HoldOut
        The dataset held out, and the training rows.
    scores : ScoreTable or None
        Aligned with the whole vote matrix.
    random_state : int
        Seed of the paper's chains and of the stacks; the other rivals draw nothing by it.
    """
    train, test = split.train, split.test.votes
    shares = [float(train.labels[train.datasets == name].mean()) for name in train.dataset_names]
    # A mean of log-odds, from 1 to 99 %: a dataset of one class would else decide it alone.
    prior = float(expit(logit(shares, clip=0.01).mean()))
    rows, w = model.LabeledRows.of(train), row_weights(train)

    def at_mean(name: str, uniform: Floats) -> Baseline:
        return Baseline(name, "other", uniform >= DECISION_P, p=shift_prior(uniform, prior))

    def as_given(name: str, p: Floats) -> Baseline:
        return Baseline(name, "other", p >= DECISION_P, p=p)

    yield Baseline(CONSTANT_RIVAL, "other", np.ones(len(test), dtype=bool), p=np.full(len(test), prior))
    yield at_mean("best judge", expit(model.fit_best_judge(rows).log_odds(test)))
    # A majority decides by itself; labels only give it a probability.
    ones = (test == 1).sum(axis=1) - (test == 0).sum(axis=1)
    yield Baseline("majority", "other", ones >= 0, p=shift_prior(expit(model.fit_majority(rows).log_odds(test)), prior))
    for name, ensembler in (
        ("weighted majority", WeightedMajorityVoting()),
        ("naive Bayes", BernoulliNB()),
        ("ridge", LogisticRegression()),
    ):
        fitted = ensembler.fit(train.votes, train.labels, sample_weight=w)
        yield at_mean(name, fitted.predict_proba(test)[:, 1])
    yield as_given("Dawid-Skene on the target", DawidSkene().fit(test).predict_proba(test)[:, 1])
    if test.shape[1] >= LabelModel.min_voters:
        yield at_mean("LabelModel", LabelModel().fit(train.votes, sample_weight=w).predict_proba(test)[:, 1])
    best = model.recommend(paper_chains(split, PAPER_ENSEMBLERS, PAPER_SIZES, random_state), "accuracy")
    yield as_given("the paper's recipe", best.p[TestCells.from_votes(split.test).row_pattern])
    context = context_baseline(split, scores, groups=model.training_groups(train), random_state=random_state)
    if context is not None:
        yield replace(context, name="best judge, its context")
        stack = fit_and_score(split, scores, ensembler=model.STACK, random_state=random_state)[1]
        yield Baseline("Stack", "other", stack.decisions, p=stack.p_consistent)


def fit_and_score(
    split: HoldOut, scores: ScoreTable | None, *, random_state: int, ensembler: str | None = None
) -> tuple[model.Model, model.Scores]:
    """Return the fit on the training datasets and its scores of the held-out one.

    Parameters
    ----------
    split : HoldOut
        The dataset held out, and the training rows.
    scores : ScoreTable or None
        Aligned with the whole vote matrix; a fit that cannot use them goes without.
    random_state : int
        Seed of the fit.
    ensembler : str, optional
        As in :func:`deep.model.fit`.
    """
    fitted = model.fit(with_scores(split, scores)[0], ensembler=ensembler, random_state=random_state)
    return fitted, score_held_out(fitted, split, scores)


def paper_chains(
    split: HoldOut, ensemblers: Sequence[str], sizes: Sequence[int | str], random_state: int
) -> list[model.ChainCandidate]:
    """Return the chains of the paper's recipe, each with Platt."""
    recipe = model.RECIPES["paper"]
    training = model.training_set(split.train, recipe, random_state=random_state)
    tasks = model.chain_tasks(
        training, recipe, sizes=sizes, ensemblers=ensemblers, calibrators=["platt"], random_state=random_state
    )
    return model.search(tasks, TestCells.from_votes(split.test).patterns)
