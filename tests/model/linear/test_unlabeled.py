"""A model from votes alone: invariances, copies, lost ways, honest priors, and the figures on real panels."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

from deep._util.odds import expit, logit, shift_prior
from deep.datasets import read_votes
from deep.ensembles import DawidSkene
from deep.exceptions import InputError
from deep.model import _consensus, _unlabeled, fit_unlabeled
from tests.nasty_panels import PANELS

VOTES = hnp.arrays(np.int8, st.tuples(st.integers(2, 30), st.integers(1, 8)), elements=st.integers(-1, 1))


def p_consistent(votes, rows=None, **options):
    """Return P of each row at the estimated prior."""
    result = fit_unlabeled(votes, **options)
    return shift_prior(expit(result.linear.log_odds(votes if rows is None else rows)), result.prior.estimate)


def accuracy(p, labels):
    """Return the share of right decisions, ties for 1."""
    return float(((np.asarray(p) >= 0.5) == labels).mean())


def majority(votes):
    """Return the share of votes for 1, .5 for none."""
    cast = (votes >= 0).sum(axis=1)
    return np.divide((votes == 1).sum(axis=1), cast, out=np.full(len(votes), 0.5), where=cast > 0)


def log_loss(p, labels):
    """Return the mean log loss of P held within what a file can hold."""
    held = np.clip(np.where(labels == 1, p, 1 - p), 1e-6, 1)
    return float(-np.log(held).mean())


def world(rng, n=300, k=7, *, correlation=0.4, leaning=0.5, skill=1.0):
    """Return votes and labels: judges of unequal skill, errors that correlate within a class, a shared leaning."""
    labels = (rng.random(n) < rng.uniform(0.15, 0.85)).astype(np.int8)
    skills = np.maximum(rng.normal(skill, 0.4, k), -0.2)
    leanings = rng.normal(0, leaning) + rng.normal(0, 0.3, k)
    errors = np.sqrt(correlation) * rng.normal(size=(n, 1)) + np.sqrt(1 - correlation) * rng.normal(size=(n, k))
    return ((2 * labels[:, None] - 1) * skills + leanings + errors > 0).astype(np.int8), labels


def independent(rng, n, accuracies, share=0.5):
    """Return votes and labels of judges that err independently, as often on either class."""
    labels = (rng.random(n) < share).astype(np.int8)
    right = rng.random((n, len(accuracies))) < accuracies
    return np.where(right, labels[:, None], 1 - labels[:, None]).astype(np.int8), labels


def copied(rng, column, n, flipped):
    """Return `n` copies of a judge, each with a share of its votes flipped."""
    flips = rng.random((len(column), n)) < flipped
    return np.where(flips, 1 - column[:, None], column[:, None]).astype(np.int8)


@pytest.mark.parametrize("name", [name for name in PANELS if name not in ("all abstain", "ten thousand datasets")])
def test_any_panel_gives_finite_log_odds_and_a_prior_within_its_interval(name):
    """Whatever is odd about a panel, P lies strictly between 0 and 1, and no judge votes against its own vote."""
    frame = PANELS[name]()
    votes = frame.drop(columns=["dataset", "item_id", "label"]).astype("Int8").fillna(-1).to_numpy(np.int8)
    result = fit_unlabeled(votes)
    p = shift_prior(expit(result.linear.log_odds(votes)), result.prior.estimate)
    assert ((p > 0) & (p < 1)).all()
    assert 0 <= result.prior.low <= result.prior.estimate <= result.prior.high <= 1
    assert (result.linear.ones >= 0).all()
    assert (result.linear.zeros <= 0).all()


@given(VOTES.filter(lambda votes: (votes >= 0).any()), st.integers(0, 2**32 - 1))
def test_weights_are_repeats_and_the_order_of_rows_and_judges_is_nothing(votes, seed):
    """Weighted rows give what repeated rows give, and shuffled rows and columns the same P."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, len(votes))
    result = p_consistent(votes, sample_weight=weights)
    assert_allclose(p_consistent(np.repeat(votes, weights, axis=0), votes), result, atol=1e-9)
    rows, judges = rng.permutation(len(votes)), rng.permutation(votes.shape[1])
    shuffled = votes[rows][:, judges]
    again = fit_unlabeled(shuffled, sample_weight=weights[rows])
    before = fit_unlabeled(votes, sample_weight=weights)
    assert_allclose([again.prior.low, again.prior.high], [before.prior.low, before.prior.high], atol=1e-9)


