"""Labels that share a document count less: how alike they are, and how many independent ones they are worth."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Mask, Positions, check_consistent_length
from deep.exceptions import InputError

CORRELATION = 0.1
"""Of the errors of labels that share a document, before any was seen."""

PAIRS = 20.0
"""`CORRELATION` is worth so many pairs of labels."""

NOISE = 0.01
"""P is held this far off 0 and 1 where labels are compared with it: one label in a hundred is a slip of the hand."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """The documents that labels belong to.

    Parameters
    ----------
    codes : ndarray of int, shape (n_labels,)
        The document of each label, counted from 0.
    weights : ndarray of float, shape (n_labels,)
        How often each label counts.
    known : bool
        Whether documents were given; else a label that counts twice is two labels of two documents.
    """

    codes: Positions
    weights: Floats
    known: bool

    @classmethod
    def from_documents(
        cls, documents: npt.ArrayLike | None, n: int, weights: Floats | None = None, *, kept: Mask | None = None
    ) -> "Clusters":
        """Group n labels by document, each by itself where there are none; `kept` chooses rows of `documents`."""
        if documents is None:
            codes = np.arange(n)
        else:
            names = np.asarray(documents).astype(str)
            check_consistent_length(names, n if kept is None else len(kept), "documents")
            codes = np.unique(names if kept is None else names[kept], return_inverse=True)[1]
        return cls(codes, np.ones(n) if weights is None else weights, documents is not None)

    @cached_property
    def sizes(self) -> Floats:
        """Return the labels of each document."""
        return np.asarray(np.bincount(self.codes, weights=self.weights), dtype=np.float64)

    @property
    def alone(self) -> bool:
        """Return whether no two labels share a document."""
        return not self.known or bool((self.sizes <= 1).all())

    def correlation(self, errors: Floats) -> float:
        """Return the intraclass correlation of standardised errors (mean 0, variance 1), in [0, 1].

        The mean product over pairs that share a document, less that over pairs that do not, which an error common to
        all would raise alike; `PAIRS` pairs at `CORRELATION` are added, for a few labels cannot tell it.

        Examples
        --------
        >>> Clusters.from_documents(["a", "a", "b", "b"], 4).correlation(np.array([1.0, 1.0, -1.0, -1.0]))
        0.2727272727272727
        """
        sums = np.bincount(self.codes, weights=self.weights * errors)
        within, squares = float((sums**2).sum()), float(self.weights @ errors**2)
        pairs = float(np.maximum(self.sizes**2 - self.sizes, 0.0).sum()) / 2
        across = float(self.weights.sum() ** 2 - (self.sizes**2).sum()) / 2
        common = float(sums.sum() ** 2 - within) / 2 / across if across > 0 else 0.0
        products = (within - squares) / 2 - pairs * common
        return float(np.clip((products + PAIRS * CORRELATION) / (pairs + PAIRS), 0.0, 1.0))

    def shares(self, correlation: float) -> Floats:
        """Return how much each label counts beside one that is alone: m of them are worth m / (1 + (m - 1) r)."""
        return np.asarray(1.0 / (1.0 + np.maximum(self.sizes - 1.0, 0.0) * correlation)[self.codes])

    def design_effect(self, correlation: float) -> float:
        """Return the variance of the mean of the labels beside that of as many independent ones (Kish)."""
        mean_size = float((self.sizes**2).sum() / self.sizes.sum())
        return 1.0 + max(mean_size - 1.0, 0.0) * correlation


def standardised(labels: Floats, p: Floats) -> Floats:
    """Return labels less P over its standard deviation, P held off 0 and 1 by `NOISE`."""
    held = np.clip(p, NOISE, 1 - NOISE)
    return np.asarray((labels - held) / np.sqrt(held * (1 - held)))


def labeled_rows(labels: npt.ArrayLike, n: int) -> Mask:
    """Return which of n rows have a label: 1 or 0, where -1 is none.

    Raises
    ------
    InputError
        A value is another, or their number is not n.
    """
    raw = np.asarray(labels)
    check_consistent_length(raw, n, "labels")
    wrong = ~np.isin(raw, (-1, 0, 1))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(f"`labels` must be 1, 0, or -1 where there is none. Got {raw[row].item()!r} at row {row}.")
    return np.asarray(raw >= 0)
