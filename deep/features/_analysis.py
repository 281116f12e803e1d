"""Statistics of voters: coverage, overlaps, conflicts, error rates, error correlation and effective number."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from deep._util import checks
from deep._util.checks import Floats, Votes, Weights
from deep.exceptions import InputError
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pandas as pd


# A weight below this share of the rows it belongs to is what rounding left of 0.
MIN_WEIGHT_SHARE = 1e-12

# Counts of documents that are drawn at once: 32 MB.
MAX_COUNTS_DRAWN = 1 << 22


def analyze_votes(
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    sample_weight: Weights = None,
    voter_names: Sequence[str] | None = None,
) -> "pd.DataFrame":
    """Describe each voter in the terms of Snorkel's labeling function analysis.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_voters)
        Votes: 1 consistent, 0 inconsistent, -1 no vote.
    y : array-like of shape (n_examples,), optional
        Labels 0/1. Without them the last four columns are left out.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each.
    voter_names : sequence of str, length n_voters, optional
        Default: the columns of a data frame, else x0, x1, and so on.

    Returns
    -------
    pandas.DataFrame
        One row a voter, all values in [0, 1], NaN where there is nothing to take a share of:

        - ``coverage``: share of rows that it votes on;
        - ``overlaps``: share of rows that it and at least one other vote on;
        - ``conflicts``: share of rows that it votes on and on which two votes differ;
        - ``polarity``: share of 1 among its votes;
        - ``accuracy``: share of its votes that are right;
        - ``tpr``, ``tnr``: the same among consistent (label 1) and among inconsistent rows;
        - ``balanced_accuracy``: the mean of the two.

    Raises
    ------
    InputError
        Votes, labels or weights are out of range, or lengths differ.

    References
    ----------
    .. [1] Ratner et al. (2017), Snorkel: rapid training data creation with weak supervision.
       https://doi.org/10.14778/3157794.3157797

    Examples
    --------
    >>> from deep.features import analyze_votes
    >>> table = analyze_votes([[1, 1], [1, 0], [0, -1]], [1, 0, 0], sample_weight=[2, 1, 1], voter_names=["a", "b"])
    >>> print(table.T.round(2))
    voter                 a     b
    coverage           1.00  0.75
    overlaps           0.75  0.75
    conflicts          0.25  0.25
    polarity           0.75  0.67
    accuracy           0.75  1.00
    tpr                1.00  1.00
    tnr                0.50  1.00
    balanced_accuracy  0.75  1.00
    """
    import pandas as pd

    names = checks.column_names(X) if voter_names is None else [str(name) for name in voter_names]
    votes = checks.check_votes(X, voters=names)
    w = checks.check_sample_weight(sample_weight, len(votes))
    if names is not None and len(names) != votes.shape[1]:
        raise InputError(f"`voter_names` must have {votes.shape[1]} entries, one per column. Got {len(names)}.")
    has_vote = votes != ABSTAIN
    overlapping = (has_vote.sum(axis=1) > 1) * w
    conflicting = ((votes == 1).any(axis=1) & (votes == 0).any(axis=1)) * w
    columns = {
        "coverage": w @ has_vote / w.sum(),
        "overlaps": overlapping @ has_vote / w.sum(),
        "conflicts": conflicting @ has_vote / w.sum(),
        "polarity": _ratio(w @ (votes == 1), w @ has_vote),
    }
    if y is not None:
        labels = checks.check_labels(y, len(votes))
        right = votes == labels[:, None]
        tpr, tnr = (_ratio((w * (labels == c)) @ right, (w * (labels == c)) @ has_vote) for c in (1, 0))
        columns |= {
            "accuracy": _ratio(w @ right, w @ has_vote),
            "tpr": tpr,
            "tnr": tnr,
            "balanced_accuracy": (tpr + tnr) / 2,
        }
    index = [f"x{column}" for column in range(votes.shape[1])] if names is None else names
    return pd.DataFrame(columns, index=pd.Index(index, name="voter"))


def error_correlation(X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: Weights = None) -> Floats:
    """Correlate the errors of each pair of voters within the classes.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_voters)
        Votes: 1 consistent, 0 inconsistent, -1 no vote.
    y : array-like of shape (n_examples,)
        Labels 0/1.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each.

    Returns
    -------
    ndarray of float, shape (n_voters, n_voters)
        Pearson correlations in [-1, 1], symmetric, with a diagonal of 1 and no NaN.

    Raises
    ------
    InputError
        Votes, labels or weights are out of range, or lengths differ.

    Notes
    -----
    A pair is judged on the rows that both vote on. Errors are centred on their mean within each class, and the
    products pooled over the classes, so that two voters that lean the same way, but err on unrelated rows, are
    uncorrelated. Voters that never differ have correlation 1, even if neither's errors vary within a class. Else it
    is 0 where the errors of one do not vary, and where no row has votes of both.

    Examples
    --------
    >>> from deep.features import error_correlation
    >>> error_correlation([[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]], [1, 1, 1, 1])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    votes = checks.check_votes(X)
    labels = checks.check_labels(y, len(votes))
    w = checks.check_sample_weight(sample_weight, len(votes))
    # Within each class: across classes any two judges that are better than a coin would seem to err alike.
    by_class = [_pair_sums(votes[labels == c], c, w[labels == c]) for c in (0, 1)]
    shared, differing, variation, product = (sum(parts) for parts in zip(*by_class, strict=True))
    scale = np.sqrt(variation * variation.T)
    correlation = np.divide(product, scale, out=np.zeros_like(scale), where=scale > MIN_WEIGHT_SHARE * shared)
    # Judges that never differ are copies, also where neither errs and the formula is 0 / 0.
    correlation[(differing <= MIN_WEIGHT_SHARE * shared) & (shared > 0)] = 1.0
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(np.clip((correlation + correlation.T) / 2, -1.0, 1.0))


