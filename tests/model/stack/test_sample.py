"""A weighted sample of rows with evidence: exact where rows are few or repeat, the same whatever their order."""

from dataclasses import replace

import numpy as np

from deep.evaluate import fit_report
from deep.model import MAX_STACK_ROWS, LabeledRows, _average, fit, sample_rows
from deep.model.stack import Stack
from deep.records import VoteMatrix
from tests.model.fitted import identity


def panel(n=6_000, *, decimals=None, seed=0):
    """Return rows of four datasets with two voters and three scorers, one of them sometimes silent."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n).astype(np.int8)
    groups = rng.choice(4, n, p=[0.55, 0.25, 0.15, 0.05])
    scores = 1 / (1 + np.exp(-(y[:, None] - 0.5) * [1.0, 2.0, 3.0] - rng.standard_normal((n, 3))))
    scores[rng.random(n) < 0.1, 2] = np.nan
    scores = scores if decimals is None else scores.round(decimals)
    return LabeledRows((scores[:, :2] > 0.5).astype(np.int8), scores, np.ones(n), y, groups)


def content(rows):
    """Return the rows with their weights, in an order of their own."""
    table = np.column_stack([rows.groups, rows.labels, rows.votes, np.nan_to_num(rows.evidence, nan=-9), rows.weights])
    return table[np.lexsort(table.T)]


def test_few_rows_and_rows_of_votes_are_left_as_they_are():
    """The very same."""
    rows = panel(500)
    assert sample_rows(rows, 500) is rows
    bare = replace(rows, evidence=np.empty((500, 0)))
    assert sample_rows(bare, 10) is bare
    assert MAX_STACK_ROWS == 400_000


def test_each_dataset_and_class_keeps_its_weight_and_no_more_rows_than_its_share():
    """A small stratum whole, a large one sampled."""
    rows = panel()
    few = sample_rows(rows, 1_600)
    code, kept = 2 * rows.groups + rows.labels, 2 * few.groups + few.labels
    sizes, counts = np.bincount(code), np.bincount(kept)
    np.testing.assert_allclose(np.bincount(kept, few.weights), sizes, rtol=1e-12)
    np.testing.assert_array_equal(counts, np.minimum(sizes, 200))
    assert (few.weights[sizes[kept] <= 200] == 1).all()


def test_order_does_not_matter_and_a_weight_is_a_repetition():
    """Shuffled, repeated and weighted rows give one sample."""
    rows, rng = panel(2_000), np.random.default_rng(1)
    w = rng.integers(1, 6, 2_000)
    repeated = rows.rows(rng.permutation(np.repeat(np.arange(2_000), w)))
    weighted = sample_rows(replace(rows, weights=w.astype(float)), 800)
    np.testing.assert_allclose(content(sample_rows(repeated, 800)), content(weighted), rtol=1e-12)
    assert 600 < len(weighted.votes) <= 800


def test_rows_that_repeat_are_merged_and_nothing_is_lost():
    """As many distinct rows as there may be are exact, however often each occurs."""
    rows = panel(decimals=1)
    few = sample_rows(rows, 5_000)
    for label in (0, 1):
        total, kept = rows.labels == label, few.labels == label
        want = np.nansum(rows.evidence[total], axis=0)
        np.testing.assert_allclose(np.nansum(few.evidence[kept] * few.weights[kept, None], axis=0), want, rtol=1e-9)
    assert len(few.votes) < 3_000


def test_a_sum_over_the_sample_is_unbiased():
    """Over samples of many panels the mean of a score is that of all rows, within chance."""
    apart = []
    for seed in range(40):
        rows = panel(2_000, decimals=2, seed=seed)
        few = sample_rows(rows, 400)
        apart.append(np.average(few.evidence[:, 0], weights=few.weights) - rows.evidence[:, 0].mean())
    assert abs(np.mean(apart)) < 4 * np.std(apart) / np.sqrt(40)
    assert np.std(apart) < 0.02


def test_nan_of_any_bits_and_minus_zero_are_one():
    """What is equal has one hash."""
    rows = panel(4)
    odd = np.array([0x7FF8000000000001, 0x8000000000000000], dtype=np.uint64).view(np.float64)
    plain = replace(rows, evidence=np.tile([np.nan, 0.0, 0.5], (4, 1)))
    other = replace(rows, evidence=np.tile([odd[0], odd[1], 0.5], (4, 1)))
    np.testing.assert_array_equal(_average.row_hashes(plain), _average.row_hashes(other))


def test_a_stack_of_a_sample_is_near_that_of_all_rows(monkeypatch):
    """Both P on new rows, of a sample of a quarter, differ by a few thousandths."""
    rows = panel(8_000)
    given = {"groups": rows.groups.astype(str), "answer_map": identity(3)}
    new = panel(500, seed=9)
    whole = Stack().fit(rows.evidence, rows.labels, **given).score(new.evidence)
    monkeypatch.setattr("deep.model._average.sample_rows.__defaults__", (2_000,))
    part = Stack().fit(rows.evidence, rows.labels, **given).score(new.evidence)
    assert 0 < np.abs(whole.p_consistent - part.p_consistent).mean() < 0.02


def test_a_model_of_a_sample_is_written_down(monkeypatch, tmp_path):
    """Its points weigh no whole numbers of rows; the sample is drawn once, and the report has a noise floor."""
    drawn = []

    def few(rows):
        drawn.append(sample_rows(rows, 2_000))
        return drawn[-1]

    monkeypatch.setattr("deep.model._average.sample_rows", few)
    rows = panel(12_000)
    ids = list(map(str, range(12_000)))
    votes = VoteMatrix(rows.votes, ids, ["a", "b"], rows.groups.astype(str), rows.labels)
    model = fit(votes, scores=rows.evidence)
    (sampled,) = drawn
    assert (sampled.weights != np.rint(sampled.weights)).any()
    assert 0 < fit_report(model)["left_out_scores"]["mean"]["ece_floor"] < 0.05
    model.save(tmp_path / "model.json")
