"""The chapter on trust: what drift tests of the votes, and the canary of the labels, say of a model."""

from collections.abc import Iterator

import numpy as np

from deep.evaluate import Target, dataset_canary, drift_report
from deep.exceptions import InputError
from deep.model import SIGNIFICANCE, STATISTICS, Model
from deep.report._material import ReportMaterial, ScoredVotes, dataset_rows
from deep.report._page import Chapter, DataTable, decimal, percent

TITLE = "Drift and canary"
NEEDS_BOTH = (
    "Drift compares votes with those that a model was fitted on, and the canary tests labels against its P: "
    "`deep report model.json votes.parquet --labels labels.csv` shows both."
)


def watch_chapter(material: ReportMaterial) -> Chapter:
    """Return the chapter."""
    model, scored = material.model, material.scored
    if model is None or scored is None:
        return Chapter("watch", TITLE, [NEEDS_BOTH])
    says, parts = _drift(model, scored, material)
    rows = list(_canaries(model, scored))
    if rows:
        parts.append(DataTable("Canary: do labels agree with the model's P?", rows))
    else:
        says.append("There are no labels for the canary.")
    return Chapter("watch", TITLE, says, parts)


def _drift(model: Model, scored: ScoredVotes, material: ReportMaterial) -> tuple[list[str], list[DataTable]]:
    try:
        found = drift_report(model, scored.votes, material.failures)
    except InputError as error:
        return [f"Drift was not tested: {error}"], []
    rows = [
        {
            "judge": row.judge,
            "statistic": STATISTICS[row.statistic],
            "now": decimal(None if np.isnan(row.now) else row.now),
            "expected": f"{row.low:.3f} to {row.high:.3f}",
            "p": f"{row.p:.2g}",
            "moved": "yes" if row.moved else "",
        }
        for row in found.statistics
    ]
    return found.sentences(), [DataTable("Drift: each statistic now, and as expected by the training datasets", rows)]


def _canaries(model: Model, scored: ScoredVotes) -> Iterator[dict[str, str]]:
    votes = scored.votes
    for name, rows in dataset_rows(votes):
        part = votes.rows(rows)
        if not (part.labels >= 0).any():
            continue
        soft = np.full((len(rows), len(model.score_names)), np.nan) if model.score_names else None
        try:
            _, found = dataset_canary(model, Target(part, soft))
        except InputError as error:
            yield _row(name, verdict=str(error))
            continue
        yield _row(
            name,
            labels=f"{found.n_labels:,}",
            observed=percent(found.observed),
            expected=percent(found.expected),
            p=f"{found.p_value:.2g}",
            verdict="DISAGREE with the model" if found.p_value < SIGNIFICANCE else "do not disagree",
        )


def _row(
    name: str, *, verdict: str, labels: str = "", observed: str = "", expected: str = "", p: str = ""
) -> dict[str, str]:
    return {
        "dataset": name,
        "labels": labels,
        "consistent, %": observed,
        "expected, %": expected,
        "p": p,
        "the labels": verdict,
    }