def test_judges_of_like_rates_that_vote_on_other_rows_are_told_apart():
    """Judges are ordered by what they vote, however alike their rates are, so shuffled columns give the same P."""
    votes = np.zeros((5, 7), dtype=np.int8)
    votes[0, 0], votes[2], votes[4] = 1, (1, -1, 1, 0, 0, 0, 0), (-1, 1, 0, 1, 0, 0, 0)
    weights = np.random.default_rng(4).integers(1, 4, 5)
    result = [
        fit_unlabeled(votes[:, np.random.default_rng(seed).permutation(7)], sample_weight=weights).prior.estimate
        for seed in range(10)
    ]
    assert_allclose(result, result[0], atol=1e-12)


@pytest.mark.parametrize("k", [2, 60])
def test_shuffled_judges_give_the_same_p(k):
    """On a panel whose judges differ, the order of columns changes no P."""
    votes, _ = world(np.random.default_rng(3), 200, k)
    order = np.random.default_rng(4).permutation(k)
    assert_allclose(p_consistent(votes[:, order]), p_consistent(votes), atol=1e-9)


def test_votes_turned_round_turn_p():
    """Where each vote is for the other class, P is 1 - P."""
    votes, _ = world(np.random.default_rng(5), 200, 6)
    assert_allclose(p_consistent(1 - votes), 1 - p_consistent(votes), atol=1e-9)


def test_rows_without_weight_or_votes_change_nothing():
    """A row of weight 0 and a row without a vote teach nothing."""
    votes, _ = world(np.random.default_rng(6), 100, 5)
    more = np.vstack([votes, 1 - votes[:50], np.full((20, 5), -1, dtype=np.int8)])
    weights = np.r_[np.ones(100), np.zeros(50), np.ones(20)]
    assert_allclose(p_consistent(more, votes, sample_weight=weights), p_consistent(votes), atol=1e-12)


@pytest.mark.parametrize("judge", [0, 6])
def test_exact_copies_of_a_judge_change_nothing(judge):
    """Five copies of one judge give every item the P that it had, and are named."""
    votes, _ = world(np.random.default_rng(7), 200, 7)
    five = np.repeat(votes[:, [judge]], 5, axis=1)
    result = fit_unlabeled(np.hstack([votes, five]), voter_names=[*"abcdefg", "h1", "h2", "h3", "h4", "h5"])
    p = shift_prior(expit(result.linear.log_odds(np.hstack([votes, five]))), result.prior.estimate)
    assert_allclose(p, p_consistent(votes), atol=1e-9)
    assert any("abcdefg"[judge] in text and "vote almost alike: 6 count as 1.0" in text for text in result.warnings)


def test_near_copies_count_for_little():
    """Five copies of the worst judge, each with 1 % of its votes flipped, cost at most a point; majority loses ten."""
    lost, lost_by_majority = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        votes, labels = independent(rng, 800, np.array([0.85, 0.8, 0.8, 0.75, 0.75, 0.7, 0.6]))
        more = np.hstack([votes, copied(rng, votes[:, -1], 5, 0.01)])
        lost.append(accuracy(p_consistent(votes), labels) - accuracy(p_consistent(more), labels))
        lost_by_majority.append(accuracy(majority(votes), labels) - accuracy(majority(more), labels))
    assert np.mean(lost) <= 0.01
    assert np.mean(lost_by_majority) >= 0.1


def test_better_judges_are_found_without_labels():
    """Independent judges of unequal accuracy: nearly as right as Bayes' rule with their true rates."""
    accuracies = np.array([0.95, 0.85, 0.65, 0.6, 0.6, 0.55, 0.55])
    weights = np.log(accuracies / (1 - accuracies))
    gained, missed = [], []
    for seed in range(20):
        votes, labels = independent(np.random.default_rng(seed), 400, accuracies)
        result = accuracy(p_consistent(votes), labels)
        gained.append(result - accuracy(majority(votes), labels))
        missed.append(accuracy(expit((2.0 * votes - 1) @ weights), labels) - result)
    assert np.mean(gained) >= 0.05
    assert np.mean(missed) <= 0.02


def test_independent_judges_are_decided_as_by_dawid_skene():
    """Where its assumption holds, decisions are those of the fitted Dawid-Skene model, but for a few near ties."""
    votes, _ = independent(np.random.default_rng(8), 2000, np.linspace(0.6, 0.9, 9), share=0.4)
    result = fit_unlabeled(votes)
    assert result.method == "dawid-skene"
    assert accuracy(p_consistent(votes), DawidSkene().fit(votes).predict(votes)) >= 0.98