def effective_votes(X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: Weights = None) -> float:
    """Count the independent voters that would be worth as much as these.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_voters)
        Votes: 1 consistent, 0 inconsistent, -1 no vote.
    y : array-like of shape (n_examples,)
        Labels 0/1.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each.

    Returns
    -------
    float
        k / (1 + (k - 1) r) for k voters whose errors have the mean pairwise correlation r, see
        :func:`error_correlation`; within [1, k], k where r is negative.

    Raises
    ------
    InputError
        Votes, labels or weights are out of range, or lengths differ.

    Notes
    -----
    The divisor is Kish's design effect of sampling in clusters of k [1]_: the mean of k equally correlated votes
    has the variance of the mean of that many independent ones. Panels of LLM judges have been found to hold about two
    effective votes in nine [2]_. Only votes are compared, not where they are missing: voters that always vote the same
    way count as one, although when they do so may tell much.

    References
    ----------
    .. [1] Kish (1965), Survey Sampling. Wiley.
    .. [2] Nine Judges, Two Effective Votes (2026). https://arxiv.org/abs/2605.29800

    Examples
    --------
    Three voters, two of which are one: the mean correlation is 1/3.

    >>> from deep.features import effective_votes
    >>> round(effective_votes([[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]], [1, 1, 1, 1]), 3)
    1.8
    """
    return effective_number(error_correlation(X, y, sample_weight))


def effective_number(correlation: Floats) -> float:
    """Return the effective votes of voters whose errors have these correlations; see :func:`effective_votes`.

    Examples
    --------
    >>> import numpy as np
    >>> from deep.features import effective_number
    >>> round(effective_number(np.array([[1.0, 0.5], [0.5, 1.0]])), 3)
    1.333
    """
    k = len(correlation)
    if k == 1:
        return 1.0
    # Kish (1965): the variance of a mean of k correlated terms is that of k / (1 + (k - 1) r) independent ones.
    mean = (correlation.sum() - k) / (k * (k - 1))
    return float(k / np.clip(1.0 + (k - 1) * mean, 1.0, k))


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)


