"""Agreement of raters: published worked examples, scikit-learn as the parity oracle, and what is undefined."""

import warnings
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score

from deep.exceptions import InputError
from deep.features import (
    _analysis,
    agreement_interval,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_agreement,
)
from deep.features._analysis import _MEASURES

MEASURES = [cohen_kappa, fleiss_kappa, krippendorff_alpha]
pairs = arrays(np.int64, st.tuples(st.integers(1, 30), st.just(2)), elements=st.integers(0, 3))
tables = arrays(np.int64, st.tuples(st.integers(1, 20), st.integers(2, 5)), elements=st.integers(-1, 3))


@given(ratings=pairs)
def test_cohen_is_that_of_scikit_learn(ratings):
    """Parity with the reference, and NaN exactly where it is undefined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = cohen_kappa_score(*ratings.T)
    if len(np.unique(ratings)) == 1:
        assert np.isnan(cohen_kappa(ratings))
    else:
        assert cohen_kappa(ratings) == pytest.approx(expected, abs=1e-12)


def test_fleiss_of_a_worked_example():
    """Ten subjects, fourteen raters, five categories, worked through in many textbooks: 0.2099."""
    counts = [
        *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
        *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
    ]
    ratings = [[category for category, n in enumerate(row) for _ in range(n)] for row in counts]
    assert fleiss_kappa(ratings) == pytest.approx(0.2099, abs=5e-5)


def test_krippendorff_of_its_published_examples():
    """In Krippendorff (2011): four observers, twelve units, missing ratings, section C; two of ten units, section A."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, -1, -1, -1],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, -1, 3],
        [-1, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, -1],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, -1],
    ]
    assert krippendorff_alpha(np.transpose(observers)) == pytest.approx(0.743, abs=5e-4)
    ratings = np.transpose([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]])
    assert krippendorff_alpha(ratings) == pytest.approx(0.095, abs=5e-4)


@given(ratings=tables, seed=st.integers(0, 9))
def test_neither_order_nor_names_of_categories_count(ratings, seed):
    """Items, raters and categories may be permuted; nothing exceeds 1; a measure is a number or NaN."""
    draw = np.random.default_rng(seed)
    names = np.append(draw.permutation(4), -1)
    permuted = names[ratings][draw.permutation(len(ratings))][:, draw.permutation(ratings.shape[1])]
    for measure in MEASURES[1:]:
        result = measure(ratings)
        assert np.isnan(result) or result <= 1 + 1e-12
        assert measure(permuted) == pytest.approx(result, nan_ok=True)


@given(ratings=tables)
def test_a_missing_rating_is_no_rating(ratings):
    """Items with one rating or none, and raters that never rate, change nothing for alpha."""
    alone = np.full((3, ratings.shape[1]), -1)
    alone[0, 0] = 2
    padded = np.column_stack([np.vstack([ratings, alone]), np.full(len(ratings) + 3, -1)])
    assert krippendorff_alpha(padded) == pytest.approx(krippendorff_alpha(ratings), nan_ok=True)
    complete = ratings[(ratings >= 0).all(axis=1)]
    if len(complete):
        assert fleiss_kappa(ratings) == pytest.approx(fleiss_kappa(complete), nan_ok=True)


@pytest.mark.parametrize("measure", MEASURES)
def test_undefined_is_nan_and_never_one(measure):
    """One category alone, or no pair of ratings, says nothing about agreement."""
    assert np.isnan(measure([[1, 1], [1, 1]]))
    assert np.isnan(measure([[1, -1], [-1, 0]]))
    assert np.isnan(agreement_interval(measure, [[1, 1], [1, 1]], n_boot=5)).all()


@pytest.mark.parametrize("measure", MEASURES)
def test_perfect_and_chance(measure):
    """Perfect agreement is 1; independent raters are near 0."""
    assert measure([[0, 0], [1, 1], [2, 2]]) == 1.0
    assert abs(measure(np.random.default_rng(0).integers(0, 2, size=(20_000, 2)))) < 0.03