@pytest.mark.parametrize(("n_good", "skill", "n_followers"), [(10, 0.75, 6), (12, 0.7, 5)])
def test_where_dawid_skene_loses_its_way_the_majority_stays(n_good, skill, n_followers):
    """A few judges follow a cue that tells nothing: Dawid-Skene takes it for the label, the fit stays the majority."""
    gained, gained_by_dawid_skene = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        votes, labels = independent(rng, 150, np.full(n_good, skill))
        cue = (rng.random(150) < 0.5).astype(np.int8)
        panel = np.hstack([votes, copied(rng, cue, n_followers, 0.1)])
        by_majority = accuracy(majority(panel), labels)
        gained.append(accuracy(p_consistent(panel), labels) - by_majority)
        gained_by_dawid_skene.append(accuracy(DawidSkene().fit(panel).predict(panel), labels) - by_majority)
    assert np.mean(gained) >= -0.01
    assert np.mean(gained_by_dawid_skene) <= -0.1


@pytest.mark.parametrize(
    ("n", "k", "leaning"),
    [(100, 15, 0.5), *(pytest.param(300, 7, leaning, marks=pytest.mark.slow) for leaning in (0.4, 0.6))],
)
def test_the_interval_of_the_prior_covers_about_nine_times_in_ten(n, k, leaning):
    """With errors that correlate and a leaning that all judges share, the interval holds the share in 85 to 98 %."""
    held = []
    for seed in range(60):
        votes, labels = world(np.random.default_rng(seed), n, k, leaning=leaning)
        prior = fit_unlabeled(votes).prior
        held.append(prior.low <= labels.mean() <= prior.high)
    assert 0.85 <= np.mean(held) <= 0.98


def test_p_is_less_sure_than_dawid_skene():
    """Of judges whose errors correlate, P has a far lower log loss than Dawid-Skene's, and than the share alone."""
    ours, theirs, none = [], [], []
    for seed in range(20):
        votes, labels = world(np.random.default_rng(seed), 400, 9)
        ours.append(log_loss(p_consistent(votes), labels))
        theirs.append(log_loss(DawidSkene().fit(votes).predict_proba(votes)[:, 1], labels))
        none.append(log_loss(np.full(400, labels.mean()), labels))
    # A dense panel is taken to share more errors than these judges do (decision 0044): P could be steeper here.
    assert np.mean(ours) < 0.75 * np.mean(theirs)
    assert np.mean(ours) < 0.7 * np.mean(none)


def test_dense_panels_are_flatter_than_sparse_ones():
    """Two judges' errors are assumed to correlate more where all are asked every item: log-odds are 1.13 times smaller.

    By Kish's design effect of nine votes: (1 + 8 * 0.47) / (1 + 8 * 0.4).
    """
    votes, _ = world(np.random.default_rng(5), 1000, 9, skill=0.3)
    panel = _consensus.Panel.of(votes, np.ones(len(votes)))
    rates = _consensus.dawid_skene(panel)
    dense = _unlabeled._average_log_odds(panel, rates, 1.0)
    # As many judges again who never vote leave the votes as they are and the panel sparser.
    idle = np.hstack([votes, np.full((len(votes), 18), -1, dtype=np.int8)])
    wide = _consensus.Panel.of(idle, np.ones(len(votes)))
    sparse = _unlabeled._average_log_odds(wide, _consensus.dawid_skene(wide), 1.0)
    assert_allclose(sparse.ones[:9] / dense.ones, (1 + 8 * 0.47) / (1 + 8 * 0.4), rtol=0.02)


