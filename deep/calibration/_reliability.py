"""Reliability diagrams: the share of consistent items beside the P that was given to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from deep._util.checks import Floats, Weights, check_share
from deep._util.figures import BLUE, GRAY, RED, TINTS, new_figure, plain_grid
from deep._util.figures import save_figure as save_figure
from deep.calibration import _metrics
from deep.calibration._registry import DEFAULT_BINS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# The quantile of the normal distribution for a 95 % interval.
Z_95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay:
    """Observed against predicted share of consistent items, by bin of P, with the band that chance allows.

    Made by :meth:`from_predictions`.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Bins of equal width.
    count : ndarray of shape (n_bins,)
        Weight of the rows in each bin.
    mean_prob : ndarray of shape (n_bins,)
        Their mean P; nan in an empty bin.
    share : ndarray of shape (n_bins,)
        Share of them with label 1; nan in an empty bin.
    low, high : ndarray of shape (n_bins,)
        95 % interval of that share by Wilson's method [1]_; nan in an empty bin.
    name : str, optional
        What the probabilities are called in a legend.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
       https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> from deep.calibration import ReliabilityDisplay
    >>> y_prob, y_true, counts = [0.2, 0.2, 0.9, 0.9], [0, 1, 0, 1], [30, 20, 15, 35]
    >>> display = ReliabilityDisplay.from_predictions(y_true, y_prob, n_bins=2, sample_weight=counts)
    >>> print(display.frame().round(2).to_string(index=False))
     bin_low  bin_high  count  mean_prob  share_consistent  ci_low  ci_high
         0.0       0.5   50.0        0.2               0.4    0.28     0.54
         0.5       1.0   50.0        0.9               0.7    0.56     0.81
    """

    edges: Floats
    count: Floats
    mean_prob: Floats
    share: Floats
    low: Floats
    high: Floats
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        n_bins: int = DEFAULT_BINS,
        sample_weight: Weights = None,
        name: str | None = None,
    ) -> Self:
        """Bin probabilities and their labels.

        Parameters
        ----------
        y_true, y_prob, n_bins, sample_weight
            As in :func:`expected_calibration_error`.
        name : str, optional
            For the legend.

        Raises
        ------
        InputError
            A value is out of range, or lengths differ.
        """
        return cls._from_scores(
            _metrics.checked_scores(y_true, y_prob, sample_weight),
            _metrics.bin_edges(_metrics.check_bins(n_bins)),
            name,
        )

    @classmethod
    def _from_scores(cls, scores: _metrics.DistinctScores, edges: Floats, name: str | None = None) -> Self:
        """Bin collapsed scores between `edges`."""
        n, expected, n1 = _metrics.bin_sums(scores, edges)
        mean_prob, share = (np.divide(part, n, out=np.full_like(n, np.nan), where=n > 0) for part in (expected, n1))
        return cls(edges, n, mean_prob, share, *wilson_interval(share, n), name)

    def frame(self) -> "pd.DataFrame":
        """Return the table behind the diagram, a row a bin."""
        import pandas as pd

        return pd.DataFrame(
            {
                "bin_low": self.edges[:-1],
                "bin_high": self.edges[1:],
                "count": self.count,
                "mean_prob": self.mean_prob,
                "share_consistent": self.share,
                "ci_low": self.low,
                "ci_high": self.high,
            }
        )

    def plot(self, ax: "Axes | None" = None, *, color: str = BLUE, shift: float = 0.0) -> "Axes":
        """Draw the bins with their intervals, beside the diagonal of perfect calibration.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: the axes of a new figure (``.plot().figure``), without pyplot.
        color : str
            Of points and intervals.
        shift : float, default=0.0
            Moves the points sideways, in units of P, so that two displays in one axes do not overlap.

        Returns
        -------
        matplotlib Axes
        """
        axes = new_figure(4.5, 4.5, constrained=True).subplots() if ax is None else ax
        ends = self.edges[0], self.edges[-1]
        axes.plot(ends, ends, color=GRAY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        has_items = self.count > 0
        x, y = self.mean_prob[has_items] + shift, self.share[has_items]
        bars = np.clip([y - self.low[has_items], self.high[has_items] - y], 0.0, None)
        # Below the points, which a wide bar would cover.
        axes.errorbar(x, y, yerr=bars, fmt="none", color=color, alpha=0.45, linewidth=3, zorder=2)
        (line,) = axes.plot(x, y, "o-", color=color, markersize=5, linewidth=1.2, label=self.name, zorder=3)
        # A point at 0 or 1 is shown whole; an empty line that is not clipped would upset layout engines.
        line.set_clip_on(not has_items.any())
        axes.set(xlim=ends, ylim=(0, 1), xlabel="mean P(consistent)", ylabel="share consistent")
        plain_grid(axes)
        return axes


def wilson_interval(share: Floats, n: Floats, z: float = Z_95) -> tuple[Floats, Floats]:
    """Return Wilson's interval of a share of n rows; nan where there are no rows.

    Parameters
    ----------
    share, n : ndarray of float, of one shape
        `n` may be an effective number.
    z : float
        The quantile that both ends are away; by default that of 95 %.

    Examples
    --------
    >>> import numpy as np
    >>> from deep.calibration import wilson_interval
    >>> [round(float(end), 3) for end in wilson_interval(np.array(0.5), np.array(20.0))]
    [0.299, 0.701]
    """
    n_or_nan = np.where(n > 0, n, np.nan)
    # Wilson's interval inverts the score test. Unlike share +- z se it stays in [0, 1], and has a width where the share
    # is 0 or 1.
    centre = share + z**2 / (2.0 * n_or_nan)
    half = z * np.sqrt(share * (1.0 - share) / n_or_nan + (z / (2.0 * n_or_nan)) ** 2)
    scale = 1.0 + z**2 / n_or_nan
    return np.clip((centre - half) / scale, 0.0, 1.0), np.clip((centre + half) / scale, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class CorpDisplay:
    """The CORP reliability diagram [1]_ with its consistency band, made by :meth:`from_predictions`.

    The curve is the isotonic regression of labels on P (pool adjacent violators), which needs no choice of bins.
    The band holds, point by point, the given share of the curves that a perfectly calibrated predictor with the same
    P would show by chance.

    Parameters
    ----------
    p : ndarray of shape (n_scores,)
        Distinct P, ascending.
    count : ndarray of shape (n_scores,)
        Rows with that P.
    recalibrated : ndarray of shape (n_scores,)
        The curve.
    low, high : ndarray of shape (n_scores,)
        The band.
    miscalibration, discrimination, uncertainty : float
        Brier score = miscalibration - discrimination + uncertainty; each is 0 or more.

    References
    ----------
    .. [1] Dimitriadis, Gneiting and Jordan (2021), PNAS 118(8). https://doi.org/10.1073/pnas.2016191118

    Examples
    --------
    >>> from deep.calibration import CorpDisplay
    >>> y_prob, y_true, counts = [0.2, 0.2, 0.9, 0.9], [0, 1, 0, 1], [30, 20, 15, 35]
    >>> display = CorpDisplay.from_predictions(y_true, y_prob, sample_weight=counts, n_resamples=500)
    >>> print(display.frame().round(1).to_string(index=False))
      p  count  recalibrated  low  high
    0.2   50.0           0.4  0.1   0.3
    0.9   50.0           0.7  0.8   1.0
    >>> round(display.miscalibration, 3), round(display.discrimination, 4), round(display.uncertainty, 4)
    (0.04, 0.0225, 0.2475)
    """

    p: Floats
    count: Floats
    recalibrated: Floats
    low: Floats
    high: Floats
    miscalibration: float
    discrimination: float
    uncertainty: float

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        sample_weight: Weights = None,
        level: float = 0.9,
        n_resamples: int = 1000,
        random_state: int = 0,
    ) -> Self:
        """Fit the curve and draw the band.

        Parameters
        ----------
        y_true, y_prob, sample_weight
            As in :func:`expected_calibration_error`; the weights are counts, and so whole numbers.
        level : float in (0, 1), default=0.9
            Of the band.
        n_resamples : int, default=1000
            How often labels are drawn from P for the band.
        random_state : int, default=0
            Seed of these draws.

        Raises
        ------
        InputError
            A value is out of range, or a weight is no whole number.
        """
        check_share(level, "level")
        _metrics.check_whole(n_resamples, least=1, name="n_resamples")
        scores = _metrics.checked_scores(y_true, y_prob, sample_weight)
        n = _metrics.check_counts(scores.n).astype(np.int64)
        curve = _isotonic(scores.n1 / scores.n, scores.n)
        rng = np.random.default_rng(random_state)
        # Labels drawn from P itself, so that the band is what pool-adjacent-violators makes of chance alone.
        resamples = rng.binomial(n, scores.p, size=(n_resamples, len(n))) / n
        band = np.array([_isotonic(row, scores.n) for row in resamples])
        low, high = np.quantile(band, [(1 - level) / 2, (1 + level) / 2], axis=0)
        base = scores.n1.sum() / scores.n.sum()
        # Brier scores of P, of the curve and of the overall share: MCB = brier - best, DSC = plain - best, UNC = plain.
        brier, best, plain = (
            _metrics.brier_score(q, scores.n, scores.n1) for q in (scores.p, curve, np.full_like(curve, base))
        )
        return cls(scores.p, scores.n, curve, low, high, max(brier - best, 0.0), max(plain - best, 0.0), plain)

    def frame(self) -> "pd.DataFrame":
        """Return the curve and the band, a row a distinct P."""
        import pandas as pd

        columns = ("p", "count", "recalibrated", "low", "high")
        return pd.DataFrame({name: getattr(self, name) for name in columns})

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the curve over its band; returns the axes, new ones that belong to no pyplot state by default."""
        axes = new_figure(4.5, 4.5).subplots() if ax is None else ax
        axes.fill_between(self.p, self.low, self.high, color=TINTS[GRAY], label="calibrated, by chance")
        axes.plot([0, 1], [0, 1], color=GRAY, linewidth=0.8)
        axes.plot(self.p, self.recalibrated, color=BLUE, marker=".", label="observed, isotonic")
        axes.set(xlabel="P(consistent)", ylabel="share consistent", xlim=(0, 1), ylim=(0, 1))
        axes.legend(fontsize=9, frameon=False, loc="upper left")
        return axes


