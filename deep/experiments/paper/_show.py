"""The figures of a run beside the printed ones: verdicts, the tables in terminal and Markdown, and the drawings."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from deep._util.columns import plain_frame
from deep._util.figures import save_figures
from deep.calibration import NETCAL_CLASSES, plot_reliability
from deep.console import SIMULATED
from deep.datasets import published_source
from deep.evaluate import DatasetVerdict, IntervalRow, Row, draw_intervals, markdown
from deep.experiments import loo
from deep.experiments.loo import aligned
from deep.experiments.paper._paper_tables import (
    NETCAL_ECE,
    PUBLISHED,
    PUBLISHED_TABLES,
    TABLES,
    THIS_RUN,
    PublishedFigure,
    kept_out,
    printed_methods,
)
from deep.model import UNCALIBRATED

CELL = ["table", "dataset", "method", "n_prompts", "calibrator", "metric"]
"""What names a cell of a table."""

DECIMALS = {"2": 2}
"""Of printed figures, in percent; one in the other tables."""


def with_verdicts(figures: pd.DataFrame, votes: str | list[str]) -> pd.DataFrame:
    """Return the figures of :func:`paper_tables` with this run's value and a verdict beside each published one.

    Parameters
    ----------
    figures : DataFrame
    votes : str or list of str
        Where the votes come from.

    Returns
    -------
    DataFrame
        ``ours``: this run's value of the same cell. ``verdict``: 'fitted' where the embedded votes were made to meet
        the printed figure, whether they do or not; else 'same' (no difference), 'within the paper's
        rounding', 'differs because votes are simulated' or '... others', or 'not had because' what is missing. Both
        empty where the figure is this run's.
    """
    ours = figures[figures["origin"] == THIS_RUN].drop_duplicates(CELL).set_index(CELL)["value"]
    printed = figures["origin"] == PUBLISHED
    values = ours.reindex(pd.MultiIndex.from_frame(figures.loc[printed, CELL])).to_numpy()
    found = figures.assign(ours=np.nan, verdict="")
    found["ours"] = found["ours"].mask(printed, pd.Series(values, found.index[printed]))
    datasets = set(figures.loc[figures["origin"] == THIS_RUN, "dataset"])
    found.loc[printed, "verdict"] = [
        _verdict({str(k): v for k, v in row.items()}, simulated=votes == SIMULATED, there=row["dataset"] in datasets)
        for row in found[printed].to_dict("records")
    ]
    return found


def _verdict(row: Row, *, simulated: bool, there: bool) -> str:
    if pd.isna(row["ours"]):
        return f"not had because {_missing(row) if there else 'this dataset is not among the votes'}"
    if simulated and _is_fitted(row):
        return "fitted"
    gap, unit = abs(row["ours"] - row["value"]), 10.0 ** -DECIMALS.get(row["table"], 1)
    if gap < 1e-9:
        return "same"
    votes = "simulated" if simulated else "others"
    return "within the paper's rounding" if gap <= unit / 2 + 1e-9 else f"differs because votes are {votes}"


def _missing(row: Row) -> str:
    if row["table"] != "3":
        return "no such judge, ensembler, calibrator or number of judges was run"
    kind = {cell.method: cell.kind for cell in loo.published_baselines()}[row["method"]]
    missing = {
        "encoder": "no --scores were given",
        "llm": "no votes of this prompt were given",
        "ensemble": "the paper chose it on test labels: it is the row 'best ensemble', and Table 2",
    }
    return missing[kind]


def _is_fitted(row: Row) -> bool:
    """Return whether the embedded votes were made to meet a cell: Tables 1 and 6, and half of 2, 4 and 5."""
    if row["table"] not in PUBLISHED_TABLES:
        return True
    cell = row["method"], int(row["n_prompts"]), row["calibrator"]
    return not kept_out(PublishedFigure(row["table"], row["dataset"], *cell, row["metric"], row["value"] / 100))


ANSWER = "distance-from-the-printed-figures"
"""The picture of the answer."""


def verdict_of(figures: pd.DataFrame, origin: str | list[str]) -> DatasetVerdict:
    """Return the answer of a run: how far its figures are from the printed ones, of cells that were not fitted."""
    printed = figures[figures["verdict"] != ""]
    known = printed[printed["ours"].notna() & (printed["verdict"] != "fitted")]
    near = int(known["verdict"].isin(["same", "within the paper's rounding"]).sum())
    apart = f", {(known['ours'] - known['value']).abs().mean():.1f} points apart on average" if len(known) else ""
    suspect = f"{near:,} of {len(known):,} printed figures that this run was not fitted to are met{apart}."
    trust = "These votes are the user's own: what differs from the paper may be the judges."
    if origin == SIMULATED:
        trust = "These votes are SIMULATED from the paper's own figures; nothing here was measured on an LLM."
    missing = len(printed) - int(printed["ours"].notna().sum())
    judged = f"{len(printed):,} printed figures of 6 tables; {missing:,} of them this run does not give."
    then = "give votes of your own judges on these datasets"
    return DatasetVerdict(judged, suspect, trust, then, "deep paper --votes votes.parquet", picture=ANSWER)


def draw_distance(figures: pd.DataFrame) -> Figure:
    """Draw by table how far this run's figures are from the printed ones: the mean, and from the least to the most."""
    printed = figures[(figures["verdict"] != "") & figures["ours"].notna()]
    gaps = (printed["ours"] - printed["value"]).abs().groupby(printed["table"])
    rows = [IntervalRow(f"Table {table}", gap.mean(), [gap.min(), gap.max()]) for table, gap in gaps][::-1]
    return draw_intervals(rows, xlabel="points from the printed figure: mean, least and most", at=0.0)


