"""The drift sentinel: quiet on datasets like the old ones, loud where a judge has changed."""

import numpy as np
import pytest

from deep.exceptions import InputError
from deep.features import Cells
from deep.model import (
    PANEL_NAME,
    STATISTICS,
    changed_rates,
    common_shift,
    compare_votes,
    false_alarms,
    least_shift,
    shift_evidence,
    vote_rates,
)

JUDGES = ("a", "b", "c", "d")


def dataset(rng, n=600):
    """Draw votes of four judges on a dataset with its own prior, and judges that differ a little from it to it."""
    y = rng.random(n) < rng.uniform(0.35, 0.75)
    skill = rng.normal([1.5, 1.2, 1.0, 1.3], 0.15)
    lenient = rng.normal([0.3, 0.0, -0.2, 0.1], 0.15)
    chance = 1 / (1 + np.exp(-(lenient + np.where(y[:, None], skill, -skill))))
    votes = (rng.random((n, 4)) < chance).astype(np.int8)
    votes[rng.random((n, 4)) < 0.03] = -1
    return votes


def collapse(parts):
    """Return the cells of several datasets; the labels are not looked at."""
    rows = np.concatenate(parts)
    names = np.repeat([f"d{i}" for i in range(len(parts))], [len(part) for part in parts])
    return Cells.from_rows(rows, labels=np.zeros(len(rows)), groups=names, voter_names=JUDGES)


def predict(patterns):
    """Return P by the mean of the votes."""
    return 1 / (1 + np.exp(-1.5 * np.where(patterns < 0, 0, 2.0 * patterns - 1).sum(axis=1)))


def moved(rows):
    """Return who moved, and in what."""
    return {(row.judge, row.statistic) for row in rows if row.moved}


