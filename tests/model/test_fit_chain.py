"""A chain that was asked for: a table or a fit to be repeated, its prior, its intervals, its explanations."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

from deep.exceptions import InputError
from deep.model import FixedPrior, LearnedPrior, Model, fit
from deep.records import VoteMatrix
from tests.model.fitted import QUICK, small_votes, table_of


@pytest.fixture(scope="module")
def votes():
    """Return votes on four datasets."""
    return small_votes(n_voters=5)


@pytest.fixture(scope="module")
def model(votes):
    """Return a model of three of five voters."""
    return fit(votes, **QUICK)


def test_the_table_is_the_chain(model):
    """Every pattern has the log-odds that the chain, fitted again, gives it; they rise with the ensembler's own."""
    scorer, patterns = model.chain, model.chain.cells.joint.patterns
    assert np.array_equal(scorer.chain.predict(patterns), scorer.predict(patterns))
    assert (np.diff(scorer.predict(patterns)[np.argsort(scorer.chain.uncalibrated(patterns))]) >= 0).all()
    assert model.scores_of(patterns, streamed=True).p_uniform == pytest.approx(scorer.predict(patterns), abs=1e-12)
    assert model.scores_of(patterns).own == pytest.approx(scorer.chain.uncalibrated(patterns), abs=1e-12)
    assert (model.chain.spec.ensembler, model.chain.spec.calibrator) == ("LogisticRegression", "platt")


def test_the_same_votes_give_the_same_model_in_any_order(votes, model):
    """Nothing depends on the order of the rows or on what was fitted before."""
    shuffled = votes.rows(np.random.default_rng(1).permutation(len(votes.votes)))
    again = fit(shuffled, **QUICK)
    assert np.array_equal(table_of(again), table_of(model))
    assert np.array_equal(again.intervals(votes), model.intervals(votes))


def test_a_frame_a_matrix_and_an_array_score_alike(votes, model):
    """By name where there are names, in the model's order where there are none."""
    one = votes.rows(votes.datasets == "a")
    p = model.score(one)
    frame = pd.DataFrame(one.votes, columns=list(one.voter_names))
    assert np.array_equal(model.score(frame.iloc[:, ::-1]), p)
    assert np.array_equal(model.score(model.select(one)), p)
    assert np.array_equal(model.score(model.select(one).tolist()), p)


def test_a_voter_without_a_column_counts_as_no_vote_where_allowed(votes, model):
    """For a frame too."""
    first = model.voter_names[0]
    one = votes.rows(votes.datasets == "a")
    frame = pd.DataFrame(one.votes, columns=list(one.voter_names))
    blank = model.score(frame.assign(**{first: -1}))
    assert np.array_equal(model.score(frame.drop(columns=first), allow_missing=True), blank)
    names = [name for name in one.voter_names if name != first]
    some = VoteMatrix(frame[names], one.item_ids, names, one.datasets, one.labels)
    assert np.array_equal(model.score(some, allow_missing=True), blank)
    with pytest.raises(InputError, match=f"Got none named '{first}'"):
        model.score(some)


def test_a_given_prior_takes_the_place_of_the_estimated_one(votes, model):
    """The log-odds at equal class weights, moved alike for all rows until the mean P is the prior."""
    uniform = logit(model.scores_of(votes.votes[:, [0, 1, 2]], prior=0.5).p_uniform)
    for prior in (0.1, 0.5, 0.9):
        p = model.score(votes.votes[:, [0, 1, 2]], prior=prior)
        assert p.mean() == pytest.approx(prior, abs=0.01)
        assert np.ptp(logit(p) - uniform) < 1e-6
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError, match="strictly between 0 and 1"):
            model.score(votes, prior=wrong)


@pytest.mark.parametrize("datasets", ["a", "ab", "abcd"])
def test_what_the_prior_is_learned_from(datasets):
    """Datasets left out; of fewer than three, those that the chain has seen."""
    result = fit(small_votes(tuple(datasets)), **QUICK)
    assert isinstance(result.prior_rule, LearnedPrior)
    assert len(result.prior_rule.priors_) == len(datasets)
    assert (len(result.fit_report["notes"]) > 0) == (len(datasets) < 3)
    if len(datasets) < 3:
        assert result.left_out == {}
        assert f"{len(datasets)} training dataset(s)" in result.fit_report["notes"][0]
        low, high = result.intervals(small_votes(tuple(datasets))).T
        assert (high - low).mean() > 0.3


