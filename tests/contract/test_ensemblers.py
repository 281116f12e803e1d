"""What every ensembler must do, whatever its method."""

import pickle
import random
import re
from functools import cache
from itertools import cycle, islice, product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

from deep import ensembles
from deep.base import BaseEnsembler, StagedEnsembler
from deep.ensembles import ENSEMBLER_NAMES, ENSEMBLERS, default_ensemblers
from deep.exceptions import InputError

SNORKEL = "snorkel-labelmodel"
NAMES = (*ENSEMBLERS, SNORKEL)
"""Those of the core, and that of a guest."""

LABEL_FREE = {name for name in NAMES if not ENSEMBLERS[name].uses_labels}

EXACT = 1e-9
ROUNDING = {"LGBM": 1e-6, "LabelModel": 1e-6, "SVC": 1e-6, "XGB": 1e-6, SNORKEL: 1e-6}
"""Largest difference in P between fits that are one on paper: float32 rounds early, a solver stops early."""

REORDERED = ROUNDING | {"SVC": 1e-5}
"""The same where columns move or votes flip, so that the solver walks another way."""

SILENT = REORDERED | {"MultinomialNB": 1e-3}
"""The same where a voter is added that never votes: naive Bayes on tokens smooths over its two tokens as well."""

DRAWN = {"RandomForest": 0.04}
"""Largest mean difference in P where moved columns or flipped votes make a forest of 100 trees draw anew."""

Votes = npt.NDArray[np.int8]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

every_ensembler = pytest.mark.parametrize("name", NAMES)
every_learner = pytest.mark.parametrize("name", [name for name in NAMES if name not in LABEL_FREE])
every_staged = pytest.mark.parametrize(
    "name", [name for name, kind in ENSEMBLERS.items() if issubclass(kind, StagedEnsembler)]
)


@cache
def make_votes(n: int = 300, abstains: float = 0.15, seed: int = 0, n_voters: int = 5) -> tuple[Votes, Integers]:
    """Return votes of independent voters, better than chance, and labels; read-only."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    accuracies = islice(cycle((0.6, 0.85, 0.7, 0.8, 0.75)), n_voters)
    X = np.column_stack([np.where(rng.random(n) < accuracy, y, 1 - y) for accuracy in accuracies])
    X[rng.random(X.shape) < abstains] = -1
    votes = X.astype(np.int8)
    votes.setflags(write=False)
    y.setflags(write=False)
    return votes, y


def make_weights(n: int = 300, seed: int = 1) -> Floats:
    """Return fractional weights, among which ties have probability 0."""
    return np.random.default_rng(seed).uniform(0.5, 3.0, n)


@cache
def fitted(name: str) -> BaseEnsembler:
    """Return the ensembler fitted on weighted votes; shared, so for questions only."""
    return ENSEMBLERS[name]().fit(*make_votes(), make_weights())


def p_consistent(estimator: BaseEnsembler, X: Any) -> Floats:
    """Return the column of P(consistent)."""
    return estimator.predict_proba(X)[:, 1]


def patterns(n_voters: int = 5) -> Votes:
    """Return every possible row of votes."""
    return np.array(list(product((-1, 0, 1), repeat=n_voters)), dtype=np.int8)


def flip(X: Votes) -> Votes:
    """Turn 1 into 0 and 0 into 1, and leave abstains."""
    return np.where(X == -1, -1, 1 - X).astype(np.int8)


def assert_same(name: str, got: Floats, expected: Floats, tolerances: dict[str, float] = ROUNDING) -> None:
    """Assert that probabilities are equal up to the ensembler's tolerance."""
    if name in DRAWN and tolerances is not ROUNDING:
        assert np.mean(np.abs(got - expected)) < DRAWN[name]
    else:
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerances.get(name, EXACT))