def _isotonic(share: Floats, n: Floats) -> Floats:
    from sklearn.isotonic import isotonic_regression

    return np.asarray(isotonic_regression(share, sample_weight=n), dtype=np.float64)


# The color of P before and after calibration.
STAGE_COLORS = {"before": RED, "after": BLUE}

# The classes that have a panel of their own, and the decision that puts an item there.
DECISION_BY_CLASS = {"consistent": 1, "inconsistent": 0}

# The size of the counts above a strip of bars, in points: the smallest letters that figures have.
SIZE = 9.0

# The unit of letters: typographic points in an inch.
POINTS_PER_INCH = 72.0


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
    edges = _metrics.bin_edges(_metrics.check_bins(n_bins))
    columns = {"before": before, "after": after}
    rows = {name: _metrics.checked_rows(y_true, column, sample_weight, scores=name) for name, column in columns.items()}
    figure = new_figure(9.0, 9.8)
    grid = figure.add_gridspec(2, 2, left=0.075, right=0.98, top=0.915, bottom=0.065, hspace=0.24, wspace=0.2)
    pairs: list[tuple[Axes, Axes]] = []  # of a panel, and of the strip of counts below it
    for cell in (grid[row, column] for row in range(2) for column in range(2)):
        inner = cell.subgridspec(2, 1, height_ratios=[4.0, 1.0], hspace=0.1)
        panel = figure.add_subplot(inner[0])
        panel.tick_params(labelbottom=False)
        pairs.append((panel, figure.add_subplot(inner[1], sharex=panel)))
    for (name, (p, y, w)), pair in zip(rows.items(), pairs[:2], strict=True):
        _draw_all(pair, _metrics.collapse_scores(p, y, w), edges, name)
    for (name, label), pair in zip(DECISION_BY_CLASS.items(), pairs[2:], strict=True):
        _draw_class(pair, rows, name, label, np.linspace(0.5, 1.0, n_bins + 1))
    figure.suptitle(title or "", y=0.985, fontsize=12, fontweight="bold")
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw_all(pair: "tuple[Axes, Axes]", scores: _metrics.DistinctScores, edges: Floats, name: str) -> None:
    """Draw one set of probabilities over all items."""
    panel, strip = pair
    ece, floor = _metrics.ece_of_scores(scores, len(edges) - 1), _metrics.floor_of(scores, len(edges) - 1, n_draws=1000)
    display = ReliabilityDisplay._from_scores(scores, edges, name)
    display.plot(panel, color=STAGE_COLORS[name])
    error = f"ECE {100 * ece:.1f} %   (perfect P: {100 * floor.mean:.1f} %, 95 % below {100 * floor.q95:.1f} %)"
    panel.set_title(f"{name.capitalize()} calibration\n{error}", fontsize=9.5)
    panel.set_xlabel("")
    _draw_counts(strip, [display], "mean P(consistent)")


