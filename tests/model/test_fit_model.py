"""One fit for what labels there are: each regime, what it says of itself, and P by hand."""

import numpy as np
import pytest
from scipy.special import expit, logit

from deep.exceptions import InputError
from deep.model import (
    AnswerMap,
    ChainOptions,
    HeldOutData,
    LabeledRows,
    ScoreOptions,
    SharedWork,
    Stack,
    fit,
    fit_average,
    fit_with_options,
    learn_line,
    load,
    profile_of,
    score_file,
)
from deep.records import VoteMatrix
from tests.commands.model_case import frame_of
from tests.model.file.models import soft_scores, with_labels
from tests.model.fitted import QUICK, small_votes, table_of


def few_of(votes, name, n):
    """Return votes of which the first n rows of one dataset alone have labels."""
    of = votes.datasets == name
    return with_labels(votes, ~of | (np.cumsum(of) <= n))


def none_of(votes):
    """Return votes without any label."""
    return with_labels(votes, np.zeros(len(votes.labels), dtype=bool))


def linked(votes):
    """Return votes whose datasets a and b share their documents."""
    position = np.concatenate([np.arange((votes.datasets == d).sum()) for d in votes.dataset_names])
    documents = [f"{'ab' if d in 'ab' else d}/{i}" for d, i in zip(votes.datasets, position, strict=True)]
    return VoteMatrix(votes.votes, votes.item_ids, votes.voter_names, votes.datasets, votes.labels, documents)


A, AB, ABC, ABCD = (small_votes(tuple(names)) for names in ("a", "ab", "abc", "abcd"))

REGIMES = {
    "no label": (lambda: fit(none_of(A)), "votes", None),
    "no label of several datasets": (lambda: fit(none_of(ABC)), "votes", None),
    "no label, a target named": (lambda: fit(none_of(A), target="a"), "votes", None),
    "own labels": (lambda: fit(few_of(A, "a", 40)), "own-labels", "a"),
    "own labels of a target, all of them": (lambda: fit(A, target="a"), "own-labels", "a"),
    "own labels beside rows of others": (
        lambda: fit(with_labels(AB, AB.datasets == "a"), target="a"),
        "own-labels",
        "a",
    ),
    "own labels, four of a class": (lambda: fit(few_of(A, "a", 8)), "votes", "a"),
    "own labels, one": (lambda: fit(few_of(A, "a", 1)), "votes", "a"),
    "one dataset": (lambda: fit(A), "average", None),
    "two datasets": (lambda: fit(AB), "average", None),
    "two datasets of one family": (lambda: fit(linked(AB)), "average", None),
    "three datasets, two of one family": (lambda: fit(linked(ABC)), "average", None),
    "three datasets": (lambda: fit(ABC), "stack", None),
    "four datasets": (lambda: fit(ABCD), "stack", None),
    "a target without labels beside others": (lambda: fit(few_of(ABCD, "d", 0), target="d"), "stack", "d"),
    "a target with labels beside others": (lambda: fit(few_of(ABCD, "d", 20), target="d"), "stack", "d"),
    "a target with one label beside others": (lambda: fit(few_of(AB, "b", 1), target="b"), "average", "b"),
    "a chain asked for": (lambda: fit(ABCD, **QUICK), "chain", None),
    "a chain and a target": (lambda: fit(few_of(ABCD, "d", 20), target="d", **QUICK), "chain", "d"),
    "a chain of one dataset": (lambda: fit(A, **QUICK), "chain", None),
    "Average of four": (lambda: fit(ABCD, ensembler="Average"), "average", None),
    "Stack of three": (lambda: fit(ABC, ensembler=["Stack"]), "stack", None),
}


