"""Tables and pictures that studies and reports share: Markdown, rows of JSON, files; values with their intervals."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, ParamSpec

import numpy as np
import numpy.typing as npt

from deep._util.figures import AMBER, BLUE, GRAY, LIGHT, RED, new_figure
from deep._util.files import JsonObject
from deep._util.plain_cells import plain_frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


Row = JsonObject
"""A row of a table, or an object of a results.json."""

Run = Row
"""The entry of `results.json` for one held-out dataset; docs/results-schema.md describes every key."""


P = ParamSpec("P")


MARKUP = re.compile(r"[\\|]|<(?=[A-Za-z/!?])")
"""Characters of a cell that Markdown would take for its own."""


def framed(rows: Callable[P, Iterator[Row]]) -> "Callable[P, pd.DataFrame]":
    """Make a function that yields rows return them as a table."""

    @wraps(rows)
    def build(*args: P.args, **kwargs: P.kwargs) -> "pd.DataFrame":
        import pandas as pd  # which a page of labels spares

        return pd.DataFrame(list(rows(*args, **kwargs)))

    return build


def markdown(frame: "pd.DataFrame") -> Iterator[str]:
    """Yield the lines of a Markdown table; fractions with four decimals, empty where there is no value."""
    yield "| " + " | ".join(map(_text, frame.columns)) + " |"
    yield "|" + " --- |" * len(frame.columns)
    for row in frame.itertuples(index=False):
        yield "| " + " | ".join(_text(value) for value in row) + " |"


def _text(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.4f}"
    return "" if value is None else MARKUP.sub(r"\\\g<0>", " ".join(str(value).splitlines()))


def write_table(
    folder: Path, name: str, frame: "pd.DataFrame", title: str, *, shown: "pd.DataFrame | None" = None, note: str = ""
) -> None:
    """Write a table as CSV and, under its title, as Markdown.

    Parameters
    ----------
    folder : Path
    name : str
        Of both files, without suffix.
    frame : DataFrame
    title : str
    shown : DataFrame, optional
        The Markdown table, where it differs from `frame`.
    note : str
        A last line of the Markdown text.
    """
    plain_frame(frame).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
    lines = [f"# {title}", "", *markdown(frame if shown is None else shown), "", *([note, ""] if note else [])]
    (folder / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")


def null_if_nan(value: float | Sequence[float] | None) -> float | list[float] | None:
    """Return a number JSON can hold: None for NaN, also where a list holds one."""
    if isinstance(value, list | tuple):
        return None if any(null_if_nan(item) is None for item in value) else [float(item) for item in value]
    return None if value is None or np.isnan(value) else float(value)  # type: ignore[arg-type]


def records(frame: "pd.DataFrame") -> list[Row]:
    """Return the rows of a table as JSON holds them, None where a value is missing or NaN."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def in_percent(value: float | None) -> str:
    """Return a share in percent with one decimal, nothing for None."""
    return "" if value is None else f"{100 * value:.1f}"


CONTEXT = "best_judge_context"
"""The kind of the rival that is one judge with its mean over the dataset."""

INK = "#1f2933"
"""Of words on a colored ground."""

SMALL = 9
"""Size of letters in points, of which a page shows 12 pixels: no text is smaller."""

STATE_COLORS = {"consistent": BLUE, "inconsistent": RED, "undecided": LIGHT[GRAY]}

