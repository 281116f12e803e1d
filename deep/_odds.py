"""Log-odds and back, and the two numbers that every probability of deep keeps to.

A caller of `logit` says how far off 0 and 1 it holds probabilities; the reason stands at the call. SciPy is not used:
it would take longer to load than a text to score.
"""

import numpy as np
import numpy.typing as npt

P_MIN = 1e-6
"""Calibrated probabilities lie in [P_MIN, 1 - P_MIN], so that log loss and log-odds are finite."""

DECISION = 0.5
"""P(consistent) from which on an item is called consistent."""


def logit(p: npt.ArrayLike, *, clip: float = P_MIN) -> npt.NDArray[np.float64]:
    """Return log(p / (1 - p)) of probabilities, held within [clip, 1 - clip] first.

    Parameters
    ----------
    p : array-like of float
    clip : float, default=1e-6
        0 or more; 0 where p is known to lie strictly between 0 and 1.

    Examples
    --------
    >>> logit([0.0, 0.5, 0.9]).round(2).tolist()
    [-13.82, 0.0, 2.2]
    """
    held = np.clip(np.asarray(p, dtype=np.float64), clip, 1.0 - clip)
    # log1p keeps the digits of a p next to 0, of which 1 - p would lose most.
    return np.asarray(np.log(held) - np.log1p(-held))


def expit(z: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return 1 / (1 + exp(-z)), the inverse of `logit`, without overflow.

    Examples
    --------
    >>> expit([-1000.0, 0.0, 2.0]).round(2).tolist()
    [0.0, 0.5, 0.88]
    """
    found = np.negative(np.asarray(z, dtype=np.float64), out=np.empty(np.shape(z)))
    with np.errstate(over="ignore"):  # of exp(-z), whose infinity gives the 0 that is meant
        np.exp(found, out=found)
    found += 1.0
    return np.reciprocal(found, out=found)


def at_prior(p: npt.ArrayLike, prior: float) -> npt.NDArray[np.float64]:
    """Return P at another class prior from P at equal class weights.

    Parameters
    ----------
    p : array-like of float
    prior : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> at_prior([0.5, 0.8], 0.2).round(2).tolist()
    [0.2, 0.5]
    """
    return expit(logit(p) + logit(prior, clip=0.0))
