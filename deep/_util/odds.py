"""Log-odds and back, and the two numbers that every probability of deep keeps to.

A caller of `logit` says how far off 0 and 1 it holds probabilities; the reason stands at the call. SciPy is not used:
it would take longer to load than a text to score.
"""

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Labels

# Calibrated probabilities lie in [P_MIN, 1 - P_MIN], so that log loss and log-odds are finite.
P_MIN = 1e-6

# An item is called consistent from this P(consistent) on.
DECISION_P = 0.5


def logit(p: npt.ArrayLike, *, clip: float = P_MIN) -> npt.NDArray[np.float64]:
    """Return log(p / (1 - p)) of probabilities, held within [clip, 1 - clip] first.

    Parameters
    ----------
    p : array-like of float
        Probabilities in [0, 1].
    clip : float, default=1e-6
        0 or more; 0 where p is known to lie strictly between 0 and 1.

    Examples
    --------
    >>> logit([0.0, 0.5, 0.9]).round(2).tolist()
    [-13.82, 0.0, 2.2]
    """
    # At a P of 0 or 1 log-odds are infinite; what a caller can bear stands in its `clip` (decision 10).
    probability = np.clip(np.asarray(p, dtype=np.float64), clip, 1.0 - clip)
    # log1p keeps the digits of a p next to 0, of which 1 - p would lose most.
    return np.asarray(np.log(probability) - np.log1p(-probability))


def expit(z: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return 1 / (1 + exp(-z)), the inverse of `logit`, without overflow.

    Examples
    --------
    >>> expit([-1000.0, 0.0, 2.0]).round(2).tolist()
    [0.0, 0.5, 0.88]
    """
    result = np.negative(np.asarray(z, dtype=np.float64), out=np.empty(np.shape(z)))
    with np.errstate(over="ignore"):  # of exp(-z), whose infinity gives the 0 that is meant
        np.exp(result, out=result)
    result += 1.0
    return np.reciprocal(result, out=result)


def shift_prior(p: npt.ArrayLike, prior: float) -> npt.NDArray[np.float64]:
    """Return P at another class prior from P at equal class weights.

    Parameters
    ----------
    p : array-like of float
        P at equal class weights, in [0, 1].
    prior : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> shift_prior([0.5, 0.8], 0.2).round(2).tolist()
    [0.2, 0.5]
    """
    return expit(logit(p) + logit(prior, clip=0.0))


# The pull towards `centre`: invisible beside one row, yet enough for separable data to have an optimum.
RIDGE_WEIGHT = 1e-6

# More steps than any data have taken; each is halved until the loss falls.
MAX_NEWTON_STEPS = 100
# Steps of 2^-29 are never needed (docs/mutation.md).
MAX_STEP_HALVINGS = 30
# Newton stops where the next step would lower the loss by less than this share of the loss at the start.
TOLERANCE = 1e-13

# A rise of the loss by this share of it is none: sums of rows round.
ROUNDING_SHARE = 1e-12


def fit_logistic(
    design: Floats,
    n: Floats,
    n1: Floats,
    *,
    centre: Floats,
    penalty: Floats | None = None,
    start: Floats | None = None,
    tolerance: float = TOLERANCE,
    slope: float = 0.0,
) -> Floats:
    """Return the coefficients that maximise the penalised likelihood of n1 successes in n trials a row.

    Parameters
    ----------
    design : ndarray of shape (n_scores, n_coefficients)
        A column for each coefficient; that of an intercept is ones.
    n, n1 : ndarray of shape (n_scores,)
        Trials and successes; neither needs to be whole.
    centre : ndarray of shape (n_coefficients,)
        The coefficients that a direction without information keeps.
    penalty : ndarray of shape (n_coefficients, n_coefficients), optional
        Half its quadratic form about `centre` is added to the negative log likelihood; default `RIDGE_WEIGHT` times the
        identity.
    start : ndarray of shape (n_coefficients,), optional
        Where Newton's method sets out; default 0.
    tolerance : float, default=1e-13
        Newton ends with a step that promises to lower the loss by at most half this share of the loss at the start.
    slope : float, default=0.0
        Newton also stops where no slope of the mean loss is steeper, after a step that promised to lower it by no more.

    Returns
    -------
    ndarray of shape (n_coefficients,)
    """
    pull = RIDGE_WEIGHT * np.eye(len(centre)) if penalty is None else penalty
    theta = np.zeros(len(centre)) if start is None else start.astype(float)

    def loss_at(at: Floats) -> float:
        z = design @ at
        # log(1 + e^z) without the overflow of e^z.
        return float(n @ np.logaddexp(0.0, z) - n1 @ z + 0.5 * (at - centre) @ pull @ (at - centre))

    loss = loss_at(theta)
    negligible, least = tolerance * loss, slope * n.sum()
    decrement = np.inf
    for _ in range(MAX_NEWTON_STEPS):
        fitted = expit(design @ theta)
        gradient = design.T @ (n * fitted - n1) + pull @ (theta - centre)
        if np.abs(gradient).max() <= least and decrement / 2 <= least:
            return theta
        curvature = (design.T * (n * fitted * (1.0 - fitted))) @ design + pull
        step = np.linalg.solve(curvature, gradient)
        # Newton's decrement: twice what the quadratic model of the loss promises for the whole step.
        decrement = float(gradient @ step)
        if decrement <= negligible:
            # So near the optimum a whole step squares the error, while differences of the loss are all rounding.
            return np.asarray(theta - step)
        # Armijo backtracking: where the loss is far from quadratic a whole step overshoots; it is halved until the
        # loss falls by a quarter of what its slope promises, which makes the method converge from anywhere.
        for _ in range(MAX_STEP_HALVINGS):
            reached = loss_at(theta - step)
            if reached <= loss - 0.25 * float(gradient @ step) + ROUNDING_SHARE * loss:
                break
            step = step / 2.0
        theta, loss = theta - step, reached
    return theta


# Newton's method ends where no slope of the mean log loss is steeper. A looser bound is quicker and moves more digits.
# Chosen; no measurement is known.
SLOPE_TOLERANCE = 1e-8


def penalised_logistic(features: Floats, y: Labels, w: Floats, *, C: float) -> tuple[Floats, float]:
    """Return the coefficients and the intercept of logistic regression with a penalty on the coefficients.

    Parameters
    ----------
    features : ndarray of float64, shape (n_examples, n_features)
        What the label is told from, as signed votes or log-odds; none is missing.
    y : ndarray of int8, shape (n_examples,)
        Labels, 0 and 1, both present.
    w : ndarray of float64, shape (n_examples,)
        Weight of each row, 0 or more.
    C : float
        Inverse strength of the L2 penalty.
    """
    n_features = features.shape[1]
    design = np.column_stack([features, np.ones(len(features))])
    # The intercept is not pulled, as in scikit-learn: it stands for the share of label 1, which is no effect to shrink.
    penalty = np.diag(np.append(np.full(n_features, 1 / C), 0.0))
    theta = fit_logistic(design, w, w * y, centre=np.zeros(n_features + 1), penalty=penalty, slope=SLOPE_TOLERANCE)
    return theta[:-1], float(theta[-1])