def test_the_registry_has_every_ensembler() -> None:
    """Sorted, each under the name of its class: what the package exports on `BaseEnsembler`."""
    exported = [getattr(ensembles, name) for name in ensembles.__all__]
    kinds = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, BaseEnsembler)}
    kinds.discard(ensembles.MirroredBoosting)  # the base of the three boosting libraries' classes
    assert set(ENSEMBLERS.values()) == kinds
    assert list(ENSEMBLERS) == sorted(kind.__name__ for kind in kinds)
    assert list(default_ensemblers("paper")) == list(ENSEMBLERS)
    assert set(ENSEMBLERS) - set(default_ensemblers()) == {"MultinomialNB"}  # of complete votes it is BernoulliNB
    assert ENSEMBLER_NAMES == NAMES  # the guest's is tried only where it is named


def test_grids_are_small() -> None:
    """A grid search costs at most six points an ensembler on average."""
    points = [prod(len(values) for values in kind.param_grid.values()) for kind in ENSEMBLERS.values()]
    assert sum(points) <= 6 * len(points)


@every_ensembler
def test_grid_names_parameters_and_each_point_fits(name: str) -> None:
    """Every key of the grid is a constructor parameter, and every value can be fitted."""
    grid = ENSEMBLERS[name].param_grid
    for key, values in grid.items():
        for value in values:
            estimator = ENSEMBLERS[name](**{key: value})
            assert estimator.get_params()[key] == value
            assert np.isfinite(p_consistent(estimator.fit(*make_votes(n=60)), patterns())).all()


@every_ensembler
def test_probabilities_are_probabilities(name: str) -> None:
    """There are two columns, within [0, 1], that sum to 1, and predict follows the second; `fit` returns itself."""
    estimator = ENSEMBLERS[name]()
    assert estimator.fit(*make_votes()) is estimator
    assert estimator.classes_.tolist() == [0, 1]
    assert estimator.n_features_in_ == 5
    proba = estimator.predict_proba(patterns())
    assert proba.shape == (3**5, 2)
    assert proba.dtype == np.float64
    assert proba.min() >= 0
    assert proba.max() <= 1
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(estimator.predict(patterns()), proba[:, 1] >= 0.5)


@every_ensembler
def test_the_probabilities_are_informative(name: str) -> None:
    """On new rows of the same voters the decisions are far better than chance."""
    X, y = make_votes(n=2000, seed=9)
    assert np.mean(fitted(name).predict(X) == y) > 0.75


@every_ensembler
def test_weight_equals_repetition(name: str) -> None:
    """A row of weight w gives what w copies of the row give."""
    X, y = make_votes()
    w = np.random.default_rng(2).integers(1, 5, len(X))
    weighted = ENSEMBLERS[name]().fit(X, y, w)
    repeated = ENSEMBLERS[name]().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_same(name, p_consistent(weighted, patterns()), p_consistent(repeated, patterns()))


@every_ensembler
def test_a_rows_weight_can_be_split(name: str) -> None:
    """A row of fractional weight gives what two rows give that share its weight."""
    X, y = make_votes()
    w, share = make_weights(), np.random.default_rng(3).random(len(X))
    split = ENSEMBLERS[name]().fit(np.tile(X, (2, 1)), np.tile(y, 2), np.concatenate([w * share, w * (1 - share)]))
    assert_same(name, p_consistent(split, patterns()), p_consistent(fitted(name), patterns()))


@every_ensembler
def test_rows_of_no_weight_are_ignored(name: str) -> None:
    """Rows of weight 0 change nothing, even where they contradict the others."""
    X, y = make_votes()
    w = np.concatenate([make_weights(), np.zeros(len(X))])
    padded = ENSEMBLERS[name]().fit(np.concatenate([X, flip(X)]), np.tile(y, 2), w)
    assert_same(name, p_consistent(padded, patterns()), p_consistent(fitted(name), patterns()))


