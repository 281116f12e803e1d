"""The report on a fit: its method, the reason, and measures on training datasets left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from deep.model import Model

WHY = {
    "average": "with {labeled} nothing can be chosen, so simple ways to add up votes are averaged",
    "chain": "as the options ask, the best chain of voters, ensembler and calibrator on {labeled}",
    "own-labels": "labels of one dataset alone, so simple ways to add up votes are compared on rows left out",
    "stack": "with {labeled}, many ways to add up votes are weighted by how they transfer to the others",
    "votes": "there is no label, so that only the votes can teach, and nothing shows how far P is off",
}
"""Why a model was fitted as it was, by method."""

FEW = "the labels are too few to learn from, so that the votes teach, and the labels correct P"

LEAST = 0.005
"""A member of less weight is not listed."""


def fit_report(model: Model, scores_given: Sequence[str] = ()) -> dict[str, object]:
    """Return how a model was fitted and why, its scores on datasets left out, and the prior, as JSON values.

    Parameters
    ----------
    model : Model
    scores_given : sequence of str, optional
        Soft scores that it could have been fitted on.

    Returns
    -------
    dict
        `members` and `said` are lines for people.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import fit_report
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> found = fit_report(fit(votes.rows(votes.datasets == "aggrefact-xsum")))
    >>> found["method"], found["why"]
    ('average', 'with 1 labeled dataset nothing can be chosen, so simple ways to add up votes are averaged')
    """
    report, correction = model.report, model.correction
    chosen = report["chosen"]
    assert isinstance(chosen, dict)  # as every fit writes it
    n = len(model.cells.groups)
    labels = None if correction is None else {"n": correction.n_labels, "n_effective": correction.n_effective}
    return {
        "method": model.method,
        "what": chosen["ensembler"],
        "why": FEW
        if model.method == "votes" and correction is not None
        else WHY[model.method].format(labeled=f"{n} labeled dataset{'' if n == 1 else 's'}"),
        "members": list(_members(chosen, model)),
        "voters": list(model.voter_names),
        "scores": list(model.score_names),
        "chosen": {name: value for name, value in chosen.items() if name != "calibrator_map"},
        **{name: report[name] for name in ("left_out_scores", "training_datasets", "notes")},
        "target": model.target,
        "correction": labels,
        "prior": asdict(model.prior),
        "said": list(_said(model, scores_given)),
    }


def _members(chosen: Mapping[str, Any], model: Model) -> Iterator[str]:
    """Yield the content: the weights of the stack, the losses of the aggregators compared, the voters of a chain."""
    if model.method == "stack":
        ranked = sorted(chosen["weights"].items(), key=lambda item: -item[1])
        yield from (f"{name}: weight {weight:.2f}" for name, weight in ranked if weight >= LEAST)
    elif model.method == "own-labels":
        ranked = sorted(chosen["log_loss"].items(), key=lambda item: item[1])
        yield from (f"{name}: log loss {loss:.4f} on rows left out" for name, loss in ranked)
    elif model.method == "average":
        yield ", ".join(chosen["members"])
    elif model.method == "votes":
        yield f"from {chosen['found']}"
    else:
        params = ", ".join(f"{name}={value}" for name, value in chosen["params"].items())
        voters = f"{len(model.voters)} voters ({chosen['selector']})"
        yield f"{params or 'no parameters'}; calibrator {chosen['calibrator'] or 'none'}; {voters}:"
        yield from (f"  {name}" for name in model.voter_names)
    if "inner" in chosen:
        inner = chosen["inner"]
        accuracy = 100 * inner["balanced_accuracy"]
        yield f"inner scores: log loss {inner['log_loss']:.4f}, balanced accuracy {accuracy:.1f} %"


def _said(model: Model, scores_given: Sequence[str]) -> Iterator[str]:
    """Yield lines on the target's labels, the share of consistent items to expect, and the scores not used."""
    if model.correction is not None:
        yield f"corrected by {model.correction.n_labels} labels of {model.target}"
    prior = model.prior
    of = "a text of a dataset not known" if model.target is None else f"the dataset {model.target}"
    warning = f" ({prior.warning})" if prior.warning else ""
    yield (
        f"share of consistent items expected of {of}: {100 * prior.estimate:.1f} %, "
        f"90 % interval {100 * prior.low:.1f} to {100 * prior.high:.1f}{warning}"
    )
    if scores_given and not model.score_names:
        yield f"scores not used: {', '.join(scores_given)}; the stack alone learns from them"
