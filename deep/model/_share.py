"""How many claims of a dataset are consistent, and of each of several systems: from votes, or with some labels."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from deep._util import checks
from deep._util.checks import Floats, Mask, Positions
from deep._util.odds import expit, logit
from deep.exceptions import InputError
from deep.model._correction import labeled_mask
from deep.model._misfit import CORRELATION, LEVEL, Clusters, Misfit, laplace, newton_logistic, standardised_errors
from deep.model._prior import PriorEstimate, normalised_weights

# How far apart intercepts of systems may lie, in variances of the misfit.
# Each is tried, and the labels weigh them, at odds before of 1 : sqrt(scale). One scale alone is either too tight on a
# dataset unlike those of the training, or wastes what these tell.
SCALES = (0.25, 1.0, 4.0, 16.0)


# How far off P may be on one system, in variances of the misfit, each as likely before labels: on a dataset that is
# unlike those of the training a tighter prior holds the share too near to what P says.
ALONE = (4.0, 16.0, 64.0)

# The variance over draws of labels knows nothing of a prior that is wrong. The part of it that labels leave untold is
# added to this power: all of it without labels, next to none where they outweigh it.
UNEXPLAINED_VARIANCE_POWER = 6


@dataclass(frozen=True, eq=False)
class JointShares:
    """Shares of consistent items of several systems, estimated together.

    Parameters
    ----------
    estimate : ndarray of float, shape (n_systems,)
        The share of consistent items of each system, in [0, 1].
    covariance : ndarray of float, shape (n_systems, n_systems)
        Of the estimates about the true shares.
    sampling : ndarray of float, shape (n_systems, n_systems)
        Of the estimates over draws of labels: what a test that two systems are alike goes by. Without a label the
        same as `covariance`.
    noise : ndarray of float, shape (n_systems,)
        The variance of a label about corrected P.
    drawn : ndarray of float, shape (n_systems, n_systems)
        The part of both covariances that no label lowers: from which documents the items are.
    """

    estimate: Floats
    covariance: Floats
    sampling: Floats
    noise: Floats
    drawn: Floats


def joint_shares(
    p: npt.ArrayLike,
    labels: npt.ArrayLike,
    misfit: Misfit,
    *,
    systems: npt.ArrayLike | None = None,
    documents: npt.ArrayLike | None = None,
    of_items: bool = False,
) -> JointShares:
    """Estimate the shares of systems whose items one model has scored.

    Parameters
    ----------
    p : array-like of shape (n_examples,)
        P(consistent) of all items.
    labels : array-like of shape (n_examples,)
        1 or 0 of items drawn at random from each system, and -1 where there is none.
    misfit : Misfit
        What training datasets tell of errors of P.
    systems : array-like of shape (n_examples,), optional
        The system that wrote each item; default: one.
    documents : array-like of shape (n_examples,), optional
        The document of each item; systems may share them.
    of_items : bool, default=False
        Of the items at hand, not of the systems that wrote them.

    Returns
    -------
    JointShares
        In the order in which the systems first come.

    Notes
    -----
    label = intercept of the system + slope * log-odds of P. The misfit gives the prior of the intercepts' common part
    and, at each of `SCALES`, of their own; Laplace's approximation [1]_ gives each scale's weight. The covariance over
    draws of labels is the sandwich [2]_. The prior of one system is wider than the misfit (`ALONE`), and the covariance
    is the mean square error of that estimate where intercept and slope lie as far off as the misfit says.

    References
    ----------
    .. [1] L. Tierney and J. B. Kadane, "Accurate approximations for posterior moments and marginal densities",
       JASA 81, 1986. https://doi.org/10.1080/01621459.1986.10478240
    .. [2] H. White, "Maximum likelihood estimation of misspecified models", Econometrica 50, 1982.
       https://doi.org/10.2307/1912526

    Examples
    --------
    >>> misfit = Misfit(np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 0.1]]), 10)
    >>> p, labels = np.full(200, 0.6), np.tile([1, 0, -1, -1, 1, 1, -1, -1], 25)
    >>> result = joint_shares(p, labels, misfit, systems=np.tile(list("aaaabbbb"), 25))
    >>> result.estimate.round(2).tolist()
    [0.51, 0.99]
    """
    every = checks.check_probabilities(p, name="p")
    is_labeled = labeled_mask(labels, len(every))
    system = np.zeros(len(every), dtype=np.intp) if systems is None else checks.factorize(systems)[1]
    checks.check_consistent_length(system, len(every), "systems")
    document = Clusters.from_documents(documents, len(every)).codes
    rows = _SystemItems(logit(every), np.asarray(labels), is_labeled, system, document, of_items)
    weights = _label_weights(rows, misfit, documents is not None)
    several = rows.n_systems > 1
    scales = (1.0,) if not is_labeled.any() else SCALES if several else ALONE
    fits = [_fit_at_scale(rows, weights, misfit, scale) for scale in scales]
    # Odds before of 1 : sqrt(scale) for several systems; for one each scale is as likely, since on datasets unlike
    # those of the training the tight ones fail (decision 11).
    evidence = np.array([fit.evidence for fit in fits]) - np.log(scales) / 2 * several
    share = normalised_weights(evidence)
    result = [fit.shares(rows) for fit in fits]
    mean = {name: np.tensordot(share, [getattr(one, name) for one in result], 1) for name in vars(result[0])}
    apart = np.array([one.estimate - mean["estimate"] for one in result])
    between = apart.T @ (share[:, None] * apart)
    mean["covariance"] += between
    mean["sampling"] += 0.0 if is_labeled.any() else between
    return JointShares(**mean)


@dataclass(frozen=True, eq=False)
class _SystemItems:
    """Items of several systems, some of them labeled."""

    z: Floats
    labels: npt.NDArray[np.integer]
    known: npt.NDArray[np.bool_]
    system: Positions
    document: Positions
    of_items: bool

    @property
    def n_systems(self) -> int:
        return int(self.system.max()) + 1

    def design(self, mask: npt.NDArray[np.bool_]) -> Floats:
        """Return a column a system, and the log-odds of P."""
        return np.column_stack([self.system[mask, None] == np.arange(self.n_systems), self.z[mask]]).astype(float)

    def mean(self, values: Floats) -> Floats:
        """Return the mean of each system."""
        return np.asarray(checks.bincount(self.system, values, self.n_systems) / np.bincount(self.system))


@dataclass(frozen=True, eq=False)
class _ScaleFit:
    """Intercepts and a slope at one scale."""

    coef: Floats
    precision: Floats
    information: Floats
    evidence: float
    wider: float
    """By so much than the misfit is the prior of one system; 1 for several."""

    def shares(self, rows: _SystemItems) -> JointShares:
        """Return the shares at this scale."""
        n = np.bincount(rows.system)
        q = expit(rows.design(np.ones(len(rows.z), dtype=bool)) @ self.coef)
        estimate = rows.mean(np.where(rows.known & rows.of_items, rows.labels, q))
        spread = q * (1 - q) * (~rows.known if rows.of_items else 1.0)
        gradient = np.column_stack([np.diag(rows.mean(spread)), rows.mean(spread * rows.z)])
        if rows.of_items:  # those without a label fall as P says, by chance
            draws = np.diag(rows.mean(spread) / n)
        else:
            sums = np.zeros((rows.n_systems, int(rows.document.max()) + 1))
            np.add.at(sums, (rows.system, rows.document), (q - rows.mean(q)[rows.system]) / n[rows.system])
            draws = sums @ sums.T
        across = np.linalg.inv(self.precision + self.information)
        reach = gradient @ across
        untold = np.linalg.matrix_power(self.precision @ across, UNEXPLAINED_VARIANCE_POWER) @ self.precision
        sampling = reach @ (self.information + untold) @ reach.T
        error = reach @ (self.information + self.precision / self.wider) @ reach.T
        return JointShares(estimate, error + draws, sampling + draws, rows.mean(q * (1 - q)), draws)


def _label_weights(rows: _SystemItems, misfit: Misfit, grouped: bool) -> Floats:
    """Return how much each label counts: less where it shares a document with others of its system."""
    is_labeled = rows.known
    if not grouped or not is_labeled.any():
        return np.ones(int(is_labeled.sum()))
    pairs = np.char.add(np.char.add(rows.system[is_labeled].astype(str), " "), rows.document[is_labeled].astype(str))
    clusters = Clusters.from_documents(pairs, len(pairs))
    if clusters.alone:
        return clusters.weights
    coef = _fit_at_scale(rows, clusters.weights, misfit, 1.0).coef
    errors = standardised_errors(rows.labels[is_labeled].astype(float), expit(rows.design(is_labeled) @ coef))
    return clusters.shares(clusters.correlation(errors))


def _fit_at_scale(rows: _SystemItems, weights: Floats, misfit: Misfit, scale: float) -> _ScaleFit:
    """Fit the intercepts and the slope at one scale."""
    covariance = _prior_covariance(misfit, rows.n_systems, scale)
    centre = np.append(np.full(rows.n_systems, misfit.mean[0]), misfit.mean[1])
    precision = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    wider = scale if rows.n_systems == 1 else 1.0
    if not len(weights):
        return _ScaleFit(centre, precision, np.zeros_like(precision), 0.0, wider)
    x, y = rows.design(rows.known), rows.labels[rows.known].astype(float)
    coef = newton_logistic(x, weights * y, weights * (1 - y), centre=centre, penalty=precision / weights.sum())
    return _ScaleFit(coef, precision, *laplace(x, y, weights, coef, centre, covariance), wider)


def _prior_covariance(misfit: Misfit, n: int, scale: float) -> Floats:
    """Return the covariance of the intercepts of n systems and of the slope that they share."""
    (intercept, both), (_, slope) = misfit.covariance
    result = np.full((n + 1, n + 1), both * (1.0 if n > 1 else scale))
    result[:n, :n] = intercept * (float(n > 1) + scale * np.eye(n))
    result[n, n] = slope * max(scale, 1.0)
    return np.asarray(result)


# The power tuning of P starts at full trust, worth so many labels: a few labels cannot tell how much P explains.
PSEUDO_LABELS = 10

# P that varies less explains nothing.
MIN_VARIANCE = 1e-12

# This is added to each count of labels by class and decision, so that rates of 0 and 1 have a variance.
HALF_COUNT = 0.5

# Decisions that tell the classes apart less than this say nothing of how many there are. Dividing by so small a gap
# would blow up the noise of the rates. Chosen; no measurement is known.
MIN_YOUDEN = 0.05

# Shares that the Rogan-Gladen interval is looked for among. Steps of a hundredth of a point: finer than any figure that
# is printed.
N_GRID_SHARES = 10_001

SHARE_TARGETS = ("system", "items")
"""Whose share it is: that of the system that wrote the items, on other items like them, or that of the items alone."""

# The names of the methods by which a share is estimated, as results show them.
MODEL_METHOD = "model"
CORRECTED_MODEL_METHOD = "corrected model"
PREDICTION_POWERED_METHOD = "prediction-powered"
LABEL_MEAN_METHOD = "mean of the labels"
ROGAN_GLADEN_METHOD = "Rogan-Gladen"

SHARE_METHODS = {
    MODEL_METHOD: "the prior that the model estimates from the votes",
    CORRECTED_MODEL_METHOD: "the mean of P once labels have corrected its intercept and slope",
    PREDICTION_POWERED_METHOD: "the mean of P, moved by the mean error of P on the labels",
    LABEL_MEAN_METHOD: "the share among the labels, whatever the votes say",
    ROGAN_GLADEN_METHOD: "the share of items decided as consistent, at the error rates found on the labels",
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
        In [0, 1].
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
    of: str = "items",
    level: float = LEVEL,
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
    of : {'items', 'system'}, default='items'
        'system': the interval is for other items of the system that wrote these, documents drawn at random.
    level : float in (0, 1), default=0.9
        Of the intervals.

    Returns
    -------
    tuple of Share
        Without labels the model's prior alone. With labels, the best first: the corrected model (where `misfit` is
        given), which leans on the training datasets as far as the labels agree with them; then those that hold
        whatever the model is worth: prediction-powered, the mean of the labels, Rogan-Gladen.

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
    every, of_items = checks.check_probabilities(p, name="p"), checks.check_choice(of, SHARE_TARGETS, "of") == "items"
    if (1 + checks.check_share(level, "level")) / 2 == 1:
        raise InputError(f"`level` must lie strictly between 0 and 1. Got {level!r}.")
    label_of = np.full(len(every), -1) if labels is None else np.asarray(labels)
    is_labeled = labeled_mask(label_of, len(every))
    clusters = Clusters.from_documents(documents, int(is_labeled.sum()), mask=is_labeled)
    sample = _LabeledSample(every, label_of[is_labeled].astype(float), is_labeled, clusters, _normal_quantile(level))
    if is_labeled.any():
        threshold = float(every.mean()) if prior is None else float(expit(prior.threshold))
        result = [_prediction_powered(sample), _label_mean(sample), _rogan_gladen(sample, every >= threshold)]
    elif prior is not None:
        result = [_model_share(prior, sample.quantile)]
    else:
        raise InputError("`labels` must hold a label of 0 or 1, or `prior` be given. Got neither.")
    if not of_items:
        result = [_widen_for_new_items(share, sample, documents) for share in result]
    if misfit is None or not is_labeled.any():
        return tuple(result)
    joint = joint_shares(every, label_of, misfit, documents=documents, of_items=of_items)
    return _corrected_model(float(joint.estimate[0]), float(joint.covariance[0, 0]), sample.quantile), *result


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
    # PPI++: the regression of labels on P, drawn to 1 by the pseudo-labels.
    slope = (((y - y.mean()) * (f - f.mean())).sum() / variance + pseudo_labels) / (n + pseudo_labels)
    return float(np.clip(slope / (1 + n / len(others)), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class _LabeledSample:
    """Labeled items of a dataset, and P of all its items."""

    p: Floats
    labels: Floats
    known: Mask
    clusters: Clusters
    quantile: float

    @property
    def unlabeled(self) -> float:
        """Return the share of items without a label: the finite population correction."""
        return 1.0 - len(self.labels) / len(self.p)

    def widened(self, errors: Floats) -> float:
        """Return the factor on the variance of a mean of labels, for few items and for shared documents."""
        return self.unlabeled * self.clusters.design_effect(self.correlation(errors))

    def correlation(self, errors: Floats) -> float:
        """Return the intraclass correlation of errors, as far as labels that share a document tell it."""
        scale = float(errors.std()) or 1.0
        return 0.0 if self.clusters.alone else self.clusters.correlation((errors - errors.mean()) / scale)


def _normal_quantile(level: float) -> float:
    return float(NormalDist().inv_cdf((1 + level) / 2))


def _model_share(prior: PriorEstimate, quantile: float) -> Share:
    """Return the model's own share without labels, at another level than its own."""
    centre, ratio = logit(prior.estimate), quantile / _normal_quantile(LEVEL)
    # A bound of 0 or 1 is one at every level.
    low, high = (
        float(expit(centre + ratio * (logit(bound) - centre))) if 0 < bound < 1 else bound
        for bound in (prior.low, prior.high)
    )
    return Share(MODEL_METHOD, prior.estimate, low, high)


