"""How far human annotators agree, with and without the items that they call ambiguous (arXiv:2508.00889, section 2)."""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import special

from deep import calibration
from deep._util.checks import Floats, percentile_interval
from deep.features import Ratings, agreement_interval, cohen_kappa, fleiss_kappa, krippendorff_alpha
from deep.model import Clusters, standardised

# The most raters of whom every pair is compared (66 pairs); of more, only measures of all together are taken.
MOST_PAIRED = 12


def agreement_measures(
    ratings: Ratings,
    names: Sequence[str],
    *,
    documents: npt.ArrayLike | None = None,
    n_boot: int = 2000,
    random_state: int = 0,
) -> list[dict[str, object]]:
    """Measure how far raters agree, each measure with its 95 % interval over resampled documents.

    Parameters
    ----------
    ratings : ndarray of int, shape (n_items, n_raters)
        1, 0, or -1 where a rater gave no label.
    names : sequence of str, length n_raters
    documents : array-like of shape (n_items,), optional
        Default: every item is a document of its own.
    n_boot : int, default=2000
    random_state : int, default=0

    Returns
    -------
    list of dict
        `name`, `items`, `value`, `low` and `high` of Cohen's kappa of each pair, Fleiss' kappa and Krippendorff's
        alpha; empty where there are no items. Of more than `MOST_PAIRED` raters, no pairs.
    """
    if not len(ratings):
        return []
    raters = range(len(names)) if len(names) <= MOST_PAIRED else ()
    measures: list[tuple[str, Callable[[npt.ArrayLike], float], Ratings]] = [
        *(
            (f"Cohen's kappa, {names[i]} and {names[j]}", cohen_kappa, ratings[:, [i, j]])
            for i, j in combinations(raters, 2)
        ),
        ("Fleiss' kappa", fleiss_kappa, ratings),
        ("Krippendorff's alpha", krippendorff_alpha, ratings),
    ]
    result: list[dict[str, object]] = []
    for name, measure, of in measures:
        n_ratings = (of >= 0).sum(axis=1)
        # Only Krippendorff's alpha can use an item that some annotators left out.
        comparable = n_ratings > 1 if measure is krippendorff_alpha else n_ratings == of.shape[1]
        low, high = agreement_interval(measure, of, documents=documents, n_boot=n_boot, random_state=random_state)
        values = {"value": measure(of), "low": low, "high": high}
        numbers = {key: None if np.isnan(value) else value for key, value in values.items()}
        result.append({"name": name, "items": int(comparable.sum()), **numbers})
    return result


def clustered_share(hits: npt.ArrayLike, documents: npt.ArrayLike | None) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of items, some of which share a document.

    Parameters
    ----------
    hits : array-like of bool, shape (n_items,)
    documents : array-like of shape (n_items,), optional
        Default: every item is a document of its own.

    Returns
    -------
    low, high : float
        NaN where there are no items.

    Notes
    -----
    The number of items is divided by Kish's design effect, from the intraclass correlation of the hits, and the
    quantile is Student's on as many degrees of freedom as there are documents less one [1]_.

    References
    ----------
    .. [1] Korn and Graubard, Survey Methodology 24, 1998: confidence intervals for proportions with small expected
       number of positive counts estimated from survey data.

    Examples
    --------
    >>> from deep.evaluate import clustered_share
    >>> hits = [True] * 60 + [False] * 20
    >>> [round(end, 2) for end in clustered_share(hits, None)]
    [0.64, 0.83]
    >>> [round(end, 2) for end in clustered_share(hits, [i // 10 for i in range(80)])]
    [0.35, 0.94]
    """
    hit = np.asarray(hits, dtype=np.float64)
    if not len(hit):
        return float("nan"), float("nan")
    share = hit.mean()
    clusters = Clusters.from_documents(documents, len(hit))
    errors = standardised(hit, np.full(len(hit), share))
    n = len(hit) / (1.0 if clusters.alone else clusters.design_effect(clusters.correlation(errors)))
    freedom = max(len(clusters.sizes) - 1, 1)
    low, high = calibration.wilson_interval(np.array(share), np.array(n), float(special.stdtrit(freedom, 0.975)))
    return min(float(low), float(share)), max(float(high), float(share))  # at 0 and 1, rounding


def clustered_interval(
    measure: Callable[[Floats], Floats],
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    documents: npt.ArrayLike | None,
    *,
    level: float = 0.95,
    n_boot: int = 2000,
    random_state: int = 0,
) -> tuple[float, float]:
    """Return the percentile interval of a measure of two columns of 0 and 1, over resampled documents.

    Parameters
    ----------
    measure : callable
        From tables of counts by the one and the other, shape (n_boot, 2, 2), to its values:
        :func:`deep.features.kappa_of_counts` of two raters, or :func:`balanced_accuracy_of_counts` of labels and
        decisions.
    a, b : array-like of shape (n_items,)
        0 or 1.
    documents : array-like of shape (n_items,), optional
        Default: every item is a document of its own.
    level, n_boot, random_state

    Returns
    -------
    low, high : float
        NaN where the measure is undefined in every resample, and where there are no items.

    Notes
    -----
    Documents with the same counts are drawn together: one multinomial draw over the distinct ones is the bootstrap.

    Examples
    --------
    >>> from deep.evaluate import clustered_interval
    >>> from deep.features import kappa_of_counts
    >>> clustered_interval(kappa_of_counts, [1, 0] * 50, [1, 0] * 50, None, n_boot=100)
    (1.0, 1.0)
    """
    codes = 2 * np.asarray(a, dtype=np.intp) + np.asarray(b, dtype=np.intp)
    groups = Clusters.from_documents(documents, len(codes)).codes
    if not len(codes):
        return float("nan"), float("nan")
    counts = np.bincount(groups * 4 + codes, minlength=4 * (groups.max() + 1)).reshape(-1, 4)
    distinct, times = np.unique(counts, axis=0, return_counts=True)
    draws = np.random.default_rng(random_state).multinomial(times.sum(), times / times.sum(), size=n_boot) @ distinct
    return percentile_interval(measure(np.asarray(draws.reshape(-1, 2, 2), dtype=np.float64)), level)


def balanced_accuracy_of_counts(counts: npt.ArrayLike) -> Floats:
    """Return the balanced accuracy of tables of labels and decisions, shape (n, 2, 2); NaN where a label is missing."""
    tables = np.asarray(counts, dtype=np.float64)
    of_class = tables.sum(axis=2)
    undefined = np.full_like(of_class, np.nan)
    right = np.divide(np.diagonal(tables, axis1=1, axis2=2), of_class, out=undefined, where=of_class > 0)
    return np.asarray(right.mean(axis=1))
