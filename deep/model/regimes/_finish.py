"""The last step of every fit: from what was fitted to a model with its report."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from deep._util.checks import Floats
from deep._util.odds import expit
from deep.calibration import DEFAULT_BINS, balanced_accuracy, ece_noise_floor, evaluate
from deep.features import Cells
from deep.model.adaptation import LeftOut, Misfit, PriorRule
from deep.model.file import Model, library_versions, voters_of
from deep.model.linear import Rows
from deep.model.score import Blend


def finish(
    blend: Blend,
    prior_rule: PriorRule,
    misfit: Misfit,
    contexts: Floats,
    left_out: Mapping[str, LeftOut],
    thresholds: Sequence[float],
    cells: Cells,
    chosen: Mapping[str, object],
    *,
    method: str,
    provenance: Mapping[str, object],
    notes: Sequence[str] = (),
    score_names: tuple[str, ...] = (),
    target: str | None = None,
) -> Model:
    """Return the model of a fit, with its report.

    Parameters
    ----------
    blend, prior_rule, misfit, contexts, score_names, target
        As in :class:`deep.model.Model`.
    left_out : mapping of str to LeftOut
        By dataset: log-odds of P at the estimated prior by fits without its rows.
    thresholds : sequence of float
        The log-odds of those priors.
    cells : Cells
        Training cells, by dataset; their voters are those of the model.
    chosen : mapping
        What was fitted, and how it was chosen.
    method : str
    provenance : mapping
        `voters` by name, `licences` by dataset, and whatever else is known.
    notes : sequence of str
        Sentences for the reader.
    """
    # P is scored at the estimated prior, decisions at equal class weights.
    scores = {name: _scores(one, at) for (name, one), at in zip(left_out.items(), thresholds, strict=True)}
    metrics = next(iter(scores.values()), {})
    means = {metric: float(np.mean([row[metric] for row in scores.values()])) for metric in metrics}

    licences = provenance.get("licences")
    known = licences if isinstance(licences, Mapping) else {}
    labeled = method != "votes"  # whose cells are counted under label 0
    datasets = {
        name: {
            "n": int(size.sum()),
            "n_consistent": int(size[1]) if labeled else None,
            "prior": float(size[1] / size.sum()) if labeled else None,
            "licence": known.get(name),
        }
        for name, size in zip(cells.groups, cells.counts.sum(axis=0), strict=True)
    }
    report = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "chosen": dict(chosen),
        "left_out_scores": {"datasets": scores, "mean": means},
        "notes": list(notes),
        "training_datasets": datasets,
        "versions": library_versions(),
        "provenance": {name: value for name, value in provenance.items() if name not in ("licences", "voters")},
    }
    return Model(
        voters=voters_of(cells.voter_names, provenance),
        score_names=score_names,
        method=method,
        blend=blend,
        prior_rule=prior_rule,
        misfit=misfit,
        contexts=contexts,
        cells=cells,
        left_out=left_out,
        report=report,
        target=target,
    )


def _scores(one: LeftOut, threshold: float) -> dict[str, float]:
    """Return the metrics of P at the estimated prior, and of decisions at equal class weights."""
    p, uniform = expit(one.score), one.score - threshold
    label = np.repeat([1, 0], len(p))
    weights = np.concatenate([one.ones, one.zeros])
    counted = weights > 0
    y, twice, w = label[counted], np.tile(p, 2)[counted], weights[counted]
    metrics = evaluate(y, twice, sample_weight=w, n_bins=DEFAULT_BINS, n_draws=0)
    balanced = balanced_accuracy(y, np.tile(uniform >= 0, 2)[counted], sample_weight=w)
    rows = np.rint(one.ones + one.zeros)  # of a weighted sample, the rows that it stands for are about so many
    floor = ece_noise_floor(p, n_bins=DEFAULT_BINS, sample_weight=rows, n_draws=0).mean
    rest = {name: metrics[name] for name in ("auroc", "log_loss", "ece")}
    return {"balanced_accuracy": balanced, **rest, "ece_floor": floor}


def mean_contexts(blend: Blend, datasets: Sequence[Rows]) -> Floats:
    """Return the contexts of the mean training dataset."""
    return np.asarray(np.mean([blend.contexts(blend.raw(one), one.weights) for one in datasets], axis=0))