COLORS = {"test": GRAY, "center": AMBER, "train": BLUE, "ours": RED}


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
    printed : bool, default=False
        It was not computed but printed by others: hollow, and its interval dashed.
    """

    label: str
    value: float
    interval: Sequence[float] | None = None
    color: str = BLUE
    printed: bool = False


def method_rows(run: Run) -> list[tuple[str, Row, str]]:
    """Return the label, the metrics and the kind of every method of one run: ensemblers, baselines, the choice.

    The ensemblers are uncalibrated, each at the size that the training data prefer.
    """
    rows = [(f"{row['ensembler']} ({row['n_prompts']})", row, "train") for row in _best_sizes(run)]
    rows += [(row["name"], row, "test") for row in run["baselines"] if row["kind"] in ("majority", "prompt")]
    rows += [
        (f"{row['name']} ({'printed' if row['kind'] == 'published' else 'encoder'})", row, "center")
        for row in run["baselines"]
        if row["threshold_from"] == "train"
    ]
    rows += [(f"best on training: {r['name']}", r, "test") for r in run["baselines"] if r["kind"] == "best_prompt"]
    rows += [(f"{row['name']}, with context", row, "test") for row in run["baselines"] if row["kind"] == CONTEXT]
    return [*rows, ("recommended", run["recommended"], "ours")]


def draw_intervals(rows: Sequence[IntervalRow], *, xlabel: str, title: str = "", at: float = 0.5) -> "Figure":
    """Draw values with their intervals, one a line, beside a line at `at`.

    Examples
    --------
    >>> from deep.evaluate import IntervalRow, draw_intervals
    >>> figure = draw_intervals([IntervalRow("majority", 0.7, [0.6, 0.8])], xlabel="balanced accuracy")
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['majority']
    """
    figure = new_figure(7.0, 1.2 + 0.26 * len(rows))
    axes = figure.subplots()
    for height, row in enumerate(rows):
        low, high = row.interval or [row.value] * 2
        line, fill = (":", "white") if row.printed else ("-", row.color)
        axes.plot([low, high], [height, height], line, color=row.color, linewidth=1.5)
        axes.plot(row.value, height, "o", color=row.color, markerfacecolor=fill, markersize=5)
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=SMALL)
    axes.axvline(at, color=GRAY, linewidth=0.8)
    axes.set(xlabel=xlabel, title=title, ylim=(-0.6, len(rows) - 0.4))
    return figure


def draw_spread(counts: Mapping[str, npt.NDArray[np.integer]]) -> "Figure":
    """Draw a histogram of P over [0, 1], stacked by state.

    Parameters
    ----------
    counts : mapping of str to ndarray of int, shape (n_bars,)
        By state: consistent, inconsistent, undecided.
    """
    figure = new_figure(3.3, 1.6)
    axes = figure.subplots()
    n = len(next(iter(counts.values())))
    base = np.zeros(n)
    for name in ("inconsistent", "undecided", "consistent"):
        top, edges = base + counts[name], np.linspace(0, 1, n + 1)
        axes.stairs(top, edges, baseline=base, fill=True, color=STATE_COLORS[name], label=name)
        base = top
    axes.set(xlim=(0, 1), ylim=(0, 1.1 * max(1, base.max())), xlabel="P(consistent)", ylabel="claims")
    close = {"columnspacing": 1, "handlelength": 1.2, "handletextpad": 0.5}  # as wide as a phone, whatever the counts
    axes.legend(fontsize=SMALL, ncols=3, frameon=False, loc="lower center", bbox_to_anchor=(0.45, 1.0), **close)
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

    order = _most_alike_first(np.asarray(correlation, dtype=np.float64))
    values = np.asarray(correlation, dtype=np.float64)[np.ix_(order, order)]
    ordered = [names[at] for at in order]
    shown = np.round(values, 1) + 0.0  # no -0.0
    k = len(values)
    side = 2.0 + 0.36 * k
    figure = new_figure(side + 1.0, side)
    axes = figure.subplots()
    colors = LinearSegmentedColormap.from_list("errors", [LIGHT[BLUE], "#f4f4f2", LIGHT[RED]])
    image = axes.imshow(values, cmap=colors, vmin=-1, vmax=1, interpolation="none")
    figure.colorbar(image, ax=axes, label="correlation of errors", fraction=0.05, ticks=[-1, -0.5, 0, 0.5, 1])
    axes.set_xticks(range(k), ordered, fontsize=SMALL, rotation=90)
    axes.set_yticks(range(k), ordered, fontsize=SMALL)
    for row, column in np.argwhere(np.isfinite(values)):
        number = f"{shown[row, column]:.1f}"
        axes.text(column, row, number, ha="center", va="center", fontsize=SMALL, color=INK)
    return figure


def _most_alike_first(correlation: npt.NDArray[np.float64]) -> list[int]:
    """Return judges in an order in which those that err alike stand side by side."""
    if len(correlation) < 3:
        return list(range(len(correlation)))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    apart = 1 - np.nan_to_num(correlation)
    np.fill_diagonal(apart, 0.0)
    tree = linkage(squareform(apart, checks=False), "average", optimal_ordering=True)
    return [int(at) for at in leaves_list(tree)]


def _best_sizes(run: Run) -> list[Row]:
    """Return each ensembler's uncalibrated row at the size that the training data prefer."""
    best: dict[tuple[str, str], Row] = {}
    for row in run["rows"]:
        key = row["recipe"], row["ensembler"]
        if row["calibrator"] is None and (key not in best or row["inner_log_loss"] < best[key]["inner_log_loss"]):
            best[key] = row
    return list(best.values())


def shown_number(value: float | None, form: str = "z.2f") -> str:
    """Return a number as a table shows it: nothing where there is none, and no minus before a zero."""
    return "" if value is None or np.isnan(value) else f"{value:{form}}"


def shown_ends(ends: tuple[float | None, float | None], form: str = ".2f", factor: float = 1.0) -> str:
    """Return an interval as a table shows it: nothing where there is none."""
    known = [end for end in ends if end is not None and not np.isnan(end)]
    return "" if len(known) < 2 else " to ".join(f"{factor * end:{form}}" for end in known)
