"""What was measured, as every study and report shows it: text, JSON, tables and pictures; values with intervals."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, ParamSpec

import numpy as np
import numpy.typing as npt

from deep._util.columns import escape_frame
from deep._util.figures import AMBER, BLUE, GRAY, RED, TINTS, new_figure
from deep._util.files import JsonObject
from deep._util.names import format_table, listed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


Row = JsonObject
"""A row of a table, or an object of a results.json."""

Run = Row
"""The entry of `results.json` for one held-out dataset; docs/results-schema.md describes every key."""


P = ParamSpec("P")


# Characters of a cell that Markdown would read as its own signs.
MARKDOWN_CHARACTERS = re.compile(r"[\\|]|<(?=[A-Za-z/!?])")


# A number, an interval, or nothing.
ShownValue = float | Iterable[float | None] | None


def shown(value: ShownValue, form: str | Callable[[float], str] = "z.2f") -> str:
    """Return a number, or an interval, as tables show it: nothing where there is none.

    Parameters
    ----------
    value : float or sequence of float, optional
        None and NaN are no number; an interval that lacks a bound is none.
    form : str or callable
        A format of Python, in which ``z`` leaves out the minus of a zero, and ``%`` gives percent without the sign.

    Examples
    --------
    >>> from deep.evaluate import shown
    >>> shown(0.418), shown(0.418, ".1%"), shown(-0.001), shown([0.1, 0.25], "+.1%"), shown(None)
    ('0.42', '41.8', '0.00', '+10.0 to +25.0', '')
    """
    if isinstance(value, Iterable):
        ends = [shown(end, form) for end in value]
        return " to ".join(ends) if all(ends) else ""
    if value is None or value != value:
        return ""
    return form(value) if callable(form) else f"{value:{form}}".removesuffix("%")


def in_percent(value: ShownValue, sign: str = "") -> str:
    """Return a share, or an interval of shares, in percent with one decimal; `sign` is '+' to show that too."""
    return shown(value, f"{sign}.1%")


def t_half_width(sd: float, n: int, level: float) -> float:
    """Return half the width of the t-interval of a mean of `n` values with sample standard deviation `sd`.

    Examples
    --------
    >>> from deep.evaluate import t_half_width
    >>> round(t_half_width(1.0, 10, 0.95) * 10**0.5, 3)
    2.262
    """
    from scipy import special  # loaded only here, since the help of `deep serve` does without

    # Student's t: few datasets know their own spread badly, and a normal interval would be too narrow.
    return float(special.stdtrit(n - 1, (1 + level) / 2) * sd / np.sqrt(n))


def mean_interval(values: npt.ArrayLike, level: float) -> tuple[float, float, float]:
    """Return the mean of at least two values with the bounds of its t-interval.

    Examples
    --------
    >>> from deep.evaluate import mean_interval
    >>> [round(value, 3) for value in mean_interval([1.0, 2.0, 3.0], 0.9)]
    [2.0, 0.314, 3.686]
    """
    numbers = np.asarray(values, dtype=np.float64)
    mean = float(np.mean(numbers))
    reach = t_half_width(float(np.std(numbers, ddof=1)), len(numbers), level)
    return mean, mean - reach, mean + reach


class TableCell(NamedTuple):
    """The cell of a table that shows a field; the annotation of the field holds it.

    Parameters
    ----------
    head : str
        Words at the head of the column.
    form : str or callable
        As in :func:`shown`.
    """

    head: str
    form: str | Callable[[float], str] = "z.2f"


@dataclass(frozen=True)
class Measured:
    """Figures of one thing: each field stands once, with its cell where tables show it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import Annotated
    >>> from deep.evaluate import Measured, TableCell
    >>> @dataclass(frozen=True)
    ... class VoteRates(Measured):
    ...     n: int
    ...     tpr: Annotated[float, TableCell("TPR, %", ".1%")]
    ...     interval: Annotated[tuple[float, float], TableCell("95 %", ".1%")]
    >>> rates = VoteRates(40, 0.75, (0.6, float("nan")))
    >>> rates.as_dict(), rates.cells()
    ({'n': 40, 'tpr': 0.75, 'interval': None}, {'TPR, %': '75.0', '95 %': ''})
    """

    def as_dict(self) -> Row:
        """Return JSON values: null for NaN, and for an interval that lacks a bound."""
        return {field.name: json_value(getattr(self, field.name)) for field in fields(self)}

    def cells(self) -> dict[str, str]:
        """Return the row of a table: a cell for each field that has one."""
        shown_fields = (
            (field.name, cell) for field in fields(self) for cell in getattr(field.type, "__metadata__", ())
        )
        return {cell.head: shown(getattr(self, name), cell.form) for name, cell in shown_fields}


def json_value(value: object) -> object:
    """Return a value as JSON holds it: an object for a dataclass, a list for an array, null for what is NaN.

    Examples
    --------
    >>> from deep.evaluate import json_value
    >>> json_value({"gain": float("nan"), "interval": (0.1, float("nan")), "losses": [0.5, float("nan")]})
    {'gain': None, 'interval': None, 'losses': [0.5, None]}
    """
    if isinstance(value, Measured):
        return value.as_dict()
    if is_dataclass(value):
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: json_value(one) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        return json_value(value.tolist())
    if isinstance(value, list | tuple):
        values = [json_value(one) for one in value]
        # Of a tuple, which is an interval, half is nothing.
        return None if isinstance(value, tuple) and None in values else values
    if isinstance(value, float):  # of NumPy too
        return None if math.isnan(value) else float(value)
    return value


MAX_ROWS_SHOWN = 15
"""The most rows of a table that a page shows without unfolding it."""

# A cell that is set flush right: a number, an interval or empty.
NUMERIC_CELL = re.compile(r"[+-]?[\d,]+(?:\.\d+)?(?: %| to [+-]?[\d.]+)?|")

# Names of a first column that say what a row is.
ROW_NAME_COLUMNS = frozenset({"dataset", "item", "judge", "method", "system"})


@dataclass(frozen=True)
class DataTable:
    """A table under its caption.

    Parameters
    ----------
    caption : str
        The line above the table.
    rows : sequence of mapping of str to str
        Cells by column; one that a row lacks is empty. The first cell of a row names it.
    folded : bool, default=False
        A page shows it on demand.
    """

    caption: str
    rows: Sequence[Mapping[str, str]]
    folded: bool = False

    @cached_property
    def columns(self) -> list[str]:
        """Return the names of the columns in which any row has something."""
        return list(dict.fromkeys(name for row in self.rows for name, cell in row.items() if cell))

    @property
    def first(self) -> Sequence[Mapping[str, str]]:
        """Return the rows that are shown without unfolding."""
        return self.rows[:MAX_ROWS_SHOWN]

    @property
    def rest(self) -> Sequence[Mapping[str, str]]:
        """Return the other rows."""
        return self.rows[MAX_ROWS_SHOWN:]

    @property
    def rest_words(self) -> str:
        """Return the sentence that paper has in place of the other rows."""
        n, what = len(self.rest), self.columns[0] if self.columns[0] in ROW_NAME_COLUMNS else "row"
        return f"{n} more {what}{'s are' if n > 1 else ' is'} in the file."

    @cached_property
    def numeric(self) -> frozenset[str]:
        """Return the columns of which every cell is a number, an interval or empty."""
        cells = {name: [row.get(name, "") for row in self.rows] for name in self.columns}
        return frozenset(name for name, column in cells.items() if all(map(NUMERIC_CELL.fullmatch, column)))

    def lines(self, width: float = math.inf) -> Iterator[str]:
        r"""Yield the table as a terminal shows it; of columns that do not fit the width the last ones are left out.

        Examples
        --------
        >>> from deep.evaluate import DataTable
        >>> rows = [{"judge": "strict", "TPR, %": "71.0"}, {"judge": "lenient", "TPR, %": ""}]
        >>> print("\n".join(DataTable("Judges", rows).lines()))
        Judges
          judge    TPR, %
          strict     71.0
          lenient       -
        """
        columns = [[name, *(row.get(name) or "-" for row in self.rows)] for name in self.columns]
        hidden: list[str] = []
        while sum(2 + max(map(len, column)) for column in columns) > width and len(columns) > 2:
            hidden.insert(0, columns.pop()[0])
        yield self.caption
        lines = format_table(list(zip(*columns, strict=True)), right=len(columns) - 1).split("\n")
        yield from (f"  {line}" for line in lines)
        if hidden:
            yield f"  ... and columns that do not fit: {listed(hidden, 12)}"


def frame_records(frame: "pd.DataFrame") -> list[Row]:
    """Return the rows of a table as JSON holds them, None where a value is missing or NaN."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def as_frame(rows: Callable[P, Iterator[Row]]) -> "Callable[P, pd.DataFrame]":
    """Make a function that yields rows return them as a table."""

    @wraps(rows)
    def build(*args: P.args, **kwargs: P.kwargs) -> "pd.DataFrame":
        import pandas as pd  # which a page of labels spares

        return pd.DataFrame(list(rows(*args, **kwargs)))

    return build


