"""Baselines: thresholds by brute force, voters by hand, nothing chosen on test labels but what says so.

Paired tests against them: enough resamples, Bonferroni, and no rival that saw the test labels.
"""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score
from sklearn.metrics import log_loss as sklearn_log_loss

from deep import calibration
from deep.datasets import ScoreTable
from deep.evaluate import METRICS, decision_metrics, hold_out, row_weights
from deep.experiments.loo import part_lines
from deep.experiments.loo._rivals import (
    Baseline,
    balanced_accuracies,
    best_threshold,
    compare,
    compare_parts,
    context_baseline,
    encoder_baselines,
    rivals_without_test_labels,
    vote_baselines,
)
from deep.experiments.loo._run_tables import optimal_thresholds, threshold_moves
from deep.model import AnswerMap, Stack
from deep.records import VoteMatrix
from tests.model.fitted import small_votes

WEIGHTINGS = ("uniform", "dataset-class")


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1), st.integers(1, 3)), min_size=2, max_size=25).filter(
        lambda rows: {y for _, y, _ in rows} == {0, 1}
    )
)
def test_best_threshold_is_as_good_as_any(rows):
    """No threshold among all that differ has a better weighted balanced accuracy."""
    scores, y, w = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    result = best_threshold(scores, y.astype(np.int8), w)

    def accuracy(t):
        return balanced_accuracies((scores >= t)[:, None], y.astype(np.int8), w)[0]

    assert accuracy(result) == pytest.approx(max(accuracy(t) for t in [*np.unique(scores), np.inf]))


def test_threshold_of_scores_without_a_class_is_nan():
    """Where only one class has scores there is nothing to optimise."""
    assert np.isnan(best_threshold(np.array([0.1, np.nan]), np.array([0, 1], dtype=np.int8), np.ones(2)))


def test_balanced_accuracy_equals_scikit_learn():
    """The vectorised balanced accuracy is scikit-learn's, column by column."""
    rng = np.random.default_rng(0)
    y, decisions, w = rng.integers(0, 2, 50).astype(np.int8), rng.random((50, 4)) < 0.5, rng.random(50)
    expected = [balanced_accuracy_score(y, d, sample_weight=w) for d in decisions.T]
    assert balanced_accuracies(decisions, y, w) == pytest.approx(expected)


@pytest.fixture
def split():
    """Return a split where voter 'good' is best in training and 'lucky' on the test set."""
    good = [1, 0, 1, 0, 0, 1, 1, 0]
    lucky = [0, 0, 1, 1, 1, 0, 1, 0]
    labels = [1, 0, 1, 0, 1, 0, 1, 0]
    votes = VoteMatrix(np.column_stack([good, lucky]), range(8), ["good", "lucky"], list("aabbtttt"), labels)
    return hold_out(votes, "t")


def test_best_prompt_is_chosen_on_training_data(split):
    """'good' is right on all training rows, so it stands as best prompt although it loses on the test set."""
    result = {(b.kind, b.name): b.row(split.test.labels, n_boot=200, random_state=0) for b in vote_baselines(split)}
    # On t the labels are 1 0 1 0; 'good' votes 0 1 1 0 (one of two right in each class), 'lucky' 1 0 1 0.
    assert result["best_prompt", "good"]["balanced_accuracy"] == 0.5
    assert result["prompt", "lucky"]["balanced_accuracy"] == 1.0
    # Majority of two with ties to consistent: 1 1 1 0 against 1 0 1 0.
    majority = result["majority", "majority vote"]
    assert (majority["balanced_accuracy"], majority["recall"]) == (0.75, 1.0)
    assert majority["precision"] == pytest.approx(2 / 3)


