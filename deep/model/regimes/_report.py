"""The part of a model file that describes and decides nothing: scores, training datasets, versions."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from deep._checks import Floats
from deep._files import JsonObject
from deep._odds import expit
from deep.calibration import DEFAULT_BINS, balanced_accuracy, ece_noise_floor, evaluate
from deep.features import Cells
from deep.model.adaptation import LeftOut
from deep.model.file import library_versions


def report_of(
    chosen: Mapping[str, object],
    cells: Cells,
    left_out: Mapping[str, LeftOut],
    shifts: Sequence[float],
    provenance: Mapping[str, object],
    *,
    notes: Sequence[str] = (),
    labeled: bool = True,
) -> JsonObject:
    """Return the report on a fitted model.

    Parameters
    ----------
    chosen : dict
        What was fitted, and how it was chosen.
    cells : Cells
        Training cells, by dataset.
    left_out : mapping of str to LeftOut
        By dataset: log-odds of P at the estimated prior by fits without its rows.
    shifts : sequence of float
        The log-odds of those priors.
    provenance : mapping
    notes : sequence of str
    labeled : bool
        Whether the cells have labels.
    """
    scores = {name: _scores(one, shift) for (name, one), shift in zip(left_out.items(), shifts, strict=True)}
    names = next(iter(scores.values()), {})
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "chosen": dict(chosen),
        "left_out_scores": {
            "datasets": scores,
            "mean": {name: float(np.mean([row[name] for row in scores.values()])) for name in names},
        },
        "notes": list(notes),
        "training_datasets": _datasets(cells, provenance.get("licences"), labeled=labeled),
        "versions": library_versions(),
        "provenance": {name: value for name, value in provenance.items() if name not in ("licences", "voters")},
    }


def _scores(one: LeftOut, shift: float) -> dict[str, float]:
    """Return the metrics of P at the estimated prior, and of decisions at equal class weights."""
    p, uniform = expit(one.score), one.score - shift
    label = np.repeat([1, 0], len(p))
    weights = np.concatenate([one.ones, one.zeros])
    kept = weights > 0
    y, twice, w = label[kept], np.tile(p, 2)[kept], weights[kept]
    found = evaluate(y, twice, sample_weight=w, n_bins=DEFAULT_BINS, n_draws=0)
    decided = balanced_accuracy(y, np.tile(uniform >= 0, 2)[kept], sample_weight=w)
    rows = np.rint(one.ones + one.zeros)  # of a weighted sample, the rows that it stands for are about so many
    floor = ece_noise_floor(p, n_bins=DEFAULT_BINS, sample_weight=rows, n_draws=0).mean
    rest = {name: found[name] for name in ("auroc", "log_loss", "ece")}
    return {"balanced_accuracy": decided, **rest, "ece_floor": floor}


def _datasets(cells: Cells, licences: object, *, labeled: bool) -> JsonObject:
    known = licences if isinstance(licences, Mapping) else {}
    sizes = cells.counts.sum(axis=0)
    return {
        name: {
            "n": int(size.sum()),
            "n_consistent": int(size[1]) if labeled else None,
            "prior": float(size[1] / size.sum()) if labeled else None,
            "licence": known.get(name),
        }
        for name, size in zip(cells.groups, sizes, strict=True)
    }


def mean_context(left_out: Sequence[Floats]) -> Floats:
    """Return the mean over datasets of the contexts of each part."""
    return np.asarray(np.mean(left_out, axis=0))