@pytest.mark.parametrize("regime", REGIMES)
def test_every_regime_gives_p(regime):
    """Of the method that docs/which-fit.md says: P strictly inside (0, 1) within its interval, a prior and a reason."""
    make, method, target = REGIMES[regime]
    model = make()
    assert (model.method, model.target) == (method, target)
    votes = small_votes(("x", "y"), seed=9)
    for options in ({}, {"streamed": True}):
        p = model.score(votes, **options)
        low, high = model.intervals(votes, **options).T
        assert ((p > 0) & (p < 1)).all()
        assert ((low > 0) & (low <= p) & (p <= high) & (high < 1)).all()
        assert 0.01 < (high - low).mean() < 0.99
    result = model.estimate_prior(votes.rows(votes.datasets == "x"))
    assert 0 <= result.low <= result.estimate <= result.high <= 1  # as measured on the batch
    assert 0 < model.prior.low <= model.prior.estimate <= model.prior.high < 1
    corrected = {"own labels, four of a class", "own labels, one", "a chain and a target"}
    corrected |= {name for name in REGIMES if "target with" in name and "without" not in name}
    assert (model.correction is not None) == (regime in corrected)
    assert ((table_of(model) > 0) & (table_of(model) < 1)).all()
    empty = np.full((4, 3), -1)
    assert np.isfinite(model.score(empty)).all()
    decisions = model.scores_of(votes.rows(votes.datasets == "x")).decisions
    assert (decisions == (votes.labels == 1)[:120]).mean() > 0.75


SAYS = {
    "no label": "No row is labeled: P comes from agreement alone, and its error is unknown.",
    "own labels, four of a class": "Too few labeled rows or documents of a class",
    "own labels": "Scores are of rows that neither the fit nor the choice saw: five folds of 40 labeled rows.",
    "one dataset": "With one labeled dataset nothing is chosen: best judge, majority and ridge",
    "two datasets": "With 2 labeled datasets nothing is chosen",
    "a chain of one dataset": "1 training dataset(s) without common documents cannot show how a new one may differ",
}


@pytest.mark.parametrize("regime", SAYS)
def test_what_a_regime_says(regime):
    """In the notes of its report."""
    (note, *_) = REGIMES[regime][0]().fit_report["notes"]
    assert note.startswith(SAYS[regime])


def test_the_report_says_what_it_was_learned_from():
    """Sizes and priors of the datasets, scores of fits without them, and what was chosen."""
    for model, chosen, n in (
        (fit(AB), "Average", 2),
        (fit(ABCD), "Stack", 4),
        (fit(ABCD, **QUICK), QUICK["ensembler"], 4),
    ):
        rows = model.fit_report["training_datasets"]
        assert {name: row["n"] for name, row in rows.items()} == dict.fromkeys("abcd"[:n], 120)
        assert all(0 < row["prior"] < 1 for row in rows.values())
        assert list(model.fit_report["left_out_scores"]["datasets"]) == list("abcd"[:n]) == list(model.left_out)
        mean = model.fit_report["left_out_scores"]["mean"]
        assert set(mean) == {"auroc", "balanced_accuracy", "ece", "ece_floor", "log_loss"}
        assert mean["balanced_accuracy"] > 0.8
        assert model.fit_report["chosen"]["ensembler"] == chosen
        assert model.fit_report["versions"]["deep"]
    unlabeled = fit(none_of(AB)).fit_report
    assert unlabeled["training_datasets"]["a"] == {"n": 120, "n_consistent": None, "prior": None, "licence": None}
    assert unlabeled["left_out_scores"] == {"datasets": {}, "mean": {}}


def test_p_of_two_datasets_by_hand():
    """The average of both, and the line that both, as that average scores them, imply."""
    new = small_votes(("new",), seed=3)
    codes = np.repeat([0, 1], 120)
    rows = LabeledRows(AB.votes, np.empty((240, 0)), np.ones(240), AB.labels, codes)
    both, most = fit_average(rows), np.log(999)
    seen = []
    for d in (0, 1):
        one = rows.only(d)
        z = np.clip(both.log_odds(one.votes), -most, most)
        seen.append(HeldOutData(z, (one.labels == 1) * 1.0, (one.labels == 0) * 1.0))
    slope, rule = learn_line(seen)
    z = slope * np.clip(both.log_odds(new.votes), -most, most)
    prior = rule.predict(profile_of(z, np.ones(120)))
    model = fit(AB)
    assert model.score(new) == pytest.approx(expit(prior.intercept + prior.slope * z), abs=1e-6)
    assert model.estimate_prior(new).estimate == pytest.approx(prior.estimate, abs=1e-6)
    known = model.score(new, prior=0.3)
    assert known.mean() == pytest.approx(0.3, abs=0.005)
    assert np.ptp(logit(known) - z) < 1e-6


