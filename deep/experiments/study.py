"""What the studies share: a run's folder with its tables, pictures and report; the papers' own tables beside them."""

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from deep import asking
from deep._util.checks import check_choice
from deep._util.figures import AMBER, BLUE, RED, new_figure, save_figures
from deep._util.files import JsonObject, read_asset, write_results
from deep.console import ask_options, endpoint_of, live_progress, print_result, study_lines
from deep.evaluate import DatasetVerdict, markdown, write_table
from deep.exceptions import StoppedError
from deep.report import open_folder_with_report, report_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def publish(
    args: argparse.Namespace,
    verdict: DatasetVerdict,
    results: JsonObject,
    text: str = "",
    *,
    lines: Iterable[str] = (),
    tables: Mapping[str, pd.DataFrame] | None = None,
    titles: Mapping[str, str] | None = None,
    shown: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table,
    note: str = "",
    paper: str = "",
    figures: "Mapping[str, Figure] | None" = None,
    caption: str = "",
    more: Callable[[Path], object] | None = None,
) -> None:
    """Write a run of a study as a folder with its report, whole or not at all, and print its answer.

    Parameters
    ----------
    args : Namespace
        With `out`, the folder, and `json`.
    verdict : DatasetVerdict
        The answer, which comes first.
    results : dict
        What ``results.json`` holds below it and ``--json`` prints.
    text : str
        Markdown that is printed else, below the answer.
    lines : iterable of str
        What is printed below that, above the place of the report.
    tables : mapping of str to DataFrame, optional
        By file name: each as CSV and as Markdown.
    titles : mapping of str to str, optional
        Of the tables.
    shown : callable, optional
        Gives the Markdown table of a table.
    note : str
        A last line below each of them.
    paper : {'cognibench', 'probe', ''}
        Whose printed tables stand beside those of the run.
    figures : mapping of str to Figure, optional
        By file name.
    caption : str
        Below each of them.
    more : callable, optional
        Writes further files into the folder.
    """
    tables, figures = tables or {}, figures or {}
    results = {"schema_version": 1, "verdict": verdict.as_dict(), **results}
    with open_folder_with_report(args.out) as folder:
        for name, table in tables.items():
            write_table(folder, name, table, (titles or {})[name], shown=shown(table), note=note)
        for name, title, table in printed_beside(paper, [*tables, *figures]) if paper else ():
            write_table(folder, name, table, title, shown=table.astype(str))
        if more is not None:
            more(folder)
        write_results(folder, results)
        save_figures(figures, folder, caption=caption, phone=True)
    print_result(results, [*study_lines(verdict, text), *lines, report_line(args.out)], as_json=args.json)


def percentages(table: pd.DataFrame, decimals: int = 2, missing: str = "-") -> pd.DataFrame:
    """Return a table whose shares are percentages, as text; a column that ends in ``per turn`` is no share.

    Examples
    --------
    >>> from deep.experiments.study import percentages
    >>> percentages(pd.DataFrame({"model": ["a", "b"], "recall": [0.5, None]}))["recall"].tolist()
    ['50.00', '-']
    """
    text = table.astype(object)
    for column in table:
        if table[column].dtype.kind == "f" or table[column].isna().all():
            scale = 1 if str(column).endswith("per turn") else 100
            values = pd.to_numeric(table[column])
            text[column] = [missing if value != value else f"{scale * value:.{decimals}f}" for value in values]
    return text


COLORS = (BLUE, AMBER, RED)

# By the title of a panel, and in it by the legend of its bars: a value for each row.
Panels = Mapping[str, Mapping[str, Sequence[float]]]


