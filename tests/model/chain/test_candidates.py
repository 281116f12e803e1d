"""Candidate chains: calibrated on rows their fits never saw, chosen on training data alone."""

import numpy as np
import pytest

from deep.calibration import CALIBRATORS, Platt
from deep.model import RECIPES, ChainTask, VoterSubset, recommend, training_set
from deep.records import VoteMatrix
from tests.model.chain.test_training import random_votes

SUBSET = VoterSubset((0, 2, 3), "rfe")


@pytest.fixture(scope="module")
def votes():
    """Return labeled votes of three datasets."""
    return random_votes()


def candidates(votes, *, recipe="deep", ensembler="LogisticRegression", calibrators=("platt", "isotonic")):
    """Return the candidates of one ensembler on three voters, scored on the votes' own patterns."""
    training = training_set(votes, RECIPES[recipe])
    task = ChainTask(ensembler, SUBSET, training, RECIPES[recipe], ("none", *calibrators), 0)
    return task.run(training.cells.patterns).candidates


def test_uncalibrated_comes_first_then_every_calibrator(votes):
    """One candidate a calibrator, after the ensembler's own probabilities, each with its voters' names."""
    result = candidates(votes, calibrators=tuple(CALIBRATORS))
    assert [c.calibrator for c in result] == [None, *CALIBRATORS]
    assert {c.prompts for c in result} == {("v0", "v2", "v3")}
    assert all(((c.p > 0) & (c.p < 1)).all() for c in result)


def test_calibrator_of_the_deep_recipe_sees_only_out_of_fold_scores(votes):
    """Platt's map equals the one fitted on each row's score by the fit that left its dataset out."""
    from deep.ensembles import LogisticRegression

    training = training_set(votes, RECIPES["deep"]).select(SUBSET.columns)
    raw, platt = candidates(votes, calibrators=("platt",))
    scores, labels, weights = [], [], []
    for group in range(3):
        model = LogisticRegression(**raw.params).fit(*training.without_fold(group))
        pattern, label = np.nonzero(training.cells.counts[:, group])
        scores.append(model.predict_proba(training.cells.patterns[pattern])[:, 1])
        labels.append(label)
        weights.append(training.weights()[pattern, group, label])
    expected = CALIBRATORS["platt"]().fit(np.concatenate(scores), np.concatenate(labels), np.concatenate(weights))
    assert platt.p == pytest.approx(expected.transform(raw.p), abs=1e-9)


def test_calibrator_of_the_papers_recipe_sees_training_scores(votes):
    """The paper calibrates on the rows the ensembler was fitted on, unweighted; its Platt scaling on P itself."""
    from deep.ensembles import LogisticRegression

    training = training_set(votes, RECIPES["paper"]).select(SUBSET.columns)
    raw, platt = candidates(votes, recipe="paper", calibrators=("platt",))
    X, y, w = training.table()
    assert w.sum() == len(votes.labels)
    scores = LogisticRegression(**raw.params).fit(X, y, w).predict_proba(X)[:, 1]
    assert platt.p == pytest.approx(Platt(on_probability=True).fit(scores, y, w).transform(raw.p), abs=1e-9)
    assert platt.p != pytest.approx(Platt().fit(scores, y, w).transform(raw.p), abs=1e-4)


@pytest.mark.parametrize("recipe", RECIPES)
def test_inner_losses_tell_calibrators_apart(votes, recipe):
    """Each is judged on folds that it was not fitted on, under either recipe."""
    result = candidates(votes, recipe=recipe, calibrators=("platt", "isotonic", "histogram"))
    assert len({c.inner_log_loss for c in result}) == 4


def test_inner_scores_are_cross_fitted(votes):
    """Isotonic regression looks better on the folds it was fitted on than its inner log loss says."""
    raw, isotonic = candidates(votes, calibrators=("isotonic",))
    assert np.isfinite([raw.inner_log_loss, isotonic.inner_log_loss]).all()
    assert isotonic.inner_log_loss != raw.inner_log_loss


def test_test_labels_cannot_change_a_candidate(votes):
    """The target enters as vote patterns only: other patterns give the same map."""
    training = training_set(votes, RECIPES["deep"])
    whole = candidates(votes)
    task = ChainTask("LogisticRegression", SUBSET, training, RECIPES["deep"], ("none", "platt", "isotonic"), 0)
    some = task.run(training.cells.patterns[:5]).candidates
    for all_patterns, few in zip(whole, some, strict=True):
        assert few.p == pytest.approx(all_patterns.p[:5])
        assert few.inner_log_loss == all_patterns.inner_log_loss


def test_recommendation_follows_the_criterion(votes):
    """Each criterion takes the candidate that is best by it."""
    result = [*candidates(votes), *candidates(votes, ensembler="MajorityLabelVoter")]
    assert recommend(result, "log_loss").inner_log_loss == min(c.inner_log_loss for c in result)
    by_accuracy = recommend(result, "balanced_accuracy")
    assert by_accuracy.inner_balanced_accuracy == max(c.inner_balanced_accuracy for c in result)
    assert recommend(result, "accuracy").inner_accuracy == max(c.inner_accuracy for c in result)


@pytest.mark.parametrize("calibrator", sorted(CALIBRATORS))
def test_a_fold_is_judged_without_its_own_labels(votes, calibrator):
    """Turning the labels of one dataset round changes nothing in the probabilities it is judged by."""
    from deep.model import grid_search
    from deep.model._search import calibrated_scores

    def judged(matrix):
        training = training_set(matrix, RECIPES["deep"])
        result = grid_search("LogisticRegression", training, grid={"C": (0.01,)})
        ((_, inner, _),) = calibrated_scores(result, training, np.array([0.5]), [calibrator], RECIPES["deep"], 0, [])
        return inner[:, training.cells.groups.index("b")]

    held = votes.datasets == "b"
    turned = VoteMatrix(
        votes.votes,
        votes.item_ids,
        votes.voter_names,
        votes.datasets,
        np.where(held, 1 - votes.labels, votes.labels),
    )
    assert judged(turned) == pytest.approx(judged(votes), abs=1e-12)


def test_two_training_datasets_are_judged_on_plain_out_of_fold_scores(votes):
    """With two folds there is no third to fit on; the candidates are there all the same."""
    result = candidates(votes.rows(votes.datasets != "c"))
    assert np.isfinite([c.inner_log_loss for c in result]).all()
