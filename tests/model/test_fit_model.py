"""Fitting a model: the chain that loo recommends, as a table, with what is needed to fit it again."""

import numpy as np
import pandas as pd
import pytest

from deep.calibration import evaluate
from deep.exceptions import InputError
from deep.experiments.loo import LooOptions, leave_one_dataset_out
from deep.model import Model, fit
from deep.records import VoteMatrix
from tests.model.fitted import QUICK, small_votes


@pytest.fixture(scope="module")
def votes():
    """Return votes on four datasets."""
    return small_votes(n_voters=5)


@pytest.fixture(scope="module")
def model(votes):
    """Return a model of three of five voters."""
    return fit(votes, **QUICK)


def test_it_is_the_best_single_chain_of_loo(votes):
    """Fitted on all datasets but one, it is loo's row of least inner log loss, and does there what that row says."""
    settings = LooOptions(sizes=[3, 5], ensemblers=["LogisticRegression", "LDA"], calibrators=["platt", "beta"])
    found = leave_one_dataset_out(votes, "b", settings=settings)
    names = ["LogisticRegression", "LDA"], ["platt", "beta", "none"]
    model = fit(votes.rows(votes.datasets != "b"), sizes=[3, 5], ensembler=names[0], calibrator=names[1])
    best = min(found.results["rows"], key=lambda row: row["inner_log_loss"])
    assert (model.spec.ensembler, model.spec.calibrator) == (best["ensembler"], best["calibrator"])
    assert list(model.voter_names) == best["prompts"]
    held = votes.rows(votes.datasets == "b")
    measured = evaluate(held.labels, model.score(held))
    for name in ("log_loss", "brier", "ece", "auroc"):
        assert measured[name] == pytest.approx(best[name], abs=1e-12)


def test_the_table_is_the_chain(model):
    """Every pattern has the probability that the chain, fitted again, gives it."""
    patterns = model.kept.joint.patterns
    assert np.array_equal(model.chain.predict(patterns), model.predict(patterns))


def test_the_same_votes_give_the_same_model_in_any_order(votes, model):
    """Nothing depends on the order of the rows or on what was fitted before."""
    shuffled = votes.rows(np.random.default_rng(1).permutation(len(votes.votes)))
    again = fit(shuffled, **QUICK)
    assert np.array_equal(again.table.p, model.table.p)
    assert np.array_equal(again.table.low, model.table.low)


def test_a_frame_a_matrix_and_an_array_score_alike(votes, model):
    """By name where there are names, in the model's order where there are none."""
    p = model.score(votes)
    frame = pd.DataFrame(votes.votes, columns=list(votes.voter_names))
    assert np.array_equal(model.score(frame.iloc[:, ::-1]), p)
    assert np.array_equal(model.score(model.select(votes)), p)
    assert np.array_equal(model.score(model.select(votes).tolist()), p)


def test_a_voter_without_a_column_counts_as_no_vote_where_allowed(votes, model):
    """For a frame too."""
    first = model.voter_names[0]
    frame = pd.DataFrame(votes.votes, columns=list(votes.voter_names))
    blank = model.score(frame.assign(**{first: -1}))
    assert np.array_equal(model.score(frame.drop(columns=first), allow_missing=True), blank)
    names = [name for name in votes.voter_names if name != first]
    some = VoteMatrix(frame[names], votes.example_ids, names, votes.datasets, votes.labels)
    assert np.array_equal(model.score(some, allow_missing=True), blank)
    with pytest.raises(InputError, match=f"Got none named '{first}'"):
        model.score(some)


def test_another_prior_moves_the_log_odds(votes, model):
    """By the log-odds of the prior, alike for all rows."""
    p, moved = model.score(votes), model.score(votes, prior=0.9)
    np.testing.assert_allclose(moved / (1 - moved), 9 * p / (1 - p))
    np.testing.assert_allclose(model.score(votes, prior=0.5), p, rtol=1e-12)
    low, high = model.intervals(votes, prior=0.9).T
    assert ((low <= moved) & (moved <= high) & (low >= model.intervals(votes)[:, 0])).all()
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError, match="strictly between 0 and 1"):
            model.score(votes, prior=wrong)


def test_intervals_hold_p(votes, model):
    """They are within [0, 1] and not trivial."""
    low, high = model.intervals(votes).T
    p = model.score(votes)
    assert ((low <= p) & (p <= high)).all()
    assert 0 < (high - low).mean() < 1


@pytest.mark.parametrize("datasets", [("a",), ("a", "b")])
def test_few_datasets_give_no_interval(datasets):
    """The reason is in the notes."""
    votes = small_votes(datasets)
    model = fit(votes, **QUICK)
    assert model.transfer is None
    assert np.isnan(model.intervals(votes)).all()
    assert f"{len(datasets)} training dataset(s)" in model.report["notes"][0]
    assert np.array_equal(model.chain.predict(model.kept.joint.patterns), model.predict(model.kept.joint.patterns))


def test_more_than_ten_voters_are_fitted_again():
    """There is no table; intervals come from fits without each dataset."""
    votes = small_votes(n_voters=12)
    model = fit(votes, **{**QUICK, "sizes": [11]})
    assert model.table is None
    low, high = model.intervals(votes).T
    p = model.score(votes)
    assert ((low >= 0) & (low <= p) & (p <= high) & (high <= 1)).all()
    assert 0 < (high - low).mean() < 1
    np.testing.assert_allclose(model.chain.predict(model.select(votes)), p, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.score(votes, prior=0.5), p)
    assert model.uncalibrated(model.select(votes)).shape == p.shape


