"""Labels of the user's own dataset alone: a few simple aggregators, compared on rows that none of them saw."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats
from deep._util.odds import expit, logit
from deep.ensembles import BernoulliNB, LogisticRegression
from deep.features import Cells
from deep.model.adaptation import (
    PLAIN,
    FewLabels,
    FixedPrior,
    LeftOut,
    Misfit,
    PriorEstimate,
    estimate_share,
    learn_misfit,
)
from deep.model.chain import row_folds
from deep.model.file import Model, voters_of
from deep.model.linear import LabeledRows, Linear, fit_average, fit_best_judge, fit_majority, fit_ridge
from deep.model.regimes._report import report_of
from deep.model.score import Blend, Part, VoteSum
from deep.model.stack import in_order
from deep.records import VoteMatrix

FIRST = "average"
"""Taken unless another is better by more than one standard error of the difference."""


def _naive_bayes(train: LabeledRows) -> Linear:
    model = BernoulliNB().fit(train.votes, train.labels, sample_weight=train.balanced())
    zeros, ones = model.vote_log_odds_
    return Linear(0.0, ones, zeros)


def _logistic(train: LabeledRows) -> Linear:
    model = LogisticRegression().fit(train.votes, train.labels, sample_weight=train.balanced())
    return Linear.signed(model.intercept_, model.coef_)


CANDIDATES: dict[str, Callable[[LabeledRows], Linear]] = {
    FIRST: fit_average,
    "best-judge": fit_best_judge,
    "logistic-votes": _logistic,
    "majority": fit_majority,
    "naive-bayes": _naive_bayes,
    "ridge-votes": fit_ridge,
}


def fit_own_labels(votes: VoteMatrix, provenance: Mapping[str, object], *, random_state: int) -> Model:
    """Learn from the labeled rows of one dataset, a random sample of it, and draw up its model."""
    labeled = votes.rows(votes.labels >= 0)
    (name,) = votes.dataset_names
    rows = LabeledRows.of(labeled)
    folds = row_folds(labeled, random_state)
    losses = {key: _losses(rows, folds, fit) for key, fit in CANDIDATES.items()}
    best = _choose(losses, folds)
    honest, spread = _nested(rows, folds)
    prior = _prior(votes)
    shift = float(logit(prior.estimate))
    # Log-odds of rows that neither a fit nor the choice of it saw tell how steep P may be.
    few = FewLabels(learn_misfit([])).fit(expit(honest + shift), labeled.labels, documents=labeled.document_ids)
    intercept, slope = few.coef_.tolist()
    part = Part(best, VoteSum(CANDIDATES[best](in_order(rows))), intercept + (slope - 1) * shift, slope)
    moved = intercept + slope * (honest + shift)
    left_out = {name: LeftOut.from_rows(moved, (rows.labels == 1) * 1.0, (rows.labels == 0) * 1.0)}
    cells = Cells.from_rows(
        labeled.votes, labels=labeled.labels, groups=labeled.datasets, voter_names=labeled.voter_names
    )
    means = {key: float(np.mean(values)) for key, values in losses.items()}
    note = f"Scores are of rows that neither the fit nor the choice saw: five folds of {len(folds)} labeled rows."
    report = report_of({"ensembler": best, "log_loss": means}, cells, left_out, [shift], provenance, notes=[note])
    return Model(
        voters=voters_of(votes.voter_names, provenance),
        score_names=(),
        method="own-labels",
        blend=Blend((part,)),
        prior_rule=FixedPrior(prior),
        misfit=Misfit(np.array([0.0, 1.0]), few.covariance_, int(few.n_effective_), slope * spread),
        contexts=np.zeros(1),
        cells=cells,
        left_out=left_out,
        report=report,
        target=name,
    )


def _left_out(
    rows: LabeledRows, folds: npt.NDArray[np.intp], fit: Callable[[LabeledRows], Linear]
) -> Iterator[tuple[npt.NDArray[np.bool_], Floats, float]]:
    """Yield the rows of each fold, their log-odds by a fit on the others, and the log-odds of the others' share."""
    for fold in np.unique(folds):
        held = folds == fold
        others = rows.rows(~held)
        share = (others.labels.sum() + 0.5) / (len(others.labels) + 1)
        yield held, fit(in_order(others)).log_odds(rows.votes[held]), float(logit(share))


def _losses(rows: LabeledRows, folds: npt.NDArray[np.intp], fit: Callable[[LabeledRows], Linear]) -> Floats:
    """Return the log loss of each row at the share of the others."""
    loss = np.empty(len(folds))
    for held, log_odds, shift in _left_out(rows, folds, fit):
        sign = np.where(rows.labels[held] == 1, -1.0, 1.0)
        loss[held] = np.logaddexp(0.0, sign * (log_odds + shift))
    return loss


def _choose(losses: Mapping[str, Floats], folds: npt.NDArray[np.intp]) -> str:
    """Return the candidate of least loss, or the first where it is not better beyond a standard error."""
    best = min(losses, key=lambda name: float(losses[name].mean()))
    gain = losses[FIRST] - losses[best]
    error = float(gain.std(ddof=1) / np.sqrt(len(folds)))
    return best if gain.mean() > error else FIRST


def _nested(rows: LabeledRows, folds: npt.NDArray[np.intp]) -> tuple[Floats, float]:
    """Return log-odds of each row by what would have been chosen and fitted without its fold, and how far they vary.

    The jackknife over folds [1]_ tells how far the log-odds of a row vary from sample to sample, beyond what moves
    those of all rows alike: that is the intercept's.

    References
    ----------
    .. [1] R. G. Miller, "The jackknife: a review", Biometrika 61, 1974. https://doi.org/10.1093/biomet/61.1.1
    """
    found, by_fold = np.empty(len(folds)), []
    for fold in np.unique(folds):
        held = folds == fold
        others = rows.rows(~held)
        inner = folds[~held]
        best = _choose({key: _losses(others, inner, fit) for key, fit in CANDIDATES.items()}, inner)
        log_odds = CANDIDATES[best](in_order(others)).log_odds(rows.votes)
        found[held] = log_odds[held]
        by_fold.append(log_odds - log_odds.mean())
    return found, float(np.sqrt((len(by_fold) - 1) * np.var(by_fold, axis=0).mean()))


def _prior(votes: VoteMatrix) -> PriorEstimate:
    """Return the share of label 1 in the whole dataset with its interval, which knows of documents."""
    shares = estimate_share(np.full(len(votes.labels), 0.5), votes.labels, documents=votes.document_ids)
    found = next(share for share in shares if share.method == PLAIN)
    return PriorEstimate(found.estimate, found.low, found.high)