@pytest.mark.slow
def test_the_interval_covers_the_truth_of_its_own_model():
    """Of intervals over samples of one population, about 95 % hold its kappa of 0.6."""
    draw = np.random.default_rng(1)
    covered = 0
    for seed in range(60):
        first = draw.integers(0, 2, size=150)
        ratings = np.column_stack([first, np.where(draw.random(150) < 0.8, first, 1 - first)])
        low, high = agreement_interval(krippendorff_alpha, ratings, n_boot=200, random_state=seed)
        covered += low <= 0.6 <= high
    assert covered >= 52
    assert agreement_interval(cohen_kappa, ratings, n_boot=50) == agreement_interval(cohen_kappa, ratings, n_boot=50)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (partial(krippendorff_alpha, ratings), "`ratings` must be whole numbers of shape")
            for ratings in ([1, 0], [[0.5, 1.0]], [["a", "b"]], np.empty((0, 2), int))
        ),
        (partial(cohen_kappa, [[0, 1, 0]]), r"two columns\. Got 3"),
        (
            partial(agreement_interval, pairwise_agreement, [[1, 1]]),
            "`measure` must be cohen_kappa, fleiss_kappa or krippendorff_alpha",
        ),
        (
            partial(agreement_interval, cohen_kappa, [[1, 1], [0, 0]], documents=["a"]),
            "`documents` must have an entry for each of 2 items",
        ),
    ],
)
def test_what_is_refused(call, message):
    """No table of ratings, three raters for Cohen, another measure, and documents of other items."""
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("measure", MEASURES)
def test_an_interval_is_that_of_the_resampled_table(measure, monkeypatch):
    """Sums over items, weighted, are the measure on a table that holds each document as often as it was drawn."""
    ratings = np.random.default_rng(5).integers(-1, 3, (40, 2))
    documents = np.arange(40) // 3
    parts = _MEASURES[measure][0](ratings)
    sums = np.array([parts[documents == one].sum(axis=0) for one in range(14)])
    # Documents that add the same are drawn together: the first of them stands for all.
    _, first, sizes = np.unique(sums, axis=0, return_index=True, return_counts=True)
    tables = [
        np.concatenate([np.tile(ratings[documents == one], (n, 1)) for one, n in zip(first, times, strict=True)])
        for times in np.random.default_rng(7).multinomial(14, sizes / 14, size=50)
    ]
    expected = np.nanquantile([measure(table) for table in tables], [0.025, 0.975])
    names = [f"document {one:02}" for one in documents]
    result = agreement_interval(measure, ratings, documents=names, n_boot=50, random_state=7)
    assert result == pytest.approx(tuple(expected), abs=1e-12)
    monkeypatch.setattr(_analysis, "MAX_COUNTS_DRAWN", 30)  # a few resamples at a time, as where documents are many
    assert agreement_interval(measure, ratings, documents=names, n_boot=50, random_state=7) == result


@given(ratings=tables)
def test_pairwise_agreement_counts_pairs(ratings):
    """Equal pairs of all pairs within items; NaN where there is none."""
    both = [pair for row in ratings for pair in combinations(row[row >= 0], 2)]
    expected = np.mean([a == b for a, b in both]) if both else np.nan
    assert pairwise_agreement(ratings) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("measure", [*MEASURES, pairwise_agreement])
def test_large_numbers_of_categories_take_no_memory(measure):
    """A category is a name: its size means nothing."""
    assert measure([[10**15, 10**15], [3, 3], [7, 3]]) == measure([[2, 2], [0, 0], [1, 0]])


def test_documents_are_resampled_whole():
    """Items ten times over in the documents of the first say no more than the first; as items, they would seem to."""
    ratings = np.random.default_rng(3).integers(0, 2, (60, 3))
    once = agreement_interval(krippendorff_alpha, ratings, n_boot=1000)
    copies, documents = np.repeat(ratings, 10, axis=0), np.repeat(np.arange(60), 10)
    low, high = agreement_interval(krippendorff_alpha, copies, documents=documents, n_boot=1000)
    assert high - low == pytest.approx(once[1] - once[0], rel=0.15)
    naive = agreement_interval(krippendorff_alpha, copies, n_boot=1000)
    assert naive[1] - naive[0] < 0.5 * (high - low)
