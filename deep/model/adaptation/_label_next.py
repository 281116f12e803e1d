"""Which items to label next, so that a few labels correct the probabilities most."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, check_choice, check_probabilities
from deep._odds import expit, logit
from deep.exceptions import InputError
from deep.model.adaptation._misfit import Misfit

STRATEGIES = ("design", "random", "spread")


@dataclass(frozen=True, eq=False)
class Proposal:
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
    strategy: str = "random",
    labeled: npt.ArrayLike = (),
    random_state: int = 0,
) -> Proposal:
    """Propose items to label for :class:`FewLabels`.

    Parameters
    ----------
    y_prob : array-like of shape (n_examples,)
        Transferred P(consistent) of all items of the new dataset.
    misfit : Misfit
        What the training datasets tell of intercept and slope on a new one.
    n : int
        How many, at most the unlabeled ones.
    strategy : {'design', 'random', 'spread'}, default='random'
        'random' draws; 'spread' draws one from each of n strata of equal size by P; 'design' takes, one after the
        other, the item whose label is expected to lower the mean variance of P over all items most.
    labeled : array-like of int, default=()
        Positions of items that have a label already.
    random_state : int, default=0

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
    >>> found = propose_labels(np.linspace(0.05, 0.95, 200), misfit, 20, strategy="spread")
    >>> len(found.rows), round(found.error_before, 2), round(found.error_after, 2)
    (20, 0.15, 0.08)
    """
    check_choice(strategy, STRATEGIES, "strategy")
    z = logit(check_probabilities(y_prob))
    known = np.asarray(labeled, dtype=np.intp).ravel()
    free = np.setdiff1d(np.arange(len(z)), known)
    if not len(free):
        raise InputError(
            f"`votes` must hold an item without a label. Got {len(z)} items, all with one. Nothing is left "
            "to label: use the labels, or give votes on other items."
        )
    if type(n) is not int or not 1 <= n <= len(free):
        raise InputError(f"`n` must be a whole number from 1 to {len(free)}, the unlabeled items. Got {n!r}.")
    design = _Design(z, misfit, known)
    rng = np.random.default_rng(random_state)
    chosen = design.choose(free, n, rng) if strategy == "design" else _drawn(z, free, n, strategy, rng)
    return Proposal(chosen, design.error(known[:0]), design.error(chosen))


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
    known = np.asarray(labeled, dtype=np.intp).ravel()
    return _Design(logit(check_probabilities(y_prob)), misfit, known).error(known[:0])


def _drawn(
    z: Floats, free: npt.NDArray[np.intp], n: int, strategy: str, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Draw at random, or one item from each stratum by P; equal P are in random order."""
    shuffled = rng.permutation(free)
    if strategy == "random":
        return shuffled[:n]
    ordered = shuffled[np.argsort(z[shuffled], kind="stable")]
    strata = np.array_split(ordered, n)
    return rng.permutation(np.array([stratum[rng.integers(len(stratum))] for stratum in strata]))


class _Design:
    """The information that labels give on intercept and slope."""

    def __init__(self, z: Floats, misfit: Misfit, known: npt.NDArray[np.intp]) -> None:
        p = expit(z)
        self._x = np.column_stack([np.ones(len(z)), z])
        self._information = p * (1 - p)
        self._gradient = self._information[:, None] * self._x
        self._precision = np.linalg.inv(misfit.covariance) + self._of(known)

    def _of(self, rows: npt.NDArray[np.intp]) -> Floats:
        x = self._x[rows]
        found: Floats = (x.T * self._information[rows]) @ x
        return found

    def error(self, rows: npt.NDArray[np.intp]) -> float:
        """Return the expected distance of P to the truth, once `rows` are labeled too."""
        covariance = np.linalg.inv(self._precision + self._of(rows))
        variance = np.einsum("ij,jk,ik->i", self._gradient, covariance, self._gradient)
        return float(np.sqrt(2 * variance / np.pi).mean())

    def choose(self, free: npt.NDArray[np.intp], n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
        """Return the items that lower the mean variance of P most, one after the other."""
        target = self._gradient.T @ self._gradient / len(self._gradient)
        free = rng.permutation(free)
        x, information = self._x[free], self._information[free]
        covariance = np.linalg.inv(self._precision)
        open_, chosen = np.ones(len(free), dtype=bool), []
        for _ in range(n):
            moved = x @ covariance
            gain = information * np.einsum("ij,jk,ik->i", moved, target, moved)
            gain /= 1 + information * (moved * x).sum(axis=1)
            best = int(np.argmax(np.where(open_, gain, -np.inf)))
            open_[best] = False
            chosen.append(free[best])
            covariance -= np.outer(moved[best], moved[best]) * (
                information[best] / (1 + information[best] * (moved[best] @ x[best]))
            )
        return np.array(chosen, dtype=np.intp)
