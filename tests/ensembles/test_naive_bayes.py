"""Naive Bayes: parity with scikit-learn, and what an abstain means."""

import numpy as np
import pytest
from sklearn import naive_bayes

from deep.ensembles import BernoulliNB, MultinomialNB
from deep.features import vote_tokens
from deep.model import RECIPES, chain_tasks, search, training_set
from deep.records import VoteMatrix
from tests.contract.test_ensemblers import make_votes, make_weights, patterns

ALPHAS = [0.01, 1.0, 500.0]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_bernoulli_equals_scikit_learns_on_complete_votes(alpha: float) -> None:
    """Weighted P of every complete pattern is scikit-learn's."""
    (X, y), w = make_votes(abstains=0.0), make_weights()
    complete = np.unique(X, axis=0)
    theirs = naive_bayes.BernoulliNB(alpha=alpha).fit(X, y, sample_weight=w)
    got = BernoulliNB(alpha=alpha).fit(X, y, w).predict_proba(complete)
    np.testing.assert_allclose(got, theirs.predict_proba(complete), rtol=0, atol=1e-13)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_multinomial_equals_scikit_learns_on_repeated_tokens(alpha: float) -> None:
    """P of every pattern is scikit-learn's on the rows repeated by weight."""
    X, y = make_votes()
    w = np.random.default_rng(0).integers(1, 6, len(y))
    bags = np.repeat(np.hstack([X == 1, X == 0]), w, axis=0)
    theirs = naive_bayes.MultinomialNB(alpha=alpha).fit(bags, np.repeat(y, w))
    got = MultinomialNB(alpha=alpha).fit(X, y, w).predict_proba(patterns())
    np.testing.assert_allclose(got, theirs.predict_proba(vote_tokens(patterns())), rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_multinomial_without_zeros_equals_scikit_learns_on_the_votes_themselves(alpha: float) -> None:
    """Weighted P of every complete pattern is scikit-learn's on the matrix of zeros and ones, as the paper has it."""
    (X, y), w = make_votes(abstains=0.0), make_weights()
    complete = np.unique(X, axis=0)
    theirs = naive_bayes.MultinomialNB(alpha=alpha).fit(X, y, sample_weight=w)
    got = MultinomialNB(alpha=alpha, zeros=False).fit(X, y, w).predict_proba(complete)
    np.testing.assert_allclose(got, theirs.predict_proba(complete), rtol=0, atol=1e-12)


@pytest.mark.parametrize("recipe", ["paper", "deep"])
def test_the_recipe_says_whether_a_vote_for_0_is_a_token(recipe: str) -> None:
    """The paper's chain is scikit-learn's on the matrix of zeros and ones; deep's counts both votes."""
    X, y = make_votes(abstains=0.0)
    votes = VoteMatrix(X, [str(i) for i in range(len(y))], list("abcde"), ["one"] * len(y), y)
    tasks = chain_tasks(
        training_set(votes, RECIPES[recipe]),
        RECIPES[recipe],
        sizes=["all"],
        ensemblers=["MultinomialNB"],
        calibrators=["none"],
    )
    result = search(tasks, X)[0]
    assert result.params.get("zeros", True) is (recipe == "deep")
    seen = X if recipe == "paper" else vote_tokens(X)
    theirs = naive_bayes.MultinomialNB(alpha=result.params["alpha"]).fit(seen, y)
    if recipe == "paper":  # deep's weighs the classes alike
        np.testing.assert_allclose(result.p, theirs.predict_proba(seen)[:, 1], rtol=0, atol=1e-9)
    assert (np.corrcoef(result.p, theirs.predict_proba(seen)[:, 1])[0, 1]) > 0.99


def test_bernoulli_learns_from_votes_cast_alone() -> None:
    """Of label 1 the voter said 1 on 5 of 6 votes, of label 0 on 1 of 2: (6/8) / (2/4) = 1.5, prior odds 9 / 3."""
    model = BernoulliNB().fit([[1], [0], [-1], [1], [0], [-1]], [1, 1, 1, 0, 0, 0], [5, 1, 3, 1, 1, 1])
    odds = np.array([3 * 1.5, 3 * (2 / 8) / (2 / 4), 3])
    np.testing.assert_allclose(model.predict_proba([[1], [0], [-1]])[:, 1], odds / (1 + odds), atol=1e-12)


def test_multinomial_hears_who_speaks_in_which_class() -> None:
    """Among voters of equal votes, the one that is heard mostly on label 1 speaks for label 1 with either vote."""
    X = [[1, -1], [0, -1], [-1, 1], [-1, 0]]
    model = MultinomialNB().fit(X, [1, 1, 0, 0], [50] * 4)
    assert model.predict([[1, -1], [0, -1], [-1, 1], [-1, 0]]).tolist() == [1, 1, 0, 0]
