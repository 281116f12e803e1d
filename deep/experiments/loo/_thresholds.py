"""Thresholds of encoders: the best ones, what they lose elsewhere, and why they move."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from deep._util.checks import Floats, Labels, Mask
from deep._util.figures import BLUE, GRAY, new_figure
from deep.datasets import ScoreTable, read_examples
from deep.evaluate import COLORS, HoldOut, Run, row_weights
from deep.experiments.loo._rivals import Baseline
from deep.model import Weighting
from deep.records import VoteMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def best_threshold(scores: Floats, y: Labels, w: Floats, *, share: float = 0.5) -> float:
    """Return the threshold t for which ``score >= t`` has the best weighted balanced accuracy.

    Parameters
    ----------
    scores : ndarray of float, shape (n_examples,)
        NaN where there is no score; such rows are left out.
    y, w : ndarray, shape (n_examples,)
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
    known = ~np.isnan(scores)
    scores, y, w = scores[known], y[known], w[known]
    if len(np.unique(y)) < 2:
        return float("nan")
    values, position = np.unique(scores, return_inverse=True)
    rates = [np.bincount(position[y == c], w[y == c], len(values)) / w[y == c].sum() for c in (0, 1)]
    # gain[i]: accuracy (up to a constant) of calling everything from values[i] on consistent.
    gain = np.append(np.cumsum((2 * share * rates[1] - 2 * (1 - share) * rates[0])[::-1])[::-1], 0.0)
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


def encoder_baselines(
    split: HoldOut, scores: ScoreTable | None, weighting: Weighting = "dataset-class"
) -> list[Baseline]:
    """Return every encoder with its threshold from the test set, the centre of its range and the training sets.

    The range is the one that `scores` knows, else that of the training scores; `weighting` says what weighs the same
    where a threshold is learned on the training sets.
    """
    if scores is None:
        return []
    weights = row_weights(split.train, weighting)
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


MOVED_BY = ("source", "length", "balance")
"""What may move a threshold."""

CHANCE = ", chance"
"""Behind the name of what may move a threshold: how far as many items drawn at random move it."""

SHARES = (0.25, 0.5, 0.75)
LENGTHS = ("short", "middle", "long")


def source_lengths(votes: VoteMatrix, texts: str) -> Floats:
    """Return the words of each item's source, as its file of examples has it; NaN where it has no such item."""
    known = {(one.dataset, one.example_id): len(one.source.split()) for one in read_examples(texts)}
    items = zip(votes.datasets.astype(str), votes.example_ids.astype(str), strict=True)
    return np.array([known.get(item, np.nan) for item in items], dtype=float)


def threshold_moves(
    votes: VoteMatrix, scores: ScoreTable, lengths: Floats | None = None, random_state: int = 0
) -> pd.DataFrame:
    """Return how each encoder's best threshold moves with one thing while the others are held.

    Parameters
    ----------
    votes : VoteMatrix
        Of which labels and datasets count.
    scores : ScoreTable
        Aligned with the rows of `votes`.
    lengths : ndarray of float, shape (n_examples,), optional
        Words of the sources.
    random_state : int, default=0
        Of the thirds that chance draws.

    Returns
    -------
    DataFrame
        ``encoder, moved_by, part, threshold``: the threshold as a share of the scorer's range. 'source': of one dataset
        at a time, for the best balanced accuracy. 'length': of the third of each dataset with the shortest, middle and
        longest sources, all datasets and classes weighing the same. 'balance': of all, for the best accuracy where 25,
        50 or 75 % are consistent. 'source, chance' and 'length, chance': of as many items, drawn at random.
    """
    labeled, rng = votes.labels >= 0, np.random.default_rng(random_state)
    y, names, mixed = votes.labels, votes.datasets, votes.datasets.copy()
    mixed[labeled] = rng.permutation(names[labeled])
    parts: list[tuple[str, str, Mask, float]] = [
        *(("source", name, labeled & (names == name), 0.5) for name in votes.dataset_names),
        *(("source" + CHANCE, name, labeled & (mixed == name), 0.5) for name in votes.dataset_names),
        *(("balance", f"{share:.0%}", labeled, share) for share in SHARES),
    ]
    if lengths is not None:
        drawn = np.where(np.isnan(lengths), np.nan, rng.random(len(y)))
        parts += [*_thirds("length", lengths, labeled, names), *_thirds("length" + CHANCE, drawn, labeled, names)]
    rows = []
    for why, part, kept, share in parts:
        weights = row_weights(votes.rows(kept))
        for name, column, (low, high) in _in_range(scores):
            at = best_threshold(column[kept], y[kept], weights, share=share)
            rows.append((name, why, part, (at - low) / ((high - low) or 1.0)))
    return pd.DataFrame(rows, columns=["encoder", "moved_by", "part", "threshold"]).dropna(ignore_index=True)