def test_the_papers_recipe(votes):
    """Folds of rows, Platt on the rows of the fit, and intervals by dataset all the same."""
    model = fit(votes, recipe="paper", sizes=[3], ensembler="LogisticRegression")
    assert (model.spec.calibrator, model.kept.weighting, model.kept.group_by) == ("platt", "uniform", "fold")
    assert model.cells.groups == ("a", "b", "c", "d")
    assert set(model.transfer.shifts) == {"a", "b", "c", "d"}
    assert np.array_equal(model.chain.predict(model.kept.joint.patterns), model.predict(model.kept.joint.patterns))


def test_datasets_with_common_documents_are_left_out_together():
    """They count once."""
    votes = small_votes(("a", "b", "c", "d", "e"))
    documents = [f"{'ab' if d in 'ab' else d}/{i}" for d, i in zip(votes.datasets, np.tile(range(120), 5), strict=True)]
    linked = VoteMatrix(votes.votes, votes.example_ids, votes.voter_names, votes.datasets, votes.labels, documents)
    model = fit(linked, **QUICK)
    assert model.kept.n_units == 4
    assert set(model.transfer.shifts) == set("abcde")
    assert model.kept.training(without=int(model.kept.units[0])).cells.groups == ("c", "d", "e")


def test_the_report_says_what_it_was_learned_from(model):
    """Sizes and priors of the datasets, and scores of fits without them."""
    rows = model.report["training_datasets"]
    assert {name: row["n"] for name, row in rows.items()} == dict.fromkeys("abcd", 120)
    assert all(0 < row["prior"] < 1 for row in rows.values())
    assert model.report["left_out"]["mean"]["balanced_accuracy"] > 0.8
    assert model.report["versions"]["deep"]


def test_rows_without_a_label_are_left_out(votes, model):
    """They change nothing."""
    labels = np.concatenate([votes.labels, [-1] * 5])
    ids = [*votes.example_ids, *range(5)]
    more = VoteMatrix(
        np.vstack([votes.votes, votes.votes[:5]]), ids, votes.voter_names, [*votes.datasets, *"aaaaa"], labels
    )
    assert np.array_equal(fit(more, **QUICK).table.p, model.table.p)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ensembler": "Nothing"}, "`ensembler` must be one of"),
        ({"calibrator": ["platt", "x"]}, "`calibrator` must be one of .*none.*Got 'x'"),
        ({"recipe": "mine"}, "`recipe` must be one of deep, paper"),
        ({"sizes": []}, "`sizes` must hold"),
        ({"sizes": [0]}, "`sizes` must hold"),
        ({"sizes": [1], "ensembler": "LabelModel"}, "`ensembler` must name one that can be fitted"),
    ],
)
def test_what_cannot_be_fitted_is_refused(votes, options, message):
    """In one line."""
    with pytest.raises(InputError, match=message):
        fit(votes, **{**QUICK, **options})


def test_labels_that_teach_nothing_are_refused(votes):
    """None at all, or of one class in a dataset."""
    unknown = VoteMatrix(votes.votes, votes.example_ids, votes.voter_names, votes.datasets, np.full(480, -1))
    with pytest.raises(InputError, match="must have labeled rows"):
        fit(unknown, **QUICK)
    keep = (votes.datasets != "c") | (votes.labels == 1)
    with pytest.raises(InputError, match=r"Got only 1 in dataset 'c'"):
        fit(votes.rows(keep), **QUICK)


def test_shapley_values_sum_to_what_the_votes_change(model: Model):
    """And a voter without a vote adds nothing."""
    for row in ([1, 0, 1], [1, -1, 0], [-1, -1, -1]):
        found = model.explain(row)
        p, nothing = model.predict(np.array([row])), model.predict(np.array([[-1, -1, -1]]))
        change = np.log(p / (1 - p)) - np.log(nothing / (1 - nothing))
        assert sum(c.shapley for c in found) == pytest.approx(float(change[0]), abs=1e-12)
        assert all(c.without == c.shapley == 0 for c in found if c.vote == -1)


def test_what_a_vote_adds_is_what_p_loses_without_it(model: Model):
    """For votes by name too; a name that the model has not is refused."""
    found = {c.voter: c for c in model.explain({model.voter_names[0]: 1, model.voter_names[2]: 0})}
    p, less = model.predict(np.array([[1, -1, 0], [-1, -1, 0]]))
    assert found[model.voter_names[0]].without == pytest.approx(np.log(p / (1 - p)) - np.log(less / (1 - less)))
    assert found[model.voter_names[1]].vote == -1
    with pytest.raises(InputError, match="Got 'nobody'"):
        model.explain({"nobody": 1})
    with pytest.raises(InputError, match="must have 3 columns"):
        model.explain([1, 1])


def test_many_votes_have_no_shapley_values():
    """There are too many sets of them; what each takes away is still told."""
    model = fit(small_votes(n_voters=13), **{**QUICK, "sizes": [13]})
    found = model.explain([1] * 13)
    assert all(c.shapley is None and c.without > 0 for c in found)