def summary_lines(figures: pd.DataFrame) -> Iterator[str]:
    """Yield how many printed cells have which verdict and how far they are off, and what the paper says in words."""
    printed = figures[figures["verdict"] != ""]
    gap = (printed["ours"] - printed["value"]).abs()
    yield "Printed figures beside this run's: cells, mean distance in points"
    for (table, verdict), some in printed.groupby(["table", "verdict"]):
        apart = gap[some.index].mean()
        yield f"  {len(some):>4}  {'' if pd.isna(apart) else f'{apart:.1f}':>5}  Table {table}, {verdict}"
    yield ""
    yield from _words_of(figures[figures["origin"] == THIS_RUN])


def _words_of(ours: pd.DataFrame) -> Iterator[str]:
    """Yield how often LabelModel leads and is above the majority (Table 2), and Platt scaling lowers ECE (Table 4)."""
    table = ours[ours["table"] == "2"].pivot_table(index="method", columns=["dataset", "n_prompts"], values="value")
    if {"LabelModel", "MajorityLabelVoter"} <= set(table.index):
        learned, majority = table.loc["LabelModel"], table.loc["MajorityLabelVoter"]
        known = [name for name in table.index if name in printed_methods("2")]
        leads, above = (learned >= table.loc[known].max() - 1e-9).sum(), (learned > majority).sum()
        yield f"LabelModel leads, alone or with others, in {leads} of {len(learned)} columns of Table 2;"
        yield f"it is above the majority in {above}."
    for dataset, some in ours[ours["table"] == "4"].groupby("dataset", sort=False):
        some = some[some["method"].isin(printed_methods("4"))].assign(calibrator=some["calibrator"].fillna("none"))
        both = some.pivot_table(index=["method", "n_prompts"], columns="calibrator", values="value")
        if {"none", "platt"} <= set(both):
            lower = (both["platt"] < both["none"]).sum()
            mean = f"mean {both['none'].mean():.1f} to {both['platt'].mean():.1f}"
            yield f"Platt scaling lowers ECE in {lower} of {len(both)} cells of Table 4 on {dataset}: {mean}."
    yield ""


def table_lines(figures: pd.DataFrame) -> Iterator[str]:
    """Yield the tables for a terminal, one dataset after the other: this run's figures, then the printed ones."""
    for table, title in TABLES.items():
        chosen = figures[(figures["table"] == table) & (figures["origin"] != NETCAL_ECE)]
        chosen = chosen[~chosen["calibrator"].isin(list(NETCAL_CLASSES))]
        for dataset, some in chosen.groupby("dataset", sort=False):
            yield from aligned(f"Table {table}, {dataset}: {title} ({IN_PARENTHESES})", *_grid(some))


IN_PARENTHESES = "printed in parentheses, * fitted to it"