def test_more_than_ten_voters_are_fitted_again():
    """There is no table; intervals come from fits without each dataset."""
    votes = small_votes(n_voters=12)
    model = fit(votes, **{**QUICK, "sizes": [11]})
    assert not model.has_table
    assert model.chain.table is None
    low, high = model.intervals(votes).T
    p = model.score(votes)
    assert ((low >= 0) & (low <= p) & (p <= high) & (high <= 1)).all()
    assert 0 < (high - low).mean() < 1
    selected = model.select(votes)
    np.testing.assert_allclose(
        model.chain.predict(selected), model.scores_of(selected, streamed=True).p_uniform, rtol=0, atol=1e-9
    )
    assert model.scores_of(selected).own.shape == p.shape


def test_the_papers_recipe_estimates_no_prior(votes):
    """Folds of rows, Platt on the rows of the fit, all rows alike; P stands as its calibrator gives it."""
    model = fit(votes, recipe="paper", sizes=[3], ensembler="LogisticRegression")
    scorer = model.chain
    assert (scorer.spec.calibrator, scorer.cells.weighting, scorer.cells.group_by) == ("platt", "uniform", "fold")
    assert model.cells.groups == tuple(model.left_out) == ("a", "b", "c", "d")
    assert isinstance(model.prior_rule, FixedPrior)
    assert model.score(votes) == pytest.approx(scorer.predict(model.select(votes)), abs=1e-9)
    assert model.estimate_prior(votes).warning == (
        "The paper's recipe estimates no prior: P stands as its calibrator gives it."
    )


def test_datasets_with_common_documents_are_left_out_together():
    """They count once."""
    votes = small_votes(("a", "b", "c", "d", "e"))
    documents = [f"{'ab' if d in 'ab' else d}/{i}" for d, i in zip(votes.datasets, np.tile(range(120), 5), strict=True)]
    linked = VoteMatrix(votes.votes, votes.item_ids, votes.voter_names, votes.datasets, votes.labels, documents)
    kept = fit(linked, **QUICK).chain.cells
    assert kept.n_units == 4
    assert kept.training(without=int(kept.units[0])).cells.groups == ("c", "d", "e")


def test_shapley_values_sum_to_what_the_votes_change(model: Model):
    """And a voter without a vote adds nothing."""
    for row in ([1, 0, 1], [1, -1, 0], [-1, -1, -1]):
        result = model.explain(row)
        p, nothing = model.score(np.array([row, [-1, -1, -1]]), streamed=True)
        change = np.log(p / (1 - p)) - np.log(nothing / (1 - nothing))
        assert sum(c.shapley for c in result) == pytest.approx(change, abs=1e-9)
        assert all(c.without == c.shapley == 0 for c in result if c.vote == -1)


def test_what_a_vote_adds_is_what_p_loses_without_it(model: Model):
    """For votes by name too; a name that the model has not is refused."""
    result = {c.voter: c for c in model.explain({model.voter_names[0]: 1, model.voter_names[2]: 0})}
    p, less = model.score(np.array([[1, -1, 0], [-1, -1, 0]]), streamed=True)
    assert result[model.voter_names[0]].without == pytest.approx(np.log(p / (1 - p)) - np.log(less / (1 - less)))
    assert result[model.voter_names[1]].vote == -1
    with pytest.raises(InputError, match="Got 'nobody'"):
        model.explain({"nobody": 1})
    with pytest.raises(InputError, match="must have 3 columns"):
        model.explain([1, 1])


def test_many_votes_have_no_shapley_values():
    """There are too many sets of them; what each takes away is still told."""
    model = fit(small_votes(n_voters=13), **{**QUICK, "sizes": [13]})
    result = model.explain([1] * 13)
    assert all(c.shapley is None and c.without > 0 for c in result)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": [0]}, "`sizes` must hold"),
        ({"sizes": [1], "ensembler": "LabelModel"}, "`ensembler` must name one that can be fitted"),
    ],
)
def test_what_cannot_be_fitted_is_refused(votes, options, message):
    """In one line."""
    with pytest.raises(InputError, match=message):
        fit(votes, **{**QUICK, **options})