def _in_range(scores: ScoreTable) -> Iterator[tuple[str, Floats, tuple[float, float]]]:
    for name, column in zip(scores.score_names, scores.scores.T, strict=True):
        if not np.isnan(column).all():
            yield name, column, scores.ranges.get(name) or (float(np.nanmin(column)), float(np.nanmax(column)))


def _thirds(
    why: str, values: Floats, labeled: Mask, names: "np.typing.NDArray[np.object_]"
) -> Iterator[tuple[str, str, Mask, float]]:
    """Yield the rows of the lower, middle and upper third of each dataset by some values."""
    known = labeled & ~np.isnan(values)
    third = np.full(len(values), -1)
    for name in dict.fromkeys(names[known]):
        rows = np.flatnonzero(known & (names == name))
        third[rows[np.argsort(values[rows], kind="stable")]] = np.arange(len(rows)) * 3 // len(rows)
    yield from ((why, part, third == i, 0.5) for i, part in enumerate(LENGTHS))


def draw_threshold_moves(moves: pd.DataFrame) -> "Figure":
    """Draw why thresholds move: a panel for each thing that may move them, and below in gray what chance does."""
    reasons = [why for why in MOVED_BY if (moves["moved_by"] == why).any()]
    encoders = list(dict.fromkeys(moves["encoder"]))
    figure = new_figure(2.2 + 2.6 * len(reasons), 1.6 + 0.4 * len(encoders))
    panels = figure.subplots(1, len(reasons), sharey=True, sharex=True, squeeze=False)[0]
    for axes, why in zip(panels, reasons, strict=True):
        moved = {name: moves[moves["moved_by"] == name] for name in (why, why + CHANCE)}
        for some, color, below in zip(moved.values(), (BLUE, GRAY), (0.0, 0.3), strict=True):
            for height, encoder in enumerate(encoders):
                at = some.loc[some["encoder"] == encoder, "threshold"].to_numpy()
                axes.plot(at, np.full(len(at), height - below), "|-", color=color, markersize=8, lw=1)
        means = [f"{mean_move(some):.2f}{' by chance' * (name != why)}" for name, some in moved.items() if len(some)]
        axes.set_title(f"{why}: {'; '.join(means)}", fontsize=10)
        axes.set_xlabel("threshold, share of the range", fontsize=9)
    panels[0].set_yticks(range(len(encoders)), encoders, fontsize=9)
    figure.suptitle("How far the best threshold moves, mean over encoders", fontsize=10)
    figure.subplots_adjust(wspace=0.08, top=1 - 0.65 / figure.get_figheight())
    return figure


def mean_move(some: pd.DataFrame) -> float:
    """Return the distance of the largest from the least threshold, mean over encoders."""
    by = some.groupby("encoder")["threshold"]
    return float((by.max() - by.min()).mean())


