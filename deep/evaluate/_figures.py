"""Figures of a run, as PNG and SVG."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from deep._util.figures import AMBER, BLUE, GRAY, LIGHT, RED, new_figure, save_figures
from deep._util.names import file_name
from deep.calibration import plot_reliability
from deep.evaluate._baselines import CONTEXT
from deep.evaluate._tables import LooResult, Row, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


CAPTION = "SIMULATED votes: no LLM was called"

INK = "#1f2933"
"""Of words on a colored ground."""

COLORS = {"test": GRAY, "center": AMBER, "train": BLUE, "ours": RED}

ORIGINS = {"test": "optimised on test", "center": "centre of its range", "train": "optimised on the others"}


def write_figures(
    found: Sequence[LooResult], folder: Path, *, thresholds: dict[str, dict[str, float]], simulated: bool
) -> None:
    """Draw the figures of a run.

    Parameters
    ----------
    found : sequence of LooResult
    folder : Path
        Made here.
    thresholds : dict of dict
        The best threshold of each encoder on each dataset.
    simulated : bool
        Say so in every figure.
    """
    folder.mkdir()
    figures = {}
    for result in found:
        run = result.results
        name = file_name(run["test"])
        figures[f"balanced-accuracy-{name}"] = draw_balanced_accuracy(run)
        if run["recommended"]["ece"] is not None:
            figures[f"reliability-{name}"] = reliability(result)
    if thresholds:
        figures["thresholds"] = draw_optimal_thresholds(thresholds)
        figures["threshold-transfer"] = draw_threshold_transfer([result.results for result in found])
    save_figures(figures, folder, caption=CAPTION if simulated else "")


def reliability(result: LooResult) -> "Figure":
    """Draw observed against predicted shares before and after calibration, and split by predicted class."""
    known = result.scores.dropna(subset=["label"])
    chain = result.results["recommended"]
    return plot_reliability(
        known["label"].to_numpy(dtype=np.int8),
        before=known["p_uncalibrated"].to_numpy(),
        after=known["p_consistent"].to_numpy(),
        n_bins=result.results["settings"]["n_bins"],
        title=f"{result.results['test']}: {chain['ensembler']}, {chain['calibrator'] or 'no calibrator'}",
    )


def _figure(rows: int, *, width: float = 7.0) -> tuple["Figure", "Axes"]:
    figure = new_figure(width, 1.2 + 0.26 * rows)
    return figure, figure.subplots()


class IntervalRow(NamedTuple):
    """One line of a picture of intervals.

    Parameters
    ----------
    label : str
    value : float
    interval : sequence of float, optional
        Its bounds.
    color : str
        Of the palette of all figures.
    """

    label: str
    value: float
    interval: Sequence[float] | None = None
    color: str = BLUE


def method_rows(run: Run) -> list[tuple[str, Row, str]]:
    """Return the label, the metrics and the kind of every method of one run: ensemblers, baselines, the choice.

    The ensemblers are uncalibrated, each at the size that the training data prefer.
    """
    rows = [(f"{row['ensembler']} ({row['n_prompts']})", row, "train") for row in _best_sizes(run)]
    rows += [(row["name"], row, "test") for row in run["baselines"] if row["kind"] in ("majority", "prompt")]
    rows += [
        (f"{row['name']} (encoder)", row, "center") for row in run["baselines"] if row["threshold_from"] == "train"
    ]
    rows += [(f"best on training: {r['name']}", r, "test") for r in run["baselines"] if r["kind"] == "best_prompt"]
    rows += [(f"{row['name']}, with context", row, "test") for row in run["baselines"] if row["kind"] == CONTEXT]
    return [*rows, ("recommended", run["recommended"], "ours")]


def draw_balanced_accuracy(run: Run) -> "Figure":
    """Draw every method of one run with its 95 % interval."""
    known = [
        IntervalRow(label, row["balanced_accuracy"], row["balanced_accuracy_ci"], COLORS[kind])
        for label, row, kind in method_rows(run)
        if row["balanced_accuracy"] is not None
    ]
    title = f"{run['test']} held out, n = {run['n_test']}"
    return draw_intervals(known, xlabel="balanced accuracy, 95 % interval", title=title)


def draw_intervals(rows: Sequence[IntervalRow], *, xlabel: str, title: str = "", at: float = 0.5) -> "Figure":
    """Draw values with their intervals, one a line, beside a line at `at`.

    Examples
    --------
    >>> from deep.evaluate import IntervalRow, draw_intervals
    >>> figure = draw_intervals([IntervalRow("majority", 0.7, [0.6, 0.8])], xlabel="balanced accuracy")
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['majority']
    """
    figure, axes = _figure(len(rows))
    for height, row in enumerate(rows):
        low, high = row.interval or [row.value] * 2
        axes.plot([low, high], [height, height], color=row.color, linewidth=1.5)
        axes.plot(row.value, height, "o", color=row.color, markersize=5)
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8)
    axes.axvline(at, color=GRAY, linewidth=0.8)
    axes.set(xlabel=xlabel, title=title)
    axes.margins(y=0.02)
    return figure


def draw_error_correlation(names: Sequence[str], correlation: npt.ArrayLike) -> "Figure":
    """Draw how the errors of judges go together: red where they err on the same items, blue where on others.

    Parameters
    ----------
    names : sequence of str, length n_voters
    correlation : array-like of shape (n_voters, n_voters)
        See :func:`deep.features.error_correlation`.

    Examples
    --------
    >>> from deep.evaluate import draw_error_correlation
    >>> figure = draw_error_correlation(["a", "b"], [[1.0, 0.3], [0.3, 1.0]])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['1.0', '0.3', '0.3', '1.0']
    """
    from matplotlib.colors import LinearSegmentedColormap

    values = np.asarray(correlation, dtype=np.float64)
    shown = np.round(values, 1) + 0.0  # no -0.0
    k = len(values)
    side = 2.0 + 0.3 * k
    figure = new_figure(side, side)
    axes = figure.subplots()
    colors = LinearSegmentedColormap.from_list("errors", [LIGHT[BLUE], "#f4f4f2", LIGHT[RED]])
    axes.imshow(values, cmap=colors, vmin=-1, vmax=1, interpolation="none")
    axes.set_xticks(range(k), names, fontsize=7, rotation=90)
    axes.set_yticks(range(k), names, fontsize=7)
    for row, column in np.ndindex(k, k):
        axes.text(
            column,
            row,
            f"{shown[row, column]:.1f}",
            ha="center",
            va="center",
            fontsize=6,
            color=INK,
        )
    return figure


def _best_sizes(run: Run) -> list[Row]:
    """Return each ensembler's uncalibrated row at the size that the training data prefer."""
    best: dict[tuple[str, str], Row] = {}
    for row in run["rows"]:
        key = row["recipe"], row["ensembler"]
        if row["calibrator"] is None and (key not in best or row["inner_log_loss"] < best[key]["inner_log_loss"]):
            best[key] = row
    return list(best.values())


def draw_optimal_thresholds(thresholds: dict[str, dict[str, float]]) -> "Figure":
    """Draw where each encoder's best threshold lies on each dataset: the paper's Figure 1."""
    figure, axes = _figure(len(thresholds))
    datasets = sorted({name for by_dataset in thresholds.values() for name in by_dataset})
    markers = "osD^v<>Pph*X"
    for i, dataset in enumerate(datasets):
        x = [by_dataset.get(dataset, np.nan) for by_dataset in thresholds.values()]
        axes.plot(x, range(len(thresholds)), markers[i % len(markers)], label=dataset, markersize=5, alpha=0.8)
    axes.set_yticks(range(len(thresholds)), list(thresholds), fontsize=8)
    axes.set(xlabel="threshold with the best balanced accuracy", title="The best threshold moves with the dataset")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
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
                axes.text(by_origin[origin] + 0.004, height, f"{loss:+.1f}", va="center", fontsize=6)
        axes.text(0.395, i * 4 + 1, name, ha="right", va="center", fontsize=8)
    axes.set_yticks([])
    axes.set(xlim=(0.4, 1.0), xlabel="balanced accuracy, mean over held-out datasets")
    axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 1.06), ncols=3, frameon=False)
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
