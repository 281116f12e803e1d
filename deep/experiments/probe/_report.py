"""The tables and figures of an evaluation."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from deep._util.figures import AMBER, BLUE, RED, new_figure, save_figures
from deep._util.files import check_replaceable, write_results
from deep.console import print_result
from deep.datasets import read_votes
from deep.evaluate import Row, framed, markdown, records, write_table
from deep.exceptions import ExitStatus, InputError
from deep.experiments.printed import write_printed
from deep.experiments.probe._measures import Measure
from deep.experiments.probe._records import COMPLEXITIES, TASKS, Sample
from deep.records import ABSTAIN, VoteMatrix
from deep.report import report_line, reported_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Measures = Mapping[str, Sequence[Measure]]
"""By model."""

TITLES = {
    "steps": "Every measure of every step, with its counts",
    "table2-evidence": "Table 2: evidence finding, partial and complete, and evidence evaluation",
    "figure3-decomposition": "Figure 3: claim decomposition",
    "figure4a-localization": "Figure 4a: hallucination localization by claim and by character",
    "figure4b-detection": "Figure 4b: hallucination detection, direct against stepwise",
}

COLORS = (BLUE, AMBER, RED)

SCORES = ("precision", "recall", "f1")

WIDE = {
    "figure3-decomposition": ("decompose", ("precision", "recall", "no_answer")),
    "figure4a-localization": (
        "locate",
        (
            *(f"{unit}_{score}" for unit in ("claim", "character") for score in SCORES),
            "no_answer",
        ),
    ),
    "figure4b-detection": (
        "detect",
        (*(f"{m}_{k}" for k in ("recall", "response_recall", "false_alarms") for m in ("direct", "stepwise")),),
    ),
}


FIGURES: dict[str, dict[str, dict[str, str]]] = {
    "figure3-decomposition": {"matched claims": {"precision": "precision", "recall": "recall"}},
    "figure4a-localization": {
        f"by {unit}": {f"{unit}_{score}": score for score in SCORES} for unit in ("claim", "character")
    },
    "figure4b-detection": {"recall of hallucinated claims": {"direct_recall": "direct", "stepwise_recall": "stepwise"}},
}
"""By table: its panels, and in each the legend of every column that is drawn."""


def build_tables(found: Measures) -> dict[str, pd.DataFrame]:
    """Return the tables that the measures fill, by name; a share of nothing is empty."""
    steps = pd.DataFrame([{"model": model, **m.row()} for model, measures in found.items() for m in measures])
    tables = {"steps": steps, "table2-evidence": _evidence(found)}
    tables |= {name: _wide(found, step, columns) for name, (step, columns) in WIDE.items()}
    return {name: table for name, table in tables.items() if not table.empty}


def _evidence(found: Measures) -> pd.DataFrame:
    """Return a row a model and a column per measure and task."""
    names = {("find", "partial"): "partial", ("find", "complete"): "complete", ("evaluate", "accuracy"): "evaluation"}
    rows = []
    for model, measures in found.items():
        known = {(m.step, m.name, m.task): m.value for m in measures}
        cells = {f"{name}_{t}": known[*at, t] for at, name in names.items() for t in TASKS if (*at, t) in known}
        if cells:
            rows.append({"model": model, **cells})
    return pd.DataFrame(rows).astype({column: float for row in rows[:1] for column in row if column != "model"})


def _wide(found: Measures, step: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return a row per model and task, and a column a measure."""
    rows = []
    for model, measures in found.items():
        known = {(m.task, m.name): m.value for m in measures if m.step == step}
        tasks = dict.fromkeys(task for task, _ in known)
        rows += [{"model": model, "task": t} | {name: known.get((t, name)) for name in columns} for t in tasks]
    return pd.DataFrame(rows).astype({name: float for name in columns if rows})


def write_report(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write every table, what the paper prints beside it, and the figures for those that have one as PNG and SVG."""
    for name, table in tables.items():
        write_table(folder, name, table, TITLES[name])
    write_printed(folder, "probe", tables)
    drawn = {name: _bars(tables[name], panels, TITLES[name]) for name, panels in FIGURES.items() if name in tables}
    save_figures(drawn, folder)


def _bars(table: pd.DataFrame, panels: Mapping[str, Mapping[str, str]], title: str) -> "Figure":
    """Draw a panel per group of measures, with a cluster of bars per model and task."""
    figure = new_figure(1.8 + 0.9 * len(table) * len(panels), 3.6)
    drawn = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    names = ["\n".join([str(row.model), *str(row.task).split("_")]) for row in table.itertuples()]
    for axes, (panel, columns) in zip(drawn, panels.items(), strict=True):
        width = 0.8 / len(columns)
        for i, (column, label) in enumerate(columns.items()):
            places = [x - 0.4 + (i + 0.5) * width for x in range(len(table))]
            bars = axes.bar(places, table[column].fillna(0.0), width=width, label=label, color=COLORS[i])
            texts = ["" if value != value else f"{100 * value:.0f}" for value in table[column]]
            axes.bar_label(bars, labels=texts, fontsize=6, padding=1)
        axes.set_xticks(range(len(table)), names, fontsize=6)
        axes.set(xlabel=panel, ylim=(0.0, 1.1))
        axes.legend(fontsize=7, ncols=len(columns), loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    figure.suptitle(title, fontsize=10)
    figure.subplots_adjust(wspace=0.05, top=0.83)
    return figure


TITLE = "Responses that each voter calls inconsistent, by task and complexity"


def measure_votes(args: argparse.Namespace, samples: Sequence[Sample]) -> int:
    """Run ``deep probe eval --votes``."""
    check_replaceable(args.out)
    table = voter_table(read_votes(args.votes), samples)
    results = {"schema_version": 1, "samples": len(samples), "voters": records(table)}
    with reported_folder(args.out) as folder:
        write_table(folder, "voters", table, TITLE)
        write_results(folder, results)
    text = "\n".join([TITLE, "", *markdown(table), "", f"written to {args.out}", report_line(args.out), ""])
    print_result(results, [text], as_json=args.json)
    return ExitStatus.DONE


@framed
def voter_table(votes: VoteMatrix, samples: Sequence[Sample]) -> Iterator[Row]:
    """Return a row per voter, task and complexity: responses, those without a vote, and the share called inconsistent.

    At complexity 0 that share is of false alarms, above it is the recall; a response without a vote is not called.

    Raises
    ------
    InputError
        A sample has no row.
    """
    row_of = {item: row for row, item in enumerate(zip(votes.datasets, votes.example_ids, strict=True))}
    items = [(f"probe-{sample.task}", sample.example_id) for sample in samples]
    missing = next((item for item in items if item not in row_of), None)
    if missing is not None:
        raise InputError(f"`votes` must have a row for every sample. Got none for {missing[1]!r} of {missing[0]!r}.")
    of_samples = votes.votes[[row_of[item] for item in items]]
    for voter, column in zip(votes.voter_names, of_samples.T.tolist(), strict=True):
        for task in (*TASKS, "overall"):
            for complexity in COMPLEXITIES:
                cast = [
                    vote
                    for vote, sample in zip(column, samples, strict=True)
                    if task in (sample.task, "overall") and sample.complexity == complexity
                ]
                if cast:
                    counts = {
                        "responses": len(cast),
                        "no_vote": cast.count(ABSTAIN),
                        "called": cast.count(0) / len(cast),
                    }
                    yield {"voter": voter, "task": task, "complexity": complexity, **counts}