def test_p_of_a_stack_is_that_of_the_estimator():
    """Model and `Stack` say the same, with soft scores and without."""
    new = small_votes(("new",), seed=3)
    for soft, of_new in ((None, None), (soft_scores(ABCD), soft_scores(new))):
        rows = ABCD if soft is None else ABCD.with_answers(soft)
        answers = ABCD.votes if soft is None else rows.answers
        answer_map = None if soft is None else AnswerMap.fit(rows)
        stack = Stack().fit(answers, ABCD.labels, groups=ABCD.datasets, answer_map=answer_map)
        model = fit(ABCD, scores=soft)
        new_answers = new.votes if soft is None else model.select(model.beside(new, of_new))
        result = stack.score(new_answers)
        assert model.score(new, scores=of_new) == pytest.approx(result.p_consistent, abs=1e-12)
        assert model.intervals(new, scores=of_new) == pytest.approx(np.column_stack(result.interval()), abs=1e-12)
        assert model.score_names == (() if soft is None else ("score 1", "score 2"))


@pytest.mark.parametrize("make", [lambda: fit(AB), lambda: fit(ABCD), lambda: fit(ABCD, **QUICK)])
def test_each_dataset_is_scored_by_itself(make):
    """Datasets in one matrix, their rows mixed, as one after the other."""
    model = make()
    votes = small_votes(("x", "y", "z"), seed=4)
    votes = votes.rows(np.random.default_rng(0).permutation(len(votes.labels)))
    whole, bounds = model.score(votes), model.intervals(votes)
    for name in "xyz":
        of = votes.datasets == name
        np.testing.assert_allclose(whole[of], model.score(votes.rows(of)), rtol=0, atol=1e-12)
        np.testing.assert_allclose(whole[of], model.scores_of(votes.rows(of)).p_consistent, rtol=0, atol=1e-12)
        np.testing.assert_allclose(bounds[of], model.intervals(votes.rows(of)), rtol=0, atol=1e-12)
    streamed = model.score(votes, streamed=True)
    one_by_one = [model.score(votes.votes[[i]], streamed=True)[0] for i in range(20)]
    np.testing.assert_allclose(streamed[:20], one_by_one, rtol=0, atol=1e-12)
    expected = expit(model.prior.line(logit(model.scores_of(votes.votes, streamed=True).p_uniform)))
    np.testing.assert_allclose(streamed, expected, rtol=0, atol=1e-9)


def test_no_rows_are_refused():
    """Whatever the method."""
    nothing = AB.rows(np.zeros(240, dtype=bool))
    for model in (fit(AB), fit(ABCD), fit(ABCD, **QUICK)):
        with pytest.raises(InputError, match=r"^`votes` must have at least one row"):
            model.score(nothing)


def test_rows_without_a_label_change_nothing():
    """Beside labeled ones of any dataset; their order neither, nor that of all."""
    more = with_labels(small_votes(tuple("abcdef")), np.arange(720) < 480)
    shuffled = more.rows(np.random.default_rng(0).permutation(720))
    p = table_of(fit(more))
    assert np.array_equal(table_of(fit(more.rows(more.labels >= 0))), p)
    assert np.array_equal(table_of(fit(shuffled)), p)
    two = with_labels(small_votes(tuple("abc")), np.arange(360) < 240)
    assert np.array_equal(table_of(fit(two)), table_of(fit(two.rows(np.arange(360)[::-1]))))


