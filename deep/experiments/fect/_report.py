"""FECT's tables and figures: its Tables 2, 4 and 5, its Figures 5, 7 and 8, and self-consistency beside them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from deep._figures import AMBER, BLUE, GRAY, RED, new_figure, save_figures
from deep._files import JsonObject
from deep.evaluate import markdown
from deep.experiments.fect._published import SOURCE
from deep.experiments.fect._scores import LEAST_COVERAGE, METRICS, pick_best

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


TABLES = {"f1": 2, "precision": 4, "recall": 5}
"""The paper's table of each metric."""

FIGURES = {"f1": 5, "precision": 7, "recall": 8}

COLORS = (GRAY, BLUE, AMBER, RED)

TITLES = {"f1": "F1", "precision": "Precision", "recall": "Recall"}


def cells(summary: pd.DataFrame, metric: str, *, bold: bool = True) -> pd.DataFrame:
    """Return one table in the paper's layout: a row a model, a column a prompt, mean ± standard deviation."""
    chosen = summary[summary["metric"] == metric]
    parts = zip(chosen["mean"], chosen["sd"], chosen["coverage"], strict=True)
    wide = _wide(chosen, [f"{_cell(mean, sd)}{_covered(share) if mean == mean else ''}" for mean, sd, share in parts])
    for prompt, model in pick_best(summary, metric).items() if bold else ():
        wide.loc[model, prompt] = f"**{wide.loc[model, prompt]}**"
    return wide


def _intervals(summary: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the means and 95 % t-intervals that the figure of a metric shows."""
    chosen = summary[summary["metric"] == metric]
    rows = chosen[["mean", "low", "high"]].itertuples(index=False)
    return _wide(
        chosen, ["-" if np.isnan(low) else f"{mean:.3f} ({low:.3f} to {high:.3f})" for mean, low, high in rows]
    )


def _wide(chosen: pd.DataFrame, text: Sequence[str]) -> pd.DataFrame:
    wide = chosen.assign(text=text).pivot(index="model", columns="prompt", values="text")
    return wide.loc[list(dict.fromkeys(chosen["model"])), list(dict.fromkeys(chosen["prompt"]))].fillna("-")


def _cell(mean: float, sd: float) -> str:
    """Return a figure to two decimals as the paper prints it; a dash where there is none."""
    if np.isnan(mean):
        return "-"
    return f"{mean:.2f}" if np.isnan(sd) else f"{mean:.2f} ± {sd:.2f}"


def frames_of(summary: pd.DataFrame, printed: pd.DataFrame | None) -> dict[str, pd.DataFrame]:
    """Return the summary of a run and its tables by name, the printed ones with ``-printed`` behind."""
    frames = {"summary": summary}
    for suffix, one in (("", summary), ("-printed", printed)):
        if one is not None:
            frames |= {f"table-{TABLES[m]}-{m}{suffix}": cells(one, m, bold=False) for m in METRICS}
    return frames


def _covered(share: float) -> str:
    """Return the share of the claims on which a judge votes, where it is too low to compare its figures."""
    return f" ({share:.0%} of claims)".replace("%", " %") if share < LEAST_COVERAGE else ""


def report(
    summary: pd.DataFrame,
    runs: pd.DataFrame,
    repeats: pd.DataFrame,
    counts: dict[str, int],
    printed: pd.DataFrame | None = None,
) -> str:
    """Return the report of a run as Markdown, each table above the printed one where there is one."""
    lines = [
        f"{counts['items']} claims: {counts['factual']} factual, {counts['nonfactual']} non-factual. "
        "The non-factual class is the positive one.",
        "",
    ]
    for metric in METRICS:
        lines += [f"Table {TABLES[metric]}. {TITLES[metric]}, mean ± standard deviation over runs", ""]
        lines += [*markdown(cells(summary, metric).reset_index(names="model")), ""]
        if printed is not None:
            lines += [f"Table {TABLES[metric]} {SOURCE}", ""]
            lines += [*markdown(cells(printed, metric).reset_index(names="model")), ""]
    for metric in METRICS if summary["low"].notna().any() else ():
        lines += [f"Figure {FIGURES[metric]}. {TITLES[metric]}, mean and 95 % t-interval over runs", ""]
        lines += [*markdown(_intervals(summary, metric).reset_index(names="model")), ""]
    lines += ["Self-consistency over runs", "", *markdown(_consistency_cells(repeats)), ""]
    return "\n".join([*lines, _without_a_vote(runs), ""])


def _consistency_cells(repeats: pd.DataFrame) -> pd.DataFrame:
    shown = repeats[["model", "prompt"]].copy()
    flips = zip(repeats["n_flipped"], repeats["n_repeated"], repeats["flipped"], strict=True)
    shown["items that flip"] = [f"{n} of {of} ({share:.1%})" if of else "-" for n, of, share in flips]
    shown["Krippendorff's alpha"] = [_cell(alpha, np.nan) for alpha in repeats["alpha"]]
    shown["verdicts without a vote"] = repeats["no_vote"].astype(str)
    return shown


def _without_a_vote(runs: pd.DataFrame) -> str:
    lost, lost_nonfactual = int(runs["no_vote"].sum()), int(runs["no_vote_nonfactual"].sum())
    if not lost:
        return "Every item has a vote in every run."
    return f"{lost} verdicts are without a vote ({lost_nonfactual} on non-factual claims); they are in no score above."


def draw(summary: pd.DataFrame, folder: Path, *, reasoning: Sequence[str] = (), suffix: str = "") -> None:
    """Draw Figures 5, 7 and 8: means and 95 % intervals, reasoning models above the others where they are named."""
    chosen = {metric: summary[summary["metric"] == metric] for metric in FIGURES}
    drawn = {m: _figure(rows, m, reasoning) for m, rows in chosen.items() if rows["mean"].notna().any()}
    save_figures({f"figure-{FIGURES[metric]}-{metric}{suffix}": figure for metric, figure in drawn.items()}, folder)


def _figure(chosen: pd.DataFrame, metric: str, reasoning: Sequence[str]) -> "Figure":
    models = list(dict.fromkeys(chosen["model"]))
    groups = {"reasoning models": [m for m in models if m in reasoning]}
    groups["other models" if groups["reasoning models"] else ""] = [m for m in models if m not in reasoning]
    groups = {title: names for title, names in groups.items() if names}
    figure = new_figure(max(4.0, 1.5 * len(models) + 2), 3.2 * len(groups), constrained=True)
    for ax, (title, names) in zip(np.atleast_1d(figure.subplots(len(groups), 1)), groups.items(), strict=True):
        _panel(ax, chosen, names)
        ax.axhline(chosen["mean"].max(), ls="--", lw=1, color=GRAY)
        ax.set(ylabel=TITLES[metric], ylim=(-0.02, 1.02), title=title)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _panel(ax: "Axes", chosen: pd.DataFrame, models: Sequence[str]) -> None:
    prompts = list(dict.fromkeys(chosen["prompt"]))
    for i, prompt in enumerate(prompts):
        found = chosen[chosen["prompt"] == prompt].set_index("model").reindex(models)
        half = (found["high"] - found["mean"]).fillna(0.0)
        style: JsonObject = {"fmt": "o", "ms": 4, "capsize": 3, "color": COLORS[i % len(COLORS)]}
        ax.errorbar(
            np.arange(len(models)) + 0.12 * (i - (len(prompts) - 1) / 2), found["mean"], half, label=prompt, **style
        )
    ax.set_xticks(range(len(models)), models)
    ax.set_xlim(-0.6, len(models) - 0.4)
