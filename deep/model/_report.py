"""The part of a model file that describes and decides nothing: scores, training datasets, versions."""

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep.calibration import ece_noise_floor, evaluate
from deep.features import Cells
from deep.model.chain import MAX_FOLDS, Candidate, Chain, grouped_note
from deep.model.file import PRIOR, library_versions
from deep.model.target import MIN_DATASETS

N_BINS = 8

CURVE = np.linspace(0.0, 1.0, 51)
"""Where the calibrator's map is written down for people to see."""

Entry = dict[str, object]
"""An object of the model file."""


def report_of(
    best: Candidate, chain: Chain, cells: Cells, held: Floats | None, provenance: Mapping[str, object], *, n_units: int
) -> Entry:
    """Return the report on a fitted chain.

    Parameters
    ----------
    best : Candidate
        The chain as it was chosen.
    chain : Chain
        The chain as it was fitted.
    cells : Cells
        Its training cells, by dataset.
    held : ndarray of float, shape (n_patterns, n_datasets), or None
        P of each pattern by the fit without the dataset.
    provenance : mapping
    n_units : int
        Training datasets that can be left out independently.
    """
    left_out = {} if held is None else {n: _metrics(held[:, d], cells.counts[:, d]) for d, n in enumerate(cells.groups)}
    names = next(iter(left_out.values()), {})
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "selector": best.subset.selector,
        "calibrator_map": _calibrator_map(chain),
        "prior": PRIOR,
        "inner": {
            "log_loss": best.inner_log_loss,
            "balanced_accuracy": best.inner_balanced_accuracy,
            "accuracy": best.inner_accuracy,
        },
        "left_out": {
            "datasets": left_out,
            "mean": {name: float(np.mean([row[name] for row in left_out.values()])) for name in names},
        },
        "notes": _notes(n_units, len(cells.groups)),
        "training_datasets": _datasets(cells, provenance.get("licences")),
        "versions": library_versions(),
        "provenance": {name: value for name, value in provenance.items() if name not in ("licences", "voters")},
    }


def _metrics(p: Floats, counts: npt.NDArray[np.int64]) -> dict[str, float]:
    pattern, label = np.nonzero(counts)
    n = counts[pattern, label]
    found = evaluate(label, p[pattern], sample_weight=n, n_bins=N_BINS, n_draws=0)
    floor = ece_noise_floor(p[pattern], n_bins=N_BINS, sample_weight=n, n_draws=0).mean
    return {**{name: found[name] for name in ("balanced_accuracy", "auroc", "log_loss", "ece")}, "ece_floor": floor}


def _notes(n_units: int, n_datasets: int) -> list[str]:
    if n_datasets > MAX_FOLDS:
        return [grouped_note(n_datasets)]
    if n_units >= MIN_DATASETS:
        return []
    return [
        f"There are no intervals: {n_units} training dataset(s) without common documents do not show how far a "
        f"new one may lie from them; {MIN_DATASETS} are needed."
    ]


def _datasets(cells: Cells, licences: object) -> Entry:
    known = licences if isinstance(licences, Mapping) else {}
    sizes = cells.counts.sum(axis=0)
    return {
        name: {
            "n": int(size.sum()),
            "n_consistent": int(size[1]),
            "prior": float(size[1] / size.sum()),
            "licence": known.get(name),
        }
        for name, size in zip(cells.groups, sizes, strict=True)
    }


def _calibrator_map(chain: Chain) -> Entry | None:
    """Return the calibrator's fitted numbers and its curve; None where there is none."""
    if chain.calibrator is None:
        return None
    fitted = {
        name: np.asarray(value).tolist()
        for name, value in vars(chain.calibrator).items()
        if name.endswith("_") and isinstance(value, float | np.ndarray)
    }
    return {"fitted": fitted, "from": CURVE.tolist(), "to": chain.calibrator.transform(CURVE).tolist()}