def _pair_sums(votes: Votes, label: int, w: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, for the rows of one class and each pair (i, j), sums over the rows that both vote on.

    The weight of those rows, and of the rows where the two differ; the squares of i's centred errors; the products
    of both voters' centred errors.
    """
    has_vote = (votes != ABSTAIN).astype(np.float64)
    errors = has_vote * (votes != label)
    shared = (has_vote * w[:, None]).T @ has_vote
    wrong = (errors * w[:, None]).T @ has_vote
    both_wrong = (errors * w[:, None]).T @ errors
    rate = np.divide(wrong, shared, out=np.zeros_like(wrong), where=shared > 0)
    return shared, wrong + wrong.T - 2.0 * both_wrong, wrong * (1.0 - rate), both_wrong - wrong * rate.T


Ratings = npt.NDArray[np.int64]


def _measure_ratings(measure: Callable[[npt.ArrayLike], float], ratings: npt.ArrayLike) -> float:
    parts, value = _MEASURES[measure]
    return float(value(parts(_checked_ratings(ratings)).sum(axis=0)))


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
    return _measure_ratings(cohen_kappa, ratings)


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
    return _measure_ratings(fleiss_kappa, ratings)


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
    return _measure_ratings(krippendorff_alpha, ratings)


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
    counts = _category_counts(_checked_ratings(ratings))
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
        Categories from 0; a negative number where a rater gave none.
    documents : array-like of shape (n_items,), optional
        Default: every item is a document of its own.
    n_boot : int, default=2000
        Resamples; those in which the measure is undefined are left out.
    random_state : int, default=0
        Seed of the resamples.

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
    if measure not in _MEASURES:
        raise InputError(f"`measure` must be cohen_kappa, fleiss_kappa or krippendorff_alpha. Got {measure!r}.")
    codes = _checked_ratings(ratings)
    names = np.arange(len(codes)) if documents is None else np.asarray(documents).astype(str)
    if len(names) != len(codes):
        raise InputError(f"`documents` must have an entry for each of {len(codes)} items. Got {len(names)}.")
    document = np.unique(names, return_inverse=True)[1]
    n = int(document.max()) + 1
    parts, value = _MEASURES[measure]
    # Documents are drawn whole: ratings of one text are not independent.
    of_documents = np.stack([np.bincount(document, part, minlength=n) for part in parts(codes).T], axis=1)
    # Those with the same sums are drawn together: one multinomial draw over the distinct ones is the bootstrap.
    distinct, times = np.unique(of_documents, axis=0, return_counts=True)
    draw, block = np.random.default_rng(random_state), max(1, MAX_COUNTS_DRAWN // len(times))
    # A block of resamples at a time: all counts of many documents would fill the memory.
    sizes = [min(block, n_boot - done) for done in range(0, n_boot, block)]
    sums = [draw.multinomial(n, times / n, size=size) @ distinct for size in sizes]
    return checks.percentile_interval(value(np.concatenate(sums).astype(np.float64)))


def _checked_ratings(ratings: npt.ArrayLike) -> Ratings:
    """Return ratings as whole numbers from 0 on, -1 where there is none; raise where they cannot be."""
    codes = np.asarray(ratings)
    if codes.ndim != 2 or not codes.size or codes.dtype.kind not in "iu":
        raise InputError(
            f"`ratings` must be whole numbers of shape (n_items, n_raters). Got {codes.dtype} of shape {codes.shape}."
        )
    codes = np.asarray(codes, dtype=np.int64)
    # The tables below have a column a category: numbers as large as 10^9 are renumbered first.
    if codes.max() < codes.size:
        return codes
    categories, result = np.unique(codes, return_inverse=True)  # which numbers stand for categories does not matter
    return np.asarray(result.reshape(codes.shape) - np.searchsorted(categories, 0), dtype=np.int64)


def _category_counts(codes: Ratings) -> Floats:
    """Return how often each item got each category, of shape (n_items, n_categories)."""
    n = int(codes.max(initial=-1)) + 1
    cells = np.where(codes >= 0, codes + np.arange(len(codes))[:, None] * n, len(codes) * n)
    counts = np.bincount(cells.ravel(), minlength=len(codes) * n + 1)[:-1]
    return np.asarray(counts.reshape(len(codes), n), dtype=np.float64)


def _cohen_parts(codes: Ratings) -> Floats:
    """Return 1, whether both are the same, and what the first and the second rater said; 0 where one said nothing."""
    if codes.shape[1] != 2:
        raise InputError(f"`ratings` must have two columns. Got {codes.shape[1]}.")
    both = np.asarray((codes >= 0).all(axis=1))
    categories = _category_counts(np.where(both[:, None], codes, -1).T.reshape(-1, 1))
    same = both & (codes[:, 0] == codes[:, 1])
    return np.column_stack([both, same, categories[: len(codes)], categories[len(codes) :]])


def _cohen_value(sums: Floats) -> Floats:
    n, same = sums[..., 0], sums[..., 1]
    first, second = np.split(sums[..., 2:], 2, axis=-1)
    return _beyond_chance(same * n, (first * second).sum(axis=-1), n**2)


def _fleiss_parts(codes: Ratings) -> Floats:
    """Return 1, the share of pairs of ratings that agree, and the counts; 0 where a rating is not there."""
    n = codes.shape[1]
    complete = (codes >= 0).all(axis=1) & (n > 1)
    counts = _category_counts(np.where(complete[:, None], codes, -1))
    # Fleiss' P_i: the share of pairs of raters who agree on item i.
    agreeing = ((counts**2).sum(axis=1) - n) / max(n * (n - 1), 1)
    return np.column_stack([complete, np.where(complete, agreeing, 0.0), counts])


def _fleiss_value(sums: Floats) -> Floats:
    n, agreeing, counts = sums[..., 0], sums[..., 1], sums[..., 2:]
    total = counts.sum(axis=-1)
    return _beyond_chance(_ratio(agreeing, n) * total**2, (counts**2).sum(axis=-1), total**2)


def _krippendorff_parts(codes: Ratings) -> Floats:
    """Return the ratings of each item, how they differ, and the counts; 0 where there are fewer than two."""
    counts = _category_counts(np.where((codes >= 0).sum(axis=1, keepdims=True) > 1, codes, -1))
    n = counts.sum(axis=1)
    # Of n ratings of an item, each pair that differs counts 1 / (n - 1), so that an item weighs what its ratings do
    # (Krippendorff 2011).
    return np.column_stack([n, (n**2 - (counts**2).sum(axis=1)) / np.maximum(n - 1, 1), counts])


def _krippendorff_value(sums: Floats) -> Floats:
    n, differing, counts = sums[..., 0], sums[..., 1], sums[..., 2:]
    expected = n**2 - (counts**2).sum(axis=-1)
    return 1 - _ratio(differing * (n - 1), expected)


def _beyond_chance(observed: Floats, expected: Floats, most: Floats) -> Floats:
    """Return how far agreement goes beyond chance, of what is possible; all three in the same unit."""
    return _ratio(observed - expected, most - expected)


# Each measure as a function of sums over items, so that a resample is a weighting of items: ratings to what each item
# adds, of shape (n_items, n_parts); and sums of these, of shape (..., n_parts), to the measure, NaN where undefined.
_MEASURES: Mapping[Callable[[npt.ArrayLike], float], tuple[Callable[[Ratings], Floats], Callable[[Floats], Floats]]] = {
    cohen_kappa: (_cohen_parts, _cohen_value),
    fleiss_kappa: (_fleiss_parts, _fleiss_value),
    krippendorff_alpha: (_krippendorff_parts, _krippendorff_value),
}
