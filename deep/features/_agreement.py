"""How far raters agree beyond chance: Cohen's and Fleiss' kappa, Krippendorff's alpha.

Not by scikit-learn's `cohen_kappa_score`, which checks its input for a millisecond a call, and an interval takes
thousands, and which warns where kappa is undefined; nor by a package for the other two, of ten lines each.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep.exceptions import InputError

Ratings = npt.NDArray[np.int64]


def cohen_kappa(ratings: npt.ArrayLike) -> float:
    """Return Cohen's kappa of two raters [1]_.

    Parameters
    ----------
    ratings : array-like of shape (n_items, 2)
        Categories from 0; a negative number where a rater gave none. Items without both ratings are left out.

    Returns
    -------
    float
        At most 1; 0 at chance level; NaN where no two categories were used, or no item has both ratings.

    References
    ----------
    .. [1] Cohen, Educational and Psychological Measurement 20, 1960. https://doi.org/10.1177/001316446002000104

    Examples
    --------
    >>> from deep.features import cohen_kappa
    >>> cohen_kappa([[1, 1], [1, 1], [0, 0], [1, 0]])
    0.5
    """
    codes = _checked(ratings)
    if codes.shape[1] != 2:
        raise InputError(f"`ratings` must have two columns. Got {codes.shape[1]}.")
    both = codes[(codes >= 0).all(axis=1)]
    if not len(both):
        return float("nan")
    shares = np.stack([np.bincount(column, minlength=both.max() + 1) / len(both) for column in both.T])
    return _beyond_chance(float((both[:, 0] == both[:, 1]).mean()), float(shares.prod(axis=0).sum()))


def kappa_of_counts(counts: npt.ArrayLike) -> Floats:
    """Return Cohen's kappa of tables of two raters and two categories.

    Parameters
    ----------
    counts : array-like of shape (..., 2, 2)
        Items by the category of the first and of the second rater.

    Returns
    -------
    ndarray of float, shape (...)
        As :func:`cohen_kappa`: NaN where only one category was used, or there are no items.

    Examples
    --------
    >>> from deep.features import kappa_of_counts
    >>> kappa_of_counts([[[1, 0], [1, 2]], [[0, 0], [0, 4]]]).tolist()
    [0.5, nan]
    """
    tables = np.asarray(counts, dtype=np.float64)
    n = tables.sum(axis=(-2, -1))
    observed = np.trace(tables, axis1=-2, axis2=-1) * n
    expected = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    beyond = n**2 - expected
    kappa: Floats = np.divide(observed - expected, beyond, out=np.full_like(n, np.nan), where=beyond > 0)
    return kappa


def fleiss_kappa(ratings: npt.ArrayLike) -> float:
    """Return Fleiss' kappa of several raters [1]_.

    Parameters
    ----------
    ratings : array-like of shape (n_items, n_raters)
        Categories from 0; a negative number where a rater gave none. It is defined for the same number of ratings
        an item, so items that lack one are left out.

    Returns
    -------
    float
        At most 1; 0 at chance level; NaN where no two categories were used, or no item has all ratings.

    References
    ----------
    .. [1] Fleiss, Psychological Bulletin 76, 1971. https://doi.org/10.1037/h0031619

    Examples
    --------
    >>> from deep.features import fleiss_kappa
    >>> round(fleiss_kappa([[1, 1, 1], [0, 0, 0], [1, 1, 0]]), 4)
    0.55
    """
    codes = _checked(ratings)
    counts = _counts(codes[(codes >= 0).all(axis=1)])
    n = codes.shape[1]
    if not len(counts) or n < 2:
        return float("nan")
    observed = ((counts**2).sum(axis=1) - n) / (n * (n - 1))
    shares = counts.sum(axis=0) / counts.sum()
    return _beyond_chance(float(observed.mean()), float((shares**2).sum()))


def krippendorff_alpha(ratings: npt.ArrayLike) -> float:
    """Return Krippendorff's alpha for nominal categories and any number of raters [1]_.

    Parameters
    ----------
    ratings : array-like of shape (n_items, n_raters)
        Categories from 0; a negative number where a rater gave none. Items with fewer than two ratings say nothing
        about agreement and are left out.

    Returns
    -------
    float
        At most 1; 0 at chance level; NaN where no two categories were used.

    References
    ----------
    .. [1] Krippendorff, Computing Krippendorff's alpha-reliability, 2011.
       https://repository.upenn.edu/handle/20.500.14332/2089

    Examples
    --------
    >>> from deep.features import krippendorff_alpha
    >>> round(krippendorff_alpha([[1, 1, -1], [0, 0, 0], [1, 0, 1]]), 4)
    0.5625
    """
    counts = _counts(_checked(ratings))
    counts = counts[counts.sum(axis=1) > 1]
    if not len(counts):
        return float("nan")
    by_item, by_category = counts.sum(axis=1), counts.sum(axis=0)
    n = by_item.sum()
    observed = ((by_item**2 - (counts**2).sum(axis=1)) / (by_item - 1)).sum() / n
    expected = (n**2 - (by_category**2).sum()) / (n * (n - 1))
    return float(1 - observed / expected) if expected else float("nan")


def agreement_interval(
    measure: Callable[[Ratings], float],
    ratings: npt.ArrayLike,
    *,
    documents: npt.ArrayLike | None = None,
    n_boot: int = 2000,
    random_state: int = 0,
) -> tuple[float, float]:
    """Return the 95 % percentile interval of a measure of agreement, over resampled documents.

    Parameters
    ----------
    measure : callable
        One of this module's.
    ratings : array-like of shape (n_items, n_raters)
    documents : array-like of shape (n_items,), optional
        Default: every item is a document of its own.
    n_boot : int, default=2000
        Resamples; those in which the measure is undefined are left out.
    random_state : int, default=0

    Returns
    -------
    (float, float)
        NaN where the measure is undefined in every resample.

    Examples
    --------
    >>> from deep.features import agreement_interval, cohen_kappa
    >>> agreement_interval(cohen_kappa, [[1, 1], [0, 0]] * 50, n_boot=100)
    (1.0, 1.0)
    """
    codes = _checked(ratings)
    draw = np.random.default_rng(random_state)
    names = np.arange(len(codes)) if documents is None else np.asarray(documents).astype(str)
    document = np.unique(names, return_inverse=True)[1]
    n = int(document.max()) + 1

    def resampled() -> Ratings:
        times = np.bincount(draw.integers(n, size=n), minlength=n)
        return np.repeat(codes, times[document], axis=0)

    found = np.array([measure(resampled()) for _ in range(n_boot)])
    found = found[~np.isnan(found)]
    if not len(found):
        return float("nan"), float("nan")
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def _checked(ratings: npt.ArrayLike) -> Ratings:
    codes = np.asarray(ratings)
    if codes.ndim != 2 or not codes.size or codes.dtype.kind not in "iu":
        raise InputError(
            f"`ratings` must be whole numbers of shape (n_items, n_raters). Got {codes.dtype} of shape {codes.shape}."
        )
    return np.asarray(codes, dtype=np.int64)


def _counts(codes: Ratings) -> Floats:
    """Return how often each item got each category, of shape (n_items, n_categories)."""
    categories = np.arange(codes.max(initial=0) + 1)
    return np.asarray((codes[:, :, None] == categories).sum(axis=1), dtype=np.float64)


def _beyond_chance(observed: float, expected: float) -> float:
    return (observed - expected) / (1 - expected) if expected < 1 else float("nan")
