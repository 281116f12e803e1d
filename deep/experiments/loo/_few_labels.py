"""A few labels of the held-out dataset: what they correct, find and tell, and which items to label."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep import model
from deep._util.checks import Floats, Labels
from deep.calibration import balanced_accuracy, expected_calibration_error
from deep.evaluate import Row, in_percent, markdown

FEW = (5, 10, 20, 50, 100)
"""Numbers of target labels given."""

NULL_DRAWS = 500
"""Label sets that the canary simulates."""


def few_labels(
    y: Labels,
    p: Floats,
    prior: model.PriorEstimate,
    misfit: model.Misfit,
    *,
    n_draws: int,
    n_bins: int,
    random_state: int,
) -> Row:
    """Return the effects of random labels on a dataset, by their number, as means over draws.

    Parameters
    ----------
    y : ndarray of int8, shape (n_examples,)
        The labels, all of them.
    p : ndarray of float, shape (n_examples,)
        P(consistent) at the estimated prior.
    prior : PriorEstimate
    misfit : Misfit
    n_draws, n_bins, random_state : int

    Returns
    -------
    dict
        `few_labels`: calibration error on the unlabeled rest; `labeled`: balanced accuracy there at the corrected
        threshold, the share of draws that the canary flags, and estimates of the share of consistent items. None
        where more than half of the dataset would be labeled.
    """
    rng = np.random.default_rng(random_state)
    found: dict[str, Row | None] = dict.fromkeys(map(str, FEW))
    draw = partial(_one_draw, y, p, prior, misfit, n_bins)
    for n in FEW:
        if 2 * n <= len(y):
            drawn = [draw(rng.permutation(len(y))[:n], seed) for seed in range(n_draws)]
            found[str(n)] = {name: _mean([row[name] for row in drawn]) for name in drawn[0]}
    errors = {n: None if row is None else row.pop("ece") for n, row in found.items()}
    return {"few_labels": errors, "labeled": found}


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of known values: of one class alone there is no balanced accuracy."""
    known = [value for value in values if value is not None and not np.isnan(value)]
    return float(np.mean(known)) if known else None


def _one_draw(
    y: Labels,
    p: Floats,
    prior: model.PriorEstimate,
    misfit: model.Misfit,
    n_bins: int,
    labeled: npt.NDArray[np.intp],
    seed: int,
) -> dict[str, float]:
    labels = np.full(len(y), -1, dtype=np.int8)
    labels[labeled] = y[labeled]
    error, reached = errors_after(y, p, labeled, misfit, n_bins)
    tested = model.canary(p, labels, misfit=misfit, n_draws=NULL_DRAWS, random_state=seed)
    row = {"ece": error, "balanced_accuracy": reached, "flagged": float(tested.p_value <= model.SIGNIFICANCE)}
    share = float(y.mean())
    for estimate in model.estimate_share(p, labels, prior=prior, misfit=misfit):
        row[f"{estimate.method}: square error"] = (estimate.estimate - share) ** 2
        row[f"{estimate.method}: covered"] = float(estimate.low <= share <= estimate.high)
        row[f"{estimate.method}: width"] = estimate.high - estimate.low
    return row


def errors_after(
    y: Labels, p: Floats, labeled: npt.NDArray[np.intp], misfit: model.Misfit, n_bins: int
) -> tuple[float, float]:
    """Return calibration error and balanced accuracy on the rest, once labels have corrected P."""
    rest = np.ones(len(y), dtype=bool)
    rest[labeled] = False
    corrected = model.FewLabels(misfit).fit(p[labeled], y[labeled]).transform(p)
    error = expected_calibration_error(y[rest], corrected[rest], n_bins=n_bins)
    return error, balanced_accuracy(y[rest], corrected[rest] >= corrected.mean())


def summarize_labeled(targets: Sequence[Row]) -> dict[str, Row]:
    """Return means over held-out datasets by number of labels, of those that have so many."""
    found = {}
    for n in targets[0]["labeled"]:
        rows = [target["labeled"][n] for target in targets if target["labeled"][n] is not None]
        names = rows[0] if rows else {}
        found[n] = {"n_datasets": len(rows)} | {name: _mean([row[name] for row in rows]) for name in names}
    return found


def labeled_lines(targets: Sequence[Row], summary: dict[str, Row]) -> list[str]:
    """Return the tables of balanced accuracy, canary and estimated shares, by number of labels."""
    rows = [{"held out": target["dataset"], **_shown(target["labeled"])} for target in targets]
    rows.append({"held out": "**mean**", **_shown(summary)})
    shares = [{"labels": n, **_shares(row)} for n, row in summary.items() if row["n_datasets"]]
    return [
        "### After labels: balanced accuracy, and draws flagged by the canary, in percent",
        "",
        *markdown(pd.DataFrame(rows).fillna("")),
        "",
        "### The share of consistent items from labels: root mean square error, coverage and width, in percent",
        "",
        *markdown(pd.DataFrame(shares)),
    ]


def _shown(labeled: Mapping[str, Row | None]) -> dict[str, str]:
    known = {n: row for n, row in labeled.items() if row and "flagged" in row}
    reached = {f"{n} labels": in_percent(row["balanced_accuracy"]) for n, row in known.items()}
    return reached | {f"flagged, {n}": in_percent(row["flagged"]) for n, row in known.items()}


def _shares(row: Row) -> dict[str, str]:
    methods = [name.split(":")[0] for name in row if name.endswith(": covered")]
    return {
        method: f"{in_percent(row[f'{method}: square error'] ** 0.5)}, {in_percent(row[f'{method}: covered'])}, "
        f"{in_percent(row[f'{method}: width'])}"
        for method in methods
    }
