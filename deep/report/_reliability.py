"""The chapter on reliability: whether P says how often claims are consistent, before calibration and after."""

from collections.abc import Iterator

import numpy as np

from deep._checks import Floats, Labels
from deep.calibration import ReliabilityDisplay, ece_noise_floor, expected_calibration_error, plot_reliability
from deep.report._material import ReportMaterial, ScoredVotes, dataset_rows
from deep.report._page import Chapter, DataTable, Picture, between, percent
from deep.report._svg import inline_svg

MOST_DISTINCT = 5000
"""More distinct values of P, as soft scores give, are rounded: the law behind the noise floor takes long with them."""

TITLE = "Reliability"
CAPTION = "Share of consistent items beside the P that they were given, before and after calibration"


def reliability_chapter(material: ReportMaterial) -> Chapter:
    """Return the chapter."""
    scored = material.measured
    if material.learned_from and not (scored is not None and scored.labeled.any()):
        return Chapter("reliability", TITLE, ["The model has seen every label here. Give votes on another dataset."])
    if scored is None or not scored.labeled.any():
        why = "Reliability is seen where items have a P and a label. Here none has both: give votes and --labels."
        return Chapter("reliability", TITLE, [why])
    labeled = scored.labeled
    y = scored.votes.labels[labeled]
    before, after = (_few(p[labeled]) for p in (scored.before, scored.p))
    figure = plot_reliability(y, before, after, n_bins=material.n_bins)
    tables = [_bins(y, p, name, material.n_bins) for name, p in (("before", before), ("after", after))]
    says = [
        "Each item counts once here, also where datasets differ in size; the table by dataset shows them apart. ECE "
        "has a noise floor: with so many items, a perfect P would show that much by chance."
    ]
    rows = list(_by_dataset(scored, material.n_bins))
    parts: list[DataTable | Picture] = [
        DataTable("Calibration error (ECE) by dataset, in percent", rows),
        Picture(inline_svg(figure, "reliability", CAPTION), CAPTION, tables),
    ]
    return Chapter("reliability", TITLE, says, parts)


def _bins(y: Labels, p: Floats, name: str, n_bins: int) -> DataTable:
    bins = ReliabilityDisplay.from_predictions(y, p, n_bins=n_bins)
    rows = [
        {
            "P from": f"{bins.edges[i]:.3f} to {bins.edges[i + 1]:.3f}",
            "items": f"{bins.count[i]:.0f}",
            "mean P, %": percent(bins.mean_prob[i]),
            "consistent, %": percent(bins.share[i]),
            "95 % interval": between([bins.low[i], bins.high[i]]),
        }
        for i in np.flatnonzero(bins.count)
    ]
    return DataTable(f"{name.capitalize()} calibration", rows)


def _few(p: Floats) -> Floats:
    return p if len(np.unique(p)) <= MOST_DISTINCT else np.round(p, 3)


def _by_dataset(scored: ScoredVotes, n_bins: int) -> Iterator[dict[str, str]]:
    for name, every in dataset_rows(scored.votes):
        rows = every[scored.labeled[every]]
        if not len(rows):
            continue
        y = scored.votes.labels[rows]
        row = {"dataset": name, "labels": f"{len(rows):,}"}
        for when, p in (("before", scored.before), ("after", scored.p)):
            given = _few(p[rows])
            row[when] = percent(expected_calibration_error(y, given, n_bins=n_bins))
            row[f"floor {when}"] = percent(ece_noise_floor(given, n_bins=n_bins, n_draws=0).mean)
        yield row
