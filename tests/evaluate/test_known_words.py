"""What is said of P where nothing is sure: how the ends of the ranking were, by how much the share may be off."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from deep.evaluate import label_words, order_words
from deep.evaluate._selective import _shares_of_outer_tenths
from deep.model import HeldOutData, HeldOutRows, Misfit, PriorEstimate, Scores, fit, learn_misfit
from deep.records import VoteMatrix
from tests.deep_commands import score
from tests.deep_commands import votes as ask


def votes_of(datasets, n=120, seed=0):
    """Return votes of five judges that err in a quarter of the items."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n * len(datasets))
    votes = np.where(rng.random((len(y), 5)) < 0.25, 1 - y[:, None], y[:, None])
    ids = [f"i{k}" for k in range(len(y))]
    return VoteMatrix(votes, ids, [f"j{k}" for k in range(5)], np.repeat(datasets, n), y)


def unlabeled(votes):
    """Return the same votes without labels."""
    return votes.with_columns(labels=np.full(len(votes.labels), -1))


def test_the_ends_of_the_ranking_by_hand():
    """A tenth of the weight, of a point that is half in it half; the shares of all beside it."""
    one = HeldOutData(np.array([2.0, 0.0, -2.0]), np.array([4.0, 8.0, 1.0]), np.array([1.0, 8.0, 1.0]))
    low, zeros, high, ones = _shares_of_outer_tenths(one)
    assert zeros == pytest.approx(10 / 23)
    assert ones == pytest.approx(13 / 23)
    assert high == pytest.approx(0.8)
    assert low == pytest.approx((1 + 0.3 * 0.5) / 2.3)


def test_without_labels_other_panels_tell_of_the_order():
    """With training datasets they do themselves; once labels corrected P nothing is said."""
    votes = votes_of(["a", "b", "c"])
    assert order_words(fit(unlabeled(votes))).startswith(
        "On 19 panels of other judges, without labels: in the lowest tenth"
    )
    model = fit(votes.rows(votes.datasets != "c"))
    message = order_words(model)
    assert message.startswith("On 2 training datasets, each left out in turn: in the lowest tenth of P ")
    mine = votes.rows(votes.datasets == "c")
    assert order_words(model.adapted(mine, mine.labels)) is None


def test_few_training_datasets_ask_for_ten_labels():
    """By the widest interval; not from four datasets on, nor where the share is known or carried over."""
    votes = votes_of(list("abcde"))
    prior = PriorEstimate(0.6, 0.35, 0.83)
    message = "The share may be wrong by ± 24 points; ten labels of random items reduce this to about ± 17."
    for names in ("a", "ab", "abc"):
        assert label_words(fit(votes.rows(np.isin(votes.datasets, list(names)))), [prior]) == message
    one = fit(votes.rows(votes.datasets == "a"))
    assert label_words(one, [PriorEstimate(0.6, 0.5, 0.7), prior]) == message
    assert label_words(one, [PriorEstimate(0.6, 0.6, 0.6), PriorEstimate(0.6, 0.0, 1.0)]) is None
    assert label_words(fit(votes), [prior]) is None


def test_score_without_labels_ranks_and_asks(tmp_path, capsys):
    """Nothing is sure: both ends with what is known of them, the share with its reach, and the command for labels."""
    votes = unlabeled(votes_of(["mine"]))
    fit(votes).save(tmp_path / "model.json")
    votes.to_frame().to_csv(tmp_path / "votes.csv", index=False)
    words = [str(tmp_path / "model.json"), str(tmp_path / "votes.csv"), "--out", str(tmp_path / "scores.csv")]
    assert score(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{len(votes.labels)} claims"
    assert sum(int(line.split()[0]) for line in lines[1:4]) == len(votes.labels)
    assert any(line.startswith("Nothing is sure") for line in lines)
    assert any(line.startswith("The share may be wrong by ± ") for line in lines)
    assert f"  deep label {tmp_path / 'votes.csv'} --model {tmp_path / 'model.json'} --n 10" in lines
    ends = [i for i, line in enumerate(lines) if line.startswith(("The lowest P", "The highest P"))]
    assert ends[1] - ends[0] == 11


def test_score_shows_the_claims_of_the_lowest_p(tmp_path, capsys):
    """Below each item of the list, where the votes remember their examples; of other votes there are ids alone."""
    claims, votes = tmp_path / "mine.csv", tmp_path / "votes.parquet"
    rows = [(f"i{n}", f"It rained for {n} days.", f"It rained for {n + n % 2} days and {n} nights.") for n in range(40)]
    pd.DataFrame(rows, columns=["example_id", "source", "claim"]).to_csv(claims, index=False)
    assert ask([str(claims), "--lexical", "all", "--out", str(votes)]) == 0
    frame = pd.read_parquet(votes)
    fit(VoteMatrix.from_frame(frame)).save(tmp_path / "model.json")
    capsys.readouterr()
    frame.to_csv(tmp_path / "plain.csv", index=False)
    printed = {}
    for table in (votes, tmp_path / "plain.csv"):
        assert score([str(tmp_path / "model.json"), str(table), "--out", str(tmp_path / "scores.csv")]) == 0
        printed[table.suffix] = capsys.readouterr().out.splitlines()
    claim = {item: text for item, _, text in rows}
    ranked = [(line, after) for line, after in pairwise(printed[".parquet"]) if line.endswith(" of mine")]
    assert len(ranked) >= 10
    for line, after in ranked:
        assert after.strip() == claim[line.split()[-3]]
    assert not {line.strip() for line in printed[".csv"]} & {*claim.values()}
    assert len(printed[".csv"]) == len(printed[".parquet"]) - len(ranked)


def test_sure_is_more_than_one_side_of_the_threshold():
    """Just below a high threshold most decisions of inconsistent are wrong: none of these is sure."""
    misfit = Misfit(np.array([0.0, 1.0]), np.diag([0.01, 0.001]), 10, 0.0, np.array([0.0, 1.0]))
    result = Scores(np.array([-3.0, 0.5, 1.0, 4.0]), PriorEstimate(0.84, 0.8, 0.9, intercept=0.0), misfit)
    assert 0.49 < result.threshold < 0.51
    assert result.sure.tolist() == [True, False, True, True]
    high = Scores(result.log_odds, PriorEstimate(0.84, 0.8, 0.9, intercept=0.0), misfit, context_weight=1.0)
    assert high.threshold > 0.8
    assert high.decisions.tolist() == [False, False, False, True]
    assert high.sure.tolist() == [True, False, False, True]


def test_datasets_left_out_narrow_the_interval_and_own_labels_do_not():
    """The slack is of models that learned from datasets left out."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=200)
    rows = [HeldOutRows(z, 1.0 * (rng.random(200) < 0.5), np.zeros(200), np.arange(200)) for _ in range(4)]
    rows = [HeldOutRows(one.log_odds, one.ones, 1 - one.ones, one.cell) for one in rows]
    learned = learn_misfit(rows)
    own = Misfit(learned.mean, learned.covariance, learned.n_datasets, learned.cell_spread)
    assert learned.quantile == pytest.approx(0.87 * own.quantile)
    assert learn_misfit(rows[:1]).quantile == pytest.approx(2.132, rel=1e-3)  # Student's t of four degrees of freedom