def test_a_target_is_corrected_by_its_labels():
    """Where judges are mostly wrong on it, P moves; the others alone are learned from."""
    votes = few_of(ABCD, "d", 60)
    wrong = np.where(votes.datasets == "d", np.where(votes.labels == -1, -1, 1 - votes.labels), votes.labels)
    odd = VoteMatrix(votes.votes, votes.item_ids, votes.voter_names, votes.datasets, wrong)
    mine, others = fit(odd, target="d"), fit(ABC)
    new = ABCD.rows(ABCD.datasets == "d")
    of_rows = mine.blend.contexts(mine.blend.raw(rows_of(new)), np.ones(120))
    np.testing.assert_allclose(mine.contexts, of_rows, rtol=0, atol=1e-12)  # summed over patterns, and over rows
    backwards = fit(odd.rows(np.arange(len(odd.labels))[::-1]), target="d")
    assert np.array_equal(backwards.contexts, mine.contexts)  # to the last bit, whatever the order of the rows
    assert mine.cells.groups == ("a", "b", "c")
    assert abs(logit(mine.score(new))).mean() < 0.6 * abs(logit(others.score(new))).mean()
    with pytest.raises(InputError, match="`prior` must not be given: the model was corrected"):
        mine.score(new, prior=0.5)


def rows_of(votes):
    """Return votes as rows."""
    return LabeledRows(votes.votes, np.empty((len(votes.labels), 0)), np.ones(len(votes.labels)), votes.labels, 0)


def test_a_stack_with_scores_and_a_target():
    """Scores of the target's own rows are looked at too."""
    votes, soft = few_of(ABCD, "d", 20), soft_scores(ABCD)
    model = fit(votes, scores=soft, target="d", score_names=["one", "two"])
    of = votes.datasets == "d"
    rows = votes.with_answers(soft, ["one", "two"])
    others = fit(rows.rows(~of)).adapted(rows.rows(of), votes.labels[of], target="d")
    p = model.score(votes.rows(of), scores=soft[of])
    assert np.array_equal(p, others.score(rows.rows(of)))
    assert model.score_names == ("one", "two")
    with pytest.raises(InputError, match=r"`votes` must have a column for every voter .* named 'one'"):
        model.score(votes)


@pytest.mark.parametrize(
    ("votes", "options", "message"),
    [
        (A, {"target": "z"}, r"^`target` must be a dataset of the votes\. Got 'z'\.$"),
        (AB, {"ensembler": "Stack"}, r"^`ensembler` must not be 'Stack' of fewer than 3 labeled datasets\. Got 2\.$"),
        (ABC, {"ensembler": ["Stack", "LDA"]}, "^`ensembler` must be 'Stack' alone"),
        (ABC, {"ensembler": "Average", "sizes": [3]}, "^`ensembler` must be 'Average' alone"),
        (
            none_of(A),
            {"ensembler": "Average"},
            "^`votes` must have labeled rows of other datasets",
        ),
        (none_of(A), QUICK, "^`votes` must have labeled rows of other datasets"),
        (few_of(A, "a", 40), QUICK, "^`votes` must have labeled rows of other datasets"),
        (ABC.rows((ABC.datasets != "c") | (ABC.labels == 1)), {}, "Got only 1 in dataset 'c'"),
        (ABC, {"scores": np.zeros((2, 1))}, r"^`scores` must have 360 entries, one a row\. Got 2\.$"),
        (ABC, {"scores": np.zeros((360, 2)), "score_names": ["a"]}, r"^`score_names` must be one a column"),
        (ABC, {"recipe": "mine"}, "^`recipe` must be one of deep, paper"),
        (ABC, {"sizes": []}, "^`sizes` must hold"),
        (ABC, {"calibrator": ["platt", "x"]}, "^`calibrator` must be one of .*none.*Got 'x'"),
        (ABC, {"ensembler": "Nothing"}, "^`ensembler` must be one of"),
    ],
)
def test_what_cannot_be_fitted_is_refused(votes, options, message):
    """In one line."""
    with pytest.raises(InputError, match=message):
        fit(votes, **options)


