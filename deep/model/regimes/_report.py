"""The part of a model file that describes and decides nothing: scores, training datasets, versions."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from deep._util.checks import Floats, Texts, numbered
from deep._util.files import JsonObject
from deep._util.odds import expit
from deep.calibration import DEFAULT_BINS, balanced_accuracy, ece_noise_floor, evaluate
from deep.features import Cells
from deep.model.adaptation import LeftOut
from deep.model.chain import RECIPES, STACK_FOLDS, inner_folds
from deep.model.file import library_versions
from deep.records import VoteMatrix


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


def training_groups(votes: VoteMatrix, *, by_family: bool = False, random_state: int = 0) -> Texts:
    """Return the group that each labeled row is left out with: its dataset, or all that share documents with it."""
    names, codes = numbered(votes.datasets)
    if len(names) == 1:
        return votes.datasets
    recipe = RECIPES["deep"]
    folds = inner_folds(votes, recipe, by_family=by_family, random_state=random_state, limit=STACK_FOLDS).of_row
    pairs = np.unique(folds * len(names) + codes).tolist()
    first = {pair // len(names): names[pair % len(names)] for pair in reversed(pairs)}
    of_fold = np.array([first.get(fold, "") for fold in range(max(first) + 1)], dtype=object)
    return np.asarray(of_fold[folds])


def training_cells(votes: VoteMatrix) -> Cells:
    """Return the training rows counted by dataset."""
    return Cells.from_rows(votes.votes, labels=votes.labels, groups=votes.datasets, voter_names=votes.voter_names)
