"""How many items of a dataset are consistent, by every method that its votes and labels allow."""

from dataclasses import asdict

from deep.evaluate._target import Target
from deep.model import SHARE_METHODS, Model, estimate_share

TOLD = "the prior that the labels told as the model was made that of this dataset"


def share_report(model: Model, target: Target) -> dict[str, object]:
    """Estimate the share of consistent items in a dataset.

    Parameters
    ----------
    model : Model
    target : Target
        The whole dataset; labels, where there are some, of items or documents drawn at random.

    Returns
    -------
    dict
        JSON values: by method (:func:`deep.model.estimate_share`), the best first, `estimate`, `low`, `high` and
        `how` in a sentence.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import Target, share_report
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> mine = votes.datasets == "aggrefact-xsum"
    >>> found = share_report(fit(votes.rows(~mine)), Target(votes.rows(mine)))
    >>> [share["method"] for share in found["shares"]]
    ['corrected model', 'prediction-powered', 'mean of the labels', 'Rogan-Gladen']
    """
    votes = target.votes
    found = model.scores_of(votes, scores=target.scores)
    # A model that labels have corrected is no more off than they leave it: its prior is what they say.
    misfit = model.misfit if model.correction is None else None
    shares = estimate_share(
        found.p_consistent, votes.labels, prior=found.prior, documents=votes.document_ids, misfit=misfit
    )
    return {
        "dataset": target.name,
        "n": len(votes.labels),
        "labels": target.n_labels,
        "prior": asdict(found.prior),
        "shares": [{**asdict(share), "how": _how(model, share.method)} for share in shares],
    }


def _how(model: Model, method: str) -> str:
    labeled = model.correction is not None or model.method == "own-labels"
    return TOLD if labeled and method == "model" else SHARE_METHODS[method]