def test_documents_widen_the_interval():
    """Rows of few documents tell less of the share than as many rows on their own."""
    votes, labels = world(np.random.default_rng(9), 400, 9, leaning=0.0, skill=2.0)
    order = np.argsort(labels)
    alone = fit_unlabeled(votes[order]).prior
    grouped = fit_unlabeled(votes[order], groups=np.arange(400) // 50).prior
    assert grouped.estimate == alone.estimate
    assert grouped.high - grouped.low > alone.high - alone.low + 0.05


@pytest.mark.parametrize(
    ("votes", "text"),
    [
        (lambda rng: world(rng, 20, 5)[0], "Only 20 items have votes"),
        (lambda rng: world(rng, 100, 2)[0], "right on 3 of 4 items"),
        (lambda rng: world(rng, 100, 1)[0], "right on 3 of 4 items"),
        (lambda rng: np.where(rng.random((400, 9)) < 0.2, world(rng, 400, 9)[0], -1), "votes on average"),
        (lambda rng: np.hstack([world(rng, 99, 4)[0], np.ones((99, 1), dtype=np.int8)]), "4: no vote, or the same"),
        (lambda rng: np.hstack([world(rng, 99, 4)[0], np.full((99, 1), -1, dtype=np.int8)]), "4: no vote, or the same"),
    ],
)
def test_what_makes_the_result_unsure_is_said(votes, text):
    """Each weakness of a panel has its sentence."""
    assert any(text in warning for warning in fit_unlabeled(votes(np.random.default_rng(10))).warnings)


def rules(rng, n=4000, *, broad=10, narrow=5):
    """Return votes and labels of rules: many broad ones that say 1, few and better ones that say 0."""
    labels = (rng.random(n) < 0.5).astype(np.int8)
    for_one = rng.random((n, broad)) < np.where(labels == 1, 0.13, 0.065)[:, None]
    for_zero = rng.random((n, narrow)) < np.where(labels == 1, 0.02, 0.13)[:, None]
    votes = np.hstack([np.where(for_one, 1, -1), np.where(for_zero, 0, -1)]).astype(np.int8)
    cast = (votes >= 0).any(axis=1)
    return votes[cast], labels[cast]


def test_rules_that_speak_for_one_class_more_often_do_not_set_its_share(monkeypatch):
    """Most votes say 1 since most rules do: P follows the better rules for 0, and is nearer to the labels."""
    votes, labels = rules(np.random.default_rng(0))
    result = p_consistent(votes)
    monkeypatch.setattr(_consensus, "BY_SIGHT", np.inf)
    before = p_consistent(votes)
    assert (votes == 1).sum() > 1.5 * (votes == 0).sum()
    assert accuracy(result, labels) > accuracy(before, labels) + 0.05
    assert log_loss(result, labels) < log_loss(before, labels) - 0.02


def test_judges_that_may_abstain_make_ties_lean_to_the_frequent_class(monkeypatch):
    """Two judges each way say little; that most items are of class 0 says more."""
    rng = np.random.default_rng(1)
    votes, labels = independent(rng, 3000, [0.9, 0.9, 0.9, 0.9], share=0.2)
    silent = rng.random(votes.shape) < np.where(labels == 1, 0.1, 0.6)[:, None]
    votes = np.where(silent, -1, votes)
    tie = (votes == 1).sum(axis=1) == (votes == 0).sum(axis=1)
    monkeypatch.setattr(_unlabeled, "_compare_halves", lambda *_: _unlabeled._DawidSkeneTrust(0.0))
    assert (p_consistent(votes)[tie & (votes >= 0).any(axis=1)] < 0.5).all()
    monkeypatch.setattr(_consensus, "BY_SIGHT", np.inf)
    assert (p_consistent(votes)[tie] >= 0.5 - 1e-9).all()


def test_a_crowd_whose_items_are_handed_out_is_no_set_of_rules(monkeypatch):
    """However many votes an item has and however few items a person sees, who votes says nothing."""
    rng = np.random.default_rng(2)
    votes, _ = independent(rng, 1500, rng.uniform(0.5, 0.95, 60), share=0.15)
    votes = np.where(rng.random(votes.shape) < rng.uniform(0.02, 0.2, (1500, 1)), votes, -1)
    result = p_consistent(votes)
    monkeypatch.setattr(_consensus, "BY_SIGHT", np.inf)
    assert_allclose(result, p_consistent(votes))


@pytest.mark.parametrize(("cast", "bound"), [(0.2, 2.5), (0.65, 2.05), (1.0, 1.6)])
def test_no_panel_is_surer_than_panels_of_its_density_are(cast, bound):
    """Judges that nearly always agree: P is held to what sparse and dense panels have been found to be worth."""
    rng = np.random.default_rng(3)
    votes, _ = independent(rng, 4000, [0.99] * 20)
    votes[rng.random(votes.shape) > cast] = -1
    votes = votes[(votes >= 0).any(axis=1)]
    result = fit_unlabeled(votes)
    log_odds = result.linear.log_odds(votes) + logit(result.prior.estimate)
    assert np.sqrt((log_odds**2).mean()) == pytest.approx(bound, abs=0.02)


def test_few_who_are_followed_against_a_careless_crowd_are_warned_of():
    """Not where all are alike careful."""
    rng = np.random.default_rng(4)
    careless, _ = independent(rng, 800, [0.9] * 4 + [0.52] * 9)
    careful, _ = independent(rng, 800, [0.85] * 9)
    text = "the others overrule the majority"
    assert any(text in warning for warning in fit_unlabeled(careless).warnings)
    assert not any(text in warning for warning in fit_unlabeled(careful).warnings)


def test_one_judge_is_believed_three_times_in_four():
    """A judge on its own is neither confirmed nor denied by anything."""
    result = fit_unlabeled(np.array([[1], [0]] * 50, dtype=np.int8))
    assert result.method == "majority"
    assert_allclose(expit(result.linear.log_odds(np.array([[1], [0], [-1]]))), [0.75, 0.25, 0.5], atol=1e-9)


def test_names_are_those_of_a_data_frame():
    """A warning names the columns."""
    votes, _ = world(np.random.default_rng(11), 100, 3)
    frame = pd.DataFrame(votes, columns=["strict", "plain", "steps"]).assign(again=votes[:, 1])
    assert any(text.startswith("plain and again vote almost alike") for text in fit_unlabeled(frame).warnings)


def test_bad_input():
    """Tables without votes and lengths that differ are refused."""
    with pytest.raises(InputError, match="`votes` must hold a vote"):
        fit_unlabeled(np.full((3, 2), -1))
    with pytest.raises(InputError, match="`voter_names` must have 2 entries"):
        fit_unlabeled(np.ones((3, 2)), voter_names=["a"])
    with pytest.raises(InputError, match="`groups` must have 3 entries"):
        fit_unlabeled(np.ones((3, 2)), groups=[1, 2])
    with pytest.raises(InputError, match="`sample_weight` must have 3 entries"):
        fit_unlabeled(np.ones((3, 2)), sample_weight=[1])


CROWDS = {"crowd/votes_RTE.csv": 0.92, "crowd/votes_bluebirds_duck.csv": 0.885}
LLM_PANELS = ("alttest", "umass_triviaqa", "llmbar", "css_binary")


@pytest.mark.parametrize("path", CROWDS)
def test_crowds_are_aggregated_as_well_as_by_dawid_skene(data_home, path):
    """On real crowds, where Dawid-Skene gains 5 and 14 points on the majority, the gain is kept."""
    panel = read_votes([data_home / path])
    assert accuracy(p_consistent(panel.votes), panel.labels) >= CROWDS[path]


def test_rules_of_wrench_are_aggregated_better_than_by_any_published_label_model(data_home):
    """On its seven binary sets the best published means are .832, .498 and .139; docs/benchmarks.md has all of them."""
    figures = []
    for path in sorted((data_home / "wrench").glob("*.parquet")):
        panel = read_votes([path])
        p, y = p_consistent(panel.votes), panel.labels
        figures.append([accuracy(p, y), log_loss(p, y), ((p - y) ** 2).mean()])
    right, loss, brier = np.mean(figures, axis=0)
    assert right >= 0.832
    assert loss <= 0.440
    assert brier <= 0.132


@pytest.mark.parametrize("name", LLM_PANELS)
def test_panels_of_llm_judges_do_not_fall_below_the_majority(data_home, name):
    """One fit on the whole table is at most half a point, or a standard error over datasets, below the majority."""
    panel = read_votes([data_home / name / "votes.parquet"])
    gain = (p_consistent(panel.votes) >= 0.5) == panel.labels
    gain = gain.astype(float) - ((majority(panel.votes) >= 0.5) == panel.labels)
    by_dataset = pd.Series(gain).groupby(np.asarray(panel.datasets)).mean()
    error = by_dataset.std() / np.sqrt(len(by_dataset))
    assert gain.mean() >= -max(0.005, error)
    assert by_dataset.mean() >= -max(0.005, error)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("crowd/votes_RTE.csv", marks=pytest.mark.slow),
        "crowd/votes_bluebirds_duck.csv",
        *(f"{name}/votes.parquet" for name in LLM_PANELS),
    ],
)
def test_five_copies_of_a_real_judge_change_no_p(data_home, path):
    """Whichever judge is copied, each item keeps its P."""
    votes = read_votes([data_home / path]).votes
    before = p_consistent(votes)
    for judge in range(0, votes.shape[1], 8):
        more = np.hstack([votes, np.repeat(votes[:, [judge]], 5, axis=1)])
        assert_allclose(p_consistent(more), before, atol=1e-9)


def test_the_prior_of_real_datasets_is_covered(data_home):
    """Over datasets of the panels, each fitted on its own, the interval holds the true share in 85 % or more."""
    held = []
    for name in LLM_PANELS:
        panel = read_votes([data_home / name / "votes.parquet"])
        for dataset in np.unique(panel.datasets):
            rows = np.asarray(panel.datasets) == dataset
            prior = fit_unlabeled(panel.votes[rows]).prior
            held.append(prior.low <= panel.labels[rows].mean() <= prior.high)
    assert len(held) == 34
    assert np.mean(held) >= 0.85