def test_encoder_thresholds_come_from_three_places(split):
    """Test, centre of the training range, and training data give the thresholds one computes by hand."""
    scores = np.array([[0.9, 0.1, 0.8, 0.3, 0.2, 0.15, 0.25, 0.05]]).T
    table = ScoreTable(scores, split_ids(8), ("enc",), np.array(list("aabbtttt"), dtype=object), np.full(8, -1))
    rows = {b.threshold_from: b for b in encoder_baselines(split, table)}
    assert rows["center"].threshold == pytest.approx(0.5)
    assert rows["train"].threshold == pytest.approx(0.55)
    assert rows["test"].threshold == pytest.approx(0.175)
    assert rows["test"].row(split.test.labels, n_boot=200, random_state=0)["balanced_accuracy"] == 1.0
    assert rows["train"].row(split.test.labels, n_boot=200, random_state=0)["balanced_accuracy"] == 0.5


def split_ids(n):
    """Return example ids as the vote matrix stores them."""
    return np.array([str(i) for i in range(n)], dtype=object)


def test_optimal_thresholds_name_every_labeled_dataset():
    """Each encoder has one threshold for each dataset that has both classes."""
    votes = VoteMatrix([[1]] * 6, range(6), ["v"], list("aabbcc"), [1, 0, 1, 0, -1, -1])
    scores = np.array([[0.9, 0.1, 0.4, 0.2, 0.3, 0.3]]).T
    table = ScoreTable(scores, votes.item_ids, ("enc",), votes.datasets, votes.labels)
    assert optimal_thresholds(votes, table) == {"enc": {"a": pytest.approx(0.5), "b": pytest.approx(0.3)}}


def test_weighting_moves_thresholds_and_the_best_judge():
    """Pooled rows are what the paper takes: its largest dataset decides. By dataset and class both count the same."""
    names, y = np.array(["big"] * 40 + ["small"] * 4 + ["test"] * 2, dtype=object), np.tile([0, 1], 23)
    on_small = names == "small"
    judges = np.column_stack([np.where(on_small, 1 - y, y), np.where(np.arange(46) % 4 == 0, 1 - y, y)])
    split = hold_out(VoteMatrix(judges, range(46), ["right on big", "right on most"], names, y), "test")
    best = {w: next(b.name for b in vote_baselines(split, w) if b.kind == "best_prompt") for w in WEIGHTINGS}
    assert best == {"uniform": "right on big", "dataset-class": "right on most"}
    scores = np.where(on_small, 0.5, 0.1) + 0.2 * np.where(np.arange(46) % 8 == 1, 0, y)  # some of big's look wrong
    scores[40:44] = [0.5, 0.7, 0.5, 0.7]
    table = ScoreTable(scores[:, None], split_ids(46), ("enc",), names, y.astype(np.int8))
    rows = {w: {b.threshold_from: b.threshold for b in encoder_baselines(split, table, w)} for w in WEIGHTINGS}
    assert rows["uniform"]["train"] == pytest.approx(0.2)
    assert rows["dataset-class"]["train"] == pytest.approx(0.6)


def test_rivals_that_decide_alike_count_once():
    """Bonferroni is over distinct rivals: a judge with and without a context that moves nothing is one."""
    y = np.tile([0, 1], 50).astype(np.int8)
    right, wrong = y == 1, np.roll(y, 1) == 1
    one = [Baseline("a", "best_prompt", wrong), Baseline("majority vote", "majority", ~wrong)]
    twice = [*one, Baseline("a", "best_judge_context", wrong)]
    options = {"n_boot": 1000, "random_state": 0}
    alone, both = (compare(right, y, some, **options) for some in (one, twice))
    assert alone[0]["p_bonferroni"] == both[0]["p_bonferroni"] == both[2]["p_bonferroni"]


def test_row_weights_make_dataset_and_class_equal():
    """Every training dataset x class has the same total weight."""
    votes = VoteMatrix([[1]] * 6, range(6), ["v"], list("aaaabb"), [1, 1, 1, 0, 1, 0])
    assert row_weights(votes).tolist() == pytest.approx([0.5, 0.5, 0.5, 1.5, 1.5, 1.5])


