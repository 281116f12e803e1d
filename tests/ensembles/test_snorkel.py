"""Snorkel's own label model behind the contract of ensemblers."""

import random

import numpy as np
import pytest

from deep import VoteMatrix, load
from deep.ensembles import ENSEMBLERS, default_ensemblers
from deep.exceptions import InputError
from deep.integrations.snorkel import SnorkelLabelModel
from deep.model import fit
from tests.ensembles.test_label_model import simulate, snorkel_proba


def test_is_the_library_on_rows_repeated_one_by_one():
    """Weighted rows give what the library gives for as many rows."""
    X, w = simulate(200), np.random.default_rng(1).integers(1, 6, 200)
    ours = SnorkelLabelModel().fit(X, sample_weight=w).predict_proba(X)[:, 1]
    np.testing.assert_allclose(ours, snorkel_proba(np.repeat(X, w, axis=0), X), rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    "params", [{"n_epochs": 20}, {"lr": 0.05}, {"l2": 0.1}, {"class_balance": (0.7, 0.3)}, {"random_state": 3}]
)
def test_every_parameter_reaches_the_library(params):
    """Each moves P, to where the library's own option moves it."""
    X = simulate()
    short = {"n_epochs": 10, **params}
    ours = SnorkelLabelModel(**short).fit(X).predict_proba(X)[:, 1]
    options = {"seed" if name == "random_state" else name: value for name, value in short.items()}
    np.testing.assert_allclose(ours, snorkel_proba(X, **options), rtol=0, atol=1e-7)
    assert np.abs(ours - SnorkelLabelModel(10).fit(X).predict_proba(X)[:, 1]).max() > 1e-4


def generators():
    """Return the states of the generators of Python, numpy and torch."""
    import torch

    _, keys, position, *gauss = np.random.get_state()  # noqa: NPY002
    return random.getstate(), keys.tolist(), position, gauss, torch.get_rng_state().tolist()


@pytest.mark.parametrize("lr", [0.01, 1e9])
def test_the_librarys_seeds_stay_inside(lr):
    """After a fit and after a failed one the global generators are where they were."""
    before = generators()
    if lr > 1:
        with pytest.raises(InputError, match=r"`lr` must be small enough .* Got 1000000000\.0 for 5 voters"):
            SnorkelLabelModel(lr=lr).fit(simulate(200))
    else:
        SnorkelLabelModel(lr=lr, random_state=9).fit(simulate(200))
    assert generators() == before


def test_a_chain_of_it_is_saved_and_loaded(tmp_path):
    """By its option's name, which the file holds, and with the same P."""
    X, rng = simulate(200, missing=0.05), np.random.default_rng(2)
    labels = (X.sum(axis=1) + rng.integers(0, 3, len(X)) > 3).astype(int)
    votes = VoteMatrix(X, range(len(X)), list("abcde"), rng.choice(["x", "y", "z"], len(X)), labels)
    model = fit(votes, sizes=[3], ensembler="snorkel-labelmodel", calibrator="isotonic")
    assert model.fit_report["chosen"]["ensembler"] == "snorkel-labelmodel"
    model.save(tmp_path / "m.json")
    np.testing.assert_array_equal(
        load(tmp_path / "m.json").scores_of(votes).p_consistent, model.scores_of(votes).p_consistent
    )


def test_a_fit_tries_it_only_where_it_is_named():
    """It takes thirty times as long as LabelModel, and its P depends on the seed; the main job has its row."""
    from deep.experiments.loo import LooOptions

    assert "snorkel-labelmodel" in ENSEMBLERS
    assert "snorkel-labelmodel" not in default_ensemblers()
    assert "snorkel-labelmodel" in LooOptions().table_ensemblers("deep")