def markdown(frame: "pd.DataFrame") -> Iterator[str]:
    """Yield the lines of a Markdown table; fractions with four decimals, empty where there is no value."""
    yield "| " + " | ".join(map(_cell_text, frame.columns)) + " |"
    yield "|" + " --- |" * len(frame.columns)
    for row in frame.itertuples(index=False):
        yield "| " + " | ".join(_cell_text(value) for value in row) + " |"


def _cell_text(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.4f}"
    return "" if value is None else MARKDOWN_CHARACTERS.sub(r"\\\g<0>", " ".join(str(value).splitlines()))


def write_table(
    folder: Path, name: str, frame: "pd.DataFrame", title: str, *, shown: "pd.DataFrame | None" = None, note: str = ""
) -> None:
    """Write a table as CSV and, under its title, as Markdown and as LaTeX (with the package booktabs).

    Parameters
    ----------
    folder : Path
        Where the three files are written.
    name : str
        Of the three files, without suffix.
    frame : DataFrame
        One row a line, under the names of its columns; the CSV file holds its numbers unrounded.
    title : str
        The heading of the Markdown text, and a comment in the LaTeX file.
    shown : DataFrame, optional
        The table as it is printed, where it differs from `frame`.
    note : str
        A last line of the Markdown text.
    """
    escape_frame(frame).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
    printed = frame if shown is None else shown
    lines = [f"# {title}", "", *markdown(printed), "", *([note, ""] if note else [])]
    (folder / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")
    latex = printed.to_latex(index=False, escape=True, na_rep="", float_format="%.4f")
    (folder / f"{name}.tex").write_text(f"% {title}. {note}\n{latex}", encoding="utf-8")


CONTEXT = "best_judge_context"
"""The kind of the rival that is one judge with its mean over the dataset."""

# The color of words on a colored ground.
TEXT_COLOR = "#1f2933"

# The size of the smallest letters in points, of which a page shows 12 pixels.
MIN_FONT = 9

# The color of each state of an item in pictures.
STATE_COLORS = {"consistent": BLUE, "inconsistent": RED, "undecided": TINTS[GRAY]}

# The color of a method's row, by what its figures rest on.
COLORS = {"test": GRAY, "center": AMBER, "train": BLUE, "ours": RED}


class IntervalRow(NamedTuple):
    """One line of a picture of intervals.

    Parameters
    ----------
    label : str
        Words at the left end of the line.
    value : float
        Where the dot stands, on the scale of the axis.
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
    best: dict[tuple[str, str], Row] = {}
    for row in run["rows"]:
        key = row["recipe"], row["ensembler"]
        if row["calibrator"] is None and (key not in best or row["inner_log_loss"] < best[key]["inner_log_loss"]):
            best[key] = row
    rows = [(f"{row['ensembler']} ({row['n_prompts']})", row, "train") for row in best.values()]
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
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=MIN_FONT)
    axes.axvline(at, color=GRAY, linewidth=0.8)
    axes.set(xlabel=xlabel, title=title, ylim=(-0.6, len(rows) - 0.4))
    return figure


HISTOGRAM_AREA_ID = "plane"
"""The id of the area of a histogram of P: a page turns a click in it into a range of P."""


def draw_histogram(counts: Mapping[str, npt.NDArray[np.integer]]) -> "Figure":
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
    axes.patch.set_gid(HISTOGRAM_AREA_ID)
    axes.set(xlim=(0, 1), ylim=(0, 1.1 * max(1, base.max())), xlabel="P(consistent)", ylabel="claims")
    close = {"columnspacing": 1, "handlelength": 1.2, "handletextpad": 0.5}  # as wide as a phone, whatever the counts
    axes.legend(fontsize=MIN_FONT, ncols=3, frameon=False, loc="lower center", bbox_to_anchor=(0.45, 1.0), **close)
    return figure


def draw_error_correlation(names: Sequence[str], correlation: npt.ArrayLike) -> "Figure":
    """Draw how the errors of judges go together: red where they err on the same items, blue where on others.

    Parameters
    ----------
    names : sequence of str, length n_voters
        In the order of `correlation`; the figure puts those side by side that are most alike.
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

    order = _order_by_similarity(np.asarray(correlation, dtype=np.float64))
    values = np.asarray(correlation, dtype=np.float64)[np.ix_(order, order)]
    ordered = [names[at] for at in order]
    shown = np.round(values, 1) + 0.0  # no -0.0
    k = len(values)
    side = 2.0 + 0.36 * k
    figure = new_figure(side + 1.0, side)
    axes = figure.subplots()
    colors = LinearSegmentedColormap.from_list("errors", [TINTS[BLUE], "#f4f4f2", TINTS[RED]])
    image = axes.imshow(values, cmap=colors, vmin=-1, vmax=1, interpolation="none")
    figure.colorbar(image, ax=axes, label="correlation of errors", fraction=0.05, ticks=[-1, -0.5, 0, 0.5, 1])
    axes.set_xticks(range(k), ordered, fontsize=MIN_FONT, rotation=90)
    axes.set_yticks(range(k), ordered, fontsize=MIN_FONT)
    for row, column in np.argwhere(np.isfinite(values)):
        number = f"{shown[row, column]:.1f}"
        axes.text(column, row, number, ha="center", va="center", fontsize=MIN_FONT, color=TEXT_COLOR)
    return figure


def _order_by_similarity(correlation: npt.NDArray[np.float64]) -> list[int]:
    """Return judges in an order in which those that err alike stand side by side."""
    if len(correlation) < 3:
        return list(range(len(correlation)))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    apart = 1 - np.nan_to_num(correlation)
    np.fill_diagonal(apart, 0.0)
    # Rounding leaves the matrix a little asymmetric, which the checks refuse.
    tree = linkage(squareform(apart, checks=False), "average", optimal_ordering=True)
    return [int(at) for at in leaves_list(tree)]
