"""How many claims of a dataset are consistent: from votes alone, or from votes and some labels."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Mask, check_probabilities
from deep._util.odds import expit, logit
from deep.exceptions import InputError
from deep.model.adaptation._correction import Clusters, labeled_rows
from deep.model.adaptation._few_labels import FewLabels
from deep.model.adaptation._misfit import LEVEL, START_DATASETS, Misfit, student_quantile
from deep.model.adaptation._prior import PriorEstimate

PSEUDO_LABELS = 10
"""The power tuning of P starts at full trust, worth so many labels: a few labels cannot tell how much P explains."""

MIN_VARIANCE = 1e-12
"""P that varies less explains nothing."""

HALF = 0.5
"""Added to each count of labels by class and decision, so that rates of 0 and 1 have a variance."""

MIN_YOUDEN = 0.05
"""Decisions that tell the classes apart less than this say nothing of how many there are."""

GRID = 10_001
"""Shares that the Rogan-Gladen interval is looked for among."""

WEIGHTED = "model"
CORRECTED = "corrected model"
POWERED = "prediction-powered"
PLAIN = "mean of the labels"
DECIDED = "Rogan-Gladen"

SHARE_METHODS = {
    WEIGHTED: "the prior that the model estimates from the votes",
    CORRECTED: "the mean of P once labels have corrected its intercept and slope",
    POWERED: "the mean of P, moved by the mean error of P on the labels",
    PLAIN: "the share among the labels, whatever the votes say",
    DECIDED: "the share of items decided as consistent, at the error rates found on the labels",
}
"""Each way to estimate the share, and where its figure comes from."""


@dataclass(frozen=True)
class Share:
    """A dataset's share of consistent items, by one method.

    Parameters
    ----------
    method : str
        A key of `SHARE_METHODS`.
    estimate, low, high : float
        In [0, 1]; the bounds are those of a 90 % interval for the share among the dataset's own items.
    """

    method: str
    estimate: float
    low: float
    high: float


def estimate_share(
    p: npt.ArrayLike,
    labels: npt.ArrayLike | None = None,
    *,
    prior: PriorEstimate | None = None,
    documents: npt.ArrayLike | None = None,
    misfit: Misfit | None = None,
) -> tuple[Share, ...]:
    """Estimate how many items of a dataset are consistent, by every method that the input allows.

    Parameters
    ----------
    p : array-like of shape (n_examples,)
        P(consistent) of all items of the dataset, at the estimated prior.
    labels : array-like of shape (n_examples,), optional
        1 or 0 of randomly drawn items or documents, and -1 where there is none.
    prior : PriorEstimate, optional
        What the model says without labels; items are decided at its estimate, else at the mean P.
    documents : array-like of shape (n_examples,), optional
        The document of each item: labels that share one count less.
    misfit : Misfit, optional
        What training datasets tell of errors of P: allows the corrected model.

    Returns
    -------
    tuple of Share
        Without labels the model's prior alone. With labels, the best first: the corrected model (where `misfit` is
        given), which leans on the training datasets; then those that hold whatever the model is worth:
        prediction-powered, the mean of the labels, Rogan-Gladen.

    Raises
    ------
    InputError
        There is neither a label nor a prior, a value is out of range, or lengths differ.

    Notes
    -----
    Prediction-powered inference [1]_ with power tuning [2]_, as in `ppi-python`, whose estimate it returns where
    power is tuned on the labels alone. Two things differ. The interval is for the dataset at hand, so that it closes
    as all items get labels (finite population correction). Two pseudo-labels, one of each class, keep it honest with
    five labels (Agresti and Coull's idea). `ppi-python` itself has no clusters, and brings numba, statsmodels, gdown.
    The mean of the labels has Wilson's interval, Rogan and Gladen's estimate [3]_ Fieller's.

    References
    ----------
    .. [1] A. N. Angelopoulos et al., "Prediction-powered inference", Science 382, 2023.
       https://doi.org/10.1126/science.adi6000
    .. [2] A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: efficient prediction-powered inference", 2023.
       https://arxiv.org/abs/2311.01453
    .. [3] W. J. Rogan and B. Gladen, "Estimating prevalence from the results of a screening test", American Journal
       of Epidemiology 107, 1978. https://doi.org/10.1093/oxfordjournals.aje.a112510

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(2, 1, 500)
    >>> labels = np.where(np.arange(500) < 40, rng.random(500) < p, -1)
    >>> for share in estimate_share(p, labels):
    ...     print(f"{share.method}: {share.estimate:.2f} ({share.low:.2f} to {share.high:.2f})")
    prediction-powered: 0.67 (0.56 to 0.75)
    mean of the labels: 0.68 (0.55 to 0.78)
    Rogan-Gladen: 0.74 (0.49 to 1.00)
    """
    every = check_probabilities(p, name="p")
    known = np.zeros(len(every), dtype=bool) if labels is None else labeled_rows(labels, len(every))
    if not known.any():
        if prior is None:
            raise InputError("`labels` must hold a label of 0 or 1, or `prior` be given. Got neither.")
        return (Share(WEIGHTED, prior.estimate, prior.low, prior.high),)
    sample = _Sample(every, np.asarray(labels)[known].astype(float), known, _clusters(documents, known))
    threshold = float(every.mean()) if prior is None else prior.estimate
    found = [_powered(sample), _plain(sample), _decided(sample, every >= threshold)]
    return tuple(found if misfit is None else [_corrected(sample, misfit), *found])


def power_tuning(
    labels: npt.ArrayLike, p: npt.ArrayLike, p_unlabeled: npt.ArrayLike, *, pseudo_labels: float = PSEUDO_LABELS
) -> float:
    """Return how far the mean of the labels follows P, in [0, 1]: the lambda of PPI++.

    Parameters
    ----------
    labels, p : array-like of shape (n_labels,)
        Labels, and P of the same items.
    p_unlabeled : array-like of shape (n_unlabeled,)
        P of the others.
    pseudo_labels : float, default=10
        Labels on which P was right, added to the real ones; 0 gives the lambda of `ppi-python`.

    Examples
    --------
    >>> power_tuning([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.4], [0.5, 0.3, 0.8, 0.1], pseudo_labels=0) > 0.5
    True
    """
    y, f, others = (np.asarray(values, dtype=np.float64) for values in (labels, p, p_unlabeled))
    if not len(others):
        return 0.0
    n, variance = len(y), float(np.var(np.concatenate([f, others]), ddof=1))
    if variance < MIN_VARIANCE:
        return 0.0
    slope = (((y - y.mean()) * (f - f.mean())).sum() / variance + pseudo_labels) / (n + pseudo_labels)
    return float(np.clip(slope / (1 + n / len(others)), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class _Sample:
    """Labeled items of a dataset, and P of all its items."""

    p: Floats
    labels: Floats
    known: Mask
    clusters: Clusters

    @property
    def unlabeled(self) -> float:
        """Return the share of items without a label: the finite population correction."""
        return 1.0 - len(self.labels) / len(self.p)

    def widened(self, errors: Floats) -> float:
        """Return the factor on the variance of a mean of labels, for few items and for shared documents."""
        if self.clusters.alone:
            return self.unlabeled
        scale = float(errors.std()) or 1.0
        return self.unlabeled * self.clusters.design_effect(self.clusters.correlation((errors - errors.mean()) / scale))


def _clusters(documents: npt.ArrayLike | None, known: Mask) -> Clusters:
    return Clusters.from_documents(documents, int(known.sum()), kept=known)


def _normal() -> float:
    return float(NormalDist().inv_cdf((1 + LEVEL) / 2))


def _plain(sample: _Sample) -> Share:
    """Return the mean of the labels with Wilson's interval."""
    share, n = float(sample.labels.mean()), len(sample.labels)
    pull = _normal() ** 2 * sample.widened(sample.labels) / n
    centre = (share + pull / 2) / (1 + pull)
    reach = np.sqrt(pull * share * (1 - share) + pull**2 / 4) / (1 + pull)
    return _share(PLAIN, share, centre, float(reach))


def _powered(sample: _Sample) -> Share:
    """Return the mean of P, moved by the mean error on the labels."""
    y, f, n, every = sample.labels, sample.p[sample.known], len(sample.labels), sample.p
    tuned = power_tuning(y, f, every[~sample.known])
    # Over all items, labeled ones among them, the same estimate is that of a regression on P with this slope.
    slope = tuned / max(sample.unlabeled, 1 / len(every)) if tuned else 0.0
    estimate = slope * every.mean() + (y - slope * f).mean()
    errors = y - slope * f
    widened = sample.widened(errors)
    # A label 1 and a label 0, their P half way to where P expects its like: labels that all agree leave an interval,
    # and a confident P that was never seen to err is not taken at its word.
    usual = every.mean()
    p_of_1, p_of_0 = (usual + _mean(every, every)) / 2, (usual + _mean(every, 1 - every)) / 2
    pseudo = np.array([1 - slope * p_of_1, -slope * p_of_0])
    weights = np.append(np.ones(n), np.full(2, _normal() ** 2 / 2 * widened))
    both = np.append(errors, pseudo)
    mean = float(np.average(both, weights=weights))
    variance = float(np.average((both - mean) ** 2, weights=weights))
    reach = _normal() * np.sqrt(variance * widened / weights.sum())
    return _share(POWERED, float(estimate), float(slope * every.mean() + mean), float(reach))


def _mean(values: Floats, weights: Floats) -> float:
    """Return a weighted mean; the plain one where no value has weight."""
    return float(np.average(values, weights=weights)) if weights.sum() > 0 else float(values.mean())


def _decided(sample: _Sample, decisions: Mask) -> Share:
    """Return Rogan and Gladen's estimate by error rates found on the labels, with Fieller's interval."""
    y, decided = sample.labels, decisions[sample.known]
    called, n1 = float(decisions.mean()), float(y.sum())
    n0 = len(y) - n1
    hit = (float(y[decided].sum()) + HALF) / (n1 + 2 * HALF)
    alarm = (float((1 - y[decided]).sum()) + HALF) / (n0 + 2 * HALF)
    widened = sample.widened(y - decided)
    variances = hit * (1 - hit) / (n1 + 2 * HALF) * widened, alarm * (1 - alarm) / (n0 + 2 * HALF) * widened
    share = float(np.clip((called - alarm) / (hit - alarm), 0, 1)) if hit - alarm > MIN_YOUDEN else float(y.mean())
    shares = np.linspace(0, 1, GRID)
    gap = np.abs(called - shares * hit - (1 - shares) * alarm)
    inside = shares[gap <= _normal() * np.sqrt(shares**2 * variances[0] + (1 - shares) ** 2 * variances[1])]
    low, high = (inside.min(), inside.max()) if len(inside) else (share, share)
    return Share(DECIDED, share, min(float(low), share), max(float(high), share))


def _corrected(sample: _Sample, misfit: Misfit) -> Share:
    """Return the labels, and the mean of corrected P where there is none."""
    f, others = sample.p[sample.known], sample.p[~sample.known]
    few = FewLabels(misfit).fit(f, sample.labels, documents=sample.clusters.codes)
    if not len(others):
        return Share(CORRECTED, *[float(sample.labels.mean())] * 3)
    moved, z = few.transform(others), logit(others)
    information = moved * (1 - moved)
    gradient = np.array([information.sum(), (information * z).sum()]) / len(sample.p)
    estimate = float((sample.labels.sum() + moved.sum()) / len(sample.p))
    # The items without a label fall as P says, by chance: what the dataset's own share is off by were P exact.
    variance = gradient @ few.covariance_ @ gradient + information.sum() / len(sample.p) ** 2
    # On the scale of log-odds the bounds stay within 0 and 1.
    error = np.sqrt(variance) / max(estimate * (1 - estimate), MIN_VARIANCE)
    reach = float(error) * student_quantile(misfit.n_datasets + START_DATASETS)
    bounds = (float(expit(logit(estimate) + side * reach)) for side in (-1, 1))
    return Share(CORRECTED, estimate, *bounds)


def _share(method: str, estimate: float, centre: float, reach: float) -> Share:
    """Return an estimate whose interval is about another centre."""
    low, high = min(centre - reach, estimate), max(centre + reach, estimate)
    return Share(method, *(min(max(value, 0.0), 1.0) for value in (estimate, low, high)))