def test_groups_are_one_a_row():
    """A fit that shares work takes what rows are left out with."""
    with pytest.raises(InputError, match=r"^`groups` must have 360 entries, one a row\. Got 1\.$"):
        fit_with_options(ABC, ChainOptions(), SharedWork(groups=["a"]))


def test_groups_are_left_out_together():
    """Two of four datasets in one group: three are left out, as if they were families."""
    groups = np.where(np.isin(ABCD.datasets, ["a", "b"]), "ab", ABCD.datasets)
    model = fit_with_options(ABCD, ChainOptions(), SharedWork(groups=groups))
    assert list(model.left_out) == ["ab", "c", "d"]
    families = fit(linked(ABCD))
    assert list(families.left_out) == ["a", "c", "d"]
    assert np.array_equal(table_of(families), table_of(model))


def test_few_datasets_decide_in_context(tmp_path):
    """One threshold a dataset, near its mean P, in frames, files and the adapted model; a single text has its own.

    Of a dataset that is mostly 0 the threshold is low, where the training datasets are balanced.
    """
    of_c = np.flatnonzero(ABC.datasets == "c")
    rows = ABC.rows(np.sort(np.concatenate([of_c[ABC.labels[of_c] == 0], of_c[ABC.labels[of_c] == 1][:10]])))
    for votes in (A, AB):
        model = fit(votes)
        outcome = model.scores_of(rows)
        even, mean = outcome.prior.threshold, logit(outcome.p_consistent.mean())
        assert min(even, mean) < logit(outcome.threshold) < max(even, mean)
        assert logit(outcome.threshold) == pytest.approx(0.25 * even + 0.75 * mean, abs=0.05)
        frame = model.score_frame(rows)
        assert (frame["threshold"] == outcome.threshold).all()
        voted = frame["n_votes"] > 0
        assert (frame["decision"][voted] == outcome.decisions[voted]).all()
        frame_of(rows).to_parquet(tmp_path / "votes.parquet")
        result = score_file(model, [str(tmp_path / "votes.parquet")], tmp_path / "scores.parquet", ScoreOptions())
        assert result.thresholds["c"] == outcome.threshold
        assert model.adapted(rows, target="c").threshold() == outcome.threshold
        assert model.threshold() != outcome.threshold
        assert model.deciding("accuracy").scores_of(rows).threshold == pytest.approx(0.5)


def test_scores_of_left_out_datasets_are_of_that_rule():
    """The report of a fit says what the model would have decided on each training dataset."""
    model = fit(AB)
    only_b = fit(AB.rows(AB.datasets == "b"))
    of_a = AB.rows(AB.datasets == "a")
    decided, y = only_b.scores_of(of_a).decisions, of_a.labels
    accuracy = (decided[y == 1].mean() + (~decided[y == 0]).mean()) / 2
    assert model.fit_report["left_out_scores"]["datasets"]["a"]["balanced_accuracy"] == pytest.approx(
        accuracy, abs=0.02
    )


@pytest.mark.parametrize("n_labels", [20, 60])
def test_labels_of_the_target_weigh_judges_in_the_model_that_is_kept(n_labels, tmp_path):
    """From thirty on as one more part, which the file holds; P, threshold and single votes are the same when read."""
    model = fit(few_of(ABC, "c", n_labels), target="c")
    rows = ABC.rows(ABC.datasets == "c")
    names = [part.name for part in model.blend.parts]
    assert names == (["average", "labels"] if n_labels == 60 else ["average"])
    result = model.scores_of(rows)
    model.save(tmp_path / "model.json")
    read = load(tmp_path / "model.json")
    assert np.array_equal(read.scores_of(rows).p_consistent, result.p_consistent)
    assert np.array_equal(read.score(rows, streamed=True), result.p_consistent)
    assert logit(result.threshold) == pytest.approx(logit(result.p_consistent.mean()), abs=1e-6)
    assert read.scores_of(rows).share == read.prior
