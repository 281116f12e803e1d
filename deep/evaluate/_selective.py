"""Selective decisions: decide where P is far enough from one half, and abstain elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep._odds import DECISION, at_prior
from deep.calibration import risk_coverage, selective_threshold
from deep.evaluate._frames import null_if_nan
from deep.exceptions import InputError
from deep.model import Model
from deep.records import VoteMatrix


@dataclass(frozen=True, eq=False)
class Selection:
    """Decisions on one dataset at one confidence.

    Parameters
    ----------
    votes : VoteMatrix
    p : ndarray of float, shape (n_examples,)
        P(consistent).
    decided : ndarray of bool, shape (n_examples,)
        False where the model abstains.
    report : dict
        JSON values: the confidence, how it was found, and the decisions counted.
    """

    votes: VoteMatrix
    p: Floats
    decided: npt.NDArray[np.bool_]
    report: dict[str, object]

    def rows(self) -> Iterator[tuple[str, str, int | None, float]]:
        """Yield dataset, item id, decision (None: abstention) and P of each item."""
        columns = (self.votes.datasets, self.votes.example_ids, self.decided, self.p)
        for dataset, item, decided, p in zip(*columns, strict=True):
            yield str(dataset), str(item), int(p >= DECISION) if decided else None, float(p)


def select_decisions(
    model: Model, votes: VoteMatrix, labeled: VoteMatrix | None = None, *, accuracy: float = 0.9, delta: float = 0.1
) -> Selection:
    """Decide where decisions can be expected to be right often enough.

    Parameters
    ----------
    model : Model
    votes : VoteMatrix
        Of one dataset; its class prior is estimated first where the model can.
    labeled : VoteMatrix, optional
        A labeled random sample of it, which gives a guarantee; default: see :func:`transferred_confidence`.
    accuracy : float in (0, 1), default=0.9
        Wanted share of right decisions.
    delta : float in (0, 1), default=0.1
        Allowed chance that the guarantee fails.

    Raises
    ------
    InputError
        `accuracy` or `delta` is out of range, or the confidence cannot be learned.
    """
    for name, value in (("accuracy", accuracy), ("delta", delta)):
        if not 0 < value < 1:
            raise InputError(f"`{name}` must lie strictly between 0 and 1. Got {value!r}.")
    adapts = model.correction is None and model.adaptation is not None
    prior = model.estimate_prior(votes).estimate if adapts else None
    if labeled is None:
        report = transferred_confidence(model, accuracy)
    else:
        report = guaranteed_confidence(model, labeled, prior, accuracy, delta)
    p, confidence = model.score(votes, prior=prior), report["confidence"]
    decided = np.maximum(p, 1 - p) >= confidence if isinstance(confidence, float) else np.zeros(len(p), dtype=bool)
    report |= {"dataset": votes.dataset_names[0], "n": len(p), "decided": int(decided.sum())}
    known = votes.labels >= 0
    if known.any():
        report["risk_coverage"] = risk_coverage(votes.labels[known], p[known]).to_dict("list")
    return Selection(votes, p, decided, report)


def guaranteed_confidence(
    model: Model, labeled: VoteMatrix, prior: float | None, accuracy: float, delta: float
) -> dict[str, object]:
    """Return the least confidence at which a labeled random sample guarantees the accuracy, None where none does.

    See :func:`deep.calibration.selective_threshold`; `prior` is the one at which the sample is scored.
    """
    known = labeled.rows(labeled.labels >= 0)
    if not len(known.labels):
        raise InputError("`labels` must have rows with a label of 0 or 1. Got none.")
    found = selective_threshold(known.labels, model.score(known, prior=prior), accuracy, delta=delta)
    values = {name: null_if_nan(value) for name, value in vars(found).items()}
    return {"guaranteed": found.confidence is not None, "labels": len(known.labels), **values}


def transferred_confidence(model: Model, accuracy: float) -> dict[str, object]:
    """Return the least confidence at which decisions on left-out training datasets were right often enough.

    Each training dataset is scored by the chain that was fitted without it, at the class prior that its votes
    suggest. The accuracy averaged over datasets is held to the wanted one; nothing is guaranteed under shift.

    Parameters
    ----------
    model : Model
        Fitted on three datasets or more, and not calibrated on labels of its target.
    accuracy : float in (0, 1)
        Wanted share of right decisions.

    Returns
    -------
    dict
        `confidence`, None where no level was right often enough; the number of training `datasets` with decisions
        at that level, `datasets_held` of them with the wanted accuracy, and the `lowest_accuracy` among them.

    Raises
    ------
    InputError
        The model has no training datasets to learn from.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import transferred_confidence
    >>> from deep.model import fit
    >>> model = fit(simulate_votes(0), sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> found = transferred_confidence(model, 0.7)
    >>> found["guaranteed"], 0.5 <= found["confidence"] < 1, found["datasets"]
    (False, True, 4)
    """
    cells, adaptation = model.cells, model.adaptation
    if adaptation is None or model.correction is not None:
        raise InputError("`labels` must be given: without them this model has no datasets to learn a confidence from.")
    curves = []
    for column in range(len(cells.groups)):
        raw = model.chains_left_out[model.kept.units[column]].predict(cells.patterns)
        rows = cells.counts[:, column]
        estimate = adaptation.estimate(raw, rows.sum(axis=1).astype(float)).estimate
        curves.append(_curve(at_prior(raw, estimate), rows))
    levels = np.unique(np.concatenate([confidence for confidence, _, _ in curves]))
    held = np.array([[_accuracy(level, *curve) for level in levels] for curve in curves])
    decided = np.isfinite(held)
    mean = np.where(decided, held, 0.0).sum(axis=0) / np.maximum(decided.sum(axis=0), 1)
    enough = np.flatnonzero(mean >= accuracy)
    if not len(enough):
        return {"guaranteed": False, "confidence": None, "datasets_held": 0, "datasets": len(curves)}
    first = enough[0]
    kept = held[:, first]
    return {
        "guaranteed": False,
        "confidence": float(levels[first]),
        "datasets_held": int((kept >= accuracy).sum()),
        "datasets": int(np.isfinite(kept).sum()),
        "lowest_accuracy": float(np.nanmin(kept)),
    }


def _curve(p: Floats, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """Return the confidence of each pattern, its rows, and the number of them that are decided rightly."""
    right = np.where(p >= DECISION, rows[:, 1], rows[:, 0]).astype(float)
    return np.maximum(p, 1 - p), rows.sum(axis=1).astype(float), right


def _accuracy(level: float, confidence: Floats, n: Floats, right: Floats) -> float:
    """Return the accuracy of the decisions at a confidence or above; NaN where there is none."""
    kept = confidence >= level
    total = n[kept].sum()
    return float(right[kept].sum() / total) if total else float("nan")
