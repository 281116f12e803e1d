"""How far raters agree beyond chance: Cohen's and Fleiss' kappa, Krippendorff's alpha.

Not by scikit-learn's `cohen_kappa_score`, which checks its input for a millisecond a call, and an interval takes
thousands, and which warns where kappa is undefined; nor by a package for the other two, of ten lines each.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep.exceptions import InputError

Ratings = npt.NDArray[np.int64]


class _Measure(NamedTuple):
    """A measure as a function of sums over items, so that a resample is a weighting of items."""

    parts: Callable[[Ratings], Floats]
    """Ratings to what each item adds, of shape (n_items, n_parts)."""
    value: Callable[[Floats], float]
    """Sums of parts, of shape (n_parts,), to the measure."""

    def of(self, ratings: npt.ArrayLike) -> float:
        return self.value(self.parts(_checked(ratings)).sum(axis=0))


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
    return _COHEN.of(ratings)


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
    return _FLEISS.of(ratings)


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
    return _KRIPPENDORFF.of(ratings)


def pairwise_agreement(ratings: npt.ArrayLike) -> float:
    """Return the share of pairs of ratings of one item that are the same, of all such pairs.

    Parameters
    ----------
    ratings : array-like of shape (n_items, n_raters)
        Categories from 0; a negative number where a rater gave none.

    Returns
    -------
    float
        From 0 to 1; NaN where no item has two ratings.

    Examples
    --------
    >>> from deep.features import pairwise_agreement
    >>> pairwise_agreement([[1, 1, -1], [0, 0, 1]])
    0.5
    """
    counts = _counts(_checked(ratings))
    same, n = float((counts * (counts - 1)).sum()), counts.sum(axis=1)
    pairs = float((n * (n - 1)).sum())
    return same / pairs if pairs else float("nan")


def agreement_interval(
    measure: Callable[[npt.ArrayLike], float],
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
        `cohen_kappa`, `fleiss_kappa` or `krippendorff_alpha`.
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

    Raises
    ------
    InputError
        The measure is another one, or there are not as many documents as items.

    Examples
    --------
    >>> from deep.features import agreement_interval, cohen_kappa
    >>> agreement_interval(cohen_kappa, [[1, 1], [0, 0]] * 50, n_boot=100)
    (1.0, 1.0)
    """
    if measure not in _BY_SUMS:
        raise InputError(f"`measure` must be cohen_kappa, fleiss_kappa or krippendorff_alpha. Got {measure!r}.")
    codes = _checked(ratings)
    draw = np.random.default_rng(random_state)
    names = np.arange(len(codes)) if documents is None else np.asarray(documents).astype(str)
    if len(names) != len(codes):
        raise InputError(f"`documents` must have an entry for each of {len(codes)} items. Got {len(names)}.")
    document = np.unique(names, return_inverse=True)[1]
    n = int(document.max()) + 1
    parts, value = _BY_SUMS[measure]
    of_documents = np.stack([np.bincount(document, part, minlength=n) for part in parts(codes).T])
    drawn = (np.bincount(draw.integers(n, size=n), minlength=n).astype(np.float64) for _ in range(n_boot))
    found = np.array([value(of_documents @ times) for times in drawn])
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
    codes = np.asarray(codes, dtype=np.int64)
    if codes.max() < codes.size:
        return codes
    categories, found = np.unique(codes, return_inverse=True)  # which numbers stand for categories does not matter
    return np.asarray(found.reshape(codes.shape) - np.searchsorted(categories, 0), dtype=np.int64)


def _counts(codes: Ratings) -> Floats:
    """Return how often each item got each category, of shape (n_items, n_categories)."""
    n = int(codes.max(initial=-1)) + 1
    cells = np.where(codes >= 0, codes + np.arange(len(codes))[:, None] * n, len(codes) * n)
    counts = np.bincount(cells.ravel(), minlength=len(codes) * n + 1)[:-1]
    return np.asarray(counts.reshape(len(codes), n), dtype=np.float64)


def _all_rated(codes: Ratings) -> npt.NDArray[np.bool_]:
    """Return the items that every rater rated, of shape (n_items,)."""
    return np.asarray((codes >= 0).all(axis=1))


def _cohen_parts(codes: Ratings) -> Floats:
    """Return 1, whether both are the same, and what the first and the second rater said; 0 where one said nothing."""
    if codes.shape[1] != 2:
        raise InputError(f"`ratings` must have two columns. Got {codes.shape[1]}.")
    both = _all_rated(codes)
    said = _counts(np.where(both[:, None], codes, -1).T.reshape(-1, 1))
    same = both & (codes[:, 0] == codes[:, 1])
    return np.column_stack([both, same, said[: len(codes)], said[len(codes) :]])


def _cohen_value(sums: Floats) -> float:
    n, same, *said = sums
    if not n:
        return float("nan")
    first, second = np.reshape(said, (2, -1)) / n
    return _beyond_chance(float(same / n), float(first @ second))


def _fleiss_parts(codes: Ratings) -> Floats:
    """Return 1, the share of pairs of ratings that agree, and the counts; 0 where a rating is not there."""
    n = codes.shape[1]
    complete = _all_rated(codes) & (n > 1)
    counts = _counts(np.where(complete[:, None], codes, -1))
    agreeing = ((counts**2).sum(axis=1) - n) / max(n * (n - 1), 1)
    return np.column_stack([complete, np.where(complete, agreeing, 0.0), counts])


def _fleiss_value(sums: Floats) -> float:
    n, agreeing, *counts = sums
    if not n:
        return float("nan")
    shares = np.asarray(counts) / np.sum(counts)
    return _beyond_chance(float(agreeing / n), float(shares @ shares))


def _krippendorff_parts(codes: Ratings) -> Floats:
    """Return the ratings of each item, how they differ, and the counts; 0 where there are fewer than two."""
    counts = _counts(np.where((codes >= 0).sum(axis=1, keepdims=True) > 1, codes, -1))
    n = counts.sum(axis=1)
    return np.column_stack([n, (n**2 - (counts**2).sum(axis=1)) / np.maximum(n - 1, 1), counts])


def _krippendorff_value(sums: Floats) -> float:
    n, differing, *counts = sums
    if not n:
        return float("nan")
    expected = (n**2 - np.square(counts).sum()) / (n * (n - 1))
    return float(1 - differing / n / expected) if expected else float("nan")


def _beyond_chance(observed: float, expected: float) -> float:
    return (observed - expected) / (1 - expected) if expected < 1 else float("nan")


_COHEN = _Measure(_cohen_parts, _cohen_value)
_FLEISS = _Measure(_fleiss_parts, _fleiss_value)
_KRIPPENDORFF = _Measure(_krippendorff_parts, _krippendorff_value)
_BY_SUMS: Mapping[Callable[[npt.ArrayLike], float], _Measure] = {
    cohen_kappa: _COHEN,
    fleiss_kappa: _FLEISS,
    krippendorff_alpha: _KRIPPENDORFF,
}