def threshold_transfer(runs: Sequence[Run]) -> pd.DataFrame:
    """Figure 2: balanced accuracy of each encoder by the origin of its threshold, and the loss against the test set."""
    rows = [
        {
            "dataset": run["test"],
            "encoder": row["name"],
            "from": row["threshold_from"],
            "value": row["balanced_accuracy"],
        }
        for run in runs
        for row in run["baselines"]
        if row["kind"] == "encoder"
    ]
    if not rows:
        return pd.DataFrame()
    wide = pd.DataFrame(rows).pivot(index=["dataset", "encoder"], columns="from", values="value")
    wide = wide.reindex(columns=["test", "center", "train"]).astype(float)
    losses = {f"loss_{origin}": wide["test"] - wide[origin] for origin in ("center", "train")}
    return wide.assign(**losses).rename_axis(columns=None).reset_index()


ORIGINS = {"test": "optimised on test", "center": "centre of its range", "train": "optimised on the others"}


def _figure(rows: int) -> tuple["Figure", "Axes"]:
    figure = new_figure(7.0, 1.2 + 0.26 * rows)
    return figure, figure.subplots()


def draw_optimal_thresholds(thresholds: dict[str, dict[str, float]]) -> "Figure":
    """Draw where each encoder's best threshold lies on each dataset: the paper's Figure 1."""
    figure, axes = _figure(len(thresholds))
    datasets = sorted({name for by_dataset in thresholds.values() for name in by_dataset})
    markers = "osD^v<>Pph*X"
    for i, dataset in enumerate(datasets):
        x = [by_dataset.get(dataset, np.nan) for by_dataset in thresholds.values()]
        axes.plot(x, range(len(thresholds)), markers[i % len(markers)], label=dataset, markersize=5, alpha=0.8)
    axes.set_yticks(range(len(thresholds)), list(thresholds), fontsize=9)
    axes.set(xlabel="threshold with the best balanced accuracy", title="The best threshold moves with the dataset")
    axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def draw_threshold_transfer(runs: Sequence[Run]) -> "Figure":
    """Draw the loss of encoders whose threshold is not set on the test labels: the paper's Figure 2."""
    means = _transfer_means(runs)
    figure, axes = _figure(3 * len(means))
    for i, (name, by_origin) in enumerate(means.items()):
        for j, origin in enumerate(ORIGINS):
            height = i * 4 + j
            axes.barh(height, by_origin[origin], color=COLORS[origin], label=ORIGINS[origin] if i == 0 else None)
            loss = 100 * (by_origin[origin] - by_origin["test"])
            if origin != "test":
                axes.text(by_origin[origin] + 0.004, height, f"{loss:+.1f}", va="center", fontsize=9)
        axes.text(0.395, i * 4 + 1, name, ha="right", va="center", fontsize=9)
    axes.set_yticks([])
    axes.set(xlim=(0.4, 1.0), xlabel="balanced accuracy, mean over held-out datasets")
    axes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, 1.06), ncols=3, frameon=False)
    return figure


def _transfer_means(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Return mean balanced accuracy by encoder and origin of the threshold, where all three are known."""
    found: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        for row in run["baselines"]:
            if row["kind"] == "encoder" and row["balanced_accuracy"] is not None:
                by_origin = found.setdefault(row["name"], {origin: [] for origin in ORIGINS})
                by_origin[row["threshold_from"]].append(row["balanced_accuracy"])
    complete = {name: by for name, by in found.items() if all(by[origin] for origin in ORIGINS)}
    return {name: {origin: float(np.mean(by[origin])) for origin in ORIGINS} for name, by in complete.items()}


def encoder_figures(
    votes: VoteMatrix, scores: ScoreTable, runs: Sequence[Run], lengths: Floats | None = None
) -> tuple[dict[str, "Figure"], pd.DataFrame]:
    """Return the paper's Figures 1 and 2 and why thresholds move, by name, and the rows of the last one."""
    moves = threshold_moves(votes, scores, lengths)
    return {
        "thresholds": draw_optimal_thresholds(optimal_thresholds(votes, scores)),
        "threshold-transfer": draw_threshold_transfer(runs),
        "threshold-moves": draw_threshold_moves(moves),
    }, moves