def draw_bars(names: Sequence[str], panels: Panels, title: str, *, share: bool = True) -> "Figure":
    """Draw a panel for each group of measures, one below the other, with bars for each row of a table.

    Parameters
    ----------
    names : sequence of str
        Of the rows.
    panels : mapping of str to mapping of str to sequence of float
        By panel and series, the length of the bar of each row; NaN is shown as "not measured".
    title : str
        Above all panels.
    share : bool, default=True
        Whether the values are shares, which are shown in percent.
    """
    figure = new_figure(7.0, (1.3 + 0.62 * len(names)) * len(panels), constrained=True)
    all_axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (panel, series) in zip(all_axes, panels.items(), strict=True):
        height = 0.8 / len(series)
        for i, (label, lengths) in enumerate(series.items()):
            values = pd.to_numeric(pd.Series(lengths, dtype=object))
            places = [y - 0.4 + (i + 0.5) * height for y in range(len(names))]
            bars = axes.barh(places, values.fillna(0.0), height=height, label=label, color=COLORS[i])
            texts = [f"{100 * value:.0f} %" if share else f"{value:.1f}" for value in values]
            texts = ["not measured" if value != value else text for value, text in zip(values, texts, strict=True)]
            axes.bar_label(bars, labels=texts, fontsize=9, padding=2)
        axes.set_yticks(range(len(names)), names, fontsize=9)
        axes.invert_yaxis()
        axes.set_xlabel(f"{panel} (share)" if share else panel)
        # The words beside the longest bar want room.
        axes.set_xlim(0.0, 1.15 if share else 1.15 * axes.get_xlim()[1])
        axes.legend(fontsize=9, ncols=len(series), loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    figure.suptitle(title, fontsize=10)
    return figure


class PrintedTable(NamedTuple):
    """A table of a paper, as printed.

    Parameters
    ----------
    name : str
        The table of a run that it stands beside, or ``figures``.
    title : str
        Its place in the paper, and the paper.
    frame : DataFrame
        Shares are in percent where the title says so, else fractions.
    """

    name: str
    title: str
    frame: pd.DataFrame


FIGURES = "figures"


@cache
def printed_tables(paper: str) -> tuple[PrintedTable, ...]:
    """Return the tables of a paper, by the names of the tables of a run that they stand beside.

    Parameters
    ----------
    paper : {'cognibench', 'probe'}
        The paper, by the name of its study in :mod:`deep.experiments`.

    Raises
    ------
    InputError
        There is no such paper.

    Examples
    --------
    >>> from deep.experiments.study import printed_tables
    >>> [table.name for table in printed_tables("probe")]
    ['table1-statistics', 'table2-evidence', 'figures']
    >>> printed_tables("cognibench")[2].frame.iloc[-1].astype(str).tolist()
    ["the paper's", 'CogniDet 8B', '70.3', '64.4', '73.8']
    """
    study = check_choice(paper, ("cognibench", "probe"), "paper")
    data = read_asset(f"deep.experiments.{study}", "printed_tables.json")
    return tuple(
        PrintedTable(
            name, f"Printed: {data['source']}, {table['place']}", pd.DataFrame(table["rows"], columns=table["columns"])
        )
        for name, table in data["tables"].items()
    )


def printed_beside(paper: str, names: Collection[str]) -> Iterator[PrintedTable]:
    """Yield the printed tables that stand beside tables of a run, with the text's own figures.

    Parameters
    ----------
    paper : {'cognibench', 'probe'}
        As in :func:`printed_tables`.
    names : collection of str
        Of the run's tables.

    Examples
    --------
    >>> from deep.experiments.study import printed_beside
    >>> [name for name, _, _ in printed_beside("probe", ["table2-evidence", "figure3-decomposition"])]
    ['table2-evidence-printed', 'figures-printed']
    """
    figures = {name[:7] for name in names if name.startswith("figure")}
    for name, title, frame in printed_tables(paper):
        rows = frame
        if name == FIGURES:
            rows = frame[[f"figure{str(figure)[:1]}" in figures for figure in frame["figure"]]]
        if (name in names or name == FIGURES) and not rows.empty:
            yield PrintedTable(f"{name}-printed", title, rows)


def printed_text(paper: str, names: Collection[str]) -> list[str]:
    """Return the lines of those tables, each under its title."""
    lines: list[str] = []
    for _, title, frame in printed_beside(paper, names):
        lines += [title, "", *markdown(frame.astype(str)), ""]
    return lines


def ask_programs(
    args: argparse.Namespace, programs: "Callable[[], Iterable[asking.ProgramEntry]]"
) -> "dict[asking.ProgramId, Any]":
    """Run programs to their end as the options of `CALL_TOPICS` say, and return the value of each.

    Raises
    ------
    StoppedError
        The run was stopped before.
    """
    options = ask_options(args, args.out)
    args.out.absolute().parent.mkdir(parents=True, exist_ok=True)  # where the ledger lies
    with live_progress() as progress:
        outcome, values = asking.run_programs(programs, options, endpoint=endpoint_of(args), progress=progress)
    if outcome.stopped is not None:
        raise StoppedError(outcome.stopped)
    return values
