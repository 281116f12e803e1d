"""Collapsed grid search picks what a search over rows picks."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from deep.base import StagedEnsembler
from deep.ensembles import ENSEMBLERS
from deep.model import RECIPES, TrainingSet, grid_search, training_set
from deep.model._search import inner_score
from tests.model.chain.test_training import random_votes

NOT_EXACT = {"RandomForest"}
"""Equal on cells and rows in distribution only."""

LABEL_FREE = {name for name, cls in ENSEMBLERS.items() if not cls.uses_labels}

TUNED = sorted(name for name, cls in ENSEMBLERS.items() if cls.param_grid and name not in NOT_EXACT)


def balanced_folds(n=600, seed=0):
    """Return votes whose five folds have equal size, so that a mean over folds is a mean over rows."""
    votes = random_votes(n, seed=seed)
    folds = np.arange(n) % 5
    from deep.features import Cells

    cells = Cells.from_rows(votes.votes, labels=votes.labels, groups=folds.astype(str))
    return votes, folds, TrainingSet(cells, np.arange(5), "uniform")


@pytest.mark.parametrize("name", TUNED)
def test_search_on_cells_picks_the_row_level_winner(name):
    """scikit-learn's search over the rows finds the same scores at every grid point, and so the same best."""
    votes, folds, training = balanced_folds()
    grid = dict(ENSEMBLERS[name].param_grid)
    rows = GridSearchCV(
        ENSEMBLERS[name](), {key: list(values) for key, values in grid.items()}, scoring="accuracy", refit=False,
        cv=PredefinedSplit(folds),
    ).fit(votes.votes, votes.labels)  # fmt: skip
    result = grid_search(name, training, criterion="accuracy")
    row_best = rows.cv_results_["mean_test_score"].max()
    assert result.score == pytest.approx(row_best, abs=1e-12)
    index = rows.cv_results_["params"].index(result.params)
    assert rows.cv_results_["mean_test_score"][index] == pytest.approx(row_best, abs=1e-12)


@pytest.mark.parametrize("name", sorted(set(ENSEMBLERS) - NOT_EXACT))
def test_out_of_fold_probabilities_equal_those_of_rows(name):
    """Fitting on weighted cells of the other datasets gives what fitting on their weighted rows gives."""
    votes = random_votes()
    training = training_set(votes, RECIPES["deep"])
    result = grid_search(name, training)
    held = training.cells.groups.index("b")
    rest = votes.rows(votes.datasets != "b")
    rest_set = training_set(rest, RECIPES["deep"])
    by_group = rest_set.weights().sum(axis=0) / rest_set.cells.counts.sum(axis=0)
    row_weight = by_group[[rest_set.cells.groups.index(d) for d in rest.datasets], rest.labels]
    model = ENSEMBLERS[name](**result.params).fit(rest.votes, rest.labels, row_weight)
    assert model.predict_proba(training.cells.patterns)[:, 1] == pytest.approx(result.oof[:, held], abs=2e-6)


def test_log_loss_and_balanced_accuracy_by_hand():
    """Inner scores equal their definitions on the rows."""
    votes = random_votes()
    training = training_set(votes, RECIPES["deep"])
    oof = np.random.default_rng(0).random((len(training.cells.patterns), 3))
    weights = training.weights()
    from deep.features import distinct_patterns

    _, pattern = distinct_patterns(votes.votes)
    fold = np.array([training.cells.groups.index(d) for d in votes.datasets])
    p, y = oof[pattern, fold], votes.labels
    per_dataset = [
        np.mean([np.mean((p[rows] >= 0.5) == c) for c in (0, 1) for rows in [(fold == f) & (y == c)]]) for f in range(3)
    ]
    losses = [
        np.mean(-np.log(np.where(y[rows] == 1, p[rows], 1 - p[rows])))
        for f in range(3)
        for c in (0, 1)
        for rows in [(fold == f) & (y == c)]
    ]
    assert inner_score(oof, training, "balanced_accuracy", weights) == pytest.approx(np.mean(per_dataset))
    assert inner_score(oof, training, "log_loss", weights) == pytest.approx(-np.mean(losses))
    assert inner_score(oof, training, "accuracy", weights) == pytest.approx(np.mean((p >= 0.5) == y))


@pytest.mark.parametrize("name", sorted(n for n, cls in ENSEMBLERS.items() if issubclass(cls, StagedEnsembler)))
def test_stages_are_searched_in_one_fit(name, monkeypatch):
    """A boosted ensembler is fitted once a fold for all its numbers of rounds, and once at the end."""
    fits = []
    original = ENSEMBLERS[name]._fit
    monkeypatch.setattr(ENSEMBLERS[name], "_fit", lambda self, *args: (fits.append(1), original(self, *args))[1])
    training = training_set(random_votes(), RECIPES["deep"])
    grid_search(name, training, grid={"n_estimators": (5, 10, 20)})
    assert len(fits) == 3 + 1


def test_first_of_equal_points_wins():
    """A voter without anything to tune scores the same everywhere; the first grid point is taken."""
    training = training_set(random_votes(), RECIPES["deep"])
    assert grid_search("DawidSkene", training, grid={"max_iter": (30, 30)}).params == {"max_iter": 30}


def test_search_is_deterministic():
    """The same seed gives the same forest, whatever else was drawn in between."""
    training = training_set(random_votes(), RECIPES["deep"])
    with warnings.catch_warnings():
        first = grid_search("RandomForest", training, grid={}, random_state=3)
        np.random.default_rng().random(10)
        second = grid_search("RandomForest", training, grid={}, random_state=3)
    assert (first.oof == second.oof).all()