@every_ensembler
def test_weights_matter(name: str) -> None:
    """Rows that count for more move the probabilities, except of the voter that learns nothing."""
    X, y = make_votes()
    w = np.where(X[:, 0] == y, 50.0, 1.0)
    moved = np.abs(p_consistent(ENSEMBLERS[name]().fit(X, y, w), patterns()) - p_consistent(fitted(name), patterns()))
    assert (moved.max() > 0.01) == (name != "MajorityLabelVoter")


@every_ensembler
def test_order_of_rows_is_irrelevant(name: str) -> None:
    """Shuffled training rows give the same probabilities."""
    X, y = make_votes()
    order = np.random.default_rng(4).permutation(len(X))
    shuffled = ENSEMBLERS[name]().fit(X[order], y[order], make_weights()[order])
    assert_same(name, p_consistent(shuffled, patterns()), p_consistent(fitted(name), patterns()))


@every_ensembler
def test_order_of_columns_is_irrelevant(name: str) -> None:
    """Shuffled voters give the same probabilities; with fractional weights no two splits of a tree tie."""
    X, y = make_votes()
    order = [3, 0, 4, 2, 1]
    moved = ENSEMBLERS[name]().fit(X[:, order], y, make_weights())
    expected = p_consistent(fitted(name), patterns())
    assert_same(name, p_consistent(moved, patterns()[:, order]), expected, REORDERED)


@every_ensembler
def test_flipping_votes_and_labels_flips_probabilities(name: str) -> None:
    """Calling consistent inconsistent everywhere turns P into 1 - P.

    Label-free ensemblers are told by the votes alone which class is which: the majority of voters is taken to be
    better than chance, which flipping all votes leaves true.
    """
    X, y = make_votes()
    flipped = ENSEMBLERS[name]().fit(flip(X), 1 - y, make_weights())
    got = 1 - p_consistent(flipped, flip(patterns()))
    assert_same(name, got, p_consistent(fitted(name), patterns()), REORDERED)


@every_ensembler
def test_flipping_holds_for_abstains_never_seen_in_training(name: str) -> None:
    """No vote is read as neither 0 nor 1 where training rows are complete."""
    X, y = make_votes(abstains=0.0)
    plain = ENSEMBLERS[name]().fit(X, y, make_weights())
    flipped = ENSEMBLERS[name]().fit(flip(X), 1 - y, make_weights())
    got = 1 - p_consistent(flipped, flip(patterns()))
    assert_same(name, got, p_consistent(plain, patterns()), REORDERED)


@every_ensembler
@pytest.mark.parametrize("abstains", [0.0, 0.15])
def test_a_row_without_votes_has_a_probability(name: str, abstains: float) -> None:
    """A row of abstains only is scored, moderately, whether or not training rows held abstains."""
    estimator = ENSEMBLERS[name]().fit(*make_votes(abstains=abstains))
    assert 0.02 < p_consistent(estimator, [[-1] * 5])[0] < 0.98


@every_ensembler
def test_a_voter_without_votes_is_harmless(name: str) -> None:
    """A column of abstains changes no probability."""
    X, y = make_votes()
    silent = ENSEMBLERS[name]().fit(np.column_stack([X, np.full(len(X), -1)]), y, make_weights())
    wider = np.column_stack([patterns(), np.full(3**5, -1)])
    assert_same(name, p_consistent(silent, wider), p_consistent(fitted(name), patterns()), SILENT)


@every_learner
@pytest.mark.parametrize("y", [[0, 1, 1, 0], [0, 1, 1, 1]])
def test_without_any_vote_all_rows_are_alike(name: str, y: list[int]) -> None:
    """Labels alone can be fitted: every row then has the same probability, whatever its votes."""
    p = p_consistent(ENSEMBLERS[name]().fit(np.full((4, 3), -1), y, [50.0] * 4), patterns(3))
    assert np.isfinite(p).all()
    assert np.ptp(p) < EXACT


