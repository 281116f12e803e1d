"""Weighted logistic regression with a quadratic penalty, by damped Newton steps."""

import numpy as np

from deep._checks import Floats
from deep._odds import expit

RIDGE = 1e-6
"""Pull towards `centre`: invisible beside one row, yet enough for separable data to have an optimum."""

MAX_STEPS = 100
MAX_HALVINGS = 30
TOLERANCE = 1e-13
"""Newton stops where the next step would lower the loss by less than this share of the loss at the start."""

ROUNDING = 1e-12
"""A rise of the loss by this share of it is none: sums of rows round."""


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
    n, n1 : ndarray of shape (n_scores,)
        Trials and successes; neither needs to be whole.
    centre : ndarray of shape (n_coefficients,)
        The coefficients that a direction without information keeps.
    penalty : ndarray of shape (n_coefficients, n_coefficients), optional
        Half its quadratic form about `centre` is added to the negative log likelihood; default `RIDGE` times the
        identity.
    start : ndarray of shape (n_coefficients,), optional
        Where Newton's method sets out; default 0.
    tolerance : float, default=1e-13
    slope : float, default=0.0
        Newton also stops where no slope of the mean loss is steeper, after a step that promised to lower it by no more.

    Returns
    -------
    ndarray of shape (n_coefficients,)
    """
    pull = RIDGE * np.eye(len(centre)) if penalty is None else penalty
    theta = np.zeros(len(centre)) if start is None else start.astype(float)

    def loss_at(at: Floats) -> float:
        z = design @ at
        return float(n @ np.logaddexp(0.0, z) - n1 @ z + 0.5 * (at - centre) @ pull @ (at - centre))

    loss = loss_at(theta)
    negligible, least = tolerance * loss, slope * n.sum()
    decrement = np.inf
    for _ in range(MAX_STEPS):
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
        for _ in range(MAX_HALVINGS):
            reached = loss_at(theta - step)
            if reached <= loss - 0.25 * float(gradient @ step) + ROUNDING * loss:
                break
            step = step / 2.0
        theta, loss = theta - step, reached
    return theta
