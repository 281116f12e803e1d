"""The methods that a report compares, by dataset: those of a run, or what votes and labels give at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deep._util.checks import Labels, Mask, Texts
from deep._util.files import JsonObject
from deep.calibration import balanced_accuracy, bootstrap_balanced_accuracy
from deep.evaluate import (
    COLORS,
    IntervalRow,
    clustered_balanced_accuracy,
    decision_metrics,
    draw_intervals,
    mean_interval,
    method_rows,
)
from deep.model import Model
from deep.records import ABSTAIN
from deep.report._page import Chapter, DataTable, Picture, between, decimal, inline_svg, percent
from deep.report._sources import ReportMaterial, ScoredVotes, dataset_rows, vote_share

LEVEL = 0.95
N_BOOT = 2000
MOST_METHODS = 60
"""Methods that a picture holds: the best of them."""

LONGEST = 48
"""Characters of a name in a picture."""


@dataclass(frozen=True)
class MeasuredMethod:
    """One way to decide, measured on labeled datasets.

    Parameters
    ----------
    name : str
    kind : str
        A key of :data:`deep.evaluate.COLORS`: `ours` for P(consistent).
    by_dataset : mapping of str to dict
        Metrics, of them `balanced_accuracy` always known.
    """

    name: str
    kind: str
    by_dataset: Mapping[str, JsonObject]

    def mean(self, metric: str) -> float | None:
        """Return the mean of a metric over datasets; None where one lacks it."""
        every = [row.get(metric) for row in self.by_dataset.values()]
        known = [float(value) for value in every if value is not None]
        return float(np.mean(known)) if known and len(known) == len(every) else None

    @property
    def interval(self) -> list[float] | None:
        """Return the 95 % interval of balanced accuracy: by t over datasets, of a single one its own."""
        rows = list(self.by_dataset.values())
        if len(rows) == 1:
            return rows[0].get("balanced_accuracy_ci")
        _, low, high = mean_interval([row["balanced_accuracy"] for row in rows], LEVEL)
        return [max(low, 0.0), min(high, 1.0)]


def methods_of(material: ReportMaterial) -> list[MeasuredMethod]:
    """Return the methods, best first; `ours` is P(consistent) of this report."""
    measured = material.measured
    if material.runs:
        found = _of_runs(material.runs)
    elif measured is not None and measured.labeled.any():
        found = _of_items(measured, material.n_bins)
    else:
        found = [] if material.model is None else _of_model(material.model)
    return sorted(found, key=lambda method: -(method.mean("balanced_accuracy") or 0.0))


def ours(methods: Sequence[MeasuredMethod]) -> MeasuredMethod | None:
    """Return the method that a report is about."""
    return next((method for method in methods if method.kind == "ours"), None)


def _of_runs(runs: Sequence[JsonObject]) -> list[MeasuredMethod]:
    """Return the methods that every labeled run has."""
    kinds: dict[str, str] = {}
    rows: dict[str, dict[str, JsonObject]] = {}
    labeled = [run for run in runs if run["prior_test"] is not None]
    for run in labeled:
        for name, row, kind in method_rows(run):
            if row["balanced_accuracy"] is not None:
                name = "best judge on training data" if name.startswith("best on training") else name
                name = "best judge with its context" if name.endswith(", with context") else name
                kinds[name] = kind
                rows.setdefault(name, {})[run["test"]] = row
    return [MeasuredMethod(name, kinds[name], by) for name, by in rows.items() if len(by) == len(labeled)]


def _of_items(scored: ScoredVotes, n_bins: int) -> list[MeasuredMethod]:
    """Return P(consistent), the majority vote and every judge alone, on each labeled dataset."""
    votes = scored.votes
    decisions = {
        "P(consistent)": (scored.decided, scored.p, "ours"),
        "majority vote": (vote_share(votes.votes) >= 0.5, None, "test"),
    }
    for column, name in enumerate(votes.voter_names):
        decisions[name] = (votes.votes[:, column] != 0, None, "train")
    found = {name: dict[str, JsonObject]() for name in decisions}
    for dataset, rows in dataset_rows(votes):
        labels = votes.labels[rows]
        if len(np.unique(labels[labels != ABSTAIN])) < 2:
            continue
        for name, (decided, p, _) in decisions.items():
            if p is None:
                row = _decision_alone(labels, decided[rows])
            else:
                row = decision_metrics(labels, p[rows], decided[rows], n_bins=n_bins, n_boot=N_BOOT, random_state=0)
            if votes.document_ids is not None:
                row["balanced_accuracy_ci"] = _by_document(labels, decided[rows], votes.document_ids[rows])
            found[name][dataset] = row
    return [MeasuredMethod(name, decisions[name][2], by) for name, by in found.items() if by]


def _by_document(labels: Labels, decided: Mask, documents: Texts) -> list[float]:
    known = labels != ABSTAIN
    return list(clustered_balanced_accuracy(labels[known], decided[known], documents[known], n_boot=N_BOOT))


def _decision_alone(labels: Labels, decided: Mask) -> JsonObject:
    """Return balanced accuracy, and its interval, of decisions without a P."""
    y, decisions = labels[labels != ABSTAIN], decided[labels != ABSTAIN]
    interval = bootstrap_balanced_accuracy(y, decisions, n_boot=N_BOOT, random_state=0)
    return {"balanced_accuracy": balanced_accuracy(y, decisions), "balanced_accuracy_ci": list(interval)}


def _of_model(model: Model) -> list[MeasuredMethod]:
    left_out = model.report["left_out_scores"]
    assert isinstance(left_out, dict)  # as every fit writes it
    return (
        [MeasuredMethod("the model, each dataset left out", "ours", left_out["datasets"])]
        if left_out["datasets"]
        else []
    )


def methods_chapter(methods: Sequence[MeasuredMethod]) -> Chapter:
    """Return the chapter on the balanced accuracy of every method."""
    title = "Every method"
    if not methods:
        return Chapter("methods", title, ["There are no labels, so that no method can be measured: give --labels."])
    shown = [method for i, method in enumerate(methods) if i < MOST_METHODS or method.kind == "ours"][::-1]
    rows = [IntervalRow(_short(m.name), m.mean("balanced_accuracy") or 0.0, m.interval, COLORS[m.kind]) for m in shown]
    over = _over(methods[0])
    caption = f"Balanced accuracy with its 95 % interval, {over}"
    figure = draw_intervals(rows, xlabel="balanced accuracy, 95 % interval")
    table = DataTable(caption, [_row(method) for method in methods])
    says = ["Red: what this report is about. A decision without a vote counts as consistent."]
    if len(methods) > len(shown):
        says.append(f"The picture holds the best {len(shown)} of {len(methods)} methods, the table all.")
    parts = [Picture(inline_svg(figure, "methods", caption), caption, [table])]
    return Chapter("methods", title, says, parts)


def _over(method: MeasuredMethod) -> str:
    names = list(method.by_dataset)
    return f"mean over {len(names)} datasets" if len(names) > 1 else f"on {names[0]}"


def _row(method: MeasuredMethod) -> dict[str, str]:
    return {
        "method": method.name,
        "balanced accuracy, %": percent(method.mean("balanced_accuracy")),
        "95 % interval": between(method.interval),
        "ECE, %": percent(method.mean("ece")),
        "noise floor, %": percent(method.mean("ece_floor")),
        "log loss": decimal(method.mean("log_loss")),
    }


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
