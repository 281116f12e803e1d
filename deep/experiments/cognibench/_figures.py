"""Figures 5 to 8 and 12 of the paper from runs."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from deep._figures import BLUE, LIGHT, RED, new_figure, plain_grid
from deep.experiments.cognibench._tables import N_POSITIONS, PUBLISHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLORS = {"factual": BLUE, "cognitive": RED}


def draw_figures(frames: Mapping[str, pd.DataFrame], verdicts: Mapping[str, Mapping[str, int]]) -> dict[str, "Figure"]:
    """Return the figures by file name; all but those of shares show the published labels."""
    by_turn, by_position = frames["rates-by-turn"], frames["rates-by-position"]
    turn = by_turn[by_turn["labels"] == PUBLISHED]
    position = by_position[by_position["labels"] == PUBLISHED]
    shares = {name: draw_shares(frames[name]) for name in ("shares-by-labels", "figure8-models") if name in frames}
    return {
        "figure5-statements-by-turn": _statements(turn),
        "figure6-verdicts": _verdicts(verdicts),
        "figure7-hallucinations": _hallucinations(turn, position),
        **shares,
    }


def _axes(title: str, rows: int = 1, height: float = 3.4) -> tuple["Figure", Sequence["Axes"]]:
    figure = new_figure(6.4, height * rows)
    panels = list(figure.subplots(rows, 1, squeeze=False)[:, 0])
    figure.subplots_adjust(left=0.12, right=0.97, top=0.9, bottom=0.65 / (height * rows), hspace=0.5)
    figure.suptitle(title, fontsize=11)
    for panel in panels:
        plain_grid(panel, "y")
    return figure, panels


def _lines(panel: "Axes", frame: pd.DataFrame, by: str, column: str, ylabel: str) -> None:
    for kind, color in COLORS.items():
        values = pd.to_numeric(frame[f"{kind} {column}"])
        panel.plot(frame[by], values, marker="o", color=color, label=kind)
    panel.set(ylabel=ylabel, ylim=(0, None))
    panel.set_xticks(list(frame[by]), [f"{place}\nn={n}" for place, n in zip(frame[by], frame["turns"], strict=True)])
    panel.legend(fontsize=8)


def _statements(frame: pd.DataFrame) -> "Figure":
    figure, (panel,) = _axes("Statements per turn, by turn of the dialogue")
    _lines(panel, frame, "turn", "per turn", "statements")
    panel.set_xlabel("turn (from 0)")
    return figure


def _verdicts(verdicts: Mapping[str, Mapping[str, int]]) -> "Figure":
    figure, panels = _axes("Statements by verdict", rows=2, height=2.4)
    for panel, (kind, counts) in zip(panels, verdicts.items(), strict=True):
        total = max(1, sum(counts.values()))
        bars = panel.bar(list(counts), [100 * n / total for n in counts.values()], color=COLORS[kind])
        panel.bar_label(bars, labels=[str(n) for n in counts.values()], fontsize=8, padding=1)
        panel.set(ylabel=f"% of {kind}", ylim=(0, 110))
    return figure


def _hallucinations(by_turn: pd.DataFrame, by_position: pd.DataFrame) -> "Figure":
    figure, panels = _axes("Share of hallucinated statements", rows=2)
    _lines(panels[0], by_turn, "turn", "hallucination rate", "share")
    panels[0].set_xlabel("turn of the dialogue (from 0)")
    _lines(panels[1], by_position, "position", "hallucination rate", "share")
    panels[1].set_xlabel(f"position in the turn (of {N_POSITIONS} equal parts, from 0)")
    return figure


def draw_shares(frame: pd.DataFrame) -> "Figure":
    """Draw a bar for each origin of labels: factual and cognitive statements, the hallucinated part of each darker."""
    figure, (panel,) = _axes("Types of statement and what of them is hallucinated", height=1.9 + 0.5 * len(frame))
    figure.subplots_adjust(left=0.34, bottom=1.0 / (1.9 + 0.5 * len(frame)))
    for y, row in enumerate(frame.to_dict("records")):
        left, total = 0.0, max(1, row["factual"] + row["cognitive"])
        for kind in COLORS:
            bad = row[f"{kind} hallucinated"]
            for n, color in ((bad, COLORS[kind]), (row[kind] - bad, LIGHT[COLORS[kind]])):
                panel.barh(y, 100 * n / total, left=left, color=color)
                left += 100 * n / total
    _legend(figure)
    panel.set(yticks=range(len(frame)), yticklabels=list(frame["labels"]), xlabel="% of statements", xlim=(0, 100))
    panel.tick_params(axis="y", labelsize=7)
    panel.invert_yaxis()
    return figure


def _legend(figure: "Figure") -> None:
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for kind in COLORS:
        handles += [
            Patch(color=COLORS[kind], label=f"{kind}, hallucinated"),
            Patch(color=LIGHT[COLORS[kind]], label=kind),
        ]
    figure.legend(handles=handles, fontsize=8, ncol=4, loc="lower center", frameon=False)


def draw_curve(frame: pd.DataFrame, fits: Mapping[str, tuple[float, float]]) -> "Figure":
    """Draw F1 by the number of training chats, on a logarithmic axis, with the fitted line of each part."""
    figure, (panel,) = _axes("F1 of the tuned detector by training size (Figure 12)")
    for part, color in (("overall", "#444444"), *COLORS.items()):
        values = 100 * pd.to_numeric(frame[part])
        panel.plot(frame["training chats"], values, marker="o", linestyle="", color=color, label=part)
        if part in fits:
            low, slope = fits[part]
            line = [100 * (low + slope * math.log10(size)) for size in frame["training chats"]]
            panel.plot(frame["training chats"], line, color=color, linewidth=1)
    panel.set(xscale="log", xlabel="training chats", ylabel="F1, %", ylim=(0, 100))
    panel.legend(fontsize=8)
    return figure