@every_ensembler
def test_perfect_voters_are_followed(name: str) -> None:
    """Where every voter is always right, so are the decisions."""
    y = np.random.default_rng(5).integers(0, 2, 400)
    X = np.tile(y[:, None], 5)
    np.testing.assert_array_equal(ENSEMBLERS[name]().fit(X, y).predict(X), y)


@every_ensembler
def test_read_only_inputs_serve(name: str) -> None:
    """Memory that must not be written to can be fitted and scored."""
    X, y = make_votes()
    w = make_weights()
    w.setflags(write=False)
    assert not X.flags.writeable
    assert not y.flags.writeable
    assert np.isfinite(p_consistent(ENSEMBLERS[name]().fit(X, y, w), X)).all()


@every_ensembler
def test_same_seed_same_result(name: str) -> None:
    """A clone, fitted to the same rows, gives the same probabilities to the last bit."""
    again = clone(fitted(name)).fit(*make_votes(), make_weights())
    np.testing.assert_array_equal(p_consistent(again, patterns()), p_consistent(fitted(name), patterns()))


@every_ensembler
def test_unfitted_raises(name: str) -> None:
    """Asking before fit raises scikit-learn's error, of a clone of what was fitted too."""
    for ask in (ENSEMBLERS[name]().predict, ENSEMBLERS[name]().predict_proba, clone(fitted(name)).predict_proba):
        with pytest.raises(NotFittedError, match=f"This {ENSEMBLERS[name].__name__} instance is not fitted yet"):
            ask(patterns())


@every_ensembler
def test_pickle_keeps_probabilities(name: str) -> None:
    """A fitted ensembler survives pickling."""
    restored = pickle.loads(pickle.dumps(fitted(name)))
    np.testing.assert_array_equal(p_consistent(restored, patterns()), p_consistent(fitted(name), patterns()))


@every_ensembler
def test_fitting_again_forgets(name: str) -> None:
    """A second fit gives what a fresh estimator gives."""
    other = make_votes(seed=8)
    again = clone(fitted(name)).fit(*make_votes()).fit(*other)
    fresh = ENSEMBLERS[name]().fit(*other)
    np.testing.assert_array_equal(p_consistent(again, patterns()), p_consistent(fresh, patterns()))


@every_ensembler
def test_rows_are_scored_one_by_one(name: str) -> None:
    """A row's probability is the same to the last bit whatever rows it is scored with, on any processor."""
    X, y = make_votes(n=400, n_voters=11)
    estimator = ENSEMBLERS[name]().fit(X, y, make_weights(len(X)))
    rows = np.asfortranarray(X)[:97]
    p = p_consistent(estimator, rows)
    for size in (1, 2, 7, 40):
        parts = [p_consistent(estimator, rows[start : start + size]) for start in range(0, len(rows), size)]
        np.testing.assert_array_equal(np.concatenate(parts), p)


@every_ensembler
def test_data_frames_realign_by_name(name: str) -> None:
    """Columns of a data frame are matched by name, extra ones ignored, and a missing one is named."""
    X, y = make_votes()
    frame = pd.DataFrame(X, columns=list("abcde"))
    estimator = ENSEMBLERS[name]().fit(frame, y, make_weights())
    moved = frame[["e", "b", "a", "d", "c"]].assign(other=1)
    np.testing.assert_array_equal(p_consistent(estimator, moved), p_consistent(estimator, frame))
    assert_same(name, p_consistent(estimator, frame), p_consistent(fitted(name), X))
    with pytest.raises(InputError, match=r"`X` must have the columns it was fitted on. Got none named 'c'"):
        estimator.predict_proba(frame.drop(columns="c"))


@every_ensembler
def test_another_number_of_columns_is_an_error(name: str) -> None:
    """Scoring rows of another width says both widths."""
    with pytest.raises(InputError, match=r"`X` must have 5 columns, as in `fit`. Got 4"):
        fitted(name).predict_proba(patterns(4))


