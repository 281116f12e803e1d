"""Weighted logistic regression on a few collapsed scores, by damped Newton steps."""

from typing import Any

import numpy as np
from scipy.special import expit

from deep._checks import Floats

__all__ = ["fit_logistic"]


RIDGE = 1e-6
"""Pull towards `centre`: invisible beside one row, yet enough for separable data to have an optimum."""

MAX_STEPS = 100
TOLERANCE = 1e-13
"""Newton stops where the next step would lower the loss by less than this share of the loss at 0."""


def fit_logistic(design: Floats, n: Floats, n1: Floats, *, centre: Floats) -> Floats:
    """Return the coefficients that maximise the likelihood of n1 successes in n trials a row.

    Parameters
    ----------
    design : ndarray of shape (n_scores, n_coefficients)
    n, n1 : ndarray of shape (n_scores,)
        Trials and successes; neither needs to be whole.
    centre : ndarray of shape (n_coefficients,)
        The coefficients that a direction without information keeps.

    Returns
    -------
    ndarray of shape (n_coefficients,)
    """
    theta = np.zeros_like(centre)
    loss = _loss(design, n, n1, theta, centre)
    negligible = TOLERANCE * loss
    for _ in range(MAX_STEPS):
        fitted = expit(design @ theta)
        gradient = design.T @ (n * fitted - n1) + RIDGE * (theta - centre)
        curvature = (design.T * (n * fitted * (1.0 - fitted))) @ design + RIDGE * np.eye(len(theta))
        step = np.linalg.solve(curvature, gradient)
        decrement = float(gradient @ step)
        if decrement <= negligible:
            theta = theta - step
            break
        theta, loss = _descend(design, n, n1, theta, centre, step=step, loss=loss, decrement=decrement)
    return theta


def _loss(design: Floats, n: Floats, n1: Floats, theta: Floats, centre: Floats) -> float:
    z = design @ theta
    return float(n @ np.logaddexp(0.0, z) - n1 @ z + 0.5 * RIDGE * np.sum((theta - centre) ** 2))


def _descend(
    design: Floats, n: Floats, n1: Floats, theta: Floats, centre: Floats, *, step: Any, loss: float, decrement: float
) -> tuple[Floats, float]:
    """Halve the step until the loss falls by a quarter of what its slope promises."""
    size = 1.0
    for _ in range(30):
        trial = theta - size * step
        reached = _loss(design, n, n1, trial, centre)
        if reached <= loss - 0.25 * size * decrement:
            break
        size /= 2.0
    return trial, reached
