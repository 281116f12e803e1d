"""A canary: the test whether a handful of labels agrees with the P that the model gave to their items."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, check_probabilities
from deep._util.odds import expit, logit
from deep.exceptions import InputError
from deep.model._correction import FewLabels, labeled_mask
from deep.model._misfit import LABEL_NOISE, NO_CORRECTION, Clusters, Misfit, learn_misfit, standardised_errors
from deep.model._prior import intercept_at, profile_of

SIGNIFICANCE = 0.05
"""The test flags this share of datasets like the training datasets by chance."""

# P counts as right where it is off by no more than this share of how far it is usually off on a new dataset: on none is
# it exact, and without a tolerance enough labels would flag every dataset.
TOLERATED_MISFIT_SHARE = 0.25

# This is added to the information of intercept and slope, which labels at a single P cannot tell apart. It is small
# beside that of one label, P (1 - P), which is 0.0099 at least.
INFORMATION_RIDGE = 1e-3

# Draws of labels that a p-value is counted on: at 0.05 its standard error is 0.005.
N_DRAWS = 2000
# The powers for which the number of labels needed is reported. An even chance, the usual 80 %, and nearly sure.
TEST_POWERS = (0.5, 0.8, 0.9)
# The most labels that are tried where the number needed is looked for. It bounds the time. Chosen; no measurement is
# known.
MAX_LABELS = 1000
# Labels that are drawn at a time: some 100 MB.
MAX_LABELS_PER_DRAW = N_DRAWS * MAX_LABELS

# Draws of intercept and slope, and of items, of which a bound on the calibration error is the quantile. The bound is a
# 95 % quantile: of 2,000 draws a hundred lie beyond it.
ERROR_DRAWS, ERROR_ITEMS = 2000, 500

# An error of the mean P that few users would put up with. Chosen; no measurement is known.
DEFAULT_ERROR_TO_FIND = 0.15

# So many numbers of labels are tried, up to `MAX_LABELS`, each a few percent above the one before.
N_SAMPLE_SIZES_TRIED = 40


@dataclass(frozen=True)
class Canary:
    """The test of labels against the probabilities that were given to their items before.

    Parameters
    ----------
    p_value : float
        The chance of labels that disagree at least as much, if P is right up to a small tolerance. Below 0.05: the
        model should not be trusted on this dataset as it is.
    n_labels : int
        Items with a label of 0 or 1.
    statistic : float
        Score statistic: how strongly the labels ask for another intercept and slope of the log-odds.
    expected, observed : float
        Share of consistent items among the labeled ones: the mean P, and the labels'.
    expected_loss, loss : float
        Mean log loss of P on the labels: if P were right, and observed.
    correlation : float
        Of errors that share a document, as assumed in the test; 0 where no two labels do.
    """

    p_value: float
    n_labels: int
    statistic: float
    expected: float
    observed: float
    expected_loss: float
    loss: float
    correlation: float


def canary(
    p: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    documents: npt.ArrayLike | None = None,
    misfit: Misfit | None = None,
    n_draws: int = N_DRAWS,
    random_state: int = 0,
) -> Canary:
    """Test whether labels agree with P(consistent) as the model predicted it.

    Parameters
    ----------
    p : array-like of shape (n_examples,)
        P(consistent) at the estimated prior, given before any label was looked at.
    labels : array-like of shape (n_examples,)
        1 or 0 of randomly drawn items, and -1 where there is none.
    documents : array-like of shape (n_examples,), optional
        The document of each item: labels that share one err together, and count less.
    misfit : Misfit, optional
        How far P is usually off: a quarter of that is tolerated. Default: P must be exact.
    n_draws : int, default=2000
        Label sets simulated under the null hypothesis.
    random_state : int, default=0
        Seed of the simulated labels, and of the errors of P that `misfit` tolerates in them.

    Returns
    -------
    Canary

    Raises
    ------
    InputError
        There is no label, a value is out of range, or lengths differ.

    Notes
    -----
    Rao's score test of intercept 0 and slope 1 in Cox's recalibration model [1]_. Its distribution is simulated, not
    asymptotic, so ten labels are enough for a valid test.

    References
    ----------
    .. [1] D. R. Cox, "Two further applications of a model for binary regression", Biometrika 45, 1958.
       https://doi.org/10.1093/biomet/45.3-4.562

    Examples
    --------
    >>> p = [0.1, 0.2, 0.1, 0.3, 0.8, 0.9, 0.9, 0.7, 0.2, 0.1]
    >>> canary(p, [0, 0, 0, 1, 1, 1, 1, 0, 0, 0]).p_value > 0.5
    True
    >>> canary(p, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]).p_value < 0.01
    True
    """
    every = check_probabilities(p, name="p")
    is_labeled = labeled_mask(labels, len(every))
    if not is_labeled.any():
        raise InputError("`labels` must hold a label of 0 or 1. Got none.")
    if type(n_draws) is not int or n_draws < 1:
        raise InputError(f"`n_draws` must be a whole number above 0. Got {n_draws!r}.")
    q, y = np.clip(every[is_labeled], LABEL_NOISE, 1 - LABEL_NOISE), np.asarray(labels)[is_labeled].astype(float)
    clusters = Clusters.from_documents(documents, len(y), mask=is_labeled)
    correlation = 0.0
    if not clusters.alone:
        # Of errors net of the mean over all labels, which an intercept that is off would raise alike.
        few = FewLabels(misfit or learn_misfit([])).fit(q, y)
        correlation = clusters.correlation(standardised_errors(y, few.transform(q)))
    weights = clusters.shares(correlation)
    z = logit(q)
    (statistic,) = _score_statistics(z, y[np.newaxis], weights)
    rng, beyond = np.random.default_rng(random_state), 0
    most = max(MAX_LABELS_PER_DRAW // len(y), 1)  # all label sets at a time of up to a thousand labels, fewer of more
    for start in range(0, n_draws, most):
        n = min(most, n_draws - start)
        # Labels as they would be if P were right up to the tolerance.
        uniform = _draw_correlated_uniforms(clusters, correlation, n, rng)
        null = (uniform < expit(_draw_tolerated_log_odds(np.broadcast_to(z, uniform.shape), misfit, rng))).astype(float)
        simulated = _score_statistics(z, null, weights)
        # Ties count as at least as far: sums of the same labels in another order round differently.
        beyond += int((simulated >= statistic * (1 - 1e-9) - 1e-9).sum())
    entropy = -(q * np.log(q) + (1 - q) * np.log1p(-q))
    return Canary(
        # The labels at hand count as one draw, or a p-value of 0 would claim more than the draws can show.
        p_value=(1 + beyond) / (1 + n_draws),
        n_labels=len(y),
        statistic=float(statistic),
        expected=float(every[is_labeled].mean()),
        observed=float(y.mean()),
        expected_loss=float(entropy.mean()),
        loss=float(-(y * np.log(q) + (1 - y) * np.log1p(-q)).mean()),
        correlation=correlation,
    )


def labels_needed(
    p: npt.ArrayLike,
    misfit: Misfit | None = None,
    *,
    alternative: Sequence[float] | None = None,
    powers: Sequence[float] = TEST_POWERS,
    random_state: int = 0,
) -> dict[float, int | None]:
    """Return how many random labels the canary needs to find that P is wrong, by power.

    Parameters
    ----------
    p : array-like of shape (n_examples,)
        P(consistent) of the dataset's items at the estimated prior.
    misfit : Misfit, optional
        How far P is usually off, as in :func:`canary`.
    alternative : (float, float), optional
        Intercept and slope of the truth in log-odds of P. Default: those of the training dataset on which P was
        furthest off; where the misfit knows none, an intercept off by two standard deviations.
    powers : sequence of float, default=(0.5, 0.8, 0.9)
        Shares of draws in which such a dataset is to be found.
    random_state : int, default=0
        Seed of the draws of items and their labels, and of the errors of P that `misfit` tolerates.

    Returns
    -------
    dict of float to int or None
        By power; None where all items, or 1,000, are too few.

    Examples
    --------
    >>> p = np.linspace(0.02, 0.98, 400)
    >>> needed = labels_needed(p, alternative=(1.5, 0.3))
    >>> list(needed), needed[0.5] < needed[0.9] < 40
    ([0.5, 0.8, 0.9], True)
    """
    z = logit(np.clip(check_probabilities(p, name="p"), LABEL_NOISE, 1 - LABEL_NOISE))
    truth = np.asarray(_default_alternative(z, misfit) if alternative is None else alternative, dtype=np.float64)
    if truth.shape != (2,) or not np.isfinite(truth).all():
        raise InputError(f"`alternative` must be an intercept and a slope. Got {alternative!r}.")
    rng = np.random.default_rng(random_state)
    sizes = np.unique(np.geomspace(2, MAX_LABELS, N_SAMPLE_SIZES_TRIED).round().astype(int))
    sizes = sizes[sizes <= len(z)]
    result: dict[float, int | None] = dict.fromkeys(powers)
    for size in sizes:
        reached = _test_power(z, int(size), truth, misfit, rng)
        result = {power: n or (int(size) if reached >= power else None) for power, n in result.items()}
        if None not in result.values():
            break
    return result


def possible_error(p: npt.ArrayLike, labels: npt.ArrayLike, *, documents: npt.ArrayLike | None = None) -> float:
    """Return the largest calibration error of P that labels leave possible, at 95 %: a mean distance in [0, 1].

    Intercept and slope of P given the labels, as where nothing is known of other datasets, are drawn, and P beside them
    is compared on all items. On 61 draws of eleven real panels, twice each, the bound of 10 to 100 labels was above the
    error that all labels show (ECE with 8 bins) in 97 %, and above that of 300 in 89 %.

    Parameters
    ----------
    p, labels, documents : array-like of shape (n_examples,)
        As in :func:`canary`.

    Examples
    --------
    >>> p, y = np.tile([0.2, 0.8], 200), np.tile([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], 40)
    >>> few, many = (possible_error(p, np.where(np.arange(400) < n, y, -1)) for n in (10, 200))
    >>> few > many > 0
    True
    """
    every = check_probabilities(p, name="p")
    is_labeled = labeled_mask(labels, len(every))
    of = None if documents is None else np.asarray(documents)[is_labeled]
    few = FewLabels(learn_misfit([])).fit(every[is_labeled], np.asarray(labels)[is_labeled], documents=of)
    rng = np.random.default_rng(0)
    moves = rng.multivariate_normal(few.coef_, few.covariance_, size=ERROR_DRAWS)
    z = rng.choice(logit(every), ERROR_ITEMS)
    errors = np.abs(expit(moves[:, :1] + moves[:, 1:] * z) - expit(z)).mean(axis=1)
    return float(np.quantile(errors, 0.95))


def labels_to_find(p: npt.ArrayLike, error: float = DEFAULT_ERROR_TO_FIND, misfit: Misfit | None = None) -> int | None:
    """Return how many labels the canary needs to find that the mean P is off by `error`, as in :func:`labels_needed`.

    Examples
    --------
    >>> p = np.linspace(0.02, 0.98, 400)
    >>> labels_to_find(p, 0.3) < labels_to_find(p, 0.15) < 150
    True
    """
    z = logit(np.clip(check_probabilities(p, name="p"), LABEL_NOISE, 1 - LABEL_NOISE))
    mean = float(expit(z).mean())
    # To the side on which there is more room.
    target = mean + error if mean < 0.5 else mean - error
    intercept = intercept_at(profile_of(z, np.ones(len(z))), float(logit(target)))
    return labels_needed(p, misfit, alternative=(intercept, 1.0), powers=(0.8,))[0.8]


def _draw_tolerated_log_odds(z: Floats, misfit: Misfit | None, rng: np.random.Generator) -> Floats:
    """Move each row of log-odds by an intercept and a slope within the tolerance."""
    if misfit is None:
        return z
    moves = rng.multivariate_normal(NO_CORRECTION, TOLERATED_MISFIT_SHARE**2 * misfit.second_moment, size=len(z))
    return np.asarray(moves[:, :1] + moves[:, 1:] * z)


def _draw_correlated_uniforms(clusters: Clusters, correlation: float, n: int, rng: np.random.Generator) -> Floats:
    """Return n sets of uniform numbers; those of one document are correlated by a Gaussian copula."""
    from scipy.special import ndtr

    size = (n, len(clusters.codes))
    if clusters.alone:
        return rng.random(size)
    # Labels correlate less than the normal numbers that they are cut from; at P = 1/2 by this arc sine.
    shared = np.sin(np.pi / 2 * correlation)
    common = rng.standard_normal((n, len(clusters.sizes)))[:, clusters.codes]
    return np.asarray(ndtr(np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.standard_normal(size)))


def _score_statistics(z: Floats, labels: Floats, weights: Floats) -> Floats:
    """Return the score statistic of each set of labels; `z` of shape (n_labels,) or (n_sets, n_labels)."""
    z = np.broadcast_to(z, labels.shape)
    p = expit(z)
    residual, information = weights * (labels - p), weights * p * (1 - p)
    # Rao's score test: the slope of the log-likelihood at no correction, over its information. Of seven statistics it
    # had the best power, or nearly (decision 11).
    scores = np.stack([residual.sum(axis=1), (residual * z).sum(axis=1)])
    (a, b), (_, d) = ((information.sum(axis=1), (information * z).sum(axis=1)), (0.0, (information * z**2).sum(axis=1)))
    a, d = a + INFORMATION_RIDGE, d + INFORMATION_RIDGE
    return np.asarray((d * scores[0] ** 2 - 2 * b * scores[0] * scores[1] + a * scores[1] ** 2) / (a * d - b**2))


def _default_alternative(z: Floats, misfit: Misfit | None) -> Floats:
    """Return the correction that the canary should find where none is given."""
    prior_misfit = misfit or learn_misfit([])
    if prior_misfit.worst is not None:
        return prior_misfit.worst
    # Two standard deviations stand for a bad dataset where no training dataset can show one.
    reach = 2 * np.sqrt(prior_misfit.second_moment[0, 0])
    # Up or down: where P has more room, the error is larger.
    up = expit(z + reach).mean() - expit(z).mean() >= expit(z).mean() - expit(z - reach).mean()
    return np.array([reach if up else -reach, 1.0])


def _test_power(z: Floats, size: int, truth: Floats, misfit: Misfit | None, rng: np.random.Generator) -> float:
    """Return the share of random draws of labels in which the canary finds that the truth is another."""
    as_predicted = z[rng.integers(len(z), size=(N_DRAWS, size))]
    null = (rng.random(as_predicted.shape) < expit(_draw_tolerated_log_odds(as_predicted, misfit, rng))).astype(float)
    rows = z[rng.integers(len(z), size=(N_DRAWS, size))]
    labels = (rng.random(rows.shape) < expit(truth[0] + truth[1] * rows)).astype(float)
    ones = np.ones(size)
    threshold = np.quantile(_score_statistics(as_predicted, null, ones), 1 - SIGNIFICANCE)
    return float((_score_statistics(rows, labels, ones) > threshold).mean())


@dataclass(frozen=True, eq=False)
class LabelProposal:
    """Items to label, and the calibration error expected afterwards.

    Parameters
    ----------
    rows : ndarray of int, shape (n,)
        Positions of the items, in the order in which to label them.
    error_before, error_after : float
        Mean over all items of the distance between given and true P that the misfit of the training datasets leads
        one to expect, without the labels and with them. Binning noise is not in it.
    """

    rows: npt.NDArray[np.intp]
    error_before: float
    error_after: float


def propose_labels(
    y_prob: npt.ArrayLike,
    misfit: Misfit,
    n: int,
    *,
    labeled: npt.ArrayLike = (),
    random_state: int = 0,
) -> LabelProposal:
    """Propose items to label for :class:`FewLabels`: drawn at random, as no choice did reliably better (decision 52).

    Parameters
    ----------
    y_prob : array-like of shape (n_examples,)
        Transferred P(consistent) of all items of the new dataset.
    misfit : Misfit
        What the training datasets tell of intercept and slope on a new one.
    n : int
        How many, at most the unlabeled ones.
    labeled : array-like of int, default=()
        Positions of items that have a label already.
    random_state : int, default=0
        Seed of the draw of items.

    Returns
    -------
    Proposal

    Raises
    ------
    InputError
        All items have a label, `n` is not a whole number from 1 to the number of those without, or a value is out of
        range.

    Notes
    -----
    The variance of P is that of a logistic correction with intercept and slope, under the Gaussian prior that the
    training datasets give (Bayesian V-optimality [1]_); it depends on where labels are, not on what they say.

    References
    ----------
    .. [1] K. Chaloner and I. Verdinelli, "Bayesian experimental design: a review", 1995.
       https://doi.org/10.1214/ss/1177009939

    Examples
    --------
    >>> misfit = Misfit(np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 0.1]]), 10)
    >>> result = propose_labels(np.linspace(0.05, 0.95, 200), misfit, 20)
    >>> len(result.rows), round(result.error_before, 2), round(result.error_after, 2)
    (20, 0.15, 0.08)
    """
    z = logit(check_probabilities(y_prob))
    labeled_rows = np.asarray(labeled, dtype=np.intp).ravel()
    free = np.setdiff1d(np.arange(len(z)), labeled_rows)
    if not len(free):
        raise InputError(
            f"`votes` must hold an item without a label. Got {len(z)} items, all with one. Nothing is left "
            "to label: use the labels, or give votes on other items."
        )
    if type(n) is not int or not 1 <= n <= len(free):
        raise InputError(f"`n` must be a whole number from 1 to {len(free)}, the unlabeled items. Got {n!r}.")
    proposal = np.random.default_rng(random_state).permutation(free)[:n]
    after = np.append(labeled_rows, proposal)
    return LabelProposal(
        proposal, expected_label_error(y_prob, misfit, labeled_rows), expected_label_error(y_prob, misfit, after)
    )


def expected_label_error(y_prob: npt.ArrayLike, misfit: Misfit, labeled: npt.ArrayLike = ()) -> float:
    """Return the mean distance between given and true P that one is to expect once some items are labeled.

    Parameters
    ----------
    y_prob, misfit
        As in :func:`propose_labels`.
    labeled : array-like of int, default=()
        Positions of the items that have a label.

    Examples
    --------
    >>> misfit = Misfit(np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 0.1]]), 10)
    >>> p = np.linspace(0.05, 0.95, 200)
    >>> round(expected_label_error(p, misfit), 2), round(expected_label_error(p, misfit, range(0, 200, 10)), 2)
    (0.15, 0.08)
    """
    z, rows = logit(check_probabilities(y_prob)), np.asarray(labeled, dtype=np.intp).ravel()
    design, p = np.column_stack([np.ones(len(z)), z]), expit(z)
    information = p * (1 - p)
    gradient, x = information[:, None] * design, design[rows]
    covariance = np.linalg.inv(np.linalg.inv(misfit.covariance) + (x.T * information[rows]) @ x)
    variance = np.einsum("ij,jk,ik->i", gradient, covariance, gradient)
    # The mean distance of a normal error is sqrt(2 / pi) standard deviations.
    return float(np.sqrt(2 * variance / np.pi).mean())
