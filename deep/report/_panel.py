"""The chapter on the panel: each judge by itself, against labels and against the others."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from deep.datasets import Failures
from deep.evaluate import draw_error_correlation, panel_card
from deep.features import analyze_votes, effective_votes, error_correlation
from deep.records import VoteMatrix
from deep.report._material import ReportMaterial
from deep.report._page import Chapter, DataTable, Picture, between, percent
from deep.report._svg import inline_svg

MOST_ADDED = 12
"""Judges of which the report measures what each adds: the panels to fit grow with their square."""

MOST_DRAWN = 40
LONGEST = 32


def panel_chapter(material: ReportMaterial) -> Chapter:
    """Return the chapter."""
    scored = material.scored
    if scored is not None and scored.votes.shape[1] > 1:
        return Chapter("panel", "The panel", *_of_votes(scored.votes, material.failures))
    if material.runs:
        return Chapter("panel", "The panel", *_of_run(material.runs[0]))
    if material.model is not None:
        names = ", ".join(material.model.voter_names)
        return Chapter("panel", "The panel", [f"Judges of the model: {names}. Give votes to see them at work."])
    return Chapter("panel", "The panel", ["A panel has two judges or more; here is one."])


def _of_votes(votes: VoteMatrix, failures: Sequence[Failures]) -> tuple[list[str], list[DataTable | Picture]]:
    labeled = votes.rows(votes.labels >= 0)
    y = labeled.labels if len(np.unique(labeled.labels)) == 2 else None
    matrix = labeled if y is not None else votes
    analysis = analyze_votes(matrix.votes, y, voter_names=matrix.voter_names)
    says = ["Rates weigh every item the same; TPR is the share of consistent items that a judge calls so."]
    parts: list[DataTable | Picture] = [DataTable("Each judge", list(_judges(analysis)))]
    if failures:
        parts.append(DataTable("Missing votes by reason", list(_missing(failures))))
    if y is None:
        return [*says, "There are no labels of both kinds, so that no rates, errors or worth can be told."], parts
    says.append(_worth(matrix.shape[1], effective_votes(matrix.votes, y)))
    parts.append(_correlation(matrix.voter_names, error_correlation(matrix.votes, y).tolist()))
    said, added = _added(matrix)
    return [*says, said], [*parts, *added]


def _of_run(run: dict[str, Any]) -> tuple[list[str], list[DataTable | Picture]]:
    frame = pd.DataFrame(run["voters"]).set_index("name").astype(float)
    says = [f"On the rows that were trained on where {run['test']} was held out."]
    if run["effective_votes"] is not None:
        says.append(_worth(len(frame), run["effective_votes"]))
    parts = [DataTable("Each judge", list(_judges(frame))), _correlation(list(frame.index), run["error_correlation"])]
    return says, parts


def _worth(k: int, effective: float) -> str:
    return f"By the correlation of their errors, the {k} judges are worth {effective:.1f} independent ones."


def _judges(analysis: pd.DataFrame) -> Iterator[dict[str, str]]:
    heads = {"coverage": "coverage, %", "overlaps": "overlaps, %", "conflicts": "conflicts, %"}
    heads |= {"polarity": "calls consistent, %", "accuracy": "accuracy, %", "tpr": "TPR, %", "tnr": "TNR, %"}
    heads["balanced_accuracy"] = "balanced accuracy, %"
    for name, row in analysis.iterrows():
        shown = {head: "" if np.isnan(row[key]) else percent(row[key]) for key, head in heads.items() if key in row}
        yield {"judge": str(name), **shown}


def _missing(failures: Sequence[Failures]) -> Iterator[dict[str, str]]:
    counts: dict[str, Counter[str]] = {}
    for each in failures:
        counts.setdefault(each.voter, Counter()).update(each.reasons)
    reasons = sorted({reason for counted in counts.values() for reason in counted})
    for voter, counted in counts.items():
        yield {"judge": voter, **{reason: f"{counted[reason]:,}" for reason in reasons}}


def _correlation(names: Sequence[str], values: Sequence[Sequence[float]]) -> DataTable | Picture:
    caption = "Correlation of the judges' errors: 1 errs on the same items, 0 on unrelated ones"
    rows = [
        {
            "judge": name,
            **{f"{i}. {other}": f"{value:.2f}" for i, (other, value) in enumerate(zip(names, row, strict=True), 1)},
        }
        for name, row in zip(names, values, strict=True)
    ]
    table = DataTable(caption, rows, folded=True)
    if len(names) > MOST_DRAWN:
        return table
    figure = draw_error_correlation([_short(name) for name in names], values)
    return Picture(inline_svg(figure, "errors", caption), caption, [table])


def _added(votes: VoteMatrix) -> tuple[str, list[DataTable]]:
    """Return the worth of each judge, in a sentence and a table, where there are datasets and judges to measure it."""
    if votes.shape[1] > MOST_ADDED:
        return f"What each of more than {MOST_ADDED} judges adds takes longer: `deep panel` measures it.", []
    card = panel_card(votes)
    if card.worth is None:
        return f"What each judge adds was not measured: {card.worth_missing}", []
    found = card.worth
    rows = [
        {
            "judge": name,
            "log loss without it": f"{value:+.4f}",
            "90 % interval": f"{low:+.4f} to {high:+.4f}",
            "verdict": "keep" if name in found.keep else "drop",
        }
        for name, (value, low, high) in sorted(found.value.items(), key=lambda item: -item[1][0])
    ]
    gain = f"{100 * found.gain:+.1f} points (90 % interval {between(found.gain_ci)})"
    said = f"The panel's balanced accuracy less that of its best judge, {found.best_judge}: {gain}."
    return said, [DataTable("What each judge adds: the log loss of the panel without it, less that of the whole", rows)]


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