def joined(held, table):
    """Return training and test rows in which the scores stand, on the scales of the training rows."""
    train = held.train.with_answers(table.scores[held.train_rows], table.score_names)
    scales = dict(zip(train.voter_names, train.scales, strict=True))
    known = {name: scales[name] for name in table.score_names}
    return train, held.test.with_answers(table.scores[held.test_rows], table.score_names, known)


def stack_scores(train, test, members=None):
    """Return what a stack of training rows says of test rows."""
    X, new = (part.votes if part.answers is None else part.answers for part in (train, test))
    groups = train.datasets.astype(str)
    answer_map = None if train.answers is None else AnswerMap.fit(train)
    return Stack(members).fit(X, train.labels, groups=groups, answer_map=answer_map).score(new)


@pytest.mark.parametrize("with_scores", [False, True])
def test_the_best_judge_with_its_context_is_a_stack_of_one(with_scores):
    """Its decisions and P are those of the stack of one judge: its vote, or its score where there are scores."""
    votes = small_votes(n_voters=4)
    held = hold_out(votes, "c")
    noise = np.random.default_rng(2).normal(size=(len(votes.labels), 3)) * [4.0, 0.5, 2.0]
    soft = votes.labels[:, None] + noise
    table = ScoreTable(soft, votes.item_ids, ("x", "y", "z"), votes.datasets, votes.labels) if with_scores else None
    groups = held.train.datasets.astype(str)
    result = context_baseline(held, table, groups=groups)
    train, test = joined(held, table) if with_scores else (held.train, held.test)
    scores = stack_scores(train, test, ["best-score" if with_scores else "best-judge"])
    # The first of four judges errs least often (LEANINGS), the score "y" has the least noise.
    assert (result.kind, result.name) == ("best_judge_context", "y" if with_scores else "judge-0")
    assert np.array_equal(result.p, scores.p_consistent)
    assert np.array_equal(result.decisions, scores.log_odds >= 0)
    row = result.row(held.test.labels, n_boot=200, random_state=0)
    assert row["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(held.test.labels, result.decisions))
    assert row["log_loss"] == pytest.approx(sklearn_log_loss(held.test.labels, result.p))
    assert set(METRICS) <= set(row)


def test_the_best_judge_of_a_table_of_grades_is_the_one_of_its_score():
    """Scores that stand in the table of votes itself count as those of a table beside it."""
    votes = small_votes(n_voters=2)
    noise = np.random.default_rng(2).normal(size=(len(votes.labels), 3)) * [4.0, 0.5, 2.0]
    graded = votes.with_answers(votes.labels[:, None] + noise, ("x", "y", "z"))
    held = hold_out(graded, "c")
    assert held.train.answers is not None
    result = context_baseline(held, None, groups=held.train.datasets.astype(str))
    assert result.name == "y"
    assert np.array_equal(result.p, stack_scores(held.train, held.test, ["best-score"]).p_consistent)


def test_a_context_needs_three_groups():
    """With two datasets, or three that share a document, there is no such baseline."""
    held = hold_out(small_votes(n_voters=4), "c")
    assert context_baseline(held, None, groups=np.where(held.train.datasets == "a", "a", "b")) is None


def test_metrics_of_decisions_that_are_not_p_at_a_half():
    """Balanced accuracy, precision and recall are of the decisions, the rest of P; unlabeled rows are left out."""
    labels = np.array([1, 1, 0, 0, -1], dtype=np.int8)
    p, decisions = np.array([0.4, 0.45, 0.1, 0.3, 0.9]), np.array([True, True, False, True, False])
    result = decision_metrics(labels, p, decisions, n_bins=8, n_boot=200, random_state=0)
    assert (result["balanced_accuracy"], result["precision"], result["recall"]) == (0.75, pytest.approx(2 / 3), 1.0)
    assert result["auroc"] == 1.0
    assert result["log_loss"] == pytest.approx(sklearn_log_loss(labels[:4], p[:4]))
    nothing = decision_metrics(np.full(5, -1), p, decisions, n_bins=8, n_boot=200, random_state=0)
    assert nothing == dict.fromkeys(METRICS)


@pytest.fixture(scope="module")
def with_scores():
    """Return votes of four datasets, and scores of two encoders that know what the judges do not."""
    votes = small_votes()
    rng = np.random.default_rng(1)
    soft = votes.labels[:, None] * [3.0, 1.0] + rng.normal(size=(len(votes.labels), 2))
    return votes, ScoreTable(soft, votes.item_ids, ("one", "two"), votes.datasets, votes.labels)


def test_parts_are_the_stacks_that_one_would_fit_without_the_other(with_scores):
    """Prompts alone are a run without scores, both are the whole stack, and differences are of the same items."""
    votes, table = with_scores
    split = hold_out(votes, "d")
    options = {"groups": split.train.datasets, "fits": None, "n_bins": 8, "n_boot": 500, "random_state": 0}
    rows = {row["part"]: row for row in compare_parts(split, table, **options)}
    y = split.test.labels
    for name, result in (
        ("both", stack_scores(*joined(split, table))),
        ("prompts", stack_scores(split.train, split.test)),
    ):
        assert rows[name]["log_loss"] == pytest.approx(sklearn_log_loss(y, result.p_consistent), rel=1e-12)
        assert rows[name]["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, result.decisions))
    assert list(rows)[3:] == ["both less prompts", "both less encoders", "prompts less encoders"]
    for one, other in (("both", "prompts"), ("both", "encoders"), ("prompts", "encoders")):
        row = rows[f"{one} less {other}"]
        for metric, low, high in (("balanced_accuracy", "low", "high"), ("log_loss", "log_loss_low", "log_loss_high")):
            assert row[metric] == pytest.approx(rows[one][metric] - rows[other][metric])
            assert row[low] < row[metric] < row[high]
    assert rows["both less prompts"]["log_loss"] < 0
    shown = "\n".join(part_lines([{"test": "d", "votes": "simulated", "parts": list(rows.values())}]))
    assert re.search(r"on both; simulated\s+votes", shown)
    assert f"{100 * rows['both less prompts']['balanced_accuracy']:+.1f}" in shown
    runs = [{"test": name, "votes": "simulated", "parts": list(rows.values())} for name in ("one", "other")]
    several = list(part_lines(runs))
    assert several[several.index("Paired differences on the same items: both less prompts") + 2].startswith("  one ")


def test_parts_take_three_datasets_and_both_classes(with_scores):
    """Of two training datasets scores are not used, so that nothing is said."""
    votes, table = with_scores
    two = np.isin(votes.datasets.astype(str), ["a", "b", "d"])
    fewer = ScoreTable(table.scores[two], votes.item_ids[two], ("one", "two"), votes.datasets[two], votes.labels[two])
    split = hold_out(votes.rows(two), "d")
    options = {"groups": split.train.datasets, "fits": None, "n_bins": 8, "n_boot": 100, "random_state": 0}
    assert compare_parts(split, fewer, **options) == []
    assert list(part_lines([{"test": "d", "votes": ["v.csv"], "parts": []}])) == []


def test_thresholds_move_by_what_moves_them():
    """Scores that fall with the length move by length, by source no more than by chance; balance as by formula."""
    rng, n = np.random.default_rng(0), 4000
    y, names = rng.integers(0, 2, 2 * n), np.repeat(["a", "b"], n)
    votes = VoteMatrix(np.ones((2 * n, 1)), range(2 * n), ["v"], names, y)
    words = rng.integers(10, 1000, 2 * n).astype(float)
    scores = np.column_stack([2.0 * y - 1 + rng.normal(size=2 * n), 2.0 * y - words / 300 + rng.normal(size=2 * n)])
    table = ScoreTable(
        scores,
        votes.item_ids,
        ("plain", "long"),
        votes.datasets,
        votes.labels,
        ranges={"plain": (0, 1), "long": (0, 1)},
    )
    moves = threshold_moves(votes, table, words).set_index(["encoder", "moved_by", "part"])["threshold"].sort_index()
    length = moves["long", "length"]
    assert length["short"] - length["middle"] == pytest.approx(330 / 300, abs=0.4)
    assert length["middle"] - length["long"] == pytest.approx(330 / 300, abs=0.4)
    for encoder, why in (("long", "length, chance"), ("plain", "length"), ("plain", "source"), ("long", "source")):
        assert np.ptp(moves[encoder, why]) < 0.7
    # Of two normal distributions at -1 and 1 the best accuracy at a share s is where s f1 = (1 - s) f0.
    expected = [np.log((1 - share) / share) / 2 for share in (0.25, 0.5, 0.75)]
    assert moves["plain", "balance"].tolist() == pytest.approx(expected, abs=0.2)
    assert set(moves.index.get_level_values("moved_by")) == {
        *("source", "source, chance", "balance", "length", "length, chance")
    }


def baseline(kind, decisions, threshold_from=None):
    """Return a baseline with these decisions."""
    return Baseline(f"{kind}-{threshold_from}", kind, np.asarray(decisions, dtype=bool), threshold_from, None)


def test_rivals_never_saw_the_test_labels():
    """Thresholds optimised on the test set and single prompts are no rivals; the training-chosen are."""
    every = [
        baseline("prompt", [1]),
        baseline("best_prompt", [1]),
        baseline("best_judge_context", [1]),
        baseline("majority", [1]),
        *(baseline("encoder", [1], origin) for origin in ("test", "center", "train")),
    ]
    assert [r.name for r in rivals_without_test_labels(every)] == [
        "best_prompt-None",
        "best_judge_context-None",
        "majority-None",
        "encoder-train",
    ]


def test_clear_and_absent_differences():
    """A perfect chain beats a coin significantly, and does not beat its equal."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400).astype(np.int8)
    coin = rng.random(400) < 0.5
    rows = compare(
        y == 1, y, [baseline("best_prompt", coin), baseline("majority", y == 1)], n_boot=1000, random_state=0
    )
    assert rows[0]["significant"]
    assert rows[0]["difference"] == pytest.approx(0.5, abs=0.1)
    assert rows[0]["ci"][0] < rows[0]["difference"] < rows[0]["ci"][1]
    assert not rows[1]["significant"]
    assert rows[1]["difference"] == 0
    assert all(row["p_bonferroni"] == min(1.0, 2 * row["p"]) for row in rows)


@pytest.fixture
def resamples(monkeypatch):
    """Return a list of the resamples that each test draws."""
    asked, original = [], calibration.paired_bootstrap

    def counted(*args, **options):
        asked.append(options["n_boot"])
        return original(*args, **options)

    monkeypatch.setattr(calibration, "paired_bootstrap", counted)
    return asked


def test_resamples_grow_with_the_number_of_tests(resamples):
    """With m tests at least 200 m resamples are drawn, so that p can pass the corrected level."""
    y = np.array([0, 1] * 20, dtype=np.int8)
    differing = [baseline("encoder", np.arange(40) < k, "train") for k in range(7)]
    compare(y == 1, y, differing, n_boot=100, random_state=0)
    assert resamples == [1400] * 7


def test_tests_are_corrected_over_datasets_too(resamples):
    """With one rival on eleven datasets p is corrected eleven-fold, and enough resamples are drawn for that."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200).astype(np.int8)
    rival = baseline("majority", np.where(rng.random(200) < 0.07, 1 - y, y))
    (row,) = compare(y == 1, y, [rival], n_boot=100, random_state=0, n_datasets=11)
    assert resamples == [2200]
    assert row["p_bonferroni"] == row["p"]
    assert row["p_bonferroni_datasets"] == min(1, 11 * row["p"])
    assert (row["significant"], row["significant_datasets"]) == (row["p"] < 0.01, 11 * row["p"] < 0.01)


def test_no_labels_no_tests():
    """Without both classes among the labels there is nothing to test."""
    assert compare(np.array([True]), np.array([-1]), [baseline("majority", [1])], n_boot=100, random_state=0) == []