def _grid(some: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of one table and dataset."""
    varying = [name for name in ("n_prompts", "calibrator", "metric") if some[name].nunique(dropna=False) > 1]
    labels = some[varying].astype(object).where(some[varying].notna(), "none").astype(str).agg(" ".join, axis=1)
    labels = labels.str.replace("balanced_accuracy", "bal. acc.") if varying else pd.Series("bal. acc.", some.index)
    cells: dict[str, dict[str, list[str]]] = {}
    for label, row in zip(labels, some.to_dict("records"), strict=True):
        mark = "*" if row["verdict"] == "fitted" else ""
        printed = row["origin"] == PUBLISHED
        shown = f"({row['value']:.1f}{mark})" if printed else f"{row['value']:.1f}"
        cells.setdefault(str(row["method"]), {}).setdefault(label, []).insert(len(cells) if printed else 0, shown)
    columns = list(dict.fromkeys(labels))
    return ["", *columns], [[name, *(" ".join(row.get(c, [])) for c in columns)] for name, row in cells.items()]


def side_by_side(figures: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return one table in the paper's layout: a row a method and origin, a column a dataset and what varies."""
    chosen = figures[figures["table"] == table].copy()
    varying = [name for name in ("n_prompts", "calibrator", "metric") if chosen[name].nunique(dropna=False) > 1]
    chosen["column"] = chosen["dataset"]
    for name in varying:
        chosen["column"] += ", " + _words(chosen[name], name)
    margin = (chosen["high"] - chosen["low"]) / 2
    chosen["text"] = chosen["value"].map("{:.1f}".format) + margin.map(lambda m: "" if m != m else f" ± {m:.1f}")
    wide = chosen.drop_duplicates(["method", "origin", "column"]).pivot(
        index=["method", "origin"], columns="column", values="text"
    )
    order = pd.MultiIndex.from_tuples(dict.fromkeys(_paired(chosen)), names=["method", "origin"])
    ranks = {name: pd.factorize(chosen[name], use_na_sentinel=False)[0] for name in ("dataset", *varying)}
    columns = pd.unique(chosen["column"].iloc[np.lexsort(list(ranks.values())[::-1])])
    wide = wide.reindex(index=order, columns=columns).fillna("")
    return wide.rename_axis(columns=None).reset_index()


def _paired(chosen: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield methods in the order of appearance, the published figures of each before our own."""
    there = set(zip(chosen["method"], chosen["origin"], strict=True))
    for method in pd.unique(chosen["method"]):
        yield from ((method, origin) for origin in (PUBLISHED, THIS_RUN, NETCAL_ECE) if (method, origin) in there)


def _words(values: "pd.Series[str]", name: str) -> "pd.Series[str]":
    if name == "n_prompts":
        return values.map(lambda n: "" if n is pd.NA else f"{n} prompts")
    return values.fillna("uncalibrated").str.replace("_", " ")


ENCODER_FIGURES = {"thresholds": "figure1-optimal-thresholds", "threshold-transfer": "figure2-threshold-transfer"}


def paper_figures(
    encoders: Mapping[str, "Figure"], found: Sequence[loo.LooResult], dataset: str
) -> dict[str, "Figure"]:
    """Return Figure 4, and those of encoders, of which the paper has the first two, by their file names.

    Figure 4 is the paper's example, of the chains that the tables show: LabelModel on nine prompts (or as many as there
    are), fitted on the other datasets and tested on `dataset`, before and after Platt scaling. There is none where
    LabelModel was not run.
    """
    figures = {ENCODER_FIGURES.get(name, name): figure for name, figure in encoders.items()}
    example = next(each for each in found if each.results["test"] == dataset)
    chains = example.chains if example.chains is not None else pd.DataFrame(columns=["ensembler", "size"])
    learned = chains[chains["ensembler"] == "LabelModel"]
    if len(learned):
        figures["figure4-reliability"] = _reliability(learned[learned["size"] == learned["size"].max()], example)
    return figures


def _reliability(learned: pd.DataFrame, example: loo.LooResult) -> "Figure":
    before, after = (learned.loc[learned["calibrator"] == name, "p"].to_numpy() for name in (UNCALIBRATED, "platt"))
    run, labels = example.results, example.scores["label"].to_numpy(dtype=np.int8)
    title = f"{run['test']}: LabelModel on {learned['size'].iloc[0]} prompts, before and after Platt scaling"
    return plot_reliability(labels, before=before, after=after, n_bins=run["settings"]["n_bins"], title=title)


def write(folder: Path, figures: pd.DataFrame, drawn: dict[str, Figure], origin: str | list[str]) -> None:
    """Write one CSV of all figures, one Markdown text a table, and the drawings."""
    votes = origin if isinstance(origin, str) else ", ".join(origin)
    marked = figures.assign(votes=figures["origin"].map(lambda name: "" if name == PUBLISHED else votes))
    plain_frame(marked).to_csv(folder / "figures.csv", index=False, lineterminator="\n")
    for table, title in TABLES.items():
        lines = [f"# Table {table}. {title}", "", *markdown(side_by_side(figures, table)), ""]
        lines += [f"In percent. Published: {published_source()}. This run: {votes} votes, the paper's recipe.", ""]
        (folder / f"table{table}.md").write_text("\n".join(lines), encoding="utf-8")
    save_figures(drawn, folder, caption=loo.CAPTION if origin == SIMULATED else "", phone=True)