def _draw_class(
    pair: "tuple[Axes, Axes]", rows: Mapping[str, _metrics.LabeledScores], name: str, label: int, edges: Floats
) -> None:
    """Draw, before and after calibration, how often one predicted class is right, by confidence in it."""
    panel, strip = pair
    displays = []
    for when, (p, y, w) in rows.items():
        is_class = (p >= 0.5) == bool(label)
        confidence, right = (p, y) if label else (1.0 - p, 1 - y)
        scores = _metrics.collapse_scores(confidence[is_class], right[is_class], w[is_class])
        displays.append(ReliabilityDisplay._from_scores(scores, edges, f"{when}: {w[is_class].sum():.0f} items"))
    for display, (when, shift) in zip(displays, (("before", -0.002), ("after", 0.002)), strict=True):
        display.plot(panel, color=STAGE_COLORS[when], shift=shift)
    confidence_name = "P(consistent)" if label else "1 - P(consistent)"
    panel.set_title(f"Predicted {name}", fontsize=9.5)
    panel.set(xlabel="", ylabel="share predicted rightly")
    panel.legend(fontsize=9, loc="lower right")
    _draw_counts(strip, displays, f"confidence: mean {confidence_name}")


def _draw_counts(axes: "Axes", displays: list[ReliabilityDisplay], xlabel: str) -> None:
    """Draw how many rows each bin holds, with the number above its bar: upright where bars are narrow, if at all."""
    from matplotlib.ticker import MaxNLocator

    width = float(displays[0].edges[1] - displays[0].edges[0])
    share = 0.9 * width / len(displays)
    names = list(STAGE_COLORS) if len(displays) == 2 else [str(displays[0].name)]
    labels = [[_short_count(count) for count in display.count] for display in displays]
    turn, room = _place_labels(axes, 0.9 / len(displays) / len(displays[0].count), max(map(len, chain(*labels))))
    for i, (display, name, counts) in enumerate(zip(displays, names, labels, strict=True)):
        left = display.edges[:-1] + 0.05 * width + i * share
        bars = axes.bar(left, display.count, width=share, align="edge", color=STAGE_COLORS[name], alpha=0.75)
        if turn is not None:
            axes.bar_label(bars, labels=counts, fontsize=SIZE, padding=1, rotation=turn)
    axes.set(xlabel=xlabel, ylabel="items")
    axes.set_ylim(0, max(1.0, *(float(display.count.max()) for display in displays)) / (1.0 - room))
    axes.tick_params(axis="y", labelsize=SIZE)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.set_major_formatter(lambda count, _: _short_count(count) or "0")
    plain_grid(axes, "y")


def _short_count(count: float) -> str:
    """Return a count in thousands from ten thousand on, in millions from ten million on; nothing for 0."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        # From ten thousand on, where rounding to whole thousands moves a count by at most 5 %.
        if count >= 10 * size:
            return f"{count / size:.0f}{letter}"
    return f"{count:.0f}" if count else ""


def _place_labels(axes: "Axes", share: float, longest: int) -> tuple[int | None, float]:
    """Return the rotation of labels of bars, None where they have no room, and the share of the height that they take.

    `share` is that of a bar in the width of the axes, `longest` the characters of the longest label.
    """
    box = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    bar, height = POINTS_PER_INCH * box.width * share, POINTS_PER_INCH * box.height
    length, line = 0.65 * SIZE * longest, 1.25 * SIZE  # a digit of the font is 0.64 of its size wide
    if length <= bar:
        return 0, (line + 2) / height
    return (90, (length + 4) / height) if line <= bar else (None, 0.05)