@every_ensembler
def test_global_random_state_is_untouched(name: str) -> None:
    """Fitting and scoring neither draw from nor reseed the generators of Python, numpy and torch."""
    torch = pytest.importorskip("torch")
    before = random.getstate(), np.random.get_state()[1].tolist(), np.random.get_state()[2], torch.get_rng_state()  # noqa: NPY002
    ENSEMBLERS[name]().fit(*make_votes()).predict_proba(patterns())
    after = random.getstate(), np.random.get_state()[1].tolist(), np.random.get_state()[2], torch.get_rng_state()  # noqa: NPY002
    assert before[:3] == after[:3]
    assert torch.equal(before[3], after[3])


@every_ensembler
def test_fitting_is_silent_and_leaves_no_files(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Fitting prints nothing and writes nothing to the working directory."""
    monkeypatch.chdir(tmp_path)
    ENSEMBLERS[name]().fit(*make_votes()).predict_proba(patterns())
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


@every_learner
def test_both_classes_are_needed(name: str) -> None:
    """A training set with one class, or with one of weight 0, is an error that names the class it has."""
    X, y = make_votes()
    with pytest.raises(InputError, match=r"`y` must hold both classes, 0 and 1. Got only 1"):
        ENSEMBLERS[name]().fit(X, np.ones(len(X)))
    with pytest.raises(InputError, match=r"`y` must hold both classes, 0 and 1. Got only 0"):
        ENSEMBLERS[name]().fit(X, y, 1.0 - y)


@every_learner
def test_labels_are_needed(name: str) -> None:
    """An ensembler that learns from labels says so where there are none, or other values."""
    X, y = make_votes()
    with pytest.raises(InputError, match="`y` must be given: this estimator learns from labels"):
        ENSEMBLERS[name]().fit(X)
    with pytest.raises(InputError, match=r"`y` must hold only 0 and 1. Got 2\.0 at row 0"):
        ENSEMBLERS[name]().fit(X, np.full(len(y), 2))


@pytest.mark.parametrize("name", sorted(LABEL_FREE))
def test_labels_are_ignored_where_not_used(name: str) -> None:
    """A label-free ensembler gives the same with labels, without, and with wrong ones."""
    X, y = make_votes()
    for labels in (None, 1 - y, np.ones(len(y))):
        other = ENSEMBLERS[name]().fit(X, labels, make_weights())
        np.testing.assert_array_equal(p_consistent(other, patterns()), p_consistent(fitted(name), patterns()))


BAD_VOTES: list[tuple[Any, str]] = [
    ([[0, 1, 1, 1, 2]], r"`X` must hold only -1 \(no vote\), 0 and 1. Got 2\.0 at row 0, column 4"),
    ([[0, 1, np.nan, 1, 1]], r"`X` must hold only -1 \(no vote\), 0 and 1. Got nan at row 0, column 2"),
    ([[0, 1, 0.5, 1, 1]], r"`X` must hold only -1 \(no vote\), 0 and 1. Got 0\.5 at row 0, column 2"),
    ([list("abcde")], r"`X` must hold numbers. Got dtype <U1"),
    ([0, 1, 1, 1, 1], r"`X` must be two-dimensional \(examples x voters\). Got 1 dimension"),
    (np.empty((0, 5)), r"`X` must have at least one row and one column. Got shape \(0, 5\)"),
]
BAD_WEIGHTS: list[tuple[Floats, str]] = [
    (np.full(300, -1.0), r"`sample_weight` must be finite and not negative. Got -1\.0 at row 0"),
    (np.full(300, np.nan), r"`sample_weight` must be finite and not negative. Got nan at row 0"),
    (np.zeros(300), r"`sample_weight` must have a positive sum. Got only zeros"),
    (np.ones(7), r"`sample_weight` must have 300 entries, one a row. Got 7"),
]


def once_each(faults: list[Any]) -> list[Any]:
    """Return the first fault for every ensembler, and the others for one: the check is the base class's."""
    return [(name, *faults[0]) for name in NAMES] + [("LDA", *fault) for fault in faults[1:]]


@pytest.mark.parametrize(("name", "votes", "message"), once_each(BAD_VOTES))
def test_bad_votes_are_named(name: str, votes: Any, message: str) -> None:
    """Anything but -1, 0 and 1 in two dimensions is refused, in fitting as in scoring."""
    with pytest.raises(InputError, match=message):
        ENSEMBLERS[name]().fit(votes, np.zeros(len(votes)))
    with pytest.raises(InputError, match=message):
        fitted(name).predict_proba(votes)


@pytest.mark.parametrize(("name", "weights", "message"), once_each(BAD_WEIGHTS))
def test_bad_weights_are_named(name: str, weights: Floats, message: str) -> None:
    """Weights that are negative, not finite, all zero or too few are refused."""
    with pytest.raises(InputError, match=message):
        ENSEMBLERS[name]().fit(*make_votes(), weights)


ABOVE_0, AT_LEAST_0 = "a finite number above 0", "at least 0"
AT_LEAST_1, A_WHOLE_NUMBER = "at least 1", "a whole number of at least 1"
NAN = float("nan")

OUT_OF_RANGE = [
    (AT_LEAST_1, "n_estimators", [0], ("CatBoost", "LGBM", "XGB")),
    (ABOVE_0, "learning_rate", [0.0], ("CatBoost", "LGBM", "XGB")),
    (AT_LEAST_0, "reg_lambda", [-1.0, NAN], ("CatBoost", "LGBM", "XGB")),
    (AT_LEAST_1, "max_depth", [0], ("CatBoost", "XGB")),  # XGBoost would read a depth of 0 as no limit
    (AT_LEAST_0, "min_child_weight", [-0.1], ("XGB",)),
    ("at least 2", "num_leaves", [1], ("LGBM",)),
    (ABOVE_0, "learning_rate", [-1.0], ("AdaBoost",)),
    (A_WHOLE_NUMBER, "n_estimators", [0, -1], ("AdaBoost", "RandomForest")),
    (ABOVE_0, "C", [0, -1.0, NAN], ("LogisticRegression", "SVC")),
    (r"in \[0, 1\]", "shrinkage", [-0.1, 1.1, NAN], ("LDA",)),
    (ABOVE_0, "alpha", [0, -2.0], ("BernoulliNB", "MultinomialNB")),
    (ABOVE_0, "smoothing", [0, -1.0, NAN, float("inf")], ("WeightedMajorityVoting",)),
    (ABOVE_0, "n_neighbors", [0, -3], ("KNeighbors",)),
    (AT_LEAST_0, "max_iter", [-1], ("DawidSkene",)),
    (AT_LEAST_0, "tol", [-1e-9, NAN], ("DawidSkene",)),
    (AT_LEAST_0, "l2", [-0.1], ("LabelModel", SNORKEL)),
    ("two positive shares", "class_balance", [(0.5, 0.6), (0.0, 1.0), (0.2, 0.3, 0.5)], ("LabelModel",)),
    (A_WHOLE_NUMBER, "n_epochs", [0, None], (SNORKEL,)),
    (ABOVE_0, "lr", [0.0], (SNORKEL,)),
]
"""What a parameter must be, its name, values that it must not have, and the ensemblers that have it."""


@pytest.mark.parametrize(("allowed", "parameter", "values", "names"), OUT_OF_RANGE, ids=lambda value: str(value)[:12])
def test_parameters_out_of_range_are_refused_by_name(
    allowed: str, parameter: str, values: list[Any], names: tuple[str, ...]
) -> None:
    """When it is fitted, as scikit-learn wants it."""
    for name, value in product(names, values):
        with pytest.raises(InputError, match=rf"`{parameter}` must be {allowed}.*Got {re.escape(repr(value))}"):
            ENSEMBLERS[name](**{parameter: value}).fit(*make_votes(20))


@every_ensembler
def test_the_fewest_voters_can_be_fitted_and_fewer_are_an_error(name: str) -> None:
    """As many voters as declared are enough; one less is an error that says how many it needs."""
    X, y = make_votes()
    least = ENSEMBLERS[name].min_voters
    enough = ENSEMBLERS[name]().fit(X[:, :least], y)
    assert np.isfinite(p_consistent(enough, patterns(least))).all()
    if least > 1:
        of = ENSEMBLERS[name].__name__
        with pytest.raises(InputError, match=rf"`X` must have at least {least} columns for {of}. Got {least - 1}"):
            ENSEMBLERS[name]().fit(X[:, : least - 1], y)


@every_staged
def test_last_stage_is_the_model(name: str) -> None:
    """The probabilities after all rounds are those of predict_proba."""
    estimator = fitted(name)
    assert isinstance(estimator, StagedEnsembler)
    rounds = estimator.get_params()[estimator.stage_param]
    staged = estimator.staged_predict_proba(patterns(), [1, rounds])
    assert staged.shape == (2, 3**5)
    np.testing.assert_allclose(staged[1], p_consistent(estimator, patterns()), rtol=0, atol=1e-12)


@every_staged
def test_an_earlier_stage_is_a_fit_of_fewer_rounds(name: str) -> None:
    """The probabilities after r rounds are those of a fit with r rounds, in whatever order the stages are asked."""
    estimator = fitted(name)
    assert isinstance(estimator, StagedEnsembler)
    staged = estimator.staged_predict_proba(patterns(), [12, 3])
    for rounds, proba in zip((12, 3), staged, strict=True):
        shorter = clone(estimator).set_params(**{estimator.stage_param: rounds}).fit(*make_votes(), make_weights())
        assert_same(name, proba, p_consistent(shorter, patterns()))


@every_staged
def test_grid_holds_the_stages(name: str) -> None:
    """A search over the number of rounds comes for free, so every staged ensembler's grid has it."""
    kind = ENSEMBLERS[name]
    assert issubclass(kind, StagedEnsembler)
    assert kind.stage_param in kind.param_grid
    assert kind.stage_param in kind().get_params()


DATA_FREE = [
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_estimator_tags_renamed,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_mixin_order,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_set_params,
    estimator_checks.check_valid_tag_types,
]
"""The checks of scikit-learn that feed no data: its data are not votes."""


@every_ensembler
def test_scikit_learns_checks_without_data(name: str) -> None:
    """The estimator follows scikit-learn's conventions on parameters, cloning, printing and tags."""
    for check in DATA_FREE:
        check(name, ENSEMBLERS[name]())


@st.composite
def weighted_votes(draw: st.DrawFn) -> tuple[Votes, Integers, Floats]:
    """Draw a small vote matrix, labels of both classes, and weights of very different sizes."""
    n, k = draw(st.integers(2, 12)), draw(st.integers(3, 5))
    X = draw(st.lists(st.lists(st.sampled_from((-1, 0, 1)), min_size=k, max_size=k), min_size=n, max_size=n))
    X[0][0] = draw(st.integers(0, 1))  # the label-free have nothing to learn from where nobody votes
    y = draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))
    w = draw(st.lists(st.floats(1e-3, 1e4), min_size=n, max_size=n))
    return np.array(X, dtype=np.int8), np.array([0, 1, *y]), np.array(w)


@every_ensembler
@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(rows=weighted_votes())
def test_any_votes_give_probabilities(name: str, rows: tuple[Votes, Integers, Floats]) -> None:
    """Whatever the votes, labels and weights, all probabilities are finite and within [0, 1]."""
    X, y, w = rows
    p = p_consistent(ENSEMBLERS[name]().fit(X, y, w), np.concatenate([X, flip(X), np.full_like(X[:1], -1)]))
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()
