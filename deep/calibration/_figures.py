"""The figure of reliability before and after calibration."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from deep._util.checks import Floats, Weights
from deep._util.figures import BLUE, RED, new_figure, plain_grid
from deep._util.figures import save_figure as save_figure
from deep.calibration._ece import (
    DistinctScores,
    LabeledScores,
    bin_edges,
    check_bins,
    checked_rows,
    collapse,
    floor_of,
    plain_ece,
)
from deep.calibration._names import DEFAULT_BINS
from deep.calibration._reliability import ReliabilityDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {"before": RED, "after": BLUE}

CLASSES = {"consistent": 1, "inconsistent": 0}


def plot_reliability(
    y_true: ArrayLike,
    before: ArrayLike,
    after: ArrayLike,
    *,
    sample_weight: Weights = None,
    n_bins: int = DEFAULT_BINS,
    title: str | None = None,
    path: str | Path | None = None,
) -> "Figure":
    """Draw reliability before and after calibration, of all items and split by predicted class.

    Parameters
    ----------
    y_true : array-like of shape (n_examples,)
        Labels 0/1.
    before, after : array-like of shape (n_examples,)
        P(consistent), in [0, 1], before and after calibration.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row occurs, a whole number; default 1 each.
    n_bins : int, default=8
        Equal-width bins over [0, 1] above, over [0.5, 1] below.
    title : str, optional
        Stands above the figure.
    path : str or Path, optional
        Where to save it, without suffix: `path`.png and `path`.svg.

    Returns
    -------
    matplotlib Figure
        Above: share consistent against mean P, in each bin with its 95 % interval and number of rows, and
        the calibration error beside what a perfect predictor would score. Below, as Figure 4 of the paper on
        DEEP [1]_: items predicted consistent (P >= 0.5), share of them predicted rightly against P; items
        predicted inconsistent, the same against 1 - P. It belongs to no pyplot state.

    Raises
    ------
    InputError
        A value is out of range, or lengths differ.

    References
    ----------
    .. [1] A. Chandler, D. Surve and H. Su, "Detecting errors through ensembling prompts (DEEP)", 2024.
       https://arxiv.org/abs/2406.13009

    Examples
    --------
    >>> from deep.calibration import plot_reliability
    >>> figure = plot_reliability([0, 1, 0, 1], [0.1, 0.1, 0.9, 0.9], [0.3, 0.3, 0.6, 0.6], title="LabelModel")
    >>> [panel.get_title() for panel in figure.axes[4::2]]
    ['Predicted consistent', 'Predicted inconsistent']
    """
    edges = bin_edges(check_bins(n_bins))
    columns = {"before": before, "after": after}
    rows = {name: checked_rows(y_true, column, sample_weight, scores=name) for name, column in columns.items()}
    figure = new_figure(9.0, 9.8)
    pairs = _pairs_of_axes(figure)
    for (name, (p, y, w)), pair in zip(rows.items(), pairs[:2], strict=True):
        _draw_all(pair, collapse(p, y, w), edges, name)
    for (name, label), pair in zip(CLASSES.items(), pairs[2:], strict=True):
        _draw_class(pair, rows, name, label, np.linspace(0.5, 1.0, n_bins + 1))
    figure.suptitle(title or "", y=0.985, fontsize=12, fontweight="bold")
    if path is not None:
        save_figure(figure, path)
    return figure


def _pairs_of_axes(figure: "Figure") -> "list[tuple[Axes, Axes]]":
    """Return four panels, each with a strip for bin counts beneath it.

    Places are fixed, see :func:`new_figure`.
    """
    grid = figure.add_gridspec(2, 2, left=0.075, right=0.98, top=0.915, bottom=0.065, hspace=0.24, wspace=0.2)
    pairs = []
    for cell in (grid[row, column] for row in range(2) for column in range(2)):
        inner = cell.subgridspec(2, 1, height_ratios=[4.0, 1.0], hspace=0.1)
        panel = figure.add_subplot(inner[0])
        panel.tick_params(labelbottom=False)
        pairs.append((panel, figure.add_subplot(inner[1], sharex=panel)))
    return pairs


def _draw_all(pair: "tuple[Axes, Axes]", scores: DistinctScores, edges: Floats, name: str) -> None:
    """Draw one set of probabilities over all items."""
    panel, strip = pair
    ece, floor = plain_ece(scores, len(edges) - 1), floor_of(scores, len(edges) - 1, n_draws=1000)
    display = ReliabilityDisplay._from_scores(scores, edges, name)
    display.plot(panel, color=COLORS[name])
    error = f"ECE {100 * ece:.1f} %   (perfect P: {100 * floor.mean:.1f} %, 95 % below {100 * floor.q95:.1f} %)"
    panel.set_title(f"{name.capitalize()} calibration\n{error}", fontsize=9.5)
    panel.set_xlabel("")
    _draw_counts(strip, [display], "mean P(consistent)")


def _draw_class(
    pair: "tuple[Axes, Axes]", rows: Mapping[str, LabeledScores], name: str, label: int, edges: Floats
) -> None:
    """Draw, before and after calibration, how often one predicted class is right, by confidence in it."""
    panel, strip = pair
    displays = []
    for when, (p, y, w) in rows.items():
        chosen = (p >= 0.5) == bool(label)
        confidence, right = (p, y) if label else (1.0 - p, 1 - y)
        scores = collapse(confidence[chosen], right[chosen], w[chosen])
        displays.append(ReliabilityDisplay._from_scores(scores, edges, f"{when}: {w[chosen].sum():.0f} items"))
    for display, (when, shift) in zip(displays, (("before", -0.002), ("after", 0.002)), strict=True):
        display.plot(panel, color=COLORS[when], shift=shift)
    confidence_name = "P(consistent)" if label else "1 - P(consistent)"
    panel.set_title(f"Predicted {name}", fontsize=9.5)
    panel.set(xlabel="", ylabel="share predicted rightly")
    panel.legend(fontsize=8, loc="lower right")
    _draw_counts(strip, displays, f"confidence: mean {confidence_name}")


def _draw_counts(axes: "Axes", displays: list[ReliabilityDisplay], xlabel: str) -> None:
    """Draw how many rows each bin holds, with the number above its bar."""
    width = float(displays[0].edges[1] - displays[0].edges[0])
    share = 0.9 * width / len(displays)
    names = list(COLORS) if len(displays) == 2 else [str(displays[0].name)]
    for i, (display, name) in enumerate(zip(displays, names, strict=True)):
        left = display.edges[:-1] + 0.05 * width + i * share
        bars = axes.bar(left, display.count, width=share, align="edge", color=COLORS[name], alpha=0.75)
        labels = [f"{count:.0f}" if count else "" for count in display.count]
        axes.bar_label(bars, labels=labels, fontsize=6.5, padding=1)
    axes.set(xlabel=xlabel, ylabel="items")
    axes.set_ylim(0, 1.3 * max(1.0, *(float(display.count.max()) for display in displays)))
    axes.tick_params(axis="y", labelsize=7)
    plain_grid(axes, "y")