def _widen_for_new_items(share: Share, sample: _LabeledSample, documents: npt.ArrayLike | None) -> Share:
    """Return a share whose interval knows that other documents would have given other items."""
    n = len(sample.p)
    every = Clusters.from_documents(documents, n)
    alone = not len(sample.labels) or sample.clusters.alone
    effect = 1.0 if every.alone else every.design_effect(CORRELATION if alone else sample.correlation(sample.labels))
    inner = min(max(share.estimate, HALF_COUNT / n), 1 - HALF_COUNT / n)
    reach = sample.quantile * np.sqrt(effect * inner * (1 - inner) / n)
    down, up = np.hypot(share.estimate - share.low, reach), np.hypot(share.high - share.estimate, reach)
    return Share(share.method, share.estimate, max(share.estimate - down, 0.0), min(share.estimate + up, 1.0))


def _label_mean(sample: _LabeledSample) -> Share:
    """Return the mean of the labels with Wilson's interval."""
    share, n = float(sample.labels.mean()), len(sample.labels)
    pull = sample.quantile**2 * sample.widened(sample.labels) / n
    centre = (share + pull / 2) / (1 + pull)
    reach = np.sqrt(pull * share * (1 - share) + pull**2 / 4) / (1 + pull)
    return _share_around(LABEL_MEAN_METHOD, share, centre, float(reach))