def test_false_alarms_keep_their_rate():
    """Of 150 datasets drawn like the eight old ones, about 5 % or fewer raise an alarm."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(30):
        old = collapse([dataset(rng) for _ in range(8)])
        alarms += sum(bool(moved(compare_votes(old, dataset(rng), predict))) for _ in range(5))
    assert alarms <= 15


CHANGES = {
    "always consistent": (lambda v, rng: np.ones_like(v), "positive"),
    "turned round": (lambda v, rng: np.where(v >= 0, 1 - v, v), "agreement"),
    "a coin": (lambda v, rng: rng.integers(0, 2, len(v)), "agreement"),
    "silent on a third": (lambda v, rng: np.where(rng.random(len(v)) < 0.33, -1, v), "coverage"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_judge_is_named(change):
    """Each way a judge can break is found, in the statistic that it shows in, and no other judge is blamed for it."""
    how, statistic = CHANGES[change]
    rng = np.random.default_rng(1)
    old, new = collapse([dataset(rng) for _ in range(10)]), dataset(rng)
    new[:, 1] = how(new[:, 1], rng)
    result = moved(compare_votes(old, new, predict))
    assert ("b", statistic) in result
    blamed = {judge for judge, _ in result}
    assert blamed <= {"b", PANEL_NAME} or change in ("turned round", "a coin")


def test_all_judges_moving_together_is_the_panel():
    """Where every judge falls silent alike, the panel is named."""
    rng = np.random.default_rng(2)
    old, new = collapse([dataset(rng) for _ in range(10)]), dataset(rng)
    new[rng.random(new.shape) < 0.3] = -1
    assert (PANEL_NAME, "coverage") in moved(compare_votes(old, new, predict))


def test_rows_hold_rates_and_ranges():
    """A row a judge and statistic, the panel last; ranges are ordered and within [0, 1]."""
    rng = np.random.default_rng(3)
    rows = compare_votes(collapse([dataset(rng) for _ in range(4)]), dataset(rng), predict)
    assert [row.judge for row in rows[:: len(STATISTICS)]] == [*JUDGES, PANEL_NAME]
    assert all(0 <= row.low <= row.high <= 1 and 0 <= row.p <= 1 for row in rows)
    assert all(row.low - 0.2 <= row.now <= row.high + 0.2 for row in rows)


def test_a_judge_without_votes_has_no_rates():
    """No vote at all: coverage has moved, and what cannot be computed is no test."""
    rng = np.random.default_rng(4)
    old, new = collapse([dataset(rng) for _ in range(6)]), dataset(rng)
    new[:, 2] = -1
    rows = {(row.judge, row.statistic): row for row in compare_votes(old, new, predict)}
    assert rows["c", "coverage"].moved
    assert np.isnan(rows["c", "positive"].now)
    assert not rows["c", "positive"].moved


def test_one_old_dataset_and_one_judge():
    """With one dataset there is sampling noise alone; one judge is compared with itself."""
    rng = np.random.default_rng(5)
    first = dataset(rng)
    old = Cells.from_rows(first[:, :1], labels=np.zeros(600), groups=["d"] * 600, voter_names=["a"])
    assert not moved(compare_votes(old, first[:300, :1], lambda v: np.full(len(v), 0.5)))
    assert false_alarms(old, lambda v: np.full(len(v), 0.5)) == []


def test_training_datasets_are_their_own_test():
    """A training dataset unlike the others is listed."""
    rng = np.random.default_rng(6)
    parts = [dataset(rng) for _ in range(7)]
    parts[3][:, 0] = 0
    assert false_alarms(collapse(parts), predict) == ["d3"]


@pytest.mark.parametrize(
    ("votes", "alpha", "message"),
    [(np.zeros((5, 3), np.int8), 0.05, "`votes` must have 4 columns"), (np.zeros((5, 4)), 2, "`alpha` must lie")],
)
def test_bad_input(votes, alpha, message):
    """Widths and levels are checked."""
    old = collapse([dataset(np.random.default_rng(7)) for _ in range(2)])
    with pytest.raises(InputError, match=message):
        compare_votes(old, votes, predict, alpha=alpha)


def test_false_alarms_are_comparisons_with_the_other_datasets():
    """What is taken out of the sums of all is what a comparison with the other ones finds."""
    rng = np.random.default_rng(8)
    parts = [dataset(rng, 400) for _ in range(12)]
    parts[3][:, 1] = parts[3][:, 0] == 0
    parts[7][:, 2] = -1
    alone = [
        f"d{i}"
        for i, part in enumerate(parts)
        if moved(compare_votes(collapse(parts[:i] + parts[i + 1 :]), part, predict))
    ]
    assert "d3" in alone
    assert false_alarms(collapse(parts), predict) == sorted(alone)


@pytest.mark.parametrize("n_datasets", [4, 6, 9])
def test_what_is_left_of_few_datasets_counts_exactly(n_datasets):
    """With one of few datasets taken out, degrees of freedom and noise are those of the others, near the bound too."""
    rng = np.random.default_rng(n_datasets)
    n_alarms = 0
    for _ in range(60):
        parts = [dataset(rng, 200) for _ in range(n_datasets)]
        parts[0][rng.random(200) < rng.random(), 1] = 1
        others = [collapse(parts[:i] + parts[i + 1 :]) for i in range(n_datasets)]
        alone = [f"d{i}" for i, old in enumerate(others) if moved(compare_votes(old, parts[i], predict, alpha=0.9))]
        assert false_alarms(collapse(parts), predict, alpha=0.9) == alone
        n_alarms += len(alone)
    assert 10 < n_alarms < 50 * n_datasets


def stream_batch(rng, n, lift=0.0):
    """Draw votes of ten judges whose errors go together, of which one in `lift` of the votes 0 is turned to 1."""
    chance = rng.beta(0.9, 0.6, n)[:, None]
    votes = (rng.random((n, 10)) < chance).astype(np.int8)
    votes[(votes == 0) & (rng.random(votes.shape) < lift)] = 1
    return vote_rates(votes, [f"j{i}" for i in range(10)])


def test_what_moves_all_judges_alike_is_found_beside_a_reference():
    """Ten points with 300 items beside 1,000 in 8 of 10 draws; without a change in no more than chance allows."""
    rng = np.random.default_rng(0)
    batches = [(stream_batch(rng, 1000), stream_batch(rng, 300, 0.25), stream_batch(rng, 300)) for _ in range(60)]
    assert np.mean([common_shift(old, new, alpha=0.025).moved for old, new, _ in batches]) >= 0.8
    assert np.mean([common_shift(old, same, alpha=0.025).moved for old, _, same in batches]) <= 0.07
    row = common_shift(*batches[0][:2], alpha=0.025)
    assert row.low < batches[0][0]["positive"][PANEL_NAME][0] < row.high < row.now
    assert 0.04 < least_shift(row, 1, alpha=0.025) < 0.08
    assert least_shift(row, 3, alpha=0.025) > least_shift(row, 1, alpha=0.025)


def test_items_of_one_document_count_once():
    """A table with each row ten times under its document is worth as many items as before."""
    rng = np.random.default_rng(1)
    votes = rng.integers(-1, 2, (80, 3)).astype(np.int8)
    alone = vote_rates(votes, "abc")
    copies = vote_rates(np.repeat(votes, 10, axis=0), "abc", np.repeat(np.arange(80), 10))
    assert copies == {name: {j: pytest.approx(rate) for j, rate in of.items()} for name, of in alone.items()}
    silent = vote_rates(np.full((5, 1), -1, dtype=np.int8), ["a"])
    assert (silent["positive"]["a"][1], silent["coverage"]["a"]) == (0.0, [0.0, 5.0])
    assert common_shift(silent, silent).p == 1.0


def test_looking_every_week_costs_nothing():
    """Of 400 streams of a year without a change, at most one in twenty ever reaches an evidence of 20."""
    rng = np.random.default_rng(2)
    worth = np.append(1000, np.full(52, 300))
    streams = rng.binomial(worth, 0.7, (400, 53)) / worth
    assert np.mean([shift_evidence(list(zip(one, worth, strict=True))) >= 20 for one in streams]) <= 0.05


def test_all_judges_together_raise_no_more_false_alarms_than_one():
    """Of 200 streams without a change at most one in ten has one by any judge or statistic, with `alpha` 0.1."""
    rng = np.random.default_rng(4)
    worth = np.append(1000.0, np.full(40, 300.0))
    names = {"positive": [PANEL_NAME, *(f"j{i}" for i in range(20))], "coverage": [f"j{i}" for i in range(20)]}

    def stream():
        rates = {key: rng.binomial(worth.astype(int), 0.7, (len(of), 41)) / worth for key, of in names.items()}
        return [
            {key: {name: [rates[key][i, t], worth[t]] for i, name in enumerate(of)} for key, of in names.items()}
            for t in range(41)
        ]

    assert np.mean([bool(changed_rates(stream(), alpha=0.1)) for _ in range(200)]) <= 0.1


def test_the_judge_that_changed_in_a_stream_is_named():
    """Also where it falls silent; the panel is where all have; nobody is where nothing has."""
    rng = np.random.default_rng(3)
    stream = [stream_batch(rng, 300) for _ in range(8)]
    assert changed_rates(stream, alpha=0.05) == []
    assert (PANEL_NAME, "positive") in changed_rates([*stream, stream_batch(rng, 300, 0.5)], alpha=0.05)
    last = stream_batch(rng, 300)
    last["positive"]["j3"] = [0.95, 300.0]
    last["coverage"]["j5"] = [0.8, 300.0]
    assert changed_rates([*stream, last], alpha=0.05) == [("j3", "positive"), ("j5", "coverage")]
    assert changed_rates(stream[:1], alpha=0.05) == []