def _prediction_powered(sample: _LabeledSample) -> Share:
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
    p_of_1, p_of_0 = (usual + _weighted_mean(every, every)) / 2, (usual + _weighted_mean(every, 1 - every)) / 2
    pseudo = np.array([1 - slope * p_of_1, -slope * p_of_0])
    weights = np.append(np.ones(n), np.full(2, sample.quantile**2 / 2 * widened))
    both = np.append(errors, pseudo)
    mean = float(np.average(both, weights=weights))
    variance = float(np.average((both - mean) ** 2, weights=weights))
    reach = sample.quantile * np.sqrt(variance * widened / weights.sum())
    return _share_around(PREDICTION_POWERED_METHOD, float(estimate), float(slope * every.mean() + mean), float(reach))


def _weighted_mean(values: Floats, weights: Floats) -> float:
    """Return a weighted mean; the plain one where no value has weight."""
    return float(np.average(values, weights=weights)) if weights.sum() > 0 else float(values.mean())


def _rogan_gladen(sample: _LabeledSample, decisions: Mask) -> Share:
    """Return Rogan and Gladen's estimate by error rates found on the labels, with Fieller's interval."""
    y, positive = sample.labels, decisions[sample.known]
    rate, n1 = float(decisions.mean()), float(y.sum())
    n0 = len(y) - n1
    hit = (float(y[positive].sum()) + HALF_COUNT) / (n1 + 2 * HALF_COUNT)
    alarm = (float((1 - y[positive]).sum()) + HALF_COUNT) / (n0 + 2 * HALF_COUNT)
    widened = sample.widened(y - positive)
    variances = hit * (1 - hit) / (n1 + 2 * HALF_COUNT) * widened, alarm * (1 - alarm) / (n0 + 2 * HALF_COUNT) * widened
    share = float(np.clip((rate - alarm) / (hit - alarm), 0, 1)) if hit - alarm > MIN_YOUDEN else float(y.mean())
    shares = np.linspace(0, 1, N_GRID_SHARES)
    gap = np.abs(rate - shares * hit - (1 - shares) * alarm)
    inside = shares[gap <= sample.quantile * np.sqrt(shares**2 * variances[0] + (1 - shares) ** 2 * variances[1])]
    low, high = (inside.min(), inside.max()) if len(inside) else (share, share)
    return Share(ROGAN_GLADEN_METHOD, share, min(float(low), share), max(float(high), share))


def _corrected_model(estimate: float, variance: float, quantile: float) -> Share:
    """Return the corrected model's share, whose bounds on the scale of log-odds stay within 0 and 1."""
    reach = quantile * np.sqrt(variance) / max(estimate * (1 - estimate), MIN_VARIANCE)
    low, high = (float(expit(logit(estimate) + side * reach)) for side in (-1, 1))
    return Share(CORRECTED_MODEL_METHOD, estimate, min(low, estimate), max(high, estimate))


def _share_around(method: str, estimate: float, centre: float, reach: float) -> Share:
    """Return an estimate whose interval is about another centre."""
    low, high = min(centre - reach, estimate), max(centre + reach, estimate)
    return Share(method, *(min(max(value, 0.0), 1.0) for value in (estimate, low, high)))
